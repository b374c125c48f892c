/* SPDX-License-Identifier: Apache-2.0 */
/* incident_relief.c - when most ranks of it are back; see incident.h. */
#include "config.h"

#include "detect/incident.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

/* Others that are asked what is common to all now. */
#define ASKED 255

/* Is the rank there to be asked? */
static bool is_there(const struct series *s)
{
    return s->missed < 2 && s->last_ts >= s->job->restart_ts;
}

/* What ranks outside of the incident show since the change: 1 if healthy. */
static double common_now(struct ep_watch *w, const struct incident *in,
                         const struct suspicion *x)
{
    const struct members *m = &in->who.job->ranks;
    size_t n = 0, step = m->n / ASKED + 1, outside = m->n - in->n;

    if (x->ground == GROUND_PEERS || outside * 2 < m->n)
        return 1;
    for (size_t i = 0; i < m->n; i += step) {
        const struct series *r = m->v[i];
        double now;

        if (!r->pace || ep_incident_link(in, r) ||
            (in->like &&
             (r->basis == BASIS_DUR) != (in->like->basis == BASIS_DUR)))
            continue;
        now = ep_incident_standing(r, &x->c, x->ground) /
              ep_incident_effects(r, NULL);
        if (!isnan(now))
            w->work[n++] = now;
    }
    return n ? ep_median(w->work, n) : 1;
}

static void relief_text(struct ep_watch *w, const struct incident *in,
                        const struct suspicion *x)
{
    if (x->s->scope == EP_SCOPE_JOB) {
        (void)ep_verdict_job(w, x->s->job, &x->c);
    } else if (x->ground == GROUND_PEERS) {
        ep_buf_reset(&w->text);
        ep_buf_adds(&w->text, x->s->basis == BASIS_PER_MB
                                  ? "busy per micro-batch "
                                  : "busy ");
        ep_num_format_duration(&w->text, x->c.after);
        ep_buf_adds(&w->text, ", its peers ");
        ep_num_format_duration(&w->text, x->c.before);
    } else {
        (void)ep_verdict_rank(w, x->s, &x->c);
    }
    if (in->kin < KIN_RANK)
        ep_buf_addf(&w->text, " (%s)", x->s->id);
}

/* A rank that stays slow when the others of the incident are back. */
struct left {
    struct series *s;
    double now;
};

static void place_left(struct ep_watch *w, const struct left *left, size_t n,
                       const struct suspicion *relief)
{
    for (size_t i = 0; i < n; i++) {
        struct series *s = left[i].s;
        double level = ep_changepoint_healthy(s->pace);
        struct suspicion x = *relief;

        x.s = s;
        x.c.kind = EP_CHANGE_ONSET;
        x.c.partial = x.c.worsening = false;
        x.c.factor = ep_incident_standing(s, &relief->c, relief->ground);
        x.c.before = level;
        x.c.after = level * x.c.factor;
        x.excess = left[i].now;
        s->muted = 0;
        s->ep.open = relief->ground == GROUND_PACE;
        s->ep.since = x.c.since_ts;
        s->ep.excess = left[i].now;
        s->ep.factor = x.c.factor;
        if (ep_incident_absorb(w, &x))
            continue;
        (void)ep_incident_survey(w, s->job, s, &x.c, x.ground, w->survey);
        ep_incident_place(w, &x, w->survey);
    }
}

/* What became of the ranks. */
struct roll {
    size_t known, back, left;
    double median;
};

static struct roll call_roll(struct ep_watch *w, const struct incident *in,
                             const struct suspicion *x, struct left *left,
                             double *now)
{
    double common = common_now(w, in, x), least = 1 + w->config.pace.min_change;
    struct roll r = {0, 0, 0, 0};

    for (size_t i = 0; i < in->n; i++) {
        const struct link *l = in->link[i];
        double v = ep_incident_standing(l->s, &x->c, x->ground) /
                   ep_incident_effects(l->s, in) / common;

        now[i] = v;
        if (isnan(v) || !is_there(l->s))
            continue;
        w->work[r.known++] = v;
        if (v < least && log(v) < SHARE * log(l->effect))
            r.back++;
        else
            left[r.left++] = (struct left){l->s, v};
    }
    r.median = r.known ? ep_median(w->work, r.known) : 1;
    return r;
}

/*
 * Is it over? If not, and that is asked for, is it partly? Returns whether it is
 * gone.
 */
static bool review(struct ep_watch *w, struct incident *in,
                   const struct suspicion *x, bool partly)
{
    double least = 1 + w->config.pace.min_change;
    struct left *left = ep_calloc(in->n + 1, sizeof *left);
    double *now = ep_calloc(in->n + 1, sizeof *now);
    struct roll r = call_roll(w, in, x, left, now);
    bool gone = false;

    if (r.known && (double)r.back >= COVER * (double)r.known) {
        relief_text(w, in, x);
        gone = ep_incident_over(w, in, &x->c, r.median, x->now);
        if (gone)
            place_left(w, left, r.left, x);
    } else if (partly && r.known && r.median >= least &&
               r.median * least <= in->ep.factor) {
        for (size_t i = 0; i < in->n; i++)
            if (now[i] > 0)
                in->link[i]->effect = now[i];
        relief_text(w, in, x);
        ep_incident_ease(w, in, &x->c, r.median, x->now);
    }
    free(left);
    free(now);
    return gone;
}

void ep_incident_review(struct ep_watch *w, struct incident *in,
                        const struct suspicion *x)
{
    (void)review(w, in, x, true);
}

/* The one incident of the one rank: its own test says it. */
static void follow(struct ep_watch *w, struct link *l,
                   const struct suspicion *x)
{
    struct incident *in = l->in;
    double now = x->c.factor * (x->ground == GROUND_PEERS ? 1 : x->s->handicap);

    if (x->c.partial && now * (1 + w->config.pace.min_change / 2) > l->effect)
        return; /* another incident that it was in is over: that was told */
    relief_text(w, in, x);
    if (now < 1 + w->config.pace.min_change && !x->c.partial) {
        (void)ep_incident_over(w, in, &x->c, now, x->now);
        return;
    }
    l->effect = now;
    ep_incident_ease(w, in, &x->c, now, x->now);
}

/*
 * What a rank's own pace began, that ends: its peers may have come to be as
 * slow.
 */
static bool can_end(const struct incident *in, const struct suspicion *x)
{
    return x->ground != GROUND_PEERS || in->ground == GROUND_PEERS;
}

/* The largest that was not looked at in this judgement, smaller than most. */
static struct incident *largest(const struct suspicion *x, size_t most)
{
    const struct incidents *all = &x->s->job->incidents;
    struct incident *in = NULL;

    for (const struct link *l = x->s->links; l; l = l->next)
        if (can_end(l->in, x) && l->in->stamp != all->stamp &&
            l->in->n < most && (!in || l->in->n > in->n))
            in = l->in;
    return in;
}

/* One that is over, the largest; false if none is. */
static bool end_one(struct ep_watch *w, const struct suspicion *x)
{
    struct incident *in;

    for (size_t most = SIZE_MAX; (in = largest(x, most));) {
        most = in->n;
        if (review(w, in, x, false))
            return true;
    }
    return false;
}

void ep_incident_relieve(struct ep_watch *w, const struct suspicion *x)
{
    struct incidents *all = &x->s->job->incidents;
    struct link *l = x->s->links;

    if (!l)
        return;
    if (!l->next && l->in->n == 1) {
        if (can_end(l->in, x) &&
            l->in->stamp != all->stamp) /* else it was just found */
            follow(w, l, x);
        return;
    }
    /* what one that is over explains is not that of the others */
    while (end_one(w, x))
        ;
    for (struct incident *in; (in = largest(x, SIZE_MAX));) {
        in->stamp = all->stamp;
        (void)review(w, in, x, true);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incident_calls.c - slow communication: where it is, and what the transfers
 * tell of it before the pace of the job is sure.
 *
 * Steps of a job vary more than the many transfers in them. So where the last
 * steps are slower by min_change and SUSPECT standard errors, half of what the
 * pace alone needs, comms.h is asked; if it knows a place, and the transfers
 * there take so much more time that both, on average, say min_change (and they
 * half of it), they are as good together as the pace is. The pace confirms it later, or it is
 * over when steps are as they were.
 *
 * Steps that were slow from the first have no past. Their transfers are
 * compared with others of their class, once.
 */
#include "config.h"

#include "detect/incident.h"

#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Another one of the same scope and id that is open. */
static struct incident *twin_of(const struct incident *in)
{
    const struct incidents *all = &in->who.job->incidents;

    for (size_t i = 0; i < all->n; i++)
        if (all->v[i] != in && all->v[i]->ground == GROUND_JOB &&
            all->v[i]->who.scope == in->who.scope &&
            strcmp(all->v[i]->who.id, in->who.id) == 0)
            return all->v[i];
    return NULL;
}

static const char *cause_of(struct ep_watch *w, struct incident *in,
                            const struct ep_comms_place *p,
                            const struct ep_change *c)
{
    const struct series *s;

    if (!p->late || p->rank < 0)
        return p->scope == EP_SCOPE_LINK ? "link" : "network";
    s = ep_watch_series(w, in->who.job, p->rank, (struct ep_span){"", 0}, NULL);
    if (!s)
        return "compute";
    in->like = NULL;
    ep_incident_set_who(in, EP_SCOPE_RANK, s->id, s->host, s->rank);
    return s->pace ? ep_verdict_rank(w, s, c) : "unknown";
}

bool ep_incident_locate(struct ep_watch *w, struct incident *in, double effect,
                        double now)
{
    struct job *job = in->who.job;
    struct ep_change c = in->change;
    struct ep_comms_place p;
    struct incident *twin;
    const char *cause;

    if (!w->locate ||
        !w->locate(w->comms, (struct ep_span){job->name, job->len},
                   in->early ? in->asked_ts : c.since_ts, &p))
        return false;
    in->kin = KIN_OTHER;
    ep_incident_set_who(in, p.scope, p.id,
                        p.scope == EP_SCOPE_HOST && !strncmp(p.id, "host=", 5)
                            ? p.id + 5
                            : NULL,
                        p.late ? p.rank : -1);
    cause = cause_of(w, in, &p, &c);
    c.p = p.p;
    twin = twin_of(in);
    if (twin) {
        /* the same again: it got worse */
        if (in->ep.open)
            ep_incident_fold(w, in, twin, &c, now);
        else
            ep_incident_forget(in);
        in = twin;
        effect *= in->ep.factor;
        if (in->resting) {
            ep_incident_wake(in, &c);
            return true;
        }
    }
    ep_incident_job_text(w, &c);
    ep_buf_addf(&w->text, "; %s", p.evidence);
    ep_incident_tell(w, in, &c, cause, effect, now);
    return true;
}

void ep_incident_set_seek(struct incident *in, int steps)
{
    struct incidents *all = &in->who.job->incidents;

    all->seeking += (size_t)(steps > 0) - (size_t)(in->seek > 0);
    in->seek = steps;
}

void ep_incident_seek(struct ep_watch *w, struct job *job, double now)
{
    struct incidents *all = &job->incidents;

    for (size_t i = 0; i < all->n && all->seeking; i++) {
        struct incident *in = all->v[i];
        int left = in->seek - 1;

        if (left < 0)
            continue;
        ep_incident_set_seek(in, left);
        /* each of the first steps, then now and then */
        if (in->resting || (SEEK_STEPS - left > 8 && left % 4))
            continue;
        ep_incident_set_seek(in, 0);
        if (ep_incident_locate(w, in, in->ep.factor, now))
            return;
        ep_incident_set_seek(in, left);
    }
}

/* ==== Before the pace is sure ==== */

#define SUSPECT 2.5    /* standard errors of a median */
#define SHARE_MOST 0.9 /* of the time since then; what is more is not known */
#define EARLY_LEAST 4
#define EARLY_MOST 16    /* steps that are looked at, at most */
#define WAITS_MOST 64    /* times that are counted */
#define CONFIRM_STEPS 32 /* between its onset and that of the pace, at most */

/* Sample i of those kept, the oldest first. */
static const struct sample *sample_at(const struct ep_watch *w,
                                      const struct series *s, int i)
{
    int window = (int)w->config.window;

    return &s->ring[(s->at + window - s->kept + i) % window];
}

/* Median of the last n samples. */
static double recent(const struct ep_watch *w, const struct series *s, int n)
{
    double v[EARLY_MOST];

    for (int i = 0; i < n; i++)
        v[i] = sample_at(w, s, s->kept - n + i)->value;
    return ep_median(v, (size_t)n);
}

/* The last n steps as a change; false: they are not slow, or not surely. */
static bool is_slower(const struct ep_watch *w, const struct series *s, int n,
                      struct ep_change *c)
{
    double healthy = ep_changepoint_healthy(s->pace);
    double noise = ep_changepoint_noise(s->pace), level;
    const struct sample *first;

    if (s->kept < n || !(healthy > 0))
        return false;
    level = recent(w, s, n);
    first = sample_at(w, s, s->kept - n);
    *c = (struct ep_change){
        .kind = EP_CHANGE_ONSET,
        .since_ts = first->ts,
        .since_step = first->step,
        .before = healthy,
        .after = level,
        .factor = level / healthy,
    };
    return fmin(c->factor, recent(w, s, EARLY_LEAST) / healthy) >=
               1 + w->config.pace.min_change &&
           log(c->factor) * sqrt(n) >= SUSPECT * 1.2533 * noise;
}

/*
 * Is there a place whose transfers since then explain it? The change is held by
 * what they take more of a step.
 */
static bool ask(struct ep_watch *w, struct job *job, const struct ep_change *c,
                double since_ts, double now)
{
    struct ep_comms_place p;
    struct incident *in;
    double share, told;

    if (!w->locate(w->comms, (struct ep_span){job->name, job->len}, since_ts,
                   &p) ||
        p.late)
        return false;
    /* transfers that overlap with work, or with each other, make this another
       than what the pace shows: the mean of both has to be a change */
    share = fmin(p.lost / (now - c->since_ts), SHARE_MOST);
    told = isnan(since_ts) ? 1 / (1 - share) : c->factor;
    if (share < w->config.pace.min_change / 2 ||
        !(sqrt(told / (1 - share)) >= 1 + w->config.pace.min_change))
        return false;
    in = ep_incident_new(job, KIN_ALL, GROUND_JOB, NULL);
    in->change = *c;
    in->asked_ts = since_ts;
    if (isnan(since_ts)) {
        in->change.before = c->after * (1 - share);
        in->change.factor = told;
    }
    in->early = true;
    return ep_incident_locate(w, in, in->change.factor, now);
}

/* Steps that are as they were before it. */
static void end_early(struct ep_watch *w, struct incident *in, double now)
{
    const struct series *s = in->who.job->own;
    double most = in->change.before * (1 + w->config.pace.min_change / 2);
    struct ep_change c = in->change;
    const struct sample *first;

    if (s->kept < NEAR_STEPS)
        return;
    first = sample_at(w, s, s->kept - NEAR_STEPS);
    if (first->step <= in->change.since_step)
        return;
    c.before = in->change.after;
    c.after = recent(w, s, NEAR_STEPS);
    if (c.after > most)
        return;
    c.kind = EP_CHANGE_RELIEF;
    c.since_ts = first->ts;
    c.since_step = first->step;
    c.factor = c.after / in->change.before;
    ep_incident_job_text(w, &c);
    in->early = false;
    (void)ep_incident_over(w, in, &c, fmax(c.factor, 1), now);
}

static struct incident *find_early(const struct job *job)
{
    const struct incidents *all = &job->incidents;

    for (size_t i = 0; i < all->n; i++)
        if (all->v[i]->early && !all->v[i]->resting)
            return all->v[i];
    return NULL;
}

bool ep_incident_confirm(struct ep_watch *w, struct job *job,
                         const struct ep_change *c, double effect, double now)
{
    struct incident *in = find_early(job);

    if (!in || c->worsening || isnan(in->asked_ts) ||
        llabs((long long)(c->since_step - in->change.since_step)) >
            CONFIRM_STEPS)
        return false;
    in->early = false;
    if (effect < in->ep.factor * (1 + w->config.pace.min_change))
        return true;
    in->change = *c;
    in->asked_ts = c->since_ts;
    if (ep_incident_locate(w, in, effect, now))
        return true;
    ep_incident_job_text(w, c);
    ep_incident_tell(w, in, c, in->ep.cause, effect, now);
    return true;
}

/* Steps that are slow from the first. */
static void ask_first(struct ep_watch *w, struct job *job, double now)
{
    const struct series *s = job->own;
    const struct sample *first = sample_at(w, s, 0);
    struct ep_change c = {
        .kind = EP_CHANGE_ONSET,
        .since_ts = first->ts,
        .since_step = first->step,
        .after = recent(w, s, EARLY_MOST),
    };

    (void)ask(w, job, &c, (double)NAN, now);
}

void ep_incident_listen(struct ep_watch *w, struct job *job, double now)
{
    struct incidents *all = &job->incidents;
    const struct series *s = job->own;
    struct incident *in;
    struct ep_change c;
    bool slower = false;

    if (!w->locate || !s || !s->pace || !s->kept)
        return;
    in = find_early(job);
    if (in)
        end_early(w, in, now);
    if (s->ep.open || all->n > all->resting)
        return;
    if (job->ranks.steps == EARLY_MOST && s->kept == EARLY_MOST)
        ask_first(w, job, now);
    for (int n = EARLY_LEAST; n <= EARLY_MOST; n *= 2) {
        if (!is_slower(w, s, n, &c))
            continue;
        slower = true;
        if (all->wait > 0)
            break;
        if (ask(w, job, &c, c.since_ts, now))
            return;
    }
    /* each of the first steps, then now and then */
    all->wait = !slower ? 0 : all->wait > 0 ? all->wait - 1 : all->waits / 4;
    all->waits += slower && all->waits < WAITS_MOST;
    if (!slower)
        all->waits = 0;
}

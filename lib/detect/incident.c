/* SPDX-License-Identifier: Apache-2.0 */
/* incident.c - incidents from the onset to the relief; see incident.h. */
#include "config.h"

#include "detect/incident.h"

#include "base/mem.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct incident *ep_incident_new(struct job *job, enum kin kin,
                                 enum ground ground, const struct series *like)
{
    struct incidents *all = &job->incidents;
    struct incident *in = ep_calloc(1, sizeof *in);

    in->ground = ground;
    in->who.job = job;
    in->times = 1;
    in->stamp = all->stamp;
    in->turn_step = in->held_turn = in->held_since = -1;
    in->kin = KIN_RANK;
    ep_incident_set_kin(in, kin, like);
    all->v = ep_grow(all->v, &all->cap, all->n + 1, sizeof(void *));
    all->v[all->n++] = in;
    return in;
}

void ep_incident_set_kin(struct incident *in, enum kin kin,
                         const struct series *like)
{
    struct incidents *all = &in->who.job->incidents;
    struct ep_buf id;
    enum ep_scope scope;

    ep_buf_init(&id);
    scope = ep_incident_name(kin, like, &id);
    all->groups -= in->kin != KIN_RANK && in->like;
    in->kin = kin;
    in->like = like;
    in->who.shown = like ? like : in->who.job->own;
    all->groups += in->kin != KIN_RANK && in->like;
    ep_incident_set_who(in, scope, id.ptr, like ? like->host : NULL,
                        kin == KIN_RANK && like ? like->rank : -1);
    ep_buf_free(&id);
}

void ep_incident_set_who(struct incident *in, enum ep_scope scope,
                         const char *id, const char *host, int64_t rank)
{
    bool there = host && (scope == EP_SCOPE_RANK || scope == EP_SCOPE_HOST ||
                          scope == EP_SCOPE_WORKER);

    free(in->who.id);
    free(in->who.host);
    in->who.scope = scope;
    in->who.id = ep_strdup(id ? id : "");
    in->who.host = there ? ep_strdup(host) : NULL;
    in->who.rank = rank;
}

/* ==== Ranks of an incident ==== */

struct link *ep_incident_link(const struct incident *in, const struct series *s)
{
    struct link *l = s->links;

    while (l && l->in != in)
        l = l->next;
    return l;
}

void ep_incident_join(struct incident *in, struct series *s, double effect)
{
    struct link *l = ep_calloc(1, sizeof *l);

    effect = fmin(fmax(effect, 1 / FACTOR_MOST), FACTOR_MOST);
    *l = (struct link){in, s, s->links, effect};
    s->links = l;
    in->link = ep_grow(in->link, &in->cap, in->n + 1, sizeof(void *));
    in->link[in->n++] = l;
}

static void unlink_series(struct link *l)
{
    struct link **at = &l->s->links;

    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
}

void ep_incident_forget(struct incident *in)
{
    struct incidents *all = &in->who.job->incidents;
    size_t i = 0;

    for (size_t k = 0; k < in->n; k++) {
        struct series *s = in->link[k]->s;

        if (in->ground == GROUND_PEERS) {
            s->handicap = 1;
            s->peer.open = false;
        }
        unlink_series(in->link[k]);
        free(in->link[k]);
    }
    all->groups -= in->kin != KIN_RANK && in->like;
    all->seeking -= in->seek > 0;
    while (all->v[i] != in)
        i++;
    memmove(&all->v[i], &all->v[i + 1], (--all->n - i) * sizeof(void *));
    free(in->link);
    free(in->who.id);
    free(in->who.host);
    free(in->ep.eid);
    free(in);
}

void ep_incident_unlink(struct incident *in)
{
    for (size_t k = 0; k < in->n; k++) {
        unlink_series(in->link[k]);
        free(in->link[k]);
    }
    in->n = 0;
}

void ep_incident_leave(struct series *s)
{
    while (s->links) {
        struct link *l = s->links;
        struct incident *in = l->in;
        size_t k = 0;

        while (in->link[k] != l)
            k++;
        in->link[k] = in->link[--in->n];
        s->links = l->next;
        free(l);
        if (!in->n && in->ground != GROUND_JOB) {
            in->who.job->incidents.resting -= in->resting;
            ep_incident_forget(in);
        }
    }
}

double ep_incident_effects(const struct series *s, const struct incident *but)
{
    double effects = 1;

    for (const struct link *l = s->links; l; l = l->next)
        if (l->in != but)
            effects *= l->effect;
    return effects;
}

void ep_incident_free(struct job *job)
{
    struct incidents *all = &job->incidents;

    while (all->n)
        ep_incident_forget(all->v[all->n - 1]);
    for (size_t i = 0; i < ENDED; i++) {
        free(all->ended[i].id);
        free(all->ended[i].eid);
    }
    free(all->v);
    free(all->held);
}

/* ==== What it costs ==== */

/* Was the incident there in a step of the job? */
static bool was_there(const struct incident *in, const struct sample *x)
{
    return in->ep.open &&
           (in->ep.step >= 0 ? x->step >= in->ep.step : x->ts >= in->ep.since);
}

/*
 * Slowdowns multiply, so of what several cost together each has a share in
 * proportion to the logarithm of its factor. One that rests costs nothing.
 */
static double weight(const struct incident *in)
{
    return in->resting ? 0 : fmax(0, log(in->ep.factor));
}

/*
 * Charge the steps of the job that were not charged yet, before step and ts,
 * to the incidents that were there. A step that is charged stays so: late,
 * because an onset is found later than it was.
 */
static void charge(struct ep_watch *w, struct job *job, double ts, int64_t step)
{
    struct incidents *all = &job->incidents;
    const struct series *own = job->own;
    int window = (int)w->config.window;
    double healthy;

    if (!own || !own->pace)
        return;
    healthy = ep_changepoint_healthy(own->pace);
    for (int i = 0; i < own->kept; i++) {
        const struct sample *x =
            &own->ring[(own->at + window - own->kept + i) % window];
        double sum = 0, excess = (x->value - healthy) * (double)all->devices;

        if (x->ts <= all->charged || x->ts >= all->slow_to)
            continue;
        if (step >= 0 ? x->step >= step : x->ts >= ts)
            break;
        all->charged = x->ts;
        if (x->ts < all->slow_from || !(excess > 0))
            continue;
        for (size_t k = 0; k < all->n; k++)
            sum += was_there(all->v[k], x) ? weight(all->v[k]) : 0;
        for (size_t k = 0; k < all->n && sum > 0; k++)
            if (was_there(all->v[k], x))
                all->v[k]->lost += excess * weight(all->v[k]) / sum;
    }
}

/* Device hours so far; NaN where it has not held up the job. */
static double hours(const struct incident *in)
{
    return in->lost > 0 ? in->lost / 3600 : (double)NAN;
}

/* ==== Flapping ==== */

/* The same, a short time ago: its record, or NULL. */
static struct ended *recent(struct incident *in, const struct ep_change *c)
{
    struct incidents *all = &in->who.job->incidents;

    for (size_t i = 0; i < ENDED; i++) {
        struct ended *e = &all->ended[i];
        bool steps = c->since_step >= 0 && e->step >= 0;
        double gap =
            steps ? (double)(c->since_step - e->step) : c->since_ts - e->ts;
        double most = steps ? FLAP_STEPS : FLAP_S;

        if (!e->id || e->scope != in->who.scope ||
            strcmp(e->id, in->who.id) != 0)
            continue;
        if (gap >= 0 && gap <= most &&
            (steps ? (double)e->steps : e->lasted) <= most)
            return e;
    }
    return NULL;
}

/* The record of the same one, else a free one, else the oldest. */
static struct ended *room_for(struct incidents *all, const struct incident *in)
{
    struct ended *best = &all->ended[0];

    for (size_t i = 0; i < ENDED; i++) {
        struct ended *e = &all->ended[i];

        if (e->id && e->scope == in->who.scope &&
            strcmp(e->id, in->who.id) == 0)
            return e;
        if (best->id && (!e->id || e->ts < best->ts))
            best = e;
    }
    return best;
}

static void remember(const struct incident *in, const struct ep_change *c)
{
    struct ended *e = room_for(&in->who.job->incidents, in);

    free(e->id);
    free(e->eid);
    *e = (struct ended){
        .scope = in->who.scope,
        .id = ep_strdup(in->who.id),
        .eid = ep_strdup(in->ep.eid),
        .ts = c->since_ts,
        .step = c->since_step,
        .steps = c->since_step - in->last_step,
        .lasted = c->since_ts - in->last_ts,
        .times = in->times,
        .first_step = in->first_step,
        .first_ts = in->first_ts,
    };
}

/* "2nd time since step 41" */
static void add_times(struct ep_buf *b, const struct incident *in)
{
    int64_t n = in->times, teen = n % 100;
    const char *end = teen >= 11 && teen <= 13 ? "th"
                      : n % 10 == 1            ? "st"
                      : n % 10 == 2            ? "nd"
                      : n % 10 == 3            ? "rd"
                                               : "th";

    ep_buf_addf(b, ", %lld%s time since ", (long long)n, end);
    if (in->first_step >= 0)
        ep_buf_addf(b, "step %lld", (long long)in->first_step);
    else
        ep_buf_addf(b, "%.0f", in->first_ts);
}

/* It was there before: the episode goes on. */
static void reopen(struct incident *in, const struct ep_change *c)
{
    struct ended *e = recent(in, c);

    in->first_step = in->last_step = c->since_step;
    in->first_ts = in->last_ts = c->since_ts;
    if (!e)
        return;
    in->times = e->times + 1;
    in->first_step = e->first_step;
    in->first_ts = e->first_ts;
    in->ep.eid = e->eid;
    e->eid = NULL;
    free(e->id);
    e->id = NULL;
    in->ep.open = true;
    in->ep.since = c->since_ts;
    in->ep.step = c->since_step;
}

void ep_incident_wake(struct incident *in, const struct ep_change *c)
{
    if (!in->resting)
        return;
    in->last_step = in->turn_step = c->since_step;
    in->last_ts = c->since_ts;
    in->gain = in->ep.factor;
    in->resting = false;
    in->who.job->incidents.resting--;
    in->times++;
}

/* ==== What is told ==== */

/* How far the job is held up, where it is. */
static void add_job(struct ep_buf *b, const struct incident *in)
{
    const struct series *own = in->who.job->own;

    if (own && own->ep.open && in->kin != KIN_ALL)
        ep_buf_addf(b, ", the job %.2fx", own->ep.factor);
}

void ep_incident_tell(struct ep_watch *w, struct incident *in,
                      const struct ep_change *c, const char *cause,
                      double effect, double now)
{
    bool first = !in->ep.open;
    struct ep_finding f = {
        .kind = EP_FINDING_ONSET,
        .ts = now,
        .since = c->since_ts,
        .step = c->since_step,
        .factor = effect,
        .p = c->p,
        .cause = cause,
        .gpu_hours = (double)NAN,
    };

    if (first)
        reopen(in, c);
    add_job(&w->text, in);
    if (in->times > 1)
        add_times(&w->text, in);
    if (!first) {
        charge(w, in->who.job, c->since_ts, c->since_step);
        f.gpu_hours = hours(in);
    }
    f.evidence = w->text.ptr;
    if (first || in->held_turn == in->turn_step)
        in->gain = 1;
    in->gain *= first ? effect : effect / in->ep.factor;
    in->turn_step = c->since_step;
    ep_watch_report(w, &in->who, &in->ep, NULL, &f);
}

/* The relief, whole or in part. */
static void tell_relief(struct ep_watch *w, struct incident *in,
                        const struct ep_change *c, double factor, double now)
{
    struct ep_finding f = {
        .kind = EP_FINDING_RELIEF,
        .ts = now,
        .since = c->since_ts,
        .step = c->since_step,
        .factor = factor,
        .p = c->p,
        .cause = in->ep.cause,
    };

    charge(w, in->who.job, c->since_ts, c->since_step);
    f.gpu_hours = hours(in);
    f.evidence = w->text.ptr;
    in->turn_step = in->held_turn = c->since_step;
    in->who.job->incidents.ease_step = c->since_step;
    ep_watch_report(w, &in->who, &in->ep, NULL, &f);
}

void ep_incident_ease(struct ep_watch *w, struct incident *in,
                      const struct ep_change *c, double factor, double now)
{
    tell_relief(w, in, c, factor, now);
}

static void end(struct ep_watch *w, struct incident *in,
                const struct ep_change *c, double factor, double now)
{
    tell_relief(w, in, c, factor, now);
    remember(in, c);
    ep_incident_forget(in);
}

bool ep_incident_over(struct ep_watch *w, struct incident *in,
                      const struct ep_change *c, double factor, double now)
{
    if (in->times > 1 && c->since_step >= 0 &&
        in->who.scope != EP_SCOPE_WORKER) {
        if (!in->resting) {
            charge(w, in->who.job, c->since_ts, c->since_step);
            in->who.job->incidents.resting++;
        }
        in->resting = true;
        in->rest = *c;
        in->rest.factor = factor;
        return false;
    }
    end(w, in, c, factor, now);
    return true;
}

void ep_incident_fold(struct ep_watch *w, struct incident *in,
                      const struct incident *into, const struct ep_change *c,
                      double now)
{
    ep_incident_wake(in, c);
    ep_buf_reset(&w->text);
    ep_buf_addf(&w->text, "is part of %s", into->ep.eid);
    tell_relief(w, in, c, 1, now);
    ep_incident_forget(in);
}

static bool has_rested(const struct incident *in, int64_t step)
{
    int64_t quiet = QUIET_STEPS;

    for (int64_t k = 2; k < in->times && quiet < QUIET_MOST; k++)
        quiet *= 2;
    /* after a restart the numbers say nothing */
    return step < in->rest.since_step || step - in->rest.since_step >= quiet;
}

void ep_incident_step(struct ep_watch *w, struct job *job, int64_t step,
                      double now)
{
    struct incidents *all = &job->incidents;
    const struct series *own = job->own;
    int window = (int)w->config.window;

    /* those that would leave the ring, some at a time */
    if (all->n && own->kept == window && own->ring[own->at].ts > all->charged) {
        const struct sample *x = &own->ring[(own->at + window / 2) % window];

        charge(w, job, x->ts, x->step);
    }
    for (size_t i = all->n; i-- > 0 && all->resting;) {
        struct incident *in = all->v[i];

        if (!in->resting || !has_rested(in, step))
            continue;
        in->resting = false;
        all->resting--;
        ep_buf_reset(&w->text);
        ep_buf_adds(&w->text, "quiet for ");
        ep_buf_addf(&w->text, "%lld steps",
                    (long long)(step - in->rest.since_step));
        end(w, in, &in->rest, in->rest.factor, now);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incident_archive.c - incidents of a job in bytes; see base/archive.h.
 *
 * A link is in two lists, that of its incident and that of its series, and the
 * order of both counts. It is saved with its incident, and with its depth in the
 * list of the series, by which these are put together again when all are there.
 * The counts of incidents that rest, are of several ranks or are looked for are
 * counted anew.
 */
#include "config.h"

#include "detect/incident.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

#define STEP_MAX (INT64_C(1) << 53)
#define COUNT_MAX (INT64_MAX / 2)
#define NONE "an incident refers to none, or to what is not its job's"

/* Links as they are loaded, not in the lists of their series yet. */
struct loose {
    struct link *link;
    size_t depth;
};

struct all_loose {
    struct loose *v;
    size_t n, cap;
};

static int64_t step_of(struct ep_archive *a, int64_t step)
{
    return ep_archive_i64(a, step, -1, STEP_MAX);
}

/* What incidents have a part of, and suspicions are of. */
static bool has_pace(const struct series *s, const struct job *job)
{
    return s && s->job == job && s->pace && (s->member || s == job->own);
}

/* ==== Links ==== */

static size_t depth_of(const struct link *l)
{
    size_t depth = 0;

    for (const struct link *k = l->s->links; k != l; k = k->next)
        depth++;
    return depth;
}

static void one_link(struct ep_archive *a, struct ep_watch *w,
                     struct incident *in, size_t i, struct all_loose *loose)
{
    struct link *l = a->saving ? in->link[i] : NULL;
    struct series *s =
        ep_watch_archive_series(a, w, in->who.job, l ? l->s : NULL);
    size_t depth =
        (size_t)ep_archive_u64(a, l ? depth_of(l) : 0, EP_WATCH_MAX_SERIES);
    double effect = ep_archive_finite(a, l ? l->effect : 1);

    if (l)
        return;
    /* all ranks or all workers: there is room for values of so many */
    ep_archive_require(a,
                       s && has_pace(s, in->who.job) && s->member &&
                           (!i || s->scope == in->link[0]->s->scope),
                       NONE);
    ep_archive_require(a, effect > 0, "an incident has no effect");
    if (!ep_archive_ok(a))
        return;
    l = ep_calloc(1, sizeof *l);
    *l = (struct link){in, s, NULL, effect};
    in->link = ep_grow(in->link, &in->cap, i + 1, sizeof(void *));
    in->link[in->n++] = l;
    loose->v = ep_grow(loose->v, &loose->cap, loose->n + 1, sizeof *loose->v);
    loose->v[loose->n++] = (struct loose){l, depth};
}

static int by_series(const void *pa, const void *pb)
{
    const struct loose *a = pa, *b = pb;
    size_t x = a->link->s->number, y = b->link->s->number;

    if (x != y)
        return x < y ? -1 : 1;
    return (a->depth < b->depth) - (a->depth > b->depth);
}

/* Put all into the lists of their series, the deepest first. */
static void tie(struct ep_archive *a, struct all_loose *loose)
{
    bool right = true;

    if (loose->n)
        qsort(loose->v, loose->n, sizeof *loose->v, by_series);
    for (size_t i = 0; i < loose->n; i++) {
        struct link *l = loose->v[i].link;
        const struct loose *next = i + 1 < loose->n ? &loose->v[i + 1] : NULL;
        bool last = !next || next->link->s != l->s;

        /* one in each incident; so depths count down to 0 */
        right = right && !ep_incident_link(l->in, l->s) &&
                loose->v[i].depth == (last ? 0 : next->depth + 1);
        l->next = l->s->links;
        l->s->links = l;
    }
    ep_archive_require(a, right, "links of a series are out of order");
    free(loose->v);
}

/* ==== Incidents ==== */

static void who(struct ep_archive *a, struct incident *in)
{
    struct series *s = &in->who;

    s->scope = (enum ep_scope)ep_archive_u64(a, s->scope, EP_SCOPE_STAGE);
    s->rank = ep_archive_i64(a, s->rank, -1, INT64_MAX);
    s->id = ep_archive_string(a, s->id, EP_WATCH_NAME_BYTES);
    s->host = ep_archive_string(a, s->host, EP_WATCH_NAME_BYTES);
    ep_archive_require(a, s->id != NULL, "an incident has no name");
}

static void times(struct ep_archive *a, struct incident *in)
{
    in->times = ep_archive_i64(a, in->times, 1, COUNT_MAX);
    in->first_step = step_of(a, in->first_step);
    in->first_ts = ep_archive_finite(a, in->first_ts);
    in->last_step = step_of(a, in->last_step);
    in->last_ts = ep_archive_finite(a, in->last_ts);
    in->resting = ep_archive_bool(a, in->resting);
    if (in->resting)
        ep_watch_archive_change(a, &in->rest);
}

/* What it was told by, and may be told better by. */
static void why(struct ep_archive *a, struct ep_watch *w, struct incident *in)
{
    struct job *job = in->who.job;
    struct series *shows = ep_watch_archive_series(a, w, job, in->shows);

    ep_archive_require(a, !shows || shows->member, NONE);
    in->shows = shows;
    in->who.shown = in->like ? in->like : job->own;
    if (in->ground == GROUND_JOB || shows)
        ep_watch_archive_change(a, &in->change);
    in->p_cause = ep_archive_finite(a, in->p_cause);
    in->again = (int)ep_archive_u64(a, (uint64_t)in->again, INT32_MAX);
    in->recheck = ep_archive_i64(a, in->recheck, 0, STEP_MAX + NEAR_STEPS);
    in->early = ep_archive_bool(a, in->early);
    if (in->early) {
        in->asked_ts = ep_archive_f64(a, in->asked_ts);
        ep_archive_require(a, in->ground == GROUND_JOB && !isinf(in->asked_ts),
                           "an incident was asked for at no time");
    }
}

static void incident(struct ep_archive *a, struct ep_watch *w,
                     struct incident *in, struct all_loose *loose)
{
    struct incidents *all = &in->who.job->incidents;
    struct series *like;
    size_t n;

    who(a, in);
    ep_watch_archive_episode(a, w, &in->ep);
    ep_archive_require(a, in->ep.open, "an incident is not open");
    in->kin = (enum kin)ep_archive_u64(a, in->kin, KIN_OTHER);
    in->ground = (enum ground)ep_archive_u64(a, in->ground, GROUND_JOB);
    like = ep_watch_archive_series(a, w, in->who.job, in->like);
    ep_archive_require(
        a, like ? like->member : in->kin == KIN_ALL || in->kin == KIN_OTHER,
        NONE);
    in->like = like;
    n = ep_archive_size(a, in->n, EP_WATCH_MAX_SERIES, 10);
    for (size_t i = 0; i < n && ep_archive_ok(a); i++)
        one_link(a, w, in, i, loose);
    in->turn_step = step_of(a, in->turn_step);
    in->gain = ep_archive_f64(a, in->gain);
    in->held_turn = step_of(a, in->held_turn);
    in->held_since = step_of(a, in->held_since);
    in->lost = ep_archive_f64(a, in->lost);
    in->stamp = ep_archive_u64(a, in->stamp, UINT64_MAX);
    times(a, in);
    in->seek = (int)ep_archive_u64(a, (uint64_t)in->seek, SEEK_STEPS);
    why(a, w, in);
    if (a->saving)
        return;
    all->groups += in->kin != KIN_RANK && in->like;
    all->resting += in->resting;
    all->seeking += in->seek > 0;
}

static void incidents(struct ep_archive *a, struct ep_watch *w, struct job *job)
{
    struct incidents *all = &job->incidents;
    struct all_loose loose = {NULL, 0, 0};
    size_t n = ep_archive_size(a, all->n, EP_WATCH_MAX_SERIES, 80);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        if (!a->saving) {
            all->v = ep_grow(all->v, &all->cap, i + 1, sizeof(void *));
            all->v[i] = ep_calloc(1, sizeof *all->v[i]);
            all->v[i]->who.job = job;
            all->n = i + 1;
        }
        incident(a, w, all->v[i], &loose);
    }
    tie(a, &loose);
}

/* ==== What else is known ==== */

static void suspicion(struct ep_archive *a, struct ep_watch *w, struct job *job,
                      struct suspicion *x)
{
    x->s = ep_watch_archive_series(a, w, job, x->s);
    ep_archive_require(a, has_pace(x->s, job), NONE);
    ep_watch_archive_change(a, &x->c);
    x->excess = ep_archive_f64(a, x->excess);
    x->now = ep_archive_finite(a, x->now);
    x->step = step_of(a, x->step);
    x->ground = (enum ground)ep_archive_u64(a, x->ground, GROUND_JOB);
    x->doubt = ep_watch_archive_word(a, w, x->doubt);
}

static void held(struct ep_archive *a, struct ep_watch *w, struct job *job)
{
    struct incidents *all = &job->incidents;
    size_t n =
        ep_archive_size(a, all->nheld, (size_t)EP_WATCH_MAX_SERIES * 8, 60);

    if (!a->saving)
        all->held = ep_grow(all->held, &all->held_cap, n, sizeof *all->held);
    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct suspicion x = {.s = NULL};

        if (a->saving)
            x = all->held[i];
        suspicion(a, w, job, &x);
        if (a->saving || !ep_archive_ok(a))
            continue;
        all->held[i] = x;
        all->nheld = i + 1;
    }
}

static void ended(struct ep_archive *a, struct ended *e)
{
    if (!ep_archive_bool(a, e->id != NULL))
        return;
    e->id = ep_archive_string(a, e->id, EP_WATCH_NAME_BYTES);
    e->eid = ep_archive_string(a, e->eid, EP_WATCH_EID_BYTES);
    ep_archive_require(a, e->id && e->eid, "what is over has no name");
    e->scope = (enum ep_scope)ep_archive_u64(a, e->scope, EP_SCOPE_STAGE);
    e->ts = ep_archive_finite(a, e->ts);
    e->step = step_of(a, e->step);
    e->steps = ep_archive_i64(a, e->steps, -STEP_MAX - 1, STEP_MAX + 1);
    e->lasted = ep_archive_f64(a, e->lasted);
    e->times = ep_archive_i64(a, e->times, 1, COUNT_MAX);
    e->first_step = step_of(a, e->first_step);
    e->first_ts = ep_archive_finite(a, e->first_ts);
}

void ep_incident_archive(struct ep_archive *a, struct ep_watch *w,
                         struct job *job)
{
    struct incidents *all = &job->incidents;

    incidents(a, w, job);
    held(a, w, job);
    for (size_t i = 0; i < ENDED && ep_archive_ok(a); i++)
        ended(a, &all->ended[i]);
    all->slow_from = ep_archive_f64(a, all->slow_from);
    all->slow_to = ep_archive_f64(a, all->slow_to);
    all->charged = ep_archive_f64(a, all->charged);
    all->devices = ep_archive_i64(a, all->devices, 0, COUNT_MAX);
    all->spike_step = step_of(a, all->spike_step);
    all->ease_step = step_of(a, all->ease_step);
    all->stamp = ep_archive_u64(a, all->stamp, UINT64_MAX);
    all->wait = (int)ep_archive_u64(a, (uint64_t)all->wait, INT32_MAX);
    all->waits = (int)ep_archive_u64(a, (uint64_t)all->waits, INT32_MAX - 1);
}

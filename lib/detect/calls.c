/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - the steps of a job from the calls of its ranks; see calls.h. */
#include "config.h"

#include "detect/calls_impl.h"

#include "base/mem.h"
#include "detect/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ep_calls *ep_calls_new(ep_calls_fn *fn, void *ctx)
{
    struct ep_calls *c = ep_calloc(1, sizeof *c);

    c->fn = fn;
    c->ctx = ctx;
    c->table = ep_period_table_new();
    c->names = ep_intern_new();
    return c;
}

static void free_job(struct job *j)
{
    for (size_t i = 0; i < j->cap; i++)
        if (j->rank[i]) {
            ep_period_free(j->rank[i]->period);
            free(j->rank[i]->comms);
            free(j->rank[i]->host);
            free(j->rank[i]);
        }
    free(j->rank);
    free(j->marks);
    free(j->held);
    free(j->name);
    free(j);
}

void ep_calls_free(struct ep_calls *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < ep_intern_count(c->names); i++)
        free_job(c->jobs[i]);
    free(c->jobs);
    ep_intern_free(c->names);
    ep_period_table_free(c->table);
    free(c);
}

/* ==== Numbers ==== */

static struct mark *mark_of(const struct job *j, int64_t step)
{
    return &j->marks[(uint64_t)step % MARKS];
}

/* The iteration of the job that began nearest to ts, newest and oldest too. */
static int64_t nearest(const struct job *j, double ts)
{
    int64_t lo = j->oldest, hi = j->newest;

    while (lo < hi) {
        int64_t mid = lo + (hi - lo + 1) / 2;

        if (mark_of(j, mid)->ts <= ts)
            lo = mid;
        else
            hi = mid - 1;
    }
    if (lo < j->newest && mark_of(j, lo + 1)->ts - ts < ts - mark_of(j, lo)->ts)
        lo++;
    return lo;
}

static int64_t number_of(const struct job *j, const struct caller *who,
                         const struct ep_iteration *it)
{
    int64_t step;
    double off;

    if (it->next && who->step >= 0)
        return who->step + 1;
    if (!j->marks)
        return 0;
    step = nearest(j, it->ts);
    off = round((it->ts - mark_of(j, step)->ts) / it->dur);
    if (step == j->newest && off >= 1)
        step++;
    else if (step == j->oldest && off <= -1)
        step = off < -1e9 ? -1 : step + (int64_t)off;
    return step > who->step ? step : who->step + 1;
}

/* The first rank that comes to an iteration says when it began. */
static void note(struct job *j, int64_t step, double ts)
{
    if (!j->marks) {
        j->marks = ep_calloc(MARKS, sizeof *j->marks);
        j->oldest = step;
    } else if (step != j->newest + 1 || !(ts > mark_of(j, j->newest)->ts)) {
        return;
    }
    j->newest = step;
    *mark_of(j, step) = (struct mark){step, ts};
    if (j->newest - j->oldest >= MARKS)
        j->oldest = j->newest - MARKS + 1;
}

static void give(struct caller *who, const struct ep_iteration *it)
{
    struct job *j = who->job;
    struct ep_calls_step s = {
        .job = {j->name, j->len},
        .host = {who->host, who->host ? strlen(who->host) : 0},
        .rank = who->rank,
        .step = number_of(j, who, it),
        .ts = it->ts,
        .dur = it->dur,
        .busy = it->busy > 0 ? it->busy : (double)NAN,
        .phase = (int64_t)it->pattern,
    };

    if (s.step < 0 || j->muted)
        return;
    who->step = s.step;
    note(j, s.step, it->ts);
    j->all->iterations++;
    j->all->fn(j->all->ctx, &s);
}

static int by_time(const void *a, const void *b)
{
    const struct held *x = a, *y = b;

    if (x->it.ts != y->it.ts)
        return x->it.ts < y->it.ts ? -1 : 1;
    return (x->who->rank > y->who->rank) - (x->who->rank < y->who->rank);
}

static void flow(struct job *j)
{
    j->flowing = true;
    if (j->nheld)
        qsort(j->held, j->nheld, sizeof *j->held, by_time);
    for (size_t i = 0; i < j->nheld; i++)
        give(j->held[i].who, &j->held[i].it);
    free(j->held);
    j->held = NULL;
    j->nheld = j->held_cap = 0;
}

static void on_iteration(void *ctx, const struct ep_iteration *it)
{
    struct caller *who = ctx;
    struct job *j = who->job;

    if (!who->learned) {
        who->learned = true;
        j->learned++;
    }
    if (isnan(it->ts) || isnan(it->dur) || j->muted)
        return;
    if (j->flowing) {
        give(who, it);
        return;
    }
    j->held = ep_grow(j->held, &j->held_cap, j->nheld + 1, sizeof *j->held);
    j->held[j->nheld++] = (struct held){who, *it};
}

/* ==== Calls ==== */

/* The number that the rank has given to a communicator. */
static uint32_t comm_of(struct caller *who, uint64_t hash)
{
    if (who->last < who->ncomms && who->comms[who->last] == hash)
        return who->last;
    for (uint32_t i = 0; i < who->ncomms; i++)
        if (who->comms[i] == hash) {
            who->last = i;
            return i;
        }
    if (who->ncomms == COMMS_MAX)
        return COMMS_MAX;
    if (who->ncomms == who->cap) {
        who->cap = who->cap ? 2 * who->cap : 4;
        who->comms = ep_realloc(who->comms, who->cap, sizeof *who->comms);
    }
    who->comms[who->ncomms] = hash;
    who->last = who->ncomms;
    return who->ncomms++;
}

static uint64_t symbol_of(struct caller *who, const struct ep_call *c)
{
    uint64_t h = ep_hash_mix(c->p2p, ep_hash_span(c->op));

    h = ep_hash_mix(h, comm_of(who, ep_hash_span(c->comm)));
    h = ep_hash_mix(h, (uint64_t)c->nranks);
    h = ep_hash_mix(h, (uint64_t)c->bytes);
    /* to whom, as seen from here: alike for all stages of a pipeline */
    if (c->peer >= 0 && c->comm_rank >= 0)
        h = ep_hash_mix(h, (uint64_t)(c->peer - c->comm_rank));
    return ep_hash_mix(h, h >> 32);
}

static struct job *find_job(struct ep_calls *c, struct ep_span name,
                            struct ep_error *err)
{
    size_t known = ep_intern_count(c->names);
    struct job *j = c->last;
    long i;

    if (j && j->len == name.len &&
        (!name.len || memcmp(j->name, name.ptr, name.len) == 0))
        return j;
    i = ep_intern_add(c->names, name, JOBS_MAX);
    if (i < 0) {
        (void)ep_error_set(err, EP_ELIMIT,
                           "steps or calls of more than %d jobs", JOBS_MAX);
        return NULL;
    }
    if ((size_t)i == known) {
        c->jobs = ep_grow(c->jobs, &c->cap, known + 1, sizeof(void *));
        j = c->jobs[i] = ep_calloc(1, sizeof *j);
        j->all = c;
        j->name = ep_strndup(name.len ? name.ptr : "", name.len);
        j->len = name.len;
        j->first_ts = (double)NAN;
    }
    c->last = c->jobs[i];
    return c->last;
}

static struct caller *find_caller(struct job *j, const struct ep_call *call)
{
    size_t i = (size_t)call->rank, was = j->cap;
    struct caller *who;

    if (i >= was) {
        j->rank = ep_grow(j->rank, &j->cap, i + 1, sizeof(void *));
        memset(j->rank + was, 0, (j->cap - was) * sizeof(void *));
    }
    if (j->rank[i])
        return j->rank[i];
    who = j->rank[i] = ep_calloc(1, sizeof *who);
    who->job = j;
    who->rank = call->rank;
    who->pid = call->pid;
    who->step = -1;
    who->top = (double)NAN;
    j->n++;
    return who;
}

/* The rank runs in another process: its communicators are others. */
static void restart(struct caller *who, int64_t pid)
{
    if (who->pid >= 0) {
        who->ncomms = who->last = 0;
        if (who->period)
            ep_period_break(who->period);
        free(who->host); /* perhaps it is elsewhere now */
        who->host = NULL;
    }
    who->pid = pid;
}

/*
 * Was the call taken before the state was saved, and comes again since the input
 * is read from its beginning? Those of before are all up to the first with the
 * highest time that was seen, and as many more as were counted since then; so
 * calls that overlap, or have the same time, are told apart as well. What is
 * later than all of before is new, and all behind it.
 */
static bool is_old(struct caller *who, double ts)
{
    if (!who->old_left || ts > who->old_top) {
        who->old_left = 0;
        return false;
    }
    if (isnan(ts) && !who->again)
        return false;
    who->again = true;
    who->old_tail = who->old_tail || ts == who->old_top;
    who->old_left -= who->old_tail;
    return true;
}

static void count_call(struct caller *who, double ts)
{
    if (isfinite(ts) && !(ts <= who->top)) {
        who->top = ts;
        who->behind = 0;
    }
    who->behind += !isnan(who->top);
}

static bool is_settled(const struct job *j, double ts)
{
    return j->learned == j->n || ts - j->first_ts >= EP_CALLS_HOLD_S ||
           j->nheld >= EP_CALLS_HELD;
}

static bool has_rank(const struct ep_call *call)
{
    return call->rank >= 0 && call->rank < EP_CALLS_RANKS;
}

int ep_calls_admit(struct ep_calls *c, const struct ep_call *call,
                   struct ep_error *err)
{
    struct caller *who;
    struct job *j;

    if (!has_rank(call))
        return 1;
    j = find_job(c, call->job, err);
    if (!j)
        return EP_ELIMIT;
    who = find_caller(j, call);
    if (is_old(who, call->ts)) {
        c->calls++;
        c->known++;
        return 0;
    }
    count_call(who, call->ts);
    return 1;
}

int ep_calls_push(struct ep_calls *c, const struct ep_call *call,
                  struct ep_error *err)
{
    struct ep_period_call x = {0, call->ts, call->dur, call->seq};
    struct caller *who;
    struct job *j;

    c->calls++;
    if (!has_rank(call)) {
        c->unranked++;
        return 0;
    }
    j = find_job(c, call->job, err);
    if (!j)
        return EP_ELIMIT;
    if (j->muted)
        return 0;
    who = find_caller(j, call);
    if (!who->period)
        who->period = ep_period_new(c->table);
    if (call->pid >= 0 && call->pid != who->pid)
        restart(who, call->pid);
    if (!who->host && call->host.len)
        who->host = ep_strndup(call->host.ptr, call->host.len);
    if (isnan(j->first_ts))
        j->first_ts = call->ts;
    x.symbol = symbol_of(who, call);
    ep_period_push(who->period, &x, on_iteration, who);
    if (!j->flowing && is_settled(j, call->ts))
        flow(j);
    return 0;
}

int ep_calls_take(struct ep_calls *c, const struct ep_call *call,
                  struct ep_error *err)
{
    int rc = ep_calls_admit(c, call, err);

    return rc > 0 ? ep_calls_push(c, call, err) : rc;
}

int ep_calls_mute(struct ep_calls *c, struct ep_span job, struct ep_error *err)
{
    struct job *j = find_job(c, job, err);

    if (!j)
        return EP_ELIMIT;
    j->muted = true;
    return 0;
}

void ep_calls_finish(struct ep_calls *c)
{
    for (size_t i = 0; i < ep_intern_count(c->names); i++) {
        struct job *j = c->jobs[i];

        for (size_t k = 0; k < j->cap; k++)
            if (j->rank[k] && j->rank[k]->period)
                ep_period_finish(j->rank[k]->period, on_iteration, j->rank[k]);
        flow(j);
    }
}

void ep_calls_sum(const struct ep_calls *c, struct ep_calls_summary *out)
{
    struct ep_period_state s;

    *out = (struct ep_calls_summary){
        .calls = c->calls,
        .unranked = c->unranked,
        .iterations = c->iterations,
        .known = c->known,
        .patterns = ep_period_table_count(c->table),
    };
    for (size_t i = 0; i < ep_intern_count(c->names); i++)
        for (size_t k = 0; k < c->jobs[i]->cap; k++) {
            const struct caller *who = c->jobs[i]->rank[k];

            if (!who || !who->period)
                continue;
            ep_period_state(who->period, &s);
            out->ranks++;
            out->bytes += s.bytes + sizeof *who + who->cap * sizeof *who->comms;
            if (!s.calls)
                continue;
            out->learned++;
            out->by_gaps += s.basis == EP_PERIOD_GAPS;
            out->each += s.basis == EP_PERIOD_EACH;
            out->least =
                !out->least || s.calls < out->least ? s.calls : out->least;
            out->most = s.calls > out->most ? s.calls : out->most;
        }
}

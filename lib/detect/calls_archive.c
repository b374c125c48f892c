/* SPDX-License-Identifier: Apache-2.0 */
/* calls_archive.c - the ranks of all jobs in bytes; see base/archive.h. */
#include "config.h"

#include "detect/calls_impl.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

#define NAME_MAX_BYTES (1 << 20)
#define STEP_MAX (INT64_C(1) << 53)
#define CALLER_LEAST 16 /* bytes of a rank, at least */

static void comms(struct ep_archive *a, struct caller *who)
{
    uint32_t n =
        (uint32_t)ep_archive_size(a, who->ncomms, COMMS_MAX, sizeof(uint64_t));

    if (!a->saving && n) {
        for (who->cap = 4; who->cap < n;)
            who->cap *= 2;
        who->comms = ep_calloc(who->cap, sizeof *who->comms);
    }
    who->ncomms = n;
    for (uint32_t i = 0; i < n; i++)
        who->comms[i] = ep_archive_bits(a, who->comms[i]);
    who->last = (uint32_t)ep_archive_u64(a, who->last, COMMS_MAX);
}

static void caller(struct ep_archive *a, struct caller *who)
{
    who->host = ep_archive_string(a, who->host, NAME_MAX_BYTES);
    who->pid = ep_archive_i64(a, who->pid, -1, INT64_MAX);
    who->step = ep_archive_i64(a, who->step, -1, STEP_MAX);
    who->learned = ep_archive_bool(a, who->learned);
    comms(a, who);
    who->top = ep_archive_f64(a, who->top);
    who->behind = ep_archive_u64(a, who->behind, UINT64_MAX);
    if (ep_archive_bool(a, who->period != NULL)) {
        if (!a->saving)
            who->period = ep_period_new(who->job->all->table);
        ep_period_archive(a, who->period);
    }
    if (a->saving)
        return;
    who->old_top = who->top;
    who->old_left = who->behind;
    who->job->learned += who->learned;
}

/* The first rank from i on, or cap. */
static size_t next_rank(const struct job *j, size_t i)
{
    while (i < j->cap && !j->rank[i])
        i++;
    return i;
}

/* Room for all ranks; that it is as large as told costs addresses only. */
static void make_room(struct ep_archive *a, struct job *j)
{
    size_t cap = j->cap;

    while (a->saving && cap && !j->rank[cap - 1])
        cap--;
    cap = (size_t)ep_archive_u64(a, cap, EP_CALLS_RANKS);
    if (a->saving || !cap)
        return;
    j->rank = ep_calloc(cap, sizeof(void *));
    j->cap = cap;
}

static void add_caller(struct job *j, size_t at)
{
    struct caller *who = ep_calloc(1, sizeof *who);

    who->job = j;
    who->rank = (int64_t)at;
    j->rank[at] = who;
    j->n++;
}

/* Each rank by its distance from the one before. */
static void callers(struct ep_archive *a, struct job *j)
{
    size_t n = ep_archive_size(a, j->n, EP_CALLS_RANKS, CALLER_LEAST);
    size_t from = 0;

    make_room(a, j);
    for (size_t k = 0; k < n && ep_archive_ok(a); k++) {
        size_t at = a->saving ? next_rank(j, from) : 0;

        at = from + (size_t)ep_archive_u64(a, at - from, EP_CALLS_RANKS);
        ep_archive_require(a, at < j->cap, "a rank is too high");
        if (!ep_archive_ok(a))
            return;
        if (!a->saving)
            add_caller(j, at);
        caller(a, j->rank[at]);
        from = at + 1;
    }
}

static void marks(struct ep_archive *a, struct job *j)
{
    if (!ep_archive_bool(a, j->marks != NULL))
        return;
    j->oldest = ep_archive_i64(a, j->oldest, 0, STEP_MAX);
    j->newest = ep_archive_i64(a, j->newest, 0, STEP_MAX);
    ep_archive_require(a,
                       j->oldest <= j->newest && j->newest - j->oldest < MARKS,
                       "iterations of a job are not in order");
    if (!a->saving)
        j->marks = ep_calloc(MARKS, sizeof *j->marks);
    if (!j->marks)
        return;
    for (int64_t s = j->oldest; ep_archive_ok(a) && s <= j->newest; s++) {
        struct mark *m = &j->marks[s % MARKS];

        m->step = s;
        m->ts = ep_archive_f64(a, m->ts);
    }
}

static void held(struct ep_archive *a, struct job *j)
{
    size_t n = ep_archive_size(a, j->nheld, EP_CALLS_HELD, 30);

    if (!a->saving && n) {
        j->held = ep_calloc(n, sizeof *j->held);
        j->held_cap = n;
    }
    for (size_t i = 0; i < n && j->held && ep_archive_ok(a); i++) {
        struct held *h = &j->held[i];
        size_t rank = a->saving ? (size_t)h->who->rank : 0;

        rank = (size_t)ep_archive_u64(a, rank, EP_CALLS_RANKS);
        ep_archive_require(a, rank < j->cap && j->rank[rank],
                           "an iteration is of no rank");
        if (!ep_archive_ok(a))
            return;
        h->who = j->rank[rank];
        ep_iteration_archive(a, &h->it);
        j->nheld = a->saving ? n : i + 1;
    }
}

static void job(struct ep_archive *a, struct job *j)
{
    j->muted = ep_archive_bool(a, j->muted);
    j->flowing = ep_archive_bool(a, j->flowing);
    j->first_ts = ep_archive_f64(a, j->first_ts);
    callers(a, j);
    marks(a, j);
    held(a, j);
    ep_archive_require(a, !j->flowing || !j->nheld,
                       "iterations are held back of a job that is not");
}

static struct job *new_job(struct ep_calls *c, struct ep_span name)
{
    struct job *j = ep_calloc(1, sizeof *j);

    j->all = c;
    j->name = ep_strndup(name.ptr, name.len);
    j->len = name.len;
    return j;
}

void ep_calls_archive(struct ep_archive *a, struct ep_calls *c)
{
    size_t n = ep_archive_size(a, ep_intern_count(c->names), JOBS_MAX, 10);

    if (!a->saving && n)
        c->jobs = ep_grow(c->jobs, &c->cap, n, sizeof(void *));
    ep_period_table_archive(a, c->table);
    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span name = {"", 0};

        if (a->saving)
            name = ep_intern_span(c->names, i);
        name = ep_archive_span(a, name, NAME_MAX_BYTES);
        if (!a->saving && ep_archive_ok(a)) {
            ep_archive_require(a,
                               ep_intern_add(c->names, name, i + 1) == (long)i,
                               "two jobs have one name");
            if (ep_archive_ok(a))
                c->jobs[i] = new_job(c, name);
        }
        if (ep_archive_ok(a))
            job(a, c->jobs[i]);
    }
}

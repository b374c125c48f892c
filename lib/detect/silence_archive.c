/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silence_archive.c - signs of life in bytes; see base/archive.h.
 *
 * Members refer to episodes, and to communicators and hosts by their numbers:
 * of each job names come first, then episodes, then members. What is filled
 * while a look is taken, or only makes things faster, is not saved.
 */
#include "config.h"

#include "detect/silence_impl.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define NAME_BYTES 65536
#define EID_BYTES 512
#define COUNT_MAX (UINT64_C(1) << 62)
#define STEP_MAX (INT64_C(1) << 53)
#define SEQ_MAX INT64_MAX

/* Bytes. */
#define DOUBLE ((size_t)8)

static const char *const causes[] = {"hang", "dead", "input", "silent"};

enum { CAUSES = sizeof causes / sizeof causes[0] };

/* A name of a set that is the next one, or is now. */
static struct ep_span name(struct ep_archive *a, const struct ep_intern *t,
                           size_t i)
{
    struct ep_span none = {"", 0};

    return ep_archive_span(a, a->saving ? ep_intern_span(t, i) : none,
                           NAME_BYTES);
}

/* A time: of any record, or never. */
static double when(struct ep_archive *a, double ts)
{
    double t = ep_archive_f64(a, ts);

    ep_archive_require(a, isfinite(t) || t == (double)-INFINITY,
                       "a time is none");
    return t;
}

/* > 0, or NaN where it is not known. */
static double interval(struct ep_archive *a, double s)
{
    double v = ep_archive_f64(a, s);

    ep_archive_require(a, isnan(v) || (v >= 0 && isfinite(v)),
                       "an interval is none");
    return v;
}

static void pauses(struct ep_archive *a, double pause[2])
{
    pause[0] = interval(a, pause[0]);
    pause[1] = interval(a, pause[1]);
    ep_archive_require(a, pause[0] >= pause[1], "pauses are out of order");
}

static void hosts(struct ep_archive *a, struct ep_silence *s)
{
    size_t n = ep_archive_size(a, ep_intern_count(s->host_names),
                               EP_SILENCE_NAMES, 1 + DOUBLE);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span host = name(a, s->host_names, i);

        if (!a->saving)
            ep_archive_require(a, ep_silence_host(s, host) == (long)i,
                               "a host is there twice");
        if (ep_archive_ok(a))
            s->host_sign[i] = when(a, s->host_sign[i]);
    }
}

static void comms(struct ep_archive *a, struct job *job)
{
    size_t n = ep_archive_size(a, ep_intern_count(job->comm_names),
                               EP_SILENCE_NAMES, 1 + 2 * DOUBLE);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span comm = name(a, job->comm_names, i);
        struct comm *c;

        if (!a->saving)
            ep_archive_require(a, ep_silence_comm(job, comm) == (long)i,
                               "a communicator is there twice");
        if (!ep_archive_ok(a))
            return;
        c = &job->comms[i];
        c->nranks = ep_archive_i64(a, c->nranks, -1, SEQ_MAX);
        c->newest = ep_archive_i64(a, c->newest, -1, SEQ_MAX);
        c->last = ep_archive_f64(a, c->last);
        c->gap = ep_archive_finite(a, c->gap);
    }
}

static const char *cause(struct ep_archive *a, const char *word)
{
    uint64_t i = 0;

    while (a->saving && i + 1 < CAUSES && strcmp(causes[i], word) != 0)
        i++;
    return causes[ep_archive_u64(a, i, CAUSES - 1)];
}

static void episodes(struct ep_archive *a, struct job *job)
{
    size_t n = ep_archive_size(a, job->nepisodes, EP_SILENCE_NAMES, 4 * DOUBLE);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct episode *e;

        if (!a->saving) {
            job->episodes = ep_grow(job->episodes, &job->episodes_cap, i + 1,
                                    sizeof(void *));
            job->episodes[i] = ep_calloc(1, sizeof *e);
            job->nepisodes = i + 1;
        }
        e = job->episodes[i];
        e->eid = ep_archive_string(a, e->eid, EID_BYTES);
        e->id = ep_archive_string(a, e->id, NAME_BYTES);
        e->host = ep_archive_string(a, e->host, NAME_BYTES);
        e->scope = (enum ep_scope)ep_archive_u64(a, e->scope, EP_SCOPE_STAGE);
        e->cause = cause(a, e->cause);
        e->rank = ep_archive_i64(a, e->rank, -1, EP_SILENCE_RANKS - 1);
        e->step = ep_archive_i64(a, e->step, -1, SEQ_MAX);
        e->since = ep_archive_finite(a, e->since);
        e->factor = ep_archive_finite(a, e->factor);
        e->p = ep_archive_finite(a, e->p);
        e->n = (size_t)ep_archive_u64(a, e->n, COUNT_MAX);
        e->back = (size_t)ep_archive_u64(a, e->back, COUNT_MAX / 4);
        e->open = true;
        ep_archive_require(a,
                           e->eid && e->factor >= 1 && e->p >= 0 && e->p <= 1,
                           "an episode has no name, factor or p");
    }
}

static void places(struct ep_archive *a, const struct job *job,
                   struct member *m)
{
    size_t comms_n = ep_intern_count(job->comm_names);
    size_t n = ep_archive_size(a, m->nat, comms_n, 3 + DOUBLE);

    if (!a->saving && n && ep_archive_ok(a)) {
        m->at = ep_calloc(n, sizeof *m->at);
        m->nat = m->cap = (uint32_t)n;
    }
    for (size_t k = 0; k < n && ep_archive_ok(a); k++) {
        struct at *at = &m->at[k];

        at->comm = (uint32_t)ep_archive_u64(a, at->comm, comms_n - 1);
        at->open = ep_archive_bool(a, at->open);
        at->seq = ep_archive_i64(a, at->seq, -1, SEQ_MAX);
        at->ts = ep_archive_finite(a, at->ts);
    }
}

/* The number of its episode and one more; 0: none. */
static void its_episode(struct ep_archive *a, const struct job *job,
                        struct member *m)
{
    size_t i = 0;

    for (size_t k = 0; m->ep && k < job->nepisodes; k++)
        if (job->episodes[k] == m->ep)
            i = k + 1;
    i = (size_t)ep_archive_u64(a, i, job->nepisodes);
    m->ep = i && ep_archive_ok(a) ? job->episodes[i - 1] : NULL;
}

static void place(struct ep_archive *a, struct ep_place *p)
{
    p->known = ep_archive_bool(a, p->known);
    if (!p->known)
        return;
    p->dp = ep_archive_i64(a, p->dp, -1, INT64_MAX);
    p->pp = ep_archive_i64(a, p->pp, -1, INT64_MAX);
    p->tp = ep_archive_i64(a, p->tp, -1, INT64_MAX);
}

static void member(struct ep_archive *a, const struct ep_silence *s,
                   const struct job *job, struct member *m)
{
    long hosts_n = (long)ep_intern_count(s->host_names);

    m->pid = ep_archive_i64(a, m->pid, -1, INT64_MAX);
    m->step = ep_archive_i64(a, m->step, -1, STEP_MAX);
    m->host = (long)ep_archive_i64(a, m->host, -1, hosts_n - 1);
    place(a, &m->place);
    m->epoch = (uint32_t)ep_archive_u64(a, m->epoch, UINT32_MAX);
    m->moved = when(a, m->moved);
    m->other = when(a, m->other);
    m->beat = ep_archive_f64(a, m->beat);
    m->usual = interval(a, m->usual);
    pauses(a, m->pause);
    m->moves = ep_archive_u64(a, m->moves, COUNT_MAX);
    m->job_moves = ep_archive_u64(a, m->job_moves, job->moves);
    places(a, job, m);
    its_episode(a, job, m);
}

/* All members, in the order of their coming, workers by name. */
static void members(struct ep_archive *a, struct ep_silence *s, struct job *job)
{
    size_t n = ep_archive_size(a, job->n, EP_SILENCE_RANKS + EP_SILENCE_NAMES,
                               7 * DOUBLE);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct member *m = a->saving ? job->v[i] : NULL;
        struct ep_sign x = {.kind = EP_SIGN_STEP, .worker = {"", 0}};
        bool worker = ep_archive_bool(a, m && m->worker);

        if (worker) {
            size_t prefix = strlen("worker=");

            if (m)
                x.worker =
                    (struct ep_span){m->id + prefix, strlen(m->id) - prefix};
            x.worker = ep_archive_span(a, x.worker, NAME_BYTES);
            x.rank = -1;
            ep_archive_require(a, x.worker.len > 0, "a worker has no name");
        } else {
            x.rank =
                ep_archive_i64(a, m ? m->rank : 0, -1, EP_SILENCE_RANKS - 1);
        }
        if (!a->saving && ep_archive_ok(a)) {
            m = ep_silence_member(s, job, &x, NULL);
            ep_archive_require(a, m && job->n == i + 1,
                               "a rank or worker is there twice");
        }
        if (m && ep_archive_ok(a))
            member(a, s, job, m);
    }
}

static void one_job(struct ep_archive *a, struct ep_silence *s, struct job *job)
{
    job->steps = ep_archive_bool(a, job->steps);
    job->stuck = ep_archive_bool(a, job->stuck);
    job->epoch = (uint32_t)ep_archive_u64(a, job->epoch, UINT32_MAX);
    job->moves = ep_archive_u64(a, job->moves, COUNT_MAX);
    job->signs = ep_archive_u64(a, job->signs, s->signs);
    job->restart_ts = when(a, job->restart_ts);
    job->moved = when(a, job->moved);
    job->usual = interval(a, job->usual);
    pauses(a, job->pause);
    job->looked = when(a, job->looked);
    job->max_step = ep_archive_i64(a, job->max_step, -1, STEP_MAX);
    comms(a, job);
    episodes(a, job);
    members(a, s, job);
}

static void eids(struct ep_archive *a, struct ep_silence *s)
{
    size_t n = ep_archive_size(a, ep_intern_count(s->eids), SIZE_MAX, 1);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span eid = name(a, s->eids, i);

        if (!a->saving)
            ep_archive_require(a,
                               ep_intern_add(s->eids, eid, SIZE_MAX) == (long)i,
                               "an eid is there twice");
    }
}

void ep_silence_archive(struct ep_archive *a, struct ep_silence *s)
{
    size_t n, room = 0;

    s->now = when(a, s->now);
    s->swept = when(a, s->swept);
    s->signs = ep_archive_u64(a, s->signs, COUNT_MAX);
    hosts(a, s);
    eids(a, s);
    n = ep_archive_size(a, ep_intern_count(s->job_names), EP_SILENCE_JOBS,
                        6 * DOUBLE);
    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span job = name(a, s->job_names, i);

        if (!a->saving)
            ep_archive_require(a,
                               ep_silence_job(s, job, NULL) &&
                                   s->last == s->jobs[i] &&
                                   ep_intern_count(s->job_names) == i + 1,
                               "a job is there twice");
        if (!ep_archive_ok(a))
            return;
        one_job(a, s, s->jobs[i]);
        /* ranks are an array: few of them with high numbers take much room */
        room += s->jobs[i]->cap;
        ep_archive_require(a, a->saving || room <= 4 * (size_t)EP_SILENCE_RANKS,
                           "ranks are too high");
    }
}

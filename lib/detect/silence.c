/* SPDX-License-Identifier: Apache-2.0 */
/* silence.c - signs of life; see silence.h. */
#include "config.h"

#include "detect/silence_impl.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Weight of one interval in the running means, of a rank and of its job. */
#define USUAL_OWN (1.0 / 16)
#define USUAL_JOB (1.0 / 256)
#define FALL 4 /* times the weight of a short one */
#define CLIP 4 /* usual intervals that a long one counts as */

struct ep_silence *ep_silence_new(const struct ep_silence_config *config,
                                  void (*fn)(void *ctx,
                                             const struct ep_finding *),
                                  void *ctx, struct ep_error *err)
{
    static const struct ep_silence_config defaults = EP_SILENCE_DEFAULTS;
    const struct ep_silence_config *c = config ? config : &defaults;
    struct ep_silence *s;

    if (!(c->floor_s >= 0) || !(c->times >= 1) || !(c->pauses >= 1) ||
        !isfinite(c->floor_s + c->times + c->pauses)) {
        (void)ep_error_set(err, EP_EDOM, "silence of %g s, %g or %g times",
                           c->floor_s, c->times, c->pauses);
        return NULL;
    }
    s = ep_calloc(1, sizeof *s);
    s->config = *c;
    s->fn = fn;
    s->ctx = ctx;
    s->job_names = ep_intern_new();
    s->host_names = ep_intern_new();
    s->eids = ep_intern_new();
    s->now = s->swept = (double)-INFINITY;
    ep_buf_init(&s->text);
    ep_buf_init(&s->who);
    return s;
}

static void free_job(struct job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        free(job->v[i]->id);
        free(job->v[i]->at);
        free(job->v[i]);
    }
    ep_silence_free_episodes(job);
    ep_intern_free(job->workers);
    ep_intern_free(job->comm_names);
    free(job->v);
    free(job->rank);
    free(job->worker);
    free(job->comms);
    free(job->name);
    free(job);
}

void ep_silence_free(struct ep_silence *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < ep_intern_count(s->job_names); i++)
        free_job(s->jobs[i]);
    free(s->jobs);
    ep_intern_free(s->job_names);
    ep_intern_free(s->host_names);
    ep_intern_free(s->eids);
    free(s->host_sign);
    free(s->set);
    ep_buf_free(&s->text);
    ep_buf_free(&s->who);
    free(s);
}

/* ==== Names ==== */

/* Is it that name? Of one with a NUL in it false: it is looked up then. */
static bool is_name(const char *name, struct ep_span s)
{
    return strlen(name) == s.len && memcmp(name, s.ptr, s.len) == 0;
}

struct job *ep_silence_job(struct ep_silence *s, struct ep_span name,
                           struct ep_error *err)
{
    size_t known = ep_intern_count(s->job_names);
    struct job *job = s->last;
    long i;

    if (job && job->len == name.len &&
        (!name.len || memcmp(job->name, name.ptr, name.len) == 0))
        return job;
    i = ep_intern_add(s->job_names, name, EP_SILENCE_JOBS);
    if (i < 0) {
        (void)ep_error_set(err, EP_ELIMIT, "more than %d jobs",
                           EP_SILENCE_JOBS);
        return NULL;
    }
    if ((size_t)i == known) {
        s->jobs = ep_grow(s->jobs, &s->jobs_cap, known + 1, sizeof(void *));
        job = s->jobs[i] = ep_calloc(1, sizeof *job);
        job->name = ep_strndup(name.len ? name.ptr : "", name.len);
        job->len = name.len;
        job->workers = ep_intern_new();
        job->comm_names = ep_intern_new();
        job->restart_ts = job->moved = job->looked = (double)-INFINITY;
        job->usual = (double)NAN;
        job->max_step = -1;
    }
    s->last = s->jobs[i];
    return s->last;
}

long ep_silence_host(struct ep_silence *s, struct ep_span name)
{
    size_t known = ep_intern_count(s->host_names);
    long i =
        name.len ? ep_intern_add(s->host_names, name, EP_SILENCE_NAMES) : -1;

    if (i >= 0 && (size_t)i == known) {
        s->host_sign =
            ep_grow(s->host_sign, &s->host_cap, known + 1, sizeof(double));
        s->host_sign[i] = (double)-INFINITY;
    }
    return i;
}

static struct member *new_member(struct ep_silence *s, struct job *job,
                                 const struct ep_sign *x)
{
    struct member *m = ep_calloc(1, sizeof *m);
    struct ep_buf *b = &s->who;

    ep_buf_reset(b);
    if (x->worker.len) {
        ep_buf_adds(b, "worker=");
        ep_buf_add(b, x->worker.ptr, x->worker.len);
    } else if (x->rank >= 0) {
        ep_buf_addf(b, "rank=%lld", (long long)x->rank);
    }
    m->id = b->len ? ep_strndup(b->ptr, b->len) : NULL;
    m->worker = x->worker.len > 0;
    m->rank = m->worker ? -1 : x->rank;
    m->pid = m->step = -1;
    m->host = -1;
    m->epoch = job->epoch;
    m->moved = m->other = (double)-INFINITY;
    m->beat = m->usual = (double)NAN;
    job->v = ep_grow(job->v, &job->vcap, job->n + 1, sizeof(void *));
    job->v[job->n++] = m;
    s->set = ep_grow(s->set, &s->set_cap, job->n, sizeof(void *));
    return m;
}

struct member *ep_silence_member(struct ep_silence *s, struct job *job,
                                 const struct ep_sign *x, struct ep_error *err)
{
    bool create = x->kind != EP_SIGN_OTHER;
    size_t i = x->rank >= 0 ? (size_t)x->rank + 1 : 0, was = job->cap;
    size_t known = ep_intern_count(job->workers);
    long w;

    if (x->rank >= EP_SILENCE_RANKS)
        return NULL;
    if (!x->worker.len) {
        if (i >= was && create) {
            job->rank = ep_grow(job->rank, &job->cap, i + 1, sizeof(void *));
            memset(job->rank + was, 0, (job->cap - was) * sizeof(void *));
        }
        if (i < job->cap && !job->rank[i] && create)
            job->rank[i] = new_member(s, job, x);
        return i < job->cap ? job->rank[i] : NULL;
    }
    w = ep_intern_add(job->workers, x->worker, create ? EP_SILENCE_NAMES : 0);
    if (w < 0) {
        if (create)
            (void)ep_error_set(err, EP_ELIMIT, "more than %d workers",
                               EP_SILENCE_NAMES);
        return NULL;
    }
    if ((size_t)w == known) {
        job->worker =
            ep_grow(job->worker, &job->workers_cap, known + 1, sizeof(void *));
        job->worker[w] = new_member(s, job, x);
    }
    return job->worker[w];
}

long ep_silence_comm(struct job *job, struct ep_span name)
{
    size_t known = ep_intern_count(job->comm_names);
    long c = ep_intern_add(job->comm_names, name, EP_SILENCE_NAMES);

    if (c < 0 || (size_t)c < known)
        return c;
    job->comms =
        ep_grow(job->comms, &job->comms_cap, known + 1, sizeof *job->comms);
    job->comms[c] =
        (struct comm){.nranks = -1, .newest = -1, .last = (double)NAN};
    return c;
}

/* Where in a communicator the rank is; NULL: there are too many. */
static struct at *find_at(struct job *job, struct member *m,
                          const struct ep_sign *x)
{
    uint32_t i = m->recent;
    long c;

    /* they mostly come in the same order each time */
    for (uint32_t k = 0; k < 2 && k < m->nat; k++) {
        if (is_name(ep_intern_name(job->comm_names, m->at[i].comm), x->comm))
            return m->recent = i, &m->at[i];
        i = i + 1 < m->nat ? i + 1 : 0;
    }
    c = ep_silence_comm(job, x->comm);
    if (c < 0)
        return NULL;
    for (i = 0; i < m->nat; i++)
        if (m->at[i].comm == c)
            return m->recent = i, &m->at[i];
    if (m->nat == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 4;
        m->at = ep_realloc(m->at, m->cap, sizeof *m->at);
    }
    m->recent = m->nat;
    m->at[m->nat] = (struct at){.comm = (uint32_t)c, .seq = -1};
    return &m->at[m->nat++];
}

/* ==== Progress ==== */

static void learn(double *usual, double gap, double weight)
{
    if (isnan(*usual))
        *usual = gap;
    else if (gap < *usual) /* the first may have been a pause */
        *usual += FALL * weight * (gap - *usual);
    else
        *usual += weight * (fmin(gap, CLIP * *usual) - *usual);
}

static void remember(double pause[2], double gap)
{
    if (gap > pause[0]) {
        pause[1] = pause[0];
        pause[0] = gap;
    } else if (gap > pause[1]) {
        pause[1] = gap;
    }
}

static void move(struct ep_silence *s, struct job *job, struct member *m,
                 const struct ep_sign *x)
{
    bool is_step = x->kind == EP_SIGN_STEP;

    if (is_step && !job->steps && !m->worker) {
        job->steps = true; /* what was learned of calls is something else */
        job->usual = (double)NAN;
        for (size_t i = 0; i < job->n; i++)
            job->v[i]->beat = job->v[i]->usual = (double)NAN;
    }
    if (is_step || m->worker || !job->steps) {
        double gap = x->ts - m->beat;

        if (gap > 0) {
            learn(&m->usual, gap, USUAL_OWN);
            learn(&job->usual, gap, USUAL_JOB);
        }
        if (!(gap <= 0))
            m->beat = x->ts;
    }
    if (m->moves && x->ts > m->moved)
        remember(m->pause, x->ts - m->moved);
    if (job->moves && x->ts > job->moved)
        remember(job->pause, x->ts - job->moved);
    m->moved = fmax(m->moved, x->ts);
    m->moves++;
    if (!m->worker) {
        job->moved = fmax(job->moved, x->ts);
        m->job_moves = ++job->moves;
        job->stuck = false;
    }
    if (m->ep)
        ep_silence_back(s, job, m);
}

/* The rank begins anew, as the job has. */
static void begin(struct job *job, struct member *m)
{
    m->epoch = job->epoch;
    m->nat = m->recent = 0;
    m->step = -1;
    m->beat = (double)NAN;
    m->moved = m->other = (double)-INFINITY;
    m->moves = 0;
}

/*
 * Is this of another run than what the rank told before? The first rank of
 * which it is restarts the job; what others tell then is of the new run too,
 * unless it is older.
 */
static void notice_restart(struct ep_silence *s, struct job *job,
                           struct member *m, const struct ep_sign *x)
{
    bool anew = x->pid >= 0 && m->pid >= 0 && x->pid != m->pid;

    if (x->ts < m->moved)
        return; /* late, or told before */
    if (x->kind == EP_SIGN_STEP && m->step - x->step >= RESTART_STEPS)
        anew = true;
    if (x->pid >= 0)
        m->pid = x->pid;
    if (m->epoch != job->epoch) {
        if (x->ts >= job->restart_ts)
            begin(job, m);
        return;
    }
    if (!anew || m->worker)
        return;
    ep_silence_end_all(s, job, x->ts);
    job->epoch++;
    job->restart_ts = job->moved = x->ts; /* what was between is no pause */
    job->max_step = -1;
    job->stuck = false;
    begin(job, m);
}

static void take_step(struct ep_silence *s, struct job *job, struct member *m,
                      const struct ep_sign *x)
{
    if (x->step == m->step || (x->step < m->step && x->ts <= m->beat))
        return; /* told before */
    m->step = x->step;
    if (m->epoch == job->epoch && !m->worker && x->step > job->max_step)
        job->max_step = x->step;
    move(s, job, m, x);
}

/* A communicator came to a call; who is first says when. */
static void note_newest(struct comm *c, int64_t seq, double ts)
{
    if (seq <= c->newest)
        return;
    if (ts > c->last)
        c->gap = ts - c->last;
    c->newest = seq;
    c->last = ts;
}

/*
 * The number of a call that tells none: one more than the rank's last. Its
 * first one is the newest call of the others, or the next if that was longer
 * ago than half the time between two.
 */
static int64_t count(const struct comm *c, const struct at *at, double ts)
{
    if (at->seq >= 0)
        return at->seq + 1;
    if (c->newest < 0)
        return 0;
    return c->newest + (ts - c->last > c->gap / 2 && c->gap > 0);
}

static void take_call(struct ep_silence *s, struct job *job, struct member *m,
                      const struct ep_sign *x)
{
    struct at *at = x->kind != EP_SIGN_P2P && x->comm.len && !m->worker
                        ? find_at(job, m, x)
                        : NULL;
    struct comm *c;
    int64_t seq;

    if (!at) {
        if (x->ts > m->moved)
            move(s, job, m, x);
        return;
    }
    if (x->seq < 0 && at->seq >= 0 && x->ts <= at->ts)
        return; /* told before */
    c = &job->comms[at->comm];
    if (x->nranks > 0)
        c->nranks = x->nranks;
    seq = x->seq >= 0 ? x->seq : count(c, at, x->ts);
    if (at->seq - seq >= RESTART_CALLS && x->ts > c->last) {
        /* numbers begin anew: those of the others are of before */
        for (size_t i = 0; i < job->n; i++)
            for (uint32_t k = 0; k < job->v[i]->nat; k++)
                if (job->v[i]->at[k].comm == at->comm)
                    job->v[i]->at[k].seq = -1;
        c->newest = -1;
    }
    if (seq < at->seq || (seq == at->seq && x->kind == EP_SIGN_ENTERED))
        return; /* told already, or late */
    at->open = x->kind == EP_SIGN_ENTERED;
    if (seq == at->seq)
        return;
    at->seq = seq;
    at->ts = x->ts;
    note_newest(c, seq, x->ts);
    move(s, job, m, x);
}

static bool is_due(const struct ep_silence *s, const struct job *job, bool live)
{
    return s->now - job->looked >= fmax(1, s->config.floor_s / 32) &&
           (live || (s->signs - job->signs) * 64 >= job->n);
}

/* Look at the jobs where it is time; most calls come to nothing. */
static void sweep(struct ep_silence *s, bool live)
{
    if (!(s->now - s->swept >= 1) || !(s->config.floor_s > 0))
        return;
    s->swept = s->now;
    for (size_t i = 0; i < ep_intern_count(s->job_names); i++) {
        struct job *job = s->jobs[i];

        if (!is_due(s, job, live))
            continue;
        job->looked = s->now;
        job->signs = s->signs;
        ep_silence_look(s, job, live);
    }
}

/* Records of a rank mostly come from where they came from before. */
static void note_host(struct ep_silence *s, struct member *m,
                      struct ep_span host)
{
    long i;

    if (!host.len ||
        (m->host >= 0 &&
         is_name(ep_intern_name(s->host_names, (size_t)m->host), host)))
        return;
    i = ep_silence_host(s, host);
    if (i >= 0)
        m->host = i;
}

/* A sign of a rank, a worker or the job. */
static void take_of(struct ep_silence *s, struct job *job, struct member *m,
                    const struct ep_sign *x)
{
    note_host(s, m, x->host);
    if (x->place.known)
        m->place = x->place;
    if (x->kind == EP_SIGN_OTHER) {
        m->other = fmax(m->other, x->ts);
        return;
    }
    notice_restart(s, job, m, x);
    if (x->kind == EP_SIGN_STEP)
        take_step(s, job, m, x);
    else
        take_call(s, job, m, x);
}

static int take(struct ep_silence *s, const struct ep_sign *x,
                struct ep_error *err)
{
    struct ep_error why = {.code = 0};
    struct member *m;
    struct job *job;

    /* calls of nobody in particular are no progress of the job */
    if (x->kind != EP_SIGN_STEP && x->rank < 0 && !x->worker.len) {
        long host = ep_silence_host(s, x->host);

        if (host >= 0)
            s->host_sign[host] = fmax(s->host_sign[host], x->ts);
    } else {
        job = ep_silence_job(s, x->job, err);
        if (!job)
            return EP_ELIMIT;
        m = ep_silence_member(s, job, x, &why);
        if (why.code) {
            if (err)
                *err = why;
            return why.code;
        }
        if (m)
            take_of(s, job, m, x);
    }
    if (x->ts > s->now) {
        s->now = x->ts;
        s->signs++;
        sweep(s, false);
    }
    return 0;
}

int ep_silence_take(struct ep_silence *s, const struct ep_sign *x,
                    struct ep_error *err)
{
    struct ep_sign now;

    if (isinf(x->ts))
        return ep_error_set(err, EP_EDOM, "time is not finite");
    if (s->config.floor_s <= 0)
        return 0;
    /* most tell a time: no copy of these */
    if (!isnan(x->ts))
        return take(s, x, err);
    if (!isfinite(s->now))
        return 0; /* nothing has told a time yet */
    now = *x;
    now.ts = s->now;
    return take(s, &now, err);
}

void ep_silence_tick(struct ep_silence *s, double now)
{
    if (!(now > s->now) || !isfinite(s->now) || !isfinite(now))
        return;
    s->now = now;
    sweep(s, true);
}

void ep_silence_finish(struct ep_silence *s)
{
    for (size_t i = 0; i < ep_intern_count(s->job_names); i++)
        if (s->config.floor_s > 0)
            ep_silence_look_last(s, s->jobs[i]);
}

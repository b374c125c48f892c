/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_run.c - all chunks, on threads.
 *
 * A thread takes the next chunk by a counter that all share, in the order of
 * the base's tensors. What a chunk adds to the norms is summed up in that
 * order too: chunks that are done early wait in a ring, and a thread that is
 * RING chunks ahead of the slowest waits for it. So the sums do not depend on
 * the number of threads, and need no memory that grows with the model. An error
 * stops the taking of chunks; all before it have then been taken, and the first
 * in order is the one reported.
 */
#include "config.h"

#include "base/mem.h"
#include "base/thread.h"
#include "lsgd/merge_impl.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RING = 256 }; /* chunks */

/* Elements that are announced to the system at once, and so far ahead. */
#define WINDOW ((uint64_t)16 * MERGE_CHUNK)

/* Bytes that the system maps around a fault (Linux: fault_around_bytes). */
#define AROUND ((size_t)64 << 10)
enum { LET_GO = 8 }; /* chunks */

struct run {
    const struct ep_merge *m;
    const struct ep_merge_how *how;
    struct ep_st_writer *model, *keep; /* NULL: write nothing */
    uint64_t *first; /* [n + 1] number of the first chunk of each tensor */
    uint64_t chunks;
    _Atomic uint64_t next;
    _Atomic bool stop;
    _Atomic uint64_t done_bytes; /* of the result */
    uint64_t all_bytes;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t moved; /* folded has grown, or stop */
    uint64_t folded;      /* chunks whose sums are in total */
    double *ring;         /* [RING][nin] */
    bool here[RING];
    double *total; /* [nin] sums of squares */
    uint64_t saturated;
    bool *differs; /* [n][nin] carried tensors; NULL as long as none does */
    uint64_t error_chunk;
    struct ep_error error;
};

/* ==== Chunks ==== */

static bool is_real(const struct run *r, size_t i)
{
    return ep_dtype_is_real(ep_ckpt_tensor(r->m->base, i)->dtype);
}

static void number_chunks(struct run *r)
{
    r->first = ep_calloc(r->m->n + 1, sizeof *r->first);
    for (size_t i = 0; i < r->m->n; i++) {
        const struct ep_tensor *t = ep_ckpt_tensor(r->m->base, i);
        uint64_t size = is_real(r, i) ? t->count : t->bytes;
        uint64_t step = is_real(r, i) ? MERGE_CHUNK : MERGE_CARRY;

        r->first[i + 1] = r->first[i] + size / step + (size % step != 0);
        r->all_bytes += r->m->model.tensor[i].bytes;
    }
    r->chunks = r->first[r->m->n];
}

/* What chunk number k is. */
static struct merge_chunk chunk_at(const struct run *r, uint64_t k)
{
    size_t lo = 0, hi = r->m->n; /* first[lo] <= k < first[hi] */
    const struct ep_tensor *t;
    struct merge_chunk c;
    uint64_t size, step;

    while (lo + 1 < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (r->first[mid] <= k)
            lo = mid;
        else
            hi = mid;
    }
    t = ep_ckpt_tensor(r->m->base, lo);
    size = is_real(r, lo) ? t->count : t->bytes;
    step = is_real(r, lo) ? MERGE_CHUNK : MERGE_CARRY;
    c.tensor = lo;
    c.at = (k - r->first[lo]) * step;
    c.n = (size_t)(size - c.at < step ? size - c.at : step);
    return c;
}

/* Call fn for all tensors that chunk c reads. */
static void each_source(const struct run *r, const struct merge_chunk *c,
                        void (*fn)(const struct ep_tensor *t,
                                   const struct merge_chunk *c))
{
    const struct ep_merge *m = r->m;
    const struct ep_tensor *t;

    fn(ep_ckpt_tensor(m->base, c->tensor), c);
    for (size_t k = 0; k < m->nin; k++)
        if ((t = ep_merge_find(&m->source[k], c->tensor)))
            fn(t, c);
    if ((t = ep_merge_find(&m->momentum, c->tensor)))
        fn(t, c);
    if ((t = ep_merge_find(&m->buffer, c->tensor)))
        fn(t, c);
}

/* Let the disk work ahead, for a tensor that is read window by window. */
static void announce(const struct ep_tensor *t, const struct merge_chunk *c)
{
    uint64_t bits = ep_dtype_bits(t->dtype);
    uint64_t from = c->at ? c->at + WINDOW : 0, end = c->at + 2 * WINDOW;

    if (end > t->count)
        end = t->count;
    if (from < end)
        ep_ckpt_will_need(t, from * bits / 8, (end - from) * bits / 8);
}

/*
 * Take pages that are done with out of the page tables, which would grow with
 * the model (to 1/512 of what was read); they stay in the page cache. For a few
 * chunks at once, since it costs a flush of the TLB; if another thread still
 * uses one of them, it faults. A fault maps pages around it too, so that some
 * before the first chunk, which were let go, are there again.
 */
static void let_go(const struct ep_tensor *t, const struct merge_chunk *c)
{
    bool real = ep_dtype_is_real(t->dtype);
    uint64_t size = real ? t->count : t->bytes;
    uint64_t bits = real ? ep_dtype_bits(t->dtype) : 8;
    uint64_t group = (uint64_t)LET_GO * (real ? MERGE_CHUNK : MERGE_CARRY);
    uint64_t begin = c->at - c->at % group, end = c->at + c->n, first;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), lead, n;
    const char *from;

    if (end % group && end < size)
        return;
    first = begin * bits / 8;
    from = (const char *)t->data + first;
    lead = (uintptr_t)from % (first >= AROUND ? AROUND : page);
    n = (size_t)(end * bits / 8 - first) + lead;
    (void)madvise((void *)(from - lead), n - n % page, MADV_DONTNEED);
}

/* ==== Results ==== */

static int write_state(const struct run *r, const struct merge_chunk *c,
                       uint32_t i, const void *p, struct ep_error *err)
{
    size_t size;

    if (!r->keep || i == MERGE_NONE)
        return 0;
    size = ep_dtype_bits(r->m->keep.tensor[i].dtype) / 8;
    return ep_st_writer_write(r->keep, i, c->at * size, p, c->n * size, err);
}

static int run_chunk(struct run *r, struct merge_scratch *s,
                     const struct merge_chunk *c, struct ep_error *err)
{
    const struct ep_merge *m = r->m;
    const struct ep_tensor *base = ep_ckpt_tensor(m->base, c->tensor);
    const void *out = s->out;
    size_t size = 1;
    int rc = 0;

    memset(s->differs, 0, m->nin * sizeof *s->differs);
    memset(s->sumsq, 0, m->nin * sizeof *s->sumsq);
    if (is_real(r, c->tensor)) {
        if (c->at % WINDOW == 0)
            each_source(r, c, announce);
        rc = ep_merge_chunk_real(s, m, c, err);
        size = ep_dtype_bits(m->model.tensor[c->tensor].dtype) / 8;
    } else {
        ep_merge_chunk_carried(s, m, c);
        out = (const unsigned char *)base->data + c->at;
    }
    if (rc == 0 && r->model)
        rc = ep_st_writer_write(r->model, c->tensor, c->at * size, out,
                                c->n * size, err);
    if (rc == 0)
        rc = write_state(r, c, m->m_out[c->tensor], s->m_out, err);
    if (rc == 0)
        rc = write_state(r, c, m->d_out[c->tensor], s->d_out, err);
    if (rc < 0)
        ep_merge_explain(m, r->how, c, err);
    each_source(r, c, let_go);
    atomic_fetch_add(&r->done_bytes, c->n * size);
    return rc;
}

static void note_differences(struct run *r, const struct merge_scratch *s,
                             size_t tensor)
{
    for (size_t k = 0; k < r->m->nin; k++) {
        if (!s->differs[k])
            continue;
        if (!r->differs)
            r->differs = ep_calloc(r->m->n, r->m->nin * sizeof *r->differs);
        r->differs[tensor * r->m->nin + k] = true;
    }
}

/* Chunk k is done: its sums into the ring, and on from there in order. */
static void fold(struct run *r, uint64_t k, const struct merge_chunk *c,
                 const struct merge_scratch *s)
{
    size_t nin = r->m->nin;

    (void)pthread_mutex_lock(&r->lock);
    while (k >= r->folded + RING && !r->stop)
        (void)pthread_cond_wait(&r->moved, &r->lock);
    if (k < r->folded + RING) {
        memcpy(r->ring + k % RING * nin, s->sumsq, nin * sizeof *r->ring);
        r->here[k % RING] = true;
    }
    if (k == r->folded) {
        for (; r->here[r->folded % RING]; r->folded++) {
            r->here[r->folded % RING] = false;
            for (size_t i = 0; i < nin; i++)
                r->total[i] += r->ring[r->folded % RING * nin + i];
        }
        (void)pthread_cond_broadcast(&r->moved);
    }
    note_differences(r, s, c->tensor);
    (void)pthread_mutex_unlock(&r->lock);
}

static void fail(struct run *r, uint64_t k, const struct ep_error *err)
{
    (void)pthread_mutex_lock(&r->lock);
    if (k < r->error_chunk) {
        r->error_chunk = k;
        r->error = *err;
    }
    r->stop = true;
    (void)pthread_cond_broadcast(&r->moved);
    (void)pthread_mutex_unlock(&r->lock);
}

/* ==== Threads ==== */

static bool interrupted(const struct run *r)
{
    return r->how->stop && atomic_load(r->how->stop) != 0;
}

static void work(int id, void *ctx)
{
    struct run *r = ctx;
    struct merge_scratch s;

    ep_merge_scratch_init(&s, r->m);
    while (!r->stop && !interrupted(r)) {
        uint64_t k = atomic_fetch_add(&r->next, 1);
        struct merge_chunk c;
        struct ep_error err;

        if (k >= r->chunks)
            break;
        c = chunk_at(r, k);
        if (run_chunk(r, &s, &c, &err) < 0)
            fail(r, k, &err);
        fold(r, k, &c, &s);
        if (id == 0 && r->how->progress)
            r->how->progress(r->how->ctx, r->done_bytes, r->all_bytes);
    }
    (void)pthread_mutex_lock(&r->lock);
    r->saturated += s.saturated;
    (void)pthread_mutex_unlock(&r->lock);
    ep_merge_scratch_free(&s);
}

static int run_threads(struct run *r, struct ep_error *err)
{
    int n = r->how->threads, rc;

    if (r->chunks < (uint64_t)n)
        n = r->chunks ? (int)r->chunks : 1;
    if (pthread_mutex_init(&r->lock, NULL) != 0)
        return ep_error_set(err, EP_ESYS, "cannot make a lock");
    if (pthread_cond_init(&r->moved, NULL) != 0) {
        (void)pthread_mutex_destroy(&r->lock);
        return ep_error_set(err, EP_ESYS, "cannot make a lock");
    }
    r->error_chunk = UINT64_MAX;
    rc = ep_threads_run(n, work, r, err);
    (void)pthread_cond_destroy(&r->moved);
    (void)pthread_mutex_destroy(&r->lock);
    if (rc == 0 && r->error_chunk != UINT64_MAX) {
        if (err)
            *err = r->error;
        rc = r->error.code;
    }
    return rc;
}

/* ==== The run ==== */

static int open_writer(struct ep_st_writer **w, const char *path,
                       const struct merge_target *t, uint64_t shard_bytes,
                       struct ep_error *err)
{
    struct ep_st_plan plan = {.tensor = t->tensor,
                              .n = t->n,
                              .meta = t->meta.entry,
                              .nmeta = t->meta.n,
                              .shard_bytes = shard_bytes};

    if (!path)
        return 0;
    *w = ep_st_writer_open(path, &plan, err);
    return *w ? 0 : err->code;
}

static int check_interrupt(const struct run *r, struct ep_error *err)
{
    return interrupted(r)
               ? ep_error_set(err, EP_ESYS, "cannot merge: interrupted")
               : 0;
}

/* Is what was read what is there? */
static int check_sources(const struct run *r, struct ep_error *err)
{
    const char *path = ep_ckpt_changed(r->m->base);
    char shown[160];

    for (size_t k = 0; k < r->m->nin && !path; k++)
        path = ep_ckpt_changed(r->m->source[k].ckpt);
    if (!path && r->m->state)
        path = ep_ckpt_changed(r->m->state);
    if (!path)
        return 0;
    return ep_error_set(err, EP_EDOM,
                        "cannot merge %s: it changed while it was read",
                        ep_escape(shown, sizeof shown, path, strlen(path)));
}

/* All that can fail, then both in place, the state first; or neither. */
static int commit(struct run *r, const struct ep_merge_report *report,
                  struct ep_error *err)
{
    struct ep_st_writer *w[2];
    size_t n = 0;
    int rc = 0;

    if (r->keep)
        rc = ep_st_writer_finish(r->keep, r->how->sync, err);
    if (rc == 0 && r->model)
        rc = ep_st_writer_finish(r->model, r->how->sync, err);
    if (rc == 0 && r->how->ready)
        rc = r->how->ready(r->how->ctx, report, err);
    if (rc == 0)
        rc = check_interrupt(r, err);
    if (rc < 0)
        return rc;
    if (r->keep)
        w[n++] = r->keep;
    if (r->model)
        w[n++] = r->model;
    r->keep = r->model = NULL;
    return ep_st_writer_place(w, n, r->how->sync, err);
}

static void fill_report(struct run *r, struct ep_merge_report *report,
                        struct ep_merge_lines *lines)
{
    const struct ep_merge *m = r->m;

    for (size_t i = 0; i < m->nin; i++)
        r->total[i] = sqrt(r->total[i]);
    report->norm = r->total;
    r->total = NULL;
    report->saturated = r->saturated;
    for (size_t i = 0; r->differs && i < m->n; i++)
        for (size_t k = 0; k < m->nin; k++)
            if (r->differs[i * m->nin + k])
                ep_merge_line_tensor(
                    lines, ep_merge_file(&m->source[k], i),
                    ep_ckpt_tensor(m->base, i)->name,
                    "%s is not computed with, and differs: the base's is kept",
                    ep_dtype_name(ep_ckpt_tensor(m->base, i)->dtype));
}

int ep_merge_run(struct ep_merge *m, const struct ep_merge_how *how,
                 struct ep_merge_report *report, struct ep_merge_lines *lines,
                 struct ep_error *err)
{
    struct run r = {.m = m, .how = how};
    struct ep_error why = {.code = 0};
    int rc;

    *report = (struct ep_merge_report){.norm = NULL};
    number_chunks(&r);
    r.ring = ep_calloc((size_t)RING * m->nin, sizeof *r.ring);
    r.total = ep_calloc(m->nin, sizeof *r.total);
    rc =
        open_writer(&r.model, how->out, &m->model, m->config.shard_bytes, &why);
    if (rc == 0 && m->config.keep_state)
        rc = open_writer(&r.keep, how->state_out, &m->keep, 0, &why);
    if (rc == 0)
        rc = run_threads(&r, &why);
    if (rc == 0)
        rc = check_interrupt(&r, &why);
    if (rc == 0)
        rc = check_sources(&r, &why);
    if (rc == 0) {
        fill_report(&r, report, lines);
        rc = commit(&r, report, &why);
    }
    if (rc < 0) {
        free(report->norm);
        *report = (struct ep_merge_report){.norm = NULL};
    }
    ep_st_writer_abort(r.model);
    ep_st_writer_abort(r.keep);
    free(r.first);
    free(r.ring);
    free(r.total);
    free(r.differs);
    if (rc < 0 && err)
        *err = why;
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans.c - see spans.h.
 *
 * The spans are columns. To put them in order they are counted into buckets
 * (step, dp, pp, type); only what is out of order within a bucket is sorted.
 */
#include "config.h"

#include "replay/spans.h"

#include "base/mem.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ep_spans {
    size_t n, cap;
    uint32_t *step; /* number of the step, in order of arrival */
    uint32_t *dp;
    uint16_t *pp;
    uint8_t *type;
    int32_t *mb, *chunk, *seq;
    double *start, *dur;
    uint32_t dp_max, pp_max;
    /* steps in order of arrival, and a hash table of them (0: free) */
    int64_t *steps;
    size_t nsteps, steps_cap;
    uint32_t *slot;
    size_t slots;
    uint32_t last; /* the step before: spans come in runs */
};

struct ep_spans *ep_spans_new(void)
{
    return ep_calloc(1, sizeof(struct ep_spans));
}

void ep_spans_free(struct ep_spans *s)
{
    if (!s)
        return;
    free(s->step);
    free(s->dp);
    free(s->pp);
    free(s->type);
    free(s->mb);
    free(s->chunk);
    free(s->seq);
    free(s->start);
    free(s->dur);
    free(s->steps);
    free(s->slot);
    free(s);
}

size_t ep_spans_count(const struct ep_spans *s)
{
    return s->n;
}

static size_t hash_step(int64_t step)
{
    uint64_t x = (uint64_t)step * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(x ^ x >> 32);
}

static uint32_t *find_slot(const struct ep_spans *s, int64_t step)
{
    size_t i = hash_step(step) & (s->slots - 1);

    while (s->slot[i] && s->steps[s->slot[i] - 1] != step)
        i = (i + 1) & (s->slots - 1);
    return &s->slot[i];
}

static void rehash(struct ep_spans *s)
{
    free(s->slot);
    s->slots = s->slots ? s->slots * 2 : 64;
    s->slot = ep_calloc(s->slots, sizeof *s->slot);
    for (size_t i = 0; i < s->nsteps; i++)
        *find_slot(s, s->steps[i]) = (uint32_t)i + 1;
}

static uint32_t step_number(struct ep_spans *s, int64_t step)
{
    uint32_t *slot;

    if (s->nsteps && s->steps[s->last] == step)
        return s->last;
    if (s->nsteps * 2 >= s->slots)
        rehash(s);
    slot = find_slot(s, step);
    if (!*slot) {
        s->steps =
            ep_grow(s->steps, &s->steps_cap, s->nsteps + 1, sizeof *s->steps);
        s->steps[s->nsteps++] = step;
        *slot = (uint32_t)s->nsteps;
    }
    s->last = *slot - 1;
    return s->last;
}

static void grow(struct ep_spans *s)
{
    size_t cap = s->cap ? s->cap + s->cap / 2 : 4096;

    s->step = ep_realloc(s->step, cap, sizeof *s->step);
    s->dp = ep_realloc(s->dp, cap, sizeof *s->dp);
    s->pp = ep_realloc(s->pp, cap, sizeof *s->pp);
    s->type = ep_realloc(s->type, cap, sizeof *s->type);
    s->mb = ep_realloc(s->mb, cap, sizeof *s->mb);
    s->chunk = ep_realloc(s->chunk, cap, sizeof *s->chunk);
    s->seq = ep_realloc(s->seq, cap, sizeof *s->seq);
    s->start = ep_realloc(s->start, cap, sizeof *s->start);
    s->dur = ep_realloc(s->dur, cap, sizeof *s->dur);
    s->cap = cap;
}

static int check_span(const struct ep_replay_span *x, struct ep_error *err)
{
    if (x->dp < 0 || x->dp >= EP_SPANS_DP_MAX)
        return ep_error_set(err, EP_ERANGE, "dp is not below %d",
                            EP_SPANS_DP_MAX);
    if (x->pp < 0 || x->pp >= EP_SPANS_PP_MAX)
        return ep_error_set(err, EP_ERANGE, "pp is not below %d",
                            EP_SPANS_PP_MAX);
    if (x->mb > INT32_MAX || x->chunk > INT16_MAX || x->seq > INT32_MAX)
        return ep_error_set(err, EP_ERANGE, "%s is too large",
                            x->mb > INT32_MAX      ? "mb"
                            : x->chunk > INT16_MAX ? "chunk"
                                                   : "seq");
    /* no sum of a few of them is infinite, and none loses all its digits */
    if (!(fabs(x->start) < 1e15) || !(fabs(x->dur) < 1e15))
        return ep_error_set(err, EP_ERANGE, "%s is not a time",
                            fabs(x->start) < 1e15 ? "dur" : "ts");
    return 0;
}

int ep_spans_add(struct ep_spans *s, const struct ep_replay_span *x,
                 struct ep_error *err)
{
    size_t i = s->n;
    int rc = check_span(x, err);

    if (rc < 0)
        return rc;
    if (i >= UINT32_MAX - 1)
        return ep_error_set(err, EP_ELIMIT, "more than %u spans", UINT32_MAX);
    if (i == s->cap)
        grow(s);
    s->step[i] = step_number(s, x->step);
    s->dp[i] = (uint32_t)x->dp;
    s->pp[i] = (uint16_t)x->pp;
    s->type[i] = (uint8_t)x->type;
    s->mb[i] = (int32_t)(x->mb < 0 ? -1 : x->mb);
    s->chunk[i] = (int32_t)(x->chunk < 0 ? -1 : x->chunk);
    s->seq[i] = (int32_t)(x->seq < 0 ? -1 : x->seq);
    s->start[i] = x->start;
    s->dur[i] = x->dur;
    s->n++;
    if (s->dp[i] > s->dp_max)
        s->dp_max = s->dp[i];
    if (s->pp[i] > s->pp_max)
        s->pp_max = s->pp[i];
    return 0;
}

/* ==== In order ==== */

/* While a trace is made. */
struct maker {
    const struct ep_spans *s;
    const struct ep_ops *ops;
    struct ep_trace *t;
    size_t types, keys; /* keys: buckets of a lane, P * types */
    uint32_t *rank;     /* [steps in order of arrival] among all */
    uint32_t *counts;   /* at, with the steps that are left out */
    uint32_t *at;       /* [lanes * keys + 1]: where a bucket begins */
    uint32_t *order;    /* [spans] */
    uint32_t *room;     /* to merge in: the largest bucket */
};

static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Number the steps by value. */
static void rank_steps(struct maker *m)
{
    const struct ep_spans *s = m->s;
    struct ep_trace *t = m->t;

    t->steps = s->nsteps;
    t->step = ep_calloc(t->steps, sizeof *t->step);
    memcpy(t->step, s->steps, t->steps * sizeof *t->step);
    qsort(t->step, t->steps, sizeof *t->step, compare_steps);
    m->rank = ep_calloc(t->steps, sizeof *m->rank);
    for (size_t i = 0; i < t->steps; i++)
        m->rank[*find_slot(s, t->step[i]) - 1] = (uint32_t)i;
}

static size_t bucket_of(const struct maker *m, size_t i)
{
    const struct ep_spans *s = m->s;
    size_t lane = m->rank[s->step[i]] * m->t->dp + s->dp[i];

    return (lane * m->t->pp + s->pp[i]) * m->types + s->type[i];
}

static bool comes_before(const struct ep_spans *s, uint32_t a, uint32_t b)
{
    if (s->seq[a] != s->seq[b])
        return s->seq[a] < s->seq[b];
    return s->start[a] < s->start[b];
}

/* Merge sort from below, stable; nothing to do if in order already. */
static void sort_bucket(const struct maker *m, uint32_t *v, size_t n)
{
    uint32_t *from = v, *to = m->room, *swap;
    size_t i = 1;

    while (i < n && !comes_before(m->s, v[i], v[i - 1]))
        i++;
    if (i >= n)
        return;
    for (size_t w = 1; w < n; w *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * w) {
            size_t mid = lo + w < n ? lo + w : n, a = lo, b = mid, k = lo;
            size_t hi = lo + 2 * w < n ? lo + 2 * w : n;

            while (a < mid || b < hi)
                to[k++] = b >= hi || (a < mid &&
                                      !comes_before(m->s, from[b], from[a]))
                              ? from[a++]
                              : from[b++];
        }
        swap = from;
        from = to;
        to = swap;
    }
    if (from != v)
        memcpy(v, from, n * sizeof *v);
}

static void fill_buckets(struct maker *m)
{
    size_t buckets = m->t->lanes * m->keys, largest = 0;

    m->counts = ep_calloc(buckets + 2, sizeof *m->counts);
    m->at = m->counts;
    m->order = ep_calloc(m->s->n, sizeof *m->order);
    /* at[b + 2] counts, then at[b + 1] is where bucket b is filled from */
    for (size_t i = 0; i < m->s->n; i++)
        m->at[bucket_of(m, i) + 2]++;
    for (size_t b = 2; b < buckets + 2; b++) {
        if (m->at[b] > largest)
            largest = m->at[b];
        m->at[b] += m->at[b - 1];
    }
    for (size_t i = 0; i < m->s->n; i++)
        m->order[m->at[bucket_of(m, i) + 1]++] = (uint32_t)i;
    m->room = ep_calloc(largest, sizeof *m->room);
    for (size_t b = 0; b < buckets; b++)
        sort_bucket(m, m->order + m->at[b], m->at[b + 1] - m->at[b]);
}

/* The same operation of the same rank: a file that was given twice, a step
   that was run again. */
static bool is_again(const struct ep_spans *s, uint32_t a, uint32_t b)
{
    return s->seq[a] == s->seq[b] && s->chunk[a] == s->chunk[b] &&
           s->mb[a] == s->mb[b] &&
           (s->seq[a] >= 0 || s->start[a] == s->start[b]);
}

/* " mb 5" (seq, if mb is not known; nothing, if neither is). */
static const char *which_text(const struct ep_spans *s, uint32_t i, char *dst,
                              size_t cap)
{
    *dst = '\0';
    if (s->mb[i] >= 0)
        (void)snprintf(dst, cap, " mb %d", s->mb[i]);
    else if (s->seq[i] >= 0)
        (void)snprintf(dst, cap, " seq %d", s->seq[i]);
    return dst;
}

static int check_twice(const struct maker *m, struct ep_error *err)
{
    const struct ep_trace *t = m->t;
    const uint32_t *v = m->order;
    char which[24];

    for (size_t b = 0; b < t->lanes * m->keys; b++)
        for (size_t i = (size_t)m->at[b] + 1; i < m->at[b + 1]; i++)
            if (is_again(m->s, v[i - 1], v[i]))
                return ep_error_set(
                    err, EP_EFORMAT,
                    "cannot replay step %lld: dp=%zu,pp=%zu %s%s is there "
                    "twice",
                    (long long)t->step[b / m->keys / t->dp],
                    b / m->keys % t->dp, b % m->keys / m->types,
                    ep_ops_name(m->ops, b % m->types),
                    which_text(m->s, v[i], which, sizeof which));
    return 0;
}

/* Does a step lack operations of another, and have no others? */
static bool is_part(const struct maker *m, size_t step, size_t of)
{
    size_t n = m->t->dp * m->keys;
    const uint32_t *a = m->at + step * n, *b = m->at + of * n;
    bool less = false;

    for (size_t k = 0; k < n; k++) {
        uint32_t have = a[k + 1] - a[k], want = b[k + 1] - b[k];

        if (have > want)
            return false;
        less = less || have < want;
    }
    return less;
}

/* dp * P + pp of one that has no operation in a step, SIZE_MAX if all have. */
static size_t find_bare(const struct maker *m, size_t step)
{
    size_t n = m->t->dp * m->keys;
    const uint32_t *at = m->at + step * n;

    for (size_t k = 0; k < n; k += m->types)
        if (at[k] == at[k + m->types])
            return k / m->types;
    return SIZE_MAX;
}

/* Steps [from, to) as they are left out; a whole one is given. */
static struct ep_trace_cut cut_of(const struct maker *m, size_t from, size_t to,
                                  size_t whole)
{
    size_t n = m->t->dp * m->keys;
    const uint32_t *at = m->at;

    if (from == to)
        return (struct ep_trace_cut){.steps = 0};
    return (struct ep_trace_cut){.steps = to - from,
                                 .from = m->t->step[from],
                                 .to = m->t->step[to - 1],
                                 .have = at[to * n] - at[from * n],
                                 .want = (to - from) *
                                         (at[(whole + 1) * n] - at[whole * n])};
}

/* Leave out the steps at both ends that the trace cut. */
static void leave_ends(struct maker *m)
{
    struct ep_trace *t = m->t;
    size_t lo = 0, hi = t->steps;
    bool first, last;

    while (lo < hi && find_bare(m, lo) != SIZE_MAX)
        lo++;
    if (lo == hi)
        return; /* check_grid has to say it */
    while (find_bare(m, hi - 1) != SIZE_MAX)
        hi--;
    first = hi - lo > 1 && is_part(m, lo, lo + 1);
    last = hi - lo > 1 && is_part(m, hi - 1, hi - 2);
    lo += first;
    hi -= last;
    t->first = cut_of(m, 0, lo, lo);
    t->last = cut_of(m, hi, t->steps, hi - 1);
    t->steps = hi - lo;
    t->lanes = t->steps * t->dp;
    memmove(t->step, t->step + lo, t->steps * sizeof *t->step);
    m->at += lo * t->dp * m->keys;
}

/* Every rank of every stage has spans in every step. */
static int check_grid(const struct maker *m, struct ep_error *err)
{
    const struct ep_trace *t = m->t;

    for (size_t s = 0; s < t->steps; s++) {
        size_t bare = find_bare(m, s);

        if (bare != SIZE_MAX)
            return ep_error_set(
                err, EP_EFORMAT,
                "cannot replay step %lld: dp=%zu,pp=%zu has no operation",
                (long long)t->step[s], bare / t->pp, bare % t->pp);
    }
    return 0;
}

/*
 * A bucket of a lane and that of lane 0 have not the same length: name the
 * first operation that one has and the other has not.
 */
static int differ(const struct maker *m, size_t lane, size_t key,
                  struct ep_error *err)
{
    const struct ep_spans *s = m->s;
    const struct ep_trace *t = m->t;
    size_t b = lane * m->keys + key, k = 0;
    const uint32_t *want = m->order + m->at[key], *have = m->order + m->at[b];
    size_t nwant = m->at[key + 1] - m->at[key];
    size_t nhave = m->at[b + 1] - m->at[b];
    bool more = nhave > nwant; /* this lane has what lane 0 has not */
    const uint32_t *all = more ? have : want;
    size_t fewer = more ? nwant : nhave;
    char which[24];

    while (k < fewer && s->seq[want[k]] == s->seq[have[k]])
        k++;
    return ep_error_set(
        err, EP_EFORMAT,
        "cannot replay step %lld: dp=%zu,pp=%zu %s%s %s (%zu of them, %zu at "
        "dp=0 of step %lld)",
        (long long)t->step[lane / t->dp], lane % t->dp, key / m->types,
        ep_ops_name(m->ops, key % m->types),
        which_text(s, all[k], which, sizeof which),
        more ? "is not at dp=0 of the first step" : "is missing", nhave, nwant,
        (long long)t->step[0]);
}

static int check_counts(const struct maker *m, struct ep_error *err)
{
    for (size_t l = 1; l < m->t->lanes; l++)
        for (size_t k = 0; k < m->keys; k++) {
            size_t b = l * m->keys + k;

            if (m->at[b + 1] - m->at[b] != m->at[k + 1] - m->at[k])
                return differ(m, l, k, err);
        }
    return 0;
}

static void set_bases(const struct maker *m)
{
    struct ep_trace *t = m->t;
    size_t n = t->dp * m->keys;

    t->base = ep_calloc(t->steps, sizeof *t->base);
    for (size_t k = 0; k < t->steps; k++) {
        t->base[k] = INFINITY;
        for (size_t i = m->at[k * n]; i < m->at[(k + 1) * n]; i++)
            t->base[k] = fmin(t->base[k], m->s->start[m->order[i]]);
    }
}

/* The operations of lane 0, and everybody's times. */
static void fill_matrix(const struct maker *m)
{
    const struct ep_spans *s = m->s;
    struct ep_trace *t = m->t;

    t->n = m->at[m->keys] - m->at[0];
    t->op = ep_calloc(t->n, sizeof *t->op);
    t->start = ep_calloc(t->n * t->lanes, sizeof *t->start);
    t->dur = ep_calloc(t->n * t->lanes, sizeof *t->dur);
    for (size_t l = 0; l < t->lanes; l++) {
        const uint32_t *v = m->order + m->at[l * m->keys];
        double base = t->base[l / t->dp];

        for (size_t k = 0; k < t->n; k++) {
            t->start[k * t->lanes + l] = s->start[v[k]] - base;
            t->dur[k * t->lanes + l] = s->dur[v[k]];
        }
    }
    for (size_t k = 0; k < t->n; k++) {
        uint32_t i = m->order[m->at[0] + k];

        t->op[k] = (struct ep_graph_op){
            .type = s->type[i],
            .role = ep_ops_role(m->ops, s->type[i]),
            .pp = s->pp[i],
            .mb = s->mb[i],
            .chunk = s->chunk[i],
            .seq = s->seq[i],
            .start = t->start[k * t->lanes],
            .dur = t->dur[k * t->lanes],
        };
    }
}

static int make(struct maker *m, struct ep_error *err)
{
    struct ep_trace *t = m->t;
    size_t whole; /* steps that no end of the trace cuts */
    int rc;

    t->dp = (size_t)m->s->dp_max + 1;
    t->pp = (size_t)m->s->pp_max + 1;
    rank_steps(m);
    whole = t->steps > 2 ? t->steps - 2 : 1;
    t->lanes = t->steps * t->dp;
    m->types = ep_ops_types(m->ops);
    m->keys = t->pp * m->types;
    /* before memory is taken for ranks that are not there */
    if (whole * t->dp > m->s->n || whole * t->dp * t->pp > m->s->n)
        return ep_error_set(err, EP_EFORMAT,
                            "cannot replay: %zu spans of %zu steps, dp up to "
                            "%zu, pp up to %zu: some ranks have none",
                            m->s->n, t->steps, t->dp - 1, t->pp - 1);
    fill_buckets(m);
    rc = check_twice(m, err);
    if (rc < 0)
        return rc;
    leave_ends(m);
    rc = check_grid(m, err);
    if (rc == 0)
        rc = check_counts(m, err);
    if (rc < 0)
        return rc;
    set_bases(m);
    fill_matrix(m);
    return 0;
}

int ep_trace_make(struct ep_trace *t, const struct ep_spans *s,
                  const struct ep_ops *ops, struct ep_error *err)
{
    struct maker m = {.s = s, .ops = ops, .t = t};
    int rc;

    *t = (struct ep_trace){.steps = 0};
    if (!s->n)
        return ep_error_set(err, EP_EFORMAT, "cannot replay: no spans");
    rc = make(&m, err);
    free(m.rank);
    free(m.counts);
    free(m.order);
    free(m.room);
    if (rc < 0)
        ep_trace_free(t);
    return rc;
}

void ep_trace_free(struct ep_trace *t)
{
    free(t->step);
    free(t->base);
    free(t->op);
    free(t->start);
    free(t->dur);
    *t = (struct ep_trace){.steps = 0};
}

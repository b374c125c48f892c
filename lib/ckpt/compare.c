/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - see compare.h; compare_text.c prints.
 *
 * Tensors are cut into chunks, which threads take one after the other; a chunk
 * is read once, decoded in blocks that stay in the cache. Where the bytes of a
 * block are equal only the norm of A is left to compute. The sums are
 * compare_body.h, once for each level of base/simd.h.
 */
#include "config.h"

#include "ckpt/compare.h"

#include "base/mem.h"
#include "base/simd.h"
#include "base/thread.h"
#include "ckpt/arena.h"
#include "ckpt/convert.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* two blocks of double are a third of a first-level cache */
enum { CHUNK = 1 << 20, BLOCK = 1024, LANES = 8, LINE = 64 };

struct sums {
    double diff2, a2; /* sums of squares */
    double max;
    uint64_t max_at, differing, broken, broken_at;
    uint64_t nan_a, inf_a, nan_b, inf_b;
    bool bits_differ;
};

struct chunk {
    size_t tensor;
    uint64_t at, n; /* elements */
    struct sums sums;
};

struct job {
    const struct ep_compare *r;
    struct chunk *chunk;
    size_t n;
    atomic_size_t next;
};

/* Never NaN, so that it can be sorted by. */
static double ratio(double diff, double a)
{
    if (isinf(diff))
        return diff;
    return diff > 0 ? diff / a : 0;
}

/* ==== Sums of a block ==== */

struct lanes {
    double a2[LANES], diff2[LANES], max[LANES];
    int64_t differ[LANES]; /* minus how many */
};

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 4")
#endif

#define CAT2_(a, b) a##_##b
#define CAT2(a, b) CAT2_(a, b)
#define NAME(verb) CAT2(verb, LEVEL)

#define LEVEL portable
#define VECTOR_BYTES 16
#define TARGET
#include "ckpt/compare_body.h"
#undef LEVEL
#undef VECTOR_BYTES
#undef TARGET

#ifdef __x86_64__
#define LEVEL avx2
#define VECTOR_BYTES 32
#define TARGET __attribute__((target("avx2")))
#include "ckpt/compare_body.h"
#undef LEVEL
#undef VECTOR_BYTES
#undef TARGET

#define LEVEL avx512
#define VECTOR_BYTES 64
#define TARGET __attribute__((target("avx512f,avx512dq")))
#include "ckpt/compare_body.h"
#endif

static void add_lanes(struct lanes *to, const double *a, const double *b,
                      size_t n)
{
#ifdef __x86_64__
    switch (ep_simd_level()) {
    case EP_SIMD_AVX512:
        add_lanes_avx512(to, a, b, n);
        return;
    case EP_SIMD_AVX2:
        add_lanes_avx2(to, a, b, n);
        return;
    case EP_SIMD_PORTABLE:
        break;
    }
#endif
    add_lanes_portable(to, a, b, n);
}

/*
 * Add the norm of n values of A, and what those of B differ from them by (b
 * NULL: nothing); at: index of the first. Both arrays have room for zeros
 * behind the last, up to a multiple of LANES. If one is not finite, nothing is
 * added and the result is false; that is seen from the sums, which do not
 * overflow where the values come from a type up to F32.
 */
static bool add_finite(struct sums *s, double *a, double *b, size_t n,
                       uint64_t at)
{
    struct lanes l;
    double max = 0, a2 = 0, diff2 = 0;
    uint64_t differing = 0;
    size_t whole = n;

    for (; whole % LANES; whole++) {
        a[whole] = 0;
        if (b)
            b[whole] = 0;
    }
    add_lanes(&l, a, b, whole);
    for (int k = 0; k < LANES; k++) {
        a2 += l.a2[k];
        diff2 += l.diff2[k];
        differing += (uint64_t)-l.differ[k];
        max = l.max[k] > max ? l.max[k] : max;
    }
    if (!isfinite(a2) || !isfinite(diff2))
        return false;
    s->a2 += a2;
    s->diff2 += diff2;
    s->differing += differing;
    if (b && max > s->max) {
        size_t i = 0;

        while (i < n && fabs(a[i] - b[i]) < max)
            i++;
        s->max = max;
        s->max_at = at + i;
    }
    return true;
}

/* The same with any values, one by one. Squares may overflow. */
static void add_any(struct sums *s, const double *a, const double *b, size_t n,
                    uint64_t at)
{
    for (size_t i = 0; i < n; i++) {
        bool finite_a = isfinite(a[i]), finite_b = isfinite(b[i]);
        double d = fabs(a[i] - b[i]);

        s->nan_a += isnan(a[i]) != 0;
        s->nan_b += isnan(b[i]) != 0;
        s->inf_a += isinf(a[i]) != 0;
        s->inf_b += isinf(b[i]) != 0;
        if (finite_a)
            s->a2 += a[i] * a[i];
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))
            continue;
        s->differing++;
        if (!finite_a || !finite_b) {
            if (s->broken++ == 0)
                s->broken_at = at + i;
            continue;
        }
        s->diff2 += d * d;
        if (d > s->max) {
            s->max = d;
            s->max_at = at + i;
        }
    }
}

/* Elements of two tensors, asked for a block ahead. */
static void ask(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i += LINE)
        __builtin_prefetch(p + n + i);
}

static void compare_values(const struct ep_compared *t, struct chunk *c)
{
    size_t size_a = ep_dtype_bits(t->a->dtype) / 8;
    size_t size_b = ep_dtype_bits(t->b->dtype) / 8;
    const char *pa = (const char *)t->a->data + c->at * size_a;
    const char *pb = (const char *)t->b->data + c->at * size_b;
    bool one_type = t->a->dtype == t->b->dtype;
    struct sums *s = &c->sums;
    double a[BLOCK], b[BLOCK];

    s->bits_differ = !one_type;
    for (uint64_t i = 0; i < c->n; i += BLOCK) {
        size_t n = c->n - i < BLOCK ? (size_t)(c->n - i) : BLOCK;
        bool same;

        ask(pa, n * size_a);
        ask(pb, n * size_b);
        same = one_type && memcmp(pa, pb, n * size_a) == 0;
        ep_decode_f64(t->a->dtype, pa, a, n);
        if (!same) {
            s->bits_differ = true;
            ep_decode_f64(t->b->dtype, pb, b, n);
        }
        if (!add_finite(s, a, same ? NULL : b, n, c->at + i))
            add_any(s, a, same ? a : b, n, c->at + i);
        pa += n * size_a;
        pb += n * size_b;
    }
}

static void compare_bytes(const struct ep_compared *t, struct chunk *c)
{
    unsigned bits = ep_dtype_bits(t->a->dtype);
    size_t size = bits < 8 ? 1 : bits / 8;
    uint64_t at = bits < 8 ? c->at * bits / 8 : c->at; /* as max_at counts */
    uint64_t n = bits < 8 ? c->n * bits / 8 : c->n;
    const char *a = (const char *)t->a->data + at * size;
    const char *b = (const char *)t->b->data + at * size;
    struct sums *s = &c->sums;

    if (memcmp(a, b, n * size) == 0)
        return;
    s->bits_differ = true;
    for (uint64_t i = 0; i < n; i++) {
        if (memcmp(a + i * size, b + i * size, size) == 0)
            continue;
        if (s->differing++ == 0)
            s->max_at = at + i;
    }
}

static void will_need(const struct ep_tensor *t, const struct chunk *c)
{
    unsigned bits = ep_dtype_bits(t->dtype);

    ep_ckpt_will_need(t, c->at * bits / 8, c->n * bits / 8);
}

static void work(int thread, void *ctx)
{
    struct job *job = ctx;
    size_t i;

    (void)thread;
    while ((i = atomic_fetch_add(&job->next, 1)) < job->n) {
        struct chunk *c = &job->chunk[i];
        const struct ep_compared *t = &job->r->tensor[c->tensor];

        will_need(t->a, c);
        will_need(t->b, c);
        if (t->numeric)
            compare_values(t, c);
        else
            compare_bytes(t, c);
    }
}

static bool same_shape(const struct ep_tensor *a, const struct ep_tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (unsigned d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d])
            return false;
    return true;
}

/* Two tensors of one name: kind EQUAL means that they are to be read. */
static struct ep_compared pair(const struct ep_tensor *a,
                               const struct ep_tensor *b)
{
    struct ep_compared t = {.name = a->name, .a = a, .b = b};

    if (!same_shape(a, b)) {
        t.kind = EP_COMPARE_SHAPE;
        return t;
    }
    t.kind = EP_COMPARE_EQUAL;
    t.numeric = ep_dtype_is_real(a->dtype) && ep_dtype_is_real(b->dtype);
    if (a->dtype != b->dtype && !t.numeric)
        t.kind = EP_COMPARE_DTYPE;
    return t;
}

/* Both lists are sorted: r->tensor is their union. */
static void match(struct ep_compare *r)
{
    size_t na = ep_ckpt_count(r->a), nb = ep_ckpt_count(r->b), i = 0, k = 0;

    r->tensor = ep_calloc(na + nb + 1, sizeof *r->tensor);
    while (i < na || k < nb) {
        const struct ep_tensor *a = i < na ? ep_ckpt_tensor(r->a, i) : NULL;
        const struct ep_tensor *b = k < nb ? ep_ckpt_tensor(r->b, k) : NULL;
        struct ep_compared *t = &r->tensor[r->n++];
        int c = a && b ? ep_span_order(a->name, b->name) : 0;

        if (a && b && c == 0)
            *t = pair(a, b);
        else if (a && (!b || c < 0))
            *t = (struct ep_compared){
                .name = a->name, .a = a, .kind = EP_COMPARE_ONLY_A};
        else if (b)
            *t = (struct ep_compared){
                .name = b->name, .b = b, .kind = EP_COMPARE_ONLY_B};
        i += t->a != NULL;
        k += t->b != NULL;
    }
}

static void cut(struct job *job)
{
    const struct ep_compare *r = job->r;
    size_t cap = 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct ep_compared *t = &r->tensor[i];

        if (t->kind != EP_COMPARE_EQUAL)
            continue;
        for (uint64_t at = 0; at < t->a->count; at += CHUNK) {
            uint64_t left = t->a->count - at;

            job->chunk =
                ep_grow(job->chunk, &cap, job->n + 1, sizeof *job->chunk);
            job->chunk[job->n++] = (struct chunk){
                .tensor = i, .at = at, .n = left < CHUNK ? left : CHUNK};
        }
    }
}

/* Add a chunk to what the chunks before it came to. */
static void add_sums(struct sums *to, const struct sums *s)
{
    to->diff2 += s->diff2;
    to->a2 += s->a2;
    if (s->max > to->max) {
        to->max = s->max;
        to->max_at = s->max_at;
    } else if (!to->differing) {
        to->max_at = s->max_at; /* first of bytes that differ */
    }
    to->differing += s->differing;
    if (!to->broken)
        to->broken_at = s->broken_at;
    to->broken += s->broken;
    to->nan_a += s->nan_a;
    to->inf_a += s->inf_a;
    to->nan_b += s->nan_b;
    to->inf_b += s->inf_b;
    to->bits_differ = to->bits_differ || s->bits_differ;
}

static void conclude(struct ep_compared *t, const struct sums *s)
{
    t->diff_norm = sqrt(s->diff2);
    t->a_norm = sqrt(s->a2);
    t->relative = ratio(t->diff_norm, t->a_norm);
    t->max_abs = s->max;
    t->max_at = s->max_at;
    t->differing = s->differing;
    t->broken = s->broken;
    t->broken_at = s->broken_at;
    t->nan_a = s->nan_a;
    t->inf_a = s->inf_a;
    t->nan_b = s->nan_b;
    t->inf_b = s->inf_b;
    if (s->differing)
        t->kind = EP_COMPARE_DIFFER;
    else if (s->bits_differ || t->a->dtype != t->b->dtype)
        t->kind = EP_COMPARE_VALUES;
}

static void reduce(struct ep_compare *r, const struct job *job)
{
    double diff2 = 0, a2 = 0;
    size_t c = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct ep_compared *t = &r->tensor[i];
        struct sums s = {0};

        while (c < job->n && job->chunk[c].tensor == i)
            add_sums(&s, &job->chunk[c++].sums);
        if (t->kind == EP_COMPARE_EQUAL)
            conclude(t, &s);
        diff2 += s.diff2;
        a2 += s.a2;
        r->differing += s.differing;
        r->broken += s.broken;
        r->kinds[t->kind]++;
    }
    r->diff_norm = sqrt(diff2);
    r->a_norm = sqrt(a2);
    r->relative = ratio(r->diff_norm, r->a_norm);
}

int ep_compare_run(struct ep_compare *r, const struct ep_ckpt *a,
                   const struct ep_ckpt *b,
                   const struct ep_compare_options *opt, struct ep_error *err)
{
    struct job job = {.r = r};
    size_t threads = (size_t)opt->threads;
    int rc = 0;

    *r = (struct ep_compare){.a = a, .b = b};
    match(r);
    cut(&job);
    if (opt->threads == 0)
        threads = (size_t)ep_threads_allowed();
    if (threads > job.n)
        threads = job.n ? job.n : 1;
    if (opt->threads < 0 || opt->threads > EP_THREADS_MAX)
        rc = ep_error_set(err, EP_ELIMIT, "%d threads: not in 1..%d",
                          opt->threads, EP_THREADS_MAX);
    else
        rc = ep_threads_run((int)threads, work, &job, err);
    if (rc == 0)
        reduce(r, &job);
    else
        ep_compare_free(r);
    free(job.chunk);
    return rc;
}

void ep_compare_free(struct ep_compare *r)
{
    free(r->tensor);
    *r = (struct ep_compare){0};
}

enum ep_compare_verdict ep_compare_verdict(const struct ep_compare *r)
{
    if (r->kinds[EP_COMPARE_DTYPE] || r->kinds[EP_COMPARE_SHAPE] ||
        r->kinds[EP_COMPARE_ONLY_A] || r->kinds[EP_COMPARE_ONLY_B])
        return EP_VERDICT_INCOMPARABLE;
    if (r->kinds[EP_COMPARE_DIFFER])
        return EP_VERDICT_DIFFER;
    return r->kinds[EP_COMPARE_VALUES] ? EP_VERDICT_VALUES : EP_VERDICT_EQUAL;
}

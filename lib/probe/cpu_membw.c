/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_membw.c - memory bandwidth of the CPU. See probe.h.
 *
 *     copy    dst[i] = src[i]          one memcpy per thread; 2 words moved
 *     triad   a[i] = b[i] + 3 c[i]     3 words moved
 *
 * after J. D. McCalpin's STREAM ("Memory bandwidth and machine balance in
 * current high performance computers", IEEE TCCA Newsletter, Dec. 1995).
 * As there, the read of a line before it is written is not counted, and the
 * threads touch their own slices first, so that the pages are near them.
 * memcpy writes round the cache once a slice is large: that is what programs
 * get, but it makes copy the faster one and lets it change with the C library.
 * NOTE: differs from STREAM: size is the bytes of all arrays together, and
 * the default, 4 times the last-level cache and at least 64 MiB, ends at
 * 512 MiB: virtual machines report the whole socket's cache (300 MiB on a
 * 2-core VM, where the rates no longer changed from 256 MiB on), and pages
 * take time to be touched first (measured 0.2 to 0.6 s per GiB).
 */
#include "config.h"

#include "probe/probe.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 8 /* elements: a cache line; slices consist of whole ones */
#define DEFAULT_MIN (64ULL << 20)
#define DEFAULT_MAX (512ULL << 20)
#define GOLDEN 0x9e3779b97f4a7c15ULL
#define SCALE 3.0

struct membw {
    struct ep_probe_pool *pool;
    bool triad;
    size_t n;       /* elements of one array */
    uint64_t bytes; /* of all */
    void *mem;      /* dst, src or a, b, c: [n] each */
    struct slice {  /* [threads] */
        size_t from, to;
        size_t wrong; /* what the check found: the first one, or to */
    } * slices;
};

/* ==== What a thread does ==== */

static double triad_b(size_t i)
{
    return (double)(i & 0xffff);
}

static double triad_c(size_t i)
{
    return (double)((i ^ (i >> 16)) & 0xffff);
}

size_t ep_probe_copy_check(const uint64_t *v, size_t from, size_t to)
{
    while (from < to && v[from] == from * GOLDEN)
        from++;
    return from;
}

size_t ep_probe_triad_check(const double *v, size_t from, size_t to)
{
    while (from < to && v[from] == triad_b(from) + SCALE * triad_c(from))
        from++;
    return from;
}

/* from and to are multiples of BLOCK, which lets gcc -O2 use vectors. */
static void triad(double *restrict a, const double *restrict b,
                  const double *restrict c, size_t from, size_t to)
{
    for (size_t i = from; i < to; i += BLOCK)
        for (size_t k = 0; k < BLOCK; k++)
            a[i + k] = b[i + k] + SCALE * c[i + k];
}

static void fill(void *ctx, int k)
{
    struct membw *m = ctx;
    uint64_t *dst = m->mem, *src = dst + m->n;
    double *a = m->mem, *b = a + m->n, *c = b + m->n;

    for (size_t i = m->slices[k].from; i < m->slices[k].to; i++)
        if (m->triad) {
            a[i] = NAN;
            b[i] = triad_b(i);
            c[i] = triad_c(i);
        } else {
            dst[i] = ~(i * GOLDEN);
            src[i] = i * GOLDEN;
        }
}

static void move(void *ctx, int k)
{
    struct membw *m = ctx;
    size_t from = m->slices[k].from, to = m->slices[k].to;
    uint64_t *dst = m->mem, *src = dst + m->n;
    double *a = m->mem, *b = a + m->n, *c = b + m->n;

    if (m->triad)
        triad(a, b, c, from, to);
    else
        memcpy(dst + from, src + from, (to - from) * sizeof *dst);
}

static void verify(void *ctx, int k)
{
    struct membw *m = ctx;
    struct slice *s = &m->slices[k];

    s->wrong = m->triad ? ep_probe_triad_check(m->mem, s->from, s->to)
                        : ep_probe_copy_check(m->mem, s->from, s->to);
}

/* ==== The test ==== */

static int membw_run(void *state, struct ep_probe_run *out,
                     struct ep_error *err)
{
    struct membw *m = state;

    (void)err;
    ep_probe_pool_run(m->pool, move, m, out);
    return 0;
}

static int membw_check(void *state, struct ep_error *err)
{
    struct membw *m = state;

    ep_probe_pool_run(m->pool, verify, m, NULL);
    for (int k = 0; k < ep_probe_pool_threads(m->pool); k++)
        if (m->slices[k].wrong < m->slices[k].to)
            return ep_error_set(err, EP_EDOM,
                                "wrong result: element %zu of %zu is not what "
                                "was computed, or its source changed in memory",
                                m->slices[k].wrong, m->n);
    return 0;
}

static void membw_release(void *state)
{
    struct membw *m = state;

    ep_probe_pool_free(m->pool);
    ep_probe_unmap(m->mem, m->bytes);
    free(m->slices);
    free(m);
}

static uint64_t default_size(void)
{
    uint64_t size = 4 * ep_probe_llc_bytes();

    if (size < DEFAULT_MIN)
        return DEFAULT_MIN;
    return size < DEFAULT_MAX ? size : DEFAULT_MAX;
}

static int membw_prepare(const struct ep_probe_test *self,
                         const struct ep_probe_config *cfg, void **state,
                         struct ep_probe_shape *shape, struct ep_error *err)
{
    uint64_t size = cfg->size ? cfg->size : default_size();
    bool is_triad = strcmp(self->test, "membw:triad") == 0;
    uint64_t arrays = is_triad ? 3 : 2;
    size_t threads = (size_t)cfg->threads;
    uint64_t least = EP_PROBE_MEMBW_MIN * (uint64_t)threads;
    struct membw *m;

    if (size < least)
        return ep_error_set(err, EP_ERANGE,
                            "%llu bytes are too few for %d threads: at least "
                            "%llu",
                            (unsigned long long)size, cfg->threads,
                            (unsigned long long)least);
    m = ep_calloc(1, sizeof *m);
    m->triad = is_triad;
    m->n = (size_t)(size / arrays / sizeof(double) / BLOCK * BLOCK);
    m->bytes = arrays * m->n * sizeof(double);
    m->slices = ep_calloc(threads, sizeof *m->slices);
    for (size_t k = 0; k < threads; k++) {
        m->slices[k].from = m->n / BLOCK * k / threads * BLOCK;
        m->slices[k].to = m->n / BLOCK * (k + 1) / threads * BLOCK;
    }
    m->mem = ep_probe_map(m->bytes, err);
    m->pool = m->mem ? ep_probe_pool_new(cfg->threads, err) : NULL;
    if (!m->pool) {
        membw_release(m);
        return err ? err->code : EP_ESYS;
    }
    ep_probe_pool_run(m->pool, fill, m, NULL);
    *state = m;
    *shape = (struct ep_probe_shape){
        .size = size,
        .work = (double)m->bytes,
        .threads = cfg->threads,
    };
    return 0;
}

static const struct ep_probe_test tests[] = {
    {"membw:copy", "membw:copy", NULL, "B/s", "high", membw_prepare, membw_run,
     membw_check, membw_release},
    {"membw:triad", "membw:triad", "f64", "B/s", "high", membw_prepare,
     membw_run, membw_check, membw_release},
};

const struct ep_probe_backend ep_probe_cpu_membw = {
    "cpu",
    tests,
    sizeof tests / sizeof tests[0],
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_merge.c - merges, outer steps and conversions in memory, against
 * memcpy of as many bytes in turn with them.
 *
 * A row: GB/s moved (bytes read and written; 1e9), and the ratio to memcpy,
 * both the median over the rounds, the ratio with its quartiles. One thread,
 * by its CPU time.
 *
 * The merges are the chunks of lsgd-merge on mapped files whose pages are
 * there, up to the buffer that write(2) takes, which stays in the second-level
 * cache; "copied out": and from there to memory. Merges of one input have
 * 800 MB per model; other rows are smaller.
 *
 * Usage: bench_merge [ROUNDS [PART]]: rounds (7), and only rows whose names
 * have PART in them.
 */
#include "config.h"

#include "base/mem.h"
#include "base/simd.h"
#include "ckpt/convert.h"
#include "ckpt/q4.h"
#include "lsgd/merge_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    MODEL = 400000000, /* elements of a model */
    SMALL = 50000000,  /* of it, with many inputs */
    VECTOR = 25000000, /* elements of an optimiser's vector */
    INPUTS = 16,
    ROUNDS_MAX = 101,
};

/* Of the thread's own: other processes do not count. */
static double now(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        abort();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* ==== Memory ==== */

static unsigned char *big, *other; /* [BIG] each, all pages there */
#define BIG ((size_t)MODEL * 2)

static void *touch(size_t n)
{
    void *p = ep_calloc(n, 1);

    memset(p, 1, n);
    return p;
}

/* The yardstick: memcpy, so that so many bytes are read and written. */
static void copy(double moved)
{
    double left = moved / 2;

    while (left > 0) {
        size_t n = left < (double)BIG ? (size_t)left : BIG;

        memcpy(big, other, n);
        left -= (double)BIG;
    }
}

/* Values around 0 of a few powers of two, finite in every type. */
static void fill_f32(float *v, size_t n, uint32_t x)
{
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        v[i] = ((float)(x >> 8) - 0x1p23F) * 0x1p-23F;
    }
}

/* ==== Rows ==== */

struct row {
    const char *name;
    double moved; /* bytes */
    void (*run)(void *ctx);
    void *ctx;
};

static size_t rounds = 7;
static const char *part = "";

static double quantile(const double *v, double q)
{
    return v[(size_t)(q * (double)(rounds - 1) + 0.5)];
}

static void measure(const struct row *r)
{
    double rate[ROUNDS_MAX], ratio[ROUNDS_MAX];
    char name[64];

    (void)snprintf(name, sizeof name, "%s, %s", r->name,
                   ep_simd_name(ep_simd_level()));
    if (!strstr(name, part))
        return;
    r->run(r->ctx); /* pages, and caches */
    for (size_t i = 0; i < rounds; i++) {
        double a = now(), b, c;

        copy(r->moved);
        b = now();
        r->run(r->ctx);
        c = now();
        rate[i] = r->moved / (c - b) / 1e9;
        ratio[i] = (b - a) / (c - b);
    }
    qsort(rate, rounds, sizeof *rate, by_value);
    qsort(ratio, rounds, sizeof *ratio, by_value);
    printf("%-48s %7.2f GB/s %6.2f x memcpy (%.2f to %.2f)\n", name,
           quantile(rate, 0.5), quantile(ratio, 0.5), quantile(ratio, 0.25),
           quantile(ratio, 0.75));
    (void)fflush(stdout);
}

/* The row at the best level, and at those below it. */
static void measure_levels(const struct row *r)
{
    enum ep_simd best = ep_simd_level();

    for (int level = (int)best; level >= 0; level--) {
        ep_simd_limit((enum ep_simd)level);
        measure(r);
    }
    ep_simd_limit(best);
}

/* ==== Merges ==== */

/*
 * A model of MODEL elements of BF16, of which only the first n are not a hole;
 * a file that is nowhere but in memory.
 */
static struct ep_ckpt *make_model(size_t n, uint32_t seed)
{
    enum { PIECE = 1 << 16 };
    float v[PIECE];
    uint16_t bits[PIECE];
    unsigned char le[8];
    char header[128], path[64];
    struct ep_error err;
    struct ep_ckpt *c;
    int fd = memfd_create("bench", MFD_CLOEXEC);
    int len = snprintf(header, sizeof header,
                       "{\"w\":{\"dtype\":\"BF16\",\"shape\":[%d],"
                       "\"data_offsets\":[0,%zu]}}",
                       MODEL, BIG);
    bool bad = fd < 0;

    for (int k = 0; k < 8; k++)
        le[k] = (unsigned char)((unsigned)len >> 8 * k % 32 * (k < 4));
    for (int k = 4; k < 8; k++)
        le[k] = 0;
    bad = bad || write(fd, le, sizeof le) != (ssize_t)sizeof le ||
          write(fd, header, (size_t)len) != len;
    fill_f32(v, PIECE, seed);
    ep_encode_f32(EP_DT_BF16, v, bits, PIECE);
    for (size_t at = 0; at < n && !bad; at += PIECE) {
        size_t bytes = (n - at < PIECE ? n - at : PIECE) * sizeof *bits;

        bad = write(fd, bits, bytes) != (ssize_t)bytes;
    }
    if (bad || ftruncate(fd, (off_t)(8 + (size_t)len + BIG)) != 0) {
        perror("bench_merge: memory file");
        exit(2);
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    c = ep_ckpt_open(path, &err);
    (void)close(fd);
    if (!c) {
        (void)fprintf(stderr, "bench_merge: %s\n", err.msg);
        exit(2);
    }
    return c;
}

struct merge_run {
    struct ep_merge *m;
    struct merge_scratch s;
    size_t n; /* elements of the tensor that are merged */
    unsigned char *out, *m_out, *d_out;
};

static void run_merge(void *ctx)
{
    struct merge_run *r = ctx;
    struct ep_error err;

    for (size_t at = 0; at < r->n; at += MERGE_CHUNK) {
        size_t n = r->n - at < MERGE_CHUNK ? r->n - at : MERGE_CHUNK;
        struct merge_chunk c = {0, at, n};

        if (ep_merge_chunk_real(&r->s, r->m, &c, &err) < 0) {
            (void)fprintf(stderr, "bench_merge: %s\n", err.msg);
            exit(2);
        }
        if (r->out)
            memcpy(r->out + at * 2, r->s.out, n * 2);
        if (r->m_out)
            memcpy(r->m_out + at * 4, r->s.m_out, n * 4);
        if (r->d_out)
            memcpy(r->d_out + at * 4, r->s.d_out, n * 4);
    }
}

/* The first ninputs of the models after the first, merged with that. */
static void bench_merge(const char *name, struct ep_ckpt **model,
                        size_t ninputs, size_t n,
                        const struct ep_merge_config *config, bool levels,
                        bool out)
{
    struct ep_merge_files files = {.base = model[0],
                                   .input =
                                       (const struct ep_ckpt *const *)model + 1,
                                   .ninputs = ninputs};
    struct merge_run r = {.n = n, .out = out ? other : NULL};
    struct row row = {name, (double)n * 2 * (double)(ninputs + 2), run_merge,
                      &r};
    struct ep_merge_lines lines;
    struct ep_error err;

    ep_merge_lines_init(&lines);
    r.m = ep_merge_plan(config, &files, &lines, &err);
    if (!r.m) {
        (void)fprintf(stderr, "bench_merge: %s\n", err.msg);
        exit(2);
    }
    ep_merge_scratch_init(&r.s, r.m);
    if (r.m->use_m) {
        r.m_out = out ? big : NULL;
        row.moved += (double)n * 4;
    }
    if (r.m->use_d) {
        r.d_out = out ? big + BIG / 2 : NULL;
        row.moved += (double)n * 4;
    }
    if (levels)
        measure_levels(&row);
    else
        measure(&row);
    ep_merge_scratch_free(&r.s);
    ep_merge_free(r.m);
    ep_merge_lines_free(&lines);
}

static void bench_merges(void)
{
    struct ep_merge_config mean = {.method = EP_MERGE_MEAN, .dtype = -1};
    struct ep_merge_config mix = {
        .method = EP_MERGE_MIX, .alpha = 0.3, .dtype = -1};
    struct ep_merge_config delayed = {.method = EP_MERGE_DELAYED,
                                      .outer = {0.7, 0.9, 0, 4},
                                      .dtype = -1,
                                      .keep_state = true};
    struct ep_merge_config sgd = {
        .method = EP_MERGE_SGD, .outer = {0.7, 0, 0, 1}, .dtype = -1};
    struct ep_ckpt *model[INPUTS + 1];

    for (uint32_t i = 0; i <= INPUTS; i++)
        model[i] = make_model(i < 2 ? MODEL : SMALL, i);
    bench_merge("mix of two BF16", model, 1, MODEL, &mix, true, false);
    bench_merge("sgd, 1 BF16 input", model, 1, MODEL, &sgd, false, false);
    bench_merge("mean, 1 BF16 input", model, 1, MODEL, &mean, false, false);
    bench_merge("mean, 4 BF16 inputs", model, 4, SMALL, &mean, true, false);
    bench_merge("mean, 16 BF16 inputs", model, 16, SMALL, &mean, false, false);
    bench_merge("delayed-nesterov, 1 BF16 input", model, 1, SMALL, &delayed,
                true, false);
    bench_merge("delayed-nesterov, 4 BF16 inputs", model, 4, SMALL, &delayed,
                false, false);
    bench_merge("delayed-nesterov, 16 BF16 inputs", model, 16, SMALL, &delayed,
                false, false);
    bench_merge("mix of two BF16, copied out", model, 1, MODEL, &mix, false,
                true);
    bench_merge("delayed-nesterov, 1, copied out", model, 1, SMALL, &delayed,
                false, true);
    for (size_t i = 0; i <= INPUTS; i++)
        ep_ckpt_close(model[i]);
}

/* ==== Outer steps ==== */

struct outer_run {
    float *theta, *m, *d;
    const float *g[INPUTS];
    struct ep_outer_step step[INPUTS];
    size_t nsteps;
};

static void run_outer(void *ctx)
{
    struct outer_run *r = ctx;

    ep_outer_apply_f32(r->theta, r->m, r->d, r->g, r->step, r->nsteps, VECTOR);
}

static void bench_outer(void)
{
    /* bytes per element: g is read, the vectors are read and written */
    static const struct {
        const char *name;
        uint64_t n, from; /* buffer, and steps done before */
        size_t nsteps;
        double bytes;
        bool levels;
    } list[] = {
        {"outer step, D only", 16, 0, 1, 4 + 16, true},
        {"outer step, flush", 16, 15, 1, 4 + 24, true},
        {"outer step, N = 1", 1, 0, 1, 4 + 16, false},
        {"outer, 4 steps in one pass, one flush", 4, 0, 4, 16 + 24, true},
        {"outer, 16 steps in one pass, 4 flushes", 4, 0, 16, 64 + 24, false},
    };
    struct outer_run r = {0};
    float *memory = touch((size_t)VECTOR * (INPUTS + 3) * 4);

    fill_f32(memory, (size_t)VECTOR * (INPUTS + 3), 1);
    r.theta = memory;
    r.m = memory + VECTOR;
    r.d = memory + (size_t)2 * VECTOR;
    for (size_t i = 0; i < INPUTS; i++)
        r.g[i] = memory + (i + 3) * VECTOR;
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        struct ep_outer o = {.lr = 1e-3, .beta = 0.9, .n = list[k].n};
        struct row row = {list[k].name, list[k].bytes * VECTOR, run_outer, &r};

        r.nsteps = list[k].nsteps;
        for (size_t i = 0; i < r.nsteps; i++)
            r.step[i] = ep_outer_step_after(&o, list[k].from + i);
        if (list[k].levels)
            measure_levels(&row);
        else
            measure(&row);
    }
    free(memory);
}

/* ==== Conversions ==== */

struct convert_run {
    enum ep_dtype dtype;
    float *v;
    void *bytes;
};

static void run_decode(void *ctx)
{
    struct convert_run *r = ctx;

    ep_decode_f32(r->dtype, r->bytes, r->v, VECTOR);
}

static void run_encode(void *ctx)
{
    struct convert_run *r = ctx;

    ep_encode_f32(r->dtype, r->v, r->bytes, VECTOR);
}

static void run_q4_decode(void *ctx)
{
    struct convert_run *r = ctx;

    ep_q4_decode(r->bytes, r->v, VECTOR);
}

static void run_q4_encode(void *ctx)
{
    struct convert_run *r = ctx;

    ep_q4_encode(r->v, VECTOR, r->bytes);
}

static void bench_convert(void)
{
    static const enum ep_dtype types[] = {EP_DT_BF16,    EP_DT_F16,
                                          EP_DT_F8_E5M2, EP_DT_F8_E4M3,
                                          EP_DT_F32,     EP_DT_F64};
    struct convert_run r = {.v = touch((size_t)VECTOR * 4),
                            .bytes = touch((size_t)VECTOR * 8)};
    double q4 = (double)ep_q4_bytes(VECTOR) + 4.0 * VECTOR;
    struct row row = {"q4 encode", q4, run_q4_encode, &r};
    char name[64];

    fill_f32(r.v, VECTOR, 1);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        double moved = (ep_dtype_bits(types[i]) / 8.0 + 4) * VECTOR;
        bool bf16 = types[i] == EP_DT_BF16;
        struct row encode = {name, moved, run_encode, &r};
        struct row decode = {name, moved, run_decode, &r};

        r.dtype = types[i];
        (void)snprintf(name, sizeof name, "F32 to %s", ep_dtype_name(types[i]));
        (bf16 ? measure_levels : measure)(&encode);
        (void)snprintf(name, sizeof name, "%s to F32", ep_dtype_name(types[i]));
        (bf16 ? measure_levels : measure)(&decode);
    }
    measure(&row);
    row = (struct row){"q4 decode", q4, run_q4_decode, &r};
    measure(&row);
    free(r.v);
    free(r.bytes);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = (size_t)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        part = argv[2];
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "bench_merge: rounds: not in 1..%d\n",
                      ROUNDS_MAX);
        return 2;
    }
    big = touch(BIG);
    other = touch(BIG);
    bench_merges();
    bench_outer();
    bench_convert();
    free(big);
    free(other);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_merge.c - the methods of merge.h against the formulas in double, and
 * what must not change the result: threads, vectors, one pass or several.
 */
#include "config.h"

#include "base/simd.h"
#include "lsgd/merge_text.h"
#include "merge_files.h"
#include "tap.h"

#include <float.h>

enum { INPUTS = 5, N = 3001 };

static double theta[N], x[INPUTS][N];

static bool same_values(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* ==== The reference ==== */

struct reference {
    double lr, beta, c;
    int n, nin;
    const double *weight;
    double alpha;
};

static double mean_of(const struct reference *r, size_t e)
{
    double sum = 0, total = 0;

    for (int i = 0; i < r->nin; i++) {
        sum += r->weight[i] * x[i][e];
        total += r->weight[i];
    }
    return sum / total;
}

/* Algorithm 3 of arXiv 2401.09135, for one element, as it is printed. */
static double delayed(const struct reference *r, size_t e)
{
    double y = theta[e], m = 0, buffer = 0;

    for (int t = 0; t < r->nin; t++) {
        double g = theta[e] - x[t][e];

        buffer += g;
        if ((t + 1) % r->n == 0) {
            m = r->beta * m + buffer / r->n;
            y -= r->lr * ((1 - r->c * r->n + r->c) * r->beta * m + g / r->n);
            buffer = 0;
        } else {
            y -= r->lr * (r->c * r->beta * m + g / r->n);
        }
    }
    return y;
}

static double expected(enum ep_merge_method method, const struct reference *r,
                       size_t e)
{
    double mean = mean_of(r, e), g = theta[e] - mean;

    switch (method) {
    case EP_MERGE_MEAN:
        return mean;
    case EP_MERGE_MIX:
        return (1 - r->alpha) * theta[e] + r->alpha * mean;
    case EP_MERGE_SGD:
        return theta[e] - r->lr * g;
    case EP_MERGE_NESTEROV: /* m = g: the first step */
        return theta[e] - r->lr * (r->beta * g + g);
    case EP_MERGE_DELAYED:
        return delayed(r, e);
    default:
        return g;
    }
}

/* ==== Files ==== */

static char input_name[INPUTS][16];

/* Models, or deltas of a sign, of one type. */
static void make_inputs(enum ep_dtype t, enum ep_merge_kind kind)
{
    static double v[N];
    const char *const models[] = {"evenpace.tokens=10", "evenpace.steps=2",
                                  NULL};
    const char *const deltas[] = {"evenpace.kind=delta",
                                  kind == EP_MERGE_START_END
                                      ? "evenpace.sign=start-end"
                                      : "evenpace.sign=end-start",
                                  NULL};

    for (int i = 0; i < INPUTS; i++) {
        struct file_tensor tensor = {"w", t, N, 0, v, NULL};

        for (size_t e = 0; e < N; e++)
            v[e] = kind == EP_MERGE_MODEL       ? x[i][e]
                   : kind == EP_MERGE_START_END ? theta[e] - x[i][e]
                                                : x[i][e] - theta[e];
        (void)snprintf(input_name[i], sizeof input_name[i], "in%d", i);
        make_file(in_folder(input_name[i]), &tensor, 1,
                  kind == EP_MERGE_MODEL ? models : deltas);
    }
}

static void make_base(enum ep_dtype t)
{
    struct file_tensor tensor = {"w", t, N, 0, theta, NULL};
    const char *const meta[] = {"format=pt", "evenpace.tokens=7", NULL};

    make_file(in_folder("base"), &tensor, 1, meta);
}

static struct job job_of(size_t ninputs)
{
    struct job job = {.out = "out", .base = "base", .ninputs = ninputs};

    for (size_t i = 0; i < ninputs; i++)
        job.input[i] = input_name[i];
    return job;
}

/* ==== Methods ==== */

/* Largest difference from the reference, relative to 1. */
static double deviation(enum ep_merge_method method, const struct reference *r)
{
    static double y[N];
    double worst = 0;

    read_values("out", "w", y, N);
    for (size_t e = 0; e < N; e++) {
        double want = expected(method, r, e);

        worst = fmax(worst, fabs(y[e] - want) / fmax(1, fabs(want)));
    }
    return worst;
}

/*
 * Tolerance: half a unit of the output's type at 1 (at 2 for values that large)
 * and 20 roundings of the arithmetic's.
 */
static void test_method(enum ep_merge_method method, enum ep_dtype t,
                        enum ep_merge_kind kind)
{
    static const double weight[INPUTS] = {1, 2, 0.5, 0, 3};
    static const double one[INPUTS] = {1, 1, 1, 1, 1};
    bool plain = method == EP_MERGE_DELAYED;
    struct reference r = {0.7, 0.9, 0.25, 2, INPUTS, plain ? one : weight, 0.3};
    struct ep_merge_config c = {.method = method,
                                .alpha = r.alpha,
                                .outer = {r.lr, r.beta, r.c, (uint64_t)r.n},
                                .weights = plain ? NULL : weight,
                                .nweights = INPUTS,
                                .dtype = -1};
    struct job job = job_of(INPUTS);
    struct outcome o;
    double eps = t == EP_DT_F64    ? 20 * DBL_EPSILON
                 : t == EP_DT_F32  ? 20 * (double)FLT_EPSILON
                 : t == EP_DT_BF16 ? 1.01 / 128
                                   : 1.01 / 1024;

    merge_files(&o, &c, &job);
    if (!ok(o.rc == 0))
        printf("# %s\n", o.err.msg);
    else if (!near(deviation(method, &r), 0, eps))
        printf("# method %d type %s kind %d\n", (int)method, ep_dtype_name(t),
               (int)kind);
    outcome_free(&o);
}

static void test_methods(void)
{
    static const enum ep_dtype types[] = {EP_DT_F32, EP_DT_F64, EP_DT_BF16,
                                          EP_DT_F16};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        make_base(types[i]);
        for (int kind = EP_MERGE_MODEL; kind <= EP_MERGE_END_START; kind++) {
            /* deltas in F32: a BF16 base with exact differences */
            make_inputs(kind == EP_MERGE_MODEL ? types[i] : EP_DT_F32,
                        (enum ep_merge_kind)kind);
            for (int m = EP_MERGE_MEAN; m <= EP_MERGE_DELTA; m++)
                test_method((enum ep_merge_method)m, types[i],
                            (enum ep_merge_kind)kind);
        }
    }
}

/* The norms are those of theta - x_i, whatever the inputs hold. */
static void test_norms(void)
{
    struct ep_merge_config c = {.dtype = -1};
    struct job job = job_of(INPUTS);

    make_base(EP_DT_F32);
    for (int kind = EP_MERGE_MODEL; kind <= EP_MERGE_END_START; kind++) {
        struct outcome o;

        make_inputs(EP_DT_F32, (enum ep_merge_kind)kind);
        merge_files(&o, &c, &job);
        ok(o.rc == 0);
        for (int i = 0; i < INPUTS && o.rc == 0; i++) {
            double sum = 0;

            for (size_t e = 0; e < N; e++)
                sum += (theta[e] - x[i][e]) * (theta[e] - x[i][e]);
            near(o.report.norm[i], sqrt(sum), 1e-12 * sqrt(sum));
        }
        outcome_free(&o);
    }
}

/* A mean of one input, and of equal ones, is that input; N = 1, beta = 0, lr =
   1 takes the whole step. */
static void test_fixed_points(void)
{
    static double y[N];
    static const double third[] = {0.1, 0.1, 0.1};
    struct ep_merge_config c = {.dtype = -1,
                                .outer = {.lr = 1, .n = 1},
                                .weights = third,
                                .nweights = 3};
    struct job job = job_of(3);
    struct outcome o;

    make_base(EP_DT_F32);
    make_inputs(EP_DT_F32, EP_MERGE_MODEL);
    job.input[1] = job.input[2] = job.input[0];
    for (int m = 0; m < 2; m++) {
        c.method = m ? EP_MERGE_SGD : EP_MERGE_MEAN;
        merge_files(&o, &c, &job);
        ok(o.rc == 0);
        outcome_free(&o);
        read_values("out", "w", y, N);
        ok(same_values(y, x[0], N));
    }
}

/* Two BF16 models: (a + b) / 2 is exact in double, so the output must be the
   one BF16 next to it, ties to even. */
static void test_rounding(void)
{
    static double y[N];
    struct ep_merge_config c = {.dtype = -1};
    struct job job = job_of(2);
    struct outcome o;
    size_t wrong = 0;

    make_base(EP_DT_BF16);
    make_inputs(EP_DT_BF16, EP_MERGE_MODEL);
    merge_files(&o, &c, &job);
    ok(o.rc == 0);
    outcome_free(&o);
    read_values("out", "w", y, N);
    for (size_t e = 0; e < N; e++) {
        double want = (x[0][e] + x[1][e]) / 2, unit;
        int exponent;

        (void)frexp(want, &exponent);
        unit = ldexp(1, exponent - 8);
        wrong += y[e] != nearbyint(want / unit) * unit;
    }
    ok(wrong == 0);
}

/* ==== One pass or several, threads, vectors ==== */

static const struct ep_merge_config three_of_a_kind = {
    .method = EP_MERGE_DELAYED,
    .outer = {.lr = 0.4, .beta = 0.9, .c = 0.1, .n = 3},
    .dtype = -1};

static void test_one_by_one(enum ep_dtype t)
{
    struct job all = job_of(INPUTS), one = {.ninputs = 1};
    const char *const outs[] = {"p0", "p1"}, *const states[] = {"s0", "s1"};
    struct outcome o;

    make_base(t);
    make_inputs(t, EP_MERGE_START_END);
    all.state_out = "all.state";
    merge_files(&o, &three_of_a_kind, &all);
    ok(o.rc == 0);
    outcome_free(&o);
    for (int i = 0; i < INPUTS; i++) {
        one.base = i ? outs[(i - 1) % 2] : "base";
        one.state_in = i ? states[(i - 1) % 2] : NULL;
        one.out = outs[i % 2];
        one.state_out = states[i % 2];
        one.input[0] = input_name[i];
        merge_files(&o, &three_of_a_kind, &one);
        if (!ok(o.rc == 0))
            printf("# %s\n# %s", o.err.msg, o.lines.text.ptr);
        outcome_free(&o);
    }
    ok(same_file("out", outs[(INPUTS - 1) % 2]));
    ok(same_file("all.state", states[(INPUTS - 1) % 2]));
}

/* More steps than the kernel takes at once, more inputs than usual. */
static void test_many(void)
{
    static double y[N];
    struct ep_merge_config c = three_of_a_kind;
    struct job job = job_of(0);
    struct outcome o;

    make_base(EP_DT_F32);
    make_inputs(EP_DT_F32, EP_MERGE_MODEL);
    for (size_t i = 0; i < 300; i++)
        job.input[i] = input_name[i % 2 ? 0 : 1];
    job.ninputs = 300;
    c.method = EP_MERGE_MEAN;
    merge_files(&o, &c, &job);
    ok(o.rc == 0);
    outcome_free(&o);
    read_values("out", "w", y, N);
    for (size_t e = 0; e < N; e++)
        y[e] -= (x[0][e] + x[1][e]) / 2;
    for (size_t e = 1; e < N; e++)
        y[0] = fmax(fabs(y[0]), fabs(y[e]));
    near(y[0], 0, (double)FLT_EPSILON);
    /* 1, 1 + 8, 300 steps of lr 0: nothing moves but t */
    c.method = EP_MERGE_DELAYED;
    c.outer.lr = DBL_MIN;
    merge_files(&o, &c, &job);
    ok(o.rc == 0);
    outcome_free(&o);
    read_values("out", "w", y, N);
    ok(same_values(y, theta, N));
}

/* A larger model, of several chunks and many small tensors. */
enum { BIG = 200003 };

static void make_big(const char *name, uint64_t seed)
{
    static double v[BIG];
    static int64_t whole[BIG];
    struct file_tensor t[] = {
        {"a", EP_DT_BF16, BIG, 0, v, NULL},
        {"b", EP_DT_F32, 7, 0, v, NULL},
        {"c", EP_DT_F16, 331, 601, v, NULL},
        {"d", EP_DT_I64, BIG, 0, NULL, whole},
        {"e", EP_DT_F64, 65537, 0, v, NULL},
        {"f", EP_DT_F8_E5M2, 65536, 0, v, NULL},
        {"g", EP_DT_F32, 0, 0, v, NULL},
    };

    for (size_t i = 0; i < BIG; i++) {
        v[i] = coarse(&seed);
        whole[i] = (int64_t)i;
    }
    make_file(in_folder(name), t, sizeof t / sizeof t[0], NULL);
}

static void test_threads_and_vectors(void)
{
    struct ep_merge_config c = three_of_a_kind;
    struct job job = {.base = "m0",
                      .input = {"m1", "m2", "m3"},
                      .ninputs = 3,
                      .out = "t1",
                      .state_out = "t1.state"};
    struct outcome first, o;

    for (int i = 0; i < 4; i++)
        make_big((const char *[]){"m0", "m1", "m2", "m3"}[i], 11 + (uint64_t)i);
    for (int m = EP_MERGE_MEAN; m <= EP_MERGE_DELTA; m++) {
        c.method = (enum ep_merge_method)m;
        job.out = "t1";
        job.state_out = "t1.state";
        job.threads = 1;
        ep_simd_limit(EP_SIMD_PORTABLE);
        merge_files(&first, &c, &job);
        ok(first.rc == 0);
        ep_simd_limit(EP_SIMD_AVX512);
        job.out = "t4";
        job.state_out = "t4.state";
        job.threads = 4;
        merge_files(&o, &c, &job);
        ok(o.rc == 0);
        ok(same_file("t1", "t4"));
        ok(same_file("t1.state", "t4.state"));
        ok(o.rc == 0 && first.rc == 0 &&
           same_values(o.report.norm, first.report.norm, 3));
        ok(o.lines.n == 0); /* the integers are the same everywhere */
        outcome_free(&first);
        outcome_free(&o);
    }
}

/* What is said of tensors that are not everywhere. */
static void test_totals(void)
{
    static const double one[] = {1};
    static const struct ep_merge_settings none = {.method = -1};
    struct file_tensor part[] = {
        {"a", EP_DT_F32, 1, 0, one, NULL},
        {"b", EP_DT_F32, 1, 0, one, NULL},
        {"i", EP_DT_I64, 1, 0, NULL, one},
        {"x", EP_DT_F32, 1, 0, one, NULL},
    };
    struct ep_merge_config c = {.dtype = -1, .allow_missing = true};
    struct ep_ckpt *base, *in[2];
    struct ep_merge_files files = {.ninputs = 2};
    struct ep_merge_lines lines;
    struct ep_merge_totals t;
    struct ep_merge *m;
    struct ep_error err;

    make_file(in_folder("p0"), part, 3, NULL);
    make_file(in_folder("p1"), part, 1, NULL);
    make_file(in_folder("p2"), part + 3, 1, NULL);
    base = must_open(in_folder("p0"));
    in[0] = must_open(in_folder("p1"));
    in[1] = must_open(in_folder("p2"));
    files.base = base;
    files.input = (const struct ep_ckpt *const *)in;
    ep_merge_lines_init(&lines);
    m = ep_merge_plan(&c, &files, &lines, &err);
    if (ok(m != NULL)) {
        t = ep_merge_totals(m);
        ok(t.fewer == 1 && t.none == 1 && t.extra == 1 && t.zeroed == 0);
        ep_merge_text_remarks(m, &none, &lines);
        ok(lines.n == 1 &&
           strcmp(lines.text.ptr,
                  "not all tensors were there: 1 from fewer "
                  "inputs, 1 the base's alone, 1 left out\n") == 0);
    }
    ep_merge_free(m);
    ep_merge_lines_free(&lines);
    ep_ckpt_close(base);
    ep_ckpt_close(in[0]);
    ep_ckpt_close(in[1]);
}

int main(void)
{
    uint64_t seed = 1;

    printf("# seed %llu\n", (unsigned long long)seed);
    for (size_t e = 0; e < N; e++)
        theta[e] = coarse(&seed);
    for (int i = 0; i < INPUTS; i++)
        for (size_t e = 0; e < N; e++)
            x[i][e] = coarse(&seed);
    begin_folder();
    test_methods();
    test_norms();
    test_fixed_points();
    test_rounding();
    test_one_by_one(EP_DT_F32);
    test_one_by_one(EP_DT_F64);
    test_many();
    test_threads_and_vectors();
    test_totals();
    end_folder();
    return tap_done();
}

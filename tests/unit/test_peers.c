/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_peers.c - the comparison against a naive O(n^2) computation that
 * leaves each value out and sorts, and cases worked by hand.
 */
#include "config.h"

#include "detect/peers.h"

#include "series.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEED 20260103
#define N_MAX 60

static int peers(const double *x, const double *noise, size_t n,
                 enum ep_peers_better better, struct ep_peer *out,
                 struct ep_peers_summary *sum)
{
    struct ep_peers_input in = {x, noise, n, better};

    return ep_peers_compare(&in, NULL, out, sum, NULL);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double sorted_median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* factor, z and support of value i, by the definitions in peers.h. */
static struct ep_peer naive(const double *x, const double *noise, size_t n,
                            size_t i, int high, int *edge)
{
    double v[N_MAX] = {0};
    double y = high ? -log(x[i]) : log(x[i]);
    struct ep_peer p = {0};
    size_t m = 0;
    double med;
    double sigma;
    double close;

    for (size_t j = 0; j < n; j++)
        if (j != i)
            v[m++] = high ? -log(x[j]) : log(x[j]);
    med = sorted_median(v, m);
    for (size_t j = 0; j < m; j++)
        v[j] = fabs(v[j] - med);
    sigma = fmax(sorted_median(v, m) / 0.6744897501960817, 0.01);
    close = fmin(3.5 * sigma, log(1.1));
    for (size_t j = 0; j < m; j++) {
        p.support += v[j] <= close;
        *edge |= fabs(v[j] - close) < 1e-12; /* either answer will do */
    }
    p.factor = exp(y - med);
    p.z = (y - med) / sqrt(sigma * sigma + noise[i] * noise[i]);
    return p;
}

static void check_naive(void)
{
    struct rng rng = {SEED};
    double x[N_MAX];
    double noise[N_MAX];
    struct ep_peer out[N_MAX];
    struct ep_peers_summary sum;
    double worst = 0;
    int support = 1;
    int failed = 0;

    for (int t = 0; t < 3000; t++) {
        size_t n = 2 + (size_t)(rng_uniform(&rng) * (N_MAX - 2));
        int high = t % 2;

        for (size_t i = 0; i < n; i++) {
            x[i] = exp(0.05 * rng_normal(&rng));
            if (t % 3 == 0) /* ties */
                x[i] = round(x[i] * 20) / 20;
            if (rng_uniform(&rng) < 0.1)
                x[i] *= 2;
            noise[i] = t % 5 ? 0 : 0.1 * rng_uniform(&rng);
        }
        failed |=
            peers(x, noise, n, high ? EP_PEERS_HIGH : EP_PEERS_LOW, out, &sum);
        for (size_t i = 0; i < n; i++) {
            int edge = 0;
            struct ep_peer p = naive(x, noise, n, i, high, &edge);

            worst = fmax(worst, fabs(p.factor - out[i].factor));
            worst = fmax(worst, fabs(p.z - out[i].z) / (1 + fabs(p.z)));
            support &= edge || p.support == out[i].support;
        }
    }
    printf("# 3000 groups, seed %d, largest difference %.3g\n", SEED, worst);
    ok(!failed);
    near(worst, 0, 1e-11);
    ok(support);
}

struct expect {
    const char *name;
    size_t n;
    double x[8];
    enum ep_peers_better better;
    unsigned slow; /* bit i: value i */
    enum ep_peers_doubt doubt;
    double p_max; /* of the slow ones */
};

static const struct expect cases[] = {
    {"the GEMM case of FALCON",
     4,
     {65.5, 515.5, 65.7, 65.7},
     EP_PEERS_LOW,
     2,
     EP_PEERS_SURE,
     0.81},
    {"0.2-0.6 % is no straggler",
     4,
     {1, 1.002, 1.006, 1.004},
     EP_PEERS_LOW,
     0,
     EP_PEERS_SURE,
     0},
    {"9 % is below the rule",
     4,
     {1, 1, 1.09, 1},
     EP_PEERS_LOW,
     0,
     EP_PEERS_SURE,
     0},
    {"two, equal", 2, {3, 3}, EP_PEERS_LOW, 0, EP_PEERS_TWO, 0},
    {"two, one slow", 2, {1, 1.5}, EP_PEERS_LOW, 2, EP_PEERS_TWO, 0.6667},
    {"three, one slow",
     3,
     {100, 101, 50},
     EP_PEERS_HIGH,
     4,
     EP_PEERS_THREE,
     0.75},
    {"three, one fast", 3, {1, 2, 2}, EP_PEERS_LOW, 0, EP_PEERS_SPLIT, 0},
    {"three, all differ", 3, {1, 1.5, 2.2}, EP_PEERS_LOW, 0, EP_PEERS_THREE, 0},
    {"all equal", 5, {1, 1, 1, 1, 1}, EP_PEERS_LOW, 0, EP_PEERS_SURE, 0},
    {"MAD 0, one slow",
     5,
     {1, 1, 1, 1, 1.2},
     EP_PEERS_LOW,
     16,
     EP_PEERS_SURE,
     0.84},
    {"two of five",
     5,
     {1, 2, 1.01, 2, 1},
     EP_PEERS_LOW,
     10,
     EP_PEERS_SURE,
     0.81},
    {"three of eight",
     8,
     {9, 9, 9, 4, 5, 4.5, 9.1, 9.05},
     EP_PEERS_HIGH,
     8 + 16 + 32,
     EP_PEERS_SURE,
     0.86},
    {"half", 4, {1, 1, 2, 2}, EP_PEERS_LOW, 12, EP_PEERS_SPLIT, 0.5},
    {"most",
     8,
     {1, 1.01, 2, 2, 2, 2, 2, 2.02},
     EP_PEERS_LOW,
     0,
     EP_PEERS_SPLIT,
     0},
    {"one fast of eight",
     8,
     {1, 2, 2, 2, 2, 2, 2, 2.02},
     EP_PEERS_LOW,
     0,
     EP_PEERS_SURE,
     0},
    {"noisy group hides 15 %",
     6,
     {1, 1.3, 0.8, 1.15, 0.9, 1.1},
     EP_PEERS_LOW,
     0,
     EP_PEERS_SURE,
     0},
    {"alone", 1, {1}, EP_PEERS_LOW, 0, EP_PEERS_ALONE, 0},
};

static void check_cases(void)
{
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct expect *e = &cases[c];
        struct ep_peer out[8];
        struct ep_peers_summary sum;
        unsigned slow = 0;
        double p = 0;

        printf("# %s\n", e->name);
        ok(peers(e->x, NULL, e->n, e->better, out, &sum) == 0);
        for (size_t i = 0; i < e->n; i++) {
            slow |= (unsigned)out[i].slow << i;
            if (out[i].slow)
                p = fmax(p, out[i].p);
        }
        ok(slow == e->slow && sum.n_slow == (size_t)__builtin_popcount(slow));
        ok(sum.doubt == e->doubt);
        ok(p <= e->p_max && (slow == 0 || p >= e->p_max - 0.05));
    }
}

static void check_details(void)
{
    double x[] = {65.5, 515.5, 65.7, 65.7};
    double noise[] = {0, 2, 0, 0};
    struct ep_peer out[4];
    struct ep_peers_summary sum;

    ok(peers(x, NULL, 4, EP_PEERS_LOW, out, &sum) == 0);
    near(out[1].factor, 515.5 / 65.7, 1e-12);
    near(out[1].z, log(515.5 / 65.7) / 0.01, 1e-9);
    near(out[1].p, 4.0 / 5, 1e-12);
    ok(out[1].support == 3);
    /* A value that is itself uncertain by 200 % proves nothing. */
    ok(peers(x, noise, 4, EP_PEERS_LOW, out, &sum) == 0);
    ok(!out[1].slow && out[1].z < 2);
    ok(strcmp(ep_peers_doubt_text(EP_PEERS_SURE), "") == 0);
    ok(strstr(ep_peers_doubt_text(EP_PEERS_TWO), "odd") != NULL);
    ok(peers(NULL, NULL, 0, EP_PEERS_LOW, NULL, &sum) == 0);
}

static void check_refused(void)
{
    static const double bad[] = {NAN, INFINITY, 0, -1};
    static const struct ep_peers_config configs[] = {
        {0.1, NAN, 0.01}, {0.1, 0, 0.01}, {0, 3, 0.01},
        {11, 3, 0.01},    {0.1, 3, 0},    {0.1, 3, NAN},
    };
    double x[] = {1, 1, 1};
    double noise[] = {0, NAN, 0};
    struct ep_peers_input in = {x, NULL, 3, EP_PEERS_LOW};
    struct ep_peer out[3] = {{.factor = 42}};
    struct ep_peers_summary sum;
    struct ep_error err;

    for (int i = 0; i < 4; i++) {
        x[1] = bad[i];
        ok(ep_peers_compare(&in, NULL, out, &sum, &err) == EP_EDOM);
        ok(strstr(err.msg, "value 1") != NULL && out[0].factor == 42);
    }
    x[1] = 1;
    for (int i = 0; i < 6; i++)
        ok(ep_peers_compare(&in, &configs[i], out, &sum, &err) == EP_EDOM);
    in.noise = noise;
    ok(ep_peers_compare(&in, NULL, out, &sum, &err) == EP_EDOM);
    noise[1] = -1;
    ok(ep_peers_compare(&in, NULL, out, &sum, &err) == EP_EDOM);
}

/* 100,000 ranks, 1 % noise, 100 stragglers of 1.2 x: all found, no other. */
static void check_large(void)
{
    size_t n = 100000;
    double *x = malloc(n * sizeof *x);
    struct ep_peer *out = malloc(n * sizeof *out);
    struct ep_peers_summary sum;
    struct rng rng = {SEED};
    size_t wrong = 0;
    clock_t start;

    for (size_t i = 0; i < n; i++)
        x[i] = exp(0.01 * rng_normal(&rng)) * (i % 1000 == 7 ? 1.2 : 1);
    start = clock();
    ok(peers(x, NULL, n, EP_PEERS_LOW, out, &sum) == 0);
    printf("# 100,000 values in %.1f ms\n",
           1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
    for (size_t i = 0; i < n; i++)
        wrong += out[i].slow != (i % 1000 == 7);
    ok(wrong == 0);
    ok(sum.n_slow == 100 && !sum.split);
    free(x);
    free(out);
}

int main(void)
{
    check_naive();
    check_cases();
    check_details();
    check_refused();
    check_large();
    return tap_done();
}

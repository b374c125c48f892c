/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_shares.c - time of ep_shares_solve against plain greedy on a binary
 * heap, which places one block after the other in O(K log D), in the same
 * run.
 *
 * Both start from the same times: 1 in 50 groups 1.5 times slower, the others
 * within 2 %. Plain greedy knows nothing of current shares, so it does less:
 * it finds the makespan only. The two makespans must be equal.
 */
#include "config.h"

#include "base/mem.h"
#include "plan/shares.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct node {
    double f;
    size_t group;
};

static double now_us(void)
{
    struct timespec ts;

    if (clock_gettime(CLOCK_MONOTONIC, &ts))
        abort();
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

static void sink(struct node *h, size_t n, size_t at)
{
    struct node o = h[at];

    for (size_t c; (c = 2 * at + 1) < n; at = c) {
        if (c + 1 < n && h[c + 1].f < h[c].f)
            c++;
        if (h[c].f >= o.f)
            break;
        h[at] = h[c];
    }
    h[at] = o;
}

static double time_of(const struct ep_shares_problem *p, size_t i, int64_t k)
{
    return ((double)(k * p->block) + (p->pp - 1)) * p->t[i];
}

/* The makespan of plain greedy. */
static double greedy(const struct ep_shares_problem *p)
{
    size_t n = p->ngroups;
    struct node *h = ep_calloc(n, sizeof *h);
    int64_t *k = ep_calloc(n, sizeof *k);
    double worst = 0;

    for (size_t i = 0; i < n; i++) {
        k[i] = 1;
        worst = fmax(worst, time_of(p, i, 1));
        h[i] = (struct node){time_of(p, i, 2), i};
    }
    for (size_t i = n / 2; i-- > 0;)
        sink(h, n, i);
    for (int64_t left = p->microbatches / p->block - (int64_t)n; left > 0;
         left--) {
        size_t i = h[0].group;

        worst = fmax(worst, h[0].f);
        k[i]++;
        h[0].f = time_of(p, i, k[i] + 1);
        sink(h, n, 0);
    }
    free(h);
    free(k);
    return worst;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Prints median and MAD of v [n]; returns the median. v is overwritten. */
static double print_stats(const char *name, double *v, size_t n)
{
    double m = median(v, n), mad;

    for (size_t i = 0; i < n; i++)
        v[i] = fabs(v[i] - m);
    mad = median(v, n);
    printf("%-38s %12.1f us/op  MAD %9.1f", name, m, mad);
    return m;
}

static int compare(struct ep_shares_problem p, size_t rounds)
{
    int64_t *share = ep_calloc(p.ngroups, sizeof *share);
    double *ours = ep_calloc(rounds, sizeof *ours);
    double *plain = ep_calloc(rounds, sizeof *plain);
    struct ep_shares_result r = {0};
    double worst = 0, m;
    char name[64];

    for (size_t i = 0; i < rounds; i++) {
        double start = now_us();

        if (ep_shares_solve(&p, share, &r, NULL))
            abort();
        ours[i] = now_us() - start;
        start = now_us();
        worst = greedy(&p);
        plain[i] = now_us() - start;
    }
    (void)snprintf(name, sizeof name, "shares %zu x %" PRId64 " block %d",
                   p.ngroups, p.microbatches, p.block);
    m = print_stats(name, ours, rounds);
    printf("  bound %.1f %%\n", 100 * (r.after / r.bound - 1));
    m = print_stats("  plain greedy heap", plain, rounds) / m;
    printf("  ratio %.2f\n", m);
    free(share);
    free(ours);
    free(plain);
    if (worst != r.after) {
        (void)fprintf(stderr, "bench_shares: makespans differ: %.17g, %.17g\n",
                      r.after, worst);
        return 1;
    }
    return 0;
}

int main(void)
{
    enum { D = 100000 };
    double *t = ep_calloc(D, sizeof *t);
    uint32_t x = 2463534242; /* xorshift32 (Marsaglia 2003) */
    int bad = 0;

    for (size_t i = 0; i < D; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        t[i] = 0.1 * (1 + 0.02 * x / UINT32_MAX) * (x % 50 ? 1 : 1.5);
    }
    bad |= compare((struct ep_shares_problem){512, t, 8192, 8, 1, NULL}, 501);
    bad |= compare((struct ep_shares_problem){512, t, 8192, 8, 8, NULL}, 501);
    bad |= compare((struct ep_shares_problem){D, t, 10000000, 8, 1, NULL}, 5);
    free(t);
    return bad;
}

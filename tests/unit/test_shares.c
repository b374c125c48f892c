/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shares.c - micro-batch shares against brute force, an optimality
 * certificate, published cases and hand-worked ones.
 *
 * Small random problems are solved again by trying every composition of M.
 * Larger ones are checked with a certificate: with the double just below the
 * makespan of the plan as limit, the groups cannot hold M. Their capacities
 * are found by bisection, not by division as in the library.
 */
#include "config.h"

#include "base/mem.h"
#include "plan/shares.h"

#include "tap.h"

#include <float.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEED UINT64_C(20241012)
#define MAX_GROUPS 64

static uint64_t rng_state = SEED;

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t next_u64(void)
{
    uint64_t z = (rng_state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int64_t below(int64_t n)
{
    return (int64_t)(next_u64() % (uint64_t)n);
}

static double uniform(void)
{
    return (double)(next_u64() >> 11) * 0x1p-53;
}

struct brute {
    const struct ep_shares_problem *p;
    int64_t now[MAX_GROUPS];
    int64_t k[MAX_GROUPS];
    double makespan;          /* least of all plans */
    int64_t moved;            /* least of the plans of that makespan */
    double variance;          /* least of all plans, of the group times */
    double variance_makespan; /* best makespan of the plans of that one */
};

static void brute_visit(struct brute *b)
{
    size_t n = b->p->ngroups;
    double worst = 0, mean = 0, var = 0, f[MAX_GROUPS];
    int64_t moved = 0;

    for (size_t i = 0; i < n; i++) {
        f[i] = (double)(b->k[i] + b->p->pp - 1) * b->p->t[i];
        worst = f[i] > worst ? f[i] : worst;
        mean += f[i] / (double)n;
        if (b->now[i] > b->k[i])
            moved += b->now[i] - b->k[i];
    }
    for (size_t i = 0; i < n; i++)
        var += (f[i] - mean) * (f[i] - mean);
    if (worst < b->makespan || (worst == b->makespan && moved < b->moved))
        b->moved = moved;
    if (worst < b->makespan)
        b->makespan = worst;
    if (var < b->variance ||
        (var == b->variance && worst < b->variance_makespan)) {
        b->variance = var;
        b->variance_makespan = worst;
    }
}

/* The next composition of M; the last group has what the others leave. */
static bool brute_next(struct brute *b)
{
    int64_t block = b->p->block, *last = &b->k[b->p->ngroups - 1];

    for (int64_t *k = b->k; k < last; k++) {
        if (*last > block) {
            *k += block;
            *last -= block;
            return true;
        }
        *last += *k - block;
        *k = block;
    }
    return false;
}

static void brute_solve(struct brute *b, const struct ep_shares_problem *p)
{
    b->p = p;
    b->makespan = b->variance = b->variance_makespan = INFINITY;
    b->moved = INT64_MAX;
    if (p->now)
        memcpy(b->now, p->now, p->ngroups * sizeof *p->now);
    else if (ep_shares_even(p, b->now, NULL))
        abort();
    for (size_t i = 0; i < p->ngroups; i++)
        b->k[i] = p->block;
    b->k[p->ngroups - 1] += p->microbatches - (int64_t)p->ngroups * p->block;
    do
        brute_visit(b);
    while (brute_next(b));
}

struct random_problem {
    struct ep_shares_problem p;
    double t[MAX_GROUPS];
    int64_t now[MAX_GROUPS];
};

/* Times of four kinds; group times of the first differ by a last bit or two,
 * those of the second collide only after rounding (3 * 0.1 is not 0.3). */
static double random_time(int64_t kind, double base)
{
    static const double few[] = {0.1, 0.2, 0.3, 0.6, 0.7, 1, 2, 3};

    if (kind == 0)
        return base / (double)(1 + below(9));
    if (kind == 1)
        return few[below(8)];
    return kind == 2 ? 1 + uniform() : pow(10, 12 * uniform() - 6);
}

/* At most so many groups and micro-batches. */
static void random_problem(struct random_problem *r, int64_t groups,
                           int64_t most)
{
    int pp = 1 + (int)below(4);
    int block = below(2) ? pp : 1;
    int64_t n = 1 + below(groups < most / block ? groups : most / block);
    int64_t spare = below(most / block - n + 1), kind = below(4);
    double base = 1 + uniform();

    r->p = (struct ep_shares_problem){
        .ngroups = (size_t)n,
        .t = r->t,
        .microbatches = (n + spare) * block,
        .pp = pp,
        .block = block,
        .now = below(4) ? r->now : NULL,
    };
    for (int64_t i = 0; i < n; i++) {
        r->t[i] = random_time(kind, base);
        r->now[i] = block;
    }
    while (spare-- > 0)
        r->now[below(n)] += block;
}

/* The shares may be planned, and the result is that of the shares. */
static bool consistent(const struct ep_shares_problem *p, const int64_t *now,
                       const int64_t *share, const struct ep_shares_result *r)
{
    int64_t moved = 0, sum = 0;
    size_t changed = 0;

    for (size_t i = 0; i < p->ngroups; i++) {
        if (share[i] < 1 || share[i] % p->block != 0)
            return false;
        sum += share[i];
        moved += now[i] > share[i] ? now[i] - share[i] : 0;
        changed += now[i] != share[i];
    }
    return sum == p->microbatches && moved == r->moved &&
           changed == r->changed &&
           r->after == ep_shares_makespan(p->ngroups, p->t, p->pp, share) &&
           r->before == ep_shares_makespan(p->ngroups, p->t, p->pp, now) &&
           r->bound <= r->after && r->after <= r->before && r->bound > 0;
}

/* Count a failure and show the first of its kind. */
static void count(int *bad, bool failed, const struct ep_shares_problem *p,
                  const char *what)
{
    if (!failed || (*bad)++ > 0)
        return;
    printf("# %s: D %zu M %" PRId64 " pp %d block %d t", what, p->ngroups,
           p->microbatches, p->pp, p->block);
    for (size_t i = 0; i < p->ngroups && i < 8; i++)
        printf(" %.17g", p->t[i]);
    printf("\n");
}

/* Least makespan with real shares >= block, by bisection. */
static double real_makespan(const struct ep_shares_problem *p)
{
    double lo = 1e-9, hi = 1e9;

    for (int step = 0; step < 100; step++) {
        double mid = sqrt(lo * hi), room = 0, least = INFINITY;

        for (size_t i = 0; i < p->ngroups; i++) {
            double m = mid / p->t[i] - (p->pp - 1);

            room += m;
            least = fmin(least, m);
        }
        if (room >= (double)p->microbatches && least >= p->block)
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

static void test_brute_force(void)
{
    enum { CASES = 20000 };
    int bad_makespan = 0, bad_moved = 0, bad_result = 0, bad_bound = 0;
    int moving = 0;

    for (int c = 0; c < CASES; c++) {
        struct random_problem r;
        struct ep_shares_result res;
        struct brute b;
        int64_t share[MAX_GROUPS];

        random_problem(&r, 5, 12);
        brute_solve(&b, &r.p);
        if (ep_shares_solve(&r.p, share, &res, NULL))
            abort();
        count(&bad_makespan, res.after != b.makespan, &r.p, "makespan");
        count(&bad_moved, res.moved != b.moved, &r.p, "movement");
        count(&bad_result, !consistent(&r.p, b.now, share, &res), &r.p,
              "result");
        count(&bad_bound, !(fabs(res.bound / real_makespan(&r.p) - 1) < 1e-9),
              &r.p, "bound");
        moving += res.moved > 0;
    }
    ok(bad_makespan == 0);
    ok(bad_moved == 0);
    ok(bad_result == 0);
    ok(bad_bound == 0);
    ok(moving > CASES / 10 && moving < CASES * 9 / 10);
}

/* FALCON minimises the variance of m_i t_i: how often does that lose? */
static void test_least_variance(void)
{
    enum { CASES = 400 };
    int worse = 0, better = 0;
    double most = 0;

    for (int c = 0; c < CASES; c++) {
        double t[4];
        struct ep_shares_problem p = {2, t, 8, 1, 1, NULL};
        struct ep_shares_result res;
        int64_t share[4];
        struct brute b;

        p.ngroups += (size_t)below(3);
        p.microbatches += below(25);
        for (size_t i = 0; i < p.ngroups; i++)
            t[i] = 1 + uniform();
        brute_solve(&b, &p);
        if (ep_shares_solve(&p, share, &res, NULL))
            abort();
        worse += b.variance_makespan > res.after;
        better += b.variance_makespan < res.after;
        most = fmax(most, b.variance_makespan / res.after - 1);
    }
    printf("# least variance is worse in %d of %d cases, by up to %.1f %%\n",
           worse, CASES, 100 * most);
    ok(better == 0);
    ok(worse > 0);
}

static void test_known_case(void)
{
    /* falcon.md, S2: iterations of 1052.28 and 1471.50 ms for 8 each. */
    const double healthy = 1.05228 / 8, slow = 1.47150 / 8;

    for (size_t at = 0; at < 4; at++) {
        double t[4] = {healthy, healthy, healthy, healthy};
        int64_t want[4] = {8, 8, 8, 8}, share[4];
        struct ep_shares_problem p = {4, t, 32, 1, 1, NULL};
        struct ep_shares_result r;

        t[at] = slow;
        /* The two that the slow group gives go to the first two others. */
        want[at < 1] = want[at < 2 ? 2 : 1] = 9;
        want[at] = 6;
        ok(ep_shares_solve(&p, share, &r, NULL) == 0);
        ok(memcmp(share, want, sizeof want) == 0);
        near(r.before, 1.47150, 1e-12);
        near(r.after, 9 * healthy, 0); /* makespan of [9, 6, 9, 8] */
        ok(r.moved == 2 && r.changed == 3);
        /* 32 / (3 / healthy + 1 / slow) by hand */
        near(r.bound, 1.132974, 1e-6);
        near(ep_shares_gain(r.before, r.after), 0.2430, 5e-5);
    }
}

static void test_hand_worked(void)
{
    static const double equal[] = {2, 2, 2};
    static const int64_t best[] = {2, 2, 3}, worse[] = {1, 2, 4};
    static const double slow0[] = {2, 1, 1};
    static const double wild[] = {1e6, 1, 1, 1};
    static const struct {
        struct ep_shares_problem p;
        int64_t want[4];
        double after, bound;
        int64_t moved;
    } cases[] = {
        /* one group: nothing to choose */
        {{1, equal, 7, 3, 1, NULL}, {7}, 18, 18, 0},
        /* as many micro-batches as groups */
        {{3, slow0, 3, 4, 1, NULL}, {1, 1, 1}, 8, 8, 0},
        /* equal groups: even is best, and the odd one may lie anywhere */
        {{3, equal, 7, 1, 1, best}, {2, 2, 3}, 6, 14.0 / 3, 0},
        {{3, equal, 7, 1, 1, worse}, {2, 2, 3}, 6, 14.0 / 3, 1},
        /* 2, 5, 5 gives 5 s (bound 12 / 2.5); 2 of group 0's 4 go */
        {{3, slow0, 12, 1, 1, NULL}, {2, 5, 5}, 5, 4.8, 2},
        /* pipeline of 3: caps at 7 s are 1, 5, 5, too few, at 8 s 2, 6, 6;
           real: 18 / 2.5 */
        {{3, slow0, 12, 3, 1, NULL}, {2, 5, 5}, 8, 7.2, 2},
        /* blocks of 2, pipeline of 2: 2, 6, 4 of 7 s */
        {{3, slow0, 12, 2, 2, NULL}, {2, 6, 4}, 7, 6, 2},
        /* a hopeless group keeps one, and the rest is levelled */
        {{4, wild, 40, 1, 1, NULL}, {1, 13, 13, 13}, 1e6, 1e6, 9},
        {{4, wild, 32, 8, 8, NULL}, {8, 8, 8, 8}, 15e6, 15e6, 0},
    };

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t share[4] = {0};
        struct ep_shares_result r;

        ok(ep_shares_solve(&cases[c].p, share, &r, NULL) == 0);
        ok(memcmp(share, cases[c].want, sizeof share) == 0);
        near(r.after, cases[c].after, 0);
        near(r.bound, cases[c].bound, 1e-12 * cases[c].bound);
        ok(r.moved == cases[c].moved);
    }
}

/* An optimal plan is left alone, and the output may be the input. */
static void test_in_place(void)
{
    const double t[] = {1, 2, 1, 1};
    int64_t share[] = {1, 1, 1, 29}, again[4];
    struct ep_shares_problem p = {4, t, 32, 2, 1, share};
    struct ep_shares_result r;

    ok(ep_shares_solve(&p, share, NULL, NULL) == 0);
    memcpy(again, share, sizeof again);
    ok(ep_shares_solve(&p, share, &r, NULL) == 0);
    ok(memcmp(again, share, sizeof again) == 0);
    ok(r.moved == 0 && r.changed == 0 && r.before == r.after);
}

/* Most micro-batches that group i finishes by the limit, by bisection. */
static int64_t capacity(const struct ep_shares_problem *p, size_t i,
                        double limit)
{
    int64_t lo = 0, hi = p->microbatches / p->block + 1;

    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;

        if ((double)(mid * p->block + p->pp - 1) * p->t[i] <= limit)
            lo = mid;
        else
            hi = mid;
    }
    return lo * p->block;
}

/* No plan is better than makespan, and with it moved is the least. */
static bool certified(const struct ep_shares_problem *p, const int64_t *now,
                      const struct ep_shares_result *r)
{
    double limit = nextafter(r->after, 0);
    int64_t room = 0, excess = 0;
    bool stuck = false;

    for (size_t i = 0; i < p->ngroups; i++) {
        int64_t cap = capacity(p, i, limit);
        int64_t over = now[i] - capacity(p, i, r->after);

        stuck = stuck || cap < p->block;
        if (room < p->microbatches)
            room += cap;
        excess += over > 0 ? over : 0;
    }
    return (stuck || room < p->microbatches) && excess == r->moved;
}

static void test_medium(void)
{
    enum { CASES = 3000 };
    int bad = 0;

    for (int c = 0; c < CASES; c++) {
        struct random_problem r;
        struct ep_shares_result res;
        int64_t share[MAX_GROUPS], now[MAX_GROUPS];

        random_problem(&r, MAX_GROUPS, 2000);
        memcpy(now, r.now, sizeof now);
        count(&bad,
              (!r.p.now && ep_shares_even(&r.p, now, NULL)) ||
                  ep_shares_solve(&r.p, share, &res, NULL) ||
                  !consistent(&r.p, now, share, &res) ||
                  !certified(&r.p, now, &res),
              &r.p, "certificate");
    }
    ok(bad == 0);
}

static void check_large(const char *name, struct ep_shares_problem p)
{
    int64_t *share = ep_calloc(p.ngroups, sizeof *share);
    int64_t *even = ep_calloc(p.ngroups, sizeof *even);
    struct ep_shares_result r;
    clock_t start = clock();

    ok(ep_shares_solve(&p, share, &r, NULL) == 0);
    printf(
        "# %s: %.6f s, before %.6g, after %.6g, bound %.6g, moved "
        "%" PRId64 " in %zu groups\n",
        name, (double)(clock() - start) / CLOCKS_PER_SEC, r.before, r.after,
        r.bound, r.moved, r.changed);
    if (ep_shares_even(&p, even, NULL))
        abort();
    ok(consistent(&p, p.now ? p.now : even, share, &r));
    ok(certified(&p, p.now ? p.now : even, &r));
    free(share);
    free(even);
}

static void test_large(void)
{
    enum { D = 100000, M = 10000000 };
    double *t = ep_calloc(D, sizeof *t);
    int64_t *now = ep_calloc(D, sizeof *now);
    struct ep_shares_problem p = {512, t, 8192, 8, 1, NULL};
    struct ep_shares_problem large = {D, t, M, 8, 1, NULL};

    for (size_t i = 0; i < D; i++) {
        t[i] = 0.1 * (1 + 0.02 * uniform()) * (below(50) ? 1 : 1.5);
        now[i] = i ? 1 : M - D + 1;
    }
    check_large("512 x 8192", p);
    p.block = 8;
    check_large("512 x 8192, blocks of 8", p);
    p.block = p.pp = 1;
    check_large("100000 x 10 M", large);
    large.now = now;
    check_large("100000 x 10 M, all in one group", large);
    large.now = NULL;
    large.microbatches = EP_SHARES_MAX - 7;
    check_large("100000 x 2^50", large);
    large.microbatches = M;
    t[7] = 1e11;
    check_large("100000 x 10 M, one group 1e12 times slower", large);
    for (size_t i = 0; i < D; i++)
        t[i] = pow(10, 6 * uniform() - 3);
    check_large("100000 x 10 M, ratios of 1e6", large);
    for (size_t i = 0; i < p.ngroups; i++)
        t[i] = ldexp(1 + 1e-3 * (double)i, (int)below(2000) - 1060);
    check_large("512 x 8192, ratios of 1e600", p);
    for (size_t i = 0; i < p.ngroups; i++)
        t[i] = (double)(1 + below(3)) * DBL_TRUE_MIN;
    check_large("512 x 8192, least doubles", p);
    for (size_t i = 0; i < p.ngroups; i++)
        t[i] = DBL_MAX / 9000 * (1 - 0.5 * uniform());
    check_large("512 x 8192, largest doubles", p);
    free(t);
    free(now);
}

static void test_errors(void)
{
    static const double good[] = {1, 1, 1};
    static const double nan_t[] = {1, 1, NAN}, inf_t[] = {1, INFINITY, 1};
    static const double zero_t[] = {0, 1, 1}, neg_t[] = {1, -1, 1};
    static const double big_t[] = {1, 1e308, 1};
    static const int64_t zero[] = {4, 0, 8}, odd[] = {4, 5, 3};
    static const int64_t little[] = {4, 2, 4}, much[] = {4, 6, 4};
    static const int64_t over[] = {1, INT64_MAX, INT64_MAX};
    static const struct {
        struct ep_shares_problem p;
        int code;
        const char *says;
    } cases[] = {
        {{0, good, 12, 1, 1, NULL}, EP_EDOM, "no groups"},
        {{3, good, 12, 0, 1, NULL}, EP_EDOM, "pipeline depth 0"},
        {{3, good, 12, 1, 0, NULL}, EP_EDOM, "block size 0"},
        {{3, good, 0, 1, 1, NULL}, EP_EDOM, "0 micro-batches"},
        {{3, good, -12, 1, 1, NULL}, EP_EDOM, "-12 micro-batches"},
        {{3, good, INT64_MIN, INT32_MAX, 1, NULL}, EP_EDOM, "micro-batches"},
        {{3, good, 13, 2, 2, NULL}, EP_EDOM, "13 micro-batches"},
        {{3, good, 2, 1, 1, NULL}, EP_EDOM, "each of 3 groups"},
        {{3, good, 4, 2, 2, NULL}, EP_EDOM, "each of 3 groups"},
        {{3, good, EP_SHARES_MAX + 1, 1, 1, NULL}, EP_ERANGE, "2^50"},
        {{3, good, INT64_MAX, INT32_MAX, 1, NULL}, EP_ERANGE, "2^50"},
        {{3, nan_t, 12, 1, 1, NULL}, EP_EDOM, "group 2: "},
        {{3, inf_t, 12, 1, 1, NULL}, EP_EDOM, "group 1: inf seconds"},
        {{3, zero_t, 12, 1, 1, NULL}, EP_EDOM, "group 0: 0 seconds"},
        {{3, neg_t, 12, 1, 1, NULL}, EP_EDOM, "group 1: -1 seconds"},
        {{3, big_t, 12, 1, 1, NULL}, EP_ERANGE, "group 1: "},
        {{3, good, 12, 1, 1, zero}, EP_EDOM, "group 1: current share 0"},
        {{3, good, 12, 2, 2, odd}, EP_EDOM, "group 1: current share 5"},
        {{3, good, 12, 1, 1, little}, EP_EDOM, "add up to 10"},
        {{3, good, 12, 1, 1, much}, EP_EDOM, "at group 2"},
        {{3, good, 12, 1, 1, over}, EP_EDOM, "at group 1"},
    };

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t share[3] = {-7, -7, -7};
        struct ep_shares_result r = {.moved = -7};
        struct ep_error e = {0};

        ok(ep_shares_solve(&cases[c].p, share, &r, &e) == cases[c].code);
        ok(e.code == cases[c].code);
        if (!ok(strstr(e.msg, cases[c].says) != NULL))
            printf("# message: %s\n", e.msg);
        ok(share[0] == -7 && share[2] == -7 && r.moved == -7);
        ok(ep_shares_solve(&cases[c].p, share, NULL, NULL) == cases[c].code);
    }
}

static void test_even(void)
{
    struct ep_shares_problem p = {3, NULL, 14, 4, 2, NULL};
    int64_t share[3] = {0};

    ok(ep_shares_even(&p, share, NULL) == 0);
    ok(share[0] == 6 && share[1] == 4 && share[2] == 4);
    p.microbatches = 15;
    ok(ep_shares_even(&p, share, NULL) == EP_EDOM && share[0] == 6);
}

static void test_makespan(void)
{
    const double t[] = {1, 3, 2}, bad[] = {1, NAN, 2};
    const int64_t share[] = {10, 2, 4}, huge[] = {INT64_MAX, 1, 1};

    near(ep_shares_makespan(3, t, 1, share), 10, 0);
    near(ep_shares_makespan(3, t, 5, share), 18, 0);
    near(ep_shares_makespan(0, NULL, 5, NULL), 0, 0);
    ok(isnan(ep_shares_makespan(3, bad, 1, share)));
    ok(ep_shares_makespan(3, t, INT32_MAX, huge) > 9.223372e18);
}

static void test_formulas(void)
{
    static const double bad[] = {0, -1, INFINITY, NAN};

    near(ep_shares_gain(1.5, 1), 0.5, 0);
    near(ep_shares_gain(1, 2), -0.5, 0);
    /* falcon.md, 64 and 256 GPUs, iterations per minute */
    near(ep_throughput_recovered(60 / 17.1, 60 / 14.8, 60 / 16.2), 0.609, 5e-4);
    near(ep_throughput_recovered(60 / 37.4, 60 / 18.9, 60 / 29.8), 0.589, 5e-4);
    near(ep_throughput_recovered(1, 2, 1), 1, 0);
    near(ep_throughput_recovered(1, 2, 4), -0.5, 0);
    near(ep_throughput_recovered(1, 2, 0.5), 3, 0);
    ok(isnan(ep_throughput_recovered(2, 2, 1)));
    ok(isnan(ep_throughput_recovered(3, 2, 1)));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ok(isnan(ep_shares_gain(bad[i], 1)));
        ok(isnan(ep_shares_gain(1, bad[i])));
        ok(isnan(ep_throughput_recovered(bad[i], 2, 1)));
        ok(isnan(ep_throughput_recovered(1, bad[i], 1)));
        ok(isnan(ep_throughput_recovered(1, 2, bad[i])));
    }
}

int main(void)
{
    printf("# seed %" PRIu64 "\n", SEED);
    test_brute_force();
    test_least_variance();
    test_known_case();
    test_hand_worked();
    test_in_place();
    test_medium();
    test_large();
    test_errors();
    test_even();
    test_makespan();
    test_formulas();
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.c - exact micro-batch shares; see shares.h for the problem.
 *
 * In blocks: K = M / b, k[i] >= 1, and f_i(k) = (b k + pp - 1) t[i] as
 * computed in double. b k + pp - 1 is an integer below 2^53, hence exact, and
 * rounding is monotone, so the computed f_i never falls as k grows. All that
 * follows needs only that, so it holds for the computed numbers themselves:
 * no tolerance occurs in this file.
 *
 * 1. Greedy is exact. Start at some k[] and give each further block to the
 *    group of least f_i(k[i] + 1). Let T be the largest value taken, by group
 *    j for its block number n. When it was taken every other group had
 *    f_i(k[i] + 1) >= T = f_j(n). A plan with a makespan below T could give
 *    no group more than greedy had given at that moment, and j fewer than n,
 *    so it could not place them all. Thus greedy has the least makespan among
 *    the plans that give every group at least its start: T, or that of the
 *    start itself if that is larger.
 *
 * 2. Greedy need not be walked. It takes the blocks in the order of their
 *    values f, so for any T the state after all values <= T is known:
 *    k[i] = max(start[i], c_i(T)), with the cap c_i(T) = max { k : f_i(k) <=
 *    T }, which is a division and a correction by the computed f. We search
 *    the largest T at which the state still holds at most K blocks and stop
 *    as soon as at most D are missing; only those go through a heap. T is
 *    halved in the bit patterns of the doubles, which order like the numbers:
 *    63 halvings end the search for any input. Neighbouring doubles differ by
 *    at most one block per group, f_i being strictly increasing below 2^50,
 *    so at most D blocks are missing then as well. With the start 1 the
 *    real-valued optimum is the first guess, and nearly always the last.
 *
 * 3. Fewest moves. Let T* be the least makespan and c_i = c_i(T*). The plans
 *    with makespan T* are those with k[i] <= c_i for all i. Each must take
 *    at least e_i = max(0, now_i - c_i) blocks from group i, so no plan moves
 *    fewer than E = sum_i e_i. The start min(now_i, c_i) and greedy for the E
 *    blocks that are left moves just E: no group ends below its start, and by
 *    (1) the makespan is the least from that start, which is <= T* because
 *    sum_i c_i >= K leaves room below the caps for all of them. If now is
 *    optimal, E = 0 and the plan is now. That greedy levels the receivers,
 *    instead of filling a few up to T*, costs no move and leaves slack should
 *    the slow group prove less slow than measured.
 */
#include "config.h"

#include "plan/shares.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A block that greedy may take next: its group, and f of that group then. */
struct offer {
    double f;
    size_t group;
};

/* The problem in blocks. */
struct blocks {
    const struct ep_shares_problem *p;
    int64_t total; /* K */
    double fill;   /* pp - 1 */
};

static double group_time(double microbatches, double fill, double t)
{
    return (microbatches + fill) * t;
}

/* f_i(k) */
static double block_time(const struct blocks *b, size_t i, int64_t k)
{
    return group_time((double)(k * b->p->block), b->fill, b->p->t[i]);
}

/*
 * c_i(T), at most K; 0 if not even one block fits. The quotient is off by
 * less than 2 as long as counts are below 2^50, so the loops are short.
 */
static int64_t cap_at(const struct blocks *b, size_t i, double makespan)
{
    double x = (makespan / b->p->t[i] - b->fill) / b->p->block;
    int64_t k = 0;

    if (x >= (double)b->total)
        k = b->total;
    else if (x >= 1)
        k = (int64_t)x;
    while (k < b->total && block_time(b, i, k + 1) <= makespan)
        k++;
    while (k > 0 && block_time(b, i, k) > makespan)
        k--;
    return k;
}

static int64_t max_int(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* sum_i max(start[i], c_i(T)), or K + 1 if it is above K. */
static int64_t count_at(const struct blocks *b, const int64_t *start,
                        double makespan)
{
    int64_t sum = 0;

    for (size_t i = 0; i < b->p->ngroups; i++) {
        sum += max_int(start[i], cap_at(b, i, makespan));
        if (sum > b->total)
            return b->total + 1;
    }
    return sum;
}

/* The double half-way between two that are >= 0, in bit patterns. */
static double between(double lo, double hi)
{
    uint64_t a, c;

    memcpy(&a, &lo, sizeof a);
    memcpy(&c, &hi, sizeof c);
    a += (c - a) / 2;
    memcpy(&lo, &a, sizeof lo);
    return lo;
}

/*
 * Step 2: raise k[] to a state that greedy passes through, with at most D
 * blocks missing; returns how many are. hi: a makespan at which all of them
 * fit. guess: where to look first.
 */
static int64_t jump(const struct blocks *b, int64_t *k, int64_t missing,
                    double guess, double hi)
{
    double lo = 0, mid = guess;

    while (missing > (int64_t)b->p->ngroups) {
        int64_t n;

        if (!(mid > lo && mid < hi))
            mid = between(lo, hi);
        if (!(mid > lo))
            break;
        n = count_at(b, k, mid);
        if (n > b->total) {
            hi = mid;
        } else {
            lo = mid;
            missing = b->total - n;
        }
        mid = between(lo, hi);
    }
    if (lo > 0)
        for (size_t i = 0; i < b->p->ngroups; i++)
            k[i] = max_int(k[i], cap_at(b, i, lo));
    return missing;
}

static bool offer_before(struct offer a, struct offer c)
{
    return a.f < c.f || (a.f <= c.f && a.group < c.group);
}

/* Restore the heap order below slot at. */
static void sift_down(struct offer *heap, size_t n, size_t at)
{
    struct offer o = heap[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= n)
            break;
        if (child + 1 < n && offer_before(heap[child + 1], heap[child]))
            child++;
        if (!offer_before(heap[child], o))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = o;
}

/*
 * Greedy from k[] until all K blocks are placed.
 *
 * k       [D] in: the start, with sum <= K; out: the plan
 * heap    [D] workspace
 * guess   where jump() looks first
 * hi      a makespan at which all of them fit
 */
static void fill(const struct blocks *b, int64_t *k, struct offer *heap,
                 double guess, double hi)
{
    size_t n = b->p->ngroups;
    int64_t missing = b->total;

    for (size_t i = 0; i < n; i++)
        missing -= k[i];
    missing = jump(b, k, missing, guess, hi);
    if (missing == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        heap[i].f = block_time(b, i, k[i] + 1);
        heap[i].group = i;
    }
    for (size_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i);
    for (; missing > 0; missing--) {
        size_t i = heap[0].group;

        k[i]++;
        heap[0].f = block_time(b, i, k[i] + 1);
        sift_down(heap, n, 0);
    }
}

static double makespan_of(const struct blocks *b, const int64_t *k)
{
    double worst = 0;

    for (size_t i = 0; i < b->p->ngroups; i++) {
        double f = block_time(b, i, k[i]);

        if (f > worst)
            worst = f;
    }
    return worst;
}

/*
 * The least makespan with real-valued shares >= b. A makespan T can be had if
 * T >= f_i(1) for all i (*floor is the largest of them) and the capacities
 * T / t[i] - (pp - 1) add up to M or more: the larger of the two limits.
 * Everything is in units of the least t, lest 1 / t overflow.
 */
static double real_bound(const struct blocks *b, double *floor)
{
    const struct ep_shares_problem *p = b->p;
    double fastest = p->t[0], speed = 0, limit;

    *floor = 0;
    for (size_t i = 0; i < p->ngroups; i++) {
        *floor = fmax(*floor, block_time(b, i, 1));
        fastest = fmin(fastest, p->t[i]);
    }
    for (size_t i = 0; i < p->ngroups; i++)
        speed += fastest / p->t[i];
    limit = ((double)p->microbatches + (double)p->ngroups * b->fill) / speed;
    return fmax(*floor, limit * fastest);
}

/*
 * Step 1: T*. k [D] and heap [D] are workspace. before is the makespan of
 * some plan.
 */
static double least_makespan(const struct blocks *b, int64_t *k,
                             struct offer *heap, double before, double *bound)
{
    double floor;

    for (size_t i = 0; i < b->p->ngroups; i++)
        k[i] = 1;
    *bound = real_bound(b, &floor);
    if (count_at(b, k, floor) >= b->total)
        return floor;
    /* Slightly below, lest rounding put the guess above T*. */
    fill(b, k, heap, *bound * (1 - 1e-9), before);
    return makespan_of(b, k);
}

static int check_size(const struct ep_shares_problem *p, struct ep_error *err)
{
    if (p->ngroups < 1)
        return ep_error_set(err, EP_EDOM, "cannot plan shares: no groups");
    if (p->pp < 1)
        return ep_error_set(err, EP_EDOM,
                            "cannot plan shares: pipeline depth %d is below 1",
                            p->pp);
    if (p->block < 1)
        return ep_error_set(err, EP_EDOM,
                            "cannot plan shares: block size %d is below 1",
                            p->block);
    if (p->microbatches > EP_SHARES_MAX - (p->pp - 1))
        return ep_error_set(err, EP_ERANGE,
                            "cannot plan shares: %" PRId64
                            " micro-batches with pipeline depth %d are above "
                            "the limit of 2^50",
                            p->microbatches, p->pp);
    if (p->microbatches < 1 || p->microbatches % p->block != 0)
        return ep_error_set(err, EP_EDOM,
                            "cannot plan shares: %" PRId64
                            " micro-batches are not a positive multiple of "
                            "the block size %d",
                            p->microbatches, p->block);
    if ((uint64_t)(p->microbatches / p->block) < p->ngroups)
        return ep_error_set(err, EP_EDOM,
                            "cannot plan shares: %" PRId64
                            " micro-batches in blocks of %d are fewer than "
                            "one block for each of %zu groups",
                            p->microbatches, p->block, p->ngroups);
    return 0;
}

static int check_times(const struct ep_shares_problem *p, struct ep_error *err)
{
    for (size_t i = 0; i < p->ngroups; i++) {
        double all;

        if (!isfinite(p->t[i]) || p->t[i] <= 0)
            return ep_error_set(err, EP_EDOM,
                                "cannot plan shares: group %zu: %g seconds "
                                "per micro-batch, must be finite and above 0",
                                i, p->t[i]);
        all = group_time((double)p->microbatches, p->pp - 1, p->t[i]);
        if (!isfinite(all))
            return ep_error_set(err, EP_ERANGE,
                                "cannot plan shares: group %zu: %" PRId64
                                " micro-batches of %g seconds are more "
                                "seconds than a number holds",
                                i, p->microbatches, p->t[i]);
    }
    return 0;
}

static int check_now(const struct ep_shares_problem *p, struct ep_error *err)
{
    int64_t left = p->microbatches;

    for (size_t i = 0; i < p->ngroups; i++) {
        if (p->now[i] < 1 || p->now[i] % p->block != 0)
            return ep_error_set(err, EP_EDOM,
                                "cannot plan shares: group %zu: current share "
                                "%" PRId64
                                " is not a positive multiple of "
                                "the block size %d",
                                i, p->now[i], p->block);
        if (p->now[i] > left)
            return ep_error_set(err, EP_EDOM,
                                "cannot plan shares: current shares exceed "
                                "%" PRId64 " micro-batches at group %zu",
                                p->microbatches, i);
        left -= p->now[i];
    }
    if (left > 0)
        return ep_error_set(err, EP_EDOM,
                            "cannot plan shares: current shares add up to "
                            "%" PRId64 " micro-batches, must be %" PRId64,
                            p->microbatches - left, p->microbatches);
    return 0;
}

static void even_blocks(const struct blocks *b, int64_t *k)
{
    int64_t n = (int64_t)b->p->ngroups;

    for (int64_t i = 0; i < n; i++)
        k[i] = b->total / n + (i < b->total % n);
}

int ep_shares_even(const struct ep_shares_problem *p, int64_t *share,
                   struct ep_error *err)
{
    struct blocks b = {.p = p};
    int rc = check_size(p, err);

    if (rc)
        return rc;
    b.total = p->microbatches / p->block;
    even_blocks(&b, share);
    for (size_t i = 0; i < p->ngroups; i++)
        share[i] *= p->block;
    return 0;
}

/*
 * Steps 1 and 3 together.
 *
 * now     [D] current shares in blocks
 * k       [D] out: the plan in blocks
 * heap    [D] workspace
 */
static void plan(const struct blocks *b, const int64_t *now, int64_t *k,
                 struct offer *heap, struct ep_shares_result *r)
{
    r->before = makespan_of(b, now);
    r->after = least_makespan(b, k, heap, r->before, &r->bound);
    /* The bound is rounded on its own, and may come out above the plan. */
    r->bound = fmin(r->bound, r->after);
    for (size_t i = 0; i < b->p->ngroups; i++) {
        int64_t cap = cap_at(b, i, r->after);

        k[i] = now[i] < cap ? now[i] : cap;
    }
    fill(b, k, heap, 0, r->after);
    for (size_t i = 0; i < b->p->ngroups; i++) {
        if (k[i] == now[i])
            continue;
        r->changed++;
        if (k[i] < now[i])
            r->moved += (now[i] - k[i]) * b->p->block;
    }
}

int ep_shares_solve(const struct ep_shares_problem *p, int64_t *share,
                    struct ep_shares_result *res, struct ep_error *err)
{
    struct ep_shares_result r = {0};
    struct blocks b = {.p = p, .fill = p->pp - 1};
    size_t n = p->ngroups;
    struct offer *heap;
    int64_t *k, *now;
    int rc = check_size(p, err);

    if (!rc)
        rc = check_times(p, err);
    if (!rc && p->now)
        rc = check_now(p, err);
    if (rc)
        return rc;

    b.total = p->microbatches / p->block;
    heap = ep_calloc(n, sizeof *heap + 2 * sizeof *k);
    k = (int64_t *)(heap + n);
    now = k + n;
    if (p->now)
        for (size_t i = 0; i < n; i++)
            now[i] = p->now[i] / p->block;
    else
        even_blocks(&b, now);
    plan(&b, now, k, heap, &r);
    for (size_t i = 0; i < n; i++)
        share[i] = k[i] * p->block;
    free(heap);
    if (res)
        *res = r;
    return 0;
}

double ep_shares_makespan(size_t ngroups, const double *t, int pp,
                          const int64_t *share)
{
    double worst = 0;

    for (size_t i = 0; i < ngroups; i++) {
        double f = group_time((double)share[i], pp - 1, t[i]);

        /* fmax() and > would both lose a NaN. */
        if (isnan(f))
            return f;
        if (f > worst)
            worst = f;
    }
    return worst;
}

static bool is_duration(double s)
{
    return isfinite(s) && s > 0;
}

double ep_shares_gain(double before, double after)
{
    if (!is_duration(before) || !is_duration(after))
        return NAN;
    return (before - after) / after;
}

double ep_throughput_recovered(double healthy, double slow, double mitigated)
{
    if (!is_duration(healthy) || !is_duration(slow) || !is_duration(mitigated))
        return NAN;
    if (healthy >= slow)
        return NAN;
    /* The definition times slow * healthy / (slow * healthy): differences of
     * durations instead of differences of reciprocals. */
    return (slow - mitigated) / (slow - healthy) * (healthy / mitigated);
}

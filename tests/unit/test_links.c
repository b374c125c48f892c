/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_links.c - the clock's order; transfers alone and shared, by hand and
 * against a simulation that looks at all flows at each event; rings against
 * all permutations.
 */
#include "config.h"

#include "base/rng.h"
#include "lsgd/clock.h"
#include "lsgd/links.h"

#include "tap.h"

enum { ARRIVED = 1, ENDED = 2, OTHER = 3 };

static void test_clock(void)
{
    struct ep_vclock c;
    struct ep_vevent e = {.t = 0};
    struct ep_rng r;
    double last = 0;
    uint64_t seq = 0;
    int bad = 0;

    ep_vclock_init(&c);
    ok(!ep_vclock_next(&c, &e));
    ep_rng_seed(&r, 1, 0);
    for (uint32_t i = 0; i < 1000; i++) /* many at the same moment */
        ep_vclock_at(&c, (double)(ep_rng_next(&r) % 50), OTHER, i, i);
    for (int i = 0; i < 1000; i++) {
        if (!ep_vclock_next(&c, &e) || e.t < last ||
            (e.t <= last && e.seq < seq && i > 0) || e.id != e.gen)
            bad++;
        last = e.t;
        seq = e.seq;
    }
    ok(bad == 0);
    ok(!ep_vclock_next(&c, &e) && c.passed == 1000);
    near(c.now, last, 0);
    ep_vclock_at(&c, -5, OTHER, 0, 0); /* the past is now */
    ok(ep_vclock_next(&c, &e));
    near(e.t, last, 0);
    ep_vclock_free(&c);
}

/* Two regions; inside 8 Gbit/s (1 GB is 1 s), between them 4 and 2. */
static const double two[] = {8, 4, 2, 8};

static struct ep_links *links(struct ep_vclock *c, double latency,
                              bool contention)
{
    const struct ep_links_config config = {.nregions = 2,
                                           .gbit_s = two,
                                           .latency = latency,
                                           .contention = contention,
                                           .nsenders = 8,
                                           .arrived = ARRIVED,
                                           .ended = ENDED};

    ep_vclock_init(c);
    return ep_links_new(&config, c);
}

/* The next arrival: who, and when; -1 if there is none any more. */
static int next_arrival(struct ep_links *l, struct ep_vclock *c, double *t)
{
    struct ep_vevent e;

    while (ep_vclock_next(c, &e)) {
        if (e.kind == ENDED) {
            ep_links_ended(l, &e);
        } else if (e.kind == OTHER) {
            *t = e.t;
            return 100 + (int)e.id;
        } else if (ep_links_arrived(l, &e)) {
            *t = e.t;
            return (int)e.id;
        }
    }
    return -1;
}

static void test_alone(void)
{
    struct ep_vclock c;
    struct ep_links *l = links(&c, 0.25, false);
    double t = 0, between, inside;
    size_t from = 9, to = 9;

    near(ep_links_busiest(l, &from, &to), 0, 0);
    ep_links_send(l, 0, ep_links_between(l, 0, 0, false), 1e9);
    ep_links_send(l, 1, ep_links_between(l, 0, 1, false), 1e9);
    ep_links_send(l, 2, ep_links_between(l, 1, 0, true), 1e9);
    ep_links_send(l, 3, ep_links_between(l, 0, 0, false), 3e9);
    ep_links_cancel(l, 3);
    ok(next_arrival(l, &c, &t) == 0);
    near(t, 1.25, 1e-12);
    ok(next_arrival(l, &c, &t) == 1);
    near(t, 2.25, 1e-12);
    ok(next_arrival(l, &c, &t) == 2);
    near(t, 4.25, 1e-12);
    ok(next_arrival(l, &c, &t) == -1);
    ep_links_bytes(l, &between, &inside);
    near(between, 2e9, 0);
    near(inside, 1e9, 0);
    /* 4 s from 1 to 0, latency apart; then 5 GB inside 1, both ways 2.5 */
    near(ep_links_busiest(l, &from, &to), 4, 1e-12);
    ok(from == 1 && to == 0);
    ep_links_send(l, 4, ep_links_between(l, 1, 1, true), 2.5e9);
    ep_links_send(l, 5, ep_links_between(l, 1, 1, false), 2.5e9);
    while (next_arrival(l, &c, &t) >= 0)
        continue;
    near(ep_links_busiest(l, &from, &to), 4, 1e-12);
    ep_links_send(l, 4, ep_links_between(l, 1, 1, true), 2.5e9);
    ok(next_arrival(l, &c, &t) == 4);
    near(ep_links_busiest(l, &from, &to), 5, 1e-12);
    ok(from == 1 && to == 1);
    ep_links_free(l);
    ep_links_free(NULL);
    ep_vclock_free(&c);
}

static void test_shared(void)
{
    struct ep_vclock c;
    struct ep_links *l = links(&c, 0, true);
    size_t link = ep_links_between(l, 0, 1, false); /* 0.5 GB/s */
    double t = 0;

    /* two equal ones take twice as long; the other direction and the inside
       know nothing of it */
    ep_links_send(l, 0, link, 1e9);
    ep_links_send(l, 1, link, 1e9);
    ep_links_send(l, 2, ep_links_between(l, 0, 0, false), 1e9);
    ep_links_send(l, 3, ep_links_between(l, 0, 0, true), 1e9);
    ok(next_arrival(l, &c, &t) == 2);
    ok(next_arrival(l, &c, &t) == 3);
    near(t, 1, 1e-12);
    ok(next_arrival(l, &c, &t) == 0);
    ok(next_arrival(l, &c, &t) == 1);
    near(t, 4, 1e-12);
    /* from 4: 1 GB; at 5 a second of 0.25 GB: ends at 6, the first at 6.5 */
    ep_links_send(l, 0, link, 1e9);
    ep_vclock_at(&c, 5, OTHER, 0, 0);
    ok(next_arrival(l, &c, &t) == 100);
    ep_links_send(l, 1, link, 0.25e9);
    ok(next_arrival(l, &c, &t) == 1);
    near(t, 6, 1e-12);
    ok(next_arrival(l, &c, &t) == 0);
    near(t, 6.5, 1e-12);
    /* one of two is cancelled after a second: 0.25 GB are done, 0.75 left */
    ep_links_send(l, 0, link, 1e9);
    ep_links_send(l, 1, link, 0.5e9);
    ep_vclock_at(&c, 7.5, OTHER, 0, 0);
    ok(next_arrival(l, &c, &t) == 100);
    ep_links_cancel(l, 1);
    ep_links_cancel(l, 1);
    ok(next_arrival(l, &c, &t) == 0);
    near(t, 9, 1e-12);
    ok(next_arrival(l, &c, &t) == -1);
    ep_links_free(l);
    ep_vclock_free(&c);
}

/* Latency comes after the bits, and can be cancelled in. */
static void test_shared_latency(void)
{
    struct ep_vclock c;
    struct ep_links *l = links(&c, 1, true);
    size_t link = ep_links_between(l, 0, 1, false);
    double t = 0;

    ep_links_send(l, 0, link, 0.5e9);
    ep_links_send(l, 1, link, 0.5e9);
    ep_vclock_at(&c, 2.5, OTHER, 0, 0);
    ok(next_arrival(l, &c, &t) == 100);
    ep_links_cancel(l, 0);
    ep_links_send(l, 2, link, 0.5e9); /* alone: the bits of 1 are through */
    ok(next_arrival(l, &c, &t) == 1);
    near(t, 3, 1e-12);
    ok(next_arrival(l, &c, &t) == 2);
    near(t, 4.5, 1e-12);
    ep_links_free(l);
    ep_vclock_free(&c);
}

/* Flows that begin at random moments, one of four senders cancels: all on one
   link of 0.5 GB/s, each event worked out from all flows. */
static void naive(size_t n, const double *begin, const double *bytes,
                  const double *cancel, double *end)
{
    double left[8], t = 0;

    for (size_t i = 0; i < n; i++) {
        left[i] = bytes[i];
        end[i] = -1;
    }
    for (;;) {
        size_t flows = 0;
        double next = (double)INFINITY, rate;

        for (size_t i = 0; i < n; i++)
            flows += begin[i] <= t && left[i] > 0;
        rate = 0.5e9 / (double)(flows ? flows : 1);
        for (size_t i = 0; i < n; i++) {
            if (begin[i] > t)
                next = fmin(next, begin[i]);
            else if (left[i] > 0)
                next = fmin(next, t + left[i] / rate);
            if (cancel[i] > t && left[i] > 0)
                next = fmin(next, cancel[i]);
        }
        if (isinf(next))
            return;
        for (size_t i = 0; i < n; i++)
            if (begin[i] <= t && left[i] > 0) {
                left[i] -= rate * (next - t);
                if (left[i] < 1e-3) {
                    left[i] = 0;
                    end[i] = next;
                }
            }
        t = next;
        for (size_t i = 0; i < n; i++)
            if (cancel[i] <= t && left[i] > 0)
                left[i] = 0;
    }
}

static void test_random(uint64_t seed)
{
    double begin[8], bytes[8], cancel[8], want[8], t = 0;
    struct ep_vclock c;
    struct ep_links *l = links(&c, 0, true);
    size_t link = ep_links_between(l, 0, 1, false);
    struct ep_rng r;
    int who, bad = 0, arrived = 0, expected = 0;

    ep_rng_seed(&r, seed, 0);
    for (uint32_t i = 0; i < 8; i++) {
        begin[i] = 10 * ep_rng_uniform(&r);
        bytes[i] = 3e9 * ep_rng_uniform(&r);
        cancel[i] =
            i % 4 ? (double)INFINITY : begin[i] + 6 * ep_rng_uniform(&r);
        ep_vclock_at(&c, begin[i], OTHER, i, 0);
        if (i % 4 == 0)
            ep_vclock_at(&c, cancel[i], OTHER, 8 + i, 0);
    }
    naive(8, begin, bytes, cancel, want);
    for (int i = 0; i < 8; i++)
        expected += want[i] >= 0;
    while ((who = next_arrival(l, &c, &t)) >= 0) {
        if (who >= 108) {
            ep_links_cancel(l, (size_t)who - 108);
        } else if (who >= 100) {
            ep_links_send(l, (size_t)who - 100, link, bytes[(who - 100) % 8]);
        } else if (who < 8) {
            arrived++;
            bad += fabs(t - want[who]) > 1e-8;
        }
    }
    if (!ok(bad == 0 && arrived == expected))
        printf("# seed %llu: %d arrived, %d expected, %d at the wrong time\n",
               (unsigned long long)seed, arrived, expected, bad);
    ep_links_free(l);
    ep_vclock_free(&c);
}

/* ==== Rings ==== */

static double narrowest_of(const double *g, size_t n, const size_t *order)
{
    double least = (double)INFINITY;

    for (size_t i = 0; i < n; i++)
        least = fmin(least, g[order[i] * n + order[(i + 1) % n]]);
    return least;
}

static void swap(size_t *a, size_t *b)
{
    size_t x = *a;

    *a = *b;
    *b = x;
}

/* The permutation that follows in lexicographic order; false after the last. */
static bool permute(size_t *v, size_t n)
{
    size_t i = n - 1, j = n - 1;

    while (i > 0 && v[i - 1] >= v[i])
        i--;
    if (i == 0)
        return false;
    while (v[j] <= v[i - 1])
        j--;
    swap(&v[i - 1], &v[j]);
    for (j = n - 1; i < j; i++, j--)
        swap(&v[i], &v[j]);
    return true;
}

static double best_ring(const double *g, size_t n)
{
    size_t order[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    double best = 0;

    do
        best = fmax(best, narrowest_of(g, n, order));
    while (permute(order, n));
    return best;
}

static void test_ring(void)
{
    static const double halos[] = {100,  .537, .935, .202, .537, 100,
                                   .386, .117, .935, .386, 100,  .127,
                                   .202, .117, .127, 100};
    int bad = 0;
    struct ep_rng r;

    near(ep_ring_narrowest(halos, 4), 0.127, 0);
    ok(isinf(ep_ring_narrowest(halos, 1)));
    near(ep_ring_narrowest(two, 2), 2, 0);
    ep_rng_seed(&r, 3, 0);
    for (int i = 0; i < 200; i++) {
        size_t n = 2 + (size_t)(ep_rng_next(&r) % 5);
        double g[64];

        for (size_t j = 0; j < n * n; j++)
            g[j] = 1 + (double)(ep_rng_next(&r) % 9); /* with equal ones */
        bad += ep_ring_narrowest(g, n) < best_ring(g, n) ||
               ep_ring_narrowest(g, n) > best_ring(g, n);
    }
    ok(bad == 0);
}

static void test_allreduce(void)
{
    static const size_t workers[] = {3, 1}, one[] = {1, 1};
    struct ep_vclock c;
    struct ep_links *l = links(&c, 0.5, false);
    double between, inside;

    /* 4 workers: 1.5 GB each over 2 Gbit/s, and 6 messages */
    near(ep_links_allreduce(l, workers, 1e9, &between, &inside), 6 + 3, 1e-12);
    near(between, 3e9, 1e-3);
    near(inside, 3e9, 1e-3);
    near(ep_links_allreduce(l, one, 1e9, &between, &inside), 4 + 1, 1e-12);
    near(between, 2e9, 1e-3);
    near(inside, 0, 0);
    ep_links_free(l);
    ep_vclock_free(&c);
}

int main(void)
{
    test_clock();
    test_alone();
    test_shared();
    test_shared_latency();
    for (uint64_t seed = 1; seed <= 200; seed++)
        test_random(seed);
    test_ring();
    test_allreduce();
    return tap_done();
}

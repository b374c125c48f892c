/* SPDX-License-Identifier: Apache-2.0 */
/* test_period - iterations from the order of calls. */
#include "config.h"

#include "calls_job.h"
#include "detect/period.h"
#include "tap.h"

#include <string.h>

struct found {
    struct ep_iteration *v;
    size_t n, cap;
};

static void keep(void *ctx, const struct ep_iteration *it)
{
    struct found *f = ctx;

    f->v = ep_grow(f->v, &f->cap, f->n + 1, sizeof *f->v);
    f->v[f->n++] = *it;
}

/* Symbols once a tenth of a second, each with its place as a number. */
static void feed(struct ep_period *p, const char *symbols, int times,
                 double *now, struct found *f)
{
    for (int i = 0; i < times; i++)
        for (const char *s = symbols; *s; s++) {
            struct ep_period_call c = {symbol_of((unsigned char)*s), *now, 0.02,
                                       -1};

            ep_period_push(p, &c, keep, f);
            *now += 0.1;
        }
}

static void known_patterns(void)
{
    static const struct {
        const char *pattern;
        unsigned period;
    } cases[] = {
        {"32323232632323232", 17}, {"AAAAB", 5},           {"AB", 2},
        {"ABABABABC", 9},          {"AABAABAABB", 10},     {"ABCABD", 6},
        {"AAAAAAAAAAAAAAAAB", 17}, {"ABAABAAABAAAAB", 14},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int late = 0; late < 2; late++) {
            struct ep_period_table *t = ep_period_table_new();
            struct ep_period *p = ep_period_new(t);
            struct ep_period_state s;
            struct found f = {NULL, 0, 0};
            double now = 1000;
            int times = late ? 200 : 4;
            size_t bad = 0;

            feed(p, cases[i].pattern, times, &now, &f);
            ep_period_state(p, &s);
            ok(s.calls == (late ? cases[i].period : 0));
            ok(late || f.n == 0);
            ep_period_finish(p, keep, &f);
            ep_period_state(p, &s);
            ok(s.calls == cases[i].period);
            ok(s.basis == EP_PERIOD_CALLS);
            /* all but a part at each end */
            ok(f.n + 2 >= (size_t)times - 0 && f.n < (size_t)times);
            for (size_t k = 0; k < f.n; k++)
                bad += fabs(f.v[k].dur - cases[i].period * 0.1) > 1e-9 ||
                       fabs(f.v[k].busy - cases[i].period * 0.08) > 1e-9 ||
                       f.v[k].calls != cases[i].period ||
                       f.v[k].next != (k > 0);
            ok(bad == 0);
            free(f.v);
            ep_period_free(p);
            ok(ep_period_table_count(t) == 0);
            ep_period_table_free(t);
        }
    }
}

/* ==== Random jobs ==== */

/* The call that started at ts. */
static size_t at_time(const struct job *j, double ts)
{
    size_t lo = 0, hi = j->calls;

    while (lo + 1 < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (j->call[mid].ts <= ts)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Is a reported iteration one that took place, to the last digit? */
static bool is_true(const struct job *j, const struct ep_iteration *it)
{
    size_t i = at_time(j, it->ts), e = i + it->calls,
           back = i > 50 ? i - 50 : 0;
    const struct truth *a = &j->truth[i], *b;

    if (j->call[i].ts != it->ts || e >= j->calls || a->phase < 0)
        return false;
    b = &j->truth[e];
    /* the last of a phase ends where the next begins */
    if ((b->phase != a->phase && (b->phase < 0 || b->place)) ||
        b->iteration != a->iteration + 1 || b->place != a->place ||
        j->call[e].ts - j->call[i].ts != it->dur)
        return false;
    for (size_t k = i + 1; k <= e; k++)
        if (j->truth[k].hole)
            return false;
    return fabs(it->dur - time_in_calls(j, back, e, it->ts, it->ts + it->dur) -
                it->busy) < 1e-9 * it->ts;
}

/* Iterations from place to the same place without a hole. */
static size_t whole_ones(const struct job *j, int place)
{
    size_t n = 0, since = 0;
    bool counting = false;

    for (size_t i = 0; i < j->calls; i++) {
        const struct truth *t = &j->truth[i];

        if (t->hole || t->phase < 0)
            counting = false;
        if (t->phase >= 0 && t->place == place) {
            n += counting && t->iteration == j->truth[since].iteration + 1;
            since = i;
            counting = true;
        }
    }
    return n;
}

static size_t holes_of(const struct job *j)
{
    size_t n = 0;

    for (size_t i = 0; i < j->calls; i++)
        n += j->truth[i].hole;
    return n;
}

/* The least k for which the kinds of an iteration are k-periodic, by trying. */
static int plain_period(const struct job *j)
{
    for (int k = 1; k < j->n; k++) {
        bool same = j->n % k == 0;

        for (int i = 0; same && i < j->n; i++)
            same = j->kind[i] == j->kind[(i + k) % j->n];
        if (same)
            return k;
    }
    return j->n;
}

static void make_random(struct job *j, uint64_t seed)
{
    struct ep_rng *r = &j->rng;
    bool noise, evals;

    memset(j, 0, sizeof *j);
    ep_rng_seed(r, seed, 1);
    j->now = 1.7e9;
    j->jitter = 0.003 * pow(100, ep_rng_uniform(r));
    noise = below(r, 2);
    evals = below(r, 2);
    job_shape(j, 1 + below(r, 8), below(r, 8), below(r, 3), 1 + below(r, 6),
              below(r, 2));
    if (j->n < 2)
        job_add(j, 41, 0.1);
    /* of few calls, all of an iteration go amiss now and then */
    j->numbered = j->n < 5 || below(r, 2);
    job_start_up(j, below(r, 40));
    for (int k = 0; k < 3; k++) {
        /* as many calls go amiss as leave most iterations whole */
        j->drop = noise ? 0.3 / j->n * ep_rng_uniform(r) : 0;
        j->extra = noise ? 0.3 / j->n * ep_rng_uniform(r) : 0;
        job_train(j, 100);
        if (evals)
            job_evaluate(j, 1 + below(r, j->n < 20 ? 10 * j->n : 200),
                         1 + below(r, 6));
    }
    j->drop = j->extra = 0;
    job_train(j, 30);
}

static size_t run(const struct job *j, struct found *f, unsigned *calls)
{
    struct ep_period_table *t = ep_period_table_new();
    struct ep_period *p = ep_period_new(t);
    struct ep_period_state s;
    size_t bad = 0;

    for (size_t i = 0; i < j->calls; i++)
        ep_period_push(p, &j->call[i], keep, f);
    ep_period_finish(p, keep, f);
    ep_period_state(p, &s);
    *calls = s.calls;
    for (size_t i = 0; i < f->n; i++)
        bad += !is_true(j, &f->v[i]);
    ep_period_free(p);
    ep_period_table_free(t);
    return bad;
}

static void random_jobs(uint64_t seed, int jobs)
{
    size_t untrue[2] = {0, 0}, few = 0, wrong = 0, all = 0, got = 0;
    struct job *j = ep_calloc(1, sizeof *j);

    for (int k = 0; k < jobs; k++) {
        struct found f = {NULL, 0, 0};
        size_t bad, whole, holes;
        unsigned calls;

        make_random(j, seed + (uint64_t)k);
        bad = run(j, &f, &calls);
        if (calls != (unsigned)plain_period(j) || bad) {
            printf("# seed %llu: period %u, true %d; %zu of %zu untrue\n",
                   (unsigned long long)seed + (unsigned)k, calls,
                   plain_period(j), bad, f.n);
        }
        wrong += calls != (unsigned)plain_period(j);
        untrue[j->numbered] += bad;
        if (f.n) {
            int place = j->truth[at_time(j, f.v[0].ts)].place;

            whole = whole_ones(j, place);
            holes = holes_of(j);
            all += whole;
            got += f.n;
            /* a hole costs the iteration it is in and at most one beside */
            if (f.n + 2 * holes + 6 < whole) {
                few++;
                printf("# seed %llu: %zu of %zu, %zu holes\n",
                       (unsigned long long)seed + (unsigned)k, f.n, whole,
                       holes);
            }
        } else {
            few++;
        }
        free(f.v);
        job_free(j);
    }
    printf("# %d jobs from seed %llu: %zu of %zu whole iterations found\n",
           jobs, (unsigned long long)seed, got, all);
    ok(wrong == 0);
    ok(untrue[true] == 0);
    /* without numbers, several missing calls may look like none */
    ok(untrue[false] * 100000 <= got);
    ok(few == 0);
    ok(got > all - all / 10);
    free(j);
}

/* ==== One kind, times, phases ==== */

/* n iterations of calls of one kind, the first of each behind a large gap. */
static void feed_one_kind(struct ep_period *p, int n, int calls, double small,
                          double large, double noise, struct found *f)
{
    struct ep_rng r;
    double now = 5000;

    ep_rng_seed(&r, 7, (uint64_t)calls);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < calls; k++) {
            struct ep_period_call c = {1, 0, 0.001, -1};

            now += (k ? small : large) * (1 + noise * ep_rng_uniform(&r));
            c.ts = now;
            ep_period_push(p, &c, keep, f);
        }
    ep_period_finish(p, keep, f);
}

static void one_kind(void)
{
    static const struct {
        int calls;
        double small, large, noise;
        enum ep_period_basis basis;
        unsigned period;
    } cases[] = {
        {4, 0.05, 0.5, 0.1, EP_PERIOD_GAPS, 4},
        {25, 0.01, 0.9, 0.5, EP_PERIOD_GAPS, 25},
        {2, 0.1, 0.4, 0.3, EP_PERIOD_GAPS, 2},
        {1, 0.5, 0.5, 0.3, EP_PERIOD_EACH, 1},
        {5, 0.2, 0.2, 0.3, EP_PERIOD_EACH, 1},
        {3, 0.2, 0.2, 0, EP_PERIOD_EACH, 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_period_table *t = ep_period_table_new();
        struct ep_period *p = ep_period_new(t);
        struct ep_period_state s;
        struct found f = {NULL, 0, 0};
        double least = (cases[i].calls - 1) * cases[i].small + cases[i].large;
        size_t bad = 0;

        feed_one_kind(p, 200, cases[i].calls, cases[i].small, cases[i].large,
                      cases[i].noise, &f);
        ep_period_state(p, &s);
        ok(s.basis == cases[i].basis && s.calls == cases[i].period);
        ok(f.n + 3 >= 200u * (unsigned)cases[i].calls / cases[i].period);
        for (size_t k = 0; k < f.n && s.basis == EP_PERIOD_GAPS; k++)
            bad += f.v[k].dur < least - 1e-9 ||
                   f.v[k].dur > least * (1 + cases[i].noise) + 1e-9;
        ok(bad == 0);
        free(f.v);
        ep_period_free(p);
        ep_period_table_free(t);
    }
}

/* Without times the pattern is found; some times give some iterations. */
static void without_times(void)
{
    struct ep_period_table *t = ep_period_table_new();
    struct ep_period *p = ep_period_new(t);
    struct ep_period_state s;
    struct found f = {NULL, 0, 0};
    struct ep_period_call c = {0, (double)NAN, 0.1, -1};
    size_t timed = 0, busy = 0;

    for (int i = 0; i < 2000; i++)
        for (int k = 0; k < 5; k++) {
            /* from 1000 on all but one call of every second iteration */
            c.ts = i >= 1000 && !(k == 2 && i % 2) ? i + k * 0.15 : (double)NAN;
            c.symbol = symbol_of(k == 4);
            ep_period_push(p, &c, keep, &f);
            ep_period_state(p, &s);
            if (i * 5 + k < EP_PERIOD_HOLD_CALLS - 8)
                tap_bad += s.calls != 0;
        }
    ok(s.calls == 5 && !s.learning);
    ok(f.n >= 1997 && f.n < 2000);
    for (size_t i = 0; i < f.n; i++) {
        timed += !isnan(f.v[i].dur);
        busy += !isnan(f.v[i].busy);
    }
    ok(timed >= 997 && timed <= 1000);
    ok(busy >= 497 && busy <= 500);
    ok(isnan(f.v[0].ts) && isnan(f.v[0].busy));
    free(f.v);
    ep_period_free(p);
    ep_period_table_free(t);
}

static void run_phases(uint64_t seed)
{
    struct job *j = ep_calloc(1, sizeof *j);
    struct found f = {NULL, 0, 0};
    size_t changed, back;
    unsigned calls;

    ep_rng_seed(&j->rng, seed, 2);
    j->now = 1.7e9;
    j->jitter = 0.02;
    job_shape(j, 4, 3, 1, 3, true);
    job_train(j, 150);
    changed = j->calls;
    /* twice as many micro-batches: more calls than before have to repeat */
    job_shape(j, 8, 3, 1, 3, true);
    j->phase = 1;
    job_train(j, 150);
    back = j->calls;
    job_shape(j, 4, 3, 1, 3, true);
    j->phase = 2;
    job_train(j, 10);
    ok(run(j, &f, &calls) == 0);
    ok(calls == (unsigned)j->n);
    {
        size_t n[3] = {0, 0, 0};

        for (size_t i = 0; i < f.n; i++)
            n[j->truth[at_time(j, f.v[i].ts)].phase]++;
        printf("# %zu, %zu, %zu iterations of the phases\n", n[0], n[1], n[2]);
        /* what was heard on probation is given out as well */
        ok(n[0] >= 147 && n[1] >= 140 && n[2] >= 4);
        ok(f.v[f.n - 1].pattern == f.v[0].pattern);
        ok(changed < back);
    }
    free(f.v);
    job_free(j);
    free(j);
}

/* All calls of an iteration are missing: only the numbers tell. */
static void whole_iterations_missing(void)
{
    struct ep_period_table *t = ep_period_table_new();
    struct ep_period *p = ep_period_new(t);
    struct found f = {NULL, 0, 0};
    size_t bad = 0;

    for (int i = 0; i < 300; i++)
        for (int k = 0; k < 3; k++) {
            struct ep_period_call c = {symbol_of((uint64_t)k), i + k * 0.1,
                                       0.01, i};

            if (i != 100 && i != 200 && i != 201)
                ep_period_push(p, &c, keep, &f);
        }
    ep_period_finish(p, keep, &f);
    for (size_t i = 0; i < f.n; i++)
        bad += fabs(f.v[i].dur - 1) > 1e-9;
    ok(bad == 0);
    ok(f.n >= 292 && f.n <= 297);
    free(f.v);
    ep_period_free(p);
    ep_period_table_free(t);
}

/* ==== Many ranks ==== */

static void many_ranks(int ranks)
{
    struct ep_period_table *t = ep_period_table_new();
    struct ep_period **p = ep_calloc((size_t)ranks, sizeof(struct ep_period *));
    struct ep_period_state s;
    struct found f = {NULL, 0, 0};
    size_t most = 0, bytes, at_end = 0;
    int following = 0;

    for (int r = 0; r < ranks; r++)
        p[r] = ep_period_new(t);
    for (int i = 0; i < 40; i++)
        for (int k = 0; k < 20; k++) {
            bytes = 0;
            for (int r = 0; r < ranks; r++) {
                /* two kinds of ranks, not in step with each other */
                int place = (k + r) % 20;
                struct ep_period_call c = {
                    symbol_of((uint64_t)(place < 16 ? r % 2 : place)),
                    i + k * 0.04, 0.01, -1};

                ep_period_push(p[r], &c, keep, &f);
                f.n = 0;
                ep_period_state(p[r], &s);
                bytes += s.bytes;
            }
            most = bytes > most ? bytes : most;
        }
    for (int r = 0; r < ranks; r++) {
        ep_period_state(p[r], &s);
        following += s.calls == 20 && !s.learning;
        at_end += s.bytes;
    }
    printf("# %zu bytes per rank at most, %zu at the end\n",
           most / (size_t)ranks, at_end / (size_t)ranks);
    ok(following == ranks);
    ok(ep_period_table_count(t) == 2);
    ok(most <= (size_t)ranks * 1500 + EP_PERIOD_LEND);
    ok(at_end <= (size_t)ranks * 400);
    for (int r = 0; r < ranks; r++)
        ep_period_free(p[r]);
    ok(ep_period_table_count(t) == 0);
    ep_period_table_free(t);
    free(p);
    free(f.v);
}

int main(void)
{
    known_patterns();
    random_jobs(20261130, 150);
    one_kind();
    without_times();
    run_phases(3);
    whole_iterations_missing();
    many_ranks(2100);
    return tap_done();
}

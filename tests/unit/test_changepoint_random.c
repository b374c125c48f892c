/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_changepoint_random.c - detection rate, false alarms and latency on
 * random series, against two simpler detectors on the same series: a sliding
 * window (beyond 10 % of its median) and BOCD alone (lagged mass).
 */
#include "config.h"

#include "base/stats.h"
#include "detect/bocd.h"
#include "detect/changepoint.h"

#include "series.h"
#include "tap.h"

#include <string.h>
#include <time.h>

#define SEED 20260102
#define WITHIN 12  /* iterations: an alarm so late still counts */
#define WINDOW 20  /* of the sliding window */
#define RESIDUE 40 /* iterations of warm-up not scored against baselines */

enum method { SLIDING, BOCD_ALONE, VERIFIED, METHODS };

static const char *const names[] = {"sliding window", "bocd alone",
                                    "bocd + verification"};

struct score {
    int changes, found, alarms_false;
    long iterations;
    double latency, misdated; /* sums */
    int latest;
    int spikes, misread; /* misread: onset taken for relief or so */
};

struct baseline {
    double ring[WINDOW];
    int n, since_alarm;
    struct ep_bocd *bocd;
};

/* An alarm of the sliding window: the start of a run of deviations. */
static int sliding(struct baseline *b, double x)
{
    double v[WINDOW];
    int alarm = 0;

    if (b->n >= WINDOW) {
        memcpy(v, b->ring, sizeof v);
        alarm = fabs(x / ep_median(v, WINDOW) - 1) > 0.1;
    }
    b->ring[b->n++ % WINDOW] = x;
    return alarm;
}

static int bocd_alone(struct baseline *b, double x)
{
    struct ep_bocd_config c = {.hazard = 0.01,
                               .mu0 = log(x),
                               .kappa0 = 0.05,
                               .alpha0 = 1,
                               .beta0 = 4e-4,
                               .window = 64};
    int first = !b->bocd;

    if (first)
        b->bocd = ep_bocd_new(&c, NULL);
    else
        ep_bocd_set_mean(b->bocd, b->ring[0]); /* as the tracker does */
    b->ring[0] = log(x);
    if (ep_bocd_push(b->bocd, log(x)))
        return 0;
    return !first && b->n++ > 10 && ep_bocd_mass(b->bocd, 3) > 0.5;
}

/* Count an alarm for the change it can belong to, or as false. */
static void score_alarm(struct score *sc, const struct series *s, int *open)
{
    int age = s->t - 1 - s->changed_at;

    if (s->changes > 0 && age <= WITHIN) {
        if (*open) {
            *open = 0;
            sc->found++;
            sc->latency += age;
            sc->latest = age > sc->latest ? age : sc->latest;
        }
    } else {
        sc->alarms_false++;
    }
}

/* A change too close to the end to be found does not count. */
static void finish(struct score *sc, const struct series *s, int open)
{
    sc->changes += s->changes - (open && s->t - s->changed_at <= WITHIN);
    sc->iterations += s->t;
}

static void run_baseline(enum method m, const struct series_config *c,
                         uint64_t seed, int n, struct score *sc)
{
    struct baseline b = {.since_alarm = 100};
    struct series s;
    int open = 0;
    int changes = 0;

    series_init(&s, c, seed);
    for (int t = 0; t < n; t++) {
        double x = series_next(&s);
        int alarm = m == SLIDING ? sliding(&b, x) : bocd_alone(&b, x);

        if (s.changes != changes) {
            changes = s.changes;
            open = 1;
        }
        /* A run of alarms is one. */
        if (alarm && b.since_alarm >= 3 && t >= RESIDUE)
            score_alarm(sc, &s, &open);
        b.since_alarm = alarm ? 0 : b.since_alarm + 1;
    }
    finish(sc, &s, open);
    ep_bocd_free(b.bocd);
}

static void run_verified(const struct series_config *c, uint64_t seed, int n,
                         struct score *sc)
{
    struct ep_changepoint *cp = ep_changepoint_new(NULL, NULL);
    struct ep_change e[EP_CHANGEPOINT_MAX_EVENTS];
    struct series s;
    int open = 0;
    int changes = 0;

    series_init(&s, c, seed);
    for (int t = 0; t < n; t++) {
        int k = ep_changepoint_push(cp, t, t, series_next(&s), e);

        if (s.changes != changes) {
            changes = s.changes;
            open = 1;
        }
        for (int i = 0; i < k; i++) {
            if (e[i].kind == EP_CHANGE_SPIKE) {
                sc->spikes++;
                continue;
            }
            if (open)
                sc->misdated += fabs((double)e[i].since_step - s.changed_at);
            if (open && t - s.changed_at <= WITHIN)
                sc->misread += (s.factor > 1) != (e[i].kind == EP_CHANGE_ONSET);
            score_alarm(sc, &s, &open);
        }
    }
    finish(sc, &s, open);
    ep_changepoint_free(cp);
}

static struct score measure(enum method m, const struct series_config *c,
                            uint64_t seed, int runs, int n)
{
    struct score sc = {0};

    for (int r = 0; r < runs; r++) {
        if (m == VERIFIED)
            run_verified(c, seed + (uint64_t)r, n, &sc);
        else
            run_baseline(m, c, seed + (uint64_t)r, n, &sc);
    }
    return sc;
}

static double rate(const struct score *s)
{
    return s->changes ? 100.0 * s->found / s->changes : 100;
}

static double false_rate(const struct score *s)
{
    return 1e4 * s->alarms_false / (double)s->iterations;
}

static void print_score(const char *name, const struct score *s)
{
    if (s->changes == 0) {
        printf("#   %-20s %31s %7.2f / 10000\n", name, "false", false_rate(s));
        return;
    }
    printf(
        "#   %-20s found %6.2f %%, false %7.2f / 10000, latency %.2f "
        "(at most %d)\n",
        name, rate(s), false_rate(s), s->found ? s->latency / s->found : 0,
        s->latest);
}

struct row {
    const char *name;
    struct series_config c;
    double found_min, false_max; /* asserted, for bocd + verification */
};

static const struct row rows[] = {
    {"CV 0.3 %, no spikes", {0.003, 0, 1.15, 3, 30, 150, 0}, 99.9, 0.1},
    {"CV 1 %, spikes 2 %", {0.01, 0.02, 1.15, 3, 30, 150, 0}, 99, 1},
    {"CV 2 %, spikes 2 %", {0.02, 0.02, 1.15, 3, 30, 150, 0}, 99, 1},
    {"CV 2 %, stretches 10+", {0.02, 0.02, 1.15, 3, 10, 60, 0}, 97, 3},
    {"CV 5 %, spikes 2 %", {0.05, 0.02, 1.15, 3, 30, 150, 0}, 90, 5},
    {"CV 8 %, spikes 2 %", {0.08, 0.02, 1.15, 3, 30, 150, 0}, 70, 10},
    {"CV 0.3 %, healthy", {0.003, 0.02, 1, 1, 100, 100, 1}, 0, 0.3},
    {"CV 2 %, healthy", {0.02, 0.02, 1, 1, 100, 100, 1}, 0, 0.3},
    {"CV 5 %, healthy", {0.05, 0.02, 1, 1, 100, 100, 1}, 0, 0.5},
    {"CV 8 %, healthy", {0.08, 0.02, 1, 1, 100, 100, 1}, 0, 1},
};

static void check_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];

        printf("# %s\n", r->name);
        for (enum method m = 0; m < METHODS; m++) {
            struct score s = measure(m, &r->c, SEED + 1000 * i, 25, 1000);

            print_score(names[m], &s);
            if (m != VERIFIED)
                continue;
            if (s.found)
                printf("#   %-20s since off by %.2f, %d misread, %d spikes\n",
                       "", s.misdated / s.found, s.misread, s.spikes);
            ok(rate(&s) >= r->found_min);
            ok(false_rate(&s) <= r->false_max);
            ok(s.misread <= s.changes / 100);
        }
    }
}

/* 50,000 healthy iterations, CV 2 %: no false alarm. */
static void check_quiet(void)
{
    struct series_config c = {0.02, 0, 1, 1, 100, 100, 1};
    struct score s = measure(VERIFIED, &c, SEED + 50000, 1, 50000);

    print_score("50,000 healthy", &s);
    ok(s.alarms_false == 0);
    ok(s.spikes == 0);
}

/* A step of 15 % at CV 2 % is found every time within 8 iterations. */
static void check_step(void)
{
    struct series_config c = {0.02, 0, 1.15, 1.15, 40, 80, 0};
    struct score s = measure(VERIFIED, &c, SEED + 60000, 100, 300);

    print_score("15 % at CV 2 %", &s);
    ok(s.found == s.changes && s.changes > 100);
    ok(s.latest < 8);
    ok(s.alarms_false == 0);
}

/* The cost of a push, for the record. */
static void print_speed(void)
{
    struct ep_changepoint *cp = ep_changepoint_new(NULL, NULL);
    struct ep_change e[EP_CHANGEPOINT_MAX_EVENTS];
    struct rng rng = {SEED};
    clock_t start = clock();
    int events = 0;

    for (int t = 0; t < 100000; t++)
        events +=
            ep_changepoint_push(cp, t, t, 1 + 0.04 * rng_uniform(&rng), e);
    printf("# %.0f ns per push\n",
           1e9 * (double)(clock() - start) / CLOCKS_PER_SEC / 100000);
    ok(events == 0);
    ep_changepoint_free(cp);
}

int main(void)
{
    printf("# seed %d\n", SEED);
    check_rows();
    check_quiet();
    check_step();
    print_speed();
    return tap_done();
}

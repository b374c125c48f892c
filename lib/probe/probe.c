/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - the driver of all probes: time, repeats, statistics. See probe.h.
 *
 * Median and MAD rather than mean and deviation: on a shared machine a run is
 * now and then stretched by an interrupt or a migration, never shortened, and
 * one such run must move neither the value nor the spread (P. J. Huber,
 * "Robust Statistics", 1981, section 5.1: both break down at one half).
 */
#include "config.h"

#include "probe/probe.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The back ends, in the order of the default run. */
static const struct ep_probe_backend *const backends[] = {
    &ep_probe_cpu_gemm,
    &ep_probe_cpu_membw,
};

#define NBACKENDS (sizeof backends / sizeof backends[0])

struct ep_probe {
    const struct ep_probe_test *test;
    struct ep_probe_config cfg; /* now is never NULL */
    struct ep_probe_shape shape;
    void *state;
    double *rates; /* [cap] of the measurement under way */
    size_t cap;
};

/* Sums over the runs of one measurement. */
struct tally {
    int n;
    double spent; /* seconds, by our clock, within run() */
    struct ep_probe_run sum;
};

/* ==== The table ==== */

size_t ep_probe_count(void)
{
    size_t n = 0;

    for (size_t i = 0; i < NBACKENDS; i++)
        n += backends[i]->ntests;
    return n;
}

const struct ep_probe_test *ep_probe_at(size_t i)
{
    for (size_t k = 0; k < NBACKENDS; k++) {
        if (i < backends[k]->ntests)
            return &backends[k]->tests[i];
        i -= backends[k]->ntests;
    }
    return NULL;
}

/* Does the item name the test? See ep_probe_select. */
static bool names(struct ep_span item, const char *spec)
{
    if (ep_span_eq(item, "all"))
        return true;
    return strncmp(spec, item.ptr, item.len) == 0 &&
           (spec[item.len] == '\0' || spec[item.len] == ':');
}

static int unknown_test(struct ep_span item, struct ep_error *err)
{
    char text[64];
    struct ep_buf known;
    int rc;

    ep_buf_init(&known);
    for (size_t i = 0; i < ep_probe_count(); i++)
        ep_buf_addf(&known, " %s", ep_probe_at(i)->spec);
    rc = ep_error_set(err, EP_EUSAGE, "unknown test '%s', known are:%s",
                      ep_escape(text, sizeof text, item.ptr, item.len),
                      known.ptr);
    ep_buf_free(&known);
    return rc;
}

int ep_probe_select(const char *list, const struct ep_probe_test **out,
                    size_t cap, struct ep_error *err)
{
    size_t total = ep_probe_count();
    bool *chosen = NULL;
    int n = 0;

    if (cap < total)
        return ep_error_set(err, EP_ELIMIT,
                            "cannot select tests: room for %zu of %zu", cap,
                            total);
    chosen = ep_calloc(total, sizeof *chosen);
    for (const char *p = list;; p++) {
        struct ep_span item = {p, strcspn(p, ",")};
        bool found = false;

        for (size_t i = 0; item.len > 0 && i < total; i++)
            if (names(item, ep_probe_at(i)->spec))
                chosen[i] = found = true;
        if (!found) {
            n = unknown_test(item, err);
            break;
        }
        p += item.len;
        if (*p == '\0')
            break;
    }
    for (size_t i = 0; n >= 0 && i < total; i++)
        if (chosen[i])
            out[n++] = ep_probe_at(i);
    free(chosen);
    return n;
}

/* ==== Open and close ==== */

static double system_now(void *ctx)
{
    struct timespec t;

    (void)ctx;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return NAN;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct ep_probe *ep_probe_open(const struct ep_probe_test *test,
                               const struct ep_probe_config *cfg,
                               struct ep_error *err)
{
    static const struct ep_probe_config none;
    struct ep_probe *p = ep_calloc(1, sizeof *p);

    p->test = test;
    p->cfg = cfg ? *cfg : none;
    if (!p->cfg.now)
        p->cfg.now = system_now;
    if (p->cfg.threads < 0 || p->cfg.threads > EP_PROBE_MAX_THREADS) {
        (void)ep_error_set(err, EP_ERANGE,
                           "number of threads %d is not in 1 .. %d",
                           p->cfg.threads, EP_PROBE_MAX_THREADS);
        free(p);
        return NULL;
    }
    if (p->cfg.threads == 0)
        p->cfg.threads = ep_threads_allowed();
    if (test->prepare(test, &p->cfg, &p->state, &p->shape, err) < 0) {
        free(p);
        return NULL;
    }
    return p;
}

void ep_probe_close(struct ep_probe *p)
{
    if (!p)
        return;
    p->test->release(p->state);
    free(p->rates);
    free(p);
}

/* ==== Measuring ==== */

/* rates[n] -> value, spread, best; reorders and overwrites rates. */
static void summarise(double *rates, size_t n, struct ep_probe_result *out)
{
    out->best = rates[0];
    for (size_t i = 1; i < n; i++)
        out->best = fmax(out->best, rates[i]);
    out->value = ep_median(rates, n);
    out->spread = n < 2 ? NAN : ep_mad(rates, n, out->value) / out->value;
}

/* One run; *seconds as the device or else our clock counts it. */
static int run_once(struct ep_probe *p, struct tally *t, double *seconds,
                    struct ep_error *err)
{
    const struct ep_probe_config *c = &p->cfg;
    struct ep_probe_run run = {.seconds = NAN};
    double begin = c->now(c->ctx), spent;
    int rc = p->test->run(p->state, &run, err);

    spent = c->now(c->ctx) - begin;
    if (rc < 0)
        return rc;
    *seconds = isnan(run.seconds) ? spent : run.seconds;
    if (!(*seconds > 0.0) || isinf(*seconds))
        return ep_error_set(err, EP_ERANGE,
                            "a run took %g s by the clock: too short to time, "
                            "take a larger size",
                            *seconds);
    t->n++;
    t->spent += spent;
    t->sum.seconds += *seconds;
    t->sum.held += run.held;
    t->sum.cpu += run.cpu;
    t->sum.wait += run.wait;
    return 0;
}

/* Warm-up and timed runs; the latter in *t and p->rates, *wall their span. */
static int run_all(struct ep_probe *p, const struct ep_probe_goal *goal,
                   struct tally *t, double *wall, struct ep_error *err)
{
    const struct ep_probe_config *c = &p->cfg;
    struct tally warm = {0};
    double begin = c->now(c->ctx), first, seconds;
    int least =
        goal->repeats < EP_PROBE_MIN_RUNS ? goal->repeats : EP_PROBE_MIN_RUNS;
    int rc;

    while (warm.n < goal->warmups) {
        rc = run_once(p, &warm, &seconds, err);
        if (rc < 0)
            return rc;
        if (c->now(c->ctx) - begin >= goal->budget)
            break;
    }
    first = c->now(c->ctx);
    while (t->n < goal->repeats) {
        const struct tally *like = t->n ? t : &warm;
        double next = like->n ? like->spent / like->n : 0.0;

        if (t->n >= least && c->now(c->ctx) - begin + next > goal->budget)
            break;
        p->rates = ep_grow(p->rates, &p->cap, (size_t)t->n + 1, sizeof(double));
        rc = run_once(p, t, &seconds, err);
        if (rc < 0)
            return rc;
        p->rates[t->n - 1] = p->shape.work / seconds;
    }
    *wall = c->now(c->ctx) - first;
    return 0;
}

int ep_probe_measure(struct ep_probe *p, const struct ep_probe_goal *goal,
                     struct ep_probe_result *out, struct ep_error *err)
{
    const struct ep_probe_test *test = p->test;
    struct tally t = {0};
    int rc;

    *out = (struct ep_probe_result){
        .test = test->test,
        .dtype = test->dtype,
        .unit = test->unit,
        .better = test->better,
        .size = p->shape.size,
        .threads = p->shape.threads,
    };
    if (goal->repeats < 1 || goal->repeats > EP_PROBE_MAX_RUNS ||
        goal->warmups < 0 || goal->warmups > EP_PROBE_MAX_RUNS ||
        !(goal->budget >= 0.0))
        return ep_error_set(err, EP_ERANGE,
                            "%d runs, %d to warm up, in %g s make no goal",
                            goal->repeats, goal->warmups, goal->budget);
    rc = run_all(p, goal, &t, &out->wall, err);
    if (rc < 0)
        return rc;
    summarise(p->rates, (size_t)t.n, out);
    out->n = t.n;
    out->busy = t.sum.seconds;
    out->cpu_share = t.sum.held > 0.0 ? t.sum.cpu / t.sum.held : NAN;
    out->wait_share = t.sum.held > 0.0 ? t.sum.wait / t.sum.held : NAN;
    return test->check(p->state, err);
}

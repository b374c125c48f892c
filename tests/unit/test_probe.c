/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_probe.c - the driver of the probes, with a fake back end and a fake
 * clock: statistics, budget, failures; and the list of tests.
 */
#include "config.h"

#include "probe/probe.h"

#include "tap.h"

#include <string.h>

/* ==== A device made of numbers ==== */

#define FAKE_WORK 12.0

struct fake {
    double now;
    const double *lengths; /* of the runs, the last one repeats */
    int nlengths;
    double cpu_of_run;  /* share of a run that is CPU time */
    double wait_of_run; /* and that is waiting */
    double own_time;    /* > 0: the device times itself, this long */
    int threads;        /* for the shape */
    int fail_at;        /* this run fails, from 1; 0: none */
    bool fail_prepare, fail_check;
    int prepared, ran, checked, released;
};

static double fake_now(void *ctx)
{
    return ((struct fake *)ctx)->now;
}

static int fake_prepare(const struct ep_probe_test *self,
                        const struct ep_probe_config *cfg, void **state,
                        struct ep_probe_shape *shape, struct ep_error *err)
{
    struct fake *f = cfg->ctx;

    (void)self;
    if (f->fail_prepare)
        return ep_error_set(err, EP_EMISSING, "no device");
    f->prepared++;
    *state = f;
    shape->size = cfg->size ? cfg->size : 77;
    shape->work = FAKE_WORK;
    shape->threads = f->threads;
    return 0;
}

static int fake_run(void *state, struct ep_probe_run *out, struct ep_error *err)
{
    struct fake *f = state;
    int i = f->ran < f->nlengths ? f->ran : f->nlengths - 1;

    if (++f->ran == f->fail_at)
        return ep_error_set(err, EP_ESYS, "device fell off the bus");
    f->now += f->lengths[i];
    out->held = f->lengths[i] * f->threads;
    out->cpu = out->held * f->cpu_of_run;
    out->wait = out->held * f->wait_of_run;
    if (f->own_time > 0.0)
        out->seconds = f->own_time;
    return 0;
}

static int fake_check(void *state, struct ep_error *err)
{
    struct fake *f = state;

    f->checked++;
    if (f->fail_check)
        return ep_error_set(err, EP_EDOM, "wrong result");
    return 0;
}

static void fake_release(void *state)
{
    ((struct fake *)state)->released++;
}

static const struct ep_probe_test fake_test = {
    "fake:f32",   "fake",   "f32",      "FLOP/s",     "high",
    fake_prepare, fake_run, fake_check, fake_release,
};

static struct ep_probe *open_fake(struct fake *f, struct ep_error *err)
{
    struct ep_probe_config cfg = {.now = fake_now, .ctx = f};

    return ep_probe_open(&fake_test, &cfg, err);
}

/* ==== The driver ==== */

static void test_statistics(void)
{
    /* By hand: rates are 12 / length. */
    static const struct {
        double lengths[5];
        int n;
        double value, spread, best, busy;
    } table[] = {
        {{1, 2, 3, 4, 6}, 5, 4.0, 0.5, 12.0, 16.0}, /* 12 6 4 3 2 */
        {{6, 4, 3, 2, 1}, 5, 4.0, 0.5, 12.0, 16.0}, /* order is nothing */
        {{1, 2, 3, 4}, 4, 5.0, 0.3, 12.0, 10.0},    /* |dev| 1 1 2 7 */
        {{2, 2, 2}, 3, 6.0, 0.0, 6.0, 6.0},
        {{2, 2, 2, 2, 1e3}, 5, 6.0, 0.0, 6.0, 1008.0}, /* one bad run */
        {{1, 3}, 2, 8.0, 0.5, 12.0, 4.0},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct fake f = {.lengths = table[i].lengths,
                         .nlengths = table[i].n,
                         .cpu_of_run = 1.0,
                         .threads = 1};
        struct ep_probe_goal goal = {table[i].n, 0, INFINITY};
        struct ep_probe *p = open_fake(&f, NULL);
        struct ep_probe_result r;

        printf("# row %zu\n", i);
        ok(ep_probe_measure(p, &goal, &r, NULL) == 0);
        ok(r.n == table[i].n && f.ran == table[i].n);
        near(r.value, table[i].value, 1e-12);
        near(r.spread, table[i].spread, 1e-12);
        near(r.best, table[i].best, 1e-12);
        near(r.busy, table[i].busy, 1e-12);
        near(r.wall, table[i].busy, 1e-12);
        near(r.cpu_share, 1.0, 1e-12);
        ok(r.size == 77 && strcmp(r.test, "fake") == 0 &&
           strcmp(r.dtype, "f32") == 0 && strcmp(r.unit, "FLOP/s") == 0 &&
           strcmp(r.better, "high") == 0);
        ep_probe_close(p);
        ok(f.released == 1);
    }
}

static void test_budget(void)
{
    static const double one[] = {1.0}, slow_start[] = {5.0, 1.0};
    static const struct {
        const double *lengths;
        struct ep_probe_goal goal;
        double end; /* what the clock says afterwards */
        int nlengths, n;
    } table[] = {
        {one, {10, 1, 100.0}, 11.0, 1, 10},
        {one, {10, 1, 11.0}, 11.0, 1, 10}, /* just fits */
        {one, {10, 1, 10.5}, 10.0, 1, 9},  /* the last would not */
        {one, {10, 1, 5.0}, 5.0, 1, 4},    /* the warm-up counts as time */
        {one, {10, 0, 5.0}, 5.0, 1, 5},
        {one, {10, 1, 0.0}, 4.0, 1, 3}, /* the minimum */
        {one, {2, 1, 0.0}, 3.0, 1, 2},
        {one, {10, 5, 2.0}, 5.0, 1, 3}, /* warm-ups heed the budget */
        {one, {10, 2, INFINITY}, 12.0, 1, 10},
        {slow_start, {10, 1, 9.5}, 9.0, 2, 4}, /* estimate from timed runs */
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct fake f = {.lengths = table[i].lengths,
                         .nlengths = table[i].nlengths};
        struct ep_probe *p = open_fake(&f, NULL);
        struct ep_probe_result r;

        printf("# row %zu\n", i);
        ok(ep_probe_measure(p, &table[i].goal, &r, NULL) == 0);
        near(r.n, table[i].n, 0);
        near(f.now, table[i].end, 1e-9);
        ok(f.checked == 1);
        ep_probe_close(p);
    }
}

static void test_again(void)
{
    static const double lengths[] = {4.0, 2.0};
    struct fake f = {.lengths = lengths, .nlengths = 2};
    struct ep_probe_goal usual = EP_PROBE_GOAL_DEFAULT, load = {3, 0, INFINITY};
    struct ep_probe *p = open_fake(&f, NULL);
    struct ep_probe_result r;

    usual.budget = INFINITY;
    ok(ep_probe_measure(p, &usual, &r, NULL) == 0);
    near(r.value, 6.0, 1e-12); /* the long warm-up is not in it */
    ok(r.n == 10 && f.ran == 11);
    for (int i = 0; i < 3; i++)
        ok(ep_probe_measure(p, &load, &r, NULL) == 0 && r.n == 3);
    ok(f.ran == 20 && f.prepared == 1 && f.checked == 4 && f.released == 0);
    ep_probe_close(p);
    ok(f.released == 1);
    ep_probe_close(NULL);
}

static void test_shares(void)
{
    static const double lengths[] = {2.0};
    struct ep_probe_goal goal = {4, 1, INFINITY};
    struct fake f = {.lengths = lengths,
                     .nlengths = 1,
                     .cpu_of_run = 0.75,
                     .wait_of_run = 0.25,
                     .threads = 2};
    struct ep_probe *p = open_fake(&f, NULL);
    struct ep_probe_result r;

    ok(ep_probe_measure(p, &goal, &r, NULL) == 0);
    near(r.cpu_share, 0.75, 1e-12);
    near(r.wait_share, 0.25, 1e-12);
    ok(r.threads == 2);
    f.wait_of_run = NAN;
    ok(ep_probe_measure(p, &goal, &r, NULL) == 0);
    ok(isnan(r.wait_share) && !isnan(r.cpu_share));
    ep_probe_close(p);

    /* A device with a clock of its own: ours is only for the budget. */
    f.threads = 0;
    f.own_time = 0.5;
    p = open_fake(&f, NULL);
    ok(ep_probe_measure(p, &goal, &r, NULL) == 0);
    near(r.value, 24.0, 1e-12);
    near(r.busy, 2.0, 1e-12);
    near(r.wall, 8.0, 1e-12);
    ok(isnan(r.cpu_share) && isnan(r.wait_share));
    ep_probe_close(p);
}

static void test_failures(void)
{
    static const double one[] = {1.0}, none[] = {0.0}, back[] = {-1.0};
    static const struct ep_probe_goal bad[] = {
        {0, 1, 1.0},  {EP_PROBE_MAX_RUNS + 1, 1, 1.0},
        {1, -1, 1.0}, {1, EP_PROBE_MAX_RUNS + 1, 1.0},
        {1, 1, -1.0}, {1, 1, NAN},
    };
    struct ep_probe_goal goal = {5, 1, INFINITY}, once = {1, 0, 1.0};
    struct fake f = {.lengths = one, .nlengths = 1, .fail_at = 4};
    struct ep_probe_config cfg = {.threads = -1, .ctx = &f};
    struct ep_error err = {0};
    struct ep_probe *p = open_fake(&f, &err);
    struct ep_probe_result r;

    ok(ep_probe_measure(p, &goal, &r, &err) == EP_ESYS && r.n == 0);
    ok(strcmp(err.msg, "device fell off the bus") == 0);
    ok(f.checked == 0);
    ok(ep_probe_measure(p, &goal, &r, &err) == 0 && r.n == 5);
    f.fail_at = f.ran + 1; /* the warm-up */
    ok(ep_probe_measure(p, &goal, &r, NULL) == EP_ESYS);
    f.fail_check = true;
    ok(ep_probe_measure(p, &goal, &r, &err) == EP_EDOM);
    ok(r.n == 5 && r.value == FAKE_WORK);
    ok(strcmp(err.msg, "wrong result") == 0);
    f.fail_check = false;
    ok(ep_probe_measure(p, &once, &r, &err) == 0);
    ok(r.n == 1 && isnan(r.spread) && r.value == r.best);
    f.lengths = none;
    ok(ep_probe_measure(p, &goal, &r, &err) == EP_ERANGE);
    f.lengths = back;
    ok(ep_probe_measure(p, &goal, &r, &err) == EP_ERANGE);
    f.lengths = one;
    f.ran = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(ep_probe_measure(p, &bad[i], &r, &err) == EP_ERANGE);
    ok(f.ran == 0);
    ep_probe_close(p);

    f.fail_prepare = true;
    ok(!open_fake(&f, &err) && err.code == EP_EMISSING);
    ok(strcmp(err.msg, "no device") == 0);
    ok(!open_fake(&f, NULL));
    ok(!ep_probe_open(&fake_test, &cfg, &err) && err.code == EP_ERANGE);
    cfg.threads = EP_PROBE_MAX_THREADS + 1;
    ok(!ep_probe_open(&fake_test, &cfg, &err) && err.code == EP_ERANGE);
}

static void test_select(void)
{
    static const struct {
        const char *list, *want;
    } table[] = {
        {"all", "gemm:f32 gemm:f64 membw:copy membw:triad "},
        {"gemm,membw", "gemm:f32 gemm:f64 membw:copy membw:triad "},
        {"membw:triad,gemm:f64", "gemm:f64 membw:triad "},
        {"membw,membw:copy,membw", "membw:copy membw:triad "},
        {"gemm:f32", "gemm:f32 "},
        {"", NULL},
        {"gemm,", NULL},
        {",gemm", NULL},
        {"gemm,,membw", NULL},
        {"gem", NULL},
        {"gemm:", NULL},
        {"gemm:f", NULL},
        {"gemm:f321", NULL},
        {"al", NULL},
        {"gemm\n", NULL},
        {"GEMM", NULL},
    };
    const struct ep_probe_test *out[8];
    struct ep_error err;

    ok(ep_probe_count() == 4 && !ep_probe_at(4) && !ep_probe_at(SIZE_MAX));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int n = ep_probe_select(table[i].list, out, 8, &err);
        char text[128] = "";
        size_t len = 0;

        printf("# row %zu\n", i);
        for (int k = 0; k < n; k++) {
            len += (size_t)snprintf(text + len, sizeof text - len, "%s ",
                                    out[k]->spec);
        }
        if (table[i].want)
            ok(strcmp(text, table[i].want) == 0);
        else
            ok(n == EP_EUSAGE && strstr(err.msg, "membw:triad"));
    }
    ok(ep_probe_select("all", out, 3, &err) == EP_ELIMIT);
    ok(ep_probe_select("x\033", out, 8, &err) == EP_EUSAGE &&
       strstr(err.msg, "'x\\x1b'"));
}

int main(void)
{
    test_statistics();
    test_budget();
    test_again();
    test_shares();
    test_failures();
    test_select();
    return tap_done();
}

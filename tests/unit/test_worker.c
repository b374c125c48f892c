/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_worker.c - the worker, its local steps by speed, its learning rate and
 * its samples. The published H_i (arXiv 2506.04531, its released settings)
 * are the reference of ep_local_steps.
 */
#include "config.h"

#include "lsgd/worker.h"

#include "tap.h"
#include "untouched.h"

#include <float.h>
#include <stdbool.h>
#include <string.h>

static uint64_t steps_of(uint64_t h, double speed, double fastest)
{
    uint64_t steps = 0;

    return ep_local_steps(h, speed, fastest, &steps, NULL) == 0 ? steps : 0;
}

static void test_published_steps(void)
{
    static const double speed[16] = {
        .232, .907, .828, .347, .574, .531, .722, .194,
        .852, .132, .896, .107, .827, .515, .527, .788,
    };
    static const uint64_t h8[16] = {3, 8, 8, 4, 6, 5, 7, 2,
                                    8, 2, 8, 1, 8, 5, 5, 7};
    static const uint64_t h32[16] = {9,  32, 30, 13, 21, 19, 26, 7,
                                     31, 5,  32, 4,  30, 19, 19, 28};

    for (int i = 0; i < 16; i++) {
        ok(steps_of(8, speed[i], .907) == h8[i]);
        ok(steps_of(32, speed[i], .907) == h32[i]);
        /* and as speeds relative to the fastest */
        ok(steps_of(32, speed[i] / .907, 1) == h32[i]);
    }
}

static void test_local_steps(void)
{
    static const struct {
        uint64_t h;
        double speed, fastest;
        uint64_t steps;
    } row[] = {
        {1, 1, 1, 1},
        {1, 1e-300, 1, 1},
        {8, DBL_TRUE_MIN, DBL_MAX, 1},
        {8, DBL_MAX, DBL_MAX, 8},
        {8, 1e308, 1.6e308, 5}, /* h speed is beyond the range */
        {8, 0.5, 1, 4},
        {8, 0.5 * (1 + 2e-9), 1, 5},
        {8, 0.5 * (1 + 5e-10), 1, 4}, /* counts as whole */
        {8, 0.5 * (1 - 5e-10), 1, 4},
        {8, 0.125 * (1 - 1e-3), 1, 1},
        {10, 0.7, 1, 7}, /* 7.000...001 in double, 7 is meant */
        {100, 0.29, 1, 29},
        {3, 1.0 / 3, 1, 1},
        {49, 1.0 / 49, 1, 1},
        {UINT64_MAX, 1, 1, UINT64_MAX},
        {UINT64_MAX, 2.5, 5, UINT64_C(1) << 63},
        {(UINT64_C(1) << 53) + 1, 3, 3, (UINT64_C(1) << 53) + 1},
    };
    static const struct {
        uint64_t h;
        double speed, fastest;
        const char *name;
    } bad[] = {
        {0, 1, 1, "local steps: "},
        {8, 0, 1, "speed: "},
        {8, -1, 1, "speed: "},
        {8, (double)NAN, 1, "speed: "},
        {8, 1.0001, 1, "speed: "},
        {8, (double)INFINITY, 1, "speed: "},
        {8, 1, 0, "fastest speed: "},
        {8, 1, (double)INFINITY, "fastest speed: "},
        {8, 1, (double)NAN, "fastest speed: "},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!ok(steps_of(row[i].h, row[i].speed, row[i].fastest) ==
                row[i].steps))
            printf("# row %zu\n", i);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t steps = 77;
        struct ep_error err = {0};

        ok(ep_local_steps(bad[i].h, bad[i].speed, bad[i].fastest, &steps,
                          &err) == EP_EDOM);
        ok(err.code == EP_EDOM && steps == 77);
        ok(strncmp(err.msg, bad[i].name, strlen(bad[i].name)) == 0);
    }
}

static void test_schedule(void)
{
    const struct ep_schedule s = {1e-3, 0.1, 4, 12};
    const struct ep_schedule flat = {2, 1, 0, 8}, all = {2, 0.5, 8, 8};

    near(ep_schedule_lr(&s, 0), 0.25e-3, 1e-18);
    near(ep_schedule_lr(&s, 1), 0.5e-3, 1e-18);
    near(ep_schedule_lr(&s, 3), 1e-3, 1e-18);
    near(ep_schedule_lr(&s, 4), 1e-3, 1e-18);
    /* a quarter of the way: (1 + sqrt(1/2)) / 2; half: 0.55; three quarters */
    near(ep_schedule_lr(&s, 6),
         1e-3 * (0.1 + 0.9 * (1 + 0.70710678118654752) / 2), 1e-18);
    near(ep_schedule_lr(&s, 8), 0.55e-3, 1e-18);
    near(ep_schedule_lr(&s, 10),
         1e-3 * (0.1 + 0.9 * (1 - 0.70710678118654752) / 2), 1e-18);
    near(ep_schedule_lr(&s, 12), 0.1e-3, 1e-18);
    near(ep_schedule_lr(&s, 13), 0.1e-3, 1e-18);
    near(ep_schedule_lr(&s, UINT64_MAX), 0.1e-3, 1e-18);
    for (uint64_t pos = 0; pos < 10; pos++)
        near(ep_schedule_lr(&flat, pos), 2, 0);
    near(ep_schedule_lr(&all, 7), 2, 0);
    near(ep_schedule_lr(&all, 8), 1, 0);
}

static void test_samples(void)
{
    struct ep_samples s = {0, 64};

    ok(ep_samples_take(&s, 3) == 0 && s.next == 192);
    ok(ep_samples_take(&s, 8) == 3 && s.next == 704);
    ok(ep_samples_take(&s, 0) == 11 && s.next == 704);
    ok(ep_samples_take(&s, 1) == 11 && s.next == 768);
    s = (struct ep_samples){.next = 100, .batch = 64};
    ok(ep_samples_take(&s, 1) == 1 && s.next == 164);
}

static void test_worker(void)
{
    struct ep_worker w;
    struct ep_worker_effect e;

    ok(ep_worker_init(&w, 5, 2048, NULL) == 0);
    ok(!w.training && w.exchange == 0);
    ok(ep_worker_start(&w, 7, 40, NULL) == 0);
    ok(w.training && w.base == 7 && w.position == 40);
    ok(ep_worker_finish(&w, &e, NULL) == 0 && !w.training);
    ok(e.base == 7 && e.exchange == 1);
    ok(e.work.updates == 1 && e.work.steps == 5 && e.work.tokens == 10240);
    /* a failure: the round is gone, and its number is used by the next */
    ok(ep_worker_start(&w, 8, 45, NULL) == 0);
    ep_worker_fail(&w);
    ok(!w.training && w.exchange == 1 && w.done.updates == 1);
    ok(ep_worker_finish(&w, &e, NULL) == EP_EDOM);
    ok(ep_worker_start(&w, 9, 50, NULL) == 0 && w.base == 9);
    ok(ep_worker_finish(&w, &e, NULL) == 0);
    ok(e.base == 9 && e.exchange == 2);
    ok(w.done.updates == 2 && w.done.steps == 10 && w.done.tokens == 20480);
    ep_worker_fail(&w);
    ok(!w.training && w.exchange == 2);
}

static void test_worker_errors(void)
{
    struct ep_worker w, before;
    struct ep_worker_effect e;
    struct ep_error err;

    memset(&e, UNTOUCHED, sizeof e);
    memset(&w, UNTOUCHED, sizeof w);
    memcpy(&before, &w, sizeof w);
    ok(ep_worker_init(&w, 0, 1, &err) == EP_EDOM && err.code == EP_EDOM);
    ok(strncmp(err.msg, "local steps: ", 13) == 0);
    ok(same(&w, &before, sizeof w));
    ok(ep_worker_init(&w, 2, 1, NULL) == 0);
    memcpy(&before, &w, sizeof w);
    ok(ep_worker_finish(&w, &e, &err) == EP_EDOM && err.code == EP_EDOM);
    ok(strcmp(err.msg, "cannot finish a round: none is in training") == 0);
    ok(same(&w, &before, sizeof w));
    ok(untouched(&e, sizeof e));
    ok(ep_worker_start(&w, 1, 0, NULL) == 0);
    memcpy(&before, &w, sizeof w);
    ok(ep_worker_start(&w, 2, 3, &err) == EP_EDOM && err.code == EP_EDOM);
    ok(strcmp(err.msg, "cannot start a round: one is in training") == 0);
    ok(same(&w, &before, sizeof w));
}

int main(void)
{
    test_published_steps();
    test_local_steps();
    test_schedule();
    test_samples();
    test_worker();
    test_worker_errors();
    return tap_done();
}

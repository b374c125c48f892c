/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_watch_work.c - phases of a job, work that is uneven, and ranks that are
 * slow from their first step. Harness: watch_seen.h.
 */
#include "config.h"

#include "base/rng.h"
#include "detect/watch_impl.h"
#include "watch_seen.h"

#include <stdlib.h>

#define RANKS 8

/* A made-up job: what rank r does in step s. */
struct plan {
    const char *what, *expect;
    int steps;
    double (*busy)(int r, int s); /* of a micro-batch */
    double (*tokens)(int r, int s);
    int (*mb)(int s);
    bool no_busy;
};

static double flat(int r, int s)
{
    (void)r, (void)s;
    return 1;
}

static int eight(int s)
{
    (void)s;
    return 8;
}

static int ramp_up(int s)
{
    return s < 40 ? 8 : s < 80 ? 12 : s < 120 ? 16 : 24;
}

static double longer(int r, int s)
{
    (void)r;
    return s < 60 ? 1 : 1.7;
}

/* The third rank of eight, in the steps from .. to. */
static double third(int r, int s, int from, int to, double factor)
{
    return r == 2 && s >= from && s < to ? factor : 1;
}

/* Sequences of other lengths in each step, the same for all ranks. */
static double mixed(int r, int s)
{
    (void)r;
    return 0.7 + 0.05 * (s * 37 % 13);
}

static double mixed_and_slow(int r, int s)
{
    return mixed(r, s) * third(r, s, 100, 140, 1.5);
}

static double longer_and_slow(int r, int s)
{
    return longer(r, s) * third(r, s, 100, 130, 1.3);
}

static double slow_before_longer(int r, int s)
{
    return longer(r, s) * third(r, s, 40, 90, 1.4);
}

static double slow_later(int r, int s)
{
    return third(r, s, 100, 140, 1.3);
}

/* Of two replicas the second has longer sequences from step 50 on. */
static double uneven(int r, int s)
{
    return r >= 4 && s >= 50 ? 1.5 : 1;
}

static double one_uneven(int r, int s)
{
    return r == 5 && s >= 50 ? 1.5 : 1;
}

static double slow_at_first(int r, int s)
{
    return third(r, s, 0, 999, 1.5);
}

static double recovers(int r, int s)
{
    return third(r, s, 0, 20, 1.5);
}

/* Common, to 20x, and different from rank to rank. */
static double warm_up(int r, int s)
{
    return (1 + 19 * pow(0.4, s)) * (1 + r * 0.8 * pow(0.7, s));
}

static double both_stages(int r, int s)
{
    (void)r, (void)s;
    return 1.6;
}

static double slow_warm_up(int r, int s)
{
    return (1 + 19 * pow(0.3, s)) * third(r, s, 0, 999, 1.2);
}

/* Within 0.3 %, noise of 0.5 %. */
static double alike(int r, int s)
{
    static struct ep_rng rng;
    double x = 0;

    if (!s && !r)
        ep_rng_seed(&rng, 3, 0);
    for (int i = 0; i < 12; i++)
        x += ep_rng_uniform(&rng) - 0.5;
    return 1 + 0.003 * (r % 3 - 1) + 0.005 * x;
}

static double checkpoints(int r, int s)
{
    (void)r;
    return longer(r, s) * (s % 20 == 0 ? 3 : s % 20 == 1 ? 2 : 1);
}

static double checkpoints_and_slow(int r, int s)
{
    return third(r, s, 79, 160, 1.3) * (s % 20 == 0 ? 3 : 1);
}

/* dur: 40 % of a step of 8 micro-batches is communication. */
static void run(const struct plan *p)
{
    begin();
    for (int s = 0; s < p->steps; s++) {
        double busy[RANKS], most = 0, ts = s * 100;

        for (int r = 0; r < RANKS; r++) {
            busy[r] = p->busy(r, s) * ripple(r, s) * p->mb(s) / 8;
            most = fmax(most, busy[r]);
        }
        for (int r = 0; r < RANKS; r++) {
            double tokens = p->tokens ? p->tokens(r, s) : 0;

            step_as.tokens = tokens * 2048 * p->mb(s);
            (void)take_step(r, ts, s, most + 0.6, p->no_busy ? NAN : busy[r],
                            p->no_busy ? -1 : p->mb(s));
        }
    }
    step_as.tokens = 0;
    ok(findings_are(p->expect, p->what));
    end();
}

static void test_phases(void)
{
    static const struct plan plans[] = {
        {"longer", "", 160, longer, longer, eight, false},
        {"longer, without busy", "", 160, longer, longer, eight, true},
        {"ramp-up", "", 160, flat, flat, ramp_up, false},
        {"ramp-up, mb alone", "", 160, flat, NULL, ramp_up, false},
        {"ramp-up, then slow",
         "onset rank=2 100 1.30 compute\n"
         /* 3.6 s, as 4.5 s were 1.23 */
         "relief rank=2 140 1.00 compute\n",
         200, slow_later, flat, ramp_up, false},
        {"slow, then longer",
         "onset rank=2 40 1.40 compute\n"
         /* 2.3 s, as 2.98 s were 1.25 */
         "relief rank=2 90 1.00 compute\n",
         140, slow_before_longer, longer, eight, false},
        {"longer, then slow",
         "onset rank=2 100 1.30 compute\n"
         "relief rank=2 130 1.00 compute\n",
         160, longer_and_slow, longer, eight, false},
        {"checkpoints and longer",
         "spike job 20 2.25 all-ranks\nspike job 40 2.25 all-ranks\n"
         /* 5.7 s, and 2.3 s with the longer sequences of step 60 */
         "spike job 60 2.48 all-ranks\n",
         160, checkpoints, longer, eight, false},
        {"checkpoints and slow",
         "spike job 20 2.25 all-ranks\nspike job 40 2.25 all-ranks\n"
         "spike job 60 2.25 all-ranks\n"
         "onset rank=2 79 1.30 compute\n",
         120, checkpoints_and_slow, flat, eight, false},
    };

    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        run(&plans[i]);
}

static void test_uneven(void)
{
    static const struct plan plans[] = {
        /* nobody's peers, but their own past */
        {"a replica",
         "onset rank=4 50 1.50 sequence-imbalance\nonset rank=5 50 1.50 "
         "sequence-imbalance\n"
         "onset rank=7 50 1.50 sequence-imbalance\nonset rank=6 50 1.50 "
         "sequence-imbalance\n"
         "",
         120, uneven, uneven, eight, false},
        {"a rank", "onset rank=5 50 1.50 sequence-imbalance\n", 120, one_uneven,
         one_uneven, eight, false},
    };

    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        run(&plans[i]);
}

static void test_mixed(void)
{
    static const struct plan plans[] = {
        {"mixed", "", 200, mixed, mixed, eight, false},
        {"mixed and slow",
         "onset rank=2 100 1.50 compute\n"
         "relief rank=2 140 1.01 compute\n",
         200, mixed_and_slow, mixed, eight, false},
    };

    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        run(&plans[i]);
}

static void test_start(void)
{
    static const struct plan plans[] = {
        {"slow", "onset rank=2 0 1.50 compute\n", 60, slow_at_first, flat,
         eight, false},
        {"slow, with a warm-up", "onset rank=2 0 1.20 compute\n", 60,
         slow_warm_up, flat, eight, false},
        {"recovers",
         "onset rank=2 0 1.50 compute\nrelief rank=2 20 1.00 compute\n", 60,
         recovers, flat, eight, false},
        {"warm-up", "", 100, warm_up, flat, eight, false},
        {"alike", "", 200, alike, flat, eight, false},
        {"all slow", "", 60, both_stages, flat, eight, false},
    };

    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        run(&plans[i]);
}

int main(void)
{
    test_phases();
    test_uneven();
    test_mixed();
    test_start();
    return tap_done();
}

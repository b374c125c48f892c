/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_watch.c - who, when, how much and why, for jobs whose course is known.
 *
 * Samples are made up so that every finding can be told by hand: busy is 50 ms
 * per micro-batch times the slowness of the scene, with a ripple of 0.4 %, and
 * all ranks of a job have the same dur. What records may tell and leave out:
 * test_watch_records.c; probes: test_watch_probes.c.
 */
#include "config.h"

#include "watch_seen.h"

#include <stdlib.h>

#define MB 8
#define PACE 0.05
/* Slowness of a rank in a step. */
typedef double scene_fn(int rank, int step);

/* Steps from..to of ranks 0..n-1, one a second from ts = at. */
static void play(scene_fn *slow, int n, int from, int to, double at)
{
    for (int step = from; step <= to; step++) {
        double dur = 0;

        for (int r = 0; r < n; r++)
            dur = fmax(dur, 1.1 * MB * PACE * slow(r, step));
        for (int r = 0; r < n; r++)
            if (slow(r, step) > 0)
                (void)take_step(r, at + step - from + r * 1e-4, step, dur,
                                MB * PACE * slow(r, step) * ripple(r, step),
                                MB);
    }
}

/* ==== Scenes: a job of n ranks from step 1 to the last ==== */

static double within(int step, int from, int to, double slow)
{
    return step >= from && step <= to ? slow : 1;
}

static double healthy(int r, int s)
{
    (void)r, (void)s;
    return 1;
}

static double one(int r, int s)
{
    return r == 1 ? within(s, 41, 80, 1.5) : 1;
}

static double recovers_early(int r, int s)
{
    return r == 1 ? within(s, 33, 60, 1.5) : 1;
}

static double from_first(int r, int s)
{
    (void)s;
    return r == 2 ? 1.3 : 1;
}

static double everyone(int r, int s)
{
    (void)r;
    return within(s, 41, 80, 1.5);
}

static double all_but_one(int r, int s)
{
    return r == 7 ? 1 : within(s, 41, 80, 1.5);
}

static double half(int r, int s)
{
    return r < 2 ? within(s, 41, 999, 1.5) : 1;
}

static double own_on_top(int r, int s)
{
    return within(s, 41, 100, 1.3) * (r == 2 ? within(s, 61, 80, 1.5) : 1);
}

static double left_behind(int r, int s)
{
    return r == 2 ? within(s, 41, 999, 1.5) : within(s, 41, 80, 1.5);
}

static double half_way(int r, int s)
{
    return s < 80 ? within(s, 41, 79, 1.5) : r == 2 ? 1.2 : 1;
}

static double common_on_top(int r, int s)
{
    return within(s, 61, 80, 1.3) * (r == 1 ? within(s, 41, 100, 1.5) : 1);
}

static double recovers_first(int r, int s)
{
    return within(s, 41, r == 2 ? 60 : 80, 1.5);
}

static double worse(int r, int s)
{
    return r == 1 ? within(s, 41, 100, 1.5) * within(s, 61, 80, 2) : 1;
}

static double all_worse(int r, int s)
{
    (void)r;
    return within(s, 41, 100, 1.5) * within(s, 61, 80, 2);
}

static double spike_of_all(int r, int s)
{
    (void)r;
    return s == 50 ? 2 : 1;
}

static double spike_of_one(int r, int s)
{
    return s == 50 && r == 3 ? 2 : 1;
}

static double fades(int r, int s)
{
    return r == 3 ? (s < 30 ? 1 : 0) : 1; /* 0: it has left */
}

static double slow_and_leaves(int r, int s)
{
    return r == 3 ? (s > 90 ? 0 : within(s, 41, 90, 1.5)) : 1;
}

static double slow_and_soon_gone(int r, int s)
{
    return r == 3 ? (s > 16 ? 0 : 1.5) : 1;
}

static double joins_late(int r, int s)
{
    return r == 3 ? (s < 50 ? 0 : 1.4) : 1;
}

static const struct {
    const char *what;
    scene_fn *slow;
    int n, last;
    const char *expect;
} scenes[] = {
    {"healthy", healthy, 4, 200, ""},
    {"one rank, and back", one, 4, 120,
     "onset rank=1 41 1.50 compute\nrelief rank=1 81 1.00 compute\n"},
    {"its slow steps are no news to its peers", recovers_early, 4, 120,
     "onset rank=1 33 1.50 compute\nrelief rank=1 61 1.00 compute\n"},
    {"one of two", one, 2, 60, "onset rank=1 41 1.50 compute\n"},
    {"slow from the first step", from_first, 4, 64,
     "onset rank=2 1 1.30 compute\n"},
    {"all", everyone, 4, 120,
     "onset job 41 1.50 all-ranks\nrelief job 81 1.00 all-ranks\n"},
    {"all of two", everyone, 2, 60, "onset job 41 1.50 all-ranks\n"},
    {"nine of ten", all_but_one, 10, 70, "onset job 41 1.50 all-ranks\n"},
    {"half", half, 4, 70,
     "onset rank=1 41 1.50 compute\nonset rank=0 41 1.50 compute\n"},
    {"all, one of them more", own_on_top, 4, 130,
     "onset job 41 1.30 all-ranks\nonset rank=2 61 1.50 compute\n"
     "relief rank=2 81 1.00 compute\nrelief job 101 1.00 all-ranks\n"},
    {"all, one stays slow", left_behind, 4, 128,
     "onset job 41 1.50 all-ranks\nrelief job 81 1.00 all-ranks\n"
     "onset rank=2 81 1.50 compute\n"},
    {"all, one recovers half-way", half_way, 4, 128,
     "onset job 41 1.50 all-ranks\nrelief job 80 1.00 all-ranks\n"
     "onset rank=2 80 1.20 compute\n"},
    {"all, one recovers first", recovers_first, 4, 120,
     "onset job 41 1.50 all-ranks\nrelief job 81 1.00 all-ranks\n"},
    {"one, then all more", common_on_top, 4, 130,
     "onset rank=1 41 1.50 compute\nonset job 61 1.30 all-ranks\n"
     "relief job 81 1.00 all-ranks\nrelief rank=1 101 1.00 compute\n"},
    {"worse, partly back, back", worse, 4, 130,
     "onset rank=1 41 1.50 compute\nonset rank=1 61 3.00 compute\n"
     "relief rank=1 81 1.50 compute\nrelief rank=1 101 1.00 compute\n"},
    {"all, and all worse", all_worse, 4, 130,
     "onset job 41 1.50 all-ranks\nonset job 61 3.00 all-ranks\n"
     "relief job 81 1.50 all-ranks\nrelief job 101 1.00 all-ranks\n"},
    {"spike of all", spike_of_all, 4, 70, "spike job 50 2.00 all-ranks\n"},
    {"spike of one", spike_of_one, 4, 70, "spike rank=3 50 2.00 compute\n"},
    {"one leaves", fades, 4, 120, ""},
    {"one is slow and leaves", slow_and_leaves, 4, 150,
     "onset rank=3 41 1.50 compute\nrelief rank=3 91 1.00 compute\n"},
    {"one is slow from the start and leaves", slow_and_soon_gone, 4, 100,
     "onset rank=3 1 1.50 compute\n"},
    {"one joins late and slow", joins_late, 4, 120,
     "onset rank=3 50 1.40 compute\n"},
};

static void test_scenes(void)
{
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        begin();
        play(scenes[i].slow, scenes[i].n, 1, scenes[i].last, 1000);
        ok(findings_are(scenes[i].expect, scenes[i].what));
        end();
    }
}

/* ==== Episodes and their names ==== */

static void test_eids(void)
{
    begin();
    play(worse, 4, 1, 130, 1000);
    ok(n_seen == 4);
    /* onset, worse, partly back and back are one episode */
    for (size_t i = 0; i < 4; i++)
        ok(strcmp(eids[i], "rank=1@41") == 0);
    open_are("");
    /* the same steps again after a restart: other episodes */
    play(one, 4, 1, 60, 2000);
    ok(n_seen == 5 && strcmp(eids[4], "rank=1@41#1") == 0);
    open_are("onset rank=1 41 1.50 compute\n");
    play(one, 4, 81, 100, 3000);
    ok(n_seen == 6 && strcmp(eids[5], eids[4]) == 0);
    play(one, 4, 1, 60, 4000);
    ok(n_seen == 7 && strcmp(eids[6], "rank=1@41#2") == 0);
    end();
}

/* ==== Order, restarts, numbers ==== */

/* Rank 0 is three steps ahead of the others, which come in turn. */
static void test_ahead(void)
{
    begin();
    for (int s = 1; s <= 90; s++)
        for (int r = 0; r < 4; r++) {
            int step = r ? s - 3 : s;

            if (step >= 1)
                (void)take_step(r, s + r * 0.01, step, 1,
                                one(r, step) * PACE * ripple(r, step), 1);
        }
    ok(
        findings_are("onset rank=1 41 1.50 compute\n"
                     "relief rank=1 81 1.00 compute\n",
                     "a rank is ahead"));
    end();
}

static void test_restart(void)
{
    begin();
    play(healthy, 4, 1, 60, 1000);
    /* back at 21: the first steps are slow, and not judged */
    for (int s = 21; s <= 60; s++)
        for (int r = 0; r < 4; r++)
            (void)take_step(r, 2000 + s + r * 0.01, s, s < 24 ? 9 : 0.41,
                            (s < 24 ? 9 : 0.4) * ripple(r, s), MB);
    ok(findings_are("", "restart"));
    end();

    /* rank 3 does not come back; its old steps, 60 and less, say nothing */
    begin();
    play(healthy, 4, 1, 60, 1000);
    play(everyone, 2, 20, 60, 2000);
    ok(findings_are("onset job 41 1.50 all-ranks\n", "restart with fewer"));
    end();
}

static void test_gone(void)
{
    begin(); /* slow when it left; the job is back without it */
    play(slow_and_leaves, 4, 1, 90, 1000);
    open_are("onset rank=3 41 1.50 compute\n");
    play(slow_and_leaves, 4, 91, 100, 1090);
    open_are("");
    end();
    begin(); /* not there after the restart */
    play(one, 4, 1, 60, 1000);
    for (int s = 1; s <= 5; s++)
        for (int r = 0; r < 4; r += 2)
            (void)take_step(r, 2000 + s, s, 0.5, 0.4, MB);
    open_are("");
    end();
}

static void test_many(void)
{
    begin(); /* more than are asked: all at once, and one of them */
    play(everyone, 2000, 30, 50, 1000);
    ok(findings_are("onset job 41 1.50 all-ranks\n", "2000 ranks"));
    end();
    begin();
    play(one, 2000, 30, 50, 1000);
    ok(findings_are("onset rank=1 41 1.50 compute\n", "one of 2000"));
    end();
}

static void test_window(void)
{
    struct ep_watch_config c = EP_WATCH_DEFAULTS;

    c.window = EP_WATCH_WINDOW_MAX;
    begin_with(&c); /* fewer steps than that */
    play(from_first, 4, 1, 60, 1000);
    ok(findings_are("onset rank=2 1 1.30 compute\n", "long window"));
    end();
    c.window = 4;
    begin_with(&c);
    play(from_first, 4, 1, 9, 1000);
    open_are("onset rank=2 2 1.30 compute\n"); /* the window is four */
    ok(sure[0] > 0.7 && sure[0] <= 0.8);
    end();
}

int main(void)
{
    test_scenes();
    test_eids();
    test_ahead();
    test_restart();
    test_gone();
    test_many();
    test_window();
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_incident.c - one cause, one episode: what ranks have in common, what
 * the job's pace has to do with it, several at once, and flapping.
 *
 * Jobs are 4 replicas x 4 stages x 2, four ranks to a host unless a scene says
 * otherwise; busy is 50 ms per micro-batch times the slowness of the scene, the
 * step takes as long as the slowest rank. Harness: watch_seen.h.
 */
#include "config.h"

#include "detect/incident.h"
#include "watch_seen.h"

#include <stdlib.h>

#define MB 8
#define PACE 0.05
#define RANKS 32
#define HOSTED 4 /* ranks to a host */

typedef double scene_fn(int rank, int step);

static double wait_for; /* s of communication in each step */

static struct ep_place place_of(int r)
{
    return (struct ep_place){true, r / 2 % 4, r / 8, r % 2};
}

static void play_step(scene_fn *slow, int n, int step, double at)
{
    double dur = 0;
    char host[16];

    for (int r = 0; r < n; r++)
        dur = fmax(dur, MB * PACE * slow(r, step));
    for (int r = 0; r < n; r++) {
        (void)snprintf(host, sizeof host, "n%d", r / HOSTED);
        step_as.host = span(host);
        step_as.place = place_of(r);
        (void)take_step(r, at + r * 1e-4, step, dur + 0.05 + wait_for,
                        MB * PACE * slow(r, step) * ripple(r, step), MB);
    }
}

static void play(scene_fn *slow, int n, int from, int to)
{
    for (int step = from; step <= to; step++)
        play_step(slow, n, step, 1000 + step);
}

static double within(int step, int from, int to, double slow)
{
    return step >= from && step <= to ? slow : 1;
}

static double host(int r, int s)
{
    return r / HOSTED == 2 ? within(s, 41, 80, 1.3 + 0.02 * (r % 3)) : 1;
}

static double stage(int r, int s)
{
    return r / 8 == 1 ? within(s, 41, 80, 1.3) : 1;
}

static double replica(int r, int s)
{
    return r / 2 % 4 == 3 ? within(s, 41, 80, 1.3) : 1;
}

static double tensor(int r, int s)
{
    return r / 2 == 5 ? within(s, 41, 80, 1.3) : 1;
}

static double two(int r, int s)
{
    return r == 3 || r == 21 ? within(s, 41, 80, r == 3 ? 1.5 : 1.3) : 1;
}

static double stage_from_first(int r, int s)
{
    (void)s;
    return r / 8 == 2 ? 1.4 : 1;
}

/* The ranks of a host one after the other, two steps apart. */
static double one_by_one(int r, int s)
{
    return r / HOSTED == 2 ? within(s, 41 + 2 * (r % HOSTED), 80, 1.3) : 1;
}

static double own_on_top(int r, int s)
{
    return host(r, s) * (r == 9 ? within(s, 61, 70, 1.5) : 1);
}

static double host_first(int r, int s)
{
    return host(r, s) * (r == 9 ? within(s, 61, 120, 1.5) : 1);
}

static double one_stays(int r, int s)
{
    return host(r, s) * (r == 9 ? within(s, 81, 100, 1.3) : 1);
}

static double two_hosts(int r, int s)
{
    return host(r, s) * (r / HOSTED == 5 ? within(s, 51, 60, 1.5) : 1);
}

static double half_back(int r, int s)
{
    return r / HOSTED == 2 ? within(s, 41, 80, s > 60 ? 1.2 : 1.5) : 1;
}

/* Of two hosts one, and a rank of the other with it. */
static double half_of_all(int r, int s)
{
    return r >= HOSTED || r == 1 ? within(s, 41, 80, r == 1 ? 1.6 : 1.3) : 1;
}

static double half_from_first(int r, int s)
{
    (void)s;
    return r >= HOSTED ? 1.5 : 1;
}

static double stage_at_first(int r, int s)
{
    return r / 8 == 2 ? within(s, 1, 70, 1.4) : 1;
}

/* The replica of a slow rank becomes slow, too. */
static double replica_on_top(int r, int s)
{
    return replica(r, s) * (r == 6 ? within(s, 21, 100, 1.5) : 1);
}

/* A host of a slow stage, for some steps. */
static double host_of_slow_stage(int r, int s)
{
    return stage_from_first(r, s) *
           (r / HOSTED == 4 ? within(s, 41, 80, 1.3) : 1);
}

static double host_spike(int r, int s)
{
    return r / HOSTED == 2 && s == 50 ? 2 : 1;
}

static const struct {
    const char *what;
    scene_fn *slow;
    const char *expect;
} scenes[] = {
    {"a host", host,
     "onset host=n2 41 1.33 cpu-contention\nrelief host=n2 81 1.00 "
     "cpu-contention\n"},
    {"a stage", stage,
     "onset pp=1 41 1.30 stage-imbalance\nrelief pp=1 81 1.00 "
     "stage-imbalance\n"},
    {"a replica", replica,
     "onset dp=3 41 1.30 sequence-imbalance\nrelief dp=3 81 1.00 "
     "sequence-imbalance\n"},
    {"a tensor-parallel group", tensor,
     "onset dp=1,pp=1 41 1.30 sequence-imbalance\nrelief dp=1,pp=1 81 1.00 "
     "sequence-imbalance\n"},
    {"two that have nothing in common", two,
     "onset rank=3 41 1.50 compute\nonset rank=21 41 1.30 compute\n"
     "relief rank=3 81 1.00 compute\nrelief rank=21 81 1.00 compute\n"},
    {"a stage, from the first step", stage_from_first,
     "onset pp=2 1 1.40 stage-imbalance\n"},
    {"one rank of the host on top", own_on_top,
     "onset host=n2 41 1.33 cpu-contention\nonset rank=9 61 1.50 compute\n"
     "relief rank=9 71 1.00 compute\nrelief host=n2 81 1.00 cpu-contention\n"},
    {"and the host is back first", host_first,
     "onset host=n2 41 1.33 cpu-contention\nonset rank=9 61 1.50 compute\n"
     "relief host=n2 81 1.00 cpu-contention\nrelief rank=9 121 1.00 compute\n"},
    {"one rank of the host stays", one_stays,
     "onset host=n2 41 1.33 cpu-contention\nrelief host=n2 81 1.00 "
     "cpu-contention\n"
     "onset rank=9 81 1.30 compute\nrelief rank=9 101 1.00 compute\n"},
    {"two hosts", two_hosts,
     "onset host=n2 41 1.33 cpu-contention\nonset host=n5 51 1.50 "
     "cpu-contention\n"
     "relief host=n5 61 1.00 cpu-contention\nrelief host=n2 81 1.00 "
     "cpu-contention\n"},
    {"half-way, then back", half_back,
     "onset host=n2 41 1.50 cpu-contention\nrelief host=n2 61 1.20 "
     "cpu-contention\n"
     "relief host=n2 81 1.00 cpu-contention\n"},
    {"a stage, back after 70 steps", stage_at_first,
     "onset pp=2 1 1.40 stage-imbalance\nrelief pp=2 71 1.00 "
     "stage-imbalance\n"},
    {"the replica of a slow rank", replica_on_top,
     "onset rank=6 21 1.50 compute\nonset dp=3 41 1.30 sequence-imbalance\n"
     "relief dp=3 81 1.00 sequence-imbalance\nrelief rank=6 101 1.00 "
     "compute\n"},
    {"a host of a slow stage", host_of_slow_stage,
     "onset pp=2 1 1.40 stage-imbalance\nonset host=n4 41 1.30 "
     "cpu-contention\nrelief host=n4 81 1.00 cpu-contention\n"},
    {"spike of a host", host_spike, "spike host=n2 50 2.01 compute\n"},
};

static void test_scenes(void)
{
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        begin();
        play(scenes[i].slow, RANKS, 1, 140);
        ok(findings_are(scenes[i].expect, scenes[i].what));
        open_are(scenes[i].slow == stage_from_first ||
                         scenes[i].slow == host_of_slow_stage
                     ? "onset pp=2 1 1.40 stage-imbalance\n"
                     : "");
        end();
    }
}

/* What half of them do is not what all do. */
static void test_half(void)
{
    begin();
    play(half_of_all, 2 * HOSTED, 1, 140);
    ok(
        findings_are("onset rank=1 41 1.60 compute\n"
                     "onset host=n1 41 1.30 cpu-contention\n"
                     "relief rank=1 81 1.00 compute\n"
                     "relief host=n1 81 1.00 cpu-contention\n",
                     "half of them"));
    end();
    begin();
    play(half_from_first, 2 * HOSTED, 1, 60);
    ok(findings_are("onset host=n1 1 1.50 cpu-contention\n",
                    "half of them, from the first step"));
    end();
}

/* Found as a rank at first, then wider: one episode all the same. */
static void test_wider(void)
{
    begin();
    play(one_by_one, RANKS, 1, 140);
    ok(n_seen >= 2 && n_seen <= 5);
    for (size_t i = 1; i < n_seen; i++)
        ok(strcmp(eids[i], eids[0]) == 0 || strstr(seen.ptr, "host=n2"));
    ok(strstr(seen.ptr, "relief host=n2") != NULL);
    open_are("");
    end();
}

/* The relief tells what the job lost: 40 steps, 8 x 50 ms x 0.5, 32 ranks. */
static double one(int r, int s)
{
    return r == 1 ? within(s, 41, 80, 1.5) : 1;
}

static double one_and_another(int r, int s)
{
    return one(r, s) * (r == 18 ? within(s, 41, 80, 1.5) : 1);
}

static void test_hours(void)
{
    double all = 40 * MB * PACE * 0.5 * RANKS / 3600;

    begin();
    play(one, RANKS, 1, 100);
    ok(n_seen == 2);
    near(hours[1], all, 0.02 * all);
    end();
    begin(); /* two alike share it */
    play(one_and_another, RANKS, 1, 100);
    ok(n_seen == 4);
    near(hours[2] + hours[3], all, 0.02 * all);
    near(hours[2], hours[3], 0.1 * all);
    end();
}

/* ==== Communication ==== */

static double healthy(int r, int s)
{
    (void)r, (void)s;
    return 1;
}

/* What the test's own comms answers from the asked-th time on. */
static int asked, answer_at;

static bool answer(struct ep_comms *c, struct ep_span job, double since,
                   struct ep_comms_place *out)
{
    (void)c, (void)job;
    *out = (struct ep_comms_place){.scope = EP_SCOPE_LINK,
                                   .id = "src=n1,dst=n4",
                                   .factor = 3,
                                   .p = 0.9,
                                   .evidence = "transfers 3.00x",
                                   .candidates = 1,
                                   .rank = -1};
    return !isnan(since) && ++asked >= answer_at; /* nothing at first */
}

static void play_communication(int at)
{
    begin();
    w->locate = answer;
    asked = 0;
    answer_at = at;
    wait_for = 0;
    play(healthy, 8, 1, 40);
    wait_for = 0.2;
    play(healthy, 8, 41, 80);
    wait_for = 0;
    play(healthy, 8, 81, 100);
}

static void test_communication(void)
{
    play_communication(1);
    ok(
        findings_are("onset src=n1,dst=n4 41 1.44 link\n"
                     "relief src=n1,dst=n4 81 1.00 link\n",
                     "located at once"));
    ok(asked <= 2 && hours[1] > 0); /* once before the pace is sure */
    end();
    play_communication(3);
    ok(
        findings_are("onset job 41 1.44 communication\n"
                     "onset src=n1,dst=n4 41 1.44 link\n"
                     "relief src=n1,dst=n4 81 1.00 link\n",
                     "located later"));
    ok(asked == 3 && strcmp(eids[0], eids[1]) == 0 &&
       strcmp(eids[1], eids[2]) == 0);
    end();
    play_communication(9999); /* asked often, but not for ever */
    ok(
        findings_are("onset job 41 1.44 communication\n"
                     "relief job 81 1.00 communication\n",
                     "not located"));
    ok(asked > 8 && asked < 40);
    end();
}

/* ==== Flapping ==== */

static int turn;

static double flaps(int r, int s)
{
    return r == 1 && s > 40 && s <= 840 && (s / turn) % 2 ? 1.5 : 1;
}

static void test_flapping(void)
{
    for (turn = 6; turn <= 28; turn += 11) {
        begin();
        play(flaps, 8, 1, 1200);
        ok(n_seen >= 4 && n_seen <= 12);
        for (size_t i = 1; i < n_seen && i < MAX_EIDS; i++)
            ok(strcmp(eids[i], eids[0]) == 0);
        ok(strstr(evidence, "quiet for ") != NULL);
        open_are("");
        end();
    }
    turn = 100; /* no flood: each is news */
    begin();
    play(flaps, 8, 1, 1200);
    ok(n_seen == 8 && strcmp(eids[2], eids[0]) != 0);
    end();
}

/* ==== Many ==== */

static double odd_ones(int r, int s)
{
    return r % 3 == 0 ? within(s, 31, 999, 1.5) : 1;
}

static double everyone(int r, int s)
{
    (void)r;
    return within(s, 31, 36, 1.5);
}

/* Thousands at once, of no set: each once. All at once: the job, once. */
static void test_many(void)
{
    begin();
    play(odd_ones, 9000, 18, 36);
    ok(n_seen == 3000);
    end();
    begin();
    play(everyone, 20000, 18, 44);
    ok(
        findings_are("onset job 31 1.44 all-ranks\n"
                     "relief job 37 1.00 all-ranks\n",
                     "20000 ranks"));
    end();
}

int main(void)
{
    test_scenes();
    test_half();
    test_wider();
    test_hours();
    test_communication();
    test_flapping();
    test_many();
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lps.c - the rules of a region's server on hand-worked sequences of
 * events, with K = 2 where nothing else is said.
 */
#include "config.h"

#include "lsgd/lps.h"

#include "tap.h"
#include "untouched.h"

#include <stdbool.h>
#include <string.h>

static struct ep_lps l;
static struct ep_lps_effect e;

static const struct ep_work one = {1, 3, 30};

static struct ep_lps_config config(uint64_t k, bool carry)
{
    return (struct ep_lps_config){
        .outer = {0.2, 0.9, 0, 2}, .k = k, .alpha = 0.25, .carry = carry};
}

static void start(uint64_t k, bool carry)
{
    const struct ep_lps_config c = config(k, carry);

    ok(ep_lps_init(&l, &c, NULL) == 0);
}

/* A worker's delta on that base. */
static int delta(uint64_t base)
{
    return ep_lps_delta(&l, &one, base, &e, NULL);
}

/* One that leads to nothing but a step. */
static void quiet(uint64_t base)
{
    ok(delta(base) == 0 && !e.send && e.nops == 1);
    ok(e.ops[0].kind == EP_OP_STEP);
}

/* One that leads to a send of so many updates, as exchange x. */
static void sends(uint64_t base, uint64_t x, uint64_t updates)
{
    ok(delta(base) == 0 && e.send && e.nops == 2);
    ok(e.ops[0].kind == EP_OP_STEP && e.ops[1].kind == EP_OP_SEND);
    ok(e.exchange == x && e.work.updates == updates);
    ok(e.work.steps == 3 * updates && e.work.tokens == 30 * updates);
}

static void merges(uint64_t x, uint64_t version)
{
    ok(ep_lps_merge(&l, x, version, &e, NULL) == 0);
    ok(!e.send && e.nops == 1 && e.ops[0].kind == EP_OP_MERGE);
    ok(l.global_version == version && !l.outstanding);
}

/* Version, updates lost, updates pending. */
static void is_at(uint64_t version, uint64_t lost, uint64_t pending)
{
    ok(l.version == version && l.t == version);
    ok(l.lost == lost);
    ok(ep_lps_pending_updates(&l) == pending);
}

static void test_init_errors(void)
{
    static const struct {
        double lr, beta, c, alpha;
        uint64_t n, k;
        const char *name;
    } bad[] = {
        {0, 0.9, 0, 0.25, 2, 2, "lr: "},
        {0.2, 1, 0, 0.25, 2, 2, "beta: "},
        {0.2, 0.9, 0.6, 0.25, 2, 2, "c: "},
        {0.2, 0.9, 0, 0.25, 0, 2, "n: "},
        {0.2, 0.9, 0, 0.25, 2, 0, "k: "},
        {0.2, 0.9, 0, -0.1, 2, 2, "alpha: "},
        {0.2, 0.9, 0, 1.1, 2, 2, "alpha: "},
        {0.2, 0.9, 0, (double)NAN, 2, 2, "alpha: "},
    };
    struct ep_error err;
    struct ep_lps before;

    start(2, false);
    quiet(0);
    memcpy(&before, &l, sizeof l);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct ep_lps_config c = {
            .outer = {bad[i].lr, bad[i].beta, bad[i].c, bad[i].n},
            .k = bad[i].k,
            .alpha = bad[i].alpha};

        err.msg[0] = '\0';
        ok(ep_lps_init(&l, &c, &err) == EP_EDOM && err.code == EP_EDOM);
        ok(strncmp(err.msg, bad[i].name, strlen(bad[i].name)) == 0);
    }
    ok(same(&l, &before, sizeof l));
    /* the ends of the range of alpha are in it */
    for (int i = 0; i <= 1; i++) {
        struct ep_lps_config c = config(1, false);

        c.alpha = i;
        ok(ep_lps_init(&l, &c, NULL) == 0);
    }
}

static void test_event_errors(void)
{
    static const char *const told[] = {
        "cannot apply delta: its base is version 2, the server is at 1",
        "cannot merge reply to exchange 1: none is outstanding",
        "cannot merge reply to exchange 2: 1 is outstanding",
        "cannot merge reply to exchange 0: 1 is outstanding",
    };
    struct ep_error err;
    struct ep_lps before;

    start(2, false);
    quiet(0);
    memcpy(&before, &l, sizeof l);
    memset(&e, UNTOUCHED, sizeof e);
    ok(ep_lps_delta(&l, &one, 2, &e, &err) == EP_EDOM);
    ok(err.code == EP_EDOM && strcmp(err.msg, told[0]) == 0);
    ok(ep_lps_merge(&l, 1, 1, &e, &err) == EP_EDOM);
    ok(err.code == EP_EDOM && strcmp(err.msg, told[1]) == 0);
    ok(same(&l, &before, sizeof l));
    ok(untouched(&e, sizeof e));
    sends(1, 1, 2);
    memcpy(&before, &l, sizeof l);
    ok(ep_lps_merge(&l, 2, 1, &e, &err) == EP_EDOM);
    ok(strcmp(err.msg, told[2]) == 0);
    ok(ep_lps_merge(&l, 0, 1, &e, &err) == EP_EDOM);
    ok(strcmp(err.msg, told[3]) == 0);
    ok(same(&l, &before, sizeof l));
    merges(1, 1);
    /* the same reply again */
    memcpy(&before, &l, sizeof l);
    ok(ep_lps_merge(&l, 1, 1, &e, &err) == EP_EDOM);
    ok(strcmp(err.msg, told[1]) == 0);
    ok(same(&l, &before, sizeof l));
}

/*
 *     event      version  merged  sent  lost  pending
 *     g          1        0       0     0     1
 *     g, send 1  2        0       2     0     0
 *     g          3        0       2     1     0
 *     g          4        0       2     2     0     K more, not sent
 *     g          5        0       2     3     0
 *     merge 1    5        5       2     3     0
 *     g          6        5       2     3     1
 *     g, send 2  7        5       7     3     0     2 updates, work of 5
 *     merge 2    7        7       7     3     0
 *     g          8        7       7     3     1
 */
static void test_loss(void)
{
    start(2, false);
    is_at(0, 0, 0);
    quiet(0);
    ok(e.staleness == 0);
    is_at(1, 0, 1);
    sends(0, 1, 2);
    ok(e.staleness == 1 && e.base == 0 && l.outstanding);
    is_at(2, 0, 0);
    quiet(0);
    is_at(3, 1, 0);
    quiet(3);
    is_at(4, 2, 0);
    quiet(1);
    ok(e.staleness == 3);
    is_at(5, 3, 0);
    ok(l.merged_version == 0 && l.sent_version == 2);
    merges(1, 9);
    ok(l.merged_version == 5);
    is_at(5, 3, 0);
    quiet(5);
    is_at(6, 3, 1);
    ok(l.pending.updates == 4 && l.sent.updates == 2);
    /* K after the merge; the work of the lost ones is credited with it */
    sends(6, 2, 5);
    ok(e.base == 9 && l.sent_version == 7);
    is_at(7, 3, 0);
    ok(l.pending.updates == 0 && l.sent.updates == 7);
    ok(l.sent.steps == 21 && l.sent.tokens == 210);
    merges(2, 12);
    is_at(7, 3, 0);
    quiet(7);
    is_at(8, 3, 1);
    ok(l.exchange == 2);
}

/* The same events: nothing is lost, what was in flight is still pending. */
static void test_carry(void)
{
    start(2, true);
    quiet(0);
    sends(0, 1, 2);
    ok(e.ops[1].carry);
    is_at(2, 0, 0);
    for (uint64_t i = 3; i <= 5; i++) {
        quiet(0);
        is_at(i, 0, i - 2);
    }
    merges(1, 9);
    ok(e.ops[0].carry);
    is_at(5, 0, 3);
    quiet(5);
    is_at(6, 0, 4);
    sends(6, 2, 5);
    is_at(7, 0, 0);
    merges(2, 12);
    is_at(7, 0, 0);
    quiet(7);
    is_at(8, 0, 1);
}

/* K = 1: a send with every update that finds nothing outstanding. */
static void test_every(void)
{
    start(1, false);
    sends(0, 1, 1);
    quiet(0);
    merges(1, 1);
    sends(0, 2, 2);
    merges(2, 2);
    sends(0, 3, 1);
    is_at(4, 1, 0);
    merges(3, 3);
    is_at(4, 1, 0);
}

/* What the operations say: the steps in turn, alpha, the options. */
static void test_ops(void)
{
    struct ep_lps_config c = config(3, false);

    ok(ep_lps_init(&l, &c, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        ok(delta(0) == 0);
        ok(e.ops[0].step.flush == (i % 2 == 1) && e.ops[0].step.buffer);
        near(e.ops[0].step.lr, 0.2, 0);
        near(e.ops[0].step.look, i % 2 == 1 ? 0.9 : 0, 0);
    }
    ok(e.send && !e.ops[1].q4 && !e.ops[1].carry);
    merges(1, 1);
    ok(!e.ops[0].q4 && !e.ops[0].carry);
    near(e.ops[0].alpha, 0.25, 0);
    /* the optimiser goes on over a merge: t = 3, a flush */
    ok(delta(3) == 0 && e.ops[0].step.flush);
    c.k = 1;
    c.q4 = true;
    ok(ep_lps_init(&l, &c, NULL) == 0);
    ok(delta(0) == 0 && e.send && e.ops[1].q4);
    merges(1, 1);
    ok(e.ops[0].q4);
}

static void test_work(void)
{
    struct ep_work sum = {1, 2, 3};
    const struct ep_work w = {10, 200, 3000};

    ep_work_add(&sum, &w);
    ok(sum.updates == 11 && sum.steps == 202 && sum.tokens == 3003);
}

int main(void)
{
    test_init_errors();
    test_event_errors();
    test_loss();
    test_carry();
    test_every();
    test_ops();
    test_work();
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gps.c - the global server, and training by rounds, on hand-worked
 * sequences of events.
 */
#include "config.h"

#include "lsgd/gps.h"
#include "lsgd/round.h"

#include "tap.h"
#include "untouched.h"

#include <stdbool.h>
#include <string.h>

static const struct ep_work few = {2, 6, 60}, many = {5, 15, 150};

static bool is_work(const struct ep_work *w, uint64_t updates, uint64_t steps,
                    uint64_t tokens)
{
    return w->updates == updates && w->steps == steps && w->tokens == tokens;
}

/*
 *     client 1, exchange 1   version 1  staleness 0
 *     client 0, exchange 1   version 2  staleness 1   (still holds 0)
 *     client 0, exchange 2   version 3  staleness 0
 *     client 1, exchange 2   version 4  staleness 2   (holds 1)
 */
static void test_gps(void)
{
    static const struct {
        size_t client;
        uint64_t x, version, staleness;
        bool flush;
    } event[] = {
        {1, 1, 1, 0, false},
        {0, 1, 2, 1, false},
        {0, 2, 3, 0, true},
        {1, 2, 4, 2, false},
    };
    const struct ep_gps_config c = {.outer = {0.15, 0.5, 0, 3}};
    struct ep_gps g;
    struct ep_gps_effect e;

    ok(ep_gps_init(&g, &c, 2, NULL) == 0);
    ok(g.nclients == 2 && g.version == 0 && g.client[1].version == 0);
    for (size_t i = 0; i < sizeof event / sizeof *event; i++) {
        size_t client = event[i].client;

        ok(ep_gps_delta(&g, client, event[i].x, client ? &many : &few, &e,
                        NULL) == 0);
        ok(e.version == event[i].version && g.version == e.version);
        ok(e.staleness == event[i].staleness && g.t == i + 1);
        ok(e.nops == 2 && e.ops[0].kind == EP_OP_STEP &&
           e.ops[1].kind == EP_OP_REPLY);
        ok(e.ops[0].step.flush == event[i].flush && e.ops[0].step.buffer);
        /* back to this one only */
        ok(e.ops[1].client == client && !e.ops[1].q4);
        ok(g.client[client].version == e.version &&
           g.client[client].exchange == event[i].x);
    }
    ok(is_work(&g.client[0].work, 4, 12, 120));
    ok(is_work(&g.client[1].work, 10, 30, 300));
    ok(is_work(&g.work, 14, 42, 420));
    ep_gps_free(&g);
    ep_gps_free(&g);
}

/*
 *     client 0 and 1, exchange 1 each   version 2, they hold 1 and 2
 *     client 0 sends exchange 2, which is lost; it is back and fetches
 *     client 1, exchange 2              version 3  staleness 0
 *     client 0, exchange 2 (again)      version 4  staleness 1 (fetched 2)
 *     client 0, fetched 1 elsewhere     version 5  staleness 3
 */
static void test_gps_fetch(void)
{
    const struct ep_gps_config c = {.outer = {0.15, 0.5, 0, 3}};
    struct ep_gps g;
    struct ep_gps_effect e;

    ok(ep_gps_init(&g, &c, 2, NULL) == 0);
    ok(ep_gps_fetch(&g, 1, 0, NULL) == 0 && g.client[1].version == 0);
    ok(ep_gps_delta(&g, 0, 1, &few, &e, NULL) == 0);
    ok(ep_gps_delta(&g, 1, 1, &many, &e, NULL) == 0);
    ok(ep_gps_fetch(&g, 0, g.version, NULL) == 0);
    ok(g.client[0].version == 2 && g.client[0].exchange == 1);
    /* nothing else has happened */
    ok(g.version == 2 && g.t == 2 && g.client[1].version == 2);
    ok(is_work(&g.work, 7, 21, 210) && is_work(&g.client[0].work, 2, 6, 60));
    ok(ep_gps_delta(&g, 1, 2, &many, &e, NULL) == 0 && e.staleness == 0);
    ok(ep_gps_delta(&g, 0, 3, &few, &e, NULL) == EP_EDOM);
    ok(ep_gps_delta(&g, 0, 2, &few, &e, NULL) == 0);
    ok(e.version == 4 && e.staleness == 1 && g.client[0].exchange == 2);
    ok(ep_gps_fetch(&g, 0, 1, NULL) == 0);
    ok(ep_gps_delta(&g, 0, 3, &few, &e, NULL) == 0 && e.staleness == 3);
    ok(g.client[0].version == 5);
    ep_gps_free(&g);
}

static void test_gps_fetch_errors(void)
{
    struct ep_gps_config c = {.outer = {0.15, 0.5, 0, 1}};
    struct ep_gps g;
    struct ep_gps_effect e;
    struct ep_error err;

    ok(ep_gps_init(&g, &c, 2, NULL) == 0);
    ok(ep_gps_delta(&g, 0, 1, &few, &e, NULL) == 0);
    ok(ep_gps_fetch(&g, 2, 1, &err) == EP_EDOM && err.code == EP_EDOM);
    ok(strcmp(err.msg, "cannot fetch parameters: no client 2, there are 2") ==
       0);
    ok(ep_gps_fetch(&g, 1, 2, &err) == EP_EDOM && g.client[1].version == 0);
    ok(strcmp(err.msg,
              "cannot fetch parameters: version 2 for client 1, and 1 "
              "is current") == 0);
    ok(ep_gps_fetch(&g, 1, 0, NULL) == 0);
    /* replicas: nothing but what is current */
    g.config.q4 = true;
    ok(ep_gps_fetch(&g, 1, 0, NULL) == EP_EDOM && g.client[1].version == 0);
    ok(ep_gps_fetch(&g, 1, 1, NULL) == 0 && g.client[1].version == 1);
    ep_gps_free(&g);
}

static void test_gps_q4(void)
{
    const struct ep_gps_config c = {.outer = {0.15, 0.5, 0, 1}, .q4 = true};
    struct ep_gps g;
    struct ep_gps_effect e;

    ok(ep_gps_init(&g, &c, 1, NULL) == 0);
    ok(ep_gps_delta(&g, 0, 1, &few, &e, NULL) == 0 && e.ops[1].q4);
    ok(e.ops[0].step.flush && !e.ops[0].step.buffer);
    ep_gps_free(&g);
}

static void test_gps_errors(void)
{
    static const struct {
        size_t client;
        uint64_t x;
        const char *told;
    } bad[] = {
        {2, 1, "cannot apply delta: no client 2, there are 2"},
        {0, 0, "cannot apply delta: exchange 0 of client 0, and 2 is next"},
        {0, 1, "cannot apply delta: exchange 1 of client 0, and 2 is next"},
        {0, 3, "cannot apply delta: exchange 3 of client 0, and 2 is next"},
        {1, 2, "cannot apply delta: exchange 2 of client 1, and 1 is next"},
    };
    struct ep_gps_config c = {.outer = {0.15, 0.5, 0, 2}};
    struct ep_gps g = {0}, before;
    struct ep_gps_client clients[2];
    struct ep_gps_effect e;
    struct ep_error err;

    ok(ep_gps_init(&g, &c, 0, &err) == EP_EDOM && err.code == EP_EDOM);
    ok(strncmp(err.msg, "clients: ", 9) == 0 && !g.client);
    c.outer.lr = -1;
    ok(ep_gps_init(&g, &c, 2, &err) == EP_EDOM && !g.client);
    ok(strncmp(err.msg, "lr: ", 4) == 0);
    c.outer.lr = 0.15;
    ok(ep_gps_init(&g, &c, 2, NULL) == 0);
    ok(ep_gps_delta(&g, 0, 1, &few, &e, NULL) == 0);
    memcpy(&before, &g, sizeof g);
    memset(&e, UNTOUCHED, sizeof e);
    memcpy(clients, g.client, sizeof clients);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.msg[0] = '\0';
        ok(ep_gps_delta(&g, bad[i].client, bad[i].x, &few, &e, &err) ==
           EP_EDOM);
        ok(err.code == EP_EDOM && strcmp(err.msg, bad[i].told) == 0);
    }
    ok(same(&g, &before, sizeof g));
    ok(memcmp(g.client, clients, sizeof clients) == 0);
    ok(untouched(&e, sizeof e));
    ep_gps_free(&g);
}

static void test_round(void)
{
    const struct ep_outer outer = {0.7, 0.9, 0, 1};
    struct ep_round r;
    struct ep_round_effect e;

    ok(ep_round_init(&r, &outer, 3, NULL) == 0);
    for (uint64_t round = 0; round < 3; round++) {
        /* in any order */
        ok(ep_round_delta(&r, (round + 2) % 3, &few, &e, NULL) == 0);
        ok(!e.done && e.nops == 0 && r.arrived == 1);
        ok(is_work(&r.current, 2, 6, 60));
        ok(ep_round_delta(&r, round % 3, &many, &e, NULL) == 0);
        ok(!e.done && e.nops == 0 && r.arrived == 2);
        /* what is not whole is not credited */
        ok(r.work.updates == 12 * round && r.version == round);
        ok(ep_round_delta(&r, (round + 1) % 3, &many, &e, NULL) == 0);
        ok(e.done && e.nops == 1 && e.ops[0].kind == EP_OP_ROUND);
        ok(e.ops[0].step.flush && !e.ops[0].step.buffer);
        near(e.ops[0].step.look, 0.9, 0);
        ok(r.version == round + 1 && r.t == round + 1 && r.arrived == 0);
        ok(is_work(&r.work, 12 * (round + 1), 36 * (round + 1),
                   360 * (round + 1)));
        ok(is_work(&r.current, 0, 0, 0));
    }
    ep_round_free(&r);
    ep_round_free(&r);
}

static void test_round_errors(void)
{
    struct ep_outer outer = {0.7, 0.9, 0, 1};
    struct ep_round r = {0}, before;
    struct ep_round_effect e;
    struct ep_error err;

    ok(ep_round_init(&r, &outer, 0, &err) == EP_EDOM && !r.here);
    ok(err.code == EP_EDOM && strncmp(err.msg, "clients: ", 9) == 0);
    outer.beta = 1;
    ok(ep_round_init(&r, &outer, 2, &err) == EP_EDOM && !r.here);
    ok(strncmp(err.msg, "beta: ", 6) == 0);
    outer.beta = 0;
    ok(ep_round_init(&r, &outer, 2, NULL) == 0);
    ok(ep_round_delta(&r, 1, &few, &e, NULL) == 0);
    memcpy(&before, &r, sizeof r);
    memset(&e, UNTOUCHED, sizeof e);
    ok(ep_round_delta(&r, 2, &few, &e, &err) == EP_EDOM);
    ok(err.code == EP_EDOM &&
       strcmp(err.msg, "cannot apply delta: no client 2, there are 2") == 0);
    ok(ep_round_delta(&r, 1, &few, &e, &err) == EP_EDOM);
    ok(strcmp(err.msg,
              "cannot apply delta: client 1 has delivered in this "
              "round already") == 0);
    ok(same(&r, &before, sizeof r) && !r.here[0] && r.here[1]);
    ok(untouched(&e, sizeof e));
    ep_round_free(&r);
}

int main(void)
{
    test_gps();
    test_gps_fetch();
    test_gps_fetch_errors();
    test_gps_q4();
    test_gps_errors();
    test_round();
    test_round_errors();
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_comms.c - communicators of small made-up clusters in which every link
 * and every host is slow in turn: what is named is held against enumeration.
 * See comms_cluster.h.
 */
#include "config.h"

#include "comms_cluster.h"

#include <stdlib.h>
#include <string.h>

static bool locate(struct cluster *k, double since, struct ep_comms_place *p)
{
    return ep_comms_locate(k->c, (struct ep_span){k->job, strlen(k->job)},
                           since, p);
}

/* s becomes slow after 30 iterations: asked 12 later. */
static bool one_slow(struct cluster *k, struct slow s)
{
    struct ep_comms_place p;
    double since;
    bool found;

    iterate(k, 30);
    since = k->now - 0.5;
    k->slow = s;
    iterate(k, 12);
    found = locate(k, since, &p);
    if (found && !p.late && is_right(k, s, &p) && p.p >= 0.98 &&
        fabs(log(p.factor / s.factor)) < 0.35)
        return true;
    printf("# dp %d pp %d tp %d, slow %d-%d: %s x%.2f, %zu candidates: %s\n",
           k->dp, k->pp, k->tp, s.a, s.b, found ? p.id : "nothing",
           found ? p.factor : 0, found ? p.candidates : 0,
           found ? p.evidence : "");
    return false;
}

static const int layouts[][4] = {
    {4, 1, 1, 4}, /* ranks of one host: a ring, which cannot tell */
    {2, 4, 1, 8}, /* pairs of ranks can */
    {4, 1, 2, 8}, {4, 1, 4, 4}, {2, 1, 8, 8}, /* hosts */
    {4, 2, 4, 8}, {8, 2, 1, 4}, {2, 8, 1, 4}, {2, 4, 4, 8}, {3, 3, 2, 4},
};

static void test_every_one(void)
{
    int bad = 0, all = 0;

    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const int *l = layouts[i];
        struct cluster *probe = new_cluster(l[0], l[1], l[2], l[3], 1);
        int n = nodes(probe);

        for (int a = 0; a < n; a++)
            for (int b = -1; b < n; b++) {
                struct slow s = {a, b, 1.5 + 0.5 * (all % 4)};
                struct cluster *k;
                bool in[SERIES];

                if ((b >= 0 && b <= a) || !set_of(probe, s, in))
                    continue;
                k = new_cluster(l[0], l[1], l[2], l[3], (uint64_t)++all);
                bad += !one_slow(k, s);
                free_cluster(k);
            }
        free_cluster(probe);
    }
    printf("# %d links and hosts, %d wrong\n", all, bad);
    ok(all > 90);
    ok(bad == 0);
}

/* Nothing changes: nothing is named but by chance. */
static void test_nothing(void)
{
    struct ep_comms_place p;
    int named = 0;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        const int *l = layouts[seed % 10];
        struct cluster *k = new_cluster(l[0], l[1], l[2], l[3], 1000 + seed);

        iterate(k, 30);
        named += locate(k, k->now - 8.5, &p);
        free_cluster(k);
    }
    printf("# %d of 100 named\n", named);
    ok(named <= 3);
}

/* Records are missing; numbers are; a second link after a first. */
static void test_odd_streams(void)
{
    struct ep_comms_place p;
    struct slow s = {0, 1, 2.5}, second = {2, 3, 2.5};
    struct cluster *k = new_cluster(2, 4, 4, 8, 5);
    double since;

    k->drop = 0.02;
    ok(one_slow(k, s));
    since = k->now - 0.5;
    k->slow = (struct slow){-1, -1, 1};
    iterate(k, 30); /* over: nothing is slower */
    ok(!locate(k, since, &p));
    k->slow = second;
    since = k->now - 0.5;
    iterate(k, 5);
    ok(locate(k, since, &p) && is_right(k, second, &p));
    free_cluster(k);

    k = new_cluster(2, 4, 4, 8, 6);
    k->seq = false;
    ok(one_slow(k, s));
    free_cluster(k);

    k = new_cluster(2, 4, 4, 8, 7); /* senders and receivers count apart */
    k->other = 1000;
    iterate(k, 30);
    ok(one_slow(k, s));
    free_cluster(k);
}

/* Another process: numbers begin anew, what is known stays. */
static void test_restart(void)
{
    struct slow s = {0, 1, 2.0};

    for (int how = 0; how < 3; how++) {
        struct cluster *k = new_cluster(4, 2, 4, 8, 7);
        struct ep_comms_place p;
        double since;

        k->pid = how == 0 ? 100 : -1;
        iterate(k, 20);
        k->now += 100;
        k->pid += how == 0;
        k->count = how == 2 ? INT64_C(1) << 60 : 0; /* a gap, or again */
        iterate(k, 20);
        since = k->now - 0.5;
        k->slow = s;
        iterate(k, 8);
        ok(locate(k, since, &p) && is_right(k, s, &p));
        free_cluster(k);
    }
}

/* Names of one job say nothing of another's; each record twice. */
static void test_two_jobs(void)
{
    struct cluster *k = new_cluster(4, 1, 4, 4, 8);
    struct ep_comms_summary sum;
    struct ep_comms_place p;
    struct slow s = {0, 1, 2.0};
    uint64_t transfers;
    double since;

    iterate(k, 30);
    k->job = "other";
    k->now -= 30;
    iterate(k, 30);
    since = k->now - 0.5;
    k->slow = s;
    iterate(k, 10);
    ok(locate(k, since, &p) && p.scope == EP_SCOPE_GROUP);
    k->job = "j";
    ok(!locate(k, since, &p));
    k->job = "none";
    ok(!locate(k, since, &p));
    ep_comms_sum(k->c, &sum);
    ok(sum.groups == 16 && sum.pairs == 0 && sum.unused == 0);
    ok(sum.partial == 0);
    transfers = sum.transfers;
    ok(transfers == UINT64_C(70) * (4 * 4 + 4));
    free_cluster(k);
}

static struct ep_call plain(const char *comm, int rank, int64_t seq, double ts,
                            double dur)
{
    return (struct ep_call){.host = {rank ? "b" : "a", 1},
                            .op = {"all_reduce", 10},
                            .comm = {comm, strlen(comm)},
                            .rank = rank,
                            .pid = -1,
                            .nranks = 2,
                            .comm_rank = rank,
                            .peer = -1,
                            .bytes = 8,
                            .seq = seq,
                            .ts = ts,
                            .dur = dur};
}

static void test_edges(void)
{
    struct ep_comms *c = ep_comms_new(0.10);
    struct ep_comms_summary sum;
    struct ep_comms_place p;
    struct ep_call x;
    uint64_t unused = 0;

    ok(isnan(ep_comms_level(c, (struct ep_span){"", 0}, 5)));
    for (int i = 0; i < 9; i++) {
        x = plain("c", 0, i, 10 + i, 1);
        x.rank = i == 0 ? -1 : i == 1 ? EP_CALLS_RANKS : 0;
        x.comm.len = i != 2;
        x.comm_rank = i == 3 ? -1 : i == 4 ? EP_CALLS_RANKS : 0;
        x.ts = i == 5 ? (double)NAN : x.ts;
        x.dur = i == 6 ? (double)NAN : i == 7 ? 0 : i == 8 ? INFINITY : 1;
        ok(ep_comms_take(c, &x, NULL) == 0);
        ep_comms_sum(c, &sum);
        ok(sum.unused == ++unused && sum.groups == 0);
    }
    x = plain("one", 0, 0, 10, 1);
    x.nranks = 1;
    for (int i = 0; i < 100; i++) {
        x.seq = i;
        x.ts = 10 + i;
        if (ep_comms_take(c, &x, NULL) != 0)
            ok(!"take");
    }
    ep_comms_sum(c, &sum);
    ok(sum.transfers == 0 && sum.partial == 0);
    for (int i = 0; i < 100; i++) /* twice each */
        for (int k = 0; k < 4; k++) {
            x = plain("two", k / 2, i, 200 + i, i < 80 ? 0.1 : 0.2);
            if (ep_comms_take(c, &x, NULL) != 0)
                ok(!"take");
        }
    ep_comms_sum(c, &sum);
    ok(sum.transfers == 100 && sum.partial == 0);
    ok(ep_comms_locate(c, (struct ep_span){"", 0}, 279.5, &p));
    ok(p.scope == EP_SCOPE_LINK && strcmp(p.id, "src=a,dst=b") == 0);
    near(p.factor, 2, 0.01);
    near(ep_comms_level(c, (struct ep_span){"", 0}, 279.5), 2, 0.01);
    ok(strstr(p.evidence, "100 ms -> 200 ms") != NULL);
    ok(p.rank == -1 && !p.late && p.candidates == 3);
    x = plain("two", 0, 100, 400, 0.1);
    x.rank = 5; /* two communicators of one name: nothing can be said */
    ok(ep_comms_take(c, &x, NULL) == 0);
    ok(!ep_comms_locate(c, (struct ep_span){"", 0}, 279.5, &p));
    ep_comms_free(c);
    ep_comms_free(NULL);
}

/* Always last: by 0.6 % of the time, and by 20 %. */
static void test_late(void)
{
    static const struct {
        double by;
        bool found;
    } cases[] = {{0.006, false}, {0.05, false}, {0.2, true}, {0.5, true}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cluster *k = new_cluster(4, 1, 1, 4, 9 + i);
        struct ep_comms_place p;
        double since;
        bool found;

        iterate(k, 30);
        since = k->now - 0.5;
        k->late = 2;
        k->late_by = cases[i].by / 4; /* four calls */
        iterate(k, 10);
        found = locate(k, since, &p);
        ok(found == cases[i].found);
        if (found) {
            ok(p.late && p.rank == 2 && strcmp(p.id, "rank=2") == 0);
            near(p.factor, 1 / (1 - cases[i].by), 0.3);
            /* it was late before already: nothing new */
            since = k->now - 0.5;
            iterate(k, 4);
            ok(!locate(k, since, &p));
        }
        free_cluster(k);
    }
}

/* Slow from the first call: against groups of the class. */
static void test_from_the_start(void)
{
    struct slow s = {0, 2, 3.0};
    struct cluster *k = new_cluster(8, 4, 1, 8, 11);
    struct ep_comms_place p;

    s = (struct slow){1, 2, 3.0};
    k->slow = s;
    iterate(k, 12);
    ok(locate(k, (double)NAN, &p) && is_right(k, s, &p));
    ok(p.evidence && strstr(p.evidence, "no past") != NULL);
    free_cluster(k);
    k = new_cluster(8, 4, 1, 8, 12);
    iterate(k, 12);
    ok(!locate(k, 0, &p));
    free_cluster(k);
}

/* A pipeline of many ranks: bytes for each, none more after a while. */
static void test_memory(void)
{
    enum { MANY = 4096, ROUNDS = 3000 };
    struct ep_comms *c = ep_comms_new(0.10);
    struct ep_comms_summary first = {0}, last;
    char comm[16];

    for (int i = 0; i < ROUNDS; i++)
        for (int r = 0; r < (i < 64 ? MANY : 16); r++) {
            struct ep_call x;

            (void)snprintf(comm, sizeof comm, "g%d", r / 2);
            x = plain(comm, r, i, 10 + i, 0.1);
            x.comm_rank = r % 2;
            if (ep_comms_take(c, &x, NULL) != 0)
                ok(!"take");
            if (i == 63 && r == MANY - 1)
                ep_comms_sum(c, &first);
        }
    ep_comms_sum(c, &last);
    printf("# %zu bytes a rank\n", first.bytes / MANY);
    ok(first.bytes < (size_t)3000 * MANY);
    ok(last.bytes - first.bytes < (size_t)8 * 2000);
    ep_comms_free(c);
}

int main(void)
{
    test_edges();
    test_every_one();
    test_nothing();
    test_odd_streams();
    test_restart();
    test_two_jobs();
    test_late();
    test_from_the_start();
    test_memory();
    return tap_done();
}

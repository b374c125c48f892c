/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch_probes.c - devices against each other and their own past. */
#include "config.h"

#include "watch_seen.h"

#include <float.h>
#include <stdlib.h>

/* How the next probes are told. */
static struct ep_watch_probe as;

static void reset(void)
{
    as = (struct ep_watch_probe){
        .test = span("gemm"),
        .unit = span("s"),
        .rank = -1,
        .size = -1,
        .spread = (double)NAN,
        .ref_own = (double)NAN,
    };
}

static int take(int64_t rank, double ts, double value)
{
    struct ep_watch_probe p = as;

    p.rank = rank;
    p.ts = ts;
    p.value = value;
    return ep_watch_probe(w, &p, NULL);
}

static void test_rounds(void)
{
    reset();
    begin();
    /* slow, still slow, healthy, slow */
    for (int round = 0; round < 4; round++)
        for (int r = 0; r < 4; r++)
            ok(take(r, 100 * round + r, r == 2 && round != 2 ? 2 : 1) == 0);
    ok(
        findings_are("onset rank=2 -1 2.00 compute\n"
                     "relief rank=2 -1 1.00 compute\n"
                     "onset rank=2 -1 2.00 compute\n",
                     "rounds"));
    ok(strcmp(eids[0], "rank=2/gemm@2.000") == 0);
    ok(strcmp(eids[1], eids[0]) == 0);
    ok(strcmp(eids[2], "rank=2/gemm@302.000") == 0);
    ok(sure[0] <= 0.8 && sure[1] >= 0.9);
    open_are("onset rank=2 -1 2.00 compute\n");
    end();

    /* all at the same time, or earlier: other episodes all the same */
    begin();
    for (int round = 0; round < 5; round++)
        for (int r = 0; r < 4; r++)
            (void)take(r, round == 4 ? 1 : 7, r == 2 && round % 2 == 0 ? 2 : 1);
    ok(n_seen == 5); /* all four have reported: the round is over */
    ep_watch_finish(w);
    ok(n_seen == 5);
    ok(strcmp(eids[0], "rank=2/gemm@7.000") == 0 &&
       strcmp(eids[2], "rank=2/gemm@7.000#1") == 0 &&
       strcmp(eids[4], "rank=2/gemm@1.000#2") == 0);
    ok(strcmp(eids[1], eids[0]) == 0 && strcmp(eids[3], eids[2]) == 0);
    end();
}

/* One device is slow in two sizes, and against its own past. */
static void test_own(void)
{
    reset();
    as.ref_own = 1;
    begin();
    for (int size = 512; size <= 1024; size *= 2)
        for (int r = 0; r < 4; r++) {
            as.size = size;
            (void)take(r, 5, r == 3 ? 1.5 : 1);
        }
    ok(findings_are(
        "onset rank=3 -1 1.50 compute\nonset rank=3 -1 1.50 compute\n"
        "onset rank=3 -1 1.50 compute\n"
        "onset rank=3 -1 1.50 compute\n",
        "own and peers"));
    ok(strcmp(eids[0], "rank=3/gemm.512/own@5.000") == 0);
    ok(strcmp(eids[1], "rank=3/gemm.512@5.000") == 0);
    ok(strcmp(eids[2], "rank=3/gemm.1024/own@5.000") == 0);
    ok(strcmp(eids[3], "rank=3/gemm.1024@5.000") == 0);
    open_are("onset rank=3 -1 1.50 compute\nonset rank=3 -1 1.50 compute\n");
    end();
}

static void test_names(void)
{
    static const struct {
        const char *host, *gpu, *id;
        int64_t rank;
    } devices[] = {
        {"n1", NULL, "host=n1", -1},
        {"n1", NULL, "rank=4", 4},
        {"n1", "GPU-1", "gpu=GPU-1", 4},
    };

    reset();
    as.ref_own = 1;
    as.job = span("lm");
    as.test = span("membw.triad");
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        char expect[80];

        begin();
        as.host = span(devices[i].host);
        as.gpu = span(devices[i].gpu);
        (void)take(devices[i].rank, 5, 2);
        (void)snprintf(expect, sizeof expect, "onset lm:%s -1 2.00 memory\n",
                       devices[i].id);
        ok(findings_are(expect, devices[i].id));
        end();
    }
}

static void test_hostile(void)
{
    static const double bad[] = {0, -1, NAN, INFINITY};

    reset();
    begin();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(take(0, 1, bad[i]) == EP_EDOM);
    ok(take(0, INFINITY, 1) == EP_EDOM);
    as.ref_own = DBL_TRUE_MIN;
    as.spread = INFINITY;
    for (int r = 0; r < 4; r++)
        ok(take(r, 1e308, r == 1 ? DBL_MAX : 1e-300) == 0);
    as.ref_own = INFINITY;
    as.high_is_better = true;
    ok(take(1, 1, 1) == 0);
    ep_watch_finish(w);
    ok(n_seen >= 2 && sane);
    ok(factors[1] == 1e100); /* rank 1, its own past */
    end();
}

/* 20,000 devices, of which one reports all the time: no step costs them all. */
static void test_many(void)
{
    char expect[80];

    reset();
    begin();
    for (int r = 0; r < 20000; r++)
        (void)take(r, 1, r == 12345 ? 2 : 1);
    for (int i = 0; i < 20000; i++)
        (void)take(7, 2 + i, 1);
    (void)snprintf(expect, sizeof expect, "onset rank=%d -1 2.00 compute\n",
                   12345);
    ok(findings_are(expect, "20000 devices"));
    end();
}

int main(void)
{
    test_rounds();
    test_own();
    test_names();
    test_hostile();
    test_many();
    return tap_done();
}

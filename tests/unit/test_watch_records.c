/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_watch_records.c - what records of steps may tell, leave out, say twice
 * or say wrongly; who may send them. Harness: watch_seen.h.
 */
#include "config.h"

#include "detect/watch_impl.h"
#include "watch_seen.h"

#include <float.h>
#include <stdlib.h>

#define MB 8
#define PACE 0.05

static double within(int s, int from, int to, double slow)
{
    return s >= from && s <= to ? slow : 1;
}

static double one(int r, int s)
{
    return r == 1 ? within(s, 41, 80, 1.5) : 1;
}

/* Names that would run into each other do not. */
static void test_names(void)
{
    char job[2][200];

    begin();
    step_as.job = span("a");
    step_as.worker = span("x/rank=1");
    for (int s = 1; s <= 60; s++)
        (void)take_step(-1, s, s, 1, s > 40 ? 0.8 : 0.5, 1);
    step_as.worker = span(NULL);
    step_as.job = span("a/worker=x");
    for (int s = 1; s <= 60; s++)
        (void)take_step(1, s, s, 1, s > 40 ? 0.9 : 0.5, 1);
    ok(
        findings_are("onset a:worker=x/rank=1 41 1.60 compute\n"
                     "onset a/worker=x:rank=1 41 1.80 compute\n",
                     "names with slashes"));
    ok(strcmp(eids[0], eids[1]) != 0);
    end();

    /* too long: cut between characters (of two bytes here), still two */
    begin();
    for (int i = 0; i < 2; i++) {
        (void)snprintf(job[i], sizeof job[i], "x%0100d", i);
        for (size_t k = 1; k + 1 < 90; k += 2)
            memcpy(job[i] + k, "\xc3\xa9", 2);
        step_as.job = span(job[i]);
        for (int s = 1; s <= 60; s++)
            (void)take_step(1, s, s, 1, s > 40 ? 0.8 : 0.5, 1);
    }
    ok(n_seen == 2 && strcmp(eids[0], eids[1]) != 0);
    ok(strncmp(eids[0], job[0], 63) == 0 &&
       strcmp(eids[0] + 63, "/rank=1@41") == 0);
    step_as.job = span(NULL);
    end();
}

static void test_duplicates(void)
{
    begin();
    for (int s = 1; s <= 90; s++)
        for (int r = 0; r < 3; r++)
            for (int again = 0; again < 3; again++)
                (void)take_step(r, s, s, 1, PACE * (s == 50 && r == 1 ? 3 : 1),
                                1);
    /* three records of one slow step are one slow step */
    ok(findings_are("spike rank=1 50 3.00 compute\n", "said three times"));
    end();

    /* the step is told again later: three samples, but one rank of the job */
    begin();
    for (int s = 1; s <= 60; s++) {
        for (int again = 0; again < 3; again++)
            (void)take_step(0, s + again * 0.1, s, 0.5, 0.4, 1);
        (void)take_step(1, s + 0.5, s, s > 40 ? 1 : 0.5, 0.4, 1);
    }
    ok(findings_are("onset job 41 2.00 communication\n", "told again"));
    end();
}

static void test_odd_numbers(void)
{
    /* an odd number now and then, far ahead: the job's pace goes on */
    begin();
    for (int s = 1; s <= 60; s++) {
        if (s == 5 || s == 7 || s == 9 || s == 11)
            (void)take_step(2, s, INT64_C(1000000) * (12 - s), 0.5, 0.4, 1);
        for (int r = 0; r < 3; r++)
            (void)take_step(r, s + 0.1, s, s > 40 ? 1 : 0.5, 0.4, 1);
    }
    ok(findings_are("onset job 41 2.00 communication\n", "odd numbers"));
    end();
}

/* ==== What a record may tell ==== */

static void test_told_job(void)
{
    begin();
    for (int s = 1; s <= 90; s++) {
        for (int r = 0; r < 2; r++)
            (void)take_step(r, s + 0.01 + r * 0.01, s, 1, PACE * one(r, s), 1);
        /* the job's own record starts before those of its ranks */
        ok(take_step(-1, s, s, 0.1 * one(1, s), (double)NAN, -1) == 0 ||
           s > 90);
    }
    ok(findings_are(
        "onset rank=1 41 1.50 compute\nrelief rank=1 81 1.00 compute\n",
        "job and ranks"));
    /* 40 steps, 50 ms too long, 2 ranks */
    near(hours[1] * 3600, 40 * 0.05 * 2, 1e-9);
    end();

    begin();
    for (int s = 1; s <= 60; s++)
        (void)take_step(-1, s, s, one(1, s), (double)NAN, -1);
    ok(findings_are("onset job 41 1.50 unknown\n", "job alone"));
    end();

    begin(); /* the job tells itself from then on, and better */
    for (int s = 1; s <= 13; s++)
        for (int r = 0; r < (s > 10 ? 1 : 2); r++)
            (void)take_step(r, s, s, s > 10 ? 3 : 1, 0.4, 1);
    for (int s = 11; s <= 60; s++)
        (void)take_step(-1, s, s, 1, (double)NAN, -1);
    ok(findings_are("", "ranks, then the job"));
    end();
}

/* From..to: rank 0 and 1 tell kind 0 dur, 1 busy, 2 busy and mb. */
static void tell(int kind, int from, int to, double slow)
{
    for (int s = from; s <= to; s++)
        for (int r = 0; r < 2; r++)
            (void)take_step(r, s, s, 1,
                            kind ? 0.4 * (r ? slow : 1) : (double)NAN,
                            kind == 2 ? MB : -1);
}

static void test_basis(void)
{
    begin(); /* busy is told from the 11th step on */
    tell(0, 1, 10, 1);
    tell(2, 11, 60, 1);
    tell(2, 61, 80, 1.5);
    ok(findings_are("onset rank=1 61 1.50 compute\n", "busy from then on"));
    /* and then no more: nobody knows whether it is still slow */
    tell(0, 81, 84, 1);
    open_are("onset rank=1 61 1.50 compute\n");
    tell(0, 85, 100, 1);
    open_are("");
    tell(1, 101, 140, 1);
    tell(1, 141, 160, 1.5);
    ok(
        findings_are("onset rank=1 61 1.50 compute\n"
                     "onset rank=1 141 1.50 compute\n",
                     "busy without mb"));
    ok(strncmp(evidence, "busy 400 ms -> 600 ms", 21) == 0);
    end();

    begin(); /* every third step without busy */
    for (int s = 1; s <= 80; s++)
        tell(s % 3 ? 2 : 0, s, s, s > 50 ? 1.5 : 1);
    ok(findings_are("onset rank=1 52 1.50 compute\n", "busy at times"));
    end();

    begin(); /* others wait for rank 1 and tell only that they do */
    for (int s = 1; s <= 60; s++)
        for (int r = 0; r < 4; r++)
            (void)take_step(r, s, s, s > 40 ? 0.7 : 0.5,
                            r == 1 ? 0.4 * one(r, s) : (double)NAN, -1);
    ok(findings_are("onset rank=1 41 1.50 compute\n", "one tells busy"));
    end();

    begin(); /* peers tell different things: like goes with like */
    for (int s = 1; s <= 64; s++)
        for (int r = 0; r < 8; r++)
            (void)take_step(r, s, s, 1, 0.4 * (r == 3 || r == 6 ? 1.5 : 1),
                            r < 4 ? MB : -1);
    ok(findings_are(
        "onset rank=3 1 1.50 compute\nonset rank=6 1 1.50 compute\n",
        "two kinds"));
    ok(strncmp(evidence, "busy 600 ms, its peers 400 ms", 29) == 0);
    end();
}

static void test_no_work(void)
{
    begin();
    for (int s = 1; s <= 90; s++)
        for (int r = 0; r < 3; r++)
            ok(take_step(r, s, s, 1, r == 2 && s > 30 ? 0 : 0.4,
                         r == 2 && s > 30 ? 0 : MB) == 0 ||
               s > 90);
    ok(findings_are("", "a rank without work"));
    end();
}

static void test_refused(void)
{
    static const struct {
        double ts;
        int64_t step;
        double dur, busy;
        int64_t mb;
    } bad[] = {
        {10, 5, 0, 1, 1},
        {10, 5, 1, 0, 1},
        {10, 5, 1, 0, -1},
        {10, 5, -1, 1, 1},
        {10, -1, 1, 1, 1},
        {10, INT64_MAX, 1, 1, 1},
        {10, 5, INFINITY, 1, 1},
        {10, 5, 1, INFINITY, 1},
        {NAN, 5, 1, 1, 1},
        {INFINITY, 5, 1, 1, 1},
        {8, 5, 1, 1, 1}, /* backwards */
        {10, 5, 1, DBL_TRUE_MIN, 8},
    };
    struct ep_watch_config c = EP_WATCH_DEFAULTS;

    begin();
    ok(take_step(1, 9, 4, 1, 1, 1) == 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(take_step(1, bad[i].ts, bad[i].step, bad[i].dur, bad[i].busy,
                     bad[i].mb) == EP_EDOM);
    ok(take_step(1, 9, 5, 1, 1, 1) == 0);
    ok(take_share(1, 1, -0.1, NULL) == EP_EDOM);
    ok(take_share(1, NAN, 0.5, NULL) == EP_EDOM);
    ok(take_share(-1, 1, 0.5, NULL) == 0); /* nobody's */
    end();
    c.window = 3;
    ok(ep_watch_new(&c, on_finding, NULL, NULL) == NULL);
    c.window = 16;
    c.persist = 0;
    ok(ep_watch_new(&c, on_finding, NULL, NULL) == NULL);
    c.persist = 1;
    c.peers.k = -1;
    ok(ep_watch_new(&c, on_finding, NULL, NULL) == NULL);
    ep_watch_free(NULL);
}

/* As many series as there may be. */
static void test_limit(void)
{
    struct ep_error err = {.code = 0};

    begin();
    ok(take_step(0, 1, 1, 1, 1, 1) == 0);
    w->total = EP_WATCH_MAX_SERIES - 1;
    ok(take_step(1, 1, 1, 1, 1, 1) == 0);
    ok(take_step(2, 1, 1, 1, 1, 1) == EP_ELIMIT);
    step_as.job = span("b");
    gauge_as.job = span("c");
    ok(take_share(3, 1, 1, &err) == EP_ELIMIT);
    ok(strstr(err.msg, "500000") != NULL);
    gauge_as.job = span(NULL);
    ok(take_step(0, 1, 1, 1, 1, 1) == EP_ELIMIT);
    step_as.job = span(NULL);
    ok(take_step(1, 2, 2, 1, 1, 1) == 0);
    end();
}

static void test_hostile(void)
{
    begin();
    for (int s = 1; s <= 80; s++)
        for (int r = 0; r < 3; r++)
            (void)take_step(r, s > 40 && r == 1 ? 1e308 : s, s,
                            s > 40 && r == 1 ? 1e308 : 1e-300,
                            r == 1 ? (s > 40 ? 1e300 : 1e-300) : 1e-300, 1);
    ok(n_seen == 1 && sane && factors[0] >= 1e100);
    end();
}

/* ==== Other producers ==== */

static void test_workers(void)
{
    static const char *const names[] = {"a", "b", "c", "d"};

    begin(); /* each at its own step number; d is slow, b becomes it */
    for (int s = 1; s <= 100; s++)
        for (int i = 0; i < 4; i++) {
            step_as.worker = span(names[i]);
            (void)take_step(
                -1, s, s + 1000 * i, 1,
                0.4 * (i == 3 ? 1.3 : 1) * (i == 1 && s > 60 ? 2 : 1), 1);
        }
    ok(
        findings_are("onset worker=d 3001 1.30 compute\n"
                     "onset worker=b 1061 2.00 compute\n",
                     "workers"));
    open_are(
        "onset worker=d 3001 1.30 compute\n"
        "onset worker=b 1061 2.00 compute\n");
    end();

    begin(); /* all of them at a time */
    for (int s = 1; s <= 100; s++)
        for (int i = 0; i < 4; i++) {
            step_as.worker = span(names[i]);
            (void)take_step(-1, s, s + 1000 * i, 1, s > 60 ? 0.8 : 0.4, 1);
        }
    ok(findings_are("", "all workers"));
    end();
    step_as.worker = span(NULL);
}

static void test_cpu_share(void)
{
    begin(); /* readings before any step, and of ranks that have none */
    for (int i = 0; i < 50; i++)
        ok(take_share(i, 1, 0.99, NULL) == 0);
    for (int s = 1; s <= 90; s++)
        for (int r = 0; r < 3; r++) {
            double slow = r == 1 ? within(s, 41, 80, 1.5) : 1;

            slow *= r == 1 ? within(s, 61, 80, 1.5) : 1;
            ok(take_share(r, s, slow > 1 ? 0.6 : 0.99, NULL) == 0);
            (void)take_step(r, s, s, 1, 0.4 * slow, 1);
        }
    /* the share was low before it got worse, but not when all was well */
    ok(
        findings_are("onset rank=1 41 1.50 cpu-contention\n"
                     "onset rank=1 61 2.25 cpu-contention\n"
                     "relief rank=1 81 1.00 cpu-contention\n",
                     "contention"));
    end();

    begin(); /* from the first step on */
    for (int s = 1; s <= 40; s++)
        for (int r = 0; r < 4; r++) {
            ok(take_share(r, s, r == 2 ? 0.7 : 1, NULL) == 0);
            (void)take_step(r, s, s, 1, r == 2 ? 0.5 : 0.4, 1);
        }
    ok(findings_are("onset rank=2 1 1.25 cpu-contention\n", "from the start"));
    ok(strstr(evidence, "share of CPU time 0.70, its peers 1.00") != NULL);
    end();
}

static void test_jobs(void)
{
    char name[32];

    begin(); /* two jobs, the same ranks */
    for (int s = 1; s <= 60; s++)
        for (int r = 0; r < 2; r++) {
            step_as.job = span("a");
            (void)take_step(r, s, s, 1, 0.4 * one(r, s), 1);
            step_as.job = span("ab"); /* next to it in each table */
            (void)take_step(r, s, s + 500, 1, 0.1, 1);
            (void)take_step(97 + r, s, s + 500, 1, 0.1, 1);
            step_as.job = span("a");
            (void)take_step(97 + r, s, s, 1, 0.4, 1);
        }
    ok(findings_are("onset a:rank=1 41 1.50 compute\n", "two jobs"));
    end();

    begin(); /* thousands */
    for (int s = 1; s <= 30; s++)
        for (int j = 0; j < 2100; j++) {
            (void)snprintf(name, sizeof name, "job%d", j);
            step_as.job = span(name);
            (void)take_step(0, s, s, 9, j == 2000 && s > 20 ? 2 : 1, -1);
        }
    ok(findings_are("onset job2000:rank=0 21 2.00 compute\n",
                    "thousands of jobs"));
    end();
    step_as.job = span(NULL);
}

int main(void)
{
    test_names();
    test_duplicates();
    test_odd_numbers();
    test_told_job();
    test_basis();
    test_no_work();
    test_refused();
    test_limit();
    test_hostile();
    test_workers();
    test_cpu_share();
    test_jobs();
    return tap_done();
}

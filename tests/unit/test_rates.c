/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rates.c - paces and shares of groups, on hand-worked sequences. All
 * numbers are small multiples of powers of two, so that "==" is exact.
 */
#include "config.h"

#include "plan/rates.h"

#include "tap.h"

#include <string.h>

#define NO_TIME ((double)NAN)

static struct ep_rates_group out[8];

static int step_of(struct ep_rates *r, int64_t reporter, int64_t group,
                   int64_t step, int64_t mb, double busy)
{
    const struct ep_rates_sample s = {.reporter = reporter,
                                      .group = group,
                                      .ts = (double)step,
                                      .step = step,
                                      .mb = mb,
                                      .busy = busy};

    return ep_rates_sample(r, &s, NULL);
}

/* Steps from..to of a reporter that is its own group, 4 micro-batches each. */
static void steps(struct ep_rates *r, int64_t reporter, int64_t from,
                  int64_t to, double pace)
{
    for (int64_t i = from; i <= to; i++)
        if (step_of(r, reporter, reporter, i, 4, 4 * pace) < 0)
            ok(0);
}

static int event(struct ep_rates *r, const char *eid, bool onset,
                 int64_t reporter, int64_t group, double factor, int64_t step)
{
    const struct ep_rates_event e = {.eid = {eid, strlen(eid)},
                                     .onset = onset,
                                     .reporter = reporter,
                                     .group = group,
                                     .factor = factor,
                                     .ts = (double)step + 4,
                                     .since = (double)step,
                                     .step = step};

    return ep_rates_event(r, &e, NULL);
}

/* Is the pace of group g what is expected, and from where? */
static void pace(struct ep_rates *r, size_t g, double want, size_t samples,
                 enum ep_rates_source source)
{
    (void)ep_rates_paces(r, out);
    near(out[g].pace, want, 0);
    ok(out[g].samples == samples);
    ok(out[g].source == source);
}

static void test_median_and_max(void)
{
    struct ep_rates *r = ep_rates_new(2, 3, 8);

    ok(ep_rates_paces(r, out) == 0); /* nothing told: all alike */
    ok(out[0].pace == 1 && out[1].pace == 1);
    ok(out[0].source == EP_RATES_ASSUMED && !ep_rates_named(r));
    /* window 3: the median of 2, 9, 4 and not of all five */
    ok(step_of(r, 0, 0, 1, 1, 1) == 0);
    ok(step_of(r, 0, 0, 2, 1, 1) == 0);
    ok(step_of(r, 0, 0, 3, 1, 2) == 0);
    ok(step_of(r, 0, 0, 4, 2, 18) == 0);
    ok(step_of(r, 0, 0, 5, 4, 16) == 0);
    pace(r, 0, 4, 3, EP_RATES_MEASURED);
    /* the other has told nothing: as the first */
    pace(r, 1, 4, 0, EP_RATES_ASSUMED);
    /* of two reporters of a group the slower counts */
    ok(step_of(r, 7, 0, 5, 4, 20) == 0);
    ok(step_of(r, 5, 0, 5, 4, 12) == 0);
    pace(r, 0, 5, 1, EP_RATES_MEASURED);
    /* steps without work or without busy tell no pace */
    ok(step_of(r, 1, 1, 5, 0, 3) == 0);
    ok(step_of(r, 1, 1, 6, 4, NO_TIME) == 0);
    ok(ep_rates_paces(r, out) == 1);
    ep_rates_free(r);
}

static void test_errors(void)
{
    static const struct {
        struct ep_rates_sample s;
        const char *why;
    } cases[] = {
        {{0, 2, 5, 5, 4, 1}, "group 2 of 2"},
        {{0, -1, 5, 5, 4, 1}, "group -1 of 2"},
        {{-1, 0, 5, 5, 4, 1}, "reporter -1 of 2097152"},
        {{1 << 21, 0, 5, 5, 4, 1}, "reporter 2097152 of 2097152"},
        {{0, 0, 2.5, 5, 4, 1}, "time runs backwards by 0.5 s (step 5)"},
        {{0, 0, 5, 5, 4, 0}, "busy is 0 s with 4 micro-batches"},
    };
    struct ep_rates *r = ep_rates_new(2, 4, 8);
    struct ep_error err;

    ok(step_of(r, 0, 0, 3, 4, 8) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ok(ep_rates_sample(r, &cases[i].s, &err) == EP_EDOM);
        if (!ok(strcmp(err.msg, cases[i].why) == 0))
            printf("# got %s\n", err.msg);
    }
    ok(ep_rates_fresh(r) == 1);
    ok(event(r, "a", true, 0, 2, 2, 1) == EP_EDOM);
    ok(event(r, "a", true, -2, 0, 2, 1) == EP_EDOM);
    ok(event(r, "a", true, 1 << 21, 0, 2, 1) == EP_EDOM);
    ok(event(r, "a", true, 0, 0, 0, 1) == EP_EDOM);
    ok(!ep_rates_named(r));
    {
        static char eid[EP_RATES_EID_MAX + 2];

        memset(eid, 'x', sizeof eid - 1);
        ok(event(r, eid, true, 0, 0, 2, 1) == EP_ELIMIT);
        ok(event(r, eid + 1, true, 0, 0, 2, 1) == 0);
    }
    for (int i = 1; i < EP_RATES_EPISODES_MAX; i++) {
        char eid[16];

        (void)snprintf(eid, sizeof eid, "e%d", i);
        if (event(r, eid, true, -1, -1, 2, 1) < 0)
            ok(0);
    }
    ok(event(r, "more", true, -1, -1, 2, 1) == EP_ELIMIT);
    ok(event(r, "e1", false, -1, -1, 1, 1) == 0);
    ok(event(r, "more", true, -1, -1, 2, 1) == 0);
    ep_rates_free(r);
}

/* Onset in step 11, decided in step 14, when the window is healthy mostly. */
static void test_onset(void)
{
    struct ep_rates *r = ep_rates_new(2, 16, 8);

    steps(r, 0, 1, 14, 1);
    steps(r, 1, 1, 10, 1);
    steps(r, 1, 11, 14, 2);
    pace(r, 1, 1, 14, EP_RATES_MEASURED); /* what the event is for */
    ok(ep_rates_fresh(r) == 14);
    ok(event(r, "e", true, 1, 1, 2, 11) == 0);
    ok(ep_rates_fresh(r) == 0 && ep_rates_named(r));
    pace(r, 1, 2, 4, EP_RATES_MEASURED);
    pace(r, 0, 1, 4, EP_RATES_MEASURED);
    steps(r, 1, 15, 40, 2);
    ok(ep_rates_fresh(r) == 26);
    pace(r, 1, 2, 16, EP_RATES_MEASURED);
    /* worse, then well again, each without a sample yet */
    ok(event(r, "e", true, 1, 1, 3, 41) == 0);
    pace(r, 1, 3, 0, EP_RATES_BEFORE);
    pace(r, 0, 1, 0, EP_RATES_BEFORE);
    ok(event(r, "e", false, 1, 1, 1, 50) == 0);
    pace(r, 1, 1, 0, EP_RATES_BEFORE);
    ok(ep_rates_paces(r, out) == 2);
    steps(r, 1, 50, 50, 0.5);
    pace(r, 1, 0.5, 1, EP_RATES_MEASURED);
    ep_rates_free(r);
}

/* An event that names nobody parts the samples; an older one does not. */
static void test_job_event(void)
{
    struct ep_rates *r = ep_rates_new(2, 16, 8);

    steps(r, 0, 1, 14, 1);
    steps(r, 1, 1, 10, 1);
    steps(r, 1, 11, 14, 4);
    ok(event(r, "job", true, -1, -1, 4, 11) == 0);
    ok(!ep_rates_named(r));
    pace(r, 1, 4, 4, EP_RATES_MEASURED);
    ok(event(r, "rank", true, 1, 1, 4, 9) == 0);
    pace(r, 1, 4, 4, EP_RATES_MEASURED);
    pace(r, 0, 1, 4, EP_RATES_MEASURED);
    ep_rates_free(r);

    /* the same two onsets, before a sample since them was read */
    r = ep_rates_new(2, 16, 8);
    steps(r, 0, 1, 10, 1);
    steps(r, 1, 1, 10, 1);
    ok(event(r, "job", true, -1, -1, 4, 11) == 0);
    ok(event(r, "rank", true, 1, 1, 4, 11) == 0);
    ok(event(r, "job", true, -1, -1, 4, 11) == 0);
    pace(r, 1, 4, 0, EP_RATES_BEFORE);
    pace(r, 0, 1, 0, EP_RATES_BEFORE);
    ep_rates_free(r);
}

/* Step numbers start again; ts goes on. */
static void test_restart(void)
{
    struct ep_rates *r = ep_rates_new(1, 4, 4);
    struct ep_rates_sample s = {0, 0, 0, 0, 1, 1};

    for (int i = 0; i < 10; i++, s.ts += 1, s.step++)
        ok(ep_rates_sample(r, &s, NULL) == 0);
    ok(event(r, "e", true, 0, 0, 2, 8) == 0);
    pace(r, 0, 1, 2, EP_RATES_MEASURED);
    s = (struct ep_rates_sample){0, 0, 20, 3, 1, 4};
    ok(ep_rates_sample(r, &s, NULL) == 0);
    s.ts++;
    ok(ep_rates_sample(r, &s, NULL) == 0);
    s.ts++;
    ok(ep_rates_sample(r, &s, NULL) == 0);
    pace(r, 0, 4, 4, EP_RATES_MEASURED);
    ep_rates_free(r);
}

/* Events without a step part by time. */
static void test_since(void)
{
    struct ep_rates *r = ep_rates_new(1, 16, 4);
    const struct ep_rates_event e = {.eid = {"e", 1},
                                     .onset = true,
                                     .reporter = -1,
                                     .group = 0,
                                     .factor = NO_TIME,
                                     .ts = 9,
                                     .since = 6,
                                     .step = -1};

    steps(r, 0, 1, 5, 1);
    steps(r, 0, 6, 8, 8);
    ok(ep_rates_event(r, &e, NULL) == 0);
    pace(r, 0, 8, 3, EP_RATES_MEASURED);
    ep_rates_free(r);
}

/* No busy at all: only the events tell, relative to 1. */
static void test_relative(void)
{
    struct ep_rates *r = ep_rates_new(4, 16, 32);

    ok(event(r, "a", true, 9, 2, 2, 5) == 0);
    ok(event(r, "b", true, -1, 2, 1.5, 6) == 0);
    ok(event(r, "c", true, -1, 0, NO_TIME, 6) == 0);
    ok(ep_rates_paces(r, out) == 0);
    pace(r, 0, 1, 0, EP_RATES_ASSUMED);
    pace(r, 2, 2, 0, EP_RATES_ASSUMED); /* the larger of two */
    ok(event(r, "a", false, 9, 2, 1, 7) == 0);
    pace(r, 2, 1.5, 0, EP_RATES_ASSUMED);
    ok(event(r, "a", false, 9, 2, 1, 7) == 0); /* closed already */
    pace(r, 2, 1.5, 0, EP_RATES_ASSUMED);
    ok(event(r, "b", false, -1, 2, 1, 7) == 0);
    pace(r, 2, 1, 0, EP_RATES_ASSUMED);
    ep_rates_free(r);
}

/* Some tell: the silent are as the healthy pace of the others. */
static void test_partial(void)
{
    struct ep_rates *r = ep_rates_new(3, 16, 32);

    ok(event(r, "a", true, 0, 0, 4, 1) == 0);
    steps(r, 0, 1, 4, 8); /* slow, and told only when slow */
    ok(ep_rates_paces(r, out) == 1);
    pace(r, 0, 8, 4, EP_RATES_MEASURED);
    pace(r, 1, 2, 0, EP_RATES_ASSUMED);
    ok(event(r, "b", true, -1, 1, 2, 1) == 0);
    pace(r, 1, 4, 0, EP_RATES_ASSUMED);
    /* a silent rank of a group that tells, named by an event */
    ok(event(r, "c", true, 5, 0, 16, 1) == 0);
    pace(r, 0, 32, 0, EP_RATES_ASSUMED);
    /* a reporter that comes later has its group's factor: 6 / 2 = 3 healthy,
     * and the median of 2 and 3 for the third group */
    ok(step_of(r, 1, 1, 9, 1, 6) == 0);
    pace(r, 1, 6, 1, EP_RATES_MEASURED);
    pace(r, 2, 2.5, 0, EP_RATES_ASSUMED);
    ep_rates_free(r);
}

static void test_shares(void)
{
    struct ep_rates *r = ep_rates_new(2, 2, 12);
    int64_t share[2] = {-1, -1}, sum;
    size_t groups;

    ok(ep_rates_shares(r, share, NULL, NULL) == EP_RATES_NONE);
    ok(step_of(r, 0, 0, 1, 6, NO_TIME) == 0);
    ok(ep_rates_shares(r, share, &groups, &sum) == EP_RATES_SOME);
    ok(groups == 1 && sum == 6);
    ok(step_of(r, 1, 1, 1, 5, NO_TIME) == 0);
    ok(ep_rates_shares(r, share, &groups, &sum) == EP_RATES_OTHER);
    ok(groups == 2 && sum == 11 && share[0] == -1);
    ok(step_of(r, 1, 1, 2, 6, NO_TIME) == 0);
    ok(ep_rates_shares(r, share, &groups, &sum) == EP_RATES_ALL);
    ok(sum == 12 && share[0] == 6 && share[1] == 6);
    /* new shares: as before while they are being applied */
    ok(step_of(r, 0, 0, 3, 8, NO_TIME) == 0);
    ok(ep_rates_shares(r, share, &groups, &sum) == EP_RATES_ALL);
    ok(sum == 14 && share[0] == 6 && share[1] == 6);
    ok(step_of(r, 1, 1, 3, 4, NO_TIME) == 0);
    ok(ep_rates_shares(r, share, NULL, NULL) == EP_RATES_ALL);
    ok(share[0] == 8 && share[1] == 4);
    /* two steps of two ranks with another sum may pass, not a third */
    for (int i = 4; i < 6; i++) {
        ok(step_of(r, 0, 0, i, 9, NO_TIME) == 0);
        ok(step_of(r, 1, 1, i, 9, NO_TIME) == 0);
    }
    ok(ep_rates_shares(r, share, NULL, NULL) == EP_RATES_ALL);
    ok(step_of(r, 0, 0, 6, 9, NO_TIME) == 0);
    ok(ep_rates_shares(r, share, NULL, &sum) == EP_RATES_OTHER);
    ok(sum == 18);
    ep_rates_free(r);
    ep_rates_free(NULL);
}

int main(void)
{
    test_median_and_max();
    test_errors();
    test_onset();
    test_job_event();
    test_restart();
    test_since();
    test_relative();
    test_partial();
    test_shares();
    return tap_done();
}

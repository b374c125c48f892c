/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_balance.c - when plans are made and which are asked for again, on
 * hand-worked sequences; and the words for them.
 */
#include "config.h"

#include "plan/balance.h"
#include "plan/balance_text.h"

#include "tap.h"

#include <stdarg.h>
#include <string.h>

static struct ep_balance_plan plan;

static struct ep_balance *new_balance(size_t groups, int64_t microbatches,
                                      int pp, int block, size_t window)
{
    const struct ep_balance_config c = {.groups = groups,
                                        .microbatches = microbatches,
                                        .pp = pp,
                                        .block = block,
                                        .window = window,
                                        .min_gain = 0.02};

    return ep_balance_new(&c, NULL);
}

/* One step of a rank that is its own group; pace NAN: no busy. */
static int step_of(struct ep_balance *b, int64_t rank, int64_t step, int64_t mb,
                   double pace)
{
    const struct ep_rates_sample s = {.reporter = rank,
                                      .group = rank,
                                      .ts = (double)step,
                                      .step = step,
                                      .mb = mb,
                                      .busy = pace * (double)mb};

    return ep_balance_sample(b, &s, NULL);
}

static void event(struct ep_balance *b, const char *eid, bool onset,
                  int64_t rank, double factor, int64_t step)
{
    const struct ep_rates_event e = {.eid = {eid, strlen(eid)},
                                     .onset = onset,
                                     .reporter = rank,
                                     .group = rank,
                                     .factor = factor,
                                     .ts = (double)step,
                                     .since = (double)step,
                                     .step = step};

    ok(ep_balance_event(b, &e, NULL) == 0);
}

static int verdict(struct ep_balance *b)
{
    return ep_balance_plan(b, &plan, NULL);
}

/* Are the shares of the plan those, from and to? For two groups. */
static void shares(int64_t from0, int64_t from1, int64_t to0, int64_t to1)
{
    ok(plan.from[0] == from0 && plan.from[1] == from1);
    ok(plan.to[0] == to0 && plan.to[1] == to1);
}

static void test_errors(void)
{
    const struct ep_balance_config few = {3, 2, 1, 1, 4, 0};
    const struct ep_rates_sample bad = {0, 9, 0, 0, 1, 1};
    const struct ep_rates_event worse = {.onset = true, .group = 9};
    struct ep_error err;
    struct ep_balance *b;

    ok(!ep_balance_new(&few, &err) && err.code == EP_EDOM);
    b = new_balance(2, 12, 1, 1, 4);
    ok(ep_balance_sample(b, &bad, NULL) == EP_EDOM);
    ok(ep_balance_event(b, &worse, NULL) == EP_EDOM);
    ok(verdict(b) == EP_BALANCE_BLIND);
    event(b, "job", true, -1, 2, 1);
    ok(verdict(b) == EP_BALANCE_BLIND);
    /* a pace that overflows */
    ok(step_of(b, 0, 1, 1, 1.7e308) == 0);
    ok(ep_balance_plan(b, &plan, &err) == EP_ERANGE);
    ep_balance_free(b);
    ep_balance_free(NULL);
}

/* The shares are told: 6 and 6, paces 1 and 1, then 1 and 2. */
static void test_told(void)
{
    struct ep_balance *b = new_balance(2, 12, 1, 1, 4);

    for (int i = 1; i <= 4; i++) {
        ok(step_of(b, 0, i, 6, 1) == 0);
        ok(step_of(b, 1, i, 6, i < 3 ? 1 : 1.5) == 0);
    }
    event(b, "e", true, 1, 2, 3);
    ok(verdict(b) == EP_BALANCE_PLAN);
    shares(6, 6, 7, 5);
    near(plan.gain, 9 / 7.5 - 1, 1e-15);
    ok(!plan.relative && plan.assumed == 0);
    /* asked for, and not applied */
    ok(verdict(b) == EP_BALANCE_PENDING);
    /* it becomes clear that the pace is 2: after 4 steps of it */
    for (int i = 5; i <= 8; i++) {
        ok(step_of(b, 1, i, 6, 2) == (i == 8));
        ok(step_of(b, 0, i, 6, 1) == 0);
    }
    ok(verdict(b) == EP_BALANCE_PLAN);
    shares(6, 6, 8, 4);
    near(plan.gain, 0.5, 1e-15);
    /* once for an event */
    for (int i = 9; i <= 16; i++)
        ok(step_of(b, 1, i, 6, 2) == 0);
    /* applied */
    ok(step_of(b, 0, 17, 8, 1) == 0);
    ok(step_of(b, 1, 17, 4, 2) == 0);
    ok(verdict(b) == EP_BALANCE_NONE && plan.res.changed == 0);
    shares(8, 4, 8, 4);
    event(b, "e", false, 1, 1, 18);
    ok(verdict(b) == EP_BALANCE_PLAN);
    shares(8, 4, 6, 6);
    ep_balance_free(b);
}

/* Nobody applies the plan: relief ends it, the next onset asks anew. */
static void test_ignored(void)
{
    struct ep_balance *b = new_balance(2, 12, 1, 1, 4);

    ok(step_of(b, 0, 1, 6, 1) == 0);
    ok(step_of(b, 1, 1, 6, 1) == 0);
    event(b, "e", true, 1, 2, 2);
    ok(verdict(b) == EP_BALANCE_PLAN);
    event(b, "e", false, 1, 1, 3);
    ok(verdict(b) == EP_BALANCE_NONE);
    event(b, "f", true, 1, 2, 4);
    ok(verdict(b) == EP_BALANCE_PLAN);
    shares(6, 6, 8, 4);
    ep_balance_free(b);
}

/* No step tells mb: what was asked for counts as applied. */
static void test_untold(void)
{
    struct ep_balance *b = new_balance(2, 12, 1, 1, 4);

    event(b, "e", true, 1, 2, 2);
    ok(verdict(b) == EP_BALANCE_PLAN && plan.relative);
    shares(6, 6, 8, 4);
    ok(plan.shares_told == EP_RATES_NONE && plan.assumed == 2);
    ok(verdict(b) == EP_BALANCE_NONE);
    event(b, "f", true, 0, 2, 3);
    ok(verdict(b) == EP_BALANCE_PLAN);
    shares(8, 4, 6, 6);
    event(b, "e", false, 1, 1, 4);
    ok(verdict(b) == EP_BALANCE_PLAN);
    shares(6, 6, 4, 8);
    ep_balance_free(b);
}

/* Is that what the words are? */
static void words(struct ep_buf *b, const char *want)
{
    if (!ok(strcmp(b->ptr, want) == 0))
        printf("# got %s\n", b->ptr);
    ep_buf_reset(b);
}

static void test_odd_shares(void)
{
    struct ep_balance *b = new_balance(2, 16, 2, 2, 4);
    struct ep_buf text;

    ep_buf_init(&text);
    ok(step_of(b, 0, 1, 8, 1) == 0);
    ok(verdict(b) == EP_BALANCE_NONE);
    ok(plan.shares_told == EP_RATES_SOME && plan.shares_groups == 1);
    ok(ep_balance_text_shares(&plan, &text));
    words(&text, "no mb of 1 of 2 groups: shares taken as even");
    ok(plan.assumed == 1 && plan.first_assumed == 1);
    ok(ep_balance_text_paces(&plan, &text));
    words(&text,
          "no pace of 1 of 2 groups, first dp 1: taken as that of the "
          "others when healthy, times the factor of its event");
    ep_balance_text_group(&plan, 1, &text);
    words(&text, "dp 1: share 8, pace 1 s, assumed");
    ok(step_of(b, 1, 1, 7, 1) == 0);
    ok(verdict(b) == EP_BALANCE_NONE && !plan.odd_shares);
    ok(plan.shares_told == EP_RATES_OTHER && plan.shares_sum == 15);
    ok(ep_balance_text_shares(&plan, &text));
    words(&text,
          "steps have 15 micro-batches in all, the layout 16: shares "
          "taken as even");
    ok(!ep_balance_text_paces(&plan, &text));
    ok(step_of(b, 0, 2, 9, 1) == 0);
    ok(verdict(b) == EP_BALANCE_NONE && plan.odd_shares);
    shares(8, 8, 8, 8);
    ok(ep_balance_text_shares(&plan, &text));
    words(&text,
          "shares in the steps are no multiples of 2, which an "
          "interleaved schedule needs: taken as even");
    ok(step_of(b, 0, 3, 10, 1) == 0);
    ok(step_of(b, 1, 3, 6, 1) == 0);
    ok(verdict(b) == EP_BALANCE_PLAN && !plan.odd_shares);
    shares(10, 6, 8, 8);
    ok(!ep_balance_text_shares(&plan, &text));
    ep_buf_free(&text);
    ep_balance_free(b);
}

static void test_words(void)
{
    const struct ep_span none = {NULL, 0}, eid = {"rank=1@118", 10};
    struct ep_balance *b = new_balance(2, 24, 1, 1, 4);
    struct ep_buf text;
    char longer[100];

    ep_buf_init(&text);
    memset(longer, 'x', sizeof longer);
    ok(step_of(b, 0, 1, 12, 0.25) == 0);
    ok(step_of(b, 1, 1, 12, 0.5) == 0);
    ok(verdict(b) == EP_BALANCE_PLAN);
    ep_balance_text(&plan, 5, eid, &text);
    words(&text,
          "plan S2 shares: throughput +50 %, cost 5 s   (rank=1@118)\n"
          "  dp 0   12 -> 16\n"
          "  dp 1   12 ->  8\n"
          "predicted step 6 s -> 4 s (bound 4 s)\n");
    ep_balance_text(&plan, NAN, none, &text);
    ok(strncmp(text.ptr, "plan S2 shares: throughput +50 %\n", 33) == 0);
    ep_buf_reset(&text);
    ep_balance_text(&plan, 5, (struct ep_span){longer, sizeof longer}, &text);
    ok(strncmp(text.ptr, "plan S2 shares: throughput +50 %, cost 5 s\n  (xxx",
               48) == 0);
    ep_buf_reset(&text);
    ep_balance_text_group(&plan, 1, &text);
    words(&text, "dp 1: share 12, pace 500 ms, median of 1");
    event(b, "e", true, 1, 2, 2);
    ok(verdict(b) >= 0);
    ep_balance_text_group(&plan, 1, &text);
    words(&text, "dp 1: share 12, pace 1 s, from before the event");
    ep_balance_free(b);

    b = new_balance(2, 200, 1, 1, 4);
    ok(step_of(b, 0, 1, 100, 1) == 0);
    ok(step_of(b, 1, 1, 100, 1.02) == 0);
    ok(verdict(b) == EP_BALANCE_NONE);
    ep_balance_text_none(&plan, 0.02, none, &text);
    words(&text,
          "no plan helps: the best shares gain 0.99 %, less than "
          "--min-gain 2 %");
    ok(step_of(b, 1, 2, 100, 1) == 0);
    ok(step_of(b, 1, 3, 100, 1) == 0);
    ok(verdict(b) == EP_BALANCE_NONE);
    ep_balance_text_none(&plan, 0.02, eid, &text);
    words(&text,
          "no plan helps: the present shares are the best   (rank=1@118)");
    ep_balance_free(b);

    /* relative, and many groups to a line */
    b = new_balance(64, 512, 1, 1, 4);
    event(b, "e", true, 63, 2, 1);
    ok(verdict(b) == EP_BALANCE_PLAN && plan.res.changed <= 64);
    ep_balance_text(&plan, NAN, none, &text);
    for (char *line = strtok(text.ptr, "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 80 ||
            (*line == ' ') != (line[2] == 'd' && line[3] == 'p'))
            ok(0);
    ep_balance_text_group(&plan, 63, &text);
    ep_buf_free(&text);
    ep_balance_free(b);
}

int main(void)
{
    test_errors();
    test_told();
    test_ignored();
    test_untold();
    test_odd_shares();
    test_words();
    return tap_done();
}

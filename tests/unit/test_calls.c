/* SPDX-License-Identifier: Apache-2.0 */
/* test_calls - the calls of many ranks as steps that fit together. */
#include "config.h"

#include "base/mem.h"
#include "detect/calls.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 16

struct seen {
    size_t n, backwards, gaps, wrong;
    int64_t last[RANKS], first[RANKS];
    double ts[RANKS], start[4096]; /* start: of a step, by its first rank */
    double least, most;            /* dur */
};

static void on_step(void *ctx, const struct ep_calls_step *s)
{
    struct seen *x = ctx;
    int64_t r = s->rank;

    x->n++;
    x->gaps += x->last[r] >= 0 && s->step != x->last[r] + 1;
    x->backwards += s->ts < x->ts[r] || s->step <= x->last[r];
    if (x->first[r] < 0)
        x->first[r] = s->step;
    x->last[r] = s->step;
    x->ts[r] = s->ts;
    x->least = fmin(x->least, s->dur);
    x->most = fmax(x->most, s->dur);
    if (!(x->start[s->step] > 0))
        x->start[s->step] = s->ts;
    x->wrong += fabs(x->start[s->step] - s->ts) > 1;
}

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

static struct seen *new_seen(void)
{
    struct seen *x = ep_calloc(1, sizeof *x);

    for (int r = 0; r < RANKS; r++)
        x->last[r] = x->first[r] = -1;
    x->least = 1e9;
    return x;
}

/* A call of a rank: its group of four has a communicator of its own. */
static int call(struct ep_calls *c, int64_t rank, const char *op, int64_t bytes,
                double ts, int64_t seq)
{
    char comm[32];
    struct ep_call x = {
        .job = span("lm"),
        .op = span(op),
        .rank = rank,
        .pid = -1,
        .nranks = 4,
        .comm_rank = 0,
        .peer = -1,
        .bytes = bytes,
        .seq = seq,
        .ts = ts,
        .dur = 0.01,
    };

    (void)snprintf(comm, sizeof comm, "0x%lld", (long long)rank / 4);
    x.comm = span(comm);
    return ep_calls_take(c, &x, NULL);
}

/* Iterations of 1 s, in the order of time; some ranks miss some of them. */
static int run(struct ep_calls *c, int from, int to, bool holes)
{
    int bad = 0;

    for (int i = from; i < to; i++)
        for (int k = 0; k < 6; k++)
            for (int r = 0; r < RANKS; r++) {
                double ts = 1e9 + i + k * 0.1 + r * 0.001;

                /* every third rank loses a call in 20 iterations */
                if (holes && r % 3 == 0 && k == 2 && (i + r) % 20 == 0)
                    continue;
                bad += call(c, r, k == 5 ? "all_reduce" : "all_gather",
                            k == 5 ? 64 : 4096 + (k == 3), ts, i * 6 + k) < 0;
            }
    return bad;
}

static void ranks_fit(bool holes)
{
    struct seen *x = new_seen();
    struct ep_calls *c = ep_calls_new(on_step, x);
    struct ep_calls_summary sum;
    size_t ends = 0;

    ok(run(c, 0, 200, holes) == 0);
    ok(x->n > 0); /* before the end of the input */
    ep_calls_finish(c);
    ep_calls_sum(c, &sum);
    for (int r = 0; r < RANKS; r++)
        ends += x->last[r] < 194 || x->last[r] > 199 || x->first[r] > 3;
    ok(ends == 0);
    ok(x->backwards == 0 && x->wrong == 0);
    ok(holes == (x->gaps > 0));
    ok(fabs(x->least - 1) < 1e-6 && fabs(x->most - 1) < 1e-6);
    ok(holes ? x->n > 2900 : x->n >= (size_t)RANKS * 198);
    ok(sum.iterations == x->n && sum.ranks == RANKS && sum.learned == RANKS);
    /* four groups, one pattern */
    ok(sum.patterns == 1 && sum.least == 6 && sum.most == 6);
    ok(sum.unranked == 0 && sum.by_gaps == 0 && sum.each == 0);
    ep_calls_free(c);
    free(x);
}

static void muted(void)
{
    struct seen *x = new_seen();
    struct ep_calls *c = ep_calls_new(on_step, x);
    size_t n;

    ok(run(c, 0, 100, false) == 0);
    n = x->n;
    ok(n > 0);
    ok(ep_calls_mute(c, span("lm"), NULL) == 0);
    ok(run(c, 100, 200, false) == 0);
    ep_calls_finish(c);
    ok(x->n == n);
    ep_calls_free(c);
    free(x);
}

static void odd_ranks(void)
{
    struct seen *x = new_seen();
    struct ep_calls *c = ep_calls_new(on_step, x);
    struct ep_calls_summary sum;

    ok(call(c, -1, "all_reduce", 1, 1, -1) == 0);
    ok(call(c, EP_CALLS_RANKS, "all_reduce", 1, 1, -1) == 0);
    ok(call(c, EP_CALLS_RANKS - 1, "all_reduce", 1, 1, -1) == 0);
    ep_calls_finish(c);
    ep_calls_sum(c, &sum);
    ok(sum.calls == 3 && sum.unranked == 2 && sum.ranks == 1);
    ok(sum.iterations == 0 && sum.learned == 0 && x->n == 0);
    ep_calls_free(c);
    free(x);
}

static void many_jobs(void)
{
    struct ep_calls *c = ep_calls_new(on_step, NULL);
    struct ep_error err;
    char name[16];
    int rc = 0;

    for (int i = 0; i < 65536; i++) {
        (void)snprintf(name, sizeof name, "j%d", i);
        rc += ep_calls_mute(c, span(name), &err);
    }
    ok(rc == 0);
    ok(ep_calls_mute(c, span("j0"), &err) == 0);
    ok(ep_calls_mute(c, span("more"), &err) == EP_ELIMIT);
    ep_calls_free(c);
}

int main(void)
{
    ranks_fit(false);
    ranks_fit(true);
    muted();
    odd_ranks();
    many_jobs();
    ep_calls_free(NULL);
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_explain.c - the figures behind a finding: four ranks, of which one gets
   twice as slow; what is wanted follows from the samples alone. */
#include "config.h"

#include "detect/explain.h"
#include "tap.h"

#include <string.h>

enum { RANKS = 4, STEPS = 60, SLOW = 40, WINDOW = 16 };

static int seen;

struct ctx {
    struct ep_watch *w;
};

static double busy_of(int rank, int step)
{
    double even = 1 + 0.004 * ((step * 7 + rank) % 5 - 2);

    return 0.1 * even * (rank == 1 && step >= SLOW ? 2 : 1);
}

static void on_finding(void *ctx, const struct ep_finding *f)
{
    const struct ctx *c = ctx;
    struct ep_explain x;

    if (f->scope != EP_SCOPE_RANK)
        return;
    seen++;
    ok(ep_watch_explain(c->w, &x));
    ok(f->rank == 1 && f->step == SLOW);
    ok(strcmp(x.what, "busy") == 0);
    ok(x.n == WINDOW && x.nbefore + x.nafter == WINDOW && x.nafter == 3);
    for (size_t i = 0; i < x.n; i++) {
        int step = SLOW + 3 - WINDOW + (int)i;

        ok(x.sample[i].step == step && x.sample[i].value == busy_of(1, step) &&
           x.sample[i].since == (step >= SLOW));
    }
    near(x.before, 0.1, 0.0005);
    near(x.after, 0.2, 0.001);
    near(x.healthy, 0.1, 0.0005);
    near(x.errors,
         log(x.after / x.before) /
             (1.2533 * x.noise * sqrt(1.0 / 3 + 1.0 / (WINDOW - 3))),
         1e-9);
    ok(x.errors > x.z && x.z == 5 && x.confirm == 3 && x.min_change == 0.10);
    ok(x.peers == RANKS - 1 && x.nslowest == RANKS - 1 && x.alike == 0);
    near(x.peers_median, 0.1, 0.0005);
    near(x.factor, 2, 0.02);
    near(x.alike_factor, 1, 0.01);
    ok(x.slowest[0].value >= x.slowest[1].value &&
       x.slowest[1].value >= x.slowest[2].value);
    for (int i = 0; i < RANKS - 1; i++)
        ok(strcmp(x.slowest[i].id, "rank=1") != 0);
    near(x.job_level, 0.5, 1e-9);
    near(x.job_healthy, 0.5, 1e-9);
}

int main(void)
{
    struct ctx c;
    struct ep_explain x;
    struct ep_error err;

    c.w = ep_watch_new(NULL, on_finding, &c, &err);
    for (int step = 0; step < STEPS; step++)
        for (int rank = 0; rank < RANKS; rank++) {
            struct ep_watch_step s = {.rank = rank,
                                      .ts = 1000 + step,
                                      .step = step,
                                      .dur = 0.5,
                                      .busy = busy_of(rank, step),
                                      .mb = -1};

            if (ep_watch_step(c.w, &s, &err) < 0)
                ok(!"refused");
        }
    ep_watch_finish(c.w);
    ok(seen == 1);
    ok(!ep_watch_explain(c.w, &x)); /* nothing is being reported */
    ep_watch_free(c.w);
    return tap_done();
}

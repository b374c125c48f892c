/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_period.c - any bytes as the calls of a few ranks: patterns that repeat,
 * drops, odd times, restarts. What is found has to make sense, and iterations
 * that follow each other have to fit.
 */
#include "config.h"

#include "detect/calls.h"
#include "detect/period.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_CALLS 200000 /* an input is to take milliseconds */

struct seen {
    double end; /* of the iteration before; NaN if not known */
    int64_t step;
};

static void require(int condition)
{
    if (!condition)
        abort();
}

static void on_iteration(void *ctx, const struct ep_iteration *it)
{
    struct seen *s = ctx;

    require(it->calls > 0 && it->calls <= EP_PERIOD_MAX && it->pattern > 0);
    require(isnan(it->dur) || (it->dur > 0 && isfinite(it->dur)));
    require(isnan(it->busy) || (it->busy >= 0 && it->busy <= it->dur));
    if (it->next && !isnan(s->end) && !isnan(it->ts))
        require(fabs(it->ts - s->end) <= 1e-9 * fabs(it->ts) + 1e-300);
    s->end = it->ts + it->dur;
}

static void on_step(void *ctx, const struct ep_calls_step *x)
{
    int64_t *last = ctx;

    require(x->rank >= 0 && x->rank < 4);
    require(x->step > last[x->rank]);
    require(x->dur > 0 && isfinite(x->ts) && !(x->busy <= 0));
    last[x->rank] = x->step;
}

static const double odd[8] = {
    0, (double)NAN, (double)INFINITY, -5, 1e300, 1e-300, 1e9, 0.5};

/* A call goes to a machine and to one rank of a job. */
static void call(struct ep_period *p, struct seen *seen, struct ep_calls *calls,
                 unsigned symbol, double ts, double dur, int64_t seq)
{
    static const char names[] = "abcdefghijklmnop";
    struct ep_period_call c = {symbol * UINT64_C(0x9e3779b97f4a7c15), ts, dur,
                               seq};
    struct ep_call x = {
        .op = {names + symbol % 16, 1},
        .comm = {names + symbol / 16 % 16, 1},
        .rank = seq % 4,
        .pid = -1,
        .nranks = -1,
        .comm_rank = -1,
        .peer = -1,
        .bytes = -1,
        .seq = seq,
        .ts = ts,
        .dur = dur,
    };

    ep_period_push(p, &c, on_iteration, seen);
    require(ep_calls_take(calls, &x, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t last[4] = {-1, -1, -1, -1};
    struct seen seen = {(double)NAN, -1};
    struct ep_period_table *table = ep_period_table_new();
    struct ep_period *p = ep_period_new(table);
    struct ep_calls *calls = ep_calls_new(on_step, last);
    struct ep_period_state state;
    double ts = 1000;
    int64_t seq = 0;
    unsigned n = 0;

    for (size_t i = 0; i + 3 < size && n < MAX_CALLS;) {
        unsigned how = data[i], len = 1 + data[i + 1] % 12;
        unsigned times = data[i + 2];

        i += 3;
        if (len > size - i)
            len = (unsigned)(size - i);
        for (unsigned k = 0; k < times * len; k++, n++) {
            unsigned b = data[i + k % len];

            ts += 0.001 * (1 + b) * (how & 16 && k % len == 0 ? 50 : 1);
            if (how & 1 && k % 61 == b % 61)
                continue; /* dropped */
            call(p, &seen, calls, how & 16 ? 1 : b % 32,
                 how & 2 && k % 53 == 7 ? odd[b % 8] : ts,
                 how & 4 && k % 53 == 9 ? odd[b % 8] : 0.0005,
                 how & 8 ? -1 : seq++);
        }
        if (how & 32) {
            ep_period_break(p);
            seen.end = (double)NAN;
        }
        i += len;
    }
    ep_period_finish(p, on_iteration, &seen);
    ep_calls_finish(calls);
    ep_period_state(p, &state);
    require((state.calls == 0) == (state.basis == EP_PERIOD_NONE));
    ep_period_free(p);
    require(ep_period_table_count(table) == 0);
    ep_period_table_free(table);
    ep_calls_free(calls);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* signs.c - see signs.h. */
#include "config.h"

#include "feed/signs.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

void ep_signs_init(struct ep_signs *s, struct ep_watch *watch)
{
    *s = (struct ep_signs){.watch = watch, .latest = (double)-INFINITY};
}

static bool is_transfer(const struct ep_record *r)
{
    struct ep_span op = ep_record_str(r, EP_K_OP);

    return ep_record_has(r, EP_K_PEER) || ep_span_eq(op, "send") ||
           ep_span_eq(op, "recv");
}

/*
 * Two gauges tell how far a rank is in a communicator: that of Flight Recorder
 * the state of a call (0 scheduled, 1 started, 2 completed), those of RAS the
 * calls of each operation, which are counted apart.
 */
static void take_gauge(const struct ep_record *r, struct ep_sign *x,
                       char name[256])
{
    static const char counts[] = "nccl_collectives_";
    struct ep_span gauge = ep_record_str(r, EP_K_NAME);
    double value = ep_record_num(r, EP_K_VALUE);
    size_t n = strlen(counts);

    if (!x->comm.len || x->rank < 0)
        return;
    if (ep_span_eq(gauge, "fr_state")) {
        x->kind = is_transfer(r) ? EP_SIGN_P2P
                  : value < 2    ? EP_SIGN_ENTERED
                                 : EP_SIGN_CALL;
        return;
    }
    if (gauge.len <= n || memcmp(gauge.ptr, counts, n) != 0 || !(value >= 1) ||
        value > 9e15 || x->comm.len + 1 + gauge.len - n > 256)
        return;
    memcpy(name, x->comm.ptr, x->comm.len);
    name[x->comm.len] = '/';
    memcpy(name + x->comm.len + 1, gauge.ptr + n, gauge.len - n);
    x->comm = (struct ep_span){name, x->comm.len + 1 + gauge.len - n};
    x->seq = (int64_t)value;
    x->kind = EP_SIGN_CALL;
}

/* The first record after a wait: how late is it? */
static void measure_lag(struct ep_signs *s, double end)
{
    double lag = ep_clock_now(&ep_clock_wall) - end;

    if (s->waits >= 2 && isfinite(s->latest) && lag < EP_SIGNS_NEAR_S)
        s->lag[s->nlags++ % EP_SIGNS_LAGS] = fmax(0, lag);
    s->waits = 0;
}

int ep_signs_take(struct ep_signs *s, const struct ep_record *r,
                  struct ep_error *err)
{
    struct ep_sign x = {
        .kind = EP_SIGN_OTHER,
        .job = ep_record_str(r, EP_K_JOB),
        .host = ep_record_str(r, EP_K_HOST),
        .worker = ep_record_str(r, EP_K_WORKER),
        .comm = ep_record_str(r, EP_K_COMM),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .pid = -1,
        .step = -1,
        .seq = ep_record_int(r, EP_K_SEQ, -1),
        .nranks = ep_record_int(r, EP_K_NRANKS, -1),
        .place = {.dp = ep_record_int(r, EP_K_DP, -1),
                  .pp = ep_record_int(r, EP_K_PP, -1),
                  .tp = ep_record_int(r, EP_K_TP, -1)},
        .ts = ep_record_num(r, EP_K_TS),
    };
    double end = x.ts + ep_record_num(r, EP_K_DUR);
    char name[256];

    if (!s->watch)
        return 0;
    x.place.known = x.place.dp >= 0 || x.place.pp >= 0 || x.place.tp >= 0;
    if (isfinite(end))
        x.ts = end;
    switch (r->type) {
    case EP_STEP:
        x.kind = EP_SIGN_STEP;
        x.step = ep_record_int(r, EP_K_STEP, -1);
        break;
    case EP_COLL:
    case EP_P2P:
        x.kind = r->type == EP_P2P ? EP_SIGN_P2P : EP_SIGN_CALL;
        break;
    case EP_GAUGE:
        take_gauge(r, &x, name);
        break;
    case EP_LAYOUT:
    case EP_EVENT:
    case EP_WHATIF:
    case EP_PLAN:
        return 0; /* of programs that look at the job */
    default:
        break;
    }
    if (x.kind != EP_SIGN_OTHER)
        x.pid = ep_record_int(r, EP_K_PID, -1);
    if (s->waits)
        measure_lag(s, x.ts);
    if (x.ts > s->latest)
        s->latest = x.ts;
    return ep_watch_sign(s->watch, &x, err);
}

void ep_signs_idle(void *signs)
{
    struct ep_signs *s = signs;
    double now = ep_clock_now(&ep_clock_wall), lag = 0;

    if (!s->waits++) {
        s->live = fabs(now - s->latest) < EP_SIGNS_NEAR_S;
        return;
    }
    for (unsigned i = 0; i < s->nlags && i < EP_SIGNS_LAGS; i++)
        lag = fmax(lag, s->lag[i]);
    if (s->live && s->watch)
        ep_watch_tick(s->watch, now - lag);
}

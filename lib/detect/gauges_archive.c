/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauges_archive.c - the readings of sensors in bytes; see base/archive.h.
 * Devices come first, by their numbers, then the names that they have.
 */
#include "config.h"

#include "detect/gauges_impl.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define NAME_BYTES (1 << 20)

static float single(struct ep_archive *a, float v)
{
    uint32_t u;

    memcpy(&u, &v, sizeof u);
    u = (uint32_t)ep_archive_u64(a, u, UINT32_MAX);
    memcpy(&v, &u, sizeof v);
    ep_archive_require(a, isfinite(v), "a reading is not finite");
    return v;
}

/* A time, or none yet. */
static double when(struct ep_archive *a, double ts)
{
    if (ep_archive_bool(a, ts == (double)-INFINITY))
        return (double)-INFINITY;
    return ep_archive_finite(a, ts);
}

/* Room for runs is twice as much each time. */
static void runs(struct ep_archive *a, struct trace *t)
{
    t->n = (unsigned char)ep_archive_u64(a, t->n, EP_GAUGES_RUNS);
    if (!a->saving && t->n) {
        for (t->cap = 1; t->cap < t->n;)
            t->cap = (unsigned char)(2 * t->cap);
        t->v = ep_calloc(t->cap, sizeof *t->v);
    }
    for (int i = 0; i < t->n && ep_archive_ok(a); i++) {
        struct run *r = &t->v[i];

        r->n = (uint32_t)ep_archive_u64(a, r->n, UINT32_MAX);
        r->from = ep_archive_finite(a, r->from);
        if (ep_archive_bool(a, r->to != r->from))
            r->to = ep_archive_finite(a, r->to);
        else
            r->to = r->from;
        r->value = single(a, r->value);
        ep_archive_require(a, r->n > 0, "a level has no readings");
    }
}

static void trace(struct ep_archive *a, struct trace *t)
{
    runs(a, t);
    if (t->how == EP_SENSOR_COUNT || t->how == EP_SENSOR_RATE) {
        t->total = ep_archive_finite(a, t->total);
        t->grown = ep_archive_finite(a, t->grown);
        t->ts = when(a, t->ts);
        t->last_ts = when(a, t->last_ts);
    }
    if (!a->saving)
        t->old_ts = t->n ? t->v[t->n - 1].to : (double)-INFINITY;
}

static void device(struct ep_archive *a, struct ep_gauge_device *d)
{
    uint64_t n = 0;
    int at = 0;

    for (int k = 0; k < EP_SENSORS; k++)
        n += d->trace[k] != NULL;
    n = ep_archive_u64(a, n, EP_SENSORS);
    d->gpus = ep_archive_i64(a, d->gpus, 0, EP_GAUGES_MAX_DEVICES);
    for (uint64_t i = 0; i < n && ep_archive_ok(a); i++, at++) {
        uint64_t how;

        while (a->saving && !d->trace[at])
            at++;
        at = (int)ep_archive_u64(a, (uint64_t)at, EP_SENSORS - 1);
        how = ep_archive_u64(a, a->saving ? d->trace[at]->how : 0,
                             EP_SENSOR_RATE);
        ep_archive_require(a, a->saving || !d->trace[at],
                           "a sensor is there twice");
        if (ep_archive_ok(a))
            trace(a, ep_gauges_trace(d, (enum ep_sensor)at,
                                     (enum ep_sensor_how)how));
    }
}

/* The GPUs of ranks: one more than their numbers, 0 is none. */
static void users(struct ep_archive *a, struct ep_gauges *g)
{
    for (size_t i = 0; i < g->ndevices && ep_archive_ok(a); i++) {
        struct ep_gauge_device *d = g->devices[i];
        size_t at = d->user ? d->user->number + 1 : 0;

        at = (size_t)ep_archive_u64(a, at, g->ndevices);
        d->user = at ? g->devices[at - 1] : NULL;
    }
}

static void names(struct ep_archive *a, struct ep_gauges *g)
{
    size_t n =
        ep_archive_size(a, ep_intern_count(g->names), EP_GAUGES_MAX_DEVICES, 2);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span name = {"", 0};
        size_t at = a->saving ? g->by_name[i]->number : 0;

        if (a->saving)
            name = ep_intern_span(g->names, i);
        name = ep_archive_span(a, name, NAME_BYTES);
        at = (size_t)ep_archive_u64(a, at, EP_GAUGES_MAX_DEVICES);
        ep_archive_require(a, at < g->ndevices, "a name is of no device");
        if (a->saving || !ep_archive_ok(a))
            continue;
        ep_archive_require(a, ep_intern_add(g->names, name, i + 1) == (long)i,
                           "two devices have one name");
        if (!ep_archive_ok(a))
            return;
        g->by_name = ep_grow(g->by_name, &g->names_cap, i + 1, sizeof(void *));
        g->by_name[i] = g->devices[at];
    }
}

void ep_gauges_archive(struct ep_archive *a, struct ep_gauges *g)
{
    size_t n = ep_archive_size(a, g->ndevices, EP_GAUGES_MAX_DEVICES, 2);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++)
        device(a, a->saving ? g->devices[i] : ep_gauges_add(g));
    users(a, g);
    names(a, g);
    ep_growth_archive(a, &g->growth);
}

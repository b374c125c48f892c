/* SPDX-License-Identifier: Apache-2.0 */
/* gauges.c - see gauges.h. */
#include "config.h"

#include "detect/gauges_impl.h"

#include "base/mem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the runs these are never merged. */
#define RECENT 6

struct ep_gauges *ep_gauges_new(void)
{
    struct ep_gauges *g = ep_calloc(1, sizeof *g);

    g->names = ep_intern_new();
    ep_buf_init(&g->key);
    return g;
}

void ep_gauges_free(struct ep_gauges *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->ndevices; i++) {
        for (int k = 0; k < EP_SENSORS; k++)
            if (g->devices[i]->trace[k]) {
                free(g->devices[i]->trace[k]->v);
                free(g->devices[i]->trace[k]);
            }
        free(g->devices[i]);
    }
    ep_intern_free(g->names);
    ep_buf_free(&g->key);
    free(g->by_name);
    free(g->devices);
    ep_growth_free(&g->growth);
    free(g);
}

/* ==== Devices ==== */

/*
 * A host by its first name, as exporters and launchers differ in the rest; an
 * address in full.
 */
static struct ep_span short_host(struct ep_span host)
{
    const char *dot = host.len ? memchr(host.ptr, '.', host.len) : NULL;
    bool number = true;

    for (size_t i = 0; i < host.len; i++)
        number = number && ((host.ptr[i] >= '0' && host.ptr[i] <= '9') ||
                            host.ptr[i] == '.');
    if (dot && dot > host.ptr && !number)
        host.len = (size_t)(dot - host.ptr);
    return host;
}

static void name_rank(struct ep_gauges *g, size_t job, int64_t rank)
{
    ep_buf_reset(&g->key);
    ep_buf_addf(&g->key, "r%zu/%lld", job, (long long)rank);
}

static void name_index(struct ep_gauges *g, struct ep_span host, int64_t index)
{
    host = short_host(host);
    ep_buf_reset(&g->key);
    ep_buf_addf(&g->key, "i%lld/", (long long)index);
    ep_buf_add(&g->key, host.len ? host.ptr : "", host.len);
}

static void name_text(struct ep_gauges *g, char kind, struct ep_span text)
{
    ep_buf_reset(&g->key);
    ep_buf_addc(&g->key, kind);
    ep_buf_add(&g->key, text.ptr, text.len);
}

struct ep_gauge_device *ep_gauges_add(struct ep_gauges *g)
{
    struct ep_gauge_device *d = ep_calloc(1, sizeof *d);

    d->number = g->ndevices;
    g->devices =
        ep_grow(g->devices, &g->devices_cap, g->ndevices + 1, sizeof(void *));
    g->devices[g->ndevices++] = d;
    return d;
}

/* The device with the name in g->key, or NULL. */
static struct ep_gauge_device *known(struct ep_gauges *g)
{
    long i =
        ep_intern_add(g->names, (struct ep_span){g->key.ptr, g->key.len}, 0);

    return i < 0 ? NULL : g->by_name[i];
}

/* Likewise; a new name becomes one of d, or (NULL) of a new device. */
static struct ep_gauge_device *
named(struct ep_gauges *g, struct ep_gauge_device *d, struct ep_error *err)
{
    size_t had = ep_intern_count(g->names);
    long i = ep_intern_add(g->names, (struct ep_span){g->key.ptr, g->key.len},
                           EP_GAUGES_MAX_DEVICES);

    if (i < 0) {
        (void)ep_error_set(err, EP_ELIMIT, "gauges of more than %d devices",
                           EP_GAUGES_MAX_DEVICES);
        return NULL;
    }
    if ((size_t)i < had)
        return g->by_name[i];
    if (!d)
        d = ep_gauges_add(g);
    g->by_name = ep_grow(g->by_name, &g->names_cap, had + 1, sizeof(void *));
    g->by_name[i] = d;
    return d;
}

/* The GPU, by its own name and by its index; NULL if it is not told. */
static int gpu_of(struct ep_gauges *g, const struct ep_gauge_who *who,
                  struct ep_gauge_device **out, struct ep_error *err)
{
    struct ep_gauge_device *d = NULL, *host;
    size_t had;

    *out = NULL;
    if (who->gpu.len) {
        name_text(g, 'u', who->gpu);
        d = named(g, NULL, err);
        if (!d)
            return EP_ELIMIT;
    }
    if (who->gpu_index >= 0) {
        name_index(g, who->host, who->gpu_index);
        had = ep_intern_count(g->names);
        d = named(g, d, err);
        if (!d)
            return EP_ELIMIT;
        if (ep_intern_count(g->names) > had) {
            name_text(g, 'h', short_host(who->host));
            host = named(g, NULL, err);
            if (!host)
                return EP_ELIMIT;
            host->gpus++;
        }
        if (who->gpu.len) { /* what it is called itself counts */
            name_text(g, 'u', who->gpu);
            d = known(g);
        }
    }
    *out = d;
    return 0;
}

static bool same_text(struct ep_span s, const char *text, size_t len)
{
    return s.len == len && (!len || memcmp(s.ptr, text, len) == 0);
}

static bool is_last(const struct last *l, const struct ep_gauge_who *who)
{
    return l->device && l->job == who->job && l->rank == who->rank &&
           l->gpu_index == who->gpu_index &&
           same_text(who->host, l->host, l->host_len) &&
           same_text(who->gpu, l->gpu, l->gpu_len);
}

static void remember(struct last *l, const struct ep_gauge_who *who,
                     struct ep_gauge_device *d)
{
    l->device = NULL;
    if (who->host.len > sizeof l->host || who->gpu.len > sizeof l->gpu)
        return;
    *l = (struct last){
        .job = who->job,
        .rank = who->rank,
        .gpu_index = who->gpu_index,
        .host_len = who->host.len,
        .gpu_len = who->gpu.len,
        .device = d,
    };
    if (who->host.len)
        memcpy(l->host, who->host.ptr, who->host.len);
    if (who->gpu.len)
        memcpy(l->gpu, who->gpu.ptr, who->gpu.len);
}

static int find_device(struct ep_gauges *g, const struct ep_gauge_who *who,
                       struct ep_gauge_device **out, struct ep_error *err)
{
    int rc = gpu_of(g, who, out, err);

    if (rc < 0)
        return rc;
    if (who->rank >= 0) {
        struct ep_gauge_device *gpu = *out;

        name_rank(g, who->job, who->rank);
        *out = named(g, NULL, err);
        if (!*out)
            return EP_ELIMIT;
        if (gpu)
            (*out)->user = gpu;
    } else if (!*out && who->host.len) {
        name_text(g, 'h', short_host(who->host));
        *out = named(g, NULL, err);
        if (!*out)
            return EP_ELIMIT;
    }
    return 0;
}

static int device_of(struct ep_gauges *g, const struct ep_gauge_who *who,
                     struct ep_gauge_device **out, struct ep_error *err)
{
    int rc;

    *out = g->last.device;
    if (is_last(&g->last, who))
        return 0;
    rc = find_device(g, who, out, err);
    if (rc == 0)
        remember(&g->last, who, *out);
    return rc;
}

int ep_gauges_uses(struct ep_gauges *g, const struct ep_gauge_who *who,
                   struct ep_error *err)
{
    struct ep_gauge_device *d;

    if (who->rank < 0 || (!who->gpu.len && who->gpu_index < 0))
        return 0;
    return device_of(g, who, &d, err);
}

bool ep_gauges_any(const struct ep_gauges *g)
{
    return g->ndevices > 0;
}

const struct ep_gauge_device *ep_gauges_rank(struct ep_gauges *g, size_t job,
                                             int64_t rank)
{
    name_rank(g, job, rank);
    return known(g);
}

const struct ep_gauge_device *ep_gauges_gpu(struct ep_gauges *g,
                                            struct ep_span host, int64_t index)
{
    name_index(g, host, index);
    return known(g);
}

const struct ep_gauge_device *ep_gauges_host(struct ep_gauges *g,
                                             struct ep_span host)
{
    name_text(g, 'h', short_host(host));
    return known(g);
}

const struct ep_gauge_device *
ep_gauge_device_gpu(const struct ep_gauge_device *rank)
{
    return rank ? rank->user : NULL;
}

int64_t ep_gauges_gpus_of(struct ep_gauges *g, struct ep_span host)
{
    const struct ep_gauge_device *d = ep_gauges_host(g, host);

    return d ? d->gpus : 0;
}

/* ==== Readings ==== */

/* Merge the older runs in pairs; of a count the later says what was reached. */
static void thin(struct trace *t)
{
    int n = 0, old = t->n - RECENT;

    for (int i = 0; t->v && i < t->n; i++) {
        struct run *a = &t->v[n++];

        *a = t->v[i];
        if (i + 1 < old) {
            const struct run *b = &t->v[++i];
            double na = a->n, nb = b->n;

            if (t->how == EP_SENSOR_COUNT) {
                *a = *b;
                continue;
            }
            a->value = (float)((a->value * na + b->value * nb) / (na + nb));
            a->n = na + nb < (double)UINT32_MAX ? a->n + b->n : UINT32_MAX;
            a->to = b->to;
        }
    }
    t->n = (unsigned char)n;
}

/* Are they one reading, as far as the run tells? */
static bool is_alike(const struct run *r, const struct ep_sensor_kind *k,
                     float v)
{
    double band = fmax(k->band, k->relative * fabs((double)v));

    return fabs((double)v - r->value) <= band;
}

static float narrow(double value)
{
    return (float)fmin(fmax(value, -FLT_MAX), FLT_MAX);
}

static void push(struct trace *t, const struct ep_sensor_kind *k, double ts,
                 double value)
{
    struct run *last = t->n ? &t->v[t->n - 1] : NULL;
    float v = narrow(value);

    if (last && is_alike(last, k, v)) {
        last->to = ts;
        /* how often a count was read is nothing: it may be read again */
        last->n += last->n < UINT32_MAX && t->how != EP_SENSOR_COUNT;
        return;
    }
    if (t->n == EP_GAUGES_RUNS)
        thin(t);
    if (!t->v || t->n == t->cap) { /* most sensors stay as they are: one run */
        t->cap = (unsigned char)(t->v ? 2 * t->cap : 1);
        t->v = ep_realloc(t->v, t->cap, sizeof *t->v);
    }
    t->v[t->n++] = (struct run){ts, ts, v, 1};
}

/* What grew at the ts before this one becomes a reading. */
static void settle(struct trace *t, const struct ep_sensor_kind *k)
{
    if (t->ts > t->last_ts && isfinite(t->last_ts))
        push(t, k, t->ts, t->grown / (t->ts - t->last_ts));
    t->last_ts = t->ts;
    t->grown = 0;
}

struct trace *ep_gauges_trace(struct ep_gauge_device *d, enum ep_sensor sensor,
                              enum ep_sensor_how how)
{
    struct trace *t = d->trace[sensor];

    if (!t) {
        t = d->trace[sensor] = ep_calloc(1, sizeof *t);
        t->how = (unsigned char)how;
        t->ts = t->last_ts = t->old_ts = (double)-INFINITY;
    }
    return t;
}

/*
 * A reading of the time at which the state was saved: was it taken then? As far
 * as runs tell: one like it was.
 */
static bool is_old(const struct trace *t, const struct ep_sensor_kind *k,
                   double ts, double value)
{
    for (int i = 0; ts == t->old_ts && i < t->n; i++)
        if (t->v[i].to == ts && is_alike(&t->v[i], k, narrow(value)))
            return true;
    return false;
}

static void take_level(struct ep_gauge_device *d, enum ep_sensor sensor,
                       enum ep_sensor_how how, double ts, double value)
{
    struct trace *t = ep_gauges_trace(d, sensor, how);

    if (t->how != how || (t->n && ts < t->v[t->n - 1].to))
        return;
    if (!is_old(t, &ep_sensor_kinds[sensor], ts, value))
        push(t, &ep_sensor_kinds[sensor], ts, value);
}

static void take_growth(struct ep_gauges *g, struct ep_gauge_device *d,
                        const struct ep_sensor_name *row, struct ep_span name,
                        double ts, double value)
{
    struct trace *t = ep_gauges_trace(d, row->sensor, row->how);
    const struct ep_sensor_kind *k = &ep_sensor_kinds[row->sensor];
    double grown;

    /* another tool counts the same in another way: the first counts */
    if (t->how != row->how || ts < t->ts)
        return;
    grown = ep_growth_since(&g->growth, d->number, name, value);
    if (row->how == EP_SENSOR_COUNT) {
        t->ts = ts;
        t->total += isnan(grown) ? 0 : grown;
        push(t, k, ts, t->total);
        return;
    }
    if (ts > t->ts) {
        settle(t, k);
        t->ts = ts;
    }
    t->grown += isnan(grown) ? 0 : grown;
}

int ep_gauges_take(struct ep_gauges *g, const struct ep_gauge_who *who,
                   struct ep_span name, double ts, double value,
                   struct ep_error *err)
{
    const struct ep_sensor_name *row = ep_sensor_of(name);
    struct ep_gauge_device *d;
    int rc;

    if (!row)
        return 0;
    if (!isfinite(ts) || !isfinite(value) ||
        (row->sensor == EP_SENSOR_CPU_SHARE && value < 0))
        return ep_error_set(err, EP_EDOM, "%s of %g", row->name, value);
    rc = device_of(g, who, &d, err);
    if (rc < 0 || !d)
        return rc;
    switch (row->how) {
    case EP_SENSOR_LEVEL:
        take_level(d, row->sensor, row->how, ts, value);
        break;
    case EP_SENSOR_FLAG:
        take_level(d, row->sensor, row->how, ts, value > 0);
        break;
    case EP_SENSOR_REASONS:
        for (int i = 0; i < EP_SENSOR_FLAGS && value >= 0 && value < 1e15; i++)
            take_level(d, row->sensor + (enum ep_sensor)i, EP_SENSOR_FLAG, ts,
                       ((uint64_t)value & ep_sensor_reasons[i]) != 0);
        break;
    default:
        take_growth(g, d, row, name, ts, value);
        break;
    }
    return 0;
}

/* ==== Around a change ==== */

struct weighted {
    double value, weight;
};

static int by_value(const void *p, const void *q)
{
    const struct weighted *a = p, *b = q;

    return (a->value > b->value) - (a->value < b->value);
}

/* Readings of a run in [from, to), if they were evenly spread. */
static double part(const struct run *r, double from, double to)
{
    double a = fmax(r->from, from), b = fmin(r->to, to);

    if (r->to < from || r->from >= to)
        return 0;
    if (!(r->to > r->from))
        return r->n;
    return fmax(1, r->n * (b - a) / (r->to - r->from));
}

/* Of flags the mean, else the median. */
static double centre(const struct trace *t, double from, double to)
{
    struct weighted v[EP_GAUGES_RUNS + 1];
    double sum = 0, mean = 0, half = 0;
    int n = 0;

    for (int i = 0; i < t->n; i++) {
        double w = part(&t->v[i], from, to);

        if (!(w > 0))
            continue;
        v[n++] = (struct weighted){t->v[i].value, w};
        sum += w;
        mean += w * t->v[i].value;
    }
    if (!n)
        return (double)NAN;
    if (t->how == EP_SENSOR_FLAG)
        return mean / sum;
    qsort(v, (size_t)n, sizeof *v, by_value);
    for (int i = 0; i < n; i++) {
        half += v[i].weight;
        if (2 * half >= sum)
            return v[i].value;
    }
    return v[n - 1].value;
}

/* What a count had reached at a time. */
static double reached(const struct trace *t, double ts)
{
    double value = 0;

    for (int i = 0; i < t->n && t->v[i].from < ts; i++)
        value = t->v[i].value;
    return value;
}

bool ep_gauge_device_stat(const struct ep_gauge_device *d,
                          enum ep_sensor sensor, double healthy, double since,
                          struct ep_gauge_stat *out)
{
    const struct trace *t = d ? d->trace[sensor] : NULL;
    struct trace now;
    struct run runs[EP_GAUGES_RUNS + 1];

    *out = (struct ep_gauge_stat){(double)NAN, (double)NAN};
    if (!t)
        return false;
    now = *t;
    if (t->how == EP_SENSOR_RATE && t->ts > t->last_ts &&
        isfinite(t->last_ts)) {
        if (t->n)
            memcpy(runs, t->v, t->n * sizeof *runs);
        runs[now.n++] = (struct run){
            t->ts, t->ts, (float)(t->grown / (t->ts - t->last_ts)), 1};
        now.v = runs;
    }
    if (!now.n)
        return true;
    if (t->how == EP_SENSOR_COUNT) {
        if (now.v[0].from < healthy)
            out->before = reached(&now, healthy);
        if (now.v[now.n - 1].to >= since)
            out->since = now.v[now.n - 1].value - reached(&now, since);
        return true;
    }
    out->before = centre(&now, (double)-INFINITY, healthy);
    out->since = centre(&now, since, (double)INFINITY);
    return true;
}

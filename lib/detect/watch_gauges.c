/* SPDX-License-Identifier: Apache-2.0 */
/* watch_gauges.c - the sensors of ranks; see watch.h and gauges.h. */
#include "config.h"

#include "detect/watch_impl.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Who a gauge is of; the job matters for a rank only. */
static int who_of(struct ep_watch *w, const struct ep_watch_gauge *x,
                  struct ep_gauge_who *who, struct ep_error *err)
{
    *who = (struct ep_gauge_who){0, x->rank, x->host, x->gpu, x->gpu_index};
    if (x->rank >= 0) {
        struct job *job = ep_watch_job(w, x->job, err);

        if (!job)
            return EP_ELIMIT;
        who->job = job->number;
    }
    return 0;
}

int ep_watch_gauge(struct ep_watch *w, const struct ep_watch_gauge *x,
                   struct ep_error *err)
{
    struct ep_gauge_who who;
    int rc;

    if (!ep_sensor_of(x->name))
        return 0;
    rc = who_of(w, x, &who, err);
    return rc < 0
               ? rc
               : ep_gauges_take(w->gauges, &who, x->name, x->ts, x->value, err);
}

int ep_watch_device(struct ep_watch *w, const struct ep_watch_gauge *x,
                    struct ep_error *err)
{
    struct ep_gauge_who who;
    int rc;

    if (x->rank < 0 || (!x->gpu.len && x->gpu_index < 0))
        return 0;
    rc = who_of(w, x, &who, err);
    return rc < 0 ? rc : ep_gauges_uses(w->gauges, &who, err);
}

/* ==== Which devices are a rank's ==== */

static struct ep_span host_of(const struct series *s)
{
    return (struct ep_span){s->host ? s->host : "",
                            s->host ? strlen(s->host) : 0};
}

static int by_host(const void *p, const void *q)
{
    const struct series *a = *(struct series *const *)p;
    const struct series *b = *(struct series *const *)q;
    int c = strcmp(a->host ? a->host : "", b->host ? b->host : "");

    return c ? c : (a->rank > b->rank) - (a->rank < b->rank);
}

/* The ranks of each host by their numbers, if that is not done yet. */
static void place_ranks(struct job *job)
{
    size_t n = job->ranks.n;
    struct series **v;

    if (!n || (job->placed == n && job->placed_ts == job->restart_ts))
        return;
    job->placed = n;
    job->placed_ts = job->restart_ts;
    v = ep_calloc(n, sizeof(void *));
    memcpy(v, job->ranks.v, n * sizeof(void *));
    qsort(v, n, sizeof(void *), by_host);
    for (size_t from = 0, to; from < n; from = to) {
        const char *host = v[from]->host ? v[from]->host : "";

        for (to = from + 1;
             to < n && strcmp(v[to]->host ? v[to]->host : "", host) == 0;)
            to++;
        for (size_t i = from; i < to; i++) {
            v[i]->local = (int64_t)(i - from);
            v[i]->on_host = (int64_t)(to - from);
        }
    }
    free(v);
}

/* Most specific first; NULL where there is none. */
struct devices {
    const struct ep_gauge_device *v[3];
};

static void devices_of(struct ep_watch *w, const struct series *s,
                       struct devices *out)
{
    struct ep_gauges *g = w->gauges;
    struct ep_span host = host_of(s);

    *out = (struct devices){{NULL, NULL, NULL}};
    if (s->rank >= 0) {
        out->v[0] = ep_gauges_rank(g, s->job->number, s->rank);
        out->v[1] = ep_gauge_device_gpu(out->v[0]);
        /* nvidia-smi does not say where it ran */
        if (!ep_gauges_gpus_of(g, host) &&
            s->on_host == (int64_t)s->job->ranks.n)
            host.len = 0;
        if (!out->v[1] && s->on_host > 0 &&
            ep_gauges_gpus_of(g, host) == s->on_host)
            out->v[1] = ep_gauges_gpu(g, host, s->local);
    }
    out->v[2] = ep_gauges_host(g, host_of(s));
}

/* ==== Sensors of several ranks ==== */

/* Spread by the golden ratio: with no period that could meet the machine's. */
static size_t pick(size_t n, size_t i)
{
    uint64_t at = i * UINT64_C(2654435769) & UINT32_MAX;

    return n <= SENSED ? i : (size_t)(at * n >> 32);
}

/* The first of a rank's devices that has the sensor. */
static bool sense(const struct devices *d, enum ep_sensor sensor,
                  double healthy, double since, struct ep_gauge_stat *out)
{
    for (int i = 0; i < 3; i++)
        if (ep_gauge_device_stat(d->v[i], sensor, healthy, since, out))
            return true;
    return false;
}

static bool is_count(enum ep_sensor sensor)
{
    return sensor == EP_SENSOR_PCIE_REPLAYS ||
           sensor == EP_SENSOR_NVLINK_ERRORS ||
           sensor == EP_SENSOR_ECC_CORRECTED ||
           sensor == EP_SENSOR_ECC_UNCORRECTED ||
           sensor == EP_SENSOR_ROWS_REMAPPED || sensor == EP_SENSOR_XID ||
           sensor == EP_SENSOR_NET_ERRORS || sensor == EP_SENSOR_IB_ERRORS;
}

static double most(const double *v, size_t n)
{
    double top = (double)NAN;

    for (size_t i = 0; i < n; i++)
        top = fmax(top, v[i]); /* NaN is no value to fmax */
    return top;
}

static void sum_up(const struct devices *d, size_t n, enum ep_sensor sensor,
                   double healthy, double since, struct ep_gauge_stat *out,
                   bool *read)
{
    double a[SENSED], b[SENSED];
    size_t na = 0, nb = 0;

    for (size_t i = 0; i < n; i++) {
        struct ep_gauge_stat x;

        *read = sense(&d[i], sensor, healthy, since, &x) || *read;
        if (!isnan(x.before))
            a[na++] = x.before;
        if (!isnan(x.since))
            b[nb++] = x.since;
    }
    out->before = is_count(sensor) ? most(a, na) : ep_median(a, na);
    out->since = is_count(sensor) ? most(b, nb) : ep_median(b, nb);
}

static bool among(const struct series *const *v, size_t n,
                  const struct series *s)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] == s)
            return true;
    return false;
}

void ep_watch_sense(struct ep_watch *w, const struct series *const *ranks,
                    size_t n, double healthy, double since, struct senses *out)
{
    struct devices own[SENSED], others[SENSED];
    size_t asked = n < SENSED ? n : SENSED, m = 0;
    const struct members *all = ep_watch_members(ranks[0]);

    memset(out->read, 0, sizeof out->read);
    for (int k = 0; k < EP_SENSORS; k++) {
        out->at[k] = (struct ep_gauge_stat){(double)NAN, (double)NAN};
        out->peers[k] = (double)NAN;
    }
    if (!ep_gauges_any(w->gauges))
        return;
    place_ranks(ranks[0]->job);
    for (size_t i = 0; i < asked; i++)
        devices_of(w, ranks[pick(n, i)], &own[i]);
    for (size_t i = 0; i < all->n && i < SENSED; i++) {
        const struct series *s = all->v[pick(all->n, i)];

        if (!among(ranks, n, s))
            devices_of(w, s, &others[m++]);
    }
    for (int k = 0; k < EP_SENSORS; k++) {
        struct ep_gauge_stat peers;
        bool theirs = false;

        sum_up(own, asked, (enum ep_sensor)k, healthy, since, &out->at[k],
               &out->read[k]);
        sum_up(others, m, (enum ep_sensor)k, healthy, since, &peers, &theirs);
        out->peers[k] = peers.since;
    }
}

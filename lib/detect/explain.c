/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - see explain.h. */
#include "config.h"

#include "detect/explain.h"

#include "base/mem.h"
#include "base/stats.h"
#include "detect/watch_impl.h"

#include <math.h>
#include <stdlib.h>

static bool is_since(const struct series *s, const struct sample *x,
                     const struct ep_finding *f)
{
    /* workers count their own steps; clocks of ranks differ */
    if (s->scope == EP_SCOPE_WORKER || f->step < 0 || x->step < 0)
        return x->ts >= f->since;
    return x->step >= f->step && x->ts >= s->job->restart_ts;
}

/* The samples of a series, oldest first, and what they come to. */
static void add_samples(const struct ep_watch *w, const struct series *s,
                        const struct ep_finding *f, struct ep_explain *x)
{
    double before[EP_WATCH_WINDOW_MAX], after[EP_WATCH_WINDOW_MAX];
    int window = (int)w->config.window;

    for (int i = 0; i < s->kept; i++) {
        const struct sample *v =
            &s->ring[(s->at + window - s->kept + i) % window];
        bool since = is_since(s, v, f);

        x->sample[x->n++] =
            (struct ep_explain_sample){v->step, v->ts, v->value, since};
        if (since)
            after[x->nafter++] = v->value;
        else
            before[x->nbefore++] = v->value;
    }
    x->before = ep_median(before, x->nbefore);
    x->after = ep_median(after, x->nafter);
}

static void add_pace(const struct series *s, struct ep_explain *x)
{
    static const char *const names[] = {
        [BASIS_NONE] = "step time",
        [BASIS_PER_MB] = "busy per micro-batch",
        [BASIS_BUSY] = "busy",
        [BASIS_DUR] = "step time",
    };

    x->what = names[s->basis];
    x->healthy = ep_changepoint_healthy(s->pace);
    x->level = ep_changepoint_level(s->pace);
    x->noise = ep_changepoint_noise(s->pace);
    if (x->nbefore && x->nafter)
        x->errors = fabs(log(x->after / x->before)) /
                    (1.2533 * x->noise *
                     sqrt(1 / (double)x->nafter + 1 / (double)x->nbefore));
}

/* Median of the samples since the finding; of all if there are none since. */
static double median_since(const struct series *s, const struct ep_finding *f)
{
    double v[EP_WATCH_WINDOW_MAX];
    size_t n = 0;

    for (int i = 0; i < s->kept; i++)
        if (is_since(s, &s->ring[i], f))
            v[n++] = s->ring[i].value;
    if (n == 0)
        for (int i = 0; i < s->kept; i++)
            v[n++] = s->ring[i].value;
    return ep_median(v, n);
}

static void keep_slowest(struct ep_explain *x, const struct series *s,
                         double value)
{
    size_t at = x->nslowest;

    while (at > 0 && x->slowest[at - 1].value < value)
        at--;
    if (at == EP_EXPLAIN_PEERS)
        return;
    x->nslowest += x->nslowest < EP_EXPLAIN_PEERS;
    for (size_t i = x->nslowest - 1; i > at; i--)
        x->slowest[i] = x->slowest[i - 1];
    x->slowest[at] = (struct ep_explain_peer){s->id, s->host, value};
}

/* Of a rank the others of its kind; of anything else all ranks. */
static void add_peers(const struct series *s, const struct ep_finding *f,
                      struct ep_explain *x)
{
    const struct members *m = ep_watch_members(s);
    double *value = ep_calloc(m->n + 1, sizeof *value);
    double *factor = ep_calloc(m->n + 1, sizeof *factor);
    bool member = s->scope == EP_SCOPE_RANK || s->scope == EP_SCOPE_WORKER;
    size_t factors = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct series *r = m->v[i];
        double v, k;

        if (r == s || !r->pace || (member && r->basis != s->basis))
            continue;
        v = median_since(r, f);
        if (isnan(v))
            continue;
        value[x->peers++] = v;
        keep_slowest(x, r, v);
        k = v / ep_changepoint_healthy(r->pace);
        if (isnan(k))
            continue;
        factor[factors++] = k;
        x->alike += k >= 1 + x->min_change / 2;
    }
    x->peers_median = ep_median(value, x->peers);
    x->alike_factor = ep_median(factor, factors);
    if (member)
        x->factor = (x->nafter ? x->after : x->level) / x->peers_median;
    free(value);
    free(factor);
}

bool ep_watch_explain(const struct ep_watch *w, struct ep_explain *out)
{
    const double nan_value = (double)NAN;
    const struct series *s = w->reporting, *job;
    const struct ep_finding *f = w->finding;

    if (!s)
        return false;
    *out = (struct ep_explain){
        .before = nan_value,
        .after = nan_value,
        .healthy = nan_value,
        .level = nan_value,
        .noise = nan_value,
        .errors = nan_value,
        .peers_median = nan_value,
        .factor = nan_value,
        .alike_factor = nan_value,
        .job_level = nan_value,
        .job_healthy = nan_value,
        .job_noise = nan_value,
        .min_change = w->config.pace.min_change,
        .z = w->config.pace.z,
        .confirm = w->config.pace.confirm,
    };
    if (s->pace && s->ring) {
        add_samples(w, s, f, out);
        add_pace(s, out);
    }
    /* a device that was probed has no pace: its peers are in the evidence */
    if (s->pace || s->scope != EP_SCOPE_GPU)
        add_peers(s, f, out);
    job = s->job->own;
    if (job && job->pace) {
        out->job_level = ep_changepoint_level(job->pace);
        out->job_healthy = ep_changepoint_healthy(job->pace);
        out->job_noise = ep_changepoint_noise(job->pace);
    }
    return true;
}

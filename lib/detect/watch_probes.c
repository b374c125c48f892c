/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_probes.c - devices against each other, and against their own past, by
 * probes of the same test; see watch.h.
 */
#include "config.h"

#include "detect/probes_impl.h"

#include "base/mem.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void free_device(struct device *d)
{
    free(d->id->id);
    free(d->id->host);
    free(d->id);
    free(d->peer.eid);
    free(d->own.eid);
    free(d);
}

static void free_group(struct probe_group *g)
{
    free(g->fresh);
    free(g->label);
    free(g->what);
    free(g->what_own);
    free(g->unit);
    free(g);
}

void ep_watch_free_groups(struct ep_watch *w)
{
    for (size_t i = 0; i < ep_intern_count(w->device_names); i++)
        free_device(w->devices[i]);
    for (size_t i = 0; i < ep_intern_count(w->group_names); i++)
        free_group(w->groups[i]);
}

static void add_span(struct ep_buf *b, struct ep_span s, char before)
{
    if (!s.len)
        return;
    if (before)
        ep_buf_addc(b, before);
    ep_buf_add(b, s.ptr, s.len);
}

struct probe_group *ep_watch_new_group(struct ep_watch *w, size_t number,
                                       size_t label, struct ep_span unit,
                                       bool high_is_better)
{
    struct probe_group *g = ep_calloc(1, sizeof *g);

    g->number = number;
    g->label_at = label;
    g->label = ep_strdup(w->key.ptr + label);
    ep_buf_adds(&w->key, "/own");
    g->what_own = ep_strdup(w->key.ptr + label);
    for (char *c = g->what_own; *c; c++)
        if (*c == ' ')
            *c = '.';
    g->what = ep_strndup(g->what_own, strlen(g->label));
    g->unit = ep_strndup(unit.ptr, unit.len);
    g->cause = strncmp(g->what, "membw", 5) == 0 ? "memory" : "compute";
    g->high_is_better = high_is_better;
    return g;
}

static struct probe_group *find_group(struct ep_watch *w, struct job *job,
                                      const struct ep_watch_probe *x,
                                      struct ep_error *err)
{
    size_t known = ep_intern_count(w->group_names), label;
    long i;

    ep_buf_reset(&w->key);
    ep_buf_addf(&w->key, "%zu\t%c\t", job->number,
                x->high_is_better ? '+' : '-');
    add_span(&w->key, x->unit, 0);
    ep_buf_addc(&w->key, '\t');
    label = w->key.len;
    add_span(&w->key, x->test, 0);
    add_span(&w->key, x->dtype, ' ');
    if (x->size >= 0)
        ep_buf_addf(&w->key, " %lld", (long long)x->size);
    i = ep_watch_number(w, w->group_names,
                        (struct ep_span){w->key.ptr, w->key.len}, err);
    if (i < 0)
        return NULL;
    if ((size_t)i == known) {
        w->groups =
            ep_grow(w->groups, &w->groups_cap, known + 1, sizeof(void *));
        w->groups[i] =
            ep_watch_new_group(w, known, label, x->unit, x->high_is_better);
    }
    return w->groups[i];
}

/* A device, with a series without steps, so that it is reported like one. */
static struct device *new_device(struct job *job, const char *id,
                                 const struct ep_watch_probe *x)
{
    struct device *d = ep_calloc(1, sizeof *d);
    struct series *s = ep_calloc(1, sizeof *s);

    s->job = job;
    s->rank = x->rank;
    s->scope = x->gpu.len     ? EP_SCOPE_GPU
               : x->rank >= 0 ? EP_SCOPE_RANK
                              : EP_SCOPE_HOST;
    s->id = ep_strdup(id);
    if (x->host.len)
        s->host = ep_strndup(x->host.ptr, x->host.len);
    d->id = s;
    return d;
}

static struct device *find_device(struct ep_watch *w, struct probe_group *g,
                                  struct job *job,
                                  const struct ep_watch_probe *x,
                                  struct ep_error *err)
{
    size_t known = ep_intern_count(w->device_names), prefix;
    long i;

    ep_buf_reset(&w->key);
    ep_buf_addf(&w->key, "%zu\t", g->number);
    prefix = w->key.len;
    if (x->gpu.len) {
        ep_buf_adds(&w->key, "gpu=");
        add_span(&w->key, x->gpu, 0);
    } else if (x->rank >= 0) {
        ep_buf_addf(&w->key, "rank=%lld", (long long)x->rank);
    } else {
        ep_buf_adds(&w->key, "host=");
        add_span(&w->key, x->host, 0);
    }
    i = ep_watch_number(w, w->device_names,
                        (struct ep_span){w->key.ptr, w->key.len}, err);
    if (i < 0)
        return NULL;
    if ((size_t)i == known) {
        w->devices =
            ep_grow(w->devices, &w->devices_cap, known + 1, sizeof(void *));
        w->devices[i] = new_device(job, w->key.ptr + prefix, x);
        w->devices[i]->number = known;
        g->devices++;
    }
    return w->devices[i];
}

static void report(struct ep_watch *w, const struct probe_group *g,
                   struct device *d, struct episode *e,
                   const struct ep_peer *verdict, const char *against)
{
    double reference = g->high_is_better ? d->value * verdict->factor
                                         : d->value / verdict->factor;
    struct ep_finding f = {
        .kind = verdict->slow ? EP_FINDING_ONSET : EP_FINDING_RELIEF,
        .ts = d->ts,
        .since = d->ts,
        .step = -1,
        .factor = verdict->factor,
        .p = verdict->slow ? verdict->p : 1 - verdict->p,
        .cause = g->cause,
        .gpu_hours = (double)NAN,
    };

    ep_buf_adds(&w->text, g->label);
    ep_buf_addc(&w->text, ' ');
    ep_num_format_si(&w->text, d->value, g->unit);
    ep_buf_adds(&w->text, against);
    ep_num_format_si(&w->text, reference, g->unit);
    f.evidence = w->text.ptr;
    ep_watch_report(w, d->id, e, e == &d->own ? g->what_own : g->what, &f);
    e->open = verdict->slow;
}

/* The device against its own healthy value, by the same rule as peers. */
static void judge_own(struct ep_watch *w, const struct probe_group *g,
                      struct device *d)
{
    const struct ep_peers_config *c = &w->config.peers;
    double noise = hypot(c->noise_floor, d->noise), factor, z;
    struct ep_peer verdict;

    if (!(d->ref_own > 0) || !isfinite(d->ref_own))
        return;
    factor = g->high_is_better ? d->ref_own / d->value : d->value / d->ref_own;
    z = log(factor) / noise;
    verdict = (struct ep_peer){
        .factor = factor,
        .z = z,
        .p = z > 0 ? erf(z / sqrt(2.0)) : 0,
        .slow = factor >= 1 + c->min_change && z >= c->k,
    };
    ep_buf_reset(&w->text);
    if (verdict.slow != d->own.open)
        report(w, g, d, &d->own, &verdict, ", its own past ");
}

/* The round is over: its devices against each other. */
static void compare(struct ep_watch *w, struct probe_group *g)
{
    double *x = ep_calloc(g->n, sizeof *x);
    double *noise = ep_calloc(g->n, sizeof *noise);
    struct ep_peer *peers = ep_calloc(g->n, sizeof *peers);
    struct ep_peers_input in = {
        x, noise, g->n, g->high_is_better ? EP_PEERS_HIGH : EP_PEERS_LOW};
    struct ep_peers_summary all;
    size_t n = g->n;

    for (size_t i = 0; i < n; i++) {
        g->fresh[i]->fresh = false;
        judge_own(w, g, g->fresh[i]);
        x[i] = g->fresh[i]->value;
        noise[i] = g->fresh[i]->noise;
    }
    /* the values were checked when they came in */
    if (n < 2 || ep_peers_compare(&in, &w->config.peers, peers, &all, NULL) < 0)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        struct device *d = g->fresh[i];
        const char *doubt = ep_peers_doubt_text(all.doubt);

        ep_buf_reset(&w->text);
        if (*doubt) {
            ep_buf_adds(&w->text, doubt);
            ep_buf_adds(&w->text, "; ");
        }
        if (peers[i].slow != d->peer.open)
            report(w, g, d, &d->peer, &peers[i], ", its peers ");
        else
            d->peer.factor = peers[i].factor;
    }
    g->compared = g->compared || g->n > 0;
    g->n = 0;
    free(x);
    free(noise);
    free(peers);
}

int ep_watch_probe(struct ep_watch *w, const struct ep_watch_probe *x,
                   struct ep_error *err)
{
    struct job *job;
    struct probe_group *g;
    struct device *d;

    if (!(x->value > 0) || !isfinite(x->value))
        return ep_error_set(err, EP_EDOM, "value is not above 0");
    if (!isfinite(x->ts))
        return ep_error_set(err, EP_EDOM, "ts is not finite");
    job = ep_watch_job(w, x->job, err);
    g = job ? find_group(w, job, x, err) : NULL;
    d = g ? find_device(w, g, job, x, err) : NULL;
    if (!d)
        return EP_ELIMIT;
    if (d->resumed && x->ts <= d->old_ts) {
        w->known++; /* taken before the state was saved */
        return 0;
    }
    if (d->fresh)
        compare(w, g);
    d->ts = x->ts;
    d->value = x->value;
    /* the standard error of a median of a few runs is near their scatter */
    d->noise = x->spread >= 0 && isfinite(x->spread) ? x->spread : 0;
    d->ref_own = x->ref_own;
    d->fresh = true;
    g->fresh = ep_grow(g->fresh, &g->cap, g->n + 1, sizeof(void *));
    g->fresh[g->n++] = d;
    if (g->compared && g->n == g->devices)
        compare(w, g);
    return 0;
}

void ep_watch_tell_devices(const struct ep_watch *w,
                           void (*fn)(void *ctx, const struct ep_finding *),
                           void *ctx)
{
    for (size_t i = 0; i < ep_intern_count(w->device_names); i++) {
        const struct device *d = w->devices[i];

        if (d->own.open || d->peer.open)
            ep_watch_tell(d->id, d->own.open ? &d->own : &d->peer, fn, ctx);
    }
}

void ep_watch_finish_probes(struct ep_watch *w)
{
    for (size_t i = 0; i < ep_intern_count(w->group_names); i++)
        compare(w, w->groups[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_probes.c - devices against each other, and against their own past, by
 * probes of the same test; see watch.h.
 */
#include "config.h"

#include "detect/watch_impl.h"

#include "base/mem.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One device in one group. */
struct device {
    struct series *id; /* name, rank, host: it has no steps */
    double ts, value, noise, ref_own;
    bool fresh; /* value is of this round */
    struct episode peer, own;
};

/* The devices that ran the same test. */
struct probe_group {
    char *label; /* "gemm f32 1024" */
    char *what;  /* "gemm.f32", for the eid */
    char *unit;
    const char *cause;
    bool high_is_better;
    struct device *v;
    size_t n, cap;
};

static void free_group(struct probe_group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        free(g->v[i].id->id);
        free(g->v[i].id->host);
        free(g->v[i].id);
    }
    free(g->v);
    free(g->label);
    free(g->what);
    free(g->unit);
    free(g);
}

void ep_watch_free_groups(struct ep_watch *w)
{
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

static struct probe_group *find_group(struct ep_watch *w,
                                      const struct ep_watch_probe *x)
{
    size_t known = ep_intern_count(w->group_names), label, end;
    struct probe_group *g;
    long i;

    ep_buf_reset(&w->key);
    add_span(&w->key, x->job, 0);
    ep_buf_addf(&w->key, "\t%c\t", x->high_is_better ? '+' : '-');
    add_span(&w->key, x->unit, 0);
    ep_buf_addc(&w->key, '\t');
    label = w->key.len;
    add_span(&w->key, x->test, 0);
    add_span(&w->key, x->dtype, ' ');
    end = w->key.len;
    if (x->size >= 0)
        ep_buf_addf(&w->key, " %lld", (long long)x->size);
    i = ep_intern_add(w->group_names, (struct ep_span){w->key.ptr, w->key.len},
                      EP_WATCH_MAX_SERIES);
    if (i < 0)
        return NULL;
    if ((size_t)i < known)
        return w->groups[i];
    g = ep_calloc(1, sizeof *g);
    g->label = ep_strdup(w->key.ptr + label);
    g->what = ep_strndup(w->key.ptr + label, end - label);
    for (char *c = g->what; *c; c++)
        if (*c == ' ')
            *c = '.';
    g->unit = ep_strndup(x->unit.ptr, x->unit.len);
    g->cause = strncmp(g->what, "membw", 5) == 0 ? "memory" : "compute";
    g->high_is_better = x->high_is_better;
    w->groups = ep_grow(w->groups, &w->groups_cap, known + 1, sizeof(void *));
    w->groups[i] = g;
    return g;
}

/* A device as a series without steps, so that it is reported like one. */
static struct series *new_device(struct ep_watch *w, struct job *job,
                                 const struct ep_watch_probe *x)
{
    struct series *s = ep_calloc(1, sizeof *s);

    s->job = job;
    s->rank = x->rank;
    s->scope = x->gpu.len     ? EP_SCOPE_GPU
               : x->rank >= 0 ? EP_SCOPE_RANK
                              : EP_SCOPE_HOST;
    s->id = ep_strdup(w->key.ptr);
    if (x->host.len)
        s->host = ep_strndup(x->host.ptr, x->host.len);
    return s;
}

static struct device *find_device(struct ep_watch *w, struct probe_group *g,
                                  struct job *job,
                                  const struct ep_watch_probe *x)
{
    struct device *d;

    ep_buf_reset(&w->key);
    if (x->gpu.len) {
        ep_buf_adds(&w->key, "gpu=");
        add_span(&w->key, x->gpu, 0);
    } else if (x->rank >= 0) {
        ep_buf_addf(&w->key, "rank=%lld", (long long)x->rank);
    } else {
        ep_buf_adds(&w->key, "host=");
        add_span(&w->key, x->host, 0);
    }
    for (size_t i = 0; i < g->n; i++)
        if (ep_span_eq((struct ep_span){w->key.ptr, w->key.len},
                       g->v[i].id->id))
            return &g->v[i];
    if (g->n >= EP_WATCH_MAX_SERIES)
        return NULL;
    g->v = ep_grow(g->v, &g->cap, g->n + 1, sizeof *g->v);
    d = &g->v[g->n++];
    *d = (struct device){.id = new_device(w, job, x)};
    return d;
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
        .p = verdict->p,
        .cause = g->cause,
        .gpu_hours = (double)NAN,
    };

    ep_buf_adds(&w->text, g->label);
    ep_buf_addc(&w->text, ' ');
    ep_num_format_si(&w->text, d->value, g->unit);
    ep_buf_adds(&w->text, against);
    ep_num_format_si(&w->text, reference, g->unit);
    f.evidence = w->text.ptr;
    ep_watch_report(w, d->id, e, g->what, &f);
    e->open = verdict->slow;
}

/* The device against its own healthy value, by the same rule as peers. */
static void judge_own(struct ep_watch *w, const struct probe_group *g,
                      struct device *d)
{
    const struct ep_peers_config *c = &w->config.peers;
    double noise = hypot(c->noise_floor, d->noise), factor, z;
    struct ep_peer verdict;

    if (isnan(d->ref_own) || !(d->ref_own > 0))
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

static void compare(struct ep_watch *w, struct probe_group *g)
{
    double *x = ep_calloc(g->n, sizeof *x);
    double *noise = ep_calloc(g->n, sizeof *noise);
    struct ep_peer *peers = ep_calloc(g->n, sizeof *peers);
    size_t *at = ep_calloc(g->n, sizeof *at);
    struct ep_peers_input in;
    struct ep_peers_summary all;
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++) {
        struct device *d = &g->v[i];

        if (!d->fresh)
            continue;
        d->fresh = false;
        judge_own(w, g, d);
        x[n] = d->value;
        noise[n] = d->noise;
        at[n++] = i;
    }
    in = (struct ep_peers_input){
        x, noise, n, g->high_is_better ? EP_PEERS_HIGH : EP_PEERS_LOW};
    /* the values were checked when they came in */
    if (n < 2 || ep_peers_compare(&in, &w->config.peers, peers, &all, NULL) < 0)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        struct device *d = &g->v[at[i]];
        const char *doubt = ep_peers_doubt_text(all.doubt);

        ep_buf_reset(&w->text);
        if (*doubt) {
            ep_buf_adds(&w->text, doubt);
            ep_buf_adds(&w->text, "; ");
        }
        if (peers[i].slow != d->peer.open)
            report(w, g, d, &d->peer, &peers[i], ", its peers ");
    }
    free(x);
    free(noise);
    free(peers);
    free(at);
}

int ep_watch_probe(struct ep_watch *w, const struct ep_watch_probe *x,
                   struct ep_error *err)
{
    struct job *job;
    struct probe_group *g;
    struct device *d;

    if (!(x->value > 0))
        return ep_error_set(err, EP_EDOM, "value is not above 0");
    job = ep_watch_job(w, x->job, err);
    g = job ? find_group(w, x) : NULL;
    d = g ? find_device(w, g, job, x) : NULL;
    if (!d)
        return ep_error_set(err, EP_ELIMIT, "more than %d tests or devices",
                            EP_WATCH_MAX_SERIES);
    if (d->fresh)
        compare(w, g);
    d->ts = x->ts;
    d->value = x->value;
    /* the standard error of a median of a few runs is near their scatter */
    d->noise = x->spread >= 0 ? x->spread : 0;
    d->ref_own = x->ref_own;
    d->fresh = true;
    return 0;
}

void ep_watch_finish_probes(struct ep_watch *w)
{
    for (size_t i = 0; i < ep_intern_count(w->group_names); i++)
        compare(w, w->groups[i]);
}

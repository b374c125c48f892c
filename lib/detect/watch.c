/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - series and jobs by name, findings out; see watch.h. */
#include "config.h"

#include "detect/watch.h"

#include "base/mem.h"
#include "detect/incident.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What evenpace-record(5) allows. */
#define FACTOR_LEAST 1e-9

const char *const ep_scope_names[] = {
    [EP_SCOPE_JOB] = "job",       [EP_SCOPE_RANK] = "rank",
    [EP_SCOPE_WORKER] = "worker", [EP_SCOPE_GPU] = "gpu",
    [EP_SCOPE_HOST] = "host",     [EP_SCOPE_LINK] = "link",
    [EP_SCOPE_GROUP] = "group",   [EP_SCOPE_STAGE] = "stage",
};

const char *const ep_finding_names[] = {
    [EP_FINDING_ONSET] = "onset",
    [EP_FINDING_RELIEF] = "relief",
    [EP_FINDING_SPIKE] = "spike",
    [EP_FINDING_MISSING] = "missing",
};

static int check(const struct ep_watch_config *c, struct ep_error *err)
{
    const struct ep_peers_input none = {.n = 0};
    struct ep_peers_summary all;
    struct ep_changepoint *trial;
    int rc;

    if (c->window < 4 || c->window > EP_WATCH_WINDOW_MAX || c->persist < 1)
        return ep_error_set(err, EP_EDOM, "window %lld or persist %lld",
                            (long long)c->window, (long long)c->persist);
    rc = ep_peers_compare(&none, &c->peers, NULL, &all, err);
    if (rc < 0)
        return rc;
    trial = ep_changepoint_new(&c->pace, err);
    ep_changepoint_free(trial);
    return trial ? 0 : EP_EDOM;
}

struct ep_watch *ep_watch_new(const struct ep_watch_config *config,
                              void (*fn)(void *ctx, const struct ep_finding *),
                              void *ctx, struct ep_error *err)
{
    static const struct ep_watch_config defaults = EP_WATCH_DEFAULTS;
    const struct ep_watch_config *c = config ? config : &defaults;
    struct ep_silence *silence;
    struct ep_watch *w;

    if (check(c, err) < 0)
        return NULL;
    silence = ep_silence_new(&c->silence, fn, ctx, err);
    if (!silence)
        return NULL;
    w = ep_calloc(1, sizeof *w);
    w->silence = silence;
    w->config = *c;
    w->fn = fn;
    w->ctx = ctx;
    w->job_names = ep_intern_new();
    w->series_names = ep_intern_new();
    w->group_names = ep_intern_new();
    w->device_names = ep_intern_new();
    w->episode_names = ep_intern_new();
    w->gauges = ep_gauges_new();
    w->words = ep_intern_new();
    ep_buf_init(&w->key);
    ep_buf_init(&w->text);
    return w;
}

static void free_series(struct series *s)
{
    ep_changepoint_free(s->pace);
    free(s->id);
    free(s->host);
    free(s->ring);
    free(s->work);
    free(s);
}

void ep_watch_free(struct ep_watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < ep_intern_count(w->job_names); i++)
        ep_incident_free(w->jobs[i]);
    for (size_t i = 0; i < ep_intern_count(w->series_names); i++)
        free_series(w->series[i]);
    for (size_t i = 0; i < ep_intern_count(w->job_names); i++) {
        free(w->jobs[i]->name);
        free(w->jobs[i]->ranks.v);
        free(w->jobs[i]->workers.v);
        ep_watch_free_loads(w->jobs[i]);
        free(w->jobs[i]);
    }
    ep_watch_free_groups(w);
    ep_gauges_free(w->gauges);
    ep_watch_free_links(w);
    ep_intern_free(w->job_names);
    ep_intern_free(w->series_names);
    ep_intern_free(w->group_names);
    ep_intern_free(w->device_names);
    ep_intern_free(w->episode_names);
    ep_intern_free(w->words);
    ep_buf_free(&w->key);
    ep_buf_free(&w->text);
    ep_silence_free(w->silence);
    free(w->series);
    free(w->jobs);
    free(w->groups);
    free(w->devices);
    free(w->used);
    free(w->work);
    free(w->survey);
    free(w);
}

long ep_watch_number(struct ep_watch *w, struct ep_intern *names,
                     struct ep_span name, struct ep_error *err)
{
    size_t known = ep_intern_count(names);
    long i = ep_intern_add(names, name, known + EP_WATCH_MAX_SERIES - w->total);

    if (i < 0)
        return ep_error_set(err, EP_ELIMIT,
                            "more than %d jobs, ranks, workers and devices",
                            EP_WATCH_MAX_SERIES);
    w->total += (size_t)i == known;
    return i;
}

struct job *ep_watch_job(struct ep_watch *w, struct ep_span name,
                         struct ep_error *err)
{
    size_t known = ep_intern_count(w->job_names);
    struct job *job = w->last_job;
    long i;

    /* records of one job mostly come together */
    if (job && job->len == name.len &&
        (!name.len || memcmp(job->name, name.ptr, name.len) == 0))
        return job;
    i = ep_watch_number(w, w->job_names, name, err);
    if (i < 0)
        return NULL;
    if ((size_t)i == known) {
        job = ep_calloc(1, sizeof *job);
        job->name = ep_strndup(name.ptr, name.len);
        job->len = name.len;
        job->number = known;
        job->closed = job->first_step = -1;
        job->incidents.spike_step = job->incidents.ease_step = -1;
        job->incidents.slow_from = (double)INFINITY;
        job->incidents.slow_to = (double)INFINITY;
        job->incidents.charged = (double)-INFINITY;
        job->restart_ts = (double)-INFINITY;
        w->jobs = ep_grow(w->jobs, &w->jobs_cap, known + 1, sizeof(void *));
        w->jobs[i] = job;
    }
    w->last_job = w->jobs[i];
    return w->last_job;
}

static struct series *new_series(struct job *job, int64_t rank, bool worker,
                                 const char *id)
{
    struct series *s = ep_calloc(1, sizeof *s);

    s->job = job;
    s->rank = rank;
    s->scope = rank >= 0 ? EP_SCOPE_RANK
               : worker  ? EP_SCOPE_WORKER
                         : EP_SCOPE_JOB;
    s->id = ep_strdup(id);
    s->handicap = 1;
    s->last_step = -1;
    s->last_ts = (double)-INFINITY;
    return s;
}

struct series *ep_watch_series(struct ep_watch *w, struct job *job,
                               int64_t rank, struct ep_span worker,
                               struct ep_error *err)
{
    size_t known = ep_intern_count(w->series_names), prefix;
    size_t slot = ((uint64_t)rank + job->number * 97) & (RECENT_SLOTS - 1);
    struct series *s = w->recent[slot];
    long i;

    if (rank >= 0 && s && s->job == job && s->rank == rank)
        return s;
    ep_buf_reset(&w->key);
    ep_buf_addf(&w->key, "%zu/", job->number); /* a name may have a slash */
    prefix = w->key.len;
    if (rank >= 0) {
        ep_buf_addf(&w->key, "rank=%lld", (long long)rank);
    } else if (worker.len) {
        ep_buf_adds(&w->key, "worker=");
        ep_buf_add(&w->key, worker.ptr, worker.len);
    }
    i = ep_watch_number(w, w->series_names,
                        (struct ep_span){w->key.ptr, w->key.len}, err);
    if (i < 0)
        return NULL;
    if ((size_t)i == known) {
        w->series =
            ep_grow(w->series, &w->series_cap, known + 1, sizeof(void *));
        w->series[i] =
            new_series(job, rank, worker.len > 0, w->key.ptr + prefix);
        w->series[i]->number = known;
    }
    s = w->series[i];
    if (rank >= 0)
        w->recent[slot] = s;
    return s;
}

/* ==== Findings out ==== */

/* Append a name, or as much of it as fits, in whole characters. */
static void add_cut(struct ep_buf *b, const char *s, size_t max)
{
    size_t n = strlen(s);

    if (n > max)
        for (n = max; n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80;)
            n--;
    ep_buf_add(b, s, n);
}

/*
 * An eid says what and since when: "lm/rank=3@118", "host=n2/gemm@1.700". The
 * same input gives the same eids. Where the time alone does not tell two
 * episodes apart, because it is not later than that of all before (after a
 * restart step 118 comes again), a number does: "lm/rank=3@118#1". Names that
 * are the same once cut share the numbers.
 */
static void name_episode(struct ep_watch *w, struct episode *e,
                         const struct series *s, const char *what,
                         const struct ep_finding *f)
{
    struct ep_buf *b = &w->key;
    size_t known = ep_intern_count(w->episode_names);
    struct used_name *used;
    bool later;
    long i;

    ep_buf_reset(b);
    add_cut(b, s->job->name, 64);
    ep_buf_adds(b, *s->job->name ? "/" : "");
    add_cut(b, *s->id ? s->id : "job", 96);
    ep_buf_adds(b, what ? "/" : "");
    add_cut(b, what ? what : "", 64);
    i = ep_intern_add(w->episode_names, (struct ep_span){b->ptr, b->len},
                      SIZE_MAX);
    if ((size_t)i == known) {
        w->used = ep_grow(w->used, &w->used_cap, known + 1, sizeof *w->used);
        w->used[i] = (struct used_name){-1, 0, (double)-INFINITY};
    }
    used = &w->used[i];
    if (f->step >= 0) {
        later = f->step > used->step;
        used->step = later ? f->step : used->step;
        ep_buf_addf(b, "@%lld", (long long)f->step);
    } else {
        /* 1 ms is shown; huge times are told apart by their digits */
        later = f->since > used->since && f->since >= used->since + 0.002;
        used->since = later ? f->since : used->since;
        ep_buf_addf(b, fabs(f->since) < 1e12 ? "@%.3f" : "@%.17g", f->since);
    }
    if (!later)
        ep_buf_addf(b, "#%lld", (long long)++used->n);
    free(e->eid);
    e->eid = ep_strndup(b->ptr, b->len);
}

static void fill_in(const struct series *s, struct ep_finding *f)
{
    f->scope = s->scope;
    f->job = *s->job->name ? s->job->name : NULL;
    f->host = s->host;
    f->rank = s->rank;
    f->id = *s->id ? s->id : NULL;
}

void ep_watch_report(struct ep_watch *w, const struct series *s,
                     struct episode *e, const char *what, struct ep_finding *f)
{
    struct episode once = {.open = false};
    struct episode *as = e ? e : &once;

    fill_in(s, f);
    /* values at the ends of what a double holds have any ratio */
    f->factor = fmin(fmax(f->factor, FACTOR_LEAST), FACTOR_MOST);
    if (f->ts < f->since)
        f->ts = f->since;
    if (!as->open) {
        name_episode(w, as, s, what, f);
        as->since = f->since;
        as->step = f->step;
        as->open = f->kind == EP_FINDING_ONSET;
    }
    as->cause = f->cause;
    as->factor = f->factor;
    as->p = f->p;
    f->eid = as->eid;
    w->reporting = s->shown ? s->shown : s;
    w->finding = f;
    w->fn(w->ctx, f);
    w->reporting = NULL;
    free(once.eid);
}

void ep_watch_tell(const struct series *s, const struct episode *e,
                   void (*fn)(void *ctx, const struct ep_finding *), void *ctx)
{
    struct ep_finding f = {
        .kind = EP_FINDING_ONSET,
        .eid = e->eid,
        .cause = e->cause,
        .ts = (double)NAN,
        .since = e->since,
        .step = e->step,
        .factor = e->factor,
        .p = e->p,
        .gpu_hours = (double)NAN,
    };

    fill_in(s, &f);
    fn(ctx, &f);
}

/* Has one of its ranks reported of late, and since the job was restarted? */
static bool is_alive(const struct incident *in)
{
    for (size_t i = 0; i < in->n; i++) {
        const struct series *s = in->link[i]->s;

        if (s->missed < 2 && s->last_ts >= s->job->restart_ts)
            return true;
    }
    return in->n == 0;
}

void ep_watch_open(const struct ep_watch *w,
                   void (*fn)(void *ctx, const struct ep_finding *), void *ctx)
{
    for (size_t i = 0; i < ep_intern_count(w->job_names); i++) {
        const struct incidents *all = &w->jobs[i]->incidents;

        for (size_t k = 0; k < all->n; k++)
            if (is_alive(all->v[k]))
                ep_watch_tell(&all->v[k]->who, &all->v[k]->ep, fn, ctx);
    }
    ep_watch_tell_devices(w, fn, ctx);
    ep_silence_open(w->silence, fn, ctx);
    ep_watch_tell_links(w, fn, ctx);
}

void ep_watch_finish(struct ep_watch *w)
{
    for (size_t i = 0; i < ep_intern_count(w->job_names); i++)
        ep_watch_end_steps(w, w->jobs[i]);
    for (size_t i = 0; i < ep_intern_count(w->job_names); i++)
        ep_incident_judge(w, w->jobs[i], INT64_MAX);
    ep_watch_finish_probes(w);
    ep_silence_finish(w->silence);
    ep_watch_finish_links(w);
}

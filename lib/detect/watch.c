/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - series and jobs by name, findings out; see watch.h. */
#include "config.h"

#include "detect/watch.h"

#include "base/mem.h"
#include "detect/watch_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const ep_scope_names[] = {
    [EP_SCOPE_JOB] = "job",       [EP_SCOPE_RANK] = "rank",
    [EP_SCOPE_WORKER] = "worker", [EP_SCOPE_GPU] = "gpu",
    [EP_SCOPE_HOST] = "host",
};

const char *const ep_finding_names[] = {
    [EP_FINDING_ONSET] = "onset",
    [EP_FINDING_RELIEF] = "relief",
    [EP_FINDING_SPIKE] = "spike",
};

struct ep_watch *ep_watch_new(const struct ep_watch_config *config,
                              void (*fn)(void *ctx, const struct ep_finding *),
                              void *ctx, struct ep_error *err)
{
    static const struct ep_watch_config defaults = EP_WATCH_DEFAULTS;
    const struct ep_watch_config *c = config ? config : &defaults;
    struct ep_changepoint *trial;
    struct ep_watch *w;

    if (c->window < 4 || c->window > EP_WATCH_WINDOW_MAX || c->persist < 1) {
        (void)ep_error_set(err, EP_EDOM, "window %lld or persist %lld",
                           (long long)c->window, (long long)c->persist);
        return NULL;
    }
    trial = ep_changepoint_new(&c->pace, err);
    if (!trial)
        return NULL;
    ep_changepoint_free(trial);
    w = ep_calloc(1, sizeof *w);
    w->config = *c;
    w->fn = fn;
    w->ctx = ctx;
    w->job_names = ep_intern_new();
    w->series_names = ep_intern_new();
    w->group_names = ep_intern_new();
    ep_buf_init(&w->key);
    ep_buf_init(&w->text);
    return w;
}

static void free_series(struct series *s)
{
    if (!s)
        return;
    ep_changepoint_free(s->pace);
    free(s->id);
    free(s->host);
    free(s->ring);
    free(s->shares);
    free(s);
}

void ep_watch_free(struct ep_watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < ep_intern_count(w->series_names); i++)
        free_series(w->series[i]);
    for (size_t i = 0; i < ep_intern_count(w->job_names); i++) {
        free(w->jobs[i]->name);
        free(w->jobs[i]->ranks);
        free(w->jobs[i]);
    }
    ep_watch_free_groups(w);
    ep_intern_free(w->job_names);
    ep_intern_free(w->series_names);
    ep_intern_free(w->group_names);
    ep_buf_free(&w->key);
    ep_buf_free(&w->text);
    free(w->series);
    free(w->jobs);
    free(w->groups);
    free(w->work);
    free(w);
}

static int too_many(struct ep_error *err)
{
    return ep_error_set(err, EP_ELIMIT, "more than %d jobs, ranks or devices",
                        EP_WATCH_MAX_SERIES);
}

struct job *ep_watch_job(struct ep_watch *w, struct ep_span name,
                         struct ep_error *err)
{
    size_t known = ep_intern_count(w->job_names);
    long i = ep_intern_add(w->job_names, name, EP_WATCH_MAX_SERIES);

    if (i < 0) {
        (void)too_many(err);
        return NULL;
    }
    if ((size_t)i == known) {
        struct job *job = ep_calloc(1, sizeof *job);

        job->name = ep_strndup(name.ptr, name.len);
        job->closed = -1;
        w->jobs = ep_grow(w->jobs, &w->jobs_cap, known + 1, sizeof(void *));
        w->jobs[i] = job;
    }
    return w->jobs[i];
}

struct series *ep_watch_series(struct ep_watch *w, struct job *job,
                               int64_t rank, struct ep_span worker,
                               struct ep_error *err)
{
    size_t known = ep_intern_count(w->series_names), prefix;
    struct series *s;
    long i;

    ep_buf_reset(&w->key);
    ep_buf_adds(&w->key, job->name);
    ep_buf_addc(&w->key, '/');
    prefix = w->key.len;
    if (rank >= 0)
        ep_buf_addf(&w->key, "rank=%lld", (long long)rank);
    else if (worker.len) {
        ep_buf_adds(&w->key, "worker=");
        ep_buf_add(&w->key, worker.ptr, worker.len);
    }
    i = ep_intern_add(w->series_names, (struct ep_span){w->key.ptr, w->key.len},
                      EP_WATCH_MAX_SERIES);
    if (i < 0) {
        (void)too_many(err);
        return NULL;
    }
    if ((size_t)i < known)
        return w->series[i];
    s = ep_calloc(1, sizeof *s);
    s->job = job;
    s->rank = rank;
    s->scope = rank >= 0    ? EP_SCOPE_RANK
               : worker.len ? EP_SCOPE_WORKER
                            : EP_SCOPE_JOB;
    s->id = ep_strdup(w->key.ptr + prefix);
    s->last_step = -1;
    s->last_ts = (double)-INFINITY;
    w->series = ep_grow(w->series, &w->series_cap, known + 1, sizeof(void *));
    w->series[i] = s;
    if (s->scope != EP_SCOPE_JOB) {
        job->ranks =
            ep_grow(job->ranks, &job->cap, job->nranks + 1, sizeof(void *));
        job->ranks[job->nranks++] = s;
        w->work = ep_grow(w->work, &w->work_cap, job->nranks, sizeof *w->work);
    }
    return s;
}

/* An eid says what and since when: "lm/rank=3@118", "host=n2/gemm@1.7e9". */
static void name_episode(struct episode *e, const struct series *s,
                         const char *what, const struct ep_finding *f)
{
    char when[40];

    if (f->step >= 0)
        (void)snprintf(when, sizeof when, "%lld", (long long)f->step);
    else
        (void)snprintf(when, sizeof when, "%.3f", f->since);
    (void)snprintf(e->eid, sizeof e->eid, "%.48s%s%.64s%s%.24s@%s",
                   s->job->name, *s->job->name ? "/" : "",
                   *s->id ? s->id : "job", what ? "/" : "", what ? what : "",
                   when);
}

void ep_watch_report(struct ep_watch *w, const struct series *s,
                     struct episode *e, const char *what, struct ep_finding *f)
{
    struct episode once = {.open = false};
    struct episode *as = e ? e : &once;

    f->scope = s->scope;
    f->job = *s->job->name ? s->job->name : NULL;
    f->host = s->host;
    f->rank = s->rank;
    f->id = *s->id ? s->id : NULL;
    if (!as->open) {
        name_episode(as, s, what, f);
        (void)snprintf(as->cause, sizeof as->cause, "%s", f->cause);
        as->since = f->since;
        as->step = f->step;
        as->open = f->kind == EP_FINDING_ONSET;
    }
    f->eid = as->eid;
    w->fn(w->ctx, f);
}

void ep_watch_finish(struct ep_watch *w)
{
    for (size_t i = 0; i < ep_intern_count(w->job_names); i++)
        ep_watch_close_steps(w, w->jobs[i], INT64_MAX);
    ep_watch_finish_probes(w);
}

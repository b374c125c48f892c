/* SPDX-License-Identifier: Apache-2.0 */
/* silence_report.c - episodes of those who are missing; see silence.h. */
#include "config.h"

#include "detect/silence_impl.h"

#include "base/mem.h"
#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranks, and hosts, that are named one by one. */
#define NAMED_MOST 8

static void free_episode(struct episode *e)
{
    free(e->eid);
    free(e->id);
    free(e->host);
    free(e);
}

void ep_silence_free_episodes(struct job *job)
{
    for (size_t i = 0; i < job->nepisodes; i++)
        free_episode(job->episodes[i]);
    free(job->episodes);
}

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
 * "lm/rank=3/missing@118", by the step or else by the time. One that was given
 * before, since a restart brings the steps again, has a number behind it.
 */
static char *new_eid(struct ep_silence *s, const struct job *job,
                     const struct episode *e)
{
    struct ep_buf *b = &s->who;
    size_t known = ep_intern_count(s->eids), len;

    ep_buf_reset(b);
    add_cut(b, job->name, 64);
    ep_buf_adds(b, *job->name ? "/" : "");
    add_cut(b, e->id ? e->id : "job", 96);
    if (e->step >= 0)
        ep_buf_addf(b, "/missing@%lld", (long long)e->step);
    else
        ep_buf_addf(b,
                    fabs(e->since) < 1e12 ? "/missing@%.3f" : "/missing@%.17g",
                    e->since);
    len = b->len;
    for (int again = 1;
         (size_t)ep_intern_add(s->eids, (struct ep_span){b->ptr, b->len},
                               SIZE_MAX) != known;
         again++) {
        char number[16];

        (void)snprintf(number, sizeof number, "#%d", again);
        b->len = len;
        ep_buf_adds(b, number);
    }
    return ep_strndup(b->ptr, b->len);
}

static void give(const struct job *job, const struct episode *e,
                 const struct ep_finding *how,
                 void (*fn)(void *ctx, const struct ep_finding *), void *ctx)
{
    struct ep_finding f = *how;

    f.scope = e->scope;
    f.job = job->len ? job->name : NULL;
    f.host = e->host;
    f.rank = e->rank;
    f.id = e->id;
    f.eid = e->eid;
    f.cause = e->cause;
    f.gpu_hours = (double)NAN;
    fn(ctx, &f);
}

/* Since when, at which step, and where the members are. */
static void sum_up(const struct ep_silence *s, struct member *const *v,
                   size_t n, struct episode *e)
{
    long host = v[0]->host;

    e->since = (double)INFINITY;
    e->step = -1;
    for (size_t i = 0; i < n; i++) {
        const struct member *m = v[i];

        e->since = fmin(e->since, m->moved);
        if (m->step >= 0 && (e->step < 0 || m->step < e->step))
            e->step = m->step;
        if (m->host != host)
            host = -1;
    }
    if (host >= 0)
        e->host = ep_strdup(ep_intern_name(s->host_names, (size_t)host));
}

void ep_silence_report(struct ep_silence *s, struct job *job,
                       struct member *const *v, size_t n,
                       const struct report *r)
{
    struct episode *e = ep_calloc(1, sizeof *e);
    struct ep_finding f = {.kind = EP_FINDING_MISSING, .p = r->p};

    e->scope = r->scope;
    e->cause = r->cause;
    e->p = r->p;
    e->rank = r->scope == EP_SCOPE_RANK ? v[0]->rank : -1;
    e->id = r->id ? ep_strdup(r->id) : NULL;
    e->n = n;
    e->open = true;
    sum_up(s, v, n, e);
    e->eid = new_eid(s, job, e);
    e->factor = r->usual > 0 ? fmin((s->now - e->since) / r->usual, 1e9) : 1;
    e->factor = fmax(e->factor, 1);
    for (size_t i = 0; i < n; i++)
        v[i]->ep = e;
    job->episodes = ep_grow(job->episodes, &job->episodes_cap,
                            job->nepisodes + 1, sizeof(void *));
    job->episodes[job->nepisodes++] = e;
    ep_buf_reset(&s->text);
    r->tell(s, job, v, n);
    ep_buf_adds(&s->text, "; silent for ");
    ep_num_format_duration(&s->text, s->now - e->since);
    if (r->usual > 0) {
        ep_buf_adds(&s->text, job->steps ? ", usual step "
                                         : ", usual interval of calls ");
        ep_num_format_duration(&s->text, r->usual);
    }
    f.ts = fmax(s->now, e->since);
    f.since = e->since;
    f.step = e->step;
    f.factor = e->factor;
    f.evidence = s->text.ptr;
    give(job, e, &f, s->fn, s->ctx);
}

static int by_host(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a;
    const struct member *y = *(struct member *const *)b;

    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Ranks of the job that are on a host. */
static size_t on_host(const struct job *job, long host)
{
    size_t n = 0;

    for (size_t i = 0; i < job->n; i++)
        n += job->v[i]->host == host && job->v[i]->epoch == job->epoch;
    return n;
}

/* Do all say the same place, of those kinds? Its number, or -1. */
static int64_t common(struct member *const *v, size_t n, bool stage)
{
    int64_t same = -1;

    for (size_t i = 0; i < n; i++) {
        const struct ep_place *p = &v[i]->place;
        int64_t at = !p->known ? -1 : stage ? p->pp : p->dp;

        if (at < 0 || (i && at != same))
            return -1;
        same = at;
    }
    return same;
}

/* Many at once: their stage, their replica, or the job. */
static void report_many(struct ep_silence *s, struct job *job,
                        struct member *const *v, size_t n,
                        const struct report *r)
{
    struct report all = *r;
    int64_t pp = common(v, n, true), dp = common(v, n, false);
    char id[32];

    all.scope = EP_SCOPE_JOB;
    all.id = NULL;
    if (pp >= 0 || dp >= 0) {
        all.scope = pp >= 0 ? EP_SCOPE_STAGE : EP_SCOPE_GROUP;
        (void)snprintf(id, sizeof id, pp >= 0 ? "pp=%lld" : "dp=%lld",
                       (long long)(pp >= 0 ? pp : dp));
        all.id = id;
    }
    ep_silence_report(s, job, v, n, &all);
}

/* The members of a host, or one member. */
static void report_unit(struct ep_silence *s, struct job *job,
                        struct member **v, size_t n, const struct report *r)
{
    struct report one = *r;
    struct ep_buf id;

    ep_buf_init(&id);
    if (n > 1) {
        ep_buf_adds(&id, "host=");
        ep_buf_adds(&id, ep_intern_name(s->host_names, (size_t)v[0]->host));
        one.scope = EP_SCOPE_HOST;
        one.id = id.ptr;
    } else {
        one.scope = v[0]->worker      ? EP_SCOPE_WORKER
                    : v[0]->rank >= 0 ? EP_SCOPE_RANK
                                      : EP_SCOPE_JOB;
        one.id = v[0]->id;
    }
    ep_silence_report(s, job, v, n, &one);
    ep_buf_free(&id);
}

/* How many of v[0..n), sorted by hosts, come first and go together. */
static size_t unit(const struct job *job, struct member *const *v, size_t n)
{
    size_t k = 1;

    while (k < n && v[k]->host == v[0]->host)
        k++;
    /* one host of several, and all of it */
    return v[0]->host >= 0 && !v[0]->worker && k > 1 &&
                   on_host(job, v[0]->host) == k && k < job->n
               ? k
               : 1;
}

void ep_silence_report_each(struct ep_silence *s, struct job *job,
                            struct member **v, size_t n, const struct report *r)
{
    size_t units = 0;

    qsort(v, n, sizeof(void *), by_host);
    for (size_t i = 0; i < n; i += unit(job, v + i, n - i))
        units++;
    if (units > NAMED_MOST) {
        report_many(s, job, v, n, r);
        return;
    }
    for (size_t i = 0, k; i < n; i += k) {
        k = unit(job, v + i, n - i);
        report_unit(s, job, v + i, k, r);
    }
}

/* ==== The end of an episode ==== */

static void close_episode(struct ep_silence *s, struct job *job,
                          struct episode *e, double ts, const char *why)
{
    struct ep_finding f = {
        .kind = EP_FINDING_RELIEF,
        .ts = fmax(s->now, ts),
        .since = ts,
        .step = -1,
        .factor = 1,
        .p = 1,
    };

    e->open = false;
    ep_buf_reset(&s->text);
    ep_buf_addf(&s->text, "%s after ", why);
    ep_num_format_duration(&s->text, fmax(0, ts - e->since));
    f.evidence = s->text.ptr;
    give(job, e, &f, s->fn, s->ctx);
}

/* What is over is not needed any more, once nobody points to it. */
static void drop(struct job *job, const struct episode *e)
{
    for (size_t i = 0; i < job->n; i++)
        if (job->v[i]->ep == e)
            job->v[i]->ep = NULL;
    for (size_t i = 0; i < job->nepisodes; i++)
        if (job->episodes[i] == e) {
            free_episode(job->episodes[i]);
            job->episodes[i] = job->episodes[--job->nepisodes];
            return;
        }
}

void ep_silence_back(struct ep_silence *s, struct job *job, struct member *m)
{
    struct episode *e = m->ep;

    m->ep = NULL;
    if (2 * ++e->back <= e->n)
        return;
    close_episode(s, job, e, fmax(m->moved, e->since), "goes on");
    drop(job, e);
}

void ep_silence_end_all(struct ep_silence *s, struct job *job, double ts)
{
    for (size_t i = 0; i < job->n; i++)
        job->v[i]->ep = NULL;
    for (size_t i = 0; i < job->nepisodes; i++) {
        close_episode(s, job, job->episodes[i], ts, "the job was restarted");
        free_episode(job->episodes[i]);
    }
    job->nepisodes = 0;
}

void ep_silence_open(const struct ep_silence *s,
                     void (*fn)(void *ctx, const struct ep_finding *),
                     void *ctx)
{
    for (size_t i = 0; i < ep_intern_count(s->job_names); i++)
        for (size_t k = 0; k < s->jobs[i]->nepisodes; k++) {
            const struct episode *e = s->jobs[i]->episodes[k];
            const struct ep_finding f = {
                .kind = EP_FINDING_MISSING,
                .ts = (double)NAN,
                .since = e->since,
                .step = e->step,
                .factor = e->factor,
                .p = e->p,
            };

            give(s->jobs[i], e, &f, fn, ctx);
        }
}

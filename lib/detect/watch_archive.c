/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_archive.c - a watch in bytes; see base/archive.h.
 *
 * Series refer to their job, and jobs to their series: jobs come first, by name,
 * then series, then what jobs hold: incident_archive.c. Names of series and devices are saved as the
 * sets have them; what only makes things faster (the last job, recent ranks,
 * room for values) is not.
 */
#include "config.h"

#include "detect/incident.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MAX (INT64_C(1) << 53)
#define WORD_BYTES 200 /* of a cause, or a doubt */
#define UNJUDGED_MAX 16

/* ==== Small things ==== */

void ep_watch_archive_place(struct ep_archive *a, struct ep_place *p)
{
    p->known = ep_archive_bool(a, p->known);
    if (!p->known)
        return;
    p->dp = ep_archive_i64(a, p->dp, -1, INT64_MAX);
    p->pp = ep_archive_i64(a, p->pp, -1, INT64_MAX);
    p->tp = ep_archive_i64(a, p->tp, -1, INT64_MAX);
}

const char *ep_watch_archive_word(struct ep_archive *a, struct ep_watch *w,
                                  const char *cause)
{
    struct ep_span s = {cause, a->saving && cause ? strlen(cause) : 0};
    char text[WORD_BYTES + 1];
    long i;

    if (!ep_archive_bool(a, cause != NULL))
        return NULL;
    s = ep_archive_span(a, s, WORD_BYTES);
    if (a->saving)
        return cause;
    (void)memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    i = ep_intern_add(w->words, (struct ep_span){text, strlen(text)}, SIZE_MAX);
    return i < 0 ? "" : ep_intern_name(w->words, (size_t)i);
}

void ep_watch_archive_episode(struct ep_archive *a, struct ep_watch *w,
                              struct episode *e)
{
    e->open = ep_archive_bool(a, e->open);
    e->eid = ep_archive_string(a, e->eid, EP_WATCH_EID_BYTES);
    e->cause = ep_watch_archive_word(a, w, e->cause);
    e->since = ep_archive_finite(a, e->since);
    e->factor = ep_archive_finite(a, e->factor);
    e->p = ep_archive_finite(a, e->p);
    e->excess = ep_archive_f64(a, e->excess);
    e->step = ep_archive_i64(a, e->step, -1, STEP_MAX);
    ep_archive_require(a, !e->open || (e->eid && e->cause && e->factor > 0),
                       "an open episode has no name, cause or factor");
}

/* What a test says: it has no name, and most say nothing. */
static void test(struct ep_archive *a, struct episode *e)
{
    bool said = e->open || e->since != 0 || e->factor != 0 || e->p != 0 ||
                e->excess != 0 || e->step != 0;

    if (!ep_archive_bool(a, said))
        return;
    e->open = ep_archive_bool(a, e->open);
    e->since = ep_archive_f64(a, e->since);
    e->factor = ep_archive_f64(a, e->factor);
    e->p = ep_archive_f64(a, e->p);
    e->excess = ep_archive_f64(a, e->excess);
    e->step = ep_archive_i64(a, e->step, -1, STEP_MAX);
}

void ep_watch_archive_change(struct ep_archive *a, struct ep_change *c)
{
    c->kind = (enum ep_change_kind)ep_archive_u64(a, c->kind, EP_CHANGE_SPIKE);
    c->since_ts = ep_archive_finite(a, c->since_ts);
    c->since_step = ep_archive_i64(a, c->since_step, -1, STEP_MAX);
    c->factor = ep_archive_f64(a, c->factor);
    c->before = ep_archive_f64(a, c->before);
    c->after = ep_archive_f64(a, c->after);
    c->p = ep_archive_f64(a, c->p);
    c->worsening = ep_archive_bool(a, c->worsening);
    c->partial = ep_archive_bool(a, c->partial);
    c->episode = (unsigned)ep_archive_u64(a, c->episode, UINT32_MAX);
}

static void samples(struct ep_archive *a, struct sample *v, int n)
{
    for (int i = 0; i < n; i++) {
        v[i].step = ep_archive_i64(a, v[i].step, -1, STEP_MAX);
        v[i].ts = ep_archive_finite(a, v[i].ts);
        v[i].value = ep_archive_finite(a, v[i].value);
        if (ep_archive_bool(a, v[i].work != 0))
            v[i].work = ep_archive_finite(a, v[i].work);
    }
}

/* ==== Series ==== */

/* Its last samples. Room for them is there as soon as there is a pace. */
static void ring(struct ep_archive *a, const struct ep_watch *w,
                 struct series *s)
{
    int window = (int)w->config.window;

    s->kept = (int)ep_archive_u64(a, (uint64_t)s->kept, (uint64_t)window);
    s->at = (int)ep_archive_u64(a, (uint64_t)s->at, (uint64_t)window - 1);
    ep_archive_require(a, s->kept == window || s->at == s->kept,
                       "samples are not where they should be");
    if (!a->saving && (s->pace || s->kept))
        s->ring = ep_calloc((size_t)window, sizeof *s->ring);
    samples(a, s->ring, ep_archive_ok(a) ? s->kept : 0);
}

static void pace(struct ep_archive *a, const struct ep_watch *w,
                 struct series *s)
{
    if (ep_archive_bool(a, s->pace != NULL)) {
        if (!a->saving)
            s->pace = ep_changepoint_new(&w->config.pace, NULL);
        ep_changepoint_archive(a, s->pace);
    }
    ring(a, w, s);
}

/* What is known of the work in its values. */
static void its_work(struct ep_archive *a, struct series *s)
{
    ep_work_slope_archive(a, &s->slope);
    if (ep_archive_bool(a, s->work != NULL)) {
        if (!a->saving)
            s->work = ep_calloc(1, sizeof *s->work);
        ep_work_archive(a, s->work);
    }
    s->phase = ep_archive_i64(a, s->phase, INT64_MIN, INT64_MAX);
    s->job_phase = ep_archive_i64(a, s->job_phase, 0, INT64_MAX / 2);
    s->local = ep_archive_i64(a, s->local, 0, EP_WATCH_MAX_SERIES);
    s->on_host = ep_archive_i64(a, s->on_host, 0, EP_WATCH_MAX_SERIES);
}

static void comparison(struct ep_archive *a, struct series *s)
{
    s->missed = (int)ep_archive_u64(a, (uint64_t)s->missed, 2);
    s->hits = ep_archive_i64(a, s->hits, 0, INT64_MAX / 2);
    s->clean = ep_archive_i64(a, s->clean, 0, INT64_MAX / 2);
    s->turn_ts = ep_archive_finite(a, s->turn_ts);
    s->turn_step = ep_archive_i64(a, s->turn_step, -1, STEP_MAX);
    test(a, &s->peer);
}

static void series(struct ep_archive *a, struct ep_watch *w, struct series *s)
{
    s->host = ep_archive_string(a, s->host, EP_WATCH_NAME_BYTES);
    ep_watch_archive_place(a, &s->place);
    s->basis = (enum basis)ep_archive_u64(a, s->basis, BASIS_DUR);
    s->other = (int)ep_archive_u64(a, (uint64_t)s->other, EP_WATCH_OTHER);
    s->last_ts = ep_archive_f64(a, s->last_ts);
    ep_archive_require(a, s->last_ts < (double)INFINITY, "a time is not one");
    s->last_step = ep_archive_i64(a, s->last_step, -1, STEP_MAX);
    s->unjudged = (int)ep_archive_u64(a, (uint64_t)s->unjudged, UNJUDGED_MAX);
    s->muted = (unsigned)ep_archive_u64(a, s->muted, UINT32_MAX);
    if (ep_archive_bool(a, s->shared != 0))
        s->shared = ep_archive_f64(a, s->shared);
    if (ep_archive_bool(a, s->handicap != 1))
        s->handicap = ep_archive_f64(a, s->handicap);
    pace(a, w, s);
    test(a, &s->ep);
    comparison(a, s);
    its_work(a, s);
    ep_archive_require(a, s->pace || !s->ep.open,
                       "an episode is of a series without a pace");
    if (a->saving)
        return;
    s->resumed = true;
    s->old_ts = s->last_ts;
    s->old_step = s->last_step;
}

static bool is_scope_of_series(enum ep_scope scope, int64_t rank)
{
    return rank >= 0 ? scope == EP_SCOPE_RANK
                     : scope == EP_SCOPE_JOB || scope == EP_SCOPE_WORKER;
}

/* The i-th series, by its name in the set "JOB/ID"; NULL if that is none. */
static struct series *add_series(struct ep_archive *a, struct ep_watch *w,
                                 size_t job, struct ep_span key, size_t i)
{
    size_t prefix;
    struct series *s;

    ep_buf_reset(&w->key);
    ep_buf_addf(&w->key, "%zu/", job);
    prefix = w->key.len;
    ep_buf_add(&w->key, key.ptr, key.len);
    ep_archive_require(a,
                       ep_intern_add(w->series_names,
                                     (struct ep_span){w->key.ptr, w->key.len},
                                     i + 1) == (long)i,
                       "two series have one name");
    if (!ep_archive_ok(a))
        return NULL;
    s = ep_calloc(1, sizeof *s);
    s->job = w->jobs[job];
    s->handicap = 1;
    s->id = ep_strdup(w->key.ptr + prefix);
    w->series = ep_grow(w->series, &w->series_cap, i + 1, sizeof(void *));
    w->series[i] = s;
    w->total++;
    return s;
}

static void all_series(struct ep_archive *a, struct ep_watch *w)
{
    size_t jobs = ep_intern_count(w->job_names);
    size_t n = ep_archive_size(a, ep_intern_count(w->series_names),
                               EP_WATCH_MAX_SERIES, 50);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct series *s = a->saving ? w->series[i] : NULL;
        size_t job = (size_t)ep_archive_u64(a, s ? s->job->number : 0,
                                            jobs ? jobs - 1 : 0);
        struct ep_span id = {"", 0};

        ep_archive_require(a, jobs > 0, "a series is of no job");
        if (s) {
            id = ep_intern_span(w->series_names, i);
            while (*id.ptr != '/') {
                id.ptr++;
                id.len--;
            }
            id = (struct ep_span){id.ptr + 1, id.len - 1};
        }
        id = ep_archive_span(a, id, EP_WATCH_NAME_BYTES);
        if (!s && ep_archive_ok(a))
            s = add_series(a, w, job, id, i);
        if (!s)
            return;
        s->scope = (enum ep_scope)ep_archive_u64(a, s->scope, EP_SCOPE_STAGE);
        s->rank = ep_archive_i64(a, s->rank, -1, INT64_MAX);
        ep_archive_require(a, is_scope_of_series(s->scope, s->rank),
                           "a series is of no kind");
        series(a, w, s);
        s->number = i;
    }
}

/* ==== Jobs ==== */

struct series *ep_watch_archive_series(struct ep_archive *a, struct ep_watch *w,
                                       const struct job *job,
                                       const struct series *of)
{
    size_t n = ep_intern_count(w->series_names);
    size_t at = of ? of->number + 1 : 0;
    struct series *s;

    at = (size_t)ep_archive_u64(a, at, n);
    if (!at || !ep_archive_ok(a))
        return NULL;
    s = w->series[at - 1];
    ep_archive_require(a, s->job == job, "a series is of another job");
    return ep_archive_ok(a) ? s : NULL;
}

static void members(struct ep_archive *a, struct ep_watch *w, struct job *job,
                    struct members *m, enum ep_scope scope)
{
    size_t n = ep_archive_size(a, m->n, EP_WATCH_MAX_SERIES, 1);
    int64_t steps;

    m->steps = ep_archive_i64(a, m->steps, 0, INT64_MAX / 2);
    steps = m->steps < EARLY_STEPS ? m->steps : EARLY_STEPS;
    for (int64_t i = 0; i < steps; i++)
        m->closed[i] = ep_archive_i64(a, m->closed[i], -1, STEP_MAX);
    m->since = ep_archive_i64(a, m->since, 0, INT64_MAX / 2);
    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct series *s =
            ep_watch_archive_series(a, w, job, a->saving ? m->v[i] : NULL);

        if (a->saving)
            continue;
        ep_archive_require(a, s && s->scope == scope && !s->member,
                           "a member of a job is none, or twice");
        if (!ep_archive_ok(a))
            return;
        s->member = true;
        m->v = ep_grow(m->v, &m->cap, i + 1, sizeof(void *));
        m->v[i] = s;
        s->index = i;
        m->n = i + 1;
    }
    if (a->saving)
        return;
    w->work = ep_grow(w->work, &w->work_cap, m->n, sizeof *w->work);
    w->survey = ep_grow(w->survey, &w->survey_cap, m->n, sizeof *w->survey);
}

/* The work of an open step. There is room for two more (watch_work.c). */
static void load(struct ep_archive *a, struct load *l)
{
    size_t n = ep_archive_size(a, l->n, (size_t)EP_WATCH_MAX_SERIES * 16, 9);

    l->moved = (size_t)ep_archive_u64(a, l->moved, UINT32_MAX);
    l->most = ep_archive_finite(a, l->most);
    if (!a->saving) {
        l->all = ep_grow(l->all, &l->cap, n + 2, sizeof *l->all);
        l->mb = ep_grow(l->mb, &l->mb_cap, n + 2, sizeof *l->mb);
    }
    for (size_t i = 0; i < n; i++) {
        l->all[i] = ep_archive_finite(a, l->all[i]);
        if (ep_archive_bool(a, !isnan(l->mb[i])))
            l->mb[i] = ep_archive_f64(a, l->mb[i]);
        else
            l->mb[i] = (double)NAN;
    }
    l->n = n;
}

static void open_steps(struct ep_archive *a, struct job *job)
{
    for (int i = 0; i < OPEN_STEPS; i++) {
        struct open_step *o = &job->open[i];

        o->n = ep_archive_i64(a, o->n, 0, EP_WATCH_MAX_SERIES);
        if (!o->n)
            continue;
        o->step = ep_archive_i64(a, o->step, 0, STEP_MAX);
        o->ts = ep_archive_finite(a, o->ts);
        o->dur = ep_archive_finite(a, o->dur);
        o->end = ep_archive_finite(a, o->end);
        ep_archive_require(a, o->dur > 0, "a step took no time");
        load(a, &job->load[i]);
    }
}

static void job(struct ep_archive *a, struct ep_watch *w, struct job *job)
{
    struct series *own = ep_watch_archive_series(a, w, job, job->own);

    if (!a->saving)
        job->own = own;
    ep_archive_require(a, !own || own->scope == EP_SCOPE_JOB,
                       "the series of a job is of a rank");
    members(a, w, job, &job->ranks, EP_SCOPE_RANK);
    members(a, w, job, &job->workers, EP_SCOPE_WORKER);
    ep_archive_require(a, own || !job->ranks.n, "a job has no series");
    open_steps(a, job);
    job->told = ep_archive_bool(a, job->told);
    job->closed = ep_archive_i64(a, job->closed, -1, STEP_MAX);
    job->restart_ts = ep_archive_f64(a, job->restart_ts);
    job->first_step = ep_archive_i64(a, job->first_step, -1, STEP_MAX);
    ep_work_archive(a, &job->work);
    job->unit = (uint32_t)ep_archive_u64(a, job->unit, 3);
    job->phase = ep_archive_i64(a, job->phase, 0, INT64_MAX / 2);
    job->placed = (size_t)ep_archive_u64(a, job->placed, EP_WATCH_MAX_SERIES);
    job->placed_ts = ep_archive_f64(a, job->placed_ts);
    ep_incident_archive(a, w, job);
}

/* Is the next job of that name new, and so the i-th? */
static bool is_job(struct ep_watch *w, struct ep_span name, size_t i)
{
    const struct job *job = ep_watch_job(w, name, NULL);

    return job && job->number == i;
}

static void job_names(struct ep_archive *a, struct ep_watch *w)
{
    size_t n = ep_archive_size(a, ep_intern_count(w->job_names),
                               EP_WATCH_MAX_SERIES, 20);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span name = {"", 0};

        if (a->saving)
            name = ep_intern_span(w->job_names, i);
        name = ep_archive_span(a, name, EP_WATCH_NAME_BYTES);
        ep_archive_require(a, a->saving || is_job(w, name, i),
                           "two jobs have one name");
    }
}

/* ==== All of it ==== */

static void used_names(struct ep_archive *a, struct ep_watch *w)
{
    size_t n = ep_archive_size(a, ep_intern_count(w->episode_names),
                               UINT32_MAX / 2, 11);

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_span name = {"", 0};
        struct used_name *used;

        if (a->saving)
            name = ep_intern_span(w->episode_names, i);
        name = ep_archive_span(a, name, EP_WATCH_EID_BYTES);
        if (!a->saving && ep_archive_ok(a)) {
            ep_archive_require(
                a, ep_intern_add(w->episode_names, name, i + 1) == (long)i,
                "two episodes have one name");
            w->used = ep_grow(w->used, &w->used_cap, i + 1, sizeof *w->used);
            w->used[i] = (struct used_name){0, 0, 0};
        }
        if (!ep_archive_ok(a))
            return;
        used = &w->used[i];
        used->step = ep_archive_i64(a, used->step, -1, STEP_MAX);
        used->n = ep_archive_i64(a, used->n, 0, INT64_MAX / 2);
        used->since = ep_archive_f64(a, used->since);
    }
}

/* What changed it would not be what was saved. */
static void same(struct ep_archive *a, double v)
{
    double saved = ep_archive_f64(a, v);

    ep_archive_require(a, saved == v, "it is of another configuration");
}

static void config(struct ep_archive *a, const struct ep_watch_config *c)
{
    const struct ep_changepoint_config *p = &c->pace;

    same(a, p->hazard);
    same(a, p->propose);
    same(a, p->min_change);
    same(a, p->z);
    same(a, p->noise_floor);
    same(a, p->spike_factor);
    same(a, p->lag);
    same(a, p->confirm);
    same(a, p->settle);
    same(a, p->window);
    same(a, c->peers.min_change);
    same(a, c->peers.k);
    same(a, c->peers.noise_floor);
    same(a, (double)c->window);
    same(a, (double)c->persist);
    same(a, c->silence.floor_s);
    same(a, c->silence.times);
    same(a, c->silence.pauses);
}

void ep_watch_archive(struct ep_archive *a, struct ep_watch *w)
{
    config(a, &w->config);
    job_names(a, w);
    all_series(a, w);
    for (size_t i = 0; i < ep_intern_count(w->job_names); i++)
        job(a, w, w->jobs[i]);
    used_names(a, w);
    ep_watch_archive_probes(a, w);
    ep_silence_archive(a, w->silence);
    ep_gauges_archive(a, w->gauges);
    ep_watch_archive_links(a, w);
    ep_archive_require(a, w->total <= EP_WATCH_MAX_SERIES,
                       "there are more series than there may be");
}

uint64_t ep_watch_known(const struct ep_watch *w)
{
    return w->known;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_incident.c - what was found in one step is judged together: reliefs
 * first, then what the ranks show, then what that leaves of the job's pace.
 */
#include "config.h"

#include "detect/incident.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Surveys of all ranks in one judgement, at most, and ranks that stand alone in
 * them. More suspicions than that, which no incident found so far explains,
 * have nothing in common.
 */
#define SURVEYS 32
#define ALONE 64

/* Of the job's own pace, its state. */
static void note_job(struct series *own, const struct ep_change *c)
{
    struct incidents *all = &own->job->incidents;

    if (c->kind == EP_CHANGE_SPIKE)
        return;
    if (c->kind == EP_CHANGE_RELIEF && !c->partial) {
        own->ep.open = false;
        all->slow_to = c->since_ts;
        return;
    }
    if (!own->ep.open) {
        all->slow_from = c->since_ts;
        all->slow_to = (double)INFINITY;
        own->ep.since = c->since_ts;
        own->ep.step = c->since_step;
    }
    own->ep.open = true;
    own->ep.factor = c->factor;
    own->ep.p = c->p;
}

void ep_incident_suspect(struct ep_watch *w, const struct suspicion *x)
{
    struct incidents *all = &x->s->job->incidents;

    if (x->s->scope == EP_SCOPE_JOB)
        note_job(x->s, &x->c);
    all->held =
        ep_grow(all->held, &all->held_cap, all->nheld + 1, sizeof *all->held);
    all->held[all->nheld++] = *x;
    /* workers do not wait for each other */
    if (x->s->scope == EP_SCOPE_WORKER)
        ep_incident_judge(w, x->s->job, INT64_MAX);
}

/* Of a kind the first, and of the onsets the largest. */
static int order(const struct suspicion *x)
{
    bool job = x->s->scope == EP_SCOPE_JOB;

    return x->c.kind == EP_CHANGE_RELIEF  ? (job ? 3 : 0)
           : x->c.kind == EP_CHANGE_SPIKE ? (job ? 5 : 1)
           : job                          ? 4
                                          : 2;
}

static int by_order(const void *a, const void *b)
{
    const struct suspicion *x = a, *y = b;
    int i = order(x), k = order(y);

    if (i != k)
        return i < k ? -1 : 1;
    if (i == 0 && x->c.since_step != y->c.since_step)
        return x->c.since_step > y->c.since_step ? -1 : 1;
    if (i != 0 && x->excess != y->excess)
        return x->excess > y->excess ? -1 : 1;
    return x->s->index < y->s->index ? -1 : x->s->index > y->s->index;
}

/* A survey, made when it is needed and as often as is allowed. */
struct survey {
    bool made;
    int left, alone;
    struct ep_change c;
    enum ground ground;
};

static const double *survey_for(struct ep_watch *w, struct survey *v,
                                const struct suspicion *x)
{
    if (x->s->scope != EP_SCOPE_RANK || v->alone >= ALONE)
        return NULL;
    if (v->made && v->c.since_step == x->c.since_step &&
        v->c.kind == x->c.kind && v->ground == x->ground &&
        !isnan(w->survey[x->s->index]))
        return w->survey;
    if (v->left == 0)
        return NULL;
    v->left--;
    v->made = true;
    v->c = x->c;
    v->ground = x->ground;
    (void)ep_incident_survey(w, x->s->job, x->s, &x->c, x->ground, w->survey);
    return w->survey;
}

/*
 * Slow steps of ranks that do not last: one report for what they share. Returns
 * what that is.
 */
static enum kin judge_spike(struct ep_watch *w, const struct suspicion *x,
                            const double *y)
{
    struct where where = {KIN_RANK, KIN_RANK, x->s};
    struct incident once = {.who = {.job = x->s->job, .rank = -1}};
    enum ep_scope scope;
    struct ep_buf id;
    struct ep_finding f = {
        .kind = EP_FINDING_SPIKE,
        .ts = x->now,
        .since = x->c.since_ts,
        .step = x->c.since_step,
        .factor = x->c.factor,
        .p = x->c.p,
        .gpu_hours = (double)NAN,
    };

    if (y && y[x->s->index] > 0)
        ep_incident_where(x->s->job, x->s, y, false, &where);
    ep_buf_init(&id);
    scope = ep_incident_name(where.kin, x->s, &id);
    ep_incident_set_who(&once, scope, id.ptr, x->s->host,
                        where.kin == KIN_RANK ? x->s->rank : -1);
    f.cause = ep_verdict_rank(w, x->s, &x->c);
    if (where.kin != KIN_RANK)
        ep_buf_addf(&w->text, " (%s)", x->s->id);
    f.evidence = w->text.ptr;
    ep_watch_report(w, &once.who, NULL, NULL, &f);
    x->s->job->incidents.spike_step = x->c.since_step;
    ep_buf_free(&id);
    free(once.who.id);
    free(once.who.host);
    return where.kin;
}

/* Is the rank in a set whose spike was told in this judgement? */
static bool is_told(const struct suspicion *told, size_t n,
                    const struct suspicion *x, const enum kin *kins)
{
    for (size_t i = 0; i < n; i++)
        if (kins[i] != KIN_RANK && ep_incident_akin(kins[i], told[i].s, x->s))
            return true;
    return false;
}

static bool stands_alone(const struct series *s)
{
    return s->links && s->links->in->kin == KIN_RANK;
}

static void judge_ranks(struct ep_watch *w, struct suspicion *v, size_t n)
{
    struct survey survey = {.left = SURVEYS};
    struct suspicion told[SURVEYS];
    enum kin kins[SURVEYS];
    size_t ntold = 0;

    for (size_t i = 0; i < n; i++) {
        const struct suspicion *x = &v[i];

        if (x->c.kind == EP_CHANGE_SPIKE) {
            enum kin kin;

            if (is_told(told, ntold, x, kins))
                continue;
            kin = judge_spike(w, x, survey_for(w, &survey, x));
            survey.alone += kin == KIN_RANK;
            if (ntold < SURVEYS && kin != KIN_RANK) {
                told[ntold] = *x;
                kins[ntold++] = kin;
            }
        } else if (!ep_incident_absorb(w, x)) {
            ep_incident_place(w, x, survey_for(w, &survey, x));
            survey.alone += stands_alone(x->s);
        }
    }
}

void ep_incident_judge(struct ep_watch *w, struct job *job, int64_t step)
{
    struct incidents *all = &job->incidents;
    struct suspicion *v;
    size_t n = 0, left = 0, i = 0, first;

    if (!all->nheld)
        return;
    v = ep_calloc(all->nheld, sizeof *v);
    for (size_t k = 0; k < all->nheld; k++)
        if (all->held[k].step <= step)
            v[n++] = all->held[k];
        else
            all->held[left++] = all->held[k];
    all->nheld = left;
    all->stamp++;
    qsort(v, n, sizeof *v, by_order);
    for (; i < n && order(&v[i]) == 0; i++)
        ep_incident_relieve(w, &v[i]);
    for (first = i; i < n && order(&v[i]) < 3;)
        i++;
    judge_ranks(w, v + first, i - first);
    for (; i < n; i++)
        ep_incident_judge_job(w, job, &v[i]);
    free(v);
}

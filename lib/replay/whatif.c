/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.c - see whatif.h. */
#include "config.h"

#include "replay/whatif.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double mean(const double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

static void alloc_value(struct ep_whatif_value *v, size_t steps)
{
    v->all = NAN;
    v->step = ep_calloc(steps, sizeof *v->step);
    for (size_t i = 0; i < steps; i++)
        v->step[i] = NAN;
}

static struct ep_whatif_value *alloc_values(size_t n, size_t steps)
{
    struct ep_whatif_value *v = ep_calloc(n, sizeof *v);

    for (size_t i = 0; i < n; i++)
        alloc_value(&v[i], steps);
    return v;
}

/* While the replays run. */
struct runner {
    struct ep_whatif *w;
    const struct ep_graph *g;
    const struct ep_ops *ops;
    const struct ep_trace *t;
    uint8_t *take; /* [n] */
    struct ep_replay r;
};

static void set_all(struct runner *x, uint8_t take)
{
    memset(x->take, take, x->g->n);
}

/* Step times of the replay, and their mean. */
static void run_time(struct runner *x, struct ep_whatif_value *v)
{
    ep_replay_run(&x->r, v->step);
    v->all = mean(v->step, x->w->steps);
}

/* As slowdowns: over the ideal. */
static void run_slowdown(struct runner *x, struct ep_whatif_value *v)
{
    run_time(x, v);
    v->all /= x->w->ideal;
    for (size_t s = 0; s < x->w->steps; s++)
        v->step[s] /= x->w->ideal;
}

static void run_classes(struct runner *x)
{
    for (size_t c = 0; c < x->w->classes; c++) {
        bool any = false;

        for (size_t v = 0; v < x->g->n; v++) {
            bool in = ep_ops_class(x->ops, (size_t)x->g->op[v].type) == c;

            any = any || (in && !x->g->skip[v]);
            x->take[v] = in ? EP_REPLAY_OWN : EP_REPLAY_IDEAL;
        }
        if (any)
            run_slowdown(x, &x->w->cls[c]);
    }
    for (size_t v = 0; v < x->g->n; v++)
        x->take[v] =
            ep_op_is_comm(x->g->op[v].role) ? EP_REPLAY_OWN : EP_REPLAY_IDEAL;
    run_slowdown(x, &x->w->comm);
}

static void run_stages(struct runner *x)
{
    for (size_t p = 0; p < x->w->pp; p++) {
        for (size_t v = 0; v < x->g->n; v++)
            x->take[v] =
                x->g->op[v].pp == (int32_t)p ? EP_REPLAY_OWN : EP_REPLAY_IDEAL;
        run_slowdown(x, &x->w->of_pp[p]);
    }
}

static void run_ranks(struct runner *x)
{
    struct ep_whatif *w = x->w;
    double *time = ep_calloc(w->steps * w->dp, sizeof *time);

    ep_replay_each_dp(&x->r, time);
    for (size_t d = 0; d < w->dp; d++) {
        for (size_t s = 0; s < w->steps; s++)
            w->of_dp[d].step[s] = time[s * w->dp + d] / w->ideal;
        w->of_dp[d].all = mean(w->of_dp[d].step, w->steps);
    }
    free(time);
}

double ep_whatif_worker(const struct ep_whatif *w, size_t dp, size_t pp)
{
    return fmin(w->of_dp[dp].all, w->of_pp[pp].all);
}

double ep_whatif_off(const struct ep_whatif *w)
{
    return w->delayed.all / w->traced.all - 1;
}

/* A worker and its score, to be sorted. */
struct scored {
    double score;
    uint32_t worker;
};

static int compare_scores(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->worker > y->worker) - (x->worker < y->worker);
}

static void rank_workers(struct ep_whatif *w)
{
    size_t n = w->dp * w->pp;
    struct scored *s = ep_calloc(n, sizeof *s);

    for (size_t i = 0; i < n; i++) {
        s[i].worker = (uint32_t)i;
        s[i].score = ep_whatif_worker(w, i / w->pp, i % w->pp);
    }
    qsort(s, n, sizeof *s, compare_scores);
    w->worker = ep_calloc(n, sizeof *w->worker);
    for (size_t i = 0; i < n; i++)
        w->worker[i] = s[i].worker;
    w->nworkers = (n * 3 + 99) / 100; /* EP_WHATIF_SLOWEST, rounded up */
    free(s);
}

/* What of the time lost comes back when some is idealised. */
static void run_share(struct runner *x, struct ep_whatif_value *v)
{
    const struct ep_whatif *w = x->w;
    double least = 1e-12 * w->ideal; /* what is lost is nothing */

    run_time(x, v);
    v->all = w->time.all - w->ideal > least
                 ? (w->time.all - v->all) / (w->time.all - w->ideal)
                 : NAN;
    for (size_t s = 0; s < w->steps; s++)
        v->step[s] =
            fabs(w->time.step[s] - w->ideal) > least
                ? (w->time.step[s] - v->step[s]) / (w->time.step[s] - w->ideal)
                : NAN;
}

/* The n slowest workers idealised. */
static void run_workers(struct runner *x, size_t n, struct ep_whatif_value *v)
{
    const struct ep_whatif *w = x->w;
    bool *chosen = ep_calloc(w->pp * w->dp, sizeof *chosen);
    bool *touched = ep_calloc(w->pp, sizeof *touched);

    for (size_t i = 0; i < n; i++) {
        chosen[w->worker[i] % w->pp * w->dp + w->worker[i] / w->pp] = true;
        touched[w->worker[i] % w->pp] = true;
    }
    x->r.chosen = chosen;
    for (size_t i = 0; i < x->g->n; i++)
        x->take[i] = touched[x->g->op[i].pp] ? EP_REPLAY_MIXED : EP_REPLAY_OWN;
    run_share(x, v);
    free(chosen);
    free(touched);
}

static void run_remedies(struct runner *x)
{
    struct ep_whatif *w = x->w;

    run_workers(x, w->nworkers, &w->slowest);
    run_workers(x, 1, &w->worst);
    for (size_t v = 0; v < x->g->n; v++)
        x->take[v] = x->g->op[v].pp == (int32_t)(w->pp - 1) ? EP_REPLAY_IDEAL
                                                            : EP_REPLAY_OWN;
    run_share(x, &w->last_stage);
}

/* From the first start to the last end of each step. */
static void measure_traced(const struct ep_trace *t, struct ep_whatif_value *v)
{
    for (size_t s = 0; s < t->steps; s++)
        v->step[s] = 0;
    for (size_t i = 0; i < t->n; i++)
        for (size_t s = 0, l = i * t->lanes; s < t->steps; s++)
            for (size_t d = 0; d < t->dp; d++, l++)
                if (t->start[l] + t->dur[l] > v->step[s])
                    v->step[s] = t->start[l] + t->dur[l];
    v->all = mean(v->step, t->steps);
}

static void alloc_result(struct ep_whatif *w)
{
    w->cls = alloc_values(w->classes, w->steps);
    w->of_dp = alloc_values(w->dp, w->steps);
    w->of_pp = alloc_values(w->pp, w->steps);
    alloc_value(&w->time, w->steps);
    alloc_value(&w->traced, w->steps);
    alloc_value(&w->delayed, w->steps);
    alloc_value(&w->slowdown, w->steps);
    alloc_value(&w->comm, w->steps);
    alloc_value(&w->slowest, w->steps);
    alloc_value(&w->last_stage, w->steps);
    alloc_value(&w->worst, w->steps);
}

static double find_ideal(const struct ep_graph *g, const double *ideal)
{
    double *start = ep_calloc(g->n, sizeof *start);
    double *end = ep_calloc(g->n, sizeof *end);
    double time = ep_replay_ideal_step(g, ideal, start, end);

    free(start);
    free(end);
    return time;
}

void ep_whatif_run(struct ep_whatif *w, const struct ep_graph *g,
                   const struct ep_ops *ops, const struct ep_trace *t,
                   const double *cost, const double *ideal)
{
    struct runner x = {.w = w, .g = g, .ops = ops, .t = t};

    *w = (struct ep_whatif){.steps = t->steps,
                            .dp = t->dp,
                            .pp = t->pp,
                            .classes = ep_ops_classes(ops)};
    alloc_result(w);
    x.take = ep_calloc(g->n, sizeof *x.take);
    x.r = (struct ep_replay){.g = g,
                             .steps = t->steps,
                             .dp = t->dp,
                             .cost = cost,
                             .ideal = ideal,
                             .take = x.take};
    x.r.room = ep_realloc(NULL, ep_replay_room(&x.r), sizeof *x.r.room);
    w->ideal = find_ideal(g, ideal);
    set_all(&x, EP_REPLAY_OWN);
    run_time(&x, &w->time);
    for (size_t s = 0; s < w->steps; s++)
        w->slowdown.step[s] = w->time.step[s] / w->ideal;
    w->slowdown.all = w->time.all / w->ideal;
    measure_traced(t, &w->traced);
    w->launch = w->traced.all / w->time.all;
    x.r.delays = t;
    run_time(&x, &w->delayed);
    x.r.delays = NULL;
    run_classes(&x);
    run_stages(&x);
    run_ranks(&x);
    rank_workers(w);
    run_remedies(&x);
    w->correlation = ep_whatif_correlate(g, t->lanes, cost);
    free(x.r.room);
    free(x.take);
}

static void free_values(struct ep_whatif_value *v, size_t n)
{
    for (size_t i = 0; v && i < n; i++)
        free(v[i].step);
    free(v);
}

void ep_whatif_free(struct ep_whatif *w)
{
    free_values(w->cls, w->classes);
    free_values(w->of_dp, w->dp);
    free_values(w->of_pp, w->pp);
    free(w->time.step);
    free(w->traced.step);
    free(w->delayed.step);
    free(w->slowdown.step);
    free(w->comm.step);
    free(w->slowest.step);
    free(w->last_stage.step);
    free(w->worst.step);
    free(w->worker);
    *w = (struct ep_whatif){.steps = 0};
}

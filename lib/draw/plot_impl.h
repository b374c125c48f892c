/* SPDX-License-Identifier: Apache-2.0 */
/* plot_impl.h - what the files of plot.h share. */
#ifndef EP_DRAW_PLOT_IMPL_H
#define EP_DRAW_PLOT_IMPL_H

#include "base/intern.h"
#include "draw/curves.h"
#include "draw/plot.h"

#include <stddef.h>

/* Who something is of: a rank, a worker, a job; of a loss the split, too.
   Indices into names; -1 for none. */
struct who {
    int64_t job, worker, rank, split;
};

/* Who of a span. */
struct lane {
    int64_t job, dp, pp, tp, rank;
};

/* Distinct keys of fixed size, numbered as they come. */
struct keys {
    struct ep_intern *set;
    void *v; /* [n] of size bytes each */
    size_t n, cap, size;
};

/* A step, or a loss (busy: NaN, dur: its value). */
struct point {
    double ts, dur, busy;
    int64_t step;
    uint32_t who;
};

struct event {
    double since, factor;
    int64_t step, rank; /* rank: of the id, or -1 */
    char *label, *title;
    enum ep_mark_kind kind;
};

/* What whatif says of: a worker, a data-parallel rank, a stage. */
enum cost { COST_WORKER, COST_DP, COST_PP, COSTS };

struct worker {
    int64_t job, dp, pp; /* job: in names; -1: not known */
    double slowdown;
};

struct costs {
    struct worker *v;
    size_t n, cap;
};

struct link {
    uint32_t src, dst;
    double value;
};

struct span {
    double ts, dur;
    int64_t step, mb;
    uint32_t lane, op;
    bool ideal;
};

struct points {
    struct point *v;
    size_t n, cap;
    struct keys who;
    bool many_jobs;
};

struct ep_plots {
    unsigned wanted;
    uint64_t left_out;
    struct ep_intern *names; /* of jobs, workers, splits */
    struct points steps, losses;
    bool any_busy, any_rank; /* of steps */
    struct event *event;
    size_t events, event_cap;
    struct ep_intern *episodes; /* by job and eid */
    size_t *onset;              /* of each, which event */
    size_t onset_cap;
    struct costs cost[COSTS];
    double whole; /* slowdown of the whole job; NaN: not known */
    struct ep_intern *ends;
    struct link *link;
    size_t links, link_cap;
    struct keys lanes;
    struct ep_intern *ops;
    struct span *span;
    size_t spans, span_cap;
};

/* The number of a key, or -1 if there are EP_PLOT_NAMES already. */
long ep_plot_key(struct keys *k, const void *key);

/* A name of the input, escaped; of a long one the beginning and the end. */
void ep_plot_add_name(struct ep_buf *b, const char *name);

/* "rank 3", "lm, rank 3" if there are several jobs, "worker eu-1, valid". */
void ep_plot_add_who(struct ep_buf *b, const struct ep_plots *p,
                     const struct points *of, size_t who);

/* The numbers of all who, sorted by job, worker, rank, split; caller frees. */
uint32_t *ep_plot_sorted_who(const struct ep_plots *p, const struct points *of);

/* What is drawn of a step: busy, if it has it (and any has), else dur. */
double ep_plot_value(const struct ep_plots *p, const struct point *s);

typedef void ep_plot_draw_fn(struct ep_plots *p,
                             const struct ep_plot_choice *choice,
                             const struct ep_look *look, struct ep_buf *out);

ep_plot_draw_fn ep_plot_draw_heat, ep_plot_draw_ranks, ep_plot_draw_pace,
    ep_plot_draw_links, ep_plot_draw_loss;
int ep_plot_draw_timeline(struct ep_plots *p,
                          const struct ep_plot_choice *choice,
                          const struct ep_look *look, struct ep_buf *out,
                          struct ep_error *err) EP_MUST_USE;

/* ---- curves of points (plot_series.c) ---- */

struct series {
    double *x, *y, *step; /* [n] */
    size_t n;
    char *name;
    double score; /* the greatest are drawn, where there are too many */
    bool neutral, dashed;
    unsigned colour;
};

/*
 * The points of each who, sorted, as series; x is time or step. Caller frees
 * with ep_plot_series_free. value: y of a point. Cost: O(n log n).
 */
struct series *ep_plot_series(const struct ep_plots *p, const struct points *of,
                              bool by_step, size_t *n);
void ep_plot_series_free(struct series *s, size_t n);

/*
 * Draw series: all if there are fewer than EP_CURVES_MAX, else the span and the
 * median of all and, over them, those with the greatest score: one at least, up
 * to six, of the others those above 1.05 times the median score. whole: the
 * first one is the whole job, which is always drawn and not counted.
 */
void ep_plot_draw_series(struct ep_curves *c, struct series *s, size_t n,
                         bool whole, const struct ep_plot_choice *choice,
                         const struct ep_look *look, struct ep_buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.h - from what a program reads to a picture.
 *
 * A collector that is handed everything as it comes and keeps what the wanted
 * kinds of picture need: 40 bytes for each step, span and loss. Which picture
 * it is going to be can be left to what has come, see ep_plots_choose.
 *
 * Strings are copied; of those beyond EP_PLOT_NAME bytes, pictures show the
 * beginning and the end. Values beyond 1e300 count as 1e300; times beyond 1e15 s
 * as that. What is beyond the limits below is left out and counted.
 */
#ifndef EP_DRAW_PLOT_H
#define EP_DRAW_PLOT_H

#include "base/buf.h"
#include "base/err.h"
#include "draw/look.h"

#include <stdbool.h>
#include <stdint.h>

/* In the order in which they are chosen. */
enum ep_plot_kind {
    EP_PLOT_HEAT,     /* slowdown of each worker, dp by pp */
    EP_PLOT_RANKS,    /* time of each rank in each step */
    EP_PLOT_PACE,     /* time of steps, over time, with events */
    EP_PLOT_TIMELINE, /* operations of one step */
    EP_PLOT_LINKS,    /* bandwidth from each source to each destination */
    EP_PLOT_LOSS,     /* loss over time */
    EP_PLOT_KINDS
};

extern const char *const ep_plot_names[EP_PLOT_KINDS];

enum {
    EP_PLOT_NAME = 160,
    EP_PLOT_NAMES = 1 << 20, /* ranks, lanes, ends of links, at most */
    EP_PLOT_CELLS = 1 << 24, /* of a matrix */
    EP_PLOT_EVENTS = 1 << 16,
    EP_PLOT_MANY_RANKS = 16, /* above: ranks before pace */
};

struct ep_plots; /* opaque */

/* wanted: bit k for each kind that may be drawn. */
struct ep_plots *ep_plots_new(unsigned wanted);
void ep_plots_free(struct ep_plots *p); /* NULL allowed */

/* As in evenpace-record(5); numbers that are not known are -1 or NaN, strings
   empty. O(1) expected each. */
struct ep_plot_step {
    struct ep_span job, worker;
    int64_t rank, step;
    double ts, dur, busy;
};
void ep_plots_step(struct ep_plots *p, const struct ep_plot_step *s);

struct ep_plot_event {
    struct ep_span job, kind, scope, id, cause, eid;
    int64_t step;
    double since, factor;
};
/* An onset replaces one with the same job and eid: it knows better. */
void ep_plots_event(struct ep_plots *p, const struct ep_plot_event *e);

struct ep_plot_whatif {
    struct ep_span job, what, id;
    double slowdown;
};
void ep_plots_whatif(struct ep_plots *p, const struct ep_plot_whatif *w);

struct ep_plot_span {
    struct ep_span job, op;
    bool ideal; /* "what":"ideal" */
    int64_t rank, dp, pp, tp, step, mb;
    double ts, dur;
};
void ep_plots_span(struct ep_plots *p, const struct ep_plot_span *s);

struct ep_plot_link {
    struct ep_span src, dst;
    double value; /* B/s */
};
void ep_plots_link(struct ep_plots *p, const struct ep_plot_link *l);

struct ep_plot_loss {
    struct ep_span job, worker, split;
    int64_t rank, step;
    double ts, value;
};
void ep_plots_loss(struct ep_plots *p, const struct ep_plot_loss *l);

/* Which kinds can be drawn from what came (of the wanted): bit k for kind k. */
unsigned ep_plots_can(const struct ep_plots *p);

/*
 * The first that can be drawn, in the order of enum ep_plot_kind; -1 if none.
 * Ranks only if steps of more than EP_PLOT_MANY_RANKS ranks came, or if it
 * alone is wanted; else pace is before it.
 */
int ep_plots_choose(const struct ep_plots *p);

/* How many things were left out because of a limit. */
uint64_t ep_plots_left_out(const struct ep_plots *p);

struct ep_plot_choice {
    bool svg;     /* else text */
    bool by_step; /* pace and loss: over steps, not time */
    int64_t step; /* timeline: which one; -1: the longest */
};

/*
 * Append the picture. Errors: EP_EMISSING "no span of step N"; of kinds that
 * ep_plots_can does not have, too. Cost: O(n log n) in what the picture needs.
 */
int ep_plots_draw(struct ep_plots *p, enum ep_plot_kind kind,
                  const struct ep_plot_choice *choice,
                  const struct ep_look *look, struct ep_buf *out,
                  struct ep_error *err) EP_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - the operations of one training step: a lane for each data-
 * parallel rank and stage, computation above communication in it; the step as
 * it was above the same step without stragglers.
 *
 * Both panels have one scale of time, each from its own first start. If there
 * are more lanes than fit, those with the most computation are drawn, the
 * busiest first. Operations narrower than two units are drawn as units of the
 * kind that fills most of each, and so are all of a lane where they lie over
 * each other; a unit is half a pixel, or more if there would be too many pieces.
 */
#ifndef EP_DRAW_TIMELINE_H
#define EP_DRAW_TIMELINE_H

#include "base/buf.h"
#include "draw/look.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of operations; those from EP_OP_P2P on are communication. */
enum ep_op_kind {
    EP_OP_FORWARD,
    EP_OP_BACKWARD,
    EP_OP_OPTIMIZER,
    EP_OP_GC,
    EP_OP_OTHER,
    EP_OP_P2P,
    EP_OP_COLL,
    EP_OP_KINDS
};

/* By its name: forward-compute, backward-send, all_reduce, ... */
enum ep_op_kind ep_op_kind_of(const char *name);

struct ep_bar {
    double start, dur; /* s; start since whatever, the same for a panel */
    uint32_t lane, op; /* op: index of a name */
    int64_t mb;        /* -1: not known */
};

struct ep_timeline {
    const char *title, *summary;
    /* [2]: the step as it was, the ideal one; n may be 0 for one of them.
       Sorted by lane and start. */
    const struct ep_bar *bar[2];
    size_t n[2];
    size_t lanes; /* >= 1 */
    void (*lane_name)(const void *ctx, size_t lane, struct ep_buf *b);
    void (*op_name)(const void *ctx, uint32_t op, struct ep_buf *b);
    const unsigned char *op_kind; /* [ops] enum ep_op_kind */
    const void *ctx;
};

void ep_timeline_svg(const struct ep_timeline *t, const struct ep_look *look,
                     struct ep_buf *out);
void ep_timeline_text(const struct ep_timeline *t, const struct ep_look *look,
                      struct ep_buf *out);

/* ---- what both have in common ---- */

extern const char *const ep_op_kind_names[EP_OP_KINDS];

/* First start of each panel and the longer of both extents, in seconds. */
void ep_timeline_extent(const struct ep_timeline *t, double first[2],
                        double *extent);

/*
 * Which lanes are drawn: all in order if they fit in most, else the busiest
 * ones, in the computation of the first panel that has any.
 *
 * lane    [most] written
 * Returns how many. O(bars + lanes most).
 */
size_t ep_timeline_lanes(const struct ep_timeline *t, size_t most,
                         uint32_t *lane);

/* The bars of a lane in a panel: [*begin, *end). O(log n). */
void ep_timeline_bars(const struct ep_timeline *t, int panel, uint32_t lane,
                      size_t *begin, size_t *end);

/*
 * What fills n slots of equal length over [0, extent] in one lane: seconds of
 * each kind. Bars that are longer than longest are passed over.
 *
 * when    {first start, extent, longest}
 * slot    [n][EP_OP_KINDS] written
 * count   [n] bars that begin there; may be NULL
 * Cost: O(bars of the lane + n).
 */
void ep_timeline_slots(const struct ep_timeline *t, int panel, uint32_t lane,
                       const double when[3], size_t n, double *slot,
                       uint32_t *count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curves.h - values over time: pace of ranks, loss of workers.
 *
 * However many points a curve has, it is drawn from four per column of pixels,
 * so that no spike is lost (bin.h). It is broken where nothing is known for
 * long: ten times its usual distance, and a fiftieth of the picture.
 */
#ifndef EP_DRAW_CURVES_H
#define EP_DRAW_CURVES_H

#include "draw/axis.h"
#include "draw/look.h"

#include <stdbool.h>
#include <stddef.h>

enum { EP_CURVES_MAX = 9, EP_CURVES_MARKS = 200 };

struct ep_curve {
    const char *name;
    const double *x, *y; /* [n] x rising, |y| <= 1e300 */
    const double *step;  /* [n] for titles, or NULL */
    size_t n;
    bool neutral; /* black, and thick: the job */
    bool dashed;
    unsigned colour; /* otherwise; curves of one thing share it */
};

/* The span of many curves: least, middle and greatest in each column. */
struct ep_curve_band {
    const char *name, *middle;       /* of the span, of its middle */
    const double *x, *lo, *mid, *hi; /* [n] x rising */
    size_t n;                        /* 0: none */
};

enum ep_mark_kind { EP_MARK_ONSET, EP_MARK_RELIEF, EP_MARK_SPIKE };

struct ep_mark {
    double x;
    enum ep_mark_kind kind;
    const char *label; /* "rank=2 1.50x" */
    const char *title; /* all that is known of it */
};

struct ep_curves {
    const char *title, *summary;
    const char *x_is, *y_is; /* "time", "busy time" */
    const char *unit;        /* of y */
    enum ep_axis_kind x_kind;
    bool from_zero; /* y begins at 0, unless it needs a logarithm */
    const struct ep_curve *curve; /* [n], the most important first */
    size_t n;                     /* at most EP_CURVES_MAX */
    struct ep_curve_band band;
    const struct ep_mark *mark; /* [marks], likewise; the first ones have
                                   their labels before the others */
    size_t marks;               /* at most EP_CURVES_MARKS are drawn */
};

void ep_curves_svg(const struct ep_curves *c, const struct ep_look *look,
                   struct ep_buf *out);
void ep_curves_text(const struct ep_curves *c, const struct ep_look *look,
                    struct ep_buf *out);

/* ---- what both have in common ---- */

/*
 * The axes, with at most so many ticks on x and y. y is logarithmic if all values are above 0 and the greatest is,
 * with from_zero, 12 times the median of the curves (a checkpoint among
 * steps), else 30 times the least.
 * loose: y ends at a tick.
 */
void ep_curves_axes(const struct ep_curves *c, const int ticks[2], bool loose,
                    struct ep_axis *x, struct ep_axis *y);

/* Called for each point to be drawn, from left to right: a line to it, or
   (move) from it. */
typedef void ep_curve_pen(void *ctx, double x, double y, bool move);

/* The points of a curve, for so many columns. O(n + columns). */
void ep_curve_trace(const struct ep_curve *c, const struct ep_axis *x,
                    size_t columns, ep_curve_pen *pen, void *ctx);

#endif

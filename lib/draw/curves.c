/* SPDX-License-Identifier: Apache-2.0 */
/* curves.c - see curves.h: axes, and which points are drawn. */
#include "config.h"

#include "draw/curves.h"

#include "base/mem.h"
#include "base/stats.h"
#include "draw/bin.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLE ((size_t)1 << 16)

struct extent {
    double lo, hi;
};

static void include(struct extent *e, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        e->lo = fmin(e->lo, v[i]);
        e->hi = fmax(e->hi, v[i]);
    }
}

/* The median of a sample of all curves, or of the middle of the band. */
static double middle(const struct ep_curves *c)
{
    size_t all = c->band.n, m = 0, stride;
    double *v, med;

    for (size_t i = 0; i < c->n; i++)
        all += c->curve[i].n;
    stride = all / SAMPLE + 1;
    v = ep_calloc(all / stride + c->n + 2, sizeof *v);
    for (size_t i = 0; i < c->band.n; i += stride)
        v[m++] = c->band.mid[i];
    for (size_t i = 0; i < c->n && !c->band.n; i++)
        for (size_t k = 0; k < c->curve[i].n; k += stride)
            v[m++] = c->curve[i].y[k];
    med = ep_median(v, m);
    free(v);
    return med;
}

void ep_curves_axes(const struct ep_curves *c, const int ticks[2], bool loose,
                    struct ep_axis *x, struct ep_axis *y)
{
    struct extent ex = {(double)INFINITY, -(double)INFINITY}, ey = ex;
    enum ep_axis_kind kind = EP_AXIS_LINEAR;

    for (size_t i = 0; i < c->n; i++) {
        include(&ex, c->curve[i].x, c->curve[i].n);
        include(&ey, c->curve[i].y, c->curve[i].n);
    }
    include(&ex, c->band.x, c->band.n);
    include(&ey, c->band.lo, c->band.n);
    include(&ey, c->band.hi, c->band.n);
    if (!(ex.lo <= ex.hi))
        ex = ey = (struct extent){0, 1};
    if (ey.lo > 0 && ey.hi > (c->from_zero ? 12 * middle(c) : 30 * ey.lo))
        kind = EP_AXIS_LOG;
    else if (c->from_zero)
        ey.lo = fmin(ey.lo, 0);
    ep_axis_init(x, c->x_kind, ex.lo, ex.hi, ticks[0], "", false);
    ep_axis_init(y, kind, ey.lo, ey.hi, ticks[1], c->unit, loose);
}

/* The points of one column, in the order of x. */
static void trace_column(const struct ep_curve *c, const struct ep_bin_m4 *col,
                         bool move, ep_curve_pen *pen, void *ctx)
{
    size_t lo = col->min < col->max ? col->min : col->max;
    size_t hi = col->min < col->max ? col->max : col->min;

    pen(ctx, c->x[col->first], c->y[col->first], move);
    if (lo != col->first && lo != col->last)
        pen(ctx, c->x[lo], c->y[lo], false);
    if (hi != lo && hi != col->first && hi != col->last)
        pen(ctx, c->x[hi], c->y[hi], false);
    if (col->last != col->first)
        pen(ctx, c->x[col->last], c->y[col->last], false);
}

void ep_curve_trace(const struct ep_curve *c, const struct ep_axis *x,
                    size_t columns, ep_curve_pen *pen, void *ctx)
{
    struct ep_bin_m4 *col;
    double gap, before = 0;
    bool begun = false;

    if (!c->n)
        return;
    columns = columns ? columns : 1;
    col = ep_calloc(columns, sizeof *col);
    ep_bin_m4(c->x, c->y, c->n, x->lo, x->hi, col, columns);
    gap = fmax(10 * (c->x[c->n - 1] - c->x[0]) / (double)c->n,
               (x->hi - x->lo) / 50);
    for (size_t i = 0; i < columns; i++) {
        if (!col[i].n)
            continue;
        trace_column(c, &col[i], !begun || c->x[col[i].first] - before > gap,
                     pen, ctx);
        before = c->x[col[i].last];
        begun = true;
    }
    free(col);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - see grid.h: scales, the worst rows, names. */
#include "config.h"

#include "draw/grid.h"

#include "base/mem.h"
#include "base/stats.h"
#include "draw/axis.h"
#include "draw/colour.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Quantiles are taken of so many values at most, evenly chosen. */
#define SAMPLE ((size_t)1 << 18)

/* Least and greatest of all, and the quantiles 0.01, 0.5, 0.99. */
struct spread {
    double min, max, q01, med, q99;
};

static void ends(const struct ep_grid *g, struct spread *s)
{
    for (size_t i = 0; i < g->rows * g->cols; i++) {
        s->min = fmin(s->min, g->v[i]);
        s->max = fmax(s->max, g->v[i]);
    }
}

static bool measure(const struct ep_grid *g, struct spread *s)
{
    size_t n = g->rows * g->cols, m = 0;
    size_t stride = n / SAMPLE + 1;
    double *v = ep_calloc(n / stride + 1, sizeof *v);

    s->min = (double)INFINITY;
    s->max = -(double)INFINITY;
    ends(g, s);
    if (g->beside)
        ends(g->beside, s);
    if (g->below)
        ends(g->below, s);
    for (size_t i = 0; i < n; i += stride)
        if (!isnan(g->v[i]))
            v[m++] = g->v[i];
    if (!m && s->min <= s->max) /* the sample met holes only */
        v[m++] = s->min;
    s->q01 = ep_quantile(v, m, 0.01);
    s->med = ep_quantile(v, m, 0.5);
    s->q99 = ep_quantile(v, m, 0.99);
    free(v);
    return m > 0;
}

static void around_one(struct ep_grid_scale *s, const struct spread *m)
{
    double d = fmax(fabs(m->max - 1), fabs(m->min - 1));

    d = fmin(fmax(d, 0.25), 3);
    s->diverging = true;
    s->lo = fmax(fmax(1 - d, 0), fmin(m->min, 1 - 0.1 * d));
    s->hi = 1 + d;
}

void ep_grid_scale_init(struct ep_grid_scale *s, const struct ep_grid *g)
{
    struct spread m;

    *s = (struct ep_grid_scale){.hi = 1, .low_is_bad = g->low_is_bad};
    if (!measure(g, &m))
        return;
    if (g->slowdown) {
        around_one(s, &m);
    } else if (m.med > 0 && g->low_is_bad) {
        s->lo = fmin(fmin(m.q01, 0.75 * m.med), fmax(m.min, m.med / 2));
        s->lo = fmax(s->lo, m.med / 10);
        s->hi = fmin(fmax(m.q99, 1.1 * m.med), 1.5 * m.med);
        s->log = s->hi / s->lo > 6;
    } else if (m.med > 0) {
        s->lo = fmax(fmin(m.q01, 0.9 * m.med), m.med / 2);
        s->hi = fmax(fmax(m.q99, 1.25 * m.med), fmin(m.max, 2 * m.med));
        s->hi = fmin(s->hi, 4 * m.med);
    } else {
        s->lo = m.min;
        s->hi = m.max > m.min ? m.max : m.min + 1;
    }
    if (!(s->hi > s->lo))
        s->hi = s->lo + fmax(fabs(s->lo) * 1e-6, 1e-300);
    s->below = m.min < s->lo * (1 - 1e-9);
    s->above = m.max > s->hi * (1 + 1e-9);
}

double ep_grid_scale_at(const struct ep_grid_scale *s, double v)
{
    double at;

    if (s->diverging) {
        at = (v - 1) / (s->hi - 1);
        return at > -1 ? (at < 1 ? at : 1) : -1;
    }
    if (s->log)
        at = v > 0 ? log(v / s->lo) / log(s->hi / s->lo) : 0;
    else
        at = (v - s->lo) / (s->hi - s->lo);
    at = at > 0 ? (at < 1 ? at : 1) : 0;
    return s->low_is_bad ? 1 - at : at;
}

uint32_t ep_grid_colour(const struct ep_grid_scale *s, double at, bool dark)
{
    return s->diverging ? ep_colour_diverging(at, dark)
                        : ep_colour_sequential(at);
}

/* How bad a row is: more is worse. */
static double badness(const struct ep_grid *g, size_t row)
{
    double mean = 0, worst = -(double)INFINITY, n = 0;

    for (size_t c = 0; c < g->cols; c++) {
        double v = g->v[row * g->cols + c];

        if (isnan(v))
            continue;
        v = g->low_is_bad ? -v : v;
        worst = fmax(worst, v);
        mean += (v - mean) / ++n; /* a sum could overflow */
    }
    return g->by_mean && n > 0 ? mean : worst;
}

void ep_grid_worst_rows(const struct ep_grid *g, size_t *row, size_t n)
{
    double *score = ep_calloc(n, sizeof *score);
    size_t have = 0;

    for (size_t r = 0; r < g->rows; r++) {
        double bad = badness(g, r);
        size_t at;

        if (have == n && !(bad > score[n - 1]))
            continue;
        for (at = have < n ? have++ : n - 1; at && bad > score[at - 1]; at--) {
            score[at] = score[at - 1];
            row[at] = row[at - 1];
        }
        score[at] = bad;
        row[at] = r;
    }
    free(score);
}

double *ep_grid_copy_rows(const struct ep_grid *g, const size_t *row, size_t n)
{
    double *v = ep_calloc(n * g->cols, sizeof *v);

    for (size_t i = 0; i < n; i++)
        memcpy(v + i * g->cols, g->v + row[i] * g->cols, g->cols * sizeof *v);
    return v;
}

void ep_grid_add_cell(struct ep_buf *b, const struct ep_grid *g, size_t row,
                      size_t col)
{
    g->row_name(g->ctx, row, b);
    ep_buf_adds(b, ", ");
    g->col_name(g->ctx, col, b);
    ep_buf_adds(b, ": ");
    ep_axis_add_value(b, g->v[row * g->cols + col], g->unit);
}

void ep_grid_format(char text[24], double v)
{
    double size = fabs(v);

    (void)snprintf(text, 24,
                   size >= 1e6 || (size > 0 && size < 0.01) ? "%.2g"
                   : size >= 100                            ? "%.0f"
                   : size >= 10                             ? "%.1f"
                                                            : "%.2f",
                   v);
}

void ep_grid_add_range(struct ep_buf *b, const struct ep_grid *g, bool rows,
                       size_t first, size_t last)
{
    void (*name)(const void *, size_t, struct ep_buf *) =
        rows ? g->row_name : g->col_name;

    name(g->ctx, first, b);
    if (last == first)
        return;
    ep_buf_adds(b, " to ");
    name(g->ctx, last, b);
}

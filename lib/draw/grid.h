/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.h - a matrix of values as colours: ranks by steps, dp by pp, sources by
 * destinations.
 *
 * If there are more rows than can be told apart there are two panels: the
 * worst rows, each by itself with its name, and below all rows in order, of
 * which several share a line. A cell that stands for several shows the worst
 * of them, and its title says which one that is. All lines are of as many rows.
 *
 * Scales. Sequential: from the 1 % to the 99 % quantile, but with the bad end
 * at least 1.25 times the median (0.75 where low is bad), so that a healthy job
 * looks even, and at twice (half) the median if there are values; at most from
 * a half to four times the median (a tenth to 1.5 times). What is beyond takes
 * the end's colour, and the legend says so. Logarithmic where low is bad and
 * the ends are more than 6 times apart: links within and between nodes.
 * Slowdowns: 1 is neutral, equal distances to both sides in the same strength
 * of colour, at least 0.25 and at most 3.
 */
#ifndef EP_DRAW_GRID_H
#define EP_DRAW_GRID_H

#include "draw/look.h"

#include <stdbool.h>
#include <stddef.h>

struct ep_grid {
    const char *title, *summary;     /* heading, and the line below it */
    const char *rows_are, *cols_are; /* "rank", "step": names of the axes */
    const char *value_is;            /* "busy time" */
    const char *unit;                /* "s", "B/s"; "" for none */
    size_t rows, cols;               /* >= 1 */
    const double *v; /* [rows][cols]; NaN: nothing known; |v| <= 1e300 */
    bool low_is_bad; /* else high */
    bool slowdown;   /* values around 1 */
    bool by_mean;    /* the worst rows are those in the mean; else those with
                        the worst cell */
    /* Names of a row and of a column, appended. */
    void (*row_name)(const void *ctx, size_t i, struct ep_buf *b);
    void (*col_name)(const void *ctx, size_t i, struct ep_buf *b);
    const void *ctx;
    /* Columns are numbers in [col_lo, col_hi] (steps), several in a column
       perhaps; NaN: they have names. */
    double col_lo, col_hi;
    /* What stands for whole rows and columns, on the same scale: a grid of one
       column right of the cells, one of one row below them; NULL: none. */
    const struct ep_grid *beside, *below;
};

void ep_grid_svg(const struct ep_grid *g, const struct ep_look *look,
                 struct ep_buf *out);
void ep_grid_text(const struct ep_grid *g, const struct ep_look *look,
                  struct ep_buf *out);

/* ---- what both have in common ---- */

struct ep_grid_scale {
    double lo, hi;     /* values of the ends */
    bool below, above; /* there are values beyond them */
    bool log, diverging, low_is_bad;
};

/* Of all values; those beside and below count for the ends alone. O(cells).
   Without any, 0 to 1. */
void ep_grid_scale_init(struct ep_grid_scale *s, const struct ep_grid *g);

/* Where on the scale: 0 (good) to 1 (bad); diverging: -1 to 1. */
double ep_grid_scale_at(const struct ep_grid_scale *s, double v);

/* The colour of such a place. */
uint32_t ep_grid_colour(const struct ep_grid_scale *s, double at, bool dark);

/*
 * The rows that are worst, of what is known of them, the worst first; of equals
 * the first. In the mean (of steps: everybody has a slow one) or by one cell
 * (of links and workers: one that is slow is what is looked for).
 *
 * row     [n] written; n <= rows
 * Cost: O(cells + rows n).
 */
void ep_grid_worst_rows(const struct ep_grid *g, size_t *row, size_t n);

/* A copy of those rows, [n][cols]; caller frees. */
double *ep_grid_copy_rows(const struct ep_grid *g, const size_t *row, size_t n);

/* "rank 3, step 17: 1.41 s" */
void ep_grid_add_cell(struct ep_buf *b, const struct ep_grid *g, size_t row,
                      size_t col);

/* A value to stand in a cell, without unit: three digits, 7 characters. */
void ep_grid_format(char text[24], double v);

/* The name of the first to the last column or row: "17", "17 to 20". */
void ep_grid_add_range(struct ep_buf *b, const struct ep_grid *g, bool rows,
                       size_t first, size_t last);

#endif

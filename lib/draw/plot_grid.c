/* SPDX-License-Identifier: Apache-2.0 */
/* plot_grid.c - matrices: ranks by steps, links; dp by pp is plot_heat.c. */
#include "config.h"

#include "base/mem.h"
#include "base/stats.h"
#include "draw/axis.h"
#include "draw/grid.h"
#include "draw/plot_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS ((size_t)4096) /* of steps, at most */

static double *holes(size_t n)
{
    double *v = ep_calloc(n, sizeof *v);

    for (size_t i = 0; i < n; i++)
        v[i] = (double)NAN;
    return v;
}

static size_t at_most(size_t v, size_t most)
{
    return v < most ? v : most;
}

/* Several values for one cell: the worst stays. */
static void put(double *cell, double v, bool low)
{
    if (isnan(*cell) || (low ? v < *cell : v > *cell))
        *cell = v;
}

static void draw(const struct ep_grid *g, const struct ep_plot_choice *choice,
                 const struct ep_look *look, struct ep_buf *out)
{
    (choice->svg ? ep_grid_svg : ep_grid_text)(g, look, out);
}

/* ==== Ranks by steps ==== */

struct ranks {
    const struct ep_plots *p;
    uint32_t *order; /* row to who; those of the whole job are left out */
    size_t rows, cols;
    int64_t lo, hi; /* steps */
};

static void rank_name(const void *ctx, size_t i, struct ep_buf *b)
{
    const struct ranks *r = ctx;

    ep_plot_add_who(b, r->p, &r->p->steps, r->order[i]);
}

/* Column of a step. */
static size_t column(const struct ranks *r, int64_t step)
{
    double all = (double)(r->hi - r->lo) + 1;

    if (all == (double)r->cols)
        return (size_t)(step - r->lo);
    return (size_t)fmin((double)(step - r->lo) / all * (double)r->cols,
                        (double)(r->cols - 1));
}

static void step_name(const void *ctx, size_t i, struct ep_buf *b)
{
    const struct ranks *r = ctx;
    double all = ((double)(r->hi - r->lo) + 1) / (double)r->cols;
    double first = (double)r->lo + ceil((double)i * all);
    double last = (double)r->lo + ceil((double)(i + 1) * all) - 1;

    if (last > first)
        ep_buf_addf(b, "steps %.0f to %.0f", first, last);
    else
        ep_buf_addf(b, "step %.0f", first);
}

static void rank_rows(struct ranks *r, const struct ep_plots *p, uint32_t *row)
{
    r->order = ep_plot_sorted_who(p, &p->steps);
    for (size_t i = 0; i < p->steps.who.n; i++) {
        const struct who *w = (const struct who *)p->steps.who.v + r->order[i];

        row[r->order[i]] = UINT32_MAX;
        if (w->rank < 0 && w->worker < 0)
            continue;
        row[r->order[i]] = (uint32_t)r->rows;
        r->order[r->rows++] = r->order[i];
    }
    r->lo = INT64_MAX;
    r->hi = -1;
    for (size_t i = 0; i < p->steps.n; i++) {
        int64_t step = p->steps.v[i].step;

        if (row[p->steps.v[i].who] == UINT32_MAX)
            continue;
        r->lo = step < r->lo ? step : r->lo;
        r->hi = step > r->hi ? step : r->hi;
    }
    r->cols = EP_PLOT_CELLS / (r->rows ? r->rows : 1);
    r->cols = r->cols < COLUMNS ? r->cols : COLUMNS;
    if ((double)(r->hi - r->lo) + 1 < (double)r->cols)
        r->cols = (size_t)(r->hi - r->lo) + 1;
}

/* Mean of what is known of a row. */
static double row_mean(const struct ep_grid *g, size_t row)
{
    double sum = 0, n = 0;

    for (size_t c = 0; c < g->cols; c++)
        if (!isnan(g->v[row * g->cols + c])) {
            n++;
            sum += (g->v[row * g->cols + c] - sum) / n;
        }
    return n > 0 ? sum : (double)NAN;
}

/* "slowest: rank 3, 1.50 times the median of all" */
static void add_worst(struct ep_buf *b, const struct ep_grid *g)
{
    double *mean = ep_calloc(g->rows, sizeof *mean), worst, median;
    size_t row;

    ep_grid_worst_rows(g, &row, 1);
    for (size_t i = 0; i < g->rows; i++)
        mean[i] = row_mean(g, i);
    worst = mean[row];
    median = ep_median(mean, g->rows);
    ep_buf_adds(b, "; slowest: ");
    g->row_name(g->ctx, row, b);
    ep_buf_adds(b, ", mean ");
    ep_axis_add_value(b, worst, g->unit);
    if (median > 0 && g->rows > 1)
        ep_buf_addf(b, ", %.3g times the median rank", worst / median);
    free(mean);
}

void ep_plot_draw_ranks(struct ep_plots *p, const struct ep_plot_choice *choice,
                        const struct ep_look *look, struct ep_buf *out)
{
    uint32_t *row = ep_calloc(p->steps.who.n, sizeof *row);
    struct ranks r = {.p = p};
    struct ep_grid g = {
        .title = p->any_busy ? "Busy time of each rank in each step"
                             : "Time of each rank in each step",
        .rows_are = "rank",
        .cols_are = "step",
        .value_is = p->any_busy ? "busy time" : "step time",
        .unit = "s",
        .by_mean = true,
        .row_name = rank_name,
        .col_name = step_name,
        .ctx = &r,
    };
    struct ep_buf text;
    double *v;

    ep_buf_init(&text);
    rank_rows(&r, p, row);
    v = holes(r.rows * r.cols);
    for (size_t i = 0; i < p->steps.n; i++) {
        const struct point *s = &p->steps.v[i];

        if (row[s->who] != UINT32_MAX)
            put(&v[row[s->who] * r.cols + column(&r, s->step)],
                ep_plot_value(p, s), false);
    }
    g.v = v;
    g.rows = r.rows;
    g.cols = r.cols;
    g.col_lo = (double)r.lo;
    g.col_hi = (double)r.hi;
    ep_buf_addf(&text, "%zu rank%s, steps %lld to %lld", r.rows,
                r.rows == 1 ? "" : "s", (long long)r.lo, (long long)r.hi);
    add_worst(&text, &g);
    g.summary = text.ptr;
    draw(&g, choice, look, out);
    free(v);
    free(r.order);
    free(row);
    ep_buf_free(&text);
}

/* ==== Links ==== */

struct links {
    const struct ep_plots *p;
    uint32_t *src, *dst; /* ends that send, that receive, by name */
    size_t rows, cols;
};

static void add_end(const struct ep_plots *p, uint32_t end, struct ep_buf *b)
{
    ep_plot_add_name(b, ep_intern_name(p->ends, end));
}

static void src_name(const void *ctx, size_t i, struct ep_buf *b)
{
    add_end(((const struct links *)ctx)->p, ((const struct links *)ctx)->src[i],
            b);
}

static void dst_name(const void *ctx, size_t i, struct ep_buf *b)
{
    add_end(((const struct links *)ctx)->p, ((const struct links *)ctx)->dst[i],
            b);
}

struct end_key {
    const char *name;
    uint32_t end;
};

static int by_end(const void *a, const void *b)
{
    return strverscmp(((const struct end_key *)a)->name,
                      ((const struct end_key *)b)->name);
}

/* The ends that have a mark, by name; *n: how many. place: its index. */
static uint32_t *sorted_ends(const struct ep_plots *p, uint32_t *place,
                             size_t *n)
{
    size_t all = ep_intern_count(p->ends);
    struct end_key *key = ep_calloc(all, sizeof *key);
    uint32_t *list = ep_calloc(all, sizeof *list);

    for (size_t i = 0; i < all; i++)
        if (place[i])
            key[(*n)++] =
                (struct end_key){ep_intern_name(p->ends, i), (uint32_t)i};
    qsort(key, *n, sizeof *key, by_end);
    for (size_t i = 0; i < *n; i++) {
        list[i] = key[i].end;
        place[list[i]] = (uint32_t)i;
    }
    free(key);
    return list;
}

/* "17 links, 1.2 GB/s to 25 GB/s; slowest: a to b" */
static void links_summary(const struct ep_plots *p, struct ep_buf *b)
{
    const struct link *lo = &p->link[0], *hi = lo;

    for (size_t i = 1; i < p->links; i++) {
        lo = p->link[i].value < lo->value ? &p->link[i] : lo;
        hi = p->link[i].value > hi->value ? &p->link[i] : hi;
    }
    ep_buf_addf(b, "%zu measurement%s, ", p->links, p->links == 1 ? "" : "s");
    ep_axis_add_value(b, lo->value, "B/s");
    ep_buf_adds(b, " to ");
    ep_axis_add_value(b, hi->value, "B/s");
    ep_buf_adds(b, "; slowest: ");
    add_end(p, lo->src, b);
    ep_buf_adds(b, " to ");
    add_end(p, lo->dst, b);
}

void ep_plot_draw_links(struct ep_plots *p, const struct ep_plot_choice *choice,
                        const struct ep_look *look, struct ep_buf *out)
{
    size_t all = ep_intern_count(p->ends);
    uint32_t *row = ep_calloc(all, sizeof *row);
    uint32_t *col = ep_calloc(all, sizeof *col);
    struct links l = {.p = p};
    struct ep_grid g = {
        .title = "Bandwidth of links",
        .rows_are = "source",
        .cols_are = "destination",
        .value_is = "bandwidth",
        .unit = "B/s",
        .low_is_bad = true,
        .row_name = src_name,
        .col_name = dst_name,
        .ctx = &l,
        .col_lo = (double)NAN,
        .col_hi = (double)NAN,
    };
    struct ep_buf text;
    double *v;

    ep_buf_init(&text);
    for (size_t i = 0; i < p->links; i++)
        row[p->link[i].src] = col[p->link[i].dst] = 1;
    l.src = sorted_ends(p, row, &l.rows);
    l.dst = sorted_ends(p, col, &l.cols);
    g.cols = at_most(l.cols, COLUMNS);
    g.rows = at_most(l.rows, EP_PLOT_CELLS / (g.cols ? g.cols : 1));
    g.v = v = holes(g.rows * g.cols);
    for (size_t i = 0; i < p->links; i++) {
        size_t r = row[p->link[i].src], c = col[p->link[i].dst];

        if (r >= g.rows || c >= g.cols)
            p->left_out++;
        else
            put(&v[r * g.cols + c], p->link[i].value, true);
    }
    links_summary(p, &text);
    g.summary = text.ptr;
    draw(&g, choice, look, out);
    free(v);
    free(l.src);
    free(l.dst);
    free(row);
    free(col);
    ep_buf_free(&text);
}

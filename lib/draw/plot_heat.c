/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot_heat.c - dp by pp: what each worker costs, and beside and below it what
 * whole ranks and whole stages cost; see plot.h.
 *
 * Rows are of a job and a data-parallel rank: the ranks of two jobs are not
 * the same. Stages of several jobs share their columns, for they have the same
 * names; what a whole stage costs is shown of one job only.
 */
#include "config.h"

#include "base/mem.h"
#include "draw/grid.h"
#include "draw/plot_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS ((size_t)4096)

struct row {
    const char *job; /* borrowed; "" for none */
    int64_t dp;
};

struct heat {
    const struct ep_plots *p;
    struct row *row; /* rising */
    int64_t *pp;     /* rising */
    size_t rows, cols;
    bool many_jobs;
};

static void dp_name(const void *ctx, size_t i, struct ep_buf *b)
{
    const struct heat *h = ctx;

    if (h->many_jobs && *h->row[i].job) {
        ep_plot_add_name(b, h->row[i].job);
        ep_buf_adds(b, ", ");
    }
    ep_buf_addf(b, "dp %lld", (long long)h->row[i].dp);
}

static void pp_name(const void *ctx, size_t i, struct ep_buf *b)
{
    ep_buf_addf(b, "pp %lld", (long long)((const struct heat *)ctx)->pp[i]);
}

static void all_dp(const void *ctx, size_t i, struct ep_buf *b)
{
    (void)ctx;
    (void)i;
    ep_buf_adds(b, "all dp");
}

static void all_pp(const void *ctx, size_t i, struct ep_buf *b)
{
    (void)ctx;
    (void)i;
    ep_buf_adds(b, "all pp");
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int by_row(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int d = strverscmp(x->job, y->job);

    return d ? d : by_number(&x->dp, &y->dp);
}

/* Sort, drop doubles; returns how many are left. */
static size_t distinct(void *v, size_t n, size_t size,
                       int (*order)(const void *, const void *))
{
    char *at = v;
    size_t m = 0;

    qsort(v, n, size, order);
    for (size_t i = 0; i < n; i++)
        if (!m || order(at + (m - 1) * size, at + i * size) != 0)
            memmove(at + m++ * size, at + i * size, size);
    return m;
}

/* Who does not say is the first. */
static int64_t from_zero(int64_t v)
{
    return v > 0 ? v : 0;
}

static struct row row_of(const struct ep_plots *p, const struct worker *w)
{
    return (struct row){w->job < 0 ? ""
                                   : ep_intern_name(p->names, (size_t)w->job),
                        from_zero(w->dp)};
}

/* The place of w, or cols * rows. */
static size_t row_index(const struct heat *h, const struct worker *w)
{
    struct row key = row_of(h->p, w);
    const struct row *at =
        bsearch(&key, h->row, h->rows, sizeof *h->row, by_row);

    return at ? (size_t)(at - h->row) : h->rows;
}

static size_t col_index(const struct heat *h, const struct worker *w)
{
    int64_t key = from_zero(w->pp);
    const int64_t *at = bsearch(&key, h->pp, h->cols, sizeof key, by_number);

    return at ? (size_t)(at - h->pp) : h->cols;
}

static void find_rows(struct heat *h)
{
    const struct costs *w = &h->p->cost[COST_WORKER];

    h->row = ep_calloc(w->n, sizeof *h->row);
    h->pp = ep_calloc(w->n, sizeof *h->pp);
    for (size_t i = 0; i < w->n; i++) {
        h->row[i] = row_of(h->p, &w->v[i]);
        h->pp[i] = from_zero(w->v[i].pp);
        h->many_jobs |= w->v[i].job != w->v[0].job;
    }
    h->rows = distinct(h->row, w->n, sizeof *h->row, by_row);
    h->cols = distinct(h->pp, w->n, sizeof *h->pp, by_number);
    h->cols = h->cols < COLUMNS ? h->cols : COLUMNS;
    if (h->rows > EP_PLOT_CELLS / (h->cols ? h->cols : 1))
        h->rows = EP_PLOT_CELLS / h->cols; /* there is a column then */
}

/* A cell for several: the worst stays. */
static void put(double *cell, double v)
{
    if (!(*cell >= v))
        *cell = v;
}

/* The values of a kind of cost, n cells that are NaN where there is none. */
static double *values(struct heat *h, enum cost which, size_t n,
                      uint64_t *left_out)
{
    const struct costs *of = &h->p->cost[which];
    double *v = ep_calloc(n, sizeof *v);

    for (size_t i = 0; i < n; i++)
        v[i] = (double)NAN;
    for (size_t i = 0; i < of->n; i++) {
        size_t r = which == COST_PP ? 0 : row_index(h, &of->v[i]);
        size_t c = which == COST_DP ? 0 : col_index(h, &of->v[i]);

        if (r < h->rows && c < h->cols)
            put(&v[which == COST_WORKER ? r * h->cols + c : r + c],
                of->v[i].slowdown);
        else
            ++*left_out;
    }
    return v;
}

/* Who is worst, and what the whole job is. */
static void summary(const struct heat *h, struct ep_buf *b)
{
    const struct costs *all = &h->p->cost[COST_WORKER];
    const struct worker *worst = &all->v[0];

    for (size_t i = 1; i < all->n; i++)
        if (all->v[i].slowdown > worst->slowdown)
            worst = &all->v[i];
    if (!h->many_jobs && !isnan(h->p->whole))
        ep_buf_addf(b, "whole job %.3gx; ", h->p->whole);
    ep_buf_adds(b, "worst worker:");
    if (h->many_jobs && worst->job >= 0) {
        ep_buf_addc(b, ' ');
        ep_plot_add_name(b, ep_intern_name(h->p->names, (size_t)worst->job));
    }
    if (worst->dp >= 0)
        ep_buf_addf(b, " dp %lld", (long long)worst->dp);
    if (worst->pp >= 0)
        ep_buf_addf(b, " pp %lld", (long long)worst->pp);
    ep_buf_addf(b, ", %.3gx the ideal step time", worst->slowdown);
}

void ep_plot_draw_heat(struct ep_plots *p, const struct ep_plot_choice *choice,
                       const struct ep_look *look, struct ep_buf *out)
{
    struct heat h = {.p = p};
    struct ep_grid g = {.title = "Slowdown by worker",
                        .rows_are = "data-parallel rank",
                        .cols_are = "pipeline stage",
                        .value_is = "slowdown",
                        .unit = "",
                        .slowdown = true,
                        .row_name = dp_name,
                        .col_name = pp_name,
                        .ctx = &h,
                        .col_lo = (double)NAN,
                        .col_hi = (double)NAN};
    struct ep_grid beside, below;
    double *cells, *dp, *pp;
    struct ep_buf text;

    ep_buf_init(&text);
    find_rows(&h);
    g.rows = h.rows;
    g.cols = h.cols;
    g.v = cells = values(&h, COST_WORKER, h.rows * h.cols, &p->left_out);
    beside = below = g;
    beside.cols = below.rows = 1;
    beside.v = dp = values(&h, COST_DP, h.rows, &p->left_out);
    below.v = pp = values(&h, COST_PP, h.cols, &p->left_out);
    beside.col_name = all_pp;
    below.row_name = all_dp;
    if (p->cost[COST_DP].n)
        g.beside = &beside;
    if (p->cost[COST_PP].n && !h.many_jobs)
        g.below = &below;
    summary(&h, &text);
    g.summary = text.ptr;
    (choice->svg ? ep_grid_svg : ep_grid_text)(&g, look, out);
    free(cells);
    free(dp);
    free(pp);
    free(h.row);
    free(h.pp);
    ep_buf_free(&text);
}

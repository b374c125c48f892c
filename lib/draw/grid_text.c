/* SPDX-License-Identifier: Apache-2.0 */
/* grid_text.c - a grid as characters; see grid.h. */
#include "config.h"

#include "base/mem.h"
#include "draw/axis.h"
#include "draw/bin.h"
#include "draw/colour.h"
#include "draw/grid.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD 2 /* lines of heading and summary */
#define FOOT 3 /* lines of column names and scale */
#define CELL 8 /* columns of a value in a table */
#define NAME_MOST 24
#define LEAST_ROWS 6
#define UPPER_HALF 0x2580u
#define LOWER_HALF 0x2584u

struct grid_text {
    const struct ep_grid *g;
    const struct ep_term *term;
    struct ep_grid_scale scale;
    struct ep_canvas *c;
    struct ep_buf text;
    int names; /* columns of row names */
    int each;  /* columns of a cell */
    size_t bcols;
    bool table, two, colour, halves;
    int lines;    /* for rows: one panel, or both with their headings */
    size_t worst; /* rows of the first panel */
    double div;   /* of values in a table */
    const char *prefix;
};

/* A panel, as in grid_svg.c. */
struct panel {
    const double *v;
    const size_t *map;
    size_t rows, brows;
    int y;
    bool halves; /* two rows in a line */
};

static uint32_t shade(const struct grid_text *d, double at)
{
    static const char ascii[] = " .:-=+*#%@";
    static const uint32_t blocks[] = {' ', 0x2591, 0x2592, 0x2593, 0x2588};

    if (d->scale.diverging && at < -0.1)
        return '<'; /* below 1 */
    if (d->scale.diverging)
        at = fmax(at, 0);
    if (!d->term->utf8)
        return (unsigned char)ascii[(int)lround(at * 9)];
    return blocks[(int)lround(at * 4)];
}

static int32_t colour(const struct grid_text *d, double v)
{
    return (int32_t)ep_grid_colour(&d->scale, ep_grid_scale_at(&d->scale, v),
                                   true);
}

static void put_value(struct grid_text *d, int x, int y, double v)
{
    int32_t bg = d->colour ? colour(d, v) : EP_NO_COLOUR;
    int32_t fg = d->colour && !ep_colour_is_light((uint32_t)bg) ? 0xffffff : 0;

    char text[24];

    ep_grid_format(text, v / d->div);
    if (d->colour)
        for (int i = 0; i < d->each; i++)
            ep_canvas_put(d->c, x + i, y, ' ', fg, bg);
    ep_canvas_text(d->c, x + d->each - 1 - ep_canvas_columns(text), y, text,
                   d->colour ? fg : EP_NO_COLOUR);
}

/* The lower half of a cell: behind the upper one, if there is one. */
static void put_lower(struct grid_text *d, int x, int y, bool upper, double v)
{
    if (upper)
        ep_canvas_put(d->c, x, y, UPPER_HALF, EP_NO_COLOUR, colour(d, v));
    else
        ep_canvas_put(d->c, x, y, LOWER_HALF, colour(d, v), EP_NO_COLOUR);
}

static void put_cell(struct grid_text *d, int x, int y, double v)
{
    for (int i = 0; i < d->each; i++)
        if (d->halves)
            ep_canvas_put(d->c, x + i, y, UPPER_HALF, colour(d, v),
                          EP_NO_COLOUR);
        else if (d->colour)
            ep_canvas_put(d->c, x + i, y, ' ', EP_NO_COLOUR, colour(d, v));
        else
            ep_canvas_put(d->c, x + i, y,
                          shade(d, ep_grid_scale_at(&d->scale, v)),
                          EP_NO_COLOUR, EP_NO_COLOUR);
}

static void draw_panel(struct grid_text *d, const struct panel *p)
{
    size_t *at = ep_calloc(p->brows * d->bcols, sizeof *at);

    d->halves = p->halves;
    ep_bin_blocks(p->v, p->rows, d->g->cols, p->brows, d->bcols,
                  d->g->low_is_bad, at);
    for (size_t r = 0; r < p->brows; r++) {
        int y = p->y + (int)(p->halves ? r / 2 : r);
        size_t row = r * p->rows / p->brows;

        if (!p->halves || r % 2 == 0) {
            ep_buf_reset(&d->text);
            d->g->row_name(d->g->ctx, p->map ? p->map[row] : row, &d->text);
            ep_canvas_text_in(d->c, 0, y, d->names - 1, d->text.ptr);
            for (int x = d->names; x < d->names + (int)d->bcols * d->each; x++)
                ep_canvas_put(d->c, x, y, ' ', EP_NO_COLOUR, EP_NO_COLOUR);
        }
        for (size_t c = 0; c < d->bcols; c++) {
            size_t i = at[r * d->bcols + c];
            int x = d->names + (int)c * d->each;

            if (i == SIZE_MAX)
                continue;
            if (d->table)
                put_value(d, x, y, p->v[i]);
            else if (p->halves && r % 2)
                put_lower(d, x, y, at[(r - 1) * d->bcols + c] != SIZE_MAX,
                          p->v[i]);
            else
                put_cell(d, x, y, p->v[i]);
        }
    }
    free(at);
}

/* Names of columns, or the first and the last number; what they are. */
static void columns(struct grid_text *d, int y)
{
    const struct ep_grid *g = d->g;
    int right = d->names + (int)d->bcols * d->each - 1;

    if (d->table) {
        for (size_t i = 0; i < g->cols; i++) {
            int end = d->names + ((int)i + 1) * d->each - 2, wide;

            ep_buf_reset(&d->text);
            g->col_name(g->ctx, i, &d->text);
            wide = ep_canvas_columns(d->text.ptr);
            if (wide < d->each)
                ep_canvas_text_end(d->c, end, y, d->text.ptr);
            else
                for (int k = 0, x = end - d->each + 2; k < d->each - 1; k++)
                    ep_canvas_put(
                        d->c, x + k, y,
                        k < d->each - 2 ? (unsigned char)d->text.ptr[k] : '~',
                        EP_NO_COLOUR, EP_NO_COLOUR);
        }
        return;
    }
    ep_buf_reset(&d->text);
    g->col_name(g->ctx, 0, &d->text);
    ep_canvas_text(d->c, d->names, y, d->text.ptr, EP_NO_COLOUR);
    if (g->cols > 1) {
        int used = ep_canvas_columns(d->text.ptr);

        ep_buf_reset(&d->text);
        g->col_name(g->ctx, g->cols - 1, &d->text);
        if (d->names + used + 2 + ep_canvas_columns(d->text.ptr) <= right + 1)
            ep_canvas_text_end(d->c, right, y, d->text.ptr);
    }
}

static void legend(struct grid_text *d, int y)
{
    const struct ep_grid_scale *s = &d->scale;
    int x = 0, steps = d->colour ? 20 : d->term->utf8 ? 5 : 10;

    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, "%s: ", d->g->value_is);
    ep_axis_add_value(&d->text, s->lo, d->g->unit);
    ep_buf_adds(&d->text, s->below ? " and below [" : " [");
    ep_canvas_text(d->c, 0, y, d->text.ptr, EP_NO_COLOUR);
    x = ep_canvas_columns(d->text.ptr);
    for (int i = 0; i < steps; i++, x++) {
        double f = (i + 0.5) / steps;
        double v = s->log ? s->lo * pow(s->hi / s->lo, f)
                          : s->lo + f * (s->hi - s->lo);

        if (d->colour)
            ep_canvas_put(d->c, x, y, ' ', EP_NO_COLOUR, colour(d, v));
        else
            ep_canvas_put(d->c, x, y, shade(d, ep_grid_scale_at(s, v)),
                          EP_NO_COLOUR, EP_NO_COLOUR);
    }
    ep_buf_reset(&d->text);
    ep_buf_adds(&d->text, "] ");
    ep_axis_add_value(&d->text, s->hi, d->g->unit);
    ep_buf_adds(&d->text, s->above ? " and above" : "");
    if (d->table && *d->g->unit)
        ep_buf_addf(&d->text, "; values in %s%s", d->prefix, d->g->unit);
    ep_canvas_text(d->c, x, y, d->text.ptr, EP_NO_COLOUR);
}

static void lay_out(struct grid_text *d)
{
    const struct ep_grid *g = d->g;
    int room = d->term->height - HEAD - FOOT, width;
    size_t every = g->rows / 4096 + 1;

    for (size_t i = 0; i < g->rows; i += every) {
        int n;

        ep_buf_reset(&d->text);
        g->row_name(g->ctx, i, &d->text);
        n = ep_canvas_columns(d->text.ptr) + 1;
        d->names = n > d->names ? n : d->names;
    }
    d->names = d->names < NAME_MOST ? d->names : NAME_MOST;
    if (d->names > d->term->width / 2)
        d->names = d->term->width / 2;
    width = d->term->width - d->names;
    width = width > 1 ? width : 1;
    room = room > LEAST_ROWS ? room : LEAST_ROWS;
    d->two = g->rows > (size_t)room;
    d->bcols = g->cols < (size_t)width ? g->cols : (size_t)width;
    d->table = isnan(g->col_lo) && g->cols * CELL <= (size_t)width;
    d->each = d->table ? CELL : width / (d->bcols ? (int)d->bcols : 1);
    d->each = d->table || d->each < 3 ? d->each : 3;
    if (g->cols > (size_t)width)
        d->each = 1;
    d->worst = (size_t)room / 3;
    d->lines = d->two ? room : (int)g->rows;
}

static void two_panels(struct grid_text *d)
{
    const struct ep_grid *g = d->g;
    size_t *row = ep_calloc(d->worst, sizeof *row);
    struct panel p = {
        .map = row, .rows = d->worst, .brows = d->worst, .y = HEAD + 1};
    int lines = d->lines - (int)d->worst - 2;
    double *copy;

    ep_grid_worst_rows(g, row, d->worst);
    p.v = copy = ep_grid_copy_rows(g, row, d->worst);
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, "the worst %zu of %zu, by their mean:", d->worst,
                g->rows);
    ep_canvas_text(d->c, 0, HEAD, d->text.ptr, EP_NO_COLOUR);
    draw_panel(d, &p);
    free(copy);
    free(row);
    p = (struct panel){
        .v = g->v, .rows = g->rows, .y = HEAD + 2 + (int)d->worst};
    p.halves = d->colour && d->term->utf8 && !d->table && d->each == 1;
    p.brows = (size_t)(lines > 1 ? lines : 1) * (p.halves ? 2 : 1);
    p.brows = p.brows < g->rows ? p.brows : g->rows;
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, "all in order, the worst of up to %zu in a row:",
                (g->rows + p.brows - 1) / p.brows);
    ep_canvas_text(d->c, 0, p.y - 1, d->text.ptr, EP_NO_COLOUR);
    draw_panel(d, &p);
}

void ep_grid_text(const struct ep_grid *g, const struct ep_look *look,
                  struct ep_buf *out)
{
    struct grid_text d = {.g = g, .term = &look->term};
    int y;

    ep_buf_init(&d.text);
    d.colour = look->term.depth != EP_DEPTH_NONE;
    ep_grid_scale_init(&d.scale, g);
    d.div = ep_axis_prefix(d.scale.hi, g->unit, &d.prefix);
    lay_out(&d);
    d.c = ep_canvas_new(&look->term, look->term.width, d.lines + HEAD + FOOT);
    ep_canvas_text_in(d.c, 0, 0, d.term->width,
                      look->title ? look->title : g->title);
    ep_canvas_text_in(d.c, 0, 1, d.term->width, g->summary);
    if (d.two) {
        two_panels(&d);
    } else {
        struct panel p = {
            .v = g->v, .rows = g->rows, .brows = g->rows, .y = HEAD};

        draw_panel(&d, &p);
    }
    y = HEAD + d.lines;
    columns(&d, y);
    legend(&d, y + 2);
    ep_canvas_print(d.c, out);
    ep_canvas_free(d.c);
    ep_buf_free(&d.text);
}

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
    size_t cper;
    bool beside, table, two, colour, halves;
    int head;     /* lines of heading and summary */
    int lines;    /* for rows: one panel, or both with their headings */
    size_t worst; /* rows of the first panel */
    double div;   /* of values in a table */
    const char *prefix;
};

/* A panel, as in grid_svg.c. */
struct panel {
    const struct ep_grid *g;
    const double *v;
    const size_t *map;
    size_t rows, rper, cper;
    int x, y;
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

/* The name of row r of a panel, and blanks where its cells are going to be. */
static void begin_line(struct grid_text *d, const struct panel *p, size_t row,
                       int y)
{
    int end = p->x + (int)ep_bin_count(p->g->cols, p->cper) * d->each;

    for (int x = p->x; x < end; x++)
        ep_canvas_put(d->c, x, y, ' ', EP_NO_COLOUR, EP_NO_COLOUR);
    if (p->x > d->names)
        return;
    ep_buf_reset(&d->text);
    p->g->row_name(p->g->ctx, p->map ? p->map[row] : row, &d->text);
    ep_canvas_text_in(d->c, 0, y, d->names - 1, d->text.ptr);
}

static void draw_panel(struct grid_text *d, const struct panel *p)
{
    size_t brows = ep_bin_count(p->rows, p->rper);
    size_t bcols = ep_bin_count(p->g->cols, p->cper);
    size_t *at = ep_calloc(brows * bcols, sizeof *at);

    d->halves = p->halves;
    ep_bin_blocks(p->v, p->rows, p->g->cols, p->rper, p->cper, d->g->low_is_bad,
                  at);
    for (size_t r = 0; r < brows; r++) {
        int y = p->y + (int)(p->halves ? r / 2 : r);

        if (!p->halves || r % 2 == 0)
            begin_line(d, p, r * p->rper, y);
        for (size_t c = 0; c < bcols; c++) {
            size_t i = at[r * bcols + c];
            int x = p->x + (int)c * d->each;

            if (i == SIZE_MAX)
                continue;
            if (d->table)
                put_value(d, x, y, p->v[i]);
            else if (p->halves && r % 2)
                put_lower(d, x, y, at[(r - 1) * bcols + c] != SIZE_MAX,
                          p->v[i]);
            else
                put_cell(d, x, y, p->v[i]);
        }
    }
    free(at);
}

/* Where the cells of the grid end, and after a blank those beside begin. */
static int right_end(const struct grid_text *d)
{
    return d->names + (int)ep_bin_count(d->g->cols, d->cper) * d->each;
}

/* Rows from line y on, and what is beside them. */
static void draw_rows(struct grid_text *d, const size_t *map, size_t rows,
                      size_t rper, int y)
{
    struct panel p = {.map = map,
                      .rows = rows,
                      .rper = rper,
                      .cper = d->cper,
                      .x = d->names,
                      .y = y};

    p.halves = !map && d->two && d->colour && d->term->utf8 && !d->table &&
               d->each == 1;
    for (int beside = 0; beside < (d->beside ? 2 : 1); beside++) {
        double *copy = NULL;

        p.g = beside ? d->g->beside : d->g;
        if (map)
            copy = ep_grid_copy_rows(p.g, map, rows);
        p.v = map ? copy : p.g->v;
        draw_panel(d, &p);
        free(copy);
        p.x = right_end(d) + 1;
        p.cper = 1;
    }
}

/* The line below. */
static void draw_below(struct grid_text *d, int y)
{
    struct panel p = {.g = d->g->below,
                      .rows = 1,
                      .rper = 1,
                      .cper = d->cper,
                      .x = d->names,
                      .y = y};

    if (!p.g)
        return;
    p.v = p.g->v;
    draw_panel(d, &p);
}

/* A column's name, at its right; the beginning of it where it is long. */
static void column_name(struct grid_text *d, const struct ep_grid *g, size_t i,
                        int end, int y)
{
    ep_buf_reset(&d->text);
    g->col_name(g->ctx, i, &d->text);
    if (ep_canvas_columns(d->text.ptr) < d->each)
        ep_canvas_text_end(d->c, end, y, d->text.ptr);
    else
        ep_canvas_text_in(d->c, end - d->each + 2, y, d->each - 1, d->text.ptr);
}

/* Names of columns, or the first and the last number; what they are. */
static void columns(struct grid_text *d, int y)
{
    const struct ep_grid *g = d->g;
    int right = right_end(d) - 1;

    if (d->table) {
        for (size_t i = 0; i < g->cols; i++)
            column_name(d, g, i, d->names + ((int)i + 1) * d->each - 2, y);
        if (d->beside)
            column_name(d, g->beside, 0, right + d->each, y);
        return;
    }
    if (d->beside)
        ep_canvas_text(d->c, right + 2, y, "all", EP_NO_COLOUR);
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
    int x = 0, steps = d->colour ? 20 : d->term->utf8 ? 5 : 10, wide;

    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, "%s: ", d->g->value_is);
    ep_axis_add_value(&d->text, s->lo, d->g->unit);
    ep_buf_adds(&d->text, s->below ? " and below " : " ");
    ep_canvas_text(d->c, 0, y, d->text.ptr, EP_NO_COLOUR);
    x = ep_canvas_columns(d->text.ptr);
    ep_buf_reset(&d->text);
    ep_buf_adds(&d->text, "] ");
    ep_axis_add_value(&d->text, s->hi, d->g->unit);
    ep_buf_adds(&d->text, s->above ? " and above" : "");
    if (d->table && *d->g->unit)
        ep_buf_addf(&d->text, "; values in %s%s", d->prefix, d->g->unit);
    wide = 1 + steps + ep_canvas_columns(d->text.ptr);
    if (x + wide > d->term->width) {
        x = 0;
        y++;
    }
    ep_canvas_put(d->c, x++, y, '[', EP_NO_COLOUR, EP_NO_COLOUR);
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
    (void)ep_canvas_wrap(d->c, (const int[2]){x, y}, d->term->width - x, 2,
                         d->text.ptr);
}

static int at_least(int v, int least)
{
    return v > least ? v : least;
}

static void lay_out(struct grid_text *d)
{
    const struct ep_grid *g = d->g;
    int room = d->term->height - d->head - FOOT - (g->below != NULL), width;
    size_t every = g->rows / 4096 + 1;

    for (size_t i = 0; i < g->rows; i += every) {
        ep_buf_reset(&d->text);
        g->row_name(g->ctx, i, &d->text);
        d->names = at_least(d->names, ep_canvas_columns(d->text.ptr) + 1);
    }
    if (g->below) {
        ep_buf_reset(&d->text);
        g->below->row_name(g->below->ctx, 0, &d->text);
        d->names = at_least(d->names, ep_canvas_columns(d->text.ptr) + 1);
    }
    d->names = d->names < NAME_MOST ? d->names : NAME_MOST;
    if (d->names > d->term->width / 2)
        d->names = d->term->width / 2;
    width = d->term->width - d->names;
    d->beside = g->beside && width > 4;
    if ((g->cols + 1) * CELL + 1 > (size_t)width &&
        g->cols * CELL <= (size_t)width)
        d->beside = false; /* the figures are more */
    d->table = isnan(g->col_lo) &&
               (g->cols + d->beside) * CELL + d->beside <= (size_t)width;
    width -= d->beside ? 4 : 0;
    width = width > 1 ? width : 1;
    room = room > LEAST_ROWS ? room : LEAST_ROWS;
    d->two = g->rows > (size_t)room;
    d->cper = ep_bin_size(g->cols, (size_t)width, false);
    d->each = d->table ? CELL : width / (int)ep_bin_count(g->cols, d->cper);
    d->each = d->table || d->each < 3 ? d->each : 3;
    d->worst = (size_t)room / 3;
    d->lines = d->two ? room : (int)g->rows;
}

static void two_panels(struct grid_text *d)
{
    const struct ep_grid *g = d->g;
    size_t *row = ep_calloc(d->worst, sizeof *row), rper;
    int lines = d->lines - (int)d->worst - 2, y = d->head + 1;
    bool halves;

    ep_grid_worst_rows(g, row, d->worst);
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, "the worst %zu of %zu%s:", d->worst, g->rows,
                g->by_mean ? ", by their mean" : "");
    ep_canvas_text_in(d->c, 0, d->head, d->term->width, d->text.ptr);
    draw_rows(d, row, d->worst, 1, y);
    free(row);
    y += (int)d->worst + 1;
    halves = d->colour && d->term->utf8 && !d->table && d->each == 1;
    rper = ep_bin_size(
        g->rows, (size_t)(lines > 1 ? lines : 1) * (halves ? 2 : 1), false);
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, "all %zu: worst of %zu rows", g->rows, rper);
    if (d->cper > 1)
        ep_buf_addf(&d->text, " x %zu columns", d->cper);
    ep_buf_addc(&d->text, ':');
    ep_canvas_text_in(d->c, 0, y - 1, d->term->width, d->text.ptr);
    draw_rows(d, NULL, g->rows, rper, y);
    rper = ep_bin_count(g->rows, rper);
    d->lines = y - d->head + (int)(halves ? (rper + 1) / 2 : rper);
}

void ep_grid_text(const struct ep_grid *g, const struct ep_look *look,
                  struct ep_buf *out)
{
    const char *title = look->title ? look->title : g->title;
    struct grid_text d = {.g = g, .term = &look->term};
    int y;

    ep_buf_init(&d.text);
    d.colour = look->term.depth != EP_DEPTH_NONE;
    ep_grid_scale_init(&d.scale, g);
    d.div = ep_axis_prefix(d.scale.hi, g->unit, &d.prefix);
    d.head = ep_canvas_head(NULL, look->term.width, title, g->summary);
    lay_out(&d);
    /* the scale may need three lines */
    d.c = ep_canvas_new(&look->term, look->term.width,
                        d.head + d.lines + FOOT + 3);
    (void)ep_canvas_head(d.c, look->term.width, title, g->summary);
    if (d.two)
        two_panels(&d);
    else
        draw_rows(&d, NULL, g->rows, 1, d.head);
    y = d.head + d.lines;
    draw_below(&d, y);
    y += g->below != NULL;
    columns(&d, y);
    legend(&d, y + 2);
    ep_canvas_print(d.c, out);
    ep_canvas_free(d.c);
    ep_buf_free(&d.text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* grid_svg.c - a grid as SVG; see grid.h. */
#include "config.h"

#include "base/mem.h"
#include "draw/axis.h"
#include "draw/bin.h"
#include "draw/colour.h"
#include "draw/grid.h"
#include "draw/svg.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LEVELS 41    /* colours of the scale; odd, so that 1 has its own */
#define BUDGET 12000 /* cells of a picture: about 1.2 MB with their titles */
#define TOP 66.0     /* room for heading and summary */
#define BOTTOM 46.0
#define RIGHT 108.0 /* for the scale */
#define NAME_MOST 150.0
#define LEAST_ROW 10.0
#define WORST 8
#define WORST_ROW 15.0
#define OVERVIEW_ROW 5.0
#define LEAST_COL 4.0

struct grid_svg {
    const struct ep_grid *g;
    struct ep_grid_scale scale;
    struct ep_svg s;
    struct ep_buf text;
    double width, height;
    double left, top;  /* of the cells */
    double span, room; /* width of all cells; height that is there for them */
    size_t bcols;      /* columns that are drawn */
    bool two;          /* panels: the worst, and all */
    double div;        /* for values in cells */
    const char *prefix;
};

/* Rows of a panel: one block of rows each. */
struct panel {
    const double *v;   /* [rows][cols] */
    const size_t *map; /* [rows] their numbers in the grid; NULL: the same */
    size_t rows, brows;
    double y, pitch;
};

static size_t level_of(const struct ep_grid_scale *s, double v)
{
    double at = ep_grid_scale_at(s, v);

    if (s->diverging)
        at = (at + 1) / 2;
    return (size_t)lround(at * (LEVELS - 1));
}

static double level_at(const struct ep_grid_scale *s, size_t level)
{
    double at = (double)level / (LEVELS - 1);

    return s->diverging ? 2 * at - 1 : at;
}

/* Classes c0..c40 of the levels, and k0..k40 of the text on them. */
static void add_classes(struct grid_svg *d)
{
    struct ep_buf light, dark;

    ep_buf_init(&light);
    ep_buf_init(&dark);
    ep_buf_adds(&light, ".x{shape-rendering:crispEdges}");
    for (size_t i = 0; i < LEVELS; i++) {
        double at = level_at(&d->scale, i);
        uint32_t day = ep_grid_colour(&d->scale, at, false);
        uint32_t night = ep_grid_colour(&d->scale, at, true);

        ep_buf_addf(&light, ".c%zu{fill:#%06x}.k%zu{fill:%s}", i, day, i,
                    ep_colour_is_light(day) ? "#000" : "#fff");
        if (night != day)
            ep_buf_addf(&dark, ".c%zu{fill:#%06x}", i, night);
        ep_buf_addf(&dark, ".k%zu{fill:%s}", i,
                    ep_colour_is_light(night) ? "#000" : "#fff");
    }
    ep_svg_style(&d->s, light.ptr, dark.ptr);
    ep_buf_free(&light);
    ep_buf_free(&dark);
}

static size_t original(const struct panel *p, size_t row)
{
    return p->map ? p->map[row] : row;
}

/* The title of a run of cells whose worst is v[at]. */
static void run_title(struct grid_svg *d, const struct panel *p, size_t br,
                      const size_t bc[2], size_t at)
{
    const struct ep_grid *g = d->g;
    size_t r0 = br * p->rows / p->brows;
    size_t r1 = (br + 1) * p->rows / p->brows - 1;
    size_t c0 = bc[0] * g->cols / d->bcols;
    size_t c1 = (bc[1] + 1) * g->cols / d->bcols - 1;
    struct ep_buf *b = &d->text;

    ep_buf_reset(b);
    ep_grid_add_cell(b, g, original(p, at / g->cols), at % g->cols);
    if (r0 == r1 && c0 == c1)
        return;
    ep_buf_adds(b, "\nworst of ");
    if (r0 != r1) {
        ep_grid_add_range(b, g, true, original(p, r0), original(p, r1));
        ep_buf_adds(b, c0 != c1 ? ", " : "");
    }
    if (c0 != c1)
        ep_grid_add_range(b, g, false, c0, c1);
}

static void cell_value(struct grid_svg *d, double x, double y, double v)
{
    char cls[16], text[24];

    (void)snprintf(cls, sizeof cls, "m k%zu", level_of(&d->scale, v));
    ep_grid_format(text, v / d->div);
    ep_svg_text(&d->s, cls, x, y, text);
}

static void panel_row(struct grid_svg *d, const struct panel *p, size_t br,
                      const size_t *at)
{
    double w = d->span / (double)d->bcols, h = p->pitch;
    bool values = w >= 34 && h >= 15;
    double gap = w >= 24 && h >= 9 ? 1 : 0;

    for (size_t c = 0; c < d->bcols;) {
        size_t end = c + 1, worst = at[c], level;
        char cls[16];
        double x; /* whole pixels: no seams */

        if (worst == SIZE_MAX) {
            c++;
            continue;
        }
        level = level_of(&d->scale, p->v[worst]);
        for (; gap == 0 && end < d->bcols && at[end] != SIZE_MAX &&
               level_of(&d->scale, p->v[at[end]]) == level;
             end++)
            if (d->g->low_is_bad ? p->v[at[end]] < p->v[worst]
                                 : p->v[at[end]] > p->v[worst])
                worst = at[end];
        (void)snprintf(cls, sizeof cls, "c%zu", level);
        run_title(d, p, br, (const size_t[2]){c, end - 1}, worst);
        x = round((double)c * w);
        ep_svg_rect(
            &d->s, cls,
            (const double[4]){x, 0, round((double)end * w) - x - gap, h - gap},
            d->text.ptr);
        if (values)
            cell_value(d, ((double)c + 0.5) * w, h / 2 + 4, p->v[worst]);
        c = end;
    }
}

static void row_names(struct grid_svg *d, const struct panel *p)
{
    size_t every = (size_t)ceil(13 / p->pitch);

    for (size_t i = 0; i < p->brows; i += every) {
        double y = p->y + ((double)i + 0.5) * p->pitch + 4;

        ep_buf_reset(&d->text);
        d->g->row_name(d->g->ctx, original(p, i * p->rows / p->brows),
                       &d->text);
        if (p->pitch < 13 && y < p->y + 9)
            y = p->y + 9;
        ep_svg_text_in(&d->s, "e", (const double[2]){d->left - 6, y}, 12,
                       NAME_MOST, d->text.ptr);
    }
}

static void draw_panel(struct grid_svg *d, const struct panel *p)
{
    size_t *at = ep_calloc(p->brows * d->bcols, sizeof *at);

    ep_bin_blocks(p->v, p->rows, d->g->cols, p->brows, d->bcols,
                  d->g->low_is_bad, at);
    ep_svg_rect(
        &d->s, "n",
        (const double[4]){d->left, p->y, d->span, (double)p->brows * p->pitch},
        NULL);
    for (size_t i = 0; i < p->brows; i++) {
        ep_svg_group(&d->s, "x", d->left, p->y + (double)i * p->pitch);
        panel_row(d, p, i, at + i * d->bcols);
        ep_svg_group_end(&d->s);
    }
    row_names(d, p);
    free(at);
}

/* Numbers, or names, below the lowest panel. */
static void columns(struct grid_svg *d, double y)
{
    const struct ep_grid *g = d->g;
    struct ep_axis a;

    if (!isnan(g->col_lo)) {
        ep_axis_init(&a, EP_AXIS_INTEGER, g->col_lo, g->col_hi + 1,
                     (int)fmax(d->span / 70, 3), "", false);
        for (int i = 0; i < a.n; i++) {
            double x = d->left + d->span * ep_axis_pos(&a, a.tick[i].at);

            ep_svg_line(&d->s, "a", x, y, x, y + 4);
            ep_svg_text(&d->s, "m", x, y + 16, a.tick[i].label);
        }
    } else {
        double w = d->span / (double)g->cols, most = 0;
        size_t every;

        for (size_t i = 0; i < g->cols && g->cols <= 4096; i++) {
            ep_buf_reset(&d->text);
            g->col_name(g->ctx, i, &d->text);
            most = fmax(most, ep_svg_text_width(d->text.ptr, 12));
        }
        most = fmin(most, 110);
        every = (size_t)ceil((most + 8) / w);
        for (size_t i = 0; i < g->cols; i += every) {
            double x = d->left + ((double)i + 0.5) * w;

            ep_buf_reset(&d->text);
            g->col_name(g->ctx, i, &d->text);
            ep_svg_text_in(&d->s, "m", (const double[2]){x, y + 16}, 12,
                           fmin(fmax((double)every * w - 4, 20), most + 4),
                           d->text.ptr);
        }
    }
    ep_svg_text(&d->s, "s m", d->left + d->span / 2, y + 34, g->cols_are);
}

/* The scale: what colour means what. */
static void legend(struct grid_svg *d, double y, double h)
{
    const struct ep_grid_scale *s = &d->scale;
    double x = d->left + d->span + 22;
    struct ep_axis a;
    int steps = 40;

    ep_axis_init(&a, s->log ? EP_AXIS_LOG : EP_AXIS_LINEAR, s->lo, s->hi,
                 (int)(h / 26), d->g->unit, false);
    for (int i = 0; i < steps; i++) {
        double f = 1 - (i + 0.5) / steps;
        double v = s->log ? s->lo * pow(s->hi / s->lo, f)
                          : s->lo + f * (s->hi - s->lo);
        char cls[16];

        (void)snprintf(cls, sizeof cls, "c%zu", level_of(s, v));
        ep_svg_rect(&d->s, cls,
                    (const double[4]){x, y + h * i / steps, 12,
                                      h / steps + (i + 1 < steps ? 0.5 : 0)},
                    NULL);
    }
    for (int i = 0; i < a.n; i++) {
        double at = y + h * (1 - ep_axis_pos(&a, a.tick[i].at));

        ep_svg_line(&d->s, "a", x + 12, at, x + 15, at);
        ep_svg_text(&d->s, "", x + 18, at + 4, a.tick[i].label);
    }
    ep_svg_text(&d->s, "s", x, y + h + 16, d->g->value_is);
    if (*a.unit)
        ep_svg_text(&d->s, "s", x, y + h + 30, a.unit);
    if (s->below || s->above)
        ep_svg_text(&d->s, "s", x, y + h + (*a.unit ? 44 : 30),
                    s->below && s->above ? "(and beyond)"
                    : s->above           ? "(and above)"
                                         : "(and below)");
}

static double widest_name(struct grid_svg *d)
{
    double most = 30;
    size_t every = d->g->rows / 4096 + 1;

    for (size_t i = 0; i < d->g->rows; i += every) {
        ep_buf_reset(&d->text);
        d->g->row_name(d->g->ctx, i, &d->text);
        most = fmax(most, ep_svg_text_width(d->text.ptr, 12));
    }
    return fmin(most, NAME_MOST);
}

/* Sizes and places of everything. */
static void lay_out(struct grid_svg *d, const struct ep_look *look)
{
    const struct ep_grid *g = d->g;
    double rows = (double)g->rows, cols = (double)g->cols, most;
    size_t shown;

    d->width = look->width > 0 ? look->width : 960;
    d->top = TOP;
    d->left = round(14 + widest_name(d) + 22);
    d->room = look->height > 0 ? look->height - TOP - BOTTOM : 460;
    d->room = fmax(d->room, 80);
    d->two = rows * LEAST_ROW > d->room;
    most = d->width - d->left - RIGHT;
    d->span = floor(isnan(g->col_lo) ? fmin(most, cols * 92) : most);
    shown = d->two ? WORST + (size_t)(d->room / OVERVIEW_ROW) : g->rows;
    d->bcols = g->cols;
    if ((double)d->bcols > d->span / LEAST_COL)
        d->bcols = (size_t)(d->span / LEAST_COL);
    if (d->bcols > BUDGET / shown)
        d->bcols = BUDGET / shown;
    d->bcols = d->bcols ? d->bcols : 1;
    if (!(look->width > 0))
        d->width = fmax(d->left + d->span + RIGHT, 480);
}

static double one_panel(struct grid_svg *d)
{
    double rows = (double)d->g->rows;
    struct panel p = {.v = d->g->v,
                      .rows = d->g->rows,
                      .brows = d->g->rows,
                      .y = d->top,
                      .pitch = fmin(floor(d->room / rows), 36)};

    draw_panel(d, &p);
    return p.y + rows * p.pitch;
}

static double two_panels(struct grid_svg *d)
{
    const struct ep_grid *g = d->g;
    size_t worst[WORST];
    struct panel p = {.map = worst,
                      .rows = WORST,
                      .brows = WORST,
                      .y = d->top + 16,
                      .pitch = WORST_ROW};
    double *copy;
    char text[96];

    ep_grid_worst_rows(g, worst, WORST);
    p.v = copy = ep_grid_copy_rows(g, worst, WORST);
    (void)snprintf(text, sizeof text, "the worst %d of %zu, by their mean",
                   WORST, g->rows);
    ep_svg_text_in(&d->s, "s", (const double[2]){d->left, d->top + 10}, 11,
                   d->span + 16, text);
    draw_panel(d, &p);
    free(copy);
    p = (struct panel){.v = g->v, .rows = g->rows, .pitch = OVERVIEW_ROW};
    p.y = d->top + 16 + WORST * WORST_ROW + 26;
    p.brows = (size_t)fmax((d->room - (p.y - d->top)) / OVERVIEW_ROW, 4);
    p.brows = p.brows < g->rows ? p.brows : g->rows;
    (void)snprintf(text, sizeof text,
                   "all %zu in order; a line shows the worst of %s%zu", g->rows,
                   g->rows % p.brows ? "up to " : "",
                   (g->rows + p.brows - 1) / p.brows);
    ep_svg_text_in(&d->s, "s", (const double[2]){d->left, p.y - 6}, 11,
                   d->span + 16, text);
    draw_panel(d, &p);
    return p.y + (double)p.brows * p.pitch;
}

void ep_grid_svg(const struct ep_grid *g, const struct ep_look *look,
                 struct ep_buf *out)
{
    const char *title = look->title ? look->title : g->title;
    struct grid_svg d = {.g = g};
    struct ep_buf body;
    double bottom;

    ep_buf_init(&d.text);
    ep_buf_init(&body);
    ep_grid_scale_init(&d.scale, g);
    d.div = ep_axis_prefix(d.scale.hi, g->unit, &d.prefix);
    lay_out(&d, look);
    d.s.out = &body; /* its height is known when it is drawn */
    bottom = d.two ? two_panels(&d) : one_panel(&d);
    columns(&d, bottom);
    legend(&d, d.top + (d.two ? 16 : 0),
           fmin(fmax(bottom - d.top - (d.two ? 16 : 0), 84), 220));
    ep_svg_text(&d.s, "s", 14, TOP - 5, g->rows_are);
    d.height = fmax(fmax(bottom + BOTTOM, d.top + 84 + BOTTOM), look->height);
    ep_svg_begin(&d.s, out, d.width, d.height, title, g->summary);
    add_classes(&d);
    ep_svg_text_in(&d.s, "h", (const double[2]){14, 26}, 17, d.width - 28,
                   title);
    ep_svg_text_in(&d.s, "s", (const double[2]){14, 43}, 11, d.width - 28,
                   g->summary);
    ep_buf_add(out, body.ptr, body.len);
    ep_svg_end(&d.s);
    ep_buf_free(&body);
    ep_buf_free(&d.text);
}

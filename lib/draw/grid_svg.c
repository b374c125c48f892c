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
#include <string.h>

#define LEVELS 41       /* colours of the scale; odd, so that 1 has its own */
#define BUDGET 12000    /* cells of a picture, at most */
#define PICTURE 1850000 /* bytes of all cells with their titles, at most */
#define AXIS 14.0       /* room for what the rows are */
#define BOTTOM 46.0
#define RIGHT 108.0 /* for the scale */
#define NAME_MOST 150.0
#define LEAST_ROW 10.0
#define WORST 8
#define WORST_ROW 15.0
#define OVERVIEW_ROW 4.0
#define SECOND (WORST * WORST_ROW + 42) /* where the second panel begins */
#define OVERVIEW_MOST 12.0
#define CELL_MOST 92.0
#define BESIDE_LEAST 36.0
#define BESIDE_MOST 60.0
#define BELOW_ROW 20.0
#define GAP 5.0 /* before what is beside and below */
#define LEAST_COL 4.0

struct grid_svg {
    const struct ep_grid *g;
    struct ep_grid_scale scale;
    struct ep_svg s;
    struct ep_buf text;
    double width, height;
    double left, top;  /* of the cells */
    double span, room; /* width of all cells; height that is there for them */
    double beside;     /* room of the column beside; 0: there is none */
    size_t cper;       /* columns that share one */
    size_t rper;       /* rows that share a line of the second panel */
    bool two;          /* panels: the worst, and all */
    double div;        /* for values in cells */
    const char *prefix;
};

/* Rows of a grid, or of what is beside or below it: one block of them each. */
struct panel {
    const struct ep_grid *g;
    const double *v;   /* [rows][cols of g] */
    const size_t *map; /* [rows] their numbers in the grid; NULL: the same */
    size_t rows, rper, cper;
    double x, y, span, pitch;
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

static size_t at_most(size_t v, size_t most)
{
    return v < most ? v : most;
}

static size_t original(const struct panel *p, size_t row)
{
    return p->map ? p->map[row] : row;
}

/* The title of a run of cells whose worst is v[at]. */
static void run_title(struct grid_svg *d, const struct panel *p, size_t br,
                      const size_t bc[2], size_t at)
{
    const struct ep_grid *g = p->g;
    size_t r0 = br * p->rper, r1 = at_most(r0 + p->rper, p->rows) - 1;
    size_t c0 = bc[0] * p->cper;
    size_t c1 = at_most((bc[1] + 1) * p->cper, g->cols) - 1;
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
    size_t bcols = ep_bin_count(p->g->cols, p->cper);
    double w = p->span / (double)bcols, h = p->pitch;
    bool values = w >= 34 && h >= 15;
    double gap = w >= 24 && h >= 9 ? 1 : 0;

    for (size_t c = 0; c < bcols;) {
        size_t end = c + 1, worst = at[c], level;
        char cls[16];
        double x; /* whole pixels: no seams */

        if (worst == SIZE_MAX) {
            c++;
            continue;
        }
        level = level_of(&d->scale, p->v[worst]);
        for (; gap == 0 && end < bcols && at[end] != SIZE_MAX &&
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

/* Of lines, as many as there is room for. */
static void row_names(struct grid_svg *d, const struct panel *p)
{
    size_t every = (size_t)ceil(13 / p->pitch);

    for (size_t i = 0; i * p->rper < p->rows; i += every) {
        double y = p->y + ((double)i + 0.5) * p->pitch + 4;

        ep_buf_reset(&d->text);
        p->g->row_name(p->g->ctx, original(p, i * p->rper), &d->text);
        if (p->pitch < 13 && y < p->y + 9)
            y = p->y + 9;
        ep_svg_text_in(&d->s, "e", (const double[2]){d->left - 6, y}, 12,
                       NAME_MOST, d->text.ptr);
    }
}

static void draw_panel(struct grid_svg *d, const struct panel *p)
{
    size_t brows = ep_bin_count(p->rows, p->rper);
    size_t bcols = ep_bin_count(p->g->cols, p->cper);
    size_t *at = ep_calloc(brows * bcols, sizeof *at);

    ep_bin_blocks(p->v, p->rows, p->g->cols, p->rper, p->cper, d->g->low_is_bad,
                  at);
    ep_svg_rect(
        &d->s, "n",
        (const double[4]){p->x, p->y, p->span, (double)brows * p->pitch}, NULL);
    for (size_t i = 0; i < brows; i++) {
        ep_svg_group(&d->s, "x", p->x, p->y + (double)i * p->pitch);
        panel_row(d, p, i, at + i * bcols);
        ep_svg_group_end(&d->s);
    }
    free(at);
}

/* Rows of the grid, and of what is beside it; where they end. */
static double draw_rows(struct grid_svg *d, const size_t *map, size_t rows,
                        const double y_pitch[2], size_t rper)
{
    double y = y_pitch[0], pitch = y_pitch[1];
    struct panel p = {.map = map,
                      .rows = rows,
                      .rper = rper,
                      .cper = d->cper,
                      .x = d->left,
                      .y = y,
                      .span = d->span,
                      .pitch = pitch};
    double *copy = NULL;

    for (int beside = 0; beside < (d->g->beside ? 2 : 1); beside++) {
        p.g = beside ? d->g->beside : d->g;
        if (map)
            copy = ep_grid_copy_rows(p.g, map, rows);
        p.v = map ? copy : p.g->v;
        draw_panel(d, &p);
        if (!beside)
            row_names(d, &p);
        free(copy);
        copy = NULL;
        p.x = d->left + d->span + GAP;
        p.span = d->beside - GAP;
        p.cper = 1;
    }
    return y + pitch * (double)ep_bin_count(rows, rper);
}

/* The row below the grid. */
static double draw_below(struct grid_svg *d, double y)
{
    struct panel p = {.g = d->g->below,
                      .rows = 1,
                      .rper = 1,
                      .cper = d->cper,
                      .x = d->left,
                      .y = y + GAP,
                      .span = d->span,
                      .pitch = BELOW_ROW};

    if (!p.g)
        return y;
    p.v = p.g->v;
    draw_panel(d, &p);
    row_names(d, &p);
    return p.y + p.pitch;
}

static void step_numbers(struct grid_svg *d, double y, double w)
{
    const struct ep_grid *g = d->g;
    double steps = (g->col_hi - g->col_lo + 1) / (double)g->cols;
    struct ep_axis a;

    ep_axis_init(&a, EP_AXIS_INTEGER, g->col_lo, g->col_hi + 1,
                 (int)fmax(d->span / 70, 3), "", false);
    for (int i = 0; i < a.n; i++) {
        double at = (a.tick[i].at - g->col_lo) / steps / (double)d->cper;
        double x = d->left + w * at;

        ep_svg_line(&d->s, "a", x, y, x, y + 4);
        ep_svg_text(&d->s, "m", x, y + 16, a.tick[i].label);
    }
}

static void column_names(struct grid_svg *d, double y, double w)
{
    const struct ep_grid *g = d->g;
    size_t bcols = ep_bin_count(g->cols, d->cper), every;
    double most = 0, x;

    for (size_t i = 0; i < g->cols && g->cols <= 4096; i++) {
        ep_buf_reset(&d->text);
        g->col_name(g->ctx, i, &d->text);
        most = fmax(most, ep_svg_text_width(d->text.ptr, 12));
    }
    most = fmin(most, 110);
    every = (size_t)ceil((most + 4) / w);
    for (size_t i = 0; i < bcols; i += every) {
        ep_buf_reset(&d->text);
        g->col_name(g->ctx, i * d->cper, &d->text);
        x = d->left + ((double)i + 0.5) * w;
        if (g->beside && x + ep_svg_text_width(d->text.ptr, 12) / 2 >
                             d->left + d->span + GAP)
            continue; /* would meet the name of what is beside */
        ep_svg_text_in(&d->s, "m", (const double[2]){x, y + 16}, 12,
                       fmin(fmax((double)every * w - 4, 20), most + 4),
                       d->text.ptr);
    }
    if (!g->beside)
        return;
    ep_buf_reset(&d->text);
    g->beside->col_name(g->beside->ctx, 0, &d->text);
    ep_svg_text(&d->s, "m", d->left + d->span + (GAP + d->beside) / 2, y + 16,
                d->text.ptr);
}

/* Numbers, or names, below the lowest panel, and what they are. */
static void columns(struct grid_svg *d, double y)
{
    const struct ep_grid *g = d->g;
    double w = d->span / (double)ep_bin_count(g->cols, d->cper);
    double each = (double)d->cper, x = d->left + d->span / 2, half;

    if (!isnan(g->col_lo)) {
        step_numbers(d, y, w);
        each *= ceil((g->col_hi - g->col_lo + 1) / (double)g->cols);
    } else {
        column_names(d, y, w);
    }
    ep_buf_reset(&d->text);
    ep_buf_adds(&d->text, g->cols_are);
    if (each > 1)
        ep_buf_addf(&d->text, "; worst of %.0f in a column", each);
    half = ep_svg_text_width(d->text.ptr, 11) / 2;
    x = fmin(x, d->left + d->span + d->beside + 18 - half);
    ep_svg_text(&d->s, "s m", fmax(x, half + 14), y + 34, d->text.ptr);
}

/* The scale: what colour means what; returns where it ends. */
static double legend(struct grid_svg *d, double y, double h)
{
    const struct ep_grid_scale *s = &d->scale;
    double x = d->left + d->span + d->beside + 22, end = y + h + 16;
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
    ep_svg_text(&d->s, "s", x, end, d->g->value_is);
    if (*a.unit)
        ep_svg_text(&d->s, "s", x, end += 14, a.unit);
    if (s->below || s->above)
        ep_svg_text(&d->s, "s", x, end += 14,
                    s->below && s->above ? "(and beyond)"
                    : s->above           ? "(and above)"
                                         : "(and below)");
    return end + 10;
}

/* A name in text: its width, and its bytes with markup escaped. */
struct extent {
    double width;
    size_t bytes;
};

/* The greatest of all rows, or columns. */
static struct extent widest_name(struct grid_svg *d, bool rows)
{
    const struct ep_grid *g = d->g;
    struct extent most = {30, 0};
    size_t n = rows ? g->rows : g->cols, every = n / 4096 + 1;

    for (size_t i = 0; i < n; i += every) {
        size_t bytes = 0;

        ep_buf_reset(&d->text);
        (rows ? g->row_name : g->col_name)(g->ctx, i, &d->text);
        for (const char *c = d->text.ptr; *c; c++)
            bytes += strchr("&<>\"", *c) ? 6 : 1;
        most.bytes = bytes > most.bytes ? bytes : most.bytes;
        most.width = fmax(most.width, ep_svg_text_width(d->text.ptr, 12));
    }
    return most;
}

/* Sizes and places of everything. */
static void lay_out(struct grid_svg *d, const struct ep_look *look,
                    const char *title)
{
    const struct ep_grid *g = d->g;
    double cols = (double)g->cols, most, below = g->below ? BELOW_ROW + GAP : 0;
    struct extent row = widest_name(d, true), col = widest_name(d, false);
    /* a cell's title has each name three times: its own, the first, the last */
    size_t cells = PICTURE / (60 + 3 * (row.bytes + col.bytes));
    size_t shown, bcols;

    d->width = look->width > 0 ? look->width : 960;
    d->left = round(14 + fmin(row.width, NAME_MOST) + 22);
    most = d->width - d->left - RIGHT;
    if (g->beside) {
        d->beside = fmin(floor(most / (cols + 1)), BESIDE_MOST);
        d->beside = fmax(d->beside, BESIDE_LEAST) + GAP;
    }
    most -= d->beside;
    d->span = floor(isnan(g->col_lo) ? fmin(most, cols * CELL_MOST) : most);
    if (!(look->width > 0))
        d->width = fmax(d->left + d->span + d->beside + RIGHT, 480);
    d->top =
        EP_SVG_HEAD + AXIS + ep_svg_head_more(d->width - 28, title, g->summary);
    d->room = look->height > 0 ? look->height - d->top - BOTTOM - below : 460;
    d->room = fmax(d->room, 80);
    d->two = (double)g->rows * LEAST_ROW > d->room;
    shown = g->rows;
    if (d->two) {
        shown = (size_t)fmax((d->room - SECOND) / OVERVIEW_ROW, 4);
        d->rper = ep_bin_size(g->rows, shown, true);
        shown = WORST + ep_bin_count(g->rows, d->rper);
    }
    bcols =
        at_most((size_t)(d->span / LEAST_COL), at_most(cells, BUDGET) / shown);
    d->cper = ep_bin_size(g->cols, bcols ? bcols : 1, isnan(g->col_lo));
}

static double one_panel(struct grid_svg *d)
{
    size_t rows = d->g->rows;
    double pitch = fmin(floor(d->room / (double)rows), 36);

    return draw_rows(d, NULL, rows, (const double[2]){d->top, pitch}, 1);
}

/* Above the cells; where they are narrow, it begins left of them. */
static void caption(struct grid_svg *d, double y, const char *text)
{
    double end = d->left + d->span + d->beside + 18;
    double x = fmin(d->left, end - ep_svg_text_width(text, 11));

    x = fmax(x, 14);
    ep_svg_text_in(&d->s, "s", (const double[2]){x, y}, 11, end - x + 1, text);
}

/* The worst rows, and all of them. */
static double two_panels(struct grid_svg *d)
{
    const struct ep_grid *g = d->g;
    double lines = (double)ep_bin_count(g->rows, d->rper);
    double y = d->top + 16, pitch;
    size_t worst[WORST];
    char text[96];

    ep_grid_worst_rows(g, worst, WORST);
    (void)snprintf(text, sizeof text, "the worst %d of %zu%s", WORST, g->rows,
                   g->by_mean ? ", by their mean" : "");
    caption(d, d->top + 10, text);
    (void)draw_rows(d, worst, WORST, (const double[2]){y, WORST_ROW}, 1);
    y = d->top + SECOND;
    pitch = floor((d->room - SECOND) / lines);
    pitch = fmin(fmax(pitch, OVERVIEW_ROW), OVERVIEW_MOST);
    (void)snprintf(text, sizeof text,
                   d->rper > 1 ? "all %zu; a line shows the worst of %zu"
                               : "all %zu in order",
                   g->rows, d->rper);
    caption(d, y - 6, text);
    return draw_rows(d, NULL, g->rows, (const double[2]){y, pitch}, d->rper);
}

void ep_grid_svg(const struct ep_grid *g, const struct ep_look *look,
                 struct ep_buf *out)
{
    const char *title = look->title ? look->title : g->title;
    struct grid_svg d = {.g = g};
    struct ep_buf body;
    double bottom, legend_end;

    ep_buf_init(&d.text);
    ep_buf_init(&body);
    ep_grid_scale_init(&d.scale, g);
    d.div = ep_axis_prefix(d.scale.hi, g->unit, &d.prefix);
    lay_out(&d, look, title);
    d.s.out = &body; /* its height is known when it is drawn */
    bottom = draw_below(&d, d.two ? two_panels(&d) : one_panel(&d));
    columns(&d, bottom);
    legend_end = legend(&d, d.top + (d.two ? 16 : 0),
                        fmin(fmax(bottom - d.top - (d.two ? 16 : 0), 84), 220));
    ep_svg_text(&d.s, "s", 14, d.top - 5, g->rows_are);
    d.height = fmax(fmax(bottom + BOTTOM, legend_end), look->height);
    ep_svg_begin(&d.s, out, d.width, d.height, title, g->summary);
    add_classes(&d);
    ep_svg_head(&d.s, 14, d.width - 28, title, g->summary);
    ep_buf_add(out, body.ptr, body.len);
    ep_svg_end(&d.s);
    ep_buf_free(&body);
    ep_buf_free(&d.text);
}

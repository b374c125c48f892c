/* SPDX-License-Identifier: Apache-2.0 */
/* curves_svg.c - curves as SVG; see curves.h. */
#include "config.h"

#include "base/mem.h"
#include "draw/bin.h"
#include "draw/colour.h"
#include "draw/curves.h"
#include "draw/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ENTRY 18.0
#define MARK_ROW 15.0
#define MARK_ROWS 3
#define MARK_LINES 60 /* more would hide the curves */
#define GLYPH 11.0    /* room for the signs of marks */
#define BOTTOM 48.0
#define MARGIN 16.0
#define LABEL 150.0 /* widest label of a mark */
#define LONE 3.0    /* half of the dash that a lone point is */
#define HOVERS 200  /* of those, at most */
#define HOVER 7.0   /* width of what reacts to the pointer, at least */

struct curves_svg {
    const struct ep_curves *c;
    struct ep_svg s;
    struct ep_buf text;
    struct ep_axis x, y;
    double head; /* where heading and summary end */
    double width, height, left, right, top, bottom; /* of the plot */
    size_t columns;
    int rows; /* of labels of marks */
};

/* What the pen of a curve has to know. */
struct pen {
    struct curves_svg *d;
    bool open, alone; /* a path was begun; it is one point so far */
};

static double at_x(const struct curves_svg *d, double v)
{
    return d->left + (d->right - d->left) * ep_axis_pos(&d->x, v);
}

static double at_y(const struct curves_svg *d, double v)
{
    return d->bottom - (d->bottom - d->top) * ep_axis_pos(&d->y, v);
}

static void add_classes(struct curves_svg *d)
{
    ep_buf_reset(&d->text);
    for (unsigned i = 0; i < EP_YELLOW; i++)
        ep_buf_addf(&d->text, ".l%u{stroke:#%06x}", i, ep_colour_category(i));
    ep_buf_adds(&d->text,
                ".l{stroke-width:1.6;stroke-linejoin:round;"
                "stroke-linecap:round}.l:hover{stroke-width:3}"
                ".ln{stroke:#24292f;stroke-width:2.2;stroke-opacity:.55}"
                ".ld{stroke-dasharray:5 3}"
                ".lm{stroke:#57606a;stroke-width:1.6;stroke-dasharray:8 3}"
                ".b{fill:#8b949e;fill-opacity:.25}"
                ".m0{stroke:#d55e00;fill:#d55e00}"
                ".m1{stroke:#009e73;fill:#009e73}"
                ".m2{stroke:#cc79a7;fill:#cc79a7}.d{stroke-dasharray:3 3}"
                ".z{stroke:none}");
    ep_svg_style(&d->s, d->text.ptr,
                 ".ln{stroke:#e6edf3}.lm{stroke:#9aa4af}.l0{stroke:#3d9be0}");
}

/* Height of what stands above the plot for marks. */
static double marks_room(const struct curves_svg *d)
{
    return d->rows ? GLYPH + d->rows * MARK_ROW : 0;
}

static void frame(struct curves_svg *d)
{
    ep_svg_rect(&d->s, "p",
                (const double[4]){d->left, d->top, d->right - d->left,
                                  d->bottom - d->top},
                NULL);
    for (int i = 0; i < d->y.n; i++) {
        double y = at_y(d, d->y.tick[i].at);

        ep_svg_line(&d->s, "g", d->left, y, d->right, y);
        ep_svg_text(&d->s, "e", d->left - 7, y + 4, d->y.tick[i].label);
    }
    for (int i = 0; i < d->x.n; i++) {
        double x = at_x(d, d->x.tick[i].at);
        double half = ep_svg_text_width(d->x.tick[i].label, 12) / 2;

        ep_svg_line(&d->s, "a", x, d->bottom, x, d->bottom + 5);
        ep_svg_text(&d->s, "m", fmin(x, d->width - half - 2), d->bottom + 18,
                    d->x.tick[i].label);
    }
    ep_svg_line(&d->s, "a", d->left, d->bottom, d->right, d->bottom);
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, *d->x.unit ? "%s (%s)" : "%s", d->c->x_is, d->x.unit);
    ep_svg_text(&d->s, "s m", (d->left + d->right) / 2, d->bottom + 36,
                d->text.ptr);
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, *d->y.unit ? "%s, %s" : "%s", d->c->y_is, d->y.unit);
    ep_buf_adds(&d->text, d->y.kind == EP_AXIS_LOG ? " (log)" : "");
    ep_svg_text(&d->s, "s", MARGIN, d->top - 12 - marks_room(d), d->text.ptr);
}

static void band(struct curves_svg *d)
{
    const struct ep_curve_band *b = &d->c->band;

    if (!b->n)
        return;
    ep_svg_path(&d->s, "b");
    for (size_t i = 0; i < b->n; i++)
        (i ? ep_svg_to : ep_svg_move)(&d->s, at_x(d, b->x[i]),
                                      at_y(d, b->hi[i]));
    for (size_t i = b->n; i-- > 0;)
        ep_svg_to(&d->s, at_x(d, b->x[i]), at_y(d, b->lo[i]));
    ep_svg_path_end(&d->s, b->name);
    ep_svg_path(&d->s, "l lm");
    for (size_t i = 0; i < b->n; i++)
        (i ? ep_svg_to : ep_svg_move)(&d->s, at_x(d, b->x[i]),
                                      at_y(d, b->mid[i]));
    ep_svg_path_end(&d->s, b->middle);
}

/* One point that no line leads to: a dash that can be seen. */
static void lone_point(const struct pen *p)
{
    struct ep_svg *s = &p->d->s;
    double x = s->pen_x, y = s->pen_y;

    if (!p->alone)
        return;
    ep_svg_move(s, x - LONE, y);
    ep_svg_to(s, x + LONE, y);
}

static void draw(void *ctx, double x, double y, bool move)
{
    struct pen *p = ctx;
    double px = at_x(p->d, x), py = at_y(p->d, y);

    if (move) {
        lone_point(p);
        ep_svg_move(&p->d->s, px, py);
    } else {
        ep_svg_to(&p->d->s, px, py);
    }
    p->alone = move;
}

/* Colours, and from the seventh on the same ones dashed: yellow is too faint
   for a line. */
static void curve_class(char cls[24], const struct ep_curve *c)
{
    if (c->neutral)
        (void)snprintf(cls, 24, "l ln");
    else
        (void)snprintf(cls, 24, "l l%u%s", c->colour % EP_YELLOW,
                       c->dashed || c->colour >= EP_YELLOW ? " ld" : "");
}

/* "rank 2: 450 ms to 652 ms, the most at step 61" */
static void curve_title(struct curves_svg *d, const struct ep_curve *c)
{
    size_t min = 0, max = 0;

    for (size_t i = 1; i < c->n; i++) {
        min = c->y[i] < c->y[min] ? i : min;
        max = c->y[i] > c->y[max] ? i : max;
    }
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, "%s: ", c->name);
    ep_axis_add_value(&d->text, c->y[min], d->c->unit);
    ep_buf_adds(&d->text, " to ");
    ep_axis_add_value(&d->text, c->y[max], d->c->unit);
    if (c->step)
        ep_buf_addf(&d->text, ", the most at step %.0f", c->step[max]);
}

static void curve(struct curves_svg *d, size_t i)
{
    const struct ep_curve *c = &d->c->curve[i];
    struct pen p = {.d = d};
    char cls[24];

    if (!c->n)
        return;
    curve_class(cls, c);
    ep_svg_path(&d->s, cls);
    ep_curve_trace(c, &d->x, d->columns, draw, &p);
    lone_point(&p);
    curve_title(d, c);
    ep_svg_path_end(&d->s, d->text.ptr);
}

/* Strips over the plot whose titles say what is known there. */
static void hover(struct curves_svg *d)
{
    size_t n = (size_t)((d->right - d->left) / HOVER), most = 0;
    struct ep_bin_m4 *col;

    for (size_t i = 0; i < d->c->n; i++)
        most = d->c->curve[i].n > most ? d->c->curve[i].n : most;
    n = n < most ? n : most;
    n = n < HOVERS ? n : HOVERS;
    if (!n)
        return;
    col = ep_calloc(n * d->c->n, sizeof *col);
    for (size_t i = 0; i < d->c->n; i++)
        ep_bin_m4(d->c->curve[i].x, d->c->curve[i].y, d->c->curve[i].n, d->x.lo,
                  d->x.hi, col + i * n, n);
    for (size_t k = 0; k < n; k++) {
        double w = (d->right - d->left) / (double)n;
        bool any = false;

        ep_buf_reset(&d->text);
        for (size_t i = 0; i < d->c->n; i++) {
            const struct ep_curve *c = &d->c->curve[i];
            size_t at = col[i * n + k].max;

            if (!col[i * n + k].n)
                continue;
            if (!any && d->c->x_kind == EP_AXIS_TIME)
                ep_axis_add_time(&d->text, c->x[at]);
            any = true;
            ep_buf_addf(&d->text, "%s%s: ", d->text.len ? "\n" : "", c->name);
            ep_axis_add_value(&d->text, c->y[at], d->c->unit);
            if (c->step)
                ep_buf_addf(&d->text, " at step %.0f", c->step[at]);
        }
        if (any)
            ep_svg_rect(&d->s, "v",
                        (const double[4]){d->left + (double)k * w, d->top, w,
                                          d->bottom - d->top},
                        d->text.ptr);
    }
    free(col);
}

static void glyph(struct curves_svg *d, const struct ep_mark *m, double x)
{
    static const double way[] = {1, -1, 0}; /* down: slower; up: relieved */
    char cls[8];
    double y = d->top - 1, h = 7 * way[m->kind];

    (void)snprintf(cls, sizeof cls, "z m%d", (int)m->kind);
    if (m->kind == EP_MARK_SPIKE) {
        ep_svg_circle(&d->s, cls, x, y - 4, 3, m->title);
        return;
    }
    ep_svg_path(&d->s, cls);
    ep_svg_move(&d->s, x - 4.5, y - 3.5 - h / 2);
    ep_svg_to(&d->s, x + 4.5, y - 3.5 - h / 2);
    ep_svg_to(&d->s, x, y - 3.5 + h / 2);
    ep_svg_path_end(&d->s, m->title);
}

/* Labels of marks: each in the first row where it does not meet another. */
static void marks(struct curves_svg *d)
{
    size_t n = d->c->marks < EP_CURVES_MARKS ? d->c->marks : EP_CURVES_MARKS;
    double from[EP_CURVES_MARKS], to[EP_CURVES_MARKS];
    int row[EP_CURVES_MARKS];
    size_t placed = 0;

    for (size_t i = 0; i < n; i++) {
        const struct ep_mark *m = &d->c->mark[i];
        double x = at_x(d, m->x),
               w = fmin(ep_svg_text_width(m->label, 11), LABEL) + 14;
        double a = x + w > d->width ? x - w : x, b = a + w;
        char cls[16];
        int r = 0;

        (void)snprintf(cls, sizeof cls, "d m%d", (int)m->kind);
        if (i < MARK_LINES)
            ep_svg_line(&d->s, cls, x, d->top, x, d->bottom);
        glyph(d, m, x);
        for (size_t k = 0; k < placed && r < d->rows; k++)
            if (row[k] == r && a < to[k] + 6 && b > from[k] - 6) {
                r++;
                k = (size_t)-1;
            }
        if (r >= d->rows || a < 0)
            continue;
        row[placed] = r;
        from[placed] = a;
        to[placed++] = b;
        ep_svg_text_in(&d->s, a < x ? "s e" : "s",
                       (const double[2]){a < x ? x - 8 : x + 8,
                                         d->top - GLYPH - r * MARK_ROW},
                       11, LABEL, m->label);
    }
}

/* One entry; returns where the next one begins. */
static double entry(struct curves_svg *d, double at[2], const char *cls,
                    const char *name, bool wide)
{
    double w = fmin(ep_svg_text_width(name, 12), 200) + 34;

    if (at[0] + w > d->width - MARGIN && at[0] > MARGIN) {
        at[0] = MARGIN;
        at[1] += ENTRY;
    }
    if (wide)
        ep_svg_rect(&d->s, cls, (const double[4]){at[0], at[1] - 9, 18, 10},
                    NULL);
    else
        ep_svg_line(&d->s, cls, at[0], at[1] - 4, at[0] + 18, at[1] - 4);
    ep_svg_text_in(&d->s, "", (const double[2]){at[0] + 23, at[1]}, 12, 200,
                   name);
    at[0] += w;
    return at[1];
}

/* All entries; returns the base line of the last. */
static double legend(struct curves_svg *d)
{
    double at[2] = {MARGIN, d->head + 12};

    for (size_t i = 0; i < d->c->n; i++) {
        char cls[24];

        curve_class(cls, &d->c->curve[i]);
        (void)entry(d, at, cls, d->c->curve[i].name, false);
    }
    if (d->c->band.n) {
        (void)entry(d, at, "l lm", d->c->band.middle, false);
        (void)entry(d, at, "b", d->c->band.name, true);
    }
    return at[1];
}

static void lay_out(struct curves_svg *d, const struct ep_look *look,
                    double legend_end)
{
    double widest = 30;

    d->rows = d->c->marks > 2 ? MARK_ROWS : d->c->marks ? 2 : 0;
    d->top = legend_end + 30 + marks_room(d);
    d->height = look->height > 0 ? look->height : d->top + 280 + BOTTOM;
    d->bottom = fmax(d->height - BOTTOM, d->top + 60);
    d->height = d->bottom + BOTTOM;
    ep_curves_axes(d->c,
                   (const int[2]){(int)(d->width / 90),
                                  (int)fmax((d->bottom - d->top) / 40, 3)},
                   true, &d->x, &d->y);
    for (int i = 0; i < d->y.n; i++)
        widest = fmax(widest, ep_svg_text_width(d->y.tick[i].label, 12));
    d->left = MARGIN + widest + 4;
    d->right = d->width - MARGIN - 10;
    d->columns = (size_t)(d->right - d->left);
}

void ep_curves_svg(const struct ep_curves *c, const struct ep_look *look,
                   struct ep_buf *out)
{
    const char *title = look->title ? look->title : c->title;
    struct curves_svg d = {.c = c};
    struct ep_buf body;
    double y;

    ep_buf_init(&d.text);
    ep_buf_init(&body);
    d.s.out = &body; /* its height is known when the legend is */
    d.width = look->width > 0 ? look->width : 960;
    d.head =
        EP_SVG_HEAD + ep_svg_head_more(d.width - 2 * MARGIN, title, c->summary);
    y = legend(&d);
    lay_out(&d, look, y);
    frame(&d);
    band(&d);
    for (size_t i = c->n; i-- > 0;) /* the most important above the others */
        curve(&d, i);
    hover(&d);
    marks(&d);
    ep_svg_begin(&d.s, out, d.width, d.height, title, c->summary);
    add_classes(&d);
    ep_svg_head(&d.s, MARGIN, d.width - 2 * MARGIN, title, c->summary);
    ep_buf_add(out, body.ptr, body.len);
    ep_svg_end(&d.s);
    ep_buf_free(&body);
    ep_buf_free(&d.text);
}

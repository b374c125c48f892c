/* SPDX-License-Identifier: Apache-2.0 */
/* curves_text.c - curves as characters; see curves.h. */
#include "config.h"

#include "draw/colour.h"
#include "draw/curves.h"

#include <math.h>
#include <stdlib.h>

#define LEAST 8   /* lines of the plot */
#define CAPTION 3 /* lines, at most, of what the axes are */
#define GREY 0x8b949e

struct curves_text {
    const struct ep_curves *c;
    const struct ep_term *term;
    struct ep_canvas *canvas;
    struct ep_buf text;
    struct ep_axis x, y;
    int left, top, width, lines; /* of the plot, in characters */
    bool dots;                   /* Braille: colours tell curves apart */
};

/* A pen that draws lines between points, in dots or with a letter. */
struct pen {
    struct curves_text *d;
    int32_t colour;
    uint32_t letter;
    int x, y;
};

static void dot(const struct pen *p, int x, int y)
{
    struct curves_text *d = p->d;

    if (d->dots)
        ep_canvas_dot(d->canvas, d->left * 2 + x, d->top * 4 + y, p->colour);
    else
        ep_canvas_put(d->canvas, d->left + x, d->top + y, p->letter, p->colour,
                      EP_NO_COLOUR);
}

/* Bresenham's line, the first point left out. */
static void line(const struct pen *p, int x1, int y1)
{
    int x = p->x, y = p->y, dx = abs(x1 - x), dy = -abs(y1 - y), e = dx + dy;
    int sx = x < x1 ? 1 : -1, sy = y < y1 ? 1 : -1;

    while (x != x1 || y != y1) {
        int twice = 2 * e;

        if (twice >= dy) {
            e += dy;
            x += sx;
        }
        if (twice <= dx) {
            e += dx;
            y += sy;
        }
        dot(p, x, y);
    }
}

static void draw(void *ctx, double vx, double vy, bool move)
{
    struct pen *p = ctx;
    const struct curves_text *d = p->d;
    int w = d->width * (d->dots ? 2 : 1), h = d->lines * (d->dots ? 4 : 1);
    int x = (int)lround(ep_axis_pos(&d->x, vx) * (w - 1));
    int y = (int)lround((1 - ep_axis_pos(&d->y, vy)) * (h - 1));

    if (move)
        dot(p, x, y);
    else
        line(p, x, y);
    p->x = x;
    p->y = y;
}

static int32_t colour_of(const struct ep_curves *c, size_t i)
{
    return c->curve[i].neutral
               ? EP_NO_COLOUR
               : (int32_t)ep_colour_category(c->curve[i].colour);
}

static uint32_t letter_of(size_t i)
{
    return (uint32_t)("abcdefghi"[i % 9]);
}

static void band(struct curves_text *d)
{
    const struct ep_curve_band *b = &d->c->band;
    const double *edge[] = {b->lo, b->hi, b->mid};

    for (size_t k = 0; b->n && k < 3; k++) {
        struct pen p = {.d = d,
                        .colour = k == 2 ? EP_NO_COLOUR : GREY,
                        .letter = k == 2 ? '-' : '.'};

        for (size_t i = 0; i < b->n; i++)
            draw(&p, b->x[i], edge[k][i], i == 0);
    }
}

/* Returns the line below the last. */
static int axes(struct curves_text *d)
{
    int bottom = d->top + d->lines, free_from = 0;

    for (int i = 0; i < d->y.n; i++) {
        int y = d->top + (int)lround((1 - ep_axis_pos(&d->y, d->y.tick[i].at)) *
                                     (d->lines - 1));

        ep_canvas_text_end(d->canvas, d->left - 2, y, d->y.tick[i].label);
    }
    for (int y = d->top; y < bottom; y++)
        ep_canvas_put(d->canvas, d->left - 1, y, d->term->utf8 ? 0x2502 : '|',
                      EP_NO_COLOUR, EP_NO_COLOUR);
    for (int x = 0; x < d->width; x++)
        ep_canvas_put(d->canvas, d->left + x, bottom,
                      d->term->utf8 ? 0x2500 : '-', EP_NO_COLOUR, EP_NO_COLOUR);
    ep_canvas_put(d->canvas, d->left - 1, bottom, d->term->utf8 ? 0x2514 : '+',
                  EP_NO_COLOUR, EP_NO_COLOUR);
    for (int i = 0; i < d->x.n; i++) {
        int w = ep_canvas_columns(d->x.tick[i].label);
        int x = d->left + (int)lround(ep_axis_pos(&d->x, d->x.tick[i].at) *
                                      (d->width - 1));
        int from = x - w / 2;

        from = from + w > d->term->width ? d->term->width - w : from;
        if (from < free_from)
            continue;
        ep_canvas_put(d->canvas, x, bottom, d->term->utf8 ? 0x252c : '+',
                      EP_NO_COLOUR, EP_NO_COLOUR);
        ep_canvas_text(d->canvas, from, bottom + 1, d->x.tick[i].label,
                       EP_NO_COLOUR);
        free_from = from + w + 1;
    }
    ep_buf_reset(&d->text);
    ep_buf_addf(&d->text, *d->x.unit ? "%s (%s)" : "%s", d->c->x_is, d->x.unit);
    ep_buf_addf(&d->text, *d->y.unit ? "; upwards: %s, %s" : "; upwards: %s",
                d->c->y_is, d->y.unit);
    ep_buf_adds(&d->text, d->y.kind == EP_AXIS_LOG ? " (log)" : "");
    return bottom + 2 +
           ep_canvas_wrap(d->canvas, (const int[2]){d->left, bottom + 2},
                          d->term->width - d->left, CAPTION, d->text.ptr);
}

static void marks(struct curves_text *d)
{
    static const uint32_t ascii[] = {'v', '^', '*'};
    static const uint32_t fine[] = {0x25bc, 0x25b2, 0x25cf};
    static const int32_t colour[] = {0xd55e00, 0x009e73, 0xcc79a7};
    size_t n = d->c->marks < EP_CURVES_MARKS ? d->c->marks : EP_CURVES_MARKS;

    for (size_t i = n; i-- > 0;) {
        const struct ep_mark *m = &d->c->mark[i];
        int x =
            d->left + (int)lround(ep_axis_pos(&d->x, m->x) * (d->width - 1));

        ep_canvas_put(d->canvas, x, d->top - 1,
                      d->term->utf8 ? fine[m->kind] : ascii[m->kind],
                      colour[m->kind], EP_NO_COLOUR);
    }
}

/* One entry of the legend; from line y on. */
static void entry(struct curves_text *d, int at[2], uint32_t sign,
                  int32_t colour, const char *name)
{
    int w = ep_canvas_columns(name) + 5;

    if (at[0] + w > d->term->width && at[0] > 0) {
        at[0] = 0;
        at[1]++;
    }
    ep_canvas_put(d->canvas, at[0], at[1], sign, colour, EP_NO_COLOUR);
    ep_canvas_put(d->canvas, at[0] + 1, at[1], sign, colour, EP_NO_COLOUR);
    ep_canvas_text(d->canvas, at[0] + 3, at[1], name, EP_NO_COLOUR);
    at[0] += w;
}

static void legend(struct curves_text *d, int at[2])
{
    const struct ep_curves *c = d->c;
    uint32_t dash = d->term->utf8 ? 0x2501 : '-';

    for (size_t i = 0; i < c->n; i++)
        entry(d, at, d->dots ? dash : letter_of(i), colour_of(c, i),
              c->curve[i].name);
    if (c->band.n) {
        entry(d, at, dash, EP_NO_COLOUR, c->band.middle);
        entry(d, at, '.', GREY, c->band.name);
    }
}

/* Marks in words, one a line, as far as there is room. */
static void mark_lines(struct curves_text *d, int y, int room)
{
    static const char *const sign[2][3] = {
        {"v", "^", "*"}, {"\xe2\x96\xbc", "\xe2\x96\xb2", "\xe2\x97\x8f"}};

    for (size_t i = 0; i < d->c->marks && room > 0; i++, room--) {
        const struct ep_mark *m = &d->c->mark[i];

        ep_buf_reset(&d->text);
        if (room == 1 && i + 1 < d->c->marks) {
            ep_buf_addf(&d->text, "and %zu more events", d->c->marks - i);
        } else {
            ep_buf_addf(&d->text, "%s %s, ", sign[d->term->utf8][m->kind],
                        m->label);
            if (d->c->x_kind == EP_AXIS_TIME)
                ep_axis_add_time(&d->text, m->x);
            else
                ep_buf_addf(&d->text, "step %.0f", m->x);
        }
        ep_canvas_text(d->canvas, 0, y++, d->text.ptr, EP_NO_COLOUR);
    }
}

void ep_curves_text(const struct ep_curves *c, const struct ep_look *look,
                    struct ep_buf *out)
{
    const char *title = look->title ? look->title : c->title;
    struct curves_text d = {.c = c, .term = &look->term};
    int words = c->marks < 6 ? (int)c->marks : 6;
    int entries = (int)c->n + (c->band.n ? 2 : 0), at[2] = {0, 0}, widest = 0;

    ep_buf_init(&d.text);
    d.dots = d.term->utf8 && (d.term->depth != EP_DEPTH_NONE || c->n == 1);
    d.top = ep_canvas_head(NULL, d.term->width, title, c->summary) +
            (c->marks ? 1 : 0);
    d.lines = d.term->height - d.top - 4 - words - (entries > 4 ? 2 : 1);
    d.lines = d.lines > LEAST ? d.lines : LEAST;
    ep_curves_axes(c, (const int[2]){d.term->width / 12, d.lines / 3}, false,
                   &d.x, &d.y);
    for (int i = 0; i < d.y.n; i++) {
        int w = ep_canvas_columns(d.y.tick[i].label);

        widest = w > widest ? w : widest;
    }
    d.left = widest + 2;
    d.width = d.term->width - d.left;
    d.width = d.width > 8 ? d.width : 8;
    /* every entry of the legend may need a line */
    d.canvas = ep_canvas_new(&look->term, look->term.width,
                             d.top + d.lines + 2 + CAPTION + entries + words);
    (void)ep_canvas_head(d.canvas, d.term->width, title, c->summary);
    at[1] = axes(&d);
    band(&d);
    for (size_t i = c->n; i-- > 0;) {
        struct pen p = {&d, colour_of(c, i), letter_of(i), 0, 0};

        ep_curve_trace(&c->curve[i], &d.x, (size_t)d.width * (d.dots ? 2 : 1),
                       draw, &p);
    }
    marks(&d);
    legend(&d, at);
    mark_lines(&d, at[1] + 1, words);
    ep_canvas_print(d.canvas, out);
    ep_canvas_free(d.canvas);
    ep_buf_free(&d.text);
}

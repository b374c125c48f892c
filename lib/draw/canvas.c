/* SPDX-License-Identifier: Apache-2.0 */
/* canvas.c - see canvas.h. */
#include "config.h"

#include "draw/canvas.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "draw/colour.h"

#include <stdlib.h>
#include <string.h>

#define BRAILLE 0x2800u

struct cell {
    uint32_t cp;
    int32_t fg, bg;
};

struct ep_canvas {
    struct ep_term term;
    int width, height;
    struct cell *cell;
};

struct ep_canvas *ep_canvas_new(const struct ep_term *term, int width,
                                int height)
{
    struct ep_canvas *c = ep_calloc(1, sizeof *c);
    size_t n;

    c->term = *term;
    c->width = width > 0 ? width : 1;
    c->height = height > 0 ? height : 1;
    n = (size_t)c->width * (size_t)c->height;
    c->cell = ep_calloc(n, sizeof *c->cell);
    for (size_t i = 0; i < n; i++)
        c->cell[i] = (struct cell){' ', EP_NO_COLOUR, EP_NO_COLOUR};
    return c;
}

void ep_canvas_free(struct ep_canvas *c)
{
    if (!c)
        return;
    free(c->cell);
    free(c);
}

static struct cell *cell_at(struct ep_canvas *c, int x, int y)
{
    if (x < 0 || x >= c->width || y < 0 || y >= c->height)
        return NULL;
    return &c->cell[(size_t)y * (size_t)c->width + (size_t)x];
}

void ep_canvas_put(struct ep_canvas *c, int x, int y, uint32_t cp, int32_t fg,
                   int32_t bg)
{
    struct cell *cell = cell_at(c, x, y);

    if (!cell)
        return;
    cell->cp = cp;
    if (fg != EP_NO_COLOUR)
        cell->fg = fg;
    if (bg != EP_NO_COLOUR)
        cell->bg = bg;
}

/* The code point at s, and its length; '?' for what may not be shown. */
static uint32_t decode(const char *s, size_t len, bool utf8, size_t *used)
{
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    int n = ep_utf8_len(s, len);
    uint32_t cp;

    *used = n > 0 ? (size_t)n : 1;
    if (n <= 0 || (n > 1 && !utf8))
        return '?';
    cp = (unsigned char)*s & mask[n];
    for (int i = 1; i < n; i++)
        cp = cp << 6 | ((unsigned char)s[i] & 0x3f);
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) ||
                   (cp >= 0x200b && cp <= 0x202e) ||
                   (cp >= 0x2066 && cp <= 0x2069)
               ? '?' /* also marks that turn the direction of writing */
               : cp;
}

void ep_canvas_text(struct ep_canvas *c, int x, int y, const char *text,
                    int32_t fg)
{
    size_t len = strlen(text), used;

    for (; len && x < c->width; x++, text += used, len -= used)
        ep_canvas_put(c, x, y, decode(text, len, c->term.utf8, &used), fg,
                      EP_NO_COLOUR);
}

void ep_canvas_text_in(struct ep_canvas *c, int x, int y, int width,
                       const char *text)
{
    size_t len = strlen(text), used;
    bool cut = ep_canvas_columns(text) > width;

    for (int i = 0; i < width && len; i++, text += used, len -= used) {
        uint32_t cp = decode(text, len, c->term.utf8, &used);

        ep_canvas_put(c, x + i, y, cut && i >= width - 3 ? '.' : cp,
                      EP_NO_COLOUR, EP_NO_COLOUR);
    }
}

int ep_canvas_wrap(struct ep_canvas *c, const int at[2], int width, int most,
                   const char *text)
{
    for (int lines = 1;; lines++) {
        size_t len = strlen(text), n = 0, blank = 0, used;

        for (int i = 0; i < width && n < len; i++, n += used) {
            (void)decode(text + n, len - n, true, &used);
            blank = text[n] == ' ' ? n : blank;
        }
        blank = text[n] == ' ' || !blank ? n : blank;
        if (lines == most || n == len) {
            if (c)
                ep_canvas_text_in(c, at[0], at[1] + lines - 1, width, text);
            return lines;
        }
        if (c) {
            char *line = ep_strndup(text, blank);

            ep_canvas_text(c, at[0], at[1] + lines - 1, line, EP_NO_COLOUR);
            free(line);
        }
        text += blank + (text[blank] == ' ');
    }
}

int ep_canvas_head(struct ep_canvas *c, int width, const char *title,
                   const char *summary)
{
    int n = ep_canvas_wrap(c, (const int[2]){0, 0}, width, 2, title);

    return n + ep_canvas_wrap(c, (const int[2]){0, n}, width, 3, summary);
}

int ep_canvas_columns(const char *text)
{
    size_t len = strlen(text), used;
    int n = 0;

    for (; len && n < 1 << 20; n++, text += used, len -= used)
        (void)decode(text, len, true, &used);
    return n;
}

void ep_canvas_text_end(struct ep_canvas *c, int x, int y, const char *text)
{
    ep_canvas_text(c, x + 1 - ep_canvas_columns(text), y, text, EP_NO_COLOUR);
}

void ep_canvas_dot(struct ep_canvas *c, int x2, int y4, int32_t fg)
{
    static const unsigned char bit[4][2] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    struct cell *cell = x2 < 0 || y4 < 0 ? NULL : cell_at(c, x2 / 2, y4 / 4);

    if (!cell)
        return;
    if ((cell->cp & ~255u) != BRAILLE)
        cell->cp = BRAILLE;
    cell->cp |= bit[y4 % 4][x2 % 2];
    if (fg != EP_NO_COLOUR)
        cell->fg = fg;
}

static void add_colour(struct ep_buf *out, enum ep_depth depth, int32_t colour,
                       bool behind)
{
    unsigned v = (unsigned)colour;

    if (depth == EP_DEPTH_256)
        ep_buf_addf(out, ";%d;5;%d", behind ? 48 : 38, ep_colour_256(v));
    else
        ep_buf_addf(out, ";%d;2;%u;%u;%u", behind ? 48 : 38, v >> 16 & 255,
                    v >> 8 & 255, v & 255);
}

static void print_line(const struct ep_canvas *c, const struct cell *line,
                       struct ep_buf *out)
{
    struct cell pen = {0, EP_NO_COLOUR, EP_NO_COLOUR};
    bool colours = c->term.depth != EP_DEPTH_NONE;
    int end = c->width;

    while (end > 0 && line[end - 1].cp == ' ' &&
           (!colours || line[end - 1].bg == EP_NO_COLOUR))
        end--;
    for (int x = 0; x < end; x++) {
        char utf8[4];

        if (colours && (line[x].fg != pen.fg || line[x].bg != pen.bg)) {
            ep_buf_adds(out, "\033[0");
            if (line[x].fg != EP_NO_COLOUR)
                add_colour(out, c->term.depth, line[x].fg, false);
            if (line[x].bg != EP_NO_COLOUR)
                add_colour(out, c->term.depth, line[x].bg, true);
            ep_buf_addc(out, 'm');
            pen = line[x];
        }
        ep_buf_add(out, utf8, (size_t)ep_utf8_encode(line[x].cp, utf8));
    }
    if (pen.fg != EP_NO_COLOUR || pen.bg != EP_NO_COLOUR)
        ep_buf_adds(out, "\033[0m");
    ep_buf_addc(out, '\n');
}

static bool is_blank(const struct ep_canvas *c, int y)
{
    for (int x = 0; x < c->width; x++) {
        const struct cell *cell = &c->cell[y * c->width + x];

        if (cell->cp != ' ' || cell->bg != EP_NO_COLOUR)
            return false;
    }
    return true;
}

void ep_canvas_print(const struct ep_canvas *c, struct ep_buf *out)
{
    int end = c->height;

    while (end > 0 && is_blank(c, end - 1))
        end--;
    for (int y = 0; y < end; y++)
        print_line(c, c->cell + (size_t)y * (size_t)c->width, out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canvas.h - a picture of characters for a terminal.
 *
 * A grid of cells, each a character with a colour before and one behind.
 * Lines are dots of Braille, 2 x 4 in a cell (Unicode 15, chapter 21.1: bit i
 * of U+2800 + bits is dot i + 1), where the terminal has UTF-8; else their
 * caller puts letters. What the terminal cannot do is left out when the
 * canvas is printed, not when it is drawn.
 */
#ifndef EP_DRAW_CANVAS_H
#define EP_DRAW_CANVAS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum ep_depth { EP_DEPTH_NONE, EP_DEPTH_256, EP_DEPTH_TRUE };

/* What a terminal can do. */
struct ep_term {
    int width, height; /* in characters */
    bool utf8;
    enum ep_depth depth;
};

enum { EP_NO_COLOUR = -1 };

struct ep_canvas; /* opaque */

/* width, height >= 1, of which cells all are blank. */
struct ep_canvas *ep_canvas_new(const struct ep_term *term, int width,
                                int height);
void ep_canvas_free(struct ep_canvas *c); /* NULL allowed */

/* In all of these, what lies outside is left out. A colour is 0xRRGGBB or
   EP_NO_COLOUR: the terminal's own, and of what is there already, no change. */
void ep_canvas_put(struct ep_canvas *c, int x, int y, uint32_t cp, int32_t fg,
                   int32_t bg);

/*
 * Text from x on; control characters become '?', and without UTF-8 all that is
 * not ASCII. A character counts as one column wide.
 */
void ep_canvas_text(struct ep_canvas *c, int x, int y, const char *text,
                    int32_t fg);

/* As above, in width columns: cut with "..." if it is longer. */
void ep_canvas_text_in(struct ep_canvas *c, int x, int y, int width,
                       const char *text);

/*
 * Text from x, y on, in lines of width columns, wrapped at blanks; at most
 * most lines, the last cut. Returns how many. c: NULL: only count.
 */
int ep_canvas_wrap(struct ep_canvas *c, const int at[2], int width, int most,
                   const char *text);

/* Heading and summary at the top: two lines and three at most. As above. */
int ep_canvas_head(struct ep_canvas *c, int width, const char *title,
                   const char *summary);

/* Its last character at x. */
void ep_canvas_text_end(struct ep_canvas *c, int x, int y, const char *text);

/* A dot of Braille at 2x, 4y per cell. */
void ep_canvas_dot(struct ep_canvas *c, int x2, int y4, int32_t fg);

/* How many characters text has. */
int ep_canvas_columns(const char *text);

/* Append all lines but blank ones at the end, without blanks at their ends; escape sequences (ECMA-48
   SGR) only as the terminal's depth allows, and reset at the end of a line. */
void ep_canvas_print(const struct ep_canvas *c, struct ep_buf *out);

#endif

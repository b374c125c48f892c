/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg.h - write SVG 1.1 that stands alone: no scripts, no references outside,
 * a style for light and one for dark screens, a title for hovering.
 *
 * Text may be any bytes: markup is escaped, and what XML 1.0 does not allow
 * (control characters, bytes that are no UTF-8) becomes U+FFFD. Coordinates
 * are in pixels, written with one digit behind the point, so that the same
 * picture is the same bytes everywhere. Classes (cls) come from the caller's
 * code, never from input. Nothing here fails; O(bytes written).
 */
#ifndef EP_DRAW_SVG_H
#define EP_DRAW_SVG_H

#include "base/buf.h"

#include <stdint.h>

struct ep_svg {
    struct ep_buf *out;  /* borrowed */
    double pen_x, pen_y; /* of a path */
};

/*
 * The head: role="img", title and description for readers who do not see,
 * the style of all pictures. Classes of text: h heading, s small print, t
 * text, with e (ends at x), m (middle at x), r (upwards). Of shapes: p panel,
 * g grid line, a axis, n nothing known, v invisible but for its title.
 */
void ep_svg_begin(struct ep_svg *s, struct ep_buf *out, double width,
                  double height, const char *title, const char *desc);
void ep_svg_end(struct ep_svg *s);

/* More rules of style, light and dark; dark may be "". */
void ep_svg_style(struct ep_svg *s, const char *light, const char *dark);

/* A group moved by x, y; everything up to the end is in it. */
void ep_svg_group(struct ep_svg *s, const char *cls, double x, double y);
void ep_svg_group_end(struct ep_svg *s);

/* title: shown when the pointer is on it; NULL for none. */
void ep_svg_rect(struct ep_svg *s, const char *cls, const double xywh[4],
                 const char *title);
void ep_svg_line(struct ep_svg *s, const char *cls, double x1, double y1,
                 double x2, double y2);
void ep_svg_circle(struct ep_svg *s, const char *cls, double x, double y,
                   double r, const char *title);

/* A path: begin, then moves and lines, then end. */
void ep_svg_path(struct ep_svg *s, const char *cls);
void ep_svg_move(struct ep_svg *s, double x, double y);
void ep_svg_to(struct ep_svg *s, double x, double y);
void ep_svg_path_end(struct ep_svg *s, const char *title);

/* Text with its base line at y. */
void ep_svg_text(struct ep_svg *s, const char *cls, double x, double y,
                 const char *text);

/* As above, cut with an ellipsis if it is wider than width at that size. The
   whole is its title then. */
void ep_svg_text_in(struct ep_svg *s, const char *cls, const double at[2],
                    double size, double width, const char *text);

/*
 * Title and summary from the top of the picture, wrapped at blanks where they
 * are wider: two lines at most of the one, three of the other, the last cut.
 * What follows begins at EP_SVG_HEAD and what ep_svg_head_more says.
 */
#define EP_SVG_HEAD 52.0
void ep_svg_head(struct ep_svg *s, double x, double width, const char *title,
                 const char *summary);
double ep_svg_head_more(double width, const char *title, const char *summary);

/* About how wide text is at a font size, in pixels: generous, for fonts
   differ. */
double ep_svg_text_width(const char *text, double size);

#endif

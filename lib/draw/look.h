/* SPDX-License-Identifier: Apache-2.0 */
/* look.h - what all pictures are told about how to look. */
#ifndef EP_DRAW_LOOK_H
#define EP_DRAW_LOOK_H

#include "draw/canvas.h"

struct ep_look {
    double width, height; /* of SVG, in pixels; 0: what suits the picture */
    const char *title;    /* NULL: the picture's own */
    struct ep_term term;  /* of text */
};

/* Width and height of SVG, in pixels, that can be asked for. */
#define EP_LOOK_MIN 320
#define EP_LOOK_MAX 4000

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colour.h - colours that colour-blind readers tell apart.
 *
 * Sequential: cividis [1], whose lightness rises evenly from dark blue to
 * yellow; 17 of the 256 published colours, linear in between (at most 11 of 255
 * from the others, in red near the dark end). Bright is the bad end in every
 * picture.
 * Diverging: from blue by a neutral to vermillion, both of Okabe and Ito [2],
 * mixed in the perceptually uniform space Oklab [3]; the neutral is near white
 * on paper. On a dark screen it is near black, and the ends are sky blue [2]
 * and a brighter vermillion.
 * Categories: the colours of [2], yellow last: it is faint on white.
 *
 * A colour is 0xRRGGBB in sRGB.
 *
 * [1] J. R. Nunez, C. R. Anderton, R. S. Renslow, "Optimizing colormaps with
 *     consideration for color vision deficiency to enable accurate
 *     interpretation of scientific data", PLOS ONE 13 (2018) e0199239.
 * [2] M. Okabe, K. Ito, "Color Universal Design", 2002 (revised 2008).
 * [3] B. Ottosson, "A perceptual color space for image processing", 2020.
 */
#ifndef EP_DRAW_COLOUR_H
#define EP_DRAW_COLOUR_H

#include <stdbool.h>
#include <stdint.h>

/* Colours of [2] beside black, in the order in which they are used. */
enum {
    EP_BLUE,
    EP_VERMILLION,
    EP_GREEN,
    EP_PURPLE,
    EP_ORANGE,
    EP_SKY,
    EP_YELLOW,
    EP_CATEGORIES
};

/* t in [0, 1] (what is outside is taken to the end): cividis. */
uint32_t ep_colour_sequential(double t);

/* t in [-1, 1]: blue, neutral at 0, vermillion; dark: for a dark screen. */
uint32_t ep_colour_diverging(double t, bool dark);

/* A category; i is taken modulo EP_CATEGORIES. */
uint32_t ep_colour_category(unsigned i);

/* Relative luminance of WCAG 2.1, 0 (black) to 1 (white). */
double ep_colour_luminance(uint32_t c);

/* Is black text on it easier to read than white (the higher contrast of
   WCAG 2.1)? */
bool ep_colour_is_light(uint32_t c);

/* The nearest of xterm's colours 16 to 255: the cube of 6 levels a channel
   and 24 greys. */
int ep_colour_256(uint32_t c);

#endif

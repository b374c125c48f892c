/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - well-formed UTF-8 (Unicode 15, section 3.9, table 3-7). */
#ifndef EP_BASE_UTF8_H
#define EP_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define EP_UTF8_CUT (-1)

/*
 * Length (1 to 4) of the well-formed sequence at the start of s; 0 if there is
 * none (overlong, surrogate, above U+10FFFF, stray byte); EP_UTF8_CUT if the n
 * bytes are a proper beginning of one.
 *
 * s       [n] bytes; n >= 1
 */
int ep_utf8_len(const char *s, size_t n);

/*
 * Write the UTF-8 of a code point (not a surrogate, at most U+10FFFF).
 * Returns the number of bytes, 1 to 4.
 */
int ep_utf8_encode(uint32_t cp, char out[4]);

#endif

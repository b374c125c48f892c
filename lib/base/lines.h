/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - an input, line by line, without a copy.
 */
#ifndef EP_BASE_LINES_H
#define EP_BASE_LINES_H

#include "base/err.h"
#include "base/input.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest line that is delivered; a longer one is passed over. */
#define EP_LINE_MAX ((size_t)16 << 20)

/* Bytes behind a line that may be loaded (and mean nothing). */
#define EP_LINE_PAD ((size_t)32)

struct ep_line {
    const char *ptr; /* len bytes, then no '\0'; valid until the next call */
    size_t len;      /* without the line end: '\n' or "\r\n" */
    uint64_t number; /* 1, 2, ... */
    uint64_t offset; /* of ptr[0] in the (inflated) input */
    bool terminated; /* false for a last line with no '\n' */
};

struct ep_lines; /* opaque */

/* Takes ownership of in. Never NULL. */
struct ep_lines *ep_lines_new(struct ep_input *in);
void ep_lines_free(struct ep_lines *l); /* closes the input; NULL is allowed */

/*
 * The next line. Returns 1, 0 at the end of the input, or
 *   EP_ELIMIT   a line longer than EP_LINE_MAX was passed over; line->number
 *               and offset are its own; the next call goes on behind it
 *   EP_EAGAIN   of an input that is followed: no whole line is there yet
 *   other       as ep_input_read: final, after every byte before the damage
 *               was delivered (the last piece as an unterminated line)
 * Memory: one buffer of ep_input_buffer bytes (256 KiB, less of one input of
 * many) that grows to hold the longest line met.
 * Cost: one memchr over the bytes, no allocation per line.
 */
int ep_lines_next(struct ep_lines *l, struct ep_line *line,
                  struct ep_error *err) EP_MUST_USE;

/* Was that the end, or a final error? EP_ELIMIT may be either: the input itself
   has limits, such as the size of a URL's body. */
bool ep_lines_over(const struct ep_lines *l);

bool ep_lines_progress(const struct ep_lines *l, uint64_t *done,
                       uint64_t *total); /* as ep_input_progress */

#endif

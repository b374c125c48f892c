/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_clock.h - when the lines of a log were written, also those that do not
 * say so. The first of these that there is:
 *
 *   1. what the reader found in the line itself
 *   2. the first time in the first 64 bytes of the line, or of the nearest
 *      before it that has one there, or 1 of the nearest that was read
 *   3. when the file was written last
 *
 * Times are read in the forms of ep_strip_stamp(); seconds since the epoch at
 * the beginning of a line only, or behind a bracket there. A time without a
 * zone is local time, by TZ of this process; a date without a year is in the
 * last year in which it is not after what is known: the time of the file, or
 * the latest time that was read.
 */
#ifndef EP_RECORD_LOG_CLOCK_H
#define EP_RECORD_LOG_CLOCK_H

#include "record/strip.h"

/* Bytes at the head of a line in which a time is looked for. */
#define EP_LOG_HEAD 64

struct ep_log_clock {
    struct ep_strip_zone zone;
    char stamp[40]; /* a time that was seen but not read yet */
    size_t stamp_len;
    double last;  /* s: the time that was read last; NaN: none */
    double mtime; /* s: of the file */
};

/* Nothing has to be freed. mtime below 0 counts as 0. */
void ep_log_clock_init(struct ep_log_clock *c, double mtime);

/*
 * Keep the time in the head of a line, if there is one. Call it with every
 * line, in order. Loads up to 16 bytes behind the line (see EP_LINE_PAD).
 * Cost: one pass over the head; dates with a year are not read until needed.
 */
void ep_log_clock_note(struct ep_log_clock *c, const char *line, size_t len);

/* The last time in the last 4096 bytes of [p, end), or NaN. */
double ep_log_clock_in(struct ep_log_clock *c, const char *p, const char *end);

/* When the line was written, own being 1 above, or NaN. */
double ep_log_clock_at(struct ep_log_clock *c, double own);

#endif

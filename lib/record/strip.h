/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip.h - a line of a log without what launchers and terminals put round it.
 *
 * Removed, wherever they stand in front of each other, in any order:
 *
 *     srun -l         " 3: "                          task 3
 *     torchrun        "[default3]:" "[trainer0]:"     local rank
 *     PyTorch         "[rank3]: " "[rank3] "          rank
 *     Open MPI 4, 5   "[1,3]<stdout>:"  "[prterun-n1-77@1,3]<stderr>: "  rank
 *     Ray             "(RayTrainWorker pid=77, ip=10.0.0.1) "  pid, host
 *     docker, kubectl "2026-01-02T03:04:05.678901234Z "        time
 *     CRI log files   the same, followed by "stdout F "
 *     kubectl         "[pod/NAME/CONTAINER] "
 *     syslog, journal "Nov 30 03:14:15 n1 python3[77]: "  time, host, pid
 *                     "2026-11-30T03:14:15+0000 n1 python3[77]: "  the same
 *     terminals       ANSI escape sequences (ECMA-48: CSI, OSC, others)
 *     progress bars   what a carriage return overwrites, tqdm's bar before text
 *
 * A label of srun is the number of a task: that is the rank only where each
 * rank is a task, and the number of the node if each task runs torchrun. So it
 * is told apart from a rank.
 */
#ifndef EP_RECORD_STRIP_H
#define EP_RECORD_STRIP_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct ep_strip {
    struct ep_span text;  /* in the line, or in scratch */
    double ts;            /* s since the epoch; NaN: no prefix says it */
    struct ep_span stamp; /* a prefix's time that has no year, for
                             ep_strip_stamp(); {NULL, 0} without one */
    int64_t rank;         /* -1 where no prefix says it, as the next three */
    int64_t local_rank;
    int64_t task;
    int64_t pid;
    struct ep_span host; /* syslog's, Ray's ip; {NULL, 0} without one */
};

/*
 * line      [len] borrowed; the result points into it while it has neither an
 *           escape sequence nor a carriage return in it
 * scratch   holds the text if it has; the caller's, valid until its next use
 * out       written
 *
 * A pure function of the line. It cannot fail: what is not known to be a
 * prefix is text, blanks at its beginning included. Of two prefixes that say
 * the same thing the inner one, which is nearer to the program, counts.
 * Cost: one pass over the bytes, 2.4 GB/s on lines of 106 bytes without a
 * prefix (tests/unit/test_strip.c prints it); no allocation once scratch has
 * seen the longest line.
 */
void ep_strip(const char *line, size_t len, struct ep_buf *scratch,
              struct ep_strip *out);

/*
 * The same, but what terminals draw over each other stays in the text: carriage
 * returns and progress bars. Only prefixes in front of all of it are taken off.
 */
void ep_strip_bars(const char *line, size_t len, struct ep_buf *scratch,
                   struct ep_strip *out);

/*
 * The next of the texts between the carriage returns of *rest, without blanks
 * at its end; those that are blank are passed over. False if there is none.
 */
bool ep_strip_next_bar(struct ep_span *rest, struct ep_span *bar);

/*
 * What a time does not say itself: the offset of local time from UTC,
 * remembered for the two quarters of an hour that were asked for last (the ranks
 * of a job and its launcher may be an hour apart); and the year.
 * All-zero to begin with.
 */
struct ep_strip_zone {
    int64_t quarter; /* of local time, counted from 1970-01-01 00:00 */
    int64_t offset;  /* s to take from local time */
    int64_t before, before_offset; /* those of the quarter before it */
    bool known;
    double latest; /* s since the epoch: a date without a year is in the year
                      in which it is last before this and a day; 0: unknown */
};

/*
 * Read a date and a time of day at the start of s:
 *
 *     YYYY-MM-DD hh:mm:ss     - or /, one blank or T; with or without fraction
 *     ... .ddd or ,ddd        any number of digits, those after the 9th ignored
 *     ... Z  +hh:mm  -hhmm    UTC or an offset; without one it is local time,
 *                             by TZ of this process
 *
 * Returns how many bytes it took, and sets *ts to the double nearest to the
 * seconds since the epoch; 0 if s does not begin with a time, or one before
 * 1970. zone must not be shared between threads. A local time that occurs
 * twice is the first or the second, as mktime(3) has it.
 */
size_t ep_strip_time(struct ep_strip_zone *zone, const char *s, size_t len,
                     double *ts);

/*
 * Read a time in any form that logs begin with:
 *
 *     as ep_strip_time()
 *     Nov 30 03:14:15       syslog (RFC 3164), with or without fraction
 *     Nov 30 03:14:15 2026  asctime(3), without its day of the week
 *     I1130 03:14:15.123456     glog, klog: I, W, E or F, month, day
 *     I20261130 03:14:15.123456 glog from 0.6 on
 *     1796000000  1796000000.25  seconds since the epoch, from 2001-09-09 on
 *                           and before 2100; ms, us, ns if there are 13, 16 or
 *                           19 digits; a blank or one of : , ; | ] ) follows;
 *                           no whole number of MiB, which is rather a size
 *
 * A date without a year is refused while zone->latest is 0. Otherwise as
 * ep_strip_time().
 */
size_t ep_strip_stamp(struct ep_strip_zone *zone, const char *s, size_t len,
                      double *ts);

/*
 * The time that the prefixes of a line say, or NaN. zone->latest is raised to
 * it: a log that goes on for years has the next year's dates behind it.
 */
double ep_strip_when(struct ep_strip_zone *zone, const struct ep_strip *s);

#endif

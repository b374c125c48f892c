/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron_timers.h - the lists of timers in logs of Megatron-LM, one of three
 * forms (--timing-log-option):
 *
 *     (min, max) time across ranks (ms):
 *         forward-backward ........................: (26094.39, 26095.09)
 *     max time across ranks (ms):
 *         forward-backward ........................: 26095.09
 *     times across ranks (ms):
 *       forward-backward:
 *          rank  0: 26094.39
 *
 * A list is written at once, but whoever joins the output of many processes
 * may put lines of others between its lines.
 */
#ifndef EP_RECORD_MEGATRON_TIMERS_H
#define EP_RECORD_MEGATRON_TIMERS_H

#include "record/log_text.h"

#define EP_MEGATRON_NAME_MAX 64

enum ep_megatron_option {
    EP_MEGATRON_MAX,
    EP_MEGATRON_MINMAX,
    EP_MEGATRON_ALL,
};

/* All-zero to begin with. */
struct ep_megatron_timers {
    int left; /* lines that may still be of the list; 0: there is no list */
    enum ep_megatron_option option;
    struct ep_strip header; /* its line */
    char lead[EP_MEGATRON_NAME_MAX], name[EP_MEGATRON_NAME_MAX];
    size_t lead_len, name_len;
    int values; /* of the timer that was read, not given out yet */
    struct ep_span timer;
    int64_t rank;
    double low, high; /* s */
};

/* Is the line that log has open of a list? */
bool ep_megatron_timers_line(struct ep_megatron_timers *t, struct ep_log *log);

/* The next gauge of that line, of no rank or of that which the list names;
 * false if there is none. */
bool ep_megatron_timers_next(struct ep_megatron_timers *t, struct ep_log *log,
                             struct ep_record *r);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_message.h - the messages in a line of a log of NCCL (src/debug.cc).
 *
 *     [TIME] HOST:PID:TID [DEVICE] NCCL INFO TEXT
 *     [TIME] HOST:PID:TID [DEVICE] FILE:LINE (FUNCTION) NCCL WARN TEXT
 *
 * where [TIME] and what is between the device and NCCL may be missing.
 * Processes share a pipe and write at the same time, so a message may begin in
 * the middle of another. What looks like a header begins a message wherever it
 * is. The word before it may have been cut, and runs into the host name, of
 * which only an end that is a host seen at the beginning of a line is taken.
 */
#ifndef EP_RECORD_NCCL_MESSAGE_H
#define EP_RECORD_NCCL_MESSAGE_H

#include "base/intern.h"
#include "record/strip.h"

/*
 * Behind the first " NCCL " from p on, which each message has; NULL if there is
 * none. As memmem(3), several times as fast.
 */
const char *ep_nccl_mark(const char *p, const char *end);

struct ep_nccl_message {
    struct ep_span host; /* empty: not to be told from what is before it */
    int64_t pid;
    const char *begin;   /* of the header, with its time */
    struct ep_span text; /* to the end of the line or the next message */
    bool cut;            /* the latter: its last word may be incomplete */
    double ts;           /* of [TIME], s since the epoch; NaN without one */
    bool warn;
};

/* Zone and hosts last from line to line. */
struct ep_nccl_messages {
    struct ep_strip_zone zone;
    struct ep_intern *hosts;
    const char *at, *end; /* of the line: to be read yet */
    bool has_next;
    struct ep_nccl_message next; /* was found when the one before ended */
};

void ep_nccl_messages_init(struct ep_nccl_messages *self);
void ep_nccl_messages_free(struct ep_nccl_messages *self);

/* Begin a line, which is borrowed until the last message is done with. */
void ep_nccl_messages_line(struct ep_nccl_messages *self, struct ep_span line);

/* The next message of the line; false if there is none. */
bool ep_nccl_messages_next(struct ep_nccl_messages *self,
                           struct ep_nccl_message *m);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_sample.h - ends of collectives, put together by collective, in bounded
 * memory and whatever the order in which they come.
 *
 * A clock may be wrong by minutes, and inputs may come one after the other, so
 * no window of time says when a collective is complete. Instead only some of
 * the collectives are kept, all ends of each: those whose hash of (job, comm,
 * op, seq) has as many leading zero bits as the level of its communicator.
 * The level is 0 at first; when the room is used up, communicators that hold
 * more than half of an even share go up one, and half of what they have is
 * dropped. All ends of a collective that is kept were seen, and which are kept
 * does not depend on time: a uniform sample of each communicator (the distinct
 * sampling of Gibbons, "Distinct sampling for highly-accurate answers to
 * distinct values queries and event reports", VLDB 2001). Communicators that
 * are rarely used keep all they have; those within one host, where they can be
 * told, keep nothing. Of an instance in a communicator of more than 8192 ranks
 * about that many ends are kept, of other ranks each time.
 */
#ifndef EP_RECORD_CLOCK_SAMPLE_H
#define EP_RECORD_CLOCK_SAMPLE_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

/* No end, no instance. */
#define EP_CLOCK_NONE UINT32_MAX

/* When a collective ended on one rank, by the clock of its host. */
struct ep_clock_end {
    double end;
    uint32_t host;
    int32_t comm_rank; /* -1: unknown */
    uint32_t next;     /* of the same instance */
};

/* All ranks' ends of one collective; or of several of the same name. */
struct ep_clock_instance {
    uint64_t hash, seq;
    uint32_t comm;  /* EP_CLOCK_NONE: this place is free */
    uint32_t first; /* end */
    uint32_t n;     /* ends */
    uint32_t next;  /* in the bucket, or of the free places */
};

struct ep_clock_sample; /* opaque */

/*
 * max     ends and instances that are kept, together; about 30 bytes each.
 *         At least 16.
 */
struct ep_clock_sample *ep_clock_sample_new(size_t max);
void ep_clock_sample_free(struct ep_clock_sample *s); /* NULL allowed */

/* One rank's end of a collective. */
struct ep_clock_taken {
    struct ep_span job, comm, op, host; /* job may be empty */
    uint64_t seq;
    int64_t nranks;    /* of the communicator; 0: unknown */
    int32_t comm_rank; /* -1: unknown */
    double end;
};

/* Take it, or not. Cost: O(1) expected and amortised. */
void ep_clock_sample_take(struct ep_clock_sample *s,
                          const struct ep_clock_taken *t);

/* What is kept. Instances with comm EP_CLOCK_NONE are to be passed over. */
const struct ep_clock_instance *
ep_clock_sample_instances(const struct ep_clock_sample *s, size_t *n);
const struct ep_clock_end *
ep_clock_sample_ends(const struct ep_clock_sample *s);

size_t ep_clock_sample_hosts(const struct ep_clock_sample *s);
const char *ep_clock_sample_host(const struct ep_clock_sample *s, size_t i);

#endif

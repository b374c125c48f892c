/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks_map.h - which global rank a process (host, pid) has.
 *
 * Most telemetry knows a rank within a communicator only. It equals the global
 * rank in a communicator of all processes of the job, and nowhere else, so
 * the question is which communicator that is. Evidence comes in with the
 * records; an answer is given only if it is safe:
 *
 *   1. A record of the process says its rank (a launcher's prefix did). It
 *      counts before everything else.
 *   2. The number of ranks of the job is known (ep_ranks_map_world), and the
 *      process is in a communicator of that size.
 *   3. The caller has said that every process was heard (ep_ranks_map_heard),
 *      the largest communicators that were seen have N ranks, exactly N
 *      processes are known, and each of them has another rank in 0..N-1 of
 *      such a communicator. (Eight processes in two communicators of four, as
 *      with tensor parallelism on one node, fail this: their ranks repeat. The
 *      first four of them alone do not, hence the caller's word.)
 *
 * A process for which two values were seen (of a launcher, or in communicators
 * of the same size: one process with several GPUs, groups of equal size in two
 * dimensions) has no answer from that source. Rule 3 is wrong if the inputs are
 * of one node of several and no communicator reaches beyond that node; after a
 * restart with new pids it gives no more answers.
 */
#ifndef EP_RECORD_RANKS_MAP_H
#define EP_RECORD_RANKS_MAP_H

#include "record/record.h"

#include <stdint.h>

/* Processes that are remembered; evidence about more is dropped. */
#define EP_RANKS_MAP_MAX 1048576

struct ep_ranks_map; /* opaque */

struct ep_ranks_map *ep_ranks_map_new(void);
void ep_ranks_map_free(struct ep_ranks_map *m); /* NULL allowed */

/* The number of ranks of the job, at least 1. */
void ep_ranks_map_world(struct ep_ranks_map *m, int64_t nranks);

/*
 * Every process of the job was heard by now: all inputs were read to their end,
 * or far enough that each had its say. Holds until ep_ranks_map_free.
 */
void ep_ranks_map_heard(struct ep_ranks_map *m);

/* A launcher says that the process has this global rank. */
void ep_ranks_map_stated(struct ep_ranks_map *m, struct ep_span host,
                         int64_t pid, int64_t rank);

/*
 * The process has rank comm_rank in a communicator of nranks. Ignored unless
 * 0 <= comm_rank < nranks <= EP_RANKS_MAP_MAX.
 */
void ep_ranks_map_member(struct ep_ranks_map *m, struct ep_span host,
                         int64_t pid, int64_t comm_rank, int64_t nranks);

/* The global rank of a process, or -1. */
int64_t ep_ranks_map_find(const struct ep_ranks_map *m, struct ep_span host,
                          int64_t pid);

/*
 * Take what evidence a record has: host and pid, with rank, or with comm_rank
 * and nranks. Cost: a few ns for the process of the record before; else one
 * hash of the host name.
 */
void ep_ranks_map_take(struct ep_ranks_map *m, const struct ep_record *r);

/* Give a record that has host and pid but no rank its rank, if it is known.
 * Returns whether it did. */
bool ep_ranks_map_resolve(const struct ep_ranks_map *m, struct ep_record *r);

/* How many processes are known. */
size_t ep_ranks_map_count(const struct ep_ranks_map *m);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms.h - where communication became slow: collectives and messages of all
 * ranks, put together per communicator, and which host, link or group explains
 * best what changed.
 *
 * A collective's dur includes waiting for the peers. Within one (communicator,
 * sequence number) the last to arrive has the least dur, and that is how long
 * the transfer itself took [1]; of a message the same holds for its two ends.
 * So the ranks of a communicator are aligned by seq (by count, where none is
 * told), and each group and each directed pair has a series of transfers:
 *
 *     v = log(min over ranks of dur) - reference of its class
 *
 * A class is op, bytes and nranks; its reference is the first call of it, which
 * cancels between before and since. The past is kept in bins of 1, 2, 4, ...
 * calls, eight of a size: fine where it is new, coarse where it is old, O(1) per
 * call, and thousands of calls long.
 *
 * To locate a change, y = mean of v since minus mean of v before (three times as
 * long, robust: an onset that is told two iterations late costs two more, and no
 * wrong answer), with its standard error (from the scatter of the calls, that of series of the same
 * class with it), is held against hypotheses. Each names a set S of series that
 * it makes slower by the same phi >= log(1 + min_change), and leaves the others
 * as they are:
 *
 *     link   S: pairs of ranks on its two ends, and groups one of whose
 *            neighbours d, d + 1 mod n are (a ring is as slow as its slowest
 *            edge [1]; all pairs of an all_to_all)
 *     host   S: what crosses any link of it; or, all that stays inside of it
 *     group  S: one communicator, or one pair of ranks
 *     all    S: everything that leaves its host
 *
 *     gain = max over phi of sum over S of (phi y - phi^2 / 2) / se^2
 *
 * Links between hosts where a job has several hosts, between ranks where it has
 * one. Hypotheses with the same S cannot be told apart by any number of calls:
 * then what is said is what holds under each of them: the link if only one is
 * among them, the host that all of them share, otherwise the group.
 *
 * Without a past (since before the first calls) groups are compared with others
 * of their class. NOTE: differs from [1], which does so always with a threshold
 * of 1.1 x the median: healthy links of one machine differ by 1.27-1.6x, so here
 * the scatter of the class counts, 0.12 in logs at least.
 *
 * A late rank: its peers wait for it, in groups in which it is persistently the
 * last, for at least min_change of the time. One that is always last by less
 * (a healthy job has one) is none.
 *
 * NOTE: rings are taken in the order of comm_rank. NCCL orders them by its
 * search of the topology, and uses trees at times; between hosts the order is
 * the ranks' in the usual case of hosts that hold neighbouring ranks.
 *
 * [1] FALCON, arXiv 2410.12588.
 */
#ifndef EP_DETECT_COMMS_H
#define EP_DETECT_COMMS_H

#include "base/archive.h"
#include "base/buf.h"
#include "base/err.h"
#include "detect/calls.h"
#include "detect/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EP_COMMS_JOBS 65536
#define EP_COMMS_BYTES 314572800 /* of all series and members: 3 KB a rank */

struct ep_comms; /* opaque */

/* min_change: least relative change that counts, > 0 (0.10). */
struct ep_comms *ep_comms_new(double min_change);
void ep_comms_free(struct ep_comms *c); /* NULL allowed */

/*
 * One call, in the order of its rank; ranks in any order, up to 8 calls of a
 * communicator apart; where they are further, room is made for up to 256 (16 in
 * jobs of more than 4096 series), and what came before is lost. What tells no
 * rank, comm, comm_rank, ts or dur (a message: peer) is counted only; so is what
 * comes when EP_COMMS_BYTES are in use. A rank with another pid, or whose seq
 * falls while time goes on, was restarted.
 * Errors: EP_ELIMIT (more than EP_COMMS_JOBS jobs).
 * Cost: O(1), no allocation once all ranks were heard for a while.
 */
int ep_comms_take(struct ep_comms *c, const struct ep_call *call,
                  struct ep_error *err) EP_MUST_USE;

struct ep_comms_place {
    /* LINK, HOST, GROUP; RANK: late, or of a job on one host all its links */
    enum ep_scope scope;
    /* "src=h1,dst=h2" ("src=rank3,dst=rank4" on one host or if it is one pair
       of ranks), "host=h3", "comm=NAME", "rank=5" */
    const char *id;
    double factor; /* of the transfers; late: of the time of its peers */
    /* that what is named is where it is, among all hypotheses and none; what
       holds under each of several that tie is as likely as all of them */
    double p;
    const char *evidence;
    size_t candidates; /* links and hosts that tie, 1 if it is settled */
    int64_t rank;      /* of scope RANK, else -1 */
    bool late;
    /* s since then by which transfers that it crosses took longer: the most of
       a communicator, and the most of a pair of ranks; 0 if it is late */
    double lost;
};

/*
 * What explains best that communication of the job is slower since a time (s)
 * than before. since_ts NaN or before the job's calls: than others of its class.
 * false: nothing does, or all of it, or there are too few calls yet. Strings are
 * borrowed until the next call of a function of c.
 * Cost: O(members of all groups of the job + bins of all series).
 */
bool ep_comms_locate(struct ep_comms *c, struct ep_span job, double since_ts,
                     struct ep_comms_place *out);

/*
 * By how much transfers of the job take longer since a time than before: the
 * sum over all series of calls * time. NaN if no series has both.
 */
double ep_comms_level(struct ep_comms *c, struct ep_span job, double since_ts);

struct ep_comms_summary {
    uint64_t calls;
    uint64_t unused;    /* that told too little, or came beyond the bounds */
    uint64_t transfers; /* all ends of which were heard */
    uint64_t partial;   /* of which an end is missing */
    size_t groups, pairs;
    size_t bytes; /* in use for series, members and tables */
};

void ep_comms_sum(const struct ep_comms *c, struct ep_comms_summary *out);

/*
 * Save or load all but the summary; c is new when it is loaded into, and has to
 * be freed even if the archive failed. Calls that come again are not to be fed
 * again: ep_calls_admit knows them. Cost: 1.5 KB per rank.
 */
void ep_comms_archive(struct ep_archive *a, struct ep_comms *c);

#endif

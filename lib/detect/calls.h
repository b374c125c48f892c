/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - the steps of a job from the calls of its ranks: a machine of
 * period.h for each rank, and numbers for the iterations that fit together.
 *
 * A call is a symbol: its kind, operation, size and communicator, the latter
 * numbered in the order in which the rank came to use them, so that ranks which
 * do the same in other groups share a pattern, and a job that was restarted (a
 * rank with another pid) is recognised.
 *
 * Iterations are numbered from 0 in each job. One that begins where the rank's
 * last one ended has the next number; another that of the iteration of the job
 * that began nearest to it, or the next one if there is none yet. Ranks whose
 * patterns begin at different calls are half an iteration apart at most.
 *
 * The iterations of a job are held back until each rank that was heard has
 * learned its period, or 120 s, or EP_CALLS_HELD of them; then they are given
 * out in the order of time, and later ones at once.
 */
#ifndef EP_DETECT_CALLS_H
#define EP_DETECT_CALLS_H

#include "base/archive.h"
#include "base/buf.h"
#include "base/err.h"
#include "detect/place.h"

#include <stdbool.h>
#include <stdint.h>

#define EP_CALLS_RANKS 1048576 /* ranks are below this; calls of others count */
#define EP_CALLS_HOLD_S 120.0
#define EP_CALLS_HELD 262144 /* 18 MiB per job */

struct ep_calls; /* opaque */

struct ep_call {
    struct ep_span job, host, op, comm;                     /* len 0: none */
    int64_t rank, pid, nranks, comm_rank, peer, bytes, seq; /* -1: not told */
    struct ep_place place;
    bool p2p;
    double ts, dur; /* s, NaN: not told */
};

/* An iteration of a rank as a step. Strings are borrowed during the call. */
struct ep_calls_step {
    struct ep_span job, host;
    int64_t rank, step;
    double ts, dur; /* s, > 0 */
    double busy;    /* s, > 0; NaN if not known */
    int64_t phase;  /* a number of the pattern, > 0: another, another loop */
};

typedef void ep_calls_fn(void *ctx, const struct ep_calls_step *s);

/* fn must not call these functions. */
struct ep_calls *ep_calls_new(ep_calls_fn *fn, void *ctx);
void ep_calls_free(struct ep_calls *c); /* NULL allowed */

/*
 * One call, in the order of the rank. Without a rank it is counted only. Errors:
 * EP_ELIMIT (more than 65536 jobs). Cost: that of ep_period_push, and 20 ns.
 */
int ep_calls_take(struct ep_calls *c, const struct ep_call *call,
                  struct ep_error *err) EP_MUST_USE;

/*
 * The two halves of that, for who has more to do with a call than to find steps.
 * Each call is admitted once: 1 if it is new, 0 if it was taken before the state
 * was saved, and comes again (ep_calls_archive): then it is nothing to anybody;
 * or EP_ELIMIT. That is known of jobs that are muted too. A new one is pushed
 * behind that.
 */
int ep_calls_admit(struct ep_calls *c, const struct ep_call *call,
                   struct ep_error *err) EP_MUST_USE;
int ep_calls_push(struct ep_calls *c, const struct ep_call *call,
                  struct ep_error *err) EP_MUST_USE;

/*
 * The job tells its steps itself: no iterations are given out any more, since
 * their numbers would be others. Errors: EP_ELIMIT.
 */
int ep_calls_mute(struct ep_calls *c, struct ep_span job,
                  struct ep_error *err) EP_MUST_USE;

/* No more calls: give out what is held back. */
void ep_calls_finish(struct ep_calls *c);

/*
 * Save or load what is known and held back; c is new when it is loaded into, and
 * has to be freed even if the archive failed. It goes on as the saved one would
 * have. Calls that are fed again because the input is read from its beginning
 * are passed over: those of a rank up to the last one taken (calls without ts
 * only between such). The summary counts from the load on.
 */
void ep_calls_archive(struct ep_archive *a, struct ep_calls *c);

struct ep_calls_summary {
    uint64_t calls, unranked; /* unranked: that told no rank, or too high */
    uint64_t iterations;      /* given out */
    uint64_t known;           /* calls passed over, see ep_calls_archive */
    uint64_t ranks, learned;  /* learned: whose period is known */
    uint64_t by_gaps, each;   /* of them by gaps; of whom each call is one */
    uint32_t least, most;     /* calls of an iteration; 0 if none is known */
    size_t patterns, bytes;   /* bytes: of the machines of all ranks */
};

/* Cost: O(ranks). */
void ep_calls_sum(const struct ep_calls *c, struct ep_calls_summary *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * period.h - the iterations of a rank, from the order of its calls alone.
 *
 * A training loop makes the same top-level collective and point-to-point calls
 * in every iteration. One machine per rank is fed with them in order; each
 * call is a symbol (a hash of what it is), and a start and a duration where
 * they are known. It learns after how many calls the pattern comes again, then
 * follows it call by call and says when an iteration is over. [1] does so once,
 * by autocorrelation of the kinds of calls; here the stream is followed, with
 * drops, other phases and changes in it.
 *
 * Learning. The share of positions i with x_i == x_{i-k} (autocorrelation of
 * symbols, divided by its number of terms) is 1 over the last m calls exactly
 * if k is a period of that suffix. The failure function of the reversed buffer
 * gives the least period p(m) of every suffix in one pass [2], so that all k
 * are judged exactly in O(n). A suffix with 3 p(m) <= m proposes p(m); the
 * longest such suffix wins: A A A A B A A A A B A A A A B has period 5 by 15
 * calls, and 1 by the last few. What repeats may still be the inside of an
 * iteration that has not ended yet (micro-batches), so the first period has to
 * hold for EP_PERIOD_HOLD_S or EP_PERIOD_HOLD_CALLS without any call that is
 * not of the pattern. The calls that were held back are followed then: nothing
 * is lost by waiting. NOTE: differs from [1], whose estimate is biased and
 * whose threshold on it needs more than 20 periods.
 *
 * One kind. If the symbols are all the same, the gaps between the calls are
 * looked at: large or small, divided at a wide jump among the sorted log gaps,
 * and the classes have a period that the autocorrelation of the log gaps (both
 * partial variances, >= 0.5) and three exact repetitions show; periods up to
 * 341 calls are found so. Else each call is an iteration (EP_PERIOD_EACH).
 *
 * Following. A pattern is kept as its Lyndon word, the least of its rotations,
 * and matched with the failure function of Knuth, Morris and Pratt [2]: one
 * comparison per call. A Lyndon word has no border, hence dropped or extra
 * calls within an iteration are noticed before its end; calls missing across
 * its end are noticed within as many calls as tell the word's beginning from
 * the other places in it, and an iteration is held back for so long. Whole
 * iterations missing between two calls are told by the sequence numbers.
 *
 * Another pattern. After two periods without a whole iteration the machine is
 * lost: it learns again, while it goes on to look for the old pattern, which
 * counts again at its first whole occurrence. A new pattern replaces the old
 * one only when it has lasted as many calls as that did, or 256 periods; until
 * then it is an evaluation phase, and has no iterations. A pattern that was
 * such an interlude has to last four times as long as it ever did.
 *
 * Shared. Patterns are kept once for all ranks of a table. A rank that knows
 * none tries those of the others while it learns.
 *
 * Memory: 288 bytes per rank and 1 KiB while it learns; longer buffers are
 * lent to some ranks at a time, EP_PERIOD_LEND bytes in all, the others wait
 * and try what those found. A pattern takes 12 bytes per call.
 *
 * Limits: the calls have to come in the order of the program. Streams of which
 * the device interleaves in another way each time have no exact period.
 *
 * [1] Wu et al., "FALCON", arXiv 2410.12588, 2024, section 4.
 * [2] Knuth, Morris, Pratt, "Fast pattern matching in strings", SIAM Journal
 *     on Computing 6 (1977); Duval, "Factorizing words over an ordered
 *     alphabet", Journal of Algorithms 4 (1983).
 */
#ifndef EP_DETECT_PERIOD_H
#define EP_DETECT_PERIOD_H

#include "base/archive.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EP_PERIOD_MAX 16384 /* calls of an iteration */

/* How long the first pattern of a rank has to hold. */
#define EP_PERIOD_HOLD_S 30.0
#define EP_PERIOD_HOLD_CALLS 4096

/* Bytes of buffers of all learning ranks, beside 1 KiB of each. */
#define EP_PERIOD_LEND ((size_t)256 << 20)

struct ep_period_table; /* the patterns of all ranks; opaque */
struct ep_period;       /* the machine of one rank; opaque */

struct ep_period_table *ep_period_table_new(void);

/* All its machines have to be freed before. NULL allowed. */
void ep_period_table_free(struct ep_period_table *t);

/* Patterns that are known now. */
size_t ep_period_table_count(const struct ep_period_table *t);

/* t is borrowed until the machine is freed. */
struct ep_period *ep_period_new(struct ep_period_table *t);
void ep_period_free(struct ep_period *p); /* NULL allowed */

struct ep_period_call {
    uint64_t symbol; /* equal if and only if the calls are of the same kind */
    double ts;       /* its start, s; NaN: not known */
    double dur;      /* s, >= 0; NaN: not known */
    int64_t seq;     /* its number in its communicator, -1: not known */
};

struct ep_iteration {
    double ts;   /* start of its first call, s; NaN: not known */
    double dur;  /* from there to the start of the next iteration, s, > 0; NaN
                   if one of the two is not known, or they are not in order */
    double busy; /* dur less the time in which any call was under way, s, >= 0;
                    NaN if that is not known of all calls */
    int64_t first_seq; /* of its first call, and of its last */
    int64_t last_seq;
    uint32_t calls;
    uint32_t pattern; /* a number of the pattern: not used twice in a table */
    bool next;        /* it began when the one reported before ended */
};

typedef void ep_period_fn(void *ctx, const struct ep_iteration *it);

/*
 * One more call. fn is called for each iteration that is sure to be over: none
 * or one, or, when a pattern was just learned, all since the buffer began, in
 * order. It must not call these functions for the same machine. Cost: O(1) of
 * a rank that follows a pattern; amortised O(1) otherwise, of a stream of one
 * kind O(log n).
 */
void ep_period_push(struct ep_period *p, const struct ep_period_call *call,
                    ep_period_fn *fn, void *ctx);

/*
 * No more calls will come: what a machine that knows no pattern has heard is
 * judged by three repetitions alone, and the last iteration is given if its
 * end is known.
 */
void ep_period_finish(struct ep_period *p, ep_period_fn *fn, void *ctx);

/* Calls may be missing here (another process): no iteration goes across. */
void ep_period_break(struct ep_period *p);

enum ep_period_basis {
    EP_PERIOD_NONE,  /* no pattern is known */
    EP_PERIOD_CALLS, /* by what the calls are */
    EP_PERIOD_GAPS,  /* calls of one kind: by the gaps between them */
    EP_PERIOD_EACH,  /* calls of one kind: each is an iteration */
};

struct ep_period_state {
    enum ep_period_basis basis;
    uint32_t calls;   /* per iteration; 0 if not known */
    uint32_t pattern; /* 0 if not known */
    bool learning;    /* no pattern is being followed at this moment */
    size_t bytes;     /* of this machine, without the table */
};

void ep_period_state(const struct ep_period *p, struct ep_period_state *out);

/*
 * Save or load what was learned: the table first, a new one to load into, then
 * each of its machines, new ones likewise, in the same order. A machine goes on
 * as the saved one would have. Machines that were loaded have to be freed even
 * if the archive failed.
 */
void ep_period_table_archive(struct ep_archive *a, struct ep_period_table *t);
void ep_period_archive(struct ep_archive *a, struct ep_period *p);
void ep_iteration_archive(struct ep_archive *a, struct ep_iteration *it);

#endif

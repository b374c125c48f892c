/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silence.h - who has stopped: hangs, dead ranks, and inputs that have ended.
 *
 * Each record is a sign of life. A new step, or a new call (a seq above the
 * last of its communicator; without seq, the call itself), is progress; any
 * other record, of the rank or of its host, says only that something is alive.
 * Time is the latest end of any sign, or what ep_silence_tick was told.
 *
 * Patience. Silence counts when it is longer than each of
 *
 *     floor             300 s: half the time after which the watchdog of NCCL
 *                       gives up (600 s), and more than most checkpoints take
 *     times x usual     5 steps (where no steps are told: calls); usual is a
 *                       running mean of the intervals, rather of the short
 *                       ones; each counts as 4 of them at most
 *     pauses x pause    1.5 of the longest pause that came at least twice: a
 *                       checkpoint or an evaluation comes again, a hang that
 *                       was resolved, or the first compilation, does not
 *
 * A job is stuck when none of its ranks makes progress. Ranks wait for each
 * other, so that all fall silent, and the numbers tell who is to blame. Where
 * two ranks of a communicator are at different calls, the one ahead waits for
 * the one behind. Those for whom others wait, and who wait for nobody, are the
 * suspects: a rank that waits itself, elsewhere, is behind without guilt. If
 * all who are behind wait too, they wait in a circle. If no communicator has
 * different numbers, those whose step is less are the suspects. The suspects
 * are named if they are at most half of those concerned; of a majority the
 * communicator is. Nobody is behind when all have entered a call that does not
 * end, and then the job, or the one communicator with a call under way, is
 * reported. Telemetry that tells a call when it is over (NCCL Inspector) leaves
 * all at the same number also if one has not entered: this is said.
 *
 * A rank that tells nothing while the steps of its peers go on, 4 or more, or
 * 64 calls for each of them, is not dead: they could not go on without it. Its
 * input is. A worker does not hold up the others; it is missing by its own
 * intervals.
 *
 * Causes
 *     hang    no progress, and nothing says that it is dead: its other records
 *             go on, or nobody's do
 *     dead    no record of any kind, nor of its host, though there were some,
 *             while those of others go on; of a worker: no record of any kind
 *     input   only the telemetry has ended
 *     silent  all of the job fell silent alike at the same place, with no
 *             other sign: it hangs or it has ended. Said of a live input only
 *
 * At the end of the input there is no silence behind its latest record. Two
 * things are said then without patience: a rank that ended 16 steps (or 256
 * calls for each) before its peers, and who is behind where calls are known to
 * have been entered and not left, as in the dumps of Flight Recorder.
 *
 * A restart (steps fall by 4 or more, a pid or seq begins anew) ends all
 * episodes of the job; a rank that does not come back after it is not missed:
 * elastic jobs go on with fewer.
 *
 * The p of a finding is no measurement. It orders them: 0.95 a rank alone
 * behind in seq, 0.9 a dead input or a dead rank, 0.8 by step numbers or at the
 * end of the input, 0.6 a majority, 0.5 silent.
 */
#ifndef EP_DETECT_SILENCE_H
#define EP_DETECT_SILENCE_H

#include "base/archive.h"
#include "base/buf.h"
#include "base/err.h"
#include "detect/place.h"

#include <stdbool.h>
#include <stdint.h>

#define EP_SILENCE_RANKS 1048576 /* ranks are below this */
#define EP_SILENCE_JOBS 65536
#define EP_SILENCE_NAMES 500000 /* hosts, communicators, workers, of each */

struct ep_finding; /* watch.h */

struct ep_silence_config {
    double floor_s; /* >= 0; 0: off */
    double times;   /* >= 1 */
    double pauses;  /* >= 1 */
};

#define EP_SILENCE_DEFAULTS                                                    \
    {                                                                          \
        .floor_s = 300, .times = 5, .pauses = 1.5                              \
    }

enum ep_sign_kind {
    EP_SIGN_OTHER, /* says only that the rank, or the host, is alive */
    EP_SIGN_STEP,
    EP_SIGN_CALL,    /* of the group: its seq compares between ranks */
    EP_SIGN_P2P,     /* progress, but its seq is the rank's own */
    EP_SIGN_ENTERED, /* as CALL, and not over yet */
};

struct ep_sign {
    enum ep_sign_kind kind;
    struct ep_span job, host, worker, comm; /* len 0: none */
    int64_t rank, pid, step, seq;           /* -1: not told */
    int64_t nranks;                         /* of comm; -1 */
    struct ep_place place;
    double ts; /* s, end of what is told; NaN: now */
};

struct ep_silence; /* opaque */

/*
 * fn is called from within the functions below and must not call them.
 * Findings are of kind EP_FINDING_MISSING, and EP_FINDING_RELIEF with the same
 * eid when who was missing is back (of several: more than half of them), factor
 * 1. factor of the former: the silence in usual intervals, at least 1. EP_EDOM
 * if a field of config (NULL: defaults) is out of its range.
 */
struct ep_silence *ep_silence_new(const struct ep_silence_config *config,
                                  void (*fn)(void *ctx,
                                             const struct ep_finding *),
                                  void *ctx, struct ep_error *err) EP_MUST_USE;
void ep_silence_free(struct ep_silence *s); /* NULL allowed */

/*
 * Errors: EP_EDOM (ts is infinite), EP_ELIMIT (too many names). A rank out of
 * range is passed over.
 * Cost: O(communicators of the rank) at worst, 50 ns if they come in turns; a
 * look at all ranks of the job at most once in 1/32 of the floor (at least 1
 * s), and in 1/64 as many records as it has ranks. Memory: 0.3 KB per rank, and
 * 32 bytes for each of its communicators.
 */
int ep_silence_take(struct ep_silence *s, const struct ep_sign *x,
                    struct ep_error *err) EP_MUST_USE;

/*
 * The wall clock says now: the input is a live one and has nothing to tell.
 * What is behind the latest sign is passed over. Cost: O(1), or a look at all.
 */
void ep_silence_tick(struct ep_silence *s, double now);

/* The input is at its end. */
void ep_silence_finish(struct ep_silence *s);

/*
 * Save it, or load into a new one, which then goes on as the saved one would;
 * it has to be freed even if the archive fails. config is not saved: the
 * patience may change from one run to the next. Cost: O(ranks).
 */
void ep_silence_archive(struct ep_archive *a, struct ep_silence *s);

/* Call fn for each episode that is open: ts is NaN, evidence NULL. */
void ep_silence_open(const struct ep_silence *s,
                     void (*fn)(void *ctx, const struct ep_finding *),
                     void *ctx);

#endif

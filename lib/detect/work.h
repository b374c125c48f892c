/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.h - the pace of a job whose steps have unequal work.
 *
 * Longer sequences or more micro-batches take longer; that is no straggler.
 * A step's duration is divided by what its work explains before anything is
 * tested [1]. What it explains has to be learned: dur = fixed + slope x work,
 * since bubbles and communication do not grow with it, and the two parts
 * cannot be told apart before the work has varied. Hence:
 *
 * Constant. While the work stays within EP_WORK_SAME, nothing is done.
 *
 * Phases. Other work that stays for EP_WORK_HOLD steps is a new phase (ramp-up
 * of the batch size, longer sequences). These steps are held back; the scale
 * of the phase is the median of their durations over the level before, and all
 * are divided by it. The median passes over a checkpoint or a recompilation of
 * one or two steps at the boundary. A slow-down that was there before goes on
 * at its factor; one that starts in the phase is seen with its own. The scale
 * is refined as the phase gets 10, 20 and 32 steps, as long as these agree with
 * it (2.5 standard errors). A phase seen before keeps its scale: nothing is
 * held back.
 *
 * Bounds. What cannot come from the work stays in the values, so that a
 * fail-slow that begins together with a phase is found if it exceeds them. Let
 * r be the ratio of all work and q that of the tokens of one micro-batch. Time
 * lies between what no work (all of it fixed: 1), the micro-batch (all of it
 * bubble: q) and all work (all of it compute: r) predict. Attention is
 * quadratic in the length, and no length is told, so q may have cost more than
 * q: with a share a of it in the compute at the lesser length, r becomes
 * r (1 - a + a q). Attention is S / (6 h + S) of a transformer's matrix
 * products, or S / (12 h + S) if causal [2]: 1/4 at 8k tokens and h = 4k, or at
 * 32k, causal, and h = 8k. So a = EP_WORK_ATTENTION = 1/4, for growth and, by
 * symmetry, for decline; none where flops are told, which include it. On both
 * sides EP_WORK_SLACK is added for the median of 5 noisy steps. Where only the
 * kind of phase is known, and no work, the scale is not bounded.
 *
 * Interludes. Fewer steps of other work are divided by what, within the bounds,
 * brings them next to the level.
 *
 * Varying. Where most steps differ in work from the one before, beta in
 * log(dur) = c + beta log(work) is learned from the differences of successive
 * steps, recursively, with forgetting and Huber's weights [3]:
 *
 *     beta = (S_xy + beta_0 k) / (S_xx + k),   S <- 0.98 S + w dx (dx or dy)
 *
 * clipped to 0 .. 1 + EP_WORK_ATTENTION. Of differences a change of level
 * spoils one and a spike two, whose weights are small; beta < 1 is the fixed
 * part. dur is divided by (work / reference)^beta.
 *
 * Ranks. What a rank does to one micro-batch (busy / mb) is not freed from
 * lasting differences: a rank that always has longer sequences is a straggler.
 * Only what varies from step to step is taken out (ep_work_steady): the
 * reference is there the rank's own mean of late.
 *
 * Limits. A fail-slow that begins within 2 steps before a phase, or with it and
 * within its bounds, is taken for the phase. Where work varies, a lasting
 * imbalance is explained by the work for the job, not for the rank.
 *
 * [1] "ResiHP", arXiv 2605.06374.
 * [2] Narayanan et al., arXiv 2104.04473, appendix: FLOPs of a layer.
 * [3] Huber, "Robust estimation of a location parameter", Annals of
 *     Mathematical Statistics 35 (1964).
 */
#ifndef EP_DETECT_WORK_H
#define EP_DETECT_WORK_H

#include "base/archive.h"

#include <stdbool.h>
#include <stdint.h>

#define EP_WORK_SAME 0.02 /* relative difference of work that is none */
#define EP_WORK_HOLD 5    /* steps that make a phase */
#define EP_WORK_RECENT 32
#define EP_WORK_LEVELS 8 /* phases that are remembered */
#define EP_WORK_ATTENTION 0.25
#define EP_WORK_SLACK 0.05

/* The dependence of a series on its work. All zero: nothing is known. */
struct ep_work_slope {
    double sxx, sxy;    /* sums of products of differences */
    double spread;      /* mean absolute residual */
    double amount, dur; /* of the step before */
    double x;           /* log(amount) */
    double mean;        /* of x, of late */
    uint32_t moves;     /* a bit per step: did x move? */
    uint32_t n;         /* steps, at most 2^31 */
    bool joined;        /* they are of the step just before */
};

/* What a step's work is; of each 0 where it is not known. */
struct ep_work_amount {
    double all;    /* of the step, any unit */
    double one;    /* of one micro-batch, tokens */
    double most;   /* as all, of the rank with the most */
    uint32_t unit; /* of all and most: other units do not compare */
    bool complete; /* the unit is flops: attention is in it */
    int64_t phase; /* tells kinds of steps apart */
};

/* A step; what goes in comes out again, its dur divided by scale. */
struct ep_work_step {
    int64_t step, n;
    double ts, end;
    double dur; /* s, finite, > 0 */
    double scale;
    struct ep_work_amount work;
};

struct ep_work_level {
    struct ep_work_amount work;
    double scale; /* log */
};

/* The pace of a job by its work. All zero: nothing has come. */
struct ep_work {
    bool begun, varying;
    struct ep_work_level now;
    struct ep_work_level known[EP_WORK_LEVELS]; /* a ring */
    uint32_t nknown;
    double reference; /* varying: the x at which the scale is now.scale */
    struct ep_work_slope slope;
    double recent[EP_WORK_RECENT]; /* log(dur / scale), a ring */
    uint32_t n, since;    /* given out; of them in this phase; at most 2^31 */
    uint32_t settled;     /* steps that now.scale rests on; 0: as it is */
    double level, lo, hi; /* of now: before it; bounds of the scale. Logs */
    struct ep_work_step held[EP_WORK_HOLD];
    uint32_t nheld;
};

/*
 * Take a step; those that are ready are written to out, oldest first. Returns
 * their number, 0 to EP_WORK_HOLD. A step that does not know its work is taken
 * as one of the present phase.
 * Cost: O(1), at the end of a phase's first steps O(EP_WORK_RECENT).
 */
uint32_t ep_work_push(struct ep_work *w, const struct ep_work_step *s,
                      struct ep_work_step out[EP_WORK_HOLD]);

/* No more steps: those held back, as an interlude. Returns their number. */
uint32_t ep_work_flush(struct ep_work *w,
                       struct ep_work_step out[EP_WORK_HOLD]);

/*
 * Of a rank: value (> 0) without what the amount, where it varies from step to
 * step, explains; the value itself where it does not vary, or is 0. Cost: O(1).
 */
double ep_work_steady(struct ep_work_slope *s, double value, double amount);

/*
 * Save or load; what is loaded into is all zero, or good for nothing if the
 * archive fails. Cost: O(1), at most 700 bytes.
 */
void ep_work_archive(struct ep_archive *a, struct ep_work *w);
void ep_work_slope_archive(struct ep_archive *a, struct ep_work_slope *s);

/* The slope in use, in [0, 1 + EP_WORK_ATTENTION]. */
double ep_work_beta(const struct ep_work_slope *s);

/*
 * The bounds of the log scale for work that was a and is b; -inf and +inf if
 * the two cannot be compared.
 */
void ep_work_bounds(const struct ep_work_amount *a,
                    const struct ep_work_amount *b, double *lo, double *hi);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outer.h - the outer optimiser: what a server does with a pseudo-gradient.
 *
 * Sign, everywhere in evenpace: g = theta_start - theta_end, which is
 * subtracted in order to follow it.
 *
 * Delayed Nesterov [1, algorithm 3], buffer N, momentum beta, share c of the
 * momentum that is spread over the steps between:
 *
 *     D += g
 *     if (t + 1) mod N == 0:
 *         m = beta m + D / N
 *         theta -= lr ((1 - cN + c) beta m + g / N)
 *         D = 0
 *     else:
 *         theta -= lr (c beta m + g / N)
 *     t += 1
 *
 * N = 1, c = 0 is SGD with Nesterov momentum as PyTorch has it (dampening 0),
 * which is DiLoCo's outer step [2]; beta = 0 with it is plain SGD. HALoS [3]
 * has it on both levels, with c = 0.
 *
 * [1] Liu et al., "Asynchronous local-SGD training for language modeling",
 *     arXiv 2401.09135. [2] Douillard et al., "DiLoCo", arXiv 2311.08105.
 * [3] Kim et al., "HALoS", arXiv 2506.04531.
 *
 * One legend: n elements of a vector, t optimiser steps done.
 */
#ifndef EP_LSGD_OUTER_H
#define EP_LSGD_OUTER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_outer {
    double lr;   /* finite, > 0 */
    double beta; /* 0 <= beta < 1 */
    double c;    /* 0 <= c <= 1 / N */
    uint64_t n;  /* N >= 1: steps to a momentum update */
};

/* EP_EDOM "NAME: reason" if a value is outside the ranges above. */
int ep_outer_check(const struct ep_outer *o, struct ep_error *err) EP_MUST_USE;

/* The coefficients of one step, ready for the kernels. */
struct ep_outer_step {
    double lr;
    double beta;
    double inv_n; /* 1 / N */
    double look;  /* what m is multiplied with: (1 - cN + c) beta, or c beta */
    bool flush;   /* is it a step that updates m and clears D */
    bool buffer;  /* is D used: false if N == 1 (D is then never touched) */
};

/* The step that follows after t steps. */
struct ep_outer_step ep_outer_step_after(const struct ep_outer *o, uint64_t t);

/*
 * Apply nsteps steps, one pseudo-gradient each, in order, to n elements: in
 * one pass over memory (a block that fits the first-level cache at a time),
 * with the same bits as one call per step, at every level of base/simd.h.
 * Arithmetic in the element's type, one rounding per operation, no
 * contraction, in the order in which outer.h writes it:
 *
 *     D' = D + g
 *     m' = beta m + inv_n D'      (flush; g in place of D' if !buffer)
 *     theta' = theta - lr (look m' + inv_n g)
 *
 * (look = 0: the term is left out, and m is not read between flushes.)
 *
 * theta   [n] in/out
 * m       [n] in/out; may be NULL if beta == 0 (treated as 0)
 * d       [n] in/out; may be NULL if no step has buffer
 * g       [nsteps][n] borrowed, not changed; must not overlap the others
 * NaN and infinities go through as IEEE 754 has it; the bits promised do not
 * include the payload of a NaN.
 * Cost: reads theta, m, D and every g once, writes theta, m, D once.
 */
void ep_outer_apply_f32(float *theta, float *m, float *d, const float *const *g,
                        const struct ep_outer_step *step, size_t nsteps,
                        size_t n);
void ep_outer_apply_f64(double *theta, double *m, double *d,
                        const double *const *g,
                        const struct ep_outer_step *step, size_t nsteps,
                        size_t n);

/*
 * Elementwise helpers of merges, with the same promises.
 *
 *     mix     y = (1 - alpha) y + alpha x, as y + alpha (x - y)
 *     axpy    y = y + w x
 *     sub     y = a - b
 *     sumsq   sum_i v_i^2, in double, in an order that does not depend on the
 *             level (16 partial sums, i mod 16, added pairwise: 0 + 1, 2 + 3,
 *             ... and so on)
 */
void ep_mix_f32(float *y, const float *x, double alpha, size_t n);
void ep_mix_f64(double *y, const double *x, double alpha, size_t n);
void ep_axpy_f32(float *y, const float *x, double w, size_t n);
void ep_axpy_f64(double *y, const double *x, double w, size_t n);
void ep_sub_f32(float *y, const float *a, const float *b, size_t n);
void ep_sub_f64(double *y, const double *a, const double *b, size_t n);
double ep_sumsq_f32(const float *v, size_t n);
double ep_sumsq_f64(const double *v, size_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outer_impl.h - what outer.c and the forms of its kernels (outer_kernels.c)
 * share.
 */
#ifndef EP_LSGD_OUTER_IMPL_H
#define EP_LSGD_OUTER_IMPL_H

#include "lsgd/outer.h"

/* The functions of outer.h for one type. */
struct ep_outer_kernels_f32 {
    void (*apply)(float *theta, float *m, float *d, const float *const *g,
                  const struct ep_outer_step *step, size_t nsteps, size_t n);
    void (*mix)(float *y, const float *x, double alpha, size_t n);
    void (*axpy)(float *y, const float *x, double w, size_t n);
    void (*sub)(float *y, const float *a, const float *b, size_t n);
    double (*sumsq)(const float *v, size_t n);
};

struct ep_outer_kernels_f64 {
    void (*apply)(double *theta, double *m, double *d, const double *const *g,
                  const struct ep_outer_step *step, size_t nsteps, size_t n);
    void (*mix)(double *y, const double *x, double alpha, size_t n);
    void (*axpy)(double *y, const double *x, double w, size_t n);
    void (*sub)(double *y, const double *a, const double *b, size_t n);
    double (*sumsq)(const double *v, size_t n);
};

/* Those of the level that base/simd.h says. */
const struct ep_outer_kernels_f32 *ep_outer_kernels_f32(void);
const struct ep_outer_kernels_f64 *ep_outer_kernels_f64(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* outer.c - see outer.h: the coefficients, and the choice of the kernels. */
#include "config.h"

#include "lsgd/outer.h"

#include "lsgd/outer_impl.h"

#include <inttypes.h>
#include <math.h>

int ep_outer_check(const struct ep_outer *o, struct ep_error *err)
{
    if (!(o->lr > 0 && isfinite(o->lr)))
        return ep_error_set(err, EP_EDOM, "lr: %g is not finite and above 0",
                            o->lr);
    if (!(o->beta >= 0 && o->beta < 1))
        return ep_error_set(err, EP_EDOM, "beta: %g is not 0 or more, below 1",
                            o->beta);
    if (o->n == 0)
        return ep_error_set(err, EP_EDOM, "n: not above 0");
    if (!(o->c >= 0 && o->c <= 1 / (double)o->n))
        return ep_error_set(err, EP_EDOM,
                            "c: %g is not within 0 to 1 / n, n = %" PRIu64,
                            o->c, o->n);
    return 0;
}

struct ep_outer_step ep_outer_step_after(const struct ep_outer *o, uint64_t t)
{
    double n = (double)o->n;
    struct ep_outer_step s = {.lr = o->lr,
                              .beta = o->beta,
                              .inv_n = 1 / n,
                              .flush = t % o->n == o->n - 1,
                              .buffer = o->n > 1};

    s.look = (s.flush ? 1 - o->c * n + o->c : o->c) * o->beta;
    return s;
}

void ep_outer_apply_f32(float *theta, float *m, float *d, const float *const *g,
                        const struct ep_outer_step *step, size_t nsteps,
                        size_t n)
{
    ep_outer_kernels_f32()->apply(theta, m, d, g, step, nsteps, n);
}

void ep_outer_apply_f64(double *theta, double *m, double *d,
                        const double *const *g,
                        const struct ep_outer_step *step, size_t nsteps,
                        size_t n)
{
    ep_outer_kernels_f64()->apply(theta, m, d, g, step, nsteps, n);
}

void ep_mix_f32(float *y, const float *x, double alpha, size_t n)
{
    ep_outer_kernels_f32()->mix(y, x, alpha, n);
}

void ep_mix_f64(double *y, const double *x, double alpha, size_t n)
{
    ep_outer_kernels_f64()->mix(y, x, alpha, n);
}

void ep_axpy_f32(float *y, const float *x, double w, size_t n)
{
    ep_outer_kernels_f32()->axpy(y, x, w, n);
}

void ep_axpy_f64(double *y, const double *x, double w, size_t n)
{
    ep_outer_kernels_f64()->axpy(y, x, w, n);
}

void ep_sub_f32(float *y, const float *a, const float *b, size_t n)
{
    ep_outer_kernels_f32()->sub(y, a, b, n);
}

void ep_sub_f64(double *y, const double *a, const double *b, size_t n)
{
    ep_outer_kernels_f64()->sub(y, a, b, n);
}

double ep_sumsq_f32(const float *v, size_t n)
{
    return ep_outer_kernels_f32()->sumsq(v, n);
}

double ep_sumsq_f64(const double *v, size_t n)
{
    return ep_outer_kernels_f64()->sumsq(v, n);
}

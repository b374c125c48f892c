/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - two checkpoints, tensor by tensor.
 *
 * Tensors of one name and shape are compared by value if both types are real
 * (ckpt/dtype.h), by bytes if the type is the same and not real. Over the
 * elements i of a tensor, decoded to double:
 *
 *     diff_norm = sqrt(sum_i (a_i - b_i)^2),  a_norm = sqrt(sum_i a_i^2)
 *     relative  = diff_norm / a_norm          (0 if diff_norm is 0)
 *     max_abs   = max_i |a_i - b_i|, first met at element max_at
 *     differing = number of i with a_i != b_i, two NaNs being equal
 *
 * An element that is NaN or infinite in A or B and not the same in both counts
 * in differing and in broken, and in no norm; a_norm leaves out elements that
 * are not finite in A. Norms overflow to infinity where values exceed 1e154
 * (F64 only), and differences below 1e-162 vanish from them.
 *
 * Sums are in double, over chunks of 2^20 elements, added in order: the result
 * has the same bits for any number of threads. Metadata are not compared.
 */
#ifndef EP_CKPT_COMPARE_H
#define EP_CKPT_COMPARE_H

#include "base/buf.h"
#include "ckpt/ckpt.h"
#include "ckpt/describe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_compare_options {
    int threads;                /* 1..EP_THREADS_MAX; 0: one per CPU allowed */
    enum ep_ckpt_format format; /* of ep_compare_print */
    bool all; /* print every tensor, the equal ones too; else text has those
                 that differ, the 20 worst, and jsonl and tsv all that differ */
};

enum ep_compare_kind {
    EP_COMPARE_EQUAL,  /* type, shape, and every bit */
    EP_COMPARE_VALUES, /* every value, but not type or bits (-0, NaNs) */
    EP_COMPARE_DIFFER,
    EP_COMPARE_DTYPE, /* types differ, and one is not real */
    EP_COMPARE_SHAPE,
    EP_COMPARE_ONLY_A,
    EP_COMPARE_ONLY_B,
    EP_COMPARE_KINDS, /* how many */
};

/* One name. Numbers are 0 where nothing was compared. */
struct ep_compared {
    struct ep_span name;
    const struct ep_tensor *a, *b; /* NULL if it is not there */
    enum ep_compare_kind kind;
    bool numeric; /* compared by value: the norms count */
    double diff_norm, a_norm, relative, max_abs;
    uint64_t max_at;    /* flat index, row-major; of bytes that differ: of the
                           first element (types under 8 bits: byte) */
    uint64_t differing; /* elements (types under 8 bits: bytes) */
    uint64_t broken, broken_at; /* broken_at: flat index of the first */
    uint64_t nan_a, inf_a, nan_b, inf_b; /* elements */
};

struct ep_compare {
    const struct ep_ckpt *a, *b;
    struct ep_compared *tensor; /* [n], every name of A or B, sorted */
    size_t n;
    size_t kinds[EP_COMPARE_KINDS];
    double diff_norm, a_norm, relative; /* of all that was compared by value */
    uint64_t differing, broken;
};

/* What it comes to, best first. */
enum ep_compare_verdict {
    EP_VERDICT_EQUAL,        /* all tensors are EP_COMPARE_EQUAL */
    EP_VERDICT_VALUES,       /* ... or EP_COMPARE_VALUES */
    EP_VERDICT_DIFFER,       /* ... or EP_COMPARE_DIFFER */
    EP_VERDICT_INCOMPARABLE, /* missing tensors, other shapes or types */
};

/*
 * Compare. a and b must stay open while *r is used. EP_ESYS, EP_ELIMIT if the
 * threads cannot be started; *r needs no ep_compare_free then.
 * Cost: one pass over the data of both; private memory 16 KiB per thread and
 * about 0.1 KiB per tensor and per 2^20 elements.
 */
int ep_compare_run(struct ep_compare *r, const struct ep_ckpt *a,
                   const struct ep_ckpt *b,
                   const struct ep_compare_options *opt,
                   struct ep_error *err) EP_MUST_USE;

void ep_compare_free(struct ep_compare *r);

enum ep_compare_verdict ep_compare_verdict(const struct ep_compare *r);

/*
 * Append the verdict as a phrase, no newline:
 *
 *     equal: 200 tensors
 *     equal values in 200 tensors, 5 of them of another type or with other bits
 *     differ in 3 of 200 tensors, relative norm 0.0012
 *     not comparable: 2 only in A, 1 of another shape; of the other 198, 3
 *     differ, relative norm 0.0012        (on one line)
 */
void ep_compare_add_verdict(const struct ep_compare *r, struct ep_buf *out);

/*
 * Append the result.
 *
 *     text    the verdict, then what cannot be compared, then what differs,
 *             the worst first: by NaN and infinities, then bytes that differ,
 *             then by relative norm
 *     jsonl   {"type":"compare","verdict":"equal|values|differ|incomparable",
 *              "a":PATH,"b":PATH,"tensors":..,"equal":..,"values":..,
 *              "differ":..,"dtype":..,"shape":..,"only_a":..,"only_b":..,
 *              "diff_norm":..,"a_norm":..,"relative":..,"differing":..,
 *              "broken":..}
 *             then {"type":"compared","name":..,"kind":..} and what of struct
 *             ep_compared was computed, with dtype_a, dtype_b, shape_a,
 *             shape_b; by name. Numbers that are not finite are left out.
 *     tsv     the same columns, by name; "" where nothing was computed
 */
void ep_compare_print(const struct ep_compare *r,
                      const struct ep_compare_options *opt, struct ep_buf *out);

#endif

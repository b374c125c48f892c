/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.h - the element types of safetensors files.
 *
 * The order of the enumerators is that by which the reference writer lays
 * tensors out (largest enumerator first).
 */
#ifndef EP_CKPT_DTYPE_H
#define EP_CKPT_DTYPE_H

#include "base/buf.h"

#include <stdbool.h>

enum ep_dtype {
    EP_DT_BOOL,
    EP_DT_F4,
    EP_DT_F6_E2M3,
    EP_DT_F6_E3M2,
    EP_DT_U8,
    EP_DT_I8,
    EP_DT_F8_E5M2,
    EP_DT_F8_E4M3,
    EP_DT_F8_E8M0,
    EP_DT_F8_E4M3FNUZ,
    EP_DT_F8_E5M2FNUZ,
    EP_DT_I16,
    EP_DT_U16,
    EP_DT_F16,
    EP_DT_BF16,
    EP_DT_I32,
    EP_DT_U32,
    EP_DT_F32,
    EP_DT_C64,
    EP_DT_F64,
    EP_DT_I64,
    EP_DT_U64,
    EP_DTYPES, /* how many */
};

/* "BF16"; as it stands in a file. */
const char *ep_dtype_name(enum ep_dtype t);

/* The type of that name (case counts), or -1. */
int ep_dtype_find(struct ep_span name);

/* Bits of one element: 4, 6, 8, 16, 32 or 64. */
unsigned ep_dtype_bits(enum ep_dtype t);

/*
 * Can it be computed with (ckpt/convert.h)? True for F64, F32, F16, BF16,
 * F8_E4M3 and F8_E5M2; the others are carried through byte for byte.
 */
bool ep_dtype_is_real(enum ep_dtype t);

#endif

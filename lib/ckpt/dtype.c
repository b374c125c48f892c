/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.c - see dtype.h.
 *
 * Names and widths are those of safetensors, safetensors/src/tensor.rs.
 */
#include "config.h"

#include "ckpt/dtype.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints are read in place: the host has to be little-endian"
#endif

static const struct {
    const char *name;
    unsigned char bits;
    bool real;
} types[EP_DTYPES] = {
    [EP_DT_BOOL] = {"BOOL", 8, false},
    [EP_DT_F4] = {"F4", 4, false},
    [EP_DT_F6_E2M3] = {"F6_E2M3", 6, false},
    [EP_DT_F6_E3M2] = {"F6_E3M2", 6, false},
    [EP_DT_U8] = {"U8", 8, false},
    [EP_DT_I8] = {"I8", 8, false},
    [EP_DT_F8_E5M2] = {"F8_E5M2", 8, true},
    [EP_DT_F8_E4M3] = {"F8_E4M3", 8, true},
    [EP_DT_F8_E8M0] = {"F8_E8M0", 8, false},
    [EP_DT_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8, false},
    [EP_DT_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8, false},
    [EP_DT_I16] = {"I16", 16, false},
    [EP_DT_U16] = {"U16", 16, false},
    [EP_DT_F16] = {"F16", 16, true},
    [EP_DT_BF16] = {"BF16", 16, true},
    [EP_DT_I32] = {"I32", 32, false},
    [EP_DT_U32] = {"U32", 32, false},
    [EP_DT_F32] = {"F32", 32, true},
    [EP_DT_C64] = {"C64", 64, false},
    [EP_DT_F64] = {"F64", 64, true},
    [EP_DT_I64] = {"I64", 64, false},
    [EP_DT_U64] = {"U64", 64, false},
};

const char *ep_dtype_name(enum ep_dtype t)
{
    return types[t].name;
}

int ep_dtype_find(struct ep_span name)
{
    for (int t = 0; t < EP_DTYPES; t++)
        if (ep_span_eq(name, types[t].name))
            return t;
    return -1;
}

unsigned ep_dtype_bits(enum ep_dtype t)
{
    return types[t].bits;
}

bool ep_dtype_is_real(enum ep_dtype t)
{
    return types[t].real;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* st_impl.h - what the files of the safetensors reader share. */
#ifndef EP_CKPT_ST_IMPL_H
#define EP_CKPT_ST_IMPL_H

#include "ckpt/safetensors.h"

#include <stdbool.h>

/* Room for a name in a message: the reason has to fit beside it. */
enum { EP_ST_SHOWN = 72 };

/*
 * The rules that concern the tensors together: no name twice; in the order of
 * their data, into which st->tensor is brought, no hole, no overlap, and the
 * file ends with the last. st->data_bytes is known. Errors as ep_st_parse.
 * Cost: O(size of the names x log n).
 */
int ep_st_check(struct ep_st *st, struct ep_error *err) EP_MUST_USE;

/*
 * Keep one entry of each key, the first or the last of them, in the order they
 * have. Returns how many are left.
 *
 * meta    [n], written
 */
size_t ep_st_meta_unique(struct ep_st_meta *meta, size_t n, bool keep_last);

/*
 * Could these be the first bytes of a safetensors file? True if N fits the
 * file, and what follows it may begin a JSON object.
 *
 * file    [len] the first bytes, file_bytes of the whole
 */
bool ep_st_plausible(const void *file, size_t len, uint64_t file_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ckpt_index.h - the index of a checkpoint in shards; private to lib/ckpt.
 *
 *     {"metadata": {"total_size": 8},
 *      "weight_map": {"a": "model-00001-of-00002.safetensors",
 *                     "b": "model-00002-of-00002.safetensors"}}
 *
 * Only weight_map is read: the total_size of published models is often not
 * that of their tensors, and what matters of it is checked by the shards.
 */
#ifndef EP_CKPT_CKPT_INDEX_H
#define EP_CKPT_CKPT_INDEX_H

#include "base/buf.h"
#include "base/err.h"
#include "ckpt/arena.h"

#include <stddef.h>

/* Where a tensor is. */
struct ep_ckpt_place {
    struct ep_span name; /* decoded */
    size_t file;         /* index into file[] */
};

/* Read-only for others; everything is owned by it. */
struct ep_ckpt_index {
    struct ep_ckpt_place *place; /* [n], sorted by name, no name twice */
    size_t n;
    struct ep_span *file; /* [nfiles], sorted, none twice; each terminated: a
                             name without '/' or NUL, not "", "." or ".." */
    size_t nfiles;
    struct ep_arena memory; /* private */
};

/*
 * Read an index. Errors: those of the JSON scanner; EP_EFORMAT (no weight_map,
 * two of them, a tensor twice, a file name that is none), EP_ELIMIT (more than
 * EP_ST_HEADER_MAX bytes). The message is the reason alone. *ix needs no
 * ep_ckpt_index_free after an error.
 *
 * text    [len] bytes; nothing refers to it later
 * Cost: O(len log n); memory O(len).
 */
int ep_ckpt_index_parse(struct ep_ckpt_index *ix, const char *text, size_t len,
                        struct ep_error *err) EP_MUST_USE;

void ep_ckpt_index_free(struct ep_ckpt_index *ix); /* all-zero *ix allowed */

/* The place of that name, or NULL. Cost: O(log n). */
const struct ep_ckpt_place *ep_ckpt_index_find(const struct ep_ckpt_index *ix,
                                               struct ep_span name);

#endif

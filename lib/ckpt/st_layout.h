/* SPDX-License-Identifier: Apache-2.0 */
/*
 * st_layout.h - where each tensor of a new checkpoint goes, and the text of
 * its headers and index. Pure: no files. Private to lib/ckpt; see st_write.h.
 */
#ifndef EP_CKPT_ST_LAYOUT_H
#define EP_CKPT_ST_LAYOUT_H

#include "ckpt/st_write.h"

enum { EP_ST_SHARD_NAME = 64 }; /* bytes that hold any shard's name */

#define EP_ST_INDEX_NAME "model.safetensors.index.json"

struct ep_st_place {
    size_t shard;
    uint64_t begin; /* bytes from the start of the shard's data */
    uint64_t bytes;
};

struct ep_st_layout {
    struct ep_st_place *place; /* [n], as plan->tensor */
    size_t n;
    size_t shards;           /* at least 1 */
    uint64_t *data_bytes;    /* [shards] */
    uint64_t total_bytes;    /* of all tensors */
    size_t *order;           /* [n] indices of tensors, by shard, then as the
                             data lie */
    size_t *first;           /* [shards + 1] where a shard begins in order */
    size_t *by_name;         /* [n] */
    struct ep_st_meta *meta; /* [nmeta] entries to write; text is the plan's */
    size_t nmeta;
};

/*
 * Check the plan and settle the places: tensors in the order of the plan fill
 * shards one after the other, each until the next tensor does not fit; in a
 * shard they lie by dtype, descending, then by name. Of metadata entries with
 * one key the first is kept.
 *
 * Errors: those of ep_st_writer_open that are about the plan, the message
 * being the reason alone. *l needs no ep_st_layout_free after an error.
 * Cost: O(n log n) comparisons of names.
 */
int ep_st_layout_make(struct ep_st_layout *l, const struct ep_st_plan *plan,
                      struct ep_error *err) EP_MUST_USE;

void ep_st_layout_free(struct ep_st_layout *l);

/*
 * The header of a shard, JSON padded with spaces to a multiple of 8 bytes, but
 * not the 8 bytes before it. EP_ELIMIT beyond EP_ST_HEADER_MAX.
 */
int ep_st_layout_header(const struct ep_st_layout *l,
                        const struct ep_st_plan *plan, size_t shard,
                        struct ep_buf *out, struct ep_error *err) EP_MUST_USE;

/* The index of the shards. */
void ep_st_layout_index(const struct ep_st_layout *l,
                        const struct ep_st_plan *plan, struct ep_buf *out);

/* "model-00001-of-00002.safetensors" for shard 0 of 2. Returns name. */
const char *ep_st_layout_name(size_t shard, size_t shards,
                              char name[EP_ST_SHARD_NAME]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ckpt.h - a checkpoint: one safetensors file, or the shards of an index.
 *
 * A path may be
 *   - a safetensors file;
 *   - an index, FILE.index.json (or any *.json): {"metadata": {"total_size":
 *     bytes}, "weight_map": {tensor: file name}}, with its shards beside it;
 *     only weight_map is read;
 *   - a folder with model.safetensors.index.json, or model.safetensors, or
 *     exactly one *.safetensors (in this order), which must not be one shard
 *     of several by its name, NAME-00001-of-00002.safetensors: without an index
 *     nothing tells that tensors are missing.
 * Files are mapped, checked in full, and stay mapped until the checkpoint is
 * closed; memory of the process grows with the headers only.
 *
 * Pickles are refused, never interpreted: zip archives and pickle streams
 * (.pt, .pth, .bin, .ckpt), folders of PyTorch's distributed checkpoints
 * (with .metadata). The message says how to convert.
 *
 * Shards: each tensor of weight_map must be in the file named for it, each
 * tensor of a shard must be named; a file name with a '/' is refused.
 */
#ifndef EP_CKPT_CKPT_H
#define EP_CKPT_CKPT_H

#include "base/err.h"
#include "ckpt/safetensors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_ckpt; /* opaque */

/*
 * Open. NULL on error: EP_ESYS, EP_EFORMAT, EP_ETRUNC, EP_ELIMIT, EP_ERANGE as
 * ep_st_parse, EP_EUSAGE (an empty path), EP_EMISSING (the index names a file
 * that is not there, or a shard's index is not there):
 * "cannot open PATH: reason" (system, or not a regular file) or "cannot read
 * PATH: reason", PATH the file at fault; where the message has no room for all
 * of it, its beginning is left out.
 */
struct ep_ckpt *ep_ckpt_open(const char *path,
                             struct ep_error *err) EP_MUST_USE;

void ep_ckpt_close(struct ep_ckpt *c); /* NULL allowed */

/* The path that it was opened by. Borrowed until closed. */
const char *ep_ckpt_path(const struct ep_ckpt *c);

/* Tensors, sorted by name (bytes). i < count. Borrowed until closed. */
size_t ep_ckpt_count(const struct ep_ckpt *c);
const struct ep_tensor *ep_ckpt_tensor(const struct ep_ckpt *c, size_t i);

/* The tensor of that name, or NULL. Cost: O(log n). */
const struct ep_tensor *ep_ckpt_find(const struct ep_ckpt *c,
                                     struct ep_span name);

/* Path of the file that tensor i is in. Borrowed until closed. */
const char *ep_ckpt_file(const struct ep_ckpt *c, size_t i);

/*
 * The path of a file of c that has changed since it was opened (ep_map_changed;
 * the index, which was read then, left out), or NULL. Cost: a stat(2) for each
 * file.
 */
const char *ep_ckpt_changed(const struct ep_ckpt *c);

/* Is the file at path one of c's, its index too? */
bool ep_ckpt_has_file(const struct ep_ckpt *c, const char *path);

/* Files, at least 1; and their sizes with headers, summed. */
size_t ep_ckpt_files(const struct ep_ckpt *c);
uint64_t ep_ckpt_bytes(const struct ep_ckpt *c);

/*
 * Metadata, each key once: of the only file; of shards, the entries of all (of
 * different values that of the first shard by name counts). Borrowed until
 * closed.
 */
size_t ep_ckpt_meta_count(const struct ep_ckpt *c);
struct ep_st_meta ep_ckpt_meta(const struct ep_ckpt *c, size_t i);
struct ep_span ep_ckpt_meta_find(const struct ep_ckpt *c, const char *key);

/*
 * Tell the system that n bytes of a tensor from byte at on will be read soon
 * (madvise; advice only). What is beyond its end is left out.
 */
void ep_ckpt_will_need(const struct ep_tensor *t, uint64_t at, uint64_t n);

#endif

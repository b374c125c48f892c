/* SPDX-License-Identifier: Apache-2.0 */
/*
 * st_write.h - write a checkpoint, whole or not at all.
 *
 * The layout is settled first, from names, types and shapes: headers are
 * written at once, and then the bytes of tensors in any order, from any
 * thread, straight to their place. Nothing of the model is kept in memory.
 *
 * One file: a temporary one in the same folder (without a name where the
 * system can), put in place by fsync and rename. Shards: a new folder with
 * model-00001-of-0000N.safetensors and model.safetensors.index.json, built
 * under a temporary name beside it and renamed: PATH must not exist, or be an
 * empty folder. The name of what is unfinished begins with a dot
 * (base/tempfile.h). A program that is killed leaves nothing that looks
 * finished, except between the first and the last act of ep_st_writer_place.
 *
 * Order in a file: ep_dtype descending, then name, as the reference writer;
 * the header is padded with spaces to a multiple of 8 bytes. The length of a
 * header (the first 8 bytes of its file) and the index are written last: a file
 * or folder that was left unfinished is refused by every reader. Shards are
 * filled in the order of the plan. At most 64 of them are open at a time, and
 * fewer where the system allows fewer.
 */
#ifndef EP_CKPT_ST_WRITE_H
#define EP_CKPT_ST_WRITE_H

#include "base/err.h"
#include "ckpt/safetensors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_st_writer; /* opaque */

/* What will be written. Only read while ep_st_writer_open runs. */
struct ep_st_plan {
    const struct ep_tensor *tensor; /* [n]; name, dtype, rank, shape count */
    size_t n;
    const struct ep_st_meta *meta; /* [nmeta], into every file; of entries with
                                      one key the first is written */
    size_t nmeta;
    uint64_t shard_bytes; /* most tensor bytes in a file (a larger tensor has
                             one of its own); 0: one file */
};

/*
 * Begin. NULL on error: EP_EFORMAT (two tensors of one name, a name
 * "__metadata__", bytes that are not UTF-8, elements that do not fill whole
 * bytes), EP_EDOM (a count that is not its shape's), EP_ERANGE (sizes
 * overflow), EP_ELIMIT (a header over EP_ST_HEADER_MAX, a rank over
 * EP_ST_RANK_MAX), EP_EUSAGE (PATH is empty, "-", a link that leads nowhere, or
 * there and neither file nor folder: tensors are written to their places, not
 * one after the other),
 * EP_ESYS: "cannot create PATH: reason". Room on the disk is claimed now, where
 * the file system can (fallocate), so that a full disk shows before the work
 * and not after it. A symbolic link is followed, if it leads somewhere.
 *
 * Not while other threads make files (base/tempfile.h, ep_tempfile_mode).
 */
struct ep_st_writer *ep_st_writer_open(const char *path,
                                       const struct ep_st_plan *plan,
                                       struct ep_error *err) EP_MUST_USE;

/*
 * Write n bytes of tensor i (index in plan->tensor) from byte at on. Safe
 * from several threads for parts that do not overlap. EP_ESYS "cannot write
 * PATH: reason"; EP_ERANGE beyond the tensor's end.
 */
int ep_st_writer_write(struct ep_st_writer *w, size_t i, uint64_t at,
                       const void *p, size_t n,
                       struct ep_error *err) EP_MUST_USE;

/*
 * Finish, but put nothing in place yet. sync: fsync (durable). EP_EDOM "cannot write PATH:
 * tensor \"NAME\": N of M bytes were written" if one is not complete; EP_ESYS,
 * also for a write that failed before. Call it when no thread writes any more;
 * ep_st_writer_place or ep_st_writer_abort comes next.
 */
int ep_st_writer_finish(struct ep_st_writer *w, bool sync,
                        struct ep_error *err) EP_MUST_USE;

/*
 * Put checkpoints that are finished in place, in this order, all of them or
 * none, and free them: if one cannot be placed, what was at the places of those
 * before it is put back. All but the last must be single files. Signals wait
 * meanwhile. If the system stops between two of them, what was at the first's
 * place is beside it, under a hidden name. EP_ESYS "cannot write PATH: reason";
 * nothing is there then that was not there before.
 *
 * w       [n]
 */
int ep_st_writer_place(struct ep_st_writer *const *w, size_t n, bool sync,
                       struct ep_error *err) EP_MUST_USE;

/* Both for one: finish, place, and free. */
int ep_st_writer_commit(struct ep_st_writer *w, bool sync,
                        struct ep_error *err) EP_MUST_USE;

/* Give up: remove what was made, free w. Keeps errno. NULL allowed. */
void ep_st_writer_abort(struct ep_st_writer *w);

#endif

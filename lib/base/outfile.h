/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile.h - output that is whole or not there.
 *
 * A regular file is written under a temporary name in the same folder and
 * put in place with fsync(2) and rename(2) on commit: a reader sees the old
 * file or the new one, never a part. A path that exists and is not a regular
 * file (a FIFO, /dev/full) is written directly. A symbolic link is followed,
 * if it leads somewhere. A NULL path or "-" is standard output. A program that
 * is killed leaves the old file untouched and, where the file system can hold a
 * file without a name (O_TMPFILE), nothing else; else FOLDER/.NAME.XXXXXX.
 */
#ifndef EP_BASE_OUTFILE_H
#define EP_BASE_OUTFILE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

struct ep_outfile; /* opaque */

/*
 * Begin. Returns NULL on error (EP_ESYS): "cannot create PATH: reason".
 * The new file has mode 0666 less the umask, or the mode of the file that it
 * will replace.
 */
struct ep_outfile *ep_outfile_open(const char *path,
                                   struct ep_error *err) EP_MUST_USE;

/* Where to write. Borrowed; do not fclose it. */
FILE *ep_outfile_stream(struct ep_outfile *out);

/* Is it put in place as a whole, at the end? */
bool ep_outfile_is_whole(const struct ep_outfile *out);

/*
 * Is all well so far? flush: after pushing out what is buffered. Call it
 * after writes, while errno is fresh: the reason of the first failure is kept
 * for ep_outfile_commit. A loop that writes can stop at false.
 */
bool ep_outfile_ok(struct ep_outfile *out, bool flush);

/*
 * Flush, check every error that stdio saw, fsync, rename, and free out.
 * EP_ESYS: "cannot write PATH: reason"; the old file is then untouched and
 * the temporary one gone.
 */
int ep_outfile_commit(struct ep_outfile *out, struct ep_error *err) EP_MUST_USE;

/* Give up: remove the temporary file, free out. Keeps errno. NULL allowed. */
void ep_outfile_abort(struct ep_outfile *out);

#endif

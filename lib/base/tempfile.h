/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tempfile.h - a file or folder that is made beside its place and then put
 * there: what outfile.h (streams) and ckpt/st_write.h (checkpoints) share.
 *
 *     resolve -> open -> (the caller writes) -> name -> rename -> free
 *
 * Where the file system can hold a file without a name (O_TMPFILE) it has none
 * until ep_tempfile_name: a program that is killed leaves nothing. Elsewhere,
 * and for folders, the name is PATH.XXXXXX.
 *
 * Functions return 0 (open: a descriptor) or -1 with errno; messages are the
 * caller's.
 */
#ifndef EP_BASE_TEMPFILE_H
#define EP_BASE_TEMPFILE_H

#include "base/err.h"

#include <sys/stat.h>
#include <sys/types.h>

/* All-zero to begin with. Read-only for others. */
struct ep_tempfile {
    char *path; /* where it will be put */
    char *temp; /* where it is now; NULL while it has no name */
};

/*
 * Settle t->path: what path leads to if it is a symbolic link (the link stays),
 * else path itself. st->st_mode is 0 if nothing is there. ELOOP for a link
 * that leads nowhere, ENOENT for an empty path.
 */
int ep_tempfile_resolve(struct ep_tempfile *t, const char *path,
                        struct stat *st) EP_MUST_USE;

/*
 * Permissions of something new: all less the umask (0666 for a file, 0777 for
 * a folder). Not while other threads make files: the umask is 022 for a moment.
 */
mode_t ep_tempfile_mode(mode_t all);

/* Make the file; the descriptor is for writing, and the caller's to close. */
int ep_tempfile_open(struct ep_tempfile *t, mode_t mode) EP_MUST_USE;

/* Make a folder, t->temp, instead. */
int ep_tempfile_open_folder(struct ep_tempfile *t, mode_t mode) EP_MUST_USE;

/* Give the file of descriptor fd a name, if it has none. Before it is closed. */
int ep_tempfile_name(struct ep_tempfile *t, int fd) EP_MUST_USE;

/* Put it in place of what is there (a folder: of nothing, or an empty one). */
int ep_tempfile_rename(struct ep_tempfile *t) EP_MUST_USE;

/*
 * Remove what was not put in place (a folder that has been emptied), and free
 * what t holds. Keeps errno.
 */
void ep_tempfile_free(struct ep_tempfile *t);

/*
 * Make the entry of path in its folder durable (fsync). A file system that
 * cannot do it is no error.
 */
void ep_tempfile_sync_folder(const char *path);

#endif

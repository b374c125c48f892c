/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tempfile.h - a file or folder that is made beside its place and then put
 * there: what outfile.h (streams) and ckpt/st_write.h (checkpoints) share.
 *
 *     resolve -> open -> (the caller writes) -> name -> rename -> free
 *                                               name -> swap -> keep -> free
 *                                                            -> restore -> free
 *
 * Where the file system can hold a file without a name (O_TMPFILE) it has none
 * until ep_tempfile_name: a program that is killed leaves nothing. Elsewhere,
 * and for folders, the name is that of PATH with a dot before it, so that no
 * pattern of a shell finds it, and a dot and six characters behind it. Names
 * that are given later end in the process id and a number.
 *
 * Functions return 0 (open: a descriptor) or -1 with errno; messages are the
 * caller's.
 */
#ifndef EP_BASE_TEMPFILE_H
#define EP_BASE_TEMPFILE_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* All-zero to begin with. Read-only for others. */
struct ep_tempfile {
    char *path; /* where it will be put */
    char *temp; /* where it is now; NULL while it has no name */
    char *old;  /* where what was at path is; NULL: nowhere */
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
 * As ep_tempfile_rename, for a file, but what was there stays beside it as
 * t->old until one of the next two is called. There is always a file at path,
 * except for a moment on a file system without hard links.
 */
int ep_tempfile_swap(struct ep_tempfile *t) EP_MUST_USE;

void ep_tempfile_keep(struct ep_tempfile *t); /* remove what was there */

/* Put back what was there; after an error it is still t->old. */
int ep_tempfile_restore(struct ep_tempfile *t) EP_MUST_USE;

/*
 * Remove what was not put in place (a folder that has been emptied), and free
 * what t holds, but never remove t->old. Keeps errno.
 */
void ep_tempfile_free(struct ep_tempfile *t);

/* Do both paths name one place of one folder, whether something is there? */
bool ep_tempfile_same_place(const char *a, const char *b);

/*
 * Make the entry of path in its folder durable (fsync). A file system that
 * cannot do it is no error.
 */
void ep_tempfile_sync_folder(const char *path);

#endif

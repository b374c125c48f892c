/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fdpool.h - more files open for reading than there are descriptors.
 *
 * A process may have so many descriptors (RLIMIT_NOFILE), and a merge needs
 * all its inputs at once. A regular file that is read by offset needs its
 * descriptor during a read only: when there are too many, the one that was
 * read least recently is parked, that is closed, and opened again by its name
 * when it is read next. It has to be the same file then (st_dev, st_ino), and
 * not shorter than it was read.
 *
 * Files share half of the descriptors that the soft limit allows; the other
 * half is for what cannot be parked: pipes, sockets, outputs, temporary files.
 * A file that is removed or renamed while it is parked cannot be read on: that
 * is an error, never a silent end.
 *
 * Functions may be called from any thread, one at a time per file.
 */
#ifndef EP_BASE_FDPOOL_H
#define EP_BASE_FDPOOL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Fields are read-only for users. */
struct ep_fdpool_file {
    int fd;        /* -1: parked, or closed */
    bool regular;  /* by path, so that pread(2) is for it */
    bool held;     /* has its descriptor until it is closed */
    char *path;    /* NULL: nothing is to be closed (standard input) */
    uint64_t size; /* B, when it was opened last */
    dev_t dev;
    ino_t ino;
    /* in order of use, while it is open and not in use */
    struct ep_fdpool_file *newer, *older;
};

/*
 * Open path (copied) for reading into *f, which must not move until it is
 * closed. Returns 0 or EP_ESYS, whose message is the bare reason (a folder is
 * EISDIR). It may be parked at once.
 */
int ep_fdpool_open(struct ep_fdpool_file *f, const char *path,
                   struct ep_error *err) EP_MUST_USE;

/* Make *f of a descriptor that is somebody else's: never parked nor closed. */
void ep_fdpool_borrow(struct ep_fdpool_file *f, int fd);

/*
 * The descriptor, for a read from offset on, until ep_fdpool_give. Returns it
 * or EP_ESYS with the bare reason as message: it could not be opened again, or
 * is another file, or shorter than offset.
 * Cost: a lock; of a parked file open(2) and fstat(2), and close(2) of another.
 */
int ep_fdpool_take(struct ep_fdpool_file *f, uint64_t offset,
                   struct ep_error *err) EP_MUST_USE;
void ep_fdpool_give(struct ep_fdpool_file *f);

/* Never park it from now on. As ep_fdpool_take, 0 if it worked. */
int ep_fdpool_hold(struct ep_fdpool_file *f, uint64_t offset,
                   struct ep_error *err) EP_MUST_USE;

/* Of a held file: read another file under its path instead, from fd. */
void ep_fdpool_replace(struct ep_fdpool_file *f, int fd);

void ep_fdpool_close(struct ep_fdpool_file *f);

#endif

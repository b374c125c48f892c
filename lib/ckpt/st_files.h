/* SPDX-License-Identifier: Apache-2.0 */
/*
 * st_files.h - the files of a checkpoint that is being written: one temporary
 * file, or shards in a temporary folder of which only some are open. Private
 * to lib/ckpt; see st_write.h.
 */
#ifndef EP_CKPT_ST_FILES_H
#define EP_CKPT_ST_FILES_H

#include "base/buf.h"
#include "base/err.h"
#include "base/tempfile.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_st_file {
    uint64_t left;  /* bytes to be written yet; closed when it is 0 */
    uint64_t used;  /* when it was opened or written to last */
    unsigned users; /* threads that are writing */
    int fd;         /* -1: closed */
    bool made;      /* it exists */
};

struct ep_st_files {
    char *path;  /* as the caller named it, for messages */
    bool folder; /* shards in a folder, else one file */
    struct ep_tempfile temp;
    struct ep_st_file *file; /* [n] */
    size_t n;
    pthread_mutex_t lock; /* of file and of all below */
    size_t open;          /* descriptors */
    uint64_t clock;
    int errnum;    /* of the first write that failed, else 0 */
    size_t failed; /* the file where it did */
};

/*
 * Begin: make the temporary file (fd of file 0), or folder for n shards.
 * Errors: EP_EUSAGE, EP_ESYS, as ep_st_writer_open. To be followed by
 * ep_st_files_abort or ep_st_files_free also after an error.
 */
int ep_st_files_begin(struct ep_st_files *f, const char *path, bool folder,
                      size_t n, struct ep_error *err) EP_MUST_USE;

/*
 * Make shard i (of one file: it is there), claim its room on the disk, and
 * write its header, 8 zeros before it. EP_ESYS "cannot create PATH: reason".
 *
 * header      [len] the JSON
 * data_bytes  bytes of tensors that follow
 */
int ep_st_files_start(struct ep_st_files *f, size_t i, struct ep_span header,
                      uint64_t data_bytes, struct ep_error *err) EP_MUST_USE;

/*
 * Write n bytes from byte at of file i on; *written += n when they are. Safe
 * from several threads. EP_ESYS "cannot write PATH: reason".
 */
int ep_st_files_write(struct ep_st_files *f, size_t i, uint64_t at,
                      const void *p, size_t n, uint64_t *written,
                      struct ep_error *err) EP_MUST_USE;

/*
 * Say how long the header of file i is, sync it if asked to, and close it if
 * it is a shard. EP_ESYS, also for what failed before.
 */
int ep_st_files_finish(struct ep_st_files *f, size_t i, uint64_t header_bytes,
                       bool sync, struct ep_error *err) EP_MUST_USE;

/* Write a small file into the folder, whole. EP_ESYS. */
int ep_st_files_add(struct ep_st_files *f, const char *name,
                    struct ep_span text, bool sync,
                    struct ep_error *err) EP_MUST_USE;

/*
 * The last that can be done without changing what is at PATH: give the
 * temporary file its name and close it, sync the names in a folder, and see
 * whether PATH can be replaced. EP_ESYS.
 */
int ep_st_files_ready(struct ep_st_files *f, bool sync,
                      struct ep_error *err) EP_MUST_USE;

/*
 * Put the file or folder in its place. With a way back (a file only) what was
 * there before stays beside it until ep_st_files_keep or ep_st_files_restore.
 * EP_ESYS.
 */
int ep_st_files_place(struct ep_st_files *f, bool way_back, bool sync,
                      struct ep_error *err) EP_MUST_USE;

void ep_st_files_keep(struct ep_st_files *f);

/* Put back what was there. After an error *err says where it is, too. */
void ep_st_files_restore(struct ep_st_files *f, bool sync,
                         struct ep_error *err);

/* Close and remove all that was made; extra: name of an added file or NULL. */
void ep_st_files_abort(struct ep_st_files *f, const char *extra);

/* Free what f holds, after it was put in place or aborted. */
void ep_st_files_free(struct ep_st_files *f);

/* "cannot VERB PATH" with the reason of errnum. Returns EP_ESYS. */
int ep_st_files_error(const struct ep_st_files *f, const char *verb, int errnum,
                      struct ep_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * st_write.c - see st_write.h; st_layout.c knows what goes where, st_files.c
 * has the files.
 *
 * A thread writes straight to the tensor's place with pwrite(2): no buffer, no
 * order. A tensor is complete if as many bytes were written as it has; parts
 * that overlap are the caller's error.
 */
#include "config.h"

#include "ckpt/st_write.h"

#include "base/mem.h"
#include "ckpt/st_files.h"
#include "ckpt/st_layout.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct part {
    size_t shard;
    uint64_t at; /* bytes from the start of the shard's file */
    uint64_t bytes, written;
    size_t name, name_len; /* in names */
};

struct ep_st_writer {
    struct ep_st_files files;
    uint64_t *header_bytes; /* [shards] N */
    size_t shards;
    struct part *part; /* [n] */
    size_t n;
    struct ep_buf names;
    struct ep_buf index; /* text, empty for one file */
};

static void free_writer(struct ep_st_writer *w)
{
    ep_st_files_free(&w->files);
    ep_buf_free(&w->names);
    ep_buf_free(&w->index);
    free(w->header_bytes);
    free(w->part);
    free(w);
}

/* Make all files with their headers; where tensors are is known then. */
static int start(struct ep_st_writer *w, const struct ep_st_plan *plan,
                 const struct ep_st_layout *l, struct ep_error *err)
{
    struct ep_buf header;
    int rc = 0;

    ep_buf_init(&header);
    for (size_t i = 0; i < l->shards && rc == 0; i++) {
        ep_buf_reset(&header);
        rc = ep_st_layout_header(l, plan, i, &header, err);
        if (rc < 0) {
            char shown[160];

            (void)ep_error_prefix(err, "cannot create %s",
                                  ep_escape(shown, sizeof shown, w->files.path,
                                            strlen(w->files.path)));
            break;
        }
        w->header_bytes[i] = header.len;
        rc = ep_st_files_start(&w->files, i,
                               (struct ep_span){header.ptr, header.len},
                               l->data_bytes[i], err);
    }
    ep_buf_free(&header);
    for (size_t i = 0; i < l->n && rc == 0; i++) {
        const struct ep_st_place *p = &l->place[i];
        struct ep_span name = plan->tensor[i].name;

        w->part[i] = (struct part){
            .shard = p->shard,
            .at = 8 + w->header_bytes[p->shard] + p->begin,
            .bytes = p->bytes,
            .name = w->names.len,
            .name_len = name.len,
        };
        ep_buf_add(&w->names, name.ptr, name.len);
    }
    if (plan->shard_bytes)
        ep_st_layout_index(l, plan, &w->index);
    return rc;
}

struct ep_st_writer *ep_st_writer_open(const char *path,
                                       const struct ep_st_plan *plan,
                                       struct ep_error *err)
{
    struct ep_st_writer *w;
    struct ep_st_layout l;
    char shown[160];
    int rc = ep_st_layout_make(&l, plan, err);

    if (rc < 0) {
        (void)ep_error_prefix(
            err, "cannot create %s",
            ep_escape(shown, sizeof shown, path, strlen(path)));
        return NULL;
    }
    w = ep_calloc(1, sizeof *w);
    w->shards = l.shards;
    w->header_bytes = ep_calloc(l.shards, sizeof *w->header_bytes);
    w->n = l.n;
    w->part = ep_calloc(l.n + 1, sizeof *w->part);
    ep_buf_init(&w->names);
    ep_buf_init(&w->index);
    rc = ep_st_files_begin(&w->files, path, plan->shard_bytes > 0, l.shards,
                           err);
    if (rc == 0)
        rc = start(w, plan, &l, err);
    ep_st_layout_free(&l);
    if (rc < 0) {
        ep_st_writer_abort(w);
        return NULL;
    }
    return w;
}

/* "cannot write PATH: tensor "NAME"", for ep_error_prefix. */
static int about(const struct ep_st_writer *w, const struct part *p, int code,
                 struct ep_error *err)
{
    char path[90], name[90];

    (void)ep_error_prefix(
        err, "cannot write %s: tensor \"%s\"",
        ep_escape(path, sizeof path, w->files.path, strlen(w->files.path)),
        ep_escape(name, sizeof name, w->names.ptr + p->name, p->name_len));
    return code;
}

int ep_st_writer_write(struct ep_st_writer *w, size_t i, uint64_t at,
                       const void *p, size_t n, struct ep_error *err)
{
    struct part *part;

    if (i >= w->n)
        return ep_error_set(err, EP_ERANGE,
                            "cannot write tensor %zu: there are %zu", i, w->n);
    part = &w->part[i];
    if (at > part->bytes || n > part->bytes - at) {
        (void)ep_error_set(
            err, EP_ERANGE, "%zu bytes at %llu are beyond its end at %llu", n,
            (unsigned long long)at, (unsigned long long)part->bytes);
        return about(w, part, EP_ERANGE, err);
    }
    if (n == 0)
        return 0;
    return ep_st_files_write(&w->files, part->shard, part->at + at, p, n,
                             &part->written, err);
}

static int check_complete(const struct ep_st_writer *w, struct ep_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct part *p = &w->part[i];

        if (p->written == p->bytes)
            continue;
        (void)ep_error_set(err, EP_EDOM, "%llu of %llu bytes were written",
                           (unsigned long long)p->written,
                           (unsigned long long)p->bytes);
        return about(w, p, EP_EDOM, err);
    }
    return 0;
}

int ep_st_writer_finish(struct ep_st_writer *w, bool sync, struct ep_error *err)
{
    int rc = w->files.errnum ? 0 : check_complete(w, err);

    for (size_t i = 0; i < w->shards && rc == 0; i++)
        rc = ep_st_files_finish(&w->files, i, w->header_bytes[i], sync, err);
    if (rc == 0 && w->files.folder)
        rc = ep_st_files_add(&w->files, EP_ST_INDEX_NAME,
                             (struct ep_span){w->index.ptr, w->index.len}, sync,
                             err);
    return rc;
}

/* All in place, or none. */
static int place_all(struct ep_st_writer *const *w, size_t n, bool sync,
                     struct ep_error *err)
{
    size_t placed = 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = ep_st_files_ready(&w[i]->files, sync, err);
    while (placed < n && rc == 0) {
        rc = ep_st_files_place(&w[placed]->files, placed + 1 < n, sync, err);
        placed += rc == 0;
    }
    while (placed > 0) {
        placed--;
        if (rc == 0)
            ep_st_files_keep(&w[placed]->files);
        else
            ep_st_files_restore(&w[placed]->files, sync, err);
    }
    return rc;
}

int ep_st_writer_place(struct ep_st_writer *const *w, size_t n, bool sync,
                       struct ep_error *err)
{
    struct ep_error why = {.code = 0};
    sigset_t all, before;
    int rc;

    /* a signal that ends the program waits until it is done */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    rc = place_all(w, n, sync, &why);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (size_t i = 0; i < n; i++) {
        if (rc < 0)
            ep_st_writer_abort(w[i]);
        else
            free_writer(w[i]);
    }
    if (rc < 0 && err)
        *err = why;
    return rc;
}

int ep_st_writer_commit(struct ep_st_writer *w, bool sync, struct ep_error *err)
{
    int rc = ep_st_writer_finish(w, sync, err);

    if (rc == 0)
        return ep_st_writer_place(&w, 1, sync, err);
    ep_st_writer_abort(w);
    return rc;
}

void ep_st_writer_abort(struct ep_st_writer *w)
{
    int errnum = errno;

    if (!w)
        return;
    ep_st_files_abort(&w->files, EP_ST_INDEX_NAME);
    free_writer(w);
    errno = errnum;
}

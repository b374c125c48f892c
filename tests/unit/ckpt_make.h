/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_make.h - checkpoints for tests, in a folder of their own. */
#ifndef EP_CKPT_MAKE_H
#define EP_CKPT_MAKE_H

#include "base/buf.h"
#include "base/mem.h"
#include "ckpt/st_write.h"

#include "tap.h"

#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPAN(s) ((struct ep_span){(s), sizeof(s) - 1})

/* Go to a new empty folder; it is removed by leave_folder. */
static char test_folder[64] = "/tmp/ep-ckpt.XXXXXX";

static inline void enter_folder(void)
{
    if (!mkdtemp(test_folder) || chdir(test_folder) != 0)
        abort();
}

static inline int remove_one(const char *path, const struct stat *st, int type,
                             struct FTW *f)
{
    (void)st;
    (void)type;
    (void)f;
    return remove(path);
}

/* Remove a file, or a folder and what is in it. */
static inline void remove_all(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void leave_folder(void)
{
    if (chdir("/") != 0)
        abort();
    remove_all(test_folder);
}

/* Entries of a folder; -1 if it is none. */
static inline int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = -2;

    if (!d)
        return -1;
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

static inline struct ep_buf slurp(const char *path)
{
    struct ep_buf b;
    FILE *f = fopen(path, "rb");
    int c;

    ep_buf_init(&b);
    while (f && (c = getc(f)) != EOF)
        ep_buf_addc(&b, (char)c);
    if (f)
        (void)fclose(f);
    return b;
}

static inline void put_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    ok(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Does the file have that text and nothing else? */
static inline int has_text(const char *path, const char *text)
{
    struct ep_buf b = slurp(path);
    int same = ep_span_eq((struct ep_span){b.ptr, b.len}, text);

    ep_buf_free(&b);
    return same;
}

/* Fill in count of n tensors from their shapes. */
static inline void set_counts(struct ep_tensor *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        t[i].count = 1;
        for (unsigned d = 0; d < t[i].rank; d++)
            t[i].count *= t[i].shape[d];
        t[i].bytes = t[i].count * ep_dtype_bits(t[i].dtype) / 8;
    }
}

/* Write a checkpoint: t[i].data are the bytes. Dies if that fails. */
static inline void make_ckpt(const char *path, struct ep_tensor *t, size_t n,
                             const struct ep_st_meta *meta, size_t nmeta,
                             uint64_t shard_bytes)
{
    struct ep_error err = {0};
    struct ep_st_plan plan = {.tensor = t,
                              .n = n,
                              .meta = meta,
                              .nmeta = nmeta,
                              .shard_bytes = shard_bytes};
    struct ep_st_writer *w;
    int rc = 0;

    set_counts(t, n);
    w = ep_st_writer_open(path, &plan, &err);
    for (size_t i = 0; w && i < n && rc == 0; i++)
        rc = ep_st_writer_write(w, i, 0, t[i].data, t[i].bytes, &err);
    if (w && rc == 0)
        rc = ep_st_writer_commit(w, false, &err);
    if (!w || rc != 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
}

#endif

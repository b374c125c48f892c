/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ckpt.c - see ckpt.h. A checkpoint is a list of mapped files and one sorted
 * table of their tensors; ckpt_find.c decides which files.
 */
#include "config.h"

#include "ckpt/ckpt.h"

#include "base/map.h"
#include "base/mem.h"
#include "ckpt/arena.h"
#include "ckpt/ckpt_impl.h"
#include "ckpt/ckpt_index.h"
#include "ckpt/foreign.h"
#include "ckpt/st_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    char *path;
    struct ep_map map;
    struct ep_st st;
};

struct entry {
    struct ep_tensor t;
    size_t file;
};

struct ep_ckpt {
    char *path;
    struct file *file; /* [files] */
    size_t files;
    struct ep_map index; /* closed; all-zero if there is none */
    struct entry *entry; /* [n], sorted by name, then file */
    size_t n;
    struct ep_st_meta *meta; /* [nmeta]; the bytes are the files' */
    size_t nmeta;
    uint64_t bytes;
};

/* ==== One file ==== */

static int load(struct file *f, struct ep_error *err)
{
    const char *foreign = NULL;
    int rc = ep_map_open(&f->map, f->path, err);

    if (rc < 0)
        return rc;
    if (!ep_st_plausible(f->map.data, f->map.len, f->map.len))
        foreign = ep_ckpt_foreign(f->map.data, f->map.len);
    rc = foreign
             ? ep_error_set(err, EP_EFORMAT, "%s", foreign)
             : ep_st_parse(&f->st, f->map.data, f->map.len, f->map.len, err);
    return rc < 0 ? ep_ckpt_cannot_read(err, rc, f->path) : 0;
}

/* ==== All files ==== */

static int by_name(const void *a, const void *b)
{
    const struct entry *s = a, *t = b;
    int order = ep_span_order(s->t.name, t->t.name);

    return order ? order : (s->file > t->file) - (s->file < t->file);
}

/* Fill the tables of c from its files. */
static void collect(struct ep_ckpt *c)
{
    for (size_t f = 0; f < c->files; f++) {
        c->n += c->file[f].st.n;
        c->nmeta += c->file[f].st.nmeta;
        c->bytes += c->file[f].map.len;
    }
    c->entry = ep_calloc(c->n, sizeof *c->entry);
    c->meta = ep_calloc(c->nmeta, sizeof *c->meta);
    c->n = c->nmeta = 0;
    for (size_t f = 0; f < c->files; f++) {
        const struct ep_st *st = &c->file[f].st;

        for (size_t i = 0; i < st->n; i++)
            c->entry[c->n++] = (struct entry){st->tensor[i], f};
        for (size_t i = 0; i < st->nmeta; i++)
            c->meta[c->nmeta++] = st->meta[i];
    }
    qsort(c->entry, c->n, sizeof *c->entry, by_name);
    if (c->files > 1)
        c->nmeta = ep_st_meta_unique(c->meta, c->nmeta, false);
}

/* Is each tensor in the file that the index says, and the other way round? */
static int check_places(const struct ep_ckpt *c, const struct ep_ckpt_index *ix,
                        struct ep_error *err)
{
    char name[EP_ST_SHOWN], other[60];

    for (size_t i = 0; i < c->n; i++) {
        const struct entry *e = &c->entry[i];
        const struct ep_ckpt_place *p = ep_ckpt_index_find(ix, e->t.name);

        if (p && p->file == e->file)
            continue;
        (void)ep_escape(name, sizeof name, e->t.name.ptr, e->t.name.len);
        if (p)
            (void)ep_error_set(
                err, EP_EFORMAT,
                "tensor \"%s\": the index says that it is in %s", name,
                ep_escape(other, sizeof other, ix->file[p->file].ptr,
                          ix->file[p->file].len));
        else
            (void)ep_error_set(err, EP_EFORMAT,
                               "tensor \"%s\": not in the index", name);
        return ep_ckpt_cannot_read(err, EP_EFORMAT, c->file[e->file].path);
    }
    /* each tensor is at its place, so the tables agree as far as they go */
    for (size_t i = 0; i < ix->n; i++) {
        const struct ep_ckpt_place *p = &ix->place[i];

        if (i < c->n && ep_span_order(p->name, c->entry[i].t.name) == 0)
            continue;
        (void)ep_error_set(
            err, EP_EFORMAT,
            "tensor \"%s\": the index says that it is here, and it is not",
            ep_escape(name, sizeof name, p->name.ptr, p->name.len));
        return ep_ckpt_cannot_read(err, EP_EFORMAT, c->file[p->file].path);
    }
    return 0;
}

static int load_shards(struct ep_ckpt *c, const char *index_path,
                       const struct ep_ckpt_index *ix, struct ep_error *err)
{
    c->file = ep_calloc(ix->nfiles ? ix->nfiles : 1, sizeof *c->file);
    for (size_t i = 0; i < ix->nfiles; i++) {
        struct file *f = &c->file[c->files++];
        struct stat st;
        int rc;

        f->path = ep_ckpt_beside(index_path, ix->file[i].ptr);
        if (stat(f->path, &st) != 0 && errno == ENOENT) {
            (void)ep_error_set(err, EP_EMISSING,
                               "the index names it, and it is not there");
            return ep_ckpt_cannot_read(err, EP_EMISSING, f->path);
        }
        rc = load(f, err);
        if (rc < 0)
            return rc;
    }
    collect(c);
    return check_places(c, ix, err);
}

static int open_index(struct ep_ckpt *c, const char *path, struct ep_error *err)
{
    struct ep_ckpt_index ix;
    struct ep_map map;
    int rc = ep_map_open(&map, path, err);

    if (rc < 0)
        return rc;
    rc = ep_ckpt_index_parse(&ix, map.len ? (const char *)map.data : "",
                             map.len, err);
    if (rc == 0 && ix.nfiles == 0) {
        ep_ckpt_index_free(&ix);
        rc = ep_error_set(err, EP_EFORMAT, "an index without tensors");
    }
    ep_map_close(&map);
    c->index = map;
    if (rc < 0)
        return ep_ckpt_cannot_read(err, rc, path);
    rc = load_shards(c, path, &ix, err);
    ep_ckpt_index_free(&ix);
    return rc;
}

static int open_one(struct ep_ckpt *c, const char *path, struct ep_error *err)
{
    int rc;

    c->file = ep_calloc(1, sizeof *c->file);
    c->files = 1;
    c->file[0].path = ep_strdup(path);
    rc = load(&c->file[0], err);
    if (rc == 0)
        collect(c);
    return rc;
}

struct ep_ckpt *ep_ckpt_open(const char *path, struct ep_error *err)
{
    struct ep_ckpt *c = ep_calloc(1, sizeof *c);
    bool index = false;
    char *found = NULL;
    int rc = ep_ckpt_locate(path, &found, &index, err);

    c->path = ep_strdup(path);
    if (rc == 0)
        rc = index ? open_index(c, found, err) : open_one(c, found, err);
    free(found);
    if (rc < 0) {
        ep_ckpt_close(c);
        return NULL;
    }
    return c;
}

void ep_ckpt_close(struct ep_ckpt *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->files; i++) {
        ep_st_free(&c->file[i].st);
        ep_map_close(&c->file[i].map);
        free(c->file[i].path);
    }
    free(c->file);
    free(c->entry);
    free(c->meta);
    free(c->path);
    free(c);
}

/* ==== What is in it ==== */

const char *ep_ckpt_path(const struct ep_ckpt *c)
{
    return c->path;
}

size_t ep_ckpt_count(const struct ep_ckpt *c)
{
    return c->n;
}

const struct ep_tensor *ep_ckpt_tensor(const struct ep_ckpt *c, size_t i)
{
    return &c->entry[i].t;
}

const struct ep_tensor *ep_ckpt_find(const struct ep_ckpt *c,
                                     struct ep_span name)
{
    size_t low = 0, high = c->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = ep_span_order(name, c->entry[mid].t.name);

        if (order == 0)
            return &c->entry[mid].t;
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const char *ep_ckpt_file(const struct ep_ckpt *c, size_t i)
{
    return c->file[c->entry[i].file].path;
}

const char *ep_ckpt_changed(const struct ep_ckpt *c)
{
    for (size_t i = 0; i < c->files; i++)
        if (ep_map_changed(&c->file[i].map, c->file[i].path))
            return c->file[i].path;
    return NULL;
}

bool ep_ckpt_has_file(const struct ep_ckpt *c, const char *path)
{
    for (size_t i = 0; i < c->files; i++)
        if (ep_map_is(&c->file[i].map, path))
            return true;
    return c->index.ino && ep_map_is(&c->index, path);
}

size_t ep_ckpt_files(const struct ep_ckpt *c)
{
    return c->files;
}

uint64_t ep_ckpt_bytes(const struct ep_ckpt *c)
{
    return c->bytes;
}

size_t ep_ckpt_meta_count(const struct ep_ckpt *c)
{
    return c->nmeta;
}

struct ep_st_meta ep_ckpt_meta(const struct ep_ckpt *c, size_t i)
{
    return c->meta[i];
}

struct ep_span ep_ckpt_meta_find(const struct ep_ckpt *c, const char *key)
{
    for (size_t i = 0; i < c->nmeta; i++)
        if (ep_span_eq(c->meta[i].key, key))
            return c->meta[i].value;
    return (struct ep_span){NULL, 0};
}

void ep_ckpt_will_need(const struct ep_tensor *t, uint64_t at, uint64_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), lead;
    const char *from;

    if (!t->data || at >= t->bytes)
        return;
    if (n > t->bytes - at)
        n = t->bytes - at;
    from = (const char *)t->data + at;
    lead = (uintptr_t)from % page;
    (void)madvise((void *)(from - lead), (size_t)n + lead, MADV_WILLNEED);
}

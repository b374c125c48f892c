/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - see paths.h. */
#include "config.h"

#include "base/paths.h"

#include "base/intern.h"
#include "base/mem.h"

#include <errno.h>
#include <fts.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void add(struct ep_paths *p, const char *path, bool found)
{
    p->v = ep_grow(p->v, &p->cap, p->n + 1, sizeof *p->v);
    p->v[p->n++] = (struct ep_path){ep_strdup(path), found};
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int cannot_read(const FTSENT *e, struct ep_error *err)
{
    char shown[200];

    return ep_error_sys(
        err, e->fts_errno, "cannot read %s",
        ep_escape(shown, sizeof shown, e->fts_path, strlen(e->fts_path)));
}

/* One entry of the walk. */
static int visit(FTS *walk, FTSENT *e, struct ep_paths *p, struct ep_error *err)
{
    bool hidden = e->fts_level > 0 && e->fts_name[0] == '.';

    switch (e->fts_info) {
    case FTS_D:
        if (hidden)
            (void)fts_set(walk, e, FTS_SKIP);
        return 0;
    case FTS_F:
        if (!hidden)
            add(p, e->fts_path, true);
        return 0;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return hidden ? 0 : cannot_read(e, err);
    default:
        return 0;
    }
}

/* ==== Files with several names ==== */

/* Is the file at path new? Then it is known from now on. */
static bool is_new(struct ep_intern *files, const char *path)
{
    struct stat st;
    uintmax_t id[2] = {0, 0};
    size_t before = ep_intern_count(files);

    if (stat(path, &st) != 0)
        return true; /* gone meanwhile: to be told by who opens it */
    id[0] = st.st_dev;
    id[1] = st.st_ino;
    return ep_intern_add(files, (struct ep_span){(const char *)id, sizeof id},
                         SIZE_MAX) == (long)before;
}

static bool is_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/*
 * Of the paths from from on leave one for each file: "latest" and what it
 * points to are the same records. A link gives way to what is none, whose name
 * says more.
 */
static void drop_doubles(struct ep_paths *p, size_t from)
{
    size_t n = p->n - from, kept = from;
    struct ep_intern *files = ep_intern_new();
    bool *link = ep_calloc(n, sizeof *link), *keep = ep_calloc(n, sizeof *keep);

    for (size_t i = 0; i < n; i++) {
        link[i] = is_link(p->v[from + i].path);
        keep[i] = !link[i] && is_new(files, p->v[from + i].path);
    }
    for (size_t i = 0; i < n; i++) {
        if (keep[i] || (link[i] && is_new(files, p->v[from + i].path)))
            p->v[kept++] = p->v[from + i];
        else
            free(p->v[from + i].path);
    }
    p->n = kept;
    free(link);
    free(keep);
    ep_intern_free(files);
}

static int add_folder(struct ep_paths *p, const char *path,
                      struct ep_error *err)
{
    char *copy = ep_strdup(path);
    char *roots[] = {copy, NULL};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    size_t from = p->n;
    FTSENT *e;
    int rc = 0;

    if (!walk)
        rc = ep_error_sys(err, errno, "cannot read folder");
    while (walk && rc == 0 && (e = fts_read(walk)))
        rc = visit(walk, e, p, err);
    if (walk)
        (void)fts_close(walk);
    drop_doubles(p, from);
    free(copy);
    return rc;
}

int ep_paths_add(struct ep_paths *p, const char *path, struct ep_error *err)
{
    struct stat st;

    if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return add_folder(p, path, err);
    add(p, path, false);
    return 0;
}

void ep_paths_free(struct ep_paths *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].path);
    free(p->v);
    *p = (struct ep_paths){0};
}

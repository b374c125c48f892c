/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - see paths.h. */
#include "config.h"

#include "base/paths.h"

#include "base/mem.h"

#include <errno.h>
#include <fts.h>
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

static int add_folder(struct ep_paths *p, const char *path,
                      struct ep_error *err)
{
    char *copy = ep_strdup(path);
    char *roots[] = {copy, NULL};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    FTSENT *e;
    int rc = 0;

    if (!walk)
        rc = ep_error_sys(err, errno, "cannot read folder");
    while (walk && rc == 0 && (e = fts_read(walk)))
        rc = visit(walk, e, p, err);
    if (walk)
        (void)fts_close(walk);
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

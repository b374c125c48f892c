/* SPDX-License-Identifier: Apache-2.0 */
/* tempfile.c - see tempfile.h. */
#include "config.h"

#include "base/tempfile.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 1000 }; /* names */

/* The folder that path is in; free with free(). */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return ep_strdup(".");
    return ep_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

int ep_tempfile_resolve(struct ep_tempfile *t, const char *path,
                        struct stat *st)
{
    t->path = realpath(path, NULL);
    if (t->path)
        return stat(t->path, st);
    if (!*path) {
        errno = ENOENT;
        return -1;
    }
    if (lstat(path, st) == 0) {
        errno = ELOOP;
        return -1;
    }
    st->st_mode = 0;
    t->path = ep_strdup(path);
    return 0;
}

mode_t ep_tempfile_mode(mode_t all)
{
    mode_t mask = umask(022);

    (void)umask(mask);
    return all & ~mask;
}

/*
 * A file without a name: if the program is killed, nothing is left of it. -1
 * where the system has no such thing, or no way to name it later.
 */
static int open_unnamed(const char *path)
{
    char *folder = folder_of(path);
    int fd = -1;

    if (access("/proc/self/fd", X_OK) == 0)
        fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    free(folder);
    return fd;
}

/*
 * "FOLDER/.NAMEend" for path "FOLDER/NAME"; free with free(). A name that would
 * become too long (NAME_MAX is 255) is cut.
 */
static char *hidden(const char *path, const char *end)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t lead = (size_t)(name - path), n = strlen(name), m = strlen(end);
    char *s;

    if (n > 255 - 1 - m)
        n = 255 - 1 - m;
    while (n && (name[n] & 0xc0) == 0x80) /* not inside of a character */
        n--;
    s = ep_realloc(NULL, lead + 1 + n + m + 1, 1);
    (void)snprintf(s, lead + 1 + n + m + 1, "%.*s.%.*s%s", (int)lead, path,
                   (int)n, name, end);
    return s;
}

/* The i-th name to try for one of this process. */
static char *numbered(const char *path, int i)
{
    char end[40];

    (void)snprintf(end, sizeof end, ".%ld-%d", (long)getpid(), i);
    return hidden(path, end);
}

/* For mkstemp(3) and mkdtemp(3). */
static void set_template(struct ep_tempfile *t)
{
    t->temp = hidden(t->path, ".XXXXXX");
}

static void forget_temp(struct ep_tempfile *t)
{
    free(t->temp);
    t->temp = NULL;
}

int ep_tempfile_open(struct ep_tempfile *t, mode_t mode)
{
    int fd = open_unnamed(t->path);

    if (fd < 0) {
        set_template(t);
        fd = mkostemp(t->temp, O_CLOEXEC);
        if (fd < 0)
            forget_temp(t); /* nothing was made */
    }
    if (fd >= 0 && fchmod(fd, mode) != 0) {
        int errnum = errno;

        (void)close(fd);
        errno = errnum;
        fd = -1;
    }
    return fd;
}

int ep_tempfile_open_folder(struct ep_tempfile *t, mode_t mode)
{
    set_template(t);
    if (!mkdtemp(t->temp)) {
        forget_temp(t);
        return -1;
    }
    return chmod(t->temp, mode);
}

int ep_tempfile_name(struct ep_tempfile *t, int fd)
{
    char proc[40];

    if (t->temp)
        return 0;
    (void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    for (int i = 0, errnum = EEXIST; i < TRIES && errnum == EEXIST; i++) {
        t->temp = numbered(t->path, i);
        if (linkat(AT_FDCWD, proc, AT_FDCWD, t->temp, AT_SYMLINK_FOLLOW) == 0)
            return 0;
        errnum = errno;
        forget_temp(t);
        errno = errnum;
    }
    return -1;
}

int ep_tempfile_rename(struct ep_tempfile *t)
{
    if (rename(t->temp, t->path) != 0)
        return -1;
    forget_temp(t);
    return 0;
}

/* Give what is at path the name t->old too, or, without hard links, instead. */
static int set_aside(struct ep_tempfile *t)
{
    struct stat st;
    int errnum = EEXIST;

    for (int i = 0; i < TRIES && errnum == EEXIST; i++) {
        t->old = numbered(t->path, i);
        if (link(t->path, t->old) == 0)
            return 0;
        errnum = errno;
        if (errnum != EEXIST && errnum != ENOENT) {
            errnum = EEXIST;
            if (lstat(t->old, &st) != 0) {
                if (rename(t->path, t->old) == 0)
                    return 0;
                errnum = errno;
            }
        }
        free(t->old);
        t->old = NULL;
    }
    errno = errnum;
    return errnum == ENOENT ? 0 : -1; /* nothing is there */
}

int ep_tempfile_swap(struct ep_tempfile *t)
{
    int errnum;

    if (set_aside(t) != 0)
        return -1;
    if (ep_tempfile_rename(t) == 0)
        return 0;
    errnum = errno;
    if (t->old && rename(t->old, t->path) == 0)
        ep_tempfile_keep(t); /* rename(2) leaves two names of one file */
    errno = errnum;
    return -1;
}

void ep_tempfile_keep(struct ep_tempfile *t)
{
    if (t->old)
        (void)unlink(t->old);
    free(t->old);
    t->old = NULL;
}

int ep_tempfile_restore(struct ep_tempfile *t)
{
    if (!t->old)
        return unlink(t->path);
    if (rename(t->old, t->path) != 0)
        return -1;
    free(t->old);
    t->old = NULL;
    return 0;
}

bool ep_tempfile_same_place(const char *a, const char *b)
{
    const char *p = strrchr(a, '/'), *q = strrchr(b, '/');
    char *in_a = folder_of(a), *in_b = folder_of(b);
    struct stat s, t;
    bool same = stat(in_a, &s) == 0 && stat(in_b, &t) == 0 &&
                s.st_dev == t.st_dev && s.st_ino == t.st_ino &&
                strcmp(p ? p + 1 : a, q ? q + 1 : b) == 0;

    free(in_a);
    free(in_b);
    return same;
}

void ep_tempfile_free(struct ep_tempfile *t)
{
    int errnum = errno;

    if (t->temp)
        (void)remove(t->temp);
    forget_temp(t);
    free(t->old);
    free(t->path);
    t->path = t->old = NULL;
    errno = errnum;
}

void ep_tempfile_sync_folder(const char *path)
{
    char *folder = folder_of(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    free(folder);
}

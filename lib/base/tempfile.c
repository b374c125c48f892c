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

/* t->temp = "PATH.XXXXXX", for mkstemp(3) and mkdtemp(3). */
static void set_template(struct ep_tempfile *t)
{
    size_t n = strlen(t->path);

    t->temp = ep_realloc(NULL, n + 8, 1);
    memcpy(t->temp, t->path, n);
    memcpy(t->temp + n, ".XXXXXX", 8);
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
    size_t cap = strlen(t->path) + 40;
    char proc[40];

    if (t->temp)
        return 0;
    (void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    t->temp = ep_realloc(NULL, cap, 1);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(t->temp, cap, "%s.%ld-%d", t->path, (long)getpid(), i);
        if (linkat(AT_FDCWD, proc, AT_FDCWD, t->temp, AT_SYMLINK_FOLLOW) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    forget_temp(t);
    return -1;
}

int ep_tempfile_rename(struct ep_tempfile *t)
{
    if (rename(t->temp, t->path) != 0)
        return -1;
    forget_temp(t);
    return 0;
}

void ep_tempfile_free(struct ep_tempfile *t)
{
    int errnum = errno;

    if (t->temp)
        (void)remove(t->temp);
    forget_temp(t);
    free(t->path);
    t->path = NULL;
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

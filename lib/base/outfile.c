/* SPDX-License-Identifier: Apache-2.0 */
/* outfile.c - see outfile.h. */
#include "config.h"

#include "base/outfile.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ep_outfile {
    FILE *f;
    char *path; /* NULL for standard output */
    char *temp; /* NULL when written directly, or while unnamed */
    bool unnamed;
    int errnum; /* of the first write that failed */
};

/* The folder of path, for fsync after rename; free with free(). */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return ep_strdup(".");
    return ep_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Mode of a new file, without changing the umask for good. */
static mode_t default_mode(void)
{
    mode_t mask = umask(022);

    (void)umask(mask);
    return 0666 & ~mask;
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

static int open_temp(struct ep_outfile *out, mode_t mode)
{
    size_t n = strlen(out->path);
    int fd = open_unnamed(out->path);

    out->unnamed = fd >= 0;
    if (!out->unnamed) {
        out->temp = ep_realloc(NULL, n + 8, 1);
        memcpy(out->temp, out->path, n);
        memcpy(out->temp + n, ".XXXXXX", 8);
        fd = mkostemp(out->temp, O_CLOEXEC);
    }
    if (fd >= 0 && fchmod(fd, mode) != 0) {
        int errnum = errno;

        (void)close(fd);
        if (out->temp)
            (void)unlink(out->temp);
        errno = errnum;
        fd = -1;
    }
    return fd;
}

/* Name a nameless file beside path, so that it can be renamed. 0 or -1. */
static int give_name(struct ep_outfile *out)
{
    size_t cap = strlen(out->path) + 40;
    char proc[40];

    (void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", fileno(out->f));
    out->temp = ep_realloc(NULL, cap, 1);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(out->temp, cap, "%s.%ld-%d", out->path, (long)getpid(),
                       i);
        if (linkat(AT_FDCWD, proc, AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    free(out->temp);
    out->temp = NULL;
    return -1;
}

struct ep_outfile *ep_outfile_open(const char *path, struct ep_error *err)
{
    struct ep_outfile *out = ep_calloc(1, sizeof *out);
    char shown[200];
    struct stat st;
    bool exists, dangling;
    int fd;

    if (!path || strcmp(path, "-") == 0) {
        out->f = stdout;
        return out;
    }
    /* what a link points to is replaced, not the link */
    out->path = realpath(path, NULL);
    dangling = !out->path && lstat(path, &st) == 0;
    if (!out->path && !dangling && *path)
        out->path = ep_strdup(path);
    exists = out->path && stat(path, &st) == 0;
    if (!out->path) {
        fd = -1;
        errno = dangling ? ELOOP : ENOENT;
    } else if (exists && !S_ISREG(st.st_mode))
        fd = open(path, O_WRONLY | O_CLOEXEC);
    else
        fd = open_temp(out, exists ? st.st_mode & 07777 : default_mode());
    if (fd >= 0)
        out->f = fdopen(fd, "w");
    if (!out->f) {
        (void)ep_error_sys(err, errno, "cannot create %s",
                           ep_escape(shown, sizeof shown, path, strlen(path)));
        if (fd >= 0 && out->temp)
            (void)unlink(out->temp);
        free(out->temp);
        free(out->path);
        free(out);
        return NULL;
    }
    return out;
}

FILE *ep_outfile_stream(struct ep_outfile *out)
{
    return out->f;
}

/* Make the new name durable. A file system that cannot do it is no error. */
static void sync_folder(const char *path)
{
    char *folder = folder_of(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    free(folder);
}

bool ep_outfile_ok(struct ep_outfile *out, bool flush)
{
    if (!out->errnum && ferror(out->f))
        out->errnum = errno ? errno : EIO;
    if (!out->errnum && flush && fflush(out->f) != 0)
        out->errnum = errno ? errno : EIO;
    return !out->errnum;
}

/* 0 or an errno value. */
static int finish(struct ep_outfile *out)
{
    bool bad;

    if (!ep_outfile_ok(out, true)) {
        /* it is reported here, and once: nothing is left for others */
        __fpurge(out->f);
        clearerr(out->f);
        return out->errnum;
    }
    if (!out->path)
        return 0;
    if ((out->temp || out->unnamed) && fsync(fileno(out->f)) != 0)
        return errno;
    if (out->unnamed && give_name(out) != 0)
        return errno;
    bad = fclose(out->f) != 0;
    out->f = NULL;
    if (bad)
        return errno;
    if (out->temp && rename(out->temp, out->path) != 0)
        return errno;
    return 0;
}

int ep_outfile_commit(struct ep_outfile *out, struct ep_error *err)
{
    char shown[200] = "standard output";
    int errnum = finish(out);
    int rc = 0;

    if (errnum) {
        if (out->path)
            (void)ep_escape(shown, sizeof shown, out->path, strlen(out->path));
        rc = ep_error_sys(err, errnum, "cannot write %s", shown);
        ep_outfile_abort(out);
        return rc;
    }
    if (out->temp)
        sync_folder(out->path);
    free(out->temp);
    free(out->path);
    free(out);
    return 0;
}

void ep_outfile_abort(struct ep_outfile *out)
{
    int errnum = errno;

    if (!out)
        return;
    if (out->path && out->f)
        (void)fclose(out->f);
    if (out->temp)
        (void)unlink(out->temp);
    free(out->temp);
    free(out->path);
    free(out);
    errno = errnum;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * st_files.c - see st_files.h.
 *
 * Shards are opened when they are written to, and closed when they are full or
 * when too many are open: opening one for each write would be simpler, but on
 * NFS each close waits until the data are at the server.
 */
#include "config.h"

#include "ckpt/st_files.h"

#include "base/mem.h"
#include "ckpt/st_layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_MOST = 64 };

int ep_st_files_error(const struct ep_st_files *f, const char *verb, int errnum,
                      struct ep_error *err)
{
    char shown[180];

    return ep_error_sys(
        err, errnum, "cannot %s %s", verb,
        ep_escape(shown, sizeof shown, f->path, strlen(f->path)));
}

/* The same about file i. */
static int fail(const struct ep_st_files *f, size_t i, const char *verb,
                int errnum, struct ep_error *err)
{
    char shown[140], name[EP_ST_SHARD_NAME];

    if (!f->folder)
        return ep_st_files_error(f, verb, errnum, err);
    return ep_error_sys(
        err, errnum, "cannot %s %s/%s", verb,
        ep_escape(shown, sizeof shown, f->path, strlen(f->path)),
        ep_st_layout_name(i, f->n, name));
}

/* Path of a file in the temporary folder; free with free(). */
static char *path_of(const struct ep_st_files *f, const char *name)
{
    size_t cap = strlen(f->temp.temp) + strlen(name) + 2;
    char *path = ep_realloc(NULL, cap, 1);

    (void)snprintf(path, cap, "%s/%s", f->temp.temp, name);
    return path;
}

static char *shard_path(const struct ep_st_files *f, size_t i)
{
    char name[EP_ST_SHARD_NAME];

    return path_of(f, ep_st_layout_name(i, f->n, name));
}

/* Is the folder empty? 0, or -1 with errno. */
static int check_empty(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    int rc = 0;

    if (!d)
        return -1;
    while ((e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = -1;
    (void)closedir(d);
    errno = rc ? ENOTEMPTY : 0;
    return rc;
}

/* Is another file system mounted on path? Nothing can be renamed to it then. */
static bool is_mount_point(const char *path, const struct stat *st)
{
    size_t cap = strlen(path) + 4;
    char *up = ep_realloc(NULL, cap, 1);
    struct stat above;
    bool mounted;

    (void)snprintf(up, cap, "%s/..", path);
    mounted = stat(up, &above) == 0 && above.st_dev != st->st_dev;
    free(up);
    return mounted;
}

/* The reason of errno; the caller knows what it is about. */
static int cannot_create(struct ep_error *err)
{
    if (errno == ELOOP)
        return ep_error_set(err, EP_EUSAGE, "its link leads nowhere");
    return ep_error_sys(err, errno, "cannot create it");
}

static int begin_folder(struct ep_st_files *f, struct ep_error *err)
{
    size_t n = strlen(f->path);
    char *path;
    struct stat st;
    int rc;

    while (n > 1 && f->path[n - 1] == '/')
        n--;
    path = ep_strndup(f->path, n);
    rc = ep_tempfile_resolve(&f->temp, path, &st);
    free(path);
    if (rc == 0 && st.st_mode) {
        if (S_ISDIR(st.st_mode) && is_mount_point(f->temp.path, &st))
            return ep_error_set(err, EP_EUSAGE,
                                "a file system is mounted there: name a new "
                                "folder in it");
        rc = check_empty(f->temp.path);
    }
    if (rc == 0)
        rc = ep_tempfile_open_folder(
            &f->temp, st.st_mode ? st.st_mode & 07777 : ep_tempfile_mode(0777));
    return rc == 0 ? 0 : cannot_create(err);
}

static int begin_file(struct ep_st_files *f, struct ep_error *err)
{
    struct stat st;
    int fd = -1;

    if (ep_tempfile_resolve(&f->temp, f->path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            errno = EISDIR;
        else if (st.st_mode && !S_ISREG(st.st_mode))
            return ep_error_set(err, EP_EUSAGE, "not a regular file");
        else
            fd =
                ep_tempfile_open(&f->temp, st.st_mode ? st.st_mode & 07777
                                                      : ep_tempfile_mode(0666));
    }
    if (fd < 0)
        return cannot_create(err);
    f->file[0].fd = fd;
    f->file[0].made = true;
    f->open = 1;
    return 0;
}

int ep_st_files_begin(struct ep_st_files *f, const char *path, bool folder,
                      size_t n, struct ep_error *err)
{
    char shown[180];
    int rc;

    *f =
        (struct ep_st_files){.path = ep_strdup(path), .folder = folder, .n = n};
    (void)pthread_mutex_init(&f->lock, NULL);
    f->file = ep_calloc(n, sizeof *f->file);
    for (size_t i = 0; i < n; i++)
        f->file[i].fd = -1;
    if (!*path)
        rc = ep_error_set(err, EP_EUSAGE, "the name is empty");
    else if (strcmp(path, "-") == 0)
        rc = ep_error_set(err, EP_EUSAGE, "not a regular file");
    else
        rc = folder ? begin_folder(f, err) : begin_file(f, err);
    if (rc == EP_ESYS && err)
        return ep_st_files_error(f, "create", err->sys_errno, err);
    if (rc < 0)
        (void)ep_error_prefix(
            err, "cannot create %s",
            *path ? ep_escape(shown, sizeof shown, path, strlen(path))
                  : "\"\"");
    return rc;
}

static void note_failure(struct ep_st_files *f, size_t i, int errnum)
{
    if (f->errnum)
        return;
    f->errnum = errnum;
    f->failed = i;
}

/* Close a shard; some file systems report only now that a write failed. */
static void close_file(struct ep_st_files *f, size_t i)
{
    if (close(f->file[i].fd) != 0 && errno != EINTR)
        note_failure(f, i, errno);
    f->file[i].fd = -1;
    f->open--;
}

/* Close the shard not in use that was used longest ago; false: there is none */
static bool close_idle(struct ep_st_files *f)
{
    size_t oldest = f->n;

    for (size_t i = 0; i < f->n; i++) {
        const struct ep_st_file *s = &f->file[i];

        if (s->fd >= 0 && !s->users &&
            (oldest == f->n || s->used < f->file[oldest].used))
            oldest = i;
    }
    if (oldest < f->n)
        close_file(f, oldest);
    return oldest < f->n;
}

/* Open a shard, for the first time or again. 0 or an errno value. */
static int open_shard(struct ep_st_files *f, size_t i)
{
    struct ep_st_file *s = &f->file[i];
    char *path = shard_path(f, i);
    int flags = O_WRONLY | O_CLOEXEC | (s->made ? 0 : O_CREAT | O_EXCL);
    int errnum;

    if (f->open >= OPEN_MOST)
        (void)close_idle(f);
    do {
        s->fd = open(path, flags, 0666);
        errnum = s->fd < 0 ? errno : 0;
    } while (errnum == EINTR || (errnum == EMFILE && close_idle(f)));
    free(path);
    if (errnum)
        return errnum;
    s->made = true;
    f->open++;
    return 0;
}

/* *fd: the descriptor of file i, open until released. 0 or an errno value. */
static int acquire(struct ep_st_files *f, size_t i, int *fd)
{
    struct ep_st_file *s = &f->file[i];
    int errnum = 0;

    (void)pthread_mutex_lock(&f->lock);
    if (s->fd < 0)
        errnum = open_shard(f, i);
    if (errnum) {
        note_failure(f, i, errnum);
    } else {
        s->users++;
        s->used = ++f->clock;
        *fd = s->fd;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return errnum;
}

/* n more bytes of data are written (counted in *written, may be NULL). */
static void release(struct ep_st_files *f, size_t i, size_t n,
                    uint64_t *written, int errnum)
{
    struct ep_st_file *s = &f->file[i];

    (void)pthread_mutex_lock(&f->lock);
    s->users--;
    if (errnum) {
        note_failure(f, i, errnum);
    } else if (written) {
        *written += n;
        s->left -= n < s->left ? n : s->left;
    }
    if (f->folder && !s->users && !s->left)
        close_file(f, i);
    (void)pthread_mutex_unlock(&f->lock);
}

/* All n bytes, however many calls that takes. 0 or an errno value. */
static int write_all(int fd, uint64_t at, const void *p, size_t n)
{
    const char *src = p;

    while (n) {
        ssize_t got = pwrite(fd, src, n, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        src += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

/* Set the size of a new file, and claim the room. 0 or an errno value. */
static int claim(int fd, uint64_t bytes)
{
    int rc;

    do
        rc = fallocate(fd, 0, 0, (off_t)bytes);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return errno;
    return ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
}

int ep_st_files_start(struct ep_st_files *f, size_t i, struct ep_span header,
                      uint64_t data_bytes, struct ep_error *err)
{
    int fd = -1, errnum;

    f->file[i].left = data_bytes;
    errnum = acquire(f, i, &fd);
    if (!errnum) {
        errnum = claim(fd, 8 + header.len + data_bytes);
        if (!errnum)
            errnum = write_all(fd, 8, header.ptr, header.len);
        release(f, i, 0, NULL, errnum);
    }
    return errnum ? fail(f, i, "create", errnum, err) : 0;
}

int ep_st_files_write(struct ep_st_files *f, size_t i, uint64_t at,
                      const void *p, size_t n, uint64_t *written,
                      struct ep_error *err)
{
    int fd = -1, errnum = acquire(f, i, &fd);

    if (!errnum) {
        errnum = write_all(fd, at, p, n);
        release(f, i, n, written, errnum);
    }
    return errnum ? fail(f, i, "write", errnum, err) : 0;
}

int ep_st_files_finish(struct ep_st_files *f, size_t i, uint64_t header_bytes,
                       bool sync, struct ep_error *err)
{
    unsigned char le[8];
    int fd = -1, errnum;

    for (int k = 0; k < 8; k++)
        le[k] = (unsigned char)(header_bytes >> 8 * k);
    errnum = f->errnum ? 0 : acquire(f, i, &fd);
    if (!errnum && !f->errnum) {
        errnum = write_all(fd, 0, le, sizeof le);
        if (!errnum && sync && fsync(fd) != 0)
            errnum = errno;
        release(f, i, 0, NULL, errnum);
    }
    return f->errnum ? fail(f, f->failed, "write", f->errnum, err) : 0;
}

int ep_st_files_add(struct ep_st_files *f, const char *name,
                    struct ep_span text, bool sync, struct ep_error *err)
{
    char *path = path_of(f, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int errnum = fd < 0 ? errno : 0;
    char shown[140];

    free(path);
    if (fd >= 0) {
        errnum = write_all(fd, 0, text.ptr, text.len);
        if (!errnum && sync && fsync(fd) != 0)
            errnum = errno;
        if (close(fd) != 0 && !errnum && errno != EINTR)
            errnum = errno;
    }
    if (!errnum)
        return 0;
    return ep_error_sys(
        err, errnum, "cannot write %s/%s",
        ep_escape(shown, sizeof shown, f->path, strlen(f->path)), name);
}

/* Can what is at the place be replaced? 0 or an errno value. */
static int check_place(const struct ep_st_files *f)
{
    struct stat st;

    if (lstat(f->temp.path, &st) != 0)
        return errno == ENOENT ? 0 : errno;
    if (f->folder && S_ISDIR(st.st_mode))
        return check_empty(f->temp.path) == 0 ? 0 : errno;
    if (f->folder)
        return ENOTDIR;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return S_ISREG(st.st_mode) ? 0 : EEXIST;
}

int ep_st_files_ready(struct ep_st_files *f, bool sync, struct ep_error *err)
{
    int errnum = check_place(f);

    if (!errnum && f->folder && sync) { /* the names in it */
        char *inside = path_of(f, "x");

        ep_tempfile_sync_folder(inside);
        free(inside);
    }
    if (!errnum && !f->folder) {
        if (ep_tempfile_name(&f->temp, f->file[0].fd) != 0)
            errnum = errno;
        else
            close_file(f, 0);
        if (f->errnum)
            errnum = f->errnum;
    }
    return errnum ? ep_st_files_error(f, "write", errnum, err) : 0;
}

int ep_st_files_place(struct ep_st_files *f, bool way_back, bool sync,
                      struct ep_error *err)
{
    int rc = way_back && !f->folder ? ep_tempfile_swap(&f->temp)
                                    : ep_tempfile_rename(&f->temp);

    if (rc != 0)
        return ep_st_files_error(f, "write", errno, err);
    if (sync)
        ep_tempfile_sync_folder(f->temp.path);
    return 0;
}

void ep_st_files_keep(struct ep_st_files *f)
{
    ep_tempfile_keep(&f->temp);
}

void ep_st_files_restore(struct ep_st_files *f, bool sync, struct ep_error *err)
{
    char shown[60];

    if (ep_tempfile_restore(&f->temp) == 0) {
        if (sync)
            ep_tempfile_sync_folder(f->temp.path);
    } else if (err && f->temp.old) {
        char *why = ep_strdup(err->msg);

        (void)ep_error_set(
            err, err->code, "what was at %s is now %s: %s",
            ep_escape(shown, sizeof shown, f->path, strlen(f->path)),
            f->temp.old, why);
        free(why);
    }
}

void ep_st_files_abort(struct ep_st_files *f, const char *extra)
{
    int errnum = errno;

    for (size_t i = 0; i < f->n; i++) {
        if (f->file[i].fd >= 0)
            close_file(f, i);
        if (f->folder && f->file[i].made) {
            char *path = shard_path(f, i);

            (void)unlink(path);
            free(path);
        }
    }
    if (f->folder && f->temp.temp && extra) {
        char *path = path_of(f, extra);

        (void)unlink(path);
        free(path);
    }
    ep_tempfile_free(&f->temp);
    errno = errnum;
}

void ep_st_files_free(struct ep_st_files *f)
{
    ep_tempfile_free(&f->temp);
    (void)pthread_mutex_destroy(&f->lock);
    free(f->file);
    free(f->path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fdpool.c - see fdpool.h. */
#include "config.h"

#include "base/fdpool.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    /* under the lock: those that may be parked, and how many are open */
    struct ep_fdpool_file *newest, *oldest;
    unsigned open;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock(void)
{
    (void)pthread_mutex_lock(&pool.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&pool.lock);
}

/* ==== The list, under the lock ==== */

static void enlist(struct ep_fdpool_file *f)
{
    f->newer = NULL;
    f->older = pool.newest;
    if (pool.newest)
        pool.newest->newer = f;
    else
        pool.oldest = f;
    pool.newest = f;
}

static bool is_listed(const struct ep_fdpool_file *f)
{
    return f->newer || f->older || pool.newest == f;
}

static void delist(struct ep_fdpool_file *f)
{
    if (!is_listed(f))
        return;
    if (f->newer)
        f->newer->older = f->older;
    else
        pool.newest = f->older;
    if (f->older)
        f->older->newer = f->newer;
    else
        pool.oldest = f->newer;
    f->newer = f->older = NULL;
}

/* Park the one that was used least recently: was there one? */
static bool park_one(void)
{
    struct ep_fdpool_file *f = pool.oldest;

    if (!f)
        return false;
    delist(f);
    (void)close(f->fd);
    f->fd = -1;
    pool.open--;
    return true;
}

/* Descriptors that files may have together. */
static unsigned allowed(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 1 << 30)
        return 1 << 29;
    return (unsigned)limit.rlim_cur / 2;
}

static bool make_room(void)
{
    bool parked;

    lock();
    parked = park_one();
    unlock();
    return parked;
}

/* open(2) with room made for it. Not under the lock: a FIFO may wait long. */
static int open_file(const char *path)
{
    int fd;

    lock();
    while (pool.open >= allowed() && park_one())
        continue;
    unlock();
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (fd < 0 && (errno == EINTR ||
                        ((errno == EMFILE || errno == ENFILE) && make_room())));
    return fd;
}

/* ==== Files ==== */

int ep_fdpool_open(struct ep_fdpool_file *f, const char *path,
                   struct ep_error *err)
{
    struct stat st;
    int fd = open_file(path), errnum = errno;

    *f = (struct ep_fdpool_file){.fd = -1};
    if (fd >= 0 && (fstat(fd, &st) != 0 || S_ISDIR(st.st_mode))) {
        errnum = EISDIR;
        (void)close(fd);
        fd = -1;
    }
    if (fd < 0) {
        (void)ep_error_set(err, EP_ESYS, "%s", strerror(errnum));
        if (err)
            err->sys_errno = errnum;
        return EP_ESYS;
    }
    *f = (struct ep_fdpool_file){.fd = fd,
                                 .regular = S_ISREG(st.st_mode),
                                 .held = !S_ISREG(st.st_mode),
                                 .path = ep_strdup(path),
                                 .size = (uint64_t)st.st_size,
                                 .dev = st.st_dev,
                                 .ino = st.st_ino};
    if (f->regular) {
        lock();
        pool.open++;
        enlist(f);
        unlock();
    }
    return 0;
}

void ep_fdpool_borrow(struct ep_fdpool_file *f, int fd)
{
    *f = (struct ep_fdpool_file){.fd = fd, .held = true};
}

/* Open a parked file again. */
static int unpark(struct ep_fdpool_file *f, uint64_t offset,
                  struct ep_error *err)
{
    struct stat st;
    int fd = open_file(f->path);

    if (fd < 0)
        return ep_error_sys(err, errno, "cannot open it again");
    if (fstat(fd, &st) != 0 || st.st_dev != f->dev || st.st_ino != f->ino) {
        (void)close(fd);
        return ep_error_set(err, EP_ESYS,
                            "it was replaced while it was being read");
    }
    if (f->size && (uint64_t)st.st_size < offset) {
        (void)close(fd);
        return ep_error_set(err, EP_ESYS,
                            "it got shorter while it was being read");
    }
    f->fd = fd;
    f->size = (uint64_t)st.st_size;
    lock();
    pool.open++;
    unlock();
    return 0;
}

int ep_fdpool_take(struct ep_fdpool_file *f, uint64_t offset,
                   struct ep_error *err)
{
    int rc = 0;

    if (f->held)
        return f->fd;
    lock();
    delist(f);
    unlock();
    if (f->fd < 0)
        rc = unpark(f, offset, err);
    return rc < 0 ? rc : f->fd;
}

void ep_fdpool_give(struct ep_fdpool_file *f)
{
    if (f->held)
        return;
    lock();
    enlist(f);
    unlock();
}

int ep_fdpool_hold(struct ep_fdpool_file *f, uint64_t offset,
                   struct ep_error *err)
{
    int rc = ep_fdpool_take(f, offset, err);

    f->held = f->held || rc >= 0;
    return rc < 0 ? rc : 0;
}

void ep_fdpool_replace(struct ep_fdpool_file *f, int fd)
{
    (void)close(f->fd);
    f->fd = fd;
}

void ep_fdpool_close(struct ep_fdpool_file *f)
{
    if (!f->path)
        return;
    lock();
    delist(f);
    if (f->fd >= 0) {
        (void)close(f->fd);
        pool.open -= f->regular;
    }
    unlock();
    free(f->path);
    *f = (struct ep_fdpool_file){.fd = -1};
}

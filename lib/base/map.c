/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - see map.h.
 *
 * The guard must find the name of the file that an address belongs to, in a
 * signal handler, while other threads open and close maps. So there is a list
 * of what is mapped: entries are put at its head, never taken out and never
 * freed, but used again. A reader needs no lock and meets no freed memory; what
 * it prints was made printable when the file was opened. The list is as long
 * as the most files that were open at once.
 */
#include "config.h"

#include "base/map.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
    struct entry *next; /* never changes once the entry is in the list */
    atomic_uintptr_t begin;
    atomic_size_t len; /* 0: free */
    char shown[200];   /* the path, escaped */
};

static _Atomic(struct entry *) entries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of writers */

static void remember(const struct ep_map *m, const char *path)
{
    struct entry *e;

    (void)pthread_mutex_lock(&lock);
    for (e = atomic_load(&entries); e && atomic_load(&e->len); e = e->next)
        ;
    if (!e) {
        e = ep_calloc(1, sizeof *e);
        e->next = atomic_load(&entries);
        atomic_store(&entries, e);
    }
    (void)ep_escape(e->shown, sizeof e->shown, path, strlen(path));
    atomic_store(&e->begin, (uintptr_t)m->data);
    atomic_store(&e->len, m->len);
    (void)pthread_mutex_unlock(&lock);
}

static void forget(const struct ep_map *m)
{
    (void)pthread_mutex_lock(&lock);
    for (struct entry *e = atomic_load(&entries); e; e = e->next)
        if (atomic_load(&e->len) &&
            atomic_load(&e->begin) == (uintptr_t)m->data)
            atomic_store(&e->len, 0);
    (void)pthread_mutex_unlock(&lock);
}

static int map_fd(struct ep_map *m, int fd, const char *path, const char *shown,
                  struct ep_error *err)
{
    struct stat st;
    void *p;

    if (fstat(fd, &st) != 0)
        return ep_error_sys(err, errno, "cannot open %s", shown);
    if (!S_ISREG(st.st_mode))
        return ep_error_set(err, EP_EFORMAT,
                            "cannot open %s: not a regular file", shown);
    m->dev = st.st_dev;
    m->ino = st.st_ino;
    m->mtime = st.st_mtim;
    if (st.st_size == 0)
        return 0;
    if ((uintmax_t)st.st_size > SIZE_MAX)
        return ep_error_sys(err, EFBIG, "cannot open %s", shown);
    p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return ep_error_sys(err, errno, "cannot open %s", shown);
    m->data = p;
    m->len = (size_t)st.st_size;
    remember(m, path);
    return 0;
}

int ep_map_open(struct ep_map *m, const char *path, struct ep_error *err)
{
    char shown[200];
    int fd, rc;

    m->data = NULL;
    m->len = 0;
    (void)ep_escape(shown, sizeof shown, path, strlen(path));
    /* O_NONBLOCK: a pipe is refused, not waited for */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return ep_error_sys(err, errno, "cannot open %s", shown);
    rc = map_fd(m, fd, path, shown, err);
    (void)close(fd);
    return rc;
}

void ep_map_close(struct ep_map *m)
{
    if (m->data) {
        forget(m);
        (void)munmap((void *)m->data, m->len);
    }
    m->data = NULL;
    m->len = 0;
}

static bool is_file(const struct ep_map *m, const char *path, struct stat *st)
{
    return stat(path, st) == 0 && st->st_dev == m->dev && st->st_ino == m->ino;
}

bool ep_map_is(const struct ep_map *m, const char *path)
{
    struct stat st;

    return is_file(m, path, &st);
}

bool ep_map_changed(const struct ep_map *m, const char *path)
{
    struct stat st;

    return is_file(m, path, &st) && ((uintmax_t)st.st_size != m->len ||
                                     st.st_mtim.tv_sec != m->mtime.tv_sec ||
                                     st.st_mtim.tv_nsec != m->mtime.tv_nsec);
}

/* ==== The guard ==== */

static const char *_Atomic guarded_program;

/* Append as much of s as there is room for. */
static size_t append(char *msg, size_t cap, size_t at, const char *s)
{
    while (*s && at < cap)
        msg[at++] = *s++;
    return at;
}

/* Calls nothing but what a handler may call (signal-safety(7)). */
static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    uintptr_t at = (uintptr_t)info->si_addr;
    struct entry *e = atomic_load(&entries);
    char msg[400];
    size_t n = 0;

    (void)context;
    while (e && at - atomic_load(&e->begin) >= atomic_load(&e->len))
        e = e->next;
    if (info->si_code <= 0 || !e) { /* sent by somebody, or not in a map */
        (void)signal(sig, SIG_DFL);
        (void)raise(sig);
        return;
    }
    while (atomic_flag_test_and_set(&told)) /* another thread ends us */
        (void)pause();
    n = append(msg, 100, n, atomic_load(&guarded_program));
    n = append(msg, sizeof msg, n, ": cannot read ");
    n = append(msg, sizeof msg, n, e->shown);
    n = append(msg, sizeof msg, n,
               ": it became shorter while it was read, or its disk failed\n");
    (void)!write(STDERR_FILENO, msg, n);
    _exit(2);
}

void ep_map_guard(const char *program)
{
    struct sigaction act;

    memset(&act, 0, sizeof act);
    act.sa_sigaction = on_sigbus;
    act.sa_flags = SA_SIGINFO;
    (void)sigemptyset(&act.sa_mask);
    atomic_store(&guarded_program, program);
    (void)sigaction(SIGBUS, &act, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* url.c - see url.h: the reader's side of URLs, and the thread's life. */
#include "config.h"

#include "base/url.h"

#include "base/mem.h"
#include "base/url_impl.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define RETRIES_MAX 30
#define SECONDS_MAX 1e7

#define OTHER_FILES 64 /* descriptors for neither files nor URLs */
#define OPEN_LEAST 16.0
#define OPEN_MOST 1e5

struct ep_url_fetcher ep_url_fetcher = {.life = PTHREAD_MUTEX_INITIALIZER,
                                        .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- starting and stopping ------------------------------------------------ */

/* Stop it and wait until it has; life is held. */
static void stop_thread(void)
{
    (void)pthread_mutex_lock(&ep_url_fetcher.lock);
    ep_url_fetcher.stop = true;
    (void)pthread_mutex_unlock(&ep_url_fetcher.lock);
    ep_http_wake(ep_url_fetcher.pool);
    (void)pthread_join(ep_url_fetcher.thread, NULL);
}

static void before_fork(void)
{
    (void)pthread_mutex_lock(&ep_url_fetcher.life);
    (void)pthread_mutex_lock(&ep_url_fetcher.lock);
}

static void after_fork(void)
{
    (void)pthread_mutex_unlock(&ep_url_fetcher.lock);
    (void)pthread_mutex_unlock(&ep_url_fetcher.life);
}

/* No thread here, and its connections are the parent's: forget them. */
static void in_child(void)
{
    ep_url_fetcher.pool = NULL;
    ep_url_fetcher.users = 0;
    ep_url_fetcher.generation++;
    ep_url_fetcher.stop = false;
    ep_url_fetcher.first_wish = ep_url_fetcher.last_wish = NULL;
    atomic_store(&ep_url_fetcher.unread, 0);
    after_fork();
}

/*
 * A program that leaves by exit() closes nothing, and the TLS library's own
 * handler then frees what the thread is using. Ours was registered later, so
 * that it is called before that one.
 */
static void at_exit(void)
{
    /* not taken: somebody is just starting or stopping the thread */
    if (pthread_mutex_trylock(&ep_url_fetcher.life) != 0)
        return;
    if (ep_url_fetcher.pool &&
        !pthread_equal(pthread_self(), ep_url_fetcher.thread))
        stop_thread();
    (void)pthread_mutex_unlock(&ep_url_fetcher.life);
}

static void watch_process(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child);
    (void)atexit(at_exit);
}

/* Half of the descriptors are for files (fdpool.h); some have other uses. */
static unsigned most_open(void)
{
    struct rlimit limit;
    double most = EP_URL_AT_ONCE;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        most = (double)limit.rlim_cur / 2 - OTHER_FILES;
    return (unsigned)fmin(fmax(most, OPEN_LEAST), OPEN_MOST);
}

/* Make sure that the thread runs; ep_url_fetcher.life is held. */
static int start_thread(struct ep_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    sigset_t all, old;
    int rc;

    if (ep_url_fetcher.pool)
        return 0;
    ep_url_fetcher.most = most_open();
    ep_url_fetcher.pool = ep_http_pool_new(ep_url_fetcher.most, err);
    if (!ep_url_fetcher.pool)
        return err->code;
    (void)pthread_once(&once, watch_process);
    ep_url_fetcher.stop = false;
    (void)sigfillset(&all); /* signals are for the program's own threads */
    (void)pthread_sigmask(SIG_BLOCK, &all, &old);
    rc = pthread_create(&ep_url_fetcher.thread, NULL, ep_url_fetch,
                        ep_url_fetcher.pool);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc == 0)
        return 0;
    ep_http_pool_free(ep_url_fetcher.pool);
    ep_url_fetcher.pool = NULL;
    return ep_error_sys(err, rc, "cannot start a thread");
}

/* Wish something of the thread, which runs as long as u is open. */
static void tell(struct ep_url *u, struct ep_url_wish wish)
{
    bool was_empty;

    (void)pthread_mutex_lock(&ep_url_fetcher.lock);
    was_empty = !ep_url_fetcher.first_wish;
    u->wish.close = u->wish.close || wish.close;
    u->wish.hurry = u->wish.hurry || wish.hurry;
    u->wish.resume = u->wish.resume || wish.resume;
    if (!u->wishes) {
        u->wishes = true;
        u->next_wish = NULL;
        *(was_empty ? &ep_url_fetcher.first_wish
                    : &ep_url_fetcher.last_wish->next_wish) = u;
        ep_url_fetcher.last_wish = u;
    }
    (void)pthread_mutex_unlock(&ep_url_fetcher.lock);
    if (was_empty)
        ep_http_wake(ep_url_fetcher.pool);
}

static bool is_sane(const struct ep_url_limits *l)
{
    return l->connect_s > 0 && l->connect_s <= SECONDS_MAX && l->total_s >= 0 &&
           l->total_s <= SECONDS_MAX && l->stall_s >= 0 &&
           l->stall_s <= SECONDS_MAX && l->retries >= 0 &&
           l->retries <= RETRIES_MAX;
}

struct ep_url *ep_url_start(const char *url, const struct ep_url_limits *limits,
                            struct ep_error *err)
{
    struct ep_url_limits lim = limits ? *limits : EP_URL_LIMITS_READ;
    struct ep_error why;
    char shown[sizeof((struct ep_url *)0)->shown];
    struct ep_url *u;
    int rc = 0;

    (void)ep_url_shown(shown, sizeof shown, url);
    if (!ep_url_is(url))
        rc = ep_error_set(&why, EP_EUSAGE, "neither http:// nor https://");
    else if (!is_sane(&lim))
        rc = ep_error_set(&why, EP_EUSAGE, "limits that make no sense");
    (void)pthread_mutex_lock(&ep_url_fetcher.life);
    if (rc == 0)
        rc = start_thread(&why);
    if (rc != 0) {
        (void)pthread_mutex_unlock(&ep_url_fetcher.life);
        (void)ep_error_prefix(&why, "cannot read %s", shown);
        if (err)
            *err = why;
        return NULL;
    }
    u = ep_calloc(1, sizeof *u);
    u->url = ep_strdup(url);
    memcpy(u->shown, shown, sizeof shown);
    u->lim = lim;
    u->generation = ep_url_fetcher.generation;
    ep_url_pipe_init(&u->pipe, EP_URL_BUFFER_BYTES);
    ep_url_fetcher.users++;
    tell(u, (struct ep_url_wish){0});
    (void)pthread_mutex_unlock(&ep_url_fetcher.life);
    return u;
}

void ep_url_close(struct ep_url *u)
{
    if (!u || u->generation != ep_url_fetcher.generation)
        return; /* the parent's */
    (void)pthread_mutex_lock(&ep_url_fetcher.life);
    tell(u, (struct ep_url_wish){.close = true});
    if (--ep_url_fetcher.users == 0) {
        stop_thread();
        ep_http_pool_free(ep_url_fetcher.pool);
        ep_url_fetcher.pool = NULL;
    }
    (void)pthread_mutex_unlock(&ep_url_fetcher.life);
}

/* ---- reading -------------------------------------------------------------- */

static ssize_t read_some(struct ep_url *u, void *dst, size_t cap, bool wait,
                         struct ep_error *err)
{
    size_t before;
    ssize_t got;
    bool room;

    if (u->generation != ep_url_fetcher.generation)
        return ep_error_set(err, EP_ESYS,
                            "cannot read %s: it was opened before a fork",
                            u->shown);
    while ((got = ep_url_pipe_get(&u->pipe, dst, cap, &room)) < 0) {
        if (!u->hurried && wait)
            tell(u, (struct ep_url_wish){.hurry = true});
        if (!wait)
            return EP_EAGAIN;
        u->hurried = true;
        ep_url_pipe_wait(&u->pipe);
    }
    if (room)
        tell(u, (struct ep_url_wish){.resume = true});
    before = atomic_fetch_sub(&ep_url_fetcher.unread, (size_t)got);
    if (before >= EP_URL_UNREAD_BYTES &&
        before - (size_t)got < EP_URL_UNREAD_BYTES)
        ep_http_wake(ep_url_fetcher.pool);
    if (got > 0 || u->err.code == 0)
        return got;
    if (err)
        *err = u->err;
    return u->err.code;
}

ssize_t ep_url_read(struct ep_url *u, void *dst, size_t cap,
                    struct ep_error *err)
{
    return read_some(u, dst, cap, true, err);
}

ssize_t ep_url_read_now(struct ep_url *u, void *dst, size_t cap,
                        struct ep_error *err)
{
    return read_some(u, dst, cap, false, err);
}

bool ep_url_would_wait(struct ep_url *u)
{
    return u->generation == ep_url_fetcher.generation &&
           ep_url_pipe_dry(&u->pipe);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url_impl.h - what the two sides of a URL share: the reader's (url.c) and
 * the thread's (url_fetch.c).
 *
 * A URL belongs to the thread from ep_url_start until ep_url_close, which
 * hands it over to be freed. What the two sides share is the pipe (with its
 * own lock), the error (written before the pipe ends, read after), and, under
 * the lock of ep_url_fetcher, the wishes of the reader: they are put into one
 * list, so that nobody looks through all URLs for the one that wants
 * something.
 */
#ifndef EP_BASE_URL_IMPL_H
#define EP_BASE_URL_IMPL_H

#include "base/url.h"
#include "base/url_http.h"
#include "base/url_pipe.h"

#include <pthread.h>
#include <stdatomic.h>

/* New transfers wait while more is unread than this: URLs that are opened by
 * the thousand and read one after the other do not fill the memory. */
#define EP_URL_UNREAD_BYTES ((size_t)8 << 20)

enum ep_url_place {
    EP_URL_NEW,     /* in no list */
    EP_URL_QUEUED,  /* waits for its turn */
    EP_URL_RUNNING, /* has a request, which may be paused */
    EP_URL_LATER,   /* waits for the time of its next try */
    EP_URL_DONE,    /* in no list */
};

/* What a reader wishes of the thread. */
struct ep_url_wish {
    bool close, hurry, resume;
};

struct ep_url_fetch;

struct ep_url {
    char *url;
    char shown[120];
    struct ep_url_limits lim;
    unsigned generation; /* of ep_url_fetcher */
    struct ep_url_pipe pipe;
    struct ep_error err; /* code 0: the end is a good one */
    bool hurried;        /* the reader's own: it has wished for hurry */

    /* under ep_url_fetcher.lock */
    struct ep_url *next_wish;
    bool wishes; /* is in the list of wishes */
    struct ep_url_wish wish;

    /* the thread's own */
    struct ep_url_fetch *f;
    struct ep_url *prev, *next; /* in the queue or among those that live */
    enum ep_url_place place;
    bool first;  /* a reader waits: no limits */
    bool paused; /* the pipe was full */
    bool idle;   /* nothing came for EP_URL_QUIET_S; not if paused */
    long host;
    struct ep_http *http;
    int tries;
    uint64_t got;    /* bytes of the body that are in the pipe or were */
    bool too_long;   /* there were more than max_bytes */
    char *validator; /* or NULL */
    double quiet;    /* since when nothing came */
    double deadline; /* INFINITY if there is none */
    double again;    /* when LATER ends */
};

struct ep_url_fetcher {
    pthread_mutex_t life; /* starting and stopping; taken before lock */
    pthread_mutex_t lock;
    pthread_t thread;
    struct ep_http_pool *pool; /* NULL: there is no thread */
    unsigned most;             /* requests, unless their readers wait */
    size_t users;
    unsigned generation; /* of processes */
    bool stop;
    struct ep_url *first_wish, *last_wish;
    atomic_size_t unread; /* bytes in all pipes */
};
extern struct ep_url_fetcher ep_url_fetcher;

/* The thread; arg is ep_url_fetcher.pool. Ends when stop is set and no wish
 * is left: then every URL has been closed, and freed, or the process ends. */
void *ep_url_fetch(void *arg);

#endif

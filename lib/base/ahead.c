/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.c - see ahead.h: a ring of blocks between two threads. */
#include "config.h"

#include "base/ahead.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4, BLOCK_BYTES = 128 << 10 };

struct block {
    ssize_t len; /* 0 or an error: the last one */
    unsigned char data[BLOCK_BYTES];
};

struct ep_ahead {
    ssize_t (*read)(void *ctx, void *dst, size_t cap, struct ep_error *err);
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock: blocks that were filled and emptied, ever */
    unsigned filled, emptied;
    bool stop;
    /* the user's alone */
    size_t at;            /* bytes used of the block that is being emptied */
    struct ep_error late; /* written by the thread before its last block */
    struct block block[BLOCKS];
};

static void signal_change(struct ep_ahead *a, unsigned *count)
{
    (void)pthread_mutex_lock(&a->lock);
    ++*count;
    (void)pthread_cond_signal(&a->changed);
    (void)pthread_mutex_unlock(&a->lock);
}

static void *run(void *arg)
{
    struct ep_ahead *a = arg;

    for (unsigned n = 0;; n++) {
        struct block *b = &a->block[n % BLOCKS];
        bool stop;

        (void)pthread_mutex_lock(&a->lock);
        while (a->filled - a->emptied == BLOCKS && !a->stop)
            (void)pthread_cond_wait(&a->changed, &a->lock);
        stop = a->stop;
        (void)pthread_mutex_unlock(&a->lock);
        if (stop)
            return NULL;
        b->len = a->read(a->ctx, b->data, BLOCK_BYTES, &a->late);
        signal_change(a, &a->filled);
        if (b->len <= 0)
            return NULL;
    }
}

struct ep_ahead *ep_ahead_start(ssize_t (*read)(void *ctx, void *dst,
                                                size_t cap,
                                                struct ep_error *err),
                                void *ctx)
{
    struct ep_ahead *a = ep_calloc(1, sizeof *a);

    a->read = read;
    a->ctx = ctx;
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->changed, NULL);
    if (pthread_create(&a->thread, NULL, run, a) != 0) {
        free(a);
        return NULL;
    }
    return a;
}

ssize_t ep_ahead_read(struct ep_ahead *a, void *dst, size_t cap,
                      struct ep_error *err)
{
    struct block *b = &a->block[a->emptied % BLOCKS];
    size_t n;

    (void)pthread_mutex_lock(&a->lock);
    while (a->filled == a->emptied)
        (void)pthread_cond_wait(&a->changed, &a->lock);
    (void)pthread_mutex_unlock(&a->lock);
    if (b->len <= 0) {
        if (err && b->len < 0)
            *err = a->late;
        return b->len;
    }
    n = (size_t)b->len - a->at;
    if (n > cap)
        n = cap;
    memcpy(dst, b->data + a->at, n);
    a->at += n;
    if (a->at == (size_t)b->len) {
        a->at = 0;
        signal_change(a, &a->emptied);
    }
    return (ssize_t)n;
}

void ep_ahead_stop(struct ep_ahead *a)
{
    if (!a)
        return;
    (void)pthread_mutex_lock(&a->lock);
    a->stop = true;
    (void)pthread_cond_signal(&a->changed);
    (void)pthread_mutex_unlock(&a->lock);
    (void)pthread_join(a->thread, NULL);
    (void)pthread_mutex_destroy(&a->lock);
    (void)pthread_cond_destroy(&a->changed);
    free(a);
}

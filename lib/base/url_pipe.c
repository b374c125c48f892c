/* SPDX-License-Identifier: Apache-2.0 */
/* url_pipe.c - see url_pipe.h. */
#include "config.h"

#include "base/url_pipe.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)32 << 10)

void ep_url_pipe_init(struct ep_url_pipe *p, size_t max)
{
    *p = (struct ep_url_pipe){.max = max};
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->filled, NULL);
}

void ep_url_pipe_free(struct ep_url_pipe *p)
{
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->filled);
    free(p->v);
}

/* Copy out the first n bytes, n <= len. */
static void copy_out(const struct ep_url_pipe *p, char *dst, size_t n)
{
    size_t first = n < p->cap - p->from ? n : p->cap - p->from;

    if (n == 0)
        return;
    memcpy(dst, p->v + p->from, first);
    memcpy(dst + first, p->v, n - first);
}

static void grow(struct ep_url_pipe *p, size_t want)
{
    size_t cap = p->cap ? p->cap : FIRST_BYTES;
    char *v;

    while (cap < want)
        cap *= 2;
    cap = cap < p->max ? cap : p->max;
    v = ep_realloc(NULL, cap, 1);
    copy_out(p, v, p->len);
    free(p->v);
    p->v = v;
    p->cap = cap;
    p->from = 0;
}

bool ep_url_pipe_put(struct ep_url_pipe *p, const void *src, size_t n)
{
    size_t at, first;
    bool fits;

    (void)pthread_mutex_lock(&p->lock);
    fits = n <= p->max - p->len;
    p->full = !fits;
    if (fits && n > 0) {
        if (p->len + n > p->cap)
            grow(p, p->len + n);
        at = (p->from + p->len) % p->cap;
        first = n < p->cap - at ? n : p->cap - at;
        memcpy(p->v + at, src, first);
        memcpy(p->v, (const char *)src + first, n - first);
        p->len += n;
        if (p->waiting)
            (void)pthread_cond_signal(&p->filled);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return fits;
}

void ep_url_pipe_end(struct ep_url_pipe *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->ended = true;
    (void)pthread_cond_signal(&p->filled);
    (void)pthread_mutex_unlock(&p->lock);
}

bool ep_url_pipe_rewind(struct ep_url_pipe *p, size_t *dropped)
{
    bool anew;

    (void)pthread_mutex_lock(&p->lock);
    anew = !p->taken;
    if (anew) {
        *dropped = p->len;
        p->from = p->len = 0;
        p->full = false;
    }
    (void)pthread_mutex_unlock(&p->lock);
    return anew;
}

ssize_t ep_url_pipe_get(struct ep_url_pipe *p, void *dst, size_t cap,
                        bool *room)
{
    ssize_t got;

    (void)pthread_mutex_lock(&p->lock);
    if (p->len > 0) {
        size_t n = cap < p->len ? cap : p->len;

        copy_out(p, dst, n);
        p->len -= n;
        p->from = p->len ? (p->from + n) % p->cap : 0;
        p->taken = true;
        got = (ssize_t)n;
    } else {
        got = p->ended ? 0 : -1;
    }
    *room = p->full && p->len <= p->max / 2;
    if (*room)
        p->full = false;
    (void)pthread_mutex_unlock(&p->lock);
    return got;
}

bool ep_url_pipe_dry(struct ep_url_pipe *p)
{
    bool dry;

    (void)pthread_mutex_lock(&p->lock);
    dry = p->len == 0 && !p->ended;
    (void)pthread_mutex_unlock(&p->lock);
    return dry;
}

void ep_url_pipe_wait(struct ep_url_pipe *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->waiting = true;
    while (p->len == 0 && !p->ended)
        (void)pthread_cond_wait(&p->filled, &p->lock);
    p->waiting = false;
    (void)pthread_mutex_unlock(&p->lock);
}

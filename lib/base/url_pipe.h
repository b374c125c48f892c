/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url_pipe.h - a bounded buffer of bytes between two threads. Internal to
 * url.c.
 *
 * One thread puts, which never waits; one gets, and may wait. The buffer
 * grows to its bound as it is needed: most scrapes are small.
 */
#ifndef EP_BASE_URL_PIPE_H
#define EP_BASE_URL_PIPE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ep_url_pipe {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    char *v;          /* [cap], a ring */
    size_t cap, from; /* bytes are at v[(from + i) % cap], */
    size_t len;       /* i < len */
    size_t max;       /* bound of cap */
    bool taken;       /* a byte was taken */
    bool ended;       /* nothing will be put any more */
    bool full;        /* the one who puts has to be told of room */
    bool waiting;     /* the one who gets sleeps */
};

void ep_url_pipe_init(struct ep_url_pipe *p, size_t max);
void ep_url_pipe_free(struct ep_url_pipe *p);

/* All n bytes, n <= max / 2, or none and false: there is no room for them. */
bool ep_url_pipe_put(struct ep_url_pipe *p, const void *src, size_t n);

/* Nothing will be put any more. */
void ep_url_pipe_end(struct ep_url_pipe *p);

/* If no byte was taken yet, drop all and return true: begin anew. *dropped is
 * how many. */
bool ep_url_pipe_rewind(struct ep_url_pipe *p, size_t *dropped);

/*
 * At most cap bytes. Returns how many, 0 if there are none and the end has
 * come, -1 if there are none yet. *room is set true if a put failed and the
 * buffer is now half empty, once.
 */
ssize_t ep_url_pipe_get(struct ep_url_pipe *p, void *dst, size_t cap,
                        bool *room);

/* Would a get return -1? */
bool ep_url_pipe_dry(struct ep_url_pipe *p);

/* Wait until it would not. */
void ep_url_pipe_wait(struct ep_url_pipe *p);

#endif

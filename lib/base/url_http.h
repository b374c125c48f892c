/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url_http.h - requests by libcurl, many at once on one thread. Internal to
 * url.c; url_http.c is the one user of libcurl.
 *
 * A request is one try: it is answered or it fails. Retries, queues and
 * buffers are url.c's. All functions but ep_http_wake belong to one thread.
 */
#ifndef EP_BASE_URL_HTTP_H
#define EP_BASE_URL_HTTP_H

#include "base/err.h"
#include "base/url_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_http_pool; /* opaque: the requests of one thread */
struct ep_http;      /* opaque: a request */

enum ep_http_took {
    EP_HTTP_TOOK,  /* all n bytes */
    EP_HTTP_PAUSE, /* none: give them again after ep_http_resume */
    EP_HTTP_STOP,  /* no more: the request ends as failed */
};

struct ep_http_job {
    const char *url;       /* copied */
    double connect_s;      /* > 0 */
    uint64_t offset;       /* 0, or the rest from here on, */
    const char *validator; /* if this still holds; copied */
    /* something came, a head or n > 0 bytes of a good answer's body */
    enum ep_http_took (*body)(void *ctx, const void *data, size_t n);
    void *ctx;
};

/* How a request ended. */
struct ep_http_end {
    int code;         /* 0: whole. Otherwise an enum ep_err, */
    int sys_errno;    /* */
    bool transient;   /* another try may do better, */
    double after_s;   /* but not before this; 0: the server said nothing */
    char reason[200]; /* without "cannot read URL: ", escaped */
};

/* Keeps at most so many connections when requests have ended. NULL with
 * EP_EMISSING "this build has no libcurl", or EP_ESYS. */
struct ep_http_pool *ep_http_pool_new(unsigned connections,
                                      struct ep_error *err) EP_MUST_USE;
void ep_http_pool_free(struct ep_http_pool *pool); /* when all are freed */

/*
 * Wait up to timeout_s for the network or ep_http_wake, and move what can be
 * moved, which calls body().
 */
void ep_http_step(struct ep_http_pool *pool, double timeout_s);

/* Let a step return now; from any thread, and kept for the next one. */
void ep_http_wake(struct ep_http_pool *pool);

/* The ctx of a job that has ended since, and how; NULL if there is none. */
void *ep_http_ended(struct ep_http_pool *pool, struct ep_http_end *end);

/* Begin; *err is EP_ESYS or EP_EUSAGE with the reason only. */
struct ep_http *ep_http_start(struct ep_http_pool *pool,
                              const struct ep_http_job *job,
                              struct ep_error *err) EP_MUST_USE;

/* The head of the answer, as far as it has come. */
const struct ep_url_head *ep_http_head(const struct ep_http *h);

/* Give the bytes again at which body() said EP_HTTP_PAUSE. */
void ep_http_resume(struct ep_http *h);

/* Also aborts. NULL is allowed. */
void ep_http_free(struct ep_http *h);

#endif

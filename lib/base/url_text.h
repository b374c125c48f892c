/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url_text.h - the text of URLs and of HTTP response heads, as far as we have
 * to read it ourselves. Internal to url.c and url_http.c.
 */
#ifndef EP_BASE_URL_TEXT_H
#define EP_BASE_URL_TEXT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Scheme, host and port as written, without user and password: what limits
 * per host are counted by. A part of url, which ep_url_is; if it has a user,
 * without the scheme.
 */
struct ep_span ep_url_origin(const char *url);

/*
 * What a response head (RFC 9110, RFC 9112) says of interest. Texts that are
 * too long are left empty, except reason and location, which are for messages
 * and are cut.
 */
struct ep_url_head {
    int status;         /* 0 before a status line */
    bool ranges;        /* Accept-Ranges: bytes */
    uint64_t from;      /* first byte of Content-Range; UINT64_MAX: none */
    char reason[48];    /* of the status line */
    char etag[128];     /* strong only, with its quotes */
    char modified[48];  /* Last-Modified */
    char location[200]; /* where a redirect leads */
};

/* Take in the next line of a head, with or without CR LF; a status line
 * begins anew. */
void ep_url_head_line(struct ep_url_head *h, const char *line, size_t n);

/* The validator for If-Range, or NULL if the rest cannot be asked for. */
const char *ep_url_head_validator(const struct ep_url_head *h);

#endif

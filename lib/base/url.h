/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.h - the bodies of HTTP and HTTPS URLs as streams of bytes, many at once.
 *
 * One background thread, which runs as long as any URL is open, fetches them
 * all through libcurl; each has a buffer of at most EP_URL_BUFFER_BYTES and
 * stands still while that is full. Bytes come as the server stores them: a
 * body that is compressed, by itself or for the transfer (gzip is offered),
 * is inflated by whoever recognises it, as input.h does.
 *
 * What a user of clusters expects is the rule, not an option: certificates
 * are verified ($CURL_CA_BUNDLE, or else $SSL_CERT_FILE and $SSL_CERT_DIR,
 * name others than the system's), proxies are taken from the environment and
 * passwords from ~/.netrc, at most EP_URL_REDIRECTS redirects are followed,
 * to http and https only, and never from https down to http. HTTP/1.1 is
 * spoken, on purpose: a stream of HTTP/2 that stands still is buffered in
 * libcurl, up to 32 MiB each.
 *
 * At most EP_URL_AT_ONCE transfers, EP_URL_PER_HOST of them with one host,
 * move bytes at a time; others wait in a queue, in which one whose reader
 * waits goes first and past the limits: reading many streams in any order,
 * as a merge does, cannot come to a stand. A transfer to which nothing comes
 * for EP_URL_QUIET_S moves none and does not count to the first, or hundreds
 * of dead hosts would be waited for EP_URL_AT_ONCE by EP_URL_AT_ONCE. In all
 * there are as many as half of the descriptors (RLIMIT_NOFILE) allow.
 *
 * Functions may be called from any thread, one at a time per struct ep_url.
 * After fork(2) a child may open URLs of its own; those that the parent
 * opened fail in it (EP_ESYS) rather than hang, and closing them does nothing.
 * exit(3) stops the thread first; a read by another thread may then hang.
 */
#ifndef EP_BASE_URL_H
#define EP_BASE_URL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EP_URL_BUFFER_BYTES ((size_t)256 << 10)
#define EP_URL_AT_ONCE 256
#define EP_URL_PER_HOST 8
#define EP_URL_QUIET_S 0.25
#define EP_URL_REDIRECTS 5

struct ep_url; /* opaque */

struct ep_url_limits {
    double connect_s;   /* name, connection and TLS, per try; > 0          */
    double total_s;     /* from the first try's start, all tries; 0: none  */
    double stall_s;     /* not a byte arrived for so long; 0: for ever     */
    uint64_t max_bytes; /* of the body as it is sent (compressed); 0: any  */
    int retries;        /* tries after the first; 0: none                  */
};

/* For a plain read (what a NULL means), and for one scrape of gauges. */
#define EP_URL_LIMITS_READ ((struct ep_url_limits){5, 0, 30, 0, 3})
#define EP_URL_LIMITS_SCRAPE                                                   \
    ((struct ep_url_limits){5, 10, 10, (uint64_t)64 << 20, 1})

/* Does s begin with http:// or https://, in any case? */
bool ep_url_is(const char *s);

/*
 * url for messages: escaped, and "***" in place of user and password. Returns
 * dst.
 *
 * dst     [cap] char, written, always terminated; cap >= 8
 */
const char *ep_url_shown(char *dst, size_t cap, const char *url);

/*
 * Begin to fetch url (copied) in the background and return at once; limits
 * may be NULL. Close with ep_url_close. NULL on error: EP_EMISSING "cannot
 * read URL: this build has no libcurl", EP_EUSAGE (not http or https, or a
 * limit that makes no sense), EP_ESYS (no thread).
 *
 * A failed connection, a time-out, status 408, 429 or 5xx are tried again
 * after 0.5 s, 1 s, 2 s ... (times 0.5 to 1.5, by chance) or what Retry-After
 * says, at most 60 s; other statuses and failed certificates are not. When
 * bytes have been read already, the rest is asked for (Range, If-Range) if
 * the server announced ranges with a strong ETag or a Last-Modified, and only
 * a 206 of the right offset is taken; otherwise the error is EP_ETRUNC
 * "connection lost after N bytes".
 */
struct ep_url *ep_url_start(const char *url, const struct ep_url_limits *limits,
                            struct ep_error *err) EP_MUST_USE;

/*
 * Read at most cap (> 0) bytes into dst. Blocks until there is one. Returns
 * their number, 0 at the end of the body, or a negative error, which is final
 * and comes after all bytes before it: "cannot read URL: reason" with
 *     EP_ESYS      status 300 and above "the server answered 404 Not Found",
 *                  no connection, TLS; sys_errno is ENOENT for 404 and 410,
 *                  EACCES for 401, 403 and 407, the system's if it had one,
 *                  otherwise EIO
 *     EP_ETIMEOUT  connect_s, total_s or stall_s
 *     EP_ELIMIT    the body is longer than max_bytes
 *     EP_ETRUNC    the connection was lost in the middle
 *     EP_EUSAGE    no valid URL
 * The body of an error page is never returned.
 */
ssize_t ep_url_read(struct ep_url *u, void *dst, size_t cap,
                    struct ep_error *err) EP_MUST_USE;

/* As above, but EP_EAGAIN (no message) instead of blocking. */
ssize_t ep_url_read_now(struct ep_url *u, void *dst, size_t cap,
                        struct ep_error *err) EP_MUST_USE;

/* Would ep_url_read block? (A moment later it may not.) */
bool ep_url_would_wait(struct ep_url *u);

/*
 * Free u, and stop the transfer if it runs; does not wait for the network.
 * The last one stops the thread. NULL is allowed.
 */
void ep_url_close(struct ep_url *u);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url_http.c - see url_http.h. A multi handle of libcurl with an easy handle
 * per request.
 *
 * Connections are kept and used again by libcurl as long as the pool lives.
 * A redirect from https down to http is refused by narrowing the protocols of
 * redirects as soon as an answer comes over https: libcurl by itself would
 * allow https -> http in the middle of a chain that began with http.
 */
#include "config.h"

#include "base/url_http.h"

#include "base/mem.h"
#include "base/url.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifdef HAVE_CURL

#include <curl/curl.h>
#include <pthread.h>

/* Of what libcurl reads at once; its pieces are of CURL_MAX_WRITE_SIZE. */
#define RECEIVE_BYTES (128L << 10)

struct ep_http_pool {
    CURLM *multi;
};

struct ep_http {
    struct ep_http_pool *pool;
    CURL *easy;
    struct curl_slist *headers;
    struct ep_http_job job; /* url and validator are not kept */
    struct ep_url_head head;
    bool in_body;
    bool refused; /* the answer has the right form, but not of this request */
    bool paused;
    char text[CURL_ERROR_SIZE];
};

static CURLcode global_rc;

static void global_init(void)
{
    global_rc = curl_global_init(CURL_GLOBAL_DEFAULT);
}

struct ep_http_pool *ep_http_pool_new(unsigned connections,
                                      struct ep_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct ep_http_pool *pool;
    CURLM *multi = NULL;

    (void)pthread_once(&once, global_init);
    if (global_rc == CURLE_OK)
        multi = curl_multi_init();
    if (!multi) {
        (void)ep_error_set(err, EP_ESYS, "libcurl cannot start");
        return NULL;
    }
    /* by itself it keeps four times as many as there are requests */
    (void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)connections);
    pool = ep_calloc(1, sizeof *pool);
    pool->multi = multi;
    return pool;
}

void ep_http_pool_free(struct ep_http_pool *pool)
{
    if (!pool)
        return;
    (void)curl_multi_cleanup(pool->multi);
    free(pool);
}

void ep_http_step(struct ep_http_pool *pool, double timeout_s)
{
    int running;

    /* rounded up, or a deadline would be polled for in the last millisecond */
    (void)curl_multi_poll(pool->multi, NULL, 0,
                          (int)fmin(ceil(timeout_s * 1e3), 1e6), NULL);
    (void)curl_multi_perform(pool->multi, &running);
}

void ep_http_wake(struct ep_http_pool *pool)
{
    (void)curl_multi_wakeup(pool->multi);
}

/* ---- callbacks, within ep_http_step or ep_http_resume --------------------- */

static void only_https_from_here(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    (void)curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
    (void)curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS,
                           (long)CURLPROTO_HTTPS);
#endif
}

static size_t take_header(char *line, size_t size, size_t n, void *ctx)
{
    struct ep_http *h = ctx;
    char *url = NULL;

    (void)size; /* is 1 */
    (void)h->job.body(h->job.ctx, NULL, 0);
    if (h->in_body)
        return n; /* a trailer */
    ep_url_head_line(&h->head, line, n);
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0 &&
        curl_easy_getinfo(h->easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK &&
        url && strncasecmp(url, "https:", 6) == 0)
        only_https_from_here(h->easy);
    return n;
}

/* Is this the answer to what was asked? */
static bool is_answer(const struct ep_http *h)
{
    if (h->head.status < 200 || h->head.status > 299)
        return false;
    if (h->job.offset == 0)
        return h->head.status != 206;
    return h->head.status == 206 && h->head.from == h->job.offset;
}

static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
    struct ep_http *h = ctx;

    (void)size;
    h->in_body = true;
    if (!is_answer(h)) {
        h->refused = true;
        return n + 1; /* which is an error */
    }
    switch (n ? h->job.body(h->job.ctx, data, n) : EP_HTTP_TOOK) {
    case EP_HTTP_TOOK:
        return n;
    case EP_HTTP_PAUSE:
        h->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    default:
        return n + 1;
    }
}

/* ---- a request ------------------------------------------------------------ */

static void set_protocols(CURL *e)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    long both = CURLPROTO_HTTP | CURLPROTO_HTTPS;

    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS, both);
    (void)curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS, both);
#endif
    (void)curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L);
    (void)curl_easy_setopt(e, CURLOPT_MAXREDIRS, (long)EP_URL_REDIRECTS);
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION,
                           (long)CURL_HTTP_VERSION_1_1);
}

/* The environment says where certificates are, as for curl(1). */
static void set_certificates(CURL *e)
{
    const char *file = getenv("CURL_CA_BUNDLE"), *dir = NULL;

    (void)curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
    (void)curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
    if (!file || !*file) {
        file = getenv("SSL_CERT_FILE");
        dir = getenv("SSL_CERT_DIR");
    }
    if (file && *file)
        (void)curl_easy_setopt(e, CURLOPT_CAINFO, file);
    if (dir && *dir)
        (void)curl_easy_setopt(e, CURLOPT_CAPATH, dir);
}

static int add_header(struct ep_http *h, const char *line)
{
    struct curl_slist *longer = curl_slist_append(h->headers, line);

    if (!longer)
        return -1;
    h->headers = longer;
    return 0;
}

static int set_headers(struct ep_http *h)
{
    char text[256];
    /* asked for anything, exporters answer in the text form, not protobuf */
    int rc = add_header(h, "Accept: text/plain;version=0.0.4, */*;q=0.5");

#ifdef HAVE_ZLIB
    rc |= add_header(h, "Accept-Encoding: gzip");
#endif
    if (h->job.offset) {
        (void)snprintf(text, sizeof text, "If-Range: %s", h->job.validator);
        rc |= add_header(h, text);
        (void)snprintf(text, sizeof text, "%llu-",
                       (unsigned long long)h->job.offset);
        (void)curl_easy_setopt(h->easy, CURLOPT_RANGE, text);
    }
    (void)curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers);
    return rc;
}

/* An option that a libcurl does not know is one that it has no use for, but
 * for the URL, protocols and certificates, which all have had for long. */
static CURLcode set_options(struct ep_http *h)
{
    CURL *e = h->easy;

    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, h);
    (void)curl_easy_setopt(e, CURLOPT_ERRORBUFFER, h->text);
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    (void)curl_easy_setopt(e, CURLOPT_USERAGENT, "evenpace/" PACKAGE_VERSION);
    (void)curl_easy_setopt(e, CURLOPT_FAILONERROR, 1L);
    (void)curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    (void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)fmax(1, fmin(h->job.connect_s * 1e3, 1e9)));
#if LIBCURL_VERSION_NUM >= 0x075700
    /* do not wait for a resolver that hangs when its request is given up */
    (void)curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
#endif
    (void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header);
    (void)curl_easy_setopt(e, CURLOPT_HEADERDATA, h);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, h);
    set_protocols(e);
    set_certificates(e);
    if (set_headers(h) != 0)
        return CURLE_OUT_OF_MEMORY;
    return curl_easy_setopt(e, CURLOPT_URL, h->job.url);
}

struct ep_http *ep_http_start(struct ep_http_pool *pool,
                              const struct ep_http_job *job,
                              struct ep_error *err)
{
    struct ep_http *h = ep_calloc(1, sizeof *h);
    CURLcode rc = CURLE_FAILED_INIT;

    h->pool = pool;
    h->job = *job;
    h->easy = curl_easy_init();
    if (h->easy)
        rc = set_options(h);
    h->job.url = h->job.validator = NULL;
    if (rc == CURLE_OK &&
        curl_multi_add_handle(pool->multi, h->easy) == CURLM_OK)
        return h;
    (void)ep_error_set(err, EP_ESYS, "libcurl cannot start a request (%s)",
                       curl_easy_strerror(rc));
    ep_http_free(h);
    return NULL;
}

const struct ep_url_head *ep_http_head(const struct ep_http *h)
{
    return &h->head;
}

void ep_http_resume(struct ep_http *h)
{
    if (!h->paused)
        return;
    h->paused = false;
    (void)curl_easy_pause(h->easy, CURLPAUSE_CONT);
}

void ep_http_free(struct ep_http *h)
{
    if (!h)
        return;
    if (h->easy) {
        (void)curl_multi_remove_handle(h->pool->multi, h->easy);
        curl_easy_cleanup(h->easy);
    }
    curl_slist_free_all(h->headers);
    free(h);
}

/* ---- how it ended --------------------------------------------------------- */

static void end_by_status(const struct ep_http *h, struct ep_http_end *end)
{
    int status = h->head.status;
    curl_off_t after = 0;
    char reason[80];

    end->code = EP_ESYS;
    end->sys_errno = EIO;
    if (status == 404 || status == 410)
        end->sys_errno = ENOENT;
    else if (status == 401 || status == 403 || status == 407)
        end->sys_errno = EACCES;
    end->transient = status == 408 || status == 429 || status >= 500;
    if (end->transient &&
        curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &after) == CURLE_OK)
        end->after_s = (double)after;
    (void)snprintf(end->reason, sizeof end->reason,
                   "the server answered %d%s%s", status,
                   h->head.reason[0] ? " " : "",
                   ep_escape(reason, sizeof reason, h->head.reason,
                             strlen(h->head.reason)));
}

/* "Failed to connect to n1 port 9400 after 3 ms: Couldn't connect to server"
 * becomes "Failed to connect to n1 port 9400: Connection refused". */
static void end_unconnected(const struct ep_http *h, struct ep_http_end *end)
{
    const char *after = strstr(h->text, " after ");
    char text[120];
    long errnum = 0;

    (void)curl_easy_getinfo(h->easy, CURLINFO_OS_ERRNO, &errnum);
    if (!after || errnum == 0)
        return;
    end->sys_errno = (int)errnum;
    (void)snprintf(
        end->reason, sizeof end->reason, "%s: %s",
        ep_escape(text, sizeof text, h->text, (size_t)(after - h->text)),
        strerror((int)errnum));
}

static void end_redirect(const struct ep_http *h, struct ep_http_end *end)
{
    char shown[140];

    (void)snprintf(end->reason, sizeof end->reason,
                   "a redirect to %s is not followed (%s)",
                   ep_url_shown(shown, sizeof shown, h->head.location),
                   ep_url_is(h->head.location) ? "from https down to http"
                                               : "neither http nor https");
}

static void end_by_curl(const struct ep_http *h, CURLcode rc,
                        struct ep_http_end *end)
{
    const char *text = h->text[0] ? h->text : curl_easy_strerror(rc);
    long errnum = 0;

    end->code = EP_ESYS;
    end->sys_errno = EIO;
    (void)ep_escape(end->reason, sizeof end->reason, text, strlen(text));
    switch (rc) {
    case CURLE_OPERATION_TIMEDOUT: /* connect_s: there is no other */
        end->code = EP_ETIMEOUT;
        end->sys_errno = 0;
        end->transient = true;
        (void)snprintf(end->reason, sizeof end->reason,
                       "no connection after %g s", h->job.connect_s);
        break;
    case CURLE_COULDNT_CONNECT:
        end->transient = true;
        end_unconnected(h, end);
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        end->transient = true;
        break;
    case CURLE_SSL_CONNECT_ERROR: /* the network, or no common protocol */
        (void)curl_easy_getinfo(h->easy, CURLINFO_OS_ERRNO, &errnum);
        end->transient = errnum != 0;
        break;
    case CURLE_URL_MALFORMAT:
        end->code = EP_EUSAGE;
        end->sys_errno = 0;
        break;
    case CURLE_TOO_MANY_REDIRECTS:
        (void)snprintf(end->reason, sizeof end->reason,
                       "more than %d redirects", EP_URL_REDIRECTS);
        break;
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (h->head.location[0])
            end_redirect(h, end);
        break;
    default:
        break;
    }
}

void *ep_http_ended(struct ep_http_pool *pool, struct ep_http_end *end)
{
    struct ep_http *h = NULL;
    CURLMsg *msg;
    int left;

    do {
        msg = curl_multi_info_read(pool->multi, &left);
        if (!msg)
            return NULL;
    } while (msg->msg != CURLMSG_DONE);
    (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &h);
    *end = (struct ep_http_end){0};
    if (msg->data.result == CURLE_HTTP_RETURNED_ERROR || h->refused ||
        (msg->data.result == CURLE_OK && !is_answer(h)))
        end_by_status(h, end);
    else if (msg->data.result != CURLE_OK)
        end_by_curl(h, msg->data.result, end);
    return h->job.ctx;
}

#else /* !HAVE_CURL */

struct ep_http_pool *ep_http_pool_new(unsigned connections,
                                      struct ep_error *err)
{
    (void)connections;
    (void)ep_error_set(err, EP_EMISSING, "this build has no libcurl");
    return NULL;
}

/* None of the others is called without a pool. */

void ep_http_pool_free(struct ep_http_pool *pool)
{
    (void)pool;
}

void ep_http_step(struct ep_http_pool *pool, double timeout_s)
{
    (void)pool;
    (void)timeout_s;
}

void ep_http_wake(struct ep_http_pool *pool)
{
    (void)pool;
}

void *ep_http_ended(struct ep_http_pool *pool, struct ep_http_end *end)
{
    (void)pool;
    (void)end;
    return NULL;
}

struct ep_http *ep_http_start(struct ep_http_pool *pool,
                              const struct ep_http_job *job,
                              struct ep_error *err)
{
    (void)pool;
    (void)job;
    (void)ep_error_set(err, EP_EMISSING, "this build has no libcurl");
    return NULL;
}

const struct ep_url_head *ep_http_head(const struct ep_http *h)
{
    (void)h;
    return NULL;
}

void ep_http_resume(struct ep_http *h)
{
    (void)h;
}

void ep_http_free(struct ep_http *h)
{
    (void)h;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* url_text.c - see url_text.h and url.h. */
#include "config.h"

#include "base/url_text.h"

#include "base/url.h"

#include <string.h>
#include <strings.h>

bool ep_url_is(const char *s)
{
    return strncasecmp(s, "http://", 7) == 0 ||
           strncasecmp(s, "https://", 8) == 0;
}

/* The '@' behind user and password, or NULL; *host is where they begin. */
static const char *find_user(const char *url, const char **host)
{
    const char *p = strstr(url, "://"), *at = NULL;

    *host = p ? p + 3 : url;
    for (p = *host; *p && !strchr("/?#", *p); p++)
        if (*p == '@')
            at = p;
    return at;
}

const char *ep_url_shown(char *dst, size_t cap, const char *url)
{
    const char *host, *at = find_user(url, &host);
    struct ep_buf b;

    ep_buf_init(&b);
    ep_buf_add(&b, url, at ? (size_t)(host - url) : strlen(url));
    if (at)
        ep_buf_addf(&b, "***%s", at);
    (void)ep_escape(dst, cap, b.ptr, b.len);
    ep_buf_free(&b);
    return dst;
}

struct ep_span ep_url_origin(const char *url)
{
    const char *host, *at = find_user(url, &host);
    const char *from = at ? at + 1 : url;

    host = at ? at + 1 : host;
    return (struct ep_span){from, (size_t)(host - from) + strcspn(host, "/?#")};
}

/* Copy value if it fits. */
static void take(char *dst, size_t cap, struct ep_span v)
{
    dst[0] = '\0';
    if (v.len >= cap || memchr(v.ptr, '\0', v.len))
        return;
    memcpy(dst, v.ptr, v.len);
    dst[v.len] = '\0';
}

static void take_cut(char *dst, size_t cap, struct ep_span v)
{
    v.len = v.len < cap ? v.len : cap - 1;
    take(dst, cap, v);
}

/* digit*, at most 18 of them; UINT64_MAX if there is none. */
static uint64_t number(const char *p, const char *end)
{
    uint64_t x = 0;
    const char *from = p;

    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        if (p - from == 18)
            return UINT64_MAX;
        x = x * 10 + (uint64_t)(*p - '0');
    }
    return p == from ? UINT64_MAX : x;
}

static void status_line(struct ep_url_head *h, const char *line, size_t n)
{
    const char *end = line + n, *p = memchr(line, ' ', n);

    *h = (struct ep_url_head){.from = UINT64_MAX};
    if (!p || end - p < 4)
        return;
    h->status = (int)number(p + 1, p + 4);
    if (end - p > 5)
        take_cut(h->reason, sizeof h->reason,
                 (struct ep_span){p + 5, (size_t)(end - p - 5)});
}

static bool is(struct ep_span name, const char *want)
{
    return name.len == strlen(want) &&
           strncasecmp(name.ptr, want, name.len) == 0;
}

void ep_url_head_line(struct ep_url_head *h, const char *line, size_t n)
{
    struct ep_span name, v;
    const char *colon;

    while (n && strchr("\r\n \t", line[n - 1]))
        n--;
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        status_line(h, line, n);
        return;
    }
    colon = memchr(line, ':', n);
    if (!colon)
        return;
    name = (struct ep_span){line, (size_t)(colon - line)};
    v = (struct ep_span){colon + 1, n - name.len - 1};
    while (v.len && (*v.ptr == ' ' || *v.ptr == '\t'))
        v = (struct ep_span){v.ptr + 1, v.len - 1};
    if (is(name, "ETag")) {
        take(h->etag, sizeof h->etag, v);
        if (h->etag[0] != '"') /* a weak one promises no equal bytes */
            h->etag[0] = '\0';
    } else if (is(name, "Last-Modified")) {
        take(h->modified, sizeof h->modified, v);
    } else if (is(name, "Accept-Ranges")) {
        h->ranges = is(v, "bytes");
    } else if (is(name, "Location")) {
        take_cut(h->location, sizeof h->location, v);
    } else if (is(name, "Content-Range") && v.len > 6 &&
               strncasecmp(v.ptr, "bytes ", 6) == 0) {
        h->from = number(v.ptr + 6, v.ptr + v.len);
    }
}

const char *ep_url_head_validator(const struct ep_url_head *h)
{
    if (!h->ranges)
        return NULL;
    if (h->etag[0])
        return h->etag;
    return h->modified[0] ? h->modified : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_message.c - see nccl_message.h. */
#include "config.h"

#include "record/nccl_message.h"

#include "base/word.h"
#include "record/nccl_text.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define MARK " NCCL "
#define MARK_LEN ((ptrdiff_t)sizeof MARK - 1)

/* Hosts that are remembered, at most. */
#define HOSTS_MAX 65536

/* Bytes before the mark in which its header is, and of a host name. */
#define HEADER_MAX 512
#define HOST_MAX 64

#define TIME_MAX 48 /* bytes of "[2026-04-14 21:28:19.123456] " */

/* The two Cs are what a mark is looked for by: little else has them. */
const char *ep_nccl_mark(const char *p, const char *end)
{
#if defined(__SSE2__)
    const __m128i c = _mm_set1_epi8('C');

    while (end - p >= MARK_LEN + 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(p + 2));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + 3));
        unsigned both = (unsigned)_mm_movemask_epi8(
            _mm_and_si128(_mm_cmpeq_epi8(a, c), _mm_cmpeq_epi8(b, c)));

        for (; both; both &= both - 1) {
            const char *at = p + __builtin_ctz(both);

            if (memcmp(at, MARK, (size_t)MARK_LEN) == 0)
                return at + MARK_LEN;
        }
        p += 16;
    }
#endif
    p = find_text(p, (size_t)(end - p), MARK, (size_t)MARK_LEN);
    return p ? p + MARK_LEN : NULL;
}

void ep_nccl_messages_init(struct ep_nccl_messages *self)
{
    *self = (struct ep_nccl_messages){.hosts = ep_intern_new()};
}

void ep_nccl_messages_free(struct ep_nccl_messages *self)
{
    ep_intern_free(self->hosts);
}

void ep_nccl_messages_line(struct ep_nccl_messages *self, struct ep_span line)
{
    self->at = line.ptr;
    self->end = line.ptr + line.len;
    self->has_next = false;
}

static bool is_host(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static const char *back_digits(const char *p, const char *from)
{
    while (p > from && p[-1] >= '0' && p[-1] <= '9')
        p--;
    return p;
}

/*
 * "n1:4711:4780 [3" is what ends at p (where the ']' is): pid, and where the
 * host begins and ends. False if it is not. The device may be missing.
 */
static bool header_before(const char *p, const char *from, const char **host,
                          const char **host_end, int64_t *pid)
{
    struct ep_cursor c;
    const char *q = back_digits(p, from), *tid;

    if (q - from < 6 || q[-1] != '[' || q[-2] != ' ')
        return false;
    tid = q - 2;
    q = back_digits(tid, from);
    if (q == tid || q == from || q[-1] != ':')
        return false;
    c.end = q - 1;
    q = back_digits(c.end, from);
    c.p = q;
    if (q == from || q[-1] != ':' || !ep_cursor_uint(&c, pid))
        return false;
    *host_end = --q;
    while (q > from && *host_end - q < HOST_MAX && is_host(q[-1]))
        q--;
    *host = q;
    return q < *host_end;
}

/*
 * The host of a header that is not at the beginning of the line: the longest
 * end of the word that is a known host. Without one the word if the header is
 * the first on the line (a prefix that is not known is before it) and a blank
 * is before it; else empty.
 */
static struct ep_span known_host(struct ep_nccl_messages *self,
                                 struct ep_span word, bool first)
{
    for (struct ep_span s = word; s.len; s.ptr++, s.len--)
        if (ep_intern_add(self->hosts, s, 0) >= 0)
            return s;
    return first && word.ptr[-1] == ' ' ? word : (struct ep_span){NULL, 0};
}

/* "[2026-04-14 21:28:19] " that ends at p: where it begins, else p. */
static const char *time_before(struct ep_nccl_messages *self, const char *p,
                               const char *from, double *ts)
{
    const char *low = p - from > TIME_MAX ? p - TIME_MAX : from, *open;
    size_t n;

    if (p - from < 22 || p[-1] != ' ' || p[-2] != ']')
        return p;
    open = memrchr(low, '[', (size_t)(p - 2 - low));
    if (!open)
        return p;
    n = ep_strip_time(&self->zone, open + 1, (size_t)(p - 2 - open) - 1, ts);
    if (!n || open + 1 + n != p - 2)
        *ts = (double)NAN;
    return n ? open : p;
}

/*
 * The header that belongs to the mark at p. Between its bracket and the mark
 * a warning has the place in NCCL's source.
 */
static bool take_header(struct ep_nccl_messages *self, const char *from,
                        const char *p, bool first, struct ep_nccl_message *m)
{
    const char *low = p - from > HEADER_MAX ? p - HEADER_MAX : from;
    const char *host, *host_end;

    for (int i = 0; i < 4; i++) {
        const char *close = memrchr(low, ']', (size_t)(p - low));

        if (!close)
            return false;
        if (header_before(close, low, &host, &host_end, &m->pid)) {
            m->host = (struct ep_span){host, (size_t)(host_end - host)};
            m->ts = (double)NAN;
            m->begin = time_before(self, host, low, &m->ts);
            if (first && m->begin == from)
                (void)ep_intern_add(self->hosts, m->host, HOSTS_MAX);
            else
                m->host = known_host(self, m->host, first && host > from);
            if (m->begin == host && m->host.len)
                m->begin = m->host.ptr;
            return true;
        }
        p = close;
    }
    return false;
}

/* The next header at or behind self->at; its text ends with the line. */
static bool find_header(struct ep_nccl_messages *self, bool first,
                        struct ep_nccl_message *m)
{
    struct ep_cursor c = {self->at, self->end};

    while ((c.p = ep_nccl_mark(c.p, c.end)) != NULL) {
        const char *mark = c.p - MARK_LEN;

        m->warn = ep_cursor_lit(&c, "WARN ");
        if ((m->warn || ep_cursor_lit(&c, "INFO ")) &&
            take_header(self, self->at, mark, first, m)) {
            m->text = (struct ep_span){c.p, (size_t)(c.end - c.p)};
            self->at = c.p;
            return true;
        }
    }
    self->at = self->end;
    return false;
}

bool ep_nccl_messages_next(struct ep_nccl_messages *self,
                           struct ep_nccl_message *m)
{
    if (self->has_next)
        *m = self->next;
    else if (!find_header(self, true, m))
        return false;
    self->has_next = find_header(self, false, &self->next);
    m->cut = self->has_next;
    if (m->cut)
        m->text.len = (size_t)(self->next.begin - m->text.ptr);
    return true;
}

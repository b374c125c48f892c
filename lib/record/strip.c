/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip.c - see strip.h.
 *
 * Nearly all lines have no prefix at all, so they must cost next to nothing:
 * one pass looks for the two bytes that make a copy necessary, and the first
 * byte of the text says which prefixes are possible. Everything else is rare
 * and may be slow.
 */
#include "config.h"

#include "record/strip.h"

#include "base/word.h"
#include "record/nccl_text.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define ESC '\x1b'

/* Prefixes in front of each other that are looked for, at most. */
#define PREFIXES 8

/* A progress bar's description and percentage are in its first bytes. */
#define BAR_HEAD 160

/* ==== Bytes that make a copy necessary ==== */

/* The first escape or carriage return, or end. */
static const char *find_odd(const char *p, const char *end)
{
#if defined(__SSE2__)
    const __m128i esc = _mm_set1_epi8(ESC), cr = _mm_set1_epi8('\r');

    for (; end - p >= 16; p += 16) {
        __m128i w = _mm_loadu_si128((const __m128i *)(const void *)p);
        int odd = _mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(w, esc), _mm_cmpeq_epi8(w, cr)));

        if (odd)
            return p + __builtin_ctz((unsigned)odd);
    }
#endif
    while (p < end && *p != ESC && *p != '\r')
        p++;
    return p;
}

/* Behind the escape sequence at p (ECMA-48, section 5.3 and 5.6). */
static const char *escape_end(const char *p, const char *end)
{
    if (++p == end)
        return end;
    if (*p == '[') {
        for (p++; p < end && (*p < '@' || *p > '~'); p++)
            ;
        return p < end ? p + 1 : end;
    }
    if (*p == ']') { /* ends with BEL, or ESC and a backslash */
        for (p++; p < end && *p != '\a' && *p != ESC; p++)
            ;
        if (p < end && *p == ESC && p + 1 < end && p[1] == '\\')
            p++;
        return p < end ? p + 1 : end;
    }
    while (p < end && *p >= ' ' && *p <= '/')
        p++;
    return p < end ? p + 1 : end;
}

/* text without escape sequences, in scratch. */
static struct ep_span without_escapes(struct ep_span text,
                                      struct ep_buf *scratch)
{
    const char *p = text.ptr, *end = p + text.len;

    ep_buf_reset(scratch);
    while (p < end) {
        const char *esc = memchr(p, ESC, (size_t)(end - p));

        ep_buf_add(scratch, p, (size_t)((esc ? esc : end) - p));
        p = esc ? escape_end(esc, end) : end;
    }
    return (struct ep_span){scratch->ptr, scratch->len};
}

/* ==== Progress bars ==== */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What follows the bar at the beginning of a segment; all of it without one. */
static struct ep_span without_bar(struct ep_span s)
{
    size_t head = s.len < BAR_HEAD ? s.len : BAR_HEAD;
    const char *mark = find_text(s.ptr, head, "%|", 2), *end = s.ptr + s.len;
    struct ep_cursor c = {s.ptr, end};
    int64_t n;

    if (mark && mark > s.ptr && is_digit(mark[-1])) {
        c.p = mark + 2; /* 50%|#####     | 10/20 [00:10<00:10, 1.00it/s] */
        if (!ep_cursor_find(&c, "| ") || !ep_cursor_find(&c, "]"))
            c.p = end;
    } else {
        ep_cursor_blanks(&c); /* 7it [00:10, 1.42s/it] */
        if (!ep_cursor_uint(&c, &n) || !ep_cursor_lit(&c, "it [") ||
            !ep_cursor_find(&c, "]"))
            c.p = s.ptr;
    }
    return (struct ep_span){c.p, (size_t)(end - c.p)};
}

/* What a terminal would show last that is no bar. */
static struct ep_span last_segment(struct ep_span text)
{
    const char *end = text.ptr + text.len;

    for (;;) {
        const char *cr = memrchr(text.ptr, '\r', (size_t)(end - text.ptr));
        const char *from = cr ? cr + 1 : text.ptr;
        struct ep_span s = {from, (size_t)(end - from)};
        struct ep_cursor c;

        s = without_bar(s);
        c = (struct ep_cursor){s.ptr, s.ptr + s.len};
        ep_cursor_blanks(&c);
        if (c.p < c.end)
            return s;
        if (!cr)
            return (struct ep_span){text.ptr, 0};
        end = cr;
    }
}

/* ==== Prefixes ==== */

/* srun -l: the label is padded with blanks on the left. */
static bool take_label(struct ep_cursor *c, struct ep_strip *out)
{
    struct ep_cursor at = *c;
    const char *digits;
    int64_t n;

    while (at.p < at.end && *at.p == ' ')
        at.p++;
    digits = at.p;
    if (!ep_cursor_uint(&at, &n) || at.p - digits > 7 || at.p - c->p > 8 ||
        !ep_cursor_lit(&at, ": "))
        return false;
    out->task = n;
    *c = at;
    return true;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           c == '_' || c == '-' || c == '.';
}

/* "n1 python3[77]: ", "n1 kernel: " behind a time: syslog and the journal. */
static bool take_origin(struct ep_cursor *c, struct ep_strip *out)
{
    struct ep_cursor at = *c;
    struct ep_span host = {at.p, 0}, tag;
    int64_t pid = -1;

    while (at.p < at.end && (is_name(*at.p) || *at.p == ':'))
        at.p++;
    host.len = (size_t)(at.p - host.ptr);
    if (!host.len || !ep_cursor_lit(&at, " "))
        return false;
    tag.ptr = at.p;
    while (at.p<at.end && * at.p> ' ' && *at.p != '[' && *at.p != ':')
        at.p++;
    tag.len = (size_t)(at.p - tag.ptr);
    if (ep_cursor_lit(&at, "[")) {
        if (!ep_cursor_uint(&at, &pid) || !ep_cursor_lit(&at, "]"))
            return false;
    } else if (!EP_SPAN_IS(tag, "kernel")) {
        return false;
    }
    if (!tag.len || !ep_cursor_lit(&at, ":"))
        return false;
    (void)ep_cursor_lit(&at, " ");
    host = ep_nccl_host(host);
    if (host.len)
        out->host = host;
    if (pid >= 0)
        out->pid = pid;
    *c = at;
    return true;
}

/* "Nov 30 03:14:15 n1 python3[77]: " */
static bool take_syslog(struct ep_cursor *c, struct ep_strip *out)
{
    struct ep_strip_zone zone = {.known = true, .latest = 2e9}; /* any year */
    struct ep_cursor at = *c;
    size_t n = (size_t)(at.end - at.p);
    double ts;

    if (n < 16 || at.p[3] != ' ' || at.p[6] != ' ')
        return false;
    n = ep_strip_stamp(&zone, at.p, n, &ts);
    at.p += n;
    if (!n || !ep_cursor_lit(&at, " ") || !take_origin(&at, out))
        return false;
    out->stamp = (struct ep_span){c->p, n};
    *c = at;
    return true;
}

/* RFC 3339 with a T and a zone, as container runtimes and rsyslog write it. */
static bool take_time(struct ep_cursor *c, struct ep_strip *out)
{
    struct ep_strip_zone zone = {.known = true};
    struct ep_cursor at = *c;
    double ts;
    size_t n = (size_t)(at.end - at.p);
    bool runtime;

    if (n < 20 || at.p[10] != 'T')
        return false;
    n = ep_strip_time(&zone, at.p, n, &ts);
    if (n < 20)
        return false;
    runtime = at.p[n - 1] == 'Z' || at.p[n - 3] == ':';
    at.p += n;
    if (at.p < at.end && *at.p != ' ')
        return false;
    (void)ep_cursor_lit(&at, " ");
    if (!take_origin(&at, out) && !runtime)
        return false;
    if (ep_cursor_lit(&at, "stdout ") || ep_cursor_lit(&at, "stderr "))
        (void)(ep_cursor_lit(&at, "F ") || ep_cursor_lit(&at, "P "));
    out->ts = ts;
    out->stamp = (struct ep_span){NULL, 0};
    *c = at;
    return true;
}

/* "1,3]<stdout>:" behind "[" or "@": Open MPI. */
static bool take_mpi(struct ep_cursor *c, struct ep_strip *out)
{
    struct ep_cursor at = *c;
    int64_t job, rank;
    bool space = at.p[-1] == '@';

    if (!ep_cursor_uint(&at, &job) || !ep_cursor_lit(&at, ",") ||
        !ep_cursor_uint(&at, &rank) ||
        !(ep_cursor_lit(&at, "]<stdout>:") ||
          ep_cursor_lit(&at, "]<stderr>:") ||
          ep_cursor_lit(&at, "]<stddiag>:")))
        return false;
    if (space)
        (void)ep_cursor_lit(&at, " ");
    out->rank = rank;
    *c = at;
    return true;
}

/* "[rank3]: ", "[rank3] ", "[default3]:" behind the bracket; name is what is
 * inside. */
static bool take_role(struct ep_cursor *c, struct ep_span name,
                      struct ep_strip *out)
{
    struct ep_cursor at = {name.ptr + name.len, name.ptr + name.len};
    int64_t n;

    while (at.p > name.ptr && is_digit(at.p[-1]))
        at.p--;
    name.len = (size_t)(at.p - name.ptr);
    if (!name.len || at.end - at.p > 7 || !ep_cursor_uint(&at, &n))
        return false;
    at.end = c->end;
    if (EP_SPAN_IS(name, "rank")) {
        if (ep_cursor_lit(&at, "]:"))
            (void)ep_cursor_lit(&at, " ");
        else if (!ep_cursor_lit(&at, "] "))
            return false;
        out->rank = n;
    } else if (ep_cursor_lit(&at, "]:")) {
        out->local_rank = n;
    } else {
        return false;
    }
    *c = at;
    return true;
}

static bool take_bracket(struct ep_cursor *c, struct ep_strip *out)
{
    struct ep_cursor at = {c->p + 1, c->end};
    const char *from = at.p;

    if (at.p == at.end)
        return false;
    if (is_digit(*at.p)) { /* mostly a date */
        if (!take_mpi(&at, out))
            return false;
    } else if (ep_cursor_lit(&at, "pod/")) {
        while (at.p < at.end && *at.p != ']' && *at.p != ' ')
            at.p++;
        if (!ep_cursor_lit(&at, "] "))
            return false;
    } else {
        while (at.p < at.end && is_name(*at.p))
            at.p++;
        if (ep_cursor_lit(&at, "@")) {
            if (!take_mpi(&at, out))
                return false;
        } else if (!take_role(&at,
                              (struct ep_span){from, (size_t)(at.p - from)},
                              out)) {
            return false;
        }
    }
    *c = at;
    return true;
}

/* "(NAME pid=77, ip=10.0.0.1) ": Ray; name and ip may be missing. */
static bool take_ray(struct ep_cursor *c, struct ep_strip *out)
{
    const char *close = memchr(c->p, ')', (size_t)(c->end - c->p));
    struct ep_cursor at = {c->p + 1, close};
    struct ep_span host = {NULL, 0};
    int64_t pid;

    if (!close || close - c->p > BAR_HEAD)
        return false;
    if (!ep_cursor_lit(&at, "pid=") && !ep_cursor_find(&at, " pid="))
        return false;
    if (!ep_cursor_uint(&at, &pid))
        return false;
    if (ep_cursor_lit(&at, ", ip="))
        host = (struct ep_span){at.p, (size_t)(close - at.p)};
    else if (at.p != close)
        return false;
    at = (struct ep_cursor){close + 1, c->end};
    if (at.p < at.end && !ep_cursor_lit(&at, " "))
        return false;
    out->pid = pid;
    if (host.len && !memchr(host.ptr, '\0', host.len))
        out->host = host;
    *c = at;
    return true;
}

static void take_prefixes(struct ep_strip *out)
{
    struct ep_cursor c = {out->text.ptr, out->text.ptr + out->text.len};
    bool more = true;

    for (int i = 0; i < PREFIXES && more && c.p < c.end; i++) {
        switch (*c.p) {
        case '[':
            more = take_bracket(&c, out);
            break;
        case '(':
            more = take_ray(&c, out);
            break;
        case ' ':
            more = take_label(&c, out);
            break;
        default:
            if (*c.p >= 'A' && *c.p <= 'S') /* months */
                more = take_syslog(&c, out);
            else
                more = is_digit(*c.p) &&
                       (take_label(&c, out) || take_time(&c, out));
        }
    }
    out->text = (struct ep_span){c.p, (size_t)(c.end - c.p)};
}

/* The line without escapes and prefixes. Is there a carriage return in it? */
static bool begin(const char *line, size_t len, struct ep_buf *scratch,
                  struct ep_strip *out)
{
    const char *odd = find_odd(line, line + len);
    bool cr = false;

    /* one by one: a whole struct is cleared by a slow instruction first */
    out->text = (struct ep_span){line, len};
    out->ts = (double)NAN;
    out->rank = out->local_rank = out->task = out->pid = -1;
    out->stamp = out->host = (struct ep_span){NULL, 0};
    if (odd < line + len) {
        cr = memchr(odd, '\r', (size_t)(line + len - odd)) != NULL;
        out->text = without_escapes(out->text, scratch);
    }
    take_prefixes(out);
    return cr;
}

void ep_strip(const char *line, size_t len, struct ep_buf *scratch,
              struct ep_strip *out)
{
    if (begin(line, len, scratch, out)) {
        out->text = last_segment(out->text);
        take_prefixes(out);
    }
}

void ep_strip_bars(const char *line, size_t len, struct ep_buf *scratch,
                   struct ep_strip *out)
{
    (void)begin(line, len, scratch, out);
}

bool ep_strip_next_bar(struct ep_span *rest, struct ep_span *bar)
{
    while (rest->len) {
        const char *cr = memchr(rest->ptr, '\r', rest->len);
        size_t n = cr ? (size_t)(cr - rest->ptr) : rest->len;

        *bar = (struct ep_span){rest->ptr, n};
        n += cr != NULL;
        rest->ptr += n;
        rest->len -= n;
        while (bar->len && (bar->ptr[bar->len - 1] == ' ' ||
                            bar->ptr[bar->len - 1] == '\t'))
            bar->len--;
        if (bar->len)
            return true;
    }
    return false;
}

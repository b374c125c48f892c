/* SPDX-License-Identifier: Apache-2.0 */
/* json_write.c - see json_write.h. */
#include "config.h"

#include "base/json_write.h"

#include "base/fp.h"
#include "base/utf8.h"
#include "base/word.h"

#include <math.h>
#include <string.h>

void ep_jw_init(struct ep_jw *w, struct ep_buf *out)
{
    w->out = out;
    w->comma = false;
}

/* Write a token that is a whole value, or its beginning. */
static void value(struct ep_jw *w, const char *text, size_t n)
{
    char *p = ep_buf_extend(w->out, n + w->comma);

    *p = ',';
    memcpy(p + w->comma, text, n);
    w->comma = true;
}

static void begin(struct ep_jw *w, char bracket)
{
    value(w, &bracket, 1);
    w->comma = false;
}

static void end(struct ep_jw *w, char bracket)
{
    ep_buf_addc(w->out, bracket);
    w->comma = true;
}

void ep_jw_begin_object(struct ep_jw *w)
{
    begin(w, '{');
}

void ep_jw_end_object(struct ep_jw *w)
{
    end(w, '}');
}

void ep_jw_begin_array(struct ep_jw *w)
{
    begin(w, '[');
}

void ep_jw_end_array(struct ep_jw *w)
{
    end(w, ']');
}

void ep_jw_newline(struct ep_jw *w)
{
    ep_buf_addc(w->out, '\n');
    w->comma = false;
}

/* What escape() writes at most, and what is stored at once. */
enum { WORST = 6, WORD = 16 };

/* A string is written in pieces of so many bytes of it. */
#define PIECE ((size_t)4096)

/* Write a byte that cannot be written as it is: at most WORST bytes. */
static char *escape(char *to, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";

    if (c >= 0x80) {
        *to++ = '\xef';
        *to++ = '\xbf';
        *to++ = '\xbd';
        return to;
    }
    for (size_t i = 0; i + 1 < sizeof letters; i += 2) {
        if ((unsigned char)letters[i] == c) {
            to[0] = '\\';
            to[1] = letters[i + 1];
            return to + 2;
        }
    }
    *to++ = '\\';
    *to++ = 'u';
    *to++ = '0';
    *to++ = '0';
    *to++ = hex[c >> 4];
    *to++ = hex[c & 15];
    return to;
}

/* Write what begins at p, which is not plain ASCII; *p goes behind it. */
static char *put_odd(char *to, const char **p, const char *end)
{
    unsigned char c = (unsigned char)**p;
    int len;

    if (EP_LIKELY(c == '"' || c == '\\')) {
        to[0] = '\\';
        to[1] = (char)c;
        ++*p;
        return to + 2;
    }
    len = c >= 0x80 ? ep_utf8_len(*p, (size_t)(end - *p)) : 0;
    if (len <= 0) {
        ++*p;
        return escape(to, c);
    }
    for (; len > 0; len--)
        *to++ = *(*p)++;
    return to;
}

/*
 * Write the bytes from begin to stop, and the rest of the character at stop,
 * which is before end. What is plain goes 16 or 8 bytes at a time; that many
 * are stored, and what is not plain then takes the place of the rest.
 */
static char *put_piece(char *to, const char *begin, const char **stop,
                       const char *end)
{
    const char *p = begin;

    while (p < *stop) {
        size_t left = (size_t)(*stop - p);
        uint64_t w, bad;
        unsigned n;

#if EP_JSON_SSE2
        if (left >= WORD) {
            unsigned odd = not_plain16(p);

            memcpy(to, p, WORD);
            n = odd ? (unsigned)__builtin_ctz(odd) : WORD;
            p += n;
            to += n;
            if (odd)
                to = put_odd(to, &p, end);
            continue;
        }
#endif
        w = load8_bounded(begin, p, *stop);
        bad = not_plain8(w); /* the zeros behind stop are not plain either */
        n = bad ? (unsigned)__builtin_ctzll(bad) >> 3 : 8;
        store8(to, w);
        p += n;
        to += n;
        if (n < 8 && n < left)
            to = put_odd(to, &p, end);
    }
    *stop = p;
    return to;
}

char *ep_jw_put_string(char *to, struct ep_span s)
{
    const char *end = s.ptr + s.len, *stop = end;

    *to++ = '"';
    to = put_piece(to, s.ptr, &stop, end);
    *to = '"';
    return to + 1;
}

/* Write s, then c unless it is 0. Sets no comma. */
static void string(struct ep_jw *w, struct ep_span s, char c)
{
    const char *p = s.len ? s.ptr : "", *end = p + s.len;
    char *from, *to = ep_buf_reserve(w->out, 2);

    from = to;
    *to = ',';
    to += w->comma;
    *to++ = '"';
    (void)ep_buf_extend(w->out, (size_t)(to - from));
    while (p < end) {
        size_t n = (size_t)(end - p) < PIECE ? (size_t)(end - p) : PIECE;
        const char *stop = p + n;

        from = ep_buf_reserve(w->out, WORST * n + WORD);
        to = put_piece(from, p, &stop, end);
        (void)ep_buf_extend(w->out, (size_t)(to - from));
        p = stop;
    }
    to = ep_buf_extend(w->out, c ? 2 : 1);
    *to++ = '"';
    if (c)
        *to = c;
}

void ep_jw_key_bytes(struct ep_jw *w, struct ep_span key)
{
    string(w, key, ':');
    w->comma = false;
}

void ep_jw_key(struct ep_jw *w, const char *key)
{
    ep_jw_key_bytes(w, (struct ep_span){key, strlen(key)});
}

void ep_jw_bytes(struct ep_jw *w, struct ep_span str)
{
    string(w, str, 0);
    w->comma = true;
}

void ep_jw_string(struct ep_jw *w, const char *str)
{
    ep_jw_bytes(w, (struct ep_span){str, strlen(str)});
}

void ep_jw_double(struct ep_jw *w, double x)
{
    char text[EP_FP_MAX];
    size_t n;

    if (!isfinite(x)) {
        ep_jw_null(w);
        return;
    }
    n = ep_fp_print(x, text);
    value(w, text, n);
}

void ep_jw_int(struct ep_jw *w, int64_t x)
{
    char text[EP_FP_MAX];
    size_t n = ep_fp_print_int(x, text);

    value(w, text, n);
}

void ep_jw_uint(struct ep_jw *w, uint64_t x)
{
    char text[EP_FP_MAX];
    size_t at = sizeof text;

    do {
        text[--at] = (char)('0' + x % 10);
        x /= 10;
    } while (x > 0);
    value(w, text + at, sizeof text - at);
}

void ep_jw_bool(struct ep_jw *w, bool x)
{
    if (x)
        value(w, "true", 4);
    else
        value(w, "false", 5);
}

void ep_jw_null(struct ep_jw *w)
{
    value(w, "null", 4);
}

void ep_jw_raw(struct ep_jw *w, struct ep_span json)
{
    value(w, json.ptr, json.len);
}

void ep_jw_key_string(struct ep_jw *w, const char *key, const char *str)
{
    ep_jw_key(w, key);
    ep_jw_string(w, str);
}

void ep_jw_key_double(struct ep_jw *w, const char *key, double x)
{
    if (!isfinite(x))
        return;
    ep_jw_key(w, key);
    ep_jw_double(w, x);
}

void ep_jw_key_int(struct ep_jw *w, const char *key, int64_t x)
{
    ep_jw_key(w, key);
    ep_jw_int(w, x);
}

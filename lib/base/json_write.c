/* SPDX-License-Identifier: Apache-2.0 */
/* json_write.c - see json_write.h. */
#include "config.h"

#include "base/json_write.h"

#include "base/fp.h"
#include "base/utf8.h"

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

/*
 * Eight bytes at once: is none of them below 0x20, '"', '\\' or beyond ASCII?
 * (A byte that is zero after an exclusive or borrows from its highest bit.)
 */
static bool all_plain(const char *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
    uint64_t x, quote, slash;

    memcpy(&x, p, 8);
    quote = x ^ ones * '"';
    slash = x ^ ones * '\\';
    return !((x | (x - ones * 0x20) | (quote - ones) | (slash - ones)) & high);
}

/* How many bytes from p on can be written as they are. */
static size_t plain_run(const char *p, size_t n)
{
    size_t i = 0;

    while (n - i >= 8 && all_plain(p + i))
        i += 8;

    while (i < n) {
        unsigned char c = (unsigned char)p[i];
        int len = 1;

        if (c < 0x20 || c == '"' || c == '\\')
            break;
        if (c >= 0x80) {
            len = ep_utf8_len(p + i, n - i);
            if (len <= 0)
                break;
        }
        i += (size_t)len;
    }
    return i;
}

/* Write a byte that cannot be written as it is. */
static void escape(struct ep_buf *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    char text[6] = {'\\', 'u', '0', '0', '0', '0'};

    if (c >= 0x80) {
        ep_buf_add(out, "\xef\xbf\xbd", 3);
        return;
    }
    for (size_t i = 0; i + 1 < sizeof letters; i += 2) {
        if ((unsigned char)letters[i] == c) {
            text[1] = letters[i + 1];
            ep_buf_add(out, text, 2);
            return;
        }
    }
    text[4] = hex[c >> 4];
    text[5] = hex[c & 15];
    ep_buf_add(out, text, 6);
}

/* Write the string that s becomes, quotes and all, and c behind it if not 0. */
static void string(struct ep_jw *w, struct ep_span s, char c)
{
    size_t n = plain_run(s.ptr, s.len);
    char *p = ep_buf_extend(w->out, n + w->comma + 1);

    *p = ',';
    p += w->comma;
    *p++ = '"';
    if (n)
        memcpy(p, s.ptr, n);
    while (n < s.len) {
        size_t more;

        escape(w->out, (unsigned char)s.ptr[n++]);
        more = plain_run(s.ptr + n, s.len - n);
        ep_buf_add(w->out, s.ptr + n, more);
        n += more;
    }
    p = ep_buf_extend(w->out, c ? 2 : 1);
    *p++ = '"';
    if (c)
        *p = c;
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_string.c - strings of the JSON scanner that are not plain ASCII:
 * checking them, and decoding their escapes.
 */
#include "config.h"

#include "base/json_impl.h"
#include "base/utf8.h"

/* Value of a hexadecimal digit, or -1. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits that are known to be there. */
static uint32_t hex4(const char *p)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++)
        v = v << 4 | (uint32_t)hex_digit(p[i]);
    return v;
}

/* Pass over four hexadecimal digits; NULL if they are not all there. */
static const char *check_hex4(struct ep_json *j, const char *p)
{
    for (int i = 0; i < 4; i++, p++)
        if (p == j->end || hex_digit(*p) < 0)
            return ep_json_expected(j, p, "a hexadecimal digit");
    return p;
}

/*
 * Pass over what follows a \u escape of a high surrogate, which must be an
 * escape of a low one (RFC 8259, section 7). esc is the first backslash.
 */
static const char *check_low(struct ep_json *j, const char *esc, const char *p)
{
    static const char next[] = "\\u";
    uint32_t low;

    for (int i = 0; i < 2; i++, p++) {
        if (p == j->end)
            return ep_json_expected(j, p, "a low surrogate");
        if (*p != next[i])
            return ep_json_fail(j, esc, EP_EFORMAT, "lone high surrogate");
    }
    p = check_hex4(j, p);
    if (!p)
        return NULL;
    low = hex4(p - 4);
    if (low < 0xdc00 || low > 0xdfff)
        return ep_json_fail(j, esc, EP_EFORMAT, "lone high surrogate");
    return p;
}

/* Pass over the escape at p. */
static const char *check_escape(struct ep_json *j, const char *p)
{
    const char *esc = p++;
    uint32_t cp;

    if (p == j->end)
        return ep_json_expected(j, p, "an escape");
    switch (*p++) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p;
    case 'u':
        break;
    default:
        return ep_json_expected(j, p - 1, "an escape");
    }
    p = check_hex4(j, p);
    if (!p)
        return NULL;
    cp = hex4(p - 4);
    if (cp >= 0xd800 && cp <= 0xdbff)
        return check_low(j, esc, p);
    if (cp >= 0xdc00 && cp <= 0xdfff)
        return ep_json_fail(j, esc, EP_EFORMAT, "lone low surrogate");
    return p;
}

/* Pass over characters above U+007F. */
static const char *check_utf8(struct ep_json *j, const char *p)
{
    do {
        int len = ep_utf8_len(p, (size_t)(j->end - p));

        if (len == EP_UTF8_CUT)
            return ep_json_fail(j, j->end, EP_ETRUNC,
                                "text ends inside a character");
        if (len == 0)
            return ep_json_fail(j, p, EP_EFORMAT, "invalid UTF-8 in string");
        p += len;
    } while (p < j->end && (unsigned char)*p >= 0x80);
    return p;
}

const char *ep_json_string_rest(struct ep_json *j, const char *p, bool *escaped)
{
    for (;;) {
        if (p == j->end)
            return ep_json_expected(j, p, "the end of a string");
        if (*p == '"')
            return p;
        if (*p == '\\') {
            *escaped = true;
            p = check_escape(j, p);
        } else if ((unsigned char)*p >= 0x80) {
            p = check_utf8(j, p);
        } else {
            return ep_json_fail(j, p, EP_EFORMAT,
                                "control character in string");
        }
        if (!p)
            return NULL;
        p = plain_end(j->start, p, j->end);
    }
}

/* Decode the escape at p (after its backslash); *n bytes go to out. */
static const char *decode_escape(const char *p, char out[4], int *n)
{
    uint32_t cp;

    *n = 1;
    switch (*p++) {
    case 'b':
        out[0] = '\b';
        return p;
    case 'f':
        out[0] = '\f';
        return p;
    case 'n':
        out[0] = '\n';
        return p;
    case 'r':
        out[0] = '\r';
        return p;
    case 't':
        out[0] = '\t';
        return p;
    case 'u':
        cp = hex4(p);
        p += 4;
        if (cp >= 0xd800 && cp <= 0xdbff) {
            cp = 0x10000 + ((cp - 0xd800) << 10) + (hex4(p + 2) - 0xdc00);
            p += 6;
        }
        *n = ep_utf8_encode(cp, out);
        return p;
    default:
        out[0] = p[-1];
        return p;
    }
}

void ep_json_unescape(const struct ep_json_value *v, struct ep_buf *out)
{
    const char *p = v->raw.ptr, *end = p + v->raw.len;

    if (!v->escaped) {
        ep_buf_add(out, p, v->raw.len);
        return;
    }
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        char bytes[4];
        int n;

        ep_buf_add(out, p, (size_t)((slash ? slash : end) - p));
        if (!slash)
            break;
        p = decode_escape(slash + 1, bytes, &n);
        ep_buf_add(out, bytes, (size_t)n);
    }
}

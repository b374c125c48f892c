/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - see err.h. */
#include "config.h"

#include "base/err.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void EP_PRINTF(3, 0)
    vset(struct ep_error *e, int code, const char *fmt, va_list ap)
{
    e->code = code;
    e->sys_errno = 0;
    if (vsnprintf(e->msg, sizeof e->msg, fmt, ap) < 0)
        e->msg[0] = '\0';
}

int ep_error_set(struct ep_error *e, int code, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return code;
    va_start(ap, fmt);
    vset(e, code, fmt, ap);
    va_end(ap);
    return code;
}

int ep_error_sys(struct ep_error *e, int errnum, const char *fmt, ...)
{
    va_list ap;
    size_t n;

    if (!e)
        return EP_ESYS;
    va_start(ap, fmt);
    vset(e, EP_ESYS, fmt, ap);
    va_end(ap);
    e->sys_errno = errnum;
    n = strlen(e->msg);
    (void)snprintf(e->msg + n, sizeof e->msg - n, ": %s", strerror(errnum));
    return EP_ESYS;
}

int ep_error_prefix(struct ep_error *e, const char *fmt, ...)
{
    char old[sizeof e->msg];
    va_list ap;
    size_t n;

    if (!e)
        return 0;
    memcpy(old, e->msg, sizeof old);
    va_start(ap, fmt);
    if (vsnprintf(e->msg, sizeof e->msg, fmt, ap) < 0)
        e->msg[0] = '\0';
    va_end(ap);
    n = strlen(e->msg);
    (void)snprintf(e->msg + n, sizeof e->msg - n, ": %s", old);
    return e->code;
}

/*
 * Is the whole character of len bytes to be shown as it is? Not controls, nor
 * what is invisible or turns text round: U+200E, U+200F, U+2028 to U+202E,
 * U+2066 to U+2069, U+FEFF.
 */
static bool is_plain(const unsigned char *s, size_t len)
{
    switch (len) {
    case 0:
        return false;
    case 1:
        return s[0] >= 0x20 && s[0] != 0x7f && s[0] != '\\';
    case 2:
        return s[0] != 0xc2 || s[1] >= 0xa0;
    case 3:
        if (s[0] == 0xe2 && s[1] == 0x80)
            return s[2] != 0x8e && s[2] != 0x8f && (s[2] < 0xa8 || s[2] > 0xae);
        if (s[0] == 0xe2 && s[1] == 0x81)
            return s[2] < 0xa6 || s[2] > 0xa9;
        return s[0] != 0xef || s[1] != 0xbb || s[2] != 0xbf;
    default:
        return true;
    }
}

const char *ep_escape(char *dst, size_t cap, const char *src, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *s = (const unsigned char *)src;
    size_t room = cap - 4, at = 0;

    for (size_t i = 0; i < n;) {
        int got = ep_utf8_len(src + i, n - i);
        size_t len = got > 0 ? (size_t)got : 0;
        bool plain = is_plain(s + i, len);

        if (at + (plain ? len : 4) > room) {
            memcpy(dst + at, "...", 3);
            at += 3;
            break;
        }
        if (plain) {
            memcpy(dst + at, s + i, len);
            at += len;
            i += len;
        } else {
            dst[at++] = '\\';
            dst[at++] = 'x';
            dst[at++] = hex[s[i] >> 4];
            dst[at++] = hex[s[i] & 15];
            i++;
        }
    }
    dst[at] = '\0';
    return dst;
}

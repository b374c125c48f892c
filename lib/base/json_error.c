/* SPDX-License-Identifier: Apache-2.0 */
/* json_error.c - the messages of the JSON scanner; kept off the hot path. */
#include "config.h"

#include "base/json_impl.h"
#include "base/utf8.h"

/*
 * The scanner leaves all levels, so that ep_json_next() finds the failure
 * where it looks when there is no level, and needs no check of its own.
 */
static void stop(struct ep_json *j, const char *at, int code)
{
    j->failed = code;
    j->p = at;
    j->depth = 0;
    j->pending = false;
    j->separator = EP_JSON_NO_SEPARATOR;
}

const char *ep_json_fail(struct ep_json *j, const char *at, int code,
                         const char *what)
{
    stop(j, at, code);
    ep_error_set(j->err, code, "byte %zu: %s", ep_json_offset(j), what);
    return NULL;
}

const char *ep_json_expected(struct ep_json *j, const char *at,
                             const char *what)
{
    char shown[24];
    int len;

    if (at == j->end) {
        stop(j, at, EP_ETRUNC);
        ep_error_set(j->err, EP_ETRUNC, "byte %zu: text ends, expected %s",
                     ep_json_offset(j), what);
        return NULL;
    }
    /* A character is shown whole, so that "é" is not half of one. */
    len = ep_utf8_len(at, (size_t)(j->end - at));
    stop(j, at, EP_EFORMAT);
    ep_error_set(j->err, EP_EFORMAT, "byte %zu: expected %s, found '%s'",
                 ep_json_offset(j), what,
                 ep_escape(shown, sizeof shown, at, len > 0 ? (size_t)len : 1));
    return NULL;
}

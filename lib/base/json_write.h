/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.h - write JSON to the end of a buffer.
 *
 * The writer puts the commas; the caller pairs begin with end, and keys with
 * values in objects: nothing checks that. What goes out has no white space,
 * and is ASCII and UTF-8 that any reader accepts.
 *
 *     struct ep_jw w;
 *
 *     ep_jw_init(&w, &buf);
 *     ep_jw_begin_object(&w);
 *     ep_jw_key_string(&w, "type", "step");
 *     ep_jw_key_double(&w, "dur", dur);
 *     ep_jw_end_object(&w);
 *     ep_jw_newline(&w);
 *
 * Numbers that are not finite do not exist in JSON. A record leaves out what
 * is not known, so ep_jw_key_double() writes no member for them; where a value
 * has to stand (ep_jw_double(), an element of an array), it is null.
 *
 * Strings may hold any bytes. '"', '\\' and those below 0x20 are escaped; each
 * byte that is no part of well-formed UTF-8 becomes U+FFFD.
 *
 * Nothing here fails; memory grows as needed. Cost: O(bytes written).
 */
#ifndef EP_BASE_JSON_WRITE_H
#define EP_BASE_JSON_WRITE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct ep_jw {
    struct ep_buf *out; /* borrowed */
    bool comma;         /* the next key or value needs one before it */
};

void ep_jw_init(struct ep_jw *w, struct ep_buf *out);

void ep_jw_begin_object(struct ep_jw *w);
void ep_jw_end_object(struct ep_jw *w);
void ep_jw_begin_array(struct ep_jw *w);
void ep_jw_end_array(struct ep_jw *w);

/* End a line: the next value is another text (JSON Lines). */
void ep_jw_newline(struct ep_jw *w);

/* The key of the next value. Escaped like a string. */
void ep_jw_key(struct ep_jw *w, const char *key);
void ep_jw_key_bytes(struct ep_jw *w, struct ep_span key);

/* A value: an element, the value after a key, or the root. */
void ep_jw_string(struct ep_jw *w, const char *str);
void ep_jw_bytes(struct ep_jw *w, struct ep_span str);
void ep_jw_double(struct ep_jw *w, double x); /* shortest that reads back */
void ep_jw_int(struct ep_jw *w, int64_t x);
void ep_jw_uint(struct ep_jw *w, uint64_t x);
void ep_jw_bool(struct ep_jw *w, bool x);
void ep_jw_null(struct ep_jw *w);

/*
 * For callers that write for themselves: s as a JSON string, with its quotes,
 * at to, where EP_JW_STRING_MAX(s.len) bytes can be written (some of them are,
 * behind what counts). Returns its end.
 */
#define EP_JW_STRING_MAX(len) (6 * (size_t)(len) + 32)
char *ep_jw_put_string(char *to, struct ep_span s);

/* A value that is JSON already, e.g. raw of a scanned number or container. */
void ep_jw_raw(struct ep_jw *w, struct ep_span json);

/* A member. ep_jw_key_double() writes none if x is not finite. */
void ep_jw_key_string(struct ep_jw *w, const char *key, const char *str);
void ep_jw_key_double(struct ep_jw *w, const char *key, double x);
void ep_jw_key_int(struct ep_jw *w, const char *key, int64_t x);

#endif

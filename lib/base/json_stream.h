/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_stream.h - the elements of one large array inside a JSON text, one by
 * one, from a text that arrives in pieces and may be of any size.
 *
 * The text is an array, or an object of which one member is that array:
 *
 *     [ element, element, ... ]
 *     { "schemaVersion": 1, "traceEvents": [ element, ... ], "traceName": "" }
 *
 * The other members of the object are offered too, in the order in which they
 * come; what comes behind the array is known only when the array is over.
 *
 * The window holds one element or member at a time and grows to the largest.
 * Elements are not looked for first: the caller pulls from a scanner that runs
 * over the window (json.h), and if the window ends too early more is read and
 * the caller pulls the same element again. So a byte is looked at once, and
 * the caller must be able to begin an element again: assign, do not count.
 *
 *     while ((what = ep_json_stream_next(s, &key, &j, &v, err)) > 0) {
 *         rc = take(&j, &v);
 *         rc = ep_json_stream_done(s, &j, rc, err);
 *         if (rc == EP_JSON_STREAM_AGAIN)
 *             continue;
 *         ...
 *     }
 *
 * A broken element costs that element. Where it ends is then found by its
 * brackets, of which one that fits nothing closes what is open, and by its
 * quotes, of which none reaches over the end of a line. Accepted beyond RFC
 * 8259, since trace writers do it: a comma before a closing bracket, and (if
 * asked for) no closing bracket at the end of a text that is an array. An
 * element that the caller does not want to see to its end is passed over by its
 * brackets alone, and not checked.
 */
#ifndef EP_BASE_JSON_STREAM_H
#define EP_BASE_JSON_STREAM_H

#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Largest element or member, unless config says otherwise. */
#define EP_JSON_STREAM_MAX ((size_t)16 << 20)

struct ep_json_stream; /* opaque */

struct ep_json_stream_config {
    const char *array; /* key of the array's member; borrowed */
    bool open_end;     /* an array as the whole text may lack its ']' */
    size_t window;     /* bytes to begin with; 0: 256 KiB */
    size_t max;        /* bytes of the largest element; 0: as above */

    /*
     * As ep_input_read: bytes read, 0 at the end, or a negative error, which
     * is final and passed on as it is. Not called again after 0 or an error.
     */
    long (*read)(void *ctx, void *dst, size_t cap, struct ep_error *err);
    void *ctx;
};

/* What ep_json_stream_next() found. */
#define EP_JSON_STREAM_ELEMENT 1
#define EP_JSON_STREAM_MEMBER 2

/* What ep_json_stream_done() says beside 0 and errors. */
#define EP_JSON_STREAM_AGAIN 1

/* Never NULL; config is copied. */
struct ep_json_stream *
ep_json_stream_new(const struct ep_json_stream_config *config);
void ep_json_stream_free(struct ep_json_stream *s); /* NULL allowed */

/*
 * Begin the next element or member: *j is a scanner that has just returned its
 * value *v (ep_json_begin()); *key is the member's. All three, and the strings
 * pulled from *j, are views of the window: good until the next call of this
 * function, or of ep_json_stream_done() if that returns AGAIN or an error.
 *
 * Returns ELEMENT or MEMBER, 0 at the end of the text, or an error:
 *   EP_EFORMAT  an element that is none, or no comma where one should be; as
 *               bare reason, ep_json_stream_offset() says where. Goes on,
 *               unless the text is neither array nor object, or goes on behind
 *               its end: then ep_json_stream_over() is true
 *   EP_ELIMIT   an element larger than max was passed over; goes on
 *   EP_ETRUNC   the text ends too early: final
 *   other       from read(): final
 */
int ep_json_stream_next(struct ep_json_stream *s, struct ep_json_value *key,
                        struct ep_json *j, struct ep_json_value *v,
                        struct ep_error *err) EP_MUST_USE;

/*
 * Finish what ep_json_stream_next() began. rc is what became of it: 0 or more
 * if the caller has what it wants (it need not have pulled everything), the
 * scanner's error, or an error of the caller's own, with its reason in *err.
 *
 * Returns 0; AGAIN if the window ended before the element: the next
 * ep_json_stream_next() begins the same element with more text; or an error as
 * ep_json_stream_next(), rc itself included if it was the caller's own.
 */
int ep_json_stream_done(struct ep_json_stream *s, struct ep_json *j, int rc,
                        struct ep_error *err) EP_MUST_USE;

/* Bytes from 0 of the element last begun, or after an error of its place. */
uint64_t ep_json_stream_offset(const struct ep_json_stream *s);

/* Was the last 0 or error final? */
bool ep_json_stream_over(const struct ep_json_stream *s);

/* Is the whole text the array, with no members round it? Known once an
 * element was begun. */
bool ep_json_stream_bare(const struct ep_json_stream *s);

#endif

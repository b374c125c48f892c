/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_shape.h - JSON objects that look like the one before.
 *
 * What a program writes in a loop differs in its values, hardly ever in its
 * keys, their order, its brackets and white space. So the text between the
 * values of one object is remembered when it was read with the scanner of
 * json.h, and the next object is compared with it: where all of that is equal,
 * only the values are read, which are checked as the scanner would. Where
 * something is not, the scanner reads it as ever. (That structure can be
 * guessed is the idea of Li et al., "Mison: a fast JSON parser for data
 * analytics", VLDB 10(10), 2017.)
 *
 *     if (!ep_json_shape_match(&shape, &j)) {
 *         ep_json_shape_begin(&shape);
 *         ... ep_json_next(&j, &key, &v) ...
 *             ep_json_shape_note(&shape, &slot[i] or NULL, &v);
 *         ep_json_shape_end(&shape, &j);
 *     }
 */
#ifndef EP_BASE_JSON_SHAPE_H
#define EP_BASE_JSON_SHAPE_H

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EP_JSON_SHAPE_VALUES = 24, EP_JSON_SHAPE_TEXT = 1024 };

/* A value and the text before it. */
struct ep_json_shape_part {
    struct ep_json_value *to; /* NULL: nobody asked for it */
    const char *noted;        /* while it is learnt: where the value begins */
    size_t noted_len;
    unsigned at, len; /* of the text before it, in text[] */
    bool string;
};

/* Private: use the functions. All zero to begin with; nothing to be freed. */
struct ep_json_shape {
    int n; /* parts, the last one without a value; 0: nothing was learnt */
    int noted;
    bool learning;
    struct ep_json_shape_part part[EP_JSON_SHAPE_VALUES + 1];
    char text[EP_JSON_SHAPE_TEXT + 16];
};

/*
 * j has just begun a text whose root is an object, with at least 32 bytes of
 * padding behind it (ep_json_begin_padded()). If the object is of the shape,
 * all values that were noted with a place are written there, as ep_json_next()
 * would have given them, the object is passed, and true is returned. Otherwise
 * the scanner is as before, but places may have been written.
 * Cost: one pass, about half of the scanner's.
 */
bool ep_json_shape_match(const struct ep_json_shape *s, struct ep_json *j);

/* An object is about to be read; what was learnt before is forgotten. */
void ep_json_shape_begin(struct ep_json_shape *s);

/*
 * Note a value just pulled: every one of the object, in order, at all levels.
 * to is where later ones go, NULL if nobody wants them; it must stay. Objects
 * and arrays that are entered need not be noted; one that is not makes the
 * shape unusable, as does a wanted value that is neither string nor number.
 */
void ep_json_shape_note(struct ep_json_shape *s, struct ep_json_value *to,
                        const struct ep_json_value *v);

/* The object was read to its end, and is still there. */
void ep_json_shape_end(struct ep_json_shape *s, const struct ep_json *j);

#endif

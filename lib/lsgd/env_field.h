/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_field.h - objects of a configuration in JSON, strictly; private to env.c.
 *
 * An object is read in two steps: ep_fields_take() checks its keys against a
 * table and keeps where each value is; then the values are read, in any order.
 * The text as a whole has passed the scanner before.
 *
 * Errors: "line L, column C (byte N): KEY: reason", L and C from 1, C in
 * characters, N from 0.
 */
#ifndef EP_LSGD_ENV_FIELD_H
#define EP_LSGD_ENV_FIELD_H

#include "base/json.h"

/* The text, which everything else points into, and where errors go. */
struct ep_fields {
    const char *text;
    struct ep_error *err; /* may be NULL */
};

/* A value; of an array or object all of its text. */
struct ep_part {
    struct ep_json_value v;
    struct ep_span whole;
};

/* A key of an object and, if have is set, its value. */
struct ep_field {
    const char *name;
    bool optional;
    bool have;
    struct ep_part part;
};

/* Which numbers are allowed below. */
enum ep_least { EP_FROM_ZERO, EP_ABOVE_ZERO };

/* Error at a place in the text. Returns code. */
int ep_fields_fail(const struct ep_fields *p, const char *at, int code,
                   const char *name, const char *reason);

/* Put the line and column of a place before the message. Returns code. */
int ep_fields_place(const struct ep_fields *p, const char *at, int code);

/* Read the members of an object: each key is one of f[n], at most once; all
   that are not optional are there. name is for messages. */
int ep_fields_take(const struct ep_fields *p, const struct ep_part *part,
                   const char *name, struct ep_field *f, size_t n) EP_MUST_USE;

/* Complete a part whose v was just returned by the scanner. */
int ep_part_whole(struct ep_json *j, struct ep_part *part) EP_MUST_USE;

/* Elements of an array: begin, then next until it is not 1. */
int ep_array_begin(const struct ep_fields *p, const struct ep_part *part,
                   const char *name, struct ep_json *j) EP_MUST_USE;
int ep_array_next(struct ep_json *j, struct ep_part *part) EP_MUST_USE;

/* A finite number, at most hi. *out is unchanged after an error. */
int ep_part_number(const struct ep_fields *p, const struct ep_part *part,
                   const char *name, enum ep_least least, double hi,
                   double *out) EP_MUST_USE;

/* Values of fields; *out is unchanged if the field is absent. */
int ep_field_number(const struct ep_fields *p, const struct ep_field *f,
                    enum ep_least least, double hi, double *out) EP_MUST_USE;
int ep_field_integer(const struct ep_fields *p, const struct ep_field *f,
                     int64_t lo, int64_t hi, uint64_t *out) EP_MUST_USE;
int ep_field_boolean(const struct ep_fields *p, const struct ep_field *f,
                     bool *out) EP_MUST_USE;

#endif

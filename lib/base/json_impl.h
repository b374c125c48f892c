/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_impl.h - what the files of the JSON scanner share; private to them.
 */
#ifndef EP_BASE_JSON_IMPL_H
#define EP_BASE_JSON_IMPL_H

#include "base/json.h"

#include "base/word.h"

/*
 * Values of separator in struct ep_json: the byte at p that begins the next
 * member, which is '{' for the first one and ',' later. What is not a member of
 * an object has values that no byte has, so that one comparison tells all.
 */
#define EP_JSON_NO_SEPARATOR (-1) /* outside, or a container is pending */
#define EP_JSON_IN_ARRAY 256      /* + '[' or ',' */

#define EP_JSON_WINDOW 32 /* bytes that ep_json_next() looks at together */

/* Record "byte N: what" at the byte at; returns NULL. json_error.c */
EP_COLD const char *ep_json_fail(struct ep_json *j, const char *at, int code,
                                 const char *what);

/*
 * Record that something else was expected at the byte at: EP_ETRUNC if the
 * text ends there, else EP_EFORMAT. Returns NULL. json_error.c
 */
EP_COLD const char *ep_json_expected(struct ep_json *j, const char *at,
                                     const char *what);

/*
 * Go on with a string at p, which is a byte that is not plain or the end of
 * the text. Returns the place of the closing quote, or NULL. json_string.c
 */
const char *ep_json_string_rest(struct ep_json *j, const char *p,
                                bool *escaped);

/* ep_json_next() for every case. json.c */
int ep_json_next_general(struct ep_json *j, struct ep_json_value *key,
                         struct ep_json_value *v);

/* Has the machine what the fastest ep_json_next() needs? json_next.c */
bool ep_json_have_wide(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - a set of strings, numbered 0, 1, 2, ... in order of arrival.
 *
 * The way from a name (host, job, device) to an index into an array.
 */
#ifndef EP_BASE_INTERN_H
#define EP_BASE_INTERN_H

#include "base/buf.h"

#include <stddef.h>

struct ep_intern; /* opaque */

struct ep_intern *ep_intern_new(void);
void ep_intern_free(struct ep_intern *t); /* NULL allowed */

/*
 * The number of s (copied when it is new), or -1 when s is new and the set
 * already holds max strings. Cost: O(len) expected.
 */
long ep_intern_add(struct ep_intern *t, struct ep_span s, size_t max);

/* The string of a number that ep_intern_add gave; lives as long as t. */
const char *ep_intern_name(const struct ep_intern *t, size_t i);

/* The same, with its length: NULs within are part of it. */
struct ep_span ep_intern_span(const struct ep_intern *t, size_t i);

size_t ep_intern_count(const struct ep_intern *t);

#endif

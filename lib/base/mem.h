/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - allocation that cannot fail.
 *
 * Running out of memory is the one error that ends the program at once
 * (message on stderr, exit status 2). A size that came from input must be
 * checked against a cap before it gets here.
 */
#ifndef EP_BASE_MEM_H
#define EP_BASE_MEM_H

#include <stddef.h>

/* n * size bytes, zeroed; free with free(). Overflow of n * size is fatal. */
void *ep_calloc(size_t n, size_t size);

/* Resize to n * size bytes; new bytes are not initialised. */
void *ep_realloc(void *p, size_t n, size_t size);

/* A terminated copy of n bytes (of s); free with free(). */
char *ep_strndup(const char *s, size_t n);
char *ep_strdup(const char *s);

/*
 * Grow an array so that it holds at least want elements: doubles, so that
 * appending is O(1) amortised. *cap is the number of elements allocated.
 * New elements are not initialised.
 *
 *     v = ep_grow(v, &cap, n + 1, sizeof *v);
 */
void *ep_grow(void *p, size_t *cap, size_t want, size_t size);

#endif

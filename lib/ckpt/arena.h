/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory that is given back all at once; private to lib/ckpt.
 *
 * The names and shapes of a header: many, small, of one life. What was handed
 * out never moves.
 */
#ifndef EP_CKPT_ARENA_H
#define EP_CKPT_ARENA_H

#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>

struct ep_arena_chunk;

struct ep_arena {
    struct ep_arena_chunk *chunk; /* the newest; all-zero is empty */
};

void ep_arena_free(struct ep_arena *a);

/* n bytes, not initialised, never NULL; align is a power of two, at most 8. */
void *ep_arena_alloc(struct ep_arena *a, size_t n, size_t align);

/* A copy of the decoded text of a STRING or key, terminated. */
struct ep_span ep_arena_text(struct ep_arena *a, const struct ep_json_value *v);

/* Is the decoded text of a STRING or key that one? */
bool ep_arena_text_is(const struct ep_json_value *v, const char *want);

/*
 * Order of names: by bytes, a beginning before what goes on. < 0, 0, > 0.
 */
int ep_span_order(struct ep_span a, struct ep_span b);

#endif

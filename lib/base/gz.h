/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gz.h - inflate a gzip stream piece by piece; the one user of zlib.
 *
 * Internal to input.c: programs open everything through input.h.
 */
#ifndef EP_BASE_GZ_H
#define EP_BASE_GZ_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct ep_gz; /* opaque */

/* NULL with EP_EMISSING in a build without zlib. Free with ep_gz_free. */
struct ep_gz *ep_gz_new(struct ep_error *err) EP_MUST_USE;
void ep_gz_free(struct ep_gz *gz); /* NULL is allowed */

/* Begin again with the first byte of a stream, whatever was inflated. */
void ep_gz_restart(struct ep_gz *gz);

/*
 * Inflate from src (*nsrc bytes; on return the number used) into dst (*ndst
 * bytes of room; on return the number written). Returns 0, or EP_EFORMAT for
 * damage; what was inflated before the damage has been written to dst then.
 * Zero bytes after the last member are padding and are passed over.
 */
int ep_gz_step(struct ep_gz *gz, const void *src, size_t *nsrc, void *dst,
               size_t *ndst, struct ep_error *err) EP_MUST_USE;

/* May the stream end here, i.e. is it between two members? */
bool ep_gz_whole(const struct ep_gz *gz);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h - read ahead on a second thread.
 *
 * A slow source of bytes (inflating) runs a few blocks ahead of the one who
 * uses them (scanning), so that the slower of the two sets the pace and not
 * their sum.
 */
#ifndef EP_BASE_AHEAD_H
#define EP_BASE_AHEAD_H

#include "base/err.h"

#include <stddef.h>
#include <sys/types.h>

struct ep_ahead; /* opaque */

/*
 * Start a thread that calls read(ctx, ...), which has the contract of
 * ep_input_read and must not block for long, until it returns 0 or an error.
 * NULL if no thread is to be had: then call read yourself.
 * Memory: 4 blocks of 128 KiB.
 */
struct ep_ahead *ep_ahead_start(ssize_t (*read)(void *ctx, void *dst,
                                                size_t cap,
                                                struct ep_error *err),
                                void *ctx);

/* The next bytes: as ep_input_read. */
ssize_t ep_ahead_read(struct ep_ahead *a, void *dst, size_t cap,
                      struct ep_error *err) EP_MUST_USE;

/* Stop the thread, wait for it, free. NULL allowed. */
void ep_ahead_stop(struct ep_ahead *a);

#endif

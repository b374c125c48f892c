/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - bytes from a file, standard input or a gzip form of either.
 *
 * Gzip (RFC 1952) is recognised by its first two bytes, whatever the name;
 * several members one after the other read as one stream. Damage is an error
 * that names the offset in the compressed file, and comes after all bytes
 * that were inflated before it have been delivered.
 */
#ifndef EP_BASE_INPUT_H
#define EP_BASE_INPUT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ep_input; /* opaque */

/*
 * Open path for reading; "-" is standard input. Returns NULL on error
 * (EP_ESYS; a directory is EISDIR): "cannot open PATH: reason". path is
 * copied. Close with ep_input_close.
 */
struct ep_input *ep_input_open(const char *path,
                               struct ep_error *err) EP_MUST_USE;

/*
 * Read at most cap bytes into dst. Returns their number, 0 at the end of the
 * input, or a negative error: EP_ESYS, EP_ETRUNC (compressed data end in the
 * middle), EP_EFORMAT (damaged), EP_EMISSING (compressed, and this build has
 * no zlib). An error is final. Blocks until there is at least one byte.
 */
ssize_t ep_input_read(struct ep_input *in, void *dst, size_t cap,
                      struct ep_error *err) EP_MUST_USE;

/*
 * Look at the first bytes (inflated) without taking them: *head becomes a view
 * of what one read(2) brought (of a pipe: perhaps a few bytes only), at most
 * 64 KiB, borrowed until the next call on in. Returns their number, 0 if the
 * input is empty, or an error as ep_input_read. Only before the first read.
 */
ssize_t ep_input_peek(struct ep_input *in, const char **head,
                      struct ep_error *err) EP_MUST_USE;

/*
 * From now on never wait: a read returns EP_EAGAIN (no message) where it would
 * have to, and at the end of a regular file that is not compressed, which may
 * grow. When such a file is replaced under its name (as logrotate does), reading
 * goes on in the new one, behind a '\n' if the old one ended without; when it
 * gets shorter, from its beginning. Call it before the first read.
 */
void ep_input_follow(struct ep_input *in);

/*
 * Call fn(ctx) whenever a read is about to wait for data that are not there
 * yet. Programs flush their output then: a pipeline is as prompt as its
 * input and as fast as its buffers.
 */
void ep_input_on_wait(struct ep_input *in, void (*fn)(void *ctx), void *ctx);

/*
 * How far: bytes read of the file as it is stored, and its size. False if the
 * input is no regular file.
 */
bool ep_input_progress(const struct ep_input *in, uint64_t *done,
                       uint64_t *total);

/* The name for messages: the path, or "stdin". Borrowed until closed. */
const char *ep_input_name(const struct ep_input *in);

void ep_input_close(struct ep_input *in); /* NULL is allowed */

#endif

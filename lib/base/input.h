/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - bytes from a file, standard input, a URL, or a gzip form of them.
 *
 * Gzip (RFC 1952) is recognised by its first two bytes, whatever the name;
 * several members one after the other read as one stream. Damage is an error
 * that names the offset in the compressed file, and comes after all bytes
 * that were inflated before it have been delivered.
 *
 * A byte order mark of UTF-8 at the very beginning is passed over.
 *
 * There may be more inputs than descriptors: a regular file has one only while
 * it is read, see base/fdpool.h. If it is replaced or cut meanwhile, that is
 * an error.
 */
#ifndef EP_BASE_INPUT_H
#define EP_BASE_INPUT_H

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ep_input; /* opaque */
struct ep_url_limits;

/*
 * Open path for reading; "-" is standard input, and what begins with http://
 * or https:// a URL (base/url.h), whose transfer begins at once while this
 * returns. Returns NULL on error (EP_ESYS; a directory is EISDIR): "cannot open
 * PATH: reason", or as ep_url_start. path is copied. Close with
 * ep_input_close.
 */
struct ep_input *ep_input_open(const char *path,
                               struct ep_error *err) EP_MUST_USE;

/* As above; a URL within these limits (NULL: those of ep_url_start). */
struct ep_input *ep_input_open_within(const char *path,
                                      const struct ep_url_limits *limits,
                                      struct ep_error *err) EP_MUST_USE;

/*
 * Read at most cap bytes into dst. Returns their number, 0 at the end of the
 * input, or a negative error: EP_ESYS, EP_ETRUNC (compressed data end in the
 * middle), EP_EFORMAT (damaged), EP_EMISSING (compressed, and this build has
 * no zlib), or as ep_url_read. An error is final. Blocks until there is at
 * least one byte.
 */
ssize_t ep_input_read(struct ep_input *in, void *dst, size_t cap,
                      struct ep_error *err) EP_MUST_USE;

/*
 * Look at the first bytes (inflated) without taking them: *head becomes a view
 * of what one read(2) brought (of a pipe: perhaps a few bytes only), at most
 * 64 KiB, borrowed until the next call on in. Returns their number, 0 if the
 * input is empty, or an error as ep_input_read. Only before the first read (or
 * the first after ep_input_rewind).
 */
ssize_t ep_input_peek(struct ep_input *in, const char **head,
                      struct ep_error *err) EP_MUST_USE;

/*
 * One of many inputs: whoever reads it does so in pieces of about that many
 * bytes (default: 256 KiB, see ep_input_buffer), and it inflates on the
 * reader's thread. Call it before the first read.
 */
void ep_input_small(struct ep_input *in, size_t bytes);
size_t ep_input_buffer(const struct ep_input *in);

/*
 * After ep_input_peek: forget what was read if it can be read again, that is
 * of a regular file. It holds no buffer then until it is read; of gzip the
 * state of inflating, 40 KiB.
 */
void ep_input_rewind(struct ep_input *in);

/* Would a read of a URL wait at present? False for other inputs. */
bool ep_input_would_wait(struct ep_input *in);

/*
 * From now on never wait: a read returns EP_EAGAIN (no message) where it would
 * have to, and at the end of a regular file that is not compressed, which may
 * grow. When such a file is replaced under its name (as logrotate does), reading
 * goes on in the new one, behind a '\n' if the old one ended without; when it
 * gets shorter, from its beginning. Such an input keeps its descriptor. Call
 * it before the first read. EP_EUSAGE for a URL.
 */
int ep_input_follow(struct ep_input *in, struct ep_error *err) EP_MUST_USE;

/*
 * Call fn(ctx) whenever a read is about to wait for data that are not there
 * yet, and (not of a URL) again after each second for which it has waited.
 * Programs flush their output then: a pipeline is as prompt as its input and as
 * fast as its buffers. fn may not use in.
 */
void ep_input_on_wait(struct ep_input *in, void (*fn)(void *ctx), void *ctx);

/*
 * Where a read waits, and the hook is called, *stop is looked at: once it is
 * true the input is at its end. A signal handler sets it.
 */
void ep_input_stop(struct ep_input *in, const volatile sig_atomic_t *stop);

/*
 * How far: bytes read of the file as it is stored, and its size. False if the
 * input is no regular file.
 */
bool ep_input_progress(const struct ep_input *in, uint64_t *done,
                       uint64_t *total);

/* The name for messages: the path, "stdin", or a URL without its password.
   Borrowed until closed. */
const char *ep_input_name(const struct ep_input *in);

void ep_input_close(struct ep_input *in); /* NULL is allowed */

#endif

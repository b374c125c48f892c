/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statefile.h - what a program knows, from one of its runs to the next.
 *
 * One run at a time: PATH.lock is locked with flock(2), which the kernel takes
 * off whatever way the program ends, so that there are no stale locks (a file
 * made with O_EXCL would stay behind a kill). PATH itself cannot be what is
 * locked, as each write replaces it. The empty PATH.lock stays: removed, two
 * runs could hold locks of two files of that name.
 */
#ifndef EP_BASE_STATEFILE_H
#define EP_BASE_STATEFILE_H

#include "base/buf.h"
#include "base/err.h"

struct ep_statefile; /* opaque */

/*
 * Lock. NULL: "cannot lock PATH: another PROGRAM holds it" (EP_EAGAIN), or what
 * the system says (EP_ESYS). Close with ep_statefile_close.
 */
struct ep_statefile *ep_statefile_open(const char *path, const char *program,
                                       struct ep_error *err) EP_MUST_USE;
void ep_statefile_close(struct ep_statefile *s); /* NULL allowed */

/*
 * All bytes into an empty buffer: 1, 0 if there is no such file, or EP_ESYS,
 * EP_ELIMIT (above 16 GiB, or no regular file): "cannot read state PATH: reason".
 */
int ep_statefile_read(struct ep_statefile *s, struct ep_buf *into,
                      struct ep_error *err) EP_MUST_USE;

/*
 * Replace it, as outfile.h does: readers see the old or the new one, and after
 * an error the old one. EP_ESYS: "cannot keep the state: cannot write PATH: reason".
 */
int ep_statefile_write(struct ep_statefile *s, struct ep_span bytes,
                       struct ep_error *err) EP_MUST_USE;

#endif

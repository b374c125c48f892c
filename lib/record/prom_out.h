/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prom_out.h - where Prometheus metrics go: a file for node_exporter's textfile
 * collector, which is replaced whole, over and over, or a pipe, once.
 *
 * A file is written under another name in its folder (which does not end in
 * .prom, so that the collector passes it over) and renamed, see outfile.h;
 * everybody may read it, whatever the umask: the collector runs as another
 * user. When it is written:
 *
 *     the input has nothing to say, and there is something new     at once, or
 *                                          1 s after it was written last
 *     the input goes on and on                                     every 15 s
 *     at the end                                                   always
 *
 * If writing takes long (a million series), ten times as long has to pass
 * before the next: a tenth of the time at most is spent on it.
 *
 * While the program waits for input a thread keeps the promise of the first
 * line. It alone touches anything then; ep_prom_out_add takes it back.
 *
 * Standard output and what is no regular file is written once, at the end.
 */
#ifndef EP_RECORD_PROM_OUT_H
#define EP_RECORD_PROM_OUT_H

#include "base/err.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

struct ep_prom_out; /* opaque */

/*
 * path    as ep_outfile_open has it: NULL or "-" is standard output. Borrowed.
 * complain is called (on any thread, one at a time) when the file cannot be
 *         written; what was there stays, and the next time is as good as any.
 *         Once, until it has succeeded again. And once when there is no room
 *         for more series.
 * Errors: NULL with EP_ESYS, as ep_outfile_open: nothing is left to find out at
 *         the end.
 */
struct ep_prom_out *
ep_prom_out_open(const char *path,
                 void (*complain)(void *ctx, const struct ep_error *err),
                 void *ctx, struct ep_error *err) EP_MUST_USE;

/* Feed a record (ep_prom_add), and write if it is time. */
void ep_prom_out_add(struct ep_prom_out *o, const struct ep_record *r);

/* The program is about to wait: call nothing but ep_prom_out_back next. */
void ep_prom_out_wait(struct ep_prom_out *o);

/* It waits no more. The other functions do it themselves. */
void ep_prom_out_back(struct ep_prom_out *o);

/* Records that found no room, see ep_prom_refused. */
uint64_t ep_prom_out_refused(struct ep_prom_out *o);

/* Is what is written standard output? */
bool ep_prom_out_is_stdout(const struct ep_prom_out *o);

/*
 * Write a last time, and free o. keep false: do not, as after an error; a file
 * stays as it was written last. Returns 0 or EP_ESYS "cannot write PATH: reason".
 */
int ep_prom_out_close(struct ep_prom_out *o, bool keep,
                      struct ep_error *err) EP_MUST_USE;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - a whole regular file, read-only, in memory (mmap).
 *
 * Pages come from the page cache and cost no memory of the process. If the
 * file gets shorter while it is mapped, a load from the lost part raises
 * SIGBUS: ep_map_guard makes that an orderly end.
 */
#ifndef EP_BASE_MAP_H
#define EP_BASE_MAP_H

#include "base/err.h"

#include <stddef.h>

struct ep_map {
    const unsigned char *data; /* NULL if the file is empty */
    size_t len;
};

/*
 * Map path. Errors: EP_ESYS "cannot open PATH: reason"; EP_EFORMAT "cannot
 * open PATH: not a regular file". Close with ep_map_close. Nothing of *m is
 * valid after an error; no file descriptor stays open.
 */
int ep_map_open(struct ep_map *m, const char *path,
                struct ep_error *err) EP_MUST_USE;

void ep_map_close(struct ep_map *m); /* an all-zero *m is allowed */

/*
 * For programs: from now on, a load from a mapped file that lost its end, or
 * that its disk cannot deliver, prints "program: cannot read PATH: it became
 * shorter while it was read, or its disk failed" and ends the process with
 * status 2. Other bus errors do what they did. program is borrowed for ever.
 */
void ep_map_guard(const char *program);

#endif

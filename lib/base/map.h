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

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

struct ep_map {
    const unsigned char *data; /* NULL if the file is empty */
    size_t len;
    /* what the file was when it was mapped; stays after ep_map_close */
    dev_t dev;
    ino_t ino;
    struct timespec mtime;
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
 * Is the file that was mapped still there at path, with another size or time of
 * change of its data? False if there is another file or none: what is mapped
 * is whole then, as it was. A change is not seen if the clock of the file
 * system did not move in between (a few ms).
 */
bool ep_map_changed(const struct ep_map *m, const char *path);

/* Is the file at path, whose links are followed, the one that was mapped? */
bool ep_map_is(const struct ep_map *m, const char *path);

/*
 * For programs: from now on, a load from a mapped file that lost its end, or
 * that its disk cannot deliver, prints "program: cannot read PATH: it became
 * shorter while it was read, or its disk failed" and ends the process with
 * status 2. Other bus errors do what they did. program is borrowed for ever.
 */
void ep_map_guard(const char *program);

#endif

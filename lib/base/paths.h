/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h - the files that a command line means: folders become the files
 * below them.
 */
#ifndef EP_BASE_PATHS_H
#define EP_BASE_PATHS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct ep_path {
    char *path; /* owned */
    bool found; /* in a folder: nobody asked for this very file */
};

struct ep_paths {
    struct ep_path *v; /* [n], owned */
    size_t n, cap;
};

/*
 * Append the files that path means to *p (all-zero at first): itself, or if it
 * is a folder all regular files below it, sorted by name folder by folder;
 * hidden ones (".name") are left out, links are followed. A file that is below
 * it under several names is there once, under one that is no link if there is
 * one. A folder without files adds nothing. EP_ESYS "cannot read PATH: reason" if a folder below
 * cannot be read; what was found until then is in *p.
 */
int ep_paths_add(struct ep_paths *p, const char *path,
                 struct ep_error *err) EP_MUST_USE;

void ep_paths_free(struct ep_paths *p);

#endif

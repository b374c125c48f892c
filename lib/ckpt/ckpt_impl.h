/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_impl.h - what ckpt.c and ckpt_find.c share. */
#ifndef EP_CKPT_CKPT_IMPL_H
#define EP_CKPT_CKPT_IMPL_H

#include "base/err.h"

#include <stdbool.h>

/*
 * Which file to read for a path (see ckpt.h): *found, freed by the caller, and
 * whether it is an index. Errors: EP_ESYS "cannot open PATH: reason",
 * EP_EFORMAT "cannot read PATH: reason"; *found is then NULL.
 */
int ep_ckpt_locate(const char *path, char **found, bool *index,
                   struct ep_error *err) EP_MUST_USE;

/* Path of a file in the folder that path is in; freed by the caller. */
char *ep_ckpt_beside(const char *path, const char *name);

/*
 * Put "cannot read PATH: " before the message of *err. The reason is what
 * counts: a path that leaves too little room for it loses its beginning.
 * Returns code.
 */
int ep_ckpt_cannot_read(struct ep_error *err, int code, const char *path);

#endif

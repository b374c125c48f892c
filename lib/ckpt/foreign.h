/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - what a file is that is no safetensors file, where it is known;
 * private to lib/ckpt.
 *
 * A pickle is a program for a stack machine that may call anything: it is
 * recognised by its first bytes and refused, never interpreted. The messages
 * say how to convert it, in one line that can be run.
 */
#ifndef EP_CKPT_FOREIGN_H
#define EP_CKPT_FOREIGN_H

#include <stddef.h>

/*
 * The reason to refuse a file that does not look like safetensors
 * (ep_st_plausible), with the remedy; NULL if it is nothing that is known.
 *
 * file    [len] the first bytes, 32 are enough
 */
const char *ep_ckpt_foreign(const void *file, size_t len);

/* The reason to refuse a folder of PyTorch's distributed checkpoints. */
const char *ep_ckpt_foreign_folder(void);

#endif

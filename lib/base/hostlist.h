/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostlist.h - host lists as Slurm writes them, anywhere in a string.
 *
 *     http://n[01-03,7]:9400/metrics   n01, n02, n03 and n7, each in the URL
 *     r[1-2]n[1-2]                     r1n1 r1n2 r2n1 r2n2
 *
 * A list is '[' item {',' item} ']', an item a number or LOW-HIGH. A number is
 * written with at least as many digits as LOW has, so that 08-10 is 08 09 10;
 * HIGH's own zeros count for nothing. Names that occur twice stay twice. This
 * is what `scontrol show hostnames` of Slurm 22.05 prints, with these
 * differences: text may follow a list (Slurm refuses it), several lists are a
 * cross product with the leftmost the slowest (Slurm's order with three or
 * more is its own), a comma outside of brackets is text, and what Slurm lets
 * pass ("1-", "+1", blanks, no ']') is refused. Brackets with a ':' in them
 * are an IPv6 address and text like any other.
 */
#ifndef EP_BASE_HOSTLIST_H
#define EP_BASE_HOSTLIST_H

#include "base/err.h"

#include <stddef.h>

#define EP_HOSTLIST_NAMES 100000             /* of one string    */
#define EP_HOSTLIST_BYTES ((size_t)64 << 20) /* of all its names */

struct ep_hostlist {
    char **v; /* [n], owned, as are the strings */
    size_t n, cap;
};

/*
 * Append what s stands for to *h (all-zero at first): s itself if there is no
 * list in it. Errors, with which *h stays as it was: "cannot expand S: reason",
 * EP_EFORMAT with the offset of the byte (from 0) where the list goes wrong,
 * EP_ELIMIT for more than EP_HOSTLIST_NAMES names or EP_HOSTLIST_BYTES bytes.
 * Cost: linear in what comes out.
 */
int ep_hostlist_expand(struct ep_hostlist *h, const char *s,
                       struct ep_error *err) EP_MUST_USE;

void ep_hostlist_free(struct ep_hostlist *h);

#endif

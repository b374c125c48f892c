/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - a name of a rank's communicator as 64 bits, for calls.c and comms.c:
 * eight bytes at a time, since each call has one. Not for hostile names: two of
 * one hash are taken for one.
 */
#ifndef EP_DETECT_HASH_H
#define EP_DETECT_HASH_H

#include "base/buf.h"

#include <stdint.h>
#include <string.h>

/* One more word. */
static inline uint64_t ep_hash_mix(uint64_t h, uint64_t w)
{
    h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

/* Cost: O(len / 8). */
static inline uint64_t ep_hash_span(struct ep_span s)
{
    uint64_t h = s.len, w;
    size_t i = 0;

    for (; i + 8 <= s.len; i += 8) {
        memcpy(&w, s.ptr + i, 8);
        h = ep_hash_mix(h, w);
    }
    for (w = 0; i < s.len; i++)
        w = w << 8 | (unsigned char)s.ptr[i];
    return ep_hash_mix(h, w);
}

#endif

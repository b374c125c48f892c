/* SPDX-License-Identifier: Apache-2.0 */
/* untouched.h - did a call that failed write anything? */
#ifndef EP_UNTOUCHED_H
#define EP_UNTOUCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Fill what must not be written with this, by memset. */
#define UNTOUCHED 0x5a

static inline bool untouched(const void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)p)[i] != UNTOUCHED)
            return false;
    return true;
}

/* Equal to a copy that was made with memcpy before. */
static inline bool same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

#endif

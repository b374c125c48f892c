/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - see mem.h. */
#include "config.h"

#include "base/mem.h"

#include "base/err.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static EP_NORETURN void out_of_memory(size_t n, size_t size)
{
    (void)fprintf(stderr, "%s: cannot allocate %zu x %zu bytes: no memory\n",
                  program_invocation_short_name, n, size);
    exit(2);
}

void *ep_calloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);

    if (!p)
        out_of_memory(n, size);
    return p;
}

void *ep_realloc(void *p, size_t n, size_t size)
{
    void *q;

    if (size && n > SIZE_MAX / size)
        out_of_memory(n, size);
    q = realloc(p, n && size ? n * size : 1);
    if (!q)
        out_of_memory(n, size);
    return q;
}

char *ep_strndup(const char *s, size_t n)
{
    char *p = ep_realloc(NULL, n + 1, 1);

    if (n)
        memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *ep_strdup(const char *s)
{
    return ep_strndup(s, strlen(s));
}

void *ep_grow(void *p, size_t *cap, size_t want, size_t size)
{
    size_t n = *cap;

    if (want <= n)
        return p;
    n = n > SIZE_MAX / 2 ? want : n * 2;
    if (n < want)
        n = want;
    if (n < 8)
        n = 8;
    p = ep_realloc(p, n, size);
    *cap = n;
    return p;
}

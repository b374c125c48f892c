/* SPDX-License-Identifier: Apache-2.0 */
/* gz.c - see gz.h. */
#include "config.h"

#include "base/gz.h"

#include "base/mem.h"

#include <stdlib.h>

#ifdef HAVE_ZLIB

#include <string.h>
#include <zlib.h>

enum state {
    MEMBER,  /* inside a member */
    BETWEEN, /* after a whole member */
    PADDING, /* zero bytes after the last member */
};

struct ep_gz {
    z_stream z;
    enum state state;
};

struct ep_gz *ep_gz_new(struct ep_error *err)
{
    struct ep_gz *gz = ep_calloc(1, sizeof *gz);
    int rc = inflateInit2(&gz->z, 15 + 16);

    if (rc != Z_OK) {
        (void)ep_error_set(err, EP_ELIMIT, "zlib cannot start (%s)",
                           zError(rc));
        free(gz);
        return NULL;
    }
    return gz;
}

void ep_gz_free(struct ep_gz *gz)
{
    if (!gz)
        return;
    (void)inflateEnd(&gz->z);
    free(gz);
}

void ep_gz_restart(struct ep_gz *gz)
{
    (void)inflateReset(&gz->z);
    gz->state = MEMBER;
}

bool ep_gz_whole(const struct ep_gz *gz)
{
    return gz->state != MEMBER;
}

/* After a member: decide by the next byte. Returns 1 to go on inflating. */
static int next_member(struct ep_gz *gz, struct ep_error *err)
{
    while (gz->z.avail_in && !*gz->z.next_in) {
        gz->z.next_in++;
        gz->z.avail_in--;
        gz->state = PADDING;
    }
    if (!gz->z.avail_in)
        return 0;
    if (gz->state == PADDING || *gz->z.next_in != 0x1f)
        return ep_error_set(err, EP_EFORMAT,
                            "bytes after the end of the compressed data");
    (void)inflateReset(&gz->z);
    gz->state = MEMBER;
    return 1;
}

int ep_gz_step(struct ep_gz *gz, const void *src, size_t *nsrc, void *dst,
               size_t *ndst, struct ep_error *err)
{
    z_stream *z = &gz->z;
    int rc = 0;

    z->next_in = (z_const Bytef *)src;
    z->avail_in = (uInt)*nsrc;
    z->next_out = dst;
    z->avail_out = (uInt)*ndst;
    for (;;) {
        if (gz->state != MEMBER) {
            rc = next_member(gz, err);
            if (rc <= 0)
                break;
        }
        rc = inflate(z, Z_NO_FLUSH);
        if (rc == Z_STREAM_END) {
            gz->state = BETWEEN;
            continue;
        }
        if (rc == Z_OK && z->avail_in && z->avail_out)
            continue;
        if (rc == Z_OK || rc == Z_BUF_ERROR)
            rc = 0;
        else
            rc = ep_error_set(err, EP_EFORMAT, "damaged compressed data (%s)",
                              z->msg ? z->msg : zError(rc));
        break;
    }
    *nsrc -= z->avail_in;
    *ndst -= z->avail_out;
    return rc;
}

#else /* !HAVE_ZLIB */

struct ep_gz *ep_gz_new(struct ep_error *err)
{
    (void)ep_error_set(err, EP_EMISSING,
                       "compressed with gzip, and built without zlib");
    return NULL;
}

void ep_gz_free(struct ep_gz *gz)
{
    (void)gz;
}

void ep_gz_restart(struct ep_gz *gz)
{
    (void)gz;
}

bool ep_gz_whole(const struct ep_gz *gz)
{
    (void)gz;
    return true;
}

int ep_gz_step(struct ep_gz *gz, const void *src, size_t *nsrc, void *dst,
               size_t *ndst, struct ep_error *err)
{
    (void)gz;
    (void)src;
    (void)dst;
    *nsrc = 0;
    *ndst = 0;
    return ep_error_set(err, EP_EMISSING, "built without zlib");
}

#endif

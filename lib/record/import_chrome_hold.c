/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_chrome_hold.c - a queue of records that have to wait; see
 * import_chrome.h. First all are added, then all are taken: so the file is
 * written from one end to the other, and then read so. What was added last
 * never leaves memory.
 */
#include "config.h"

#include "record/import_chrome.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES ((size_t)8 << 20)
#define READ_BYTES ((size_t)64 << 10)

struct ep_chrome_hold {
    size_t item;      /* bytes of one */
    char *block;      /* the last ones added */
    size_t cap, len;  /* of block, in bytes */
    size_t most;      /* of block: a multiple of item */
    int fd;           /* the first ones; -1 without */
    uint64_t written; /* bytes in the file */
    char *front;      /* what was read of the file */
    size_t front_at, front_len;
    bool taking;
    size_t at; /* of block, when the file is read */
};

struct ep_chrome_hold *ep_chrome_hold_new(size_t item_bytes)
{
    struct ep_chrome_hold *h = ep_calloc(1, sizeof *h);

    h->item = item_bytes;
    h->most = BLOCK_BYTES / item_bytes * item_bytes;
    h->fd = -1;
    return h;
}

void ep_chrome_hold_free(struct ep_chrome_hold *h)
{
    if (!h)
        return;
    if (h->fd >= 0)
        (void)close(h->fd);
    free(h->block);
    free(h->front);
    free(h);
}

static const char *folder(void)
{
    const char *dir = getenv("TMPDIR");

    return dir && *dir ? dir : "/tmp";
}

static int complain(struct ep_error *err, const char *verb)
{
    int errnum = errno;
    char shown[128];

    return ep_error_sys(
        err, errnum, "cannot %s a file in %s", verb,
        ep_escape(shown, sizeof shown, folder(), strlen(folder())));
}

/* A file that has no name, or loses it at once. */
static int open_file(struct ep_chrome_hold *h, struct ep_error *err)
{
    char path[4096];
    int n;

#ifdef O_TMPFILE
    h->fd = open(folder(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (h->fd >= 0)
        return 0;
#endif
    n = snprintf(path, sizeof path, "%s/evenpace-XXXXXX", folder());
    errno = ENAMETOOLONG;
    if (n < 0 || (size_t)n >= sizeof path)
        return complain(err, "create");
    h->fd = mkostemp(path, O_CLOEXEC);
    if (h->fd < 0)
        return complain(err, "create");
    (void)unlink(path);
    return 0;
}

static int write_block(struct ep_chrome_hold *h, struct ep_error *err)
{
    size_t done = 0;

    if (h->fd < 0) {
        int rc = open_file(h, err);

        if (rc < 0)
            return rc;
    }
    while (done < h->len) {
        ssize_t n = write(h->fd, h->block + done, h->len - done);

        if (n < 0 && errno != EINTR)
            return complain(err, "write to");
        done += n > 0 ? (size_t)n : 0;
    }
    h->written += h->len;
    h->len = 0;
    return 0;
}

int ep_chrome_hold_add(struct ep_chrome_hold *h, const void *item,
                       struct ep_error *err)
{
    if (h->len == h->most) {
        int rc = write_block(h, err);

        if (rc < 0)
            return rc;
    }
    if (h->len + h->item > h->cap)
        h->block = ep_grow(h->block, &h->cap, h->len + h->item, 1);
    memcpy(h->block + h->len, item, h->item);
    h->len += h->item;
    return 0;
}

bool ep_chrome_hold_any(const struct ep_chrome_hold *h)
{
    return h->len || h->written;
}

/* Read on in the file, whole items: 1, 0 at its end. */
static int read_front(struct ep_chrome_hold *h, struct ep_error *err)
{
    size_t most = READ_BYTES / h->item * h->item;

    h->front_at = h->front_len = 0;
    if (!h->written)
        return 0;
    if (!h->front)
        h->front = ep_realloc(NULL, most, 1);
    if (most > h->written)
        most = (size_t)h->written;
    while (h->front_len < most) {
        ssize_t n = read(h->fd, h->front + h->front_len, most - h->front_len);

        if (n == 0)
            errno = EIO; /* somebody cut it */
        if (n == 0 || (n < 0 && errno != EINTR))
            return complain(err, "read from");
        h->front_len += n > 0 ? (size_t)n : 0;
    }
    h->written -= h->front_len;
    return 1;
}

int ep_chrome_hold_take(struct ep_chrome_hold *h, void *item,
                        struct ep_error *err)
{
    int rc;

    if (!h->taking && h->fd >= 0 && lseek(h->fd, 0, SEEK_SET) < 0)
        return complain(err, "read from");
    h->taking = true;
    if (h->front_at == h->front_len) {
        rc = read_front(h, err);
        if (rc < 0)
            return rc;
    }
    if (h->front_at < h->front_len) {
        memcpy(item, h->front + h->front_at, h->item);
        h->front_at += h->item;
        return 1;
    }
    if (h->at == h->len)
        return 0;
    memcpy(item, h->block + h->at, h->item);
    h->at += h->item;
    return 1;
}

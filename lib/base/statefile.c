/* SPDX-License-Identifier: Apache-2.0 */
/* statefile.c - see statefile.h. */
#include "config.h"

#include "base/statefile.h"

#include "base/mem.h"
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MAX (INT64_C(16) << 30)

struct ep_statefile {
    char *path;
    char shown[160]; /* for messages */
    int lock;
};

struct ep_statefile *ep_statefile_open(const char *path, const char *program,
                                       struct ep_error *err)
{
    struct ep_statefile *s = ep_calloc(1, sizeof *s);
    struct ep_buf name;

    s->path = ep_strdup(path);
    (void)ep_escape(s->shown, sizeof s->shown, path, strlen(path));
    ep_buf_init(&name);
    ep_buf_addf(&name, "%s.lock", path);
    s->lock = open(name.ptr, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    ep_buf_free(&name);
    if (s->lock >= 0 && flock(s->lock, LOCK_EX | LOCK_NB) == 0)
        return s;
    if (s->lock >= 0 && errno == EWOULDBLOCK)
        (void)ep_error_set(err, EP_EAGAIN,
                           "cannot lock %s: another %s holds it", s->shown,
                           program);
    else
        (void)ep_error_sys(err, errno, "cannot lock %s", s->shown);
    ep_statefile_close(s);
    return NULL;
}

void ep_statefile_close(struct ep_statefile *s)
{
    if (!s)
        return;
    if (s->lock >= 0)
        (void)close(s->lock);
    free(s->path);
    free(s);
}

/* size bytes, or as many as there are if it gets shorter meanwhile. */
static int read_all(struct ep_statefile *s, int fd, size_t size,
                    struct ep_buf *into, struct ep_error *err)
{
    char *p = ep_buf_reserve(into, size);
    size_t have = 0;

    while (have < size) {
        ssize_t n = read(fd, p + have, size - have);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ep_error_sys(err, errno, "cannot read state %s", s->shown);
        if (n == 0)
            break;
        have += (size_t)n;
    }
    (void)ep_buf_extend(into, have);
    return 1;
}

int ep_statefile_read(struct ep_statefile *s, struct ep_buf *into,
                      struct ep_error *err)
{
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) != 0)
        rc = ep_error_sys(err, errno, "cannot read state %s", s->shown);
    else if (!S_ISREG(st.st_mode))
        rc = ep_error_set(err, EP_ELIMIT,
                          "cannot read state %s: it is no regular file",
                          s->shown);
    else if (st.st_size > BYTES_MAX)
        rc = ep_error_set(err, EP_ELIMIT,
                          "cannot read state %s: it is too large", s->shown);
    else
        rc = read_all(s, fd, (size_t)st.st_size, into, err);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

int ep_statefile_write(struct ep_statefile *s, struct ep_span bytes,
                       struct ep_error *err)
{
    struct ep_outfile *out = ep_outfile_open(s->path, err);
    int rc;

    if (out) {
        (void)fwrite(bytes.ptr, 1, bytes.len, ep_outfile_stream(out));
        (void)ep_outfile_ok(out, true);
        rc = ep_outfile_commit(out, err);
    } else {
        rc = EP_ESYS;
    }
    return rc < 0 ? ep_error_prefix(err, "cannot keep the state") : 0;
}

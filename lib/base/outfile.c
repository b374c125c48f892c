/* SPDX-License-Identifier: Apache-2.0 */
/* outfile.c - see outfile.h. */
#include "config.h"

#include "base/outfile.h"

#include "base/mem.h"
#include "base/tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ep_outfile {
    FILE *f;
    struct ep_tempfile temp; /* path is NULL for standard output */
    bool direct;             /* what is there is written, not replaced */
    int errnum;              /* of the first write that failed */
};

struct ep_outfile *ep_outfile_open(const char *path, struct ep_error *err)
{
    struct ep_outfile *out = ep_calloc(1, sizeof *out);
    char shown[200];
    struct stat st;
    int fd = -1;

    if (!path || strcmp(path, "-") == 0) {
        out->f = stdout;
        return out;
    }
    if (ep_tempfile_resolve(&out->temp, path, &st) == 0) {
        out->direct = st.st_mode && !S_ISREG(st.st_mode);
        if (out->direct)
            fd = open(path, O_WRONLY | O_CLOEXEC);
        else
            fd = ep_tempfile_open(&out->temp, st.st_mode
                                                  ? st.st_mode & 07777
                                                  : ep_tempfile_mode(0666));
    }
    if (fd >= 0)
        out->f = fdopen(fd, "w");
    if (!out->f) {
        (void)ep_error_sys(err, errno, "cannot create %s",
                           ep_escape(shown, sizeof shown, path, strlen(path)));
        if (fd >= 0)
            (void)close(fd);
        ep_tempfile_free(&out->temp);
        free(out);
        return NULL;
    }
    return out;
}

FILE *ep_outfile_stream(struct ep_outfile *out)
{
    return out->f;
}

bool ep_outfile_is_whole(const struct ep_outfile *out)
{
    return out->temp.path && !out->direct;
}

bool ep_outfile_ok(struct ep_outfile *out, bool flush)
{
    if (!out->errnum && ferror(out->f))
        out->errnum = errno ? errno : EIO;
    if (!out->errnum && flush && fflush(out->f) != 0)
        out->errnum = errno ? errno : EIO;
    return !out->errnum;
}

/* 0 or an errno value. */
static int finish(struct ep_outfile *out)
{
    bool bad;

    if (!ep_outfile_ok(out, true)) {
        /* it is reported here, and once: nothing is left for others */
        __fpurge(out->f);
        clearerr(out->f);
        return out->errnum;
    }
    if (!out->temp.path)
        return 0;
    if (!out->direct && (fsync(fileno(out->f)) != 0 ||
                         ep_tempfile_name(&out->temp, fileno(out->f)) != 0))
        return errno;
    bad = fclose(out->f) != 0;
    out->f = NULL;
    if (bad)
        return errno;
    if (!out->direct && ep_tempfile_rename(&out->temp) != 0)
        return errno;
    return 0;
}

int ep_outfile_commit(struct ep_outfile *out, struct ep_error *err)
{
    char shown[200] = "standard output";
    int errnum = finish(out);
    int rc = 0;

    if (errnum) {
        if (out->temp.path)
            (void)ep_escape(shown, sizeof shown, out->temp.path,
                            strlen(out->temp.path));
        rc = ep_error_sys(err, errnum, "cannot write %s", shown);
        ep_outfile_abort(out);
        return rc;
    }
    if (out->temp.path && !out->direct)
        ep_tempfile_sync_folder(out->temp.path);
    ep_tempfile_free(&out->temp);
    free(out);
    return 0;
}

void ep_outfile_abort(struct ep_outfile *out)
{
    int errnum = errno;

    if (!out)
        return;
    if (out->temp.path && out->f)
        (void)fclose(out->f);
    ep_tempfile_free(&out->temp);
    free(out);
    errno = errnum;
}

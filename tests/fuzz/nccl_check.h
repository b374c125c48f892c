/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_check.h - any bytes through an importer: what fuzz targets and the unit
 * test of the NCCL importers ask of it. Each record must be one that
 * ep_record_parse takes when it was printed, each error must have a reason, and
 * there must be an end.
 */
#ifndef EP_FUZZ_NCCL_CHECK_H
#define EP_FUZZ_NCCL_CHECK_H

#include "record/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct nccl_check {
    int records, errors;
    char first[256];   /* the reason of the first error */
    struct ep_buf out; /* all records if keep is set; the caller's to free */
    bool keep;
};

static inline void nccl_require(int condition, const char *what)
{
    if (condition)
        return;
    (void)fprintf(stderr, "not so: %s\n", what);
    abort();
}

static inline void nccl_check_record(const struct ep_record *r,
                                     struct nccl_check *c)
{
    static struct ep_record_parser *parser;
    struct ep_record back;
    struct ep_error err;
    size_t from = c->out.len;

    if (!parser)
        parser = ep_record_parser_new();
    ep_record_print(r, &c->out);
    if (ep_record_parse(parser, c->out.ptr + from, c->out.len - from - 1, &back,
                        &err) < 0) {
        (void)fprintf(stderr, "%s: %s", err.msg, c->out.ptr + from);
        abort();
    }
    nccl_require(back.type == r->type, "it is of the same type");
    if (!c->keep)
        ep_buf_reset(&c->out);
}

/* Run n bytes through an importer; c->keep is read, the rest written. */
static inline void nccl_check(const struct ep_importer *from, const void *data,
                              size_t n, struct nccl_check *c)
{
    static const struct timespec written[2] = {{1800000000, 0},
                                               {1800000000, 0}};
    int fd = memfd_create("nccl", MFD_CLOEXEC);
    struct ep_source s;
    struct ep_record r;
    struct ep_error err;
    char path[64];

    c->records = c->errors = 0;
    c->first[0] = '\0';
    ep_buf_init(&c->out);
    nccl_require(fd >= 0 && write(fd, data, n) == (ssize_t)n &&
                     futimens(fd, written) == 0,
                 "memfd");
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)from->sniff(data, n, "name");
    nccl_require(ep_source_open(&s, path, from, NULL, NULL, &err) == 0, "open");
    for (;;) {
        int rc = ep_source_next(&s, &r, &err);

        if (rc == 0)
            break;
        if (rc > 0) {
            c->records++;
            nccl_check_record(&r, c);
            continue;
        }
        nccl_require(err.code < 0 && err.msg[0], "an error has a reason");
        if (!c->errors++)
            (void)snprintf(c->first, sizeof c->first, "%s", err.msg);
        nccl_require((size_t)c->errors <= n + 1, "errors come to an end");
        if (s.over)
            break;
    }
    ep_source_close(&s);
    (void)close(fd);
    if (!c->keep)
        ep_buf_free(&c->out);
}

#endif

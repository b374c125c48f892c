/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_chrome.c - any bytes as a Chrome trace, by both importers: errors with a
 * reason, or records that are records when they are read back. And the elements
 * under it are the same whether the text comes in one piece or in small ones.
 */
#include "config.h"

#include "base/json_stream.h"
#include "base/mem.h"
#include "record/importers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* ---- the elements ---- */

struct pieces {
    const uint8_t *data;
    size_t size, at, piece;
};

static long read_piece(void *ctx, void *dst, size_t cap, struct ep_error *err)
{
    struct pieces *p = ctx;
    size_t n = p->size - p->at;

    (void)err;
    n = n > p->piece ? p->piece : n;
    n = n > cap ? cap : n;
    if (n)
        memcpy(dst, p->data + p->at, n);
    p->at += n;
    return (long)n;
}

/* Some elements are checked to their end, others passed over. */
static int take(struct ep_json *j, const struct ep_json_value *v,
                struct ep_span *raw)
{
    struct ep_json_value key, member;

    if (v->kind != EP_JSON_OBJECT)
        return ep_json_skip(j, raw);
    ep_json_enter(j);
    return ep_json_next(j, &key, &member);
}

/* What comes of the text, step by step. */
static void elements(const uint8_t *data, size_t size, size_t piece,
                     struct ep_buf *out)
{
    struct pieces p = {data, size, 0, piece};
    struct ep_json_stream_config config = {.array = "traceEvents",
                                           .open_end = size & 1,
                                           .window = piece,
                                           .read = read_piece,
                                           .ctx = &p};
    struct ep_json_stream *s = ep_json_stream_new(&config);
    struct ep_json_value key, v;
    struct ep_error err;
    struct ep_json j;

    while (!ep_json_stream_over(s)) {
        struct ep_span raw = {"", 0};
        int what = ep_json_stream_next(s, &key, &j, &v, &err), rc = what;

        if (what > 0) {
            rc = ep_json_stream_done(s, &j, take(&j, &v, &raw), &err);
            if (rc == EP_JSON_STREAM_AGAIN)
                continue;
        }
        require(rc >= 0 || (rc == err.code && err.msg[0]));
        ep_buf_addf(out, "%d %d %zu ", what, rc,
                    (size_t)ep_json_stream_offset(s));
        if (rc == 0)
            ep_buf_add(out, raw.ptr, raw.len);
    }
    ep_json_stream_free(s);
}

/* ---- the importers ---- */

static void import(const char *path, const struct ep_importer *from)
{
    static struct ep_record_parser *parser;
    struct ep_source s;
    struct ep_error err = {.code = 0};
    struct ep_record r, back;
    struct ep_buf first, second;
    int rc;

    if (!parser)
        parser = ep_record_parser_new();
    ep_buf_init(&first);
    ep_buf_init(&second);
    require(ep_source_open(&s, path, from, NULL, NULL, &err) == 0);
    while ((rc = ep_source_next(&s, &r, &err)) > 0 || (rc < 0 && !s.over)) {
        if (rc < 0) {
            require(rc == err.code && err.msg[0]);
            continue;
        }
        ep_buf_reset(&first);
        ep_buf_reset(&second);
        ep_record_print(&r, &first);
        require(ep_record_parse(parser, first.ptr, first.len - 1, &back,
                                &err) == 0);
        ep_record_print(&back, &second);
        require(first.len == second.len &&
                memcmp(first.ptr, second.ptr, first.len) == 0);
    }
    require(rc == 0 || err.msg[0]);
    ep_source_close(&s);
    ep_buf_free(&first);
    ep_buf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ep_buf whole, pieces;
    char path[40];
    int fd;

    ep_buf_init(&whole);
    ep_buf_init(&pieces);
    elements(data, size, size + 1, &whole);
    elements(data, size, 1 + size % 7, &pieces);
    require(whole.len == pieces.len &&
            memcmp(whole.ptr, pieces.ptr, whole.len) == 0);
    ep_buf_free(&whole);
    ep_buf_free(&pieces);

    fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (size < 2 || data[0] != 0x1f) { /* gzip is not what is tested */
        import(path, &ep_import_timeline);
        import(path, &ep_import_kineto);
    }
    (void)close(fd);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - see lines.h. */
#include "config.h"

#include "base/lines.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct ep_lines {
    struct ep_input *in;
    char *buf;
    size_t cap, at, len; /* buf[at..len) is not delivered yet */
    size_t searched;     /* buf[at..searched) holds no '\n' */
    uint64_t number;     /* of the last line delivered */
    uint64_t offset;     /* of buf[at] in the input */
    bool ended;
    bool over;            /* the end, or late, has been reported */
    bool skipping;        /* inside a line that is too long */
    uint64_t skip_offset; /* where that line began */
    struct ep_error late; /* code != 0: to report once buf is empty */
};

struct ep_lines *ep_lines_new(struct ep_input *in)
{
    struct ep_lines *l = ep_calloc(1, sizeof *l);

    l->in = in;
    l->cap = ep_input_buffer(in);
    l->buf = ep_calloc(l->cap + EP_LINE_PAD, 1);
    return l;
}

void ep_lines_free(struct ep_lines *l)
{
    if (!l)
        return;
    ep_input_close(l->in);
    free(l->buf);
    free(l);
}

bool ep_lines_over(const struct ep_lines *l)
{
    return l->over;
}

bool ep_lines_progress(const struct ep_lines *l, uint64_t *done,
                       uint64_t *total)
{
    return ep_input_progress(l->in, done, total);
}

/* Read more behind buf[len]; sets ended or late at the end of the input.
   Returns 0, or EP_EAGAIN. */
static int fill(struct ep_lines *l)
{
    ssize_t n;

    if (l->at) {
        memmove(l->buf, l->buf + l->at, l->len - l->at);
        l->searched -= l->at;
        l->len -= l->at;
        l->at = 0;
    }
    if (l->len == l->cap) {
        l->cap = l->cap * 2 < EP_LINE_MAX ? l->cap * 2 : EP_LINE_MAX + 2;
        l->buf = ep_realloc(l->buf, l->cap + EP_LINE_PAD, 1);
    }
    n = ep_input_read(l->in, l->buf + l->len, l->cap - l->len, &l->late);
    if (n == EP_EAGAIN)
        return EP_EAGAIN;
    if (n > 0)
        l->len += (size_t)n;
    else
        l->ended = true;
    return 0;
}

/* Deliver buf[at..end), and pass over skip bytes of line end. */
static int deliver(struct ep_lines *l, size_t end, size_t skip,
                   struct ep_line *line)
{
    line->ptr = l->buf + l->at;
    line->len = end - l->at;
    line->number = ++l->number;
    line->offset = l->offset;
    line->terminated = skip != 0;
    if (skip && line->len && line->ptr[line->len - 1] == '\r')
        line->len--;
    l->offset += end + skip - l->at;
    l->at = end + skip;
    l->searched = l->at;
    return 1;
}

/* Drop buf[at..end): part of a line that is too long. */
static void drop(struct ep_lines *l, size_t end)
{
    l->offset += end - l->at;
    l->at = end;
    l->searched = end;
}

static int too_long(struct ep_lines *l, uint64_t offset, struct ep_line *line,
                    struct ep_error *err)
{
    l->skipping = false;
    *line = (struct ep_line){.ptr = l->buf,
                             .number = ++l->number,
                             .offset = offset,
                             .terminated = true};
    return ep_error_set(err, EP_ELIMIT, "line is longer than %zu bytes",
                        EP_LINE_MAX);
}

int ep_lines_next(struct ep_lines *l, struct ep_line *line,
                  struct ep_error *err)
{
    for (;;) {
        char *from = l->buf + l->searched;
        char *nl = memchr(from, '\n', l->len - l->searched);
        size_t end = nl ? (size_t)(nl - l->buf) : l->len;
        bool last = !nl && l->ended;

        if (!l->skipping && end - l->at > EP_LINE_MAX) {
            l->skipping = true;
            l->skip_offset = l->offset;
        }
        if (l->skipping) {
            drop(l, nl ? end + 1 : end);
            if (nl || last)
                return too_long(l, l->skip_offset, line, err);
        } else if (nl) {
            return deliver(l, end, 1, line);
        } else if (last && l->at < l->len) {
            return deliver(l, end, 0, line);
        }
        l->searched = l->len;
        if (last) {
            l->over = true;
            if (err && l->late.code)
                *err = l->late;
            return l->late.code;
        }
        if (fill(l) < 0)
            return EP_EAGAIN;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_records.c - evenpace's own records, evenpace-record(5).
 *
 * A job's output comes through its launcher: `srun -l ./job | tlmcat` reads
 * records with labels in front. A line that does not begin with an object is
 * looked at again without what launchers add (record/strip.h).
 */
#include "config.h"

#include "base/mem.h"
#include "record/importers.h"
#include "record/strip.h"

#include <stdlib.h>
#include <string.h>

struct records {
    struct ep_record_parser *parser;
    struct ep_buf scratch; /* a line without its prefixes, if it had to move */
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static const char mark[] = "{\"type\":";

static bool is_ours(struct ep_span text)
{
    return text.len >= sizeof mark - 1 &&
           memcmp(text.ptr, mark, sizeof mark - 1) == 0;
}

/* An object that begins with a type is ours; another one may be. */
static int sniff(const char *head, size_t len, const char *name)
{
    struct ep_buf scratch;
    bool ours = false;

    (void)name;
    ep_buf_init(&scratch);
    for (const char *p = head, *end = head + len; p < end && !ours;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        struct ep_span line = {p, (size_t)((nl ? nl : end) - p)};
        struct ep_strip bare;

        ours = is_ours(line);
        if (!ours && line.len && *line.ptr != '{') {
            ep_strip(line.ptr, line.len, &scratch, &bare);
            ours = is_ours(bare.text);
        }
        p = nl ? nl + 1 : end;
    }
    ep_buf_free(&scratch);
    if (ours)
        return 90;
    while (len && is_space(*head)) {
        head++;
        len--;
    }
    return len && *head == '{' ? 10 : !len;
}

static void *begin(struct ep_source *s)
{
    struct records *self = ep_calloc(1, sizeof *self);

    (void)s;
    self->parser = ep_record_parser_new();
    ep_buf_init(&self->scratch);
    return self;
}

static void end(void *ctx)
{
    struct records *self = ctx;

    ep_record_parser_free(self->parser);
    ep_buf_free(&self->scratch);
    free(self);
}

static bool is_blank(const char *s, size_t len)
{
    size_t i = 0;

    while (i < len && is_space(s[i]))
        i++;
    return i == len;
}

/*
 * Let line begin with its object, if that is behind a launcher's prefix; a
 * label with nothing behind it leaves an empty line. Returns how many bytes
 * behind it may be loaded.
 */
static size_t unwrap(struct records *self, struct ep_line *line)
{
    struct ep_strip bare;

    if (!line->len || *line->ptr == '{')
        return EP_LINE_PAD;
    ep_strip(line->ptr, line->len, &self->scratch, &bare);
    if (!is_blank(bare.text.ptr, bare.text.len) && *bare.text.ptr != '{')
        return EP_LINE_PAD;
    if (bare.text.ptr < line->ptr || bare.text.ptr > line->ptr + line->len) {
        line->ptr = bare.text.ptr;
        line->len = bare.text.len;
        return 0;
    }
    line->offset += (uint64_t)(bare.text.ptr - line->ptr);
    line->ptr = bare.text.ptr;
    line->len = bare.text.len;
    return EP_LINE_PAD;
}

static int next(void *ctx, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct records *self = ctx;
    size_t pad;
    int rc;

    do {
        rc = ep_source_line(s, err);
        if (rc <= 0)
            return rc;
        pad = unwrap(self, &s->line);
    } while (is_blank(s->line.ptr, s->line.len));
    rc = ep_record_parse_padded(self->parser, s->line.ptr, s->line.len, pad, r,
                                err);
    return rc < 0 ? rc : 1;
}

const struct ep_importer ep_import_records = {
    .name = "records",
    .what = "evenpace's own records, JSON Lines",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};

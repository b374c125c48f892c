/* SPDX-License-Identifier: Apache-2.0 */
/* import_records.c - evenpace's own records, evenpace-record(5). */
#include "config.h"

#include "record/importers.h"

#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* An object that begins with a type is ours; another one may be. */
static int sniff(const char *head, size_t len, const char *name)
{
    static const char mark[] = "{\"type\":";
    bool at_start = true;

    (void)name;
    for (size_t i = 0; i < len; i++) {
        if (at_start && len - i >= sizeof mark - 1 &&
            memcmp(head + i, mark, sizeof mark - 1) == 0)
            return 90;
        at_start = head[i] == '\n';
    }
    while (len && is_space(*head)) {
        head++;
        len--;
    }
    return len && *head == '{' ? 10 : !len;
}

static void *begin(struct ep_source *s)
{
    (void)s;
    return ep_record_parser_new();
}

static void end(void *self)
{
    ep_record_parser_free(self);
}

static bool is_blank(const struct ep_line *line)
{
    size_t i = 0;

    while (i < line->len && is_space(line->ptr[i]))
        i++;
    return i == line->len;
}

static int next(void *self, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    int rc;

    do {
        rc = ep_source_line(s, err);
    } while (rc > 0 && is_blank(&s->line));
    if (rc <= 0)
        return rc;
    rc = ep_record_parse_padded(self, s->line.ptr, s->line.len, EP_LINE_PAD, r,
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_pattern.c - any log, line by line, through the patterns that the user
 * gave: see pattern.h. Without patterns it recognises nothing.
 */
#include "config.h"

#include "base/mem.h"
#include "record/importers.h"
#include "record/pattern.h"

#include <stdlib.h>

struct importer {
    const struct ep_patterns *patterns;
    struct ep_pattern_cursor cursor;
    bool in_line; /* there may be more records in it */
};

/* Set once, before inputs are opened. */
static const struct ep_patterns *in_use;

void ep_import_pattern_use(const struct ep_patterns *p)
{
    in_use = p;
}

/* Whatever no other format claims. */
static int sniff(const char *head, size_t len, const char *name)
{
    (void)head;
    (void)len;
    (void)name;
    return in_use && ep_patterns_count(in_use) ? 5 : 0;
}

static void *begin(struct ep_source *s)
{
    struct importer *self = ep_calloc(1, sizeof *self);

    self->patterns = in_use;
    ep_pattern_cursor_init(&self->cursor, s->mtime);
    return self;
}

static void end(void *ctx)
{
    struct importer *self = ctx;

    if (!self)
        return;
    ep_pattern_cursor_free(&self->cursor);
    free(self);
}

static int next(void *ctx, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct importer *self = ctx;
    int rc;

    if (!self->patterns) {
        s->over = true;
        return ep_error_set(err, EP_EUSAGE,
                            "cannot read %s: no pattern was given", s->name);
    }
    for (;;) {
        if (self->in_line) {
            rc = ep_pattern_next(&self->cursor, self->patterns, r, err);
            if (rc)
                return rc;
            self->in_line = false;
        }
        do {
            rc = ep_source_line(s, err);
            if (rc <= 0)
                return rc;
            ep_log_clock_note(&self->cursor.clock, s->line.ptr, s->line.len);
        } while (!ep_pattern_begin(&self->cursor, self->patterns,
                                   (struct ep_span){s->line.ptr, s->line.len}));
        self->in_line = true;
    }
}

const struct ep_importer ep_import_pattern = {
    .name = "pattern",
    .what = "any text, by --pattern and --patterns",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_tally.c - what a stream was made of, for those who ask why something
 * is missing in it: inputs, records and bad lines by format, and bad lines by
 * kind.
 *
 * A kind is the reason without what varies from line to line: numbers become
 * N, and what is in quotes becomes "...". Some reasons quote the input without
 * marks, so there is a cap on kinds, and one more for all that come later.
 */
#include "config.h"

#include "base/mem.h"
#include "record/stream_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ep_stream_tally_init(struct ep_stream *s)
{
    struct tally *t = &s->tally;

    while (ep_importers[t->nformats])
        t->nformats++;
    t->formats = ep_calloc((size_t)t->nformats + 1, sizeof *t->formats);
    for (int i = 0; i < t->nformats; i++)
        t->formats[i].importer = ep_importers[i];
}

void ep_stream_tally_free(struct ep_stream *s)
{
    for (int i = 0; i < s->tally.nreasons; i++) {
        free(s->tally.reasons[i].text);
        free(s->tally.reasons[i].first);
    }
    free(s->tally.formats);
}

struct ep_stream_format *ep_stream_tally_format(struct ep_stream *s,
                                                struct source *src)
{
    if (!src->format && src->in.importer) {
        int i = 0;

        while (i < s->tally.nformats && ep_importers[i] != src->in.importer)
            i++;
        src->format = &s->tally.formats[i];
        src->format->importer = src->in.importer;
        src->format->inputs++;
    }
    return src->format;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Behind the number at p: digits, and what joins them ("1.5e+3", "0x1f"). */
static const char *behind_number(const char *p)
{
    while (is_digit(*p) || (*p == '.' && is_digit(p[1])) ||
           (*p == 'e' && (is_digit(p[1]) ||
                          ((p[1] == '+' || p[1] == '-') && is_digit(p[2])))) ||
           ((*p == '+' || *p == '-') && p[-1] == 'e' && is_digit(p[1])))
        p++;
    return p;
}

/* The reason without what varies; dst has room for as many bytes as it has,
   and 4 for each quote. */
static void generalise(char *dst, const char *reason)
{
    const char *p = reason;

    while (*p) {
        const char *close = *p == '"' ? strchr(p + 1, '"') : NULL;

        if (close) {
            memcpy(dst, "\"...\"", 5);
            dst += 5;
            p = close + 1;
        } else if (is_digit(*p) &&
                   (p == reason || p[-1] == ' ' || p[-1] == '-' ||
                    p[-1] == '(' || p[-1] == ':')) {
            *dst++ = 'N';
            p = behind_number(p);
        } else {
            *dst++ = *p++;
        }
    }
    *dst = '\0';
}

void ep_stream_tally_bad(struct ep_stream *s, const char *place,
                         const char *reason)
{
    struct tally *t = &s->tally;
    char kind[4 * sizeof((struct ep_error *)0)->msg];
    int i = 0;

    generalise(kind, reason);
    while (i < t->nreasons && i < REASONS_MAX &&
           strcmp(t->reasons[i].text, kind) != 0)
        i++;
    if (i == t->nreasons) {
        t->nreasons++;
        t->reasons[i] = (struct ep_stream_reason){
            .text = ep_strdup(i < REASONS_MAX ? kind : "others"),
            .first = ep_strdup(place)};
    }
    t->reasons[i].n++;
}

const struct ep_stream_format *ep_stream_formats(const struct ep_stream *s,
                                                 int *n)
{
    *n = s->tally.nformats + 1;
    return s->tally.formats;
}

const struct ep_stream_reason *ep_stream_reasons(const struct ep_stream *s,
                                                 int *n)
{
    *n = s->tally.nreasons;
    return s->tally.reasons;
}

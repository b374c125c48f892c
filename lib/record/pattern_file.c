/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_file.c - patterns from files and command lines, see pattern.h.
 *
 * A pattern of a file is compiled twice: alone first, to try its samples, and
 * then into the set.
 */
#include "config.h"

#include "base/input.h"
#include "base/lines.h"
#include "base/mem.h"
#include "record/pattern.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 65536 /* of a regular expression or sample */
#define SETS_MAX 16
#define SAMPLES_MAX 64

/* The pattern that is being read. Texts are owned, NULL where not given. */
struct draft {
    char *name, *type, *regex, *after;
    struct ep_pattern_set set[SETS_MAX]; /* owned too */
    size_t nset;
    char *sample[SAMPLES_MAX];
    uint64_t sample_line[SAMPLES_MAX];
    size_t nsamples;
    bool raw;
    uint64_t line; /* where it begins */
};

static void clear(struct draft *d)
{
    free(d->name);
    free(d->type);
    free(d->regex);
    free(d->after);
    for (size_t i = 0; i < d->nset; i++) {
        free((char *)d->set[i].key);
        free((char *)d->set[i].value);
    }
    for (size_t i = 0; i < d->nsamples; i++)
        free(d->sample[i]);
    *d = (struct draft){.name = NULL};
}

static struct ep_pattern_spec spec_of(const struct draft *d)
{
    return (struct ep_pattern_spec){.name = d->name,
                                    .type = d->type,
                                    .regex = d->regex,
                                    .set = d->set,
                                    .nset = d->nset,
                                    .after = d->after,
                                    .raw = d->raw};
}

/* Does each sample give a record? *line becomes where the wrong one is. */
static int try_samples(const struct draft *d, uint64_t *line,
                       struct ep_error *err)
{
    struct ep_patterns *alone = ep_patterns_new();
    struct ep_pattern_spec spec = spec_of(d);
    struct ep_pattern_cursor c;
    struct ep_record r;
    int rc;

    spec.after = NULL;
    ep_pattern_cursor_init(&c, 0);
    rc = ep_patterns_add(alone, &spec, err);
    for (size_t i = 0; i < d->nsamples && rc == 0; i++) {
        struct ep_span sample = {d->sample[i], strlen(d->sample[i])};

        *line = d->sample_line[i];
        if (ep_pattern_begin(&c, alone, sample))
            rc = ep_pattern_next(&c, alone, &r, err);
        if (rc == 0)
            rc =
                ep_error_set(err, EP_EFORMAT,
                             "pattern '%s' does not match its sample", d->name);
        else if (rc > 0)
            rc = 0;
    }
    ep_pattern_cursor_free(&c);
    ep_patterns_free(alone);
    return rc;
}

/* The pattern is whole. */
static int finish(struct ep_patterns *p, struct draft *d, uint64_t *line,
                  struct ep_error *err)
{
    struct ep_pattern_spec spec = spec_of(d);
    int rc = 0;

    if (!d->name)
        return 0;
    *line = d->line;
    if (!d->regex)
        rc =
            ep_error_set(err, EP_EFORMAT, "pattern '%s' has no regex", d->name);
    if (rc == 0)
        rc = try_samples(d, line, err);
    if (rc == 0)
        rc = ep_patterns_add(p, &spec, err);
    clear(d);
    return rc;
}

/* ==== Lines ==== */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next word, which is passed over with the blanks behind it. */
static struct ep_span word(struct ep_span *s)
{
    struct ep_span w = {s->ptr, 0};

    while (w.len < s->len && !is_blank(w.ptr[w.len]))
        w.len++;
    s->ptr += w.len;
    s->len -= w.len;
    while (s->len && is_blank(*s->ptr)) {
        s->ptr++;
        s->len--;
    }
    return w;
}

static char *copy(struct ep_span s)
{
    return ep_strndup(s.ptr, s.len);
}

static int begin_pattern(struct draft *d, struct ep_span rest,
                         struct ep_error *err)
{
    struct ep_span name = word(&rest), type = word(&rest);
    char shown[64];

    if (!name.len || !type.len || rest.len)
        return ep_error_set(err, EP_EFORMAT,
                            "a pattern has a name and a type of record");
    /* it is shown in messages */
    (void)ep_escape(shown, sizeof shown, name.ptr, name.len);
    d->name = ep_strdup(shown);
    d->type = copy(type);
    return 0;
}

static int add_set(struct draft *d, struct ep_span rest, struct ep_error *err)
{
    struct ep_span key = word(&rest);

    if (d->nset == SETS_MAX)
        return ep_error_set(err, EP_ELIMIT, "more than %d set lines", SETS_MAX);
    if (!rest.len)
        return ep_error_set(err, EP_EFORMAT, "set needs a key and a value");
    d->set[d->nset].key = copy(key);
    d->set[d->nset++].value = copy(rest);
    return 0;
}

static int add_sample(struct draft *d, struct ep_span rest, uint64_t number,
                      struct ep_error *err)
{
    if (d->nsamples == SAMPLES_MAX)
        return ep_error_set(err, EP_ELIMIT, "more than %d samples",
                            SAMPLES_MAX);
    d->sample_line[d->nsamples] = number;
    d->sample[d->nsamples++] = copy(rest);
    return 0;
}

/* A text that a pattern has once. */
static int set_text(char **to, struct ep_span keyword, struct ep_span rest,
                    struct ep_error *err)
{
    if (*to)
        return ep_error_set(err, EP_EFORMAT, "a second %.*s", (int)keyword.len,
                            keyword.ptr);
    if (!rest.len)
        return ep_error_set(err, EP_EFORMAT, "%.*s of nothing",
                            (int)keyword.len, keyword.ptr);
    *to = copy(rest);
    return 0;
}

static int take_line(struct ep_patterns *p, struct draft *d,
                     const struct ep_line *l, uint64_t *line,
                     struct ep_error *err)
{
    struct ep_span rest = {l->ptr, l->len}, keyword;
    char shown[40];
    int rc;

    if (l->len > LINE_MAX_BYTES || memchr(l->ptr, '\0', l->len))
        return ep_error_set(err, EP_EFORMAT, "no line of a pattern file");
    while (rest.len && is_blank(*rest.ptr)) {
        rest.ptr++;
        rest.len--;
    }
    if (!rest.len || *rest.ptr == '#')
        return 0;
    keyword = word(&rest);
    if (ep_span_eq(keyword, "pattern")) {
        rc = finish(p, d, line, err);
        *line = rc < 0 ? *line : l->number;
        d->line = l->number;
        return rc < 0 ? rc : begin_pattern(d, rest, err);
    }
    if (!d->name)
        return ep_error_set(err, EP_EFORMAT,
                            "a pattern file begins with \"pattern NAME TYPE\"");
    if (ep_span_eq(keyword, "regex"))
        return set_text(&d->regex, keyword, rest, err);
    if (ep_span_eq(keyword, "after"))
        return set_text(&d->after, keyword, rest, err);
    if (ep_span_eq(keyword, "set"))
        return add_set(d, rest, err);
    if (ep_span_eq(keyword, "sample"))
        return add_sample(d, rest, l->number, err);
    if (ep_span_eq(keyword, "raw") && !rest.len) {
        d->raw = true;
        return 0;
    }
    return ep_error_set(
        err, EP_EFORMAT, "unknown keyword '%s'",
        ep_escape(shown, sizeof shown, keyword.ptr, keyword.len));
}

int ep_patterns_load(struct ep_patterns *p, const char *path,
                     struct ep_error *err)
{
    struct ep_input *in = ep_input_open(path, err);
    struct draft d = {.name = NULL};
    struct ep_lines *lines;
    struct ep_line l;
    uint64_t line = 0;
    int rc;

    if (!in)
        return err ? err->code : EP_ESYS;
    lines = ep_lines_new(in);
    while ((rc = ep_lines_next(lines, &l, err)) > 0) {
        line = l.number;
        rc = take_line(p, &d, &l, &line, err);
        if (rc < 0)
            break;
    }
    if (rc == 0)
        rc = finish(p, &d, &line, err);
    if (rc < 0 && line)
        (void)ep_error_prefix(err, "cannot use %s:%" PRIu64, path, line);
    clear(&d);
    ep_lines_free(lines);
    return rc;
}

/* ==== Command lines ==== */

int ep_patterns_add_text(struct ep_patterns *p, const char *regex,
                         const char *type_of, struct ep_error *err)
{
    struct ep_pattern_set set[SETS_MAX];
    char *text = ep_strdup(type_of ? type_of : "step"), *save = NULL, *part;
    struct ep_pattern_spec spec = {
        .name = regex, .regex = regex, .type = text, .set = set};
    int rc = 0;

    (void)strtok_r(text, ",", &save);
    while (rc == 0 && (part = strtok_r(NULL, ",", &save)) != NULL) {
        char *value = strchr(part, '=');

        if (!value || spec.nset == SETS_MAX) {
            rc = ep_error_set(err, EP_EUSAGE,
                              "cannot use '%s' as type of a pattern: give "
                              "TYPE[,KEY=VALUE...]",
                              type_of);
            break;
        }
        *value++ = '\0';
        set[spec.nset++] = (struct ep_pattern_set){part, value};
    }
    if (rc == 0)
        rc = ep_patterns_add(p, &spec, err);
    free(text);
    return rc;
}

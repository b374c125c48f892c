/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_file.c - patterns from files and command lines, see pattern.h.
 *
 * A pattern of a file is compiled twice: alone first, to try its samples, and
 * then into the set.
 */
#include "config.h"

#include "base/buf.h"
#include "base/input.h"
#include "base/mem.h"
#include "record/pattern.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 65536 /* of a line */
#define SETS_MAX 16
#define SAMPLES_MAX 64
#define SAMPLES_TIME 1.8e9 /* s: for dates without a year */

/* Of a file; line 0: none. Both count from 1. */
struct place {
    uint64_t line;
    size_t column;
};

/* The pattern that is being read. Texts are owned, NULL where not given. */
struct draft {
    char *name, *type, *regex, *after;
    struct ep_pattern_set set[SETS_MAX]; /* owned too */
    size_t nset;
    char *sample[SAMPLES_MAX];
    size_t nsamples;
    enum ep_pattern_bars bars;
    struct place at, regex_at, set_at[SETS_MAX], sample_at[SAMPLES_MAX];
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
                                    .bars = d->bars};
}

/* "\\r" to a carriage return, in place. */
static void with_returns(char *s)
{
    char *to = s;

    for (; *s; s++) {
        bool cr = s[0] == '\\' && s[1] == 'r';

        *to++ = (char)(cr ? '\r' : *s);
        s += cr;
    }
    *to = '\0';
}

/* Where in the file that is. */
static struct place place_of(const struct draft *d,
                             const struct ep_pattern_fault *fault)
{
    struct place place = d->at;

    if (fault->in == EP_FAULT_REGEX) {
        place = d->regex_at;
        place.column += fault->at;
    } else if (fault->in == EP_FAULT_SET) {
        place = d->set_at[fault->at];
    }
    return place;
}

/* Does it compile, and does each sample give a record? *place becomes where
 * not. */
static int try_alone(const struct draft *d, struct place *place,
                     struct ep_error *err)
{
    struct ep_patterns *alone = ep_patterns_new();
    struct ep_pattern_spec spec = spec_of(d);
    struct ep_pattern_fault fault;
    struct ep_pattern_cursor c;
    struct ep_record r;
    int rc;

    spec.after = NULL;
    spec.fault = &fault;
    ep_pattern_cursor_init(&c, SAMPLES_TIME);
    rc = ep_patterns_add(alone, &spec, err);
    if (rc < 0)
        *place = place_of(d, &fault);
    for (size_t i = 0; i < d->nsamples && rc == 0; i++) {
        struct ep_span sample = {d->sample[i], strlen(d->sample[i])};

        *place = d->sample_at[i];
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

/* The pattern is whole: into the set with it. */
static int finish(struct ep_patterns *p, struct draft *d, struct place *place,
                  struct ep_error *err)
{
    struct ep_pattern_spec spec = spec_of(d);
    int rc = 0;

    if (!d->name)
        return 0;
    *place = d->at;
    if (!d->regex)
        rc =
            ep_error_set(err, EP_EFORMAT, "pattern '%s' has no regex", d->name);
    for (size_t i = 0; d->bars != EP_BARS_NONE && i < d->nsamples; i++)
        with_returns(d->sample[i]);
    if (rc == 0)
        rc = try_alone(d, place, err);
    if (rc == 0) {
        *place = d->at;
        rc = ep_patterns_add(p, &spec, err);
    }
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

static int add_set(struct draft *d, struct ep_span rest, struct place at,
                   struct ep_error *err)
{
    struct ep_span key = word(&rest);

    if (d->nset == SETS_MAX)
        return ep_error_set(err, EP_ELIMIT, "more than %d set lines", SETS_MAX);
    if (!rest.len)
        return ep_error_set(err, EP_EFORMAT, "set needs a key and a value");
    d->set_at[d->nset] = at;
    d->set[d->nset].key = copy(key);
    d->set[d->nset++].value = copy(rest);
    return 0;
}

static int add_sample(struct draft *d, struct ep_span rest, struct place at,
                      struct ep_error *err)
{
    if (d->nsamples == SAMPLES_MAX)
        return ep_error_set(err, EP_ELIMIT, "more than %d samples",
                            SAMPLES_MAX);
    d->sample_at[d->nsamples] = at;
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

/* A line about the pattern that was begun; rest is at *at. */
static int take_keyword(struct draft *d, struct ep_span keyword,
                        struct ep_span rest, struct place at,
                        struct ep_error *err)
{
    char shown[40];

    if (ep_span_eq(keyword, "regex")) {
        if (!d->regex)
            d->regex_at = at;
        return set_text(&d->regex, keyword, rest, err);
    }
    if (ep_span_eq(keyword, "after"))
        return set_text(&d->after, keyword, rest, err);
    if (ep_span_eq(keyword, "set"))
        return add_set(d, rest, at, err);
    if (ep_span_eq(keyword, "sample"))
        return add_sample(d, rest, at, err);
    if (ep_span_eq(keyword, "raw")) {
        d->bars = ep_span_eq(rest, "every") ? EP_BARS_EVERY : EP_BARS_LAST;
        if (!rest.len || d->bars == EP_BARS_EVERY)
            return 0;
        return ep_error_set(err, EP_EFORMAT,
                            "raw has nothing or \"every\" behind it");
    }
    return ep_error_set(
        err, EP_EFORMAT, "unknown keyword '%s'",
        ep_escape(shown, sizeof shown, keyword.ptr, keyword.len));
}

/* The next line, number place->line; *place becomes where it is wrong. */
static int take_line(struct ep_patterns *p, struct draft *d,
                     struct ep_span line, struct place *place,
                     struct ep_error *err)
{
    const char *nul = memchr(line.ptr, '\0', line.len);
    struct ep_span rest = line, keyword;
    struct place at = *place;
    int rc;

    while (rest.len && is_blank(*rest.ptr)) {
        rest.ptr++;
        rest.len--;
    }
    place->column = (size_t)((nul ? nul : rest.ptr) - line.ptr) + 1;
    if (line.len > LINE_MAX_BYTES)
        return ep_error_set(err, EP_ELIMIT, "a line of more than %d bytes",
                            LINE_MAX_BYTES);
    if (nul)
        return ep_error_set(err, EP_EFORMAT, "a NUL byte");
    if (!rest.len || *rest.ptr == '#')
        return 0;
    at.column = place->column;
    keyword = word(&rest);
    if (ep_span_eq(keyword, "pattern")) {
        rc = finish(p, d, place, err);
        if (rc < 0)
            return rc;
        *place = d->at = at;
        return begin_pattern(d, rest, err);
    }
    if (!d->name)
        return ep_error_set(err, EP_EFORMAT,
                            "a pattern file begins with \"pattern NAME TYPE\"");
    at.column = (size_t)(rest.ptr - line.ptr) + 1;
    return take_keyword(d, keyword, rest, at, err);
}

/* All lines of the text. */
static int take_lines(struct ep_patterns *p, const struct ep_buf *text,
                      struct place *place, struct ep_error *err)
{
    const char *at = text->ptr, *end = at + text->len;
    struct draft d = {.name = NULL};
    uint64_t number = 0;
    int rc = 0;

    while (at < end && rc == 0) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        struct ep_span line = {at, (size_t)((nl ? nl : end) - at)};

        at = nl ? nl + 1 : end;
        if (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        *place = (struct place){++number, 1};
        rc = take_line(p, &d, line, place, err);
    }
    if (rc == 0)
        rc = finish(p, &d, place, err);
    clear(&d);
    return rc;
}

/* The file into text, unless it is too large. */
static int read_all(const char *path, struct ep_buf *text, struct ep_error *err)
{
    struct ep_input *in = ep_input_open(path, err);
    ssize_t n = 0;

    if (!in)
        return err ? err->code : EP_ESYS;
    while (text->len <= EP_PATTERNS_FILE_MAX) {
        n = ep_input_read(in, ep_buf_reserve(text, 65536), 65536, err);
        if (n <= 0)
            break;
        (void)ep_buf_extend(text, (size_t)n);
    }
    ep_input_close(in);
    if (text->len > EP_PATTERNS_FILE_MAX)
        return ep_error_set(err, EP_ELIMIT,
                            "cannot use %.100s: more than %zu bytes, which no "
                            "file of patterns has",
                            path, EP_PATTERNS_FILE_MAX);
    return (int)n;
}

int ep_patterns_load(struct ep_patterns *p, const char *path,
                     struct ep_error *err)
{
    struct place place = {0, 0};
    struct ep_buf text;
    int rc;

    ep_buf_init(&text);
    rc = read_all(path, &text, err);
    if (rc == 0)
        rc = take_lines(p, &text, &place, err);
    if (rc < 0 && place.line)
        (void)ep_error_prefix(err, "cannot use %.100s:%" PRIu64 ":%zu", path,
                              place.line, place.column);
    ep_buf_free(&text);
    return rc;
}

/* ==== Command lines ==== */

int ep_patterns_add_text(struct ep_patterns *p, const char *regex,
                         const char *type_of, enum ep_pattern_bars bars,
                         struct ep_error *err)
{
    struct ep_pattern_set set[SETS_MAX];
    char *text = ep_strdup(type_of ? type_of : "step"), *save = NULL, *part;
    struct ep_pattern_spec spec = {
        .name = regex, .regex = regex, .type = text, .set = set, .bars = bars};
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

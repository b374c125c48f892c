/* SPDX-License-Identifier: Apache-2.0 */
/* prom_name.c - see prom_name.h. What promtool objects to is in its package
   promlint: names of types, abbreviated units, units that are no base units,
   _total, _count, _sum and _bucket where they are not the type's, the labels
   le and quantile. */
#include "config.h"

#include "record/prom_name.h"

#include "base/mem.h"
#include "record/import_prometheus_line.h"
#include "record/prom_impl.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { FAMILY_MAX = 200 }; /* bytes of a sensor's name that are used */

static const struct {
    const char *unit, *suffix;
} units[] = {
    {"s", "seconds"},
    {"B", "bytes"},
    {"Hz", "hertz"},
    {"W", "watts"},
    {"J", "joules"},
    {"V", "volts"},
    {"A", "amperes"},
    {"degC", "celsius"},
    {"K", "kelvin"},
    {"1/s", "per_second"},
    {"B/s", "bytes_per_second"},
    {"FLOP", "flop"},
    {"FLOP/s", "flop_per_second"},
};

static bool is_one_of(struct ep_span s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ep_span_eq(s, words[i]))
            return true;
    return false;
}

/* Words that are left out. */
static bool is_unwanted(struct ep_span word)
{
    static const char *const words[] = {
        /* abbreviated units */
        "s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m",
        "h", "d", "kib", "mib", "gib", "hz", "khz", "mhz", "ghz", "rpm", "gbs",
        "amps", "mw", "kw",
        /* not SI, or not without a factor */
        "minutes", "hours", "days", "weeks", "kelvins", "fahrenheit", "rankine",
        "inches", "yards", "miles", "bits", "calories", "pounds", "ounces",
        "percent", "percentage",
        /* types */
        "counter", "gauge", "histogram", "summary"};
    static const char *const prefixes[] = {
        "pico",  "nano", "micro", "milli", "centi", "deci", "deca",
        "hecto", "kilo", "kibi",  "mega",  "mebi",  "mibi", "giga",
        "gibi",  "tera", "tebi",  "peta",  "pebi"};
    static const char *const bases[] = {
        "amperes", "amps",   "bytes",  "bits",    "calories",  "celsius",
        "days",    "flop",   "grams",  "hertz",   "hours",     "inches",
        "joules",  "kelvin", "meters", "metres",  "miles",     "minutes",
        "moles",   "ounces", "pounds", "rankine", "seconds",   "volts",
        "watts",   "weeks",  "yards",  "kelvins", "fahrenheit"};

    if (is_one_of(word, words, COUNT(words)))
        return true;
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        size_t n = strlen(prefixes[i]);

        if (word.len > n && memcmp(word.ptr, prefixes[i], n) == 0 &&
            is_one_of((struct ep_span){word.ptr + n, word.len - n}, bases,
                      COUNT(bases)))
            return true;
    }
    return false;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_word_byte(char c)
{
    return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* The next word of a name, in lower case; false at its end. */
static bool next_word(struct ep_span *name, struct ep_buf *word)
{
    ep_buf_reset(word);
    while (name->len) {
        char c = *name->ptr;
        bool small = word->len && name->ptr[-1] >= 'a' && name->ptr[-1] <= 'z';

        if (word->len && (!is_word_byte(c) || (small && is_upper(c))))
            break;
        if (is_word_byte(c))
            ep_buf_addc(word, (char)(is_upper(c) ? c + ('a' - 'A') : c));
        name->ptr++;
        name->len--;
    }
    return word->len > 0;
}

/* Does text end with "_" and the suffix? */
static bool ends_in(const struct ep_buf *text, const char *suffix)
{
    size_t n = strlen(suffix);

    return text->len > n && text->ptr[text->len - n - 1] == '_' &&
           memcmp(text->ptr + text->len - n, suffix, n) == 0;
}

/* The words of a name, each behind "_", without "total" at its end. Was one of
   them per cent? */
static bool add_words(struct ep_buf *family, struct ep_span name)
{
    size_t from = family->len;
    bool percent = false, total = false;
    struct ep_buf word;

    ep_buf_init(&word);
    while (next_word(&name, &word)) {
        struct ep_span s = {word.ptr, word.len};

        percent |= ep_span_eq(s, "percent") || ep_span_eq(s, "percentage");
        if (is_unwanted(s) || family->len - from + s.len > FAMILY_MAX)
            continue;
        if (total)
            ep_buf_adds(family, "_total");
        total = ep_span_eq(s, "total");
        if (total)
            continue;
        ep_buf_addc(family, '_');
        ep_buf_add(family, s.ptr, s.len);
    }
    ep_buf_free(&word);
    return percent;
}

/* The longest suffix of a unit that text ends in; -1: none. */
static int suffix_of(const struct ep_buf *text)
{
    int best = -1;

    for (size_t i = 0; i < COUNT(units); i++)
        if (ends_in(text, units[i].suffix) &&
            (best < 0 || strlen(units[i].suffix) > strlen(units[best].suffix)))
            best = (int)i;
    return best;
}

/* Append the unit; false if it is none of those that are known. */
static bool add_unit(struct ep_buf *family, struct ep_span unit, bool percent)
{
    int have = suffix_of(family);

    if (ep_span_eq(unit, "1")) {
        if (percent)
            ep_buf_adds(family, "_ratio");
        else if (have >= 0) /* which it is not in */
            ep_buf_adds(family, "_value");
        return true;
    }
    for (size_t i = 0; i < COUNT(units); i++) {
        if (!ep_span_eq(unit, units[i].unit))
            continue;
        if (have != (int)i)
            ep_buf_addf(family, "_%s", units[i].suffix);
        return true;
    }
    (void)add_words(family, unit);
    return false;
}

/* Endings that belong to types that this is not. */
static void finish(struct ep_buf *family)
{
    static const char *const endings[] = {"total", "count", "sum", "bucket"};

    for (size_t i = 0; i < COUNT(endings); i++)
        if (ends_in(family, endings[i]))
            ep_buf_adds(family, "_value");
}

/* ==== Labels ==== */

struct label {
    char *name;
    struct ep_buf value; /* decoded */
};

static bool is_taken(const struct label *v, int n, const char *name)
{
    static const char *const ours[] = {"name", "unit",     "ref",     "type",
                                       "le",   "quantile", "instance"};

    if (is_one_of((struct ep_span){name, strlen(name)}, ours, COUNT(ours)))
        return true;
    for (int k = 0; k < EP_KEYS; k++)
        if (strcmp(name, ep_key_table[k].name) == 0)
            return true;
    for (int i = 0; i < n; i++)
        if (strcmp(name, v[i].name) == 0)
            return true;
    return false;
}

/* A name for a label that no other has; free with free(). */
static char *label_name(const struct label *v, int n, struct ep_span as)
{
    struct ep_buf b, word;
    char *name;

    ep_buf_init(&b);
    ep_buf_init(&word);
    while (next_word(&as, &word) && b.len < FAMILY_MAX)
        ep_buf_addf(&b, "%s%s", b.len ? "_" : "", word.ptr);
    if (!b.len || (*b.ptr >= '0' && *b.ptr <= '9')) {
        ep_buf_reset(&word);
        ep_buf_addf(&word, "label%s%s", b.len ? "_" : "", b.len ? b.ptr : "");
        ep_buf_reset(&b);
        ep_buf_adds(&b, word.ptr);
    }
    while (is_taken(v, n, b.ptr)) {
        ep_buf_reset(&word);
        ep_buf_addf(&word, "exported_%s", b.ptr);
        ep_buf_reset(&b);
        ep_buf_adds(&b, word.ptr);
    }
    name = ep_strndup(b.ptr, b.len);
    ep_buf_free(&b);
    ep_buf_free(&word);
    return name;
}

/* Order of labels as they came, so that their new names do not depend on it. */
static int by_name(const void *a, const void *b)
{
    const struct ep_prometheus_label *x = a, *y = b;
    size_t n = x->name.len < y->name.len ? x->name.len : y->name.len;
    int order = memcmp(x->name.ptr, y->name.ptr, n);

    return order ? order
                 : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

static int by_new_name(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* name="value", with a comma before it if it is not the first; nothing if the
   value is empty, which is as good as no label. */
static void add_label(struct ep_buf *out, const char *name, struct ep_span v)
{
    if (!v.len)
        return;
    ep_buf_addf(out, "%s%s=\"", out->len ? "," : "", name);
    ep_prom_add_value(out, v);
    ep_buf_addc(out, '"');
}

static void add_labels(struct ep_buf *out, struct ep_prometheus_line *line)
{
    struct label v[EP_PROMETHEUS_LABELS] = {{.name = NULL}};
    int n = 0;

    qsort(line->labels, (size_t)line->nlabels, sizeof line->labels[0], by_name);
    for (int i = 0; i < line->nlabels; i++) {
        const struct ep_prometheus_label *from = &line->labels[i];
        char *to;

        if (!from->value.len)
            continue;
        v[n].name = label_name(v, n, from->name);
        ep_buf_init(&v[n].value);
        to = ep_buf_reserve(&v[n].value, 2 * from->value.len);
        (void)ep_buf_extend(&v[n].value,
                            (size_t)(ep_prometheus_decode(from, to) - to));
        n++;
    }
    qsort(v, (size_t)n, sizeof v[0], by_new_name);
    for (int i = 0; i < n; i++) {
        add_label(out, v[i].name,
                  (struct ep_span){v[i].value.ptr, v[i].value.len});
        free(v[i].name);
        ep_buf_free(&v[i].value);
    }
}

/* ==== The whole ==== */

/* Take NAME{LABELS} apart; false if it is a name only. */
static bool take_apart(struct ep_span name, struct ep_buf *text,
                       struct ep_prometheus_line *line)
{
    if (!memchr(name.ptr, '{', name.len) || memchr(name.ptr, '\n', name.len))
        return false;
    ep_buf_add(text, name.ptr, name.len);
    ep_buf_adds(text, " 0");
    return ep_prometheus_scan(text->ptr, text->len, (struct ep_span){NULL, 0},
                              line, NULL) == 0 &&
           !line->rest.len && line->value.len == 1 && line->nlabels &&
           line->nlabels <= EP_PROMETHEUS_LABELS;
}

void ep_prom_name(struct ep_span name, struct ep_span unit,
                  struct ep_buf *family, struct ep_buf *labels)
{
    struct ep_prometheus_line *line = ep_calloc(1, sizeof *line);
    struct ep_buf text;
    bool apart, percent;

    ep_buf_init(&text);
    apart = take_apart(name, &text, line);
    if (apart)
        name = line->name;
    percent = add_words(family, name);
    add_label(labels, "name", name);
    if (!add_unit(family, unit, percent))
        add_label(labels, "unit", unit);
    finish(family);
    if (apart)
        add_labels(labels, line);
    ep_buf_free(&text);
    free(line);
}

void ep_prom_unit(struct ep_span unit, struct ep_buf *family,
                  struct ep_buf *labels)
{
    if (!add_unit(family, unit, false))
        add_label(labels, "unit", unit);
    finish(family);
}

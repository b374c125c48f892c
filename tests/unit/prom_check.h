/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prom_check.h - is a text a Prometheus exposition that node_exporter takes and
 * promtool has nothing to say about, in the form that prom.h promises? Written
 * from the documentation of the format and the list of promlint's rules, and
 * from nothing in lib/.
 */
#ifndef EP_PROM_CHECK_H
#define EP_PROM_CHECK_H

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct prom_check {
    char family[400], last[400]; /* of the samples; the one before */
    bool counter, helped, typed;
    char **seen; /* samples of this family, labels sorted */
    size_t nseen, cap, samples;
    char **gauges;
    size_t ngauges, gauges_cap;
    char why[1200]; /* what is wrong; "" */
};

static inline bool pc_bad(struct prom_check *c, const char *what,
                          const char *line)
{
    if (!*c->why)
        (void)snprintf(c->why, sizeof c->why, "%s: %.900s", what, line);
    return false;
}

static inline bool pc_word(const char *name, const char *word)
{
    const char *p = name;
    size_t n = strlen(word);

    while ((p = strstr(p, word))) {
        if ((p == name || p[-1] == '_') && (p[n] == '_' || !p[n]))
            return true;
        p++;
    }
    return false;
}

static inline bool pc_ends(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

/* The rules of promlint about names. */
static inline bool pc_lint(struct prom_check *c, const char *name)
{
    static const char *const words[] = {
        "s",       "ms",     "us",      "ns",        "sec",       "b",
        "kb",      "mb",     "gb",      "tb",        "pb",        "m",
        "h",       "d",      "counter", "gauge",     "histogram", "summary",
        "minutes", "hours",  "days",    "weeks",     "kelvins",   "fahrenheit",
        "rankine", "inches", "yards",   "miles",     "bits",      "calories",
        "pounds",  "ounces", "percent", "millivolts"};
    static const char *const prefixes[] = {"milli", "micro", "nano", "kilo",
                                           "mega",  "giga",  "mibi"};
    static const char *const bases[] = {"seconds", "bytes", "volts", "joules"};
    char word[64];

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (pc_word(name, words[i]))
            return pc_bad(c, "a word that promlint refuses", name);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 4; j++) {
            (void)snprintf(word, sizeof word, "%s%s", prefixes[i], bases[j]);
            if (pc_word(name, word))
                return pc_bad(c, "not a base unit", name);
        }
    for (const char *p = name; *p; p++)
        if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) &&
            *p != '_')
            return pc_bad(c, "a character that is not in a name", name);
    if (strncmp(name, "evenpace_", 9) != 0)
        return pc_bad(c, "not ours", name);
    if (pc_ends(name, "_count") || pc_ends(name, "_sum") ||
        pc_ends(name, "_bucket"))
        return pc_bad(c, "the ending of a histogram", name);
    return true;
}

/* One UTF-8 character: its length, 0 if it is none. */
static inline size_t pc_char(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    unsigned long v;
    size_t n;

    if (u[0] < 0x80)
        return 1;
    n = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
    if (u[0] < 0xc2 || u[0] > 0xf4)
        return 0;
    v = u[0] & (0xffU >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (u[i] & 0x3f);
    }
    if ((n == 3 && v < 0x800) || (n == 4 && v < 0x10000) || v > 0x10ffff ||
        (v >= 0xd800 && v < 0xe000))
        return 0;
    return n;
}

/* A label at *p, copied to out; *p goes behind it. */
static inline bool pc_label(struct prom_check *c, const char **p, char *out,
                            size_t room)
{
    const char *s = *p, *name = s;

    if (!islower((unsigned char)*s) && *s != '_')
        return pc_bad(c, "no name of a label", s);
    while (islower((unsigned char)*s) || isdigit((unsigned char)*s) ||
           *s == '_')
        s++;
    if (strncmp(name, "__", 2) == 0 || strncmp(name, "le=", 3) == 0 ||
        strncmp(name, "quantile=", 9) == 0 || strncmp(name, "pid=", 4) == 0)
        return pc_bad(c, "a name that no label may have", name);
    if (s[0] != '=' || s[1] != '"' || s[2] == '"')
        return pc_bad(c, "no value, or an empty one", name);
    for (s += 2; *s != '"';) {
        size_t n = pc_char(s);

        if (!*s || !n)
            return pc_bad(c, "a value without end, or not UTF-8", name);
        if (*s == '\\' && (!s[1] || !strchr("\\\"n", s[1])))
            return pc_bad(c, "an escape that there is not", name);
        s += *s == '\\' ? 2 : n;
    }
    s++;
    if ((size_t)(s - name) >= room)
        return pc_bad(c, "too long for this test", name);
    memcpy(out, name, (size_t)(s - name));
    out[s - name] = '\0';
    *p = s;
    return true;
}

static inline int pc_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Labels from the brace on: no name twice; as one text in order. */
static inline bool pc_labels(struct prom_check *c, const char **p, char *all)
{
    static char text[64][4000];
    char *v[64];
    size_t n = 0;

    do {
        (*p)++;
        if (n == 64 || !pc_label(c, p, text[n], sizeof text[n]))
            return pc_bad(c, "labels", *p);
        v[n] = text[n];
        n++;
    } while (**p == ',');
    if (*(*p)++ != '}')
        return pc_bad(c, "no closing brace", *p - 1);
    qsort(v, n, sizeof *v, pc_order);
    *all = '\0';
    for (size_t i = 0; i < n; i++) {
        if (i && strcspn(v[i], "=") == strcspn(v[i - 1], "=") &&
            memcmp(v[i], v[i - 1], strcspn(v[i], "=")) == 0)
            return pc_bad(c, "a label twice", v[i]);
        all += sprintf(all, "%s,", v[i]); /* 64 of 4000 fit */
    }
    return true;
}

static inline bool pc_sample(struct prom_check *c, const char *line)
{
    static char all[64 * 4000];
    size_t n = strcspn(line, "{ ");
    const char *p = line + n;
    char *end;
    double v;

    if (!c->typed || n != strlen(c->family) || memcmp(line, c->family, n) != 0)
        return pc_bad(c, "a sample of another family", line);
    *all = '\0';
    if (*p == '{' && !pc_labels(c, &p, all))
        return false;
    if (*p++ != ' ' || isspace((unsigned char)*p))
        return pc_bad(c, "no single blank before the value", line);
    v = strtod(p, &end);
    if (end == p || *end || isnan(v))
        return pc_bad(c, "no number, or more behind it", line);
    if (c->counter && !(v >= 0))
        return pc_bad(c, "a counter below 0", line);
    if (c->nseen == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 64;
        c->seen = realloc(c->seen, c->cap * sizeof *c->seen);
    }
    c->seen[c->nseen++] = strdup(all);
    c->samples++;
    return true;
}

/* The end of a family. */
static inline bool pc_close(struct prom_check *c)
{
    bool good = true;

    if (*c->family && !c->nseen)
        good = pc_bad(c, "a family without samples", c->family);
    if (c->nseen)
        qsort(c->seen, c->nseen, sizeof *c->seen, pc_order);
    for (size_t i = 0; i < c->nseen; i++) {
        if (i && strcmp(c->seen[i], c->seen[i - 1]) == 0)
            good = pc_bad(c, "a series twice", c->seen[i]);
        if (i)
            free(c->seen[i - 1]);
    }
    if (c->nseen)
        free(c->seen[c->nseen - 1]);
    c->nseen = 0;
    return good;
}

static inline bool pc_type(struct prom_check *c, const char *line)
{
    size_t n = strlen(c->family);

    c->typed = true;
    c->helped = false;
    if (strncmp(line, c->family, n) != 0 || line[n] != ' ')
        return pc_bad(c, "TYPE of another family", line);
    c->counter = strcmp(line + n + 1, "counter") == 0;
    if (!c->counter && strcmp(line + n + 1, "gauge") != 0)
        return pc_bad(c, "no type", line);
    if (c->counter != pc_ends(c->family, "_total"))
        return pc_bad(c, "_total and counter go together", line);
    if (!c->counter) {
        if (c->ngauges == c->gauges_cap) {
            c->gauges_cap = c->gauges_cap ? 2 * c->gauges_cap : 64;
            c->gauges = realloc(c->gauges, c->gauges_cap * sizeof *c->gauges);
        }
        c->gauges[c->ngauges++] = strdup(c->family);
    }
    /* OpenMetrics calls X what is X_total here */
    for (size_t i = 0; c->counter && i < c->ngauges; i++)
        if (strlen(c->gauges[i]) == n - 6 &&
            memcmp(c->gauges[i], c->family, n - 6) == 0)
            return pc_bad(c, "a gauge and a counter of one name", line);
    return true;
}

static inline bool pc_help(struct prom_check *c, const char *line)
{
    size_t n = strcspn(line, " ");

    if (!pc_close(c))
        return false;
    memcpy(c->last, c->family, sizeof c->last);
    if (n >= sizeof c->family || !line[n] || !line[n + 1])
        return pc_bad(c, "HELP without text", line);
    memcpy(c->family, line, n);
    c->family[n] = '\0';
    c->helped = true;
    c->typed = false;
    if (strcmp(c->last, c->family) >= 0)
        return pc_bad(c, "not in order, or twice", line);
    return pc_lint(c, c->family);
}

/* True if all is well; else *why says what is not. */
static inline bool prom_check(const char *text, char why[1200], size_t *samples)
{
    struct prom_check c = {.nseen = 0};
    bool good = true;

    while (good && *text) {
        size_t n = strcspn(text, "\n");
        char *line = strndup(text, n);

        if (!text[n])
            good = pc_bad(&c, "no line end at the end", line);
        else if (strncmp(line, "# HELP ", 7) == 0)
            good = pc_help(&c, line + 7);
        else if (strncmp(line, "# TYPE ", 7) == 0)
            good = c.helped ? pc_type(&c, line + 7)
                            : pc_bad(&c, "TYPE without HELP", line);
        else
            good = pc_sample(&c, line);
        free(line);
        text += n + (text[n] == '\n');
    }
    good = pc_close(&c) && good;
    for (size_t i = 0; i < c.ngauges; i++)
        free(c.gauges[i]);
    free(c.gauges);
    free(c.seen);
    memcpy(why, c.why, sizeof c.why);
    *samples = c.samples;
    return good;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* prom_print.c - see prom.h: rows as a text exposition, in order. */
#include "config.h"

#include "base/fp.h"
#include "base/mem.h"
#include "record/prom.h"
#include "record/prom_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH = 65536, FIRST = 8 /* bytes of set and place in a row's key */ };

/* ==== Labels ==== */

static uint64_t number_at(const char *p)
{
    uint64_t v = 0;

    for (int i = 0; i < 8; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

/* `from` is a label of merges only, where it is a string. */
static bool is_number(char key)
{
    return ep_key_table[(int)key].value == EP_V_INTEGER && key != EP_K_FROM;
}

int ep_prom_compare(const char *a, const char *b)
{
    while (*a && *a == *b) {
        int order =
            is_number(*a) ? memcmp(a + 1, b + 1, 8) : strcmp(a + 1, b + 1);
        size_t n = is_number(*a) ? 8 : strlen(a + 1) + 1;

        if (order)
            return order;
        a += 1 + n;
        b += 1 + n;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

void ep_prom_add_value(struct ep_buf *b, struct ep_span s)
{
    size_t from = 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (c != '\\' && c != '"' && c != '\n')
            continue;
        ep_buf_add(b, s.ptr + from, i - from);
        ep_buf_adds(b, c == '\n' ? "\\n" : c == '"' ? "\\\"" : "\\\\");
        from = i + 1;
    }
    ep_buf_add(b, s.ptr + from, s.len - from);
}

void ep_prom_add_labels(struct ep_buf *b, const char *labels)
{
    for (const char *p = labels; *p;) {
        char digits[EP_FP_MAX];

        ep_buf_adds(b, p == labels ? "" : ",");
        ep_buf_adds(b, ep_key_table[(int)*p].name);
        ep_buf_adds(b, "=\"");
        if (is_number(*p)) {
            ep_buf_add(b, digits,
                       ep_fp_print_int((int64_t)number_at(p + 1), digits));
            p += 9;
        } else {
            struct ep_span s = {p + 1, strlen(p + 1)};

            ep_prom_add_value(b, s);
            p += s.len + 2;
        }
        ep_buf_addc(b, '"');
    }
}

/* ==== Order ==== */

static int by_set(const void *a, const void *b, void *ctx)
{
    const struct ep_prom *p = ctx;
    const struct ep_prom_set *x = &p->set[*(const uint32_t *)a];
    const struct ep_prom_set *y = &p->set[*(const uint32_t *)b];
    int order;

    if (!x->n || !y->n)
        return (x->n > 0) - (y->n > 0);
    order = strcmp(x->metrics[0].family, y->metrics[0].family);
    return order
               ? order
               : strcmp(x->labels ? x->labels : "", y->labels ? y->labels : "");
}

static int by_place(const void *a, const void *b, void *ctx)
{
    const struct ep_prom *p = ctx;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int order = (int)p->place[i].type - (int)p->place[j].type;

    return order ? order
                 : ep_prom_compare(ep_intern_name(p->places, i) + 1,
                                   ep_intern_name(p->places, j) + 1);
}

static int by_row(const void *a, const void *b, void *ctx)
{
    const struct ep_prom *p = ctx;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct ep_prom_row *x = &p->row[i], *y = &p->row[j];

    if (x->set != y->set)
        return p->set[x->set].rank < p->set[y->set].rank ? -1 : 1;
    if (x->place != y->place)
        return p->place[x->place].rank < p->place[y->place].rank ? -1 : 1;
    return ep_prom_compare(ep_intern_name(p->rows, i) + FIRST,
                           ep_intern_name(p->rows, j) + FIRST);
}

/* 0 .. n-1 in order; free with free(). */
static uint32_t *sorted(struct ep_prom *p, size_t n,
                        int (*by)(const void *, const void *, void *))
{
    uint32_t *v = ep_calloc(n + 1, sizeof *v);

    for (size_t i = 0; i < n; i++)
        v[i] = (uint32_t)i;
    qsort_r(v, n, sizeof *v, by, p);
    return v;
}

/* The order of everything, if there is something new. */
static void put_in_order(struct ep_prom *p)
{
    size_t rows = ep_intern_count(p->rows);
    size_t places = ep_intern_count(p->places);
    uint32_t *sets;

    if (rows == p->ordered && places == p->ordered_places)
        return;
    sets = sorted(p, p->nsets, by_set);
    for (size_t i = 0; i < p->nsets; i++) {
        p->set[sets[i]].rank = i;
        p->set[sets[i]].from = p->set[sets[i]].to = 0;
    }
    free(sets);
    free(p->place_order);
    p->place_order = sorted(p, places, by_place);
    for (size_t i = 0; i < places; i++)
        p->place[p->place_order[i]].rank = i;
    free(p->order);
    p->order = sorted(p, rows, by_row);
    for (size_t i = 0; i < rows; i++) {
        struct ep_prom_set *s = &p->set[p->row[p->order[i]].set];

        if (!s->to)
            s->from = i;
        s->to = i + 1;
    }
    p->ordered = rows;
    p->ordered_places = places;
}

/* ==== Printing ==== */

/* A metric of a set; set NULL: the latest ts of all places. */
struct entry {
    const char *family;
    const struct ep_prom_set *set;
    int metric;
};

struct printer {
    struct ep_prom *p;
    FILE *out;
    struct ep_buf text;
    const char *family; /* whose head was written last; NULL: none */
};

static int by_family(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->family, y->family);

    if (order || !x->set || !y->set)
        return order;
    if (x->set->rank != y->set->rank)
        return x->set->rank < y->set->rank ? -1 : 1;
    return x->metric - y->metric;
}

static void flush(struct printer *w, size_t least)
{
    if (w->text.len < least)
        return;
    (void)fwrite(w->text.ptr, 1, w->text.len, w->out);
    ep_buf_reset(&w->text);
}

static void head(struct printer *w, const char *family, const char *help,
                 bool counter)
{
    if (w->family && strcmp(w->family, family) == 0)
        return;
    w->family = family;
    ep_buf_addf(&w->text, "# HELP %s %s\n# TYPE %s %s\n", family, help, family,
                counter ? "counter" : "gauge");
}

/* `{` at the first label, `,` before others. */
static void open_label(struct ep_buf *b, bool *any)
{
    ep_buf_addc(b, *any ? ',' : '{');
    *any = true;
}

static void value(struct ep_buf *b, bool any, double v)
{
    char digits[EP_FP_MAX];

    ep_buf_adds(b, any ? "} " : " ");
    if (isinf(v))
        ep_buf_adds(b, v > 0 ? "+Inf" : "-Inf");
    else
        ep_buf_add(b, digits, ep_fp_print(v, digits));
    ep_buf_addc(b, '\n');
}

static void add_list(struct ep_buf *b, const char *labels, bool *any)
{
    if (!*labels)
        return;
    open_label(b, any);
    ep_prom_add_labels(b, labels);
}

static void add_text(struct ep_buf *b, const char *labels, bool *any)
{
    if (!labels || !*labels)
        return;
    open_label(b, any);
    ep_buf_adds(b, labels);
}

static void print_metric(struct printer *w, const struct entry *e)
{
    struct ep_prom *p = w->p;
    const struct ep_prom_metric *m = &e->set->metrics[e->metric];
    struct ep_buf *b = &w->text;

    for (size_t i = e->set->from; i < e->set->to; i++) {
        uint32_t n = p->order[i];
        const struct ep_prom_row *row = &p->row[n];
        double v = p->values[row->at + 1 + (size_t)e->metric];
        bool any = false;

        if (isnan(v))
            continue;
        head(w, m->family, m->help,
             m->how == EP_PROM_SUM || m->how == EP_PROM_COUNT);
        ep_buf_adds(b, m->family);
        add_list(b, ep_intern_name(p->places, row->place) + 1, &any);
        add_list(b, ep_intern_name(p->rows, n) + FIRST, &any);
        add_text(b, e->set->labels, &any);
        add_text(b, m->label, &any);
        value(b, any, v);
        flush(w, FLUSH);
    }
}

static void print_latest(struct printer *w)
{
    struct ep_prom *p = w->p;

    for (size_t i = 0; i < p->ordered_places; i++) {
        uint32_t n = p->place_order[i];
        const struct ep_prom_place *place = &p->place[n];
        bool any = true;

        if (isnan(place->ts))
            continue;
        head(w, ep_prom_last_family, ep_prom_last_help, false);
        ep_buf_addf(&w->text, "%s{type=\"%s\"", ep_prom_last_family,
                    ep_type_table[place->type].name);
        add_list(&w->text, ep_intern_name(p->places, n) + 1, &any);
        value(&w->text, any, place->ts);
        flush(w, FLUSH);
    }
}

void ep_prom_print(struct ep_prom *p, FILE *out)
{
    struct printer w = {.p = p, .out = out};
    struct entry *v = NULL;
    size_t n = 0, cap = 0;

    put_in_order(p);
    v = ep_grow(v, &cap, 1, sizeof *v);
    v[n++] = (struct entry){ep_prom_last_family, NULL, 0};
    for (size_t i = 0; i < p->nsets; i++) {
        const struct ep_prom_set *s = &p->set[i];

        for (int m = 0; m < s->n && s->to; m++) {
            v = ep_grow(v, &cap, n + 1, sizeof *v);
            v[n++] = (struct entry){s->metrics[m].family, s, m};
        }
    }
    qsort(v, n, sizeof *v, by_family);
    ep_buf_init(&w.text);
    for (size_t i = 0; i < n; i++)
        if (v[i].set)
            print_metric(&w, &v[i]);
        else
            print_latest(&w);
    flush(&w, 0);
    ep_buf_free(&w.text);
    free(v);
}

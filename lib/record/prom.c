/* SPDX-License-Identifier: Apache-2.0 */
/* prom.c - see prom.h and prom_impl.h: records into rows. */
#include "config.h"

#include "record/prom.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "record/prom_impl.h"
#include "record/prom_name.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)256 << 20)

static const float nan_value = __builtin_nanf("");

struct ep_prom *ep_prom_new(size_t max)
{
    struct ep_prom *p = ep_calloc(1, sizeof *p);

    p->max = max;
    p->places = ep_intern_new();
    p->rows = ep_intern_new();
    p->named = ep_intern_new();
    p->sets_known = ep_intern_new();
    p->episodes = ep_intern_new();
    ep_buf_init(&p->key);
    ep_buf_init(&p->text);
    ep_buf_init(&p->name);
    p->set = ep_grow(NULL, &p->set_cap, EP_PROM_SETS, sizeof *p->set);
    for (p->nsets = 0; p->nsets < EP_PROM_SETS; p->nsets++) {
        const struct ep_prom_metric *m = ep_prom_tables[p->nsets].metrics;
        int n = 0;

        while (n < EP_PROM_METRICS && m[n].family)
            n++;
        p->set[p->nsets] = (struct ep_prom_set){.metrics = m, .n = n};
    }
    return p;
}

static void free_set(struct ep_prom_set *s)
{
    if (!s->own)
        return;
    for (int i = 0; i < s->n; i++)
        free((char *)s->metrics[i].family);
    free((struct ep_prom_metric *)s->metrics);
    free(s->labels);
}

void ep_prom_free(struct ep_prom *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->nsets; i++)
        free_set(&p->set[i]);
    ep_intern_free(p->places);
    ep_intern_free(p->rows);
    ep_intern_free(p->named);
    ep_intern_free(p->sets_known);
    ep_intern_free(p->episodes);
    ep_buf_free(&p->key);
    ep_buf_free(&p->text);
    ep_buf_free(&p->name);
    free(p->place);
    free(p->row);
    free(p->set);
    free(p->set_of);
    free(p->episode);
    free(p->values);
    free(p->order);
    free(p->place_order);
    free(p);
}

uint64_t ep_prom_refused(const struct ep_prom *p)
{
    return p->refused;
}

/* ==== Keys ==== */

static void add_number(struct ep_buf *b, uint64_t v, int bytes)
{
    char *to = ep_buf_extend(b, (size_t)bytes);

    for (int i = bytes; i-- > 0; v >>= 8)
        to[i] = (char)(v & 0xff);
}

/* The bytes of s, whatever is no UTF-8 replaced, and a 0. */
static void add_string(struct ep_buf *b, struct ep_span s)
{
    size_t plain = 0;

    while (plain < s.len && s.ptr[plain] > 0)
        plain++;
    ep_buf_add(b, s.ptr, plain);
    for (size_t i = plain; i < s.len;) {
        int n = s.ptr[i] ? ep_utf8_len(s.ptr + i, s.len - i) : 0;

        if (n > 0)
            ep_buf_add(b, s.ptr + i, (size_t)n);
        else
            ep_buf_add(b, "\xef\xbf\xbd", 3);
        i += n > 0 ? (size_t)n : 1;
    }
    ep_buf_addc(b, '\0');
}

/* One label, if the record has it; an empty one is as good as none. */
static void add_label(struct ep_buf *b, const struct ep_record *r,
                      enum ep_key key)
{
    if (!ep_record_has(r, key))
        return;
    if (ep_key_value(r->type, key) == EP_V_INTEGER) {
        ep_buf_addc(b, (char)key);
        add_number(b, (uint64_t)r->v[key].num, 8);
    } else if (r->v[key].str.len) {
        ep_buf_addc(b, (char)key);
        add_string(b, r->v[key].str);
    }
}

/* Bytes of text, or series, that there may still be. */
static bool is_full(const struct ep_prom *p, size_t more)
{
    return p->series + more > p->max || p->bytes > TEXT_MAX;
}

/* The number of what is in p->key; -1: it is new and there is no room. */
static long number_of(struct ep_prom *p, struct ep_intern *t, bool room)
{
    size_t known = ep_intern_count(t);
    long i = ep_intern_add(t, (struct ep_span){p->key.ptr, p->key.len},
                           room ? SIZE_MAX : known);

    if (i >= 0 && (size_t)i == known)
        p->bytes += p->key.len;
    return i;
}

/* Type, and where from; -1: no room. */
static long place_of(struct ep_prom *p, const struct ep_record *r)
{
    size_t known = ep_intern_count(p->places);
    double ts = ep_record_num(r, EP_K_TS);
    long i;

    ep_buf_reset(&p->key);
    ep_buf_addc(&p->key, (char)(r->type + 1));
    for (int k = EP_K_JOB; k <= EP_K_WORKER; k++) {
        /* of a layout dp, pp, tp are sizes */
        if (k == EP_K_PID ||
            (r->type == EP_LAYOUT && k >= EP_K_DP && k <= EP_K_TP))
            continue;
        add_label(&p->key, r, (enum ep_key)k);
    }
    ep_buf_addc(&p->key, '\0');
    i = number_of(p, p->places, !is_full(p, 1));
    if (i < 0)
        return i;
    if ((size_t)i == known) {
        p->place =
            ep_grow(p->place, &p->place_cap, known + 1, sizeof *p->place);
        p->place[i] = (struct ep_prom_place){.type = r->type, .ts = ts};
        p->series++;
    } else if (!(ts <= p->place[i].ts)) {
        p->place[i].ts = isnan(ts) ? p->place[i].ts : ts;
    }
    return i;
}

/* The row of a record: r's labels as the table t has them; -1: no room. */
static long row_of(struct ep_prom *p, const struct ep_prom_table *t,
                   uint32_t set, uint32_t place, const struct ep_record *r)
{
    size_t known = ep_intern_count(p->rows), n = (size_t)p->set[set].n;
    long i;

    ep_buf_reset(&p->key);
    add_number(&p->key, set, 4);
    add_number(&p->key, place, 4);
    for (int k = 0; k < EP_PROM_LABELS && t->labels[k] != EP_K_TYPE; k++)
        add_label(&p->key, r, t->labels[k]);
    /* what tells ranks apart if there is nothing better */
    if (!ep_record_has(r, EP_K_RANK))
        add_label(&p->key, r, EP_K_COMM_RANK);
    ep_buf_addc(&p->key, '\0');
    i = number_of(p, p->rows, !is_full(p, 1));
    if (i < 0 || (size_t)i < known)
        return i;
    p->row = ep_grow(p->row, &p->row_cap, known + 1, sizeof *p->row);
    p->values =
        ep_grow(p->values, &p->values_cap, p->nvalues + 1 + n, sizeof(double));
    p->row[i] = (struct ep_prom_row){set, place, p->nvalues};
    for (size_t v = 0; v < 1 + n; v++)
        p->values[p->nvalues++] = (double)nan_value;
    return i;
}

/* ==== Values ==== */

/* A series begins with its first value; false: there is no room for it. */
static bool has_room(struct ep_prom *p, const double *at)
{
    if (!isnan(*at))
        return true;
    if (is_full(p, 1))
        return false;
    p->series++;
    return true;
}

static void update(struct ep_prom *p, long row, const struct ep_record *r)
{
    const struct ep_prom_set *s = &p->set[p->row[row].set];
    double *v = p->values + p->row[row].at, ts = ep_record_num(r, EP_K_TS);
    bool latest = !(ts < v[0]), full = false;

    if (latest && !isnan(ts))
        v[0] = ts;
    for (int i = 0; i < s->n; i++) {
        const struct ep_prom_metric *m = &s->metrics[i];
        double *at = &v[i + 1];

        if (m->how == EP_PROM_OTHER ||
            (m->how != EP_PROM_COUNT && !ep_record_has(r, m->key)))
            continue;
        if (!has_room(p, at))
            full = true;
        else if (m->how == EP_PROM_COUNT)
            *at = isnan(*at) ? 1 : *at + 1;
        else if (m->how == EP_PROM_SUM)
            *at = (isnan(*at) ? 0 : *at) + r->v[m->key].num;
        else if (latest || isnan(*at))
            *at = r->v[m->key].num * m->times;
    }
    p->refused += full;
}

/* Find the row and update it. */
static void feed(struct ep_prom *p, uint32_t set, uint32_t place,
                 const struct ep_prom_table *t, const struct ep_record *r)
{
    long row = row_of(p, t, set, place, r);

    if (row < 0)
        p->refused++;
    else
        update(p, row, r);
}

/* ==== Gauges and probes ==== */

static char *family_name(const char *prefix, const char *rest)
{
    struct ep_buf b;
    char *s;

    ep_buf_init(&b);
    ep_buf_adds(&b, prefix);
    ep_buf_adds(&b, rest);
    s = ep_strndup(b.ptr, b.len);
    ep_buf_free(&b);
    return s;
}

/* The metrics of a set; p->name is how their families end. */
static void make_set(struct ep_prom *p, bool probe)
{
    static const char own[] = "ref=\"own\"", spec[] = "ref=\"spec\"";
    static const struct ep_prom_metric of_gauge[] = {
        {"evenpace_sensor", "Reading of a sensor, which name tells.",
         EP_PROM_LAST, EP_K_VALUE, 1, NULL},
        {"evenpace_reference", "Reading of a sensor that is to be expected.",
         EP_PROM_LAST, EP_K_REF_OWN, 1, own},
        {"evenpace_reference", "Reading of a sensor that is to be expected.",
         EP_PROM_LAST, EP_K_REF_SPEC, 1, spec}};
    static const struct ep_prom_metric of_probe[] = {
        {"evenpace_probe_result", "Result of a measurement.", EP_PROM_LAST,
         EP_K_VALUE, 1, NULL},
        {"evenpace_probe_reference",
         "Result of a measurement that is to be expected.", EP_PROM_LAST,
         EP_K_REF_OWN, 1, own},
        {"evenpace_probe_reference",
         "Result of a measurement that is to be expected.", EP_PROM_LAST,
         EP_K_REF_SPEC, 1, spec},
        {"evenpace_probe_spread_ratio",
         "Median absolute deviation of a measurement, over its median.",
         EP_PROM_LAST, EP_K_SPREAD, 1, NULL}};
    const struct ep_prom_metric *from = probe ? of_probe : of_gauge;
    int n = probe ? 4 : 3;
    struct ep_prom_metric *m = ep_calloc((size_t)n, sizeof *m);

    for (int i = 0; i < n; i++) {
        m[i] = from[i];
        m[i].family = family_name(from[i].family, i < 3 ? p->name.ptr : "");
    }
    p->set = ep_grow(p->set, &p->set_cap, p->nsets + 1, sizeof *p->set);
    p->set[p->nsets++] = (struct ep_prom_set){
        .metrics = m,
        .n = n,
        .labels = ep_strndup(p->text.ptr, p->text.len),
        .own = true,
    };
}

/* The set of a gauge's name and unit, or of a probe's unit; -1: no room. */
static long named_set(struct ep_prom *p, const struct ep_record *r)
{
    size_t known = ep_intern_count(p->named), unit_len;
    bool probe = r->type == EP_PROBE;
    struct ep_span unit, name;
    long i, set;

    ep_buf_reset(&p->key);
    ep_buf_addc(&p->key, probe ? 'p' : 'g');
    add_string(&p->key, ep_record_str(r, EP_K_UNIT));
    unit_len = p->key.len - 2;
    if (!probe)
        add_string(&p->key, ep_record_str(r, EP_K_NAME));
    i = number_of(p, p->named, !is_full(p, 1));
    if (i < 0)
        return i;
    if ((size_t)i < known)
        return p->set_of[i];
    ep_buf_reset(&p->name);
    ep_buf_reset(&p->text);
    unit = (struct ep_span){p->key.ptr + 1, unit_len};
    name = (struct ep_span){unit.ptr + unit_len + 1, 0};
    if (probe) {
        ep_prom_unit(unit, &p->name, &p->text);
    } else {
        name.len = strlen(name.ptr);
        ep_prom_name(name, unit, &p->name, &p->text);
    }
    /* two spellings of one name, such as labels in another order */
    ep_buf_reset(&p->key);
    ep_buf_addf(&p->key, "%c%s{", probe ? 'p' : 'g', p->name.ptr);
    ep_buf_add(&p->key, p->text.ptr, p->text.len);
    set = number_of(p, p->sets_known, true) + EP_PROM_SETS;
    if ((size_t)set == p->nsets)
        make_set(p, probe);
    p->set_of = ep_grow(p->set_of, &p->set_of_cap, known + 1, sizeof(uint32_t));
    p->set_of[i] = (uint32_t)set;
    return set;
}

/* ==== Events ==== */

/* The episode of an event, in no row yet if it is new; NULL: no room. */
static struct ep_prom_episode *episode_of(struct ep_prom *p,
                                          const struct ep_record *r)
{
    size_t known = ep_intern_count(p->episodes);
    long i;

    ep_buf_reset(&p->key);
    add_string(&p->key, ep_record_str(r, EP_K_JOB));
    add_string(&p->key, ep_record_str(r, EP_K_EID));
    i = number_of(p, p->episodes, !is_full(p, 0) && known < p->max);
    if (i < 0)
        return NULL;
    if ((size_t)i == known) {
        p->episode =
            ep_grow(p->episode, &p->episode_cap, known + 1, sizeof *p->episode);
        p->episode[i] = (struct ep_prom_episode){-1, false};
    }
    return &p->episode[i];
}

/* One more, or less, of the open episodes of a row. */
static void set_open(struct ep_prom *p, struct ep_prom_episode *e, bool open)
{
    double *v = &p->values[p->row[e->row].at + 1 + EP_PROM_ACTIVE];

    if (isnan(*v)) {
        *v = 0;
        p->series++;
    }
    *v += (double)open - (double)e->open;
    e->open = open;
}

static void feed_event(struct ep_prom *p, uint32_t place,
                       const struct ep_record *r)
{
    struct ep_span kind = ep_record_str(r, EP_K_KIND);
    bool relief = ep_span_eq(kind, "relief"), was_open;
    struct ep_prom_episode *e;
    long row;

    if (!relief && !ep_span_eq(kind, "onset") && !ep_span_eq(kind, "missing")) {
        feed(p, EP_PROM_EVENTS, place, &ep_prom_tables[EP_PROM_EVENTS], r);
        return;
    }
    e = episode_of(p, r);
    row = !e ? -1
          : relief && e->row >= 0
              ? e->row
              : row_of(p, &ep_prom_tables[EP_EVENT], EP_EVENT, place, r);
    if (row < 0) {
        p->refused++;
        return;
    }
    was_open = e->open;
    if (was_open && e->row != row) /* it has another cause now */
        set_open(p, e, false);
    e->row = row;
    set_open(p, e, !relief);
    if (was_open != e->open)
        feed(p, EP_PROM_EVENTS, place, &ep_prom_tables[EP_PROM_EVENTS], r);
    update(p, row, r);
}

void ep_prom_add(struct ep_prom *p, const struct ep_record *r)
{
    uint32_t set = r->type;
    long place, named;

    if (r->type >= EP_TYPES)
        return;
    place = place_of(p, r);
    if (place < 0) {
        p->refused++;
        return;
    }
    if (r->type == EP_EVENT) {
        feed_event(p, (uint32_t)place, r);
        return;
    }
    if (r->type == EP_GAUGE || r->type == EP_PROBE) {
        named = named_set(p, r);
        if (named < 0) {
            p->refused++;
            return;
        }
        set = (uint32_t)named;
    }
    feed(p, set, (uint32_t)place, &ep_prom_tables[r->type], r);
}

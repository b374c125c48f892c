/* SPDX-License-Identifier: Apache-2.0 */
/* log_text.c - see log_text.h. */
#include "config.h"

#include "record/log_text.h"

#include "base/fp.h"
#include "base/mem.h"
#include "base/word.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ==== Importers ==== */

void *ep_log_begin(const struct ep_log_importer *how, const struct ep_source *s)
{
    void *self = ep_calloc(1, how->size);
    struct ep_log *log = self;

    ep_buf_init(&log->scratch);
    ep_log_clock_init(&log->clock, s->mtime);
    if (how->init)
        how->init(self);
    return self;
}

void ep_log_end(void *self)
{
    struct ep_log *log = self;

    if (log)
        ep_buf_free(&log->scratch);
    free(self);
}

int ep_log_next(const struct ep_log_importer *how, void *self,
                struct ep_source *s, struct ep_record *r, struct ep_error *err)
{
    struct ep_log *log = self;

    while (!how->next(self, r)) {
        do {
            int rc = ep_source_line(s, err);

            if (rc <= 0)
                return rc;
            ep_log_clock_note(&log->clock, s->line.ptr, s->line.len);
        } while (!how->wants(self, &s->line));
        ep_log_open(log, &s->line);
        how->line(self);
    }
    return 1;
}

/* ==== Times ==== */

double ep_log_time(struct ep_log *log, const char *mark, bool *own)
{
    double ts = ep_log_clock_in(&log->clock, log->line.text.ptr, mark);

    if (isnan(ts))
        ts = ep_strip_when(&log->clock.zone, &log->line);
    if (own)
        *own = !isnan(ts);
    return ep_log_clock_at(&log->clock, ts);
}

double ep_log_begun(const struct ep_log *log, double ts, double dur)
{
    double begun = ts - dur;

    if (begun < log->said && log->said - begun <= 1 && log->said <= ts)
        return log->said;
    return begun > 0 ? begun : 0;
}

/* ==== Lines ==== */

void ep_log_open(struct ep_log *log, const struct ep_line *line)
{
    size_t n = line->len;

    log->whole = line->terminated;
    if (!log->whole)
        while (n && line->ptr[n - 1] != ' ' && line->ptr[n - 1] != '|')
            n--;
    ep_strip(line->ptr, n, &log->scratch, &log->line);
}

void ep_log_record(struct ep_log *log, enum ep_type type, double ts,
                   struct ep_record *r)
{
    ep_record_begin(r, type);
    ep_record_set_num(r, EP_K_TS, ts);
    log->said = ts;
}

void ep_log_gauge(struct ep_log *log, double ts, const char *name, double value,
                  const char *unit, struct ep_record *r)
{
    ep_log_record(log, EP_GAUGE, ts, r);
    ep_record_set_str(r, EP_K_NAME, name);
    ep_record_set_num(r, EP_K_VALUE, value);
    ep_record_set_str(r, EP_K_UNIT, unit);
}

void ep_log_origin(const struct ep_log *log, int64_t rank, struct ep_record *r)
{
    if (rank < 0)
        rank = log->line.rank;
    if (rank >= 0)
        ep_record_set_int(r, EP_K_RANK, rank);
    if (log->line.pid >= 0)
        ep_record_set_int(r, EP_K_PID, log->line.pid);
    if (log->line.host.len)
        ep_record_set_span(r, EP_K_HOST, log->line.host);
}

/* ==== What is in a line ==== */

const char *ep_log_find(const struct ep_cursor *c, const char *text)
{
    return find_text(c->p, (size_t)(c->end - c->p), text, strlen(text));
}

bool ep_log_number(struct ep_cursor *c, int exp10, double *out)
{
    struct ep_fp_decimal d;
    size_t n = ep_fp_scan(c->p, (size_t)(c->end - c->p), &d);
    double x;

    if (!n)
        return false;
    if (d.cut) { /* more digits than anybody prints: two roundings */
        x = ep_fp_from_decimal(&d, c->p, n) * pow(10, exp10);
    } else {
        d.exp10 += exp10;
        x = ep_fp_from_decimal(&d, c->p, n);
    }
    if (!isfinite(x))
        return false;
    c->p += n;
    *out = x;
    return true;
}

struct ep_span ep_log_trim(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct ep_span){p, (size_t)(end - p)};
}

bool ep_log_value(struct ep_span s, int exp10, double *out)
{
    struct ep_cursor c;
    double x;

    s = ep_log_trim(s.ptr, s.ptr + s.len);
    c = (struct ep_cursor){s.ptr, s.ptr + s.len};
    if (!ep_log_number(&c, exp10, &x) || c.p != c.end)
        return false;
    *out = x;
    return true;
}

bool ep_log_next_cell(struct ep_cursor *c, struct ep_log_cell *cell)
{
    const char *end, *mid;

    if (c->p >= c->end)
        return false;
    mid = find3(c->p, c->end, '|', ':', '=');
    end = find3(mid, c->end, '|', '|', '|');
    cell->key = ep_log_trim(c->p, mid);
    cell->value = ep_log_trim(mid < end ? mid + 1 : end, end);
    c->p = end < c->end ? end + 1 : end;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

size_t ep_log_key_rest(struct ep_span key, const char *name, size_t n)
{
    if (key.len < n)
        return 0;
    if (memcmp(key.ptr, name, n) == 0) /* the usual spelling */
        return n;
    for (size_t i = 0; i < n; i++)
        if ((key.ptr[i] == '_' ? ' ' : lower(key.ptr[i])) != name[i])
            return 0;
    return n;
}

const char *ep_log_name(struct ep_log *log, const char *prefix,
                        struct ep_span name, const char *suffix)
{
    size_t n = strlen(prefix), from = n, more = strlen(suffix);

    if (!name.len || n + name.len + more >= sizeof log->name)
        return NULL;
    memcpy(log->name, prefix, n);
    for (size_t i = 0; i < name.len; i++) {
        char c = lower(name.ptr[i]);

        if ((c >= 'a' && c <= 'z') || is_digit(c))
            log->name[n++] = c;
        else if (n > from && log->name[n - 1] != '_')
            log->name[n++] = '_';
    }
    while (n > from && log->name[n - 1] == '_')
        n--;
    if (n == from)
        return NULL;
    memcpy(log->name + n, suffix, more + 1);
    return log->name;
}

/* ==== "time (ms) | fwd: 3859.30 | bwd: 11267.97" ==== */

/* The number in the last "[Rank 0]" before end, or -1. */
static int64_t rank_before(const char *p, const char *end)
{
    struct ep_cursor c = {p, end};
    int64_t rank = -1, n;

    while (ep_cursor_find(&c, "[Rank "))
        if (ep_cursor_uint(&c, &n) && ep_cursor_lit(&c, "]"))
            rank = n;
    return rank;
}

bool ep_log_times(struct ep_log *log, struct ep_log_times *t)
{
    const char *begin = log->line.text.ptr;
    struct ep_cursor c = {begin, begin + log->line.text.len};
    const char *mark = ep_log_find(&c, "time (ms) |");

    if (!mark)
        return false;
    c.p = mark + strlen("time (ms) |");
    t->rest = c;
    t->number = 0;
    t->rank = rank_before(begin, mark);
    t->ts = ep_log_time(log, mark, &t->own);
    return true;
}

bool ep_log_times_cell(struct ep_log_times *t, int i, struct ep_cursor *c,
                       struct ep_log_cell *cell, struct ep_log_known **known)
{
    struct ep_log_known *k = i < EP_LOG_KNOWN ? &t->known[i] : NULL;
    const char *from = c->p, *end;
    size_t n;

    if (known)
        *known = k;
    if (k && k->len && k->len <= (size_t)(c->end - from) &&
        memcmp(from, k->text, k->len) == 0) {
        end = find3(from + k->len, c->end, '|', '|', '|');
        cell->key = (struct ep_span){from + k->at, (size_t)k->to - k->at};
        cell->value = ep_log_trim(from + k->len, end);
        c->p = end < c->end ? end + 1 : end;
        return true;
    }
    if (!ep_log_next_cell(c, cell))
        return false;
    if (!k)
        return true;
    k->len = 0;
    k->prefix = NULL;
    end = find3(cell->key.ptr + cell->key.len, c->end, ':', '=', '|');
    n = (size_t)(end - from) + 1;
    if (end < c->end && *end != '|' && n <= sizeof k->text) {
        memcpy(k->text, from, n);
        k->len = (unsigned char)n;
        k->at = (unsigned char)(cell->key.ptr - from);
        k->to = (unsigned char)(k->at + cell->key.len);
    } else if (known) {
        *known = NULL;
    }
    return true;
}

/* The gauge's name: prefix, and the key made a name; {NULL, 0} if it is none.
 * k may be NULL. */
static struct ep_span time_name(struct ep_log *log, const char *prefix,
                                struct ep_span key, struct ep_log_known *k)
{
    const char *name;
    size_t n;

    if (k && k->prefix == prefix)
        return (struct ep_span){k->name, k->name_len};
    name = ep_log_name(log, prefix, key, "");
    if (!name)
        return (struct ep_span){NULL, 0};
    n = strlen(name);
    if (k && n < sizeof k->name) {
        memcpy(k->name, name, n);
        k->name_len = (unsigned char)n;
        k->prefix = prefix;
    }
    return (struct ep_span){name, n};
}

bool ep_log_next_time(struct ep_log *log, struct ep_log_times *t,
                      struct ep_record *r)
{
    struct ep_log_known *known;
    struct ep_log_cell cell;
    double s;

    while (ep_log_times_cell(t, t->number++, &t->rest, &cell, &known)) {
        struct ep_span name = time_name(log, t->prefix, cell.key, known);

        if (!name.ptr || !ep_log_value(cell.value, -3, &s))
            continue;
        ep_log_record(log, EP_GAUGE, t->ts, r);
        ep_record_set_span(r, EP_K_NAME, name);
        ep_record_set_num(r, EP_K_VALUE, s);
        ep_record_set_span(r, EP_K_UNIT, (struct ep_span){"s", 1});
        ep_log_origin(log, t->rank, r);
        return true;
    }
    return false;
}

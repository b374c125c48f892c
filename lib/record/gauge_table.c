/* SPDX-License-Identifier: Apache-2.0 */
/* gauge_table.c - see gauge_table.h. */
#include "config.h"

#include "record/gauge_table.h"

#include "record/nccl_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DAY_S 86400.0
#define GRACE_S 60.0

bool ep_gauge_column_name(struct ep_gauge_column *c, const char *prefix,
                          struct ep_span field)
{
    size_t n = strlen(prefix);

    if (n + field.len >= sizeof c->name)
        return false;
    memcpy(c->name, prefix, n);
    for (size_t i = 0; i < field.len; i++) {
        char b = field.ptr[i];
        bool word = (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') ||
                    (b >= '0' && b <= '9');

        c->name[n++] = b;
        if (!word)
            c->name[n - 1] = '_';
    }
    c->name[n] = '\0';
    return true;
}

static int not_a(struct ep_error *err, struct ep_span cell, const char *what)
{
    char shown[64];

    return ep_error_set(err, EP_EFORMAT, "'%s' is no %s",
                        ep_escape(shown, sizeof shown, cell.ptr, cell.len),
                        what);
}

/* ==== Rows ==== */

/* Digits alone; left alone if the cell says that it is not known. */
static int whole(struct ep_span cell, const char *what, int64_t *out,
                 struct ep_error *err)
{
    struct ep_cursor c = {cell.ptr, cell.ptr + cell.len};

    if (ep_gauge_no_value(cell))
        return 0;
    if (!ep_cursor_uint(&c, out) || c.p != c.end) {
        *out = -1;
        return not_a(err, cell, what);
    }
    return 0;
}

/* YYYYMMDD, or with - or /, at the start of a date and time for ep_strip. */
static bool put_day(struct ep_span day, char to[12])
{
    if (day.len == 8)
        (void)snprintf(to, 12, "%.4s-%.2s-%.2s ", day.ptr, day.ptr + 4,
                       day.ptr + 6);
    else if (day.len == 10)
        (void)snprintf(to, 12, "%.10s ", day.ptr);
    return day.len == 8 || day.len == 10;
}

/* The local date of t. */
static void put_day_of(double t, char to[12])
{
    time_t whole_s = (time_t)(t < 1e12 ? t : 0);
    struct tm tm;

    if (!localtime_r(&whole_s, &tm) || strftime(to, 12, "%Y-%m-%d ", &tm) == 0)
        memcpy(to, "1970-01-01 ", 12);
}

/* The time of a row with a clock, and perhaps a day, into t->ts. */
static int take_clock(struct ep_gauge_table *t, struct ep_span day,
                      struct ep_span clock, struct ep_error *err)
{
    double now = t->ts;
    char text[64];
    double ts;
    int n;

    if (clock.len > 32)
        return not_a(err, clock, "time of day");
    if (!day.ptr)
        put_day_of(now, text);
    else if (!put_day(day, text))
        return not_a(err, day, "date");
    n = snprintf(text + 11, sizeof text - 11, "%.*s", (int)clock.len,
                 clock.ptr);
    if (n < 0)
        n = 0;
    if (ep_strip_time(&t->zone, text, 11 + (size_t)n, &ts) != 11 + (size_t)n)
        return day.ptr ? not_a(err, (struct ep_span){text, 11 + (size_t)n},
                               "date and time")
                       : not_a(err, clock, "time of day");
    if (!day.ptr && ts > now + GRACE_S && ts >= DAY_S)
        ts -= DAY_S;
    t->ts = ts;
    return 0;
}

static int take_who(struct ep_gauge_table *t, enum ep_gauge_role role,
                    struct ep_span cell, struct ep_error *err)
{
    switch (role) {
    case EP_GAUGE_TIME:
        if (ep_strip_time(&t->zone, cell.ptr, cell.len, &t->ts) != cell.len ||
            !cell.len)
            return not_a(err, cell, "time");
        return 0;
    case EP_GAUGE_UUID:
        if (!ep_gauge_no_value(cell))
            t->gpu = cell;
        return 0;
    case EP_GAUGE_PCI:
        if (!ep_gauge_no_value(cell) && !t->gpu.ptr)
            t->gpu = ep_gauge_pci(cell, t->pci);
        return 0;
    case EP_GAUGE_INDEX:
        return whole(cell, "index of a GPU", &t->gpu_index, err);
    case EP_GAUGE_MIG:
        return whole(cell, "number of an instance", &t->mig, err);
    case EP_GAUGE_PID:
        return whole(cell, "number of a process", &t->pid, err);
    default:
        return 0;
    }
}

/* Who and when, of the cells. */
static int take_cells(struct ep_gauge_table *t, double ts, struct ep_error *err)
{
    struct ep_span day = {NULL, 0}, clock = {NULL, 0};
    int rc = 0;

    t->ts = ts > 0 ? ts : 0;
    t->gpu = day;
    t->gpu_index = t->mig = t->pid = -1;
    t->at = 0;
    for (int i = 0; i < t->ncolumns && rc == 0; i++) {
        if (t->columns[i].role == EP_GAUGE_DAY)
            day = t->cells[i];
        else if (t->columns[i].role == EP_GAUGE_CLOCK)
            clock = t->cells[i];
        else
            rc = take_who(t, t->columns[i].role, t->cells[i], err);
    }
    if (rc == 0 && clock.ptr)
        rc = take_clock(t, day, clock, err);
    return rc;
}

/* ==== Lines ==== */

void ep_gauge_table_init(struct ep_gauge_table *t, double mtime)
{
    memset(t, 0, sizeof *t);
    t->zone.latest = mtime >= 0 ? mtime : 0;
    ep_buf_init(&t->scratch);
}

void ep_gauge_table_free(struct ep_gauge_table *t)
{
    ep_buf_free(&t->scratch);
}

int ep_gauge_table_line(struct ep_gauge_table *t, struct ep_source *s,
                        struct ep_error *err)
{
    int rc = ep_source_line(s, err);

    if (rc > 0) {
        ep_strip(s->line.ptr, s->line.len, &t->scratch, &t->line);
        s->line.ptr = t->line.text.ptr;
        s->line.len = t->line.text.len;
    }
    return rc;
}

struct ep_span ep_gauge_first_line(const char **p, const char *end,
                                   struct ep_buf *scratch)
{
    const char *from = *p, *nl = memchr(from, '\n', (size_t)(end - from));
    struct ep_strip bare;

    *p = nl ? nl + 1 : end;
    ep_strip(from, (size_t)((nl ? nl : end) - from), scratch, &bare);
    return bare.text;
}

int ep_gauge_table_row(struct ep_gauge_table *t, const struct ep_source *s,
                       int (*split)(const char *p, size_t len,
                                    struct ep_span *out, int max),
                       struct ep_error *err)
{
    double when;
    int n, rc;

    t->ncells = 0;
    if (!s->line.terminated)
        return ep_error_set(err, EP_ETRUNC,
                            "the last line was cut, it has no line end");
    if (memchr(s->line.ptr, '\0', s->line.len))
        return ep_error_set(err, EP_EFORMAT, "NUL in a row");
    n = split(s->line.ptr, s->line.len, t->cells, EP_GAUGE_COLUMNS);
    if (n != t->ncolumns)
        return ep_error_set(err, EP_EFORMAT,
                            "%d cells, where the header has %d", n,
                            t->ncolumns);
    when = ep_strip_when(&t->zone, &t->line);
    rc = take_cells(t, isnan(when) ? s->mtime : when, err);
    if (rc == 0)
        t->ncells = n;
    return rc;
}

/* ==== Cells ==== */

/* Words that are numbers: how a switch is set. */
static bool word_value(struct ep_span cell, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"Active", 1},   {"Not Active", 0}, {"Enabled", 1},
                 {"Disabled", 0}, {"Yes", 1},        {"No", 0}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (ep_span_eq(cell, words[i].word)) {
            *out = words[i].value;
            return true;
        }
    return false;
}

/* A mask, 0x0000000000000004; or a state, P0. */
static bool other_value(struct ep_span cell, double *out)
{
    struct ep_cursor c = {cell.ptr, cell.ptr + cell.len};
    uint64_t mask;
    int64_t state;

    if (cell.len > 2 && cell.ptr[1] == 'x' && ep_cursor_hex(&c, &mask) &&
        c.p == c.end) {
        *out = (double)mask;
        return true;
    }
    if (ep_cursor_lit(&c, "P") && ep_cursor_uint(&c, &state) && c.p == c.end) {
        *out = (double)state;
        return true;
    }
    return word_value(cell, out);
}

/* "30.39 W", "30.39", "97%": *unit becomes that of the cell if it has one. */
static bool cell_value(struct ep_span cell, const struct ep_gauge_unit **unit,
                       double *out)
{
    struct ep_fp_decimal d;
    size_t used = ep_fp_scan(cell.ptr, cell.len, &d);
    struct ep_span text = {cell.ptr + used, cell.len - used};

    if (used && text.len && cell.ptr[used] != 'x') {
        const struct ep_gauge_unit *u =
            ep_gauge_unit_named(ep_gauge_trim(text));

        if (!u)
            return false;
        *unit = u;
        text.len = 0;
    }
    if (used && !text.len) {
        *out = ep_gauge_convert(*unit, &d, cell.ptr, used);
        return true;
    }
    *unit = &ep_gauge_plain;
    return other_value(cell, out);
}

static void set_record(struct ep_gauge_table *t, const char *name, double value,
                       const struct ep_gauge_unit *unit, struct ep_record *r)
{
    ep_record_begin(r, EP_GAUGE);
    ep_record_set_num(r, EP_K_TS, t->ts);
    if (t->line.host.len)
        ep_record_set_span(r, EP_K_HOST, t->line.host);
    if (t->pid >= 0)
        ep_record_set_int(r, EP_K_PID, t->pid);
    if (t->gpu.ptr)
        ep_record_set_span(r, EP_K_GPU, t->gpu);
    if (t->gpu_index >= 0)
        ep_record_set_int(r, EP_K_GPU_INDEX, t->gpu_index);
    if (t->mig >= 0) {
        (void)snprintf(t->name, sizeof t->name, "%s{mig=\"%lld\"}", name,
                       (long long)t->mig);
        name = t->name;
    }
    ep_record_set_str(r, EP_K_NAME, name);
    ep_record_set_num(r, EP_K_VALUE, value);
    ep_record_set_str(r, EP_K_UNIT, unit->unit);
}

int ep_gauge_table_next(struct ep_gauge_table *t, struct ep_record *r,
                        struct ep_error *err)
{
    while (t->at < t->ncells) {
        const struct ep_gauge_column *c = &t->columns[t->at];
        struct ep_span cell = t->cells[t->at++];
        const struct ep_gauge_unit *unit = c->unit;
        double value;

        if ((c->role != EP_GAUGE_VALUE && c->role != EP_GAUGE_COUNT) ||
            ep_gauge_no_value(cell))
            continue;
        if (cell_value(cell, &unit, &value)) {
            if (!isfinite(value))
                continue;
            set_record(t, c->name, value, unit, r);
            return 1;
        }
        if (c->role == EP_GAUGE_VALUE) {
            char shown[64];

            return ep_error_set(
                err, EP_EFORMAT, "%s is '%s', no number", c->name,
                ep_escape(shown, sizeof shown, cell.ptr, cell.len));
        }
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_smi.c - nvidia-smi --query-gpu=... --format=csv: gauge records.
 *
 *     timestamp, index, uuid, temperature.gpu, power.draw [W]
 *     2026/09/24 10:07:30.000, 0, GPU-8b22, 25, 30.39 W
 *
 * Each cell with a value is a record, nvidia_smi_power_draw; a header line says
 * which is which, and may come again (files that were put together). Without
 * one (noheader) the numbers mean nothing, and the input is refused. Units are
 * in the cells, in the header (nounits), or nowhere (temperatures): then the
 * field tells. Times are local, by TZ.
 *
 * The tables of --query-compute-apps are of the same form and are read too.
 */
#include "config.h"

#include "base/mem.h"
#include "record/gauge_table.h"
#include "record/importers.h"
#include "record/nccl_text.h"

#include <stdlib.h>

struct smi {
    struct ep_gauge_table table;
    bool has_header;
};

/* ==== The header ==== */

static bool starts(struct ep_span s, const char *text)
{
    size_t n = strlen(text);

    return s.len >= n && memcmp(s.ptr, text, n) == 0;
}

/* Columns that are no sensors; a prefix ends with a dot. */
static const struct {
    const char *field;
    enum ep_gauge_role role;
} known[] = {
    {"timestamp", EP_GAUGE_TIME},
    {"index", EP_GAUGE_INDEX},
    {"uuid", EP_GAUGE_UUID},
    {"gpu_uuid", EP_GAUGE_UUID},
    {"pci.bus_id", EP_GAUGE_PCI},
    {"gpu_bus_id", EP_GAUGE_PCI},
    {"pid", EP_GAUGE_PID},
    {"name", EP_GAUGE_TEXT},
    {"gpu_name", EP_GAUGE_TEXT},
    {"process_name", EP_GAUGE_TEXT},
    /* numbers, but not of anything measured */
    {"serial", EP_GAUGE_TEXT},
    {"gpu_serial", EP_GAUGE_TEXT},
    {"driver_version", EP_GAUGE_TEXT},
    {"vbios_version", EP_GAUGE_TEXT},
    {"compute_cap", EP_GAUGE_TEXT},
    {"pci.", EP_GAUGE_TEXT},
    {"inforom.", EP_GAUGE_TEXT},
};

/* Units of fields that come without one, or with nounits. */
static const struct {
    const char *field, *unit;
} defaults[] = {
    {"temperature.", "C"},
    {"power.", "W"},
    {"clocks.", "MHz"},
    {"memory.", "MiB"},
    {"fan.", "%"},
    {"utilization.", "%"},
    {"enforced.power", "W"},
    {"encoder.stats.averageLatency", "us"},
    {"used_gpu_memory", "MiB"},
    {"used_memory", "MiB"},
};

static bool is_field_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_';
}

/* "power.draw [W]" into its two parts; false if it is not of that form. */
static bool split_title(struct ep_span cell, struct ep_span *field,
                        struct ep_span *unit)
{
    size_t n = 0;

    if (!cell.len || *cell.ptr < 'a' || *cell.ptr > 'z')
        return false;
    while (n < cell.len && is_field_byte(cell.ptr[n]))
        n++;
    *field = (struct ep_span){cell.ptr, n};
    *unit = (struct ep_span){NULL, 0};
    if (n == cell.len)
        return true;
    if (cell.len - n < 4 || cell.ptr[n] != ' ' || cell.ptr[n + 1] != '[' ||
        cell.ptr[cell.len - 1] != ']')
        return false;
    *unit = (struct ep_span){cell.ptr + n + 2, cell.len - n - 3};
    return true;
}

/* 2: only nvidia-smi has such a field; 1: others may have a column of that
 * name; 0: not known. */
static int is_known(struct ep_span field)
{
    static const char *const groups[] = {"clocks",       "ecc.",
                                         "pcie.",        "retired_pages.",
                                         "mig.",         "remapped_rows.",
                                         "gom.",         "encoder.stats.",
                                         "compute_mode", "persistence_mode",
                                         "pci.",         "driver_version",
                                         "pstate",       "gpu_",
                                         "fabric."};

    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (starts(field, defaults[i].field))
            return 2;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (starts(field, groups[i]))
            return 2;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (ep_span_eq(field, known[i].field))
            return 1;
    return ep_span_eq(field, "count");
}

/* The next cell of a line; *p is NULL behind the last one. */
static struct ep_span next_cell(const char **p, const char *end)
{
    const char *from = *p, *to = memchr(from, ',', (size_t)(end - from));

    *p = to ? to + 1 : NULL;
    return ep_gauge_trim(
        (struct ep_span){from, (size_t)((to ? to : end) - from)});
}

/* Are all cells of the line titles? Then is_known of the surest one. */
static int header(const char *line, size_t len)
{
    const char *p = line;
    int most = 0;

    while (p) {
        struct ep_span field, unit, cell = next_cell(&p, line + len);
        int sure;

        if (!split_title(cell, &field, &unit))
            return 0;
        sure = is_known(field);
        most = sure > most ? sure : most;
    }
    return most;
}

/* Older drivers have the same sensors as clocks_throttle_reasons. */
static bool set_name(struct ep_gauge_column *c, struct ep_span field)
{
    static const char old[] = "clocks_throttle_reasons.";
    size_t n = sizeof old - 1;

    if (starts(field, old))
        return ep_gauge_column_name(
            c, "nvidia_smi_clocks_event_reasons_",
            (struct ep_span){field.ptr + n, field.len - n});
    return ep_gauge_column_name(c, "nvidia_smi_", field);
}

static void set_column(struct ep_gauge_column *c, struct ep_span field,
                       struct ep_span unit)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *name = known[i].field;

        if (name[strlen(name) - 1] == '.' ? starts(field, name)
                                          : ep_span_eq(field, name)) {
            c->role = known[i].role;
            return;
        }
    }
    c->unit = unit.ptr ? ep_gauge_unit_named(unit) : NULL;
    for (size_t i = 0; !c->unit && i < sizeof defaults / sizeof defaults[0];
         i++)
        if (starts(field, defaults[i].field))
            c->unit = ep_gauge_unit_named(
                (struct ep_span){defaults[i].unit, strlen(defaults[i].unit)});
    c->role = c->unit ? EP_GAUGE_VALUE : EP_GAUGE_COUNT;
    if (!c->unit)
        c->unit = &ep_gauge_plain;
    if (unit.ptr && !ep_gauge_unit_named(unit))
        c->role = EP_GAUGE_TEXT; /* a number of we do not know what */
    if (!set_name(c, field))
        c->role = EP_GAUGE_TEXT;
}

static int take_header(struct smi *self, const struct ep_line *line,
                       struct ep_error *err)
{
    struct ep_gauge_table *t = &self->table;
    const char *p = line->ptr;

    t->ncolumns = t->ncells = 0;
    while (p) {
        struct ep_span field, unit;
        struct ep_span cell = next_cell(&p, line->ptr + line->len);

        if (t->ncolumns == EP_GAUGE_COLUMNS)
            return ep_error_set(err, EP_ELIMIT, "more than %d columns",
                                EP_GAUGE_COLUMNS);
        if (split_title(cell, &field, &unit))
            set_column(&t->columns[t->ncolumns++], field, unit);
    }
    self->has_header = true;
    return 0;
}

/* ==== Rows ==== */

/* The cells of a line into out, where max fit; returns how many there are. */
static int cells(const char *p, size_t len, struct ep_span *out, int max)
{
    const char *end = p + len;
    int n = 0;

    while (p) {
        struct ep_span cell = next_cell(&p, end);

        if (n < max)
            out[n] = cell;
        n++;
    }
    return n;
}

static bool is_blank(const struct ep_line *line)
{
    return ep_gauge_trim((struct ep_span){line->ptr, line->len}).len == 0;
}

static int next(void *ctx, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct smi *self = ctx;
    int rc;

    for (;;) {
        rc = ep_gauge_table_next(&self->table, r, err);
        if (rc != 0)
            return rc;
        rc = ep_gauge_table_line(&self->table, s, err);
        if (rc <= 0)
            return rc;
        if (is_blank(&s->line))
            continue;
        if (header(s->line.ptr, s->line.len) > 0) {
            rc = take_header(self, &s->line, err);
        } else if (self->has_header) {
            rc = ep_gauge_table_row(&self->table, s, cells, err);
        } else {
            s->over = true;
            return ep_error_set(err, EP_EFORMAT,
                                "cannot read %.150s: no line with the names of "
                                "the columns (nvidia-smi with noheader)",
                                s->name);
        }
        if (rc < 0)
            return rc;
    }
}

static void *begin(struct ep_source *s)
{
    struct smi *self = ep_calloc(1, sizeof *self);

    ep_gauge_table_init(&self->table, s->mtime);
    return self;
}

static void end(void *ctx)
{
    struct smi *self = ctx;

    if (self)
        ep_gauge_table_free(&self->table);
    free(self);
}

/* ==== Recognising ==== */

/* A row without a header above: nvidia-smi's units behind numbers. */
static bool is_row(const char *line, size_t len)
{
    const char *p = line;
    int cells = 0, typical = 0;

    while (p) {
        struct ep_span cell = next_cell(&p, line + len);
        struct ep_fp_decimal d;
        size_t used = ep_fp_scan(cell.ptr, cell.len, &d);

        cells++;
        typical += starts(cell, "NVIDIA ") || starts(cell, "GPU-") ||
                   starts(cell, "Tesla ") || starts(cell, "GeForce ");
        if (used && used < cell.len && cell.ptr[used] == ' ')
            typical += ep_gauge_unit_named((struct ep_span){
                           cell.ptr + used + 1, cell.len - used - 1}) != NULL;
        typical += starts(cell, "0x0000000000000");
        typical += cell.len == sizeof "2026/09/24 10:07:30.000" - 1 &&
                   cell.ptr[4] == '/' && cell.ptr[7] == '/';
    }
    return cells > 1 && typical > 0;
}

/* How sure is it by its first line that an input is ours? */
static int sniff_line(struct ep_span line)
{
    switch (header(line.ptr, line.len)) {
    case 2: /* one word is not much, unless it has a unit */
        return memchr(line.ptr, ',', line.len) ||
                       memchr(line.ptr, '[', line.len)
                   ? 90
                   : 50;
    case 1:
        return 15;
    default:
        break;
    }
    return is_row(line.ptr, line.len) ? 25 : 0;
}

static int sniff(const char *head, size_t len, const char *name)
{
    const char *p = head, *end_of_head = head + len;
    struct ep_buf scratch;
    struct ep_span line;
    int sure;

    (void)name;
    ep_buf_init(&scratch);
    do
        line = ep_gauge_trim(ep_gauge_first_line(&p, end_of_head, &scratch));
    while (!line.len && p < end_of_head);
    sure = line.len ? sniff_line(line) : 0;
    ep_buf_free(&scratch);
    return sure;
}

const struct ep_importer ep_import_smi = {
    .name = "nvidia-smi",
    .what = "nvidia-smi --query-gpu=... --format=csv, with its header",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};

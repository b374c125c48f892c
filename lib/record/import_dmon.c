/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_dmon.c - nvidia-smi dmon (and pmon): gauge records.
 *
 *     #Date       Time        gpu    pwr  gtemp  mtemp     sm   mclk     fb
 *     #YYYYMMDD   HH:MM:SS    Idx      W      C      C      %    MHz     MB
 *      20260529   09:51:25      0    117     45      -     13   6250   1024
 *
 * Which columns there are depends on -s, -o, --gpm-metrics and the driver; the
 * two lines of the header come again every few rows. --format csv has the same
 * with commas. Names are those of the columns, nvidia_smi_dmon_pwr. Times are
 * local, by TZ; without -o all rows are at the time of the file.
 */
#include "config.h"

#include "base/mem.h"
#include "record/gauge_table.h"
#include "record/importers.h"
#include "record/nccl_text.h"

#include <stdlib.h>

struct dmon {
    struct ep_gauge_table table;
    bool has_header, processes; /* processes: it is pmon */
};

static bool is_gap(char c)
{
    return c == ' ' || c == '\t' || c == ',' || c == '\r';
}

/* The words of a line into out, where max fit; returns how many there are. */
static int words(const char *p, size_t len, struct ep_span *out, int max)
{
    const char *end = p + len, *from;
    int n = 0;

    for (;;) {
        while (p < end && is_gap(*p))
            p++;
        if (p == end)
            return n;
        from = p;
        while (p < end && !is_gap(*p))
            p++;
        if (n < max)
            out[n] = (struct ep_span){from, (size_t)(p - from)};
        n++;
    }
}

static bool has(const struct ep_span *v, int n, const char *word)
{
    for (int i = 0; i < n; i++)
        if (ep_span_eq(v[i], word))
            return true;
    return false;
}

/* ==== The header ==== */

static const struct {
    const char *title;
    enum ep_gauge_role role;
} known[] = {
    {"gpu", EP_GAUGE_INDEX},    {"Date", EP_GAUGE_DAY},
    {"Time", EP_GAUGE_CLOCK},   {"pid", EP_GAUGE_PID},
    {"mig", EP_GAUGE_MIG},      {"type", EP_GAUGE_TEXT},
    {"command", EP_GAUGE_TEXT},
};

/* Where the line of units was left out (csv,nounit). */
static const struct {
    const char *title, *unit;
} defaults[] = {
    {"pwr", "W"},      {"temp", "C"},     {"gtemp", "C"},  {"mtemp", "C"},
    {"sm", "%"},       {"mem", "%"},      {"enc", "%"},    {"dec", "%"},
    {"jpg", "%"},      {"ofa", "%"},      {"mclk", "MHz"}, {"pclk", "MHz"},
    {"pviol", "%"},    {"fb", "MiB"},     {"bar1", "MiB"}, {"ccpm", "MiB"},
    {"rxpci", "MB/s"}, {"txpci", "MB/s"},
};

static void set_column(const struct dmon *self, struct ep_gauge_column *c,
                       struct ep_span title)
{
    c->unit = &ep_gauge_plain;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (ep_span_eq(title, known[i].title)) {
            c->role = known[i].role;
            return;
        }
    c->role = EP_GAUGE_VALUE;
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (ep_span_eq(title, defaults[i].title))
            c->unit = ep_gauge_unit_named(
                (struct ep_span){defaults[i].unit, strlen(defaults[i].unit)});
    if (!ep_gauge_column_name(
            c, self->processes ? "nvidia_smi_pmon_" : "nvidia_smi_dmon_",
            title))
        c->role = EP_GAUGE_TEXT;
}

static void set_unit(struct ep_gauge_column *c, struct ep_span unit)
{
    /* memory is counted in MiB, as in the other reports of nvidia-smi */
    static const struct ep_span mib = {"MiB", 3};

    if (c->role != EP_GAUGE_VALUE)
        return;
    c->unit = ep_gauge_unit_named(ep_span_eq(unit, "MB") ? mib : unit);
    if (!c->unit)
        c->role = EP_GAUGE_TEXT; /* numbers of we do not know what */
}

/*
 * A line that begins with #: titles, then units. A comment is passed over.
 */
static int take_header(struct dmon *self, const struct ep_line *line,
                       struct ep_error *err)
{
    struct ep_gauge_table *t = &self->table;
    struct ep_span *w = t->cells; /* no row is being read now */
    size_t hash =
        (size_t)((const char *)memchr(line->ptr, '#', line->len) - line->ptr) +
        1;
    int n = words(line->ptr + hash, line->len - hash, w, EP_GAUGE_COLUMNS);

    t->ncells = 0;
    if (n > EP_GAUGE_COLUMNS)
        return ep_error_set(err, EP_ELIMIT, "more than %d columns",
                            EP_GAUGE_COLUMNS);
    if (has(w, n, "gpu")) {
        self->has_header = true;
        self->processes = has(w, n, "pid");
        t->ncolumns = n;
        for (int i = 0; i < n; i++)
            set_column(self, &t->columns[i], w[i]);
    } else if (has(w, n, "Idx") && n == t->ncolumns) {
        for (int i = 0; i < n; i++)
            set_unit(&t->columns[i], w[i]);
    }
    return 0;
}

/* ==== Rows ==== */

static int take_row(struct dmon *self, const struct ep_source *s,
                    struct ep_error *err)
{
    if (!self->has_header)
        return ep_error_set(err, EP_EFORMAT,
                            "no line with the names of the columns before it");
    return ep_gauge_table_row(&self->table, s, words, err);
}

static int next(void *ctx, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct dmon *self = ctx;
    int rc;

    for (;;) {
        struct ep_span line;

        rc = ep_gauge_table_next(&self->table, r, err);
        if (rc != 0)
            return rc;
        rc = ep_gauge_table_line(&self->table, s, err);
        if (rc <= 0)
            return rc;
        line = ep_gauge_trim((struct ep_span){s->line.ptr, s->line.len});
        if (!line.len)
            continue;
        rc = *line.ptr == '#' ? take_header(self, &s->line, err)
                              : take_row(self, s, err);
        if (rc < 0)
            return rc;
    }
}

static void *begin(struct ep_source *s)
{
    struct dmon *self = ep_calloc(1, sizeof *self);

    ep_gauge_table_init(&self->table, s->mtime);
    return self;
}

static void end(void *ctx)
{
    struct dmon *self = ctx;

    if (self)
        ep_gauge_table_free(&self->table);
    free(self);
}

/* Do titles say what only dmon has? */
static bool has_known(const struct ep_span *w, int n)
{
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (has(w, n, defaults[i].title))
            return true;
    return false;
}

/* The words of a line that begins with a #; -1 if it does not. */
static int header_words(struct ep_span line, struct ep_span *out, int max)
{
    return line.len && *line.ptr == '#'
               ? words(line.ptr + 1, line.len - 1, out, max)
               : -1;
}

/* "# gpu pwr" and below "# Idx W"; the second line may not be there (yet). */
static int sniff(const char *head, size_t len, const char *name)
{
    const char *p = head, *end_of_head = head + len;
    struct ep_buf scratch;
    struct ep_span w[64];
    int titles, sure = 0;

    (void)name;
    ep_buf_init(&scratch);
    titles =
        header_words(ep_gauge_first_line(&p, end_of_head, &scratch), w, 64);
    if (titles >= 2 && titles <= 64 && has(w, titles, "gpu")) {
        bool whole = memchr(p, '\n', (size_t)(end_of_head - p)) != NULL;
        int units;

        sure = has_known(w, titles) ? 60 : 0;
        units =
            header_words(ep_gauge_first_line(&p, end_of_head, &scratch), w, 64);
        if (units >= 0 && whole)
            sure = units == titles && has(w, titles, "Idx") ? 95 : 0;
    }
    ep_buf_free(&scratch);
    return sure;
}

const struct ep_importer ep_import_dmon = {
    .name = "dmon",
    .what = "nvidia-smi dmon and pmon",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauge_table.h - tables of sensors: a row is a GPU at some time, a column one
 * of its sensors or who it is. For the importers of nvidia-smi.
 *
 * The importer makes the columns from a header and cuts lines into cells; a row
 * gives one gauge record for each cell that has a value.
 */
#ifndef EP_RECORD_GAUGE_TABLE_H
#define EP_RECORD_GAUGE_TABLE_H

#include "record/gauge_units.h"
#include "record/import.h"
#include "record/record.h"
#include "record/strip.h"

#include <stdint.h>

#define EP_GAUGE_COLUMNS 256
#define EP_GAUGE_NAME_MAX 96

enum ep_gauge_role {
    EP_GAUGE_TEXT,  /* passed over */
    EP_GAUGE_VALUE, /* a sensor, with a unit of its own */
    EP_GAUGE_COUNT, /* a sensor without; text in it is passed over */
    EP_GAUGE_TIME,  /* date and time */
    EP_GAUGE_DAY,   /* a date alone */
    EP_GAUGE_CLOCK, /* a time of day alone */
    EP_GAUGE_UUID,
    EP_GAUGE_PCI,
    EP_GAUGE_INDEX,
    EP_GAUGE_MIG, /* the number of an instance on its GPU */
    EP_GAUGE_PID,
};

struct ep_gauge_column {
    enum ep_gauge_role role;
    char name[EP_GAUGE_NAME_MAX]; /* of the records */
    const struct ep_gauge_unit *unit;
};

struct ep_gauge_table {
    struct ep_gauge_column columns[EP_GAUGE_COLUMNS];
    int ncolumns;
    struct ep_span cells[EP_GAUGE_COLUMNS]; /* borrowed from the line */
    int ncells;
    int at; /* the next cell to make a record of */
    /* of this row */
    double ts;
    struct ep_span gpu;
    int64_t gpu_index, mig, pid; /* -1: not known */
    char pci[EP_GAUGE_PCI_MAX];
    char name[EP_GAUGE_NAME_MAX + 32];
    struct ep_strip_zone zone;
    struct ep_strip line; /* the one that was read last */
    struct ep_buf scratch;
};

/* mtime: of the file, s since the epoch; below 0 counts as 0. */
void ep_gauge_table_init(struct ep_gauge_table *t, double mtime);
void ep_gauge_table_free(struct ep_gauge_table *t);

/*
 * As ep_source_line; s->line is then without what launchers and syslog put in
 * front of it, which may say the host and a time.
 */
int ep_gauge_table_line(struct ep_gauge_table *t, struct ep_source *s,
                        struct ep_error *err) EP_MUST_USE;

/* The first line of [*p, end) likewise, for sniff(); *p goes behind it. The
 * result is in scratch or in the line. */
struct ep_span ep_gauge_first_line(const char **p, const char *end,
                                   struct ep_buf *scratch);

/*
 * The name of a sensor: prefix, then field with every byte that is no letter,
 * digit or _ as one _. False if it does not fit.
 */
bool ep_gauge_column_name(struct ep_gauge_column *c, const char *prefix,
                          struct ep_span field);

/*
 * A row begins: the line that s read last. split puts its cells into out, where
 * max fit, and returns how many there are. Without a time of its own the row is
 * at that of the line's prefix, or at s->mtime; a time of day without a date is
 * taken to be within the 24 hours before that (with a minute of grace).
 * Errors: EP_ETRUNC (no line end), EP_EFORMAT: a NUL, not as many cells as there
 * are columns, or time, index or pid not what they should be. The row gives no
 * records then.
 */
int ep_gauge_table_row(struct ep_gauge_table *t, const struct ep_source *s,
                       int (*split)(const char *p, size_t len,
                                    struct ep_span *out, int max),
                       struct ep_error *err) EP_MUST_USE;

/*
 * The next record of the row: 1, 0 at its end, or EP_EFORMAT for a cell that is
 * no value of its column; the next call goes on behind it. Strings of *r are
 * borrowed from the line and from t until the next call.
 */
int ep_gauge_table_next(struct ep_gauge_table *t, struct ep_record *r,
                        struct ep_error *err) EP_MUST_USE;

#endif

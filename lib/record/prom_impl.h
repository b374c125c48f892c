/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prom_impl.h - what the parts of prom.h share. Private to lib/record/prom*.c.
 *
 * Records with the same labels are a row. A row belongs to a set, which says
 * what the values of the row are: one set for each type of record, and for
 * gauges and probes, whose names and units come with the records, one for each
 * of these. A place is a type and where records are from; a row's key is the
 * numbers of set and place, and the other labels.
 *
 * Labels in keys: a byte with the enum ep_key, then of a number 8 bytes, the
 * first the most significant, of a string its bytes and a 0; a 0 ends them.
 */
#ifndef EP_RECORD_PROM_IMPL_H
#define EP_RECORD_PROM_IMPL_H

#include "base/intern.h"
#include "record/prom.h"

enum ep_prom_how {
    EP_PROM_LAST,  /* gauge: the latest value of key */
    EP_PROM_SUM,   /* counter: the sum of key's values */
    EP_PROM_COUNT, /* counter: of records */
    EP_PROM_OTHER, /* gauge: set by code of its own */
};

struct ep_prom_metric {
    const char *family;
    const char *help; /* of one family always the same */
    enum ep_prom_how how;
    enum ep_key key;
    double times;      /* from key's unit to that of the family */
    const char *label; /* a label of its own, as text; or NULL */
};

enum { EP_PROM_METRICS = 10, EP_PROM_LABELS = 6 };

/* Sets that are known from the start: those of types, and this one. */
enum { EP_PROM_EVENTS = EP_TYPES, EP_PROM_SETS };

struct ep_prom_table {
    enum ep_key labels[EP_PROM_LABELS]; /* beside the place; ends at 0 */
    struct ep_prom_metric metrics[EP_PROM_METRICS]; /* ends at family NULL */
};

/* Of EP_GAUGE and EP_PROBE it has the labels alone. */
extern const struct ep_prom_table ep_prom_tables[EP_PROM_SETS];

/* The first metric of EP_EVENT. */
#define EP_PROM_ACTIVE 0

extern const char ep_prom_last_family[], ep_prom_last_help[];

struct ep_prom_set {
    const struct ep_prom_metric *metrics;
    int n;
    char *labels; /* as text: a="b",c="d"; or "" */
    bool own;     /* metrics and their names are to be freed */
    /* for printing */
    size_t rank, from, to; /* in the order of rows */
};

struct ep_prom_row {
    uint32_t set, place;
    size_t at; /* of its ts in values; then one for each metric */
};

struct ep_prom_place {
    enum ep_type type;
    double ts; /* the latest; NaN: none had one */
    size_t rank;
};

struct ep_prom_episode {
    long row; /* -1: none yet */
    bool open;
};

struct ep_prom {
    size_t max, series, bytes;
    uint64_t refused;
    struct ep_buf key, text, name;
    struct ep_intern *places, *rows; /* keys */
    struct ep_intern *named;         /* name and unit of gauges and probes */
    struct ep_intern *sets_known; /* family and labels of sets made of them */
    struct ep_intern *episodes;
    struct ep_prom_place *place;
    struct ep_prom_row *row;
    struct ep_prom_set *set;
    uint32_t *set_of; /* of named; + EP_PROM_SETS for sets_known */
    struct ep_prom_episode *episode;
    size_t place_cap, row_cap, set_cap, set_of_cap, episode_cap;
    size_t nsets;
    double *values;
    size_t nvalues, values_cap;
    /* for printing; as long as there are no new rows */
    uint32_t *order;
    size_t ordered, ordered_places;
    uint32_t *place_order;
};

/* Compare two lists of labels; by number, by bytes. */
int ep_prom_compare(const char *a, const char *b);

/* Append `label="value"` for each of a list, with commas between. */
void ep_prom_add_labels(struct ep_buf *b, const char *labels);

/* Append s as the value of a label, without the quotes. */
void ep_prom_add_value(struct ep_buf *b, struct ep_span s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_prometheus_line.h - one line of a Prometheus text exposition.
 *
 *     name{label="value",label="value"} value timestamp # {...} exemplar
 *
 * as version 0.0.4 of the format has it, OpenMetrics 1.0, and with quoted names
 * ({"a.b","c.d"="e"} 1) version 1.0.0. Writers that paste values without
 * escaping them are understood where there is one way only to do so: a quote
 * ends a value if what comes behind it is a label or the closing brace; and if
 * a line makes no sense with its backslashes as escapes, they are themselves.
 */
#ifndef EP_RECORD_IMPORT_PROMETHEUS_LINE_H
#define EP_RECORD_IMPORT_PROMETHEUS_LINE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define EP_PROMETHEUS_LABELS 64

enum ep_prometheus_text {
    EP_PROMETHEUS_PLAIN,   /* as it stands; no quote and no backslash in it */
    EP_PROMETHEUS_ESCAPED, /* with escapes, perhaps with quotes */
    EP_PROMETHEUS_RAW,     /* as it stands, whatever is in it */
};

struct ep_prometheus_label {
    struct ep_span name, value;
    bool quoted;                  /* the name was, since it is no identifier */
    enum ep_prometheus_text text; /* what value is */
};

struct ep_prometheus_line {
    struct ep_span name;
    bool quoted;           /* the name was */
    struct ep_span series; /* name and labels, as they are written */
    struct ep_span value;  /* a word: not empty, no blanks */
    struct ep_span rest;   /* behind it, without the blanks before */
    int nlabels;
    struct ep_prometheus_label labels[EP_PROMETHEUS_LABELS + 1];
};

/*
 * Take a line apart. line has no line end and is no comment; out is borrowed
 * from it. last is a name that is likely to come (that of the line before), or
 * empty. Value and timestamp are words, nothing is known of them.
 * Errors: EP_EFORMAT, EP_ETRUNC (it ends within its labels, or without value),
 * EP_ELIMIT (more labels than fit), with the reason.
 * Cost: linear in len, whatever is in it; no allocation.
 */
int ep_prometheus_scan(const char *line, size_t len, struct ep_span last,
                       struct ep_prometheus_line *out,
                       struct ep_error *err) EP_MUST_USE;

/*
 * The decoded value of a label, or its canonical spelling (backslash, quote and
 * line feed escaped), into to; both return the end of what was written, at most
 * 2 * value.len bytes.
 */
char *ep_prometheus_decode(const struct ep_prometheus_label *label, char *to);
char *ep_prometheus_encode(const struct ep_prometheus_label *label, char *to);

#endif

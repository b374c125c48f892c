/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauge_units.h - units of sensors, and the numbers in them, for importers.
 *
 * Exporters write MHz, MiB, mJ, per cent; records have hertz, bytes, joules and
 * ratios. A power of ten goes into the exponent of the decimal number before it
 * becomes a double, so that the result is the double nearest to the value: it
 * is rounded once. Temperatures stay in degrees Celsius, "degC".
 */
#ifndef EP_RECORD_GAUGE_UNITS_H
#define EP_RECORD_GAUGE_UNITS_H

#include "base/buf.h"
#include "base/fp.h"

#include <stdbool.h>

/* A value in unit is the number that was written, times 10^exp10 times. */
struct ep_gauge_unit {
    const char *unit; /* as records have it: "W", "B/s", "1"; static */
    int exp10;
    double times; /* 1 unless the factor is no power of ten */
};

/* "1", as it is. */
extern const struct ep_gauge_unit ep_gauge_plain;

/*
 * A unit as tools write it behind a number or in brackets: W, MHz, MiB, %, C,
 * MB/s, ms, ... NULL if it is not known.
 *
 *     KiB MiB GiB      powers of 1024
 *     kB KB MB GB      powers of 1000
 *     %                a ratio, times 0.01
 */
const struct ep_gauge_unit *ep_gauge_unit_named(struct ep_span text);

/*
 * The unit of a Prometheus metric, by its name. Never NULL: "1" if the name
 * does not say.
 *
 *   - what the Prometheus documentation ("Metric and label naming") has as
 *     suffixes: _seconds, _bytes, _celsius, ..., before _total, _sum and
 *     _created too; _bucket and _count are numbers
 *   - DCGM's fields, whose units are those of its field list ("Field
 *     identifiers"): clocks MHz, memory MiB, energy mJ, violations ns, per cent
 *   - NCCL Inspector: _gbs is 10^9 B/s
 */
const struct ep_gauge_unit *ep_gauge_unit_of_metric(struct ep_span name);

/* Is it a metric of dcgm-exporter? */
bool ep_gauge_is_dcgm(struct ep_span name);

/* The value in u->unit; infinite if it overflows. text: see
 * ep_fp_from_decimal. Rounded more than once where d->cut or times is not 1. */
double ep_gauge_convert(const struct ep_gauge_unit *u,
                        const struct ep_fp_decimal *d, const char *text,
                        size_t len);

/*
 * A whole text as a number: decimal with an optional sign, or the words for NaN
 * and infinities in any case (as strtod(3) has them).
 * Returns false, *out untouched, if it is none.
 */
bool ep_gauge_number(struct ep_span text, const struct ep_gauge_unit *u,
                     double *out);

/*
 * Does a cell of nvidia-smi say that there is no value? Empty, "-", "N/A",
 * "ERR!", all in brackets ("[Not Supported]"), and the bare words that older
 * drivers have.
 */
bool ep_gauge_no_value(struct ep_span text);

#define EP_GAUGE_PCI_MAX 24

/*
 * A PCI address in the form of Linux, 0000:8d:00.0 (drivers write 00000000:8D:
 * 00.0). The result is in buf, or text itself if it is no PCI address.
 */
struct ep_span ep_gauge_pci(struct ep_span text, char buf[EP_GAUGE_PCI_MAX]);

/* Without blanks (spaces, tabs, carriage returns) at both ends. */
struct ep_span ep_gauge_trim(struct ep_span s);

#endif

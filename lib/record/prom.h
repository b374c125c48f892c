/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prom.h - records as Prometheus metrics: a table of series that records are
 * fed into, and its text exposition (format 0.0.4), for the textfile collector
 * of node_exporter among others.
 *
 * Counters (NAME_total) add up over all records that were fed, gauges hold the
 * value of the record with the latest ts; one without ts counts as the latest.
 * Labels are where a record is from (without pid) and the keys that tell things
 * of its type apart, never one that grows with time (seq, step): the number of
 * series is that of ranks, communicators and operations, not of records.
 *
 *     ranks of a job:  evenpace_step{job="lm",host="n1",rank="3"} 118
 *     any record:      evenpace_last_record_timestamp_seconds{type="step",...}
 *     gauges:          evenpace_sensor_NAME_UNIT{name="...",...}, see prom_name.h
 *     probes:          evenpace_probe_result_UNIT{test="gemm",dtype="f32",...}
 *     events:          evenpace_event_active{scope="rank",id="rank=3",...}
 *
 * An onset opens an episode, further events with its eid change it, and its
 * relief closes it: active is the number of open episodes with these labels,
 * so that it goes back to 0, and a cause that turns out to be another one
 * moves to another series.
 *
 * The text is accepted by node_exporter and silent under promtool check
 * metrics, whatever the records say: names are rewritten to what both want,
 * label values escaped, bytes that are no UTF-8 replaced (U+FFFD), an empty
 * value is an absent label, no series comes twice, none has a timestamp (which
 * the textfile collector refuses), no value is NaN.
 *
 * References: prometheus.io, "Exposition formats" and "Metric and label
 * naming"; node_exporter, README, "Textfile Collector".
 */
#ifndef EP_RECORD_PROM_H
#define EP_RECORD_PROM_H

#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define EP_PROM_SERIES 1000000 /* a Prometheus has millions in all */

struct ep_prom; /* opaque */

/*
 * max     series at most (more only by event_active, of rows that are there);
 *         a record that needs others is refused, or what of it needs them. Text
 *         of names and labels is limited to 256 MiB likewise.
 * Memory: about 150 bytes for each set of labels, and 0.9 KB for each name of a
 * sensor.
 */
struct ep_prom *ep_prom_new(size_t max);
void ep_prom_free(struct ep_prom *p); /* NULL allowed */

/*
 * Feed a record; nothing of it is borrowed. Of a type that is not known it is
 * passed over. Cost: two look-ups in hash tables, O(bytes of the labels).
 */
void ep_prom_add(struct ep_prom *p, const struct ep_record *r);

/* Records that were refused, in part or whole, because there was no room. */
uint64_t ep_prom_refused(const struct ep_prom *p);

/*
 * Write all series: families in order of their names, each with HELP and TYPE,
 * its samples in order of their labels. Errors are those of the stream.
 * Cost: O(series), and a sort if there are new ones since the last time.
 */
void ep_prom_print(struct ep_prom *p, FILE *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauges.h - the readings of sensors: now, and when all was well.
 *
 * A reading is of a rank, else of a GPU (its UUID or address, or its index on a
 * host), else of a host. For each of them and each kind of sensor (sensors.h)
 * are kept
 *
 *   levels   runs of readings that are alike, with their times; when there are
 *            EP_GAUGES_RUNS of them, the older half is merged in pairs. What is
 *            recent is kept in detail, what is long ago in ever coarser means:
 *            there is a "before" for a change of minutes and for one of days.
 *   counts   by how much they grew, all counters of the kind together (links,
 *            CPUs); one that falls was reset, and grew by what it now says.
 *   rates    a count per second between readings, kept as a level.
 *
 * Memory: a level that does not change is one run, 24 bytes; at most 500 bytes
 * per sensor. A counter takes 32 bytes more.
 */
#ifndef EP_DETECT_GAUGES_H
#define EP_DETECT_GAUGES_H

#include "base/archive.h"
#include "base/err.h"
#include "detect/sensors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EP_GAUGES_RUNS 16

/* Most names of devices. */
#define EP_GAUGES_MAX_DEVICES 1000000

struct ep_gauges;
struct ep_gauge_device;

struct ep_gauges *ep_gauges_new(void);
void ep_gauges_free(struct ep_gauges *g); /* NULL allowed */

/* Who is meant. Spans of length 0, and -1: not told. */
struct ep_gauge_who {
    size_t job; /* number of the job, of a rank */
    int64_t rank;
    struct ep_span host, gpu;
    int64_t gpu_index;
};

/*
 * Take a reading; a name that is none of sensors.h is passed over, and so is a
 * reading that is older than the last of its sensor, or of nobody. A rank that
 * tells its GPU is remembered as its user (ep_gauges_uses).
 * Errors: EP_EDOM (ts or value not finite; a level of cpu_share below 0),
 * EP_ELIMIT. Cost: O(1).
 */
int ep_gauges_take(struct ep_gauges *g, const struct ep_gauge_who *who,
                   struct ep_span name, double ts, double value,
                   struct ep_error *err) EP_MUST_USE;

/* who->rank runs on the GPU that who names. Nothing is done if either is not
 * told. EP_ELIMIT as above. */
int ep_gauges_uses(struct ep_gauges *g, const struct ep_gauge_who *who,
                   struct ep_error *err) EP_MUST_USE;

/* Was anything told of any device? */
bool ep_gauges_any(const struct ep_gauges *g);

/* The rank, GPU or host; NULL if nothing was told of it. */
const struct ep_gauge_device *ep_gauges_rank(struct ep_gauges *g, size_t job,
                                             int64_t rank);
const struct ep_gauge_device *ep_gauges_gpu(struct ep_gauges *g,
                                            struct ep_span host, int64_t index);
const struct ep_gauge_device *ep_gauges_host(struct ep_gauges *g,
                                             struct ep_span host);
/* The GPU on which a rank said that it runs; NULL. */
const struct ep_gauge_device *
ep_gauge_device_gpu(const struct ep_gauge_device *rank);

/* GPUs that were told by host and index; 0 if none. */
int64_t ep_gauges_gpus_of(struct ep_gauges *g, struct ep_span host);

/* A sensor around a change; NaN: no reading. */
struct ep_gauge_stat {
    double before; /* median of the readings before "healthy" */
    double since;  /* and from "since" on; of flags the means */
};

/*
 * A count has the increases instead: from the first reading to "healthy", and
 * from "since" to the last reading. d may be NULL. healthy <= since.
 * Returns false, both NaN, if the sensor was never read.
 */
bool ep_gauge_device_stat(const struct ep_gauge_device *d,
                          enum ep_sensor sensor, double healthy, double since,
                          struct ep_gauge_stat *out);

/*
 * Save or load; g is new when it is loaded into, and has to be freed even if the
 * archive failed. Readings that are taken again since the input is read from its
 * beginning are passed over: of a sensor those not later than its last one was.
 */
void ep_gauges_archive(struct ep_archive *a, struct ep_gauges *g);

#endif

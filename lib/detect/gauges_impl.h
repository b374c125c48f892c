/* SPDX-License-Identifier: Apache-2.0 */
/* gauges_impl.h - what gauges.c and gauges_archive.c share; for them alone. */
#ifndef EP_DETECT_GAUGES_IMPL_H
#define EP_DETECT_GAUGES_IMPL_H

#include "base/intern.h"
#include "detect/gauges.h"
#include "detect/growth.h"

struct run {
    double from, to; /* ts of the first and of the last reading */
    float value;
    uint32_t n;
};

/* One sensor of a device. Saved by gauges_archive.c, as all below. */
struct trace {
    struct run *v; /* oldest first */
    unsigned char n, cap;
    unsigned char how; /* enum ep_sensor_how */
    double total;      /* of a count: all increases so far */
    /* of a rate: increases at one ts wait for the next */
    double grown, ts, last_ts;
    double old_ts; /* loaded: of its last reading; else -INFINITY; not saved */
};

struct ep_gauge_device {
    struct trace *trace[EP_SENSORS];    /* NULL: never read */
    const struct ep_gauge_device *user; /* of a rank: its GPU */
    int64_t gpus;                       /* of a host: told by an index */
    size_t number;
};

/* Who the last reading was of: many sensors of one come together. */
struct last {
    size_t job;
    int64_t rank, gpu_index;
    size_t host_len, gpu_len;
    char host[64], gpu[48];
    struct ep_gauge_device *device; /* NULL: nobody */
};

struct ep_gauges {
    struct last last;
    struct ep_intern *names;          /* of devices; one may have several */
    struct ep_gauge_device **by_name; /* [names] */
    size_t names_cap;
    struct ep_gauge_device **devices;
    size_t ndevices, devices_cap;
    struct ep_growth growth;
    struct ep_buf key;
};

/* A sensor of a device, new if it was never read. */
struct trace *ep_gauges_trace(struct ep_gauge_device *d, enum ep_sensor sensor,
                              enum ep_sensor_how how);

/* One more device, of no name yet. */
struct ep_gauge_device *ep_gauges_add(struct ep_gauges *g);

#endif

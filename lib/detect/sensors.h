/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sensors.h - what a gauge measures, by its name.
 *
 * One table has the names that the importers of lib/record and gpuprobe give:
 * nvidia-smi's queries and dmon, dcgm-exporter, node_exporter, Megatron-LM's
 * --log-straggler, NVRx, gpuprobe. Names of one sensor become one kind; the
 * labels behind a name ({mode="iowait"}) count where a row asks for one.
 */
#ifndef EP_DETECT_SENSORS_H
#define EP_DETECT_SENSORS_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum ep_sensor {
    /* of a GPU */
    EP_SENSOR_SM_CLOCK,
    EP_SENSOR_MEMORY_CLOCK,
    EP_SENSOR_HW_SLOWDOWN, /* this and the next six: 1 while it is so */
    EP_SENSOR_HW_THERMAL,
    EP_SENSOR_SW_THERMAL,
    EP_SENSOR_POWER_BRAKE,
    EP_SENSOR_POWER_CAP,
    EP_SENSOR_IDLE,
    EP_SENSOR_APP_CLOCKS,
    EP_SENSOR_THERMAL_LIMIT, /* share of time limited by temperature */
    EP_SENSOR_POWER_LIMITED, /* share of time limited by power */
    EP_SENSOR_POWER,
    EP_SENSOR_POWER_LIMIT, /* what it may draw */
    EP_SENSOR_GPU_TEMPERATURE,
    EP_SENSOR_MEMORY_TEMPERATURE,
    EP_SENSOR_GPU_LOAD, /* utilisation: all fall together, it names nobody */
    EP_SENSOR_PCIE_GENERATION,
    EP_SENSOR_PCIE_WIDTH,
    EP_SENSOR_PCIE_REPLAYS,
    EP_SENSOR_NVLINK_ERRORS,
    EP_SENSOR_ECC_CORRECTED,
    EP_SENSOR_ECC_UNCORRECTED,
    EP_SENSOR_ROWS_REMAPPED,
    EP_SENSOR_XID,         /* the last one */
    EP_SENSOR_KERNEL_PACE, /* its kernels, past / now */
    /* of a rank or a host */
    EP_SENSOR_CPU_SHARE,
    EP_SENSOR_CPU_WAIT,
    EP_SENSOR_CPU_PRESSURE,
    EP_SENSOR_LOAD,
    EP_SENSOR_IO_PRESSURE,
    EP_SENSOR_IO_WAIT, /* CPUs that wait for I/O */
    EP_SENSOR_DISK_BUSY,
    EP_SENSOR_DATA_TIME,
    EP_SENSOR_MEMORY_PRESSURE,
    EP_SENSOR_SWAP,
    EP_SENSOR_RETRANSMITS,
    EP_SENSOR_NET_ERRORS,
    EP_SENSOR_IB_ERRORS,
    EP_SENSORS,
};

/* How the readings of a name are to be taken. */
enum ep_sensor_how {
    EP_SENSOR_LEVEL,   /* as they are */
    EP_SENSOR_FLAG,    /* 0, or 1 for anything above */
    EP_SENSOR_COUNT,   /* ever growing: by how much it grew */
    EP_SENSOR_RATE,    /* ever growing: per second */
    EP_SENSOR_REASONS, /* a mask of throttle reasons: a flag each */
};

struct ep_sensor_name {
    const char *name;
    const char *label; /* that has to be among its labels; NULL: any */
    enum ep_sensor sensor;
    enum ep_sensor_how how;
};

/* What is known of a kind. */
struct ep_sensor_kind {
    const char *text; /* "SM clock", for people */
    const char *unit; /* for ep_num_format_si; "": a plain number */
    double band;      /* readings that differ less are one; in the unit */
    double relative;  /* likewise, of the value */
};

extern const struct ep_sensor_kind ep_sensor_kinds[EP_SENSORS];

/* Sorted by name; of rows with the same name each asks for another label. */
extern const struct ep_sensor_name ep_sensor_names[];
extern const size_t ep_sensor_names_count;

/*
 * The row of a gauge's name, with or without labels; NULL if it tells nothing
 * about a cause. Cost: a binary search.
 */
const struct ep_sensor_name *ep_sensor_of(struct ep_span name);

/*
 * The flags of a mask of clocks_event_reasons (nvml.h, nvmlClocksEventReason*):
 * the i-th is the sensor EP_SENSOR_HW_SLOWDOWN + i.
 */
#define EP_SENSOR_FLAGS 7
extern const uint64_t ep_sensor_reasons[EP_SENSOR_FLAGS];

#endif

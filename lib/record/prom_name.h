/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prom_name.h - names of metrics for sensors, whatever they are called.
 *
 *     DCGM_FI_DEV_FB_USED{pod="a"}, B   evenpace_sensor_dcgm_fi_dev_fb_used_bytes
 *                                       {name="DCGM_FI_DEV_FB_USED",pod="a"}
 *     node_cpu_seconds_total, s         evenpace_sensor_node_cpu_seconds
 *     gpu_util_percent, 1               evenpace_sensor_gpu_util_ratio
 *     clock_sm_mhz, Hz                  evenpace_sensor_clock_sm_hertz
 *
 * The words of the name in lower case, with "_" for whatever else is between
 * them and where a capital follows a small letter; then the unit, a base unit
 * in the plural. Words are left out that promtool objects to or that would say
 * something untrue: units that are no base units (the value is in a base unit)
 * or are abbreviated, types of metrics, _total. Labels that are part of the
 * name (as tlmcat's importer of Prometheus text leaves them) become labels; one
 * whose name is taken gets exported_ before it, as Prometheus itself has it.
 *
 * The label `name` has the name as it was, and `unit` the unit if it is not one
 * of those below, so two sensors are never the same series:
 *
 *     s B Hz W J V A degC K 1/s B/s FLOP FLOP/s     seconds bytes hertz ...
 *     1                                             nothing, or ratio
 */
#ifndef EP_RECORD_PROM_NAME_H
#define EP_RECORD_PROM_NAME_H

#include "base/buf.h"

/*
 * Append what comes behind the prefix of the family, "_" first, or nothing; and
 * the labels: name, unit, then the others in order. name and unit are UTF-8.
 */
void ep_prom_name(struct ep_span name, struct ep_span unit,
                  struct ep_buf *family, struct ep_buf *labels);

/*
 * The same for values that have a unit and no name: unit is all there is of the
 * family, and labels has unit="..." if it is none of the above, else nothing.
 */
void ep_prom_unit(struct ep_span unit, struct ep_buf *family,
                  struct ep_buf *labels);

#endif

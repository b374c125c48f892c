/* SPDX-License-Identifier: Apache-2.0 */
/* test_gauges.c - readings of sensors: names, devices, before and since. */
#include "config.h"

#include "detect/gauges.h"

#include "tap.h"

#include <math.h>
#include <string.h>

static struct ep_gauges *g;

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, s ? strlen(s) : 0};
}

static int take(const char *host, const char *gpu, int64_t index, int64_t rank,
                const char *name, double ts, double value)
{
    struct ep_gauge_who who = {0, rank, span(host), span(gpu), index};

    return ep_gauges_take(g, &who, span(name), ts, value, NULL);
}

/* Is the sensor of the device around the change like that? */
static bool is(const struct ep_gauge_device *d, enum ep_sensor k,
               double healthy, double since, double before, double after)
{
    struct ep_gauge_stat x;
    bool read = ep_gauge_device_stat(d, k, healthy, since, &x);
    bool good =
        read &&
        (isnan(before) ? isnan(x.before) : fabs(x.before - before) < 1e-6) &&
        (isnan(after) ? isnan(x.since) : fabs(x.since - after) < 1e-6);

    if (!good)
        printf("# read %d: %g, %g; expected %g, %g\n", read, x.before, x.since,
               before, after);
    return good;
}

static const struct ep_gauge_device *rank(int64_t r)
{
    return ep_gauges_rank(g, 0, r);
}

static void test_names(void)
{
    /* as the importers' fixtures have them */
    static const struct {
        const char *name;
        enum ep_sensor sensor;
    } known[] = {
        {"cpu_share", EP_SENSOR_CPU_SHARE},
        {"cpu_wait", EP_SENSOR_CPU_WAIT},
        {"nvidia_smi_clocks_current_sm", EP_SENSOR_SM_CLOCK},
        {"nvidia_smi_dmon_pclk", EP_SENSOR_SM_CLOCK},
        {"nvidia_smi_dmon_mclk", EP_SENSOR_MEMORY_CLOCK},
        {"nvidia_smi_dmon_tviol", EP_SENSOR_THERMAL_LIMIT},
        {"nvidia_smi_clocks_event_reasons_sw_power_cap", EP_SENSOR_POWER_CAP},
        {"nvidia_smi_pcie_link_gen_current", EP_SENSOR_PCIE_GENERATION},
        {"nvidia_smi_ecc_errors_uncorrected_volatile_total",
         EP_SENSOR_ECC_UNCORRECTED},
        {"DCGM_FI_DEV_SM_CLOCK", EP_SENSOR_SM_CLOCK},
        {"DCGM_FI_DEV_GPU_TEMP{DCGM_FI_DRIVER_VERSION=\"550.144.03\"}",
         EP_SENSOR_GPU_TEMPERATURE},
        {"DCGM_FI_DEV_XID_ERRORS", EP_SENSOR_XID},
        {"dcgm_sm_clock", EP_SENSOR_SM_CLOCK},
        {"node_cpu_seconds_total{cpu=\"3\",mode=\"iowait\"}",
         EP_SENSOR_IO_WAIT},
        {"DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event=\"hw_thermal\"}",
         EP_SENSOR_HW_THERMAL},
        {"DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event=\"sw_power_cap\"}",
         EP_SENSOR_POWER_CAP},
        {"megatron_straggler_data_time_max", EP_SENSOR_DATA_TIME},
        {"nvrx_gpu_individual_perf", EP_SENSOR_KERNEL_PACE},
    };
    static const char *const unknown[] = {
        "",
        "cpu_shar",
        "cpu_shares",
        "{a=\"b\"}",
        "nccl_init",
        "node_cpu_seconds_total",
        "node_cpu_seconds_total{cpu=\"3\",mode=\"user\"}",
        "nvrx_gpu_relative_perf", /* of the fastest rank: no sensor */
        "zzz",
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct ep_sensor_name *row = ep_sensor_of(span(known[i].name));

        if (!row || row->sensor != known[i].sensor)
            printf("# %s\n", known[i].name);
        ok(row && row->sensor == known[i].sensor);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        ok(!ep_sensor_of(span(unknown[i])));
    ok(!ep_sensor_of(span(NULL)));
    for (size_t i = 1; i < ep_sensor_names_count; i++)
        if (strcmp(ep_sensor_names[i - 1].name, ep_sensor_names[i].name) > 0 ||
            (!ep_sensor_names[i].label &&
             strcmp(ep_sensor_names[i - 1].name, ep_sensor_names[i].name) ==
                 0)) {
            printf("# %s\n", ep_sensor_names[i].name);
            ok(false);
        }
    for (int k = 0; k < EP_SENSORS; k++)
        ok(ep_sensor_kinds[k].text && *ep_sensor_kinds[k].text &&
           ep_sensor_kinds[k].unit);
}

static void test_levels(void)
{
    g = ep_gauges_new();
    ok(!rank(3));
    for (int i = 0; i < 100; i++)
        ok(take(NULL, NULL, -1, 3, "nvidia_smi_clocks_current_sm", i,
                i < 50 ? 1.98e9 : 1.41e9) == 0);
    ok(is(rank(3), EP_SENSOR_SM_CLOCK, 50, 50, (float)1.98e9, (float)1.41e9));
    ok(is(rank(3), EP_SENSOR_SM_CLOCK, 0, 0, NAN, (float)1.41e9));
    ok(is(rank(3), EP_SENSOR_SM_CLOCK, 50, 100, (float)1.98e9, NAN));
    ok(!ep_gauge_device_stat(rank(3), EP_SENSOR_POWER, 50, 50,
                             &(struct ep_gauge_stat){0, 0}));
    ok(!ep_gauge_device_stat(NULL, EP_SENSOR_POWER, 50, 50,
                             &(struct ep_gauge_stat){0, 0}));
    /* time that runs backwards, names of nobody, of no sensor */
    ok(take(NULL, NULL, -1, 3, "nvidia_smi_clocks_current_sm", 5, 1) == 0);
    ok(take(NULL, NULL, -1, -1, "nvidia_smi_clocks_current_sm", 5, 1) == 0);
    ok(take(NULL, NULL, -1, 3, "what", NAN, NAN) == 0);
    ok(is(rank(3), EP_SENSOR_SM_CLOCK, 50, 50, (float)1.98e9, (float)1.41e9));
    /* refused */
    ok(take(NULL, NULL, -1, 3, "cpu_share", 5, NAN) == EP_EDOM);
    ok(take(NULL, NULL, -1, 3, "cpu_share", INFINITY, 1) == EP_EDOM);
    ok(take(NULL, NULL, -1, 3, "cpu_share", 5, -0.1) == EP_EDOM);
    ok(!ep_gauge_device_stat(rank(3), EP_SENSOR_CPU_SHARE, 1, 1,
                             &(struct ep_gauge_stat){0, 0}));
    /* flags: how often */
    for (int i = 0; i < 20; i++)
        (void)take(NULL, NULL, -1, 3,
                   "nvidia_smi_clocks_event_reasons_hw_slowdown", i,
                   i >= 10 && i % 2);
    ok(is(rank(3), EP_SENSOR_HW_SLOWDOWN, 10, 10, 0, 0.5));
    /* a mask is all of them */
    (void)take(NULL, NULL, -1, 4, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 1, 0x4);
    (void)take(NULL, NULL, -1, 4, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 2,
               0x48);
    ok(is(rank(4), EP_SENSOR_POWER_CAP, 2, 2, 1, 0));
    ok(is(rank(4), EP_SENSOR_HW_SLOWDOWN, 2, 2, 0, 1));
    ok(is(rank(4), EP_SENSOR_HW_THERMAL, 2, 2, 0, 1));
    ok(is(rank(4), EP_SENSOR_IDLE, 2, 2, 0, 0));
    ep_gauges_free(g);
    ep_gauges_free(NULL);
}

/* A long noisy past is kept in little, and in its right order. */
static void test_thinning(void)
{
    g = ep_gauges_new();
    for (int i = 0; i < 100000; i++)
        (void)take("n1", NULL, -1, -1, "node_load1", i,
                   (i < 99990 ? 10 : 40) + 3 * (i % 2));
    for (int at = 10; at < 99990; at *= 3) {
        struct ep_gauge_stat x;

        ok(ep_gauge_device_stat(ep_gauges_host(g, span("n1")), EP_SENSOR_LOAD,
                                99990 - at, 99990, &x));
        ok(x.before >= 10 && x.before <= 13);
        ok(x.since >= 40 && x.since <= 43);
    }
    /* of a count what was reached is kept, whatever is merged */
    for (int i = 0; i <= 1000; i++)
        (void)take("n1", NULL, -1, -1, "node_infiniband_symbol_error_total", i,
                   7 + i);
    ok(is(ep_gauges_host(g, span("n1")), EP_SENSOR_IB_ERRORS, 998, 998, 997,
          3));
    ep_gauges_free(g);
}

static void test_counts(void)
{
    const struct ep_gauge_device *d;

    g = ep_gauges_new();
    /* two links; one is reset at 6 and grows by 4 again */
    for (int i = 0; i < 10; i++) {
        (void)take("n1", "GPU-1", 0, -1,
                   "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"
                   "{nvlink=\"0\"}",
                   i, i < 6 ? 1000 : i - 5);
        (void)take("n1", "GPU-1", 0, -1,
                   "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"
                   "{nvlink=\"1\"}",
                   i, 500 + 2 * i);
    }
    d = ep_gauges_gpu(g, span("n1"), 0);
    ok(d != NULL);
    ok(is(d, EP_SENSOR_NVLINK_ERRORS, 5, 5, 8, 14));
    /* seconds of four CPUs, every 5 s: 0.2 of each, then 0.8 */
    for (int i = 0; i < 20; i++)
        for (int cpu = 0; cpu < 4; cpu++) {
            char name[64];

            (void)snprintf(name, sizeof name,
                           "node_cpu_seconds_total{cpu=\"%d\",mode=\"iowait\"}",
                           cpu);
            (void)take("n1", NULL, -1, -1, name, 5 * i,
                       100 * cpu + (i < 10 ? i : 9 + 4 * (i - 9)));
        }
    ok(is(ep_gauges_host(g, span("n1")), EP_SENSOR_IO_WAIT, 50, 50, (float)0.8,
          (float)3.2));
    /* the last scrape counts, though none came after it */
    ok(is(ep_gauges_host(g, span("n1")), EP_SENSOR_IO_WAIT, 50, 95, (float)0.8,
          (float)3.2));
    /* a counter that is read once says nothing */
    (void)take("n2", NULL, -1, -1, "node_pressure_io_waiting_seconds_total", 1,
               12345);
    ok(is(ep_gauges_host(g, span("n2")), EP_SENSOR_IO_PRESSURE, 1, 1, NAN,
          NAN));
    ep_gauges_free(g);
}

static void test_devices(void)
{
    struct ep_gauge_who who = {0, 3, span("n1"), span("GPU-9"), -1};
    struct ep_gauge_who nobody = {0, -1, span("n1"), span("GPU-9"), -1};

    g = ep_gauges_new();
    /* one GPU by three names: its own, with the index, by the index alone */
    (void)take(NULL, "GPU-1", -1, -1, "DCGM_FI_DEV_SM_CLOCK", 1, 1e9);
    (void)take("n1.cluster", "GPU-1", 2, -1, "DCGM_FI_DEV_SM_CLOCK", 2, 1e9);
    (void)take("n1", NULL, 2, -1, "DCGM_FI_DEV_MEM_CLOCK", 3, 2e9);
    ok(is(ep_gauges_gpu(g, span("n1"), 2), EP_SENSOR_SM_CLOCK, 9, 9, 1e9, NAN));
    ok(is(ep_gauges_gpu(g, span("n1.else"), 2), EP_SENSOR_MEMORY_CLOCK, 9, 9,
          2e9, NAN));
    ok(!ep_gauges_gpu(g, span("n2"), 2));
    ok(ep_gauges_gpus_of(g, span("n1")) == 1);
    (void)take("n1", NULL, 3, -1, "DCGM_FI_DEV_SM_CLOCK", 1, 1e9);
    ok(ep_gauges_gpus_of(g, span("n1")) == 2);
    ok(ep_gauges_gpus_of(g, span("n2")) == 0);
    /* addresses are not cut */
    (void)take("10.0.0.1", NULL, -1, -1, "node_load1", 1, 1);
    ok(!ep_gauges_host(g, span("10.0.0.2")) && !ep_gauges_host(g, span("10")));
    /* a rank and its GPU */
    ok(!ep_gauge_device_gpu(NULL));
    (void)take(NULL, "GPU-9", -1, -1, "DCGM_FI_DEV_SM_CLOCK", 1, 3e9);
    ok(ep_gauges_uses(g, &nobody, NULL) == 0 && !rank(3));
    ok(ep_gauges_uses(g, &who, NULL) == 0);
    ok(is(ep_gauge_device_gpu(rank(3)), EP_SENSOR_SM_CLOCK, 9, 9, 3e9, NAN));
    ok(!ep_gauges_rank(g, 1, 3)); /* of another job */
    ep_gauges_free(g);
}

int main(void)
{
    test_names();
    test_levels();
    test_thinning();
    test_counts();
    test_devices();
    return tap_done();
}

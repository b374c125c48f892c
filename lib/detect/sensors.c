/* SPDX-License-Identifier: Apache-2.0 */
/* sensors.c - see sensors.h. */
#include "config.h"

#include "detect/sensors.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const struct ep_sensor_kind ep_sensor_kinds[EP_SENSORS] = {
    [EP_SENSOR_SM_CLOCK] = {"SM clock", "Hz", 0, 0.01},
    [EP_SENSOR_MEMORY_CLOCK] = {"memory clock", "Hz", 0, 0.01},
    [EP_SENSOR_HW_SLOWDOWN] = {"hw_slowdown", "", 0, 0},
    [EP_SENSOR_HW_THERMAL] = {"hw_thermal", "", 0, 0},
    [EP_SENSOR_SW_THERMAL] = {"sw_thermal", "", 0, 0},
    [EP_SENSOR_POWER_BRAKE] = {"power brake", "", 0, 0},
    [EP_SENSOR_POWER_CAP] = {"power cap", "", 0, 0},
    [EP_SENSOR_IDLE] = {"idle", "", 0, 0},
    [EP_SENSOR_APP_CLOCKS] = {"application clocks", "", 0, 0},
    [EP_SENSOR_THERMAL_LIMIT] = {"time limited by temperature", "", 0.02, 0},
    [EP_SENSOR_POWER_LIMITED] = {"time limited by power", "", 0.02, 0},
    [EP_SENSOR_POWER] = {"power", "W", 5, 0.05},
    [EP_SENSOR_POWER_LIMIT] = {"power limit", "W", 0.5, 0},
    [EP_SENSOR_GPU_TEMPERATURE] = {"temperature", "C", 2, 0},
    [EP_SENSOR_MEMORY_TEMPERATURE] = {"memory temperature", "C", 2, 0},
    [EP_SENSOR_GPU_LOAD] = {"GPU load", "", 0.1, 0},
    [EP_SENSOR_PCIE_GENERATION] = {"PCIe generation", "", 0, 0},
    [EP_SENSOR_PCIE_WIDTH] = {"PCIe width", "", 0, 0},
    [EP_SENSOR_PCIE_REPLAYS] = {"PCIe replays", "", 0, 0},
    [EP_SENSOR_NVLINK_ERRORS] = {"NVLink errors", "", 0, 0},
    [EP_SENSOR_ECC_CORRECTED] = {"corrected ECC errors", "", 0, 0},
    [EP_SENSOR_ECC_UNCORRECTED] = {"uncorrected ECC errors", "", 0, 0},
    [EP_SENSOR_ROWS_REMAPPED] = {"rows remapped", "", 0, 0},
    [EP_SENSOR_XID] = {"Xid", "", 0, 0},
    [EP_SENSOR_KERNEL_PACE] = {"pace of its kernels", "", 0.02, 0},
    [EP_SENSOR_CPU_SHARE] = {"share of CPU time", "", 0.01, 0},
    [EP_SENSOR_CPU_WAIT] = {"wait for a CPU", "", 0.01, 0},
    [EP_SENSOR_CPU_PRESSURE] = {"CPU pressure", "", 0.01, 0},
    [EP_SENSOR_LOAD] = {"load", "", 0.5, 0.05},
    [EP_SENSOR_IO_PRESSURE] = {"I/O pressure", "", 0.01, 0},
    [EP_SENSOR_IO_WAIT] = {"CPUs in I/O wait", "", 0.05, 0.05},
    [EP_SENSOR_DISK_BUSY] = {"disks busy", "", 0.05, 0.05},
    [EP_SENSOR_DATA_TIME] = {"data loading", "s", 0, 0.05},
    [EP_SENSOR_MEMORY_PRESSURE] = {"memory pressure", "", 0.01, 0},
    [EP_SENSOR_SWAP] = {"pages swapped in", "/s", 1, 0.05},
    [EP_SENSOR_RETRANSMITS] = {"TCP retransmits", "/s", 1, 0.05},
    [EP_SENSOR_NET_ERRORS] = {"network errors and drops", "", 0, 0},
    [EP_SENSOR_IB_ERRORS] = {"InfiniBand errors", "", 0, 0},
};

const uint64_t ep_sensor_reasons[EP_SENSOR_FLAGS] = {
    0x8, 0x40, 0x20, 0x80, 0x4, 0x1, 0x2,
};

/*
 * Of what a tool counts both since the start of the driver and over the life of
 * the device only the former is here: both would count twice.
 */
const struct ep_sensor_name ep_sensor_names[] = {
    {"DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_event=\"hw_slowdown\"",
     EP_SENSOR_HW_SLOWDOWN, EP_SENSOR_FLAG},
    {"DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_event=\"hw_thermal\"",
     EP_SENSOR_HW_THERMAL, EP_SENSOR_FLAG},
    {"DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_event=\"sw_thermal\"",
     EP_SENSOR_SW_THERMAL, EP_SENSOR_FLAG},
    {"DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_event=\"hw_power_brake\"",
     EP_SENSOR_POWER_BRAKE, EP_SENSOR_FLAG},
    {"DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_event=\"sw_power_cap\"",
     EP_SENSOR_POWER_CAP, EP_SENSOR_FLAG},
    {"DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_event=\"gpu_idle\"", EP_SENSOR_IDLE,
     EP_SENSOR_FLAG},
    {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", NULL, EP_SENSOR_HW_SLOWDOWN,
     EP_SENSOR_REASONS},
    {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", NULL, EP_SENSOR_HW_SLOWDOWN,
     EP_SENSOR_REASONS},
    {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", NULL, EP_SENSOR_ROWS_REMAPPED,
     EP_SENSOR_COUNT},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", NULL, EP_SENSOR_ECC_UNCORRECTED,
     EP_SENSOR_COUNT},
    {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", NULL, EP_SENSOR_ECC_CORRECTED,
     EP_SENSOR_COUNT},
    {"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", NULL, EP_SENSOR_POWER_LIMIT,
     EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_GPU_TEMP", NULL, EP_SENSOR_GPU_TEMPERATURE, EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_GPU_UTIL", NULL, EP_SENSOR_GPU_LOAD, EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_MEMORY_TEMP", NULL, EP_SENSOR_MEMORY_TEMPERATURE,
     EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_MEM_CLOCK", NULL, EP_SENSOR_MEMORY_CLOCK, EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", NULL,
     EP_SENSOR_NVLINK_ERRORS, EP_SENSOR_COUNT},
    {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", NULL,
     EP_SENSOR_NVLINK_ERRORS, EP_SENSOR_COUNT},
    {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", NULL,
     EP_SENSOR_NVLINK_ERRORS, EP_SENSOR_COUNT},
    {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", NULL,
     EP_SENSOR_NVLINK_ERRORS, EP_SENSOR_COUNT},
    {"DCGM_FI_DEV_PCIE_LINK_GEN", NULL, EP_SENSOR_PCIE_GENERATION,
     EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_PCIE_LINK_WIDTH", NULL, EP_SENSOR_PCIE_WIDTH,
     EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", NULL, EP_SENSOR_PCIE_REPLAYS,
     EP_SENSOR_COUNT},
    {"DCGM_FI_DEV_POWER_MGMT_LIMIT", NULL, EP_SENSOR_POWER_LIMIT,
     EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_POWER_USAGE", NULL, EP_SENSOR_POWER, EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_POWER_VIOLATION", NULL, EP_SENSOR_POWER_LIMITED,
     EP_SENSOR_RATE},
    {"DCGM_FI_DEV_SM_CLOCK", NULL, EP_SENSOR_SM_CLOCK, EP_SENSOR_LEVEL},
    {"DCGM_FI_DEV_THERMAL_VIOLATION", NULL, EP_SENSOR_THERMAL_LIMIT,
     EP_SENSOR_RATE},
    {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", NULL, EP_SENSOR_ROWS_REMAPPED,
     EP_SENSOR_COUNT},
    {"DCGM_FI_DEV_XID_ERRORS", NULL, EP_SENSOR_XID, EP_SENSOR_LEVEL},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", NULL, EP_SENSOR_GPU_LOAD,
     EP_SENSOR_LEVEL},
    {"cpu_share", NULL, EP_SENSOR_CPU_SHARE, EP_SENSOR_LEVEL},
    {"cpu_wait", NULL, EP_SENSOR_CPU_WAIT, EP_SENSOR_LEVEL},
    {"data_time", NULL, EP_SENSOR_DATA_TIME, EP_SENSOR_LEVEL},
    {"dcgm_gpu_temp", NULL, EP_SENSOR_GPU_TEMPERATURE, EP_SENSOR_LEVEL},
    {"dcgm_gpu_utilization", NULL, EP_SENSOR_GPU_LOAD, EP_SENSOR_LEVEL},
    {"dcgm_memory_clock", NULL, EP_SENSOR_MEMORY_CLOCK, EP_SENSOR_LEVEL},
    {"dcgm_memory_temp", NULL, EP_SENSOR_MEMORY_TEMPERATURE, EP_SENSOR_LEVEL},
    {"dcgm_power_usage", NULL, EP_SENSOR_POWER, EP_SENSOR_LEVEL},
    {"dcgm_sm_clock", NULL, EP_SENSOR_SM_CLOCK, EP_SENSOR_LEVEL},
    {"deepspeed_timer_batch_input", NULL, EP_SENSOR_DATA_TIME, EP_SENSOR_LEVEL},
    {"megatron_straggler_clock_max", NULL, EP_SENSOR_SM_CLOCK, EP_SENSOR_LEVEL},
    {"megatron_straggler_clock_min", NULL, EP_SENSOR_SM_CLOCK, EP_SENSOR_LEVEL},
    {"megatron_straggler_data_time_max", NULL, EP_SENSOR_DATA_TIME,
     EP_SENSOR_LEVEL},
    {"megatron_straggler_data_time_min", NULL, EP_SENSOR_DATA_TIME,
     EP_SENSOR_LEVEL},
    {"megatron_straggler_power_max", NULL, EP_SENSOR_POWER, EP_SENSOR_LEVEL},
    {"megatron_straggler_power_min", NULL, EP_SENSOR_POWER, EP_SENSOR_LEVEL},
    {"megatron_straggler_temperature_max", NULL, EP_SENSOR_GPU_TEMPERATURE,
     EP_SENSOR_LEVEL},
    {"megatron_straggler_temperature_min", NULL, EP_SENSOR_GPU_TEMPERATURE,
     EP_SENSOR_LEVEL},
    {"megatron_timer_batch_generator", NULL, EP_SENSOR_DATA_TIME,
     EP_SENSOR_LEVEL},
    {"megatron_timer_batch_generator_max", NULL, EP_SENSOR_DATA_TIME,
     EP_SENSOR_LEVEL},
    {"node_cpu_seconds_total", "mode=\"iowait\"", EP_SENSOR_IO_WAIT,
     EP_SENSOR_RATE},
    {"node_disk_io_time_seconds_total", NULL, EP_SENSOR_DISK_BUSY,
     EP_SENSOR_RATE},
    {"node_infiniband_link_downed_total", NULL, EP_SENSOR_IB_ERRORS,
     EP_SENSOR_COUNT},
    {"node_infiniband_link_error_recovery_total", NULL, EP_SENSOR_IB_ERRORS,
     EP_SENSOR_COUNT},
    {"node_infiniband_port_discards_transmitted_total", NULL,
     EP_SENSOR_IB_ERRORS, EP_SENSOR_COUNT},
    {"node_infiniband_port_errors_received_total", NULL, EP_SENSOR_IB_ERRORS,
     EP_SENSOR_COUNT},
    {"node_infiniband_symbol_error_total", NULL, EP_SENSOR_IB_ERRORS,
     EP_SENSOR_COUNT},
    {"node_load1", NULL, EP_SENSOR_LOAD, EP_SENSOR_LEVEL},
    {"node_netstat_Tcp_RetransSegs", NULL, EP_SENSOR_RETRANSMITS,
     EP_SENSOR_RATE},
    {"node_network_receive_drop_total", NULL, EP_SENSOR_NET_ERRORS,
     EP_SENSOR_COUNT},
    {"node_network_receive_errs_total", NULL, EP_SENSOR_NET_ERRORS,
     EP_SENSOR_COUNT},
    {"node_network_transmit_drop_total", NULL, EP_SENSOR_NET_ERRORS,
     EP_SENSOR_COUNT},
    {"node_network_transmit_errs_total", NULL, EP_SENSOR_NET_ERRORS,
     EP_SENSOR_COUNT},
    {"node_pressure_cpu_waiting_seconds_total", NULL, EP_SENSOR_CPU_PRESSURE,
     EP_SENSOR_RATE},
    {"node_pressure_io_waiting_seconds_total", NULL, EP_SENSOR_IO_PRESSURE,
     EP_SENSOR_RATE},
    {"node_pressure_memory_waiting_seconds_total", NULL,
     EP_SENSOR_MEMORY_PRESSURE, EP_SENSOR_RATE},
    {"node_vmstat_pswpin", NULL, EP_SENSOR_SWAP, EP_SENSOR_RATE},
    {"nvidia_smi_clocks_current_memory", NULL, EP_SENSOR_MEMORY_CLOCK,
     EP_SENSOR_LEVEL},
    {"nvidia_smi_clocks_current_sm", NULL, EP_SENSOR_SM_CLOCK, EP_SENSOR_LEVEL},
    {"nvidia_smi_clocks_event_reasons_active", NULL, EP_SENSOR_HW_SLOWDOWN,
     EP_SENSOR_REASONS},
    {"nvidia_smi_clocks_event_reasons_applications_clocks_setting", NULL,
     EP_SENSOR_APP_CLOCKS, EP_SENSOR_FLAG},
    {"nvidia_smi_clocks_event_reasons_gpu_idle", NULL, EP_SENSOR_IDLE,
     EP_SENSOR_FLAG},
    {"nvidia_smi_clocks_event_reasons_hw_power_brake_slowdown", NULL,
     EP_SENSOR_POWER_BRAKE, EP_SENSOR_FLAG},
    {"nvidia_smi_clocks_event_reasons_hw_slowdown", NULL, EP_SENSOR_HW_SLOWDOWN,
     EP_SENSOR_FLAG},
    {"nvidia_smi_clocks_event_reasons_hw_thermal_slowdown", NULL,
     EP_SENSOR_HW_THERMAL, EP_SENSOR_FLAG},
    {"nvidia_smi_clocks_event_reasons_sw_power_cap", NULL, EP_SENSOR_POWER_CAP,
     EP_SENSOR_FLAG},
    {"nvidia_smi_clocks_event_reasons_sw_thermal_slowdown", NULL,
     EP_SENSOR_SW_THERMAL, EP_SENSOR_FLAG},
    {"nvidia_smi_clocks_mem", NULL, EP_SENSOR_MEMORY_CLOCK, EP_SENSOR_LEVEL},
    {"nvidia_smi_clocks_sm", NULL, EP_SENSOR_SM_CLOCK, EP_SENSOR_LEVEL},
    {"nvidia_smi_dmon_dbecc", NULL, EP_SENSOR_ECC_UNCORRECTED, EP_SENSOR_COUNT},
    {"nvidia_smi_dmon_gtemp", NULL, EP_SENSOR_GPU_TEMPERATURE, EP_SENSOR_LEVEL},
    {"nvidia_smi_dmon_mclk", NULL, EP_SENSOR_MEMORY_CLOCK, EP_SENSOR_LEVEL},
    {"nvidia_smi_dmon_mtemp", NULL, EP_SENSOR_MEMORY_TEMPERATURE,
     EP_SENSOR_LEVEL},
    {"nvidia_smi_dmon_pci", NULL, EP_SENSOR_PCIE_REPLAYS, EP_SENSOR_COUNT},
    {"nvidia_smi_dmon_pclk", NULL, EP_SENSOR_SM_CLOCK, EP_SENSOR_LEVEL},
    {"nvidia_smi_dmon_pviol", NULL, EP_SENSOR_POWER_LIMITED, EP_SENSOR_LEVEL},
    {"nvidia_smi_dmon_pwr", NULL, EP_SENSOR_POWER, EP_SENSOR_LEVEL},
    {"nvidia_smi_dmon_sbecc", NULL, EP_SENSOR_ECC_CORRECTED, EP_SENSOR_COUNT},
    {"nvidia_smi_dmon_sm", NULL, EP_SENSOR_GPU_LOAD, EP_SENSOR_LEVEL},
    {"nvidia_smi_dmon_tviol", NULL, EP_SENSOR_THERMAL_LIMIT, EP_SENSOR_LEVEL},
    {"nvidia_smi_ecc_errors_corrected_volatile_total", NULL,
     EP_SENSOR_ECC_CORRECTED, EP_SENSOR_COUNT},
    {"nvidia_smi_ecc_errors_uncorrected_volatile_total", NULL,
     EP_SENSOR_ECC_UNCORRECTED, EP_SENSOR_COUNT},
    {"nvidia_smi_enforced_power_limit", NULL, EP_SENSOR_POWER_LIMIT,
     EP_SENSOR_LEVEL},
    {"nvidia_smi_pcie_link_gen_current", NULL, EP_SENSOR_PCIE_GENERATION,
     EP_SENSOR_LEVEL},
    {"nvidia_smi_pcie_link_gen_gpucurrent", NULL, EP_SENSOR_PCIE_GENERATION,
     EP_SENSOR_LEVEL},
    {"nvidia_smi_pcie_link_width_current", NULL, EP_SENSOR_PCIE_WIDTH,
     EP_SENSOR_LEVEL},
    {"nvidia_smi_power_draw", NULL, EP_SENSOR_POWER, EP_SENSOR_LEVEL},
    {"nvidia_smi_power_draw_average", NULL, EP_SENSOR_POWER, EP_SENSOR_LEVEL},
    {"nvidia_smi_power_limit", NULL, EP_SENSOR_POWER_LIMIT, EP_SENSOR_LEVEL},
    {"nvidia_smi_remapped_rows_correctable", NULL, EP_SENSOR_ROWS_REMAPPED,
     EP_SENSOR_COUNT},
    {"nvidia_smi_remapped_rows_uncorrectable", NULL, EP_SENSOR_ROWS_REMAPPED,
     EP_SENSOR_COUNT},
    {"nvidia_smi_temperature_gpu", NULL, EP_SENSOR_GPU_TEMPERATURE,
     EP_SENSOR_LEVEL},
    {"nvidia_smi_temperature_memory", NULL, EP_SENSOR_MEMORY_TEMPERATURE,
     EP_SENSOR_LEVEL},
    {"nvidia_smi_utilization_gpu", NULL, EP_SENSOR_GPU_LOAD, EP_SENSOR_LEVEL},
    {"nvrx_gpu_individual_perf", NULL, EP_SENSOR_KERNEL_PACE, EP_SENSOR_LEVEL},
};

#define NAMES (sizeof ep_sensor_names / sizeof ep_sensor_names[0])

const size_t ep_sensor_names_count = NAMES;

/* Order of a text and a name of the table. */
static int order(struct ep_span s, const char *name)
{
    size_t n = strlen(name);
    int c = memcmp(s.ptr, name, s.len < n ? s.len : n);

    return c ? c : (s.len > n) - (s.len < n);
}

static bool contains(struct ep_span s, const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i + n <= s.len; i++)
        if (memcmp(s.ptr + i, text, n) == 0)
            return true;
    return false;
}

const struct ep_sensor_name *ep_sensor_of(struct ep_span name)
{
    const char *brace = name.len ? memchr(name.ptr, '{', name.len) : NULL;
    struct ep_span bare = name;
    size_t lo = 0, hi = NAMES;

    if (!name.len)
        return NULL;
    if (brace)
        bare.len = (size_t)(brace - name.ptr);
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (order(bare, ep_sensor_names[mid].name) > 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < NAMES && order(bare, ep_sensor_names[lo].name) == 0; lo++)
        if (!ep_sensor_names[lo].label ||
            contains(name, ep_sensor_names[lo].label))
            return &ep_sensor_names[lo];
    return NULL;
}

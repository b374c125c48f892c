/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry.c - a corpus of one telemetry format, as large as wanted.
 *
 *     telemetry FORMAT BYTES [SEED]
 *
 * writes to standard output what a producer of that format would have written,
 * made up but of its shape: the lines and members of tests/fixtures (which have
 * the sources), in the mix in which they come, with values that vary as they
 * do. The same arguments give the same bytes. A text ends whole, so it is a
 * little longer than BYTES.
 */
#include "config.h"

#include "telemetry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLUSH ((size_t)1 << 20)

uint64_t telemetry_below(struct corpus *c, uint64_t n)
{
    return ep_rng_next(&c->rng) % n;
}

double telemetry_uniform(struct corpus *c, double lo, double hi)
{
    return lo + (hi - lo) * ep_rng_uniform(&c->rng);
}

bool telemetry_more(struct corpus *c)
{
    c->n++;
    if (c->out.len >= FLUSH || c->written + c->out.len >= c->want) {
        if (fwrite(c->out.ptr, 1, c->out.len, stdout) != c->out.len)
            exit(2);
        c->written += c->out.len;
        ep_buf_reset(&c->out);
    }
    return c->written < c->want;
}

const char *telemetry_collective(struct corpus *c)
{
    static const char *const names[] = {"AllReduce", "AllGather",
                                        "ReduceScatter", "Broadcast"};

    return names[telemetry_below(c, 4)];
}

void telemetry_time(struct ep_buf *b, char dash, uint64_t s)
{
    time_t t = (time_t)(EPOCH + s);
    struct tm tm;

    if (gmtime_r(&t, &tm))
        ep_buf_addf(b, "%04d%c%02d%c%02d %02d:%02d:%02d", tm.tm_year + 1900,
                    dash, tm.tm_mon + 1, dash, tm.tm_mday, tm.tm_hour,
                    tm.tm_min, tm.tm_sec);
}

/* ==== JSON Lines ==== */

/* coll records mostly, with the steps and sensors of their ranks. */
static void records(struct corpus *c)
{
    struct ep_buf *b = &c->out;

    while (telemetry_more(c)) {
        int rank = (int)telemetry_below(c, 64), host = rank / 8;
        uint64_t step = c->n / 4096, us = c->n % 1000000;

        if (c->n % 16 == 0)
            ep_buf_addf(
                b,
                "{\"type\":\"step\",\"ts\":%" PRIu64 ".%06" PRIu64
                ",\"job\":\"lm-140b\",\"host\":\"n%d\",\"rank\":%d,\"step\":"
                "%" PRIu64 ",\"dur\":%.6f,\"busy\":%.6f,\"mb\":8}\n",
                EPOCH + step, us, host, rank, step,
                telemetry_uniform(c, 1.3, 1.5), telemetry_uniform(c, 1.1, 1.3));
        else if (c->n % 4 == 0)
            ep_buf_addf(b,
                        "{\"type\":\"gauge\",\"ts\":%" PRIu64 ".%03" PRIu64
                        ",\"host\":\"n%d\",\"gpu\":\"GPU-8b22f4d8-2d1c-4e4f-"
                        "a8d1-%012d\",\"gpu_index\":%d,\"name\":\"power\","
                        "\"value\":%.3f,\"unit\":\"W\"}\n",
                        EPOCH + step, us / 1000, host, rank, rank % 8,
                        telemetry_uniform(c, 300, 700));
        else
            ep_buf_addf(
                b,
                "{\"type\":\"coll\",\"ts\":%" PRIu64 ".%06" PRIu64
                ",\"host\":\"n%d\",\"pid\":%d,\"rank\":%d,\"op\":\"%s\","
                "\"comm\":\"0x7f8c496ae9f661\",\"nranks\":64,\"comm_rank\":%d,"
                "\"seq\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"dur\":%.6f}\n",
                EPOCH + step, us, host, 1639453 + rank, rank,
                telemetry_collective(c), rank, c->n / 64,
                UINT64_C(4096) << telemetry_below(c, 18),
                telemetry_uniform(c, 1e-5, 0.07));
    }
}

static void inspector(struct corpus *c)
{
    while (telemetry_more(c)) {
        double us = telemetry_uniform(c, 10, 70000);
        uint64_t bytes = UINT64_C(4096) << telemetry_below(c, 18);

        ep_buf_addf(
            &c->out,
            "{\"header\":{\"id\":\"0x7f8c496ae9f661\",\"comm_name\":\"unknown\""
            ",\"rank\":2,\"n_ranks\":8,\"nnodes\":1},\"metadata\":{\"inspector_"
            "output_format_version\":\"v4.0\",\"git_rev\":\"\",\"rec_mechanism"
            "\":\"nccl_profiler_interface\",\"dump_timestamp_us\":%" PRIu64
            ",\"hostname\":\"h1\",\"pid\":1639453},\"coll_perf\":{\"coll\":"
            "\"%s\",\"coll_sn\":%" PRIu64 ",\"coll_msg_size_bytes\":%" PRIu64
            ",\"coll_exec_time_us\":%.0f,\"coll_timing_source\":\"kernel_gpu\","
            "\"coll_algobw_gbs\":%.6f,\"coll_busbw_gbs\":%.6f}}\n",
            EPOCH * 1000000 + c->n / 512 * 500000, telemetry_collective(c),
            c->n, bytes, us, 1e-3 * (double)bytes / us,
            1.75e-3 * (double)bytes / us);
    }
}

/* ==== Chrome traces ==== */

/* Steps of a 1F1B schedule: 4 dp ranks, 4 stages, 8 microbatches. Names of
   threads come last. */
static void timeline(struct corpus *c)
{
    static const char *const ops[] = {"forward-compute", "backward-compute",
                                      "forward-send",    "backward-send",
                                      "forward-recv",    "backward-recv"};
    struct ep_buf *b = &c->out;
    const char *before = "[";

    for (uint64_t step = 0; telemetry_more(c); step++) {
        for (int lane = 0; lane < 16; lane++)
            for (int i = 0; i < 48; i++) {
                const char *op = ops[i / 8];
                int slot = lane / 4 + 2 * (i % 8) + (i >= 8);
                double t = 9e6 * (double)step + 4e5 * slot;

                ep_buf_addf(
                    b,
                    "%s{\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,"
                    "\"ts\":%.16g,\"dur\":%.16g,\"ph\":\"X\",\"args\":{"
                    "\"step\":%" PRIu64
                    ",\"model_chunk\":%d,\"mb_id\":%d,"
                    "\"seq_id\":%d}}",
                    before, op, op, lane % 4, lane / 4 * 20 + lane % 4 * 80,
                    t + telemetry_uniform(c, 0, 1e4),
                    i < 16 ? telemetry_uniform(c, 3e5, 9e5)
                           : telemetry_uniform(c, 100, 900),
                    step, i < 16 ? 0 : -1, i < 16 ? i % 8 : -1, i % 8);
                before = ",";
            }
    }
    for (int lane = 0; lane < 16; lane++)
        ep_buf_addf(b,
                    ",{\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"ph\":"
                    "\"M\",\"args\":{\"name\":\"PP rank %d, TP rank 0, "
                    "compute\"}}",
                    lane % 4, lane / 4 * 20 + lane % 4 * 80, lane / 4);
    ep_buf_adds(b, "]\n");
}

/* An operator, the launch of its kernel, and the kernel: of NCCL now and
   then. */
static void kineto_events(struct corpus *c, double us)
{
    struct ep_buf *b = &c->out;

    ep_buf_addf(
        b,
        ",\n  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
        "\"aten::addmm\", \"pid\": 2910249, \"tid\": 2910249,\n    \"ts\": "
        "%.3f, \"dur\": %.3f,\n    \"args\": {\n      \"External id\": %" PRIu64
        ",\"Sequence number\": %" PRIu64
        ", \"Fwd thread id\": 0, \"Record function id\": 0, \"Ev Idx\": %"
        "" PRIu64 "\n    }\n  }",
        us, telemetry_uniform(c, 5, 90), c->n, c->n / 2, c->n);
    ep_buf_addf(
        b,
        ",\n  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": "
        "\"cudaLaunchKernel\", \"pid\": 2910249, \"tid\": 2910249,\n    \"ts\":"
        " %.3f, \"dur\": %.3f,\n    \"args\": {\n      \"External id\": %"
        "" PRIu64 ", \"cbid\": 211, \"correlation\": %" PRIu64 "\n    }\n  }",
        us + 5, telemetry_uniform(c, 2, 9), c->n, c->n);
    if (c->n % 8)
        ep_buf_addf(
            b,
            ",\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
            "\"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_"
            "warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas\", "
            "\"pid\": 0, \"tid\": 7,\n    \"ts\": %.3f, \"dur\": %.3f,\n    "
            "\"args\": {\n      \"External id\": %" PRIu64
            ",\n      \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\":"
            " 7, \"correlation\": %" PRIu64
            ",\n      \"registers per thread\": 168, \"shared memory\": 213248,"
            " \"blocks per SM\": 1.0, \"warps per SM\": 12.0,\n      \"grid\": "
            "[132, 1, 1], \"block\": [384, 1, 1]\n    }\n  }",
            us + 20, telemetry_uniform(c, 20, 400), c->n, c->n);
    else
        ep_buf_addf(
            b,
            ",\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
            "\"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage"
            "<4096ul>)\", \"pid\": 0, \"tid\": 40,\n    \"ts\": %.3f, \"dur\": "
            "%.3f,\n    \"args\": {\n      \"External id\": %" PRIu64
            ",\n      \"device\": 0, \"context\": 1, \"stream\": 40, "
            "\"correlation\": %" PRIu64
            ",\n      \"grid\": [24, 1, 1], \"block\": [512, 1, 1],\n      "
            "\"Collective name\": \"allreduce\", \"In msg nelems\": 6637568, "
            "\"Out msg nelems\": 6637568, \"Group size\": 4, \"dtype\": "
            "\"Float\", \"Process Group Name\": \"0\", \"Process Group Ranks\":"
            " \"[0, 1, 2, 3]\", \"Seq\": %" PRIu64 "\n    }\n  }",
            us + 20, telemetry_uniform(c, 900, 4000), c->n, c->n, c->n / 8);
}

static void kineto(struct corpus *c)
{
    ep_buf_adds(
        &c->out,
        "\n  {\n    \"schemaVersion\": 1,\n    \"deviceProperties\": [],\n    "
        "\"host_name\": \"n1.cluster.example\",\n    \"distributedInfo\": {"
        "\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 4},\n  "
        "\"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": "
        "1711964646000000000,\n  \"traceEvents\": [\n  {\n    \"ph\": \"X\", "
        "\"cat\": \"user_annotation\", \"name\": \"ProfilerStep#4\", \"pid\": "
        "2910249, \"tid\": 2910249,\n    \"ts\": 4458676416788.066, \"dur\": "
        "222442.191,\n    \"args\": {\n      \"External id\": 1, \"Ev Idx\": 0"
        "\n    }\n  }");
    while (telemetry_more(c))
        kineto_events(c, 4458676416700 + 450.25 * (double)c->n);
    ep_buf_adds(&c->out, "\n  ],\n  \"traceName\": \"n1.pt.trace.json\"\n}\n");
}

static void flight_recorder(struct corpus *c)
{
    const char *before = "{\"comm_lib_version\":\"2.21.5\",\"entries\":[";

    while (telemetry_more(c)) {
        uint64_t ns = EPOCH * 1000000000 + c->n * 1750000;

        ep_buf_addf(
            &c->out,
            "%s{\"collective_seq_id\":%" PRIu64
            ",\"duration_ms\":%.13g,\"input_dtypes\":[\"BFloat16\"],"
            "\"input_sizes\":[[%d,4096]],\"is_p2p\":false,\"op_id\":%" PRIu64
            ",\"output_dtypes\":[\"BFloat16\"],\"output_sizes\":[[%d,4096]],"
            "\"p2p_seq_id\":0,\"pg_id\":0,\"process_group\":[\"0\","
            "\"default_pg\"],\"profiling_name\":\"nccl:all_reduce\","
            "\"record_id\":%" PRIu64
            ",\"retired\":true,\"state\":\"completed\",\"thread_id\":\"140203\""
            ",\"thread_name\":\"pt_main_thread\",\"time_created_ns\":%" PRIu64
            ",\"time_discovered_completed_ns\":%" PRIu64
            ",\"time_discovered_started_ns\":%" PRIu64
            ",\"timeout_ms\":600000}",
            before, c->n, telemetry_uniform(c, 0.1, 4),
            1 << telemetry_below(c, 12), c->n, 1024, c->n, ns, ns + 1100000,
            ns + 500000);
        before = ",";
    }
    ep_buf_adds(&c->out,
                "],\"nccl_comm_state\":{},\"pg_config\":{\"0\":{\"desc\":"
                "\"default_pg\",\"name\":\"0\",\"ranks\":\"[0, 1, 2, 3]\"}},"
                "\"pg_status\":{\"0\":{\"last_completed_collective\":\"7\","
                "\"last_enqueued_collective\":\"8\","
                "\"last_started_collective\":\"7\"}},\"version\":\"2.10\"}\n");
}

/* ==== Sensors ==== */

/* Scrapes of a node with eight GPUs, one after the other. */
static void dcgm(struct corpus *c)
{
    static const struct {
        const char *name, *help;
        double lo, hi;
        int decimals;
    } fields[] = {
        {"DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", 1400, 1980, 0},
        {"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", 30, 80, 0},
        {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", 300, 700, 3},
        {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", 0, 100, 0},
        {"DCGM_FI_DEV_FB_USED", "Framebuffer used (in MiB).", 1e3, 8e4, 0},
        {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "PCIe retries.", 0, 3, 0},
        {"DCGM_FI_DEV_XID_ERRORS", "Value of the last XID.", 0, 1, 0},
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Engine active.", 0, 1, 6},
        {"DCGM_FI_PROF_DRAM_ACTIVE", "Memory active.", 0, 1, 6},
        {"DCGM_FI_PROF_NVLINK_TX_BYTES", "NVLink sent.", 1e9, 1e12, 0},
    };

    for (int f = 0; telemetry_more(c); f = (f + 1) % 10) {
        ep_buf_addf(&c->out, "# HELP %s %s\n# TYPE %s gauge\n", fields[f].name,
                    fields[f].help, fields[f].name);
        for (int i = 0; i < 8; i++)
            ep_buf_addf(
                &c->out,
                "%s{gpu=\"%d\",UUID=\"GPU-8b22f4d8-2d1c-4e4f-a8d1-00c0ffee%04d"
                "\",pci_bus_id=\"00000000:%d9:00.0\",device=\"nvidia%d\","
                "modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"n1\","
                "DCGM_FI_DRIVER_VERSION=\"550.54.15\",container=\"main\","
                "namespace=\"train\",pod=\"lm-140b-%d\"} %.*f\n",
                fields[f].name, i, i, i + 1, i, (int)telemetry_below(c, 2),
                fields[f].decimals,
                telemetry_uniform(c, fields[f].lo, fields[f].hi));
    }
}

static void node_exporter(struct corpus *c)
{
    static const char *const modes[] = {"idle",    "iowait", "irq",    "nice",
                                        "softirq", "steal",  "system", "user"};
    struct ep_buf *b = &c->out;

    while (telemetry_more(c)) {
        ep_buf_adds(b,
                    "# HELP node_cpu_seconds_total Seconds the CPUs spent in"
                    " each mode.\n# TYPE node_cpu_seconds_total counter\n");
        for (int cpu = 0; cpu < 32; cpu++)
            for (int m = 0; m < 8; m++)
                ep_buf_addf(b,
                            "node_cpu_seconds_total{cpu=\"%d\",mode=\"%s\"} "
                            "%.2f\n",
                            cpu, modes[m], telemetry_uniform(c, 0, 1e6));
        for (int d = 0; d < 8; d++)
            ep_buf_addf(b,
                        "node_disk_io_time_seconds_total{device=\"nvme%dn1\"} "
                        "%.3f\n"
                        "node_network_receive_bytes_total{device=\"mlx5_%d\"} "
                        "%.17e\n"
                        "node_hwmon_temp_celsius{chip=\"nvme_nvme%d\",sensor="
                        "\"temp1\"} %.3f\n",
                        d, telemetry_uniform(c, 0, 1e6), d,
                        telemetry_uniform(c, 1e9, 1e15), d,
                        telemetry_uniform(c, 30, 60));
        ep_buf_addf(
            b,
            "node_memory_MemAvailable_bytes %.9e\nnode_load1 %.2f\n"
            "node_time_seconds %.9e\nprocess_open_fds %d\n",
            telemetry_uniform(c, 1e11, 2e12), telemetry_uniform(c, 0, 64),
            telemetry_uniform(c, 1.73e9, 1.74e9), (int)telemetry_below(c, 64));
    }
}

/* nvidia-smi --query-gpu=... --format=csv -lms 250 */
static void smi(struct corpus *c)
{
    struct ep_buf *b = &c->out;

    ep_buf_adds(b,
                "timestamp, index, uuid, name, pci.bus_id, temperature.gpu, "
                "utilization.gpu [%], power.draw [W], clocks.current.sm "
                "[MHz], memory.used [MiB], pstate\n");
    while (telemetry_more(c)) {
        int gpu = (int)(c->n % 8);

        telemetry_time(b, '/', c->n / 32);
        ep_buf_addf(
            b,
            ".%03d, %d, GPU-8b22f4d8-2d1c-4e4f-a8d1-00c0ffee%04d, "
            "NVIDIA H100 80GB HBM3, 00000000:%d9:00.0, %d, %d %%, %.2f "
            "W, %d MHz, %d MiB, P0\n",
            (int)(c->n / 8 % 4 * 250), gpu, gpu, gpu + 1,
            30 + (int)telemetry_below(c, 50), (int)telemetry_below(c, 101),
            telemetry_uniform(c, 100, 700), 1400 + (int)telemetry_below(c, 580),
            (int)telemetry_below(c, 81559));
    }
}

static const struct {
    const char *name;
    void (*make)(struct corpus *c);
} formats[] = {
    {"records", records},
    {"inspector", inspector},
    {"timeline", timeline},
    {"kineto", kineto},
    {"flight-recorder", flight_recorder},
    {"nccl-debug", telemetry_nccl_debug},
    {"megatron", telemetry_megatron},
    {"deepspeed", telemetry_deepspeed},
    {"pattern", telemetry_pattern},
    {"megatron-log", telemetry_megatron_log},
    {"deepspeed-log", telemetry_deepspeed_log},
    {"pattern-log", telemetry_pattern_log},
    {"dcgm", dcgm},
    {"node-exporter", node_exporter},
    {"nvidia-smi", smi},
};

static int usage(void)
{
    (void)fputs("usage: telemetry FORMAT BYTES [SEED], of the formats\n",
                stderr);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        (void)fprintf(stderr, "  %s\n", formats[i].name);
    return 2;
}

int main(int argc, char **argv)
{
    struct corpus c = {.written = 0};

    if (argc < 3)
        return usage();
    ep_buf_init(&c.out);
    c.want = strtoull(argv[2], NULL, 10);
    ep_rng_seed(&c.rng, argc > 3 ? strtoull(argv[3], NULL, 10) : 1, 0);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, argv[1]) != 0)
            continue;
        formats[i].make(&c);
        (void)fwrite(c.out.ptr, 1, c.out.len, stdout);
        ep_buf_free(&c.out);
        return fflush(stdout) != 0 || ferror(stdout) ? 2 : 0;
    }
    return usage();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verdict.c - samples and sensors, and the cause that they show.
 *
 * A job of 16 ranks on two hosts, 72 steps of 1 s, micro-batches of 1/10 s; a
 * rank, or what the case says, works 1.5 times as long from step 61 on.
 */
#include "config.h"

#include "watch_seen.h"

#include "detect/watch_impl.h"

#include <float.h>
#include <stdlib.h>

#define RANKS 16
#define STEPS 72
#define ONSET 61
#define FACTOR 1.5

/* A sensor: of a rank or a host, before and since, read every so many s. */
struct sensor {
    const char *name;
    double before, since;
    int every;
    enum { OF_RANK, OF_GPU, OF_HOST } of;
    bool counts; /* the two are per second */
};

enum shape { STEADY, PAUSES, LONGER };

struct expected {
    const char *what;
    enum shape shape;
    struct sensor sensors[5];
    const char *cause;
    double least;            /* p_cause */
    const char *evidence[4]; /* in it, or with a ! in front, not in it */
};

static double noise(int64_t r, int64_t s)
{
    return 1 + 0.003 * (double)((s * 7 + r * 3) % 5 - 2);
}

/* A number from 0.6 to 1.4, another for each rank and step. */
static double pause_of(int64_t r, int64_t s)
{
    uint64_t x = (uint64_t)(r * 1000 + s) * UINT64_C(0x9e3779b97f4a7c15);

    return 0.6 + 0.8 * (double)(x >> 40) / (double)(1 << 24);
}

static void read_sensor(const struct sensor *x, size_t i, int64_t r, int s,
                        bool slow)
{
    static double totals[5][RANKS];
    double *total = totals[i];
    double value = slow && s >= ONSET ? x->since : x->before;
    char host[8];

    (void)snprintf(host, sizeof host, "n%d", (int)(r / 8));
    gauge_as.host = span(host);
    gauge_as.gpu_index = x->of == OF_GPU ? r % 8 : -1;
    if (x->counts) {
        total[r] = s == 1 ? 1000 : total[r] + value;
        value = total[r];
    }
    if (s % x->every == 0 && (x->of != OF_HOST || r % 8 == 0))
        ok(take_gauge(x->name, x->of == OF_RANK ? r : -1, 1000 + s - 0.5, value,
                      NULL) == 0);
    gauge_as = (struct ep_watch_gauge){.gpu_index = -1};
}

/* The job, ranks [first, last] being slow from a step on. */
static void run_job(const struct expected *e, int first, int last, int onset)
{
    for (int s = 1; s <= STEPS; s++)
        for (int r = 0; r < RANKS; r++) {
            bool slow = r >= first && r <= last;
            double f = slow && s >= onset ? FACTOR : 1;
            char host[8];

            for (size_t i = 0; i < 5 && e->sensors[i].name; i++)
                read_sensor(&e->sensors[i], i, r, s, slow);
            (void)snprintf(host, sizeof host, "n%d", r / 8);
            if (e->shape == PAUSES)
                f = 1 + (f - 1) * pause_of(r, s);
            step_as.host = span(host);
            step_as.tokens = 10 * 4096 * (e->shape == LONGER ? f : 1);
            step_as.place = (struct ep_place){true, r % 4, r / 8, r / 4 % 2};
            ok(take_step(r, 1000 + s, s, 1, 0.5 * f * noise(r, s), 10) == 0);
        }
    step_as = (struct ep_watch_step){.rank = -1};
}

/* The same, asked of a set of ranks after the end. */
static const char *ask(enum ep_scope scope, int first, int last, double *p)
{
    struct job *job = w->jobs[0];
    struct series *set[RANKS];
    struct ep_change c = {
        .kind = EP_CHANGE_ONSET,
        .since_ts = 1000 + ONSET,
        .since_step = ONSET,
        .factor = FACTOR,
        .before = 0.05,
        .after = 0.05 * FACTOR,
        .p = 1,
    };
    size_t n = 0;

    for (size_t i = 0; i < job->ranks.n; i++)
        if (job->ranks.v[i]->rank >= first && job->ranks.v[i]->rank <= last)
            set[n++] = job->ranks.v[i];
    ep_buf_reset(&w->text);
    return ep_verdict_ranks(w, scope, set, n, &c, p);
}

static bool check(const struct expected *e, const char *cause, double p)
{
    bool good = strcmp(cause, e->cause) == 0 && p >= e->least && p <= 1;

    for (size_t i = 0; i < 4 && e->evidence[i]; i++) {
        const char *part = e->evidence[i];
        bool absent = *part == '!';

        good = good && !strstr(w->text.ptr, part + absent) == absent;
    }
    if (!good)
        printf("# %s: %s, p %.2f: %s\n", e->what, cause, p, w->text.ptr);
    return good;
}

#define SM "nvidia_smi_clocks_current_sm"
#define MEMORY "nvidia_smi_clocks_current_memory"
#define HW "nvidia_smi_clocks_event_reasons_hw_slowdown"
#define GEN "nvidia_smi_pcie_link_gen_current"
#define UTIL "nvidia_smi_utilization_gpu"
#define NVLINK "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"
#define IO "node_pressure_io_waiting_seconds_total"

/* Rank 3 alone. */
static const struct expected of_rank[] = {
    {"nothing is known",
     STEADY,
     {{0}},
     "compute",
     0.3,
     {"tokens normal", "!clocks"}},
    {"the clock fell, and why",
     STEADY,
     {{SM, 1.98e9, 1.32e9, 5, OF_RANK, false},
      {HW, 0, 1, 5, OF_RANK, false},
      {"cpu_share", 0.99, 0.99, 5, OF_RANK, false}},
     "compute",
     0.95,
     {"SM clock 1.98 GHz -> 1.32 GHz", "hw_slowdown", "CPU share, tokens"}},
    {"of a GPU of its host",
     STEADY,
     {{SM, 1.98e9, 1.32e9, 5, OF_GPU, false}, {HW, 0, 1, 5, OF_GPU, false}},
     "compute",
     0.95,
     {"SM clock 1.98 GHz -> 1.32 GHz", "hw_slowdown"}},
    {"the clock fell while it was idle",
     STEADY,
     {{SM, 1.98e9, 1.32e9, 5, OF_RANK, false},
      {"nvidia_smi_clocks_event_reasons_gpu_idle", 0, 1, 5, OF_RANK, false},
      {"cpu_share", 0.99, 0.6, 5, OF_RANK, false}},
     "cpu-contention",
     0.9,
     {"share of CPU time 0.99 -> 0.60", "!SM clock"}},
    {"too little of it",
     STEADY,
     {{SM, 1.98e9, 1.9e9, 5, OF_RANK, false}},
     "compute",
     0.3,
     {"!SM clock 1.98 GHz"}},
    {"hot, and that is all",
     STEADY,
     {{"nvidia_smi_temperature_gpu", 60, 84, 5, OF_RANK, false},
      {SM, 1.98e9, 1.98e9, 5, OF_RANK, false},
      {"cpu_share", 0.99, 0.6, 5, OF_RANK, false}},
     "cpu-contention",
     0.9,
     {"clocks, tokens normal", "!temperature"}},
    {"capped as all are",
     STEADY,
     {{"nvidia_smi_clocks_event_reasons_sw_power_cap", 0, 1, 5, OF_RANK, false},
      {SM, 1.98e9, 1.98e9, 5, OF_RANK, false}},
     "", /* nobody knows */
     0.0,
     {"clocks, tokens normal", "!power cap"}},
    {"the memory's clock fell",
     STEADY,
     {{MEMORY, 2.6e9, 1.7e9, 5, OF_RANK, false},
      {SM, 1.98e9, 1.98e9, 5, OF_RANK, false}},
     "memory",
     0.9,
     {"memory clock 2.6 GHz -> 1.7 GHz", "clocks, tokens normal"}},
    {"rows remapped",
     STEADY,
     {{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 0, 0.1, 5, OF_GPU, true},
      {SM, 1.98e9, 1.98e9, 5, OF_RANK, false}},
     "memory",
     0.7,
     {"rows remapped"}},
    {"the kernels are as fast as ever",
     STEADY,
     {{"nvrx_gpu_individual_perf", 1, 1, 10, OF_RANK, false},
      {"cpu_share", 0.99, 0.62, 5, OF_RANK, false}},
     "cpu-contention",
     0.9,
     {"share of CPU time"}},
    {"the kernels take longer",
     STEADY,
     {{"nvrx_gpu_individual_perf", 1, 0.66, 10, OF_RANK, false},
      {"cpu_share", 0.99, 0.98, 5, OF_RANK, false}},
     "compute",
     0.7,
     {"pace of its kernels 1.00 -> 0.66", "CPU share"}},
    {"contradiction: the clock explains it, the CPU as well",
     STEADY,
     {{SM, 1.98e9, 1.32e9, 5, OF_RANK, false},
      {"cpu_share", 0.99, 0.65, 5, OF_RANK, false}},
     "compute",
     0.5,
     {"SM clock", "share of CPU time 0.99 -> 0.65"}},
    {"all have less CPU time", /* of others: see below */
     STEADY,
     {{"cpu_share", 0.8, 0.8, 5, OF_RANK, false}},
     "compute",
     0.3,
     {"CPU share, tokens normal"}},
    {"PCIe under load",
     STEADY,
     {{GEN, 5, 3, 5, OF_RANK, false}, {UTIL, 0.97, 0.95, 5, OF_RANK, false}},
     "link",
     0.6,
     {"PCIe generation 5 -> 3"}},
    {"PCIe while idle",
     STEADY,
     {{GEN, 5, 1, 5, OF_RANK, false}, {UTIL, 0.97, 0.01, 5, OF_RANK, false}},
     "compute",
     0.3,
     {"!PCIe"}},
    {"PCIe, and nobody knows whether it works",
     STEADY,
     {{GEN, 5, 1, 5, OF_RANK, false}},
     "compute",
     0.3,
     {"!PCIe"}},
    {"NVLink errors",
     STEADY,
     {{NVLINK, 0, 3, 5, OF_GPU, true},
      {SM, 1.98e9, 1.98e9, 5, OF_RANK, false},
      {"cpu_share", 1, 1, 5, OF_RANK, false}},
     "link",
     0.3,
     {"NVLink errors"}},
    {"errors that were always there",
     STEADY,
     {{NVLINK, 3, 3, 5, OF_GPU, true}},
     "compute",
     0.3,
     {"links", "!NVLink"}},
    {"loading data",
     STEADY,
     {{"data_time", 0.005, 0.25, 5, OF_RANK, false},
      {SM, 1.98e9, 1.98e9, 5, OF_RANK, false}},
     "storage",
     0.6,
     {"data loading 5 ms -> 250 ms", "clocks"}},
    {"pauses", PAUSES, {{0}}, "gc", 0.7, {"pauses: excess "}},
    {"pauses, all else normal",
     PAUSES,
     {{SM, 1.98e9, 1.98e9, 5, OF_RANK, false},
      {"cpu_share", 0.99, 0.99, 5, OF_RANK, false}},
     "gc",
     0.9,
     {"pauses: excess ", "clocks, CPU share, tokens normal"}},
    {"pauses of a clock that goes up and down",
     PAUSES,
     {{SM, 1.98e9, 1.4e9, 5, OF_RANK, false}, {HW, 0, 1, 5, OF_RANK, false}},
     "compute",
     0.9,
     {"SM clock", "pauses"}},
    {"longer sequences",
     LONGER,
     {{SM, 1.98e9, 1.98e9, 5, OF_RANK, false}},
     "sequence-imbalance",
     0.8,
     {"tokens per micro-batch 1.50x", "clocks normal"}},
    {"readings stopped",
     STEADY,
     {{SM, 1.98e9, 1.98e9, 60, OF_RANK, false}},
     "compute",
     0.3,
     {"tokens normal", "!SM clock 1.98"}},
};

static void test_rank(void)
{
    for (size_t i = 0; i < sizeof of_rank / sizeof of_rank[0]; i++) {
        const struct expected *e = &of_rank[i];
        const char *cause;
        double p;

        begin();
        run_job(e, 3, 3, ONSET);
        cause = ask(EP_SCOPE_RANK, 3, 3, &p);
        ok(check(e, *e->cause ? cause : "", p));
        /* more than is told at first */
        ok(strstr(seen.ptr, "onset rank=3 6") != NULL);
        end();
    }
}

static const struct expected of_host[] = {
    {"nothing is known", STEADY, {{0}}, "cpu-contention", 0.5, {NULL}},
    {"pauses", PAUSES, {{0}}, "storage", 0.5, {"pauses: excess "}},
    {"waits for I/O",
     STEADY,
     {{IO, 0.01, 0.4, 5, OF_HOST, true},
      {"cpu_share", 0.99, 0.99, 5, OF_RANK, false}},
     "storage",
     0.7,
     {"I/O pressure 0.01 -> 0.40", "CPU share"}},
    {"waits for a CPU",
     STEADY,
     {{"node_pressure_cpu_waiting_seconds_total", 0.02, 0.5, 5, OF_HOST, true},
      {IO, 0.01, 0.01, 5, OF_HOST, true}},
     "cpu-contention",
     0.9,
     {"CPU pressure 0.02 -> 0.50", "I/O"}},
    {"a brake on all of it",
     STEADY,
     {{SM, 1.98e9, 1.32e9, 5, OF_GPU, false},
      {"nvidia_smi_clocks_event_reasons_hw_power_brake_slowdown", 0, 1, 5,
       OF_GPU, false}},
     "compute",
     0.9,
     {"SM clock 1.98 GHz -> 1.32 GHz", "power brake"}},
};

static void test_sets(void)
{
    static const struct expected stage = {
        "a stage",         STEADY, {{SM, 1.98e9, 1.98e9, 5, OF_RANK, false}},
        "stage-imbalance", 0.8,    {"clocks"}};
    static const struct expected group = {
        "a replica",          LONGER, {{0}},
        "sequence-imbalance", 0.9,    {"tokens per micro-batch 1.50x"}};
    const char *cause;
    double p;

    for (size_t i = 0; i < sizeof of_host / sizeof of_host[0]; i++) {
        begin();
        run_job(&of_host[i], 8, 15, ONSET);
        cause = ask(EP_SCOPE_HOST, 8, 15, &p);
        ok(check(&of_host[i], cause, p));
        end();
    }
    begin();
    run_job(&stage, 8, 15, ONSET);
    cause = ask(EP_SCOPE_STAGE, 8, 15, &p);
    ok(check(&stage, cause, p));
    end();
    begin();
    run_job(&group, 8, 11, ONSET);
    cause = ask(EP_SCOPE_GROUP, 8, 11, &p);
    ok(check(&group, cause, p));
    end();
}

/* Nobody works longer: what is slow is between them. */
static void test_communication(void)
{
    static const struct expected quiet = {"quiet",   STEADY, {{0}},
                                          "network", 0.7,    {NULL}};
    static const struct expected drops = {
        "drops",
        STEADY,
        {{"node_network_receive_drop_total", 0, 30, 5, OF_HOST, true}},
        "network",
        0.95,
        {"network errors and drops"}};
    static const struct expected symbols = {
        "symbols",
        STEADY,
        {{"node_infiniband_symbol_error_total", 0, 30, 5, OF_HOST, true}},
        "link",
        0.5,
        {"InfiniBand errors"}};
    const struct expected *v[] = {&quiet, &drops, &symbols};
    double p;

    for (int i = 0; i < 3; i++) {
        const char *cause;

        begin();
        run_job(v[i], 8, 15, STEPS + 1);
        cause = ask(EP_SCOPE_HOST, 8, 15, &p);
        ok(check(v[i], cause, p));
        ok(strcmp(ask(EP_SCOPE_LINK, 7, 8, &p), "link") == 0 || i == 1);
        end();
    }
}

/* Slow from the first step: against the peers. */
static void test_from_the_start(void)
{
    static const struct expected slow = {
        "from the start", STEADY, {{0}}, "", 0, {NULL}};
    double p;

    begin();
    for (int s = 1; s <= 60; s++)
        for (int r = 0; r < 4; r++) {
            if (s % 5 == 1) {
                (void)take_gauge(SM, r, s, r == 2 ? 1.3e9 : 1.98e9, NULL);
                (void)take_gauge(HW, r, s, r == 2, NULL);
            }
            (void)take_step(r, s, s, 1, (r == 2 ? 0.6 : 0.4) * noise(r, s), 1);
        }
    ok(findings_are("onset rank=2 1 1.50 compute\n", slow.what));
    ok(strstr(evidence, "SM clock 1.3 GHz, its peers 1.98 GHz, hw_slowdown") !=
       NULL);
    ok(strcmp(ep_verdict_among(w, EP_SCOPE_RANK, &w->jobs[0]->ranks.v[2], 1, 1,
                               1.5, &p),
              "compute") == 0 &&
       p > 0.9);
    end();
}

/* All ranks: what they show alike is the evidence of the job's. */
static void test_all_ranks(void)
{
    begin();
    for (int s = 1; s <= 80; s++)
        for (int r = 0; r < 8; r++) {
            double f = s > 40 ? 1.5 : 1;

            if (s % 3 == 0) {
                (void)take_gauge(SM, r, s, 1.98e9 / f, NULL);
                (void)take_gauge("nvidia_smi_clocks_event_reasons_sw_power_cap",
                                 r, s, s > 40, NULL);
            }
            (void)take_step(r, s, s, f, 0.5 * f * noise(r, s), 1);
        }
    ok(findings_are("onset job 41 1.50 all-ranks\n", "power cap"));
    ok(strstr(evidence, "SM clock 1.98 GHz -> 1.32 GHz, power cap") != NULL);
    end();
}

/* Gauges of other hosts, jobs and times do not matter; hostile ones do no
 * harm. */
static void test_odd(void)
{
    static const double odd[] = {0,      -1,     1e300,   -1e300,
                                 1e-300, 0x1p60, DBL_MAX, -DBL_MAX};
    double p;

    begin();
    for (int s = 1; s <= 80; s++)
        for (int r = 0; r < 4; r++) {
            gauge_as.job = span("other");
            (void)take_gauge("cpu_share", r, s, s > 40 ? 0.4 : 1, NULL);
            gauge_as.job = span(NULL);
            gauge_as.host = span("elsewhere");
            (void)take_gauge("node_load1", -1, s, s > 40 ? 400 : 1, NULL);
            gauge_as.host = span(NULL);
            for (int k = 0; k < 8; k++) {
                (void)take_gauge(SM, r + 10, s, odd[(s + k) % 8], NULL);
                (void)take_gauge("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", r, s,
                                 odd[(s + k) % 8], NULL);
                (void)take_gauge(NVLINK, r, s, odd[(s * k) % 8], NULL);
                (void)take_gauge(IO, r, s, odd[(s * k) % 8], NULL);
            }
            (void)take_step(r, s, s, 1,
                            0.4 * (r == 1 && s > 40 ? 1.5 : 1) * noise(r, s),
                            1);
        }
    ep_watch_finish(w);
    ok(strstr(seen.ptr, "onset rank=1 41 1.50") && sane);
    ok(!strstr(seen.ptr, "cpu-contention"));
    ok(ep_verdict_ranks(
           w, EP_SCOPE_RANK, &w->jobs[1]->ranks.v[1], 1,
           &(struct ep_change){.since_ts = 41, .since_step = 41, .factor = 1.5},
           &p) != NULL);
    ok(p > 0 && p <= 1);
    end();
}

int main(void)
{
    test_rank();
    test_sets();
    test_communication();
    test_from_the_start();
    test_all_ranks();
    test_odd();
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_probe.c - what the probes measure here and what they cost.
 *
 * Per test: to open (s), one run (ms) and its relative MAD, the check as a
 * share of a run, and the rate beside a peer of the same process: gemm beside
 * the plain triple loop, membw beside memset. Then what the driver adds to a
 * run that does nothing, and what a probe sees of a process that spins on the
 * same CPU: rate, cpu_share and wait_share should say 1/2, 1/2, 1/2.
 *
 * Usage: bench_probe [THREADS]; 0 or none: the CPUs of the affinity mask.
 */
#include "config.h"

#include "probe/probe.h"

#include "base/mem.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PEER_ORDER 256
#define PEER_BYTES (256ULL << 20)

static double now(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return NAN;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ==== Peers ==== */

/* FLOP/s of i-k-j loops in float, one thread. */
static double plain_gemm(void)
{
    enum { N = PEER_ORDER };
    float *m = ep_calloc((size_t)3 * N * N, sizeof *m);
    float *a = m, *b = m + (size_t)N * N, *c = b + (size_t)N * N;
    double begin = now(), rate;

    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++)
            for (size_t j = 0; j < N; j++)
                c[i * N + j] += a[i * N + k] * b[k * N + j];
    rate = 2.0 * N * N * N / (now() - begin);
    free(m);
    return rate;
}

/* B/s of memset, one thread. */
static double plain_fill(void)
{
    double begin = 0.0, rate;
    char *p = ep_probe_map(PEER_BYTES, NULL);

    if (!p)
        return NAN;
    for (int i = 0; i < 2; i++) {
        begin = now();
        memset(p, i, PEER_BYTES);
    }
    rate = (double)PEER_BYTES / (now() - begin);
    ep_probe_unmap(p, PEER_BYTES);
    return rate;
}

/* ==== The probes ==== */

static void bench_test(const struct ep_probe_test *test, int threads)
{
    struct ep_probe_config cfg = {.threads = threads};
    struct ep_probe_goal goal = EP_PROBE_GOAL_DEFAULT, one = {1, 0, 0.0};
    struct ep_probe_result r, again;
    struct ep_error err;
    double begin = now(), opened, check;
    struct ep_probe *p = ep_probe_open(test, &cfg, &err);

    opened = now() - begin;
    if (!p || ep_probe_measure(p, &goal, &r, &err) < 0) {
        printf("%-13s %s\n", test->spec, err.msg);
        ep_probe_close(p);
        return;
    }
    begin = now();
    check = ep_probe_measure(p, &one, &again, &err) < 0
                ? NAN
                : now() - begin - again.wall;
    printf(
        "%-13s threads %d size %llu: open %.3f s, n %d, run %.2f ms, "
        "MAD %.2f %%, check %.2f of a run, cpu_share %.3f, "
        "wait_share %.3f, %.3g %s, "
        "%.1f x peer\n",
        test->spec, r.threads, (unsigned long long)r.size, opened, r.n,
        1e3 * r.busy / r.n, 100 * r.spread, check * r.n / r.busy, r.cpu_share,
        r.wait_share, r.value, r.unit,
        r.value / (test->dtype && strcmp(test->test, "gemm") == 0
                       ? plain_gemm()
                       : plain_fill()));
    ep_probe_close(p);
}

static int idle_prepare(const struct ep_probe_test *self,
                        const struct ep_probe_config *cfg, void **state,
                        struct ep_probe_shape *shape, struct ep_error *err)
{
    (void)self;
    (void)err;
    *state = NULL;
    *shape = (struct ep_probe_shape){1, 1.0, cfg->threads};
    return 0;
}

static int idle_run(void *state, struct ep_probe_run *out, struct ep_error *err)
{
    (void)state;
    (void)err;
    out->seconds = 1.0;
    return 0;
}

static int idle_check(void *state, struct ep_error *err)
{
    (void)state;
    (void)err;
    return 0;
}

static void idle_release(void *state)
{
    (void)state;
}

static void bench_driver(void)
{
    static const struct ep_probe_test test = {
        "idle",       "idle",   NULL,       "1/s",        "high",
        idle_prepare, idle_run, idle_check, idle_release,
    };
    struct ep_probe_goal goal = {100000, 0, INFINITY};
    struct ep_probe *p = ep_probe_open(&test, NULL, NULL);
    struct ep_probe_result r;

    if (p && ep_probe_measure(p, &goal, &r, NULL) == 0)
        printf("driver        %.0f ns per run\n", 1e9 * r.wall / r.n);
    ep_probe_close(p);
}

/* ==== Beside a competitor ==== */

static void bench_contended(const struct ep_probe_test *test)
{
    struct ep_probe_config cfg = {.threads = 1};
    struct ep_probe_goal goal = {30, 1, 3.0};
    struct ep_probe_result alone, beside;
    struct ep_error err;
    struct ep_probe *p;
    int cpu = sched_getcpu();
    pid_t child;

    if (cpu < 0 || ep_probe_pin(cpu, &err) < 0)
        return;
    p = ep_probe_open(test, &cfg, &err);
    if (!p || ep_probe_measure(p, &goal, &alone, &err) < 0)
        goto out;
    child = fork(); /* inherits the affinity */
    if (child == 0)
        for (volatile unsigned spin = 0;; spin++)
            ;
    if (child < 0)
        goto out;
    if (ep_probe_measure(p, &goal, &beside, &err) == 0)
        printf(
            "%-13s beside a spinning process: rate %.2f, cpu_share "
            "%.2f -> %.2f, wait_share %.2f -> %.2f, MAD %.2f -> %.2f %%\n",
            test->spec, beside.value / alone.value, alone.cpu_share,
            beside.cpu_share, alone.wait_share, beside.wait_share,
            100 * alone.spread, 100 * beside.spread);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
out:
    ep_probe_close(p);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    double begin = now();

    for (size_t i = 0; i < ep_probe_count(); i++)
        bench_test(ep_probe_at(i), threads);
    printf("all           %.2f s\n", now() - begin);
    bench_driver();
    for (size_t i = 0; i < ep_probe_count(); i += 2)
        bench_contended(ep_probe_at(i));
    return 0;
}

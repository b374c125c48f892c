/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - how fast is this device now?
 *
 * A probe is one test on one device, repeated a few times; what counts is the
 * median of the rates and their relative MAD. A back end (one .c per device
 * and library) is a constant table of tests; probe.c drives them all and is
 * the only place that knows about time, repeats and statistics:
 *
 *     open:     prepare                       memory, threads, input data
 *     measure:  [warm-up] run run run ... check     any number of times
 *     close:    release
 *
 * Every test checks what it computed: a device that is fast and wrong must
 * not pass for a healthy one (silent data corruption: Hochschild et al.,
 * "Cores that don't count", HotOS 2021).
 *
 * To add a back end (cuda, nvml, nccl, mpi): write its struct ep_probe_test
 * array and struct ep_probe_backend in a new .c, and name the latter in the
 * table at the head of probe.c. One that was built without its library keeps
 * its tests; their prepare returns EP_EMISSING and says what is missing.
 *
 * Messages are reasons ("built without OpenBLAS"): the caller knows how it
 * names the test, and puts "cannot run gemm:f32" before them.
 *
 * Not thread-safe: one probe at a time, two would measure each other. gemm
 * loads OpenBLAS at the first open, with a number of threads of 1.
 */
#ifndef EP_PROBE_PROBE_H
#define EP_PROBE_PROBE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EP_PROBE_MIN_RUNS 3           /* timed, whatever the budget says */
#define EP_PROBE_MAX_RUNS 1000000     /* cap on ep_probe_goal.repeats */
#define EP_PROBE_MAX_THREADS 4096     /* cap on ep_probe_config.threads */
#define EP_PROBE_MAX_GEMM 65536       /* cap on the order of a GEMM */
#define EP_PROBE_MEMBW_MIN (64 << 10) /* bytes; fewer cannot be timed */

/* ==== Using a probe ==== */

/* Where and with what to measure. All zero: the defaults. */
struct ep_probe_config {
    uint64_t size; /* order of the matrices, or bytes; 0: the test's default */
    int threads;   /* 0: as many as the affinity mask has CPUs */

    /*
     * The driver's monotonic clock, in seconds, for tests; NULL: the system's.
     * The CPU tests time themselves, so theirs is the budget only.
     */
    double (*now)(void *ctx);
    void *ctx;
};

/* How long to measure. */
struct ep_probe_goal {
    int repeats;   /* timed runs wanted, 1 .. EP_PROBE_MAX_RUNS */
    int warmups;   /* runs before them that are not counted, >= 0 */
    double budget; /* seconds for both; INFINITY: no limit */
};

/* What gpuprobe does unless told otherwise. */
#define EP_PROBE_GOAL_DEFAULT                                                  \
    {                                                                          \
        .repeats = 10, .warmups = 1, .budget = 1.5                             \
    }

struct ep_probe_result {
    const char *test;   /* "gemm", "membw:triad"; static storage */
    const char *dtype;  /* "f32", or NULL; static storage */
    const char *unit;   /* of value and best: "FLOP/s", "B/s" */
    const char *better; /* "high" or "low" */
    uint64_t size;      /* as in the configuration, the default filled in */
    int threads;        /* of this process at work; 0: another device's test */
    int n;              /* timed runs made */
    double value;       /* median over the runs of work / seconds */
    double spread;      /* MAD / median of the same, not scaled by 1.4826;
                           NAN if n < 2: one run has no spread */
    double best;        /* the highest rate */
    double busy;        /* seconds in the timed runs */
    double wall;        /* seconds from the first to the end of the last */
    double cpu_share;   /* CPU seconds got / seconds spent, summed over the
                           threads at work, each from its own start to its
                           own end: below 1 if somebody else had the core.
                           NAN if threads is 0 */
    double wait_share;  /* seconds runnable but waiting for a core / the same
                           seconds: the stolen part of 1 - cpu_share, the
                           rest is sleep. NAN if threads is 0 or the kernel
                           does not say */
};

/*
 * The tests of all back ends in a fixed order, which is that of the default
 * run. ep_probe_at(i) is NULL for i >= ep_probe_count(). Static storage.
 */
size_t ep_probe_count(void);
const struct ep_probe_test *ep_probe_at(size_t i);

/*
 * Read a list such as "gemm", "gemm:f64,membw:triad" or "all". An item names
 * all tests whose spec it is or of whose spec it is the part before a ':'.
 * A test named twice counts once; the order is that of ep_probe_at().
 *
 * out     [cap] written; cap >= ep_probe_count()
 * Returns the number of tests; EP_EUSAGE for an empty or unknown item (the
 * message lists the known ones), EP_ELIMIT if cap is too small.
 */
int ep_probe_select(const char *list, const struct ep_probe_test **out,
                    size_t cap, struct ep_error *err) EP_MUST_USE;

struct ep_probe;

/*
 * Get a test ready: allocate and fill its memory, start its threads. cfg (may
 * be NULL: defaults) is copied; cfg->ctx is borrowed until ep_probe_close.
 * Pin the process first (ep_probe_pin): threads and memory go where the
 * caller is.
 *
 * Returns NULL and fills *err: EP_EMISSING (built without the library),
 * EP_ERANGE (size or threads out of bounds), EP_ELIMIT (more than half of the
 * memory), EP_ESYS. Close with ep_probe_close.
 */
struct ep_probe *ep_probe_open(const struct ep_probe_test *test,
                               const struct ep_probe_config *cfg,
                               struct ep_error *err) EP_MUST_USE;

/* Frees everything; NULL is accepted. */
void ep_probe_close(struct ep_probe *p);

/*
 * Warm up, run, check; may be called again and again. Runs go on until
 * goal->repeats are done or the next one, at the mean length of those so far,
 * would end after goal->budget seconds; but at least
 * min(repeats, EP_PROBE_MIN_RUNS) are made. The budget is thus passed by the
 * scatter of one run, or by the minimum of runs on a very slow device. The
 * check comes after and is not counted.
 *
 * A caller that uses the probe as a load (one run = one micro-batch) sets
 * warmups = 0 and budget = INFINITY.
 *
 * Returns 0. EP_EDOM: the device computed a wrong result; *out is filled
 * nevertheless. EP_ERANGE: the goal is out of bounds, or a run took no time
 * that the clock can tell. Whatever else the back end reports. After an error
 * the probe can still be used.
 * Cost beside the runs: some microseconds per run; the check, see the tests.
 */
int ep_probe_measure(struct ep_probe *p, const struct ep_probe_goal *goal,
                     struct ep_probe_result *out,
                     struct ep_error *err) EP_MUST_USE;

/* ==== The CPUs of this process (cpu_pin.c) ==== */

/*
 * Bind the calling thread, and the threads it will create, to one CPU (the
 * number that the kernel uses, from 0). The kernel decides: a CPU outside the
 * present mask is taken if the cpuset has it.
 * Errors: EP_ERANGE (negative or absurd), EP_EUSAGE (no such CPU, or not
 * allowed), EP_ESYS.
 */
int ep_probe_pin(int cpu, struct ep_error *err) EP_MUST_USE;

/*
 * Bytes of last-level cache that the CPUs of the affinity mask can use: each
 * cache once, however many CPUs share it. 0 if the system does not say.
 */
uint64_t ep_probe_llc_bytes(void);

/*
 * The number of the k-th CPU of the affinity mask, k from 0; -1 if it has
 * fewer.
 */
int ep_probe_nth_cpu(int k);

/* ==== Writing a back end ==== */

/* What prepare found out. */
struct ep_probe_shape {
    uint64_t size; /* the default filled in */
    double work;   /* of one run, in unit * seconds: FLOP, bytes; > 0 */
    int threads;   /* of this process that compute, 0 for another device */
};

/* What one run took. */
struct ep_probe_run {
    double seconds; /* from the start of the first thread to the last's end */
    double held;    /* sum over the threads of the seconds each was at work */
    double cpu;     /* of that, CPU time */
    double wait;    /* and run-queue wait; NAN: not known */
};

struct ep_probe_test {
    const char *spec; /* what the user selects: "gemm:f32", "membw:copy" */
    const char *test, *dtype, *unit, *better; /* for the record */

    /*
     * Make *state ready for run; fill *shape. cfg->threads is at least 1. On
     * error everything is released and *state is not touched.
     */
    int (*prepare)(const struct ep_probe_test *self,
                   const struct ep_probe_config *cfg, void **state,
                   struct ep_probe_shape *shape, struct ep_error *err);

    /*
     * The work, once. *out is {NAN, 0, 0, 0} on entry. A device that keeps
     * its own time writes out->seconds; one that leaves NAN is timed by the
     * driver round this call. A test that computes on this process's CPUs
     * fills in the rest (ep_probe_pool_run does).
     */
    int (*run)(void *state, struct ep_probe_run *out, struct ep_error *err);

    /* Was the last run right? At least one was made. EP_EDOM if not. */
    int (*check)(void *state, struct ep_error *err);

    void (*release)(void *state);
};

struct ep_probe_backend {
    const char *name; /* "cpu", "cuda", ... */
    const struct ep_probe_test *tests;
    size_t ntests;
};

extern const struct ep_probe_backend ep_probe_cpu_gemm;
extern const struct ep_probe_backend ep_probe_cpu_membw;

/*
 * Zeroed pages, in huge pages where the system grants them; not yet touched.
 * bytes > 0. NULL and EP_ELIMIT for more than half of the machine's memory,
 * EP_ESYS if refused. Give back with ep_probe_unmap (NULL accepted).
 */
void *ep_probe_map(uint64_t bytes, struct ep_error *err) EP_MUST_USE;
void ep_probe_unmap(void *p, uint64_t bytes);

/*
 * Threads that do the same work at the same moment (cpu_pool.c). If there are
 * as many as CPUs in the affinity mask, each is bound to one of them; else
 * they go where the kernel puts them. With one thread the caller does the
 * work.
 *
 * threads >= 1. NULL: EP_ESYS. Free with ep_probe_pool_free (NULL accepted).
 */
struct ep_probe_pool;
struct ep_probe_pool *ep_probe_pool_new(int threads,
                                        struct ep_error *err) EP_MUST_USE;
void ep_probe_pool_free(struct ep_probe_pool *p);

/*
 * job(ctx, k) on each thread k; returns when the last is done. Whatever the
 * jobs wrote is then visible to the caller. Not from two threads at a time.
 *
 * out     NULL, or filled: clocks are CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID
 *         and the second field of /proc/thread-self/schedstat (Linux,
 *         Documentation/scheduler/sched-stats.rst), read by each thread
 *         before and after its job (some 20 us, not in seconds); nor is
 *         the time that the threads take to wake up
 */
void ep_probe_pool_run(struct ep_probe_pool *p, void (*job)(void *ctx, int k),
                       void *ctx, struct ep_probe_run *out);

int ep_probe_pool_threads(const struct ep_probe_pool *p);

/* The CPU that thread k is bound to, or -1. */
int ep_probe_pool_cpu(const struct ep_probe_pool *p, int k);

/* ==== The checks, as functions of their own for tests ==== */

/*
 * Largest m for which a product of two n x n matrices of integers in [-m, m]
 * has no rounding error in dtype ("f32": p = 24, "f64": p = 53), whatever the
 * order of summation, with or without fused multiply-add: n m^2 <= 2^p, so
 * that every partial sum is an integer of at most p bits. At least 1 for
 * n <= EP_PROBE_MAX_GEMM.
 */
int64_t ep_probe_gemm_limit(bool f64, size_t n);

/*
 * Is C = A B exactly? Freivalds' check [1]: with r random, C r = A (B r), in
 * integers modulo 2^64.
 *
 *     a, b    [n][n] row-major, float or double (f64), integers in [-m, m],
 *             m = ep_probe_gemm_limit(f64, n)
 *     c       [n][n] likewise, what the device computed
 *     seed    of r; take another one for every call
 *
 * The entries being integers, the tolerance is zero: C r and A (B r) must
 * agree in every bit. r is uniform over the odd 64-bit numbers. One wrong
 * element in a row is always found (odd numbers are units modulo 2^64); more
 * than one escape with probability at most 2^-(63 - t), where 2^t divides all
 * errors of the row: 2^-38 (f32), 2^-9 (f64, all of them +-2^54), 2^-63 (f64,
 * an odd one among them). Non-integers,
 * infinities and NaN in C are found without r.
 *
 * [1] R. Freivalds, "Probabilistic machines can use less running time",
 *     IFIP Congress 1977, pp. 839-842.
 *
 * Errors: EP_EDOM, with the first wrong element, what it is and what it must
 * be, and the number of wrong rows; also if A or B hold something else than
 * integers in [-m, m], which means that memory changed.
 * Cost: 3 n^2 integer multiplications, n^2 more to name the element.
 */
int ep_probe_gemm_check(bool f64, size_t n, const void *a, const void *b,
                        const void *c, uint64_t seed,
                        struct ep_error *err) EP_MUST_USE;

/*
 * Inputs and results of membw as functions of the index, so that an element
 * that was lost, doubled or put elsewhere shows:
 *     copy   dst[i] = src[i] = i * 0x9e3779b97f4a7c15 modulo 2^64
 *     triad  b[i] = i mod 2^16, c[i] = (i xor floor(i / 2^16)) mod 2^16,
 *            a[i] = b[i] + 3 c[i]; all exact in double
 * Index of the first wrong one of v[from .. to), or to if all are right.
 */
size_t ep_probe_copy_check(const uint64_t *v, size_t from, size_t to);
size_t ep_probe_triad_check(const double *v, size_t from, size_t to);

#endif

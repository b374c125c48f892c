/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_nccl_tests_json.c - what nccl-tests writes with -J:
 *
 *     {"version":1,"start_time":"2026-07-09 16:03:21","args":[
 *      "x/all_reduce_perf",...],"env":[...],"nccl_version":22800,
 *      "config":{"nthreads":1,"ngpus":1,
 *      ...,"devices":[{"rank":0,"group":0,"pid":6151,"hostname":"n1",
 *      "device":0,"device_hex":"0000:01:00","device_info":"..."}]},
 *      "results":[{"size":8,
 *      "count":2,"type":"float","redop":"sum","root":"    -1","out_of_place":
 *      {"time":9.3,"alg_bw":1.5,"bus_bw":1.5,"nwrong":0},"in_place":{...},
 *      "actual_iterations":20,"experiment_name":""}],...}
 *
 * With -I a result has out_of_place_per_iter and in_place_per_iter, and in them
 * the time of each iteration in each process: the median of a process becomes a
 * gauge. It includes the wait for the others: the one that is late has the
 * shortest time. devices has the first device of each process only.
 *
 * env is passed over: it may have secrets in it. A number that is not one is
 * the string "nan", and what was not measured is null.
 *
 * [1] NVIDIA/nccl-tests: src/util.cu.
 */
#include "config.h"

#include "base/mem.h"
#include "base/stats.h"
#include "record/import_chrome.h"
#include "record/import_nccl_tests.h"
#include "record/nccl_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES_MAX 1048576

/* The first device of a process; -1 where not known. */
struct process {
    int64_t rank, pid, device;
    int32_t host; /* in hosts; -1 */
};

/* What -I adds: in place and out of place. */
struct iterations {
    struct ep_span all;       /* times_us */
    struct ep_span processes; /* per_process_max_times_us */
    int64_t skip;
};

struct ep_nt_json {
    struct ep_source *source;
    struct ep_json_stream *stream;
    struct ep_nt_run run;
    struct ep_nt_row row;
    struct iterations iterations[2];
    bool in_row;
    int half;               /* whose processes are being delivered */
    size_t process;         /* the next of them */
    struct ep_json scanner; /* over iterations[half].processes */
    struct process *processes;
    size_t nprocesses, processes_cap;
    struct ep_intern *hosts;
    int64_t threads, gpus; /* of a process */
    int64_t listed;        /* devices of the first group in the list */
    double *times;         /* us */
    size_t ntimes, times_cap;
    double ts;
    struct ep_strip_zone zone;
    struct ep_buf room;
};

static long read_source(void *ctx, void *dst, size_t cap, struct ep_error *err)
{
    struct ep_nt_json *t = ctx;
    long n = ep_source_read(t->source, dst, cap, err);

    t->source->over = false; /* there are results left in the window */
    return n;
}

/* ==== Values ==== */

/* A number at least 0, times 10^exp10; NaN for another value. */
static double number(const struct ep_json_value *v, int exp10)
{
    return v->kind == EP_JSON_NUMBER ? ep_nt_number(&v->dec, exp10)
                                     : (double)NAN;
}

/* An integer at least 0, else -1. */
static int64_t integer(const struct ep_json_value *v)
{
    int64_t x;

    return ep_json_int(v, &x) == 0 && x >= 0 && x < INT64_C(1) << 53 ? x : -1;
}

/* ==== The members round the results ==== */

static int take_device(struct ep_nt_json *t, struct ep_json *j)
{
    struct ep_nt_device d = {.rank = -1,
                             .group = 0,
                             .pid = -1,
                             .device = -1,
                             .host = {"", 0},
                             .address = {"", 0}};
    struct process p = {.host = -1};
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        if (EP_CHROME_IS(&key, "rank"))
            d.rank = integer(&v);
        else if (EP_CHROME_IS(&key, "group"))
            d.group = integer(&v);
        else if (EP_CHROME_IS(&key, "pid"))
            d.pid = integer(&v);
        else if (EP_CHROME_IS(&key, "device"))
            d.device = integer(&v);
        else if (EP_CHROME_IS(&key, "device_hex"))
            d.address = v.raw;
        else if (EP_CHROME_IS(&key, "hostname"))
            d.host = ep_nccl_host(ep_chrome_text(&v, &t->room));
    }
    if (rc < 0 || t->nprocesses >= PROCESSES_MAX)
        return rc;
    if (!d.address.ptr)
        d.address = (struct ep_span){"", 0};
    p.rank = d.rank;
    p.pid = d.pid;
    p.device = d.device;
    if (d.host.len &&
        ep_chrome_intern(t->hosts, d.host, "host", &p.host, NULL) < 0)
        p.host = -1;
    t->processes = ep_grow(t->processes, &t->processes_cap, t->nprocesses + 1,
                           sizeof *t->processes);
    t->processes[t->nprocesses++] = p;
    ep_nt_run_add_device(&t->run, &d);
    return 0;
}

static int take_config(struct ep_nt_json *t, struct ep_json *j)
{
    struct ep_json_value key, v;
    int rc;

    t->threads = t->gpus = -1;
    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        if (EP_CHROME_IS(&key, "iterations")) {
            t->run.iters = integer(&v);
        } else if (EP_CHROME_IS(&key, "nthreads")) {
            t->threads = integer(&v);
        } else if (EP_CHROME_IS(&key, "ngpus")) {
            t->gpus = integer(&v);
        } else if (EP_CHROME_IS(&key, "devices") && v.kind == EP_JSON_ARRAY) {
            t->nprocesses = 0;
            ep_nt_run_clear_devices(&t->run);
            ep_json_enter(j);
            while ((rc = ep_json_next(j, NULL, &v)) > 0)
                if (v.kind == EP_JSON_OBJECT && (rc = take_device(t, j)) < 0)
                    return rc;
            if (rc < 0)
                return rc;
            t->listed = t->run.nranks;
        }
    }
    return rc;
}

/* The run's devices are more than those listed if a process has several. */
static void count_devices(struct ep_nt_json *t)
{
    int64_t each = t->threads > 0 && t->gpus > 0 ? t->threads * t->gpus : 0;

    if (each > 0 && each < 65536) {
        t->run.devices = each * (int64_t)t->nprocesses;
        t->run.nranks = each * t->listed;
    } else {
        t->run.nranks = 0;
    }
}

/* The first string of args: the program. */
static int take_args(struct ep_nt_json *t, struct ep_json *j)
{
    struct ep_json_value v;
    struct ep_span program = {NULL, 0};
    int rc;

    ep_json_enter(j);
    rc = ep_json_next(j, NULL, &v);
    if (rc > 0)
        program = ep_chrome_text(&v, &t->room);
    if (program.len)
        ep_nt_run_test(&t->run, program);
    return rc < 0 ? rc : 0;
}

/* {"bandwidth":234.5,"okay":"true"} */
static int take_summary(struct ep_json *j, const char *member, int exp10,
                        double *value)
{
    struct ep_json_value key, v;
    int rc;

    *value = (double)NAN;
    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0)
        if (ep_span_eq(key.raw, member))
            *value = number(&v, exp10);
    return rc;
}

static int summary(struct ep_nt_json *t, double value, const char *name,
                   const char *unit, struct ep_record *r)
{
    if (isnan(value))
        return 0;
    ep_nt_record(&t->run, EP_GAUGE, t->ts, false, r);
    ep_record_set_str(r, EP_K_NAME, name);
    ep_record_set_num(r, EP_K_VALUE, value);
    ep_record_set_str(r, EP_K_UNIT, unit);
    return 1;
}

/* A member as it was read, then what it gives, once it is known to be whole. */
static int take_member(struct ep_nt_json *t, struct ep_json *j,
                       const struct ep_json_value *key,
                       const struct ep_json_value *v, struct ep_record *r,
                       struct ep_error *err)
{
    bool object = v->kind == EP_JSON_OBJECT;
    bool config = object && EP_CHROME_IS(key, "config");
    bool bounds = object && EP_CHROME_IS(key, "out_of_bounds");
    bool average = object && EP_CHROME_IS(key, "average_bus_bandwidth");
    struct ep_span start = {NULL, 0};
    double value = (double)NAN;
    int rc = 0;

    if (config)
        rc = take_config(t, j);
    else if (bounds)
        rc = take_summary(j, "count", 0, &value);
    else if (average)
        rc = take_summary(j, "bandwidth", 9, &value);
    else if (v->kind == EP_JSON_ARRAY && EP_CHROME_IS(key, "args"))
        rc = take_args(t, j);
    else if (EP_CHROME_IS(key, "start_time"))
        start = ep_chrome_text(v, &t->room);
    if (start.len)
        (void)ep_strip_time(&t->zone, start.ptr, start.len, &t->ts);
    rc = ep_json_stream_done(t->stream, j, rc, err);
    if (rc)
        return rc < 0 ? rc : 0;
    if (config)
        count_devices(t);
    if (bounds)
        return summary(t, value, "nccl_tests_out_of_bounds", "1", r);
    return average ? summary(t, value, "nccl_tests_avg_busbw", "B/s", r) : 0;
}

/* ==== Results ==== */

static int take_cell(struct ep_nt_cell *cell, struct ep_json *j)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        if (EP_CHROME_IS(&key, "time") || EP_CHROME_IS(&key, "cpu_time"))
            cell->dur = number(&v, -6);
        else if (EP_CHROME_IS(&key, "bus_bw"))
            cell->busbw = number(&v, 9);
        else if (EP_CHROME_IS(&key, "nwrong"))
            cell->wrong = number(&v, 0);
    }
    return rc;
}

static int take_iterations(struct iterations *it, struct ep_json *j)
{
    struct ep_json_value key, v;
    int rc;

    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        if (EP_CHROME_IS(&key, "skipped_iterations"))
            it->skip = integer(&v);
        else if (v.kind != EP_JSON_ARRAY)
            continue;
        else if (EP_CHROME_IS(&key, "times_us"))
            rc = ep_json_skip(j, &it->all);
        else if (EP_CHROME_IS(&key, "per_process_max_times_us"))
            rc = ep_json_skip(j, &it->processes);
        if (rc < 0)
            return rc;
    }
    return rc;
}

static int take_result(struct ep_nt_json *t, struct ep_json *j,
                       const struct ep_json_value *root)
{
    static const char *const cells[] = {"out_of_place", "in_place"};
    static const char *const more[] = {"out_of_place_per_iter",
                                       "in_place_per_iter"};
    struct ep_json_value key, v;
    int rc;

    ep_nt_row_begin(&t->row);
    memset(t->iterations, 0, sizeof t->iterations);
    if (root->kind != EP_JSON_OBJECT)
        return ep_error_set(j->err, EP_EFORMAT, "result is not an object");
    ep_json_enter(j);
    while ((rc = ep_json_next(j, &key, &v)) > 0) {
        if (EP_CHROME_IS(&key, "size"))
            t->row.size = integer(&v);
        else if (EP_CHROME_IS(&key, "actual_iterations"))
            t->row.iters = integer(&v);
        else if (EP_CHROME_IS(&key, "type") && v.kind == EP_JSON_STRING)
            ep_nt_row_dtype(&t->row, v.raw);
        for (int i = 0; v.kind == EP_JSON_OBJECT && i < 2; i++) {
            if (ep_span_eq(key.raw, cells[i]))
                rc = take_cell(&t->row.cell[i], j);
            else if (ep_span_eq(key.raw, more[i]))
                rc = take_iterations(&t->iterations[i], j);
            else
                continue;
            break;
        }
        if (rc < 0)
            return rc;
    }
    return rc;
}

/* The times of an array, in us, without the first skip; those that are none
 * are left out. */
static void take_times(struct ep_nt_json *t, struct ep_json *j, int64_t skip)
{
    struct ep_json_value v;

    t->ntimes = 0;
    ep_json_enter(j);
    while (ep_json_next(j, NULL, &v) > 0) {
        double x = number(&v, 0);

        if (skip-- > 0 || isnan(x))
            continue;
        t->times =
            ep_grow(t->times, &t->times_cap, t->ntimes + 1, sizeof *t->times);
        t->times[t->ntimes++] = x;
    }
}

/* Median of the times in s, and their MAD over it; NaN where there is none. */
static double median(struct ep_nt_json *t, double *spread)
{
    double m = ep_median(t->times, t->ntimes);

    *spread = m > 0 ? ep_mad(t->times, t->ntimes, m) / m : (double)NAN;
    return m / 1e6;
}

/* The row is whole: what its iterations say. */
static void begin_row(struct ep_nt_json *t)
{
    struct ep_json_value v;
    struct ep_json j;

    for (int i = 0; i < 2; i++) {
        const struct iterations *it = &t->iterations[i];

        if (!it->all.ptr ||
            ep_json_begin(&j, it->all.ptr, it->all.len, &v, NULL) < 0)
            continue;
        take_times(t, &j, it->skip);
        (void)median(t, &t->row.cell[i].spread);
    }
    t->row.ts = t->ts;
    t->in_row = true;
    t->half = -1;
}

/* The gauge of the next process of the half. */
static void make_process(struct ep_nt_json *t, double value, double spread,
                         struct ep_record *r)
{
    const struct process *p =
        t->process < t->nprocesses ? &t->processes[t->process] : NULL;
    bool one = t->threads == 1 && t->gpus == 1;

    ep_nt_record(&t->run, EP_GAUGE, t->ts, t->half == 1, r);
    ep_record_set_str(r, EP_K_NAME, "nccl_tests_process_time");
    ep_record_set_num(r, EP_K_VALUE, value);
    ep_record_set_str(r, EP_K_UNIT, "s");
    ep_record_set_int(r, EP_K_N, (int64_t)t->ntimes);
    ep_record_set_num(r, EP_K_SPREAD, spread);
    if (t->row.size >= 0)
        ep_record_set_int(r, EP_K_SIZE, t->row.size);
    if (t->row.dtype[0])
        ep_record_set_str(r, EP_K_DTYPE, t->row.dtype);
    if (!p)
        return;
    if (p->host >= 0)
        ep_record_set_str(r, EP_K_HOST,
                          ep_intern_name(t->hosts, (size_t)p->host));
    if (p->pid >= 0)
        ep_record_set_int(r, EP_K_PID, p->pid);
    if (one && p->rank >= 0)
        ep_record_set_int(r, EP_K_RANK, p->rank);
    if (one && p->device >= 0)
        ep_record_set_int(r, EP_K_GPU_INDEX, p->device);
}

/* The next process of either half: 1, or 0 if there are no more. */
static int next_process(struct ep_nt_json *t, struct ep_record *r)
{
    struct ep_json_value v;

    for (;;) {
        double value, spread;

        if (t->half >= 0 && ep_json_next(&t->scanner, NULL, &v) > 0) {
            if (v.kind == EP_JSON_ARRAY)
                take_times(t, &t->scanner, t->iterations[t->half].skip);
            else
                t->ntimes = 0;
            value = median(t, &spread);
            if (!isnan(value))
                make_process(t, value, spread, r);
            t->process++;
            if (!isnan(value))
                return 1;
            continue;
        }
        do {
            if (++t->half > 1)
                return 0;
        } while (
            !t->iterations[t->half].processes.ptr ||
            ep_json_begin(&t->scanner, t->iterations[t->half].processes.ptr,
                          t->iterations[t->half].processes.len, &v, NULL) < 0);
        ep_json_enter(&t->scanner);
        t->process = 0;
    }
}

/* ==== The importer ==== */

struct ep_nt_json *ep_nt_json_new(double mtime)
{
    struct ep_nt_json *t = ep_calloc(1, sizeof *t);
    struct ep_json_stream_config config = {
        .array = "results", .read = read_source, .ctx = t};

    t->stream = ep_json_stream_new(&config);
    ep_nt_run_init(&t->run);
    t->hosts = ep_intern_new();
    t->ts = mtime;
    t->threads = t->gpus = -1;
    ep_buf_init(&t->room);
    return t;
}

void ep_nt_json_free(struct ep_nt_json *t)
{
    if (!t)
        return;
    ep_json_stream_free(t->stream);
    ep_nt_run_free(&t->run);
    ep_intern_free(t->hosts);
    free(t->processes);
    free(t->times);
    ep_buf_free(&t->room);
    free(t);
}

static int step(struct ep_nt_json *t, int what, struct ep_json *j,
                const struct ep_json_value *key, const struct ep_json_value *v,
                struct ep_record *r, struct ep_error *err)
{
    int rc;

    if (what == EP_JSON_STREAM_MEMBER)
        return take_member(t, j, key, v, r, err);
    rc = ep_json_stream_done(t->stream, j, take_result(t, j, v), err);
    if (rc == 0)
        begin_row(t);
    return rc < 0 ? rc : 0;
}

int ep_nt_json_next(struct ep_nt_json *t, struct ep_source *s,
                    struct ep_record *r, struct ep_error *err)
{
    struct ep_json_value key, v;
    struct ep_error own;
    struct ep_json j;
    int rc;

    if (!err)
        err = &own;
    t->source = s;
    for (;;) {
        if (t->in_row &&
            (ep_nt_row_next(&t->run, &t->row, r) > 0 || next_process(t, r) > 0))
            return 1;
        t->in_row = false;
        rc = ep_json_stream_next(t->stream, &key, &j, &v, err);
        if (rc > 0)
            rc = step(t, rc, &j, &key, &v, r, err);
        else if (rc == 0)
            s->over = true;
        s->offset = ep_json_stream_offset(t->stream);
        if (rc < 0 && ep_json_stream_over(t->stream)) {
            s->over = true;
            if (rc == EP_ETRUNC || rc == EP_EFORMAT)
                (void)ep_error_prefix(err, "cannot read %s: byte %" PRIu64,
                                      s->name, s->offset);
        }
        if (rc || s->over)
            return rc;
    }
}

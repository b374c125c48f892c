/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_write.c - the telemetry of a job as records, and its labels.
 *
 * A collective's dur includes waiting for the peers, as in real ones: the rank
 * that is late has the shortest. Of the collectives of tensor-parallel groups
 * and of the messages between stages those of one micro-batch are written.
 * Gauges fit the cause; every tenth iteration, of each rank, and of each host
 * (as node_exporter has it, without a rank) the time in which a task waited for
 * I/O: a twentieth more or less of what storage costs it, 1 % without.
 */
#include "config.h"

#include "job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const causes[] = {
    "compute",
    "cpu",
    "memory",
    "storage",
    "gc",
    "stage-imbalance",
    "sequence-imbalance",
    "link",
    "network",
    "warm-up",
    "checkpoint",
    "spike",
    "phase",
    "late",
};

struct call {
    const char *type, *op;
    char comm[32];
    int rank, nranks, comm_rank, peer;
    int64_t seq, bytes;
    double ts, dur;
};

static struct call *calls;
static size_t ncalls, cap;

static struct call *new_call(void)
{
    if (ncalls == cap) {
        cap = cap ? 2 * cap : 4096;
        calls = realloc(calls, cap * sizeof *calls);
        if (!calls)
            abort();
    }
    calls[ncalls] = (struct call){.peer = -1};
    return &calls[ncalls++];
}

/* Who and where, behind a record's type and ts. */
static void put_place(const struct job *j, int rank)
{
    printf("\"job\":\"e%" PRIu64
           "\",\"host\":\"h%d\",\"rank\":%d,\"dp\":%d,"
           "\"pp\":%d,\"tp\":%d,",
           j->index, job_host(rank), rank, rank / j->tp % j->dp,
           rank / (j->dp * j->tp), rank % j->tp);
}

static void write_steps(const struct job *j, const struct iteration *it, int i,
                        double ts)
{
    for (int r = 0; r < j->ranks; r++) {
        printf("{\"type\":\"step\",\"ts\":%.6f,", ts);
        put_place(j, r);
        printf(
            "\"step\":%d,\"dur\":%.6f,\"busy\":%.6f,\"mb\":%d,"
            "\"tokens\":%" PRId64 "}\n",
            i, it->dur, it->busy[r], it->mb, it->tokens[r]);
    }
}

static void add_tensor(const struct job *j, const struct iteration *it, int i,
                       double ts)
{
    for (int d = 0; d < j->dp; d++)
        for (int s = 0; s < j->pp; s++) {
            double start = ts, last = 0;

            for (int u = 0; u < s; u++)
                start += it->t[d * j->pp + u] / 3;
            for (int t = 0; t < j->tp; t++)
                last = fmax(last, it->busy[job_rank(j, d, s, t)] / it->mb);
            for (int t = 0; t < j->tp; t++) {
                struct call *c = new_call();
                double own;

                c->rank = job_rank(j, d, s, t);
                own = it->busy[c->rank] / it->mb;
                c->type = "coll";
                c->op = "all_reduce";
                (void)snprintf(c->comm, sizeof c->comm, "tp-%d-%d", d, s);
                c->nranks = j->tp;
                c->comm_rank = t;
                c->seq = i;
                c->bytes = 8192 * j->tokens;
                c->ts = start + own;
                c->dur = last - own + it->tp_time[d * j->pp + s];
            }
        }
}

static void add_messages(const struct job *j, const struct iteration *it, int i,
                         double ts)
{
    for (int d = 0; d < j->dp; d++)
        for (int s = 0; s < j->pp - 1; s++)
            for (int t = 0; t < 2 * j->tp; t++) {
                struct call *c = new_call();
                bool recv = t >= j->tp;
                double ready = ts, wait;
                int at = d * j->pp + s;

                /* the receiver waits for what the sender computes */
                for (int u = 0; u <= s; u++)
                    ready += it->t[d * j->pp + u] / 3;
                wait = recv ? it->t[at] / 3 : 0;
                c->type = "p2p";
                c->op = recv ? "recv" : "send";
                c->rank = job_rank(j, d, s + recv, t % j->tp);
                (void)snprintf(c->comm, sizeof c->comm, "pp-%d-%d", d,
                               t % j->tp);
                c->comm_rank = s + recv;
                c->peer = s + !recv;
                c->seq = i;
                c->bytes = 8192 * j->tokens / j->tp;
                c->ts = ready - wait;
                c->dur = wait + it->message[at * j->tp + t % j->tp];
            }
}

static void add_gradients(const struct job *j, const struct iteration *it,
                          int i, double ts)
{
    for (int g = 0; g < j->pp * j->tp; g++) {
        int s = g / j->tp;
        double last = 0, sum = 0;

        for (int d = 0; d < j->dp; d++)
            last = fmax(last, it->arrival[d * j->pp + s]);
        for (int b = 0; b < j->buckets; b++) {
            for (int d = 0; d < j->dp; d++) {
                struct call *c = new_call();
                double own = it->arrival[d * j->pp + s];

                c->type = "coll";
                c->op = "all_reduce";
                c->rank = job_rank(j, d, s, g % j->tp);
                (void)snprintf(c->comm, sizeof c->comm, "dp-%d-%d", s,
                               g % j->tp);
                c->nranks = j->dp;
                c->comm_rank = d;
                c->seq = (int64_t)i * j->buckets + b;
                c->bytes = INT64_C(1) << 26;
                c->ts = ts + (b ? last + sum : own);
                c->dur = it->reduce[g][b] + (b ? 0 : last - own);
            }
            sum += it->reduce[g][b];
        }
    }
}

static int by_ts(const void *p, const void *q)
{
    const struct call *a = p, *b = q;

    if (a->ts != b->ts)
        return a->ts < b->ts ? -1 : 1;
    return a->rank - b->rank;
}

static void write_calls(const struct job *j, const struct iteration *it, int i,
                        double ts)
{
    ncalls = 0;
    if (j->tp > 1)
        add_tensor(j, it, i, ts);
    add_messages(j, it, i, ts);
    add_gradients(j, it, i, ts);
    qsort(calls, ncalls, sizeof *calls, by_ts);
    for (size_t k = 0; k < ncalls; k++) {
        const struct call *c = &calls[k];

        printf("{\"type\":\"%s\",\"ts\":%.6f,", c->type, c->ts);
        put_place(j, c->rank);
        printf("\"op\":\"%s\",\"comm\":\"%s\",", c->op, c->comm);
        if (c->nranks)
            printf("\"nranks\":%d,", c->nranks);
        printf("\"comm_rank\":%d,", c->comm_rank);
        if (c->peer >= 0)
            printf("\"peer\":%d,", c->peer);
        printf("\"seq\":%" PRId64 ",\"bytes\":%" PRId64 ",\"dur\":%.7f}\n",
               c->seq, c->bytes, c->dur);
    }
}

static void put_gauge(const struct job *j, int rank, double ts,
                      const char *name, double value, const char *unit)
{
    printf("{\"type\":\"gauge\",\"ts\":%.6f,", ts);
    put_place(j, rank);
    printf("\"name\":\"%s\",\"value\":%.9g,\"unit\":\"%s\"}\n", name, value,
           unit);
}

/* Of each host, s in which some task waited for I/O; ever growing. */
static double io_waited[MAX_RANKS / GPUS_PER_HOST + 1];

static void add_io(const struct job *j, const struct iteration *it, int i)
{
    for (int h = 0; h < j->hosts; h++) {
        double share = 0.01;

        for (int k = 0; k < j->nevents; k++) {
            const struct event *e = &j->event[k];

            if (e->cause == C_STORAGE && e->host == h)
                share += (1 - 1 / event_strength(e, i)) *
                         (0.95 + 0.1 * ((i * 7 + h) % 5) / 5);
        }
        io_waited[h] += it->dur * fmin(1, share);
    }
}

static void write_hosts(const struct job *j, double ts)
{
    for (int h = 0; h < j->hosts; h++)
        printf(
            "{\"type\":\"gauge\",\"ts\":%.6f,\"host\":\"h%d\",\"name\":"
            "\"node_pressure_io_waiting_seconds_total\",\"value\":%.6f,"
            "\"unit\":\"s\"}\n",
            ts, h, io_waited[h]);
}

static void write_gauges(const struct job *j, int i, double ts)
{
    for (int r = 0; r < j->ranks; r++) {
        double hot = 0, clock = 1, share = 0.99, memory = 1;

        for (int k = 0; k < j->nevents; k++) {
            const struct event *e = &j->event[k];
            double f = event_strength(e, i);

            if (!event_hits(j, e, r))
                continue;
            if (e->cause == C_COMPUTE)
                clock /= f, hot = fmax(hot, f > 1);
            else if (e->cause == C_CPU)
                share /= f;
            else if (e->cause == C_MEMORY)
                memory /= f;
        }
        put_gauge(j, r, ts, "nvidia_smi_clocks_current_sm", 1.98e9 * clock,
                  "Hz");
        put_gauge(j, r, ts, "nvidia_smi_clocks_current_memory",
                  2.619e9 * memory, "Hz");
        put_gauge(j, r, ts, "nvidia_smi_clocks_event_reasons_hw_slowdown", hot,
                  "1");
        /* a hot one is not by itself a slow one */
        put_gauge(j, r, ts, "nvidia_smi_temperature_gpu",
                  (hot > 0 ? 86 : 60 + r * 7 % 16), "degC");
        put_gauge(j, r, ts, "cpu_share", share, "1");
    }
}

void write_iteration(const struct job *j, const struct iteration *it, int i,
                     double ts, unsigned what)
{
    if (what & WRITE_STEP)
        write_steps(j, it, i, ts);
    if ((what & WRITE_GAUGE) && i % 10 == 0) {
        write_gauges(j, i, ts);
        write_hosts(j, ts);
    }
    add_io(j, it, i);
    if (what & WRITE_COLL)
        write_calls(j, it, i, ts);
}

static void put_id(FILE *f, const struct job *j, const struct event *e)
{
    const char *unit = j->hosts > 1 ? "h" : "rank";

    if (e->cause == C_LINK)
        (void)fprintf(f, "\"scope\":\"link\",\"id\":\"src=%s%d,dst=%s%d\"",
                      unit, e->a, unit, e->b);
    else if (e->rank >= 0)
        (void)fprintf(f, "\"scope\":\"rank\",\"id\":\"rank=%d\"", e->rank);
    else if (e->host >= 0)
        (void)fprintf(f, "\"scope\":\"host\",\"id\":\"host=h%d\"", e->host);
    else if (e->stage >= 0)
        (void)fprintf(f, "\"scope\":\"stage\",\"id\":\"pp=%d\"", e->stage);
    else if (e->replica >= 0)
        (void)fprintf(f, "\"scope\":\"group\",\"id\":\"dp=%d\"", e->replica);
    else
        (void)fprintf(f, "\"scope\":\"job\",\"id\":\"\"");
}

/* By its own series, or by the link's where the job hardly feels it. */
static bool is_positive(const struct event *e)
{
    return is_fail_slow(e->cause) && event_lasted(e) >= LASTING;
}

static bool is_grey(const struct event *e)
{
    return is_fail_slow(e->cause) && !is_positive(e) && e->factor >= THRESHOLD;
}

static const char *kind_of(const struct event *e)
{
    if (!is_fail_slow(e->cause))
        return "harmless";
    return e->ramp > 0 ? "ramp" : "fail-slow";
}

static void put_event(FILE *f, const struct job *j, const struct event *e,
                      const double *start)
{
    const char *comma = "";

    (void)fprintf(f, "{\"label\":\"event\",\"kind\":\"%s\",\"cause\":\"%s\",",
                  kind_of(e), causes[e->cause]);
    put_id(f, j, e);
    (void)fprintf(f, ",\"ranks\":[");
    for (int r = 0; is_fail_slow(e->cause) && r < j->ranks; r++)
        if (event_hits(j, e, r)) {
            (void)fprintf(f, "%s%d", comma, r);
            comma = ",";
        }
    (void)fprintf(f,
                  "],\"onset\":%d,\"onset_ts\":%.6f,\"relief\":%d,"
                  "\"relief_ts\":%.6f,\"over\":%s,\"ramp\":%d,\"every\":%d,",
                  e->onset, start[e->onset], e->relief, start[e->relief],
                  e->relief < j->iterations ? "true" : "false", e->ramp,
                  e->every);
    if (e->cross >= 0)
        (void)fprintf(f, "\"cross\":%d,\"cross_ts\":%.6f,", e->cross,
                      start[e->cross]);
    (void)fprintf(f,
                  "\"factor\":%.6f,\"own_factor\":%.6f,\"job_factor\":%.6f,"
                  "\"positive\":%s,\"grey\":%s}\n",
                  e->factor, event_own_factor(e), event_job_factor(e),
                  is_positive(e) ? "true" : "false",
                  is_grey(e) ? "true" : "false");
}

int write_labels(const struct job *j, const double *start, const char *path)
{
    FILE *f = fopen(path, "w");
    bool positive = false, grey = false;
    int bad;

    if (!f)
        return -1;
    for (int k = 0; k < j->nevents; k++) {
        positive = positive || is_positive(&j->event[k]);
        grey = grey || is_grey(&j->event[k]);
    }
    (void)fprintf(
        f,
        "{\"label\":\"job\",\"seed\":%" PRIu64 ",\"index\":%" PRIu64
        ","
        "\"class\":\"%s\",\"ranks\":%d,\"dp\":%d,\"pp\":%d,\"tp\":%d,"
        "\"hosts\":%d,\"iterations\":%d,\"positive\":%s,\"grey\":%s}\n",
        j->seed, j->index, j->class == COMM ? "comm" : "compute", j->ranks,
        j->dp, j->pp, j->tp, j->hosts, j->iterations,
        positive ? "true" : "false", grey && !positive ? "true" : "false");
    for (int k = 0; k < j->nevents; k++)
        put_event(f, j, &j->event[k], start);
    bad = ferror(f);
    return fclose(f) || bad ? -1 : 0;
}

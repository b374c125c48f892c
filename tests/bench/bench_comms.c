/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_comms.c - calls into detect/comms.h: time for each as the past grows,
 * memory for each rank, and how long it takes to locate a change.
 *
 * A job of R ranks, 8 to a host, tp 8, pp 4: in an iteration each rank has 32
 * tensor-parallel collectives, 8 messages each way, 4 reductions of gradients.
 * What making the calls costs is measured and taken off.
 */
#include "config.h"

#include "base/mem.h"
#include "detect/comms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TP = 8, PP = 4, TENSOR = 32, MESSAGES = 8, BUCKETS = 4 };

struct bench {
    struct ep_comms *c;
    int dp;
    int64_t calls;
    double ts, slow, sum;
    char host[16];
};

/* Of this process: others use the machine too. */
static double cpu(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The call of rank r, the rest of which is filled in. */
static void take(struct bench *b, int r, const char *comm, const char *op,
                 struct ep_call x)
{
    x.job = (struct ep_span){"lm-140b", 7};
    x.host = (struct ep_span){b->host, strlen(b->host)};
    x.op = (struct ep_span){op, strlen(op)};
    x.comm = (struct ep_span){comm, strlen(comm)};
    x.rank = r;
    x.pid = 4000;
    x.bytes = 1 << 26;
    x.ts = b->ts;
    b->calls++;
    if (!b->c)
        b->sum += x.dur + (double)x.host.len;
    else if (ep_comms_take(b->c, &x, NULL) < 0)
        abort();
}

static struct ep_call collective(int comm_rank, int n, int64_t seq, double dur)
{
    return (struct ep_call){.comm_rank = comm_rank,
                            .peer = -1,
                            .nranks = n,
                            .seq = seq,
                            .dur = dur};
}

static struct ep_call message(int comm_rank, int peer, int64_t seq, double dur)
{
    return (struct ep_call){.p2p = true,
                            .comm_rank = comm_rank,
                            .peer = peer,
                            .nranks = -1,
                            .seq = seq,
                            .dur = dur};
}

/* Rank by rank within an iteration, as telemetry that is merged by time. */
static void iterate(struct bench *b, int64_t i)
{
    char tp[32], up[32], dp[32];

    for (int r = 0; r < b->dp * PP * TP; r++) {
        int s = r / (b->dp * TP), d = r / TP % b->dp, t = r % TP;
        double wait = 0.001 * (r * 7 % 5);

        (void)snprintf(b->host, sizeof b->host, "n%d", r / TP);
        (void)snprintf(tp, sizeof tp, "0x7f%04d%02dtp", d, s);
        (void)snprintf(up, sizeof up, "0x7f%04d%02dpp", d, t);
        (void)snprintf(dp, sizeof dp, "0x7f%04d%02ddp", s, t);
        for (int k = 0; k < TENSOR / 4; k++)
            take(b, r, tp, "all_reduce",
                 collective(t, TP, i * TENSOR / 4 + k, 0.001 + wait));
        for (int k = 0; k < MESSAGES / 4; k++) {
            int64_t seq = i * MESSAGES / 4 + k;
            double dur = 0.002 * (d == 1 ? b->slow : 1) + wait;

            if (s + 1 < PP)
                take(b, r, up, "send", message(s, s + 1, seq, dur));
            if (s > 0)
                take(b, r, up, "recv", message(s, s - 1, seq, dur));
        }
        take(b, r, dp, "all_reduce",
             collective(d, b->dp, i, 0.05 * b->slow + wait));
    }
    b->ts += 0.25;
}

static double run(int ranks, bool real, double empty)
{
    struct bench b = {.c = real ? ep_comms_new(0.10) : NULL,
                      .dp = ranks / (TP * PP),
                      .ts = 1e9,
                      .slow = 1};
    int64_t rounds = 40000000 / ranks / 16, i = 0;
    struct ep_comms_summary sum;
    struct ep_comms_place p;
    double took[4], begin, since;

    for (int part = 0; part < 4; part++) {
        b.calls = 0;
        begin = cpu();
        for (int64_t end = i + rounds / 4; i < end; i++)
            iterate(&b, i);
        took[part] = (cpu() - begin) / (double)b.calls;
    }
    if (!real)
        return (took[0] + took[1] + took[2] + took[3]) / 4;
    since = b.ts;
    b.slow = 2;
    for (int64_t end = i + 12; i < end; i++)
        iterate(&b, i);
    ep_comms_sum(b.c, &sum);
    begin = cpu();
    (void)ep_comms_locate(b.c, (struct ep_span){"lm-140b", 7}, since, &p);
    printf(
        "%7d ranks: %.0f ns a call, by quarters %.0f %.0f %.0f %.0f; %zu "
        "bytes a rank; located in %.1f ms\n",
        ranks, 1e9 * ((took[0] + took[1] + took[2] + took[3]) / 4 - empty),
        1e9 * (took[0] - empty), 1e9 * (took[1] - empty),
        1e9 * (took[2] - empty), 1e9 * (took[3] - empty),
        sum.bytes / (size_t)ranks, 1e3 * (cpu() - begin));
    ep_comms_free(b.c);
    return empty;
}

int main(void)
{
    (void)run(1024, true, run(1024, false, 0));
    (void)run(8192, true, run(8192, false, 0));
    (void)run(102400, true, run(102400, false, 0));
    return 0;
}

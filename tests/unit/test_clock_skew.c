/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_clock_skew.c - clocks that are known, collectives made with them, and
 * what is found.
 *
 * Host h reads T + off + rate (T - BEGIN) at true time T. A collective of true
 * end T ends on each rank after a tail that is exponential, and begins there
 * whenever it likes. Found clocks are right if the reading of each host at the
 * begin, middle and end of the job, corrected, is the reference's.
 */
#include "config.h"

#include "record/clock_skew.h"

#include "base/rng.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN 1.7e9
#define HOSTS 1000
#define US 1e-6

static struct {
    struct ep_rng rng;
    double off[HOSTS], rate[HOSTS];
    double lag[HOSTS];  /* ends that much later, truly */
    double late[HOSTS]; /* begins that much later */
    double tail;        /* mean */
    double lost;        /* share of the records */
    double twice;       /* likewise */
    int ranks;          /* of each host in a collective */
    bool anonymous;     /* no nranks, no comm_rank */
    const char *job;
    struct ep_clock_skew *skew;
} w;

static void name_of(int h, char name[16])
{
    (void)snprintf(name, 16, "n%03d", h);
}

static double reading(int h, double t)
{
    return t + w.off[h] + w.rate[h] * (t - BEGIN);
}

/* A new world of n hosts whose clocks are up to off and rate wrong. */
static void begin(double off, double rate, double tail, int ranks, size_t max)
{
    struct ep_rng rng = w.rng;

    ep_clock_skew_free(w.skew);
    memset(&w, 0, sizeof w);
    w.rng = rng;
    w.tail = tail;
    w.ranks = ranks;
    w.skew = ep_clock_skew_new(max);
    for (int h = 0; h < HOSTS; h++) {
        w.off[h] = off * (2 * ep_rng_uniform(&w.rng) - 1);
        w.rate[h] = rate * (2 * ep_rng_uniform(&w.rng) - 1);
    }
}

/* One record of rank k of host h; number is its rank in the communicator. */
static void feed(const char *op, const char *comm, int seq, double t, int h,
                 int number, int nranks)
{
    double end = reading(h, t + w.lag[h] + ep_rng_exponential(&w.rng, w.tail));
    double dur = 1e-3 + 1e-2 * ep_rng_uniform(&w.rng);
    struct ep_record r;
    char host[16];

    if (ep_rng_uniform(&w.rng) < w.lost)
        return;
    if (w.late[h] == 0)
        dur += 0.5; /* waits for the others */
    name_of(h, host);
    ep_record_begin(&r, EP_COLL);
    ep_record_set_num(&r, EP_K_TS, end - dur);
    ep_record_set_num(&r, EP_K_DUR, dur);
    ep_record_set_str(&r, EP_K_HOST, host);
    ep_record_set_str(&r, EP_K_JOB, w.job);
    ep_record_set_str(&r, EP_K_OP, op);
    ep_record_set_str(&r, EP_K_COMM, comm);
    ep_record_set_int(&r, EP_K_SEQ, seq);
    if (!w.anonymous) {
        ep_record_set_int(&r, EP_K_COMM_RANK, number);
        ep_record_set_int(&r, EP_K_NRANKS, nranks);
    }
    ep_clock_skew_take(w.skew, &r);
    if (ep_rng_uniform(&w.rng) < w.twice)
        ep_clock_skew_take(w.skew, &r);
}

/* A collective of hosts from, from + step, ... (n of them) that ends at t. */
static void collective(const char *op, const char *comm, int seq, double t,
                       int from, int step, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < w.ranks; k++)
            feed(op, comm, seq, t, from + i * step, i * w.ranks + k,
                 n * w.ranks);
}

static struct ep_clock_table *table;

static const struct ep_clock_host *find(int h)
{
    char name[16];

    name_of(h, name);
    return ep_clock_table_find(table, (struct ep_span){name, strlen(name)});
}

/* The number of the reference that host h is compared with; -1: none. */
static int reference_of(int h)
{
    const struct ep_clock_host *at = find(h);
    size_t n;
    const struct ep_clock_host *all = ep_clock_table_hosts(table, &n);

    for (size_t i = 0; at && i < n; i++)
        if (all[i].line.known && all[i].line.reference &&
            all[i].line.group == at->line.group)
            return (int)strtol(all[i].name + 1, NULL, 10);
    return -1;
}

/* How wrong is the corrected clock of host h, at worst, from t0 to t1? */
static double wrong(int h, double t0, double t1)
{
    int ref = reference_of(h);
    double worst = 0;
    char name[16];

    if (ref < 0)
        return (double)INFINITY;
    name_of(h, name);
    for (int i = 0; i <= 2; i++) {
        double t = t0 + (t1 - t0) * i / 2;
        double found = ep_clock_skew_correct(
            table, (struct ep_span){name, strlen(name)}, reading(h, t));

        worst = fmax(worst, fabs(found - reading(ref, t)));
    }
    return worst;
}

/* The worst of hosts from..to-1. */
static double worst(int from, int to, double t0, double t1)
{
    double most = 0;

    for (int h = from; h < to; h++)
        most = fmax(most, wrong(h, t0, t1));
    return most;
}

static void solve(void)
{
    ep_clock_table_free(table);
    table = ep_clock_skew_solve(w.skew);
}

/* Four standard errors of the difference of two medians of n tails, and what a
   ts resolves. With 8 ranks per host the median of a host is less noisy. */
static double tolerance(int n)
{
    return 4 * sqrt(2) * w.tail / sqrt(n) + 0.5 * US;
}

/* Offsets that do not change, tails of 5 to 100 us, one or eight ranks. */
static void check_offsets(void)
{
    static const struct {
        double tail;
        int ranks, hosts, events;
    } cases[] = {{5 * US, 8, 8, 400},
                 {100 * US, 8, 8, 400},
                 {100 * US, 1, 2, 100},
                 {20 * US, 1, 3, 2000},
                 {20 * US, 4, 64, 100}};

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double end = BEGIN + cases[c].events;
        const struct ep_clock_host *h;

        begin(0.05, 0, cases[c].tail, cases[c].ranks, 0);
        for (int i = 0; i < cases[c].events; i++)
            collective("all_reduce", "w", i, BEGIN + i, 0, 1, cases[c].hosts);
        solve();
        near(worst(0, cases[c].hosts, BEGIN, end), 0,
             tolerance(cases[c].events));
        ok(ep_clock_table_groups(table) == 1);
        ok(ep_clock_table_used(table) == (uint64_t)cases[c].events);
        h = find(1);
        ok(h && h->line.n == (uint64_t)cases[c].events);
        ok(h && h->line.spread < 2 * cases[c].tail);
        ok(h && h->line.error < tolerance(cases[c].events));
    }
}

/* One event, and two: something is known. */
static void check_few(void)
{
    begin(0.05, 0, 10 * US, 2, 0);
    collective("all_gather", "w", 0, BEGIN, 0, 1, 4);
    solve();
    near(worst(0, 4, BEGIN, BEGIN), 0, 100 * US);
    ok(find(0) && find(0)->line.n == 1);
    ok(find(4) == NULL);
}

/* Up to 40 ppm for an hour, 144 ms: lines that cross. */
static void check_drift(void)
{
    int drifting = 0;

    begin(0.01, 40e-6, 50 * US, 4, 0);
    w.rate[3] = w.rate[4] = w.rate[5] = 0;
    for (int i = 0; i < 1200; i++)
        collective("all_reduce", "w", i, BEGIN + 3 * i, 0, 1, 9);
    solve();
    /* at the ends a line is half as good as in the middle */
    near(worst(0, 9, BEGIN, BEGIN + 3600), 0, 2 * tolerance(1200));
    for (int h = 0; h < 9; h++)
        drifting += find(h) && find(h)->line.rate != 0;
    ok(drifting >= 5);

    begin(0.01, 20e-6, 50 * US, 1, 0); /* two clocks only */
    for (int i = 0; i < 1200; i++)
        collective("all_reduce", "w", i, BEGIN + 3 * i, 0, 1, 2);
    solve();
    near(worst(0, 2, BEGIN, BEGIN + 3600), 0, 2 * tolerance(1200));
}

/* Where nothing drifts none is found. */
static void check_no_drift(void)
{
    int drifting = 0;

    begin(0.01, 0, 50 * US, 4, 0);
    for (int i = 0; i < 500; i++)
        collective("all_reduce", "w", i, BEGIN + 3 * i, 0, 1, 100);
    solve();
    for (int h = 0; h < 100; h++)
        drifting += find(h) && find(h)->line.rate != 0;
    ok(drifting == 0);
    /* where each of five is often the middle one of all */
    for (int again = 0; again < 20; again++) {
        begin(0.01, 0, 50 * US, 1 + 3 * (again % 2), 0);
        for (int i = 0; i < 500; i++)
            collective("all_reduce", "w", i, BEGIN + 3 * i, 0, 1, 5);
        solve();
        for (int h = 0; h < 5; h++)
            drifting += find(h) && find(h)->line.rate != 0;
    }
    ok(drifting <= 2);
}

/* 20,000 ranks on 10 hosts: some ranks only are kept, and all hosts. */
static void check_many_ranks(void)
{
    begin(0.01, 0, 50 * US, 2000, 0);
    for (int i = 0; i < 10; i++)
        collective("all_reduce", "w", i, BEGIN + 3 * i, 0, 1, 10);
    solve();
    ok(find(9) && find(9)->line.n == 10);
    near(worst(0, 10, BEGIN, BEGIN + 30), 0, 4 * 50 * US / sqrt(800));
}

/* A host that is always late to begin, and all wait for it, is not skewed. One
   that truly ends 30 us later is taken to be 30 us ahead, and no other is. */
static void check_stragglers(void)
{
    begin(0, 0, 20 * US, 8, 0);
    w.late[2] = 0.5;
    for (int i = 0; i < 500; i++)
        collective("reduce_scatter", "w", i, BEGIN + i, 0, 1, 6);
    solve();
    near(find(2) ? find(2)->line.offset : NAN, 0, tolerance(500));

    begin(0.02, 0, 20 * US, 8, 0);
    w.lag[2] = 30 * US;
    for (int i = 0; i < 500; i++)
        collective("reduce_scatter", "w", i, BEGIN + i, 0, 1, 6);
    solve();
    w.off[2] += reference_of(2) == 2 ? 0 : 30 * US;
    if (reference_of(2) == 2)
        for (int h = 0; h < 6; h++)
            w.off[h] -= h == 2 ? 0 : 30 * US;
    near(worst(0, 6, BEGIN, BEGIN + 500), 0, tolerance(500));
}

/* Half of the records are lost, some are there twice, nobody says who is who.
   One clock is 10 minutes fast. */
static void check_lost(void)
{
    begin(0.05, 10e-6, 50 * US, 4, 0);
    w.lost = 0.5;
    w.twice = 0.2;
    w.anonymous = true;
    w.off[5] = 600;
    for (int i = 0; i < 1000; i++)
        collective("all_reduce", "w", i, BEGIN + i, 0, 1, 8);
    solve();
    ok(reference_of(5) >= 0 && reference_of(5) != 5);
    near(worst(0, 8, BEGIN, BEGIN + 1000), 0, 3 * tolerance(700));
    near(find(5) ? find(5)->line.offset : NAN, 600, 0.2);
}

/* The job begins again after 5 minutes with the same names and numbers; host 3
   died, host 8 takes its place; then with all of the hosts it had. */
static void check_restart(void)
{
    for (int replaced = 0; replaced < 2; replaced++) {
        begin(0.5, 10e-6, 50 * US, 2, 0);
        w.lost = 0.1;
        for (int run = 0; run < 2; run++)
            for (int i = 0; i < 400; i++)
                for (int h = 0; h < 8; h++)
                    for (int k = 0; k < 2; k++)
                        feed("all_reduce", "w", i, BEGIN + run * 300 + i / 10.0,
                             h == 3 && run && replaced ? 8 : h, 2 * h + k, 16);
        solve();
        near(worst(0, 3, BEGIN, BEGIN + 340), 0, 3 * tolerance(360));
        near(worst(4, 8, BEGIN, BEGIN + 340), 0, 3 * tolerance(360));
        /* these were there for 40 s only */
        near(wrong(3, BEGIN, BEGIN + 40), 0, 3 * tolerance(360));
        if (replaced)
            near(wrong(8, BEGIN + 300, BEGIN + 340), 0, 3 * tolerance(360));
        ok(ep_clock_table_groups(table) == 1);
    }
}

/* Two jobs on different hosts, with the same names; a third of one host. */
static void check_groups(void)
{
    begin(0.05, 0, 50 * US, 2, 0);
    for (int i = 0; i < 400; i++) {
        w.job = "1";
        collective("all_reduce", "w", i, BEGIN + i, 0, 1, 4);
        w.job = "2";
        collective("all_reduce", "w", i, BEGIN + 0.3 + i, 10, 1, 4);
        w.job = "3";
        w.anonymous = true;
        collective("all_reduce", "w", i, BEGIN + 0.3 + i, 20, 1, 1);
        w.anonymous = false;
    }
    solve();
    ok(ep_clock_table_groups(table) == 2);
    near(worst(0, 4, BEGIN, BEGIN + 400), 0, tolerance(400));
    near(worst(10, 14, BEGIN, BEGIN + 400), 0, tolerance(400));
    ok(reference_of(0) < 4 && reference_of(10) >= 10);
    ok(find(20) == NULL);
    near(ep_clock_skew_correct(table, (struct ep_span){"n020", 4}, 77), 77, 0);
    near(ep_clock_skew_correct(table, (struct ep_span){"other", 5}, 77), 77, 0);
}

/* 6 x 8 hosts; data parallel in rows, pipelines in columns, no world; tensor
   parallel within each host floods the rest, and there is little room. */
static void check_grid(void)
{
    char comm[16];

    begin(0.05, 10e-6, 50 * US, 2, 20000);
    for (int i = 0; i < 1000; i++) {
        for (int row = 0; row < 6; row++) {
            (void)snprintf(comm, sizeof comm, "dp%d", row);
            collective("all_reduce", comm, i, BEGIN + i, row * 8, 1, 8);
        }
        for (int column = 0; column < 8; column++) {
            (void)snprintf(comm, sizeof comm, "pp%d", column);
            collective("all_reduce", comm, i, BEGIN + 0.5 + i, column, 8, 6);
        }
        for (int h = 0; h < 48; h++) {
            (void)snprintf(comm, sizeof comm, "tp%d", h);
            for (int k = 0; k < 10; k++)
                collective("all_gather", comm, i * 10 + k, BEGIN + i, h, 1, 1);
        }
    }
    solve();
    ok(ep_clock_table_groups(table) == 1);
    /* room for 20000 / 14 / 17 of each communicator, at least half of it used */
    ok(ep_clock_table_used(table) > 350 &&
       ep_clock_table_used(table) < 20000 / 13);
    near(worst(0, 48, BEGIN, BEGIN + 1000), 0, 4 * tolerance(25));
}

/* A communicator of 400 small operations, another of 100,000: the first is
   kept. */
static void check_rare(void)
{
    begin(0.05, 0, 50 * US, 1, 8000);
    for (int i = 0; i < 100000; i++) {
        collective("all_reduce", "often", i, BEGIN + i / 10.0, 0, 1, 2);
        if (i % 250 == 0)
            collective("all_gather", "rare", i, BEGIN + i / 10.0, 1, 1, 3);
    }
    solve();
    ok(find(3) && find(3)->line.n == 400);
    near(worst(0, 4, BEGIN, BEGIN + 1e4), 0, sqrt(2) * tolerance(400));
}

/* 30 hosts in a row, each with the next one only: errors add up as roots. */
static void check_chain(void)
{
    char comm[16];

    begin(0.05, 0, 50 * US, 1, 0);
    for (int i = 0; i < 400; i++)
        for (int h = 0; h < 29; h++) {
            (void)snprintf(comm, sizeof comm, "c%d", h);
            collective("all_reduce", comm, i, BEGIN + i, h, 1, 2);
        }
    solve();
    near(worst(0, 30, BEGIN, BEGIN + 400), 0, sqrt(30) * tolerance(400));
}

/* A name that is a communicator of its own on each host; what has a root; the
   unknown; what lacks a key. */
static void check_useless(void)
{
    begin(0.05, 0, 50 * US, 4, 0);
    for (int i = 0; i < 50; i++) {
        for (int k = 0; k < 4; k++)
            for (int h = 0; h < 3; h++)
                feed("all_reduce", "tp", i, BEGIN + i + h / 10.0, h, k, 4);
        collective("broadcast", "w", i, BEGIN + i, 0, 1, 3);
        collective("reduce", "w", i, BEGIN + i, 0, 1, 3);
        collective("all_reduce", "unknown", i, BEGIN + i, 0, 1, 3);
    }
    solve();
    ok(ep_clock_table_used(table) == 0);
    ok(ep_clock_table_groups(table) == 0);
    ok(ep_clock_table_ambiguous(table) == 50);
    ok(find(0) == NULL);
}

static void check_nothing(void)
{
    size_t n;

    begin(0, 0, 0, 1, 0);
    solve();
    (void)ep_clock_table_hosts(table, &n);
    ok(n == 0 && ep_clock_table_groups(table) == 0);
    near(ep_clock_skew_correct(table, (struct ep_span){"n0", 2}, 5), 5, 0);
    /* no noise, no skew: nothing is found */
    for (int i = 0; i < 200; i++)
        collective("all_reduce", "w", i, BEGIN + i, 0, 1, 3);
    solve();
    near(worst(0, 3, BEGIN, BEGIN + 200), 0, 0.3 * US);
    ok(find(1) && find(1)->line.spread < 0.5 * US);
}

/* What is told of a clock that is years behind and drifts is how far it is off
   in the middle of the job, not where its line would be when it itself shows
   that time. */
static void check_years(void)
{
    double middle = BEGIN + 200, truth;
    const struct ep_clock_host *h;

    begin(0.01, 5e-6, 5 * US, 1, 0);
    w.off[3] = -30 * 365.0 * 86400;
    w.rate[3] = 3e-6;
    for (int i = 0; i <= 400; i++)
        collective("all_reduce", "w", i, BEGIN + i, 0, 1, 8);
    solve();
    h = find(3);
    ok(h && !h->line.reference);
    truth = reading(3, middle) - reading(reference_of(3), middle);
    near(h ? ep_clock_line_ahead(&h->line) : 0, truth, 1e-4);
    near(worst(0, 8, BEGIN, BEGIN + 400), 0, 2 * tolerance(400));
}

/* 1,000 hosts, of which 30 are seconds wrong, in rows of 25 and columns of
   40. */
static void check_thousand(void)
{
    char comm[16];

    begin(0.005, 5e-6, 30 * US, 1, 0);
    for (int h = 0; h < HOSTS; h += 33)
        w.off[h] += 100 * (ep_rng_uniform(&w.rng) - 0.5);
    for (int i = 0; i < 150; i++) {
        for (int row = 0; row < 40; row++) {
            (void)snprintf(comm, sizeof comm, "dp%d", row);
            collective("all_reduce", comm, i, BEGIN + i, row * 25, 1, 25);
        }
        for (int column = 0; column < 25; column++) {
            (void)snprintf(comm, sizeof comm, "ep%d", column);
            collective("all_gather", comm, i, BEGIN + i, column, 25, 40);
        }
    }
    solve();
    ok(ep_clock_table_groups(table) == 1);
    /* the worst of 1000; a rate of 3 standard errors counts as none */
    near(worst(0, HOSTS, BEGIN, BEGIN + 150), 0, 4 * tolerance(300));
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;

    printf("# seed %llu\n", (unsigned long long)seed);
    ep_rng_seed(&w.rng, seed, 0);
    check_nothing();
    check_few();
    check_offsets();
    check_drift();
    check_no_drift();
    check_many_ranks();
    check_stragglers();
    check_lost();
    check_restart();
    check_groups();
    check_grid();
    check_rare();
    check_chain();
    check_useless();
    check_years();
    check_thousand();
    ep_clock_table_free(table);
    ep_clock_skew_free(w.skew);
    return tap_done();
}

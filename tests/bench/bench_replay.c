/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_replay.c - where the time of a what-if analysis goes: inflating,
 * scanning, ordering, graph, replays; and that it grows with the spans.
 *
 * The first part reads timeline-AR.json.gz below $EVENPACE_TESTDATA and is
 * left out without it; its peer is zlib alone on the same file, in the same
 * run. The second makes spans of 1,024 ranks in memory.
 */
#include "config.h"

#include "../unit/plain_replay.h"
#include "../unit/replay_span.h"
#include "base/clock.h"
#include "base/input.h"
#include "base/stats.h"
#include "record/stream.h"
#include "replay/whatif.h"

enum { ROUNDS = 15 };

static double now(void)
{
    return ep_clock_now(&ep_clock_mono);
}

/* Prints median and MAD of v [n]; returns the median. v is overwritten. */
static double print_stats(const char *name, double *v, size_t n)
{
    double m = ep_median(v, n);

    printf("%-34s %10.3f ms  MAD %7.3f\n", name, 1e3 * m,
           1e3 * ep_mad(v, n, m));
    return m;
}

static int inflate_all(const char *path)
{
    struct ep_input *in = ep_input_open(path, NULL);
    static char buf[1 << 18];
    ssize_t n;

    if (!in)
        return -1;
    while ((n = ep_input_read(in, buf, sizeof buf, NULL)) > 0)
        ;
    ep_input_close(in);
    return (int)n;
}

/* Read a timeline as whatif does; NULL: it cannot be read. */
static struct ep_spans *scan(const char *path, const struct ep_ops *ops)
{
    struct ep_stream_config how = {.strict = true};
    struct ep_stream *in = ep_stream_open(&path, 1, &how);
    struct ep_spans *spans = ep_spans_new();
    const struct ep_record *r;

    while (ep_stream_next(in, &r, NULL, NULL) > 0) {
        struct ep_replay_span s = replay_span_of(ops, r);

        if (s.type < 0 || ep_spans_add(spans, &s, NULL) < 0)
            abort();
    }
    if (ep_stream_failed(in) || !ep_spans_count(spans)) {
        ep_spans_free(spans);
        spans = NULL;
    }
    ep_stream_close(in);
    return spans;
}

enum { ORDER, GRAPH, COSTS, ONE, ALL, STAGES };

/* From spans to results; adds the times of round i. */
static void analyse(const struct ep_spans *spans, const struct ep_ops *ops,
                    double t[STAGES])
{
    double ideal[EP_OPS_MAX], *cost, *step, from = now();
    struct ep_trace trace;
    struct ep_graph g;
    struct ep_whatif w;
    struct ep_replay r;
    uint8_t *take;

    if (ep_trace_make(&trace, spans, ops, NULL) < 0)
        abort();
    t[ORDER] = now() - from;
    from = now();
    if (ep_graph_build(&g, trace.op, trace.n, ops, 0, NULL) < 0)
        abort();
    t[GRAPH] = now() - from;
    from = now();
    cost = ep_calloc(trace.n * trace.lanes, sizeof *cost);
    ep_replay_costs(&g, &trace, cost);
    ep_replay_ideal(&g, ops, cost, trace.lanes, ideal);
    t[COSTS] = now() - from;
    take = ep_calloc(g.n, sizeof *take);
    step = ep_calloc(trace.steps, sizeof *step);
    memset(take, EP_REPLAY_OWN, g.n);
    r = (struct ep_replay){.g = &g,
                           .steps = trace.steps,
                           .dp = trace.dp,
                           .cost = cost,
                           .ideal = ideal,
                           .take = take};
    from = now();
    ep_replay_run(&r, step);
    t[ONE] = now() - from;
    from = now();
    ep_whatif_run(&w, &g, ops, &trace, cost, ideal);
    t[ALL] = now() - from;
    ep_whatif_free(&w);
    ep_graph_free(&g);
    ep_trace_free(&trace);
    free(cost);
    free(take);
    free(step);
}

static void bench_trace(const char *path, const struct ep_ops *ops)
{
    static const char *const names[STAGES] = {"order spans", "graph",
                                              "costs and ideal", "one replay",
                                              "all replays and results"};
    double inflate[ROUNDS], read[ROUNDS], t[STAGES][ROUNDS], whole = 0, peer;

    for (size_t i = 0; i < ROUNDS; i++) {
        double from = now(), one[STAGES];
        struct ep_spans *spans;

        if (inflate_all(path) < 0)
            return;
        inflate[i] = now() - from;
        from = now();
        spans = scan(path, ops);
        if (!spans)
            return;
        read[i] = now() - from;
        analyse(spans, ops, one);
        for (size_t k = 0; k < STAGES; k++)
            t[k][i] = one[k];
        ep_spans_free(spans);
    }
    printf("%s\n", path);
    peer = print_stats("inflate alone (zlib)", inflate, ROUNDS);
    whole += print_stats("inflate, scan, add", read, ROUNDS);
    for (size_t k = 0; k < STAGES; k++) {
        double m = print_stats(names[k], t[k], ROUNDS);

        whole += k == ONE ? 0 : m;
    }
    printf("%-34s %10.3f ms  ratio to inflate %.2f\n", "in all", 1e3 * whole,
           whole / peer);
}

/* Spans of 128 x 8 ranks, 34 micro-batches, some steps. */
static void bench_large(int steps, const struct ep_ops *ops)
{
    struct plain_job j = {
        .dp = 128, .pp = 8, .vpp = 1, .gather = true, .clip = true};
    struct ep_spans *spans = ep_spans_new();
    struct ep_rng rng;
    double t[STAGES];
    size_t n;

    for (int d = 0; d < j.dp; d++)
        j.mb[d] = 34;
    plain_make(&j);
    ep_rng_seed(&rng, 1, 0);
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < j.n; i++)
            j.op[i].cost = 0.01 + 0.001 * ep_rng_uniform(&rng);
        (void)plain_run(&j);
        for (int i = 0; i < j.n; i++) {
            const struct plain_op *op = &j.op[i];
            const char *name = plain_names[op->type];
            struct ep_replay_span x = {
                .step = s,
                .dp = op->d,
                .pp = op->p,
                .mb = op->mb,
                .chunk = op->chunk,
                .seq = op->seq,
                .type = ep_ops_find(ops, (struct ep_span){name, strlen(name)}),
                .start = op->start,
                .dur = op->end - op->start};

            if (ep_spans_add(spans, &x, NULL) < 0)
                abort();
        }
    }
    plain_free(&j);
    n = ep_spans_count(spans);
    analyse(spans, ops, t);
    printf(
        "%9zu spans, 1024 ranks x %2d     order %5.1f  costs %5.1f  "
        "one replay %5.2f  all %5.1f ns/span\n",
        n, steps, 1e9 * t[ORDER] / (double)n, 1e9 * t[COSTS] / (double)n,
        1e9 * t[ONE] / (double)n, 1e9 * t[ALL] / (double)n);
    ep_spans_free(spans);
}

int main(void)
{
    const char *data = getenv("EVENPACE_TESTDATA");
    struct ep_ops *ops = ep_ops_new();
    char path[4096];

    if (data) {
        (void)snprintf(path, sizeof path, "%s/timeline-AR.json.gz", data);
        bench_trace(path, ops);
    } else {
        printf("EVENPACE_TESTDATA is not set: no real trace\n");
    }
    for (int steps = 5; steps <= 50; steps = steps < 25 ? steps * 5 : 2 * steps)
        bench_large(steps, ops);
    ep_ops_free(ops);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif - how fast would the step be without its stragglers?
 *
 * Options and wiring only: span records become a trace and a graph
 * (lib/replay), the results become whatif records and an event, or text.
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/input.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/num.h"
#include "record/filter.h"
#include "replay/whatif.h"
#include "replay/whatif_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct ep_filter_options io;
    bool tee, ideal, steps;
    const char *ops;
    struct ep_whatif_rules rules;
} opt = {
    .io = {.format = -1},
    .rules = EP_WHATIF_RULES,
};

static const struct ep_opt options[] = {
    EP_FILTER_OPTIONS(opt.io,
                      "say on stderr what was read and how long it took",
                      "status 1 if the job straggles"),
    {0, "correlation", EP_OPT_DOUBLE, &opt.rules.correlation, "R",
     "of forward and backward: unequal lengths [0.9]", 0, 1},
    {0, "ideal", EP_OPT_FLAG, &opt.ideal, NULL,
     "write the ideal timeline as spans, too", 0, 0},
    {0, "ops", EP_OPT_STRING, &opt.ops, "FILE",
     "what operations of other names are", 0, 0},
    {0, "share", EP_OPT_DOUBLE, &opt.rules.share, "R",
     "of what is lost, for gc and communication [0.5]", 0, 10},
    {0, "stage-share", EP_OPT_DOUBLE, &opt.rules.stage_share, "R",
     "of what is lost, for the last stage [0.5]", 0, 10},
    {0, "steps", EP_OPT_FLAG, &opt.steps, NULL,
     "write the figures for each step, too", 0, 0},
    {0, "tee", EP_OPT_FLAG, &opt.tee, NULL,
     "pass the input through, results at its end", 0, 0},
    {0, "threshold", EP_OPT_DOUBLE, &opt.rules.slowdown, "S",
     "slowdown from which on a job straggles [1.1]", 1, 1000},
    {0, "worker-share", EP_OPT_DOUBLE, &opt.rules.worker_share, "R",
     "of what is lost, for the slowest workers [0.5]", 0, 10},
};

static const struct ep_program program = {
    .name = "whatif",
    .operands = "[FILE ...]",
    .purpose = "Say how fast training would be without its stragglers",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

/* The longest --ops file, and names of unknown operations that are kept. */
#define OPS_FILE_MAX ((size_t)1 << 20)
#define UNKNOWN_MAX 1000

struct run {
    struct ep_filter io;
    struct ep_ops *ops;
    struct ep_spans *spans;
    struct ep_intern *unknown;
    uint64_t passed_over; /* spans of unknown operations */
    struct ep_buf job;    /* of the spans; empty: they do not say */
    bool begun;
    /* seconds */
    double begin, read, order, graph, replay;
    struct ep_trace trace;
    struct ep_graph g;
    double *type_ideal; /* [types] */
    struct ep_whatif w;
    enum ep_whatif_cause cause;
};

/* ==== Spans in ==== */

static int read_ops(struct ep_ops *ops, const char *path, struct ep_error *err)
{
    struct ep_input *in = ep_input_open(path, err);
    struct ep_buf text;
    ssize_t n;
    int rc;

    if (!in)
        return err->code;
    ep_buf_init(&text);
    while ((n = ep_input_read(in, ep_buf_reserve(&text, 65536), 65536, err)) >
               0 &&
           text.len < OPS_FILE_MAX)
        (void)ep_buf_extend(&text, (size_t)n);
    rc = (int)n;
    if (n > 0)
        rc = ep_error_set(err, EP_ELIMIT, "cannot read %s: longer than 1 MiB",
                          ep_input_name(in));
    else if (n == 0 && (rc = ep_ops_read(ops, text.ptr, text.len, err)) < 0)
        rc = ep_error_prefix(err, "cannot use %s", path);
    ep_buf_free(&text);
    ep_input_close(in);
    return rc;
}

/* All spans are of one job. */
static int check_job(struct run *run, struct ep_span job, struct ep_error *err)
{
    char a[48], b[48];

    if (!run->begun)
        ep_buf_add(&run->job, job.ptr ? job.ptr : "", job.len);
    run->begun = true;
    if (ep_span_eq((struct ep_span){job.ptr ? job.ptr : "", job.len},
                   run->job.ptr))
        return 0;
    return ep_error_set(err, EP_EFORMAT,
                        "a span of job \"%s\" among those of \"%s\"",
                        ep_escape(a, sizeof a, job.len ? job.ptr : "", job.len),
                        ep_escape(b, sizeof b, run->job.ptr, run->job.len));
}

static int take(struct run *run, const struct ep_record *r,
                struct ep_error *err)
{
    struct ep_span op = ep_record_str(r, EP_K_OP);
    bool placed = ep_record_has(r, EP_K_DP) || ep_record_has(r, EP_K_PP);
    struct ep_replay_span s = {
        .step = ep_record_int(r, EP_K_STEP, 0),
        .dp = ep_record_int(r, placed ? EP_K_DP : EP_K_RANK, 0),
        .pp = ep_record_int(r, EP_K_PP, 0),
        .mb = ep_record_int(r, EP_K_MB, -1),
        .chunk = ep_record_int(r, EP_K_CHUNK, -1),
        .seq = ep_record_int(r, EP_K_SEQ, -1),
        .start = ep_record_num(r, EP_K_TS),
        .dur = ep_record_num(r, EP_K_DUR),
    };
    int rc;

    if (r->type != EP_SPAN || ep_record_int(r, EP_K_TP, 0) > 0 ||
        ep_span_eq(ep_record_str(r, EP_K_WHAT), "ideal"))
        return 0;
    s.type = ep_ops_find(run->ops, op);
    if (s.type < 0) {
        run->passed_over++;
        (void)ep_intern_add(run->unknown, op, UNKNOWN_MAX);
        return 0;
    }
    if (ep_ops_role(run->ops, (size_t)s.type) == EP_OP_IGNORE)
        return 0;
    rc = check_job(run, ep_record_str(r, EP_K_JOB), err);
    return rc < 0 ? rc : ep_spans_add(run->spans, &s, err);
}

static int read_all(struct run *run, struct ep_error *err)
{
    const struct ep_line *line;
    const struct ep_record *r;
    int rc;

    while ((rc = ep_filter_next(&run->io, &r, &line, err)) > 0) {
        struct ep_error why;

        if (take(run, r, &why) == 0) {
            if (opt.tee)
                ep_filter_pass(&run->io, r, line);
            continue;
        }
        rc = ep_filter_reject(&run->io, &why, err);
        if (rc < 0)
            break;
    }
    return rc;
}

static void say_unknown(const struct run *run)
{
    size_t n = ep_intern_count(run->unknown), shown = n < 5 ? n : 5;
    struct ep_buf b;

    if (!n || opt.io.quiet)
        return;
    ep_buf_init(&b);
    for (size_t i = 0; i < shown; i++) {
        const char *name = ep_intern_name(run->unknown, i);

        ep_buf_adds(&b, i ? ", " : "");
        ep_buf_add_escaped(&b, name, strlen(name));
    }
    ep_cli_warn(
        "passed over %llu spans of operations that are not known (see "
        "--ops): %s%s",
        (unsigned long long)run->passed_over, b.ptr, n > shown ? ", ..." : "");
    ep_buf_free(&b);
}

static void say_cut(const struct ep_trace_cut *c)
{
    if (opt.io.quiet || !c->steps)
        return;
    if (c->steps == 1)
        ep_cli_warn(
            "step %lld is left out: %zu of its %zu operations are "
            "there",
            (long long)c->from, c->have, c->want);
    else
        ep_cli_warn(
            "steps %lld to %lld are left out: %zu of their %zu "
            "operations are there",
            (long long)c->from, (long long)c->to, c->have, c->want);
}

/* ==== Replay ==== */

static double tick(double *last)
{
    double now = ep_clock_now(&ep_clock_mono), took = now - *last;

    *last = now;
    return took;
}

static int analyse(struct run *run, struct ep_error *err)
{
    struct ep_trace *t = &run->trace;
    double last = ep_clock_now(&ep_clock_mono);
    int rc = ep_trace_make(t, run->spans, run->ops, err);

    if (rc < 0)
        return rc;
    ep_spans_free(run->spans);
    run->spans = NULL;
    run->order = tick(&last);
    say_cut(&t->first);
    say_cut(&t->last);
    rc = ep_graph_build(&run->g, t->op, t->n, run->ops, t->step[0], err);
    if (rc < 0)
        return rc;
    run->graph = tick(&last);
    run->type_ideal =
        ep_calloc(ep_ops_types(run->ops), sizeof *run->type_ideal);
    double *cost = ep_calloc(t->n * t->lanes, sizeof *cost);
    ep_replay_costs(&run->g, t, cost);
    ep_replay_ideal(&run->g, run->ops, cost, t->lanes, run->type_ideal);
    run->order += tick(&last);
    ep_whatif_run(&run->w, &run->g, run->ops, t, cost, run->type_ideal);
    free(cost);
    run->replay = tick(&last);
    if (!(run->w.ideal > 0))
        return ep_error_set(err, EP_EFORMAT,
                            "cannot replay step %lld: nothing in it takes time",
                            (long long)t->step[0]);
    run->cause = ep_whatif_judge(&run->w, run->ops, &opt.rules);
    return 0;
}

/* The graph ought to explain the trace: with its gaps put in, the replay ends
   when the trace did. */
static void check_model(const struct run *run)
{
    double off = ep_whatif_off(&run->w);

    if (fabs(off) > EP_WHATIF_OFF && !opt.io.quiet)
        ep_cli_warn(
            "the replay is off by %+.0f %%: the trace does not follow "
            "the model, do not trust the results",
            100 * off);
}

static void say_times(const struct run *run, size_t spans)
{
    const struct ep_trace *t = &run->trace;

    ep_cli_warn(
        "%zu spans: %zu steps, dp %zu, pp %zu, %zu operations, %zu "
        "edges, %zu groups",
        spans, t->steps, t->dp, t->pp, run->g.n, run->g.edges, run->g.groups);
    ep_cli_warn(
        "read %.1f ms, order %.1f ms, graph %.1f ms, replay %.1f ms; "
        "replay with gaps %+.3f %% off the trace",
        1e3 * run->read, 1e3 * run->order, 1e3 * run->graph, 1e3 * run->replay,
        100 * ep_whatif_off(&run->w));
}

/* ==== Results out ==== */

/* One whatif record; share and slowdown that are NaN are left out. */
static void put(struct run *run, const char *what, const char *id,
                double slowdown, double share)
{
    struct ep_record r;

    ep_record_begin(&r, EP_WHATIF);
    if (run->job.len)
        ep_record_set_str(&r, EP_K_JOB, run->job.ptr);
    ep_record_set_str(&r, EP_K_WHAT, what);
    ep_record_set_str(&r, EP_K_ID, id && *id ? id : NULL);
    ep_record_set_num(&r, EP_K_SLOWDOWN, slowdown);
    ep_record_set_num(&r, EP_K_SHARE, share);
    ep_filter_write(&run->io, &r);
}

/* A value of the class, rank, ... that id names, and with --steps its value
   in each step. */
static void put_value(struct run *run, const char *what, struct ep_buf *id,
                      const struct ep_whatif_value *v)
{
    size_t len = id->len;

    if (isnan(v->all))
        return;
    put(run, what, id->ptr, v->all, ep_whatif_share(&run->w, v->all));
    for (size_t s = 0; opt.steps && s < run->w.steps; s++) {
        struct ep_buf full;

        ep_buf_init(&full);
        ep_buf_addf(&full, "step=%lld,", (long long)run->trace.step[s]);
        ep_buf_add(&full, id->ptr, len);
        put(run, "step", full.ptr, v->step[s], (double)NAN);
        ep_buf_free(&full);
    }
}

/* S if the workers, or the stage, were as the others; the share of it. */
static void put_remedy(struct run *run, const char *what, const char *id,
                       const struct ep_whatif_value *v)
{
    const struct ep_whatif *w = &run->w;

    if (isnan(v->all))
        return;
    put(run, what, id, w->slowdown.all - v->all * (w->slowdown.all - 1),
        v->all);
    for (size_t s = 0; opt.steps && s < w->steps; s++) {
        struct ep_buf full;

        ep_buf_init(&full);
        ep_buf_addf(&full, "step=%lld,%s", (long long)run->trace.step[s], what);
        if (!isnan(v->step[s]))
            put(run, "step", full.ptr,
                w->slowdown.step[s] - v->step[s] * (w->slowdown.step[s] - 1),
                v->step[s]);
        ep_buf_free(&full);
    }
}

static void put_workers(struct run *run, struct ep_buf *id)
{
    const struct ep_whatif *w = &run->w;

    for (size_t i = 0; i < w->dp * w->pp; i++) {
        size_t d = w->worker[i] / w->pp, p = w->worker[i] % w->pp;
        double score = ep_whatif_worker(w, d, p);

        ep_buf_reset(id);
        ep_buf_addf(id, "dp=%zu,pp=%zu", d, p);
        put(run, "worker", id->ptr, score, ep_whatif_share(w, score));
    }
    ep_buf_reset(id);
    for (size_t i = 0; i < w->nworkers; i++)
        ep_buf_addf(id, "%sdp=%zu,pp=%zu", i ? " " : "", w->worker[i] / w->pp,
                    w->worker[i] % w->pp);
    put_remedy(run, "slowest-workers", id->ptr, &w->slowest);
    ep_buf_reset(id);
    ep_buf_addf(id, "pp=%zu", w->pp - 1);
    if (w->pp > 1)
        put_remedy(run, "last-stage", id->ptr, &w->last_stage);
}

static void put_all(struct run *run)
{
    const struct ep_whatif *w = &run->w;
    struct ep_buf id;

    ep_buf_init(&id);
    put(run, "all", NULL, w->slowdown.all, (double)NAN);
    for (size_t c = 0; c < w->classes; c++) {
        ep_buf_reset(&id);
        ep_buf_addf(&id, "op=%s", ep_ops_class_name(run->ops, c));
        put_value(run, "op", &id, &w->cls[c]);
    }
    for (size_t d = 0; d < w->dp; d++) {
        ep_buf_reset(&id);
        ep_buf_addf(&id, "dp=%zu", d);
        put_value(run, "dp", &id, &w->of_dp[d]);
    }
    for (size_t p = 0; p < w->pp; p++) {
        ep_buf_reset(&id);
        ep_buf_addf(&id, "pp=%zu", p);
        put_value(run, "pp", &id, &w->of_pp[p]);
    }
    put_workers(run, &id);
    for (size_t s = 0; s < w->steps; s++) {
        ep_buf_reset(&id);
        ep_buf_addf(&id, "step=%lld", (long long)run->trace.step[s]);
        put(run, "step", id.ptr, w->slowdown.step[s], (double)NAN);
    }
    put(run, "launch", NULL, w->launch, (double)NAN);
    ep_buf_free(&id);
}

static void put_event(struct run *run)
{
    static const char *const scopes[EP_CAUSES] = {
        [EP_CAUSE_WORKER] = "rank", [EP_CAUSE_STAGE] = "stage"};
    const struct ep_trace *t = &run->trace;
    size_t last = t->steps - 1;
    struct ep_buf id, eid, evidence;
    struct ep_record r;

    ep_buf_init(&id);
    ep_buf_init(&eid);
    ep_buf_init(&evidence);
    ep_whatif_place(&run->w, run->cause, &id);
    ep_whatif_evidence(&run->w, run->ops, &evidence);
    ep_buf_addf(&eid, "whatif:%s@%lld", id.len ? id.ptr : "job",
                (long long)t->step[0]);
    ep_record_begin(&r, EP_EVENT);
    ep_record_set_num(&r, EP_K_TS,
                      fmax(0, t->base[last] + run->w.traced.step[last]));
    if (run->job.len)
        ep_record_set_str(&r, EP_K_JOB, run->job.ptr);
    ep_record_set_str(&r, EP_K_EID, eid.ptr);
    ep_record_set_str(&r, EP_K_KIND,
                      run->cause == EP_CAUSE_NONE ? "relief" : "onset");
    ep_record_set_str(&r, EP_K_SCOPE,
                      scopes[run->cause] ? scopes[run->cause] : "job");
    ep_record_set_str(&r, EP_K_ID, id.len ? id.ptr : NULL);
    ep_record_set_num(&r, EP_K_SINCE, fmax(0, t->base[0]));
    ep_record_set_int(&r, EP_K_STEP, t->step[0]);
    ep_record_set_num(&r, EP_K_FACTOR, run->w.slowdown.all);
    ep_record_set_str(&r, EP_K_CAUSE, ep_whatif_cause_name(run->cause));
    ep_record_set_str(&r, EP_K_EVIDENCE, evidence.ptr);
    ep_filter_write(&run->io, &r);
    ep_buf_free(&id);
    ep_buf_free(&eid);
    ep_buf_free(&evidence);
}

static void put_span(struct run *run, const struct ep_graph_op *op, size_t lane,
                     double start, double dur)
{
    const struct ep_trace *t = &run->trace;
    struct ep_record r;

    ep_record_begin(&r, EP_SPAN);
    ep_record_set_num(&r, EP_K_TS, fmax(0, t->base[lane / t->dp] + start));
    if (run->job.len)
        ep_record_set_str(&r, EP_K_JOB, run->job.ptr);
    ep_record_set_int(&r, EP_K_DP, (int64_t)(lane % t->dp));
    ep_record_set_int(&r, EP_K_PP, op->pp);
    ep_record_set_str(&r, EP_K_OP, ep_ops_name(run->ops, (size_t)op->type));
    if (op->seq >= 0)
        ep_record_set_int(&r, EP_K_SEQ, op->seq);
    ep_record_set_int(&r, EP_K_STEP, t->step[lane / t->dp]);
    ep_record_set_num(&r, EP_K_DUR, fmax(0, dur));
    if (op->mb >= 0)
        ep_record_set_int(&r, EP_K_MB, op->mb);
    if (op->chunk >= 0)
        ep_record_set_int(&r, EP_K_CHUNK, op->chunk);
    ep_record_set_str(&r, EP_K_WHAT, "ideal");
    ep_filter_write(&run->io, &r);
}

/* The ideal is the same in all lanes; written for each, so that any span has
   its counterpart. */
static void put_ideal(struct run *run)
{
    const struct ep_graph *g = &run->g;
    double *start = ep_calloc(g->n, sizeof *start);
    double *end = ep_calloc(g->n, sizeof *end);

    (void)ep_replay_ideal_step(g, run->type_ideal, start, end);
    for (size_t l = 0; l < run->trace.lanes; l++)
        for (size_t v = 0; v < g->n; v++)
            if (!g->skip[v])
                put_span(run, &g->op[v], l, start[v],
                         run->type_ideal[g->op[v].type]);
    free(start);
    free(end);
}

static void report(struct run *run)
{
    if (opt.io.format == EP_CLI_TEXT) {
        ep_buf_reset(&run->io.text);
        ep_whatif_text(&run->w, run->ops, run->trace.step, run->cause,
                       &run->io.text);
        (void)fwrite(run->io.text.ptr, 1, run->io.text.len, run->io.out);
        return;
    }
    if (opt.ideal)
        put_ideal(run);
    put_all(run);
    put_event(run);
}

/* ==== All of it ==== */

static int work(struct run *run, struct ep_error *err)
{
    int rc = read_all(run, err);
    size_t spans = ep_spans_count(run->spans);

    run->read = tick(&run->begin);
    say_unknown(run);
    if (rc < 0 || !spans)
        return rc;
    rc = analyse(run, err);
    if (rc < 0)
        return rc;
    check_model(run);
    if (opt.io.verbose)
        say_times(run, spans);
    report(run);
    return 1;
}

static int run_all(const char *const *paths, int n, struct ep_error *err)
{
    struct run run = {.begun = false};
    int rc;

    run.ops = ep_ops_new();
    run.spans = ep_spans_new();
    run.unknown = ep_intern_new();
    ep_buf_init(&run.job);
    rc = opt.ops ? read_ops(run.ops, opt.ops, err) : 0;
    run.begin = ep_clock_now(&ep_clock_mono);
    if (rc == 0)
        rc = ep_filter_open(&run.io, &opt.io, paths, n, err);
    if (rc == 0) {
        rc = work(&run, err);
        rc = ep_filter_close(&run.io, rc < 0 ? rc : 0,
                             rc == 0 ? "cannot replay: no spans in the input"
                                     : NULL,
                             rc > 0 && run.cause != EP_CAUSE_NONE, err);
    }
    ep_whatif_free(&run.w);
    ep_graph_free(&run.g);
    ep_trace_free(&run.trace);
    free(run.type_ideal);
    ep_buf_free(&run.job);
    ep_intern_free(run.unknown);
    ep_spans_free(run.spans);
    ep_ops_free(run.ops);
    return rc;
}

/* Not every form has room for what is asked for. */
static bool check_format(void)
{
    bool text = opt.io.format == EP_CLI_TEXT;
    const char *option = NULL, *needs = NULL;

    if (opt.tee && opt.io.format != EP_CLI_JSONL) {
        option = "tee";
        needs = "jsonl";
    } else if (opt.ideal && (text || opt.io.format == EP_CLI_PROM)) {
        /* as metrics they would look like operations that took place */
        option = "ideal";
        needs = "jsonl or tsv";
    } else if (opt.steps && text) {
        option = "steps";
        needs = "jsonl, tsv or prom";
    }
    if (option)
        ep_cli_warn("cannot use --%s with that --format: it needs %s", option,
                    needs);
    return !option;
}

int main(int argc, char **argv)
{
    struct ep_error err = {.code = 0};
    int first = ep_cli_begin(&program, argc, argv), status;

    if (opt.io.format < 0 && !opt.io.columns &&
        (opt.tee || opt.ideal || opt.steps))
        opt.io.format = EP_CLI_JSONL;
    ep_filter_format(&opt.io);
    if (!check_format())
        return EP_EXIT_TROUBLE;
    status = run_all((const char *const *)argv + first, argc - first, &err);
    if (status < 0) {
        ep_cli_error(&err);
        status = EP_EXIT_TROUBLE;
    }
    return ep_cli_end(status);
}

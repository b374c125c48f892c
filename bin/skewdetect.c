/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skewdetect - who became slow, when, by how much, why, how sure.
 *
 * Options and wiring only: records become samples for detect/watch.h, those of
 * calls by way of detect/calls.h; its findings become event records or text.
 */
#include "config.h"

#include "base/buf.h"
#include "base/cli.h"
#include "base/mem.h"
#include "detect/calls.h"
#include "detect/watch.h"
#include "record/filter.h"
#include "skewdetect_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    struct ep_filter_options io;
    bool tee, no_spikes, iterations;
    int64_t window, confirm;
    double min_change;
    const char *state;
} opt = {
    .io = {.format = -1},
    .window = 16,
    .confirm = 3,
    .min_change = 0.10,
};

static const struct ep_opt options[] = {
    EP_FILTER_OPTIONS(opt.io, "say on stderr what was read",
                      "status 1 if a straggler was found"),
    {0, "confirm", EP_OPT_INT, &opt.confirm, "N",
     "steps that a change must last [3]", 1, 16},
    {0, "iterations", EP_OPT_FLAG, &opt.iterations, NULL,
     "print the iterations found in calls, as steps", 0, 0},
    {0, "min-change", EP_OPT_DOUBLE, &opt.min_change, "R",
     "least relative change that counts [0.10]", 0.01, 10},
    {0, "no-spikes", EP_OPT_FLAG, &opt.no_spikes, NULL,
     "leave single slow steps out", 0, 0},
    {0, "state", EP_OPT_STRING, &opt.state, "FILE",
     "go on where the run before ended", 0, 0},
    {0, "tee", EP_OPT_FLAG, &opt.tee, NULL,
     "pass the input through, events inserted", 0, 0},
    {0, "window", EP_OPT_INT, &opt.window, "N",
     "steps behind a comparison of ranks [16]", 4, EP_WATCH_WINDOW_MAX},
    {0, "world", EP_OPT_INT, &opt.io.world, "N",
     "ranks of the job, to tell global ranks by", 1, 1048576},
};

static const struct ep_program program = {
    .name = "skewdetect",
    .operands = "[FILE ...]",
    .purpose = "Find the stragglers of a training job in its telemetry",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

/* Of text: width of a terminal, and of the column of times. */
enum { COLUMNS = 80, INDENT = 10 };

/* Lines of "still slow" at the end, at most. */
#define SLOW_MAX 10

/* What is still slow, the slowest first. */
struct slow {
    uint64_t all; /* more than there is room for, perhaps */
    size_t n;
    double factor[SLOW_MAX];
    char *line[SLOW_MAX];
};

struct run {
    struct ep_filter io;
    /* --tee: the record that is being judged; it goes out before what it
       leads to, and not at all if it is refused */
    const struct ep_record *held;
    const struct ep_line *line; /* as it was read; NULL: it was imported */
    uint64_t onsets, reliefs, spikes;
    uint64_t steps, probes;
    struct ep_watch *watch;
    struct ep_calls *calls;
    uint64_t iterations; /* of calls, that were judged or printed */
    struct memory memory;
};

/* ==== Findings out ==== */

static void to_record(const struct ep_finding *f, struct ep_record *r)
{
    ep_record_begin(r, EP_EVENT);
    ep_record_set_num(r, EP_K_TS, f->ts);
    ep_record_set_str(r, EP_K_JOB, f->job);
    ep_record_set_str(r, EP_K_HOST, f->host);
    if (f->rank >= 0)
        ep_record_set_int(r, EP_K_RANK, f->rank);
    ep_record_set_str(r, EP_K_EID, f->eid);
    ep_record_set_str(r, EP_K_KIND, ep_finding_names[f->kind]);
    ep_record_set_str(r, EP_K_SCOPE, ep_scope_names[f->scope]);
    ep_record_set_str(r, EP_K_ID, f->id);
    ep_record_set_num(r, EP_K_SINCE, f->since);
    if (f->step >= 0)
        ep_record_set_int(r, EP_K_STEP, f->step);
    ep_record_set_num(r, EP_K_FACTOR, f->factor);
    ep_record_set_num(r, EP_K_P, f->p);
    ep_record_set_str(r, EP_K_CAUSE, f->cause);
    ep_record_set_str(r, EP_K_EVIDENCE, f->evidence);
    ep_record_set_num(r, EP_K_GPU_HOURS, f->gpu_hours);
}

/* Append text in lines of at most 80 columns, each behind the indent. */
static void add_wrapped(struct ep_buf *b, const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t word = strcspn(text, " ");

        if (column && column + 1 + word > COLUMNS) {
            ep_buf_addc(b, '\n');
            column = 0;
        }
        if (!column) {
            ep_buf_addf(b, "%*s", INDENT, "");
            column = INDENT;
        } else {
            ep_buf_addc(b, ' ');
            column++;
        }
        ep_buf_add(b, text, word);
        column += word;
        text += word;
        text += *text == ' ';
    }
    ep_buf_addc(b, '\n');
}

static void add_clock(struct ep_buf *b, double ts)
{
    time_t whole = (time_t)(ts < 1e12 ? ts : 0);
    struct tm tm;
    char s[16] = "?";

    if (ts < 1e12 && localtime_r(&whole, &tm))
        (void)strftime(s, sizeof s, "%H:%M:%S", &tm);
    ep_buf_adds(b, s);
}

/* "rank=1 (n17)", "lm/rank=1 (n17)", "job lm" */
static void add_who(struct ep_buf *b, const struct ep_finding *f)
{
    if (!f->id)
        ep_buf_adds(b, f->job ? "job " : "job");
    if (f->job)
        ep_buf_add_escaped(b, f->job, strlen(f->job));
    if (f->id) {
        ep_buf_adds(b, f->job ? "/" : "");
        ep_buf_add_escaped(b, f->id, strlen(f->id));
    }
    if (f->host && f->scope != EP_SCOPE_HOST) {
        ep_buf_adds(b, " (");
        ep_buf_add_escaped(b, f->host, strlen(f->host));
        ep_buf_addc(b, ')');
    }
}

/* "2.03x since step 118", "2.03x since 14:22:31" */
static void add_since(struct ep_buf *b, const struct ep_finding *f)
{
    ep_buf_addf(b, f->factor < 1000 ? " %.2fx since " : " %.3gx since ",
                f->factor);
    if (f->step >= 0)
        ep_buf_addf(b, "step %lld", (long long)f->step);
    else
        add_clock(b, f->since);
}

/*
 * 14:22:31  ONSET   rank=1 (n17) 2.03x since step 118, sure 0.99
 *           cpu-contention: busy per micro-batch 21.3 ms -> 43.1 ms
 *
 * Names are never cut; a long one has the rest of its line below it.
 */
static void to_text(const struct ep_finding *f, struct ep_buf *b)
{
    static const char *const names[] = {"ONSET ", "relief", "spike ",
                                        "MISSING"};
    struct ep_buf line;

    ep_buf_init(&line);
    add_clock(&line, f->ts);
    ep_buf_addf(b, "%-8s  %s  ", line.ptr, names[f->kind]);
    add_who(b, f);
    ep_buf_reset(&line);
    add_since(&line, f);
    ep_buf_addf(&line, ", sure %.2f", f->p);
    if (b->len + line.len > COLUMNS)
        ep_buf_addf(b, "\n%*s", INDENT - 1, "");
    ep_buf_adds(b, line.ptr);
    ep_buf_addc(b, '\n');
    ep_buf_reset(&line);
    ep_buf_addf(&line, "%s: ", f->cause);
    ep_buf_add_escaped(&line, f->evidence, strlen(f->evidence));
    if (!isnan(f->gpu_hours))
        ep_buf_addf(&line, ", %.2g device hours lost", f->gpu_hours);
    add_wrapped(b, line.ptr);
    ep_buf_free(&line);
}

static void pass_on(struct run *run)
{
    if (run->held)
        ep_filter_pass(&run->io, run->held, run->line);
    run->held = NULL;
}

static void on_finding(void *ctx, const struct ep_finding *f)
{
    struct run *run = ctx;
    struct ep_record r;

    run->onsets += f->kind == EP_FINDING_ONSET;
    run->reliefs += f->kind == EP_FINDING_RELIEF;
    run->spikes += f->kind == EP_FINDING_SPIKE;
    if (f->kind == EP_FINDING_SPIKE && opt.no_spikes)
        return;
    pass_on(run); /* only a record that was accepted leads to a finding */
    if (opt.io.format == EP_CLI_TEXT) {
        ep_buf_reset(&run->io.text);
        to_text(f, &run->io.text);
        (void)fwrite(run->io.text.ptr, 1, run->io.text.len, run->io.out);
    } else {
        to_record(f, &r);
        ep_filter_write(&run->io, &r);
    }
}

/* ==== Records in ==== */

/* An iteration that was found in the calls of a rank. */
static void on_iteration(void *ctx, const struct ep_calls_step *x)
{
    struct run *run = ctx;
    struct ep_watch_step s = {
        .job = x->job,
        .host = x->host,
        .rank = x->rank,
        .ts = x->ts,
        .step = x->step,
        .dur = x->dur,
        .busy = x->busy,
        .mb = -1,
    };
    struct ep_record r;

    if (!opt.iterations) {
        /* what it refuses is no line of the input that could be named */
        run->iterations += ep_watch_step(run->watch, &s, NULL) == 0;
        return;
    }
    run->iterations++;
    ep_record_begin(&r, EP_STEP);
    ep_record_set_num(&r, EP_K_TS, x->ts);
    if (x->job.len)
        ep_record_set_span(&r, EP_K_JOB, x->job);
    if (x->host.len)
        ep_record_set_span(&r, EP_K_HOST, x->host);
    ep_record_set_int(&r, EP_K_RANK, x->rank);
    ep_record_set_int(&r, EP_K_STEP, x->step);
    ep_record_set_num(&r, EP_K_DUR, x->dur);
    ep_record_set_num(&r, EP_K_BUSY, x->busy);
    ep_filter_write(&run->io, &r);
}

/* Where in the job a rank is, if the record says it. */
static struct ep_place place_of(const struct ep_record *r)
{
    struct ep_place p = {
        .dp = ep_record_int(r, EP_K_DP, -1),
        .pp = ep_record_int(r, EP_K_PP, -1),
        .tp = ep_record_int(r, EP_K_TP, -1),
    };

    p.known = p.dp >= 0 || p.pp >= 0 || p.tp >= 0;
    return p;
}

/* A number that is > 0 where it is told. */
static double amount_of(const struct ep_record *r, enum ep_key key)
{
    return ep_record_has(r, key) ? ep_record_num(r, key) : 0;
}

static int take_call(struct ep_calls *calls, const struct ep_record *r,
                     struct ep_error *err)
{
    struct ep_call c = {
        .job = ep_record_str(r, EP_K_JOB),
        .host = ep_record_str(r, EP_K_HOST),
        .op = ep_record_str(r, EP_K_OP),
        .comm = ep_record_str(r, EP_K_COMM),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .pid = ep_record_int(r, EP_K_PID, -1),
        .nranks = ep_record_int(r, EP_K_NRANKS, -1),
        .comm_rank = ep_record_int(r, EP_K_COMM_RANK, -1),
        .peer = ep_record_int(r, EP_K_PEER, -1),
        .bytes = ep_record_int(r, EP_K_BYTES, -1),
        .seq = ep_record_int(r, EP_K_SEQ, -1),
        .place = place_of(r),
        .p2p = r->type == EP_P2P,
        .ts = ep_record_num(r, EP_K_TS),
        .dur = ep_record_num(r, EP_K_DUR),
    };

    return ep_calls_take(calls, &c, err);
}

/* A step that a rank, or the job, tells itself: better than what we find. */
static int take_step(struct run *run, struct ep_watch *w,
                     const struct ep_record *r, struct ep_error *err)
{
    struct ep_watch_step s = {
        .job = ep_record_str(r, EP_K_JOB),
        .host = ep_record_str(r, EP_K_HOST),
        .worker = ep_record_str(r, EP_K_WORKER),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .place = place_of(r),
        .ts = ep_record_num(r, EP_K_TS),
        .step = ep_record_int(r, EP_K_STEP, -1),
        .dur = ep_record_num(r, EP_K_DUR),
        .busy = ep_record_num(r, EP_K_BUSY),
        .mb = ep_record_int(r, EP_K_MB, -1),
        .tokens = amount_of(r, EP_K_TOKENS),
        .flops = amount_of(r, EP_K_FLOPS),
    };

    if (!s.worker.len && ep_calls_mute(run->calls, s.job, err) < 0)
        return EP_ELIMIT;
    return ep_watch_step(w, &s, err);
}

static int take_probe(struct ep_watch *w, const struct ep_record *r,
                      struct ep_error *err)
{
    struct ep_span better = ep_record_str(r, EP_K_BETTER);
    struct ep_watch_probe s = {
        .job = ep_record_str(r, EP_K_JOB),
        .host = ep_record_str(r, EP_K_HOST),
        .gpu = ep_record_str(r, EP_K_GPU),
        .test = ep_record_str(r, EP_K_TEST),
        .dtype = ep_record_str(r, EP_K_DTYPE),
        .unit = ep_record_str(r, EP_K_UNIT),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .size = ep_record_int(r, EP_K_SIZE, -1),
        .ts = ep_record_num(r, EP_K_TS),
        .value = ep_record_num(r, EP_K_VALUE),
        .high_is_better = ep_span_eq(better, "high"),
        .spread = ep_record_num(r, EP_K_SPREAD),
        .ref_own = ep_record_num(r, EP_K_REF_OWN),
    };

    if (!s.high_is_better && !ep_span_eq(better, "low"))
        return ep_error_set(err, EP_EFORMAT, "better is not high or low");
    return ep_watch_probe(w, &s, err);
}

static int take(struct run *run, struct ep_watch *w, const struct ep_record *r,
                struct ep_error *err)
{
    int rc = 0;

    if (r->type == EP_COLL || r->type == EP_P2P)
        return take_call(run->calls, r, err);
    if (opt.iterations)
        return 0;
    switch (r->type) {
    case EP_STEP:
        rc = take_step(run, w, r, err);
        run->steps += rc == 0;
        return rc;
    case EP_PROBE:
        rc = take_probe(w, r, err);
        run->probes += rc == 0;
        return rc;
    case EP_GAUGE:
        if (ep_span_eq(ep_record_str(r, EP_K_NAME), "cpu_share") &&
            ep_record_has(r, EP_K_RANK))
            rc = ep_watch_cpu_share(
                w, ep_record_str(r, EP_K_JOB), ep_record_int(r, EP_K_RANK, -1),
                ep_record_num(r, EP_K_TS), ep_record_num(r, EP_K_VALUE), err);
        return rc;
    default:
        return 0;
    }
}

/*
 * Write the state now and then, behind what was found: that would not be found
 * again.
 */
static void keep(struct run *run, bool waits)
{
    struct ep_error why;

    if (memory_is_due(&run->memory, waits) && ep_filter_flush(&run->io) &&
        memory_write(&run->memory, &why) < 0)
        ep_cli_error(&why);
}

static void on_idle(void *ctx)
{
    keep(ctx, true);
}

/* All records through the watch. 0, or the error that ended a strict run. */
static int detect(struct run *run, struct ep_watch *w, struct ep_error *err)
{
    const struct ep_record *r;
    int rc;

    while ((rc = ep_filter_next(&run->io, &r, &run->line, err)) > 0) {
        struct ep_error why;

        run->held = opt.tee ? r : NULL;
        if (take(run, w, r, &why) < 0) {
            run->held = NULL;
            rc = ep_filter_reject(&run->io, &why, err);
            if (rc < 0)
                break;
        }
        pass_on(run);
        keep(run, false);
    }
    /* the end of the input is that of the job, unless there is another run */
    if (rc == 0 && !opt.state) {
        ep_calls_finish(run->calls);
        ep_watch_finish(w);
    }
    return rc;
}

/* Keep the slowest; of equal ones those that came first. */
static void on_slow(void *ctx, const struct ep_finding *f)
{
    struct slow *slow = ctx;
    size_t at = slow->n;
    struct ep_buf line;

    slow->all++;
    while (at > 0 && slow->factor[at - 1] < f->factor)
        at--;
    if (at == SLOW_MAX)
        return;
    if (slow->n == SLOW_MAX)
        free(slow->line[SLOW_MAX - 1]);
    else
        slow->n++;
    for (size_t i = slow->n - 1; i > at; i--) {
        slow->factor[i] = slow->factor[i - 1];
        slow->line[i] = slow->line[i - 1];
    }
    ep_buf_init(&line);
    add_who(&line, f);
    add_since(&line, f);
    slow->factor[at] = f->factor;
    slow->line[at] = ep_strndup(line.ptr, line.len);
    ep_buf_free(&line);
}

static void summarise(const struct run *run, const struct ep_watch *w)
{
    struct slow slow = {.n = 0};

    if (opt.io.format != EP_CLI_TEXT || opt.io.quiet || opt.iterations)
        return;
    ep_watch_open(w, on_slow, &slow);
    for (size_t i = 0; i < slow.n; i++) {
        (void)fprintf(run->io.out, "still slow: %s\n", slow.line[i]);
        free(slow.line[i]);
    }
    if (slow.all > slow.n)
        (void)fprintf(run->io.out, "... and %llu more\n",
                      (unsigned long long)(slow.all - slow.n));
    (void)fprintf(run->io.out,
                  "%llu onset%s, %llu relief%s, %llu spike%s in %llu step "
                  "and %llu probe records",
                  (unsigned long long)run->onsets, run->onsets == 1 ? "" : "s",
                  (unsigned long long)run->reliefs,
                  run->reliefs == 1 ? "" : "s", (unsigned long long)run->spikes,
                  run->spikes == 1 ? "" : "s", (unsigned long long)run->steps,
                  (unsigned long long)run->probes);
    if (run->iterations)
        (void)fprintf(run->io.out, " and %llu iterations",
                      (unsigned long long)run->iterations);
    (void)fputc('\n', run->io.out);
}

/* -v: what was read, and how the calls repeat. */
static void tell(const struct run *run)
{
    struct ep_calls_summary s;

    ep_cli_warn("%llu step and %llu probe records",
                (unsigned long long)run->steps,
                (unsigned long long)run->probes);
    ep_calls_sum(run->calls, &s);
    s.known += ep_watch_known(run->watch);
    if (opt.state)
        ep_cli_warn("%llu records were known already",
                    (unsigned long long)s.known);
    if (!s.calls)
        return;
    ep_cli_warn("%llu calls, %llu of them of no known rank; %llu iterations",
                (unsigned long long)s.calls, (unsigned long long)s.unranked,
                (unsigned long long)s.iterations);
    if (s.learned)
        ep_cli_warn(
            "an iteration is %u to %u calls, %zu patterns of %llu "
            "ranks; by gaps %llu, each call is one %llu",
            s.least, s.most, s.patterns, (unsigned long long)s.learned,
            (unsigned long long)s.by_gaps, (unsigned long long)s.each);
    if (s.learned < s.ranks)
        ep_cli_warn("no iterations are known of %llu ranks",
                    (unsigned long long)(s.ranks - s.learned));
}

/* Why nothing could be done, if so. */
static const char *why_idle(const struct run *run)
{
    struct ep_calls_summary s;

    if (run->steps || run->probes || run->iterations)
        return NULL;
    ep_calls_sum(run->calls, &s);
    if (opt.state && s.calls > s.unranked && s.learned)
        return NULL; /* none was over of late, that is all */
    if (!s.calls)
        return opt.iterations ? "cannot find iterations: no coll or p2p record "
                                "in the input"
                              : "cannot detect stragglers: no step or probe "
                                "record in the input";
    return s.unranked == s.calls
               ? "cannot find iterations: no coll or p2p record tells its rank"
               : "cannot find iterations: the calls of no rank repeat, or they "
                 "have no times";
}

/* Read, judge, close; an exit status. */
static int run_on(struct run *run, const char *const *paths, int n,
                  struct ep_error *err)
{
    int rc = ep_filter_open(&run->io, &opt.io, paths, n, err), status;

    if (rc < 0)
        return rc;
    rc = detect(run, run->watch, err);
    if (rc == 0)
        summarise(run, run->watch);
    if (opt.io.verbose)
        tell(run);
    status = ep_filter_close(&run->io, rc, why_idle(run), run->onsets > 0, err);
    /* what was not told is to be found again */
    if (rc == 0 && !run->io.lost && run->memory.dirty &&
        memory_write(&run->memory, err) < 0) {
        ep_cli_error(err);
        status = EP_EXIT_TROUBLE;
    }
    return status;
}

static int run_all(const char *const *paths, int n, struct ep_error *err)
{
    const struct ep_state_options same = {opt.min_change, opt.confirm,
                                          opt.window, opt.io.world};
    struct ep_watch_config config = EP_WATCH_DEFAULTS;
    struct run run = {.held = NULL};
    struct ep_watch *w;
    int rc;

    config.pace.min_change = config.peers.min_change = opt.min_change;
    config.pace.confirm = (unsigned)opt.confirm;
    if (config.pace.settle <= config.pace.confirm)
        config.pace.settle = config.pace.confirm + 1;
    config.window = opt.window;
    w = ep_watch_new(&config, on_finding, &run, err);
    if (!w)
        return err->code;
    run.watch = w;
    run.calls = ep_calls_new(on_iteration, &run);
    run.memory.what = (struct ep_state){&same, run.calls, w};
    opt.io.idle = on_idle;
    opt.io.idle_ctx = &run;
    opt.io.stoppable = opt.state != NULL;
    rc = memory_open(&run.memory, opt.state, opt.io.verbose, err);
    if (rc >= 0)
        rc = run_on(&run, paths, n, err);
    memory_close(&run.memory);
    ep_calls_free(run.calls);
    ep_watch_free(w);
    return rc;
}

int main(int argc, char **argv)
{
    struct ep_error err = {.code = 0};
    int first = ep_cli_begin(&program, argc, argv), status;

    if (opt.io.format < 0 && (opt.tee || opt.iterations) && !opt.io.columns)
        opt.io.format = EP_CLI_JSONL;
    ep_filter_format(&opt.io);
    if (opt.tee && (opt.io.format != EP_CLI_JSONL || opt.iterations)) {
        ep_cli_warn(
            opt.iterations
                ? "cannot use --tee with --iterations"
                : "cannot use --tee with that form of output: it needs jsonl");
        return EP_EXIT_TROUBLE;
    }
    if (opt.iterations && opt.state) {
        ep_cli_warn("cannot use --state with --iterations: nothing is judged");
        return EP_EXIT_TROUBLE;
    }
    if (opt.iterations && opt.io.format == EP_CLI_TEXT) {
        ep_cli_warn("cannot use --iterations with text: it prints records");
        return EP_EXIT_TROUBLE;
    }
    status = run_all((const char *const *)argv + first, argc - first, &err);
    if (status < 0) {
        ep_cli_error(&err);
        status = EP_EXIT_TROUBLE;
    }
    return ep_cli_end(status);
}

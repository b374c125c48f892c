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
#include "detect/calls.h"
#include "detect/explain.h"
#include "detect/watch.h"
#include "feed/feed.h"
#include "feed/intake.h"
#include "feed/keeper.h"
#include "record/event_pick.h"
#include "record/event_tally.h"
#include "record/event_text.h"
#include "record/filter.h"

#include <stdio.h>
#include <string.h>

static struct {
    struct ep_filter_options io;
    bool tee, no_spikes, iterations;
    int64_t window, confirm;
    double min_change, hazard, z, spike;
    double warning, critical, hang;
    const char *explain, *state;
} opt = {
    .io = {.format = -1},
    .window = 16,
    .confirm = 3,
    .min_change = 0.10,
    .hazard = 0.01,
    .z = 5,
    .spike = 1.25,
    .warning = 1,
    .critical = 1.5,
    .hang = 300,
};

static const struct ep_opt options[] = {
    EP_FILTER_OPTIONS_AS(opt.io, EP_CLI_CHECK_FORMATS,
                         "say on stderr what was read",
                         "status 1 if a straggler was found"),
    {0, "confirm", EP_OPT_INT, &opt.confirm, "N",
     "steps that a change must last [3]", 1, 16},
    {0, "critical", EP_OPT_DOUBLE, &opt.critical, "FACTOR",
     "nagios: from this open factor on critical [1.5]", 1, 1e9},
    {0, "explain", EP_OPT_STRING, &opt.explain, "EID",
     "print this episode alone, and why", 0, 0},
    {0, "hang", EP_OPT_DURATION, &opt.hang, "TIME",
     "least silence that counts as a hang, 0: none [5m]", 0, 1e7},
    {0, "hazard", EP_OPT_DOUBLE, &opt.hazard, "H",
     "one change in 1/H steps is expected [0.01]", 1e-9, 0.5},
    {0, "iterations", EP_OPT_FLAG, &opt.iterations, NULL,
     "print the iterations found in calls, as steps", 0, 0},
    {0, "min-change", EP_OPT_DOUBLE, &opt.min_change, "R",
     "least relative change that counts [0.10]", 0.01, 10},
    {0, "no-spikes", EP_OPT_FLAG, &opt.no_spikes, NULL,
     "leave single slow steps out", 0, 0},
    {0, "spike", EP_OPT_DOUBLE, &opt.spike, "FACTOR",
     "times its level that makes a step a spike [1.25]", 1.01, 1000},
    {0, "state", EP_OPT_STRING, &opt.state, "FILE",
     "go on where the run before ended", 0, 0},
    {0, "tee", EP_OPT_FLAG, &opt.tee, NULL,
     "pass the input through, events inserted", 0, 0},
    {0, "warning", EP_OPT_DOUBLE, &opt.warning, "FACTOR",
     "nagios: from this open factor on a warning [1]", 1, 1e9},
    {0, "window", EP_OPT_INT, &opt.window, "N",
     "steps behind a comparison of ranks [16]", 4, EP_WATCH_WINDOW_MAX},
    {0, "world", EP_OPT_INT, &opt.io.world, "N",
     "ranks of the job, to tell global ranks by", 1, 1048576},
    {0, "z", EP_OPT_DOUBLE, &opt.z, "Z",
     "standard errors that a change must have [5]", 0.1, 1000},
};

static const struct ep_program program = {
    .name = "skewdetect",
    .operands = "[FILE ...]",
    .purpose = "Find the stragglers of a training job in its telemetry",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

struct run {
    struct ep_filter io;
    /* --tee: the record that is being judged; it goes out before what it
       leads to, and not at all if it is refused */
    const struct ep_record *held;
    const struct ep_line *line; /* as it was read; NULL: it was imported */
    struct ep_tally *tally;
    struct ep_pick *pick; /* --explain; NULL without */
    struct ep_intake in;
    struct ep_keeper keeper; /* --state */
};

/* ==== Findings out ==== */

static void pass_on(struct run *run)
{
    if (run->held)
        ep_filter_pass(&run->io, run->held, run->line);
    run->held = NULL;
}

/* --explain: what is said of an event, kept until it is known if it is the
   one. */
static void explain(struct run *run, const struct ep_finding *f,
                    const struct ep_record *r, enum ep_event_news news)
{
    struct ep_buf *b = ep_pick_take(run->pick, r);
    struct ep_explain x;

    if (!b)
        return;
    if (opt.io.format == EP_CLI_JSONL) {
        ep_record_print(r, b);
        return;
    }
    ep_event_print_text(r, news, b);
    if (ep_watch_explain(run->in.watch, &x))
        ep_explain_print(&x, f, 10, b);
}

static void on_finding(void *ctx, const struct ep_finding *f)
{
    struct run *run = ctx;
    enum ep_event_news news;
    struct ep_record r;

    ep_feed_event(f, &r);
    news = ep_tally_event(run->tally, &r);
    if (f->kind == EP_FINDING_SPIKE && opt.no_spikes)
        return;
    pass_on(run); /* only a record that was accepted leads to a finding */
    if (run->pick) {
        explain(run, f, &r, news);
    } else if (opt.io.format == EP_CLI_TEXT) {
        ep_buf_reset(&run->io.text);
        ep_event_print_text(&r, news, &run->io.text);
        (void)fwrite(run->io.text.ptr, 1, run->io.text.len, run->io.out);
    } else if (opt.io.format != EP_CLI_NAGIOS) {
        ep_filter_write(&run->io, &r);
    }
}

/* ==== Records in ==== */

/* --iterations: what was found in the calls of a rank is printed. */
static void on_iteration(void *ctx, const struct ep_calls_step *x)
{
    struct run *run = ctx;
    struct ep_record r;

    run->in.iterations++;
    ep_feed_iteration(x, &r);
    ep_filter_write(&run->io, &r);
}

/*
 * Write the state now and then, behind what was found: that would not be found
 * again.
 */
static void keep(struct run *run, bool waits)
{
    struct ep_error why;

    if (ep_keeper_is_due(&run->keeper, waits) && ep_filter_flush(&run->io) &&
        ep_keeper_write(&run->keeper, &why) < 0)
        ep_cli_error(&why);
}

static void on_idle(void *ctx)
{
    struct run *run = ctx;

    ep_signs_idle(&run->in.signs);
    keep(run, true);
}

/* All records through the watch. 0, or the error that ended a strict run. */
static int detect(struct run *run, struct ep_error *err)
{
    const struct ep_record *r;
    int rc;

    while ((rc = ep_filter_next(&run->io, &r, &run->line, err)) > 0) {
        struct ep_error why;

        run->held = opt.tee ? r : NULL;
        if (ep_intake_take(&run->in, r, &why) < 0) {
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
        ep_calls_finish(run->in.calls);
        ep_watch_finish(run->in.watch);
    }
    return rc;
}

static void on_open(void *ctx, const struct ep_finding *f)
{
    struct run *run = ctx;
    struct ep_record r;

    ep_feed_event(f, &r);
    ep_tally_open(run->tally, &r);
}

/* Text: what is still slow, and what there was. */
static void summarise(struct run *run)
{
    struct ep_buf *b = &run->io.text;

    if (opt.io.format != EP_CLI_TEXT || opt.io.quiet || opt.iterations ||
        run->pick)
        return;
    ep_buf_reset(b);
    ep_watch_open(run->in.watch, on_open, run);
    ep_tally_print_open(run->tally, b);
    ep_tally_print_counts(run->tally, b);
    ep_buf_adds(b, " in ");
    ep_intake_print(&run->in, b);
    ep_buf_addc(b, '\n');
    (void)fwrite(b->ptr, 1, b->len, run->io.out);
}

/* A message is text of the check. */
static void keep_message(void *ctx, const char *message)
{
    ep_tally_message(ctx, message);
}

/* -f nagios: the check is all that is written, and comes last. */
static int print_check(void *ctx, int status, FILE *out)
{
    struct run *run = ctx;
    struct ep_buf b, read;
    struct ep_nagios how = {.name = "SKEWDETECT",
                            .warning = opt.warning,
                            .critical = opt.critical,
                            .trouble = status == EP_NAGIOS_UNKNOWN};

    ep_buf_init(&b);
    ep_buf_init(&read);
    ep_intake_print(&run->in, &read);
    how.read = read.ptr;
    ep_watch_open(run->in.watch, on_open, run);
    status = ep_tally_print_nagios(run->tally, &how, &b);
    (void)fwrite(b.ptr, 1, b.len, out);
    ep_buf_free(&b);
    ep_buf_free(&read);
    ep_cli_divert(NULL, NULL);
    return status;
}

/* -v: what was read, and how the calls repeat. */
static void tell(const struct run *run)
{
    struct ep_calls_summary s;

    ep_cli_warn("%llu step and %llu probe records",
                (unsigned long long)run->in.steps,
                (unsigned long long)run->in.probes);
    ep_calls_sum(run->in.calls, &s);
    s.known += ep_watch_known(run->in.watch);
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

static struct ep_watch *new_watch(struct run *run, struct ep_error *err)
{
    struct ep_watch_config config = EP_WATCH_DEFAULTS;

    config.pace.min_change = config.peers.min_change = opt.min_change;
    config.pace.confirm = (unsigned)opt.confirm;
    if (config.pace.settle <= config.pace.confirm)
        config.pace.settle = config.pace.confirm + 1;
    config.pace.hazard = opt.hazard;
    config.pace.z = opt.z;
    config.pace.spike_factor = opt.spike;
    config.window = opt.window;
    config.silence.floor_s = opt.hang;
    return ep_watch_new(&config, on_finding, run, err);
}

/* --state: what the run before knew. */
static int open_state(struct run *run, struct ep_error *err)
{
    int64_t loaded = ep_keeper_open(&run->keeper, opt.state, err);

    if (loaded < 0)
        return (int)loaded;
    if (opt.state && opt.io.verbose && loaded)
        ep_cli_warn("going on with state %s (%lld bytes)", opt.state,
                    (long long)loaded);
    else if (opt.state && opt.io.verbose)
        ep_cli_warn("beginning anew: there is no state %s yet", opt.state);
    return 0;
}

/* All of the input, and what comes behind it. */
static int run_open(struct run *run, struct ep_error *err)
{
    int rc = detect(run, err), status;
    const struct ep_buf *said = NULL;
    const char *idle =
        ep_tally_found(run->tally) ? NULL : ep_intake_idle(&run->in);
    struct ep_buf why;

    ep_buf_init(&why);
    if (rc == 0)
        summarise(run);
    if (run->pick && !idle) {
        said = ep_pick_choose(run->pick, &why);
        if (said)
            (void)fwrite(said->ptr, 1, said->len, run->io.out);
        else
            idle = why.ptr;
    }
    if (opt.io.verbose)
        tell(run);
    status =
        ep_filter_close(&run->io, rc, idle, ep_tally_found(run->tally), err);
    ep_buf_free(&why);
    /* what was not told is to be found again */
    if (rc == 0 && !run->io.lost && run->keeper.dirty &&
        ep_keeper_write(&run->keeper, err) < 0) {
        ep_cli_error(err);
        status = ep_cli_trouble();
    }
    return status;
}

static int run_all(const char *const *paths, int n, struct ep_error *err)
{
    const struct ep_state_options same = {
        opt.min_change, opt.confirm, opt.window, opt.io.world,
        opt.hazard,     opt.z,       opt.spike,  opt.hang};
    struct run run = {.held = NULL};
    int rc;

    run.in.watch = new_watch(&run, err);
    if (!run.in.watch)
        return err->code;
    if (!opt.iterations) {
        run.in.comms = ep_comms_new(opt.min_change);
        ep_watch_use_comms(run.in.watch, run.in.comms);
    }
    ep_signs_init(&run.in.signs, opt.iterations ? NULL : run.in.watch);
    opt.io.idle = on_idle;
    opt.io.idle_ctx = &run;
    opt.io.stoppable = opt.state != NULL;
    run.in.calls_only = opt.iterations;
    run.in.calls = opt.iterations ? ep_calls_new(on_iteration, &run)
                                  : ep_calls_new(ep_intake_iteration, &run.in);
    run.tally = ep_tally_new();
    run.pick = opt.explain ? ep_pick_new(opt.explain) : NULL;
    if (opt.io.format == EP_CLI_NAGIOS)
        ep_cli_divert(keep_message, run.tally);
    run.in.resumable = opt.state != NULL;
    run.keeper.what =
        (struct ep_state){&same, run.in.calls, run.in.comms, run.in.watch};
    rc = open_state(&run, err);
    if (rc == 0)
        rc = ep_filter_open(&run.io, &opt.io, paths, n, err);
    if (opt.io.format == EP_CLI_NAGIOS && rc == 0) {
        run.io.at_end = print_check;
        run.io.at_end_ctx = &run;
    } else if (opt.io.format == EP_CLI_NAGIOS) {
        ep_cli_check(true);
    }
    if (rc == 0)
        rc = run_open(&run, err);
    ep_keeper_close(&run.keeper);
    ep_calls_free(run.in.calls);
    ep_tally_free(run.tally);
    ep_pick_free(run.pick);
    ep_watch_free(run.in.watch);
    ep_comms_free(run.in.comms);
    return rc;
}

/* Options that do not go together; NULL if all do. */
static const char *check_options(void)
{
    bool records = opt.io.format == EP_CLI_JSONL ||
                   opt.io.format == EP_CLI_TSV || opt.io.format == EP_CLI_PROM;

    if (opt.tee && opt.iterations)
        return "cannot use --tee with --iterations";
    if (opt.tee && opt.io.format != EP_CLI_JSONL)
        return "cannot use --tee with that form of output: it needs jsonl";
    if (opt.iterations && !records)
        return opt.io.format == EP_CLI_TEXT
                   ? "cannot use --iterations with text: it prints records"
                   : "cannot use --iterations with nagios: it prints records";
    if (opt.iterations && opt.state)
        return "cannot use --state with --iterations: nothing is judged";
    if (opt.explain && (opt.tee || opt.iterations))
        return "cannot use --explain with --tee or --iterations";
    if (opt.explain && opt.io.format != EP_CLI_TEXT &&
        opt.io.format != EP_CLI_JSONL)
        return "cannot use --explain with that form of output: it needs text "
               "or jsonl";
    if (opt.warning > opt.critical)
        return "cannot use --warning: it is above --critical";
    return NULL;
}

int main(int argc, char **argv)
{
    struct ep_error err = {.code = 0};
    const char *wrong;
    int first, status;

    ep_cli_expect_check(argc, argv);
    first = ep_cli_begin(&program, argc, argv);
    ep_cli_check(opt.io.format == EP_CLI_NAGIOS);
    if (opt.io.format < 0 && !opt.io.columns) {
        if (opt.explain)
            opt.io.format = EP_CLI_TEXT;
        else if (opt.tee || opt.iterations)
            opt.io.format = EP_CLI_JSONL;
    }
    ep_filter_format(&opt.io);
    wrong = check_options();
    if (wrong) {
        ep_cli_warn("%s", wrong);
        return ep_cli_end(ep_cli_trouble());
    }
    status = run_all((const char *const *)argv + first, argc - first, &err);
    if (status < 0) {
        ep_cli_error(&err);
        status = ep_cli_trouble();
    }
    return ep_cli_end(status);
}

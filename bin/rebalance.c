/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebalance - plan what to do about a slow group of a training job.
 *
 * Options and wiring only: step and event records become samples and events
 * for plan/balance.h, its plans become records or text.
 */
#include "config.h"

#include "base/buf.h"
#include "base/cli.h"
#include "base/mem.h"
#include "plan/balance.h"
#include "plan/balance_text.h"
#include "plan/ranks.h"
#include "record/event_text.h"
#include "record/filter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct ep_filter_options io;
    int64_t window;
    double min_gain;
} opt = {
    .io = {.format = -1},
    .window = 16,
    .min_gain = 0.02,
};

static const struct ep_opt options[] = {
    EP_FILTER_OPTIONS(opt.io, "say on stderr what plans are based on",
                      "status 1 if a plan was found"),
    {0, "min-gain", EP_OPT_DOUBLE, &opt.min_gain, "R",
     "least gain in throughput of a plan [0.02]", 0, 1e6},
    {0, "window", EP_OPT_INT, &opt.window, "N",
     "steps behind the pace of a rank [16]", 1, EP_RATES_WINDOW_MAX},
};

static const struct ep_program program = {
    .name = "rebalance",
    .operands = "LAYOUT [FILE ...]",
    .purpose = "Plan what to do about a slow group of a training job",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

/* The job as its layout has it. */
struct job {
    char *name;  /* NULL: not told */
    double cost; /* NaN: not told */
    struct ep_balance_config config;
    struct ep_ranks ranks;
    struct ep_balance *balance;
    bool said_shares, said_paces; /* warnings are given once */
};

/* What led to a plan. */
struct cause {
    double ts;
    struct ep_span eid, job; /* ptr NULL: none */
};

struct run {
    struct ep_filter io;
    struct ep_buf text;
    struct job *job; /* NULL until a layout was read */
    uint64_t steps, events, plans;
    double last_ts;    /* of the steps */
    double said_ts;    /* when a plan, or that none helps, was written */
    bool triggered;    /* an event of this layout asked for a plan */
    char *eid, *named; /* of the last of these; NULL: none */
    bool told;         /* something told a pace */
    bool trouble;
};

/* ==== Layout ==== */

static void job_free(struct job *j)
{
    if (!j)
        return;
    ep_balance_free(j->balance);
    free(j->name);
    free(j);
}

static int job_init(struct job *j, const struct ep_record *r,
                    struct ep_error *err)
{
    const struct ep_ranks_sizes sizes = {.tp = ep_record_int(r, EP_K_TP, 1),
                                         .cp = ep_record_int(r, EP_K_CP, 1),
                                         .dp = ep_record_int(r, EP_K_DP, 1),
                                         .pp = ep_record_int(r, EP_K_PP, 1)};
    struct ep_span name = ep_record_str(r, EP_K_JOB);
    int pp = (int)sizes.pp, rc;

    rc = ep_ranks_init(&j->ranks, ep_record_str(r, EP_K_ORDER), &sizes, err);
    if (rc < 0)
        return rc;
    j->config = (struct ep_balance_config){
        .groups = (size_t)sizes.dp,
        .microbatches = ep_record_int(r, EP_K_MICROBATCHES, 0),
        .pp = pp,
        .block = ep_record_int(r, EP_K_VPP, 1) > 1 ? pp : 1,
        .window = (size_t)opt.window,
        .min_gain = opt.min_gain};
    j->cost = ep_record_num(r, EP_K_COST_S2);
    if (name.ptr)
        j->name = ep_strndup(name.ptr, name.len);
    j->balance = ep_balance_new(&j->config, err);
    return j->balance ? 0 : err->code;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_layout(const struct job *a, const struct job *b)
{
    return a->config.groups == b->config.groups &&
           a->config.microbatches == b->config.microbatches &&
           a->config.pp == b->config.pp && a->config.block == b->config.block &&
           a->ranks.count == b->ranks.count &&
           a->ranks.stride == b->ranks.stride &&
           (isnan(a->cost) ? isnan(b->cost) : a->cost == b->cost) &&
           same_text(a->name, b->name);
}

/* A layout that says something new begins everything anew. */
static int take_layout(struct run *run, const struct ep_record *r,
                       struct ep_error *err)
{
    struct job *j = ep_calloc(1, sizeof *j);
    int rc = job_init(j, r, err);

    if (rc < 0 || (run->job && same_layout(run->job, j))) {
        job_free(j);
        return rc;
    }
    job_free(run->job);
    run->job = j;
    run->triggered = false;
    return 0;
}

/* The layout from a file of its own, in which no line may be bad. */
static int read_layout(struct run *run, const char *path, struct ep_error *err)
{
    struct ep_stream_config how = {.strict = true};
    struct ep_stream *in = ep_stream_open(&path, 1, &how);
    const struct ep_record *r;
    struct ep_error why;
    char shown[200];
    int rc;

    while ((rc = ep_stream_next(in, &r, NULL, err)) > 0) {
        if (r->type == EP_LAYOUT && take_layout(run, r, &why) < 0) {
            rc = ep_stream_reject(in, err, "%s", why.msg);
            break;
        }
    }
    if (rc == 0 && !run->job)
        rc = ep_error_set(err, EP_EFORMAT, "cannot use %s: no layout record",
                          ep_escape(shown, sizeof shown, path, strlen(path)));
    ep_stream_close(in);
    return rc;
}

/* ==== Plans out ==== */

static void to_records(struct run *run, const struct cause *why,
                       const struct ep_balance_plan *p)
{
    struct ep_record r;

    ep_record_begin(&r, EP_PLAN);
    ep_record_set_num(&r, EP_K_TS, why->ts);
    ep_record_set_span(&r, EP_K_JOB, why->job);
    ep_record_set_span(&r, EP_K_EID, why->eid);
    ep_record_set_str(&r, EP_K_LEVEL, "S2");
    ep_record_set_str(&r, EP_K_ACTION, "shares");
    ep_record_set_num(&r, EP_K_GAIN, p->gain);
    ep_record_set_num(&r, EP_K_COST, run->job->cost);
    for (size_t g = 0; g < run->job->config.groups; g++) {
        if (p->to[g] == p->from[g])
            continue;
        ep_record_set_int(&r, EP_K_DP, (int64_t)g);
        ep_record_set_int(&r, EP_K_FROM, p->from[g]);
        ep_record_set_int(&r, EP_K_TO, p->to[g]);
        ep_filter_write(&run->io, &r);
    }
}

static void put(struct run *run)
{
    (void)fwrite(run->text.ptr, 1, run->text.len, run->io.out);
    ep_buf_reset(&run->text);
}

/* ==== Planning ==== */

/*
 * Text has it among the output, the other forms on stderr. Events of a rank
 * and of its job come together: once is enough then.
 */
static void say_no_plan(struct run *run, const struct cause *why,
                        const struct ep_balance_plan *p)
{
    static const struct ep_span none = {NULL, 0};
    bool text = opt.io.format == EP_CLI_TEXT;

    if (why->ts == run->said_ts)
        return;
    run->said_ts = why->ts;
    ep_balance_text_none(p, opt.min_gain, text ? why->eid : none, &run->text);
    if (text) {
        ep_buf_addc(&run->text, '\n');
        put(run);
    } else if (!opt.io.quiet) {
        ep_cli_warn("%s", run->text.ptr);
    }
    ep_buf_reset(&run->text);
}

/* What had to be assumed; once for a layout. */
static void warn_assumed(struct run *run, const struct ep_balance_plan *p)
{
    struct job *j = run->job;

    if (!j->said_paces && ep_balance_text_paces(p, &run->text)) {
        ep_cli_warn("%s", run->text.ptr);
        j->said_paces = true;
    }
    ep_buf_reset(&run->text);
    if (!j->said_shares && ep_balance_text_shares(p, &run->text)) {
        ep_cli_warn("%s", run->text.ptr);
        j->said_shares = true;
    }
    ep_buf_reset(&run->text);
}

static void describe(struct run *run, const struct ep_balance_plan *p)
{
    for (size_t g = 0; g < p->groups; g++) {
        ep_balance_text_group(p, g, &run->text);
        ep_cli_warn("%s", run->text.ptr);
        ep_buf_reset(&run->text);
    }
}

/* Plan from what is known. again: a second look, silent unless it helps. */
static void plan(struct run *run, const struct cause *why, bool again)
{
    struct ep_balance_plan p;
    struct ep_error err;
    int verdict = ep_balance_plan(run->job->balance, &p, &err);

    if (verdict < 0) {
        ep_cli_error(&err);
        run->told = run->trouble = true;
        return;
    }
    if (verdict == EP_BALANCE_BLIND) {
        if (opt.io.verbose)
            ep_cli_warn("no plan yet: nothing tells a pace");
        return;
    }
    run->told = true;
    if (!opt.io.quiet)
        warn_assumed(run, &p);
    if (opt.io.verbose)
        describe(run, &p);
    if (verdict == EP_BALANCE_PLAN) {
        if (opt.io.format == EP_CLI_TEXT)
            ep_balance_text(&p, run->job->cost, why->eid, &run->text);
        else
            to_records(run, why, &p);
        put(run);
        run->plans++;
        run->said_ts = why->ts;
    } else if (verdict == EP_BALANCE_PENDING) {
        if (opt.io.verbose)
            ep_cli_warn(
                "no new plan: the last one is as good, and not "
                "applied yet");
    } else if (!again) {
        say_no_plan(run, why, &p);
    }
}

/* ==== Records in ==== */

static int take_step(struct run *run, const struct ep_record *r,
                     struct ep_error *err)
{
    struct job *j = run->job;
    int64_t rank = ep_record_int(r, EP_K_RANK, -1);
    int64_t dp = ep_record_int(r, EP_K_DP, -1);
    struct ep_rates_sample s = {.ts = ep_record_num(r, EP_K_TS),
                                .step = ep_record_int(r, EP_K_STEP, -1),
                                .mb = ep_record_int(r, EP_K_MB, -1),
                                .busy = ep_record_num(r, EP_K_BUSY)};
    int rc = ep_ranks_find(&j->ranks, rank, dp, &s.group, err);

    if (rc < 0)
        return rc;
    run->steps++;
    if (s.group < 0)
        return 0; /* of the job as a whole */
    s.reporter = rank >= 0 ? rank : j->ranks.count + dp;
    rc = ep_balance_sample(j->balance, &s, err);
    if (rc < 0)
        return rc;
    run->last_ts = fmax(run->last_ts, s.ts);
    if (rc > 0) {
        struct cause why = {.ts = run->last_ts};

        if (run->eid)
            why.eid = (struct ep_span){run->eid, strlen(run->eid)};
        if (run->named)
            why.job = (struct ep_span){run->named, strlen(run->named)};
        plan(run, &why, true);
    }
    return 0;
}

/*
 * Is it the work of somebody that takes longer? A link's factor is no pace, and
 * shares do not help against it.
 */
static bool tells_pace(const struct ep_record *r)
{
    static const char *const others[] = {"link", "network", "communication"};
    struct ep_span cause = ep_record_str(r, EP_K_CAUSE);

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ep_span_eq(cause, others[i]))
            return false;
    return true;
}

/* Which rank or group the event names: by its id, else by where it is from. */
static int find_named(const struct job *j, const struct ep_record *r,
                      struct ep_rates_event *e, struct ep_error *err)
{
    struct ep_span scope = ep_record_str(r, EP_K_SCOPE);
    struct ep_span id = ep_record_str(r, EP_K_ID);
    bool group = ep_span_eq(scope, "group");
    int64_t dp;
    int rc;

    e->reporter = e->group = -1;
    if (!tells_pace(r) ||
        (!group && !ep_span_eq(scope, "rank") && !ep_span_eq(scope, "gpu") &&
         !ep_span_eq(scope, "host")))
        return 0;
    rc = ep_ranks_parse(id, &e->reporter, &dp, err);
    if (rc < 0)
        return rc;
    if (e->reporter < 0 && dp < 0 && !group)
        e->reporter = ep_record_int(r, EP_K_RANK, -1);
    if (dp < 0)
        dp = ep_record_int(r, EP_K_DP, -1);
    if (dp < 0) /* what the rank said in its steps, rather than the order */
        dp = ep_balance_group_of(j->balance, e->reporter);
    return ep_ranks_find(&j->ranks, e->reporter, dp, &e->group, err);
}

static void keep(char **text, struct ep_span s)
{
    free(*text);
    *text = s.ptr ? ep_strndup(s.ptr, s.len) : NULL;
}

/* Shares cannot help: say what would (level S4). */
static void say_missing(struct run *run, const struct ep_record *r)
{
    if (opt.io.quiet)
        return;
    ep_event_add_who(r, &run->text);
    ep_cli_warn("%s is missing: shares do not help, a restart without it does",
                run->text.ptr);
    ep_buf_reset(&run->text);
}

static int take_event(struct run *run, const struct ep_record *r,
                      struct ep_error *err)
{
    struct ep_span kind = ep_record_str(r, EP_K_KIND);
    const struct cause why = {.ts = ep_record_num(r, EP_K_TS),
                              .eid = ep_record_str(r, EP_K_EID),
                              .job = ep_record_str(r, EP_K_JOB)};
    struct ep_rates_event e = {.eid = why.eid,
                               .onset = ep_span_eq(kind, "onset"),
                               .factor = ep_record_num(r, EP_K_FACTOR),
                               .ts = why.ts,
                               .since = ep_record_num(r, EP_K_SINCE),
                               .step = ep_record_int(r, EP_K_STEP, -1)};
    int rc;

    run->events++;
    if (ep_span_eq(kind, "missing"))
        say_missing(run, r);
    if (!e.onset && !ep_span_eq(kind, "relief"))
        return 0;
    rc = find_named(run->job, r, &e, err);
    if (rc == 0)
        rc = ep_balance_event(run->job->balance, &e, err);
    if (rc < 0)
        return rc;
    run->triggered = true;
    keep(&run->eid, why.eid);
    keep(&run->named, why.job);
    plan(run, &why, false);
    return 0;
}

static int take(struct run *run, const struct ep_record *r,
                struct ep_error *err)
{
    struct ep_span name = ep_record_str(r, EP_K_JOB);

    if (r->type == EP_LAYOUT)
        return take_layout(run, r, err);
    if (r->type != EP_STEP && r->type != EP_EVENT)
        return 0;
    if (!run->job)
        return ep_error_set(err, EP_EFORMAT, "record before the layout");
    if (run->job->name && name.ptr && !ep_span_eq(name, run->job->name))
        return 0;
    return r->type == EP_STEP ? take_step(run, r, err)
                              : take_event(run, r, err);
}

/* ==== The run ==== */

/* All records. 0, or the error that ended a strict run. */
static int read_all(struct run *run, struct ep_error *err)
{
    const struct ep_record *r;
    int rc;

    while ((rc = ep_filter_next(&run->io, &r, NULL, err)) > 0) {
        struct ep_error why;

        if (take(run, r, &why) < 0) {
            rc = ep_filter_reject(&run->io, &why, err);
            if (rc < 0)
                break;
        }
    }
    if (rc == 0 && run->job && (!run->triggered || !run->told)) {
        const struct cause why = {.ts = run->last_ts};

        plan(run, &why, false);
    }
    return rc;
}

/* Why there was nothing to plan from; NULL if there was. */
static const char *idle(const struct run *run)
{
    if (run->told)
        return NULL;
    if (!run->job)
        return "cannot plan: no layout record in input";
    if (!run->steps && !run->events)
        return "cannot plan: no step or event record in input";
    return "cannot plan: no step has busy and mb, no event names a rank or "
           "group";
}

static int run_all(struct run *run, const char *const *paths, int n,
                   struct ep_error *err)
{
    int rc = ep_filter_open(&run->io, &opt.io, paths, n, err), status;

    if (rc < 0)
        return rc;
    rc = read_all(run, err);
    if (opt.io.verbose)
        ep_cli_warn("%llu step and %llu event records, plans: %llu",
                    (unsigned long long)run->steps,
                    (unsigned long long)run->events,
                    (unsigned long long)run->plans);
    status = ep_filter_close(&run->io, rc, idle(run), run->plans > 0, err);
    return run->trouble ? EP_EXIT_TROUBLE : status;
}

/*
 * The layout is a file of its own, or "-": then it comes first in standard
 * input, which is read with the files.
 */
static int open_layout(struct run *run, const char *const *args, int n,
                       struct ep_error *err)
{
    if (strcmp(args[0], "-") != 0) {
        int rc = read_layout(run, args[0], err);

        return rc < 0 ? rc : run_all(run, args + 1, n - 1, err);
    }
    for (int i = 1; i < n; i++)
        if (strcmp(args[i], "-") == 0)
            return run_all(run, args + 1, n - 1, err);
    return run_all(run, args, n, err);
}

int main(int argc, char **argv)
{
    struct ep_error err = {.code = 0};
    struct run run = {.said_ts = (double)NAN};
    int first, status;

    first = ep_cli_begin(&program, argc, argv);
    ep_filter_format(&opt.io);
    if (first == argc) {
        ep_cli_warn("cannot plan: no LAYOUT given (try --help)");
        return ep_cli_end(EP_EXIT_TROUBLE);
    }
    ep_buf_init(&run.text);
    status = open_layout(&run, (const char *const *)argv + first, argc - first,
                         &err);
    if (status < 0) {
        ep_cli_error(&err);
        status = EP_EXIT_TROUBLE;
    }
    job_free(run.job);
    free(run.eid);
    free(run.named);
    ep_buf_free(&run.text);
    return ep_cli_end(status);
}

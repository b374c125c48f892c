/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lsgd-merge - merge checkpoints: means, outer optimiser steps, deltas; or
 * show what is in them, or compare two.
 *
 * Options and wiring only: lsgd/merge.h merges, ckpt/describe.h and
 * ckpt/compare.h tell.
 */
#include "config.h"

#include "base/buf.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/tempfile.h"
#include "base/thread.h"
#include "ckpt/ckpt.h"
#include "ckpt/compare.h"
#include "ckpt/describe.h"
#include "lsgd/merge.h"
#include "lsgd/merge_text.h"
#include "record/record.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char name[] = "lsgd-merge";

/* A few cores saturate the memory; more only cost scratch. */
enum { THREADS = 16 };

static struct {
    struct ep_merge_settings merge;
    bool show, diff, all, exit_code;
    bool no_sync, quiet;
    int format;      /* -1: not given */
    int64_t threads; /* 0: not given */
} opt = {
    .merge = {.method = -1,
              .alpha = (double)NAN,
              .lr = (double)NAN,
              .beta = (double)NAN,
              .share = (double)NAN,
              .sign = -1,
              .dtype = -1,
              .compute = -1},
    .format = -1,
};

static const struct ep_opt options[] = {
    {0, "all", EP_OPT_FLAG, &opt.all, NULL,
     "with --diff: list equal tensors too", 0, 0},
    {0, "allow-missing", EP_OPT_FLAG, &opt.merge.allow_missing, NULL,
     "tensors may be missing or extra", 0, 0},
    {0, "allow-nonfinite", EP_OPT_FLAG, &opt.merge.allow_nonfinite, NULL,
     "NaN and infinities are no error", 0, 0},
    {0, "alpha", EP_OPT_DOUBLE, &opt.merge.alpha, "A",
     "mix: weight of the inputs [0.5]", 0, 1},
    {0, "beta", EP_OPT_DOUBLE, &opt.merge.beta, "B", "momentum [0.9]", 0, 1},
    {'N', "buffer", EP_OPT_INT, &opt.merge.buffer, "N",
     "delayed-nesterov: steps to a momentum update", 1, 1e9},
    {0, "compute", EP_OPT_CHOICE, &opt.merge.compute, EP_MERGE_COMPUTES,
     "type of the arithmetic [auto]", 0, 0},
    {0, "delta-sign", EP_OPT_CHOICE, &opt.merge.sign, EP_MERGE_SIGNS,
     "the inputs are deltas of this sign", 0, 0},
    {0, "diff", EP_OPT_FLAG, &opt.diff, NULL, "compare two checkpoints", 0, 0},
    {'n', "dry-run", EP_OPT_FLAG, &opt.merge.dry_run, NULL,
     "do all but write; print the plan", 0, 0},
    {0, "dtype", EP_OPT_CHOICE, &opt.merge.dtype, EP_MERGE_DTYPES,
     "type of the output [keep: the base's]", 0, 0},
    {0, "exit-code", EP_OPT_FLAG, &opt.exit_code, NULL,
     "with --diff: status 1 if they differ", 0, 0},
    {'f', "format", EP_OPT_CHOICE, &opt.format, EP_CLI_FORMATS,
     "form of the report [text on a terminal]", 0, 0},
    {0, "lr", EP_OPT_DOUBLE, &opt.merge.lr, "R",
     "outer learning rate [0.7; sgd 1]", 0, 1e300},
    {'m', "method", EP_OPT_CHOICE, &opt.merge.method, EP_MERGE_METHODS,
     "how to merge [mean]", 0, 0},
    {0, "momentum-share", EP_OPT_DOUBLE, &opt.merge.share, "C",
     "delayed-nesterov: momentum in each step [0]", 0, 1},
    {0, "no-sync", EP_OPT_FLAG, &opt.no_sync, NULL,
     "do not wait for the disk at the end", 0, 0},
    {'o', "output", EP_OPT_STRING, &opt.merge.output, "OUT",
     "the merged checkpoint, whole or not at all", 0, 0},
    {'q', "quiet", EP_OPT_FLAG, &opt.quiet, NULL,
     "no table, no remarks, no progress", 0, 0},
    {0, "shard-size", EP_OPT_SIZE, &opt.merge.shard_size, "SIZE",
     "OUT is a folder of files of SIZE", 1, 9e15},
    {0, "show", EP_OPT_FLAG, &opt.show, NULL, "list tensors and metadata", 0,
     0},
    {0, "state", EP_OPT_STRING, &opt.merge.state, "FILE",
     "momentum and buffer to go on from", 0, 0},
    {0, "state-out", EP_OPT_STRING, &opt.merge.state_out, "FILE",
     "write momentum and buffer", 0, 0},
    {'j', "threads", EP_OPT_INT, &opt.threads, "N",
     "threads [one per CPU, at most 16]", 1, EP_THREADS_MAX},
    {'w', "weights", EP_OPT_STRING, &opt.merge.weights, "LIST",
     "weights of the inputs, W,W,... or tokens [1]", 0, 0},
};

static const struct ep_program program = {
    .name = name,
    .operands = "BASE INPUT ...",
    .purpose =
        "Merge checkpoints, show them (--show FILE ...) or compare them "
        "(--diff A B)",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

static void put(struct ep_buf *text)
{
    (void)fwrite(text->ptr, 1, text->len, stdout);
    ep_buf_free(text);
}

/* ==== --show and --diff ==== */

static int show(const char *const *path, int n)
{
    int status = EP_EXIT_CLEAN;

    for (int i = 0; i < n; i++) {
        struct ep_error err;
        struct ep_ckpt *c = ep_ckpt_open(path[i], &err);
        struct ep_buf text;

        if (!c) {
            ep_cli_error(&err);
            status = EP_EXIT_TROUBLE;
            continue;
        }
        ep_buf_init(&text);
        ep_ckpt_describe(c, (enum ep_ckpt_format)opt.format, &text);
        put(&text);
        ep_ckpt_close(c);
    }
    return status;
}

static int diff(const char *const *path)
{
    struct ep_compare_options how = {.threads = (int)opt.threads,
                                     .format = (enum ep_ckpt_format)opt.format,
                                     .all = opt.all};
    struct ep_ckpt *a, *b = NULL;
    struct ep_compare result;
    struct ep_error err;
    struct ep_buf text;
    int status = EP_EXIT_TROUBLE;

    a = ep_ckpt_open(path[0], &err);
    if (a)
        b = ep_ckpt_open(path[1], &err);
    if (!b || ep_compare_run(&result, a, b, &how, &err) < 0) {
        ep_cli_error(&err);
    } else {
        ep_buf_init(&text);
        ep_compare_print(&result, &how, &text);
        put(&text);
        status =
            opt.exit_code && ep_compare_verdict(&result) != EP_VERDICT_EQUAL
                ? EP_EXIT_FINDING
                : EP_EXIT_CLEAN;
        ep_compare_free(&result);
    }
    ep_ckpt_close(a);
    ep_ckpt_close(b);
    return status;
}

/* ==== What is asked for ==== */

enum { MERGE = 1, SHOW = 2, DIFF = 4 };

/* Was it on the command line? Defaults are what nobody can give. */
static bool is_given(const struct ep_opt *o)
{
    switch (o->kind) {
    case EP_OPT_FLAG:
        return *(const bool *)o->target;
    case EP_OPT_INT:
    case EP_OPT_SIZE:
        return *(const int64_t *)o->target != 0;
    case EP_OPT_DOUBLE:
    case EP_OPT_DURATION:
        return !isnan(*(const double *)o->target);
    case EP_OPT_STRING:
        return *(const char *const *)o->target != NULL;
    case EP_OPT_CHOICE:
        return *(const int *)o->target >= 0;
    case EP_OPT_LIST:
        return ((const struct ep_opt_list *)o->target)->n > 0;
    }
    return false;
}

/* Refuse options that would do nothing. */
static int check_options(int mode, struct ep_error *err)
{
    static const struct {
        const char *name;
        int modes;
    } list[] = {
        {"all", DIFF},          {"diff", MERGE | DIFF},
        {"exit-code", DIFF},    {"format", MERGE | SHOW | DIFF},
        {"show", MERGE | SHOW}, {"threads", MERGE | DIFF},
    }; /* all others: MERGE */
    const char *where = mode == SHOW ? "with --show" : "with --diff";

    for (size_t i = 0; i < program.nopts; i++) {
        int modes = MERGE;

        for (size_t k = 0; k < sizeof list / sizeof list[0]; k++)
            if (strcmp(options[i].name, list[k].name) == 0)
                modes = list[k].modes;
        if (is_given(&options[i]) && !(modes & mode))
            return ep_error_set(err, EP_EUSAGE, "cannot use --%s %s",
                                options[i].name,
                                mode == MERGE ? "without --diff" : where);
    }
    return 0;
}

static int check_operands(int mode, const char *const *path, int n,
                          struct ep_error *err)
{
    char shown[100];

    for (int i = 1; i < n; i++)
        if (path[i][0] == '-' && path[i][1] && access(path[i], F_OK) != 0)
            return ep_error_set(
                err, EP_EUSAGE,
                "cannot open %s: no such file; options come before files",
                ep_escape(shown, sizeof shown, path[i], strlen(path[i])));
    if (mode == SHOW && n < 1)
        return ep_error_set(err, EP_EUSAGE, "cannot show: no file given");
    if (mode == DIFF && n != 2)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot compare: two checkpoints are needed");
    if (mode == MERGE && n < 2)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot merge: a base and at least one input are "
                            "needed (see --help)");
    return 0;
}

/* ==== Files ==== */

struct files {
    struct ep_ckpt *base, *state, **input;
    size_t ninputs;
};

/* All of them; every one that cannot be opened is named. */
static bool open_files(struct files *f, const char *const *path, int n)
{
    bool good = true;
    struct ep_error err;

    f->ninputs = (size_t)n - 1;
    f->input = ep_calloc(f->ninputs, sizeof(struct ep_ckpt *));
    for (int i = 0; i < n; i++) {
        struct ep_ckpt *c = ep_ckpt_open(path[i], &err);

        if (!c) {
            ep_cli_error(&err);
            good = false;
        }
        *(i ? &f->input[i - 1] : &f->base) = c;
    }
    if (opt.merge.state && !(f->state = ep_ckpt_open(opt.merge.state, &err))) {
        ep_cli_error(&err);
        good = false;
    }
    return good;
}

static void close_files(struct files *f)
{
    for (size_t i = 0; i < f->ninputs; i++)
        ep_ckpt_close(f->input[i]);
    free(f->input);
    ep_ckpt_close(f->base);
    ep_ckpt_close(f->state);
}

/* ==== Progress ==== */

struct progress {
    double begun, due; /* due is NaN: never */
    bool shown;
};

struct job {
    const struct ep_merge *m;
    const char *const *path; /* of the inputs */
    size_t n;
    struct ep_merge_lines lines;
    struct progress progress;
};

static void wipe(void *ctx)
{
    struct progress *p = ctx;

    if (p->shown)
        (void)fprintf(stderr, "\r%60s\r", "");
    p->shown = false;
}

/* "43 %, 1.2 of 2.8 GiB" after a second, then five times a second. */
static void on_progress(void *ctx, uint64_t done, uint64_t all)
{
    struct progress *p = &((struct job *)ctx)->progress;
    double now = ep_clock_now(&ep_clock_mono);
    struct ep_buf b;

    if (!(now >= p->due))
        return;
    p->due = now + 0.2;
    ep_buf_init(&b);
    ep_merge_text_progress(done, all, &b);
    (void)fprintf(stderr, "\r%-60s", b.ptr);
    ep_buf_free(&b);
    p->shown = true;
}

static void begin_progress(struct progress *p)
{
    p->begun = ep_clock_now(&ep_clock_mono);
    p->due = opt.quiet || !isatty(STDERR_FILENO) ? (double)NAN : p->begun + 1;
    p->shown = false;
    ep_cli_before_message(wipe, p);
}

/* ==== What is said ==== */

static void print_lines(const struct ep_merge_lines *lines)
{
    const char *line = lines->text.ptr;

    for (size_t i = 0; i < lines->n; i++) {
        int len = (int)strcspn(line, "\n");

        ep_cli_warn("%.*s", len, line);
        line += len + 1;
    }
}

static void remark(const struct ep_merge *m, struct ep_merge_lines *lines)
{
    if (opt.quiet)
        return;
    ep_merge_text_remarks(m, &opt.merge, lines);
    if (opt.merge.dry_run && opt.format != EP_CLI_TEXT) {
        ep_merge_text_plan(m, &lines->text);
        ep_buf_addc(&lines->text, '\n');
        lines->n++;
    }
    print_lines(lines);
}

static void print_records(const struct ep_merge *m, const char *const *path,
                          const double *norm, size_t n)
{
    double now = ep_clock_now(&ep_clock_wall);
    struct ep_buf text;

    ep_buf_init(&text);
    if (opt.format == EP_CLI_TSV)
        ep_record_tsv_header(EP_MERGE, &text);
    for (size_t i = 0; i < n; i++) {
        struct ep_merge_input in = ep_merge_input(m, i);
        struct ep_record r;

        ep_record_begin(&r, EP_MERGE);
        ep_record_set_num(&r, EP_K_TS, now);
        ep_record_set_str(&r, EP_K_TIER, "file");
        ep_record_set_int(&r, EP_K_VERSION, (int64_t)in.version);
        ep_record_set_str(&r, EP_K_FROM, path[i]);
        if (in.steps >= 0)
            ep_record_set_int(&r, EP_K_STEPS, in.steps);
        if (in.tokens >= 0)
            ep_record_set_int(&r, EP_K_TOKENS, in.tokens);
        ep_record_set_num(&r, EP_K_NORM, norm[i]);
        if (opt.format == EP_CLI_TSV)
            ep_record_print_tsv(&r, &text);
        else
            ep_record_print(&r, &text);
    }
    put(&text);
}

static void print_text(const struct job *job, const double *norm)
{
    double seconds = ep_clock_now(&ep_clock_mono) - job->progress.begun;
    struct ep_buf b;

    ep_buf_init(&b);
    ep_merge_text_table(job->m, job->path, norm, &b);
    ep_merge_text_plan(job->m, &b);
    ep_buf_addc(&b, '\n');
    ep_merge_text_speed(job->m, !opt.merge.dry_run, seconds, &b);
    ep_buf_addc(&b, '\n');
    put(&b);
}

/* ==== Signals ==== */

/* The last that came and asks for an end; 0: none. */
static atomic_int caught;

static void on_signal(int sig)
{
    if (sig != SIGALRM)
        atomic_store(&caught, sig);
    (void)alarm(1); /* a write that waits for a reader goes on after a part */
}

/* From now on the merge ends between two chunks, and takes its files away. */
static void catch_signals(void)
{
    static const int list[] = {SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGTERM};
    struct sigaction act;

    memset(&act, 0, sizeof act);
    (void)sigemptyset(&act.sa_mask);
    /* no SA_RESTART: a report that nobody reads must not hold us */
    act.sa_handler = on_signal;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        struct sigaction before;

        if (sigaction(list[i], NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN) /* as nohup(1) has it */
            (void)sigaction(list[i], &act, NULL);
    }
}

/* ==== The merge ==== */

/* All of standard output, before anything is in place. */
static int flush(struct ep_error *err)
{
    int errnum = 0;

    if (fflush(stdout) != 0 || ferror(stdout))
        errnum = errno ? errno : EIO;
    if (!errnum)
        return 0;
    /* it is reported here, and once */
    __fpurge(stdout);
    clearerr(stdout);
    return ep_error_sys(err, errnum, "cannot write standard output");
}

/* The report, while it can still be said that nothing was done. */
static int on_ready(void *ctx, const struct ep_merge_report *report,
                    struct ep_error *err)
{
    struct job *job = ctx;
    const char *what = opt.merge.output ? opt.merge.output : "the result";
    char shown[200];

    wipe(&job->progress);
    if (!opt.quiet) {
        print_lines(&job->lines);
        if (report->saturated)
            ep_cli_warn(
                "%llu element%s of %s beyond the range of F8_E4M3 became its "
                "largest",
                (unsigned long long)report->saturated,
                report->saturated == 1 ? "" : "s",
                ep_escape(shown, sizeof shown, what, strlen(what)));
    }
    errno = 0;
    if (opt.format != EP_CLI_TEXT)
        print_records(job->m, job->path, report->norm, job->n);
    else if (!opt.quiet)
        print_text(job, report->norm);
    return flush(err);
}

static int run(struct ep_merge *m, struct job *job, struct ep_error *err)
{
    struct ep_merge_report report;
    int allowed = ep_threads_allowed(), rc;
    struct ep_merge_how how = {
        .out = opt.merge.dry_run ? NULL : opt.merge.output,
        .state_out = opt.merge.dry_run ? NULL : opt.merge.state_out,
        .threads = opt.threads         ? (int)opt.threads
                   : allowed < THREADS ? allowed
                                       : THREADS,
        .sync = !opt.no_sync,
        .result = opt.merge.output,
        .progress = on_progress,
        .ready = on_ready,
        .ctx = job,
        .stop = &caught,
    };

    begin_progress(&job->progress);
    rc = ep_merge_run(m, &how, &report, &job->lines, err);
    wipe(&job->progress);
    ep_cli_before_message(NULL, NULL);
    free(report.norm);
    return rc;
}

static int plan_and_run(struct files *f, const char *const *path,
                        struct ep_error *err)
{
    struct ep_merge_config config;
    const struct ep_merge_files files = {
        .base = f->base,
        .input = (const struct ep_ckpt *const *)f->input,
        .ninputs = f->ninputs,
        .state = f->state};
    struct job job = {.path = path + 1, .n = f->ninputs};
    struct ep_merge_lines remarks;
    struct ep_merge *m = NULL;
    double *weights;
    int rc;

    ep_merge_lines_init(&job.lines);
    ep_merge_lines_init(&remarks);
    rc = ep_merge_settle(&opt.merge, &files, &config, &weights, &remarks, err);
    if (rc == 0) {
        m = ep_merge_plan(&config, &files, &job.lines, err);
        rc = m ? 0 : err->code;
    }
    if (m) {
        remark(m, &remarks);
        job.m = m;
        rc = run(m, &job, err);
    } else {
        print_lines(&job.lines);
    }
    ep_merge_free(m);
    free(weights);
    ep_merge_lines_free(&remarks);
    ep_merge_lines_free(&job.lines);
    return rc;
}

static int merge(const char *const *path, int n)
{
    struct files files = {.base = NULL};
    struct ep_error err = {.code = 0};
    int status = EP_EXIT_TROUBLE;

    if (ep_merge_check_settings(&opt.merge, &err) < 0) {
        ep_cli_error(&err);
    } else if (open_files(&files, path, n)) {
        if (plan_and_run(&files, path, &err) == 0)
            status = EP_EXIT_CLEAN;
        else if (!atomic_load(&caught))
            ep_cli_error(&err);
    }
    close_files(&files);
    if (status != EP_EXIT_CLEAN && atomic_load(&caught)) {
        /* end by the signal, so that who waits sees it */
        (void)signal(atomic_load(&caught), SIG_DFL);
        (void)raise(atomic_load(&caught));
    }
    return status;
}

int main(int argc, char **argv)
{
    int first = ep_cli_begin(&program, argc, argv), n = argc - first, status;
    const char *const *path = (const char *const *)argv + first;
    int mode = opt.show ? SHOW : opt.diff ? DIFF : MERGE;
    struct ep_error err;

    ep_map_guard(name);
    if (opt.format < 0)
        opt.format = ep_cli_default_format(NULL);
    if (check_options(mode, &err) < 0 ||
        check_operands(mode, path, n, &err) < 0) {
        ep_cli_error(&err);
        return ep_cli_end(EP_EXIT_TROUBLE);
    }
    if (mode == MERGE) {
        catch_signals();
        (void)signal(SIGXFSZ, SIG_IGN); /* a write says EFBIG instead */
        status = merge(path, n);
    } else {
        status = mode == SHOW ? show(path, n) : diff(path);
    }
    return ep_cli_end(status);
}

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
#include "base/num.h"
#include "base/thread.h"
#include "ckpt/ckpt.h"
#include "ckpt/compare.h"
#include "ckpt/describe.h"
#include "lsgd/merge.h"
#include "lsgd/merge_text.h"
#include "record/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char name[] = "lsgd-merge";

/* A few cores saturate the memory; more only cost scratch. */
enum { THREADS = 16 };

static struct {
    bool show, diff, all, exit_code;
    bool allow_missing, allow_nonfinite, dry_run, no_sync, quiet;
    int method, sign, dtype, compute, format;
    int64_t threads, shard_size, buffer;
    double alpha, lr, beta, share;
    const char *output, *weights, *state, *state_out;
} opt = {
    .sign = -1,
    .format = -1,
    .alpha = (double)NAN,
    .lr = (double)NAN,
    .beta = (double)NAN,
    .share = (double)NAN,
};

/* Of --dtype, in the order of its choices; -1: as in the base. */
#define DTYPES "keep|F32|BF16|F16|F64|F8_E4M3|F8_E5M2"
static const int dtypes[] = {-1,        EP_DT_F32,     EP_DT_BF16,   EP_DT_F16,
                             EP_DT_F64, EP_DT_F8_E4M3, EP_DT_F8_E5M2};

static const struct ep_opt options[] = {
    {0, "all", EP_OPT_FLAG, &opt.all, NULL,
     "with --diff: list equal tensors too", 0, 0},
    {0, "allow-missing", EP_OPT_FLAG, &opt.allow_missing, NULL,
     "tensors may be missing or extra", 0, 0},
    {0, "allow-nonfinite", EP_OPT_FLAG, &opt.allow_nonfinite, NULL,
     "NaN and infinities are no error", 0, 0},
    {0, "alpha", EP_OPT_DOUBLE, &opt.alpha, "A",
     "mix: weight of the inputs [0.5]", 0, 1},
    {0, "beta", EP_OPT_DOUBLE, &opt.beta, "B", "momentum [0.9]", 0, 1},
    {'N', "buffer", EP_OPT_INT, &opt.buffer, "N",
     "delayed-nesterov: steps to a momentum update", 1, 1e9},
    {0, "compute", EP_OPT_CHOICE, &opt.compute, "auto|f32|f64",
     "type of the arithmetic [auto]", 0, 0},
    {0, "delta-sign", EP_OPT_CHOICE, &opt.sign, "start-end|end-start",
     "the inputs are deltas of this sign", 0, 0},
    {0, "diff", EP_OPT_FLAG, &opt.diff, NULL, "compare two checkpoints", 0, 0},
    {'n', "dry-run", EP_OPT_FLAG, &opt.dry_run, NULL,
     "do all but write; print the plan", 0, 0},
    {0, "dtype", EP_OPT_CHOICE, &opt.dtype, DTYPES,
     "type of the output [keep: the base's]", 0, 0},
    {0, "exit-code", EP_OPT_FLAG, &opt.exit_code, NULL,
     "with --diff: status 1 if they differ", 0, 0},
    {'f', "format", EP_OPT_CHOICE, &opt.format, EP_CLI_FORMATS,
     "form of the report [text on a terminal]", 0, 0},
    {0, "lr", EP_OPT_DOUBLE, &opt.lr, "R", "outer learning rate [0.7; sgd 1]",
     0, 1e300},
    {'m', "method", EP_OPT_CHOICE, &opt.method, EP_MERGE_METHODS,
     "how to merge [mean]", 0, 0},
    {0, "momentum-share", EP_OPT_DOUBLE, &opt.share, "C",
     "delayed-nesterov: momentum in each step [0]", 0, 1},
    {0, "no-sync", EP_OPT_FLAG, &opt.no_sync, NULL,
     "do not wait for the disk at the end", 0, 0},
    {'o', "output", EP_OPT_STRING, &opt.output, "OUT",
     "the merged checkpoint, whole or not at all", 0, 0},
    {'q', "quiet", EP_OPT_FLAG, &opt.quiet, NULL,
     "no table, no remarks, no progress", 0, 0},
    {0, "shard-size", EP_OPT_SIZE, &opt.shard_size, "SIZE",
     "OUT is a folder of files of SIZE", 1, 9e15},
    {0, "show", EP_OPT_FLAG, &opt.show, NULL, "list tensors and metadata", 0,
     0},
    {0, "state", EP_OPT_STRING, &opt.state, "FILE",
     "momentum and buffer to go on from", 0, 0},
    {0, "state-out", EP_OPT_STRING, &opt.state_out, "FILE",
     "write momentum and buffer", 0, 0},
    {'j', "threads", EP_OPT_INT, &opt.threads, "N",
     "threads [one per CPU, at most 16]", 1, EP_THREADS_MAX},
    {'w', "weights", EP_OPT_STRING, &opt.weights, "LIST",
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

/* ==== Settings ==== */

/* Options that only some methods have. */
static int check_methods(struct ep_error *err)
{
    bool mix = opt.method == EP_MERGE_MIX;
    bool delayed = opt.method == EP_MERGE_DELAYED;
    bool momentum = delayed || opt.method == EP_MERGE_NESTEROV;
    bool steps = momentum || opt.method == EP_MERGE_SGD;
    const struct {
        bool given, fits;
        const char *name;
    } list[] = {
        {!isnan(opt.alpha), mix, "alpha"},
        {!isnan(opt.lr), steps, "lr"},
        {!isnan(opt.beta), momentum, "beta"},
        {opt.buffer > 0, delayed, "buffer"},
        {!isnan(opt.share), delayed, "momentum-share"},
        {opt.state != NULL, momentum, "state"},
        {opt.state_out != NULL, momentum, "state-out"},
    };

    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (list[i].given && !list[i].fits)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --%s: not with this --method",
                                list[i].name);
    if (delayed && !opt.buffer)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use delayed-nesterov: it needs --buffer");
    return 0;
}

/* The folder that path is in, as the system knows it; *last: what is in it. */
static bool find_folder(const char *path, struct stat *st, const char **last)
{
    const char *slash = strrchr(path, '/');
    char *folder =
        slash ? ep_strndup(path, (size_t)(slash - path) + 1) : ep_strdup(".");
    bool found = stat(folder, st) == 0;

    *last = slash ? slash + 1 : path;
    free(folder);
    return found;
}

/* Do both paths name one file, there or not? */
static bool same_place(const char *a, const char *b)
{
    struct stat s, t;

    return find_folder(a, &s, &a) && find_folder(b, &t, &b) &&
           s.st_dev == t.st_dev && s.st_ino == t.st_ino && strcmp(a, b) == 0;
}

static int check_usage(int n, struct ep_error *err)
{
    if (n < 2)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot merge: a base and at least one input are "
                            "needed (see --help)");
    if (!opt.output && !opt.dry_run)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot merge: no --output to write to");
    if (opt.output && opt.state_out && same_place(opt.output, opt.state_out))
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --state-out: it is --output too");
    return check_methods(err);
}

/* "1,2.5,3" into *list, which the caller frees. Returns how many, or < 0. */
static int read_weights(const char *text, double **list, struct ep_error *err)
{
    size_t cap = 0;
    int n = 0;

    *list = NULL;
    for (;;) {
        size_t len = strcspn(text, ",");
        char *one = ep_strndup(text, len), shown[64];
        double w = 0;
        int rc = ep_num_double(one, 0, 1e300, &w, err);

        if (rc < 0)
            (void)ep_error_prefix(err, "cannot use weight '%s'",
                                  ep_escape(shown, sizeof shown, one, len));
        free(one);
        if (rc < 0)
            return rc;
        *list = ep_grow(*list, &cap, (size_t)n + 1, sizeof **list);
        (*list)[n++] = w;
        if (!text[len])
            return n;
        text += len + 1;
    }
}

static double or_else(double v, double otherwise)
{
    return isnan(v) ? otherwise : v;
}

/* The settings of the merge; *weights is freed by the caller. */
static int configure(struct ep_merge_config *c, double **weights,
                     struct ep_error *err)
{
    static const enum ep_merge_kind signs[] = {EP_MERGE_START_END,
                                               EP_MERGE_END_START};
    int n;

    *c = (struct ep_merge_config){
        .method = (enum ep_merge_method)opt.method,
        .alpha = or_else(opt.alpha, 0.5),
        .outer = {.lr = or_else(opt.lr, opt.method == EP_MERGE_SGD ? 1 : 0.7),
                  .beta = or_else(opt.beta, 0.9),
                  .c = or_else(opt.share, 0),
                  .n = opt.buffer ? (uint64_t)opt.buffer : 1},
        .declared = opt.sign < 0 ? EP_MERGE_MODEL : signs[opt.sign],
        .dtype = dtypes[opt.dtype],
        .compute = (enum ep_merge_compute)opt.compute,
        .allow_missing = opt.allow_missing,
        .allow_nonfinite = opt.allow_nonfinite,
        .keep_state = opt.state_out != NULL,
        .shard_bytes = (uint64_t)opt.shard_size,
    };
    if (!opt.weights)
        return 0;
    c->by_tokens = strcmp(opt.weights, "tokens") == 0;
    if (c->by_tokens)
        return 0;
    n = read_weights(opt.weights, weights, err);
    if (n < 0)
        return n;
    c->weights = *weights;
    c->nweights = (size_t)n;
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
    if (opt.state && !(f->state = ep_ckpt_open(opt.state, &err))) {
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
    struct progress *p = ctx;
    double now = ep_clock_now(&ep_clock_mono);
    struct ep_buf b;

    if (!(now >= p->due))
        return;
    p->due = now + 0.2;
    ep_buf_init(&b);
    ep_buf_addf(&b, "%3.0f %%, ", all ? 100 * (double)done / (double)all : 100);
    ep_num_format_size(&b, (double)done);
    ep_buf_adds(&b, " of ");
    ep_num_format_size(&b, (double)all);
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

static void remark(const struct ep_merge *m)
{
    struct ep_merge_totals t = ep_merge_totals(m);
    struct ep_buf b;

    if (opt.quiet)
        return;
    if (t.momentum && !opt.state_out)
        ep_cli_warn("the momentum is not kept: no --state-out");
    if (t.momentum && !opt.state && t.step_from)
        ep_cli_warn(
            "the momentum begins at 0: no --state, but the base is of outer "
            "step %llu",
            (unsigned long long)t.step_from);
    if (opt.dry_run && opt.format != EP_CLI_TEXT) {
        ep_buf_init(&b);
        ep_merge_text_plan(m, &b);
        ep_cli_warn("%s", b.ptr);
        ep_buf_free(&b);
    }
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

static void print_text(const struct ep_merge *m, const char *const *path,
                       const double *norm, double seconds)
{
    struct ep_buf b;

    ep_buf_init(&b);
    ep_merge_text_table(m, path, norm, &b);
    ep_merge_text_plan(m, &b);
    ep_buf_adds(&b, opt.dry_run ? "\nnothing written: " : "\nmoved ");
    ep_merge_text_speed(m, seconds, &b);
    ep_buf_addc(&b, '\n');
    put(&b);
}

/* ==== The merge ==== */

static int run(struct ep_merge *m, const char *const *path, size_t n,
               struct ep_merge_lines *lines, struct ep_error *err)
{
    struct progress progress;
    struct ep_merge_report report;
    int allowed = ep_threads_allowed(), rc;
    struct ep_merge_how how = {
        .out = opt.dry_run ? NULL : opt.output,
        .state_out = opt.dry_run ? NULL : opt.state_out,
        .threads = opt.threads         ? (int)opt.threads
                   : allowed < THREADS ? allowed
                                       : THREADS,
        .sync = !opt.no_sync,
        .progress = on_progress,
        .ctx = &progress,
    };

    remark(m);
    begin_progress(&progress);
    rc = ep_merge_run(m, &how, &report, lines, err);
    wipe(&progress);
    ep_cli_before_message(NULL, NULL);
    if (rc < 0)
        return rc;
    if (!opt.quiet) {
        print_lines(lines);
        if (report.saturated)
            ep_cli_warn(
                "%llu element%s beyond the range of F8_E4M3 became its "
                "largest",
                (unsigned long long)report.saturated,
                report.saturated == 1 ? "" : "s");
    }
    if (opt.format != EP_CLI_TEXT)
        print_records(m, path, report.norm, n);
    else if (!opt.quiet)
        print_text(m, path, report.norm,
                   ep_clock_now(&ep_clock_mono) - progress.begun);
    free(report.norm);
    return 0;
}

static int plan_and_run(const struct ep_merge_config *c, struct files *f,
                        const char *const *path, struct ep_error *err)
{
    const struct ep_merge_files files = {
        .base = f->base,
        .input = (const struct ep_ckpt *const *)f->input,
        .ninputs = f->ninputs,
        .state = f->state};
    struct ep_merge_lines lines;
    struct ep_merge *m;
    int rc;

    ep_merge_lines_init(&lines);
    m = ep_merge_plan(c, &files, &lines, err);
    if (m) {
        rc = run(m, path + 1, f->ninputs, &lines, err);
    } else {
        rc = err->code;
        print_lines(&lines);
    }
    ep_merge_free(m);
    ep_merge_lines_free(&lines);
    return rc;
}

static int merge(const char *const *path, int n)
{
    struct ep_merge_config config;
    struct files files = {.base = NULL};
    struct ep_error err = {.code = 0};
    double *weights = NULL;
    int status = EP_EXIT_TROUBLE;

    if (check_usage(n, &err) < 0 || configure(&config, &weights, &err) < 0) {
        ep_cli_error(&err);
    } else {
        if (open_files(&files, path, n)) {
            if (plan_and_run(&config, &files, path, &err) < 0)
                ep_cli_error(&err);
            else
                status = EP_EXIT_CLEAN;
        }
        close_files(&files);
    }
    free(weights);
    return status;
}

int main(int argc, char **argv)
{
    int first = ep_cli_begin(&program, argc, argv), n = argc - first, status;
    const char *const *path = (const char *const *)argv + first;
    const char *wrong = NULL;

    ep_map_guard(name);
    if (opt.format < 0)
        opt.format = ep_cli_default_format(NULL);
    if (opt.show && opt.diff)
        wrong = "cannot use --show with --diff";
    else if (opt.show && n < 1)
        wrong = "cannot show: no file given";
    else if (opt.diff && n != 2)
        wrong = "cannot compare: two checkpoints are needed";
    if (wrong) {
        ep_cli_warn("%s", wrong);
        return ep_cli_end(EP_EXIT_TROUBLE);
    }
    if (opt.show)
        status = show(path, n);
    else
        status = opt.diff ? diff(path) : merge(path, n);
    return ep_cli_end(status);
}

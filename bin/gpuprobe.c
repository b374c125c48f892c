/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuprobe - how fast is this node now?
 *
 * Options and wiring only: the tests are in lib/probe, what they measured
 * becomes probe and gauge records or text.
 */
#include "config.h"

#include "base/buf.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/lines.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/outfile.h"
#include "probe/probe.h"
#include "record/prom_out.h"
#include "record/record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_TESTS 32

static struct {
    const char *tests, *output;
    int64_t size, runs, cpu, threads, rounds;
    double budget, interval;
    int format;
    bool list, on_line, quiet;
} opt = {
    .tests = "all",
    .runs = 10,
    .cpu = -1,
    .rounds = 1,
    .budget = 1.5,
};

static const struct ep_opt options[] = {
    {'f', "format", EP_OPT_CHOICE, &opt.format, EP_CLI_RECORD_FORMATS,
     "form of the output [text on a terminal]", 0, 0},
    {'j', "threads", EP_OPT_INT, &opt.threads, "N",
     "threads [CPUs allowed; 1 with --cpu]", 1, EP_PROBE_MAX_THREADS},
    {'o', "output", EP_OPT_STRING, &opt.output, "FILE",
     "write to FILE, whole or not at all", 0, 0},
    {'q', "quiet", EP_OPT_FLAG, &opt.quiet, NULL, "no progress, no warnings", 0,
     0},
    {'t', "test", EP_OPT_STRING, &opt.tests, "LIST",
     "tests, such as gemm:f32,membw [all]", 0, 0},
    {0, "budget", EP_OPT_DURATION, &opt.budget, "D",
     "time for the runs of a test [1.5s]", 0.001, 86400},
    {0, "cpu", EP_OPT_INT, &opt.cpu, "N", "run on CPU N only", 0, 1 << 20},
    {0, "interval", EP_OPT_DURATION, &opt.interval, "D",
     "time between the starts of rounds [0s]", 0, 1e9},
    {0, "list", EP_OPT_FLAG, &opt.list, NULL, "list the tests and leave", 0, 0},
    {0, "on-line", EP_OPT_FLAG, &opt.on_line, NULL,
     "a round for each line read from stdin", 0, 0},
    {0, "repeat", EP_OPT_INT, &opt.rounds, "N", "rounds; 0 is for ever [1]", 0,
     1e15},
    {0, "runs", EP_OPT_INT, &opt.runs, "N", "timed runs of a test [10]", 1,
     EP_PROBE_MAX_RUNS},
    {0, "size", EP_OPT_SIZE, &opt.size, "N",
     "order of the matrices, or bytes [by test]", 1, 1e15},
};

static const struct ep_program program = {
    .name = "gpuprobe",
    .operands = "",
    .purpose = "Measure how fast this node computes and moves memory",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

struct run {
    struct ep_outfile *file;  /* NULL with prom, */
    struct ep_prom_out *prom; /* which has this instead */
    FILE *out;
    struct ep_buf text;
    struct ep_identity id;
    struct ep_probe *probes[MAX_TESTS];
    const struct ep_probe_test *tests[MAX_TESTS];
    int ntests;
    bool headers;
    /* of the round: sums of shares weighted by busy time */
    double busy, cpu, wait;
};

/* ==== Results out ==== */

static void where(const struct run *run, struct ep_record *r, double ts)
{
    ep_record_set_num(r, EP_K_TS, ts);
    ep_record_set_str(r, EP_K_JOB, *run->id.job ? run->id.job : NULL);
    ep_record_set_str(r, EP_K_HOST, *run->id.host ? run->id.host : NULL);
    ep_record_set_int(r, EP_K_PID, getpid());
    if (run->id.rank >= 0)
        ep_record_set_int(r, EP_K_RANK, run->id.rank);
}

static void print(struct run *run, const struct ep_record *r)
{
    if (run->prom) {
        ep_prom_out_add(run->prom, r);
        return;
    }
    ep_buf_reset(&run->text);
    if (opt.format == EP_CLI_TSV)
        ep_record_print_tsv(r, &run->text);
    else
        ep_record_print(r, &run->text);
    (void)fwrite(run->text.ptr, 1, run->text.len, run->out);
}

/* gemm f32 1024         97.3 GFLOP/s  +-0.4 %  10 runs, CPU time 0.99 */
static void print_text(struct run *run, const struct ep_probe_result *res)
{
    struct ep_buf *b = &run->text;
    size_t at;

    ep_buf_reset(b);
    ep_buf_addf(b, "%s%s%s ", res->test, res->dtype ? " " : "",
                res->dtype ? res->dtype : "");
    if (strcmp(res->unit, "B/s") == 0)
        ep_num_format_size(b, (double)res->size);
    else
        ep_buf_addf(b, "%llu", (unsigned long long)res->size);
    ep_buf_addf(b, "%*s", b->len < 24 ? (int)(24 - b->len) : 1, "");
    at = b->len;
    ep_num_format_si(b, res->value, res->unit);
    ep_buf_addf(b, "%*s", b->len < at + 14 ? (int)(at + 14 - b->len) : 1, "");
    if (!isnan(res->spread))
        ep_buf_addf(b, "+-%.1f %%, ", 100 * res->spread);
    ep_buf_addf(b, "%d run%s", res->n, res->n == 1 ? "" : "s");
    if (!isnan(res->cpu_share))
        ep_buf_addf(b, ", share of CPU time %.2f", res->cpu_share);
    ep_buf_addc(b, '\n');
    (void)fwrite(b->ptr, 1, b->len, run->out);
}

static void report(struct run *run, const struct ep_probe_result *res,
                   double ts)
{
    struct ep_record r;

    if (!isnan(res->cpu_share)) {
        run->busy += res->busy;
        run->cpu += res->busy * res->cpu_share;
        run->wait += res->busy * res->wait_share;
    }
    if (opt.format == EP_CLI_TEXT) {
        print_text(run, res);
        return;
    }
    ep_record_begin(&r, EP_PROBE);
    where(run, &r, ts);
    ep_record_set_num(&r, EP_K_DUR, res->busy);
    ep_record_set_str(&r, EP_K_TEST, res->test);
    ep_record_set_str(&r, EP_K_DTYPE, res->dtype);
    ep_record_set_int(&r, EP_K_SIZE, (int64_t)res->size);
    ep_record_set_num(&r, EP_K_VALUE, res->value);
    ep_record_set_str(&r, EP_K_UNIT, res->unit);
    ep_record_set_str(&r, EP_K_BETTER, res->better);
    ep_record_set_int(&r, EP_K_N, res->n);
    ep_record_set_num(&r, EP_K_SPREAD, res->spread);
    print(run, &r);
}

static void gauge(struct run *run, double ts, const char *name, double value)
{
    struct ep_record r;

    if (isnan(value))
        return;
    ep_record_begin(&r, EP_GAUGE);
    where(run, &r, ts);
    ep_record_set_str(&r, EP_K_NAME, name);
    ep_record_set_num(&r, EP_K_VALUE, value);
    ep_record_set_str(&r, EP_K_UNIT, "1");
    print(run, &r);
}

/* ==== Measuring ==== */

/* On a terminal, say what is being measured; an empty text wipes it. */
static void progress(const char *text)
{
    if (opt.quiet || opt.on_line || !isatty(STDERR_FILENO))
        return;
    if (*text)
        (void)fprintf(stderr, "\r%-40s", text);
    else
        (void)fprintf(stderr, "\r%40s\r", "");
}

static int open_probes(struct run *run, struct ep_error *err)
{
    struct ep_probe_config config = {.size = (uint64_t)opt.size,
                                     .threads = (int)opt.threads};
    char shown[64];
    int n, missing = 0;

    n = ep_probe_select(opt.tests, run->tests, MAX_TESTS, err);
    if (n < 0)
        return ep_error_prefix(
            err, "cannot use '%s' for --test",
            ep_escape(shown, sizeof shown, opt.tests, strlen(opt.tests)));
    if (opt.cpu >= 0) {
        int rc = ep_probe_pin((int)opt.cpu, err);

        if (rc < 0)
            return ep_error_prefix(err, "cannot run on CPU %lld",
                                   (long long)opt.cpu);
        if (!config.threads)
            config.threads = 1;
    }
    for (int i = 0; i < n; i++) {
        const struct ep_probe_test *test = run->tests[i];
        struct ep_probe *p = ep_probe_open(test, &config, err);

        if (!p) {
            (void)ep_error_prefix(err, "cannot run %s", test->spec);
            /* what was not asked for by name may be missing */
            if (err->code != EP_EMISSING || strcmp(opt.tests, "all") != 0)
                return err->code;
            if (!opt.quiet)
                ep_cli_error(err);
            missing++;
            continue;
        }
        run->tests[run->ntests] = test;
        run->probes[run->ntests++] = p;
    }
    return missing == n ? EP_EMISSING : 0;
}

static int measure_round(struct run *run, const struct ep_probe_goal *goal,
                         struct ep_error *err)
{
    double start = ep_clock_now(&ep_clock_wall);

    run->busy = run->cpu = run->wait = 0;
    for (int i = 0; i < run->ntests; i++) {
        double ts = ep_clock_now(&ep_clock_wall);
        struct ep_probe_result res;
        int rc;

        progress(run->tests[i]->spec);
        rc = ep_probe_measure(run->probes[i], goal, &res, err);
        progress("");
        if (rc < 0)
            return ep_error_prefix(err, "cannot trust %s", run->tests[i]->spec);
        report(run, &res, ts);
    }
    if (run->busy > 0 &&
        (opt.format == EP_CLI_JSONL || opt.format == EP_CLI_PROM)) {
        gauge(run, start, "cpu_share", run->cpu / run->busy);
        gauge(run, start, "cpu_wait", run->wait / run->busy);
    }
    if (run->prom) {
        ep_prom_out_wait(run->prom);
        return 0;
    }
    /* what failed is reported when the output is closed */
    return ep_outfile_ok(run->file, true) ? 0 : EP_ESYS;
}

static void sleep_until(double t)
{
    double left = t - ep_clock_now(&ep_clock_mono);

    if (left > 0) {
        struct timespec ts = {.tv_sec = (time_t)left};

        ts.tv_nsec = (long)((left - floor(left)) * 1e9);
        while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
            ;
    }
}

static int by_clock(struct run *run, struct ep_error *err)
{
    struct ep_probe_goal goal = EP_PROBE_GOAL_DEFAULT;
    double start = ep_clock_now(&ep_clock_mono);

    goal.repeats = (int)opt.runs;
    goal.budget = opt.budget;
    for (int64_t round = 0; !opt.rounds || round < opt.rounds; round++) {
        int rc;

        sleep_until(start + (double)round * opt.interval);
        rc = measure_round(run, &goal, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The number of runs that a line asks for; nothing is the default. */
static int read_runs(const struct ep_line *line, int *runs,
                     struct ep_error *err)
{
    int64_t n = opt.runs;
    char *text;
    int rc = 0;

    if (memchr(line->ptr, '\0', line->len))
        return ep_error_set(err, EP_EFORMAT, "not a number");
    text = ep_strndup(line->ptr, line->len);
    if (*text)
        rc = ep_num_int(text, 1, EP_PROBE_MAX_RUNS, &n, err);
    free(text);
    *runs = (int)n;
    return rc;
}

/* One round per line: nothing on the line, or the number of runs. */
static int by_line(struct run *run, struct ep_error *err)
{
    struct ep_probe_goal goal = {
        .repeats = 1, .warmups = 1, .budget = (double)INFINITY};
    struct ep_probe_result warm;
    struct ep_input *in = ep_input_open("-", err);
    struct ep_lines *lines;
    struct ep_line line;
    int rc = 0;

    if (!in)
        return err->code;
    lines = ep_lines_new(in);
    for (int i = 0; i < run->ntests && rc == 0; i++)
        rc = ep_probe_measure(run->probes[i], &goal, &warm, err);
    goal.warmups = 0;
    while (rc == 0 && (rc = ep_lines_next(lines, &line, err)) != 0) {
        if (rc > 0)
            rc = read_runs(&line, &goal.repeats, err);
        if (rc < 0) {
            if (rc != EP_ESYS) /* which names the input itself */
                (void)ep_error_prefix(err, "cannot use stdin:%llu",
                                      (unsigned long long)line.number);
            break;
        }
        rc = measure_round(run, &goal, err);
    }
    ep_lines_free(lines);
    return rc;
}

/* ==== The whole ==== */

static void complain(void *ctx, const struct ep_error *err)
{
    (void)ctx;
    ep_cli_error(err);
}

static int open_output(struct run *run, struct ep_error *err)
{
    if (opt.format == EP_CLI_PROM) {
        run->prom = ep_prom_out_open(opt.output, complain, NULL, err);
        return run->prom ? 0 : err->code;
    }
    run->file = ep_outfile_open(opt.output, err);
    if (!run->file)
        return err->code;
    run->out = ep_outfile_stream(run->file);
    if (opt.format == EP_CLI_TSV) {
        ep_record_tsv_header(EP_PROBE, &run->text);
        (void)fwrite(run->text.ptr, 1, run->text.len, run->out);
    }
    return 0;
}

/* rc is what the measuring came to; so is what is returned. */
static int close_output(struct run *run, int rc, struct ep_error *err)
{
    struct ep_error why;

    if (run->prom) {
        int closed = ep_prom_out_close(run->prom, rc == 0, &why);

        if (rc == 0 && closed < 0) {
            *err = why;
            rc = closed;
        }
        return rc;
    }
    if (rc == 0 || !ep_outfile_ok(run->file, false))
        return ep_outfile_commit(run->file, err);
    ep_outfile_abort(run->file);
    return rc;
}

static int run_all(struct ep_error *err)
{
    struct run run = {.out = NULL};
    int rc = ep_identity_get(&run.id, NULL, err);

    if (rc < 0)
        return rc;
    ep_buf_init(&run.text);
    rc = open_probes(&run, err);
    if (rc >= 0)
        rc = open_output(&run, err);
    if (rc == 0) {
        rc = opt.on_line ? by_line(&run, err) : by_clock(&run, err);
        rc = close_output(&run, rc, err);
    }
    ep_buf_free(&run.text);
    for (int i = 0; i < run.ntests; i++)
        ep_probe_close(run.probes[i]);
    return rc;
}

static void list_tests(void)
{
    for (size_t i = 0; i < ep_probe_count(); i++)
        (void)printf("%s\n", ep_probe_at(i)->spec);
}

int main(int argc, char **argv)
{
    struct ep_error err = {.code = 0};
    int first, status = EP_EXIT_CLEAN;

    opt.format = -1;
    first = ep_cli_begin(&program, argc, argv);
    if (opt.format < 0)
        opt.format = ep_cli_default_format(opt.output);
    if (first < argc) {
        char shown[64];

        ep_cli_warn(
            "cannot use operand '%s': none is taken",
            ep_escape(shown, sizeof shown, argv[first], strlen(argv[first])));
        return EP_EXIT_TROUBLE;
    }
    if (opt.output && strcmp(opt.output, "-") != 0 && !opt.rounds &&
        opt.format != EP_CLI_PROM) {
        ep_cli_warn(
            "cannot use --output with --repeat 0: the file would never "
            "be whole (but with --format prom)");
        return EP_EXIT_TROUBLE;
    }
    if (opt.on_line && (opt.rounds != 1 || opt.interval > 0)) {
        ep_cli_warn("cannot use --on-line with --repeat or --interval");
        return EP_EXIT_TROUBLE;
    }
    if (opt.list) {
        list_tests();
    } else if (run_all(&err) < 0) {
        ep_cli_error(&err);
        status = EP_EXIT_TROUBLE;
    }
    return ep_cli_end(status);
}

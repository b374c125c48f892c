/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skewdetect - who became slow, when, by how much, why, how sure.
 *
 * Options and wiring only: records become samples for detect/watch.h, its
 * findings become event records or text.
 */
#include "config.h"

#include "base/buf.h"
#include "base/cli.h"
#include "base/outfile.h"
#include "detect/watch.h"
#include "record/record.h"
#include "record/stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct {
    int format;
    bool tee, exit_code, strict, quiet, verbose, no_spikes;
    const char *output;
    int64_t max_bad, window, confirm;
    double min_change;
} opt = {
    .window = 16,
    .confirm = 3,
    .min_change = 0.10,
};

static const struct ep_opt options[] = {
    {'f', "format", EP_OPT_CHOICE, &opt.format, EP_CLI_FORMATS,
     "form of the events [text on a terminal]", 0, 0},
    {'o', "output", EP_OPT_STRING, &opt.output, "FILE",
     "write to FILE, whole or not at all", 0, 0},
    {'q', "quiet", EP_OPT_FLAG, &opt.quiet, NULL, "no summary, no warnings", 0,
     0},
    {'v', "verbose", EP_OPT_FLAG, &opt.verbose, NULL,
     "say on stderr what was read", 0, 0},
    {0, "confirm", EP_OPT_INT, &opt.confirm, "N",
     "steps that a change must last [3]", 1, 16},
    {0, "exit-code", EP_OPT_FLAG, &opt.exit_code, NULL,
     "status 1 if a straggler was found", 0, 0},
    {0, "max-bad", EP_OPT_INT, &opt.max_bad, "N",
     "bad lines that are accepted [0]", 0, 1e15},
    {0, "min-change", EP_OPT_DOUBLE, &opt.min_change, "R",
     "least relative change that counts [0.10]", 0.01, 10},
    {0, "no-spikes", EP_OPT_FLAG, &opt.no_spikes, NULL,
     "leave single slow steps out", 0, 0},
    {0, "strict", EP_OPT_FLAG, &opt.strict, NULL, "stop at the first bad line",
     0, 0},
    {0, "tee", EP_OPT_FLAG, &opt.tee, NULL,
     "pass the input through, events inserted", 0, 0},
    {0, "window", EP_OPT_INT, &opt.window, "N",
     "steps behind a comparison of ranks [16]", 4, EP_WATCH_WINDOW_MAX},
};

static const struct ep_program program = {
    .name = "skewdetect",
    .operands = "[FILE ...]",
    .purpose = "Find the stragglers of a training job in its telemetry",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

/* What a run has printed, and where it prints. */
struct run {
    struct ep_outfile *file;
    FILE *out;
    struct ep_buf text;
    uint64_t onsets, reliefs, spikes;
    uint64_t steps, probes;
    bool tsv_header;
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
    enum { INDENT = 10, WIDTH = 80 };
    size_t column = 0;

    while (*text) {
        size_t word = strcspn(text, " ");

        if (column && column + 1 + word > WIDTH) {
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

static void add_time(struct ep_buf *b, double ts)
{
    time_t whole = (time_t)ts;
    struct tm tm;
    char s[16] = "?";

    if (ts < 1e12 && localtime_r(&whole, &tm))
        (void)strftime(s, sizeof s, "%H:%M:%S", &tm);
    ep_buf_addf(b, "%-8s  ", s);
}

/*
 * 14:22:31  ONSET   rank=1 (n17) 2.03x since step 118, sure 0.99
 *           cpu-contention: busy per micro-batch 21.3 ms -> 43.1 ms
 */
static void to_text(const struct ep_finding *f, struct ep_buf *b)
{
    static const char *const names[] = {"ONSET ", "relief", "spike "};
    char host[64] = "", id[128];
    struct ep_buf line;

    (void)ep_escape(id, sizeof id, f->id ? f->id : "job",
                    strlen(f->id ? f->id : "job"));
    if (f->host && f->scope != EP_SCOPE_HOST)
        (void)ep_escape(host, sizeof host, f->host, strlen(f->host));
    add_time(b, f->ts);
    ep_buf_addf(b, "%s  %.28s%s%.14s%s %.2fx since ", names[f->kind], id,
                *host ? " (" : "", host, *host ? ")" : "", f->factor);
    if (f->step >= 0)
        ep_buf_addf(b, "step %lld", (long long)f->step);
    else
        add_time(b, f->since);
    ep_buf_addf(b, ", sure %.2f\n", f->p);
    ep_buf_init(&line);
    ep_buf_addf(&line, "%s: %s", f->cause, f->evidence);
    if (!isnan(f->gpu_hours))
        ep_buf_addf(&line, ", %.2g device hours lost", f->gpu_hours);
    add_wrapped(b, line.ptr);
    ep_buf_free(&line);
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
    ep_buf_reset(&run->text);
    if (opt.format == EP_CLI_TEXT) {
        to_text(f, &run->text);
    } else {
        to_record(f, &r);
        if (opt.format == EP_CLI_TSV) {
            if (!run->tsv_header)
                ep_record_tsv_header(EP_EVENT, &run->text);
            run->tsv_header = true;
            ep_record_print_tsv(&r, &run->text);
        } else {
            ep_record_print(&r, &run->text);
        }
    }
    (void)fwrite(run->text.ptr, 1, run->text.len, run->out);
}

/* ==== Records in ==== */

static int take_step(struct ep_watch *w, const struct ep_record *r,
                     struct ep_error *err)
{
    struct ep_watch_step s = {
        .job = ep_record_str(r, EP_K_JOB),
        .host = ep_record_str(r, EP_K_HOST),
        .worker = ep_record_str(r, EP_K_WORKER),
        .rank = ep_record_int(r, EP_K_RANK, -1),
        .ts = ep_record_num(r, EP_K_TS),
        .step = ep_record_int(r, EP_K_STEP, -1),
        .dur = ep_record_num(r, EP_K_DUR),
        .busy = ep_record_num(r, EP_K_BUSY),
        .mb = ep_record_int(r, EP_K_MB, -1),
    };

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
    switch (r->type) {
    case EP_STEP:
        run->steps++;
        return take_step(w, r, err);
    case EP_PROBE:
        run->probes++;
        return take_probe(w, r, err);
    case EP_GAUGE:
        if (ep_span_eq(ep_record_str(r, EP_K_NAME), "cpu_share") &&
            ep_record_has(r, EP_K_RANK))
            return ep_watch_cpu_share(
                w, ep_record_str(r, EP_K_JOB), ep_record_int(r, EP_K_RANK, -1),
                ep_record_num(r, EP_K_TS), ep_record_num(r, EP_K_VALUE), err);
        return 0;
    default:
        return 0;
    }
}

static void complain(void *ctx, const struct ep_error *err)
{
    (void)ctx;
    ep_cli_error(err);
}

/* The input has nothing for us at present: let the reader see what we have. */
static void flush(void *ctx)
{
    const struct run *run = ctx;

    (void)ep_outfile_ok(run->file, true);
}

/* All records through the watch. 0, or the error that ended a strict run. */
static int detect(struct run *run, struct ep_watch *w, struct ep_stream *in,
                  struct ep_error *err)
{
    const struct ep_record *r;
    const struct ep_line *line;
    int rc;

    while ((rc = ep_stream_next(in, &r, &line, err)) > 0) {
        struct ep_error why;

        if (opt.tee) {
            (void)fwrite(line->ptr, 1, line->len, run->out);
            (void)fputc('\n', run->out);
        }
        if (take(run, w, r, &why) < 0) {
            rc = ep_stream_reject(in, err, "%s", why.msg);
            if (rc < 0)
                break;
        }
        if (!ep_outfile_ok(run->file, false))
            return 0; /* reported when the output is closed */
    }
    if (rc == 0)
        ep_watch_finish(w);
    return rc;
}

static void summarise(const struct run *run)
{
    if (opt.format == EP_CLI_TEXT && !opt.quiet)
        (void)fprintf(
            run->out,
            "%llu onset%s, %llu relief%s, %llu spike%s in %llu step "
            "and %llu probe records\n",
            (unsigned long long)run->onsets, run->onsets == 1 ? "" : "s",
            (unsigned long long)run->reliefs, run->reliefs == 1 ? "" : "s",
            (unsigned long long)run->spikes, run->spikes == 1 ? "" : "s",
            (unsigned long long)run->steps, (unsigned long long)run->probes);
}

/* The exit status, and messages about what was not as it should be. */
static int judge(const struct run *run, const struct ep_stream *in)
{
    uint64_t bad = ep_stream_bad(in);

    if (opt.verbose)
        ep_cli_warn("%llu records read, %llu bad lines",
                    (unsigned long long)ep_stream_records(in),
                    (unsigned long long)bad);
    if (bad > 1 && !opt.quiet)
        ep_cli_warn("%llu bad lines in all", (unsigned long long)bad);
    if (ep_stream_failed(in) || bad > (uint64_t)opt.max_bad)
        return EP_EXIT_TROUBLE;
    if (!run->steps && !run->probes) {
        ep_cli_warn(
            "cannot detect stragglers: no step or probe record in "
            "the input");
        return EP_EXIT_TROUBLE;
    }
    return opt.exit_code && run->onsets ? EP_EXIT_FINDING : EP_EXIT_CLEAN;
}

static int run_all(const char *const *paths, int n, struct ep_error *err)
{
    struct ep_watch_config config = EP_WATCH_DEFAULTS;
    struct run run = {.out = NULL};
    struct ep_stream_config how = {.strict = opt.strict,
                                   .complain = complain,
                                   .on_wait = flush,
                                   .ctx = &run};
    struct ep_outfile *out;
    struct ep_watch *w;
    struct ep_stream *in;
    int rc, status = EP_EXIT_TROUBLE;

    config.pace.min_change = config.peers.min_change = opt.min_change;
    config.pace.confirm = (unsigned)opt.confirm;
    if (config.pace.settle <= config.pace.confirm)
        config.pace.settle = config.pace.confirm + 1;
    config.window = opt.window;
    w = ep_watch_new(&config, on_finding, &run, err);
    if (!w)
        return err->code;
    out = ep_outfile_open(opt.output, err);
    if (!out) {
        ep_watch_free(w);
        return err->code;
    }
    ep_buf_init(&run.text);
    run.file = out;
    run.out = ep_outfile_stream(out);
    in = ep_stream_open(paths, n, &how);
    rc = detect(&run, w, in, err);
    if (rc >= 0) {
        summarise(&run);
        status = judge(&run, in);
        rc = ep_outfile_commit(out, err);
    } else {
        ep_outfile_abort(out); /* standard output keeps what was found */
    }
    ep_stream_close(in);
    ep_watch_free(w);
    ep_buf_free(&run.text);
    return rc < 0 ? rc : status;
}

int main(int argc, char **argv)
{
    struct ep_error err = {.code = 0};
    int first, status;

    opt.format = -1;
    first = ep_cli_begin(&program, argc, argv);
    if (opt.format < 0)
        opt.format = opt.tee ? EP_CLI_JSONL : ep_cli_default_format();
    if (opt.tee && opt.format != EP_CLI_JSONL) {
        ep_cli_warn("cannot use --tee with that --format: it needs jsonl");
        return EP_EXIT_TROUBLE;
    }
    status = run_all((const char *const *)argv + first, argc - first, &err);
    if (status < 0) {
        ep_cli_error(&err);
        status = EP_EXIT_TROUBLE;
    }
    return ep_cli_end(status);
}

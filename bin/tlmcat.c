/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tlmcat - cat for telemetry: any format in, records out, merged by time.
 *
 * Options and wiring only: formats are lib/record/import_*.c, merging is
 * record/stream.h, choosing record/select.h, clocks record/align.h.
 */
#include "config.h"

#include "base/buf.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "record/align.h"
#include "record/filter.h"
#include "record/import.h"
#include "record/pattern.h"
#include "record/record_text.h"
#include "record/select.h"

#include <stdio.h>

static struct {
    struct ep_filter_options io;
    struct ep_opt_list types, where;
    const char *since, *until;
    struct ep_opt_list pattern, patterns, type_of;
    int raw; /* enum ep_pattern_bars less 1, or -1 */
    bool formats, stats;
    bool json; /* -f jsonl was given, and is not a default */
    bool clock_skew, align_clocks;
} opt = {.io = {.format = -1, .lateness = 5}, .raw = -1};

static const struct ep_opt options[] = {
    EP_FILTER_OPTIONS(opt.io, "say on stderr what was printed",
                      "status 1 if no record came out"),
    {0, "align-clocks", EP_OPT_FLAG, &opt.align_clocks, NULL,
     "read twice, correct the clocks of hosts", 0, 0},
    {0, "clock-skew", EP_OPT_FLAG, &opt.clock_skew, NULL,
     "print how far the clocks of hosts are apart", 0, 0},
    {0, "follow", EP_OPT_FLAG, &opt.io.follow, NULL,
     "go on when files grow, are replaced, appear", 0, 0},
    {0, "formats", EP_OPT_FLAG, &opt.formats, NULL,
     "list the formats that are read", 0, 0},
    {0, "interval", EP_OPT_DURATION, &opt.io.interval, "TIME",
     "read all inputs again and again", 0.1, 86400 * 366},
    {0, "lateness", EP_OPT_DURATION, &opt.io.lateness, "TIME",
     "follow: how long a silent input holds up [5s]", 0, 86400},
    {0, "no-merge", EP_OPT_FLAG, &opt.io.no_merge, NULL,
     "one input after the other, not by time", 0, 0},
    {0, "pattern", EP_OPT_LIST, &opt.pattern, "REGEX",
     "read any text by a pattern with named groups", 0, 0},
    {0, "patterns", EP_OPT_LIST, &opt.patterns, "FILE",
     "read any text by the patterns in FILE", 0, 0},
    {0, "raw", EP_OPT_CHOICE, &opt.raw, "last|every",
     "--pattern reads progress bars: which states", 0, 0},
    {0, "rounds", EP_OPT_INT, &opt.io.rounds, "N",
     "interval: so often [until a signal]", 1, 1e15},
    {0, "since", EP_OPT_STRING, &opt.since, "TIME", "only from TIME on", 0, 0},
    {0, "stats", EP_OPT_FLAG, &opt.stats, NULL,
     "count records instead of printing them", 0, 0},
    {0, "type", EP_OPT_LIST, &opt.types, "TYPE[,TYPE...]",
     "only records of these types", 0, 0},
    {0, "type-of", EP_OPT_LIST, &opt.type_of, "TYPE[,KEY=VALUE...]",
     "what --pattern makes [step]", 0, 0},
    {0, "until", EP_OPT_STRING, &opt.until, "TIME", "only before TIME", 0, 0},
    {0, "where", EP_OPT_LIST, &opt.where, "KEY=VALUE[,...]",
     "only records with these values (also != < >)", 0, 0},
    {0, "world", EP_OPT_INT, &opt.io.world, "N",
     "ranks of the job, to tell global ranks by", 1, 1048576},
};

static const struct ep_program program = {
    .name = "tlmcat",
    .operands = "[FILE | URL ...]",
    .purpose = "Read telemetry of any format, print records merged by time",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

struct run {
    struct ep_filter io;
    struct ep_record_text text;
    struct ep_select want;
    uint64_t count[EP_TYPES + 1];  /* by type; the last: of types unknown */
    uint64_t out, left;            /* printed; without a form */
    struct ep_clock_skew *skew;    /* --clock-skew */
    struct ep_clock_table *clocks; /* --align-clocks */
};

static int list_formats(void)
{
    for (int i = 0; ep_importers[i]; i++)
        (void)printf("%-14s %s\n", ep_importers[i]->name,
                     ep_importers[i]->what);
    return ep_cli_end(EP_EXIT_CLEAN);
}

/* --pattern, each with a --type-of, or all with one. */
static int add_patterns(struct ep_patterns *p, struct ep_error *err)
{
    int rc = 0, types = opt.type_of.n;

    if (types > 1 && types != opt.pattern.n)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --type-of: %d given, and --pattern %d "
                            "times",
                            types, opt.pattern.n);
    for (int i = 0; i < opt.pattern.n && rc == 0; i++)
        rc = ep_patterns_add_text(p, opt.pattern.v[i],
                                  types ? opt.type_of.v[types > 1 ? i : 0]
                                        : NULL,
                                  (enum ep_pattern_bars)(opt.raw + 1), err);
    for (int i = 0; i < opt.patterns.n && rc == 0; i++)
        rc = ep_patterns_load(p, opt.patterns.v[i], err);
    return rc;
}

/* --pattern and --patterns: compiled, and used for all inputs. */
static int use_patterns(struct ep_patterns *p, struct ep_error *err)
{
    int rc;

    if ((opt.type_of.n || opt.raw >= 0) && !opt.pattern.n)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --%s: no --pattern given",
                            opt.type_of.n ? "type-of" : "raw");
    if (!opt.pattern.n && !opt.patterns.n)
        return 0;
    rc = add_patterns(p, err);
    if (rc < 0)
        return rc;
    if (ep_patterns_count(p) == 0)
        return ep_error_set(err, EP_EFORMAT,
                            "cannot use --patterns %.100s: no pattern in it",
                            opt.patterns.v[0]);
    ep_import_pattern_use(p);
    if (!opt.io.from)
        opt.io.from = "pattern";
    return 0;
}

static int choose(struct ep_select *want, struct ep_error *err)
{
    const struct ep_select_texts texts = {
        .types = opt.types.v,
        .ntypes = opt.types.n,
        .where = opt.where.v,
        .nwhere = opt.where.n,
        .since = opt.since,
        .until = opt.until,
        .now = ep_clock_now(&ep_clock_wall),
    };

    return ep_select_init(want, &texts, err);
}

static void print(struct run *run, const struct ep_record *r,
                  const struct ep_line *line)
{
    if (run->io.opt->format == EP_CLI_JSONL ||
        (r->type == EP_OTHER && run->io.opt->format == EP_CLI_TEXT)) {
        if (line && run->clocks && ep_align_concerns(run->clocks, r)) {
            ep_buf_reset(&run->io.text);
            ep_align_line(line, r, &run->io.text);
            (void)fwrite(run->io.text.ptr, 1, run->io.text.len, run->io.out);
        } else {
            ep_filter_pass(&run->io, r, line);
        }
    } else if (r->type == EP_OTHER) {
        run->left++;
    } else if (run->io.opt->format != EP_CLI_TEXT) {
        ep_filter_write(&run->io, r);
    } else {
        ep_buf_reset(&run->io.text);
        ep_record_print_text(&run->text, r, &run->io.text);
        (void)fwrite(run->io.text.ptr, 1, run->io.text.len, run->io.out);
    }
}

static int copy(struct run *run, struct ep_error *err)
{
    const struct ep_record *r;
    const struct ep_line *line;
    int rc;

    while ((rc = ep_filter_next(&run->io, &r, &line, err)) > 0) {
        if (!ep_select_match(&run->want, r))
            continue;
        run->count[r->type]++;
        if (run->skew) {
            ep_clock_skew_take(run->skew, r);
            continue;
        }
        run->out++;
        if (!opt.stats)
            print(run, r, line);
    }
    return rc;
}

/* ==== What was in it ==== */

/* Counts by type, of what is printed. */
static void print_types(const struct run *run, FILE *out)
{
    for (int t = 0; t <= EP_TYPES; t++)
        if (run->count[t])
            (void)fprintf(out, "%-8s %12llu\n",
                          t < EP_TYPES ? ep_type_table[t].name : "others",
                          (unsigned long long)run->count[t]);
    if (ep_stream_bad(run->io.in))
        (void)fprintf(out, "%-8s %12llu\n", "bad",
                      (unsigned long long)ep_stream_bad(run->io.in));
}

/* What goes with what. */
static int check_clocks(const char *const *paths, int n, struct ep_error *err)
{
    const char *other = opt.stats ? "stats" : opt.types.n ? "type" : NULL;

    if (opt.clock_skew && opt.align_clocks)
        other = "align-clocks";
    if (opt.clock_skew && other)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --clock-skew: not with --%s", other);
    if (opt.align_clocks && (opt.io.follow || opt.io.interval > 0))
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --align-clocks: it reads the input "
                            "twice, not with --%s",
                            opt.io.follow ? "follow" : "interval");
    return opt.align_clocks ? ep_align_check(paths, n, err) : 0;
}

/* Make ready for --clock-skew, or do the first pass of --align-clocks. */
static int begin_clocks(struct run *run, const char *const *paths, int n,
                        struct ep_error *err)
{
    struct ep_stream_config how = {.world = opt.io.world};
    int rc = check_clocks(paths, n, err);

    if (rc < 0)
        return rc;
    if (opt.clock_skew) {
        run->skew = ep_clock_skew_new(0);
        opt.io.no_merge = true; /* any order will do */
    }
    if (!opt.align_clocks)
        return 0;
    if (opt.io.from) { /* a wrong name is ep_filter_open's to refuse */
        how.from = ep_importer_find(opt.io.from);
        if (!how.from)
            return 0;
    }
    run->clocks = ep_align_estimate(paths, n, &how);
    opt.io.correct = ep_align_record;
    opt.io.correct_ctx = run->clocks;
    return 0;
}

static void say_clocks(struct ep_clock_table *t,
                       void (*say)(const struct ep_clock_table *t,
                                   struct ep_buf *out))
{
    struct ep_buf b;

    ep_buf_init(&b);
    say(t, &b);
    if (b.len && !opt.io.quiet)
        ep_cli_warn("%s", b.ptr);
    ep_buf_free(&b);
}

static void free_clocks(struct run *run)
{
    ep_clock_skew_free(run->skew);
    ep_clock_table_free(run->clocks);
}

/* One gauge for each host. */
static void print_clocks(struct run *run)
{
    size_t n;
    const struct ep_clock_host *h = ep_clock_table_hosts(run->clocks, &n);
    struct ep_record r;
    struct ep_buf room;

    ep_buf_init(&room);
    for (size_t i = 0; i < n && h[i].line.known; i++) {
        ep_align_gauge(run->clocks, &h[i], &r, &room);
        if (opt.io.format != EP_CLI_TEXT)
            ep_filter_write(&run->io, &r);
        run->out++;
    }
    if (run->out && opt.io.format == EP_CLI_TEXT) {
        ep_buf_reset(&run->io.text);
        ep_align_text(run->clocks, &run->io.text);
        (void)fwrite(run->io.text.ptr, 1, run->io.text.len, run->io.out);
    }
    ep_buf_free(&room);
}

/* All was read: the answer of --clock-skew, and remarks. Returns why nothing
   could be done, or NULL. */
static const char *end_clocks(struct run *run)
{
    if (run->skew) {
        run->clocks = ep_clock_skew_solve(run->skew);
        print_clocks(run);
    } else if (run->clocks) {
        say_clocks(run->clocks, ep_align_say_corrected);
    }
    if (!run->clocks)
        return NULL;
    say_clocks(run->clocks, ep_align_say_unknown);
    say_clocks(run->clocks, ep_align_say_groups);
    say_clocks(run->clocks, ep_align_say_ambiguous);
    return run->skew && run->out == 0
               ? "cannot compare clocks: there is no collective of two hosts "
                 "with ts, host and seq in the input"
               : NULL;
}

/* Counts by format, of what was read; and why lines were bad. */
static void print_sources(const struct run *run, FILE *out)
{
    int nformats, nreasons;
    const struct ep_stream_format *f = ep_stream_formats(run->io.in, &nformats);
    const struct ep_stream_reason *why =
        ep_stream_reasons(run->io.in, &nreasons);

    (void)fprintf(out, "\n%-15s %10s %12s %10s\n", "FORMAT", "INPUTS",
                  "RECORDS", "BAD");
    for (int i = 0; i < nformats; i++)
        if (f[i].inputs)
            (void)fprintf(out, "%-15s %10llu %12llu %10llu\n",
                          f[i].importer->name, (unsigned long long)f[i].inputs,
                          (unsigned long long)f[i].records,
                          (unsigned long long)f[i].bad);
    if (nreasons)
        (void)fprintf(out, "\n%10s  %s\n", "BAD", "WHY, AND THE FIRST");
    for (int i = 0; i < nreasons; i++)
        (void)fprintf(out, "%10llu  %s (%s)\n", (unsigned long long)why[i].n,
                      why[i].text, why[i].first);
}

/* All of that, a JSON object for each row. */
static void add_json(const struct run *run, struct ep_buf *b)
{
    int nformats, nreasons;
    const struct ep_stream_format *f = ep_stream_formats(run->io.in, &nformats);
    const struct ep_stream_reason *why =
        ep_stream_reasons(run->io.in, &nreasons);
    struct ep_jw w;

    ep_jw_init(&w, b);
    for (int t = 0; t <= EP_TYPES; t++) {
        if (!run->count[t])
            continue;
        ep_jw_begin_object(&w);
        ep_jw_key_string(&w, "count", "type");
        ep_jw_key_string(&w, "name",
                         t < EP_TYPES ? ep_type_table[t].name : "others");
        ep_jw_key_int(&w, "records", (int64_t)run->count[t]);
        ep_jw_end_object(&w);
        ep_jw_newline(&w);
    }
    for (int i = 0; i < nformats; i++) {
        if (!f[i].inputs)
            continue;
        ep_jw_begin_object(&w);
        ep_jw_key_string(&w, "count", "format");
        ep_jw_key_string(&w, "name", f[i].importer->name);
        ep_jw_key_int(&w, "inputs", (int64_t)f[i].inputs);
        ep_jw_key_int(&w, "records", (int64_t)f[i].records);
        ep_jw_key_int(&w, "bad", (int64_t)f[i].bad);
        ep_jw_end_object(&w);
        ep_jw_newline(&w);
    }
    for (int i = 0; i < nreasons; i++) {
        ep_jw_begin_object(&w);
        ep_jw_key_string(&w, "count", "bad");
        ep_jw_key_string(&w, "name", why[i].text);
        ep_jw_key_int(&w, "bad", (int64_t)why[i].n);
        ep_jw_key_string(&w, "first", why[i].first);
        ep_jw_end_object(&w);
        ep_jw_newline(&w);
    }
}

static void print_stats(struct run *run)
{
    if (!opt.json) {
        print_types(run, run->io.out);
        print_sources(run, run->io.out);
        return;
    }
    ep_buf_reset(&run->io.text);
    add_json(run, &run->io.text);
    (void)fwrite(run->io.text.ptr, 1, run->io.text.len, run->io.out);
}

/* Remarks on what was read. */
static void remark(const struct run *run)
{
    if (ep_stream_passed_over(run->io.in) && opt.io.verbose)
        ep_cli_warn("%llu files in folders are of no known format",
                    (unsigned long long)ep_stream_passed_over(run->io.in));
    if (ep_stream_late(run->io.in) && !opt.io.quiet)
        ep_cli_warn("%llu records came late: after others with a later ts",
                    (unsigned long long)ep_stream_late(run->io.in));
    if (run->left && !opt.io.quiet)
        ep_cli_warn(
            "%llu records of types that this version does not know "
            "cannot be printed in that form",
            (unsigned long long)run->left);
}

int main(int argc, char **argv)
{
    struct ep_patterns *patterns;
    struct run run = {.out = 0};
    struct ep_error err;
    const char *idle = NULL;
    int first = ep_cli_begin(&program, argc, argv);
    int rc;

    if (opt.formats)
        return list_formats();
    opt.json = opt.io.format == EP_CLI_JSONL;
    /* counts do not depend on the order; but which rank is known when does */
    opt.io.no_merge |= opt.stats && !opt.where.n && !opt.io.follow;
    ep_filter_format(&opt.io);
    if (opt.stats && opt.io.format == EP_CLI_PROM) {
        ep_cli_warn("cannot use --stats with --format prom");
        return EP_EXIT_TROUBLE;
    }
    patterns = ep_patterns_new();
    if (use_patterns(patterns, &err) < 0 || choose(&run.want, &err) < 0 ||
        begin_clocks(&run, (const char *const *)argv + first, argc - first,
                     &err) < 0 ||
        ep_filter_open(&run.io, &opt.io, (const char *const *)argv + first,
                       argc - first, &err) < 0) {
        ep_cli_error(&err);
        ep_patterns_free(patterns);
        free_clocks(&run);
        return EP_EXIT_TROUBLE;
    }
    rc = copy(&run, &err);
    if (rc >= 0)
        idle = end_clocks(&run);
    if (rc >= 0 && opt.stats)
        print_stats(&run);
    else if (opt.io.verbose)
        print_types(&run, stderr);
    remark(&run);
    if (ep_stream_inputs(run.io.in) == 0 && !opt.io.follow &&
        !(opt.io.interval > 0))
        idle = "cannot read anything: no file of a known format was given";
    rc = ep_filter_close(&run.io, rc, idle, run.out == 0, &err);
    ep_record_text_free(&run.text);
    free_clocks(&run);
    ep_patterns_free(patterns);
    return ep_cli_end(rc);
}

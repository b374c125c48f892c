/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tlmcat - cat for telemetry: any format in, records out, merged by time.
 *
 * Options and wiring only: formats are lib/record/import_*.c, merging is
 * record/stream.h, choosing record/select.h.
 */
#include "config.h"

#include "base/buf.h"
#include "base/cli.h"
#include "base/json_write.h"
#include "record/filter.h"
#include "record/import.h"
#include "record/pattern.h"
#include "record/select.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct {
    struct ep_filter_options io;
    const char *types, *where, *since, *until;
    const char *pattern, *patterns, *type_of;
    bool formats, stats;
    bool json; /* -f jsonl was given, and is not a default */
} opt = {.io = {.format = -1, .lateness = 5}};

static const struct ep_opt options[] = {
    EP_FILTER_OPTIONS(opt.io, "say on stderr what was printed",
                      "status 1 if no record came out"),
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
    {0, "pattern", EP_OPT_STRING, &opt.pattern, "REGEX",
     "read any text by a pattern with named groups", 0, 0},
    {0, "patterns", EP_OPT_STRING, &opt.patterns, "FILE",
     "read any text by the patterns in FILE", 0, 0},
    {0, "rounds", EP_OPT_INT, &opt.io.rounds, "N",
     "interval: so often [until a signal]", 1, 1e15},
    {0, "since", EP_OPT_STRING, &opt.since, "TIME", "only from TIME on", 0, 0},
    {0, "stats", EP_OPT_FLAG, &opt.stats, NULL,
     "count records instead of printing them", 0, 0},
    {0, "type", EP_OPT_STRING, &opt.types, "TYPE[,TYPE...]",
     "only records of these types", 0, 0},
    {0, "type-of", EP_OPT_STRING, &opt.type_of, "TYPE[,KEY=VALUE...]",
     "what --pattern makes [step]", 0, 0},
    {0, "until", EP_OPT_STRING, &opt.until, "TIME", "only before TIME", 0, 0},
    {0, "where", EP_OPT_STRING, &opt.where, "KEY=VALUE[,...]",
     "only records with these values", 0, 0},
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
    struct ep_select want;
    uint64_t count[EP_TYPES + 1]; /* by type; the last: of types unknown */
    uint64_t out, left;           /* printed; without a tsv form */
};

static int list_formats(void)
{
    for (int i = 0; ep_importers[i]; i++)
        (void)printf("%-14s %s\n", ep_importers[i]->name,
                     ep_importers[i]->what);
    return ep_cli_end(EP_EXIT_CLEAN);
}

/* --pattern and --patterns: compiled, and used for all inputs. */
static int use_patterns(struct ep_patterns *p, struct ep_error *err)
{
    int rc = 0;

    if (opt.type_of && !opt.pattern)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --type-of: no --pattern given");
    if (!opt.pattern && !opt.patterns)
        return 0;
    if (opt.pattern)
        rc = ep_patterns_add_text(p, opt.pattern, opt.type_of, err);
    if (rc == 0 && opt.patterns)
        rc = ep_patterns_load(p, opt.patterns, err);
    if (rc < 0)
        return rc;
    if (ep_patterns_count(p) == 0)
        return ep_error_set(err, EP_EFORMAT,
                            "cannot use --patterns %.100s: no pattern in it",
                            opt.patterns);
    ep_import_pattern_use(p);
    if (!opt.io.from)
        opt.io.from = "pattern";
    return 0;
}

/* "03:14:15.926", local time; nothing of a record without ts. */
static void add_clock(struct ep_buf *b, double ts)
{
    time_t whole = (time_t)(ts < 1e12 ? floor(ts) : 0);
    struct tm tm;
    char s[16];

    if (!(ts < 1e12) || !localtime_r(&whole, &tm) ||
        strftime(s, sizeof s, "%H:%M:%S", &tm) == 0) {
        ep_buf_addf(b, "%12s", "");
        return;
    }
    ep_buf_addf(b, "%s.%03d", s, (int)((ts - floor(ts)) * 1000));
}

/* One line for a reader: time, type, then key=value. */
static void add_text(struct ep_buf *b, const struct ep_record *r)
{
    add_clock(b, ep_record_num(r, EP_K_TS));
    ep_buf_addf(b, " %-7s", ep_type_table[r->type].name);
    for (int k = EP_K_TS + 1; k < EP_KEYS; k++) {
        enum ep_value kind = ep_key_value(r->type, (enum ep_key)k);

        if (!ep_record_has(r, (enum ep_key)k))
            continue;
        ep_buf_addf(b, " %s=", ep_key_table[k].name);
        if (kind == EP_V_NUMBER || kind == EP_V_INTEGER)
            ep_buf_addf(b, kind == EP_V_INTEGER ? "%.0f" : "%.7g", r->v[k].num);
        else
            ep_buf_add_escaped(b, r->v[k].str.ptr, r->v[k].str.len);
    }
    ep_buf_addc(b, '\n');
}

static void print(struct run *run, const struct ep_record *r,
                  const struct ep_line *line)
{
    if (run->io.opt->format == EP_CLI_JSONL ||
        (r->type == EP_OTHER && run->io.opt->format == EP_CLI_TEXT)) {
        ep_filter_pass(&run->io, r, line);
    } else if (r->type == EP_OTHER) {
        run->left++;
    } else if (run->io.opt->format == EP_CLI_TSV) {
        ep_filter_write(&run->io, r);
    } else {
        ep_buf_reset(&run->io.text);
        add_text(&run->io.text, r);
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
            "have no tsv form",
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
    opt.io.no_merge |= opt.stats && !opt.where && !opt.io.follow;
    if (opt.io.format < 0)
        opt.io.format = ep_cli_default_format(opt.io.output);
    patterns = ep_patterns_new();
    if (use_patterns(patterns, &err) < 0 ||
        ep_select_init(&run.want, opt.types, opt.where, opt.since, opt.until,
                       &err) < 0 ||
        ep_filter_open(&run.io, &opt.io, (const char *const *)argv + first,
                       argc - first, &err) < 0) {
        ep_cli_error(&err);
        ep_patterns_free(patterns);
        return EP_EXIT_TROUBLE;
    }
    rc = copy(&run, &err);
    if (rc >= 0 && opt.stats)
        print_stats(&run);
    else if (opt.io.verbose)
        print_types(&run, stderr);
    remark(&run);
    if (ep_stream_inputs(run.io.in) == 0 && !opt.io.follow &&
        !(opt.io.interval > 0))
        idle = "cannot read anything: no file of a known format was given";
    rc = ep_filter_close(&run.io, rc, idle, run.out == 0, &err);
    ep_patterns_free(patterns);
    return ep_cli_end(rc);
}

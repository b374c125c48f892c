/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - see filter.h. */
#include "config.h"

#include "record/filter.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/url.h"
#include "record/import.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void complain(void *ctx, const struct ep_error *err)
{
    (void)ctx;
    ep_cli_error(err);
}

/* Take the progress off the terminal. */
static void wipe(void *ctx)
{
    struct ep_filter *f = ctx;

    if (f->shown)
        (void)fprintf(stderr, "\r%60s\r", "");
    f->shown = false;
}

/* The input has nothing for us at present: let the reader see what we have. */
static void flush(void *ctx)
{
    const struct ep_filter *f = ctx;

    if (f->opt->idle)
        f->opt->idle(f->opt->idle_ctx);
    if (f->prom)
        ep_prom_out_wait(f->prom);
    else
        (void)ep_outfile_ok(f->file, true);
}

/* Look at the clock once in so many records; show progress so often. */
#define LOOK 1024
#define EVERY 0.2 /* s */

/* "43 %, 1.2 of 2.8 GiB, 140 MB/s", over and over. */
static void progress(struct ep_filter *f)
{
    double now = ep_clock_now(&ep_clock_mono);
    uint64_t done, total;
    struct ep_buf b;

    if (!(now >= f->due))
        return;
    ep_buf_init(&b);
    if (ep_stream_progress(f->in, &done, &total) && total) {
        ep_buf_addf(&b, "%3.0f %%, ", 100 * (double)done / (double)total);
        ep_num_format_size(&b, (double)done);
        ep_buf_adds(&b, " of ");
        ep_num_format_size(&b, (double)total);
        ep_buf_adds(&b, ", ");
        ep_num_format_si(&b, (double)done / (now - f->begun), "B/s");
        (void)fprintf(stderr, "\r%-60s", b.ptr);
        f->shown = true;
    }
    f->due = now + EVERY;
    ep_buf_free(&b);
}

/* A file, or /dev/null: neither the terminal nor a pipe that may lead to it. */
static bool is_out_of_sight(FILE *out)
{
    struct stat st;

    return fstat(fileno(out), &st) == 0 && !S_ISFIFO(st.st_mode) &&
           !S_ISSOCK(st.st_mode) && !isatty(fileno(out));
}

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* A stream without an end ends by a signal, and all is written then; a
   second one ends the program at once. */
static void catch_signals(void)
{
    struct sigaction act = {.sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

    act.sa_handler = on_signal;
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
}

void ep_filter_format(struct ep_filter_options *opt)
{
    if (opt->format < 0)
        opt->format =
            opt->columns ? EP_CLI_TSV : ep_cli_default_format(opt->output);
}

static int open_output(struct ep_filter *f, struct ep_error *err)
{
    const struct ep_filter_options *opt = f->opt;

    if (opt->columns && opt->format != EP_CLI_TSV)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --columns with that --format: it "
                            "needs tsv");
    if (opt->columns && ep_columns_init(&f->columns, opt->columns, err) < 0)
        return err->code;
    if (opt->format == EP_CLI_PROM) {
        f->prom = ep_prom_out_open(opt->output, complain, NULL, err);
        f->out = stdout;
        return f->prom ? 0 : err->code;
    }
    f->file = ep_outfile_open(opt->output, err);
    if (!f->file)
        return err->code;
    f->out = ep_outfile_stream(f->file);
    return 0;
}

/* Do the options for reading on and on go together with the inputs? */
static int check_inputs(const struct ep_filter_options *opt,
                        const char *const *paths, int n, struct ep_error *err)
{
    char shown[200];

    for (int i = 0; i < n && opt->follow; i++)
        if (ep_url_is(paths[i]))
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --follow: %s can be read again "
                                "and again only (--interval)",
                                ep_url_shown(shown, sizeof shown, paths[i]));
    if (!(opt->interval > 0))
        return opt->rounds ? ep_error_set(err, EP_EUSAGE,
                                          "cannot use --rounds: no --interval "
                                          "given")
                           : 0;
    if (opt->follow)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use --interval together with --follow");
    for (int i = 0; i < n || !n; i++)
        if (!n || strcmp(paths[i], "-") == 0)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --interval: standard input cannot "
                                "be read again");
    return 0;
}

int ep_filter_open(struct ep_filter *f, const struct ep_filter_options *opt,
                   const char *const *paths, int n, struct ep_error *err)
{
    struct ep_stream_config how = {.strict = opt->strict,
                                   .no_merge = opt->no_merge,
                                   .world = opt->world,
                                   .follow = opt->follow,
                                   .lateness = opt->lateness,
                                   .interval = opt->interval,
                                   .rounds = opt->rounds,
                                   .stop = &stop,
                                   .correct = opt->correct,
                                   .correct_ctx = opt->correct_ctx,
                                   .complain = complain,
                                   .on_wait = flush,
                                   .ctx = f};

    *f = (struct ep_filter){.opt = opt};
    if (check_inputs(opt, paths, n, err) < 0)
        return EP_EUSAGE;
    if (opt->from) {
        how.from = ep_importer_find(opt->from);
        if (!how.from)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --from %.40s: no such format (see "
                                "tlmcat --formats)",
                                opt->from);
    }
    if (open_output(f, err) < 0)
        return err->code;
    ep_buf_init(&f->text);
    f->begun = ep_clock_now(&ep_clock_mono);
    f->due = (double)NAN;
    if (!opt->quiet && isatty(STDERR_FILENO) &&
        ((f->prom && !ep_prom_out_is_stdout(f->prom)) ||
         is_out_of_sight(f->out)))
        f->due = f->begun + EVERY;
    ep_cli_before_message(wipe, f);
    if (opt->follow || opt->interval > 0 || opt->stoppable)
        catch_signals();
    f->in = ep_stream_open(paths, n, &how);
    return 0;
}

int ep_filter_next(struct ep_filter *f, const struct ep_record **r,
                   const struct ep_line **line, struct ep_error *err)
{
    int rc;

    if (f->file && !ep_outfile_ok(f->file, false))
        return 0;
    if (f->opt->stoppable && stop)
        return 0;
    if (++f->unseen >= LOOK) {
        f->unseen = 0;
        progress(f);
    }
    rc = ep_stream_next(f->in, r, line, err);
    if (f->prom)
        ep_prom_out_back(f->prom);
    return rc;
}

int ep_filter_reject(struct ep_filter *f, const struct ep_error *why,
                     struct ep_error *err)
{
    return ep_stream_reject(f->in, err, "%s", why->msg);
}

bool ep_filter_flush(struct ep_filter *f)
{
    if (f->prom)
        return true; /* numbers that are written anew */
    return ep_outfile_ok(f->file, true) && !ep_outfile_is_whole(f->file);
}

void ep_filter_write(struct ep_filter *f, const struct ep_record *r)
{
    if (f->prom) {
        ep_prom_out_add(f->prom, r);
        return;
    }
    ep_buf_reset(&f->text);
    if (f->columns.n) {
        if (!f->headers)
            ep_columns_header(&f->columns, &f->text);
        f->headers = 1;
        ep_columns_print(&f->columns, r, &f->text);
    } else if (f->opt->format == EP_CLI_TSV) {
        if (!(f->headers >> r->type & 1))
            ep_record_tsv_header(r->type, &f->text);
        f->headers |= UINT32_C(1) << r->type;
        ep_record_print_tsv(r, &f->text);
    } else {
        ep_record_print(r, &f->text);
    }
    (void)fwrite_unlocked(f->text.ptr, 1, f->text.len, f->out);
}

void ep_filter_pass(struct ep_filter *f, const struct ep_record *r,
                    const struct ep_line *line)
{
    if (line) {
        bool ended = line->terminated && line->ptr[line->len] == '\n';

        (void)fwrite_unlocked(line->ptr, 1, line->len + ended, f->out);
        if (!ended)
            (void)putc_unlocked('\n', f->out);
        return;
    }
    ep_buf_reset(&f->text);
    ep_record_print(r, &f->text);
    (void)fwrite_unlocked(f->text.ptr, 1, f->text.len, f->out);
}

/* What the reading came to. */
static int judge(const struct ep_filter *f, const char *idle, bool found)
{
    uint64_t bad = ep_stream_bad(f->in);

    if (bad > 1 && !f->opt->quiet)
        ep_cli_warn("%llu bad lines in all", (unsigned long long)bad);
    if (ep_stream_failed(f->in) > 1)
        ep_cli_warn("%d inputs could not be read in all",
                    ep_stream_failed(f->in));
    if (ep_stream_missed(f->in) && !f->opt->quiet)
        ep_cli_warn(
            "%llu rounds were left out: others took longer than "
            "--interval",
            (unsigned long long)ep_stream_missed(f->in));
    if (ep_stream_failed(f->in) || bad > (uint64_t)f->opt->max_bad)
        return ep_cli_trouble();
    if (idle) {
        ep_cli_warn("%s", idle);
        return ep_cli_trouble();
    }
    return f->opt->exit_code && found ? EP_EXIT_FINDING : EP_EXIT_CLEAN;
}

/* Put the output in place, or (keep is false) leave things as they were. */
static int finish_output(struct ep_filter *f, bool keep, struct ep_error *err)
{
    uint64_t refused;

    if (!f->prom) {
        if (keep)
            return ep_outfile_commit(f->file, err);
        ep_outfile_abort(f->file);
        return 0;
    }
    refused = ep_prom_out_refused(f->prom);
    if (refused)
        ep_cli_warn("%llu records had no room among the series",
                    (unsigned long long)refused);
    return ep_prom_out_close(f->prom, keep, err);
}

int ep_filter_close(struct ep_filter *f, int rc, const char *idle, bool found,
                    struct ep_error *err)
{
    int status = ep_cli_trouble();
    struct ep_error why;
    bool to_stdout;

    wipe(f);
    ep_cli_before_message(NULL, NULL);
    to_stdout = f->prom ? ep_prom_out_is_stdout(f->prom) : f->out == stdout;
    if (f->file && !ep_outfile_ok(f->file, false))
        idle = NULL; /* the reading was given up for that */
    if (rc >= 0)
        status = judge(f, idle, found);
    else
        ep_cli_error(err);
    if (f->at_end)
        status = f->at_end(f->at_end_ctx, status, f->out);
    /* standard output keeps what was found */
    if (finish_output(f, f->at_end || (rc >= 0 && (!idle || to_stdout)), &why) <
        0) {
        ep_cli_error(&why);
        status = ep_cli_trouble();
        f->lost = true;
    }
    ep_stream_close(f->in);
    ep_buf_free(&f->text);
    return status;
}

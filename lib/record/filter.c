/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - see filter.h. */
#include "config.h"

#include "record/filter.h"

#include "base/clock.h"
#include "base/num.h"
#include "record/import.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
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

/* A stream that is followed ends by a signal, and all is written then; a
   second one ends the program at once. */
static void catch_signals(void)
{
    struct sigaction act = {.sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

    act.sa_handler = on_signal;
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
}

int ep_filter_open(struct ep_filter *f, const struct ep_filter_options *opt,
                   const char *const *paths, int n, struct ep_error *err)
{
    struct ep_stream_config how = {.strict = opt->strict,
                                   .no_merge = opt->no_merge,
                                   .world = opt->world,
                                   .follow = opt->follow,
                                   .lateness = opt->lateness,
                                   .stop = &stop,
                                   .complain = complain,
                                   .on_wait = flush,
                                   .ctx = f};

    *f = (struct ep_filter){.opt = opt};
    if (opt->from) {
        how.from = ep_importer_find(opt->from);
        if (!how.from)
            return ep_error_set(err, EP_EUSAGE,
                                "cannot use --from %.40s: no such format (see "
                                "tlmcat --formats)",
                                opt->from);
    }
    f->file = ep_outfile_open(opt->output, err);
    if (!f->file)
        return err->code;
    f->out = ep_outfile_stream(f->file);
    ep_buf_init(&f->text);
    f->begun = ep_clock_now(&ep_clock_mono);
    f->due = (double)NAN;
    if (!opt->quiet && isatty(STDERR_FILENO) && is_out_of_sight(f->out))
        f->due = f->begun + EVERY;
    ep_cli_before_message(wipe, f);
    if (opt->follow)
        catch_signals();
    f->in = ep_stream_open(paths, n, &how);
    return 0;
}

int ep_filter_next(struct ep_filter *f, const struct ep_record **r,
                   const struct ep_line **line, struct ep_error *err)
{
    if (!ep_outfile_ok(f->file, false))
        return 0;
    if (++f->unseen >= LOOK) {
        f->unseen = 0;
        progress(f);
    }
    return ep_stream_next(f->in, r, line, err);
}

int ep_filter_reject(struct ep_filter *f, const struct ep_error *why,
                     struct ep_error *err)
{
    return ep_stream_reject(f->in, err, "%s", why->msg);
}

void ep_filter_write(struct ep_filter *f, const struct ep_record *r)
{
    ep_buf_reset(&f->text);
    if (f->opt->format == EP_CLI_TSV) {
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
    if (ep_stream_failed(f->in) || bad > (uint64_t)f->opt->max_bad)
        return EP_EXIT_TROUBLE;
    if (idle) {
        ep_cli_warn("%s", idle);
        return EP_EXIT_TROUBLE;
    }
    return f->opt->exit_code && found ? EP_EXIT_FINDING : EP_EXIT_CLEAN;
}

int ep_filter_close(struct ep_filter *f, int rc, const char *idle, bool found,
                    struct ep_error *err)
{
    int status = EP_EXIT_TROUBLE;

    wipe(f);
    ep_cli_before_message(NULL, NULL);
    if (!ep_outfile_ok(f->file, false))
        idle = NULL; /* the reading was given up for that */
    if (rc >= 0)
        status = judge(f, idle, found);
    if (rc < 0 || (idle && f->out != stdout))
        ep_outfile_abort(f->file); /* standard output keeps what was found */
    else
        rc = ep_outfile_commit(f->file, err);
    if (rc < 0) {
        ep_cli_error(err);
        status = EP_EXIT_TROUBLE;
    }
    ep_stream_close(f->in);
    ep_buf_free(&f->text);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - what all programs that read records have in common: the options,
 * the streams in and out, the policy for bad lines, the exit status.
 *
 * For the programs in bin/ only: like base/cli.h it prints messages.
 */
#ifndef EP_RECORD_FILTER_H
#define EP_RECORD_FILTER_H

#include "base/buf.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/outfile.h"
#include "record/columns.h"
#include "record/prom_out.h"
#include "record/record.h"
#include "record/stream.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ep_filter_options {
    int format; /* enum ep_cli_format, or -1: ep_filter_format() */
    const char *output;
    const char *columns; /* of tsv; NULL: those of the types */
    const char *from;    /* name of a format; NULL: by content */
    bool no_merge;       /* for programs that offer it; likewise: */
    int64_t world;       /* ranks of the job; 0: unknown */
    bool follow; /* until SIGINT or SIGTERM, see struct ep_stream_config */
    double lateness;
    double interval; /* read all again and again; 0: once */
    int64_t rounds;  /* so often; 0: until SIGINT or SIGTERM */
    void (*correct)(void *correct_ctx, struct ep_record *r); /* likewise */
    void *correct_ctx;
    /* for programs that mind the time: called when the input has nothing, and
       each second until it has; may write records; likewise */
    void (*idle)(void *idle_ctx);
    void *idle_ctx;
    /* SIGINT or SIGTERM is the end of the input; likewise */
    bool stoppable;
    bool quiet, verbose, strict, exit_code;
    int64_t max_bad;
};

/* Entries for a program's table of options; o is a struct ep_filter_options. */
#define EP_FILTER_OPTIONS(o, verbose_help, exit_code_help)                     \
    EP_FILTER_OPTIONS_AS(o, EP_CLI_RECORD_FORMATS, verbose_help, exit_code_help)
/* With other forms of output. */
#define EP_FILTER_OPTIONS_AS(o, formats, verbose_help, exit_code_help)          \
    {'f',         "format", EP_OPT_CHOICE,                                      \
     &(o).format, formats,  "form of the output [text on a terminal]",          \
     0,           0},                                                           \
        {0,         "from",   EP_OPT_STRING,                                    \
         &(o).from, "FORMAT", "read the input as FORMAT [by its content]",      \
         0,         0},                                                         \
        {'o',         "output", EP_OPT_STRING,                                  \
         &(o).output, "FILE",   "write to FILE, whole or not at all",           \
         0,           0},                                                       \
        {'q', "quiet", EP_OPT_FLAG, &(o).quiet, NULL, "no summary, no remarks", \
         0,   0},                                                               \
        {'v', "verbose", EP_OPT_FLAG, &(o).verbose, NULL, verbose_help, 0, 0},  \
        {0,                                                                     \
         "columns",                                                             \
         EP_OPT_STRING,                                                         \
         &(o).columns,                                                          \
         "KEY[,KEY...]",                                                        \
         "tsv with these columns, one header",                                  \
         0,                                                                     \
         0},                                                                    \
        {0,    "exit-code",    EP_OPT_FLAG, &(o).exit_code,                     \
         NULL, exit_code_help, 0,           0},                                 \
        {0,          "max-bad",                                                 \
         EP_OPT_INT, &(o).max_bad,                                              \
         "N",        "bad lines that are accepted [0]",                         \
         0,          1e15},                                                     \
    {                                                                           \
        0, "strict", EP_OPT_FLAG, &(o).strict, NULL,                            \
            "stop at the first bad line", 0, 0                                  \
    }

/* Visible so that it can stand on the stack; fields are read-only. */
struct ep_filter {
    const struct ep_filter_options *opt; /* borrowed */
    struct ep_stream *in;
    struct ep_outfile *file;   /* NULL with prom, */
    struct ep_prom_out *prom;  /* which has this instead */
    struct ep_columns columns; /* n 0: those of the types */
    FILE *out;          /* where the program writes; with prom it does not */
    struct ep_buf text; /* room for the program to format in */
    /* progress on a terminal: when it began, when it is due; NaN: never */
    double begun, due;
    bool shown;
    uint32_t unseen;  /* records since the clock was looked at */
    bool lost;        /* set by ep_filter_close: the output was not written */
    uint32_t headers; /* bit t: the tsv header of type t was written */
    /* for the program to set: writes the end to out, told the exit status, and
       returns that there shall be. The output is kept then, whatever happened;
       messages so far were given. NULL: none */
    int (*at_end)(void *at_end_ctx, int status, FILE *out);
    void *at_end_ctx;
};

/*
 * Settle opt->format if it was not given: tsv with columns, else what
 * ep_cli_default_format has. For main(), before it looks at the format.
 */
void ep_filter_format(struct ep_filter_options *opt);

/*
 * Open n inputs (0: standard input) and the output. The output is flushed
 * before an input would wait, so that a pipeline is prompt; with prom a file is
 * written then and now, see prom_out.h. While files are
 * read, progress is shown on stderr if that is a terminal and the output goes
 * to a file or to /dev/null (not with quiet). On error nothing is open: EP_EUSAGE
 * for options that do not go together.
 */
int ep_filter_open(struct ep_filter *f, const struct ep_filter_options *opt,
                   const char *const *paths, int n,
                   struct ep_error *err) EP_MUST_USE;

/*
 * The next record, as ep_stream_next: 1, 0 at the end, or an error (strict).
 * Also 0 once the output has failed: there is nobody to work for, and
 * ep_filter_close will say so.
 */
int ep_filter_next(struct ep_filter *f, const struct ep_record **r,
                   const struct ep_line **line,
                   struct ep_error *err) EP_MUST_USE;

/* The record just read is refused for the reason in why; see ep_stream. */
int ep_filter_reject(struct ep_filter *f, const struct ep_error *why,
                     struct ep_error *err) EP_MUST_USE;

/*
 * Push out what was written so far. True if that is with the reader, for good:
 * not into a file that is put in place at the end.
 */
bool ep_filter_flush(struct ep_filter *f) EP_MUST_USE;

/* Write a record in the form asked for: jsonl, tsv with its header, prom. */
void ep_filter_write(struct ep_filter *f, const struct ep_record *r);

/*
 * Pass a record on as it came: the line that it was read from, unknown keys
 * and all, or (line is NULL: it was imported) as JSON.
 */
void ep_filter_pass(struct ep_filter *f, const struct ep_record *r,
                    const struct ep_line *line);

/*
 * End: rc is what ended the reading (0 or an error, whose message is in err),
 * idle is why nothing could be done ("cannot ...: no step record in the
 * input") or NULL, found whether there was a finding. Says what is left to
 * say, commits the output (or, after an error or with nothing done, leaves a
 * file as it was) and frees everything. Returns an exit status, after trouble
 * ep_cli_trouble().
 */
int ep_filter_close(struct ep_filter *f, int rc, const char *idle, bool found,
                    struct ep_error *err) EP_MUST_USE;

#endif

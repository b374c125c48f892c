/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.h - command lines from one table per program.
 *
 * The table is the only place where an option is written down: it gives
 * getopt_long(3) its strings, checks types and ranges, prints --help, and
 * (by the hidden --help-options, as tab-separated values) feeds the tests
 * that hold man page and completion against it. -h/--help and -V/--version
 * are added to every table. Options come before operands; "--" ends them.
 *
 * The same letter means the same in every program: -f format, -h help, -j
 * threads, -n dry run, -o output, -q quiet, -s seed, -v verbose, -V version.
 */
#ifndef EP_BASE_OPT_H
#define EP_BASE_OPT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an option's argument is, and what its target points to. */
enum ep_opt_kind {
    EP_OPT_FLAG,     /* bool: set to true, takes no argument        */
    EP_OPT_INT,      /* int64_t                                     */
    EP_OPT_DOUBLE,   /* double                                      */
    EP_OPT_SIZE,     /* int64_t: bytes, as ep_num_size reads them   */
    EP_OPT_DURATION, /* double: seconds, as ep_num_duration does    */
    EP_OPT_STRING,   /* const char *: borrowed from argv            */
    EP_OPT_CHOICE,   /* int: index into arg split at '|'            */
    EP_OPT_LIST,     /* struct ep_opt_list: given any number of times;
                        of all others the last one counts           */
};

enum { EP_OPT_LIST_MAX = 64 };

/* What was given, in order; the texts are borrowed from argv. */
struct ep_opt_list {
    const char *v[EP_OPT_LIST_MAX];
    int n;
};

struct ep_opt {
    int letter;       /* 'w', or 0 for none */
    const char *name; /* "window" */
    enum ep_opt_kind kind;
    void *target;     /* holds the default when parsing begins */
    const char *arg;  /* "N"; for a choice "text|jsonl"; NULL for a flag */
    const char *help; /* one line, the default in brackets at its end */
    double min, max;  /* allowed range of a number, both ends included */
};

struct ep_program {
    const char *name;
    const char *operands; /* "[FILE ...]" */
    const char *purpose;  /* one sentence, no full stop */
    const struct ep_opt *opts;
    size_t nopts;
};

enum ep_opt_verdict {
    EP_OPT_GO = 0,   /* carry on */
    EP_OPT_DONE = 1, /* help or version was printed: leave with status 0 */
};

/*
 * Parse argv and store what it says in the targets; *operand is the index of
 * the first operand. Returns an enum ep_opt_verdict, or EP_EUSAGE with the
 * message "cannot VERB OBJECT: reason" (the targets are then unspecified).
 * --help goes to stdout. Cost: O(argc * nopts).
 */
int ep_opt_parse(const struct ep_program *prog, int argc, char **argv,
                 int *operand, struct ep_error *err) EP_MUST_USE;

#endif

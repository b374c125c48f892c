/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - what every main() does: for the programs in bin/ only.
 *
 * The one module below bin/ that prints messages; it decides nothing.
 */
#ifndef EP_BASE_CLI_H
#define EP_BASE_CLI_H

#include "base/err.h"
#include "base/opt.h"

#include <stdbool.h>

/* Exit statuses (evenpace(7)). */
enum {
    EP_EXIT_CLEAN = 0,
    EP_EXIT_FINDING = 1, /* only with --exit-code */
    EP_EXIT_TROUBLE = 2,
};

/*
 * The forms of output that programs share, in the order of EP_CLI_FORMATS; and
 * of programs whose output is records.
 */
enum ep_cli_format {
    EP_CLI_TEXT,
    EP_CLI_JSONL,
    EP_CLI_TSV,
    EP_CLI_PROM,
    EP_CLI_NAGIOS
};
#define EP_CLI_FORMATS "text|jsonl|tsv"
#define EP_CLI_RECORD_FORMATS EP_CLI_FORMATS "|prom"
#define EP_CLI_CHECK_FORMATS EP_CLI_RECORD_FORMATS "|nagios"

/*
 * First thing in main: opens /dev/null on descriptors 0 to 2 that the caller
 * closed (in the wrong direction, so that their use still fails with EBADF
 * and no file opened later lands on them), gives stdout a 64 KiB buffer
 * (line-buffered on a terminal) and reads the options. Returns the index of
 * the first operand; prints and exits itself on -h, -V (0) and on a wrong
 * command line (2).
 */
int ep_cli_begin(const struct ep_program *prog, int argc, char **argv);

/*
 * Text if output (the argument of -o, NULL without) is standard output and
 * that is a terminal, JSON Lines elsewhere.
 */
int ep_cli_default_format(const char *output);

/*
 * Call fn(ctx) before each message from now on (NULL: no more): a program that
 * shows progress takes it off the terminal then.
 */
void ep_cli_before_message(void (*fn)(void *ctx), void *ctx);

/* "program: message" on stderr, one line. */
void ep_cli_warn(const char *fmt, ...) EP_PRINTF(1, 2);
void ep_cli_error(const struct ep_error *err);

/*
 * For programs that a monitoring system reads: hand messages to fn instead of
 * stderr (NULL: to stderr again), and leave with another status after trouble
 * than EP_EXIT_TROUBLE, also in ep_cli_begin. May be called before that.
 */
void ep_cli_divert(void (*fn)(void *ctx, const char *message), void *ctx);
void ep_cli_set_trouble(int status);
int ep_cli_trouble(void); /* the status after trouble */

/*
 * Programs that are checks with -f nagios. The first comes before ep_cli_begin:
 * if "nagios" is among the arguments, as the argument of an option, a bad
 * option is told the way of checks as well, "PROGRAM UNKNOWN - message" on
 * stdout and status 3. The second behind it settles it: so are all messages, or
 * none, until ep_cli_divert says otherwise.
 */
enum { EP_CHECK_UNKNOWN = 3 };
void ep_cli_expect_check(int argc, char **argv);
void ep_cli_check(bool is_check);

/*
 * Last thing in main: flush stdout and report what failed on it ("cannot
 * write standard output: reason"). Returns status, or ep_cli_trouble().
 */
int ep_cli_end(int status) EP_MUST_USE;

#endif

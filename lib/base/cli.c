/* SPDX-License-Identifier: Apache-2.0 */
/* cli.c - see cli.h. */
#include "config.h"

#include "base/cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program = "evenpace";
static void (*before_message)(void *ctx);
static void *before_message_ctx;
static void (*divert)(void *ctx, const char *message);
static void *divert_ctx;
static int trouble = EP_EXIT_TROUBLE;

static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) != -1)
            continue;
        /* open() takes the lowest free number: fd itself */
        if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(EP_EXIT_TROUBLE);
    }
}

int ep_cli_begin(const struct ep_program *prog, int argc, char **argv)
{
    static char buffer[64 << 10];
    struct ep_error err;
    int operand = 0, rc;

    program = prog->name;
    fill_standard_descriptors();
    (void)setvbuf(stdout, buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF,
                  sizeof buffer);
    rc = ep_opt_parse(prog, argc, argv, &operand, &err);
    if (rc < 0) {
        ep_cli_error(&err);
        exit(trouble);
    }
    if (rc == EP_OPT_DONE)
        exit(ep_cli_end(EP_EXIT_CLEAN));
    return operand;
}

int ep_cli_default_format(const char *output)
{
    if (output && strcmp(output, "-") != 0)
        return EP_CLI_JSONL;
    return isatty(STDOUT_FILENO) ? EP_CLI_TEXT : EP_CLI_JSONL;
}

void ep_cli_before_message(void (*fn)(void *ctx), void *ctx)
{
    before_message = fn;
    before_message_ctx = ctx;
}

void ep_cli_warn(const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    int n;

    if (before_message)
        before_message(before_message_ctx);
    /* one write, so that ranks that share a terminal do not mix lines */
    va_start(ap, fmt);
    n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n >= 0 && divert)
        divert(divert_ctx, line);
    else if (n >= 0)
        (void)fprintf(stderr, "%s: %s\n", program, line);
}

void ep_cli_divert(void (*fn)(void *ctx, const char *message), void *ctx)
{
    divert = fn;
    divert_ctx = ctx;
}

void ep_cli_set_trouble(int status)
{
    trouble = status;
}

int ep_cli_trouble(void)
{
    return trouble;
}

/* "SKEWDETECT UNKNOWN - message": a '|' would begin data. */
static void say_unknown(void *ctx, const char *message)
{
    (void)ctx;
    for (const char *p = program; *p; p++)
        (void)putchar(toupper((unsigned char)*p));
    (void)fputs(" UNKNOWN - ", stdout);
    for (const char *p = message; *p; p++)
        (void)putchar(*p == '|' ? '/' : *p);
    (void)putchar('\n');
}

void ep_cli_check(bool is_check)
{
    ep_cli_divert(is_check ? say_unknown : NULL, NULL);
    ep_cli_set_trouble(is_check ? EP_CHECK_UNKNOWN : EP_EXIT_TROUBLE);
}

void ep_cli_expect_check(int argc, char **argv)
{
    static const char word[] = "nagios";

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t n = strlen(argv[i]), k = sizeof word - 1;

        if (n < k || strcmp(argv[i] + n - k, word) != 0)
            continue;
        /* -fnagios and --format=nagios, or a word behind -f */
        if (n > k ? *argv[i] == '-' : i > 1 && *argv[i - 1] == '-')
            ep_cli_check(true);
    }
}

void ep_cli_error(const struct ep_error *err)
{
    ep_cli_warn("%s", err->msg);
}

int ep_cli_end(int status)
{
    int errnum;

    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    errnum = errno ? errno : EIO;
    {
        struct ep_error err;

        (void)ep_error_sys(&err, errnum, "cannot write standard output");
        ep_cli_error(&err);
    }
    return trouble;
}

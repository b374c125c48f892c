/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_opt.c - options that are given several times: a list keeps all of them
 * in order, of the others the last counts. The rest of opt.h is in base.bats,
 * through the programs.
 */
#include "config.h"

#include "base/opt.h"
#include "tap.h"

#include <string.h>

static struct {
    struct ep_opt_list list;
    const char *text;
} opt;

static const struct ep_opt options[] = {
    {'l', "list", EP_OPT_LIST, &opt.list, "X", "any number of times", 0, 0},
    {0, "text", EP_OPT_STRING, &opt.text, "X", "once", 0, 0},
};

static const struct ep_program program = {
    .name = "test",
    .operands = "[FILE ...]",
    .purpose = "Test",
    .opts = options,
    .nopts = sizeof options / sizeof options[0],
};

static int parse(char **argv, int argc, int *operand, struct ep_error *err)
{
    memset(&opt, 0, sizeof opt);
    err->msg[0] = '\0';
    return ep_opt_parse(&program, argc, argv, operand, err);
}

int main(void)
{
    char name[] = "test", l[] = "-l", list[] = "--list=c,d", a[] = "a",
         empty[] = "", text[] = "--text", file[] = "file";
    char *argv[] = {name, l,     a,    list, text, a,
                    l,    empty, text, file, file, NULL};
    char *many[2 * EP_OPT_LIST_MAX + 4] = {name};
    struct ep_error err;
    int operand = 0, n = 1;

    ok(parse(argv, 11, &operand, &err) == EP_OPT_GO);
    ok(operand == 10);
    ok(opt.list.n == 3);
    ok(strcmp(opt.list.v[0], "a") == 0);
    ok(strcmp(opt.list.v[1], "c,d") == 0);
    ok(strcmp(opt.list.v[2], "") == 0);
    ok(opt.text && strcmp(opt.text, "file") == 0);
    ok(parse(argv, 1, &operand, &err) == EP_OPT_GO && opt.list.n == 0);
    ok(parse(argv, 2, &operand, &err) == EP_EUSAGE);
    ok(strstr(err.msg, "'-l': it needs an argument") != NULL);

    for (int i = 0; i < EP_OPT_LIST_MAX; i++) {
        many[n++] = l;
        many[n++] = a;
    }
    ok(parse(many, n, &operand, &err) == EP_OPT_GO);
    ok(opt.list.n == EP_OPT_LIST_MAX);
    many[n++] = l;
    many[n++] = file;
    ok(parse(many, n, &operand, &err) == EP_EUSAGE);
    ok(strcmp(err.msg,
              "cannot use 'file' for --list: given more than 64 "
              "times") == 0);
    return tap_done();
}

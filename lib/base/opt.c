/* SPDX-License-Identifier: Apache-2.0 */
/* opt.c - see opt.h. */
#include "config.h"

#include "base/opt.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTS 60

/* Values that getopt_long returns: an option's index, above any letter. */
enum { FIRST = 256, SAY_HELP = FIRST + MAX_OPTS, SAY_VERSION, SAY_TABLE };

static const struct ep_opt standard[] = {
    {'h', "help", EP_OPT_FLAG, NULL, NULL, "print this and leave", 0, 0},
    {'V', "version", EP_OPT_FLAG, NULL, NULL, "print the version and leave", 0,
     0},
};

#define NSTANDARD (sizeof standard / sizeof standard[0])

static void print_option(const struct ep_opt *o)
{
    char left[80];

    (void)snprintf(left, sizeof left, "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
                   o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name,
                   o->arg ? "=" : "", o->arg ? o->arg : "");
    if (strlen(left) > 26)
        (void)printf("  %s\n  %26s %s\n", left, "", o->help);
    else
        (void)printf("  %-26s %s\n", left, o->help);
}

static void print_help(const struct ep_program *p)
{
    (void)printf("usage: %s [OPTION ...]%s%s\n%s.\n\n", p->name,
                 *p->operands ? " " : "", p->operands, p->purpose);
    for (size_t i = 0; i < p->nopts; i++)
        print_option(&p->opts[i]);
    for (size_t i = 0; i < NSTANDARD; i++)
        print_option(&standard[i]);
    (void)printf("\nMore: man %s\n", p->name);
}

/* One line per option: letter, name, argument, help, tab-separated. */
static void print_table(const struct ep_program *p)
{
    for (size_t i = 0; i < p->nopts + NSTANDARD; i++) {
        const struct ep_opt *o =
            i < p->nopts ? &p->opts[i] : &standard[i - p->nopts];

        (void)printf("%c\t%s\t%s\t%s\n", o->letter ? o->letter : '-', o->name,
                     o->arg ? o->arg : "-", o->help);
    }
}

/* Index of text among the choices "a|b|c", or -1. */
static int choice_index(const char *choices, const char *text)
{
    size_t n = strlen(text);
    int index = 0;

    for (const char *c = choices;; index++) {
        size_t len = strcspn(c, "|");

        if (len == n && memcmp(c, text, n) == 0)
            return index;
        if (!c[len])
            return -1;
        c += len + 1;
    }
}

static int store(const struct ep_opt *o, const char *arg, struct ep_error *err)
{
    char shown[64];
    int rc = 0;

    switch (o->kind) {
    case EP_OPT_FLAG:
        *(bool *)o->target = true;
        return 0;
    case EP_OPT_STRING:
        *(const char **)o->target = arg;
        return 0;
    case EP_OPT_INT:
        rc = ep_num_int(arg, (int64_t)o->min, (int64_t)o->max, o->target, err);
        break;
    case EP_OPT_SIZE:
        rc = ep_num_size(arg, (int64_t)o->min, (int64_t)o->max, o->target, err);
        break;
    case EP_OPT_DOUBLE:
        rc = ep_num_double(arg, o->min, o->max, o->target, err);
        break;
    case EP_OPT_DURATION:
        rc = ep_num_duration(arg, o->min, o->max, o->target, err);
        break;
    case EP_OPT_LIST: {
        struct ep_opt_list *list = o->target;

        if (list->n == EP_OPT_LIST_MAX)
            rc = ep_error_set(err, EP_EUSAGE, "given more than %d times",
                              EP_OPT_LIST_MAX);
        else
            list->v[list->n++] = arg;
        break;
    }
    case EP_OPT_CHOICE: {
        int index = choice_index(o->arg, arg);

        if (index >= 0)
            *(int *)o->target = index;
        else
            rc = ep_error_set(err, EP_EUSAGE, "not one of %s", o->arg);
        break;
    }
    }
    if (rc < 0) {
        (void)ep_error_prefix(err, "cannot use '%s' for --%s",
                              ep_escape(shown, sizeof shown, arg, strlen(arg)),
                              o->name);
        if (err)
            err->code = EP_EUSAGE;
        return EP_EUSAGE;
    }
    return 0;
}

static void build(const struct ep_program *p, char *letters,
                  struct option *longs)
{
    char *l = letters;
    size_t i;

    *l++ = '+';
    *l++ = ':';
    for (i = 0; i < p->nopts; i++) {
        const struct ep_opt *o = &p->opts[i];

        longs[i] = (struct option){
            o->name, o->kind == EP_OPT_FLAG ? no_argument : required_argument,
            NULL, FIRST + (int)i};
        if (o->letter) {
            *l++ = (char)o->letter;
            if (o->kind != EP_OPT_FLAG)
                *l++ = ':';
        }
    }
    *l++ = 'h';
    *l++ = 'V';
    *l = '\0';
    longs[i++] = (struct option){"help", no_argument, NULL, SAY_HELP};
    longs[i++] = (struct option){"version", no_argument, NULL, SAY_VERSION};
    longs[i++] = (struct option){"help-options", no_argument, NULL, SAY_TABLE};
    longs[i] = (struct option){NULL, 0, NULL, 0};
}

static const struct ep_opt *find(const struct ep_program *p, int c)
{
    if (c >= FIRST)
        return &p->opts[c - FIRST];
    for (size_t i = 0; i < p->nopts; i++)
        if (p->opts[i].letter == c)
            return &p->opts[i];
    return NULL;
}

/* What getopt_long meant by '?' or ':'. */
static int complain(int c, const char *word, struct ep_error *err)
{
    char shown[64];

    (void)ep_escape(shown, sizeof shown, word, strlen(word));
    if (c == ':')
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use option '%s': it needs an argument",
                            shown);
    if (optopt >= FIRST)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot use option '%s': it takes no argument",
                            shown);
    if (optopt) {
        char letter = (char)optopt;

        return ep_error_set(
            err, EP_EUSAGE,
            "cannot use option '-%s': no such option (see --help)",
            ep_escape(shown, sizeof shown, &letter, 1));
    }
    return ep_error_set(
        err, EP_EUSAGE,
        "cannot use option '%s': no such option, or not unique (see --help)",
        shown);
}

int ep_opt_parse(const struct ep_program *prog, int argc, char **argv,
                 int *operand, struct ep_error *err)
{
    char letters[2 * MAX_OPTS + 8];
    struct option longs[MAX_OPTS + 4];
    int c;

    if (prog->nopts > MAX_OPTS)
        return ep_error_set(err, EP_ELIMIT, "cannot use a table of %zu options",
                            prog->nopts);
    build(prog, letters, longs);
    optind = 0;
    opterr = 0;
    while (optopt = 0,
           (c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        const struct ep_opt *o;
        int rc;

        if (c == 'h' || c == SAY_HELP || c == SAY_TABLE) {
            if (c == SAY_TABLE)
                print_table(prog);
            else
                print_help(prog);
            return EP_OPT_DONE;
        }
        if (c == 'V' || c == SAY_VERSION) {
            (void)printf("%s (evenpace) %s\n", prog->name, PACKAGE_VERSION);
            return EP_OPT_DONE;
        }
        if (c == '?' || c == ':')
            return complain(c, argv[optind - 1], err);
        o = find(prog, c);
        rc = o ? store(o, optarg, err)
               : ep_error_set(err, EP_EUSAGE, "cannot use option %d", c);
        if (rc < 0)
            return rc;
    }
    *operand = optind;
    return EP_OPT_GO;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_event.c - event records as text, what is new in them, the check of a
 * monitoring system, and which one an eid means. The texts wanted are written
 * by hand.
 */
#include "config.h"

#include "base/cli.h"
#include "record/event_pick.h"
#include "record/event_tally.h"
#include "record/event_text.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static struct ep_record_parser *parser;

/* An event of what is in rest; ts and since are 2023-11-14 22:13:20 UTC. */
static struct ep_record event(const char *rest)
{
    static char line[8192];
    struct ep_error err;
    struct ep_record r;

    (void)snprintf(line, sizeof line,
                   "{\"type\":\"event\",\"ts\":1700000000,\"since\":1700000000,"
                   "%s}",
                   rest);
    if (ep_record_parse(parser, line, strlen(line), &r, &err) < 0) {
        printf("# %s: %s\n", line, err.msg);
        exit(1);
    }
    return r;
}

static void check_text(void)
{
    static const struct {
        const char *rest;
        enum ep_event_news news;
        const char *want;
    } cases[] = {
        {"\"rank\":1,\"host\":\"n17\",\"eid\":\"rank=1@118\",\"kind\":"
         "\"onset\",\"scope\":\"rank\",\"id\":\"rank=1\",\"step\":118,"
         "\"factor\":2.031,\"p\":0.99,\"cause\":\"cpu-contention\","
         "\"evidence\":\"busy 21.3 ms -> 43.1 ms\"",
         EP_EVENT_FIRST,
         "22:13:20  ONSET   rank=1 (n17) 2.03x since step 118, sure 0.99\n"
         "          cpu-contention: busy 21.3 ms -> 43.1 ms\n"},
        {"\"job\":\"lm\",\"eid\":\"lm/job@7\",\"kind\":\"relief\",\"scope\":"
         "\"job\",\"step\":9,\"factor\":1.01,\"p\":1,\"cause\":\"straggler\","
         "\"evidence\":\"x\",\"gpu_hours\":0.02",
         EP_EVENT_FIRST,
         "22:13:20  relief  job lm 1.01x since step 9, sure 1.00\n"
         "          straggler: x, 0.02 device hours lost\n"},
        {"\"job\":\"lm\",\"eid\":\"lm/job@7\",\"kind\":\"onset\",\"scope\":"
         "\"stage\",\"id\":\"pp=2\",\"step\":7,\"factor\":1.5,\"p\":1,"
         "\"cause\":\"stage-imbalance\"",
         EP_EVENT_UPDATE,
         "22:13:20  update  stage lm/pp=2 1.50x since step 7, sure 1.00\n"
         "          stage-imbalance\n"
         "          eid lm/job@7\n"},
        {"\"eid\":\"rank=0@3\",\"kind\":\"onset\",\"scope\":\"rank\",\"id\":"
         "\"rank=0\",\"step\":5,\"factor\":1000",
         EP_EVENT_WORSE, "22:13:20  worse   rank=0 1e+03x since step 5\n"},
        {"\"eid\":\"src=n1,dst=n4@9\",\"kind\":\"onset\",\"scope\":\"link\","
         "\"id\":\"src=n1,dst=n4\",\"step\":9,\"factor\":3",
         EP_EVENT_FIRST,
         "22:13:20  ONSET   link src=n1,dst=n4 3.00x since "
         "step 9\n"},
        {"\"eid\":\"comm=0x1f@9\",\"kind\":\"onset\",\"scope\":\"group\","
         "\"id\":\"comm=0x1f\",\"step\":9,\"factor\":3",
         EP_EVENT_FIRST,
         "22:13:20  ONSET   group comm=0x1f 3.00x since "
         "step 9\n"},
        {"\"host\":\"n1\",\"eid\":\"host=n1@9\",\"kind\":\"onset\",\"scope\":"
         "\"host\",\"id\":\"host=n1\",\"step\":9,\"factor\":3",
         EP_EVENT_FIRST, "22:13:20  ONSET   host=n1 3.00x since step 9\n"},
        /* no pace, whatever the record says; no step: eid is not to be seen */
        {"\"rank\":3,\"host\":\"n2\",\"eid\":\"rank=3/x\",\"kind\":"
         "\"missing\",\"scope\":\"rank\",\"id\":\"rank=3\",\"factor\":2,"
         "\"p\":0.9",
         EP_EVENT_FIRST,
         "22:13:20  MISSING  rank=3 (n2) since 22:13:20, sure 0.90\n"
         "          eid rank=3/x\n"},
        /* the second episode of that name */
        {"\"eid\":\"rank=0@3#1\",\"kind\":\"onset\",\"scope\":\"rank\","
         "\"id\":\"rank=0\",\"step\":3,\"factor\":2",
         EP_EVENT_FIRST,
         "22:13:20  ONSET   rank=0 2.00x since step 3\n"
         "          eid rank=0@3#1\n"},
        {"\"job\":\"a\\u001b|b\",\"eid\":\"e\",\"kind\":\"spike\",\"scope\":"
         "\"job\",\"step\":3,\"factor\":2",
         EP_EVENT_FIRST,
         "22:13:20  spike   job a\\x1b|b 2.00x since step 3\n"
         "          eid e\n"},
    };
    struct ep_buf b;

    ep_buf_init(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_record r = event(cases[i].rest);

        ep_buf_reset(&b);
        ep_event_print_text(&r, cases[i].news, &b);
        if (!ok(strcmp(b.ptr, cases[i].want) == 0))
            printf("# got:\n%s# want:\n%s", b.ptr, cases[i].want);
    }
    ep_buf_free(&b);
}

#define RANK(kind, factor, more)                                               \
    "\"eid\":\"a@1\",\"kind\":\"" kind                                         \
    "\",\"scope\":\"rank\",\"id\":"                                            \
    "\"rank=0\",\"step\":1,\"factor\":" factor more

static void check_news(void)
{
    static const struct {
        const char *rest;
        enum ep_event_news news;
    } cases[] = {
        {RANK("onset", "1.5", ""), EP_EVENT_FIRST},
        {RANK("spike", "9", ""), EP_EVENT_FIRST},
        {RANK("onset", "2", ""), EP_EVENT_WORSE},
        {RANK("onset", "2", ""), EP_EVENT_UPDATE},
        {RANK("onset", "3", ",\"cause\":\"memory\""), EP_EVENT_UPDATE},
        {RANK("onset", "3.5", ",\"cause\":\"memory\""), EP_EVENT_WORSE},
        {RANK("relief", "1", ""), EP_EVENT_FIRST},
        /* another job's eid is another episode */
        {RANK("onset", "9", ",\"job\":\"x\""), EP_EVENT_FIRST},
        {RANK("missing", "9", ",\"job\":\"x\""), EP_EVENT_UPDATE},
    };
    struct ep_episodes *e = ep_episodes_new();

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_record r = event(cases[i].rest);

        ok(ep_episodes_take(e, &r) == cases[i].news);
    }
    ok(ep_episodes_count(e) == 2);
    ep_episodes_free(e);
}

/* What a check says of factors that are open, and of what is missing. */
static void check_status(void)
{
    static const struct {
        double factor; /* 0: nothing is open */
        bool missing, back, trouble;
        double warning, critical;
        int status;
    } cases[] = {
        {0, false, false, false, 1, 1.5, EP_NAGIOS_OK},
        {1.2, false, false, false, 1, 1.5, EP_NAGIOS_WARNING},
        {1.5, false, false, false, 1, 1.5, EP_NAGIOS_CRITICAL},
        {1.2, false, false, false, 1.3, 1.5, EP_NAGIOS_OK},
        {1.3, false, false, false, 1.3, 1.5, EP_NAGIOS_WARNING},
        {1.3, false, false, false, 1.3, 1.3, EP_NAGIOS_CRITICAL},
        {0, true, false, false, 9, 9, EP_NAGIOS_CRITICAL},
        {0, true, true, false, 1, 1.5, EP_NAGIOS_OK},
        {9, true, false, true, 1, 1.5, EP_NAGIOS_UNKNOWN},
        {0, false, false, true, 1, 1.5, EP_NAGIOS_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ep_nagios how = {.name = "X",
                                      .warning = cases[i].warning,
                                      .critical = cases[i].critical,
                                      .trouble = cases[i].trouble,
                                      .read = "y"};
        struct ep_tally *t = ep_tally_new();
        struct ep_record r;
        struct ep_buf b;

        ep_buf_init(&b);
        if (cases[i].missing) {
            r = event("\"eid\":\"m\",\"kind\":\"missing\",\"scope\":\"rank\"");
            (void)ep_tally_event(t, &r);
        }
        if (cases[i].back) {
            r = event("\"eid\":\"m\",\"kind\":\"relief\",\"scope\":\"rank\"");
            (void)ep_tally_event(t, &r);
        }
        if (cases[i].factor > 0) {
            r = event(RANK("onset", "1", ""));
            ep_record_set_num(&r, EP_K_FACTOR, cases[i].factor);
            ep_tally_open(t, &r);
        }
        if (!ok(ep_tally_print_nagios(t, &how, &b) == cases[i].status))
            printf("# case %zu: %s", i, b.ptr);
        ep_buf_free(&b);
        ep_tally_free(t);
    }
}

static void check_nagios(void)
{
    static const char want[] =
        "SKEWDETECT CRITICAL - 1 missing: rank=7 (n/2) since step 90; "
        "2 stragglers: rank=0 2.00x since step 1, host=n1 1.25x since step 4 | "
        "stragglers=2;;;0 worst=2;1.1;1.5;1 missing=1;;0;0 "
        "gpu_hours=0.75;;;0\n"
        "missing: rank=7 (n/2) since step 90\n"
        "slow: rank=0 2.00x since step 1\n"
        "  compute: a/b\n"
        "slow: host=n1 1.25x since step 4\n"
        "2 onsets, 1 missing, 1 relief, 0 spikes in 3 step records\n"
        "a message\n";
    static const char *const events[] = {
        "\"eid\":\"a@1\",\"kind\":\"onset\",\"scope\":\"rank\",\"id\":"
        "\"rank=0\",\"step\":1,\"factor\":2,\"cause\":\"compute\","
        "\"evidence\":\"a|b\"",
        "\"eid\":\"b@1\",\"kind\":\"onset\",\"scope\":\"rank\",\"id\":"
        "\"rank=5\",\"step\":1,\"factor\":9",
        "\"eid\":\"b@1\",\"kind\":\"relief\",\"scope\":\"rank\",\"id\":"
        "\"rank=5\",\"step\":2,\"factor\":1,\"gpu_hours\":0.75",
        "\"eid\":\"m@90\",\"kind\":\"missing\",\"scope\":\"rank\",\"id\":"
        "\"rank=7\",\"host\":\"n|2\",\"step\":90",
    };
    static const char *const open[] = {
        "\"eid\":\"h@4\",\"kind\":\"onset\",\"scope\":\"host\",\"id\":"
        "\"host=n1\",\"step\":4,\"factor\":1.25",
        "\"eid\":\"a@1\",\"kind\":\"onset\",\"scope\":\"rank\",\"id\":"
        "\"rank=0\",\"step\":1,\"factor\":2",
    };
    const struct ep_nagios how = {.name = "SKEWDETECT",
                                  .warning = 1.1,
                                  .critical = 1.5,
                                  .read = "3 step records"};
    struct ep_tally *t = ep_tally_new();
    struct ep_record r;
    struct ep_buf b;

    ep_buf_init(&b);
    ok(!ep_tally_found(t));
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        r = event(events[i]);
        (void)ep_tally_event(t, &r);
    }
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        r = event(open[i]);
        ep_tally_open(t, &r);
    }
    ep_tally_message(t, "a message");
    ok(ep_tally_found(t));
    ok(ep_tally_print_nagios(t, &how, &b) == EP_NAGIOS_CRITICAL);
    if (!ok(strcmp(b.ptr, want) == 0))
        printf("# got:\n%s", b.ptr);
    ep_buf_free(&b);
    ep_tally_free(t);
}

/* The slowest are listed, in order, and the others counted. */
static void check_many(void)
{
    struct ep_tally *t = ep_tally_new();
    struct ep_record r;
    char rest[200];
    struct ep_buf b;
    const char *p;
    double last = 1e9;
    int lines = 0;

    ep_buf_init(&b);
    for (int i = 0; i < 25; i++) {
        (void)snprintf(rest, sizeof rest,
                       "\"eid\":\"e%d\",\"kind\":\"onset\",\"scope\":\"rank\","
                       "\"id\":\"rank=%d\",\"step\":1,\"factor\":%d",
                       i, i, 2 + i * 7 % 25);
        r = event(rest);
        ep_tally_open(t, &r);
    }
    ep_tally_print_open(t, &b);
    for (p = b.ptr; (p = strstr(p, "still slow: rank=")); lines++) {
        double factor;

        p = strchr(p + 12, ' ');
        factor = strtod(p, NULL);
        ok(factor < last && factor > 16);
        last = factor;
    }
    ok(lines == EP_TALLY_SHOWN);
    ok(strstr(b.ptr, "\n... and 15 more\n") != NULL);
    ep_buf_free(&b);
    ep_tally_free(t);
}

static void check_pick(void)
{
    static const char *const eids[] = {"lm/rank=1@5",  "lm/rank=10@7",
                                       "lm/rank=10@9", "lm/job@5",
                                       "rank=2/gemm",  "lm/rank=1@55"};
    static const struct {
        const char *wanted, *chosen; /* NULL: none, and this is in why */
        const char *why;
    } cases[] = {
        {"lm/rank=1@5", "lm/rank=1@5", NULL}, /* not ..@55 */
        {"lm/rank=10@9", "lm/rank=10@9", NULL},
        {"lm/j", "lm/job@5", NULL},
        {"job", "lm/job@5", NULL},
        {"rank=2", "rank=2/gemm", NULL},
        {"rank=10@7", "lm/rank=10@7", NULL},
        {"lm/rank=10", NULL,
         "more than one episode begins so; there are lm/rank=10@7, "
         "lm/rank=10@9"},
        {"rank=3", NULL, "no such episode; there are rank=2/gemm, "},
        {"zz\n", NULL, "cannot explain zz\\x0a: no such"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_pick *p = ep_pick_new(cases[i].wanted);
        const struct ep_buf *said;
        struct ep_buf why;
        char rest[200];

        ep_buf_init(&why);
        for (size_t k = 0; k < sizeof eids / sizeof *eids; k++) {
            struct ep_record r;
            struct ep_buf *b;

            (void)snprintf(rest, sizeof rest,
                           "%s\"eid\":\"%s\",\"kind\":\"onset\",\"scope\":"
                           "\"rank\"",
                           *eids[k] == 'l' ? "\"job\":\"lm\"," : "", eids[k]);
            r = event(rest);
            b = ep_pick_take(p, &r);
            if (b)
                ep_buf_adds(b, eids[k]);
        }
        said = ep_pick_choose(p, &why);
        if (!ok(cases[i].chosen
                    ? said && strcmp(said->ptr, cases[i].chosen) == 0
                    : !said && strstr(why.ptr, cases[i].why)))
            printf("# %s: %s, %s\n", cases[i].wanted, said ? said->ptr : "-",
                   why.len ? why.ptr : "-");
        ep_buf_free(&why);
        ep_pick_free(p);
    }
}

int main(void)
{
    (void)setenv("TZ", "UTC", 1);
    parser = ep_record_parser_new();
    check_text();
    check_news();
    check_status();
    check_nagios();
    check_many();
    check_pick();
    ep_record_parser_free(parser);
    return tap_done();
}

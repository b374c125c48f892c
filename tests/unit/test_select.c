/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_select.c - which records are wanted: conditions, globs against
 * fnmatch(3), times against date(1), and what is refused.
 */
#include "config.h"

#include "record/select.h"
#include "tap.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOW 1796008455.0 /* 2026-11-30 03:14:15 UTC, 04:14:15 in CET */

static const char record[] =
    "{\"type\":\"step\",\"ts\":100.5,\"host\":\"n12\",\"rank\":8,\"gpu\":"
    "\"GPU-a*b\",\"step\":7,\"dur\":0.5}";
static const char plan[] =
    "{\"type\":\"plan\",\"ts\":1,\"level\":\"s2\",\"action\":\"shares\","
    "\"gain\":0.1,"
    "\"cost\":1,\"eid\":\"e\",\"dp\":1,\"from\":4,\"to\":3}";

/* 1: the record is wanted, 0: it is not, or an error. */
static int wanted(const char *json, const char *const *where, int nwhere,
                  struct ep_error *err)
{
    const struct ep_select_texts texts = {
        .where = where, .nwhere = nwhere, .now = NOW};
    struct ep_record_parser *p = ep_record_parser_new();
    struct ep_select s;
    struct ep_record r;
    int rc = ep_select_init(&s, &texts, err);

    if (rc == 0) {
        ok(ep_record_parse(p, json, strlen(json), &r, err) == 0);
        rc = ep_select_match(&s, &r);
    }
    ep_record_parser_free(p);
    return rc;
}

static void check_where(void)
{
    static const struct {
        const char *where;
        int wanted;
    } cases[] = {
        {"host=n12", 1},
        {"host=n1", 0},
        {"host==n12", 1},
        {"host=n1*", 1},
        {"host=n?2", 1},
        {"host=n?", 0},
        {"host=*", 1},
        {"host=", 0},
        {"host!=n1*", 0},
        {"host!=n2*", 1},
        {"region=*", 0}, /* it has none */
        {"region!=x", 0},
        {"gpu=GPU-a\\*b", 1},
        {"gpu=GPU-a\\b", 0}, /* without * or ? a backslash is one */
        {"gpu=GPU-a\\*b*", 1},
        {"gpu=GPU-a\\?b*", 0},
        {"rank=8", 1},
        {"rank=8.0", 1},
        {"rank!=8", 0},
        {"rank!=9", 1},
        {"rank>7", 1},
        {"rank>8", 0},
        {"rank>=8", 1},
        {"rank<8", 0},
        {"rank<=8", 1},
        {"rank<9", 1},
        {"dur>0.4", 1},
        {"dur>500ms", 0},
        {"dur>=500ms", 1},
        {"dur<1m", 1},
        {"ts>100,ts<101", 1},
        {"ts>100,ts<100.5", 0},
        {"rank=8,host=n12", 1},
        {"rank=8,host=n13", 0},
        {"rank=3,rank=8", 1}, /* one of them */
        {"rank=3,rank=8,rank!=8", 0},
        {"rank=3,rank>=8", 0},
        {"host=m*,host=n*", 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ep_error err = {.code = 0};
        int rc = wanted(record, &cases[i].where, 1, &err);

        if (!ok(rc == cases[i].wanted))
            printf("# %s: %d %s\n", cases[i].where, rc, err.msg);
    }
}

/* Options that were given twice: as if with a comma between them. */
static void check_lists(void)
{
    static const char *const both[] = {"host=n12", "rank=8"};
    static const char *const one[] = {"host=n12", "rank=9"};
    static const char *const either[] = {"rank=9", "rank=8"};
    static const char *const types[] = {"step,loss", "coll"};
    const struct ep_select_texts texts = {.types = types, .ntypes = 2};
    struct ep_select s;
    struct ep_error err;

    ok(wanted(record, both, 2, &err) == 1);
    ok(wanted(record, one, 2, &err) == 0);
    ok(wanted(record, either, 2, &err) == 1);
    ok(ep_select_init(&s, &texts, &err) == 0);
    ok(s.types == (UINT32_C(1) << EP_STEP | UINT32_C(1) << EP_LOSS |
                   UINT32_C(1) << EP_COLL));
}

/* A number of bytes may have a unit. */
static void check_bytes(void)
{
    static const char coll[] =
        "{\"type\":\"coll\",\"op\":\"all_reduce\",\"comm\":\"c\","
        "\"dur\":1,\"bytes\":1048576}";
    static const char *const yes[] = {"bytes>=1MiB",   "bytes>1MB",
                                      "bytes=1048576", "bytes=1024KiB",
                                      "bytes<0.5GiB",  "bytes<=1M"};
    static const char *const no[] = {"bytes>1MiB", "bytes<1MB", "bytes=1MB"};
    static const char *const bad[] = {"bytes>1s", "bytes=MiB", "rank>1MiB"};
    struct ep_error err;

    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        ok(wanted(coll, &yes[i], 1, &err) == 1);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        ok(wanted(coll, &no[i], 1, &err) == 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(wanted(coll, &bad[i], 1, &err) == EP_EUSAGE);
}

/* from is a number in a plan. */
static void check_from(void)
{
    static const char *const yes[] = {"from=4", "from>3,from!=5"};
    static const char *const no[] = {"from=g*", "from>4"};
    struct ep_error err;

    for (int i = 0; i < 2; i++) {
        ok(wanted(plan, &yes[i], 1, &err) == 1);
        ok(wanted(plan, &no[i], 1, &err) == 0);
    }
}

/* Random globs against fnmatch(3). */
static void check_globs(void)
{
    static const char letters[] = {'a', 'b', '*', '?'};
    unsigned seed = 20261130;
    int wrong = 0, hits = 0;

    printf("# seed %u\n", seed);
    for (int round = 0; round < 20000; round++) {
        char glob[24] = "host=", text[16], json[80];
        const char *where = glob;
        const struct ep_select_texts texts = {.where = &where, .nwhere = 1};
        struct ep_select s;
        struct ep_record r;
        size_t n, m;

        seed = seed * 1103515245 + 12345;
        n = seed >> 16 & 7;
        m = seed >> 20 & 7;
        for (size_t i = 0; i < n + 1; i++) {
            seed = seed * 1103515245 + 12345;
            glob[5 + i] = (char)(i < n ? letters[seed >> 16 & 3] : 0);
        }
        for (size_t i = 0; i < m + 1; i++) {
            seed = seed * 1103515245 + 12345;
            text[i] = (char)(i < m ? letters[seed >> 16 & 1] : 0);
        }
        (void)snprintf(json, sizeof json, "%s", text);
        ep_record_begin(&r, EP_STEP);
        ep_record_set_str(&r, EP_K_HOST, json);
        if (ep_select_init(&s, &texts, NULL) < 0) {
            wrong++;
            continue;
        }
        hits += fnmatch(glob + 5, text, 0) == 0;
        wrong += ep_select_match(&s, &r) != (fnmatch(glob + 5, text, 0) == 0);
    }
    printf("# %d fit\n", hits);
    ok(hits > 1000);
    ok(wrong == 0);
}

static void check_times(void)
{
    static const struct {
        const char *text;
        double ts; /* -1: refused */
    } times[] = {
        {"1796008455.25", 1796008455.25},
        {"0", 0},
        {"2026-11-30", 1795993200}, /* date -d, TZ=CET */
        {"2026-11-30T03:14", 1796004840},
        {"2026-11-30 03:14", 1796004840},
        {"2026-11-30T03:14:15", 1796004855},
        {"2026-11-30T03:14:15.25", 1796004855.25},
        {"2026-11-30T03:14:15,25", 1796004855.25},
        {"2026-11-30T03:14:15Z", 1796008455},
        {"2026-11-30T03:14Z", 1796008440},
        {"2026-11-30Z", 1795996800},
        {"2026-11-30T03:14:15.5+02:00", 1796001255.5},
        {"2026-11-30T03:14-0830", 1796039040},
        {"2026-07-01T12:00", 1782900000}, /* CEST */
        {"-10m", NOW - 600},
        {"-1h30m", NOW - 5400},
        {"-0.5s", NOW - 0.5},
        {"-90", NOW - 90},
        {"now", NOW},
        {"today", 1795993200},
        {"yesterday", 1795906800},
        {"lately", -1},
        {"", -1},
        {"-", -1},
        {"--10m", -1},
        {"10m", -1},
        {"2026-11-31", -1},
        {"2026-11-30T", -1},
        {"2026-11-30T03", -1},
        {"2026-11-30T03:14:15.", -1},
        {"2026-11-30T03:14:15 x", -1},
        {"2026-11-30T03:14:15.123456789012345678901234567890123456789012345678"
         "901234567890",
         -1},
        {"1969-12-31", -1},
    };

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const struct ep_select_texts texts = {.since = times[i].text,
                                              .now = NOW};
        struct ep_error err = {.code = 0};
        struct ep_select s;
        int rc = ep_select_init(&s, &texts, &err);

        if (!ok(times[i].ts < 0 ? rc == EP_EUSAGE
                                : rc == 0 && s.since == times[i].ts))
            printf("# %s: %d %.17g %s\n", times[i].text, rc, s.since, err.msg);
    }
}

static void check_bounds(void)
{
    const struct ep_select_texts texts = {
        .since = "100", .until = "-1m", .now = 161};
    struct ep_record r;
    struct ep_select s;

    ok(ep_select_init(&s, &texts, NULL) == 0);
    ep_record_begin(&r, EP_STEP);
    ok(!ep_select_match(&s, &r));
    for (int ts = 99; ts < 103; ts++) {
        ep_record_set_num(&r, EP_K_TS, ts);
        ok(ep_select_match(&s, &r) == (ts == 100));
    }
}

static void check_refused(void)
{
    static const struct {
        struct ep_select_texts texts; /* where is one text */
        const char *where, *message;
    } cases[] = {
        {{0}, "rank", "cannot use --where rank: not KEY=VALUE"},
        {{0}, "colour=red", "cannot use --where colour: no such key"},
        {{0}, "=red", "cannot use --where : no such key"},
        {{0}, "type=step", "cannot use --where type: no such key"},
        {{0}, "rank=3-5", "cannot use --where rank=3-5: not a number"},
        {{0}, "rank=1*", "cannot use --where rank=1*: not a number"},
        {{0}, "rank>", "cannot use --where rank>: not a number"},
        {{0}, "rank>3ms", "cannot use --where rank>3ms: not a number"},
        {{0}, "rank!3", "cannot use --where rank!3: none of = != < <= > >="},
        {{0},
         "host>n1",
         "cannot use --where host>n1: text has no order, only = and !="},
        {{0}, "from>x", "cannot use --where from>x: not a number"},
        {{0}, "rank=1,,", "cannot use --where : not KEY=VALUE"},
        {{.since = "20", .until = "20"},
         NULL,
         "cannot use --since 20: not before --until"},
        {{.until = "soon"},
         NULL,
         "cannot use --until soon: not YYYY-MM-DD[Thh:mm[:ss]], with Z or "
         "+hh:mm behind it or in local time, nor seconds since the epoch, "
         "-AGE (-10m), now, today, yesterday"},
    };
    struct ep_select_texts types = {.ntypes = 1};
    const char *type = "step,stepp";
    struct ep_error err;
    struct ep_select s;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ep_select_texts texts = cases[i].texts;
        int rc;

        texts.where = &cases[i].where;
        texts.nwhere = cases[i].where != NULL;
        err.msg[0] = '\0';
        rc = ep_select_init(&s, &texts, &err);
        if (!ok(rc == EP_EUSAGE && strcmp(err.msg, cases[i].message) == 0))
            printf("# %d %s\n", rc, err.msg);
    }
    types.types = &type;
    ok(ep_select_init(&s, &types, &err) == EP_EUSAGE);
    ok(strcmp(err.msg, "cannot use --type stepp: no such type of record") == 0);
}

static void check_many(void)
{
    const char *where[EP_SELECT_MAX + 1];
    struct ep_select_texts texts = {.where = where};
    struct ep_select s;

    for (int i = 0; i <= EP_SELECT_MAX; i++)
        where[i] = "rank=1";
    texts.nwhere = EP_SELECT_MAX;
    ok(ep_select_init(&s, &texts, NULL) == 0);
    texts.nwhere++;
    ok(ep_select_init(&s, &texts, NULL) == EP_ELIMIT);
}

int main(void)
{
    (void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    check_where();
    check_lists();
    check_bytes();
    check_from();
    check_globs();
    check_times();
    check_bounds();
    check_refused();
    check_many();
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ranks.c - ranks to groups, against counting through all coordinates
 * with nested loops, and hand-worked cases.
 */
#include "config.h"

#include "plan/ranks.h"

#include "tap.h"

#include <stdbool.h>
#include <string.h>

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, s ? strlen(s) : 0};
}

/* The group of a rank in "tp-cp-ep-dp-pp": pp is the outermost loop. */
static bool standard_agrees(const struct ep_ranks_sizes *n, const char *order)
{
    struct ep_ranks k;
    int64_t rank = 0;

    if (ep_ranks_init(&k, span(order), n, NULL) < 0)
        return false;
    for (int64_t pp = 0; pp < n->pp; pp++)
        for (int64_t dp = 0; dp < n->dp; dp++)
            for (int64_t inner = 0; inner < n->cp * n->tp; inner++)
                if (ep_ranks_group(&k, rank++) != dp)
                    return false;
    return k.count == rank && ep_ranks_group(&k, rank) == -1 &&
           ep_ranks_group(&k, -1) == -1;
}

/* "tp-cp-ep-pp-dp": dp is the outermost loop. */
static bool dp_last_agrees(const struct ep_ranks_sizes *n)
{
    struct ep_ranks k;
    int64_t rank = 0;

    if (ep_ranks_init(&k, span("tp-cp-ep-pp-dp"), n, NULL) < 0)
        return false;
    for (int64_t dp = 0; dp < n->dp; dp++)
        for (int64_t inner = 0; inner < n->pp * n->cp * n->tp; inner++)
            if (ep_ranks_group(&k, rank++) != dp)
                return false;
    return k.count == rank;
}

static void refused(const char *order, const struct ep_ranks_sizes *n, int code,
                    const char *why)
{
    struct ep_ranks k = {.count = 77};
    struct ep_error err = {.code = 0};

    ok(ep_ranks_init(&k, span(order), n, &err) == code);
    ok(k.count == 77);
    if (!ok(strcmp(err.msg, why) == 0))
        printf("# got %s\n# want %s\n", err.msg, why);
}

static void test_find(void)
{
    const struct ep_ranks_sizes n = {2, 1, 3, 1};
    struct ep_ranks k;
    struct ep_error err;
    int64_t group;

    ok(ep_ranks_init(&k, span(NULL), &n, NULL) == 0);
    ok(ep_ranks_find(&k, -1, -1, &group, NULL) == 0 && group == -1);
    ok(ep_ranks_find(&k, 5, -1, &group, NULL) == 0 && group == 2);
    ok(ep_ranks_find(&k, 5, 1, &group, NULL) == 0 && group == 1);
    ok(ep_ranks_find(&k, -1, 0, &group, NULL) == 0 && group == 0);
    ok(ep_ranks_find(&k, 6, 0, &group, &err) == EP_EDOM);
    ok(strcmp(err.msg, "rank is 6, the layout has 6 ranks") == 0);
    ok(ep_ranks_find(&k, 0, 3, &group, &err) == EP_EDOM);
    ok(strcmp(err.msg, "dp is 3, the layout has 3 groups") == 0);
}

static void test_parse(void)
{
    static const struct {
        const char *id;
        int64_t rank, dp;
        const char *why; /* NULL: good */
    } cases[] = {
        {NULL, -1, -1, NULL},
        {"", -1, -1, NULL},
        {"rank=3", 3, -1, NULL},
        {"dp=1,pp=0", -1, 1, NULL},
        {"pp=0,dp=12,rank=7", 7, 12, NULL},
        {"xrank=3,rankx=4,rank", -1, -1, NULL},
        {",,dp=2,", -1, 2, NULL},
        {"host=n1", -1, -1, NULL},
        {"rank=", 0, 0, "id: rank: not a number"},
        {"dp=x", 0, 0, "id: dp: not a number"},
        {"rank=3 ", 0, 0, "id: rank: not a number"},
        {"rank=000000000000000000000003", 0, 0, "id: rank: not a number"},
    };
    const struct ep_span nul = {"rank=3\0x", 8};
    struct ep_error err;
    int64_t rank, dp;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int rc = ep_ranks_parse(span(cases[i].id), &rank, &dp, &err);

        if (cases[i].why) {
            ok(rc == EP_EFORMAT);
            if (!ok(strcmp(err.msg, cases[i].why) == 0))
                printf("# got %s\n", err.msg);
        } else if (!ok(rc == 0 && rank == cases[i].rank && dp == cases[i].dp)) {
            printf("# %s\n", cases[i].id);
        }
    }
    ok(ep_ranks_parse(nul, &rank, &dp, &err) == EP_EFORMAT);
    ok(ep_ranks_parse(span("rank=-1"), &rank, &dp, &err) < 0);
    ok(ep_ranks_parse(span("rank=9223372036854775808"), &rank, &dp, &err) ==
       EP_ERANGE);
}

int main(void)
{
    static const struct ep_ranks_sizes cases[] = {
        {1, 1, 1, 1}, {2, 1, 4, 1}, {8, 1, 4, 4},
        {2, 3, 5, 7}, {1, 2, 3, 4}, {4, 1, 1, 8},
    };
    const struct ep_ranks_sizes two = {2, 1, 2, 2}, big = {1024, 1, 1024, 2},
                                wide = {1, 1, INT64_MAX, INT64_MAX},
                                none = {1, 1, 0, 1};
    struct ep_ranks k;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ok(standard_agrees(&cases[i], NULL));
        ok(standard_agrees(&cases[i], "tp-cp-ep-dp-pp"));
        ok(standard_agrees(&cases[i], "tp-cp-dp-pp"));
        ok(standard_agrees(&cases[i], "ep-tp-cp-dp-pp"));
        ok(dp_last_agrees(&cases[i]));
    }

    /* by hand: TP 2, DP 2, PP 2; ranks 0 1 | 2 3 are stage 0 */
    ok(ep_ranks_init(&k, span(NULL), &two, NULL) == 0 && k.stride == 2);
    ok(ep_ranks_group(&k, 1) == 0 && ep_ranks_group(&k, 3) == 1);
    ok(ep_ranks_group(&k, 5) == 0 && ep_ranks_group(&k, 6) == 1);
    /* and with dp the fastest: 0 1 0 1 ... */
    ok(ep_ranks_init(&k, span("dp-tp-pp"), &two, NULL) == 0 && k.stride == 1);
    ok(ep_ranks_group(&k, 4) == 0 && ep_ranks_group(&k, 7) == 1);

    refused("tp-xp-dp-pp", &two, EP_EFORMAT,
            "order has 'xp', which is no dimension");
    refused("tp-dp-pp-tp", &two, EP_EFORMAT, "order has 'tp' twice");
    refused("tp-dp", &two, EP_EFORMAT, "order lacks pp");
    refused("tp-dp-pp-", &two, EP_EFORMAT,
            "order has '', which is no dimension");
    refused("", &two, EP_EFORMAT, "order has '', which is no dimension");
    refused("\n-dp", &two, EP_EFORMAT,
            "order has '\\x0a', which is no dimension");
    refused(NULL, &big, EP_ELIMIT, "more than 1048576 ranks");
    refused(NULL, &wide, EP_ELIMIT, "more than 1048576 ranks");
    refused(NULL, &none, EP_EDOM, "dp is 0, below 1");
    test_find();
    test_parse();
    return tap_done();
}

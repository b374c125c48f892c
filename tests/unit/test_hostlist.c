/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_hostlist.c - host lists against what Slurm 22.05 prints, and random
 * ones against nested loops. `test_hostlist LIST...` prints what each becomes,
 * for tests that compare with other programs.
 */
#include "config.h"

#include "base/buf.h"
#include "base/hostlist.h"
#include "base/rng.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What s becomes, joined by blanks, or the error's message. */
static const char *expand(const char *s)
{
    static struct ep_buf all;
    struct ep_hostlist h = {0};
    struct ep_error err;

    if (!all.ptr)
        ep_buf_init(&all);
    ep_buf_reset(&all);
    if (ep_hostlist_expand(&h, s, &err) != 0) {
        ok(h.n == 0);
        ep_buf_adds(&all, err.msg);
        return all.ptr;
    }
    for (size_t i = 0; i < h.n; i++)
        ep_buf_addf(&all, "%s%s", i ? " " : "", h.v[i]);
    ep_hostlist_free(&h);
    return all.ptr;
}

static void is(const char *s, const char *want)
{
    const char *got = expand(s);
    int good = ok(strcmp(got, want) == 0);

    if (!good)
        printf("# %s: got %s, want %s\n", s, got, want);
}

/* From `scontrol show hostnames` where there is no text behind a list. */
static void check_lists(void)
{
    static const struct {
        const char *s, *want;
    } cases[] = {
        {"", ""},
        {"n1", "n1"},
        {"n[01-03]", "n01 n02 n03"},
        {"n[1-010]", "n1 n2 n3 n4 n5 n6 n7 n8 n9 n10"},
        {"n[9-11]", "n9 n10 n11"},
        {"n[001-3]", "n001 n002 n003"},
        {"n[1,3,07-12]", "n1 n3 n07 n08 n09 n10 n11 n12"},
        {"r[1-2]n[1-3]", "r1n1 r1n2 r1n3 r2n1 r2n2 r2n3"},
        {"n[08-10]-eth[0-1]",
         "n08-eth0 n08-eth1 n09-eth0 n09-eth1 n10-eth0 n10-eth1"},
        {"n[1-2,2]", "n1 n2 n2"},
        {"n[0-0]", "n0"},
        {"n[1-2][3-4]", "n13 n14 n23 n24"},
        {"n[01,1-2]", "n01 n1 n2"},
        {"n[08,9]", "n08 n9"},
        {"n[099-101]", "n099 n100 n101"},
        {"n[99999999999-100000000001]",
         "n99999999999 n100000000000 n100000000001"},
        {"[1-2]", "1 2"},
        {"http://n[01-02]:9400/metrics",
         "http://n01:9400/metrics http://n02:9400/metrics"},
        {"n[1-2]r[1-2]q[1-2]x",
         "n1r1q1x n1r1q2x n1r2q1x n1r2q2x "
         "n2r1q1x n2r1q2x n2r2q1x n2r2q2x"},
        {"http://[::1]:9100/", "http://[::1]:9100/"},
        {"http://[fe80::1%25eth0]:[1-2]/",
         "http://[fe80::1%25eth0]:1/ http://[fe80::1%25eth0]:2/"},
        {"a,b[1-2]", "a,b1 a,b2"},
        {"n[999999999999999999]", "n999999999999999999"},
        {"n[000000000000000001-2]", "n000000000000000001 n000000000000000002"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        is(cases[i].s, cases[i].want);
}

static void check_refusals(void)
{
    static const struct {
        const char *s, *why;
    } cases[] = {
        {"n[3-1]", "at byte 2: a range goes down"},
        {"n[1,10-9]", "at byte 4: a range goes down"},
        {"n[", "at byte 1: '[' without ']'"},
        {"ab[1-2", "at byte 2: '[' without ']'"},
        {"n[1:2", "at byte 1: '[' without ']'"},
        {"n]", "at byte 1: ']' without '['"},
        {"n[1]]", "at byte 4: ']' without '['"},
        {"n[]", "at byte 2: a number is missing (write a plain '[' as %5B)"},
        {"n[1,]", "at byte 4: a number is missing (write a plain '[' as %5B)"},
        {"n[,1]", "at byte 2: a number is missing (write a plain '[' as %5B)"},
        {"n[1-]", "at byte 4: a number is missing (write a plain '[' as %5B)"},
        {"n[a]", "at byte 2: not a digit"},
        {"n[+1]", "at byte 2: not a digit"},
        {"n[ 1-2]", "at byte 2: not a digit"},
        {"n[-1]", "at byte 2: not a digit"},
        {"n[[1-2]]", "at byte 2: not a digit"},
        {"n[1-2-3]", "at byte 5: not ',', '-' or ']'"},
        {"n[1x]", "at byte 3: not ',', '-' or ']'"},
        {"n[1000000000000000000]", "at byte 2: a number is too long"},
        {"n[1-100001]", "more than 100000 names"},
        {"n[0-999999999999999999]", "more than 100000 names"},
        {"n[1-400][1-251]", "more than 100000 names"},
        {"n[1-50000,1-50001]", "more than 100000 names"},
    };
    char want[200];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(want, sizeof want, "cannot expand %s: %s", cases[i].s,
                       cases[i].why);
        is(cases[i].s, want);
    }
    is("\x1b[1-", "cannot expand \\x1b[1-: at byte 1: '[' without ']'");
}

static void check_caps(void)
{
    struct ep_hostlist h = {0};
    struct ep_error err;
    char s[2048];

    ok(ep_hostlist_expand(&h, "n[1-400][1-250]", &err) == 0 && h.n == 100000);
    ok(strcmp(h.v[0], "n11") == 0 && strcmp(h.v[99999], "n400250") == 0);
    memset(s, 'x', sizeof s);
    (void)snprintf(s + 1500, sizeof s - 1500, "[1-100000]");
    ok(ep_hostlist_expand(&h, s, &err) == EP_ELIMIT && h.n == 100000);
    ok(ep_hostlist_expand(&h, "n[1-2]", NULL) == 0 && h.n == 100002);
    ok(ep_hostlist_expand(&h, "n[2-1]", NULL) == EP_EFORMAT && h.n == 100002);
    ep_hostlist_free(&h);
    ok(h.n == 0 && !h.v);
}

struct item {
    unsigned low, high;
    int width;
};

/* Up to three lists of up to three items each; names by nested loops. */
static void random_list(struct ep_rng *r, struct ep_buf *s, struct ep_buf *want)
{
    struct ep_buf names[2];
    size_t from = 0;
    int lists = (int)(ep_rng_next(r) % 4);

    ep_buf_init(&names[0]);
    ep_buf_init(&names[1]);
    ep_buf_adds(&names[0], "h "); /* each name with a blank behind it */
    ep_buf_adds(s, "h");
    for (int k = 0; k < lists; k++, from = 1 - from) {
        struct item items[3];
        int n = 1 + (int)(ep_rng_next(r) % 3);

        for (int i = 0; i < n; i++) {
            unsigned low = (unsigned)(ep_rng_next(r) % 120);

            items[i].low = low;
            items[i].high = low + (unsigned)(ep_rng_next(r) % 4);
            items[i].width = 1 + (int)(ep_rng_next(r) % 4);
            ep_buf_addf(s, "%c%0*u-%u", i ? ',' : '[', items[i].width, low,
                        items[i].high);
            /* %0*u may have written more digits than width: no matter */
        }
        ep_buf_adds(s, "].");
        ep_buf_reset(&names[1 - from]);
        for (char *p = names[from].ptr, *end; *p; p = end + 1) {
            end = strchr(p, ' ');
            for (int i = 0; i < n; i++)
                for (unsigned x = items[i].low; x <= items[i].high; x++)
                    ep_buf_addf(&names[1 - from], "%.*s%0*u. ", (int)(end - p),
                                p, items[i].width, x);
        }
    }
    ep_buf_add(want, names[from].ptr, names[from].len - 1);
    ep_buf_free(&names[0]);
    ep_buf_free(&names[1]);
}

static void check_random(void)
{
    uint64_t seed = (uint64_t)time(NULL);
    struct ep_buf s, want;
    struct ep_rng r;
    int bad = 0;

    printf("# seed %llu\n", (unsigned long long)seed);
    ep_rng_seed(&r, seed, 0);
    ep_buf_init(&s);
    ep_buf_init(&want);
    for (int i = 0; i < 500; i++) {
        ep_buf_reset(&s);
        ep_buf_reset(&want);
        random_list(&r, &s, &want);
        if (strcmp(expand(s.ptr), want.ptr) != 0 && !bad++)
            printf("# %s: want %s\n", s.ptr, want.ptr);
    }
    ok(bad == 0);
    ep_buf_free(&s);
    ep_buf_free(&want);
}

static int print_lists(int n, char *const lists[])
{
    struct ep_hostlist h = {0};
    struct ep_error err;

    for (int i = 0; i < n; i++) {
        if (ep_hostlist_expand(&h, lists[i], &err) != 0) {
            (void)fprintf(stderr, "test_hostlist: %s\n", err.msg);
            ep_hostlist_free(&h);
            return 2;
        }
    }
    for (size_t i = 0; i < h.n; i++)
        (void)puts(h.v[i]);
    ep_hostlist_free(&h);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return print_lists(argc - 1, argv + 1);
    check_lists();
    check_refusals();
    check_caps();
    check_random();
    return tap_done();
}

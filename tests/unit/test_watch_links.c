/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch_links.c - rounds of link measurements through a watch. */
#include "config.h"

#include "watch_seen.h"

#include <stdlib.h>

static double at; /* ts of the next measurement */

static int take(const char *src, const char *dst, double value)
{
    struct ep_watch_link x = {
        .src = span(src),
        .dst = span(dst),
        .transport = span("tcp"),
        .bytes = 16 << 20,
        .ts = at,
        .value = value,
    };

    at += 0.5;
    return ep_watch_link(w, &x, NULL);
}

/* A name for each of n1, n2, ... */
static const char *name(int i)
{
    static const char *const names[] = {"n1", "n2", "n3", "n4", "n5", "n6"};

    return names[i];
}

/* All pairs of n hosts, both ways; an end or a link of them slower. */
static void round_of(int n, int end, int a, int b, double factor)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            /* links differ, and are steady but for a little */
            double v = 10e9 * (1 + 0.05 * ((i + j) * 7 % 5)) *
                       (1 + 0.004 * ((int)at * 3 % 5));
            bool slow = i == end || j == end || (i == a && j == b) ||
                        (i == b && j == a);

            if (i != j)
                ok(take(name(i), name(j), slow ? v / factor : v) == 0);
        }
}

static void test_rounds(void)
{
    begin();
    at = 1000;
    round_of(5, -1, -1, -1, 1);
    round_of(5, -1, 1, 3, 1.5);
    round_of(5, -1, 1, 3, 1.52); /* no news */
    round_of(5, -1, 1, 3, 2.2);  /* worse */
    round_of(5, 4, -1, -1, 1.3); /* healthy; now an end */
    round_of(5, -1, -1, -1, 1);
    ok(
        findings_are("onset src=n2,dst=n4 -1 1.50 link\n"
                     "onset src=n2,dst=n4 -1 2.20 link\n"
                     "onset host=n5 -1 1.30 network\n"
                     "relief src=n2,dst=n4 -1 1.00 link\n"
                     "relief host=n5 -1 1.00 network\n",
                     "rounds"));
    ok(strcmp(eids[0], eids[1]) == 0 && strcmp(eids[0], eids[3]) == 0);
    ok(strncmp(eids[0], "src=n2,dst=n4@", 14) == 0);
    ok(strncmp(eids[2], "host=n5/links@", 14) == 0);
    ok(sure[0] > 0.95 && sure[2] > 0.95);
    open_are("");
    end();
}

/* n3 hangs on n2: its link or itself; measured with n1, too, it is known. */
static void test_better_located(void)
{
    begin();
    at = 5;
    for (int round = 0; round < 3; round++) {
        double v = round ? 4e9 : 10e9;

        (void)take("n1", "n2", 10e9);
        (void)take("n2", "n1", 10e9);
        (void)take("n2", "n3", v);
        (void)take("n3", "n2", v);
        (void)take("n1", "n4", 10e9);
        (void)take("n4", "n1", 10e9);
        if (round < 2)
            continue;
        (void)take("n1", "n3", v);
        (void)take("n3", "n1", v);
    }
    ok(
        findings_are("onset src=n2,dst=n3 -1 2.50 link\n"
                     "onset host=n3 -1 2.50 network\n",
                     "leaf"));
    ok(strcmp(eids[0], eids[1]) == 0);
    ok(sure[0] <= 0.5 && sure[1] > 0.9);
    open_are("onset host=n3 -1 2.50 network\n");
    end();
}

/* What was not measured is not over. */
static void test_not_measured(void)
{
    begin();
    at = 5;
    round_of(4, -1, -1, -1, 1);
    round_of(4, -1, 0, 1, 2);
    round_of(4, -1, 0, 1, 2);
    for (int i = 0; i < 3; i++) {
        (void)take("n3", "n4", 10e9);
        (void)take("n4", "n3", 10e9);
    }
    ep_watch_finish(w);
    open_are("onset src=n1,dst=n2 -1 2.00 link\n");
    ok(n_seen == 1);
    end();
}

/* Devices of two hosts; repeats; the healthy ratio of 16.3 ms to 12.8 ms. */
static void test_devices(void)
{
    static const char *const gpus[] = {"n1/GPU-1", "n1/GPU-2", "n1/GPU-3",
                                       "n1/GPU-4"};

    begin();
    at = 5;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                double v = (i < 2) == (j < 2) ? 16.3 : 12.8;

                if (round && (i == 3 || j == 3))
                    v /= 1.4;
                for (int k = 0; i != j && k < 3; k++)
                    (void)take(gpus[i], gpus[j], v * (1 + 0.01 * k));
            }
    ok(findings_are("onset gpu=GPU-4 -1 1.40 link\n", "devices"));
    end();
}

static void test_names(void)
{
    static const struct {
        const char *end, *id;
    } names[] = {
        {"n9", "host=n9"},
        {"GPU-9", "gpu=GPU-9"},
        {"n9/0000:3b:00.0", "gpu=0000:3b:00.0"},
        {"00000000:3B:00.0", "gpu=00000000:3B:00.0"},
        {"n9/3", "gpu=n9/3"},
        {"dead:beef", "host=dead:beef"},
    };
    char expect[80];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        begin();
        at = 5;
        for (int round = 0; round < 2; round++)
            for (int k = 0; k < 5; k++) {
                double v = round ? 5e9 : 10e9;

                (void)take(names[i].end, name(k), v);
                (void)take(name(k), names[i].end, v);
                (void)take(name(k), name((k + 1) % 5), 10e9);
            }
        (void)snprintf(expect, sizeof expect, "onset %s -1 2.00 %s\n",
                       names[i].id, names[i].id[0] == 'h' ? "network" : "link");
        ok(findings_are(expect, names[i].end));
        end();
    }
}

static void test_hostile(void)
{
    static const double bad[] = {0, -1, (double)NAN, (double)INFINITY};

    begin();
    at = 5;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(take("n1", "n2", bad[i]) == EP_EDOM);
    ok(take("n1", "n1", 1) == EP_EDOM && take("", "n1", 1) == EP_EDOM &&
       take("n1", "", 1) == EP_EDOM);
    at = (double)INFINITY;
    ok(take("n1", "n2", 1) == EP_EDOM);
    at = 1e300;
    for (int i = 0; i < 40; i++) {
        int src = i % 5, dst = (i + 1 + i % 3) % 6;

        ok(take(name(src), name(dst), i % 7 ? 1e308 : 1e-308) ==
           (src == dst ? EP_EDOM : 0));
    }
    ep_watch_finish(w);
    ok(sane);
    end();
}

int main(void)
{
    test_rounds();
    test_better_located();
    test_not_measured();
    test_devices();
    test_names();
    test_hostile();
    return tap_done();
}

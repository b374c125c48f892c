/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_strip.c - prefixes of launchers, escapes, progress bars, and times.
 *
 * Times were converted with date(1): date -u -d '2026-01-02T03:04:05' +%s.
 */
#include "config.h"

#include "base/rng.h"
#include "record/strip.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NO (-1)
#define SEED 20

static const struct {
    const char *line, *text;
    double ts; /* 0: none; below 0: without a year, and - 2026 has it */
    int rank, local_rank, task, pid;
    const char *host;
} cases[] = {
    /* no prefix: nothing changes */
    {"", "", 0, NO, NO, NO, NO, NULL},
    {" iteration 5/ 10 |", " iteration 5/ 10 |", 0, NO, NO, NO, NO, NULL},
    {"    name ....: 1.23", "    name ....: 1.23", 0, NO, NO, NO, NO, NULL},
    {"12:30:45 text", "12:30:45 text", 0, NO, NO, NO, NO, NULL},
    {"12345678: x", "12345678: x", 0, NO, NO, NO, NO, NULL},
    {"3:x", "3:x", 0, NO, NO, NO, NO, NULL},
    {"[2026-01-02 03:04:05] x", "[2026-01-02 03:04:05] x", 0, NO, NO, NO, NO,
     NULL},
    {"[INFO] x", "[INFO] x", 0, NO, NO, NO, NO, NULL},
    {"[]: x", "[]: x", 0, NO, NO, NO, NO, NULL},
    {"[7]: x", "[7]: x", 0, NO, NO, NO, NO, NULL},
    {"[", "[", 0, NO, NO, NO, NO, NULL},
    {"(", "(", 0, NO, NO, NO, NO, NULL},
    {"(a) b", "(a) b", 0, NO, NO, NO, NO, NULL},
    {"(a pid=x) b", "(a pid=x) b", 0, NO, NO, NO, NO, NULL},
    {"(a pid=7, x) b", "(a pid=7, x) b", 0, NO, NO, NO, NO, NULL},
    {"2026-01-02 03:04:05 x", "2026-01-02 03:04:05 x", 0, NO, NO, NO, NO, NULL},
    {"2026-01-02T03:04:05 x", "2026-01-02T03:04:05 x", 0, NO, NO, NO, NO, NULL},
    {"2026-01-02T03:04:05Zx", "2026-01-02T03:04:05Zx", 0, NO, NO, NO, NO, NULL},
    {"50%|##| 1/2 [00:01<00:01]", "50%|##| 1/2 [00:01<00:01]", 0, NO, NO, NO,
     NO, NULL},
    /* srun -l */
    {"0: x", "x", 0, NO, NO, 0, NO, NULL},
    {"  12: x", "x", 0, NO, NO, 12, NO, NULL},
    {"0: ", "", 0, NO, NO, 0, NO, NULL},
    {"7:  [x", " [x", 0, NO, NO, 7, NO, NULL},
    /* torchrun, PyTorch */
    {"[default3]:x", "x", 0, NO, 3, NO, NO, NULL},
    {"[trainer_a10]: x", " x", 0, NO, 10, NO, NO, NULL},
    {"[rank13]: x", "x", 0, 13, NO, NO, NO, NULL},
    {"[rank13]:[W1] x", "[W1] x", 0, 13, NO, NO, NO, NULL},
    {"[default5]:[rank13]: x", "x", 0, 13, 5, NO, NO, NULL},
    {"[rank12345678]: x", "[rank12345678]: x", 0, NO, NO, NO, NO, NULL},
    /* Open MPI */
    {"[1,3]<stdout>:x", "x", 0, 3, NO, NO, NO, NULL},
    {"[1,3]<stderr>: x", " x", 0, 3, NO, NO, NO, NULL},
    {"[prterun-n1-77@1,13]<stdout>: x", "x", 0, 13, NO, NO, NO, NULL},
    {"[1,3]<std", "[1,3]<std", 0, NO, NO, NO, NO, NULL},
    /* Ray */
    {"(RayTrainWorker pid=77, ip=10.0.0.1) x", "x", 0, NO, NO, NO, 77,
     "10.0.0.1"},
    {"(pid=77) x", "x", 0, NO, NO, NO, 77, NULL},
    {"\x1b[36m(train_fn pid=77)\x1b[0m x", "x", 0, NO, NO, NO, 77, NULL},
    /* containers */
    {"2026-01-02T03:04:05.678901234Z x", "x", 1767323045.678901234, NO, NO, NO,
     NO, NULL},
    {"2026-01-02T04:34:05+01:30 x", "x", 1767323045, NO, NO, NO, NO, NULL},
    {"2026-01-02T03:04:05.5Z stdout F x", "x", 1767323045.5, NO, NO, NO, NO,
     NULL},
    {"2026-01-02T03:04:05.5Z stderr P x", "x", 1767323045.5, NO, NO, NO, NO,
     NULL},
    {"[pod/a-0/main] x", "x", 0, NO, NO, NO, NO, NULL},
    {"[rank3] 2026-11-30 03:14:15 x", "2026-11-30 03:14:15 x", 0, 3, NO, NO, NO,
     NULL},
    {"[rank3]x", "[rank3]x", 0, NO, NO, NO, NO, NULL},
    {"[default0] x", "[default0] x", 0, NO, NO, NO, NO, NULL},
    {"2026-11-30T03:14:15.123456789Z stdout F x", "x", 1796008455.123456789, NO,
     NO, NO, NO, NULL},
    /* syslog, the journal */
    {"Nov 30 03:14:15 n1.cluster python3[77]: x", "x", -1796008455, NO, NO, NO,
     77, "n1"},
    {"Nov  3 03:14:15.5 10.0.0.1 kernel: x", "x", -1793675655.5, NO, NO, NO, NO,
     "10.0.0.1"},
    {"2026-11-30T03:14:15+0000 n1 python3[77]: 3: x", "x", 1796008455, NO, NO,
     3, 77, "n1"},
    {"2026-11-30T03:14:15.5+00:00 n1 a[7]: x", "x", 1796008455.5, NO, NO, NO, 7,
     "n1"},
    {"Nov 30 03:14:15 epoch 3: x", "Nov 30 03:14:15 epoch 3: x", 0, NO, NO, NO,
     NO, NULL},
    {"Nov 30 03:14:15 n1 a[x]: x", "Nov 30 03:14:15 n1 a[x]: x", 0, NO, NO, NO,
     NO, NULL},
    {"Nov 30 03:14", "Nov 30 03:14", 0, NO, NO, NO, NO, NULL},
    /* the program's own times stay */
    {"I1130 03:14:15.123456 7 a.go:1] x", "I1130 03:14:15.123456 7 a.go:1] x",
     0, NO, NO, NO, NO, NULL},
    {"1796008455.5 x", "1796008455.5 x", 0, NO, NO, NO, NO, NULL},
    /* several */
    {"[pod/a/b] 2026-01-02T03:04:05Z  2: [default1]:[rank9]: x", "x",
     1767323045, 9, 1, 2, NO, NULL},
    {"1: 2: x", "x", 0, NO, NO, 2, NO, NULL},
    /* terminals */
    {"\x1b[1;32mok\x1b[0m done\x1b[K", "ok done", 0, NO, NO, NO, NO, NULL},
    {"\x1b]0;title\x07x\x1b]8;;u\x1b\\y", "xy", 0, NO, NO, NO, NO, NULL},
    {"a\x1b(Bb\x1b=c", "abc", 0, NO, NO, NO, NO, NULL},
    {"a\x1b", "a", 0, NO, NO, NO, NO, NULL},
    {"a\x1b[12", "a", 0, NO, NO, NO, NO, NULL},
    {"\x1b[32m3: \x1b[0mx", "x", 0, NO, NO, 3, NO, NULL},
    /* progress bars */
    {"10%\r20%\r30%", "30%", 0, NO, NO, NO, NO, NULL},
    {"\r 50%|#### | 10/20 [00:10<00:10,  1.0it/s]text", "text", 0, NO, NO, NO,
     NO, NULL},
    {"\r  5%|# | 1/20 [a]\r 50%|#| 10/20 [b] [2023] x", " [2023] x", 0, NO, NO,
     NO, NO, NULL},
    {"text\r 50%|#### | 10/20 [00:10<00:10,  1.0it/s]", "text", 0, NO, NO, NO,
     NO, NULL},
    {"\rEpoch 0: 50%|##| 1/2 [00:01<00:01]0: x", "x", 0, NO, NO, 0, NO, NULL},
    {"\r7it [00:10, 1.42s/it]text", "text", 0, NO, NO, NO, NO, NULL},
    {"3: \r 50%|## | 1/2 [a", "", 0, NO, NO, 3, NO, NULL},
    {"\r\r", "", 0, NO, NO, NO, NO, NULL},
};

static bool is_time(const struct ep_strip *s, double want)
{
    struct ep_strip_zone zone = {.latest = 1.8e9};
    double ts = ep_strip_when(&zone, s);

    if (want < 0)
        return isnan(s->ts) && ts == -want;
    return want > 0 ? s->ts == want && ts == want : isnan(ts);
}

static void check_cases(void)
{
    struct ep_buf scratch;
    struct ep_strip s;

    ep_buf_init(&scratch);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t len = strlen(cases[i].line);
        char *line = malloc(len ? len : 1); /* a sanitizer sees overruns */
        bool good;

        if (!line)
            continue;
        memcpy(line, cases[i].line, len);
        ep_strip(line, len, &scratch, &s);
        good = ep_span_eq(s.text, cases[i].text) && is_time(&s, cases[i].ts) &&
               s.rank == cases[i].rank && s.local_rank == cases[i].local_rank &&
               s.task == cases[i].task && s.pid == cases[i].pid &&
               (cases[i].host ? ep_span_eq(s.host, cases[i].host)
                              : s.host.len == 0);
        if (!ok(good))
            printf("# %zu: '%s' gave '%.*s' ts %.9f rank %d local %d task %d\n",
                   i, cases[i].line, (int)s.text.len, s.text.ptr, s.ts,
                   (int)s.rank, (int)s.local_rank, (int)s.task);
        free(line);
    }
    ep_buf_free(&scratch);
}

/* Every beginning of every line: no byte behind it is read, text is inside. */
static void check_cuts(void)
{
    struct ep_buf scratch;
    struct ep_strip s;
    int bad = 0;

    ep_buf_init(&scratch);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t n = 0; n < strlen(cases[i].line); n++) {
            char *line = malloc(n ? n : 1);

            if (!line)
                continue;
            memcpy(line, cases[i].line, n);
            ep_strip(line, n, &scratch, &s);
            bad += s.text.len > n;
            free(line);
        }
    }
    ok(bad == 0);
    ep_buf_free(&scratch);
}

static void check_times(void)
{
    static const struct {
        const char *s;
        size_t used; /* 0: refused */
        double ts;
    } times[] = {
        {"1970-01-01T00:00:00Z", 20, 0},
        {"1970-01-01 01:00:00+01:00", 25, 0},
        {"1970-01-01 00:00:00+01:00", 0, 0},
        {"2000-02-29 23:59:60Z", 20, 951868800},
        {"2026-01-02 03:04:05", 19, 1767323045 - 3600},
        {"2026/07/02 03:04:05.000 x", 23, 1782961445 - 7200},
        {"2026-01-02 03:04:05,714 x", 23, 1767323045.714 - 3600},
        {"2026-01-02 03:04:05. x", 19, 1767323045 - 3600},
        {"2026-01-02T03:04:05.123456789012Z", 33, 1767323045.123456789},
        {"2026-01-02 03:04:05-0800", 24, 1767323045 + 28800},
        {"2026-13-02 03:04:05", 0, 0},
        {"2026-00-02 03:04:05", 0, 0},
        {"2026-01-32 03:04:05", 0, 0},
        {"2026-01-02 24:04:05", 0, 0},
        {"2026-01-02 03:60:05", 0, 0},
        {"2026-01-02 03:04:61", 0, 0},
        {"1969-12-31 03:04:05", 0, 0},
        {"2026-01/02 03:04:05", 0, 0},
        {"2026-01-02_03:04:05", 0, 0},
        {"2026-01-02 03:04:0", 0, 0},
        {"x", 0, 0},
    };
    struct ep_strip_zone zone = {.known = false};

    (void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        double ts = -1;
        size_t n = ep_strip_time(&zone, times[i].s, strlen(times[i].s), &ts);

        if (!ok(n == times[i].used && (!n || ts == times[i].ts)))
            printf("# %s: %zu bytes, %.9f\n", times[i].s, n, ts);
    }
}

/* Dates were converted with TZ=CET-1 date -d '2026-11-30 03:14:15' +%s. */
static void check_stamps(void)
{
    static const struct {
        const char *s;
        size_t used;
        double latest, ts;
    } stamps[] = {
        {"2026-11-30 03:14:15,25 x", 22, 0, 1796004855.25},
        {"Nov 30 03:14:15 x", 15, 1796004855, 1796004855},
        {"Nov 30 03:14:15.25", 18, 1796004855, 1796004855.25},
        {"Nov 30 03:14:15", 15, 1796004855 - 86400, 1796004855},
        {"Nov 30 03:14:15", 15, 1796004855 - 86401, 1764468855},
        {"Nov 30 03:14:15", 0, 0, 0},
        {"Nov  3 03:14:15 x", 15, 1796004855, 1793672055},
        {"Nov 03 03:14:15 x", 15, 1796004855, 1793672055},
        {"Nov 31 03:14:15 x", 0, 1796004855, 0},
        {"Feb 29 12:00:00 x", 15, 1796004855, 1709204400}, /* 2024 */
        {"Feb 29 12:00:00 x", 15, 1e9, 951822000},         /* 2000 */
        {"Feb 29 12:00:00 x", 0, 1e7, 0}, /* there was none in 1970 */
        {"Nov 30 03:14:15 2019 x", 20, 1796004855, 1575080055},
        {"Nov 30 03:14:15 20190 x", 15, 1796004855, 1796004855},
        {"nov 30 03:14:15 x", 0, 1796004855, 0},
        {"I1130 03:14:15.250000 x", 21, 1796004855, 1796004855.25},
        {"E1130 03:14:15 x", 0, 1796004855, 0},
        {"X1130 03:14:15.250000 x", 0, 1796004855, 0},
        {"I20191130 03:14:15.250000 x", 25, 0, 1575080055.25},
        {"F20191131 03:14:15.250000 x", 0, 0, 0},
        {"1796004855 x", 10, 0, 1796004855},
        {"1796004855.123456789] x", 20, 0, 1796004855.123456789},
        {"1796004855,5", 10, 0, 1796004855},
        {"1796004855250 x", 13, 0, 1796004855.25},
        {"1796004855250001\tx", 16, 0, 1796004855.250001},
        {"1796004855250000001|x", 19, 0, 1796004855.250000001},
        {"1796004855", 0, 0, 0},
        {"1796004855x", 0, 0, 0},
        {"17960048552 x", 0, 0, 0},
        {"999999999 x", 0, 0, 0},
        {"4102444800 x", 0, 0, 0},
        {"9999999999999999999 x", 0, 0, 0},
        {"1073741824 x", 0, 0, 0}, /* 1 GiB */
        {"1073741824.0 x", 12, 0, 1073741824},
        {"2026-02-29 03:14:15 x", 0, 0, 0},
        {"", 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof stamps / sizeof stamps[0]; i++) {
        struct ep_strip_zone zone = {.latest = stamps[i].latest};
        size_t len = strlen(stamps[i].s), n;
        char *s = malloc(len ? len : 1);
        double ts = -1;

        if (!s)
            continue;
        memcpy(s, stamps[i].s, len);
        n = ep_strip_stamp(&zone, s, len, &ts);
        if (!ok(n == stamps[i].used && (!n || ts == stamps[i].ts)))
            printf("# '%s': %zu bytes, %.9f\n", stamps[i].s, n, ts);
        free(s);
    }
}

static void check_bars(void)
{
    static const char line[] = "[rank3]: a\r\r  b |\t \r   \rc";
    struct ep_buf scratch;
    struct ep_strip s;
    struct ep_span bar = {NULL, 0};

    ep_buf_init(&scratch);
    ep_strip_bars(line, sizeof line - 1, &scratch, &s);
    ok(s.rank == 3);
    ok(ep_strip_next_bar(&s.text, &bar) && ep_span_eq(bar, "a"));
    ok(ep_strip_next_bar(&s.text, &bar) && ep_span_eq(bar, "  b |"));
    ok(ep_strip_next_bar(&s.text, &bar) && ep_span_eq(bar, "c"));
    ok(!ep_strip_next_bar(&s.text, &bar));
    ep_buf_free(&scratch);
}

/* Local time against mktime(3), over the changes of 2026. */
static void check_zone(void)
{
    struct ep_strip_zone zone = {.known = false};
    int bad = 0;

    for (time_t t = 1767225600; t < 1798761600; t += 1700) {
        char text[32];
        struct tm tm;
        double ts;

        (void)localtime_r(&t, &tm);
        (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
        bad += ep_strip_time(&zone, text, strlen(text), &ts) != 19;
        tm.tm_isdst = -1;
        /* in the hour that comes twice either is right */
        bad += ts != (double)mktime(&tm) && ts != (double)t;
    }
    ok(bad == 0);
}

/* For the eye: bytes per second on lines without a prefix. */
/* Whatever was asked before, a zone answers as a new one does. */
static void check_memory(void)
{
    struct ep_strip_zone zone = {.latest = 1.8e9};
    struct ep_rng rng;
    int bad = 0;

    ep_rng_seed(&rng, SEED, 0);
    for (int i = 0; i < 20000; i++) {
        struct ep_strip_zone fresh = {.latest = zone.latest};
        /* few of them: most were asked lately, or just before that */
        int day = 1 + (int)(ep_rng_next(&rng) % 2), hour = day + 1;
        int month = (int)(ep_rng_next(&rng) % 4) < 3 ? 3 : 11;
        double got = 0, want = 0;
        char text[40];
        int n, form = (int)(ep_rng_next(&rng) % 3);

        switch (form) {
        case 0:
            n = snprintf(text, sizeof text, "2026-%02d-%02d %02d:%02d:05",
                         month, day, hour, (int)(ep_rng_next(&rng) % 60));
            break;
        case 1:
            n = snprintf(text, sizeof text, "I%02d%02d %02d:%02d:05.25 x",
                         month, day, hour, (int)(ep_rng_next(&rng) % 60));
            break;
        default:
            n = snprintf(text, sizeof text, "I2025%02d%02d %02d:%02d:05.25 x",
                         month, day, hour, (int)(ep_rng_next(&rng) % 60));
        }
        bad += ep_strip_stamp(&zone, text, (size_t)n, &got) !=
               ep_strip_stamp(&fresh, text, (size_t)n, &want);
        bad += got != want || got <= 0;
    }
    if (!ok(bad == 0))
        printf("# %d of a zone that was asked before, seed %d\n", bad, SEED);
}

static void measure(void)
{
    static const char line[] =
        "[2026-08-22 15:22:22.123456] iteration      182/  250000 | consumed "
        "samples:       186368 | elapsed time";
    struct ep_buf scratch;
    struct timespec a, b;
    struct ep_strip s;
    double sum = 0;
    int n = 400000;

    ep_buf_init(&scratch);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (int i = 0; i < n; i++) {
        ep_strip(line, sizeof line - 1, &scratch, &s);
        sum += (double)s.text.len;
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    ok(sum == (double)n * (sizeof line - 1));
    printf("# %.1f GB/s\n", sum / (((double)(b.tv_sec - a.tv_sec)) * 1e9 +
                                   (double)(b.tv_nsec - a.tv_nsec)));
    ep_buf_free(&scratch);
}

int main(void)
{
    check_cases();
    check_cuts();
    check_times();
    check_stamps();
    check_bars();
    check_zone();
    check_memory();
    measure();
    return tap_done();
}

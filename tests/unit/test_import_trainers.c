/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_import_trainers.c - the importers of Megatron-LM, DeepSpeed and NVRx:
 * all fixtures, one of each cut at every byte and with bytes damaged; what is
 * recognised as which format; where a time is found in a line; that no line
 * takes its square; that what is known of lines before changes nothing.
 */
#include "config.h"

#include "base/rng.h"
#include "import_fixtures.h"
#include "record/importers.h"
#include "record/log_text.h"

#include <time.h>

#define SEED 21

static const char warning[] =
    "STRAGGLER DETECTION WARNING: Some GPUs performance dropped. "
    "Affected ranks: [1, 2, 3], ";

static const struct ep_importer *const importers[] = {
    &ep_import_megatron, &ep_import_deepspeed, &ep_import_nvrx};

/* Is it as it should be, with records and without an error? */
static bool check_fixture(const struct ep_importer *from, const char *path)
{
    static char want[FILE_MAX], bad[FILE_MAX];

    return load_beside(path, "want", want) > 0 &&
           load_beside(path, "bad", bad) == 0 && fixture_is_right(from, path);
}

/* Is each line of part one of whole, in order? */
static bool is_part(const char *part, const char *whole)
{
    while (*part) {
        size_t n = strcspn(part, "\n") + 1;

        while (strncmp(part, whole, n) != 0) {
            whole = strchr(whole, '\n');
            if (!whole)
                return false;
            whole++;
        }
        part += n;
    }
    return true;
}

/*
 * Cut at every byte: what is read must be part of what the whole gives, for
 * half a number must not count. Then every third byte is damaged.
 */
static void check_sample(const struct ep_importer *from, const char *root,
                         const char *name)
{
    static const char bytes[] = {'\0', '"', '|', '}', ':', '9', ' ', '\xff'};
    static char in[FILE_MAX];
    struct nccl_check all = {.keep = true};
    char path[600];
    int invented = 0;
    size_t n;

    (void)snprintf(path, sizeof path, "%s/tests/fixtures/%s/%s.in", root,
                   from->name, name);
    n = load(path, in);
    nccl_check(from, in, n, &all);
    ok(all.records > 1);
    for (size_t i = 0; i < n; i++) {
        struct nccl_check part = {.keep = true};

        nccl_check(from, in, i, &part);
        if (part.out.ptr && !is_part(part.out.ptr, all.out.ptr)) {
            if (!invented++)
                printf("# %s, %zu bytes: %s", path, i, part.out.ptr);
        }
        ep_buf_free(&part.out);
    }
    ok(n > 0 && invented == 0);
    for (size_t i = 0; i < n; i += 3) {
        struct nccl_check check = {.keep = false};
        char was = in[i];

        in[i] = bytes[i / 3 % sizeof bytes];
        nccl_check(from, in, n, &check);
        in[i] = was;
    }
    ep_buf_free(&all.out);
}

/* A long line of what begins something must not take its square. */
static void check_long(void)
{
    static const char *const pieces[] = {
        "(ms)",
        "iteration 1/",
        "iteration 1/2 | elapsed time (ms): 1 |",
        "|",
        "[Rank 0] time (ms) | ",
        "time (ms) | fwd: 1 | ",
        "^^^^ Etpt(TF): 1/2,",
        "MnRtt/Rnk: 1ms/2 | ",
        "CurrSamplesPerSec=1, RunningAvgSamplesPerSec=",
        "2026-01-02 03:04:05 (ms)",
        "::::::::::::(ms)",
        "times across ranks (ms):",
        "GPU relative performance: Rank=",
        warning,
    };
    enum { BYTES = 1 << 20 };
    char *line = malloc(BYTES);

    for (size_t i = 0; line && i < sizeof pieces / sizeof pieces[0]; i++) {
        size_t n = strlen(pieces[i]), at;

        for (at = 0; at + n <= BYTES; at += n)
            memcpy(line + at, pieces[i], n);
        for (size_t k = 0; k < 3; k++) {
            struct nccl_check check = {.keep = false};
            clock_t begin = clock();
            double s;

            nccl_check(importers[k], line, at, &check);
            s = (double)(clock() - begin) / CLOCKS_PER_SEC;
            if (s > 5) /* a square would take hours */
                printf("# %s: %s took %.1f s\n", importers[k]->name, pieces[i],
                       s);
            ok(s < 60);
        }
    }
    free(line);
}

static const struct {
    const char *line;
    double ts; /* NaN: none, so that of the file, 7, is taken */
} times[] = {
    {"2026-01-02 03:04:05", 1767323045},
    {"[2026/01/02T03:04:05.5+01:00] x", 1767319445.5},
    {"2026-01-02 03:04:0", (double)NAN},
    {"x-01-02 03:04:05", (double)NAN},
    {"abcd-01-02 03:04:05", (double)NAN},
    {"2026-13-02 03:04:05", (double)NAN},
    /* the last place that is looked at: its last colon is the 64th byte */
    {"12345678901234567890123456789012345678901234567 2026-01-02 03:04:05",
     (double)NAN},
    {"1234567890123456789012345678901234567890123456 2026-01-02 03:04:05",
     1767323045},
    {"", (double)NAN},
    {"::::::::::::::::::::::::::::", (double)NAN},
    /* without a year: the last one that is not after the file */
    {"Nov 30 03:14:15 n1 x", 1796008455},
    {"<13>Nov 30 03:14:15.5 x", 1796008455.5},
    {"Jan 15 09:00:00 x", 1800003600}, /* an hour later: clocks differ */
    {"Jan 17 09:00:00 x", 1768640400}, /* 2026 */
    {"I1130 03:14:15.250000 17 a.go:3] x", 1796008455.25},
    {"[rank0]:[W1130 03:14:15.250000000 a.cpp:3] x", 1796008455.25},
    {"xI1130 03:14:15.250000 x", (double)NAN},
    {"Foo 30 03:14:15 x", (double)NAN},
    {"12:30:45 Nov 30 03:14:15 x", 1796008455},
    /* seconds, at the beginning only */
    {"1796008455.25 x", 1796008455.25},
    {"[1796008455] x", 1796008455},
    {"1796008455250: x", 1796008455.25},
    {"x 1796008455 x", (double)NAN},
};

/* A line without a time has that of the nearest before it, in any form. */
static void check_order(void)
{
    static const struct {
        const char *line;
        double ts;
    } lines[] = {
        {"nothing", 1800000000},
        {"Dec 31 23:59:59 x", 1798761599},
        {"nothing", 1798761599},
        {"2026-01-02 03:04:05 x", 1767323045},
        {"12:30:45 nothing", 1767323045},
        {"1767323050.5 x", 1767323050.5},
        {"1767323060000000000 x", 1767323060},
        {"nothing", 1767323060},
    };
    struct ep_log_clock clock;

    ep_log_clock_init(&clock, 1800000000);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char room[EP_LOG_HEAD + 64] = "";
        double ts;

        memcpy(room, lines[i].line, strlen(lines[i].line));
        ep_log_clock_note(&clock, room, strlen(lines[i].line));
        ts = ep_log_clock_at(&clock, (double)NAN);
        if (!ok(ts >= lines[i].ts && ts <= lines[i].ts))
            printf("# %s: %.17g\n", lines[i].line, ts);
    }
}

/* A file that is followed over New Year: what was read moves the year. */
static void check_new_year(void)
{
    struct ep_log_clock clock;
    const char *end;

    ep_log_clock_init(&clock, 1796008455);
    for (int i = 0; i < 32; i++) {
        char room[64 + EP_LOG_HEAD] = "";

        (void)snprintf(room, sizeof room, "Dec %2d 00:00:00 x", i + 1);
        if (i < 31)
            ep_log_clock_note(&clock, room, strlen(room));
    }
    end = "Jan  1 00:00:00 x";
    ok(near(ep_log_clock_in(&clock, end, end + strlen(end)), 1798761600, 0));
}

/* A time is found in the head of any line, wherever it is in memory. */
static void check_times(void)
{
    const double mtime = 1800000000; /* 2027-01-15 08:00 */

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char room[EP_LOG_HEAD + 128] = "";
        struct ep_line line = {.len = strlen(times[i].line)};
        double want = isnan(times[i].ts) ? mtime : times[i].ts;
        bool good = true;

        for (size_t at = 0; at < 17; at++) {
            struct ep_log_clock clock;
            double ts;

            memset(room, ':', sizeof room);
            memcpy(room + at, times[i].line, line.len);
            line.ptr = room + at;
            ep_log_clock_init(&clock, mtime);
            ep_log_clock_note(&clock, line.ptr, line.len);
            ts = ep_log_clock_at(&clock, (double)NAN);
            good &= ts >= want && ts <= want;
        }
        if (!ok(good))
            printf("# %s\n", times[i].line);
    }
}

/* Against a search byte by byte, at all lengths and places. */
static void check_pairs(void)
{
    static const struct ep_log_pairs pairs = {
        {{'a', 'b'}, {'b', 'b'}, {'c', 'a'}, {'a', 'b'}}};
    unsigned seed = 1;
    char room[128 + EP_LINE_PAD];
    int bad = 0;

    for (int k = 0; k < 20000; k++) {
        size_t n = (size_t)k % 70;
        const char *want = NULL;

        for (size_t i = 0; i < sizeof room; i++) {
            seed = seed * 1103515245 + 12345;
            room[i] = "abcdefghijklmnop"[seed >> 16 & 15];
        }
        for (size_t i = 0; i + 1 < n && !want; i++)
            for (int j = 0; j < 4 && !want; j++)
                if (memcmp(room + i, pairs.c[j], 2) == 0)
                    want = room + i;
        bad += ep_log_pair(room, room + n, &pairs) != want;
    }
    ok(bad == 0);
}

/* A line of times whose cells are those of most others, or not. */
static void make_times(struct ep_rng *rng, struct ep_buf *b)
{
    static const char *const cells[] = {
        " fwd: 1.25 |",
        " bwd: 2.5 |",
        " step: 3 |",
        " bwd_inner= 4 |",
        "fwd:1 |",
        "  fwd : 1 |",
        " fwd 1 |",
        " : 5 |",
        " what: no number |",
        " |",
        " a:b=7 |",
        " FWD: 8",
        " fwd: 9 | bwd: 1",
        " Bwd-In: 2 |",
        " fwd:: 3 |",
        "\tstep:\t4\t|",
        " a name that is too long to be remembered by anybody: 7 |"};
    const uint64_t n = sizeof cells / sizeof cells[0];

    ep_buf_reset(b);
    ep_buf_adds(b,
                ep_rng_next(rng) % 4 ? "[Rank 0] time (ms) |" : "time (ms) |");
    for (uint64_t i = 0; i < 14; i++)
        ep_buf_adds(b,
                    cells[ep_rng_next(rng) % 4 ? i % n : ep_rng_next(rng) % n]);
}

/* The same gauges, whatever is known of the lines before? */
static void check_known_cells(void)
{
    struct ep_log log = {.whole = true};
    struct ep_log_times known = {.number = 0};
    struct ep_buf b;
    struct ep_rng rng;
    int bad = 0, gauges = 0;

    ep_buf_init(&b);
    ep_log_clock_init(&log.clock, 1.7e9);
    ep_rng_seed(&rng, SEED, 0);
    for (int i = 0; i < 4000; i++) {
        struct ep_log_times fresh = {.prefix = i & 1 ? "a_" : "b_"};
        struct ep_record r, want;
        bool more;

        make_times(&rng, &b);
        log.line.text = (struct ep_span){b.ptr, b.len};
        log.line.rank = log.line.pid = -1;
        known.prefix = fresh.prefix;
        bad += !ep_log_times(&log, &known) || !ep_log_times(&log, &fresh);
        do {
            char name[EP_LOG_NAME_MAX + 1];

            memset(fresh.known, 0, sizeof fresh.known);
            more = ep_log_next_time(&log, &fresh, &want);
            (void)snprintf(name, sizeof name, "%.*s",
                           more ? (int)want.v[EP_K_NAME].str.len : 0,
                           more ? want.v[EP_K_NAME].str.ptr : "");
            if (ep_log_next_time(&log, &known, &r) != more)
                bad++;
            else if (more)
                bad += !ep_span_eq(r.v[EP_K_NAME].str, name) ||
                       r.v[EP_K_VALUE].num != want.v[EP_K_VALUE].num ||
                       known.rest.p != fresh.rest.p;
            gauges += more;
        } while (more);
    }
    if (!ok(bad == 0 && gauges > 10000))
        printf("# %d of %d, seed %d\n", bad, gauges, SEED);
    ep_buf_free(&b);
}

int main(void)
{
    const char *root = getenv("top_srcdir");

    (void)setenv("TZ", "UTC", 1);
    tzset();
    root = root ? root : ".";
    for (size_t i = 0; i < 3; i++) {
        check_folder(importers[i], root, check_fixture);
        ok(ep_importer_find(importers[i]->name) == importers[i]);
    }
    check_sample(&ep_import_megatron, root, "iteration");
    check_sample(&ep_import_megatron, root, "timers-minmax");
    check_sample(&ep_import_megatron, root, "timers-all");
    check_sample(&ep_import_megatron, root, "straggler");
    check_sample(&ep_import_megatron, root, "validation");
    check_sample(&ep_import_deepspeed, root, "throughput");
    check_sample(&ep_import_deepspeed, root, "breakdown");
    check_sample(&ep_import_nvrx, root, "report");
    check_sample(&ep_import_nvrx, root, "warning");
    check_times();
    check_order();
    check_new_year();
    check_pairs();
    check_known_cells();
    check_long();
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_json.c - the JSON scanner on telemetry lines, in one run with json-c.
 *
 *     bench_json [MB]     size of the text (64)
 *
 * The text is step and coll records in turn, all numbers drawn at random, so
 * that their lengths vary. What is timed, on one core, on the same text:
 *
 *   lines   memchr() for each '\n': what splitting lines costs alone
 *   scan    splitting, then pulling every member: hash of the key, length of
 *           a string, double of a number
 *   padded  the same, with the scanner told that the next lines may be loaded
 *   json-c  splitting, then json_tokener_parse_ex() to a tree, freed again;
 *           on the first 1/16 of the text (only if json-c was there)
 *
 * Each is run 7 times; printed are the median and the median absolute
 * deviation in MB/s (10^6 bytes) and ns per line.
 */
#include "config.h"

#include "base/json.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_JSONC
#include <json-c/json.h>
#endif

#define RUNS 7

static uint64_t seed = 20240607;

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t draw(uint64_t below)
{
    uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static void add_line(struct ep_buf *b, uint64_t i)
{
    uint64_t rank = draw(1024), us = 1730000000123456 + i * 1000;

    ep_buf_addf(
        b,
        "{\"type\":\"%s\",\"ts\":%" PRIu64 ".%06" PRIu64
        ",\"job\":\"lm-140b\",\"host\":\"n%" PRIu64 "\",\"rank\":%" PRIu64 ",",
        i % 2 ? "coll" : "step", us / 1000000, us % 1000000, rank / 8, rank);
    if (i % 2)
        ep_buf_addf(
            b,
            "\"op\":\"all_reduce\",\"comm\":\"0x%" PRIx64
            "\",\"nranks\":128,\"comm_rank\":%" PRIu64 ",\"seq\":%" PRIu64
            ",\"bytes\":%" PRIu64 ",\"dur\":%.3g}\n",
            UINT64_C(0x7f8c49000000) + draw(1 << 20), rank % 128, i / 1024,
            draw(1 << 26), 1e-4 + (double)draw(1000000) * 1e-8);
    else
        ep_buf_addf(b,
                    "\"step\":%" PRIu64
                    ",\"dur\":%.8g,\"busy\":%.8g"
                    ",\"mb\":%" PRIu64 "}\n",
                    i / 1024, 1.4 + (double)draw(10000000) * 1e-8,
                    1.2 + (double)draw(10000000) * 1e-8, 1 + draw(16));
}

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What keeps the compiler from dropping the work. */
struct sums {
    uint64_t lines, keys, strings;
    double numbers;
};

static uint64_t hash(const struct ep_json *j, struct ep_span s)
{
    return (ep_json_head(j, s) + s.len) * UINT64_C(0x9e3779b97f4a7c15);
}

static int take_line(const char *line, size_t len, size_t pad, struct sums *s)
{
    struct ep_json_value key, v;
    struct ep_json j;
    double x = 0;
    int r = ep_json_begin_padded(&j, line, len, pad, &v, NULL);

    if (r < 0 || v.kind != EP_JSON_OBJECT)
        return -1;
    ep_json_enter(&j);
    while ((r = ep_json_next(&j, &key, &v)) > 0) {
        s->keys ^= hash(&j, key.raw);
        if (v.kind == EP_JSON_NUMBER) {
            if (ep_json_double(&v, &x) < 0)
                return -1;
            s->numbers += x;
        } else if (v.kind == EP_JSON_STRING) {
            s->strings += v.raw.len;
        }
    }
    return r < 0 ? r : ep_json_end(&j);
}

static int do_lines(const char *p, const char *end, struct sums *s)
{
    for (const char *nl; p < end; p = nl + 1) {
        nl = memchr(p, '\n', (size_t)(end - p));
        s->lines++;
    }
    return 0;
}

static int do_scan(const char *p, const char *end, struct sums *s)
{
    for (const char *nl; p < end; p = nl + 1) {
        nl = memchr(p, '\n', (size_t)(end - p));
        if (take_line(p, (size_t)(nl - p), 0, s) < 0)
            return -1;
    }
    return 0;
}

static int do_padded(const char *p, const char *end, struct sums *s)
{
    for (const char *nl; p < end; p = nl + 1) {
        nl = memchr(p, '\n', (size_t)(end - p));
        if (take_line(p, (size_t)(nl - p), (size_t)(end - nl), s) < 0)
            return -1;
    }
    return 0;
}

#ifdef HAVE_JSONC
static int do_jsonc(const char *p, const char *end, struct sums *s)
{
    struct json_tokener *tok = json_tokener_new();
    int bad = 0;

    for (const char *nl; p < end && !bad; p = nl + 1) {
        struct json_object *tree;

        nl = memchr(p, '\n', (size_t)(end - p));
        tree = json_tokener_parse_ex(tok, p, (int)(nl - p));
        bad = !tree;
        s->keys += (uint64_t)json_object_object_length(tree);
        json_object_put(tree);
    }
    json_tokener_free(tok);
    return -bad;
}
#endif

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Time one way; returns its median in bytes per second. */
static double measure(const char *name,
                      int (*fn)(const char *, const char *, struct sums *),
                      const char *p, size_t len, double line_bytes)
{
    static volatile double sink;
    double t[RUNS], away[RUNS], median;
    struct sums s = {0};

    for (int i = 0; i < RUNS; i++) {
        double from = now();

        if (fn(p, p + len, &s) < 0) {
            (void)fprintf(stderr, "bench_json: %s: a line was refused\n", name);
            exit(2);
        }
        t[i] = (double)len / (now() - from);
    }
    sink = s.numbers + (double)(s.lines ^ s.keys ^ s.strings);
    (void)sink;
    qsort(t, RUNS, sizeof *t, ascending);
    median = t[RUNS / 2];
    for (int i = 0; i < RUNS; i++)
        away[i] = t[i] > median ? t[i] - median : median - t[i];
    qsort(away, RUNS, sizeof *away, ascending);
    printf("json/%-8s %9.1f MB/s  MAD %6.1f  %8.1f ns/line\n", name,
           median * 1e-6, away[RUNS / 2] * 1e-6, 1e9 * line_bytes / median);
    return median;
}

int main(int argc, char **argv)
{
    size_t mb = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 64;
    struct ep_buf text;
    uint64_t lines = 0;
    double line_bytes, scan;

    ep_buf_init(&text);
    while (text.len < mb * 1000000 || lines == 0)
        add_line(&text, lines++);
    line_bytes = (double)text.len / (double)lines;
    printf("# %" PRIu64 " lines, %.1f bytes each\n", lines, line_bytes);
    (void)measure("lines", do_lines, text.ptr, text.len, line_bytes);
    scan = measure("scan", do_scan, text.ptr, text.len, line_bytes);
    (void)measure("padded", do_padded, text.ptr, text.len, line_bytes);
#ifdef HAVE_JSONC
    {
        const char *part = text.ptr + text.len / 16;
        const char *nl = memchr(part, '\n', text.len - text.len / 16);
        size_t len = (size_t)(nl + 1 - text.ptr);

        printf("# scan is %.1f times as fast as json-c\n",
               scan / measure("json-c", do_jsonc, text.ptr, len, line_bytes));
    }
#else
    (void)scan;
    printf("# json-c: not available\n");
#endif
    ep_buf_free(&text);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_record.c - records from lines in memory, without and with the check
 * of ranges, against the bare JSON scanner on the same lines.
 */
#include "config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/stats.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>

#define TEXT_BYTES (32 << 20)
#define ROUNDS 7

static void make_text(struct ep_buf *b)
{
    for (int i = 0; b->len < TEXT_BYTES; i++)
        ep_buf_addf(b,
                    "{\"type\":\"step\",\"ts\":%d.%06d,\"job\":\"lm-140b\","
                    "\"host\":\"n%d\",\"rank\":%d,\"step\":%d,\"dur\":1.%07d,"
                    "\"busy\":1.%07d,\"mb\":8}\n",
                    1730000000 + i / 64, i * 7919 % 1000000, i % 64 / 8, i % 64,
                    i / 64, i * 104729 % 10000000, i * 15485863 % 10000000);
}

/* Every key and number of every line; returns a sum, so that it is used. */
static double scan(const struct ep_buf *b)
{
    struct ep_json_value key, v;
    struct ep_json j;
    double sum = 0, x;

    for (const char *p = b->ptr, *end = p + b->len; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        if (ep_json_begin(&j, p, (size_t)(nl - p), &v, NULL) < 0)
            return -1;
        ep_json_enter(&j);
        while (ep_json_next(&j, &key, &v) > 0)
            if (v.kind == EP_JSON_NUMBER && ep_json_double(&v, &x) == 0)
                sum += x;
        p = nl + 1;
    }
    return sum;
}

static double parse(const struct ep_buf *b)
{
    struct ep_record_parser *parser = ep_record_parser_new();
    struct ep_record r;
    double sum = 0;

    for (const char *p = b->ptr, *end = p + b->len; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        if (ep_record_parse(parser, p, (size_t)(nl - p), &r, NULL) < 0)
            break;
        sum += ep_record_num(&r, EP_K_DUR);
        p = nl + 1;
    }
    ep_record_parser_free(parser);
    return sum;
}

static double print(const struct ep_buf *b)
{
    struct ep_record_parser *parser = ep_record_parser_new();
    struct ep_buf out;
    struct ep_record r;
    const char *nl = memchr(b->ptr, '\n', b->len);
    size_t n = (size_t)(nl - b->ptr);
    double total = 0;

    ep_buf_init(&out);
    if (ep_record_parse(parser, b->ptr, n, &r, NULL) == 0)
        for (size_t at = 0; at < b->len; at += n) {
            ep_buf_reset(&out);
            ep_record_print(&r, &out);
            total += (double)out.len;
        }
    ep_buf_free(&out);
    ep_record_parser_free(parser);
    return total;
}

static void run(const char *name, double (*fn)(const struct ep_buf *b),
                const struct ep_buf *b, double *base)
{
    double v[ROUNDS], median, sum = 0;

    for (int i = 0; i < ROUNDS; i++) {
        double start = ep_clock_now(&ep_clock_mono);

        sum += fn(b);
        v[i] = ep_clock_now(&ep_clock_mono) - start;
    }
    median = ep_median(v, ROUNDS);
    if (!*base)
        *base = median;
    (void)printf("%-24s %8.0f MB/s  %5.2f x scan  (%g)\n", name,
                 1e-6 * (double)b->len / median, *base / median, sum);
}

int main(void)
{
    struct ep_buf b;
    double base = 0;

    ep_buf_init(&b);
    make_text(&b);
    run("json scan", scan, &b, &base);
    run("record parse", parse, &b, &base);
    run("record print", print, &b, &base);
    ep_buf_free(&b);
    return 0;
}

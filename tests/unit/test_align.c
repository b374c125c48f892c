/* SPDX-License-Identifier: Apache-2.0 */
/* test_align.c - corrected records: which, and how their lines are printed. */
#include "config.h"

#include "record/align.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

static void feed(struct ep_clock_skew *skew, const char *host, int seq,
                 double end)
{
    struct ep_record r;

    ep_record_begin(&r, EP_COLL);
    ep_record_set_num(&r, EP_K_TS, end - 0.25);
    ep_record_set_num(&r, EP_K_DUR, 0.25);
    ep_record_set_str(&r, EP_K_HOST, host);
    ep_record_set_str(&r, EP_K_OP, "all_reduce");
    ep_record_set_str(&r, EP_K_COMM, "w");
    ep_record_set_int(&r, EP_K_SEQ, seq);
    ep_clock_skew_take(skew, &r);
}

/* a and b agree, c is 8 s ahead, d knows nobody. */
static struct ep_clock_table *clocks(void)
{
    struct ep_clock_skew *skew = ep_clock_skew_new(0);
    struct ep_clock_table *t;

    for (int i = 0; i < 10; i++) {
        feed(skew, "a", i, 1000 + i);
        feed(skew, "b", i, 1000 + i);
        feed(skew, "c", i, 1008 + i);
        feed(skew, "d", i + 100, 1000 + i);
    }
    t = ep_clock_skew_solve(skew);
    ep_clock_skew_free(skew);
    return t;
}

/* What becomes of a line; NULL: it is not corrected. */
static const struct {
    const char *in, *out;
} lines[] = {
    {"{\"type\":\"loss\",\"ts\":1010.5,\"host\":\"c\",\"step\":1,"
     "\"value\":2}",
     "{\"type\":\"loss\",\"ts\":1002.5,\"host\":\"c\",\"step\":1,"
     "\"value\":2}\n"},
    /* order, spelling, white space and unknown keys stay */
    {" { \"x\":{\"ts\":1010, \"a\":[1, 2]} , \"host\":\"c\",\"ts\" : "
     "1.0105e3 "
     ",\"type\":\"loss\", \"step\":1e0,\"value\":2.50,\"ts_y\":1010} ",
     " { \"x\":{\"ts\":1010, \"a\":[1, 2]} , \"host\":\"c\",\"ts\" : "
     "1002.5 "
     ",\"type\":\"loss\", \"step\":1e0,\"value\":2.50,\"ts_y\":1010} \n"},
    /* the last of two counts, both say the same afterwards */
    {"{\"type\":\"loss\",\"ts\":5,\"host\":\"c\",\"step\":1,\"value\":2,"
     "\"\\u0074s\":1010}",
     "{\"type\":\"loss\",\"ts\":1002,\"host\":\"c\",\"step\":1,\"value\":2,"
     "\"\\u0074s\":1002}\n"},
    {"{\"type\":\"event\",\"ts\":1020,\"eid\":\"e\",\"kind\":\"onset\","
     "\"scope\":\"host\",\"since\":1012,\"host\":\"c\"}",
     "{\"type\":\"event\",\"ts\":1012,\"eid\":\"e\",\"kind\":\"onset\","
     "\"scope\":\"host\",\"since\":1004,\"host\":\"c\"}\n"},
    /* not before the epoch */
    {"{\"type\":\"loss\",\"ts\":3,\"host\":\"c\",\"step\":1,\"value\":2}",
     "{\"type\":\"loss\",\"ts\":0,\"host\":\"c\",\"step\":1,"
     "\"value\":2}\n"},
    /* without ts there is nothing to change */
    {"{\"type\":\"layout\",\"host\":\"c\",\"dp\":1,\"microbatches\":2}",
     "{\"type\":\"layout\",\"host\":\"c\",\"dp\":1,\"microbatches\":2}\n"},
    {"{\"type\":\"loss\",\"ts\":1010,\"host\":\"a\",\"step\":1,"
     "\"value\":2}",
     NULL},
    {"{\"type\":\"loss\",\"ts\":1010,\"host\":\"d\",\"step\":1,"
     "\"value\":2}",
     NULL},
    {"{\"type\":\"loss\",\"ts\":1010,\"step\":1,\"value\":2}", NULL},
    {"{\"type\":\"new\",\"ts\":1010,\"host\":\"c\"}", NULL},
    {"{\"type\":\"new\",\"ts\":1010,\"host\":7}", NULL},
};

static void check_lines(struct ep_clock_table *t)
{
    struct ep_record_parser *p = ep_record_parser_new();
    struct ep_record r;
    struct ep_buf out;

    ep_buf_init(&out);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct ep_line line = {.ptr = lines[i].in, .len = strlen(lines[i].in)};
        double ts;

        ok(ep_record_parse(p, line.ptr, line.len, &r, NULL) == 0);
        ts = r.v[EP_K_TS].num;
        ep_align_record(t, &r);
        if (!lines[i].out) {
            ok(!ep_align_concerns(t, &r) && r.v[EP_K_TS].num == ts);
            continue;
        }
        ok(ep_align_concerns(t, &r));
        ep_buf_reset(&out);
        ep_align_line(&line, &r, &out);
        if (!ok(strcmp(out.ptr, lines[i].out) == 0))
            printf("# %s", out.ptr);
    }
    ep_buf_free(&out);
    ep_record_parser_free(p);
}

static void check_words(struct ep_clock_table *t)
{
    size_t n;
    const struct ep_clock_host *h = ep_clock_table_hosts(t, &n);
    struct ep_record r;
    struct ep_buf b;

    ep_buf_init(&b);
    ok(n == 4 && strcmp(h[0].name, "c") == 0 && strcmp(h[3].name, "d") == 0);
    ep_align_gauge(t, &h[0], &r, &b);
    ok(ep_record_num(&r, EP_K_VALUE) == 8 && h[0].line.rate == 0);
    ok(ep_span_eq(ep_record_str(&r, EP_K_EVIDENCE),
                  "from 10 collectives, spread 0 s, error 147 ns, drift 0 ppm, "
                  "relative to a"));
    ep_buf_reset(&b);
    ep_align_say_corrected(t, &b);
    ok(strcmp(b.ptr,
              "corrected the clocks of 1 hosts from 10 collectives, "
              "most that of c, which was 8 s ahead of a") == 0);
    ep_buf_reset(&b);
    ep_align_say_unknown(t, &b);
    ok(strcmp(b.ptr,
              "1 hosts share no collective with another, their clocks "
              "are not compared: d") == 0);
    ep_buf_reset(&b);
    ep_align_say_groups(t, &b);
    ep_align_say_ambiguous(t, &b);
    ok(b.len == 0);
    ep_buf_free(&b);
}

static void check_inputs(void)
{
    static const struct {
        const char *path;
        int rc;
    } cases[] = {
        {"-", EP_EUSAGE},
        {"/dev/null", EP_EUSAGE},
        {"http://n1:9400/metrics", EP_EUSAGE},
        {"/", 0},
        {"/nowhere/at/all", 0}, /* opening it will say so */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok(ep_align_check(&cases[i].path, 1, NULL) == cases[i].rc);
    ok(ep_align_check(NULL, 0, NULL) == EP_EUSAGE);
}

int main(void)
{
    struct ep_clock_table *t = clocks();

    ok(ep_clock_table_find(t, span("c")) != NULL);
    check_lines(t);
    check_words(t);
    check_inputs();
    ep_clock_table_free(t);
    return tap_done();
}

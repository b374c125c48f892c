/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pattern.c - patterns: what is refused and why, literals of expressions
 * and the search for them against memmem(3), values with units, the file of
 * common patterns, matches that would not end. Records of whole logs are in
 * import-more.bats.
 */
#include "config.h"

#include "record/pattern.h"
#include "record/pattern_literal.h"
#include "record/pattern_value.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct ep_span span(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

/* ==== Literals ==== */

static void test_find(void)
{
    static const char *const cases[][2] = {
        {"ep \\d+ train, step (?<step>\\d+), .*cuda:", " train, step "},
        {"abc", "abc"},
        {"abc?", "ab"},
        {"abc*d", "ab"},
        {"abc+de", "abc"},
        {"ab{2}cde", "cde"},
        {"abx{2}{3}", "ab"},
        {"a{b}", "a{b}"},
        {"abc|d", ""},
        {"(abc|d)ef", "ef"},
        {"(abc)", ""},
        {"x[abc]+yz", "yz"},
        {"x[]a]yz[^]b]w", "yz"},
        {"x[[:alpha:]]+yz", "yz"},
        {"x[\\]a]yz", "yz"},
        {"\\[INFO\\] x", "[INFO] x"},
        {"a\\.b\\-c", "a.b-c"},
        {"^step: $", "step: "},
        {"(?i)abc", ""},
        {"(?x)a b c", ""},
        {"ab(?i)cd", ""},
        {"ab(?:(?i)c)de", ""},
        {"\\Qab\\E", ""},
        {"ab(?#c)d)e)", ""},
        {"(*UCP)ab", ""},
        {"a\\x41bcd", ""},
        {"ab\\dcde\\wf", "cde"},
        {"(?=x)abc(?!y)", "abc"},
        {"(a(b(c)d)e)fg", "fg"},
        {"(a\\)b)cd", "cd"},
        {"(a[)]b)cd", "cd"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_literal l;

        ep_literal_find(&l, cases[i][0]);
        if (!ok(l.len == strlen(cases[i][1]) &&
                memcmp(l.text, cases[i][1], l.len) == 0))
            printf("# %s: '%.*s'\n", cases[i][0], (int)l.len, l.text);
    }
}

static unsigned long long state = 88172645463325252ULL;

static unsigned next_random(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

/* Random texts of few letters, so that literals nearly fit everywhere. */
static void test_search(void)
{
    int wrong = 0, hits = 0;

    printf("# seed %llu\n", state);
    for (int round = 0; round < 20000; round++) {
        struct ep_literals set = {.n = 0};
        struct ep_literal l[12];
        size_t n = next_random(200), count = 1 + next_random(12);
        char *text = malloc(n + 1); /* its end is the end of the heap block */
        bool any = false;

        for (size_t i = 0; i < n; i++)
            text[i] = (char)('a' + next_random(3));
        for (size_t i = 0; i < count; i++) {
            char s[16];
            size_t len = 1 + next_random(12);
            bool in;

            for (size_t j = 0; j < len; j++)
                s[j] = (char)('a' + next_random(3));
            ep_literal_set(&l[i], s, len);
            in = memmem(text, n, s, len) != NULL;
            wrong += ep_literal_in(&l[i], text, n) != in;
            ep_literals_add(&set, &l[i]);
            any = any || in;
            hits += in;
        }
        wrong += ep_literals_any(&set, text, n) != any;
        ep_literals_free(&set);
        free(text);
    }
    printf("# %d literals were in their texts\n", hits);
    ok(wrong == 0);
}

/* ==== Values ==== */

#define NONE (-12345.0)

static void test_values(void)
{
    static const struct {
        const char *group, *text, *reason;
        double value;
    } cases[] = {
        {"dur", "1.5", NULL, 1.5},
        {"dur", " 12.5ms ", NULL, 0.0125},
        {"dur", "3.2 s", NULL, 3.2},
        {"dur", "7us", NULL, 7e-6},
        {"dur", "7\xc2\xb5s", NULL, 7e-6},
        {"dur", "1h30m", NULL, 5400},
        {"dur", "0:01:05", NULL, 65},
        {"dur", "1:02.5", NULL, 62.5},
        {"dur", "12:34:56", NULL, 45296},
        {"dur_ms", "0.1", NULL, 0.0001},
        {"dur_ms", "2s", NULL, 2},
        {"dur", "12pc", "dur '12pc': unknown unit 'pc'", NONE},
        {"dur", "", "dur '': not a number", NONE},
        {"dur", "-1", "dur '-1': out of range", NONE},
        {"dur", "1e999", "dur '1e999': out of range", NONE},
        {"dur", "nan", "dur 'nan': not a number", NONE},
        {"step", "10,050", NULL, 10050},
        {"step", "1,234,567", NULL, 1234567},
        {"step", "+7", NULL, 7},
        {"step", "12,34", "step '12,34': unknown unit ',34'", NONE},
        {"step", "1.5", "step '1.5': not a whole number", NONE},
        {"step", "-1", "step '-1': not in 0..2^53", NONE},
        {"step", "9007199254740992", "step '9007199254740992': not in 0..2^53",
         NONE},
        {"step", "1K", "step '1K': unknown unit 'K'", NONE},
        {"bytes", "1.5GiB", NULL, 1610612736},
        {"bytes", "4GB", NULL, 4e9},
        {"bytes", "64K", NULL, 65536},
        {"bytes_MiB", "2", NULL, 2097152},
        {"value", "45%", NULL, 0.45},
        {"value", "12.5 GB/s", NULL, 12.5e9},
        {"value_Gbps", "100", NULL, 12.5e9},
        {"value_TFLOPs", "312.5", NULL, 312.5e12},
        {"ts", "1500000000.25", NULL, 1500000000.25},
        {"ts_ns", "1500000000250000001", NULL, 1500000000.25},
        {"ts", "2026-01-15 08:00:00", NULL, 1768464000},
        {"ts", "2026-01-15T08:00:00.5+01:00", NULL, 1768460400.5},
        {"ts", "", "ts '': not a time", NONE},
        {"ts", "2026-01-15", "ts '2026-01-15': not a time", NONE},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ep_pattern_unit *unit;
        struct ep_strip_zone zone = {.known = false};
        struct ep_error err = {.code = 0};
        struct ep_record r;
        enum ep_key k;
        double got = NONE;

        ok(ep_pattern_key(span(cases[i].group), &k, &unit, &err) == 0);
        ep_record_begin(&r, EP_GAUGE);
        if (ep_pattern_value(&r, k, span(cases[i].text), unit, &zone, &err) ==
            0)
            got = ep_record_num(&r, k);
        if (!ok(got == cases[i].value &&
                strcmp(err.msg, cases[i].reason ? cases[i].reason : "") == 0))
            printf("# %s '%s': %.17g %s\n", cases[i].group, cases[i].text, got,
                   err.msg);
    }
}

/* ==== Patterns ==== */

#ifdef HAVE_PCRE2

static void test_refused(void)
{
    static const char *const cases[][3] = {
        {"(?<step>\\d+) (?<foo>x)", "step",
         "group 'foo' is no key of evenpace-record(5)"},
        {"(?<step>\\d+) (?<type>x)", "step",
         "group 'type' is no key of evenpace-record(5)"},
        {"(?<step>\\d+) (?<dur_GB>x)", "step",
         "group 'dur_GB' is of no unit that dur can have"},
        {"(?<step>\\d+)", "step",
         "a step record needs dur, and no group is named so"},
        {"step", "step", "no named group in it"},
        {"(?<step>\\d+", "step", "byte 11: missing closing parenthesis"},
        {"(?<value>x)", "gauge,name=x",
         "a gauge record needs unit, and no group is named so"},
        {"(?<value>x)", "gage", "'gage' is no type of evenpace-record(5)"},
        {"(?<value>x)", "gauge,name=x,unit=1,step=x", "step 'x': not a number"},
        {"(?<value>x)", "gauge,name=,unit=1", "name is set to nothing"},
        {"(*UTF)(?<value>x)", "gauge,name=x,unit=1",
         "byte 6: using UTF is disabled by the application"},
    };
    struct ep_patterns *p = ep_patterns_new();

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_error err = {.code = 0};
        char want[300];

        (void)snprintf(want, sizeof want, "cannot use pattern '%s': %s",
                       cases[i][0], cases[i][2]);
        ok(ep_patterns_add_text(p, cases[i][0], cases[i][1], EP_BARS_NONE,
                                &err) == EP_EFORMAT);
        /* backslashes are shown as \x5c */
        if (!ok(strcmp(strstr(err.msg, "': ") ? strstr(err.msg, "': ") : "",
                       strstr(want, "': ")) == 0))
            printf("# %s\n", err.msg);
    }
    ok(ep_patterns_count(p) == 0);
    ok(ep_patterns_add_text(p, "x", "gauge,name", EP_BARS_NONE, NULL) ==
       EP_EUSAGE);
    ep_patterns_free(p);
}

/* The records of a line as text. */
static const char *records(const struct ep_patterns *p, const char *line,
                           struct ep_buf *out, struct ep_error *err)
{
    struct ep_pattern_cursor c;
    struct ep_record r;
    int rc;

    ep_buf_reset(out);
    ep_buf_adds(out, "");
    err->msg[0] = '\0';
    ep_pattern_cursor_init(&c, 5);
    if (ep_pattern_begin(&c, p, span(line)))
        while ((rc = ep_pattern_next(&c, p, &r, err)) != 0)
            if (rc > 0)
                ep_record_print(&r, out);
    ep_pattern_cursor_free(&c);
    return out->ptr;
}

static void test_endless(void)
{
    struct ep_patterns *p = ep_patterns_new();
    struct ep_error err;
    struct ep_buf out;
    clock_t begin = clock();

    ep_buf_init(&out);
    ok(ep_patterns_add_text(p, "^(?<name>(?:a+)+)(?<value>\\d)$",
                            "gauge,unit=1", EP_BARS_NONE, &err) == 0);
    ok(ep_patterns_add_text(p, "a!(?<value>\\d?)", "gauge,name=n,unit=1",
                            EP_BARS_NONE, &err) == 0);
    (void)records(p, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!7",
                  &out, &err);
    ok(strstr(err.msg, "takes too long with this line") != NULL);
    ok(strcmp(out.ptr,
              "{\"type\":\"gauge\",\"ts\":5,\"name\":\"n\",\"value\":"
              "7,\"unit\":\"1\"}\n") == 0);
    ok(clock() - begin < 20 * CLOCKS_PER_SEC);
    (void)records(p, "aaa!", &out, &err);
    ok(strstr(err.msg, "value '': not a number") != NULL);
    ep_buf_free(&out);
    ep_patterns_free(p);
}

static int load_text(struct ep_patterns *p, const char *text,
                     struct ep_error *err)
{
    char path[] = "/tmp/evenpace-pattern-XXXXXX";
    int fd = mkstemp(path), rc;
    const char *colon;

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
    (void)close(fd);
    rc = ep_patterns_load(p, path, err);
    (void)unlink(path);
    colon = rc < 0 ? strchr(err->msg, ':') : NULL;
    if (colon)
        memmove(err->msg, colon + 1, strlen(colon));
    return rc;
}

static void test_files(void)
{
    static const char *const cases[][2] = {
        {"", NULL},
        {"# x\n\n  \n", NULL},
        {"regex x\n", "1:1: a pattern file begins with \"pattern NAME TYPE\""},
        {"pattern a\n", "1:1: a pattern has a name and a type of record"},
        {"pattern a step b\n",
         "1:1: a pattern has a name and a type of record"},
        {"pattern a step\n", "1:1: pattern 'a' has no regex"},
        {"pattern a step\n\tregex x\nregex y\n", "3:1: a second regex"},
        {"pattern a step\nregex\n", "2:1: regex of nothing"},
        {"pattern a step\nset x\n", "2:1: set needs a key and a value"},
        {"pattern a step\n  rogex x\n", "2:3: unknown keyword 'rogex'"},
        {"#\n pattern a step\nregex (?<step>x)\n",
         "2:2: pattern 'a': a step record needs dur, and no group is "
         "named so"},
        {"pattern a stop\nregex (?<step>x)\n",
         "1:1: pattern 'a': 'stop' is no type of evenpace-record(5)"},
        {"pattern a step\n\n  regex (?<step>\\d+ x\n",
         "3:22: pattern 'a': missing closing parenthesis"},
        {"pattern a step\nregex   (?<step>x) a{3,2}\n",
         "2:25: pattern 'a': numbers out of order in {} quantifier"},
        {"pattern a step\nregex (?<foo>x)\n",
         "2:7: pattern 'a': group 'foo' is no key of evenpace-record(5)"},
        {"pattern a step\nregex (?<dur>x)\nset step 1\nset mb a\n",
         "4:5: pattern 'a': mb 'a': not a number"},
        {"pattern a loss\nregex (?<step>\\d) (?<value>\\S+)\nsample 1 2\n"
         " sample 1\n",
         "4:9: pattern 'a' does not match its sample"},
        {"pattern a loss\nregex (?<step>\\d) (?<value>\\S+)\nsample 1 b\n",
         "3:8: pattern 'a': value 'b': not a number"},
        {"pattern a loss\nregex (?<step>\\d) (?<value>\\S+)\nsample 1 b\n"
         "pattern b loss\n",
         "3:8: pattern 'a': value 'b': not a number"},
        {"pattern a loss\r\nregex (?<step>\\d) (?<value>\\S+)\r\nraw\r\n"
         "sample 3 4\\r1 2\r\n",
         NULL},
        {"pattern a loss\nraw all\n",
         "2:1: raw has nothing or \"every\" behind it"},
        {"pattern a gauge\nset unit 1\nset name x\n"
         "regex ^(?<name>(?:a+)+)(?<value>\\d)$\n"
         "sample aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!7\n",
         "5:8: pattern 'a': takes too long with this line"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_patterns *p = ep_patterns_new();
        struct ep_error err = {.code = 0};
        int rc = load_text(p, cases[i][0], &err);

        if (!ok(cases[i][1] ? rc < 0 && strcmp(err.msg, cases[i][1]) == 0
                            : rc == 0))
            printf("# %s: %s\n", cases[i][0], err.msg);
        ep_patterns_free(p);
    }
}

/* What is no file of patterns is refused soon, whatever its size. */
static void test_no_files(void)
{
    struct ep_patterns *p = ep_patterns_new();
    struct ep_error err = {.code = 0};
    char path[] = "/tmp/evenpace-pattern-XXXXXX", text[3000];
    int fd = mkstemp(path);

    ok(ep_patterns_load(p, "/dev/zero", &err) == EP_ELIMIT);
    ok(strcmp(err.msg,
              "cannot use /dev/zero: more than 1048576 bytes, which "
              "no file of patterns has") == 0);
    ok(ep_patterns_load(p, "/nonexistent/x", &err) == EP_ESYS);
    if (fd < 0 || write(fd, "#\n# a\0b\n", 9) != 9)
        abort();
    ok(ep_patterns_load(p, path, &err) == EP_EFORMAT);
    if (!ok(strstr(err.msg, ":2:4: a NUL byte") != NULL))
        printf("# %s\n", err.msg);
    memset(text, '#', sizeof text);
    for (int i = 0; i < 22; i++)
        if (write(fd, text, sizeof text) != (ssize_t)sizeof text)
            abort();
    if (ftruncate(fd, 2) < 0 || lseek(fd, 2, SEEK_SET) != 2)
        abort();
    for (int i = 0; i < 22; i++)
        if (write(fd, text, sizeof text) != (ssize_t)sizeof text)
            abort();
    ok(ep_patterns_load(p, path, &err) == EP_ELIMIT);
    if (!ok(strstr(err.msg, ":2:1: a line of more than 65536 bytes") != NULL))
        printf("# %s\n", err.msg);
    ok(ep_patterns_count(p) == 0);
    (void)close(fd);
    (void)unlink(path);
    ep_patterns_free(p);
}

#define BAR "(?<step>\\d+)/\\d+ \\[[^,]*, +(?<value>[\\d.]+)it/s"

/* Which states of a progress bar are matched, and by whom they are. */
static void test_bars(void)
{
    static const char line[] =
        "\x1b[36m[rank3]: \x1b[0m\r  0%|  | 0/9 [00:00<?, ?it/s]\r"
        " 11%|# | 1/9 [00:01<00:08, 1.00it/s]\r"
        " 22%|##| 2/9 [00:02<00:07, 2.00it/s]   \r  \r";
    static const char *const want[] = {
        [EP_BARS_NONE] = "",
        [EP_BARS_LAST] = "2=2 ",
        [EP_BARS_EVERY] = "1=1 2=2 ",
    };

    for (int bars = EP_BARS_NONE; bars <= EP_BARS_EVERY; bars++) {
        struct ep_patterns *p = ep_patterns_new();
        struct ep_pattern_cursor c;
        struct ep_buf out;
        struct ep_record r;
        int rc = ep_patterns_add_text(p, BAR, "gauge,name=rate,unit=1/s",
                                      (enum ep_pattern_bars)bars, NULL);

        ok(rc == 0);
        ep_buf_init(&out);
        ep_buf_adds(&out, "");
        ep_pattern_cursor_init(&c, 5);
        if (ok(ep_pattern_begin(&c, p, span(line))))
            while ((rc = ep_pattern_next(&c, p, &r, NULL)) > 0) {
                ok(ep_record_int(&r, EP_K_RANK, -1) == 3);
                ep_buf_addf(&out, "%.0f=%.0f ", ep_record_num(&r, EP_K_STEP),
                            ep_record_num(&r, EP_K_VALUE));
            }
        ok(rc == 0);
        if (!ok(strcmp(out.ptr, want[bars]) == 0))
            printf("# %d: %s\n", bars, out.ptr);
        ep_pattern_cursor_free(&c);
        ep_patterns_free(p);
        ep_buf_free(&out);
    }
}

static void test_common(const char *root)
{
    struct ep_patterns *p = ep_patterns_new();
    struct ep_error err = {.code = 0};
    char path[600], line[4096];
    size_t patterns = 0, samples = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/share/patterns/common.pattern", root);
    if (!ok(ep_patterns_load(p, path, &err) == 0))
        printf("# %s\n", err.msg);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        patterns += strncmp(line, "pattern ", 8) == 0;
        samples += strncmp(line, "    sample ", 11) == 0;
    }
    if (f)
        (void)fclose(f);
    ok(patterns >= 8 && ep_patterns_count(p) == patterns);
    ok(samples >= patterns);
    ep_patterns_free(p);
}

#else

static void test_missing(void)
{
    struct ep_patterns *p = ep_patterns_new();
    struct ep_error err = {.code = 0};

    ok(ep_patterns_add_text(p, "(?<step>x)", NULL, EP_BARS_NONE, &err) ==
       EP_EMISSING);
    ok(strstr(err.msg, "built without PCRE2") != NULL);
    ep_patterns_free(p);
}

#endif

int main(void)
{
    const char *root = getenv("top_srcdir");

    (void)setenv("TZ", "UTC", 1);
    tzset();
    test_find();
    test_search();
    test_values();
#ifdef HAVE_PCRE2
    test_refused();
    test_endless();
    test_files();
    test_no_files();
    test_bars();
    test_common(root ? root : ".");
#else
    (void)root;
    test_missing();
#endif
    return tap_done();
}

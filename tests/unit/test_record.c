/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_record.c - the records: what is accepted, what is refused and why,
 * and that what is printed reads back. With --table or --keys it prints the
 * vocabulary, for the test that compares it with evenpace-record(5).
 */
#include "config.h"

#include "record/record.h"
#include "tap.h"

#include <stdio.h>
#include <string.h>

static struct ep_record_parser *parser;

static void check_good(void)
{
    const char *line =
        "{\"type\":\"step\",\"ts\":1730000000.25,\"job\":\"l\\u006d\","
        "\"rank\":3,\"step\":17,\"dur\":1.5,\"new\":{\"x\":[1,{}]},"
        "\"busy\":null,\"mb\":8,\"mb\":9}";
    struct ep_record r;
    struct ep_error err;

    ok(ep_record_parse(parser, line, strlen(line), &r, &err) == 0);
    ok(r.type == EP_STEP);
    ok(ep_record_num(&r, EP_K_TS) == 1730000000.25);
    ok(ep_span_eq(ep_record_str(&r, EP_K_JOB), "lm"));
    ok(ep_record_int(&r, EP_K_RANK, -1) == 3);
    ok(ep_record_int(&r, EP_K_MB, -1) == 9); /* the last one counts */
    ok(!ep_record_has(&r, EP_K_BUSY));       /* null is absent */
    ok(isnan(ep_record_num(&r, EP_K_BUSY)));
    ok(ep_record_int(&r, EP_K_PP, -7) == -7);
    ok(ep_record_str(&r, EP_K_HOST).ptr == NULL);
}

static void check_bad(void)
{
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {"", EP_ETRUNC, NULL},
        {"{\"type\":\"step\"", EP_ETRUNC, NULL},
        {"[1]", EP_EFORMAT, "not a JSON object"},
        {"{}", EP_EFORMAT, "no type"},
        {"{\"type\":3}", EP_EFORMAT, "no type"},
        {"{\"type\":\"step\",\"step\":1,\"dur\":1}", EP_EFORMAT,
         "step record without ts"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":1,\"dur\":-1}", EP_ERANGE,
         "dur is -1, not in 0..1.79769e+308"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":1,\"dur\":1e999}", EP_ERANGE,
         "dur is not a finite number"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":1.5,\"dur\":1}", EP_EFORMAT,
         "step is not a whole number"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":9007199254740994,\"dur\":1}",
         EP_ERANGE, "step is beyond 2^53"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":\"1\",\"dur\":1}", EP_EFORMAT,
         "step is not a whole number"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":1,\"dur\":[1]}", EP_EFORMAT,
         "dur is not a number"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":1,\"dur\":{\"a\":1}}",
         EP_EFORMAT, "dur is not a number"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":1,\"dur\":true}", EP_EFORMAT,
         "dur is not a number"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":1,\"dur\":1,\"job\":1}",
         EP_EFORMAT, "job is not a string"},
        {"{\"type\":\"layout\",\"dp\":2,\"microbatches\":8,\"hosts\":[1]}",
         EP_EFORMAT, "hosts is not an array of strings"},
        {"{\"type\":\"step\",\"ts\":1,\"step\":1,\"dur\":1} x", EP_EFORMAT,
         NULL},
        {"{\"type\":\"event\",\"ts\":1,\"eid\":\"a\",\"kind\":\"onset\","
         "\"scope\":\"job\",\"since\":1,\"p\":1.5}",
         EP_ERANGE, "p is 1.5, not in 0..1"},
    };
    struct ep_record r;
    struct ep_error err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *line = cases[i].line;

        err.msg[0] = '\0';
        ok(ep_record_parse(parser, line, strlen(line), &r, &err) ==
           cases[i].code);
        ok(!cases[i].says || strcmp(err.msg, cases[i].says) == 0);
        if (cases[i].says && strcmp(err.msg, cases[i].says) != 0)
            printf("# got '%s'\n", err.msg);
    }
}

static void check_other(void)
{
    const char *line = "{\"type\":\"sparkle\",\"ts\":\"yesterday\"}";
    const char *merge =
        "{\"type\":\"merge\",\"ts\":1,\"tier\":\"lps\","
        "\"version\":4,\"from\":\"w1\"}";
    struct ep_record r;
    struct ep_error err;

    ok(ep_record_parse(parser, line, strlen(line), &r, &err) == 0);
    ok(r.type == EP_OTHER);
    ok(ep_record_parse(parser, merge, strlen(merge), &r, &err) == 0);
    ok(ep_span_eq(ep_record_str(&r, EP_K_FROM), "w1"));
}

/* Every type with every key: print, parse, print again: the same bytes. */
static void check_round_trip(void)
{
    struct ep_buf first, second;

    ep_buf_init(&first);
    ep_buf_init(&second);
    for (int t = 0; t < EP_TYPES; t++) {
        struct ep_record r, back;
        struct ep_error err;

        ep_record_begin(&r, (enum ep_type)t);
        for (int k = EP_K_TS; k < EP_KEYS; k++) {
            const struct ep_key_info *info = &ep_key_table[k];
            enum ep_value v = ep_key_value(r.type, (enum ep_key)k);

            if (v == EP_V_STRING)
                ep_record_set_str(&r, (enum ep_key)k, "a\"b\\c\n\xc3\xa9");
            else if (v == EP_V_STRINGS)
                ep_record_set_str(&r, (enum ep_key)k, "[\"n1\",\"n2\"]");
            else if (v == EP_V_INTEGER)
                ep_record_set_int(&r, (enum ep_key)k,
                                  (int64_t)info->min + 1 + k);
            else
                ep_record_set_num(&r, (enum ep_key)k, 0.1 + 0.003 * k);
        }
        ep_buf_reset(&first);
        ep_record_print(&r, &first);
        ok(ep_record_parse(parser, first.ptr, first.len - 1, &back, &err) == 0);
        ok(back.type == r.type && back.have[0] == r.have[0] &&
           back.have[1] == r.have[1]);
        ep_buf_reset(&second);
        ep_record_print(&back, &second);
        ok(first.len == second.len && strcmp(first.ptr, second.ptr) == 0);
    }
    ep_buf_free(&first);
    ep_buf_free(&second);
}

static void check_tsv(void)
{
    struct ep_buf b;
    struct ep_record r;

    ep_buf_init(&b);
    ep_record_tsv_header(EP_LOSS, &b);
    ok(strcmp(b.ptr,
              "type\tts\tjob\thost\tpid\trank\tgpu\tgpu_index\tdp\tpp"
              "\ttp\tregion\tworker\tstep\ttokens\tvalue\tsplit\n") == 0);
    ep_record_begin(&r, EP_LOSS);
    ep_record_set_num(&r, EP_K_TS, 12.5);
    ep_record_set_str(&r, EP_K_HOST, "a\tb\\c\nd");
    ep_record_set_int(&r, EP_K_STEP, 7);
    ep_record_set_num(&r, EP_K_VALUE, 0.1);
    ep_record_set_num(&r, EP_K_NORM, NAN); /* not finite: left out */
    ep_buf_reset(&b);
    ep_record_print_tsv(&r, &b);
    ok(strcmp(b.ptr,
              "loss\t12.5\t\ta\\tb\\\\c\\nd\t\t\t\t\t\t\t\t\t\t7\t\t"
              "0.1\t\n") == 0);
    ep_buf_free(&b);
}

static int print_table(void)
{
    for (int t = 0; t < EP_TYPES; t++) {
        const struct ep_type_info *info = &ep_type_table[t];

        for (int i = 0; info->need[i] != EP_K_TYPE; i++)
            printf("%s need %s\n", info->name,
                   ep_key_table[info->need[i]].name);
        for (int i = 0; info->may[i] != EP_K_TYPE; i++)
            printf("%s may %s\n", info->name, ep_key_table[info->may[i]].name);
    }
    return 0;
}

/* "rank integer 0", "p number 0 1", "value number", "job string" */
static void print_key(const struct ep_key_info *key)
{
    bool number = key->value == EP_V_NUMBER || key->value == EP_V_INTEGER;

    printf("%s %s", key->name,
           key->value == EP_V_INTEGER   ? "integer"
           : key->value == EP_V_NUMBER  ? "number"
           : key->value == EP_V_STRINGS ? "array of strings"
                                        : "string");
    if (number && key->min > -1e300)
        printf(" %g", key->min);
    if (number && key->max < 1e15)
        printf(" %g", key->max);
    putchar('\n');
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--table") == 0)
        return print_table();
    if (argc > 1 && strcmp(argv[1], "--keys") == 0) {
        for (int k = 0; k < EP_KEYS; k++)
            print_key(&ep_key_table[k]);
        return 0;
    }
    parser = ep_record_parser_new();
    check_good();
    check_bad();
    check_other();
    check_round_trip();
    check_tsv();
    ep_record_parser_free(parser);
    return tap_done();
}

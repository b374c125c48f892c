/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_value.c - what the scanner's values are: numbers and strings. */
#include "config.h"

#include "base/json.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define TEXT(s) s, sizeof(s) - 1

/* The root of text, which must be one value. */
static struct ep_json_value root(const char *text)
{
    struct ep_json_value v = {.kind = EP_JSON_NULL};
    struct ep_json j;

    if (ep_json_begin(&j, text, strlen(text), &v, NULL) ||
        (v.kind < EP_JSON_ARRAY && ep_json_end(&j)))
        printf("# %s was refused\n", text);
    return v;
}

/* The value of a member, by the fast path. */
static struct ep_json_value member(const char *text)
{
    static char line[512];
    struct ep_json_value key, v = {.kind = EP_JSON_NULL};
    struct ep_json j;

    (void)snprintf(line, sizeof line,
                   "{\"type\":\"step\",\"x\":%s,\"long enough\":\"for a window "
                   "of thirty-two bytes\"}",
                   text);
    if (ep_json_begin(&j, line, strlen(line), &v, NULL))
        abort();
    ep_json_enter(&j);
    for (int i = 0; i < 2; i++)
        if (ep_json_next(&j, &key, &v) != 1)
            printf("# %s was refused\n", line);
    return v;
}

static void test_int(void)
{
    static const struct {
        const char *text;
        int code;
        int64_t value;
    } t[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"-0.000e5", 0, 0},
        {"0e999999999999", 0, 0},
        {"7", 0, 7},
        {"-1", 0, -1},
        {"12345678", 0, 12345678},
        {"123456789", 0, 123456789},
        {"1234567890123456", 0, INT64_C(1234567890123456)},
        {"12345678901234567", 0, INT64_C(12345678901234567)},
        {"9223372036854775807", 0, INT64_MAX},
        {"9223372036854775808", EP_ERANGE, 0},
        {"-9223372036854775808", 0, INT64_MIN},
        {"-9223372036854775809", EP_ERANGE, 0},
        {"18446744073709551616", EP_ERANGE, 0},
        {"92233720368547758070", EP_ERANGE, 0},
        {"99999999999999999999", EP_ERANGE, 0},
        {"10000000000000000000000e-10", 0, INT64_C(1000000000000)},
        {"1e3", 0, 1000},
        {"1.0", 0, 1},
        {"-2.50e1", 0, -25},
        {"100e-2", 0, 1},
        {"9.223372036854775807E18", 0, INT64_MAX},
        {"1e18", 0, INT64_C(1000000000000000000)},
        {"1e19", EP_ERANGE, 0},
        {"1e99999999999", EP_ERANGE, 0},
        {"0.5", EP_EFORMAT, 0},
        {"1e-1", EP_EFORMAT, 0},
        {"1e-99999999999", EP_EFORMAT, 0},
        {"1.00000000000000000000000", 0, 1},
        {"1.00000000000000000000001", EP_EFORMAT, 0},
        {"12345678901234567890.5", EP_ERANGE, 0},
        {"true", EP_EFORMAT, 0},
        {"\"1\"", EP_EFORMAT, 0},
    };

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct ep_json_value v = root(t[i].text), m = member(t[i].text);
        int64_t a = 99, b = 99;

        ok(ep_json_int(&v, &a) == t[i].code);
        ok(ep_json_int(&m, &b) == t[i].code);
        ok(a == (t[i].code ? 99 : t[i].value) && a == b);
    }
}

/* The bytes of x, so that -0 and 0 differ. */
static uint64_t bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static void test_double(void)
{
    static const char *const t[] = {
        "0",
        "-0",
        "1",
        "-1.5",
        "0.1",
        "1730000000.123456",
        "1.4053219",
        "0.00213",
        "1e-5",
        "2.5E+10",
        "1e23",
        "9007199254740993",
        "5e-324",
        "2.4703282292062327e-324",
        "1e-400",
        "1.7976931348623157e308",
        "123456789",
        "12345678901234567.12",
        "0.000000012345678901234567890123",
        "123456789012345678901234567890",
        "2.2250738585072011e-308",
        "9007199254740992.9999999999999999999",
    };
    struct ep_json_value v;
    double x = 7;

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        double want = strtod(t[i], NULL), a = -1, b = -1;
        struct ep_json_value m = member(t[i]);

        v = root(t[i]);
        ok(ep_json_double(&v, &a) == 0 && bits(a) == bits(want));
        ok(ep_json_double(&m, &b) == 0 && bits(b) == bits(want));
        ok(v.integer == !strpbrk(t[i], ".eE") && m.integer == v.integer);
        ok(v.raw.len == strlen(t[i]) && m.raw.len == v.raw.len);
    }
    v = root("1e999");
    ok(ep_json_double(&v, &x) == EP_ERANGE && x == 7);
    v = root("-1e99999999999999999999");
    ok(ep_json_double(&v, &x) == EP_ERANGE && x == 7);
    v = root("null");
    ok(ep_json_double(&v, &x) == EP_EFORMAT && x == 7);
}

static void test_unescape(void)
{
    static const struct {
        const char *text;
        const char *want;
        size_t len;
        bool escaped;
    } t[] = {
        {"\"\"", TEXT(""), false},
        {"\"plain \xc3\xa9\"", TEXT("plain \xc3\xa9"), false},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", TEXT("\"\\/\b\f\n\r\t"), true},
        {"\"a\\u0000b\"", TEXT("a\0b"), true},
        {"\"\\u00E9\\u20ac!\"", TEXT("\xc3\xa9\xe2\x82\xac!"), true},
        {"\"\\uD83D\\ude00\"", TEXT("\xf0\x9f\x98\x80"), true},
        {"\"\\udbff\\udfff\"", TEXT("\xf4\x8f\xbf\xbf"), true},
        {"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
         TEXT("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"), true},
    };

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct ep_json_value v = root(t[i].text);
        struct ep_buf b;

        ep_buf_init(&b);
        ep_buf_adds(&b, "x");
        ep_json_unescape(&v, &b);
        ok(v.kind == EP_JSON_STRING && v.escaped == t[i].escaped);
        ok(b.len == t[i].len + 1 && !memcmp(b.ptr + 1, t[i].want, t[i].len));
        ep_buf_free(&b);
    }
}

static void test_head(void)
{
    static const char text[] = "[\"\",\"ab\",\"12345678\",\"123456789\",\"z\"]";
    static const uint64_t want[] = {0, 0x6261, UINT64_C(0x3837363534333231),
                                    UINT64_C(0x3837363534333231), 0x7a};
    struct ep_json_value v;
    struct ep_json j;

    ok(ep_json_begin(&j, TEXT(text), &v, NULL) == 0);
    ep_json_enter(&j);
    for (int i = 0; ep_json_next(&j, NULL, &v) > 0; i++)
        ok(ep_json_head(&j, v.raw) == want[i]);
}

int main(void)
{
    test_int();
    test_double();
    test_unescape();
    test_head();
    return tap_done();
}

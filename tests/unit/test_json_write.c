/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_write.c - the JSON writer, and that the scanner reads it back. */
#include "config.h"

#include "base/json.h"
#include "base/json_write.h"
#include "tap.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static bool wrote(struct ep_buf *b, const char *want)
{
    bool same = strcmp(b->ptr, want) == 0;

    if (!same)
        printf("# got %s\n# want %s\n", b->ptr, want);
    ep_buf_reset(b);
    return same;
}

static void test_commas(void)
{
    struct ep_buf b;
    struct ep_jw w;

    ep_buf_init(&b);
    ep_jw_init(&w, &b);
    ep_jw_begin_object(&w);
    ep_jw_key_string(&w, "type", "step");
    ep_jw_key_int(&w, "step", -5);
    ep_jw_key_double(&w, "dur", 0.25);
    ep_jw_key_double(&w, "unknown", NAN);
    ep_jw_key_double(&w, "unknown", -INFINITY);
    ep_jw_key(&w, "list");
    ep_jw_begin_array(&w);
    ep_jw_begin_array(&w);
    ep_jw_end_array(&w);
    ep_jw_begin_object(&w);
    ep_jw_end_object(&w);
    ep_jw_bool(&w, true);
    ep_jw_bool(&w, false);
    ep_jw_null(&w);
    ep_jw_double(&w, INFINITY);
    ep_jw_uint(&w, 0);
    ep_jw_uint(&w, UINT64_MAX);
    ep_jw_int(&w, INT64_MIN);
    ep_jw_string(&w, "");
    ep_jw_end_array(&w);
    ep_jw_key_bytes(&w, (struct ep_span){"a\0b", 3});
    ep_jw_raw(&w, (struct ep_span){"[1e5, 2]", 8});
    ep_jw_key(&w, "o");
    ep_jw_begin_object(&w);
    ep_jw_key_int(&w, "x", 1);
    ep_jw_end_object(&w);
    ep_jw_key_int(&w, "y", 2);
    ep_jw_end_object(&w);
    ep_jw_newline(&w);
    ep_jw_begin_object(&w);
    ep_jw_end_object(&w);
    ep_jw_newline(&w);
    ok(wrote(&b,
             "{\"type\":\"step\",\"step\":-5,\"dur\":0.25,\"list\":[[],{},"
             "true,false,null,null,0,18446744073709551615,"
             "-9223372036854775808,\"\"],\"a\\u0000b\":[1e5, 2],"
             "\"o\":{\"x\":1},\"y\":2}\n{}\n"));
    ep_buf_free(&b);
}

static void test_strings(void)
{
    static const struct {
        const char *in;
        size_t len;
        const char *out;
    } t[] = {
        {"plain", 5, "\"plain\""},
        {"\"\\/", 3, "\"\\\"\\\\/\""},
        {"\b\f\n\r\t\x01\x1f\x7f", 8, "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\""},
        {"\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\""},
        /* one U+FFFD for each bad byte */
        {"a\xff\x62", 3, "\"a\xef\xbf\xbd\x62\""},
        {"\xc3", 1, "\"\xef\xbf\xbd\""},
        {"\xe2\x82z", 3, "\"\xef\xbf\xbd\xef\xbf\xbdz\""},
        {"\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    struct ep_buf b;
    struct ep_jw w;

    ep_buf_init(&b);
    ep_jw_init(&w, &b);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        w.comma = false;
        ep_jw_bytes(&w, (struct ep_span){t[i].in, t[i].len});
        ok(wrote(&b, t[i].out));
    }
    ep_buf_free(&b);
}

static uint64_t seed = 42;

static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* The bytes of x, so that -0 and 0 differ. */
static uint64_t bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

/* Random strings, doubles and integers come back as they were. */
static void test_round_trip(void)
{
    int bad = 0;
    struct ep_buf b, back;
    struct ep_jw w;

    printf("# seed %d\n", (int)seed);
    ep_buf_init(&b);
    ep_buf_init(&back);
    for (int i = 0; i < 20000; i++) {
        struct ep_json_value k, v;
        struct ep_json j;
        char s[12];
        size_t len = draw() % sizeof s;
        int64_t n = (int64_t)(draw() >> draw() % 64), m = 0;
        double x, y = 0;
        uint64_t any = draw();

        memcpy(&x, &any, sizeof x);
        if (!isfinite(x))
            x = -DBL_MAX;
        for (size_t c = 0; c < len; c++)
            s[c] = (char)(draw() % 128);
        ep_buf_reset(&b);
        ep_buf_reset(&back);
        ep_jw_init(&w, &b);
        ep_jw_begin_object(&w);
        ep_jw_key_bytes(&w, (struct ep_span){s, len});
        ep_jw_bytes(&w, (struct ep_span){s, len});
        ep_jw_key_double(&w, "x", x);
        ep_jw_key_int(&w, "n", n);
        ep_jw_end_object(&w);
        if (ep_json_begin(&j, b.ptr, b.len, &v, NULL))
            abort();
        ep_json_enter(&j);
        bad += ep_json_next(&j, &k, &v) != 1;
        ep_json_unescape(&k, &back);
        bad += back.len != len || memcmp(back.ptr, s, len) != 0;
        ep_json_unescape(&v, &back);
        bad += back.len != 2 * len || memcmp(back.ptr + len, s, len) != 0;
        bad += ep_json_next(&j, &k, &v) != 1 || ep_json_double(&v, &y) ||
               bits(x) != bits(y);
        bad += ep_json_next(&j, &k, &v) != 1 || ep_json_int(&v, &m) || n != m;
        bad += ep_json_next(&j, &k, &v) != 0 || ep_json_end(&j) != 0;
    }
    ok(bad == 0);
    ep_buf_free(&b);
    ep_buf_free(&back);
}

int main(void)
{
    test_commas();
    test_strings();
    test_round_trip();
    return tap_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_json.c - the scanner: what it accepts and refuses, with the code and
 * the place of each error; entering and passing over.
 *
 * Every text is scanned in several ways that must agree: passed over, entered
 * at every level, from a block of exactly its size (so that a checker sees a
 * read past it), with padding of several kinds, and by the general code alone.
 */
#include "config.h"

#include "base/json_impl.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define TEXT(s) s, sizeof(s) - 1

enum how { PASS, ENTER, GENERAL, SSE2, WAYS };

static int next(struct ep_json *j, enum how how, struct ep_json_value *key,
                struct ep_json_value *v)
{
    if (how == GENERAL)
        return ep_json_next_general(j, key, v);
    if (how == SSE2)
        j->wide = false;
    return ep_json_next(j, key, v);
}

/* What a scan saw, in short, so that two can be compared. */
struct seen {
    int code;
    size_t at;
    uint64_t hash; /* of all tokens but containers that were passed over */
};

static void mix(struct seen *s, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s->hash =
            (s->hash ^ ((const unsigned char *)p)[i]) * UINT64_C(0x100000001b3);
}

static void mix_value(struct seen *s, const struct ep_json_value *v)
{
    mix(s, &v->kind, sizeof v->kind);
    mix(s, v->raw.ptr, v->raw.len);
    if (v->kind == EP_JSON_STRING)
        mix(s, &v->escaped, sizeof v->escaped);
    if (v->kind == EP_JSON_NUMBER) {
        mix(s, &v->integer, sizeof v->integer);
        mix(s, &v->dec.mant, sizeof v->dec.mant);
        mix(s, &v->dec.exp10, sizeof v->dec.exp10);
        mix(s, &v->dec.neg, sizeof v->dec.neg);
        mix(s, &v->dec.cut, sizeof v->dec.cut);
    }
}

static struct seen scan(const char *text, size_t len, size_t pad, enum how how,
                        struct ep_error *err)
{
    struct seen s = {0, 0, 0};
    struct ep_json_value key, v;
    struct ep_json j;
    int r = ep_json_begin_padded(&j, text, len, pad, &v, err);

    if (r == 0 && how != PASS) {
        mix_value(&s, &v);
        ep_json_enter(&j);
        while (r == 0 && j.depth > 0) {
            r = next(&j, how, &key, &v);
            if (r > 0) {
                if (j.objects & 1)
                    mix_value(&s, &key);
                mix_value(&s, &v);
                ep_json_enter(&j);
                r = 0;
            }
        }
    }
    if (r == 0)
        r = ep_json_end(&j);
    s.code = r;
    s.at = ep_json_offset(&j);
    return s;
}

/* Scan in all ways; returns what the first saw, code 1 if they differ. */
static struct seen scan_all(const char *text, size_t len, struct ep_error *err)
{
    static const char junk[] = "0\"e.}]\n\\\x80,";
    char *block = malloc(len + 40);
    struct seen first, again;

    if (!block)
        abort();
    first = scan(text, len, 0, ENTER, err);
    for (int how = PASS; how < WAYS; how++) {
        char *exact = malloc(len ? len : 1);

        if (!exact)
            abort();
        memcpy(exact, text, len);
        again = scan(exact, len, 0, (enum how)how, NULL);
        if (again.code != first.code || again.at != first.at ||
            (how != PASS && again.hash != first.hash))
            first.code = 1;
        free(exact);
    }
    memcpy(block, text, len);
    for (size_t i = 0; i < sizeof junk - 1; i++) {
        memset(block + len, junk[i], 40);
        again = scan(block, len, 40, i & 1 ? ENTER : SSE2, NULL);
        if (again.code != first.code || again.at != first.at ||
            again.hash != first.hash)
            first.code = 1;
    }
    free(block);
    return first;
}

static bool expect(const char *text, size_t len, int code, size_t at,
                   const char *msg)
{
    struct ep_error err = {0, 0, ""};
    struct seen s = scan_all(text, len, &err);
    bool same = s.code == code && s.at == at && err.code == code &&
                (!msg || strcmp(err.msg, msg) == 0);

    if (!same)
        printf("# %.*s: code %d at %zu (%s), want %d at %zu (%s)\n", (int)len,
               text, s.code, s.at, err.msg, code, at, msg ? msg : "any");
    return same;
}

struct item {
    const char *text;
    size_t len;
};

static void test_accept(void)
{
    static const struct item good[] = {
        {TEXT("0")},
        {TEXT("-0")},
        {TEXT("-0.0e-0")},
        {TEXT("1")},
        {TEXT("1E400")},
        {TEXT("1e-99999999999999999999999")},
        {TEXT("123456789012345678901234567890.123e+10")},
        {TEXT("null")},
        {TEXT("true")},
        {TEXT("false")},
        {TEXT("\"\"")},
        {TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uABcd\"")},
        {TEXT("\"\\u0000\"")},
        {TEXT("\"\\ud83d\\uDE00\"")},
        {TEXT("\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\"")},
        {TEXT("\"\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"")},
        {TEXT("[]")},
        {TEXT("{}")},
        {TEXT(" \t\r\n[ \t\r\n] \t\r\n")},
        {TEXT("{ \"a\" : 1 , \"b\" : [ 2 , { } ] }")},
        {TEXT("{\"\":0}")},
        {TEXT("{\"a\":1,\"a\":2}")},
        {TEXT("[[[[]],[]],{\"a\":{\"b\":[null]}}]")},
        {TEXT("[1,-2,3.5,1e5,\"x\",true,false,null]")},
        {TEXT("{\"0123456789012345678901234567890123456789\":\"x\"}")},
        {TEXT("{\"a\":\"0123456789012345678901234567890123456789\"}")},
        {TEXT("{\"a\":\"0123456789\",\"b\":12345678901234567,\"c\":0.5}")},
        {TEXT("{\"a\": -1, \"b\": \"c\", \"d\": -0.25, \"e\": 1e-5}")},
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char wrapped[256];
        int n = snprintf(wrapped, sizeof wrapped,
                         "{\"first\":\"member\",\"key\":%s}", good[i].text);

        ok(expect(good[i].text, good[i].len, 0, good[i].len, NULL));
        ok(expect(wrapped, (size_t)n, 0, (size_t)n, NULL));
    }
}

static const struct {
    const char *text;
    size_t len;
    int code;
    size_t at;
    const char *msg;
} bad[] = {
    /* no value */
    {TEXT(""), EP_ETRUNC, 0, "byte 0: text ends, expected a value"},
    {TEXT("  "), EP_ETRUNC, 2, "byte 2: text ends, expected a value"},
    {TEXT("\xef\xbb\xbf{}"), EP_EFORMAT, 0, NULL},
    {TEXT("\v1"), EP_EFORMAT, 0, "byte 0: expected a value, found '\\x0b'"},
    {TEXT("\0"), EP_EFORMAT, 0, "byte 0: expected a value, found '\\x00'"},
    {TEXT("}"), EP_EFORMAT, 0, "byte 0: expected a value, found '}'"},
    {TEXT("\xc3\xa9"), EP_EFORMAT, 0,
     "byte 0: expected a value, found '\xc3\xa9'"},
    {TEXT("'a'"), EP_EFORMAT, 0, NULL},
    {TEXT("/**/1"), EP_EFORMAT, 0, NULL},
    /* literals */
    {TEXT("nul"), EP_ETRUNC, 3, "byte 3: text ends, expected null"},
    {TEXT("nulL"), EP_EFORMAT, 3, "byte 3: expected null, found 'L'"},
    {TEXT("t"), EP_ETRUNC, 1, "byte 1: text ends, expected true"},
    {TEXT("fALSE"), EP_EFORMAT, 1, "byte 1: expected false, found 'A'"},
    {TEXT("NaN"), EP_EFORMAT, 0, "byte 0: expected a value, found 'N'"},
    {TEXT("nan"), EP_EFORMAT, 1, "byte 1: expected null, found 'a'"},
    {TEXT("truex"), EP_EFORMAT, 4, NULL},
    /* numbers */
    {TEXT("-"), EP_ETRUNC, 1, "byte 1: text ends, expected a digit"},
    {TEXT("-x"), EP_EFORMAT, 1, "byte 1: expected a digit, found 'x'"},
    {TEXT("-Infinity"), EP_EFORMAT, 1, NULL},
    {TEXT("+1"), EP_EFORMAT, 0, "byte 0: expected a value, found '+'"},
    {TEXT(".5"), EP_EFORMAT, 0, NULL},
    {TEXT("-.5"), EP_EFORMAT, 1, NULL},
    {TEXT("01"), EP_EFORMAT, 1, "byte 1: digit after a leading zero"},
    {TEXT("-007"), EP_EFORMAT, 2, "byte 2: digit after a leading zero"},
    {TEXT("1."), EP_ETRUNC, 2, "byte 2: text ends, expected a digit"},
    {TEXT("1.x"), EP_EFORMAT, 2, "byte 2: expected a digit, found 'x'"},
    {TEXT("1.e5"), EP_EFORMAT, 2, NULL},
    {TEXT("1e"), EP_ETRUNC, 2, "byte 2: text ends, expected a digit"},
    {TEXT("1e+"), EP_ETRUNC, 3, NULL},
    {TEXT("1e+-1"), EP_EFORMAT, 3, NULL},
    {TEXT("1e1.5"), EP_EFORMAT, 3, NULL},
    {TEXT("0x10"), EP_EFORMAT, 1, NULL},
    {TEXT("1 2"), EP_EFORMAT, 2, NULL},
    {TEXT("1\0"), EP_EFORMAT, 1, NULL},
    {TEXT("12345678901234567890123x"), EP_EFORMAT, 23, NULL},
    /* strings */
    {TEXT("\""), EP_ETRUNC, 1,
     "byte 1: text ends, expected the end of a string"},
    {TEXT("\"abc"), EP_ETRUNC, 4, NULL},
    {TEXT("\"a\tb\""), EP_EFORMAT, 2, "byte 2: control character in string"},
    {TEXT("\"0123456789abcdef\n\""), EP_EFORMAT, 17,
     "byte 17: control character in string"},
    {TEXT("\"a\0b\""), EP_EFORMAT, 2, NULL},
    {TEXT("\"\x1f\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\\"), EP_ETRUNC, 2, "byte 2: text ends, expected an escape"},
    {TEXT("\"\\x41\""), EP_EFORMAT, 2, "byte 2: expected an escape, found 'x'"},
    {TEXT("\"\\'\""), EP_EFORMAT, 2, NULL},
    {TEXT("\"\\u12"), EP_ETRUNC, 5,
     "byte 5: text ends, expected a hexadecimal digit"},
    {TEXT("\"\\u12G4\""), EP_EFORMAT, 5,
     "byte 5: expected a hexadecimal digit, found 'G'"},
    {TEXT("\"ab\\ud800\""), EP_EFORMAT, 3, "byte 3: lone high surrogate"},
    {TEXT("\"\\ud800\\u0041\""), EP_EFORMAT, 1, "byte 1: lone high surrogate"},
    {TEXT("\"\\ud800\\n\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\\ud800\\ud800\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\\ud800"), EP_ETRUNC, 7, NULL},
    {TEXT("\"\\ud800\\"), EP_ETRUNC, 8, NULL},
    {TEXT("\"\\ud800\\ude"), EP_ETRUNC, 11, NULL},
    {TEXT("\"\\udc00\""), EP_EFORMAT, 1, "byte 1: lone low surrogate"},
    /* UTF-8 */
    {TEXT("\"\x80\""), EP_EFORMAT, 1, "byte 1: invalid UTF-8 in string"},
    {TEXT("\"\xc0\x80\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\xc1\xbf\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\xc2\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\xc3\xa9\xe0\x9f\xbf\""), EP_EFORMAT, 3, NULL},
    {TEXT("\"\xed\xa0\x80\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\xf0\x8f\xbf\xbf\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\xf4\x90\x80\x80\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\xf5\x80\x80\x80\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\xff\""), EP_EFORMAT, 1, NULL},
    {TEXT("\"\xf0\x90\x80"), EP_ETRUNC, 4,
     "byte 4: text ends inside a character"},
    {TEXT("\"\xf0\x90\""), EP_EFORMAT, 1, NULL},
    /* arrays */
    {TEXT("["), EP_ETRUNC, 1, NULL},
    {TEXT("[1"), EP_ETRUNC, 2, "byte 2: text ends, expected ',' or ']'"},
    {TEXT("[1,"), EP_ETRUNC, 3, NULL},
    {TEXT("[1,]"), EP_EFORMAT, 3, "byte 3: expected a value, found ']'"},
    {TEXT("[,1]"), EP_EFORMAT, 1, NULL},
    {TEXT("[1 2]"), EP_EFORMAT, 3, "byte 3: expected ',' or ']', found '2'"},
    {TEXT("[1}"), EP_EFORMAT, 2, NULL},
    {TEXT("[\"a\":1]"), EP_EFORMAT, 4, NULL},
    {TEXT("[1:2]"), EP_EFORMAT, 2, NULL},
    /* objects */
    {TEXT("{"), EP_ETRUNC, 1, "byte 1: text ends, expected a key"},
    {TEXT("{1:2}"), EP_EFORMAT, 1, "byte 1: expected a key, found '1'"},
    {TEXT("{a:2}"), EP_EFORMAT, 1, NULL},
    {TEXT("{,}"), EP_EFORMAT, 1, NULL},
    {TEXT("{\"a\""), EP_ETRUNC, 4, "byte 4: text ends, expected ':'"},
    {TEXT("{\"a\" 1}"), EP_EFORMAT, 5, "byte 5: expected ':', found '1'"},
    {TEXT("{\"a\":}"), EP_EFORMAT, 5, "byte 5: expected a value, found '}'"},
    {TEXT("{\"a\":1,}"), EP_EFORMAT, 7, "byte 7: expected a key, found '}'"},
    {TEXT("{\"a\":1]"), EP_EFORMAT, 6,
     "byte 6: expected ',' or '}', found ']'"},
    {TEXT("{\"a\":1 \"b\":2}"), EP_EFORMAT, 7, NULL},
    {TEXT("{\"a\":1,,\"b\":2}"), EP_EFORMAT, 7, NULL},
    {TEXT("{\"a\\ud800\":1}"), EP_EFORMAT, 3, NULL},
    {TEXT("{\"a\x01\":1}"), EP_EFORMAT, 3, NULL},
    {TEXT("{\"a\"::1}"), EP_EFORMAT, 5, NULL},
    {TEXT("[{\"a\":[1,{\"b\":tru}]}]"), EP_EFORMAT, 17, NULL},
};

static void test_reject(void)
{
    static const char prefix[] = "{\"first\":\"member\",\"key\":";

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char wrapped[256];
        size_t n = sizeof prefix - 1;

        ok(expect(bad[i].text, bad[i].len, bad[i].code, bad[i].at, bad[i].msg));
        /* As a member, it has to fail in the same place. */
        memcpy(wrapped, prefix, n);
        memcpy(wrapped + n, bad[i].text, bad[i].len);
        ok(expect(wrapped, n + bad[i].len, bad[i].code, n + bad[i].at, NULL));
    }
    ok(expect(TEXT("{}}"), EP_EFORMAT, 2,
              "byte 2: expected the end of the text, found '}'"));
    ok(expect(TEXT("[]\n[]"), EP_EFORMAT, 3, NULL));
    ok(expect(TEXT("{\"a\":1}\n\0"), EP_EFORMAT, 8, NULL));
}

static void test_depth(void)
{
    char text[2 * EP_JSON_MAX_DEPTH + 2];
    const size_t d = EP_JSON_MAX_DEPTH;

    memset(text, '[', d);
    memset(text + d, ']', d);
    ok(expect(text, 2 * d, 0, 2 * d, NULL));
    memset(text, '[', d + 1);
    memset(text + d + 1, ']', d + 1);
    ok(expect(text, 2 * d + 2, EP_ELIMIT, d, "byte 64: nested too deeply"));
    ok(expect(text, d, EP_ETRUNC, d, NULL));
}

static void test_truncation(void)
{
    static const char sample[] =
        "{\"type\":\"step\",\"ts\":1730000000.123456,\"job\":\"lm-\\u00e9\","
        " \"host\" : \"n\xc3\xa9\",\"rank\":-137,\"list\":[1,2e5,[],{},null],"
        "\"x\":{\"y\":true,\"z\":\"\\ud83d\\ude00\\n\"},\"dur\":1.4e-3}";
    const size_t len = sizeof sample - 1;
    size_t good = 0;

    ok(expect(sample, len, 0, len, NULL));
    for (size_t n = 0; n < len; n++)
        good += expect(sample, n, EP_ETRUNC, n, NULL);
    ok(good == len);
    /* A number at the root may end anywhere after a digit. */
    ok(expect(TEXT("-12.5e+1"), 0, 8, NULL));
    ok(expect(TEXT("-12.5e+"), EP_ETRUNC, 7, NULL));
    ok(expect(TEXT("-12.5e"), EP_ETRUNC, 6, NULL));
    ok(expect(TEXT("-12.5"), 0, 5, NULL));
    ok(expect(TEXT("-12."), EP_ETRUNC, 4, NULL));
    ok(expect(TEXT("-12"), 0, 3, NULL));
}

/* Enter, pass over, ask for the text of and leave containers in turn. */
static void test_levels(void)
{
    static const char text[] =
        "{\"a\":[1,[2,3],{\"b\":4}],\"c\":{\"d\":[5]},\"e\":[ ],"
        "\"f\":{\"g\":6,\"h\":7},\"i\":8}";
    struct ep_json_value k, v;
    struct ep_span raw;
    struct ep_json j, copy;

    ok(ep_json_begin(&j, TEXT(text), &v, NULL) == 0);
    ok(v.kind == EP_JSON_OBJECT);
    copy = j;
    ok(ep_json_skip(&copy, &raw) == 0 && raw.ptr == text);
    ok(raw.len == sizeof text - 1);
    ok(ep_json_skip(&copy, &raw) == 0 && raw.len == 0);
    ok(ep_json_end(&copy) == 0);
    copy = j;
    ok(ep_json_next(&copy, &k, &v) == 0); /* not entered: passed over */
    ok(ep_json_end(&copy) == 0);

    ep_json_enter(&j);
    ep_json_enter(&j); /* nothing to enter any more */
    ok(ep_json_next(&j, &k, &v) == 1 && ep_span_eq(k.raw, "a"));
    ok(ep_json_head(&j, k.raw) == 'a' && v.kind == EP_JSON_ARRAY);
    ep_json_enter(&j);
    ok(ep_json_next(&j, NULL, &v) == 1 && ep_span_eq(v.raw, "1"));
    ok(ep_json_next(&j, NULL, &v) == 1 && v.kind == EP_JSON_ARRAY);
    ok(ep_json_skip(&j, &raw) == 0 && ep_span_eq(raw, "[2,3]"));
    ok(ep_json_next(&j, &k, &v) == 1 && v.kind == EP_JSON_OBJECT);
    ok(ep_json_next(&j, &k, &v) == 0); /* leaves "a" */
    ok(ep_json_next(&j, &k, &v) == 1 && ep_span_eq(k.raw, "c"));
    ok(ep_json_next(&j, &k, &v) == 1 && ep_span_eq(k.raw, "e"));
    ep_json_enter(&j);
    ok(ep_json_next(&j, NULL, &v) == 0);
    ok(ep_json_next(&j, NULL, &v) == 1 && v.kind == EP_JSON_OBJECT); /* "f" */
    ep_json_enter(&j);
    ok(ep_json_next(&j, NULL, &v) == 1 && ep_span_eq(v.raw, "6"));
    copy = j;
    ok(ep_json_end(&copy) == 0); /* reads the rest of both levels */
    ok(ep_json_next(&j, &k, &v) == 1 && ep_span_eq(k.raw, "h"));
    ok(ep_json_next(&j, &k, &v) == 0);
    ok(ep_json_next(&j, &k, &v) == 1 && ep_span_eq(k.raw, "i"));
    ok(ep_json_next(&j, &k, &v) == 0);
    ok(ep_json_next(&j, &k, &v) == 0);
    ok(ep_json_end(&j) == 0);
}

/* An error stays, whatever is called. */
static void test_sticky(void)
{
    struct ep_error err = {0, 0, ""};
    struct ep_json_value k, v;
    struct ep_span raw;
    struct ep_json j;

    ok(ep_json_begin(&j, TEXT("[[1,}],2]"), &v, &err) == 0);
    ep_json_enter(&j);
    ok(ep_json_next(&j, NULL, &v) == 1);
    ok(ep_json_next(&j, NULL, &v) == EP_EFORMAT);
    ok(strcmp(err.msg, "byte 4: expected a value, found '}'") == 0);
    ok(ep_json_next(&j, &k, &v) == EP_EFORMAT);
    ep_json_enter(&j);
    ok(ep_json_skip(&j, &raw) == EP_EFORMAT && raw.len == 0);
    ok(ep_json_end(&j) == EP_EFORMAT);
    ok(ep_json_offset(&j) == 4);
}

/* All ways of scanning agree on records with bytes changed at random. */
static void test_ways(void)
{
    static const char line[] =
        "{\"type\":\"coll\",\"ts\":1730000000.223456,\"job\":\"lm-140b\","
        "\"gpu\":\"GPU-5c0f2e1a-8d3b-4f6e-9a57-0b1c2d3e4f50\", \"rank\": -137,"
        "\"op\":\"all\\u005freduce\",\"n\":[1,2.5e-3],\"d\":0.00213,\"k\":{},"
        "\"bytes\":33554432,\"big\":123456789012345678901234,\"x\":true}";
    static const char alphabet[] = "\"\\,:{}[] 0123456789.-+eEu\n\x80\xc3\xa9x";
    uint64_t seed = 11;
    int differ = 0, accepted = 0;

    printf("# seed %d\n", (int)seed);
    for (int i = 0; i < 6000; i++) {
        char text[sizeof line + 8];
        size_t len = sizeof line - 1;
        struct seen s;

        memcpy(text, line, len);
        for (int k = i % 4; k > 0; k--) {
            size_t at;

            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            at = (size_t)(seed >> 33) % len;
            text[at] = alphabet[(seed >> 20) % (sizeof alphabet - 1)];
        }
        if (i % 7 == 0)
            len = (size_t)(seed >> 40) % len;
        s = scan_all(text, len, NULL);
        accepted += s.code == 0;
        differ += s.code == 1;
    }
    printf("# %d accepted\n", accepted);
    ok(differ == 0);
    ok(accepted > 1000 && accepted < 5000);
}

int main(void)
{
    test_accept();
    test_reject();
    test_depth();
    test_truncation();
    test_levels();
    test_sticky();
    test_ways();
    return tap_done();
}

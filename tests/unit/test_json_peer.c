/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_json_peer.c - the scanner against json-c.
 *
 * Documents made at random, and the same with bytes changed, are given to both:
 * json-c in its strict mode with UTF-8 checks, whole input, and the depth that
 * is ours. They must agree on what is JSON, and on every value. Where json-c
 * departs from RFC 8259 the difference is one of those listed in differences[],
 * each with a predicate that says which texts have it; what was excused by each
 * is printed.
 */
#include "config.h"

#include "base/json.h"
#include "tap.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 2718;

static unsigned draw(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)((seed >> 11) % below);
}

/* ==== Where json-c 0.16 departs from RFC 8259, in strict mode ==== */

/*
 * Does the difference explain that json-c accepts text while we refuse it at
 * the byte p? end is that of text.
 */
typedef bool explains_fn(const char *text, const char *p, const char *end);

/* json-c takes the first NUL for the end of its input. */
static bool nul(const char *text, const char *p, const char *end)
{
    (void)text;
    return p < end && *p == '\0';
}

/* json-c replaces a surrogate without its partner by U+FFFD. */
static bool lone_surrogate(const char *text, const char *p, const char *end)
{
    (void)text;
    return end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
           (p[2] | 0x20) == 'd' && strchr("89abcdefABCDEF", p[3]);
}

/* json-c checks lead and continuation bytes, not which character they make. */
static bool utf8_range(const char *text, const char *p, const char *end)
{
    unsigned a = (unsigned char)p[0], b;

    (void)text;
    if (end - p < 2 || a < 0xc0 || a > 0xf7)
        return false;
    b = (unsigned char)p[1];
    return a <= 0xc1 || a >= 0xf5 || (a == 0xe0 && b < 0xa0) ||
           (a == 0xed && b >= 0xa0) || (a == 0xf0 && b < 0x90) ||
           (a == 0xf4 && b >= 0x90);
}

/* json-c 0.16 allows control characters in strings. */
static bool control(const char *text, const char *p, const char *end)
{
    (void)text;
    return p < end && *p >= 1 && *p < 0x20;
}

/* Of numbers with leading zeros, json-c refuses 01, but not -01, 00, 01.5. */
static bool zeros(const char *text, const char *p, const char *end)
{
    const char *q = p;

    while (q < end && *q >= '0' && *q <= '9')
        q++;
    if (q == p || p == text || p[-1] != '0')
        return false;
    return *p == '0' || (p - text >= 2 && p[-2] == '-') ||
           (q < end && strchr(".eE", *q));
}

/* json-c allows a point with no digit after it or (after '-') before it. */
static bool bare_point(const char *text, const char *p, const char *end)
{
    if (p > text && p[-1] == '.')
        return p == end || *p < '0' || *p > '9';
    return p > text && p < end && p[-1] == '-' && *p == '.';
}

/* json-c knows NaN, Infinity and -Infinity. */
static bool not_finite(const char *text, const char *p, const char *end)
{
    (void)text;
    return (end - p >= 3 && memcmp(p, "NaN", 3) == 0) ||
           (end - p >= 8 && memcmp(p, "Infinity", 8) == 0);
}

/* json-c allows keys in single quotes. */
static bool single_quote(const char *text, const char *p, const char *end)
{
    (void)text;
    return p < end && *p == '\'';
}

/* json-c counts the levels of values: an empty container may be one deeper. */
static bool empty_deepest(const char *text, const char *p, const char *end)
{
    int depth = 0;
    bool quoted = false;

    for (const char *q = text; q < p; q++) {
        if (quoted && *q == '\\')
            q++;
        else if (*q == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (*q == '[' || *q == '{') - (*q == ']' || *q == '}');
    }
    return depth == EP_JSON_MAX_DEPTH && end - p >= 2 &&
           (p[1] == ']' || p[1] == '}');
}

static struct {
    explains_fn *explains;
    const char *what;
    int count;
} differences[] = {
    {nul, "a NUL byte ends the input of json-c", 0},
    {lone_surrogate, "lone surrogates become U+FFFD", 0},
    {utf8_range, "overlong forms, surrogates and > U+10FFFF in UTF-8", 0},
    {control, "control characters in strings", 0},
    {zeros, "leading zeros but in positive integers", 0},
    {bare_point, "no digit after a point, or between '-' and point", 0},
    {not_finite, "NaN and Infinity", 0},
    {single_quote, "keys in single quotes", 0},
    {empty_deepest, "an empty container one level deeper", 0},
};

/* Of values: json-c's keys are C strings; its integers stop at 64 bits. */
static int cut_keys, clamped;

/* ==== Comparison ==== */

/* Does a later member of this level, which j is in, have this key? */
static bool comes_again(struct ep_json j, const struct ep_buf *key)
{
    struct ep_json_value k, v;
    struct ep_buf b;
    bool found = false;

    ep_buf_init(&b);
    while (!found && ep_json_next(&j, &k, &v) > 0) {
        ep_buf_reset(&b);
        ep_json_unescape(&k, &b);
        found = b.len == key->len && memcmp(b.ptr, key->ptr, b.len) == 0;
    }
    ep_buf_free(&b);
    return found;
}

/* The bytes of x, so that -0 and 0 differ. */
static uint64_t bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static bool same_number(const struct ep_json_value *v, struct json_object *o)
{
    double x = 0, y = json_object_get_double(o);
    int64_t n = 0;

    if (v->integer && json_object_is_type(o, json_type_int)) {
        bool big = v->dec.cut || v->dec.exp10 > 0;

        if (ep_json_int(v, &n) == 0)
            return n == json_object_get_int64(o);
        if (!v->dec.neg && !big)
            return v->dec.mant == json_object_get_uint64(o);
        if (!v->dec.neg && strtoull(v->raw.ptr, NULL, 10) < UINT64_MAX)
            return strtoull(v->raw.ptr, NULL, 10) == json_object_get_uint64(o);
        clamped++;
        return true;
    }
    if (ep_json_double(v, &x) == EP_ERANGE)
        return isinf(y);
    return bits(x) == bits(y);
}

static bool same(struct ep_json *j, const struct ep_json_value *v,
                 struct json_object *o);

/* NOLINTNEXTLINE(misc-no-recursion): levels are capped by the scanner. */
static bool same_object(struct ep_json *j, struct json_object *o)
{
    struct ep_json_value k, v;
    struct ep_buf key;
    bool good = json_object_is_type(o, json_type_object);
    int members = 0;

    ep_buf_init(&key);
    ep_json_enter(j);
    while (ep_json_next(j, &k, &v) > 0) {
        struct json_object *member = NULL;

        ep_buf_reset(&key);
        ep_json_unescape(&k, &key);
        if (!good || comes_again(*j, &key))
            continue;
        members++;
        good = json_object_object_get_ex(o, key.ptr, &member) &&
               same(j, &v, member);
    }
    ep_buf_free(&key);
    return good && members == json_object_object_length(o);
}

/* Is the value v, at which j stands, that of o? j passes over it. */
/* NOLINTNEXTLINE(misc-no-recursion): as above. */
static bool same(struct ep_json *j, const struct ep_json_value *v,
                 struct json_object *o)
{
    struct ep_json_value element;
    struct ep_buf b;
    bool good;
    size_t n = 0;

    switch (v->kind) {
    case EP_JSON_NULL:
        return o == NULL;
    case EP_JSON_FALSE:
    case EP_JSON_TRUE:
        return json_object_is_type(o, json_type_boolean) &&
               json_object_get_boolean(o) == (v->kind == EP_JSON_TRUE);
    case EP_JSON_NUMBER:
        return o && same_number(v, o);
    case EP_JSON_STRING:
        ep_buf_init(&b);
        ep_json_unescape(v, &b);
        good = json_object_is_type(o, json_type_string) &&
               b.len == (size_t)json_object_get_string_len(o) &&
               memcmp(b.ptr, json_object_get_string(o), b.len) == 0;
        ep_buf_free(&b);
        return good;
    case EP_JSON_OBJECT:
        return same_object(j, o);
    case EP_JSON_ARRAY:
        break;
    }
    good = json_object_is_type(o, json_type_array);
    ep_json_enter(j);
    for (; ep_json_next(j, NULL, &element) > 0; n++)
        good = good && n < json_object_array_length(o) &&
               same(j, &element, json_object_array_get_idx(o, n));
    return good && n == json_object_array_length(o);
}

static bool has_nul_key(struct ep_json j)
{
    struct ep_json_value k, v;

    ep_json_enter(&j);
    while (j.depth > 0) {
        bool object = j.objects & 1;

        if (ep_json_next(&j, &k, &v) <= 0)
            continue;
        ep_json_enter(&j);
        if (object && memmem(k.raw.ptr, k.raw.len, "\\u0000", 6))
            return true;
    }
    return false;
}

static bool explained(const char *text, const char *p, const char *end)
{
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        if (differences[i].explains(text, p, end)) {
            differences[i].count++;
            return true;
        }
    }
    return false;
}

static int both_accept, both_refuse;

/* Give text (terminated, as json-c wants it) to both. */
static bool agree(const char *text, size_t len)
{
    struct json_tokener *tok = json_tokener_new_ex(EP_JSON_MAX_DEPTH + 1);
    struct json_object *tree;
    struct ep_error err = {0, 0, ""};
    struct ep_json_value root;
    struct ep_json j, at;
    bool theirs, good;
    int ours = ep_json_begin(&j, text, len, &root, &err);

    at = j;
    if (ours == 0)
        ours = ep_json_end(&at);
    json_tokener_set_flags(tok,
                           JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    tree = json_tokener_parse_ex(tok, text, (int)len + 1);
    theirs = json_tokener_get_error(tok) == json_tokener_success;
    both_accept += ours == 0 && theirs;
    both_refuse += ours != 0 && !theirs;
    if (ours == 0 && theirs && has_nul_key(j)) {
        good = true;
        cut_keys++;
    } else if (ours == 0 && theirs) {
        good = same(&j, &root, tree);
    } else if (theirs) {
        good = explained(text, text + ep_json_offset(&at), text + len);
    } else {
        good = ours != 0;
    }
    if (!good)
        printf("# %.*s\n# ours %d (%s), json-c: %s\n", (int)len, text, ours,
               err.msg, json_tokener_error_desc(json_tokener_get_error(tok)));
    json_object_put(tree);
    json_tokener_free(tok);
    return good;
}

/* ==== Documents made at random ==== */

static const char *pick(const char *const *list, size_t n)
{
    return list[draw((unsigned)n)];
}
#define PICK(list) pick(list, sizeof(list) / sizeof *(list))

static void add_space(struct ep_buf *b)
{
    static const char *const space[] = {"",  "",   "",   "",
                                        " ", "\n", "\t", "\r\n"};

    ep_buf_adds(b, PICK(space));
}

static void add_string(struct ep_buf *b)
{
    static const char *const piece[] = {"a",
                                        "bc",
                                        "type",
                                        "0123456789",
                                        " ",
                                        "\\n",
                                        "\\\"",
                                        "\\\\",
                                        "\\/",
                                        "\\u0041",
                                        "\\u00e9",
                                        "\\u0000",
                                        "\\ud83d\\ude00",
                                        "\\uDBFF\\uDFFF",
                                        "\xc3\xa9",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80",
                                        "\x7f",
                                        "{",
                                        "]",
                                        ",",
                                        ":"};

    ep_buf_addc(b, '"');
    for (unsigned n = draw(5); n > 0; n--)
        ep_buf_adds(b, PICK(piece));
    ep_buf_addc(b, '"');
}

static void add_number(struct ep_buf *b)
{
    static const char *const edge[] = {"0",
                                       "-0",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "9223372036854775808",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "1e999",
                                       "-1e-999",
                                       "0.1e1",
                                       "5e-324",
                                       "1e23",
                                       "1E+5",
                                       "0e0"};

    if (draw(8) == 0) {
        ep_buf_adds(b, PICK(edge));
        return;
    }
    if (draw(3) == 0)
        ep_buf_addc(b, '-');
    if (draw(4) == 0)
        ep_buf_addc(b, '0');
    else
        ep_buf_addf(b, "%u", 1 + draw(draw(2) ? 9999 : 9));
    for (unsigned n = draw(3) ? 0 : draw(20);
         n > 0 && b->ptr[b->len - 1] != '0'; n--)
        ep_buf_addf(b, "%u", draw(10));
    if (draw(2)) {
        ep_buf_addc(b, '.');
        for (unsigned n = 1 + draw(draw(9) ? 9 : 30); n > 0; n--)
            ep_buf_addf(b, "%u", draw(10));
    }
    if (draw(4) == 0)
        ep_buf_addf(b, "%s%u",
                    draw(2)   ? "e-"
                    : draw(2) ? "E+"
                              : "e",
                    draw(330));
}

/* NOLINTNEXTLINE(misc-no-recursion): depth counts down. */
static void add_value(struct ep_buf *b, int depth)
{
    static const char *const word[] = {"null", "true", "false"};
    unsigned kind = draw(depth > 0 ? 8 : 5);
    bool object = kind > 5;

    add_space(b);
    if (kind < 2) {
        add_number(b);
    } else if (kind < 4) {
        add_string(b);
    } else if (kind == 4) {
        ep_buf_adds(b, PICK(word));
    } else {
        ep_buf_addc(b, object ? '{' : '[');
        add_space(b);
        for (unsigned n = draw(6), i = 0; i < n; i++) {
            if (i > 0)
                ep_buf_addc(b, ',');
            if (object) {
                add_space(b);
                add_string(b);
                add_space(b);
                ep_buf_addc(b, ':');
            }
            add_value(b, depth - 1);
        }
        ep_buf_addc(b, object ? '}' : ']');
    }
    add_space(b);
}

/* Change, drop, double or insert a byte, or cut the text. */
static void mutate(struct ep_buf *b)
{
    static const char alphabet[] =
        "\"\"\\\\,,::{}[]  0000123456789..--++eEuntf/'\n\x01\x7f\x80\xc3\xa9"
        "\xc0\xe0\xed\xa0\xf4\x90\xffNdD8c";
    size_t at = draw((unsigned)b->len);
    char c = alphabet[draw(sizeof alphabet)]; /* may be NUL */

    switch (draw(8)) {
    case 0:
        memmove(b->ptr + at, b->ptr + at + 1, b->len - at);
        b->len--;
        break;
    case 1:
        b->len = at;
        b->ptr[at] = '\0';
        break;
    case 2:
    case 3:
        (void)ep_buf_reserve(b, 1);
        memmove(b->ptr + at + 1, b->ptr + at, b->len - at + 1);
        if (draw(2))
            b->ptr[at] = c;
        b->len++;
        break;
    default:
        b->ptr[at] = c;
    }
}

static void test_random(void)
{
    int differ = 0;
    struct ep_buf b;

    printf("# seed %d\n", (int)seed);
    ep_buf_init(&b);
    for (int i = 0; i < 40000; i++) {
        ep_buf_reset(&b);
        do
            add_value(&b, 4);
        while (b.len == 0);
        for (int n = i % 4; n > 0 && b.len > 0; n--)
            mutate(&b);
        differ += !agree(b.ptr, b.len);
    }
    ok(differ == 0);
    ep_buf_free(&b);
    printf("# both accept %d, both refuse %d\n", both_accept, both_refuse);
    ok(both_accept > 10000 && both_refuse > 5000);
}

/* Each difference does exist, or the list is out of date. */
static void test_listed(void)
{
    static const char *const text[] = {"\"\\ud800\"",
                                       "\"\xc0\x80\"",
                                       "\"\x01\"",
                                       "-01",
                                       "[00]",
                                       "[1.]",
                                       "-.5",
                                       "[NaN]",
                                       "[-Infinity]",
                                       "{'a':1}",
                                       "18446744073709551616",
                                       "{\"a\\u0000\":1}"};
    char deep[2 * EP_JSON_MAX_DEPTH + 3];
    const size_t d = EP_JSON_MAX_DEPTH;

    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        ok(agree(text[i], strlen(text[i])));
    ok(agree("[1]\0", 4));
    memset(deep, '[', d + 1);
    memset(deep + d + 1, ']', d + 1);
    deep[2 * d + 2] = '\0';
    ok(agree(deep, 2 * d + 2));
    deep[2 * d + 1] = '\0';
    ok(agree(deep + 1, 2 * d));
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        printf("# %5d excused: %s\n", differences[i].count,
               differences[i].what);
        ok(differences[i].count > 0);
    }
    printf("# %5d excused: keys cut at \\u0000\n", cut_keys);
    printf("# %5d excused: integers beyond 64 bits are clamped\n", clamped);
    ok(cut_keys > 0 && clamped > 0);
}

int main(void)
{
    test_random();
    test_listed();
    return tap_done();
}

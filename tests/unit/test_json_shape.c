/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_json_shape.c - objects read by the shape of the one before, against the
 * scanner; and the searches of word.h against loops.
 */
#include "config.h"

#include "base/buf.h"
#include "base/json_shape.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/word.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 20261130
#define PAD 32
#define SLOTS 8

static struct ep_rng rng;

static uint64_t below(uint64_t n)
{
    return ep_rng_next(&rng) % n;
}

/* ==== Shapes ==== */

static struct ep_json_value slot[SLOTS];

static struct ep_json_value *slot_of(struct ep_span key)
{
    return key.len == 1 && *key.ptr >= 'a' && *key.ptr < 'a' + SLOTS
               ? &slot[*key.ptr - 'a']
               : NULL;
}

/* Read all with the scanner, noting it if shape is not NULL. */
static int scan(struct ep_json *j, struct ep_json_shape *shape)
{
    struct ep_json_value key, v;
    int rc;

    memset(slot, 0, sizeof slot);
    if (shape)
        ep_json_shape_begin(shape);
    ep_json_enter(j);
    do {
        while ((rc = ep_json_next(j, &key, &v)) > 0) {
            struct ep_json_value *to = slot_of(key.raw);

            if (to)
                *to = v;
            if (v.kind == EP_JSON_OBJECT) {
                ep_json_enter(j);
                continue;
            }
            if (shape)
                ep_json_shape_note(shape, to, &v);
        }
    } while (rc == 0 && j->depth > 0);
    if (shape && rc == 0)
        ep_json_shape_end(shape, j);
    return rc;
}

static void add_value(struct ep_buf *b)
{
    switch (below(6)) {
    case 0:
        ep_buf_addf(b, "\"%.*s\"", (int)below(40),
                    "a plain string of forty bytes, or fewer.");
        break;
    case 1:
        ep_buf_addf(b, "%lld", (long long)below(1000000) - 1000);
        break;
    case 2:
        ep_buf_addf(b, "%.*f", (int)below(14), (double)below(1000000) / 7);
        break;
    case 3:
        ep_buf_addf(b, "%lld", (long long)(ep_rng_next(&rng) >> 4));
        break;
    case 4:
        ep_buf_adds(b, below(2) ? "null" : "true");
        break;
    default:
        ep_buf_adds(b, below(2) ? "1e5" : "\"\\u0041\"");
        break;
    }
}

/* An object whose shape depends on what alone, and its values on chance. */
static void add_object(struct ep_buf *b, uint64_t what)
{
    int members = 2 + (int)(what % 9);

    ep_buf_adds(b, what & 16 ? "{ " : "{");
    for (int i = 0; i < members; i++) {
        if (i)
            ep_buf_adds(b, what & 32 ? ", " : ",");
        if (i == 3 && what & 64)
            ep_buf_adds(b, "\"args\":{");
        ep_buf_addf(b, "\"%c\":", 'a' + i);
        if (i % 3 == 0)
            ep_buf_addf(b, "\"%.*s\"", (int)below(40),
                        "a plain string of forty bytes, or fewer.");
        else if (i % 3 == 1)
            ep_buf_addf(b, "%.*f", (int)below(12), (double)below(99999) / 7);
        else if (below(20) == 0)
            add_value(b);
        else
            ep_buf_addf(b, "%lld",
                        below(3) ? (long long)below(1000000) - 1000
                                 : (long long)below(21) - 10);
    }
    if (members > 3 && what & 64)
        ep_buf_addc(b, '}');
    ep_buf_addc(b, '}');
}

static bool same_value(const struct ep_json_value *a,
                       const struct ep_json_value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind != EP_JSON_NUMBER && a->kind != EP_JSON_STRING)
        return true;
    if (a->raw.ptr != b->raw.ptr || a->raw.len != b->raw.len)
        return false;
    if (a->kind == EP_JSON_STRING)
        return a->escaped == b->escaped;
    return a->integer == b->integer && a->dec.mant == b->dec.mant &&
           a->dec.exp10 == b->dec.exp10 && a->dec.neg == b->dec.neg &&
           a->dec.cut == b->dec.cut;
}

static struct ep_json_shape shape;
static long matched, other;

/* Is the text, if it matches, what the scanner says? Learns it if not. */
static bool reads_alike(const struct ep_buf *b, size_t n)
{
    char *text = ep_realloc(NULL, n + PAD, 1);
    struct ep_json_value root, got[SLOTS];
    struct ep_json j, k;
    bool alike = true, match;

    memcpy(text, b->ptr, n);
    memset(text + n, '7', PAD);
    memset(slot, 0, sizeof slot);
    if (ep_json_begin_padded(&j, text, n, PAD, &root, NULL) < 0 ||
        root.kind != EP_JSON_OBJECT) {
        free(text);
        return true;
    }
    k = j;
    match = ep_json_shape_match(&shape, &j);
    memcpy(got, slot, sizeof got);
    matched += match;
    other += !match;
    if (match) {
        alike = scan(&k, NULL) == 0 && k.p == j.p && k.depth == j.depth &&
                k.separator == j.separator && !j.pending;
        for (int i = 0; i < SLOTS; i++)
            alike &= same_value(&got[i], &slot[i]);
    } else {
        alike = j.p == k.p && j.pending == k.pending;
        (void)scan(&j, &shape);
    }
    if (!alike)
        printf("# %.*s\n", (int)n, text);
    free(text);
    return alike;
}

static void check_shapes(void)
{
    static const char bytes[] = "\"\\,:{}[]0123456789.eE+-x \t\x80\xc3\x1f";
    long bad = 0;
    struct ep_buf b;

    ep_buf_init(&b);
    for (int i = 0; i < 3000; i++) {
        uint64_t what = below(128);

        for (int k = 0; k < 6; k++) {
            ep_buf_reset(&b);
            add_object(&b, what);
            bad += !reads_alike(&b, b.len);
            bad += !reads_alike(&b, below(b.len));
            b.ptr[below(b.len)] = bytes[below(sizeof bytes - 1)];
            bad += !reads_alike(&b, b.len);
        }
    }
    ok(bad == 0);
    printf("# %ld matched, %ld did not\n", matched, other);
    ok(matched > 3000);
    ok(other > 3000);
    ep_buf_free(&b);
}

/* What does not fit is not learnt, and matches nothing. */
static void check_limits(void)
{
    struct ep_json_value root;
    struct ep_json j;
    struct ep_buf b;
    size_t n;

    ep_buf_init(&b);
    ep_buf_addc(&b, '{');
    for (int i = 0; i < EP_JSON_SHAPE_VALUES + 1; i++)
        ep_buf_addf(&b, "%s\"key%d\":%d", i ? "," : "", i, i);
    ep_buf_addc(&b, '}');
    n = b.len;
    ep_buf_addf(&b, "%40s", "");
    for (int i = 0; i < 2; i++) {
        ok(ep_json_begin_padded(&j, b.ptr, n, PAD, &root, NULL) == 0);
        ok(!ep_json_shape_match(&shape, &j));
        ok(scan(&j, &shape) == 0);
    }
    ok(shape.n == 0);

    ep_buf_reset(&b);
    ep_buf_addf(&b, "{\"%*s\":12}", EP_JSON_SHAPE_TEXT, "");
    n = b.len;
    ep_buf_addf(&b, "%40s", "");
    ok(ep_json_begin_padded(&j, b.ptr, n, PAD, &root, NULL) == 0);
    ok(scan(&j, &shape) == 0);
    ok(shape.n == 0);
    ep_buf_free(&b);
}

/* ==== Words ==== */

static const char *slow_find(const char *p, size_t n, const char *text,
                             size_t m)
{
    for (size_t i = 0; i + m <= n; i++)
        if (memcmp(p + i, text, m) == 0)
            return p + i;
    return NULL;
}

static void check_words(void)
{
    long bad = 0;

    for (int i = 0; i < 100000; i++) {
        size_t n = below(70), m = 1 + below(5), at = 0;
        char *p = ep_realloc(NULL, n + 1, 1), text[8];
        const char *end;

        for (size_t k = 0; k < n; k++)
            p[k] = (char)('a' + below(3));
        for (size_t k = 0; k < m; k++)
            text[k] = (char)('a' + below(3));
        p = ep_realloc(p, n ? n : 1, 1); /* nothing behind it */
        end = p + n;
        bad += find_text(p, n, text, m) != slow_find(p, n, text, m);
        while (at < n && p[at] != 'c' && p[at] != text[0])
            at++;
        bad += find3(p, end, 'c', text[0], 'x') != p + at;
        free(p);
    }
    ok(bad == 0);
}

/* Runs of digits, each behind 16 bytes and before as many. */
static void check_digits(void)
{
    long bad = 0;

    for (int i = 0; i < 100000; i++) {
        size_t n = below(20);
        uint64_t want = 0, got;
        char text[64];
        unsigned count;

        for (size_t k = 0; k < sizeof text; k++)
            text[k] = (char)below(256);
        for (size_t k = 0; k < n; k++) {
            text[16 + k] = (char)('0' + below(10));
            if (k < 16)
                want = want * 10 + (uint64_t)(text[16 + k] - '0');
        }
        if ((unsigned char)(text[16 + n] - '0') <= 9)
            text[16 + n] = '.';
        got = digits16(text + 16, &count);
        bad += count != (n < 16 ? n : 16) || (n && got != want);
    }
    ok(bad == 0);
}

int main(void)
{
    printf("# seed %d\n", SEED);
    ep_rng_seed(&rng, SEED, 0);
    check_shapes();
    check_limits();
    check_words();
    check_digits();
    return tap_done();
}

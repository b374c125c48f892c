/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_record_fast.c - the short ways of records against the long ones, on
 * random records: what is printed against a printer that goes byte by byte,
 * what is read with padding behind the line against what is read without.
 */
#include "config.h"

#include "base/fp.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "record/record.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 20261130
#define PAD 32 /* EP_LINE_PAD */

static struct ep_rng rng;

static uint64_t below(uint64_t n)
{
    return ep_rng_next(&rng) % n;
}

/* Of a double: 0 is not -0. */
static uint64_t bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

/* ==== Random records ==== */

/* Names mostly, and now and then every kind of byte. */
static struct ep_span random_text(char *room, size_t most)
{
    static const char names[] =
        "abcdefghijklmnopqrstuvwxyz0123456789-_.:ABCDEF{}=, ";
    size_t n = below(4) ? below(20) : below(most);
    bool odd = below(4) == 0;

    for (size_t i = 0; i < n; i++) {
        room[i] = names[below(sizeof names - 1)];
        if (odd && below(6) == 0)
            room[i] = (char)(1 + below(255));
        if (odd && below(6) == 0)
            room[i] = below(2) ? '"' : '\\';
        if (odd && n - i > 3 && below(8) == 0) {
            const char *from = below(2) ? "\xc3\xa9\xe2" : "\xe2\x82\xac";

            room[i++] = from[0];
            room[i++] = from[1];
            room[i] = from[2];
        }
    }
    return (struct ep_span){room, n};
}

static double random_number(double min, double max)
{
    uint64_t bits = ep_rng_next(&rng);
    double x;

    switch (below(5)) {
    case 0: /* any double */
        memcpy(&x, &bits, sizeof x);
        break;
    case 1: /* a clock's */
        x = 1.73e9 + (double)below(1000000000) / 1e6;
        break;
    case 2:
        x = (double)below(100000) / 1e5;
        break;
    case 3:
        x = ep_rng_uniform(&rng);
        break;
    default:
        x = (double)below(1000);
        break;
    }
    return x >= min && x <= max ? x : min + 0.25 * (max < 4 ? max - min : 1);
}

static int64_t random_whole(double min)
{
    static const uint64_t most[] = {
        10, 100, 10000, 99999999, UINT64_C(1) << 40, UINT64_C(1) << 53};
    int64_t x = (int64_t)below(most[below(6)]);

    if (below(8) == 0) { /* as many digits as can be */
        x = 1;
        for (uint64_t n = below(16); n > 0; n--)
            x *= 10;
        x -= (int64_t)below(2);
    }
    return (double)x >= min ? x : (int64_t)min + x % 5;
}

static char room[EP_KEYS][6000];

/* All keys that the type needs, and others. */
static void random_record(struct ep_record *r)
{
    enum ep_type type = (enum ep_type)below(EP_TYPES);
    const struct ep_type_info *t = &ep_type_table[type];
    uint64_t often = 1 + below(6);

    ep_record_begin(r, type);
    for (int k = EP_K_TS; k < EP_KEYS; k++) {
        const struct ep_key_info *info = &ep_key_table[k];
        bool need = false;

        for (int i = 0; t->need[i] != EP_K_TYPE; i++)
            need |= t->need[i] == (enum ep_key)k;
        if (!need && below(often))
            continue;
        switch (ep_key_value(type, (enum ep_key)k)) {
        case EP_V_STRING:
            ep_record_set_span(
                r, (enum ep_key)k,
                random_text(room[k], below(200) ? 60 : sizeof room[k]));
            break;
        case EP_V_STRINGS:
            ep_record_set_str(r, (enum ep_key)k, "[\"n1\", \"n\\\"2\"]");
            break;
        case EP_V_INTEGER:
            ep_record_set_int(r, (enum ep_key)k, random_whole(info->min));
            break;
        case EP_V_NUMBER:
            ep_record_set_num(r, (enum ep_key)k,
                              random_number(info->min, info->max));
            break;
        }
    }
}

/* ==== Printing ==== */

static void slow_string(struct ep_buf *b, struct ep_span s)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";

    ep_buf_addc(b, '"');
    for (size_t i = 0; i < s.len;) {
        unsigned char c = (unsigned char)s.ptr[i];
        int n = ep_utf8_len(s.ptr + i, s.len - i);
        const char *short_form = c ? strchr(from, c) : NULL;

        if (n <= 0)
            ep_buf_adds(b, "\xef\xbf\xbd");
        else if (short_form)
            ep_buf_addf(b, "\\%c", to[short_form - from]);
        else if (c < 0x20)
            ep_buf_addf(b, "\\u%04x", c);
        else
            ep_buf_add(b, s.ptr + i, (size_t)n);
        i += n > 0 ? (size_t)n : 1;
    }
    ep_buf_addc(b, '"');
}

static void slow_print(const struct ep_record *r, struct ep_buf *b)
{
    char text[EP_FP_MAX];
    size_t n;

    for (int k = 0; k < EP_KEYS; k++) {
        if (!ep_record_has(r, (enum ep_key)k))
            continue;
        ep_buf_addf(b, "%c\"%s\":", k ? ',' : '{', ep_key_table[k].name);
        switch (ep_key_value(r->type, (enum ep_key)k)) {
        case EP_V_STRING:
            slow_string(b, r->v[k].str);
            break;
        case EP_V_STRINGS:
            ep_buf_adds(b, "[\"n1\",\"n\\\"2\"]");
            break;
        case EP_V_INTEGER:
            ep_buf_addf(b, "%lld", (long long)r->v[k].num);
            break;
        case EP_V_NUMBER:
            n = ep_fp_print(r->v[k].num, text);
            ep_buf_add(b, text, n);
            break;
        }
    }
    ep_buf_adds(b, "}\n");
}

/* ==== Reading ==== */

static struct ep_record_parser *slow, *fast;
static long taken, refused;

static bool same_value(const struct ep_record *a, const struct ep_record *b,
                       int k)
{
    enum ep_value kind = ep_key_value(a->type, (enum ep_key)k);

    if (kind == EP_V_STRING || kind == EP_V_STRINGS)
        return a->v[k].str.len == b->v[k].str.len &&
               memcmp(a->v[k].str.ptr, b->v[k].str.ptr, a->v[k].str.len) == 0;
    return bits(a->v[k].num) == bits(b->v[k].num);
}

static bool same(const struct ep_record *a, const struct ep_record *b)
{
    if (a->type != b->type || a->have[0] != b->have[0] ||
        a->have[1] != b->have[1])
        return false;
    for (int k = 0; a->type != EP_OTHER && k < EP_KEYS; k++)
        if (ep_record_has(a, (enum ep_key)k) && !same_value(a, b, k))
            return false;
    return true;
}

/* Is a line read alike both ways? The padding goes on as the line might. */
static bool reads_alike(const char *line, size_t n)
{
    static const char behind[] = "0123456789\",\"dur\":7,\"name\":\"x\"}\n}}}";
    char *padded = ep_realloc(NULL, n + PAD, 1), *exact;
    struct ep_error a = {.code = 0}, b = {.code = 0};
    struct ep_record x, y;
    int p, q;
    bool alike;

    memcpy(padded, line, n);
    memcpy(padded + n, behind + below(4), PAD);
    exact = ep_realloc(NULL, n + 1, 1);
    memcpy(exact, line, n);
    p = ep_record_parse(slow, exact, n, &x, &a);
    q = ep_record_parse_padded(fast, padded, n, PAD, &y, &b);
    alike = p == q && (p < 0 ? strcmp(a.msg, b.msg) == 0 : same(&x, &y));
    if (!alike)
        printf("# %d %d %s %s: %.*s\n", p, q, a.msg, b.msg, (int)n, line);
    taken += p == 0;
    refused += p < 0;
    free(exact);
    free(padded);
    return alike;
}

/* Another byte, one less, one more, or the end. */
static size_t damage(char *line, size_t n)
{
    static const char bytes[] = "\"\\,:{}[]0123456789.eE+-x \t\x80\xc3\x1f";
    size_t at = below(n);
    char c = bytes[below(sizeof bytes - 1)];

    switch (below(4)) {
    case 0:
        line[at] = c;
        return n;
    case 1:
        memmove(line + at, line + at + 1, n - at - 1);
        return n - 1;
    case 2:
        memmove(line + at + 1, line + at, n - at);
        line[at] = c;
        return n + 1;
    default:
        return at + 1;
    }
}

int main(void)
{
    long printed = 0, read = 0, damaged = 0, rounds = 4000;
    struct ep_buf b, want;

    printf("# seed %d\n", SEED);
    ep_rng_seed(&rng, SEED, 0);
    ep_buf_init(&b);
    ep_buf_init(&want);
    slow = ep_record_parser_new();
    fast = ep_record_parser_new();
    for (long i = 0; i < rounds; i++) {
        struct ep_record r;

        random_record(&r);
        if (below(3)) { /* else behind the one before */
            ep_buf_reset(&b);
            ep_buf_reset(&want);
        }
        if (below(50) == 0)
            ep_buf_free(&b);
        if (!b.len)
            ep_buf_reset(&want);
        ep_record_print(&r, &b);
        slow_print(&r, &want);
        printed += b.len == want.len && memcmp(b.ptr, want.ptr, b.len) == 0 &&
                   b.ptr[b.len] == '\0';
        want.len = 0;
        slow_print(&r, &want);
        read += reads_alike(want.ptr, want.len - 1);
        for (int k = 0; k < 8; k++) {
            char line[1000];

            if (want.len >= sizeof line)
                continue;
            memcpy(line, want.ptr, want.len);
            damaged -= !reads_alike(line, damage(line, want.len - 1));
        }
        ep_buf_reset(&want);
        ep_buf_add(&want, b.ptr, b.len);
    }
    ok(printed == rounds);
    ok(read == rounds);
    ok(damaged == 0);
    printf("# %ld lines taken, %ld refused\n", taken, refused);
    ok(taken > rounds && refused > rounds);
    ep_record_parser_free(slow);
    ep_record_parser_free(fast);
    ep_buf_free(&b);
    ep_buf_free(&want);
    return tap_done();
}

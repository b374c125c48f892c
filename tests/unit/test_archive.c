/* SPDX-License-Identifier: Apache-2.0 */
/* test_archive.c - values into bytes and back, and what is not believed. */
#include "config.h"

#include "base/archive.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tap.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* One of each kind; fields of pointers are for free(). */
struct all {
    uint64_t u, bits;
    int64_t i;
    bool b;
    double f[3], finite;
    char *text, *none;
    struct ep_span span;
};

static void archive(struct ep_archive *a, struct all *x)
{
    x->u = ep_archive_u64(a, x->u, UINT64_MAX);
    x->bits = ep_archive_bits(a, x->bits);
    x->i = ep_archive_i64(a, x->i, INT64_MIN, INT64_MAX);
    x->b = ep_archive_bool(a, x->b);
    ep_archive_f64s(a, x->f, 3);
    x->finite = ep_archive_finite(a, x->finite);
    x->text = ep_archive_string(a, x->text, 1000);
    x->none = ep_archive_string(a, x->none, 1000);
    x->span = ep_archive_span(a, x->span, 1000);
}

static void save(struct ep_archive *a, struct all *x)
{
    ep_archive_save(a, "test", 7, "1.2");
    archive(a, x);
    ok(ep_archive_saved(a, NULL) == 0);
}

static uint64_t bits_of(double v)
{
    uint64_t u;

    memcpy(&u, &v, sizeof u);
    return u;
}

static void test_round(const struct all *from)
{
    struct all x = *from, y = {.u = 0};
    struct ep_archive out, in, again;

    save(&out, &x);
    ok(ep_archive_load(&in, out.out.ptr, out.out.len, "test", 7, NULL) == 0);
    archive(&in, &y);
    ok(ep_archive_loaded(&in, NULL) == 0);
    ok(y.u == x.u && y.bits == x.bits && y.i == x.i && y.b == x.b);
    ok(y.finite == x.finite);
    for (int k = 0; k < 3; k++)
        ok(bits_of(y.f[k]) == bits_of(x.f[k]));
    ok(x.text ? y.text && strcmp(x.text, y.text) == 0 : !y.text);
    ok(!y.none);
    ok(y.span.len == x.span.len &&
       memcmp(y.span.ptr, x.span.ptr, x.span.len) == 0);
    save(&again, &y);
    ok(again.out.len == out.out.len &&
       memcmp(again.out.ptr, out.out.ptr, out.out.len) == 0);
    free(y.text);
    free(y.none);
    ep_archive_free(&in);
    ep_archive_free(&again);
    ep_archive_free(&out);
}

static void test_values(void)
{
    static const uint64_t u[] = {0, 1, 127, 128, 16383, 16384, UINT64_MAX};
    static const int64_t v[] = {0, -1, 1, -64, 64, INT64_MIN, INT64_MAX};
    static const double f[] = {0,       -0.0,     (double)NAN,     1e-310,
                               DBL_MAX, -DBL_MAX, (double)INFINITY};
    char text[] = "h\xc3\xb6st";

    for (int k = 0; k < 7; k++) {
        struct all x = {
            .u = u[k],
            .bits = u[k] * 3,
            .i = v[k],
            .b = k % 2,
            .f = {f[k], -f[k], 0.1 * k},
            .finite = 0.1 * k,
            .text = k % 3 ? text : NULL,
            .span = {"a\0b", (size_t)k % 4},
        };

        test_round(&x);
    }
}

/* The bytes as they are described, written by hand. */
static void test_bytes(void)
{
    static const char want[] =
        "EPSTATE\n\4test\7\0\0\0\0031.2"
        "\20\0\0\0\0\0\0\0"
        "\254\2\1\0\0\0\0\0\0\370?\2\3\0ab";
    struct ep_archive a;

    ep_archive_save(&a, "test", 7, "1.2");
    (void)ep_archive_u64(&a, 300, 300);
    (void)ep_archive_i64(&a, -1, -1, 1);
    (void)ep_archive_f64(&a, 1.5);
    (void)ep_archive_i64(&a, 1, 1, 1);
    (void)ep_archive_span(&a, (struct ep_span){"\0ab", 3}, 3);
    ok(ep_archive_saved(&a, NULL) == 0);
    ok(a.out.len == sizeof want - 1 + 4);
    ok(memcmp(a.out.ptr, want, sizeof want - 1) == 0);
    ep_archive_free(&a);
    /* the check value of CRC-32, and one of two whole blocks of eight */
    ok(ep_archive_crc32("123456789", 9) == 0xCBF43926);
    ok(ep_archive_crc32("", 0) == 0);
    ok(ep_archive_crc32("The quick brown fox jumps over the lazy dog", 43) ==
       0x414FA339);
}

static const char *reason(const void *bytes, size_t n, const char *program,
                          uint32_t format)
{
    static struct ep_error err;
    struct ep_archive a;

    err = (struct ep_error){.code = 0};
    if (ep_archive_load(&a, bytes, n, program, format, &err) == 0)
        err.msg[0] = '\0';
    ep_archive_free(&a);
    return err.msg;
}

/* Cut, changed, of others: refused, for the right reason. */
static void test_refused(void)
{
    struct all x = {.span = {"span", 4}};
    struct ep_archive a;
    size_t passed = 0, cut = 0;

    save(&a, &x);
    ok(!*reason(a.out.ptr, a.out.len, "test", 7));
    ok(strcmp(reason("", 0, "test", 7), "it is no saved state") == 0);
    ok(strcmp(reason("{\"ts\":1}{\"ts\":2}", 16, "test", 7),
              "it is no saved state") == 0);
    ok(strcmp(reason(a.out.ptr, a.out.len, "other", 7),
              "it is the state of test, not of other") == 0);
    ok(strcmp(reason(a.out.ptr, a.out.len, "test", 6),
              "it is in format 7, of version 1.2; only format 6 is known "
              "here") == 0);
    for (size_t n = 0; n < a.out.len; n++) {
        passed += !*reason(a.out.ptr, n, "test", 7);
        cut += strcmp(reason(a.out.ptr, n, "test", 7), "it is cut short") == 0;
    }
    ok(passed == 0 && cut == a.out.len - 8);
    for (size_t bit = 0; bit < 8 * a.out.len; bit++) {
        a.out.ptr[bit / 8] = (char)(a.out.ptr[bit / 8] ^ 1 << bit % 8);
        passed += !*reason(a.out.ptr, a.out.len, "test", 7);
        a.out.ptr[bit / 8] = (char)(a.out.ptr[bit / 8] ^ 1 << bit % 8);
    }
    ok(passed == 0);
    ep_buf_addc(&a.out, 'x');
    ok(strcmp(reason(a.out.ptr, a.out.len, "test", 7),
              "there is more behind its end") == 0);
    ep_archive_free(&a);
}

/* Begin to load what fn wrote into the payload. */
static struct ep_archive saved;

static struct ep_archive *load(void)
{
    static struct ep_archive in;

    ok(ep_archive_saved(&saved, NULL) == 0);
    ok(ep_archive_load(&in, saved.out.ptr, saved.out.len, "t", 1, NULL) == 0);
    return &in;
}

static void done(struct ep_archive *in)
{
    ep_archive_free(in);
    ep_archive_free(&saved);
}

static void test_limits(void)
{
    struct ep_archive *in;
    struct ep_error err;

    /* a count of what is not there, and all that comes behind it */
    ep_archive_save(&saved, "t", 1, "");
    (void)ep_archive_u64(&saved, 1000000, UINT64_MAX);
    (void)ep_archive_f64(&saved, 1);
    in = load();
    ok(ep_archive_size(in, 0, UINT32_MAX, 8) == 0 && !ep_archive_ok(in));
    ok(ep_archive_f64(in, 3) == 0);
    ok(ep_archive_i64(in, 9, 5, 9) == 5);
    ok(ep_archive_string(in, NULL, 10) == NULL);
    ep_archive_fail(in, "later");
    ok(ep_archive_loaded(in, &err) == EP_EFORMAT &&
       strcmp(err.msg, "more is announced than there is") == 0);
    done(in);

    /* as many as there are bytes for */
    ep_archive_save(&saved, "t", 1, "");
    (void)ep_archive_u64(&saved, 1, UINT64_MAX);
    (void)ep_archive_f64(&saved, 1);
    in = load();
    ok(ep_archive_size(in, 0, 1, 8) == 1 && ep_archive_ok(in));
    ok(ep_archive_loaded(in, &err) == EP_EFORMAT); /* one is left */
    done(in);

    /* out of range, not finite, a number without end */
    ep_archive_save(&saved, "t", 1, "");
    (void)ep_archive_u64(&saved, 11, 11);
    in = load();
    ok(ep_archive_u64(in, 0, 10) == 0 && !ep_archive_ok(in));
    done(in);
    ep_archive_save(&saved, "t", 1, "");
    (void)ep_archive_f64(&saved, (double)NAN);
    in = load();
    ok(ep_archive_finite(in, 1) == 0 && !ep_archive_ok(in));
    done(in);
    ep_archive_save(&saved, "t", 1, "");
    (void)ep_archive_bits(&saved, UINT64_MAX);
    (void)ep_archive_bits(&saved, UINT64_MAX);
    in = load();
    ok(ep_archive_u64(in, 0, UINT64_MAX) == 0 && !ep_archive_ok(in));
    done(in);

    /* what cannot be loaded is not saved */
    ep_archive_save(&saved, "t", 1, "");
    (void)ep_archive_u64(&saved, 11, 10);
    ok(ep_archive_saved(&saved, NULL) == EP_EFORMAT);
    ep_archive_free(&saved);
}

int main(void)
{
    test_values();
    test_bytes();
    test_refused();
    test_limits();
    return tap_done();
}

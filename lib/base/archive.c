/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.c - see archive.h. The sum is taken eight bytes at a time by eight
 * tables (M. Kounavis, F. Berry, "A systematic approach to building high
 * performance software-based CRC generators", ISCC 2005), which are made when
 * they are needed: 2048 steps, against state that has to be kept or locked.
 */
#include "config.h"

#include "base/archive.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = "EPSTATE\n";

#define CRC_BYTES 4

/* ==== Bytes ==== */

static void put(struct ep_archive *a, uint64_t v, unsigned bytes)
{
    char *p = ep_buf_extend(&a->out, bytes);

    for (unsigned i = 0; i < bytes; i++)
        p[i] = (char)(v >> 8 * i);
}

static uint64_t peek(const unsigned char *p, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* The next n bytes, or NULL. */
static const unsigned char *take(struct ep_archive *a, size_t n)
{
    const unsigned char *p = a->at;

    if (!ep_archive_ok(a))
        return NULL;
    if ((size_t)(a->end - a->at) < n) {
        ep_archive_fail(a, "more is announced than there is");
        return NULL;
    }
    a->at += n;
    return p;
}

static uint64_t get(struct ep_archive *a, unsigned bytes)
{
    const unsigned char *p = take(a, bytes);

    return p ? peek(p, bytes) : 0;
}

static void make_tables(uint32_t t[8][256])
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;

        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? UINT32_C(0xEDB88320) : 0);
        t[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
}

uint32_t ep_archive_crc32(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint32_t t[8][256], c = UINT32_MAX;

    make_tables(t);
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w = peek(p, 8) ^ c;

        c = 0;
        for (unsigned k = 0; k < 8; k++)
            c ^= t[7 - k][w >> 8 * k & 255];
    }
    for (; n; n--)
        c = c >> 8 ^ t[0][(c ^ *p++) & 255];
    return ~c;
}

/* ==== Begin and end ==== */

static void put_name(struct ep_archive *a, const char *s)
{
    size_t n = strlen(s);

    n = n < 255 ? n : 255;
    put(a, n, 1);
    ep_buf_add(&a->out, s, n);
}

void ep_archive_save(struct ep_archive *a, const char *program, uint32_t format,
                     const char *version)
{
    *a = (struct ep_archive){.saving = true};
    ep_buf_init(&a->out);
    ep_buf_add(&a->out, magic, sizeof magic);
    put_name(a, program);
    put(a, format, 4);
    put_name(a, version);
    put(a, 0, 8);
    a->header = a->out.len;
}

/* The error of a, to the caller. */
static int pass_error(const struct ep_archive *a, struct ep_error *err)
{
    if (err && a->err.code)
        *err = a->err;
    return a->err.code;
}

int ep_archive_saved(struct ep_archive *a, struct ep_error *err)
{
    uint64_t payload = a->out.len - a->header;

    for (unsigned i = 0; i < 8; i++)
        a->out.ptr[a->header - 8 + i] = (char)(payload >> 8 * i);
    put(a, ep_archive_crc32(a->out.ptr, a->out.len), CRC_BYTES);
    return pass_error(a, err);
}

static struct ep_span get_name(struct ep_archive *a)
{
    size_t n = (size_t)get(a, 1);
    const unsigned char *p = take(a, n);

    return (struct ep_span){p ? (const char *)p : "", p ? n : 0};
}

/* Is it whole? What is cut or damaged may say anything about itself. */
static int check_whole(struct ep_archive *a, const unsigned char *bytes,
                       struct ep_error *err)
{
    uint64_t payload = get(a, 8);
    uint64_t left = (uint64_t)(a->end - a->at);

    if (!ep_archive_ok(a) || left < CRC_BYTES || left - CRC_BYTES < payload)
        return ep_error_set(err, EP_EFORMAT, "it is cut short");
    if (left - CRC_BYTES > payload)
        return ep_error_set(err, EP_EFORMAT, "there is more behind its end");
    a->end -= CRC_BYTES;
    if (peek(a->end, CRC_BYTES) !=
        ep_archive_crc32(bytes, (size_t)(a->end - bytes)))
        return ep_error_set(err, EP_EFORMAT, "it is damaged (check sum)");
    return 0;
}

int ep_archive_load(struct ep_archive *a, const void *bytes, size_t n,
                    const char *program, uint32_t format, struct ep_error *err)
{
    struct ep_span name, version;
    char shown[80], shown_version[40];
    const unsigned char *start;
    uint64_t number;

    *a = (struct ep_archive){.at = bytes,
                             .end = (const unsigned char *)bytes + n};
    ep_buf_init(&a->out);
    start = take(a, sizeof magic);
    if (!start || memcmp(start, magic, sizeof magic) != 0)
        return ep_error_set(err, EP_EFORMAT, "it is no saved state");
    name = get_name(a);
    number = get(a, 4);
    version = get_name(a);
    if (!ep_archive_ok(a))
        return ep_error_set(err, EP_EFORMAT, "it is cut short");
    (void)ep_escape(shown, sizeof shown, name.ptr, name.len);
    (void)ep_escape(shown_version, sizeof shown_version, version.ptr,
                    version.len);
    if (!ep_span_eq(name, program))
        return ep_error_set(err, EP_EFORMAT, "it is the state of %s, not of %s",
                            shown, program);
    if (number != format)
        return ep_error_set(err, EP_EFORMAT,
                            "it is in format %lu, of version %s; only format "
                            "%lu is known here",
                            (unsigned long)number, shown_version,
                            (unsigned long)format);
    return check_whole(a, bytes, err);
}

int ep_archive_loaded(struct ep_archive *a, struct ep_error *err)
{
    ep_archive_require(a, a->at == a->end,
                       "there is more in it than its parts");
    return pass_error(a, err);
}

void ep_archive_free(struct ep_archive *a)
{
    ep_buf_free(&a->out);
}

void ep_archive_fail(struct ep_archive *a, const char *why)
{
    if (!a->err.code)
        (void)ep_error_set(&a->err, EP_EFORMAT, "%s", why);
}

/* ==== Values ==== */

static void put_number(struct ep_archive *a, uint64_t v)
{
    char *p = ep_buf_reserve(&a->out, 10);
    size_t n = 0;

    for (; v > 127; v >>= 7)
        p[n++] = (char)(v | 128);
    p[n++] = (char)v;
    (void)ep_buf_extend(&a->out, n);
}

static uint64_t get_number(struct ep_archive *a)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        const unsigned char *p = take(a, 1);

        if (!p)
            return 0;
        if (shift == 63 && *p > 1)
            break;
        v |= (uint64_t)(*p & 127) << shift;
        if (*p < 128)
            return v;
    }
    ep_archive_fail(a, "a number is too long");
    return 0;
}

uint64_t ep_archive_u64(struct ep_archive *a, uint64_t v, uint64_t max)
{
    if (!a->saving)
        v = get_number(a);
    ep_archive_require(a, v <= max, "a number is out of its range");
    if (!ep_archive_ok(a))
        return a->saving ? v : 0;
    if (a->saving)
        put_number(a, v);
    return v;
}

int64_t ep_archive_i64(struct ep_archive *a, int64_t v, int64_t min,
                       int64_t max)
{
    uint64_t u = (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);

    if (!a->saving) {
        u = get_number(a);
        v = (int64_t)(u >> 1 ^ (u & 1 ? UINT64_MAX : 0));
    }
    ep_archive_require(a, v >= min && v <= max, "a number is out of its range");
    if (!ep_archive_ok(a)) {
        if (a->saving)
            return v;
        return min > 0 ? min : max < 0 ? max : 0;
    }
    if (a->saving)
        put_number(a, u);
    return v;
}

bool ep_archive_bool(struct ep_archive *a, bool v)
{
    return ep_archive_u64(a, v, 1) != 0;
}

uint64_t ep_archive_bits(struct ep_archive *a, uint64_t v)
{
    if (!a->saving)
        return get(a, 8);
    put(a, v, 8);
    return v;
}

double ep_archive_f64(struct ep_archive *a, double v)
{
    uint64_t u;

    memcpy(&u, &v, sizeof u);
    u = ep_archive_bits(a, u);
    memcpy(&v, &u, sizeof v);
    return v;
}

double ep_archive_finite(struct ep_archive *a, double v)
{
    v = ep_archive_f64(a, v);
    ep_archive_require(a, isfinite(v), "a number is not finite");
    return a->saving || ep_archive_ok(a) ? v : 0;
}

void ep_archive_f64s(struct ep_archive *a, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = ep_archive_f64(a, v[i]);
}

size_t ep_archive_size(struct ep_archive *a, size_t n, size_t max, size_t each)
{
    n = (size_t)ep_archive_u64(a, n, max);
    if (a->saving)
        return n;
    ep_archive_require(a, n <= (size_t)(a->end - a->at) / each,
                       "more is announced than there is");
    return ep_archive_ok(a) ? n : 0;
}

struct ep_span ep_archive_span(struct ep_archive *a, struct ep_span s,
                               size_t max)
{
    const unsigned char *p;

    s.len = ep_archive_size(a, s.len, max, 1);
    if (a->saving) {
        ep_buf_add(&a->out, s.len ? s.ptr : "", s.len);
        return s;
    }
    p = take(a, s.len);
    return (struct ep_span){p ? (const char *)p : "", p ? s.len : 0};
}

char *ep_archive_string(struct ep_archive *a, char *s, size_t max)
{
    struct ep_span span = {s, a->saving && s ? strlen(s) : 0};

    if (!ep_archive_bool(a, s != NULL))
        return NULL;
    span = ep_archive_span(a, span, max);
    return a->saving ? s : ep_strndup(span.ptr, span.len);
}

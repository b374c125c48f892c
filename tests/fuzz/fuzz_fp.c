/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_fp.c - the input as a number.
 *
 * If it is a JSON number by the grammar as written down here again,
 * ep_fp_parse gives what strtod gives, bit for bit, and what ep_fp_print makes
 * of it reads back; anything else is refused. Its first eight bytes are also
 * taken as a double, to be printed and read back.
 */
#include "config.h"

#include "base/fp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static bool same(double a, double b)
{
    uint64_t x, y;

    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

/* Digits at p, a terminated string. */
static size_t digits(const char *p)
{
    return strspn(p, "0123456789");
}

/* RFC 8259: number = [ minus ] int [ frac ] [ exp ] */
static bool is_json_number(const char *p, size_t len)
{
    const char *end = p + len;
    size_t n;

    p += *p == '-';
    n = digits(p);
    if (n == 0 || (n > 1 && *p == '0'))
        return false;
    p += n;
    if (*p == '.') {
        n = digits(++p);
        if (n == 0)
            return false;
        p += n;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '-' || *p == '+';
        n = digits(p);
        if (n == 0)
            return false;
        p += n;
    }
    return p == end;
}

static void check_print(double x)
{
    char t[EP_FP_MAX + 1];
    size_t n = ep_fp_print(x, t);
    double y = 0;

    check(n <= 24);
    t[n] = '\0';
    check(is_json_number(t, n));
    check(ep_fp_parse(t, n, &y) == 0 && same(x, y));
    check(same(strtod(t, NULL), x));
}

static void check_parse(const char *t, size_t len)
{
    double x = 0, want;
    int rc = ep_fp_parse(t, len, &x);

    if (!is_json_number(t, len)) {
        check(rc == EP_EFORMAT);
        return;
    }
    want = strtod(t, NULL);
    if (isinf(want)) {
        check(rc == EP_ERANGE);
        return;
    }
    check(rc == 0 && same(x, want));
    check_print(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *t = calloc(size + 1, 1);
    double x;

    if (!t)
        return 0;
    if (size)
        memcpy(t, data, size);
    check_parse(t, size);
    if (size >= sizeof x) {
        memcpy(&x, data, sizeof x);
        if (isfinite(x))
            check_print(x);
    }
    free(t);
    return 0;
}

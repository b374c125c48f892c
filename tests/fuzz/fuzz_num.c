/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_num.c - the input as what a user types.
 *
 * Whatever a reader accepts is within the bounds and, printed in full, is
 * accepted again with the same value; a refusal says why. What is shown to
 * people is printable.
 */
#include "config.h"

#include "base/fp.h"
#include "base/num.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_refusal(int rc, const struct ep_error *e)
{
    check(rc == EP_EFORMAT || rc == EP_ERANGE);
    check(e->code == rc && e->msg[0] != '\0');
    for (const char *p = e->msg; *p; p++)
        check((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void check_int(const char *s,
                      int (*read)(const char *, int64_t, int64_t, int64_t *,
                                  struct ep_error *),
                      int64_t lo, int64_t hi)
{
    char t[EP_FP_MAX + 1];
    struct ep_error e = {0};
    int64_t x = 0, y = 0;
    int rc = read(s, lo, hi, &x, &e);

    if (rc) {
        check_refusal(rc, &e);
        return;
    }
    check(x >= lo && x <= hi);
    t[ep_fp_print_int(x, t)] = '\0';
    check(read(t, x, x, &y, &e) == 0 && x == y);
}

static void check_double(const char *s,
                         int (*read)(const char *, double, double, double *,
                                     struct ep_error *),
                         double lo, double hi)
{
    char t[EP_FP_MAX + 1];
    struct ep_error e = {0};
    double x = 0, y = 0;
    int rc = read(s, lo, hi, &x, &e);

    if (rc) {
        check_refusal(rc, &e);
        return;
    }
    check(isfinite(x) && x >= lo && x <= hi);
    t[ep_fp_print(x, t)] = '\0';
    check(read(t, x, x, &y, &e) == 0 && x == y);
}

static void check_shown(double x)
{
    struct ep_buf b;

    ep_buf_init(&b);
    ep_num_format_duration(&b, x);
    ep_num_format_size(&b, x);
    ep_num_format_si(&b, x, "FLOP/s");
    check(b.len > 0 && b.len < 128);
    for (size_t i = 0; i < b.len; i++)
        check(b.ptr[i] >= 0x20 && b.ptr[i] < 0x7f);
    ep_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = calloc(size + 1, 1);
    double x;

    if (!s)
        return 0;
    if (size)
        memcpy(s, data, size);
    check_int(s, ep_num_int, INT64_MIN, INT64_MAX);
    check_int(s, ep_num_int, 0, 1000);
    check_int(s, ep_num_size, INT64_MIN, INT64_MAX);
    check_int(s, ep_num_size, 1, 1 << 20);
    check_double(s, ep_num_double, -INFINITY, INFINITY);
    check_double(s, ep_num_double, 0, 1);
    check_double(s, ep_num_duration, -INFINITY, INFINITY);
    check_double(s, ep_num_duration, 0.001, 3600);
    if (size >= sizeof x) {
        memcpy(&x, data, sizeof x);
        check_shown(x);
    }
    free(s);
    return 0;
}

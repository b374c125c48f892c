/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fp.c - numbers from and to text, against the C library.
 *
 * One line per case: name, median ns per number, median absolute deviation,
 * and how many times faster than the peer (strtod, snprintf "%.17g") measured
 * in turn with it. Every pass goes over the same N numbers, too many for the
 * branch predictor to learn.
 */
#include "config.h"

#include "base/fp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N 20000
#define PASSES 31

struct sample {
    double x;
    struct ep_fp_decimal d;
    char text[40];
    size_t len;
};

static struct sample samples[N];
static volatile uint64_t sink;

static uint64_t rng = 1;

static uint64_t next(void)
{
    uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* ---- what is measured: one pass each ---- */

static void pass_from_decimal(void)
{
    double sum = 0;

    for (int i = 0; i < N; i++)
        sum +=
            ep_fp_from_decimal(&samples[i].d, samples[i].text, samples[i].len);
    sink += sum > 0;
}

static void pass_parse(void)
{
    double x = 0, sum = 0;

    for (int i = 0; i < N; i++) {
        if (ep_fp_parse(samples[i].text, samples[i].len, &x) != 0)
            abort();
        sum += x;
    }
    sink += sum > 0;
}

static void pass_strtod(void)
{
    double sum = 0;

    for (int i = 0; i < N; i++)
        sum += strtod(samples[i].text, NULL);
    sink += sum > 0;
}

static void pass_print(void)
{
    char t[EP_FP_MAX];

    for (int i = 0; i < N; i++)
        sink += ep_fp_print(samples[i].x, t);
}

static void pass_snprintf(void)
{
    char t[40];

    for (int i = 0; i < N; i++)
        sink += (uint64_t)snprintf(t, sizeof t, "%.17g", samples[i].x);
}

static void pass_print_int(void)
{
    char t[EP_FP_MAX];

    for (int i = 0; i < N; i++)
        sink += ep_fp_print_int((int64_t)samples[i].d.mant, t);
}

static void pass_snprintf_int(void)
{
    char t[40];

    for (int i = 0; i < N; i++)
        sink += (uint64_t)snprintf(t, sizeof t, "%lld",
                                   (long long)samples[i].d.mant);
}

/* ---- the numbers ---- */

static double kind_duration(void) /* whole microseconds below 100 s */
{
    return (double)(next() % 100000000) / 1e6;
}

static double kind_timestamp(void)
{
    return 1.7e9 + (double)(next() % 100000000000000) / 1e6;
}

static double kind_integer(void)
{
    return (double)(next() >> (12 + next() % 52));
}

static double kind_uniform(void) /* 16 or 17 digits */
{
    return (double)(next() >> 11) * 0x1p-53;
}

static double kind_any(void)
{
    double x;

    do {
        uint64_t b = next();

        memcpy(&x, &b, sizeof x);
    } while (!isfinite(x));
    return x;
}

static void fill(double (*kind)(void))
{
    for (int i = 0; i < N; i++) {
        struct sample *s = &samples[i];

        s->x = kind();
        s->len = ep_fp_print(s->x, s->text);
        s->text[s->len] = '\0';
        (void)ep_fp_scan(s->text, s->len, &s->d);
    }
}

/* ---- statistics ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, PASSES, sizeof *v, by_value);
    return v[PASSES / 2];
}

static void compare(const char *name, const char *kind, void (*ours)(void),
                    void (*peer)(void))
{
    static double t[2][PASSES];
    double m[2], dev;

    for (int i = 0; i < PASSES; i++)
        for (int j = 0; j < 2; j++) {
            double t0 = now_ns();

            (j ? peer : ours)();
            t[j][i] = (now_ns() - t0) / N;
        }
    for (int j = 0; j < 2; j++)
        m[j] = median(t[j]);
    for (int i = 0; i < PASSES; i++)
        t[0][i] = fabs(t[0][i] - m[0]);
    dev = median(t[0]);
    (void)printf("%-13s %-10s %7.2f ns +- %.2f  x%.1f\n", name, kind, m[0], dev,
                 m[1] / m[0]);
}

int main(void)
{
    static const struct {
        const char *name;
        double (*kind)(void);
    } kinds[] = {
        {"duration", kind_duration}, {"timestamp", kind_timestamp},
        {"integer", kind_integer},   {"uniform", kind_uniform},
        {"any", kind_any},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *name = kinds[i].name;

        fill(kinds[i].kind);
        compare("from_decimal", name, pass_from_decimal, pass_strtod);
        compare("parse", name, pass_parse, pass_strtod);
        compare("print", name, pass_print, pass_snprintf);
        if (kinds[i].kind == kind_integer)
            compare("print_int", name, pass_print_int, pass_snprintf_int);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_draw_colour.c - published values, order of lightness, xterm's colours;
   and binning against brute force. */
#include "config.h"

#include "base/mem.h"
#include "base/rng.h"
#include "draw/bin.h"
#include "draw/colour.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "tap.h"

static void test_sequential(void)
{
    /* from matplotlib's cividis: 0, 1/16, 8/16, 1 of its 256 colours */
    ok(ep_colour_sequential(0) == 0x00224e);
    ok(ep_colour_sequential(1.0 / 16) == 0x002e6a);
    ok(ep_colour_sequential(0.5) == 0x7d7c78);
    ok(ep_colour_sequential(1) == 0xfee838);
    ok(ep_colour_sequential(-3) == 0x00224e);
    ok(ep_colour_sequential((double)NAN) == 0x00224e);
    ok(ep_colour_sequential(7) == 0xfee838);
    int falls = 0;

    /* 64 levels, more than any picture has: closer ones may differ by less
       than the rounding of the channels */
    for (int i = 0; i < 64; i++)
        falls += !(ep_colour_luminance(ep_colour_sequential((i + 1) / 64.0)) >
                   ep_colour_luminance(ep_colour_sequential(i / 64.0)));
    ok(falls == 0);
    ok(ep_colour_luminance(ep_colour_sequential(1)) >
       20 * ep_colour_luminance(ep_colour_sequential(0)));
}

static void test_diverging(void)
{
    ok(ep_colour_diverging(-1, false) == 0x0072b2);
    ok(ep_colour_diverging(1, false) == 0xd55e00);
    ok(ep_colour_diverging(0, false) == 0xf3f3f0);
    ok(ep_colour_diverging(-1, true) == 0x56b4e9);
    for (int dark = 0; dark < 2; dark++)
        for (int side = -1; side <= 1; side += 2) {
            int wrong = 0;

            for (int i = 0; i < 100; i++) {
                double a = ep_colour_luminance(
                    ep_colour_diverging(side * i / 100.0, dark));
                double b = ep_colour_luminance(
                    ep_colour_diverging(side * (i + 1) / 100.0, dark));

                wrong += dark ? b < a - 1e-4 : b > a + 1e-4;
            }
            ok(wrong == 0);
        }
}

static void test_luminance(void)
{
    near(ep_colour_luminance(0x000000), 0, 0);
    near(ep_colour_luminance(0xffffff), 1, 1e-12);
    /* WCAG: #777777 has a contrast of 4.48 to white: 1.05 / 4.48 - 0.05 */
    near(ep_colour_luminance(0x777777), 1.05 / 4.478 - 0.05, 1e-4);
    ok(ep_colour_is_light(0xffffff) && !ep_colour_is_light(0x000000));
    ok(ep_colour_is_light(0xe69f00) && !ep_colour_is_light(0x00224e));
}

static void test_256(void)
{
    ok(ep_colour_256(0x000000) == 16);
    ok(ep_colour_256(0xffffff) == 231);
    ok(ep_colour_256(0xff0000) == 196);
    ok(ep_colour_256(0x5f87af) == 67);
    ok(ep_colour_256(0x080808) == 232);
    ok(ep_colour_256(0xeeeeee) == 255);
}

static void test_m4(void)
{
    enum { N = 5000, COLUMNS = 37 };
    static double x[N], y[N];
    struct ep_bin_m4 col[COLUMNS];
    struct ep_rng r;
    int bad = 0;
    size_t all = 0;

    ep_rng_seed(&r, 11, 0);
    for (size_t i = 0; i < N; i++) {
        x[i] = 100 * ep_rng_uniform(&r) - 5; /* some outside of 0..90 */
        y[i] = ep_rng_uniform(&r);
    }
    ep_bin_m4(x, y, N, 0, 90, col, COLUMNS);
    for (size_t c = 0; c < COLUMNS; c++) {
        double lo = 90.0 * (double)c / COLUMNS;
        double hi = 90.0 * (double)(c + 1) / COLUMNS;
        double first = 1e9, last = -1e9, min = 1e9, max = -1e9;
        size_t n = 0;

        lo = c == 0 ? -1e9 : lo;
        hi = c + 1 == COLUMNS ? 1e9 : hi;
        for (size_t i = 0; i < N; i++) {
            if (!(x[i] >= lo && x[i] < hi))
                continue;
            n++;
            first = fmin(first, x[i]);
            last = fmax(last, x[i]);
            min = fmin(min, y[i]);
            max = fmax(max, y[i]);
        }
        all += col[c].n;
        bad += n != col[c].n || x[col[c].first] != first ||
               x[col[c].last] != last || y[col[c].min] != min ||
               y[col[c].max] != max;
    }
    printf("# seed 11\n");
    ok(bad == 0);
    ok(all == N);
}

/* Places: not more than wanted; as few in each as that allows. */
static void test_bin_size(void)
{
    int bad = 0;

    for (size_t n = 1; n < 300; n++)
        for (size_t most = 1; most < 100; most++) {
            size_t each = ep_bin_size(n, most, false);
            size_t even = ep_bin_size(n, most, true);

            bad += ep_bin_count(n, each) > most;
            bad += each > 1 && ep_bin_count(n, each - 1) <= most;
            bad += ep_bin_count(n, even) > most || (even & (even - 1)) != 0;
            bad += even > 1 && ep_bin_count(n, even / 2) <= most;
        }
    ok(bad == 0);
    ok(ep_bin_size(64, 74, true) == 1 && ep_bin_size(8192, 74, true) == 128);
    ok(ep_bin_count(8192, 128) == 64 && ep_bin_count(7, 3) == 3);
}

static void test_blocks(void)
{
    struct ep_rng r;
    int bad = 0;

    ep_rng_seed(&r, 12, 0);
    for (int round = 0; round < 200; round++) {
        size_t rows = 1 + ep_rng_next(&r) % 40, cols = 1 + ep_rng_next(&r) % 40;
        size_t rper = 1 + ep_rng_next(&r) % rows;
        size_t cper = 1 + ep_rng_next(&r) % cols;
        size_t br = (rows + rper - 1) / rper, bc = (cols + cper - 1) / cper;
        double *v = ep_calloc(rows * cols, sizeof *v);
        size_t *at = ep_calloc(br * bc, sizeof *at);
        bool low = round & 1, seen_all = true;

        for (size_t i = 0; i < rows * cols; i++)
            v[i] = ep_rng_uniform(&r) < 0.6 ? (double)NAN : ep_rng_uniform(&r);
        ep_bin_blocks(v, rows, cols, rper, cper, low, at);
        for (size_t i = 0; i < rows * cols; i++) {
            size_t b = 0, d = 0, worst; /* the block that holds the cell */

            while ((b + 1) * rper <= i / cols)
                b++;
            while ((d + 1) * cper <= i % cols)
                d++;
            worst = at[b * bc + d];
            if (!isnan(v[i]))
                bad += worst == SIZE_MAX ||
                       (low ? v[worst] > v[i] : v[worst] < v[i]);
        }
        for (size_t i = 0; i < br * bc; i++)
            seen_all &= at[i] == SIZE_MAX || !isnan(v[at[i]]);
        bad += !seen_all;
        free(v);
        free(at);
    }
    printf("# seed 12\n");
    ok(bad == 0);
}

int main(void)
{
    test_sequential();
    test_diverging();
    test_luminance();
    test_256();
    test_m4();
    test_bin_size();
    test_blocks();
    return tap_done();
}

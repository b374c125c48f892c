/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline.c - the two detectors that skewdetect is held against.
 *
 *     baseline window|bocd <SERIES
 *
 * reads step, ts and dur of a job, and writes the step and the ts at which
 * each alarm was raised (the end of the iteration that raised it). Written
 * apart from lib/detect.
 *
 * window: dur > 1.10 x the median of the 30 iterations before, three times in
 * a row; once per stretch.
 *
 * bocd: Adams & MacKay, arXiv 0710.3742, on log(dur): hazard 1/100, Normal-
 * Gamma prior (mean of the first 10, kappa 1, alpha 1, beta 2.5e-5), run
 * lengths not cut. An alarm where the mass of the run lengths up to 3 comes to
 * 0.5 and the mean since is above that of the 10 before, by however little:
 * change points alone, not verified. The first 10 iterations are passed over.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, WINDOW = 30, FIRST = 10, LAG = 3 };

static int step[MOST];
static double ts[MOST], dur[MOST];

static void alarm_at(int i)
{
    printf("%d\t%.6f\n", step[i], ts[i] + dur[i]);
}

static int by_value(const void *p, const void *q)
{
    double a = *(const double *)p, b = *(const double *)q;

    return (a > b) - (a < b);
}

static void window(int n)
{
    int row = 0;

    for (int i = WINDOW; i < n; i++) {
        double v[WINDOW];

        memcpy(v, dur + i - WINDOW, sizeof v);
        qsort(v, WINDOW, sizeof v[0], by_value);
        row = dur[i] > 1.10 * (v[WINDOW / 2 - 1] + v[WINDOW / 2]) / 2 ? row + 1
                                                                      : 0;
        if (row == 3)
            alarm_at(i);
    }
}

/* Of each run length: its probability and its Normal-Gamma posterior. */
static double prob[MOST + 1], mu[MOST + 1], kappa[MOST + 1], alpha[MOST + 1],
    beta[MOST + 1];

static double student(double x, int r)
{
    double nu = 2 * alpha[r];
    double scale = beta[r] * (kappa[r] + 1) / (alpha[r] * kappa[r]);
    double d = x - mu[r];

    return exp(lgamma(nu / 2 + 0.5) - lgamma(nu / 2) -
               0.5 * log(nu * 3.14159265358979323846 * scale) -
               (nu + 1) / 2 * log1p(d * d / (nu * scale)));
}

static void begin_run(double mean)
{
    mu[0] = mean;
    kappa[0] = alpha[0] = 1;
    beta[0] = 2.5e-5;
}

/* Run lengths 0..runs - 1 and a sample: one more. */
static void push(double x, int runs, double prior)
{
    const double hazard = 0.01;
    double cut = 0, sum = 0;

    for (int r = runs - 1; r >= 0; r--) {
        double p = prob[r] * student(x, r);

        cut += p * hazard;
        prob[r + 1] = p * (1 - hazard);
        beta[r + 1] = beta[r] + kappa[r] * (x - mu[r]) * (x - mu[r]) /
                                    (2 * (kappa[r] + 1));
        mu[r + 1] = (kappa[r] * mu[r] + x) / (kappa[r] + 1);
        kappa[r + 1] = kappa[r] + 1;
        alpha[r + 1] = alpha[r] + 0.5;
    }
    prob[0] = cut;
    begin_run(prior);
    for (int r = 0; r <= runs; r++)
        sum += prob[r];
    for (int r = 0; r <= runs; r++)
        prob[r] = sum > 0 ? prob[r] / sum : r == 0;
}

static double mean_log(int from, int to)
{
    double sum = 0;

    for (int i = from; i < to; i++)
        sum += log(dur[i]);
    return sum / (to - from);
}

static void bocd(int n)
{
    double prior;
    int above = 0;

    if (n < 2 * FIRST)
        return;
    prior = mean_log(FIRST / 2, FIRST);
    prob[0] = 1;
    begin_run(prior);
    for (int i = FIRST; i < n; i++) {
        double mass = 0;

        push(log(dur[i]), i - FIRST + 1, prior);
        for (int r = 0; r <= LAG && r <= i - FIRST + 1; r++)
            mass += prob[r];
        if (i < FIRST + 2 * LAG)
            continue;
        if (mass >= 0.5 && !above &&
            mean_log(i, i + 1) > mean_log(i - FIRST - LAG, i - LAG))
            alarm_at(i);
        above = mass >= 0.5;
    }
}

int main(int argc, char **argv)
{
    char line[128];
    int n = 0;

    while (n < MOST && fgets(line, sizeof line, stdin)) {
        char *end;

        step[n] = (int)strtol(line, &end, 10);
        ts[n] = strtod(end, &end);
        dur[n] = strtod(end, &end);
        if (*end != '\n' || !(dur[n] > 0)) {
            (void)fprintf(stderr, "baseline: cannot use line %d\n", n + 1);
            return 2;
        }
        n++;
    }
    if (argc == 2 && strcmp(argv[1], "window") == 0) {
        window(n);
    } else if (argc == 2 && strcmp(argv[1], "bocd") == 0) {
        bocd(n);
    } else {
        (void)fprintf(stderr, "usage: baseline window|bocd <SERIES\n");
        return 2;
    }
    return fflush(stdout) == 0 && n > 0 ? 0 : 2;
}

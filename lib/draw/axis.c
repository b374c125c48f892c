/* SPDX-License-Identifier: Apache-2.0 */
/* axis.c - see axis.h. */
#include "config.h"

#include "draw/axis.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MINUTE 60.0
#define HOUR 3600.0
#define DAY 86400.0
#define FIRST_DATE 1e8
#define LAST_DATE 1e11

static int at_least(int v, int least)
{
    return v > least ? v : least;
}

/* The least of 1, 2, 5 times a power of ten that is >= x > 0. */
static double nice(double x)
{
    static const double steps[] = {1, 2, 5, 10};
    double e = pow(10, floor(log10(x)));

    if (!(e > 0))
        return x;
    for (int i = 0; i < 4; i++)
        if (steps[i] * e >= x * (1 - 1e-9))
            return steps[i] * e;
    return 20 * e; /* log10 was a little too small */
}

double ep_axis_prefix(double max, const char *unit, const char **prefix)
{
    static const char *const names[] = {"n", "u", "m", "",  "k",
                                        "M", "G", "T", "P", "E"};
    int e = max > 0 ? (int)floor(log10(max) / 3 + 1e-9) : 0;
    int most = strcmp(unit, "s") == 0 ? 0 : 6;

    *prefix = "";
    if (!*unit || e < -3 || e > 6)
        return 1;
    e = e > most ? most : e;
    *prefix = names[e + 3];
    return pow(10, 3 * e);
}

/* Digits behind the point that tell multiples of step apart. */
static int decimals(double step)
{
    int d = 0;

    while (d < 12 && fabs(step - round(step)) > 1e-6 * fabs(step)) {
        step *= 10;
        d++;
    }
    return d;
}

static void format(struct ep_tick *t, double v, double step, double most)
{
    int d = decimals(step);

    if (most >= 1e7 || d > 6)
        (void)snprintf(t->label, sizeof t->label, "%.6g", v);
    else
        (void)snprintf(t->label, sizeof t->label, "%.*f", d, v);
}

/* Ticks at multiples of step, counted in units of div. */
static void place(struct ep_axis *a, double step, double div)
{
    double most = fmax(fabs(a->lo), fabs(a->hi)) / div;
    double first = ceil(a->lo / step - 1e-9);

    a->n = 0;
    for (int k = 0; k < EP_TICKS; k++) {
        double i = first + k;
        struct ep_tick *t = &a->tick[a->n];

        if (i * step > a->hi + 1e-9 * step || (k && i == first))
            break; /* i == first: beyond 2^53 */
        t->at = fmin(fmax(i * step, a->lo), a->hi);
        format(t, i * step / div, step / div, most);
        if (i == 0)
            format(t, 0, step / div, most); /* no "-0" */
        a->n++;
    }
}

static void linear(struct ep_axis *a, int ticks, const char *unit, bool loose,
                   double div)
{
    /* moving the ends out may add a tick; without, exact multiples may */
    double room = loose ? at_least(ticks - 1, 1) : ticks - 0.01;
    double step = nice((a->hi - a->lo) / div / room) * div;
    const char *prefix;

    if (a->kind == EP_AXIS_INTEGER && step < 1)
        step = 1;
    if (loose) {
        a->lo = floor(a->lo / step + 1e-9) * step;
        a->hi = ceil(a->hi / step - 1e-9) * step;
    }
    if (div == 1) { /* else the unit is the caller's */
        div = ep_axis_prefix(fmax(fabs(a->lo), fabs(a->hi)), unit, &prefix);
        (void)snprintf(a->unit, sizeof a->unit, "%s%s", prefix, unit);
    }
    place(a, step, div);
}

static void add_log_tick(struct ep_axis *a, double at, const char *unit)
{
    struct ep_tick *t = &a->tick[a->n];
    struct ep_buf b;

    if (a->n == EP_TICKS || at < a->lo * (1 - 1e-9) || at > a->hi * (1 + 1e-9))
        return;
    ep_buf_init(&b);
    if (at >= 1 && strcmp(unit, "s") == 0)
        ep_buf_addf(&b, "%g s", at); /* not 16 min 40 s */
    else
        ep_axis_add_value(&b, at, unit);
    (void)snprintf(t->label, sizeof t->label, "%s", b.ptr);
    ep_buf_free(&b);
    t->at = fmin(fmax(at, a->lo), a->hi);
    a->n++;
}

/* 1, 2, 5 of each decade if they fit, else each k-th decade. */
static void logarithmic(struct ep_axis *a, int ticks, const char *unit,
                        bool loose)
{
    double first = floor(log10(a->lo) + 1e-9), last = ceil(log10(a->hi) - 1e-9);
    double decades = log10(a->hi) - log10(a->lo);
    bool fine = 3 * decades + 1 <= ticks;
    double k = fine ? 1 : ceil((last - first + 1) / ticks);

    if (loose && !fine) {
        a->lo = fmax(pow(10, first), 1e-300);
        a->hi = pow(10, last);
    } else if (loose) {
        double e = pow(10, first);

        a->lo = a->lo >= 5 * e ? 5 * e : a->lo >= 2 * e ? 2 * e : e;
        a->hi = nice(a->hi);
    }
    a->n = 0;
    for (int i = 0; first + k * i <= last; i++) {
        double e = first + k * i;

        add_log_tick(a, pow(10, e), unit);
        if (fine) {
            add_log_tick(a, 2 * pow(10, e), unit);
            add_log_tick(a, 5 * pow(10, e), unit);
        }
    }
}

static bool local(double ts, struct tm *tm)
{
    time_t t = (time_t)floor(ts);

    return localtime_r(&t, tm) != NULL;
}

bool ep_axis_is_date(double ts)
{
    return ts >= FIRST_DATE && ts < LAST_DATE;
}

/* The step of a clock's axis: at least x. */
static double clock_step(double x)
{
    static const double steps[] = {
        1,      2,          5,          10,          15,          30,
        MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
        HOUR,   2 * HOUR,   3 * HOUR,   6 * HOUR,    12 * HOUR,   DAY};

    if (x < 1)
        return nice(x);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (steps[i] >= x)
            return steps[i];
    return nice(x / DAY) * DAY;
}

static size_t write_clock(char *s, size_t cap, const struct tm *tm, double step)
{
    if (step >= 300 * DAY)
        return strftime(s, cap, "%Y", tm);
    if (step >= 60 * DAY)
        return strftime(s, cap, "%Y-%m", tm);
    if (step >= DAY || (step >= MINUTE && tm->tm_hour == 0 && tm->tm_min == 0))
        return strftime(s, cap, "%b %d", tm);
    if (step >= MINUTE)
        return strftime(s, cap, "%H:%M", tm);
    return strftime(s, cap, "%H:%M:%S", tm);
}

static void clock_label(struct ep_tick *t, double step)
{
    double at = floor(t->at + step * 1e-6);
    size_t len;
    struct tm tm;

    if (!local(at, &tm))
        return;
    len = write_clock(t->label, sizeof t->label, &tm, step);
    if (step < 1) {
        char digits[16];

        (void)snprintf(digits, sizeof digits, "%.*f", decimals(step),
                       fmax(t->at - at, 0));
        (void)snprintf(t->label + len, sizeof t->label - len, "%s",
                       strchr(digits, '.') ? strchr(digits, '.') : "");
    }
}

static void clock_axis(struct ep_axis *a, int ticks)
{
    double step = clock_step((a->hi - a->lo) / at_least(ticks, 1));
    double shift, first;
    struct tm tm, end;
    size_t len;

    if (!local(a->lo, &tm) || !local(a->hi, &end))
        return;
    shift = (double)tm.tm_gmtoff;
    first = ceil((a->lo + shift) / step - 1e-9);
    a->n = 0;
    while (a->n < EP_TICKS) {
        double at = (first + a->n) * step - shift;
        struct ep_tick *t = &a->tick[a->n];

        if (at > a->hi)
            break;
        *t = (struct ep_tick){.at = fmax(at, a->lo)};
        clock_label(t, step);
        a->n++;
    }
    len = strftime(a->unit, sizeof a->unit, "%Y-%m-%d", &tm);
    if (tm.tm_yday != end.tm_yday || tm.tm_year != end.tm_year)
        len +=
            strftime(a->unit + len, sizeof a->unit - len, " to %Y-%m-%d", &end);
    (void)strftime(a->unit + len, sizeof a->unit - len, ", %Z", &tm);
}

static void since_start(struct ep_axis *a, int ticks)
{
    double most = a->hi - a->lo;

    if (most < 3 * MINUTE) {
        linear(a, ticks, "s", false, 1);
        return;
    }
    (void)snprintf(a->unit, sizeof a->unit, "%s",
                   most < 3 * HOUR  ? "min"
                   : most < 3 * DAY ? "h"
                                    : "d");
    linear(a, ticks, "", false,
           most < 3 * HOUR  ? MINUTE
           : most < 3 * DAY ? HOUR
                            : DAY);
}

/* A range that is not empty, nor too narrow for its doubles. */
static void widen(struct ep_axis *a)
{
    double most, least;

    a->lo = fmin(fmax(a->lo, -EP_DRAW_LARGEST), EP_DRAW_LARGEST);
    a->hi = fmin(fmax(a->hi, -EP_DRAW_LARGEST), EP_DRAW_LARGEST);
    if (a->kind == EP_AXIS_INTEGER) {
        a->lo = floor(a->lo);
        a->hi = ceil(a->hi);
    }
    most = fmax(fabs(a->lo), fabs(a->hi));
    if (a->kind == EP_AXIS_LOG) {
        a->lo = fmax(a->lo, 1e-300);
        a->hi = fmax(a->hi, a->lo);
        if (a->hi < a->lo * 1.01) {
            a->lo /= 2;
            a->hi *= 2;
        }
        return;
    }
    least = a->kind == EP_AXIS_TIME ? fmax(most * 1e-13, 1e-5) : most * 1e-9;
    if (a->hi - a->lo > least)
        return;
    if (a->kind == EP_AXIS_INTEGER || a->kind == EP_AXIS_TIME) {
        a->hi = a->lo + fmax(1, 2 * least);
    } else if (most < 1e-300) {
        a->hi = 1;
    } else {
        a->lo -= 0.1 * most;
        a->hi += 0.1 * most;
    }
}

void ep_axis_init(struct ep_axis *a, enum ep_axis_kind kind, double lo,
                  double hi, int ticks, const char *unit, bool loose)
{
    *a = (struct ep_axis){.kind = kind, .lo = lo, .hi = hi};
    if (kind == EP_AXIS_LOG && !(lo > 0))
        a->kind = EP_AXIS_LINEAR;
    widen(a);
    ticks = ticks < 2 ? 2 : ticks > EP_TICKS ? EP_TICKS : ticks;
    if (a->kind == EP_AXIS_LOG)
        logarithmic(a, ticks, unit, loose);
    else if (a->kind == EP_AXIS_TIME && ep_axis_is_date(a->lo) &&
             ep_axis_is_date(a->hi))
        clock_axis(a, ticks);
    else if (a->kind == EP_AXIS_TIME)
        since_start(a, ticks);
    else
        linear(a, ticks, unit, loose, 1);
}

double ep_axis_pos(const struct ep_axis *a, double v)
{
    double at;

    if (a->kind == EP_AXIS_LOG)
        at = v > 0 ? log(v / a->lo) / log(a->hi / a->lo) : 0;
    else
        at = (v - a->lo) / (a->hi - a->lo);
    return at > 0 ? (at < 1 ? at : 1) : 0;
}

void ep_axis_add_time(struct ep_buf *b, double ts)
{
    char s[32];
    struct tm tm;

    if (ep_axis_is_date(ts) && local(ts, &tm) &&
        strftime(s, sizeof s, "%Y-%m-%d %H:%M:%S", &tm) > 0)
        ep_buf_adds(b, s);
    else
        ep_num_format_duration(b, ts);
}

void ep_axis_add_value(struct ep_buf *b, double v, const char *unit)
{
    if (strcmp(unit, "s") == 0)
        ep_num_format_duration(b, v);
    else if (*unit)
        ep_num_format_si(b, v, unit);
    else
        ep_buf_addf(b, fabs(v) >= 1000 ? "%.4g" : "%.3g", v);
}

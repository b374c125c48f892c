/* SPDX-License-Identifier: Apache-2.0 */
/* colour.c - see colour.h. */
#include "config.h"

#include "draw/colour.h"

#include <math.h>
#include <stddef.h>

/* Every sixteenth colour of cividis, as published in matplotlib. */
static const uint32_t cividis[17] = {
    0x00224e, 0x002e6a, 0x1a386f, 0x32436d, 0x434e6c, 0x535a6d,
    0x61656f, 0x6f7073, 0x7d7c78, 0x8c8878, 0x9b9476, 0xaba072,
    0xbcae6c, 0xcdbb63, 0xdec958, 0xf0d846, 0xfee838,
};

static const uint32_t okabe_ito[EP_CATEGORIES] = {
    0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0xf0e442,
};

static double channel(uint32_t c, int i)
{
    return (double)(c >> (16 - 8 * i) & 255) / 255;
}

static uint32_t from_channels(const double v[3])
{
    uint32_t c = 0;

    for (int i = 0; i < 3; i++) {
        double x = v[i] > 0 ? (v[i] < 1 ? v[i] : 1) : 0;

        c = c << 8 | (uint32_t)lround(x * 255);
    }
    return c;
}

static double clamp(double t, double lo)
{
    return t > lo ? (t < 1 ? t : 1) : lo; /* NaN: lo */
}

uint32_t ep_colour_sequential(double t)
{
    double at = clamp(t, 0) * 16, v[3];
    int i = at < 16 ? (int)at : 15;

    for (int k = 0; k < 3; k++)
        v[k] = channel(cividis[i], k) +
               (at - i) * (channel(cividis[i + 1], k) - channel(cividis[i], k));
    return from_channels(v);
}

/* sRGB's transfer function (IEC 61966-2-1) and its inverse. */
static double to_linear(double v)
{
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double from_linear(double v)
{
    return v <= 0.0031308 ? v * 12.92 : 1.055 * pow(v, 1 / 2.4) - 0.055;
}

static void to_oklab(uint32_t c, double lab[3])
{
    double r = to_linear(channel(c, 0)), g = to_linear(channel(c, 1));
    double b = to_linear(channel(c, 2));
    double l = cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    double m = cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    double s = cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);

    lab[0] = 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s;
    lab[1] = 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s;
    lab[2] = 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s;
}

static uint32_t from_oklab(const double lab[3])
{
    double l = lab[0] + 0.3963377774 * lab[1] + 0.2158037573 * lab[2];
    double m = lab[0] - 0.1055613458 * lab[1] - 0.0638541728 * lab[2];
    double s = lab[0] - 0.0894841775 * lab[1] - 1.2914855480 * lab[2];
    double v[3];

    l = l * l * l;
    m = m * m * m;
    s = s * s * s;
    v[0] = from_linear(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
    v[1] = from_linear(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
    v[2] = from_linear(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
    return from_channels(v);
}

uint32_t ep_colour_diverging(double t, bool dark)
{
    double a[3], b[3], at = clamp(t, -1);
    uint32_t end =
        at < 0 ? (dark ? 0x56b4e9 : 0x0072b2) : (dark ? 0xff8a3c : 0xd55e00);

    to_oklab(dark ? 0x2c3036 : 0xf3f3f0, a);
    to_oklab(end, b);
    for (int k = 0; k < 3; k++)
        a[k] += fabs(at) * (b[k] - a[k]);
    return from_oklab(a);
}

uint32_t ep_colour_category(unsigned i)
{
    return okabe_ito[i % EP_CATEGORIES];
}

double ep_colour_luminance(uint32_t c)
{
    return 0.2126 * to_linear(channel(c, 0)) +
           0.7152 * to_linear(channel(c, 1)) +
           0.0722 * to_linear(channel(c, 2));
}

bool ep_colour_is_light(uint32_t c)
{
    /* (L + 0.05) / 0.05 > 1.05 / (L + 0.05) */
    double l = ep_colour_luminance(c) + 0.05;

    return l * l > 1.05 * 0.05;
}

static int distance(uint32_t a, uint32_t b)
{
    int sum = 0;

    for (int i = 0; i < 24; i += 8) {
        int d = (int)(a >> i & 255) - (int)(b >> i & 255);

        sum += d * d;
    }
    return sum;
}

int ep_colour_256(uint32_t c)
{
    static const unsigned level[6] = {0, 95, 135, 175, 215, 255};
    unsigned best[3], cube = 0, grey = 0;

    for (int k = 0; k < 3; k++) {
        unsigned v = c >> (16 - 8 * k) & 255;

        best[k] = 0;
        for (unsigned i = 1; i < 6; i++)
            if (distance(level[i], v) < distance(level[best[k]], v))
                best[k] = i;
        cube = cube << 8 | level[best[k]];
    }
    for (unsigned i = 1; i < 24; i++)
        if (distance((8 + 10 * i) * 0x010101u, c) <
            distance((8 + 10 * grey) * 0x010101u, c))
            grey = i;
    if (distance((8 + 10 * grey) * 0x010101u, c) < distance(cube, c))
        return 232 + (int)grey;
    return 16 + (int)(36 * best[0] + 6 * best[1] + best[2]);
}

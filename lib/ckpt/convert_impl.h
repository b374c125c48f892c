/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_impl.h - inside of convert.h: elements, and loops over them.
 *
 * An element is converted by integer operations and selects, never a branch,
 * so that a compiler turns a loop over it into vector code. The loops have a
 * constant length, which is what gcc 12 asks for to vectorise at -O2. The
 * same loop is compiled once per level of base/simd.h; convert_avx2.c and
 * convert_avx512.c have intrinsics where those are faster.
 *
 * Elements go in and out through memcpy: files do not align them.
 */
#ifndef EP_CKPT_CONVERT_IMPL_H
#define EP_CKPT_CONVERT_IMPL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EP_CONVERT_INLINE static inline __attribute__((always_inline))

enum { EP_CONVERT_BLOCK = 64 };

typedef void ep_convert_fn(const void *restrict src, void *restrict dst,
                           size_t n);

/* The kernels of one level. */
struct ep_convert_set {
    ep_convert_fn *from_bf16, *from_f16, *from_e5m2, *from_e4m3; /* to f32 */
    ep_convert_fn *to_bf16, *to_f16, *to_e5m2, *to_e4m3;         /* from f32 */
    ep_convert_fn *widen;  /* f32 to f64 */
    ep_convert_fn *narrow; /* f64 to f32, to nearest */
    ep_convert_fn *odd;    /* f64 to f32, by ep_cv_odd */
    /* Whole blocks at the start of v without a NaN or infinity, in elements. */
    size_t (*finite_f32)(const float *v, size_t n);
    size_t (*finite_f64)(const double *v, size_t n);
};

extern const struct ep_convert_set ep_convert_portable;
#if defined(__x86_64__)
extern const struct ep_convert_set ep_convert_avx2, ep_convert_avx512;
#endif

/*
 * Define NAME, an ep_convert_fn that applies ELEMENT, a function of an FROM
 * that returns a TO. TARGET is a function attribute or nothing.
 */
#define EP_CONVERT_LOOP(name, target, element, from, to)                       \
    target static void name(const void *restrict src, void *restrict dst,      \
                            size_t n)                                          \
    {                                                                          \
        const unsigned char *s = src;                                          \
        unsigned char *d = dst;                                                \
        size_t at = 0;                                                         \
                                                                               \
        for (; n - at >= EP_CONVERT_BLOCK; at += EP_CONVERT_BLOCK) {           \
            for (size_t i = 0; i < EP_CONVERT_BLOCK; i++)                      \
                EP_CONVERT_ONE(at + i, element, from, to);                     \
        }                                                                      \
        for (; at < n; at++)                                                   \
            EP_CONVERT_ONE(at, element, from, to);                             \
    }

/*
 * The same with STEP, a function that converts WIDTH elements by intrinsics;
 * ELEMENT does the rest.
 */
#define EP_CONVERT_STEPS(name, target, step, width, element, from, to)         \
    target static void name(const void *restrict src, void *restrict dst,      \
                            size_t n)                                          \
    {                                                                          \
        const unsigned char *s = src;                                          \
        unsigned char *d = dst;                                                \
        size_t at = 0;                                                         \
                                                                               \
        for (; n - at >= (width); at += (width))                               \
            step(s + at * sizeof(from), d + at * sizeof(to));                  \
        for (; at < n; at++)                                                   \
            EP_CONVERT_ONE(at, element, from, to);                             \
    }

#define EP_CONVERT_ONE(i, element, from, to)                                   \
    do {                                                                       \
        from x;                                                                \
        to y;                                                                  \
                                                                               \
        memcpy(&x, s + (i) * sizeof x, sizeof x);                              \
        y = element(x);                                                        \
        memcpy(d + (i) * sizeof y, &y, sizeof y);                              \
    } while (0)

/* All bits of the exponent set: adding one to it carries into the sign. */
#define EP_CONVERT_FINITE(name, target, real, bits, one)                       \
    target static size_t name(const real *v, size_t n)                         \
    {                                                                          \
        size_t at = 0;                                                         \
                                                                               \
        for (; n - at >= EP_CONVERT_BLOCK; at += EP_CONVERT_BLOCK) {           \
            bits seen = 0;                                                     \
                                                                               \
            for (size_t i = 0; i < EP_CONVERT_BLOCK; i++) {                    \
                bits u;                                                        \
                                                                               \
                memcpy(&u, v + at + i, sizeof u);                              \
                seen |= (u & (bits)-1 >> 1) + (one);                           \
            }                                                                  \
            if (seen >> (8 * sizeof seen - 1))                                 \
                break;                                                         \
        }                                                                      \
        return at;                                                             \
    }

EP_CONVERT_INLINE uint32_t ep_cv_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

EP_CONVERT_INLINE float ep_cv_float(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

/* All bits set if x < y, else 0; both are below 2^31. */
EP_CONVERT_INLINE uint32_t ep_cv_less(uint32_t x, uint32_t y)
{
    return 0 - ((x - y) >> 31);
}

/* a where mask is set, b elsewhere. */
EP_CONVERT_INLINE uint32_t ep_cv_pick(uint32_t mask, uint32_t a, uint32_t b)
{
    return (a & mask) | (b & ~mask);
}

EP_CONVERT_INLINE uint32_t ep_cv_from_bf16(uint16_t h)
{
    return (uint32_t)h << 16;
}

EP_CONVERT_INLINE uint16_t ep_cv_to_bf16(uint32_t u)
{
    uint32_t rounded = u + 0x7fff + (u >> 16 & 1);
    uint32_t nan = ep_cv_less(0x7f800000, u & 0x7fffffff);

    return (uint16_t)(ep_cv_pick(nan, u | 0x400000, rounded) >> 16);
}

/*
 * A normal number needs another bias. A subnormal one is put below the
 * smallest normal exponent and 2^-14 subtracted, which is exact. A NaN becomes
 * quiet, as the F16C instructions have it.
 */
EP_CONVERT_INLINE uint32_t ep_cv_from_f16(uint16_t h)
{
    const uint32_t bias = 112U << 23;
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t a = (uint32_t)(h & 0x7fff) << 13;
    uint32_t small = ep_cv_bits(ep_cv_float(a + bias + (1U << 23)) - 0x1p-14F);
    uint32_t r = a + bias;

    r = ep_cv_pick(ep_cv_less(a, 1U << 23), small, r);
    r = ep_cv_pick(ep_cv_less(a, 31U << 23), r, a | 0x7f800000);
    r = ep_cv_pick(ep_cv_less(31U << 23, a), r | 0x400000, r);
    return r | sign;
}

EP_CONVERT_INLINE uint32_t ep_cv_from_e5m2(uint8_t b)
{
    return ep_cv_from_f16((uint16_t)((unsigned)b << 8));
}

EP_CONVERT_INLINE uint32_t ep_cv_from_e4m3(uint8_t b)
{
    const uint32_t bias = 120U << 23;
    uint32_t sign = (uint32_t)(b & 0x80) << 24;
    uint32_t a = (uint32_t)(b & 0x7f) << 20;
    uint32_t small = ep_cv_bits(ep_cv_float(a + bias + (1U << 23)) - 0x1p-6F);
    uint32_t r = a + bias;

    r = ep_cv_pick(ep_cv_less(a, 1U << 23), small, r);
    r = ep_cv_pick(ep_cv_less(0x7eU << 20, a), 0x7fc00000, r);
    return r | sign;
}

/*
 * The code without its sign of a float whose other bits are a, in a format
 * with MANT bits of mantissa and the given bias; too large a number gives a
 * code that is too large, up to that of 2^128.
 *
 * Normal: the mantissa is rounded by an addition that carries into the
 * exponent. Subnormal: the processor rounds a, by the addition of a power of
 * two whose last place is that of the format's subnormals.
 */
EP_CONVERT_INLINE uint32_t ep_cv_round(uint32_t a, int mant, int bias)
{
    const int cut = 23 - mant;
    const uint32_t rebias = (uint32_t)(127 - bias) << 23;
    const uint32_t magic = rebias + ((uint32_t)(cut + 1) << 23);
    uint32_t small = ep_cv_bits(ep_cv_float(a) + ep_cv_float(magic)) - magic;
    uint32_t r = (a - rebias + (1U << (cut - 1)) - 1 + (a >> cut & 1)) >> cut;

    return ep_cv_pick(ep_cv_less(a, rebias + (1U << 23)), small, r);
}

EP_CONVERT_INLINE uint16_t ep_cv_to_f16(uint32_t u)
{
    uint32_t a = u & 0x7fffffff;
    uint32_t r = ep_cv_round(a, 10, 15);
    uint32_t nan = ep_cv_less(0x7f800000, a);

    r = ep_cv_pick(ep_cv_less(0x7c00, r), 0x7c00, r);
    r = ep_cv_pick(nan, 0x7e00 | (a >> 13 & 0x3ff), r);
    return (uint16_t)(r | (u >> 16 & 0x8000));
}

EP_CONVERT_INLINE uint8_t ep_cv_to_e5m2(uint32_t u)
{
    uint32_t a = u & 0x7fffffff;
    uint32_t r = ep_cv_round(a, 2, 15);

    r = ep_cv_pick(ep_cv_less(0x7c, r), 0x7c, r);
    r = ep_cv_pick(ep_cv_less(0x7f800000, a), 0x7e, r);
    return (uint8_t)(r | (u >> 24 & 0x80));
}

EP_CONVERT_INLINE uint8_t ep_cv_to_e4m3(uint32_t u)
{
    uint32_t a = u & 0x7fffffff;
    uint32_t r = ep_cv_round(a, 3, 7);

    r = ep_cv_pick(ep_cv_less(0x7e, r), 0x7e, r);
    r = ep_cv_pick(ep_cv_less(0x7f800000, a), 0x7f, r);
    return (uint8_t)(r | (u >> 24 & 0x80));
}

EP_CONVERT_INLINE double ep_cv_widen(float x)
{
    return (double)x;
}

EP_CONVERT_INLINE float ep_cv_narrow(double x)
{
    return (float)x;
}

/*
 * The float that has the first 16 bits of x, the last one set if any bit of
 * x behind it is (round to odd). Rounding that to nearest in a format with at
 * least two bits less gives what rounding x at once would give (Boldo and
 * Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
 * using rounding to odd", IEEE Trans. Computers 57(4), 2008).
 *
 * 16 bits and not all 24 of a float, so that it holds them among its
 * subnormals, too, as far down as a format of 16 bits or less asks for: to
 * 2^-134, half of the smallest BF16. What is below does not get above that.
 */
EP_CONVERT_INLINE float ep_cv_odd(double x)
{
    const uint64_t behind = (UINT64_C(1) << 37) - 1;
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    u = (u | ((u & behind) + behind)) & ~behind;
    memcpy(&x, &u, sizeof x);
    return (float)x;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_fuse_body.h - struct merge_fused in one form. Included by
 * merge_fuse.h several times, hence no guard, with
 *
 *     LEVEL, TARGET        portable, avx2, avx512, and the attribute for it
 *     VECTOR_BYTES         of its registers
 *     BF16_LOAD(p)         a vector of BF16 as float
 *     F16_LOAD(p), F16_STORE(p, v)    of F16, and back; or not defined
 *     WIDE_LOW(v), WIDE_HIGH(v)    half a vector of float as double
 *     NARROW_STORE(p, v)   a vector of double, rounded to float
 *     NAME(verb)           verb_avx2 and so on
 *
 * Element by element these are the operations of ckpt/convert.h and
 * lsgd/outer.h. NaNs need no care: the caller takes the generic way then.
 */
#define LANES (VECTOR_BYTES / sizeof(float))
#define INLINE static inline __attribute__((always_inline)) TARGET
#define F NAME(vf)
#define I NAME(vi)
#define U NAME(vu)
#define D NAME(vd)
#define SUMS_D (MERGE_SUMS / (VECTOR_BYTES / sizeof(double)))

/* Of any alignment: files have none. */
typedef float F
    __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));
typedef int32_t I
    __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));
typedef uint32_t U
    __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));
typedef double D
    __attribute__((vector_size(VECTOR_BYTES), aligned(1), may_alias));

/* Not memcpy: gcc 12 copies 32 bytes as twice 16, by way of the stack. */
INLINE F NAME(load)(const void *p)
{
    return *(const F *)p;
}

INLINE void NAME(store)(void *p, F v)
{
    *(F *)p = v;
}

INLINE F NAME(get)(enum ep_dtype t, const unsigned char *p)
{
    switch (t) {
    case EP_DT_BF16:
        return (F)BF16_LOAD(p);
#ifdef F16_LOAD
    case EP_DT_F16:
        return (F)F16_LOAD(p);
#endif
    default:
        return NAME(load)(p);
    }
}

/* As ep_sumsq_f32 ends; split: partial sums of even i, then those of odd i. */
INLINE double NAME(total)(const D *wide, bool split)
{
    double s[MERGE_SUMS], two[MERGE_SUMS / 2];

    memcpy(s, wide, sizeof s);
    UNROLL for (size_t k = 0; k < MERGE_SUMS / 2; k++) two[k] =
        split ? s[k] + s[k + MERGE_SUMS / 2] : s[2 * k] + s[2 * k + 1];
    return ((two[0] + two[1]) + (two[2] + two[3])) +
           ((two[4] + two[5]) + (two[6] + two[7]));
}

INLINE bool NAME(negative)(I v)
{
    int32_t all = 0;

    for (size_t j = 0; j < LANES; j++)
        all |= v[j];
    return all < 0;
}

/*
 * BF16 is taken two by two, as a vector of the even elements and one of the
 * odd ones: a shift and a mask each way. Other types: two vectors in order.
 */
INLINE void NAME(get_two)(enum ep_dtype t, const unsigned char *p, F v[2])
{
    if (t == EP_DT_BF16) {
        U u = (U)NAME(load)(p);

        v[0] = (F)(u << 16);
        v[1] = (F)(u & 0xffff0000);
    } else {
        v[0] = NAME(get)(t, p);
        v[1] = NAME(get)(t, p + LANES * size_of(t));
    }
}

INLINE U NAME(round_bf16)(F v)
{
    U u = (U)v;

    return u + 0x7fff + (u >> 16 & 1);
}

/* As convert.h, but for NaNs. */
INLINE void NAME(put_two)(enum ep_dtype t, unsigned char *p, const F v[2])
{
    if (t == EP_DT_BF16) {
        *(U *)p = NAME(round_bf16)(v[0]) >> 16 |
                  (NAME(round_bf16)(v[1]) & 0xffff0000);
#ifdef F16_LOAD
    } else if (t == EP_DT_F16) {
        F16_STORE(p, v[0]);
        F16_STORE(p + LANES * sizeof(uint16_t), v[1]);
#endif
    } else {
        NAME(store)(p, v[0]);
        NAME(store)(p + VECTOR_BYTES, v[1]);
    }
}

/*
 * Where the partial sums of quarter q (the lower half of the first vector, its
 * upper half, and those of the second) of group h of two vectors are: in order
 * of i mod 16, or those of even i before those of odd i.
 */
INLINE size_t NAME(place)(enum ep_dtype t, size_t h, size_t q)
{
    const size_t half = LANES / 2;

    if (t != EP_DT_BF16)
        return (h * 2 * LANES + q * half) % MERGE_SUMS / half;
    return (h * LANES + q % 2 * half) % (MERGE_SUMS / 2) / half +
           q / 2 * (MERGE_SUMS / 2 / half);
}

/* What becomes of two vectors; adds their squares to the sums. */
INLINE F NAME(pair_one)(enum merge_pair op, float a, F from, F to, D *low,
                        D *high)
{
    F diff = to - from;
    D l = (D)WIDE_LOW(diff), h = (D)WIDE_HIGH(diff);

    *low += l * l;
    *high += h * h;
    if (op == MERGE_PAIR_MIX)
        return from + a * diff;
    if (op == MERGE_PAIR_STEP)
        return from - a * (from - to);
    return to;
}

INLINE bool NAME(pair_loop)(enum merge_pair op, enum ep_dtype t,
                            const struct merge_models *two, double *sumsq)
{
    const size_t size = size_of(t), group = 2 * LANES * size, n = two->n;
    const size_t groups = LANES == 4 ? 2 : 1;
    const unsigned char *theta = two->theta, *x = two->x;
    unsigned char *out = two->out;
    const float a = (float)two->a;
    const int32_t limit = limit_of(t);
    /* what lies between two numbers needs no check, but for F32's largest */
    const bool check = op == MERGE_PAIR_STEP || t == EP_DT_F32;
    D sum[SUMS_D] = {{0}};
    I seen = {0};

    for (size_t i = 0; i < n * size; i += groups * group) {
        AHEAD(theta + i);
        AHEAD(x + i);
        UNROLL for (size_t h = 0; h < groups; h++)
        {
            F from[2], to[2], y[2];

            NAME(get_two)(t, theta + i + h * group, from);
            NAME(get_two)(t, x + i + h * group, to);
            UNROLL for (size_t k = 0; k < 2; k++)
            {
                y[k] = NAME(pair_one)(op, a, from[k], to[k],
                                      &sum[NAME(place)(t, h, 2 * k)],
                                      &sum[NAME(place)(t, h, 2 * k + 1)]);
                if (check)
                    seen |= limit - ((I)y[k] & INT32_MAX);
            }
            NAME(put_two)(t, out + i + h * group, y);
        }
    }
    *sumsq = NAME(total)(sum, t == EP_DT_BF16);
    return !NAME(negative)(seen) && isfinite(*sumsq);
}

INLINE bool NAME(pair_of)(enum merge_pair op, const struct merge_models *two,
                          double *sumsq)
{
    switch (two->dtype) {
    case EP_DT_BF16:
        return NAME(pair_loop)(op, EP_DT_BF16, two, sumsq);
    case EP_DT_F16:
        return NAME(pair_loop)(op, EP_DT_F16, two, sumsq);
    default:
        return NAME(pair_loop)(op, EP_DT_F32, two, sumsq);
    }
}

TARGET static bool NAME(pair)(enum merge_pair op,
                              const struct merge_models *two, double *sumsq)
{
    switch (op) {
    case MERGE_PAIR_MIX:
        return NAME(pair_of)(MERGE_PAIR_MIX, two, sumsq);
    case MERGE_PAIR_STEP:
        return NAME(pair_of)(MERGE_PAIR_STEP, two, sumsq);
    default:
        return NAME(pair_of)(MERGE_PAIR_COPY, two, sumsq);
    }
}

INLINE double NAME(diff_loop)(enum ep_dtype t, const float *theta,
                              const unsigned char *x, float *g, size_t n)
{
    const size_t size = size_of(t);
    D sum[SUMS_D] = {{0}};

    for (size_t i = 0; i < n; i += MERGE_SUMS) {
        AHEAD(x + i * size);
        UNROLL for (size_t j = 0; j < MERGE_SUMS / LANES; j++)
        {
            const size_t at = i + j * LANES;
            F v = NAME(load)(theta + at) - NAME(get)(t, x + at * size);
            D low = (D)WIDE_LOW(v), high = (D)WIDE_HIGH(v);

            sum[2 * j] += low * low;
            sum[2 * j + 1] += high * high;
            *(F *)(g + at) = v;
        }
    }
    return NAME(total)(sum, false);
}

TARGET static double NAME(diff)(enum ep_dtype t, const float *theta,
                                const void *x, float *g, size_t n)
{
    switch (t) {
    case EP_DT_BF16:
        return NAME(diff_loop)(EP_DT_BF16, theta, x, g, n);
    case EP_DT_F16:
        return NAME(diff_loop)(EP_DT_F16, theta, x, g, n);
    default:
        return NAME(diff_loop)(EP_DT_F32, theta, x, g, n);
    }
}

/* start: what acc is taken for at first; -0 leaves x as it is, -0 too. */
INLINE double NAME(weigh_loop)(enum ep_dtype t, bool first,
                               const struct merge_weigh *w, double start)
{
    const size_t size = size_of(t);
    const unsigned char *x = w->x;
    D sum[SUMS_D] = {{0}};

    for (size_t i = 0; i < w->n; i += MERGE_SUMS) {
        AHEAD(x + i * size);
        UNROLL for (size_t j = 0; j < MERGE_SUMS / LANES; j++)
        {
            const size_t at = i + j * LANES;
            F v = NAME(get)(t, x + at * size);
            F g = NAME(load)(w->theta + at) - v;
            D low = (D)WIDE_LOW(g), high = (D)WIDE_HIGH(g);
            D *acc = (D *)(w->acc + at);

            sum[2 * j] += low * low;
            sum[2 * j + 1] += high * high;
            if (!w->of_g) {
                low = (D)WIDE_LOW(v);
                high = (D)WIDE_HIGH(v);
            }
            if (first) {
                acc[0] = start + w->weight * low;
                acc[1] = start + w->weight * high;
            } else {
                acc[0] += w->weight * low;
                acc[1] += w->weight * high;
            }
        }
    }
    return NAME(total)(sum, false);
}

TARGET static double NAME(weigh)(enum ep_dtype t, const struct merge_weigh *w)
{
    const double start = w->weight == 1 ? -0.0 : 0.0;

    switch ((t == EP_DT_F16) + 2 * (t == EP_DT_F32) + 3 * w->first) {
    case 0:
        return NAME(weigh_loop)(EP_DT_BF16, false, w, start);
    case 1:
        return NAME(weigh_loop)(EP_DT_F16, false, w, start);
    case 2:
        return NAME(weigh_loop)(EP_DT_F32, false, w, start);
    case 3:
        return NAME(weigh_loop)(EP_DT_BF16, true, w, start);
    case 4:
        return NAME(weigh_loop)(EP_DT_F16, true, w, start);
    default:
        return NAME(weigh_loop)(EP_DT_F32, true, w, start);
    }
}

/* y = acc by, or acc / by */
INLINE void NAME(mean_loop)(float *y, const double *acc, double by, bool divide,
                            size_t n)
{
    for (size_t i = 0; i < n; i += LANES / 2) {
        D v = *(const D *)(acc + i);

        NARROW_STORE(y + i, divide ? v / by : v * by);
    }
}

TARGET static void NAME(mean)(float *y, const double *acc, double by,
                              bool divide, size_t n)
{
    if (divide)
        NAME(mean_loop)(y, acc, by, true, n);
    else
        NAME(mean_loop)(y, acc, by, false, n);
}

/* limit - bits is negative where a value is beyond. */
TARGET static bool NAME(above)(const float *v, int32_t limit, size_t n)
{
    I seen[2] = {{0}};

    for (size_t i = 0; i < n; i += 2 * LANES) {
        seen[0] |= limit - ((I)NAME(load)(v + i) & INT32_MAX);
        seen[1] |= limit - ((I)NAME(load)(v + i + LANES) & INT32_MAX);
    }
    return NAME(negative)(seen[0] | seen[1]);
}

static const struct merge_fused NAME(fused) = {
#ifdef F16_LOAD
    .f16 = true,
#endif
    .pair = NAME(pair),
    .diff = NAME(diff),
    .weigh = NAME(weigh),
    .mean = NAME(mean),
    .above = NAME(above),
};

#undef LANES
#undef INLINE
#undef F
#undef I
#undef U
#undef D
#undef SUMS_D

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outer_body.h - the kernels of outer.h in one form. Included by
 * outer_kernels.c several times, hence no guard, with
 *
 *     TYPE, TYPE_NAME      float, _f32 or double, _f64
 *     LEVEL, TARGET        portable, avx2, avx512, and the attribute for it
 *     VECTOR_BYTES         of its registers
 *     NAME(verb)           verb_f32_avx2 and so on
 *
 * Each loop is written twice, for whole vectors and for the elements that are
 * left: the same operations in the same order.
 */
#define LANES (VECTOR_BYTES / sizeof(TYPE))
#define VEC NAME(vec)
#define INLINE static inline __attribute__((always_inline)) TARGET

/* Of any alignment. */
typedef TYPE VEC
    __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
/* For sums: as many double as a register holds, and as many of the type. */
typedef double NAME(vecd) __attribute__((vector_size(VECTOR_BYTES)));
typedef TYPE NAME(part)
    __attribute__((vector_size(VECTOR_BYTES / sizeof(double) * sizeof(TYPE))));

/* What a step does, constant in each of its loops. */
struct NAME(what) {
    bool buffer;   /* there is a D */
    bool flush;    /* it is cleared */
    bool momentum; /* m is updated */
    bool look;     /* theta moves by m */
};

/* The coefficients, rounded to the type. */
struct NAME(coef) {
    TYPE lr, beta, inv_n, look;
};

INLINE void NAME(step_loop)(TYPE *restrict theta, TYPE *restrict m,
                            TYPE *restrict d, const TYPE *restrict g,
                            const struct NAME(coef) c, size_t n,
                            const struct NAME(what) w)
{
    const VEC zero = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        VEC gi = *(const VEC *)(g + i), sum = gi, mi = zero, go;

        AHEAD(g + i);
        if (w.buffer) {
            sum = *(const VEC *)(d + i) + gi;
            *(VEC *)(d + i) = w.flush ? zero : sum;
        }
        if (w.momentum || w.look)
            mi = *(const VEC *)(m + i);
        if (w.momentum) {
            mi = c.beta * mi + c.inv_n * sum;
            *(VEC *)(m + i) = mi;
        }
        go = c.inv_n * gi;
        if (w.look)
            go = c.look * mi + go;
        *(VEC *)(theta + i) = *(const VEC *)(theta + i) - c.lr * go;
    }
    for (; i < n; i++) {
        TYPE gi = g[i], sum = gi, mi = 0, go;

        if (w.buffer) {
            sum = d[i] + gi;
            d[i] = w.flush ? 0 : sum;
        }
        if (w.momentum || w.look)
            mi = m[i];
        if (w.momentum) {
            mi = c.beta * mi + c.inv_n * sum;
            m[i] = mi;
        }
        go = c.inv_n * gi;
        if (w.look)
            go = c.look * mi + go;
        theta[i] = theta[i] - c.lr * go;
    }
}

/* A loop for each case. */
TARGET static void NAME(step)(TYPE *theta, TYPE *m, TYPE *d, const TYPE *g,
                              const struct ep_outer_step *s, size_t n)
{
    const struct NAME(coef)
        c = {(TYPE)s->lr, (TYPE)s->beta, (TYPE)s->inv_n, (TYPE)s->look};
    enum { BUFFER = 1, FLUSH = 2, MOMENTUM = 4, LOOK = 8 };

#define CASE(f)                                                                \
    case (f):                                                                  \
        NAME(step_loop)                                                        \
        (theta, m, d, g, c, n,                                                 \
         (struct NAME(what)){((f)&BUFFER) != 0, ((f)&FLUSH) != 0,              \
                             ((f)&MOMENTUM) != 0, ((f)&LOOK) != 0});           \
        break
    switch ((s->buffer ? BUFFER : 0) | (s->buffer && s->flush ? FLUSH : 0) |
            (s->flush && m ? MOMENTUM : 0) | (s->look != 0 && m ? LOOK : 0)) {
        CASE(0);
        CASE(BUFFER);
        CASE(BUFFER | FLUSH);
        CASE(MOMENTUM);
        CASE(BUFFER | FLUSH | MOMENTUM);
        CASE(LOOK);
        CASE(BUFFER | LOOK);
        CASE(MOMENTUM | LOOK);
        CASE(BUFFER | FLUSH | MOMENTUM | LOOK);
    }
#undef CASE
}

TARGET static void NAME(apply)(TYPE *theta, TYPE *m, TYPE *d,
                               const TYPE *const *g,
                               const struct ep_outer_step *step, size_t nsteps,
                               size_t n)
{
    const size_t block = BLOCK_BYTES / sizeof(TYPE);

    for (size_t i = 0; i < n; i += block) {
        size_t left = n - i < block ? n - i : block;

        for (size_t s = 0; s < nsteps; s++)
            NAME(step)
        (theta + i, m ? m + i : NULL, d ? d + i : NULL, g[s] + i, &step[s],
         left);
    }
}

TARGET static void NAME(mix)(TYPE *y, const TYPE *x, double alpha, size_t n)
{
    const TYPE a = (TYPE)alpha;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        VEC yi = *(const VEC *)(y + i);

        AHEAD(x + i);
        AHEAD(y + i);
        *(VEC *)(y + i) = yi + a * (*(const VEC *)(x + i) - yi);
    }
    for (; i < n; i++)
        y[i] = y[i] + a * (x[i] - y[i]);
}

TARGET static void NAME(axpy)(TYPE *y, const TYPE *x, double weight, size_t n)
{
    const TYPE w = (TYPE)weight;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        *(VEC *)(y + i) = *(const VEC *)(y + i) + w * *(const VEC *)(x + i);
    for (; i < n; i++)
        y[i] = y[i] + w * x[i];
}

TARGET static void NAME(sub)(TYPE *y, const TYPE *a, const TYPE *b, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        *(VEC *)(y + i) = *(const VEC *)(a + i) - *(const VEC *)(b + i);
    for (; i < n; i++)
        y[i] = a[i] - b[i];
}

TARGET static double NAME(sumsq)(const TYPE *v, size_t n)
{
    enum { SUMS = 16, WIDE = VECTOR_BYTES / sizeof(double) };
    NAME(vecd) wide[SUMS / WIDE] = {{0}};
    double sum[SUMS];
    size_t i = 0;

    for (; i + SUMS <= n; i += SUMS)
        for (size_t j = 0; j < SUMS / WIDE; j++) {
            NAME(part) x;

            AHEAD(v + i + j * WIDE);
            memcpy(&x, v + i + j * WIDE, sizeof x);
            NAME(vecd) xd = __builtin_convertvector(x, NAME(vecd));
            wide[j] += xd * xd;
        }
    memcpy(sum, wide, sizeof sum);
    for (size_t j = 0; i + j < n; j++)
        sum[j] += (double)v[i + j] * (double)v[i + j];
    for (size_t step = 1; step < SUMS; step *= 2)
        for (size_t j = 0; j < SUMS; j += 2 * step)
            sum[j] += sum[j + step];
    return sum[0];
}

static const struct CAT4(ep_outer_kernels, TYPE_NAME, , ) NAME(kernels) = {
    .apply = NAME(apply),
    .mix = NAME(mix),
    .axpy = NAME(axpy),
    .sub = NAME(sub),
    .sumsq = NAME(sumsq),
};

#undef LANES
#undef VEC
#undef INLINE

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compare.c - what two checkpoints differ by. Norms are checked against
 * two passes over the values in the test: the largest first, then the sum of
 * the squares of the quotients, in long double.
 */
#include "config.h"

#include "base/rng.h"

#include "compare_pair.h"

#include <stdint.h>

/* ==== Norms ==== */

/* sqrt of the sum of squares of v, or of v - u. */
static double norm(const double *v, const double *u, size_t n)
{
    long double max = 0, sum = 0;

    for (size_t i = 0; i < n; i++)
        max = fmaxl(max, fabsl((long double)v[i] - (u ? u[i] : 0)));
    for (size_t i = 0; i < n && max > 0; i++) {
        long double q = ((long double)v[i] - (u ? u[i] : 0)) / max;

        sum += q * q;
    }
    return (double)(max * sqrtl(sum));
}

/* v as elements of a type, for which the test's values are exact. */
static void *encode(enum ep_dtype t, const double *v, size_t n)
{
    unsigned char *to = ep_calloc(n + 1, 8), *p = to;

    for (size_t i = 0; i < n; i++) {
        float f = (float)v[i];
        uint32_t bits;

        memcpy(&bits, &f, 4);
        bits >>= 16;
        if (t == EP_DT_F64)
            memcpy(p, &v[i], 8);
        else if (t == EP_DT_F32)
            memcpy(p, &f, 4);
        else
            memcpy(p, &bits, 2); /* BF16 */
        p += ep_dtype_bits(t) / 8;
    }
    return to;
}

enum { SIZES = 12 };
static const uint64_t sizes[SIZES] = {0,
                                      1,
                                      7,
                                      8,
                                      9,
                                      4095,
                                      4096,
                                      4097,
                                      123456,
                                      1 << 20,
                                      (1 << 20) + 5,
                                      (1 << 21) + 4099};
static const enum ep_dtype types[SIZES][2] = {
    {EP_DT_F32, EP_DT_F32},  {EP_DT_F64, EP_DT_F64},   {EP_DT_F32, EP_DT_BF16},
    {EP_DT_F64, EP_DT_BF16}, {EP_DT_BF16, EP_DT_BF16}, {EP_DT_F32, EP_DT_F64},
    {EP_DT_F64, EP_DT_F64},  {EP_DT_F32, EP_DT_F32},   {EP_DT_BF16, EP_DT_F32},
    {EP_DT_F32, EP_DT_F32},  {EP_DT_F64, EP_DT_F32},   {EP_DT_BF16, EP_DT_BF16},
};

/* Which part of the elements differ. */
static const double density[SIZES] = {0, 1,    0.5,  0,    0,    0.9,
                                      0, 1e-3, 1e-2, 1e-5, 1e-4, 1e-6};

struct expected {
    double diff, a, max;
    uint64_t max_at, differing;
};

/* A value of at most 8 bits: exact in all three types. */
static double value(struct ep_rng *rng)
{
    return ldexp((double)(ep_rng_next(rng) % 256) - 128,
                 -(int)(ep_rng_next(rng) % 12));
}

static char names[SIZES][8];
static struct ep_tensor pair_a[SIZES], pair_b[SIZES];
static struct expected expected[SIZES];
static void *data_a[SIZES], *data_b[SIZES];

static void make_pair(struct ep_rng *rng, size_t k)
{
    struct expected *e = &expected[k];
    size_t n = sizes[k];
    double *va = ep_calloc(n + 1, sizeof *va);
    double *vb = ep_calloc(n + 1, sizeof *vb);

    for (size_t i = 0; i < n; i++) {
        va[i] = value(rng);
        vb[i] = ep_rng_uniform(rng) < density[k] ? value(rng) : va[i];
    }
    if (n > 20 && density[k] > 0) { /* a largest difference, at two places */
        va[n / 3] = va[n - 1] = 1024;
        vb[n / 3] = vb[n - 1] = -512;
    }
    for (size_t i = 0; i < n; i++) {
        e->differing += va[i] != vb[i];
        if (fabs(va[i] - vb[i]) > e->max) {
            e->max = fabs(va[i] - vb[i]);
            e->max_at = i;
        }
    }
    e->diff = norm(va, vb, n);
    e->a = norm(va, NULL, n);
    pair_a[k].data = data_a[k] = encode(types[k][0], va, n);
    pair_b[k].data = data_b[k] = encode(types[k][1], vb, n);
    free(va);
    free(vb);
}

static void make_pairs(void)
{
    struct ep_rng rng;

    printf("# seed 11\n");
    ep_rng_seed(&rng, 11, 0);
    for (size_t k = 0; k < SIZES; k++) {
        struct ep_tensor *a = &pair_a[k], *b = &pair_b[k];

        (void)snprintf(names[k], sizeof names[k], "t%02zu", k);
        *a = (struct ep_tensor){.name = {names[k], 3},
                                .rank = 1,
                                .dtype = types[k][0],
                                .shape = &sizes[k]};
        *b = *a;
        b->dtype = types[k][1];
        make_pair(&rng, k);
    }
    make_ckpt("a", pair_a, SIZES, NULL, 0, 0);
    make_ckpt("b", pair_b, SIZES, NULL, 0, 0);
    for (size_t k = 0; k < SIZES; k++) {
        free(data_a[k]);
        free(data_b[k]);
    }
}

static void test_norms(void)
{
    struct ep_compare r;
    double all = 0, all_a = 0;

    make_pairs();
    r = compare(1);
    /* at most 1e3 roundings of 1.1e-16 in a row: lanes, blocks, chunks */
    for (size_t k = 0; k < SIZES; k++) {
        const struct ep_compared *t = find(&r, names[k]);
        const struct expected *e = &expected[k];

        printf("# %llu elements\n", (unsigned long long)sizes[k]);
        ok(t->numeric);
        near(t->diff_norm, e->diff, 1e-13 * e->diff);
        near(t->a_norm, e->a, 1e-13 * e->a);
        near(t->relative, e->diff > 0 ? e->diff / e->a : 0,
             2e-13 * t->relative);
        near(t->max_abs, e->max, 0);
        ok(t->max_at == e->max_at && t->differing == e->differing);
        ok(t->kind == (e->differing                 ? EP_COMPARE_DIFFER
                       : types[k][0] == types[k][1] ? EP_COMPARE_EQUAL
                                                    : EP_COMPARE_VALUES));
        all += e->diff * e->diff;
        all_a += e->a * e->a;
    }
    near(r.diff_norm, sqrt(all), 1e-13 * sqrt(all));
    near(r.a_norm, sqrt(all_a), 1e-13 * sqrt(all_a));
    near(r.relative, sqrt(all / all_a), 2e-13 * r.relative);
    ok(r.kinds[EP_COMPARE_EQUAL] && r.kinds[EP_COMPARE_VALUES]);
    for (int threads = 0; threads < 6; threads += 2) {
        struct ep_compare more = compare(threads);

        ok(more.diff_norm == r.diff_norm && more.a_norm == r.a_norm);
        for (size_t k = 0; k < SIZES; k++) {
            ok(more.tensor[k].diff_norm == r.tensor[k].diff_norm &&
               more.tensor[k].a_norm == r.tensor[k].a_norm &&
               more.tensor[k].max_at == r.tensor[k].max_at);
        }
        ep_compare_free(&more);
    }
    done(&r);
}

int main(void)
{
    enter_folder();
    test_norms();
    leave_folder();
    return tap_done();
}

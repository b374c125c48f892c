/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_body.h - the sums of compare.c in one form. Included by it several
 * times, hence no guard, with
 *
 *     LEVEL, TARGET        portable, avx2, avx512, and the attribute for it
 *     VECTOR_BYTES         of its registers
 *     NAME(verb)           verb_avx2 and so on
 *
 * LANES sums each, element i in lane i mod LANES, so that the form does not
 * change the order of additions.
 */
#define V NAME(values)
#define M NAME(masks)
#define WIDE (VECTOR_BYTES / sizeof(double))

typedef double V
    __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef int64_t M
    __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

/* n is a multiple of LANES; b NULL: the same as a */
TARGET static void NAME(add_lanes)(struct lanes *to, const double *a,
                                   const double *b, size_t n)
{
    V a2[LANES / WIDE] = {{0}}, diff2[LANES / WIDE] = {{0}};
    V max[LANES / WIDE] = {{0}};
    M differ[LANES / WIDE] = {{0}};

    for (size_t i = 0; i < n; i += LANES) {
        UNROLL for (size_t k = 0; k < LANES / WIDE; k++)
        {
            V x, y, d;
            M greater;

            x = *(const V *)(a + i + k * WIDE);
            a2[k] += x * x;
            if (!b)
                continue;
            y = *(const V *)(b + i + k * WIDE);
            d = x - y;
            d = (V)((M)d & INT64_MAX);
            diff2[k] += d * d;
            greater = d > max[k];
            max[k] = (V)(((M)d & greater) | ((M)max[k] & ~greater));
            differ[k] += d > 0;
        }
    }
    memcpy(to->a2, a2, sizeof a2);
    memcpy(to->diff2, diff2, sizeof diff2);
    memcpy(to->max, max, sizeof max);
    memcpy(to->differ, differ, sizeof differ);
}

#undef V
#undef M
#undef WIDE

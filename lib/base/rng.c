/* SPDX-License-Identifier: Apache-2.0 */
/* rng.c - see rng.h. */
#include "config.h"

#include "base/rng.h"

#include <math.h>

static uint64_t rotate(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t ep_splitmix64(uint64_t *x)
{
    uint64_t z = *x += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void ep_rng_seed(struct ep_rng *r, uint64_t seed, uint64_t stream)
{
    uint64_t x = seed, y = stream;

    /* mixed first: seed 1, stream 2 must not be seed 2, stream 1 */
    x = ep_splitmix64(&x) ^ rotate(ep_splitmix64(&y), 32);
    for (int i = 0; i < 4; i++)
        r->s[i] = ep_splitmix64(&x);
}

uint64_t ep_rng_next(struct ep_rng *r)
{
    uint64_t *s = r->s, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

double ep_rng_uniform(struct ep_rng *r)
{
    return (double)(ep_rng_next(r) >> 11) * 0x1p-53;
}

double ep_rng_exponential(struct ep_rng *r, double mean)
{
    return mean * -log1p(-ep_rng_uniform(r));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h - random numbers that are the same on every machine.
 *
 * xoshiro256** 1.0 [1]: 256 bits of state, period 2^256 - 1. Its state is
 * filled by SplitMix64 [2], as the authors advise, from a seed and the number
 * of a stream, so that things that draw apart (the workers of a simulation) do
 * not change each other's numbers. Not for secrets.
 *
 * [1] Blackman, Vigna, "Scrambled linear pseudorandom number generators", ACM
 *     Transactions on Mathematical Software 47 (2021), arXiv 1805.01407.
 * [2] Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 *     OOPSLA 2014.
 */
#ifndef EP_BASE_RNG_H
#define EP_BASE_RNG_H

#include <stdint.h>

/* Not all zero, once seeded. */
struct ep_rng {
    uint64_t s[4];
};

/* The next number of SplitMix64 with state *x. */
uint64_t ep_splitmix64(uint64_t *x);

/* Any seed, any stream. The same two give the same numbers for ever. */
void ep_rng_seed(struct ep_rng *r, uint64_t seed, uint64_t stream);

/* Uniform in [0, 2^64). */
uint64_t ep_rng_next(struct ep_rng *r);

/* Uniform in [0, 1): the upper 53 bits times 2^-53. */
double ep_rng_uniform(struct ep_rng *r);

/*
 * Exponential with a mean, -mean log(1 - u): finite, >= 0; log1p is the C
 * library's, so that the last bit may differ between machines.
 */
double ep_rng_exponential(struct ep_rng *r, double mean);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* test_rng.c - published vectors, and moments of what is made of them. */
#include "config.h"

#include "base/rng.h"

#include "tap.h"

/* xoshiro256** from state 1, 2, 3, 4: the vector of the rand_xoshiro crate,
   made with the authors' C code. */
static void test_xoshiro(void)
{
    static const uint64_t want[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
        UINT64_C(8476171486693032832),
        UINT64_C(10595114339597558777),
        UINT64_C(2904607092377533576),
    };
    struct ep_rng r = {{1, 2, 3, 4}};

    for (int i = 0; i < 10; i++)
        ok(ep_rng_next(&r) == want[i]);
}

/* Seed 1234567: Rosetta Code, "Pseudo-random numbers/Splitmix64". */
static void test_splitmix(void)
{
    static const uint64_t want[] = {
        UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
        UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
        UINT64_C(16408922859458223821)};
    uint64_t x = 1234567;

    for (int i = 0; i < 5; i++)
        ok(ep_splitmix64(&x) == want[i]);
}

static void test_streams(void)
{
    struct ep_rng a, b, c;
    int equal = 0;

    ep_rng_seed(&a, 7, 1);
    ep_rng_seed(&b, 7, 1);
    for (int i = 0; i < 100; i++)
        equal += ep_rng_next(&a) == ep_rng_next(&b);
    ok(equal == 100);
    ep_rng_seed(&a, 1, 2);
    ep_rng_seed(&b, 2, 1);
    ep_rng_seed(&c, 0, 0);
    ok(a.s[0] != b.s[0] && a.s[0] != c.s[0]);
    ok(c.s[0] || c.s[1] || c.s[2] || c.s[3]);
}

/* 10^5 draws: tolerances are 5 standard errors. */
static void test_moments(void)
{
    enum { N = 100000 };
    double sum = 0, sum2 = 0, exp_sum = 0, least = 1, most = 0;
    struct ep_rng r;

    ep_rng_seed(&r, 42, 0);
    for (int i = 0; i < N; i++) {
        double u = ep_rng_uniform(&r), e = ep_rng_exponential(&r, 3);

        sum += u;
        sum2 += u * u;
        least = u < least ? u : least;
        most = u > most ? u : most;
        exp_sum += e;
        if (!(e >= 0) || !isfinite(e))
            exp_sum = -1e9;
    }
    near(sum / N, 0.5, 5 * 0.2887 / sqrt(N));
    near(sum2 / N, 1.0 / 3, 5 * 0.2981 / sqrt(N));
    near(exp_sum / N, 3, 5 * 3 / sqrt(N));
    ok(least >= 0 && least < 1e-3 && most < 1 && most > 0.999);
    near(ep_rng_exponential(&r, 0), 0, 0);
}

int main(void)
{
    test_xoshiro();
    test_splitmix();
    test_streams();
    test_moments();
    return tap_done();
}

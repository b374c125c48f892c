/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - coll records of a job, merged by time, as a launcher would tee
 * them: made up, but of the shape that gpuprobe and tlmcat give them.
 *
 *     calls RANKS CALLS ITERATIONS [SLOW]
 *
 * Each rank makes CALLS calls in an iteration of five seconds: all-reduces of 8
 * ranks each, and of the others a reduce-scatter and an all-gather, of sizes
 * that vary with the call. The rank SLOW becomes 1.3 times slower in the second
 * half. The same arguments give the same bytes.
 */
#include "config.h"

#include "base/buf.h"
#include "base/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FLUSH ((size_t)1 << 20)
#define EVERY 5.0 /* s, of an iteration */

static void one(struct ep_buf *b, long rank, long calls, long it, long k,
                double ts, double dur)
{
    static const char *const ops[] = {"all_reduce", "reduce_scatter",
                                      "all_gather"};

    ep_buf_addf(b,
                "{\"type\":\"coll\",\"ts\":%.6f,\"job\":\"lm\",\"host\":"
                "\"n%ld\",\"pid\":%ld,\"rank\":%ld,\"op\":\"%s\",\"comm\":"
                "\"0x%lx\",\"nranks\":8,\"comm_rank\":%ld,\"seq\":%ld,"
                "\"bytes\":%ld,\"dur\":%.6f}\n",
                ts, rank / 8, 4000 + rank % 8, rank, ops[k % 3],
                0x55d0c8a0 + rank / 8 * 64 + k % 3, rank % 8,
                (it * calls + k) / 3, (1 + k % 7) << 20, dur);
}

int main(int argc, char **argv)
{
    long ranks, calls, iterations, slow = -1;
    struct ep_rng rng;
    struct ep_buf b;

    if (argc < 4) {
        (void)fputs("usage: calls RANKS CALLS ITERATIONS [SLOW]\n", stderr);
        return 2;
    }
    ranks = strtol(argv[1], NULL, 10);
    calls = strtol(argv[2], NULL, 10);
    iterations = strtol(argv[3], NULL, 10);
    if (argc > 4)
        slow = strtol(argv[4], NULL, 10);
    ep_rng_seed(&rng, 1, 0);
    ep_buf_init(&b);
    for (long it = 0; it < iterations; it++)
        for (long k = 0; k < calls; k++)
            for (long r = 0; r < ranks; r++) {
                double late = r == slow && it > iterations / 2 ? 0.3 : 0;
                double at = EVERY * ((double)k + 0.3 * ep_rng_uniform(&rng)) /
                            (double)calls;

                one(&b, r, calls, it, k,
                    1730000000 + EVERY * (double)it + at + 1e-6 * (double)r,
                    EVERY * (0.5 - late) / (double)calls);
                if (b.len < FLUSH && r + 1 < ranks)
                    continue;
                if (fwrite(b.ptr, 1, b.len, stdout) != b.len)
                    return 2;
                ep_buf_reset(&b);
            }
    ep_buf_free(&b);
    return fflush(stdout) == 0 ? 0 : 2;
}

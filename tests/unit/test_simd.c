/* SPDX-License-Identifier: Apache-2.0 */
/* test_simd.c - levels of vector instructions, and the limit on them. */
#include "config.h"

#include "base/simd.h"

#include "tap.h"

#include <string.h>

int main(void)
{
    enum ep_simd best = ep_simd_level();

    printf("# this processor: %s\n", ep_simd_name(best));
    ok(best >= EP_SIMD_PORTABLE && best <= EP_SIMD_AVX512);
    ok(ep_simd_level() == best);
    for (int l = EP_SIMD_PORTABLE; l <= EP_SIMD_AVX512; l++) {
        enum ep_simd want = (enum ep_simd)l < best ? (enum ep_simd)l : best;

        ep_simd_limit((enum ep_simd)l);
        ok(ep_simd_level() == want);
    }
    ep_simd_limit(EP_SIMD_PORTABLE);
    ok(ep_simd_level() == EP_SIMD_PORTABLE);
    ep_simd_limit(EP_SIMD_AVX512);
    ok(ep_simd_level() == best); /* a limit can be raised again */

    ok(!strcmp(ep_simd_name(EP_SIMD_PORTABLE), "portable"));
    ok(!strcmp(ep_simd_name(EP_SIMD_AVX2), "avx2"));
    ok(!strcmp(ep_simd_name(EP_SIMD_AVX512), "avx512"));
    return tap_done();
}

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write or prove the table of powers of ten of lib/base/fp_pow10.c.

usage: fp_pow10.py > lib/base/fp_pow10.c     write the table
       fp_pow10.py --prove                   check what fp_print.c and
                                             fp_parse.c take for granted

Entry k is floor(10^k / 2^e), with e such that it has exactly 128 bits.
Exact integers throughout; the output depends on nothing but this file.
"""
import sys

K_MIN, K_MAX = -342, 324  # parsing needs -342..308, printing -292..324


def entry(k):
    """(floor(10^k / 2^e), e, exact) with 2^127 <= entry < 2^128."""
    num, den = (10**k, 1) if k >= 0 else (1, 10**-k)
    e = num.bit_length() - den.bit_length() - 128
    while True:
        n, d = (num, den << e) if e >= 0 else (num << -e, den)
        t, rest = divmod(n, d)
        if t >> 128:
            e += 1
        elif not t >> 127:
            e -= 1
        else:
            return t, e, rest == 0


def write():
    words = []
    for k in range(K_MIN, K_MAX + 1):
        t = entry(k)[0]
        words += [t >> 64, t & (2**64 - 1)]
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/*")
    print(" * fp_pow10.c - see fp_pow10.h. Two powers of ten a line.")
    print(" * Written by tests/gen/fp_pow10.py: change that, not this.")
    print(" */")
    print('#include "config.h"\n')
    print('#include "base/fp_pow10.h"\n')
    print("/* clang-format off */")
    print("const uint64_t ep_fp_pow10[2 * EP_FP_POW10_N] = {")
    for i in range(0, len(words), 4):
        print("    " + "".join("0x%016x," % w for w in words[i : i + 4]))
    print("};\n/* clang-format on */")


def least(a, m, n):
    """Smallest nonzero (a x) mod m over 1 <= x <= n; 0 if there is none.

    Record minima of a x mod m come at intermediate convergents of a/m: from
    x0 with small remainder r0 and x1 with small deficit r1, the next record is
    at x0 + x1 with r0 - r1 (or the deficit r1 - r0).
    """
    a %= m
    if a == 0:
        return 0
    x0, r0, x1, r1 = 1, a, 1, m - a  # r0 = a x0 mod m, r1 = -a x1 mod m
    while True:
        if r0 > r1:
            t = min((r0 - 1) // r1, (n - x0) // x1)
            if t <= 0:
                return r0
            x0, r0 = x0 + t * x1, r0 - t * r1
        else:
            t = min((r1 - 1) // r0, (n - x1) // x0)
            if t <= 0:
                return r0
            x1, r1 = x1 + t * x0, r1 - t * r0
        if r0 == r1:  # their sum is 0 mod m: only multiples of r0 remain
            return r0


def check_least():
    import random

    rnd = random.Random(1)
    for _ in range(20000):
        m, n = rnd.randint(1, 300), rnd.randint(1, 400)
        a = rnd.randint(0, 600)
        want = min((a * x % m for x in range(1, n + 1) if a * x % m), default=0)
        assert least(a, m, n) == want, (a, m, n)


def prove():
    check_least()
    for k in range(K_MIN, K_MAX + 1):
        t, e, exact = entry(k)
        assert exact == (0 <= k <= 55), k
        assert e == (k * 217706 >> 16) - 127, k
        assert exact or t % 2**64 != 2**64 - 1, k  # t + 1 does not carry
    for q in range(-1074, 972):
        for closer in (0, 1):
            k = (q * 1262611 - (524031 if closer else 0)) >> 22
            # 10^k <= w < 10^(k+1), where w = 2^q or 3/4 2^q
            n, d = (3, 4) if closer else (1, 1)
            n, d = (n << q, d) if q >= 0 else (n, d << -q)
            n, d = (n, d * 10**k) if k >= 0 else (n * 10**-k, d)
            assert d <= n < 10 * d, (q, closer)
            h = q + (-k * 217706 >> 16) + 1
            assert 1 <= h <= 4 and K_MIN <= -k <= K_MAX
            # v = 2u with u = D 2^q 10^-k and D = 2c - 1, 2c, 2c + 1
            # (c < 2^53), or D = 2c - 1/2 if closer (c = 2^52). The computed
            # value exceeds v by less than 2D 2^h 2^-128 < 2^-68; its fraction
            # is then cut to 64 bits and 0 taken for an integer. An odd
            # integer part is the same with and without a fraction; so all is
            # well unless u has a fraction in (0, 2^-65) or [1 - 2^-69, 1).
            n, d = (2**q, 1) if q >= 0 else (1, 2**-q)
            n, d = (n, d * 10**k) if k >= 0 else (n * 10**-k, d)
            if closer:
                d *= 2
                rests = [c * n % d for c in (2**54 - 1, 2**54, 2**54 + 2)]
                lo = min((r for r in rests if r), default=0)
                hi = min((d - r for r in rests if r), default=0)
            else:
                lo, hi = (least(s * n, d, 2**54 - 1) for s in (1, -1))
            assert lo == 0 or lo << 65 >= d, (q, closer)
            assert hi == 0 or hi << 69 > d, (q, closer)
    print("proved")


if __name__ == "__main__":
    prove() if sys.argv[1:] == ["--prove"] else write()

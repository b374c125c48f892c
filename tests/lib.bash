# SPDX-License-Identifier: Apache-2.0
# lib.bash - what the bats files share. bats runs each test in a shell of its
# own; files are written below $BATS_TEST_TMPDIR only.

bats_require_minimum_version 1.5.0

# The programs of evenpace, as make built them.
programs=(gpuprobe lsgd-merge lsgd-sim rebalance skewdetect skewplot tlmcat whatif)

# Was the feature (ZLIB, OPENBLAS, ...) found by configure?
has_feature() {
    grep -q "^#define HAVE_$1 1" "$top_builddir/config.h"
}

need_feature() { # need_feature NAME WHAT
    has_feature "$1" || skip "built without $2"
}

need_testdata() {
    [ -n "${EVENPACE_TESTDATA:-}" ] || skip "EVENPACE_TESTDATA is not set"
}

# steps RANK N BUSY_MS [FROM]: N step records of one rank, 0.1 s apart, with a
# small ripple so that they are not all equal.
steps() {
    awk -v rank="$1" -v n="$2" -v busy="$3" -v from="${4:-1}" 'BEGIN {
        for (i = from; i < from + n; i++) {
            b = busy / 1000 * (1 + 0.002 * ((i * 7) % 5 - 2))
            printf "{\"type\":\"step\",\"ts\":%.6f,\"rank\":%d,\"step\":%d," \
                "\"dur\":%.6f,\"busy\":%.6f,\"mb\":4}\n",
                1700000000 + i * 0.1, rank, i, b + 0.001, b
        }
    }'
}

# The value of a key of the JSON lines on stdin that match a jq filter.
field() { # field FILTER EXPRESSION
    jq -r "select($1) | $2"
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# import-nccl.bats - NCCL Inspector, RAS and NCCL_DEBUG through tlmcat. A
# fixture is a file in tests/fixtures/FORMAT: NAME.in, the records NAME.want
# and, where there are bad elements, their number in NAME.bad.

load lib

# convert WANT-STATUS OPTION...: the input; records are in $output. Those without
# a time of their own have that of the file.
convert() {
    TZ=UTC run "-$1" --separate-stderr tlmcat "${@:2}" "$BATS_TEST_TMPDIR/input"
    if [ "$1" = 0 ]; then
        [ -z "$stderr" ]
    else
        [ -n "$stderr" ]
    fi
}

# check FORMAT: its fixtures, named to tlmcat and recognised by it.
check() {
    local base in n=0 rc
    for in in "${top_srcdir:?}/tests/fixtures/$1"/*.in; do
        echo "$in"
        base=${in%.in}
        rc=0
        [ ! -e "$base.bad" ] || rc=2
        cp "$in" "$BATS_TEST_TMPDIR/input"
        touch -d @1800000000 "$BATS_TEST_TMPDIR/input"
        convert "$rc" --from "$1"
        diff <(printf '%s' "${output:+$output$'\n'}") "$base.want"
        convert "$rc"
        diff <(printf '%s' "${output:+$output$'\n'}") "$base.want"
        n=$((n + 1))
    done
    [ "$n" -ge 5 ]
}

@test "inspector: each fixture gives the records written beside it" {
    check inspector
}

@test "ras: each fixture gives the records written beside it" {
    check ras
}

@test "nccl-debug: each fixture gives the records written beside it" {
    check nccl-debug
}

@test "a line that was cut is described with its place" {
    head -c 300 "$top_srcdir/tests/fixtures/inspector/sample.in" \
        >"$BATS_TEST_TMPDIR/cut"
    run -2 --separate-stderr tlmcat "$BATS_TEST_TMPDIR/cut"
    [ -z "$output" ]
    [[ $stderr == *"$BATS_TEST_TMPDIR/cut:1: "* ]]
}

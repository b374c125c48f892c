#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# import-trainers.bats - logs of Megatron-LM, DeepSpeed and NVRx through tlmcat.
# A fixture is a file in tests/fixtures/FORMAT, NAME.in, and the records wanted
# of it, NAME.want.

load lib

# convert OPTION...: the input; records are in $output. Those without a time of
# their own have that of the file.
convert() {
    TZ=UTC run -0 --separate-stderr tlmcat --no-merge "$@" \
        "$BATS_TEST_TMPDIR/input"
    [ -z "$stderr" ]
}

# check FORMAT: its fixtures, named to tlmcat and recognised by it.
check() {
    local in want n=0
    for in in "${top_srcdir:?}/tests/fixtures/$1"/*.in; do
        echo "$in"
        want=${in%.in}.want
        cp "$in" "$BATS_TEST_TMPDIR/input"
        touch -d @1800000000 "$BATS_TEST_TMPDIR/input"
        convert --from "$1"
        diff <(printf '%s' "${output:+$output$'\n'}") "$want"
        convert
        diff <(printf '%s' "${output:+$output$'\n'}") "$want"
        n=$((n + 1))
    done
    [ "$n" -ge 5 ]
}

@test "megatron: each fixture gives the records written beside it" {
    check megatron
}

@test "deepspeed: each fixture gives the records written beside it" {
    check deepspeed
}

@test "nvrx: each fixture gives the records written beside it" {
    check nvrx
}

@test "a time without a zone is local time" {
    echo ' [2026-01-02 03:04:05] iteration 1/ 10 |' \
        'elapsed time per iteration (ms): 250.0 |' >"$BATS_TEST_TMPDIR/input"
    TZ=XXX-2 run -0 tlmcat "$BATS_TEST_TMPDIR/input"
    [[ $output == *'"ts":1767315844.75,'* ]]
}

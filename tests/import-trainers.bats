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

# The keys of a line are remembered for the next one, by their place in it.
@test "megatron: a line says the same behind any other" {
    local tails=(
        'elapsed time per iteration (ms): 1000.0 | lm loss: 2.5E+00 | loss scale: 1.0 |'
        'consumed samples: 1024 | elapsed time per iteration (ms): 2000.0 | lm loss: 2.25E+00 |'
        'consumed tokens: 4096 | elapsed time per iteration (ms): 3000.0 | mtp_1 loss: 9.5 | lm loss: 1.5 |'
        'elapsed time per iteration (s): 4.0 | global batch size: 8 | actual seqlen: 16 | some loss: 3.5 |'
        'elapsed time per iteration (ms): 5000.0 | global batch size: 4 | actual seqlen: 8 | Elapsed_time_per_iteration_ms=6.5 |'
        'elapsed time per iteration (ms) | lm loss | consumed tokens: x | elapsed time per iteration (ms): 7 | lm loss:4'
        '|| : | = | elapsed time per iteration (ms): 8.0 | lm loss: nan | val loss: 1.0 |'
    )
    local file=$BATS_TEST_TMPDIR/input i n=7 seed=7
    for ((i = 0; i < 60; i++)); do
        seed=$(((seed * 1103515245 + 12345) % 2147483648))
        printf ' [2026-08-22 %02d:%02d:00.5] iteration %d/ 250000 | %s\n' $((i / 6)) $((i % 6 * 10)) $((i + 1)) "${tails[seed / 65536 % n]}" >>"$file"
    done
    run -0 --separate-stderr tlmcat --from megatron -f jsonl "$file"
    while IFS= read -r line; do
        printf '%s\n' "$line" | tlmcat --from megatron -f jsonl
    done <"$file" >"$BATS_TEST_TMPDIR/alone"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/alone")" -ge 80 ]
    diff <(printf '%s\n' "$output") "$BATS_TEST_TMPDIR/alone"
}

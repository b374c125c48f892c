#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# import-more.bats - Flight Recorder, nccl-tests, and any log through patterns.
# A fixture is NAME.in, the records wanted of it, NAME.want, and if something in
# it is broken a part of the message, NAME.err. Records without a time of their
# own have that of the file.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export TZ=UTC
}

# fixture FORMAT FILE OPTION...: the file against the records wanted of it.
fixture() {
    local base=${2%.in} name
    name=$(basename "$2")
    echo "$2"
    cp "$2" "$name"
    touch -d @1800000000 "$name"
    tlmcat --no-merge "${@:3}" "$name" >got 2>err || [ -e "$base.err" ]
    diff "$base.want" got
    if [ -e "$base.err" ]; then
        grep -F -f "$base.err" err
    else
        run -0 cat err
        [ -z "$output" ]
    fi
}

# check FORMAT: its fixtures, recognised and named.
check() {
    local in n=0
    for in in "${top_srcdir:?}/tests/fixtures/$1"/*.in; do
        fixture "$1" "$in"
        fixture "$1" "$in" --from "$1"
        n=$((n + 1))
    done
    [ "$n" -ge 5 ]
}

@test "Flight Recorder: every quirk" {
    check flight-recorder
}

@test "nccl-tests: every quirk" {
    check nccl-tests
}

@test "nccl-tests: nothing of the environment gets out" {
    run -0 tlmcat "$top_srcdir/tests/fixtures/nccl-tests/json.in"
    [[ $output != *hush* ]]
}

@test "patterns: every quirk, each fixture with a file of its own" {
    need_feature PCRE2 PCRE2
    local in file
    for in in "$top_srcdir"/tests/fixtures/pattern/*.in; do
        file=${in%.in}.pattern
        [ -e "$file" ] || file=$top_srcdir/share/patterns/common.pattern
        fixture pattern "$in" --from pattern --patterns "$file"
    done
}

@test "a pattern on the command line" {
    need_feature PCRE2 PCRE2
    echo 'ep 1 train, step 7, cuda:3 x, 0.5 sec/step' >log
    touch -d @1800000000 log
    run -0 tlmcat --pattern \
        'step (?<step>\d+), .*cuda:(?<rank>\d+) .*, (?<dur>[\d.]+) sec' log
    [ "$output" = '{"type":"step","ts":1800000000,"rank":3,"step":7,"dur":0.5}' ]
    run -0 tlmcat --type-of gauge,name=x,unit=s \
        --pattern 'cuda:(?<gpu_index>\d+) x, (?<value>\S+)' log
    [ "$(jq -c '[.name, .value, .unit, .gpu_index]' <<<"$output")" = \
        '["x",0.5,"s",3]' ]
}

@test "a pattern that makes no sense is refused with its reason" {
    need_feature PCRE2 PCRE2
    run -2 --separate-stderr tlmcat --pattern '(?<stap>x)' /dev/null
    [[ $stderr == *"group 'stap' is no key of evenpace-record(5)"* ]]
    printf 'pattern a step\nregex (?<step>x\n' >bad.pattern
    run -2 --separate-stderr tlmcat --patterns bad.pattern /dev/null
    [[ $stderr == *"bad.pattern:2:16: pattern 'a': missing closing"* ]]
}

@test "a pickle is refused with the way to convert it, which works" {
    python3 -c 'import pickle
d = {"version": "2.9", "pg_status": {"0": {"last_completed_collective": 3}}}
pickle.dump(d, open("nccl_trace_rank_5", "wb"), 2)'
    run -2 --separate-stderr tlmcat nccl_trace_rank_5
    [ -z "$output" ]
    [[ $stderr == *"cannot read nccl_trace_rank_5: a Python pickle"* ]]
    [[ $stderr =~ python3\ -c\ \'([^\']*)\' ]]
    python3 -c "${BASH_REMATCH[1]}" nccl_trace_rank_5 >nccl_trace_rank_5.json
    run -0 tlmcat nccl_trace_rank_5.json
    [ "$(jq -c '[.rank, .name, .value]' <<<"$output")" = \
        '[5,"fr_last_completed",3]' ]
}

@test "a dump that was cut: what is whole, then the reason" {
    head -c 1200 "$top_srcdir/tests/fixtures/flight-recorder/hung_rank_0.in" \
        >part_rank_0
    run -2 --separate-stderr tlmcat part_rank_0
    [ "$(jq -r .seq <<<"$output" | xargs)" = "40 5 6" ]
    [[ $stderr == *"cannot read part_rank_0: byte "*"text ends too early"* ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# import-chrome.bats - Chrome traces to records: step timelines, and profiles
# of PyTorch. A fixture is NAME.in, the records wanted of it, NAME.want, and if
# something in it is broken a part of the message, NAME.err.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# check FORMAT: its fixtures, as files and through a pipe.
check() {
    local in base n=0
    for in in "$top_srcdir/tests/fixtures/$1"/*.in; do
        base=${in%.in}
        echo "$in"
        tlmcat "$in" >got 2>err || [ -e "$base.err" ]
        diff "$base.want" got
        if [ -e "$base.err" ]; then
            grep -F -f "$base.err" err
        else
            run -0 cat err
            [ -z "$output" ]
        fi
        tlmcat --from "$1" <"$in" 2>/dev/null | diff "$base.want" -
        n=$((n + 1))
    done
    [ "$n" -ge 5 ]
}

# counts FILE: spans, steps, data-parallel ranks, stages of a timeline.
counts() {
    tlmcat "$1" | jq -s -r '[length, (map(.type) | unique | join(",")),
        (map(.step), map(.dp), map(.pp) | unique | length)] | @text'
}

@test "step timelines: every quirk" {
    check timeline
}

@test "profiles of PyTorch: every quirk" {
    check kineto
}

@test "real timelines: all their spans, steps, ranks and stages" {
    need_testdata
    need_feature ZLIB zlib
    run -0 counts "$EVENPACE_TESTDATA/timeline-AR.json.gz"
    [ "$output" = '[117216,"span",44,4,4]' ]
    run -0 counts "$EVENPACE_TESTDATA/timeline-ST.json.gz"
    [ "$output" = '[6784,"span",32,2,4]' ]
}

@test "real timelines: the same durations and ranks as jq finds" {
    need_testdata
    need_feature ZLIB zlib
    zcat "$EVENPACE_TESTDATA/timeline-ST.json.gz" >t.json
    jq -r '.[] | select(.ph == "X") |
        [.name, .args.step, .pid, (.tid / 5 | floor), .args.mb_id,
            (.dur * 1000 | round)] | @tsv' t.json >want
    tlmcat --no-merge t.json |
        jq -r '[.op, .step, .dp, .rank, .mb // -1, (.dur * 1e9 | round)] |
            @tsv' >got
    diff want got
}

@test "a trace that was cut: what is whole, then the reason" {
    cp "$top_srcdir/tests/fixtures/kineto/new-kernel.in" whole
    head -c 2000 whole >part
    run -2 --separate-stderr tlmcat part
    [ "$(jq -r .type <<<"$output" | xargs)" = step ]
    [[ $stderr == *"cannot read part: byte 2000: text ends too early"* ]]
}

@test "spans that do not fit in memory wait in TMPDIR" {
    local i
    {
        echo '[{"ph":"M","name":"process_name","pid":0,"args":{"name":"x"}}'
        awk 'BEGIN { for (i = 0; i < 160000; i++)
            printf ",{\"ph\":\"X\",\"name\":\"gc\",\"pid\":0,\"tid\":1," \
                "\"ts\":%d,\"dur\":1,\"args\":{\"step\":%d,\"mb_id\":-1}}\n",
                i, i }'
        echo ',{"ph":"M","name":"thread_name","pid":0,"tid":1,' \
            '"args":{"name":"PP rank 3, TP rank 0, misc"}}]'
    } >t.json
    mkdir spill
    TMPDIR=$PWD/spill tlmcat --from timeline t.json |
        jq -r '"\(.step) \(.pp)"' >got
    awk 'BEGIN { for (i = 0; i < 160000; i++) print i, 3 }' | cmp - got
    [ -z "$(ls spill)" ]
    TMPDIR=$PWD/none run -2 --separate-stderr tlmcat --from timeline t.json
    [[ $stderr == *"cannot create a file in $PWD/none: No such file"* ]]
}

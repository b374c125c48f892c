#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect-comms.bats - slow communication, named by the calls: made-up jobs of
# tests/eval whose slow links and hosts are known.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    PATH=$top_builddir/tests/eval:$PATH
}

# job SEED INDEX RECORDS: what is found in it
job() {
    jobgen -s "$1" --class comm --index "$2" --records "$3" --max-ranks 128 \
        --labels labels --series series >in.jsonl
    skewdetect -q -f jsonl in.jsonl
}

onsets() {
    jq -r 'select(.kind == "onset") | [.scope, .id, .cause, .step] | join(" ")'
}

@test "a slow link between two ranks is named, in the step in which it began" {
    job 1 3 step+coll >events
    [ "$(onsets <events | head -n 1)" = "link src=rank2,dst=rank6 link 55" ]
    [[ $(jq -r 'select(.kind == "onset" and .scope == "link") | .evidence' events) == *"transfers cross it: 1.76x"* ]]
}

@test "a slow host is named, and its relief is told" {
    job 1 7 step+coll >events
    [ "$(onsets <events)" = "host host=h8 network 136" ]
    [ "$(jq -r 'select(.kind == "relief") | .scope + " " + .id' events)" = "host host=h8" ]
}

@test "links that nothing tells apart: their communicator is named, and they are listed" {
    job 1 13 step+coll >events
    [[ $(onsets <events) == "group comm=dp-0-0 network "* ]]
    [[ $(jq -r 'select(.kind == "onset") | .evidence' events) == *h0-h1* ]]
}

@test "transfers tell of it before the pace alone does" {
    job 4 15 step+coll >events
    calls=$(jq 'select(.kind == "onset") | .ts' events | head -n 1)
    job 4 15 step >events
    pace=$(jq 'select(.kind == "onset") | .ts' events | head -n 1)
    [ -n "$calls" ] && [ -n "$pace" ]
    jq -en "$calls + 5 < $pace"
}

@test "after longer micro-batches slow communication is not laid at all ranks" {
    job 5 1 step+coll >events
    [ "$(onsets <events | cut -d ' ' -f 1-3)" = "group comm=dp-0-0 network" ]
}

@test "healthy jobs with calls: nothing" {
    n=0
    for i in 1 3 5 7 9 11; do
        job 3 "$i" step+coll >events
        jq -es '.[0].positive or .[0].grey' labels >whether && continue
        n=$((n + 1))
        [ -z "$(onsets <events)" ]
    done
    [ "$n" -ge 2 ]
}

@test "calls alone: iterations from them, and the link" {
    job 1 3 coll >events
    [[ $(onsets <events | head -n 1) == "link src=rank2,dst=rank6 link "* ]]
}

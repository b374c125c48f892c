#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# eval.bats - the evaluation itself: does the generator do what its labels say,
# does the score count as it says? And the plainest of cases: a straggler of
# 1.5x is found. The evaluation as a whole is make eval.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    PATH=$top_builddir/tests/eval:$PATH
}

# slow_job FILTER CLASS: the number of the first job of seed 4 a label of which
# matches.
slow_job() {
    local i
    for ((i = 0; i < 60; i++)); do
        jobgen -s 4 --class "$2" --index "$i" --max-ranks 16 --labels l \
            >/dev/null || return 1
        jq -es "any(.[]; $1)" l >/dev/null && echo "$i" && return 0
    done
    echo "no such job" >&2
    return 1
}

@test "the same seed gives the same job, another another" {
    for what in step all; do
        jobgen -s 3 --index 2 --max-ranks 16 --records $what --labels l1 \
            --series s1 >r1
        jobgen -s 3 --index 2 --max-ranks 16 --records $what --labels l2 \
            --series s2 >r2
        cmp r1 r2
        cmp l1 l2
        cmp s1 s2
    done
    # what is written does not change what happens
    jobgen -s 3 --index 2 --max-ranks 16 --labels l3 >/dev/null
    cmp l1 l3
    for other in "-s 4 --index 2" "-s 3 --index 3" "-s 3 --index 2 --class comm"; do
        # shellcheck disable=SC2086
        jobgen $other --max-ranks 16 >r3
        run -1 cmp -s r1 r3
    done
}

@test "the labels are true of the records" {
    for class in compute comm; do
        for i in 0 1 2 3 4 5; do
            jobgen -s 5 --index $i --class $class --max-ranks 16 --labels l \
                --records step+coll >r
            run -0 "$top_srcdir/tests/eval/check" l <r
            echo "$class: ${lines[-1]}" >>out
        done
    done
    cat out
    [ "$(awk '{ n += $3 } END { print n }' out)" -ge 6 ]
}

@test "a label that is not true is found out" {
    i=$(slow_job '.cause == "compute" and .positive and .ramp == 0' compute)
    jobgen -s 4 --index "$i" --max-ranks 16 --labels l >r
    run -0 "$top_srcdir/tests/eval/check" l <r
    [ "${lines[-1]}" != "checked 0" ]
    jq -c 'if .positive and .cause then .own_factor *= 1.1 else . end' l >false
    run -1 "$top_srcdir/tests/eval/check" false <r
    sed '40s/"dur":/&1/' r >torn
    run -1 "$top_srcdir/tests/eval/check" l <torn
}

@test "what is written is records, of each kind wanted" {
    for class in compute comm; do
        jobgen --class $class --index 1 --max-ranks 16 --records all >r
        run -0 --separate-stderr tlmcat --strict -o /dev/null r
        [ -z "$stderr" ]
        run -0 jq -r .type r
        [ "$(printf '%s\n' "${lines[@]}" | sort -u | xargs)" = \
            "coll gauge p2p step" ] ||
            [ "$(printf '%s\n' "${lines[@]}" | sort -u | xargs)" = \
                "coll gauge step" ]
    done
}

@test "within a collective the slow rank waits least" {
    i=$(slow_job '.cause == "compute" and .factor > 1.3 and .ramp == 0 and
        .onset > 20' compute)
    jobgen -s 4 --index "$i" --max-ranks 16 --records step+coll --labels l >r
    jq -r 'select(.cause == "compute" and .factor > 1.3 and .ramp == 0) |
        [.id[5:], .onset_ts, .relief_ts] | @tsv' l | head -1 >slow
    read -r rank from to <slow
    # of its own communicators, in that time: how often is it the shortest?
    jq -r --argjson from "$from" --argjson to "$to" \
        'select(.type == "coll" and .ts > $from and .ts < $to) |
         [.comm, .seq, .rank, .dur] | @tsv' r >calls
    awk -v rank="$rank" '
        { key = $1 " " $2 }
        !(key in least) || $4 < least[key] { least[key] = $4; who[key] = $3 }
        $3 == rank { its[key] = $1 }
        END { for (k in its) { n[its[k]]++; last[its[k]] += who[k] == rank }
              for (c in n) if (last[c] / n[c] > best) best = last[c] / n[c]
              print best; exit !(best > 0.9) }' calls || {
        # every call but the first of an iteration has no waiting in it
        awk '{ print $1 }' calls | sort -u | head -4
        cat l
        return 1
    }
}

@test "a straggler of 1.5 is found: rank, onset, factor" {
    i=$(slow_job '.cause == "compute" and .ramp == 0 and .onset > 20 and
        .factor > 1.4 and .factor < 1.6 and .positive' compute)
    jobgen -s 4 --index "$i" --max-ranks 16 --labels l |
        skewdetect -q -f jsonl >events
    jq -c 'select(.cause == "compute" and .ramp == 0 and .factor > 1.4 and
        .factor < 1.6)' l | head -1 >slow
    cat slow events
    jq -es '.[0] as $slow | any(.[1:][]; .kind == "onset" and
        .id == $slow.id and .step == $slow.onset and
        .factor > 0.95 * $slow.factor and .factor < 1.05 * $slow.factor)' \
        slow events
}

# made NAME POSITIVE EVENT: a job of 20 steps of 1 s for score, with a slow rank
# 3 from step 10 to 20 if POSITIVE.
made() {
    {
        echo '{"label":"job","seed":1,"index":0,"class":"compute","ranks":8,"iterations":20,"positive":'"$2"',"grey":false}'
        [ "$2" = false ] || echo '{"label":"event","kind":"fail-slow","cause":"compute","scope":"rank","id":"rank=3","ranks":[3],"onset":10,"onset_ts":1010,"relief":20,"relief_ts":1020,"over":false,"ramp":0,"every":0,"cross":10,"cross_ts":1010,"factor":1.5,"own_factor":1.5,"job_factor":1.3,"positive":true,"grey":false}'
    } >"jobs/$1.labels"
    awk 'BEGIN { for (i = 0; i < 20; i++) print i "\t" 1000 + i "\t1" }' \
        >"jobs/$1.series"
    printf '%s' "$3" >"jobs/$1.events"
    : >"jobs/$1.window"
    printf '13\t1014\n' >"jobs/$1.bocd"
}

@test "the score counts as its head says" {
    mkdir jobs
    made compute-0 true '{"kind":"onset","scope":"rank","id":"rank=3","rank":3,"eid":"a","ts":1013,"step":10,"cause":"compute"}'
    made compute-1 true '{"kind":"onset","scope":"rank","id":"rank=4","rank":4,"eid":"a","ts":1013,"step":10,"cause":"compute"}'
    made compute-2 true '{"kind":"onset","scope":"rank","id":"rank=3","rank":3,"eid":"a","ts":1003,"step":1,"cause":"compute"}'
    made compute-3 false ''
    made compute-4 false '{"kind":"onset","scope":"job","eid":"a","ts":1013,"step":10,"cause":"unknown"}'
    made compute-5 false '{"kind":"spike","scope":"job","eid":"a","ts":1013,"step":10}'
    run -0 --separate-stderr "$top_srcdir/tests/eval/score" jobs
    [ -z "$stderr" ]
    echo "$output"
    squeezed=$(tr -s ' ' <<<"$output")
    # of three slow jobs one is found; of three healthy ones one is reported
    [[ $squeezed == *$'\ncompute: skewdetect 3 3 50.0 66.2 33.3 66.7\n'* ]]
    [[ $squeezed == *$'\ncompute: window 3 3 50.0 98.5 0.0 100.0\n'* ]]
    [[ $squeezed == *$'\ncompute: bocd 3 3 50.0 1.5 100.0 0.0\n'* ]]
    # found, named, localised, cause, no relief due, in time, after 3 its, 3 s, 1 episode
    [[ $squeezed == *$'\ncompute 3 33.3 100.0 100.0 100.0 - 100.0 3/3/3 3.0/3/3 1/1\n'* ]]
}

# network NAME LAYOUT LABEL EVENT: a job whose link or host LABEL is slow, in
# which EVENT (scope and id) is said of it.
network() {
    {
        echo '{"label":"job","seed":1,"index":1,"class":"comm","ranks":32,'"$2"',"hosts":4,"iterations":20,"positive":true,"grey":false}'
        echo '{"label":"event","kind":"fail-slow","cause":"link",'"$3"',"ranks":[],"onset":10,"onset_ts":1010,"relief":20,"relief_ts":1020,"over":false,"ramp":0,"every":0,"cross":10,"cross_ts":1010,"factor":1.5,"own_factor":1.5,"job_factor":1.3,"positive":true,"grey":false}'
    } >"jobs/$1.labels"
    awk 'BEGIN { for (i = 0; i < 20; i++) print i "\t" 1000 + i "\t1" }' \
        >"jobs/$1.series"
    echo '{"kind":"onset",'"$4"',"eid":"a","ts":1013,"step":10,"cause":"link"}' \
        >"jobs/$1.events"
    : >"jobs/$1.window"
    : >"jobs/$1.bocd"
}

@test "score: a place is right as far as the calls can tell" {
    local ring='"dp":4,"pp":1,"tp":8' stages='"dp":2,"pp":4,"tp":4'
    local link='"scope":"link","id":"src=h1,dst=h2"' want
    # each of the four links, and hosts, of the ring explains the same
    for case in "$ring|$link|$link|100.0 100.0 100.0" \
        "$ring|$link|\"scope\":\"group\",\"id\":\"comm=dp-0-3\"|100.0 0.0 100.0" \
        "$ring|$link|\"scope\":\"group\",\"id\":\"comm=dp-1-3\"|0.0 - -" \
        "$ring|$link|\"scope\":\"host\",\"id\":\"host=h1\"|0.0 - -" \
        "$stages|$link|\"scope\":\"link\",\"id\":\"src=h2,dst=h1\"|100.0 100.0 100.0" \
        "$stages|$link|\"scope\":\"host\",\"id\":\"host=h1\"|0.0 - -" \
        "$stages|$link|\"scope\":\"link\",\"id\":\"src=h0,dst=h1\"|0.0 - -"; do
        rm -rf jobs
        mkdir jobs
        IFS='|' read -r layout label event want <<<"$case"
        network comm-1 "$layout" "$label" "$event"
        run -0 --separate-stderr "$top_srcdir/tests/eval/score" jobs
        [ -z "$stderr" ]
        echo "$case"
        echo "$output"
        squeezed=$(tr -s ' ' <<<"$output")
        [[ $squeezed == *$'\nlink 1 '"$want "* ]]
    done
}

@test "run: jobs through all three, and tables" {
    run -0 --separate-stderr "$top_srcdir/tests/eval/run" -s 7 -n 2 -j 1 -o jobs
    [ -z "$stderr" ]
    [[ $output == "seed 7: 4 jobs,"* ]]
    [[ $output == *"comm: skewdetect"* ]]
    [ "$(find jobs -name '*.events' ! -name 'real.*' | wc -l)" -eq 4 ]
    # a detector that fails is no detector that finds nothing
    mkdir bin
    printf '#!/bin/sh\nexec cat >/dev/null\n' >bin/baseline
    printf '#!/bin/sh\ncat >/dev/null; exit 2\n' >bin/skewdetect
    chmod +x bin/*
    PATH=$PWD/bin:$PATH run -2 --separate-stderr \
        "$top_srcdir/tests/eval/run" -s 7 -n 1 -j 1 -o bad
    [[ $stderr == *"cannot evaluate job 0 of class compute"* ]]
}

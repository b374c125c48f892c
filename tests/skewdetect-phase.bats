#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect-phase.bats - changes of phase are no stragglers; slow from the
# first step.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# steps PHASE TOKENS MB RANK FROM TO FACTOR: 8 ranks over 160 steps of 2 s, 0.8 s
# of them communication; from PHASE on with TOKENS x the length and MB x the
# micro-batches; a rank is slower in the steps from FROM until before TO.
steps() {
    awk -v phase="$1" -v tokens="$2" -v mb="$3" -v slow="$4" -v from="$5" \
        -v to="$6" -v factor="$7" 'BEGIN {
        srand(7)
        ts = 1700000000
        for (s = 0; s < 160; s++) {
            m = 8 * (s >= phase ? mb : 1)
            t = 2048 * (s >= phase ? tokens : 1)
            most = 0
            for (r = 0; r < 8; r++) {
                busy[r] = 0.15 * m * t / 2048 * (1 + 0.01 * (rand() - 0.5))
                if (r == slow && s >= from && s < to)
                    busy[r] *= factor
                if (busy[r] > most)
                    most = busy[r]
            }
            dur = most + 0.8 * (1 + 0.04 * (rand() - 0.5))
            for (r = 0; r < 8; r++)
                printf "{\"type\":\"step\",\"ts\":%.6f,\"rank\":%d," \
                    "\"step\":%d,\"dur\":%.6f,\"busy\":%.6f,\"mb\":%d," \
                    "\"tokens\":%d}\n", ts, r, s, dur, busy[r], m, m * t
            ts += dur
        }
    }' >steps.jsonl
}

@test "longer sequences, or more micro-batches, are no onset" {
    for phase in "60 1.7 1" "60 1 2" "60 2 0.5" "60 1 1.5"; do
        # shellcheck disable=SC2086 # three words
        steps $phase -1 0 0 1
        run -0 --separate-stderr skewdetect --exit-code steps.jsonl
        [ -z "$output" ]
        [ -z "$stderr" ]
    done
}

@test "nor without busy, mb or tokens: one of them is enough" {
    steps 60 1 2 -1 0 0 1
    for without in busy mb tokens; do
        jq -c "del(.$without)" steps.jsonl >less
        run -0 --separate-stderr skewdetect --exit-code less
        [ -z "$output" ]
    done
    # nothing tells that the work has changed
    jq -c 'del(.busy, .mb, .tokens)' steps.jsonl >less
    run -1 --separate-stderr skewdetect --exit-code less
    [ "$(jq -r '[.kind, .scope, .step] | join(" ")' <<<"$output")" = \
        "onset job 60" ]
}

@test "a straggler is found after, before and across a change of phase" {
    for from in 15 50 100; do
        steps 60 1.7 1 3 $from $((from + 40)) 1.5
        run -0 --separate-stderr skewdetect --no-spikes steps.jsonl
        [ "$(jq -r 'select(.kind == "onset" and .scope == "rank")
            | [.id, .step, (.factor * 10 | round / 10)] | join(" ")' \
            <<<"$output")" = "rank=3 $from 1.5" ]
        [ "$(jq -r 'select(.kind == "relief") | [.scope, .step] | join(" ")' \
            <<<"$output" | sort | xargs)" = \
            "rank $((from + 40))" ]
    done
}

@test "one that begins together with it, and exceeds it, is found" {
    steps 60 1.2 1 3 60 200 2.5
    run -0 --separate-stderr skewdetect steps.jsonl
    [ "$(jq -r 'select(.kind == "onset") | [.scope, .step] | join(" ")' \
        <<<"$output" | sort | xargs)" = "rank 60" ]
}

@test "slow from the first step is found in the fifth" {
    steps 999 1 1 3 0 30 1.5
    run -0 --separate-stderr skewdetect steps.jsonl
    fifth=$(jq -s 'map(select(.step == 4)) | .[0] | .ts + .dur' steps.jsonl)
    [ "$(jq -r --argjson at "$fifth" '[.kind, .id, .step,
        (if .kind == "onset" then .ts - $at | fabs < 1e-3
         else .ts < $at + 80 end)] | map(tostring) | join(" ")' <<<"$output" | xargs)" = \
        "onset rank=3 0 true relief rank=3 30 true" ]
}

# calls ACC: coll records of 4 ranks; 100 iterations of two micro-batches, then
# 120 of ACC: another loop, and longer.
calls() {
    awk -v acc="$1" 'BEGIN {
        for (i = 1; i <= 220; i++) {
            n = (i <= 100 ? 2 : acc) + 1
            for (m = 1; m <= n; m++) {
                for (r = 0; r < 4; r++)
                    printf "{\"type\":\"coll\",\"ts\":%.6f,\"rank\":%d," \
                        "\"op\":\"%s\",\"comm\":\"%s\",\"nranks\":4," \
                        "\"bytes\":%d,\"dur\":0.01}\n",
                        1700000000.2 + at + 0.0001 * ((i * 7 + r) % 5), r,
                        m < n ? "all_gather" : "all_reduce",
                        m < n ? "0xa1" : "0xb2", m < n ? 1048576 : 8388608
                at += 0.21
            }
        }
    }'
}

@test "another loop of calls is no onset" {
    calls 4 >colls.jsonl
    # it is longer
    run -0 --separate-stderr skewdetect --iterations colls.jsonl
    [ "$(jq -r 'select(.rank == 1) | .dur * 100 | round' <<<"$output" |
        sort -n | uniq | xargs)" = "63 105" ]
    run -0 --separate-stderr skewdetect --exit-code colls.jsonl
    [ -z "$output" ]
}

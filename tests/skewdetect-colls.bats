#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect-colls.bats - iterations, and who is slow, from calls alone.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# colls SLOW FROM TO FACTOR: coll records of 8 ranks over 160 iterations: four
# micro-batches that wait for each other, then gradients. A rank is slower in
# the iterations from FROM until before TO.
colls() {
    awk -v slow="$1" -v from="$2" -v to="$3" -v factor="$4" 'BEGIN {
        srand(4)
        for (r = 0; r < 8; r++)
            at[r] = 1700000000 + 0.001 * r
        for (i = 1; i <= 160; i++)
            for (m = 1; m <= 5; m++) {
                end = 0
                for (r = 0; r < 8; r++) {
                    w = (m == 1 ? 0.25 : 0.15) * (1 + 0.02 * (rand() - 0.5))
                    if (m < 5 && r == slow && i >= from && i < to)
                        w *= factor
                    if (m == 5)
                        w = 0.02
                    go[r] = at[r] + w
                    if (go[r] > end)
                        end = go[r]
                }
                end += 0.01
                for (r = 0; r < 8; r++) {
                    printf "{\"type\":\"coll\",\"ts\":%.6f,\"rank\":%d," \
                        "\"op\":\"%s\",\"comm\":\"%s\",\"nranks\":8," \
                        "\"seq\":%d,\"bytes\":%d,\"dur\":%.6f}\n", go[r], r,
                        m < 5 ? "all_gather" : "all_reduce",
                        m < 5 ? "0xa1" : "0xb2", m < 5 ? 4 * i + m : i,
                        m < 5 ? 1048576 : 8388608, end - go[r]
                    at[r] = end
                }
            }
    }' >all
    for r in 0 1 2 3 4 5 6 7; do
        grep "\"rank\":$r," all >"rank$r.jsonl"
    done
    rm all
}

@test "a slow rank is found in coll records alone: rank, onset, relief" {
    colls 5 81 121 1.5
    run -0 --separate-stderr skewdetect ./*.jsonl
    [ -z "$stderr" ]
    printf '%s\n' "$output" >events
    run -0 jq -r '[.kind, .scope, .id // "-", .cause] | join(" ")' events
    [ "${lines[0]}" = "onset rank rank=5 compute" ]
    [ "${lines[1]}" = "relief rank rank=5 compute" ]
    [ ${#lines[@]} -eq 2 ]
    # 80 iterations of 0.78 s are behind it, 40 of 1.1 s before the relief
    run -0 jq -s '(.[0].since - 1700000000 | . > 60 and . < 64) and
        (.[1].since - .[0].since | . > 43 and . < 47) and
        (.[0].ts - .[0].since < 6) and
        (.[0].factor | . > 1.4 and . < 1.55)' events
    [ "$output" = true ]
}

@test "a rank that was slow from the start is found by its peers" {
    colls 2 1 999 1.3
    run -0 skewdetect ./*.jsonl
    run -0 jq -r '[.kind, .id] | join(" ")' <<<"$output"
    [ "$output" = "onset rank=2" ]
}

@test "NCCL Inspector's verbose files: the same, with --world" {
    colls 5 80 999 1.5
    mkdir inspector
    for r in 0 1 2 3 4 5 6 7; do
        jq -c '{header: {id: .comm, rank: .rank, n_ranks: .nranks},
            metadata: {hostname: "n\(.rank / 4 | floor)", pid: (100 + .rank)},
            coll_perf: {coll: {all_gather: "AllGather",
                    all_reduce: "AllReduce"}[.op], coll_sn: .seq,
                coll_msg_size_bytes: .bytes,
                coll_exec_time_us: (.dur * 1e6 | round),
                coll_timing_source: "collective_cpu",
                event_trace_ts: {coll_start_ts: (.ts * 1e6 | round)}}}' \
            "rank$r.jsonl" >"inspector/n$r-pid$r.log"
    done
    run -0 --separate-stderr skewdetect -q --world 8 -f jsonl inspector/
    [ -z "$stderr" ]
    [ "$(field '.kind == "onset" and .scope == "rank"' .rank <<<"$output")" = 5 ]
    run -0 skewdetect -q --world 8 --iterations inspector/
    [ "$(jq -s 'map(.rank) | unique | length' <<<"$output")" -eq 8 ]
    # without, no rank is known
    run -2 --separate-stderr skewdetect -q -f jsonl inspector/
    [[ $stderr == *rank* ]]
}

@test "a healthy job has no events" {
    colls 9 1 2 1
    run -0 --separate-stderr skewdetect --exit-code ./*.jsonl
    [ -z "$output" ]
    [ -z "$stderr" ]
}

@test "--iterations: step records that a pipe can judge" {
    colls 5 81 121 1.5
    run -0 --separate-stderr skewdetect --iterations ./*.jsonl
    [ -z "$stderr" ]
    printf '%s\n' "$output" >steps
    # nearly all of 8 x 160, each rank's numbers without a gap
    run -0 jq -s 'length > 1260 and length <= 1280 and
        all(.[]; .type == "step" and .busy < .dur) and
        (group_by(.rank) | length == 8 and
            all(.[]; [.[].step] == [range(.[0].step; .[0].step + length)]))' \
        steps
    [ "$output" = true ]
    # the same time has the same number on all ranks
    run -0 jq -s 'group_by(.step) |
        all(.[]; (map(.ts) | max - min) < 0.5)' steps
    [ "$output" = true ]
    skewdetect ./*.jsonl | jq -c '[.kind, .id, .step, .cause]' >direct
    run -0 bash -c "skewdetect steps | jq -c '[.kind, .id, .step, .cause]'"
    [ "$output" = "$(cat direct)" ]
    run -0 skewdetect --iterations --columns rank,step,dur,busy ./*.jsonl
    [ "${lines[0]}" = "rank	step	dur	busy" ]
}

@test "-v says the period" {
    colls 9 1 2 1
    run -0 --separate-stderr skewdetect -v ./*.jsonl
    [[ $stderr == *"6400 calls, 0 of them of no known rank"* ]]
    [[ $stderr == *"an iteration is 5 to 5 calls, 1 patterns of 8 ranks"* ]]
    run -0 skewdetect -f text ./*.jsonl
    [[ $output == *"0 probe records and 1"???" iterations" ]]
}

@test "step records come before iterations: a job that tells both" {
    colls 5 81 121 1.5
    for r in 0 1 2 3 4 5 6 7; do
        steps $r 160 20 | sed 's/"ts":\([0-9]*\)/"ts":\1/' >"steps$r.jsonl"
    done
    run -0 --separate-stderr skewdetect ./*.jsonl
    [ -z "$output" ]
}

@test "calls that tell no rank, have no times, or do not repeat: status 2" {
    colls 9 1 2 1
    jq -c 'del(.rank)' rank0.jsonl >a
    run -2 skewdetect a
    [[ $output == *"cannot find iterations: no coll or p2p record tells its rank"* ]]
    jq -c 'del(.ts)' rank0.jsonl >b
    run -2 skewdetect b
    [[ $output == *"the calls of no rank repeat, or they have no times"* ]]
    head -n 7 rank0.jsonl >c
    run -2 skewdetect c
    [[ $output == *"the calls of no rank repeat"* ]]
    run -2 skewdetect --iterations < <(steps 0 20 20)
    [[ $output == *"no coll or p2p record in the input"* ]]
    run -2 skewdetect --iterations -f text rank0.jsonl
    [[ $output == *"cannot use --iterations with text"* ]]
    run -2 skewdetect --iterations --tee rank0.jsonl
    [[ $output == *"cannot use --tee with --iterations"* ]]
}

@test "another process of a rank: its pattern is known at once" {
    colls 9 1 2 1
    jq -c '.pid = 10' rank0.jsonl >a
    # new communicators, an hour later
    jq -c '.pid = 20 | .ts += 3600 | .comm = "0xff" + .comm[3:]' rank0.jsonl |
        head -n 60 >b
    run -0 skewdetect --iterations a b
    run -0 jq -s 'map(select(.ts > 1700003600)) | length' <<<"$output"
    [ "$output" -ge 9 ]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect-hang.bats - who has stopped: in files, and while a live input is
# silent.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# job FROM N [RANK STEP]: steps of 1 s of 8 ranks, two on a host, from a time on;
# a rank tells nothing from a step on.
job() {
    awk -v t0="$1" -v n="$2" -v gone="${3:--1}" -v at="${4:-0}" 'BEGIN {
        for (i = 0; i < n; i++)
            for (r = 0; r < 8; r++)
                if (r != gone || i < at)
                    printf "{\"type\":\"step\",\"ts\":%.3f,\"job\":\"lm\"," \
                        "\"host\":\"n%d\",\"rank\":%d,\"step\":%d," \
                        "\"dur\":1,\"busy\":0.8,\"mb\":4}\n",
                        t0 + i + r / 1000, r / 2, r, i
    }'
}

# calls FROM N RANK: as job, with calls of all, which are told when they are
# over; then gauges of each rank for 10 minutes. In the end a rank has told one
# call less than its peers.
calls() {
    awk -v t0="$1" -v n="$2" -v gone="$3" 'BEGIN {
        for (i = 0; i < n; i++)
            for (r = 0; r < 8; r++)
                if (r != gone || i < n - 1)
                    printf "{\"type\":\"coll\",\"ts\":%.3f,\"rank\":%d," \
                        "\"op\":\"all_reduce\",\"comm\":\"dp-0\"," \
                        "\"nranks\":8,\"seq\":%d,\"bytes\":4096," \
                        "\"dur\":0.1}\n", t0 + i + r / 1000, r, i
        for (i = 1; i <= 20; i++)
            for (r = 0; r < 8; r++)
                printf "{\"type\":\"gauge\",\"ts\":%.3f,\"rank\":%d," \
                    "\"name\":\"gpu_util\",\"value\":1,\"unit\":\"1\"}\n",
                    t0 + n + 30 * i, r
    }'
}

@test "a rank that is behind while its peers wait is missing" {
    calls 1700000000 119 3 >in
    run -0 skewdetect -q in
    [ "$(jq -r '[.kind, .scope, .id, .cause, .p] | @tsv' <<<"$output")" = \
        $'missing\trank\trank=3\thang\t0.95' ]
    [[ $output == *'last seq 117 of comm dp-0, its 7 peers are at 118'* ]]
    [[ $output == *'its other records go on'* ]]
    # it is since its last sign of progress, and found after 5 minutes
    jq -e '.since > 1700000117 and .since < 1700000118 and
        .ts - .since > 300 and .ts - .since < 345' <<<"$output"
    run -1 skewdetect -q --exit-code in
}

@test "--hang: the least silence that counts" {
    calls 1700000000 119 3 >in
    run -0 skewdetect -q --hang 1m in
    jq -e '.ts - .since > 60 and .ts - .since < 105' <<<"$output"
    run -0 skewdetect -q --hang 20m in
    [ -z "$output" ]
    run -0 skewdetect -q --hang 0 in
    [ -z "$output" ]
    run -2 skewdetect --hang soon in
}

@test "a file that ends is no hang" {
    job 1700000000 100 >in
    run -0 skewdetect -q in
    [ -z "$output" ]
    # the job ends, and its nodes tell on
    calls 1700000000 119 -1 | jq -c 'if .type == "gauge" then del(.rank) +
        {host: "n0"} else . end' >in
    run -0 skewdetect -q in
    [ -z "$output" ]
}

@test "a dead input is told from a dead rank" {
    job 1700000000 600 3 100 >in
    run -0 skewdetect -q in
    [ "$(jq -r '[.kind, .id, .host, .cause, .step] | @tsv' <<<"$output")" = \
        $'missing\trank=3\tn1\tinput\t99' ]
    [[ $output == *'telemetry of rank=3 ended at step 99, its peers go on'* ]]
    [[ $output == *'the input is dead, not the rank'* ]]
    # of a file for each rank, and too short for the patience
    for r in 0 1 2 3 4 5 6 7; do
        job 1700000000 150 3 100 | jq -c "select(.rank == $r)" >"rank$r"
    done
    run -0 skewdetect -q rank?
    [ "$(jq -r '[.kind, .id, .cause] | @tsv' <<<"$output")" = \
        $'missing\trank=3\tinput' ]
    # both ranks of a host are one finding
    job 1700000000 600 3 100 | jq -c 'select(.rank != 2 or .step < 100)' >in
    run -0 skewdetect -q in
    [ "$(jq -r '[.kind, .scope, .id, .rank, .cause] | @tsv' <<<"$output")" = \
        $'missing\thost\thost=n1\t\tinput' ]
}

@test "who is missing is in the text, and in the list at the end" {
    calls 1700000000 119 3 >in
    run -0 skewdetect -f text in
    [[ $output == *'MISSING  rank=3 since'* ]]
    [[ $output == *'still missing: rank=3 since'* ]]
    [[ $output == *', 1 missing'* ]]
}

@test "a relief has the same eid" {
    {
        calls 1700000000 119 3
        calls 1700000000 800 -1 | jq -c 'select(.type == "coll" and .seq > 730)'
    } >in
    run -0 skewdetect -q in
    [ "$(jq -r .kind <<<"$output" | tr '\n' ' ')" = 'missing relief ' ]
    [ "$(jq -r .eid <<<"$output" | sort -u | wc -l)" -eq 1 ]
}

# until PATTERN FILE: wait for a line, 20 s at most.
until_there() {
    local i
    for ((i = 0; i < 200; i++)); do
        if grep -q "$1" "$2"; then
            return 0
        fi
        sleep 0.1
    done
    return 1
}

@test "live: silence on a pipe that stays open is noticed" {
    mkfifo pipe
    skewdetect --hang 2s <pipe >out &
    local pid=$!
    exec 9>pipe
    job $(($(date +%s) - 21)) 20 3 19 >rows
    cat rows >&9 # at once
    until_there missing out
    # nobody has closed the pipe: the event was written meanwhile
    kill -0 "$pid"
    [ "$(jq -r '[.id, .cause] | @tsv' out)" = $'rank=3\thang' ]
    [[ $(<out) == *'last step 18, 7 of 8 ranks are at 19'* ]]
    # it goes on
    job $(($(date +%s) - 21)) 22 | jq -c 'select(.step >= 19)' >rows
    cat rows >&9
    until_there relief out
    exec 9>&-
    wait "$pid"
}

@test "live: all that fall silent alike hang, or have ended" {
    mkfifo pipe
    skewdetect --hang 2s pipe >out &
    local pid=$!
    exec 9>pipe
    job $(($(date +%s) - 21)) 20 >rows
    cat rows >&9
    until_there missing out
    kill -0 "$pid"
    [ "$(jq -r '[.scope, .job, .cause, .p] | @tsv' out)" = $'job\tlm\tsilent\t0.5' ]
    exec 9>&-
    wait "$pid"
}

@test "live: an old file through a slow pipe is not live" {
    { job 1700000000 20 3 19; sleep 4; } | skewdetect --hang 1s >out
    [ ! -s out ]
}

# entry SEQ STATE: one of a dump of Flight Recorder.
entry() {
    printf '{"collective_seq_id":%d,"input_sizes":[[10]],"input_dtypes":["Float"],"is_p2p":false,"p2p_seq_id":0,"process_group":["0","default_pg"],"profiling_name":"nccl:all_reduce","state":"%s","time_created_ns":%d000000000}' \
        "$1" "$2" $((1700000000 + $1))
}

# dump LAST STATE: a dump whose last call is in a state.
dump() {
    local i
    printf '{"version":"2.10","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 3]"}},"entries":['
    for ((i = $1 - 5; i < $1; i++)); do
        entry "$i" completed
        printf ','
    done
    entry "$1" "$2"
    printf ']}\n'
}

@test "dumps of Flight Recorder name the rank that did not come" {
    for r in 0 1 3; do
        dump 41 scheduled >"nccl_trace_rank_$r"
    done
    dump 40 completed >nccl_trace_rank_2
    run -0 skewdetect -q nccl_trace_rank_*
    [ "$(jq -r '[.kind, .id, .cause, .p] | @tsv' <<<"$output")" = \
        $'missing\trank=2\thang\t0.8' ]
    [[ $output == *'last seq 40 of comm 0, its 3 peers are at 41'* ]]
    # one that has left no dump is said
    rm nccl_trace_rank_3
    run -0 skewdetect -q nccl_trace_rank_*
    [[ $output == *'its 2 peers are at 41; 1 of its 4 ranks tell nothing'* ]]
    # all have come: nobody is to blame
    dump 41 scheduled >nccl_trace_rank_2
    run -2 skewdetect -q nccl_trace_rank_*
    [[ $output != *missing* ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect-links.bats - slow links and slow ends from measurements of pairs.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# ring N ROUND [SRC DST FACTOR]: the passes of a validation, both ways, in B/s;
# DST "-": all links of SRC.
ring() {
    awk -v n="$1" -v round="$2" -v src="${3:--}" -v dst="${4:--}" -v f="${5:-1}" '
        function one(i, j,   v) {
            v = 10e9 * (1 + 0.003 * ((i * 7 + j * 3 + round) % 5))
            if ((i == src && j == dst) || (j == src && i == dst) ||
                (dst == "-" && (i == src || j == src)))
                v /= f
            printf "{\"type\":\"link\",\"ts\":%.3f,\"src\":\"n%d\",\"dst\":\"n%d\",\"transport\":\"ib\",\"bytes\":16777216,\"value\":%.0f}\n",
                1000 + 100 * round + t++, i, j, v
        }
        BEGIN {
            for (i = 1; i <= n; i++) { one(i, i % n + 1); one(i % n + 1, i) }
        }'
}

who() {
    jq -r '[.kind, .scope, .id, .cause, (.factor * 10 | round / 10)] | join(" ")'
}

@test "a link that became slow is told from its ends, and its relief" {
    {
        ring 6 0
        ring 6 1 2 3 1.6
        ring 6 2 2 3 1.6
        ring 6 3
    } >in.jsonl
    run -0 --separate-stderr skewdetect in.jsonl
    [ -z "$stderr" ]
    run -0 who <<<"$output"
    [ "$output" = "onset link src=n2,dst=n3 link 1.6
relief link src=n2,dst=n3 link 1" ]
}

@test "an end that became slow: its host, with the figures and how sure" {
    {
        ring 6 0
        ring 6 1 4 - 1.5
    } | skewdetect >out
    run -0 who <out
    [ "$output" = "onset host host=n4 network 1.5" ]
    run -0 jq -r '[.host, .eid, .evidence] | join("|")' out
    [[ $output == "n4|host=n4/links@"*"|4 of 4 measurements from and to it "*" GB/s, their own past 10.1 GB/s" ]]
    jq -e '.p > 0.95 and .p <= 1 and .since <= .ts' out
}

@test "what the pairs cannot tell is said, and lowers p" {
    # n3 is measured with n2 only
    for round in 0 1; do
        for pair in '1 2' '2 1' '2 3' '3 2' '1 4' '4 1' '2 4' '4 2'; do
            v=10000000000
            [[ $round$pair != 1*3* ]] || v=5000000000
            printf '{"type":"link","ts":%d,"src":"n%s","dst":"n%s","value":%d}\n' \
                $((round + 1)) "${pair% *}" "${pair#* }" $v
        done
    done | skewdetect >out
    run -0 who <out
    [ "$output" = "onset link src=n2,dst=n3 link 2" ]
    run -0 jq -r .evidence out
    [[ $output == *"; the link n2-n3, or n3: the pairs cannot tell" ]]
    jq -e '.p <= 0.5 and .p > 0.4' out
}

@test "healthy links of one machine that differ by 16.3 to 12.8 ms are nothing" {
    for i in 0 1 2 3; do
        for j in 0 1 2 3; do
            [ $i != $j ] || continue
            ms=12.8
            [ $((i / 2)) = $((j / 2)) ] || ms=16.3
            printf '{"type":"link","ts":1,"src":"n1/%d","dst":"n1/%d","transport":"pcie","bytes":16777216,"value":%s}\n' \
                $i $j "$(awk -v ms=$ms 'BEGIN { printf "%.0f", 16777216 / ms * 1000 }')"
        done
    done >in.jsonl
    run -0 --separate-stderr skewdetect -f text in.jsonl
    [ "$output" = "0 onsets, 0 reliefs, 0 spikes in 0 step and 0 probe records and 12 link records" ]
}

@test "slow from the first round: against links of the kind" {
    ring 8 0 5 - 2 >in.jsonl
    run -1 skewdetect --exit-code -f text in.jsonl
    [[ ${lines[0]} == *"ONSET   host=n5 2.0"*"x since "*", sure 0.9"* ]]
    [[ $output == *"network: 4 of 4 measurements from and to it "*" GB/s, links of the"*"kind "* ]]
    [[ $output == *"still slow: host=n5 2.0"* ]]
}

@test "all links slower than before: one finding, of the job" {
    {
        ring 5 0
        ring 5 1
        ring 5 2 | jq -c '.value /= 1.5'
    } | skewdetect >out
    run -0 who <out
    [ "$output" = "onset job  network 1.5" ]
}

@test "a bad link is named with its line" {
    printf '%s\n' '{"type":"link","ts":1,"src":"n1","dst":"n1","value":1}' >in.jsonl
    run -2 --separate-stderr skewdetect in.jsonl
    [[ $stderr == *"in.jsonl:1: src and dst are not two ends"* ]]
}

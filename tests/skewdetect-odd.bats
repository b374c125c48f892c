#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect-odd.bats - many at a time, and values that no cluster has.

load lib

setup() { cd "$BATS_TEST_TMPDIR" || return; }

# ranks N STEPS CONDITION: steps of N ranks, 8 to a host; busy is 1.5 times as
# long where the condition of awk on r and s holds.
ranks() {
    awk -v n="$1" -v steps="$2" 'BEGIN { for (s = 0; s < steps; s++)
        for (r = 0; r < n; r++) {
            slow = ('"$3"') ? 1.5 : 1
            printf "{\"type\":\"step\",\"ts\":%d,\"host\":\"n%d\",\"rank\":%d,\"dp\":%d,\"pp\":0,\"tp\":%d,\"step\":%d,\"dur\":1.7,\"busy\":%.4f,\"mb\":8}\n",
                1700000000 + 2 * s, r / 8, r, r / 8, r % 8, s,
                slow * (1 + 0.002 * ((s * 7 + r * 13) % 11))
        } }'
}

@test "many ranks that have nothing in common: an episode for each" {
    ranks 2000 24 's >= 12 && r % 10 == int(r / 10) % 7' >in
    run -0 --separate-stderr skewdetect in
    run -0 jq -r '[.kind, .scope, .step] | join(" ")' <<<"$output"
    want=$(ranks 2000 1 'r % 10 == int(r / 10) % 7' | jq 'select(.busy > 1.4)' | jq -s length)
    [ "$want" -gt 100 ]
    run -0 sh -c 'sort | uniq -c | tr -s " "' <<<"$output"
    [ "$output" = " $want onset rank 12" ]
}

@test "a host is found among many single ranks" {
    ranks 2000 24 's >= 12 && (int(r / 8) == 30 || r % 100 == 7)' >in
    run -0 --separate-stderr skewdetect in
    run -0 jq -r 'select(.scope == "host") | [.kind, .id] | join(" ")' <<<"$output"
    [ "$output" = "onset host=n30" ]
}

@test "ten thousand jobs in one stream" {
    awk 'BEGIN { for (s = 0; s < 16; s++) for (j = 0; j < 10000; j++)
        printf "{\"type\":\"step\",\"ts\":%d,\"job\":\"j%d\",\"rank\":0,\"step\":%d,\"dur\":2,\"busy\":%d,\"mb\":8}\n",
            1700000000 + 2 * s, j, s, (s >= 8 && j % 1000 == 1) ? 2 : 1 }' >in
    run -0 --separate-stderr skewdetect in
    [ -z "$stderr" ]
    run -0 jq -r '[.kind, .job, .scope, (.factor | round)] | map(tostring) | join(" ")' <<<"$output"
    for j in 1 1001 2001 9001; do
        grep -qx "onset j$j rank 2" <<<"$output"
    done
    [ ${#lines[@]} -eq 10 ]
}

@test "values at the ends of what a number holds: factors end at 1e100" {
    for t in 1 2 3; do
        for i in 1 2 3 4; do
            for j in 1 2 3 4; do
                [ $i = $j ] || echo "$t $i $j"
            done
        done
    done | jq -R -c 'split(" ") | {type: "link", ts: (.[0] | tonumber),
        src: "n\(.[1])", dst: "n\(.[2])",
        value: (if .[0] == "3" and .[1] == "3" and .[2] == "4" then 1e-300
                else 1e300 end)}' >in
    run -0 --separate-stderr skewdetect --state s in
    [ -z "$stderr" ]
    skewdetect in >whole
    [[ $(<whole) != *inf* ]]
    run -0 jq -r '[.kind, .id, .factor] | map(tostring) | join(" ")' whole
    [ "$output" = "onset src=n3,dst=n4 1e+100" ]
}

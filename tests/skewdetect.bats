#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect.bats - detection end to end, formats, options. Bad input, which
# is the same for every program that reads records, is in base.bats.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# megatron FILE: iteration times in ms as step records of a job.
megatron() {
    awk '!/^#/ {
        printf "{\"type\":\"step\",\"ts\":%.4f,\"step\":%d,\"dur\":%.4f}\n",
            1700000000 + t, $1, $2 / 1000
        t += $2 / 1000
    }' "$1"
}

# merged FILE...: records of several files in the order of ts.
merged() {
    jq -c . "$@" | jq -s -c 'sort_by(.ts)[]'
}

# probes VALUE...: a gemm probe of ranks 0, 1, ... in ms.
probes() {
    local rank=0 v
    for v in "$@"; do
        printf '{"type":"probe","ts":%d,"rank":%d,"test":"gemm","dtype":"f32","value":%s,"unit":"ms","better":"low"}\n' \
            $((100 + rank)) "$rank" "$v"
        rank=$((rank + 1))
    done
}

@test "a real job: exactly the 18 labelled onsets and reliefs, in time" {
    need_testdata
    megatron "$EVENPACE_TESTDATA/megatron-1f1b.tsv" >job.jsonl
    run -0 --separate-stderr skewdetect --tee -f jsonl job.jsonl
    [ -z "$stderr" ]
    # kind, step it began, last step read before the event came
    printf '%s\n' "$output" | jq -r '
        if .type == "step" then "read \(.step)"
        else "\(.kind) \(.step)" end' |
        awk '$1 == "read" { at = $2; next } { print $1, $2, at }' >found
    grep -v '^#' "$EVENPACE_TESTDATA/megatron-1f1b.labels.tsv" |
        awk '$2 != "crash" { print $2, $1 }' >labels
    [ "$(wc -l <labels)" -eq 18 ]
    grep -v '^spike' found >changes
    cat changes
    # same kinds in the same order; since and emission near the label
    run -0 diff <(cut -d' ' -f1 labels) <(cut -d' ' -f1 changes)
    run -0 awk 'NR == FNR { label[NR] = $2; next }
        $2 - label[FNR] < 0 || $2 - label[FNR] > 3 { print "since", $0 }
        $3 - label[FNR] > 5 { print "late", $0 }' labels changes
    [ -z "$output" ]
    # the crash at 1031 is a spike; the cold start is nothing
    grep -q '^spike 1031 ' found
    run -1 grep -q '^[a-z]* [12] ' found
}

@test "a rank that becomes slow, and recovers: one onset, one relief" {
    {
        steps 0 120 20
        steps 1 40 20
        steps 1 40 30 41
        steps 1 40 20 81
    } | jq -s -c 'sort_by(.ts)[]' >in.jsonl
    # the ranks wait for each other: both have the longer dur
    jq -s -c '(map({key: (.step | tostring), value: .dur}) | group_by(.key) |
        map({key: .[0].key, value: (map(.value) | max)}) | from_entries) as $d |
        .[] | .dur = $d[.step | tostring]' in.jsonl >sync.jsonl
    run -0 --separate-stderr skewdetect sync.jsonl
    [ -z "$stderr" ]
    run -0 jq -r '[.kind, .scope, .id // "-", .step, .cause] | join(" ")' \
        <<<"$output"
    [ "${lines[0]}" = "onset rank rank=1 41 compute" ]
    [ "${lines[1]}" = "relief rank rank=1 81 compute" ]
    [ ${#lines[@]} -eq 2 ]
    run -0 bash -c "skewdetect sync.jsonl | jq -s '
        .[0].factor > 1.48 and .[0].factor < 1.52 and
        .[0].eid == .[1].eid and .[0].eid == \"rank=1@41\" and
        (.[0].evidence | contains(\"the job 1.\")) and
        .[1].gpu_hours > 0 and .[0].p > 0.9'"
    [ "$output" = true ]
}

@test "hours lost are the slow steps' excess times the ranks" {
    # 40 steps of 10 ms excess, 2 ranks: 0.8 s = 2.22e-4 h
    {
        steps 0 120 20
        steps 1 40 20
        steps 1 40 30 41
        steps 1 40 20 81
    } | jq -s -c 'sort_by(.ts)[]' >in.jsonl
    run -0 bash -c "skewdetect in.jsonl |
        jq 'select(.kind == \"relief\") | .gpu_hours'"
    run -0 awk -v h="$output" 'BEGIN { x = h / 2.222e-4; print x
        exit !(x > 0.85 && x < 1.05) }'
}

@test "less CPU time on the slow rank is named as the cause" {
    steps 0 80 20 >r0
    {
        steps 1 40 20
        steps 1 40 40 41
    } >r1
    awk 'BEGIN { for (i = 1; i <= 80; i++)
        printf "{\"type\":\"gauge\",\"ts\":%.6f,\"rank\":1,\"name\":\"cpu_share\",\"value\":%.2f,\"unit\":\"1\"}\n",
            1700000000 + i * 0.1, (i > 40 ? 0.5 : 0.99) }' >g1
    run -0 skewdetect --no-spikes g1 r0 r1
    run -0 jq -r 'select(.scope == "rank") | [.cause, .evidence] | join("; ")' \
        <<<"$output"
    [[ $output == "cpu-contention; "*"share of CPU time 0.99 -> 0.50, the job "* ]]
}

@test "what all ranks do is the job's, not the ranks'" {
    for r in 0 1 2 3; do
        steps $r 40 20 >r$r
        steps $r 40 30 41 >>r$r
    done
    run -0 skewdetect r0 r1 r2 r3
    run -0 jq -r '[.kind, .scope, .step, .cause] | join(" ")' <<<"$output"
    [ "$output" = "onset job 41 all-ranks" ]
}

@test "a straggler beside many that were slow before it is no part of them" {
    for r in 0 1 2 3; do
        steps $r 120 20 >r$r
    done
    for r in 4 5 6 7; do
        steps $r 40 20 >r$r
        steps $r 80 26.6 41 >>r$r
    done
    {
        steps 1 80 20
        steps 1 40 23.6 81
    } >r1
    run -0 bash -c "skewdetect r? | jq -r 'select(.scope == \"rank\") |
        [.kind, .rank, .step] | join(\" \")'"
    [ "$output" = "onset 4 41
onset 5 41
onset 6 41
onset 7 41
onset 1 81" ]
}

@test "steps that get longer while no rank works longer: communication" {
    for r in 0 1 2; do
        steps $r 80 20 | jq -c 'if .step > 40 then .dur *= 2 else . end' >r$r
    done
    run -0 skewdetect r0 r1 r2
    run -0 jq -r '[.kind, .scope, .step, .cause] | join(" ")' <<<"$output"
    [ "$output" = "onset job 41 communication" ]
}

@test "a rank that was slow from its first step is found by its peers" {
    for r in 0 1 2 3; do
        steps $r 64 $((r == 2 ? 26 : 20)) >r$r
    done
    run -0 skewdetect r0 r1 r2 r3
    run -0 jq -r '[.kind, .id, .step, (.factor * 10 | round), .p < 0.81] |
        map(tostring) | join(" ")' <<<"$output"
    [ "$output" = "onset rank=2 1 13 true" ]
}

@test "ranks that differ by half a percent are no stragglers" {
    # the negative control of 4 devices: compute 0.2 to 0.6 % longer
    steps 0 64 20 >r0
    steps 1 64 20.04 >r1
    steps 2 64 20.12 >r2
    steps 3 64 20.08 >r3
    run -0 --separate-stderr skewdetect r0 r1 r2 r3
    [ -z "$output" ]
    [ -z "$stderr" ]
}

@test "new shares are no change: busy grows with mb" {
    steps 0 80 20 | jq -c 'if .step > 40 then .mb = 8 | .busy *= 2 else . end' >r0
    steps 1 80 20 >r1
    run -0 bash -c "skewdetect r0 r1 | jq -c 'select(.scope == \"rank\")'"
    [ -z "$output" ]
}

@test "probes: the known case names rank 1" {
    run -0 skewdetect < <(probes 65.5 515.5 65.7 65.7)
    run -0 jq -r '[.kind, .scope, .id, .cause, (.factor * 100 | round)] |
        map(tostring) | join(" ")' <<<"$output"
    [ "$output" = "onset rank rank=1 compute 785" ]
}

@test "probes: with two or three peers it says how sure it can be" {
    run -0 skewdetect < <(probes 65 130)
    run -0 jq -r '[.id, .p <= 0.6667, .evidence] | map(tostring) | join(" ")' \
        <<<"$output"
    [[ $output == "rank=1 true 2 peers: the faster may be the odd one"* ]]
    run -0 skewdetect < <(probes 65 130 66)
    run -0 jq -r '[.id, .p <= 0.75, .p > 0.7] | map(tostring) | join(" ")' \
        <<<"$output"
    [ "$output" = "rank=1 true true" ]
}

@test "probes: each round is compared; a relief ends the episode" {
    { probes 65 130 66 64; probes 65 130 66 64; probes 65 65 66 64; } >in
    run -0 skewdetect in
    run -0 jq -r '[.kind, .id] | join(" ")' <<<"$output"
    [ "${lines[0]}" = "onset rank=1" ]
    [ "${lines[1]}" = "relief rank=1" ]
    [ ${#lines[@]} -eq 2 ]
}

@test "probes: different tests, sizes and directions are not compared" {
    run -0 skewdetect <<'EOF'
{"type":"probe","ts":1,"host":"n1","test":"gemm","size":512,"value":100,"unit":"FLOP/s","better":"high"}
{"type":"probe","ts":1,"host":"n2","test":"gemm","size":1024,"value":200,"unit":"FLOP/s","better":"high"}
{"type":"probe","ts":1,"host":"n3","test":"membw:copy","value":300,"unit":"B/s","better":"high"}
EOF
    [ -z "$output" ]
}

@test "probes: hosts and gpus are devices; high is better" {
    for h in n1 n2 n3 n4; do
        printf '{"type":"probe","ts":1,"host":"%s","test":"membw:copy","value":%s,"unit":"B/s","better":"high"}\n' \
            $h "$([ $h = n3 ] && echo 1e10 || echo 2e10)"
        printf '{"type":"probe","ts":1,"host":"%s","gpu":"GPU-%s","test":"gemm","value":%s,"unit":"FLOP/s","better":"high"}\n' \
            $h $h "$([ $h = n2 ] && echo 1e12 || echo 2e12)"
    done >in
    run -0 skewdetect in
    run -0 jq -r '[.scope, .id, (.factor * 100 | round) / 100, .cause] |
        map(tostring) | join(" ")' <<<"$output"
    [ "${lines[0]}" = "host host=n3 2 memory" ]
    [ "${lines[1]}" = "gpu gpu=GPU-n2 2 compute" ]
}

@test "probes: a device is compared with its own past too" {
    run -0 skewdetect <<'EOF'
{"type":"probe","ts":1,"host":"n1","test":"gemm","value":80,"unit":"FLOP/s","better":"high","ref_own":100}
EOF
    run -0 jq -r '[.id, .factor] | map(tostring) | join(" ")' <<<"$output"
    [ "$output" = "host=n1 1.25" ]
}

@test "--exit-code: 1 with a straggler, 0 without" {
    run -1 skewdetect --exit-code < <(probes 65 515 66 66)
    run -0 skewdetect --exit-code < <(probes 65 65 66 66)
    run -0 skewdetect < <(probes 65 515 66 66)
}

@test "--tee passes every record through and inserts the events" {
    { probes 65 515 66 66; echo '{"type":"sparkle","x":[1, 2]}'; } >in
    run -0 skewdetect --tee in
    run -0 diff in <(grep -v '"type":"event"' <<<"$output")
    run -2 --separate-stderr skewdetect --tee -f text in
    [[ $stderr == "skewdetect: cannot use --tee with"* ]]
}

@test "an event comes out while the input is still open" {
    mkfifo in
    skewdetect --tee -f jsonl in >out &
    local pid=$! i
    exec {fd}>in
    { steps 1 40 20; steps 1 10 40 41; } >&"$fd"
    for ((i = 0; i < 100; i++)); do
        grep -q '"kind":"onset"' out && break
        sleep 0.1 # polled: the writer keeps the input open
    done
    grep -q '"kind":"onset"' out
    exec {fd}>&-
    wait $pid
}

@test "-f text fits 80 columns and reads like a sentence" {
    { steps 0 80 20; } >r0
    { steps 1 40 20; steps 1 40 42 41; } >r1
    run -0 env TZ=UTC skewdetect -f text r0 r1
    [[ ${lines[0]} == "22:13:24  ONSET   rank=1 2.10x since step 41, sure "* ]]
    [[ ${lines[1]} == "          compute: busy per micro-batch 5 ms -> 10.5 ms, the job 2.05x" ]]
    [[ ${lines[-1]} == "1 onset, 0 reliefs, 0 spikes in 160 step and 0 probe records" ]]
    run -0 awk 'length > 80' <<<"$output"
    [ -z "$output" ]
}

@test "-f tsv has a header and one row per event" {
    run -0 skewdetect -f tsv < <(probes 65 515 66 66)
    [ ${#lines[@]} -eq 2 ]
    [[ ${lines[0]} == "type	ts	job	host	pid	rank	"* ]]
    [[ ${lines[1]} == "event	101				1	"* ]]
}

@test "-o writes the file whole" {
    run -0 --separate-stderr skewdetect -f jsonl -o out < <(probes 65 515 66 66)
    [ -z "$output" ]
    [ "$(wc -l <out)" -eq 1 ]
    run -2 --separate-stderr skewdetect -o /nonexistent/x < <(probes 1 2)
    [ "$stderr" = "skewdetect: cannot create /nonexistent/x: No such file or directory" ]
}

@test "--min-change, --confirm, --no-spikes, --window" {
    { steps 1 40 20; steps 1 40 23 41; } >in
    run -0 bash -c "skewdetect in | jq -r .id"
    [ "$output" = rank=1 ]
    run -0 skewdetect --min-change 0.3 in
    [ -z "$output" ]
    { steps 1 40 20; steps 1 2 60 41; steps 1 40 20 43; } >in
    run -0 bash -c "skewdetect in | jq -r .kind | sort -u"
    [ "$output" = spike ]
    run -0 skewdetect --no-spikes in
    [ -z "$output" ]
    { steps 1 40 20; steps 1 5 60 41; steps 1 40 20 46; } >in
    run -0 bash -c "skewdetect --confirm 8 in | jq -r .kind | sort -u"
    [ "$output" = spike ]
    run -2 --separate-stderr skewdetect --window 3 in
    [ "$stderr" = "skewdetect: cannot use '3' for --window: not in 4..64" ]
}

@test "a restart: step numbers fall, time goes on; no false alarm" {
    steps 1 40 20 >in
    steps 1 40 20 | jq -c '.ts += 100 | if .step < 3 then .busy *= 9 else . end' >>in
    run -0 --separate-stderr skewdetect in
    [ -z "$output" ]
    [ -z "$stderr" ]
}

@test "a thousand ranks" {
    awk 'BEGIN { for (s = 1; s <= 60; s++) for (r = 0; r < 1000; r++) {
        b = 0.02 * ((r == 617 && s > 30) ? 1.5 : 1) * (1 + 0.001 * ((s * 7 + r) % 5))
        printf "{\"type\":\"step\",\"ts\":%.3f,\"rank\":%d,\"step\":%d,\"dur\":%.5f,\"busy\":%.5f,\"mb\":4}\n",
            s, r, s, (s > 30 ? 0.031 : 0.021), b } }' >in
    run -0 skewdetect in
    run -0 jq -r '[.kind, .id // "job", .step, .cause] | join(" ")' <<<"$output"
    [ "${lines[0]}" = "onset rank=617 31 compute" ]
    [ ${#lines[@]} -eq 1 ]
}

@test "-f text: what is still slow comes last, the slowest first" {
    # ranks 10..25 of 40 are slow from step 41 on, by 1.40x to 1.70x; the last
    # four of them recover at 61
    awk 'BEGIN { for (s = 1; s <= 80; s++) for (r = 0; r < 40; r++) {
        slow = 1
        if (r >= 10 && r < 26 && s > 40 && (r < 22 || s < 61))
            slow = 1.2 + r / 50
        printf "{\"type\":\"step\",\"ts\":%.3f,\"rank\":%d,\"step\":%d,\"dur\":0.2,\"busy\":%.5f,\"mb\":4}\n",
            s + r / 1000, r, s, 0.1 * slow * (1 + 0.001 * ((s * 7 + r) % 5)) } }' >in
    run -0 skewdetect -f text in
    run -0 grep -A 99 '^still' <<<"$output"
    [ "${lines[0]}" = "still slow: rank=21 1.62x since step 41" ]
    [ "${lines[1]}" = "still slow: rank=20 1.60x since step 41" ]
    [ "${lines[9]}" = "still slow: rank=12 1.44x since step 41" ]
    [ "${lines[10]}" = "... and 2 more" ]
    [ "${lines[11]}" = "16 onsets, 4 reliefs, 0 spikes in 3200 step and 0 probe records" ]
    [ ${#lines[@]} -eq 12 ]
    run -0 skewdetect -q -f text in
    run -1 grep still <<<"$output"
    run -0 skewdetect in
    run -1 grep still <<<"$output"
    # nothing is
    run -0 skewdetect -f text < <(probes 65 66 65 66)
    [ "$output" = "0 onsets, 0 reliefs, 0 spikes in 0 step and 4 probe records" ]
}

@test "-f text: names of jobs, odd factors, and control characters" {
    {
        steps 1 40 20
        steps 1 40 42 41
    } | jq -c '.job = "lm" | .host = "n1"' >r1
    run -0 env TZ=UTC skewdetect -f text r1
    [[ ${lines[0]} == "22:13:24  ONSET   lm/rank=1 (n1) 2.10x since step 41, sure "* ]]
    [ "${lines[2]}" = "still slow: lm/rank=1 (n1) 2.10x since step 41" ]
    for v in 1 2e9 1.01 0.99; do
        printf '{"type":"probe","ts":1,"host":"a\\u001b[%s","test":"g\\u001bm","value":%s,"unit":"ms","better":"low"}\n' "$v" "$v"
    done >in
    run -0 env TZ=UTC skewdetect -f text in
    [ "${lines[0]}" = '00:00:01  ONSET   host=a\x1b[2e9 2e+09x since 00:00:01, sure 0.80' ]
    [[ ${lines[1]} == '          compute: g\x1bm '* ]]
    run -1 grep $'\x1b' <<<"$output"
}

@test "refused records are not counted as read, and all refused is no health" {
    echo '{"type":"step","ts":1,"rank":0,"step":1,"dur":0}' >in
    run -2 --separate-stderr skewdetect --max-bad 9 in
    [[ $stderr == *"cannot use in:1: dur is 0"*"no step, probe or link record"* ]]
    { steps 1 5 20; cat in; } >six
    run -0 skewdetect --max-bad 9 -q -v -f text six
    run -0 skewdetect --max-bad 9 -f text six
    [[ $output == *"in 5 step and 0 probe records" ]]
}

@test "--tee does not pass on what it refuses" {
    { steps 0 5 20; echo '{"type":"step","ts":1,"rank":0,"step":9,"dur":1,"busy":1,"mb":1}'; } >in
    run -2 --separate-stderr skewdetect --tee in
    run -0 diff <(head -n 5 in) - <<<"$output"
    run -2 --separate-stderr skewdetect --tee --strict in
    run -0 diff <(head -n 5 in) - <<<"$output"
}

@test "-f text: long names are whole, and nothing raw reaches the terminal" {
    for i in 0 1 2 3; do
        printf '{"type":"probe","ts":1,"host":"gpu-node-a100-rack7-00%d","gpu":"GPU-8f9c1b52-1234-5678-9abc-def01234567%d","test":"g\\u001b[31m\\u009bX","value":%d,"unit":"ms","better":"low"}\n' \
            $i $i $((i == 1 ? 500 : 65))
    done >in
    run -0 skewdetect -f text in
    [[ $output == *"gpu=GPU-8f9c1b52-1234-5678-9abc-def012345671 (gpu-node-a100-rack7-001)"* ]]
    run -0 awk 'length > 80' <<<"$output"
    run -1 grep -q $'[\x1b\x07\x9b]' < <(skewdetect -f text in)
}

@test "one rank alone does not tell waiting for others from communication" {
    steps 0 80 20 | jq -c 'if .step > 40 then .dur *= 2 else . end' >in
    run -0 skewdetect in
    run -0 jq -r '[.kind, .scope, .step, .cause] | join(" ")' <<<"$output"
    [ "$output" = "onset job 41 unknown" ]
}

@test "a rank that was slow from its first step and gets worse" {
    for r in 0 1 3; do steps $r 128 20 >r$r; done
    { steps 2 64 30; steps 2 64 48 65; } >r2
    run -0 skewdetect r0 r1 r2 r3
    run -0 jq -r 'select(.scope == "rank") |
        [.kind, .id, (.factor * 10 | round) / 10] | map(tostring) | join(" ")' \
        <<<"$output"
    [ "${lines[0]}" = "onset rank=2 1.5" ] # against its peers
    [ "${lines[1]}" = "onset rank=2 2.4" ] # 1.6 times its own past
    [ ${#lines[@]} -eq 2 ]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# rebalance.bats - plans end to end, formats, options, live behaviour. Bad
# input, which is the same for every program that reads records, is in
# base.bats too.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    echo '{"type":"layout","dp":2,"microbatches":12,"cost_s2":5}' >layout
}

# step RANK STEP BUSY MB: one step record, a second after the last step.
step() {
    printf '{"type":"step","ts":%d,"rank":%d,"step":%d,"dur":9,"busy":%s,"mb":%d}\n' \
        "$2" "$1" "$2" "$3" "$4"
}

# series RANK FROM TO PACE MB: steps of one rank, PACE seconds a micro-batch.
series() {
    awk -v r="$1" -v from="$2" -v to="$3" -v pace="$4" -v mb="$5" 'BEGIN {
        for (i = from; i <= to; i++)
            printf "{\"type\":\"step\",\"ts\":%d,\"rank\":%d,\"step\":%d," \
                "\"dur\":9,\"busy\":%g,\"mb\":%d}\n", i, r, i, pace * mb, mb
    }'
}

# event KIND SCOPE ID TS STEP [FACTOR [EID]]
event() {
    printf '{"type":"event","ts":%s,"eid":"%s","kind":"%s","scope":"%s",' \
        "$4" "${7:-e1}" "$1" "$2"
    printf '"id":"%s","since":%s,"step":%s,"factor":%s}\n' \
        "$3" "$5" "$5" "${6:-2}"
}

# Plans as "dp:from>to ..." and the gain in per cent, one line per plan.
short() {
    jq -r -s 'group_by([.ts, .eid])[] |
        (map("\(.dp):\(.from)>\(.to)") | join(" ")) +
        " +\(.[0].gain * 100 | round)% \(.[0].eid // "-")@\(.[0].ts)"'
}

# The first is slow from the start: 0.25 and 0.5 s for a micro-batch.
two() {
    step 0 1 1.5 6
    step 1 1 3 6
}

@test "two groups, one half as fast: the plan record, key by key" {
    run -0 --separate-stderr rebalance -f jsonl layout < <(two)
    [ -z "$stderr" ]
    [ "${#lines[@]}" -eq 2 ]
    [ "${lines[0]}" = '{"type":"plan","ts":1,"dp":0,"level":"S2","action":"shares","gain":0.5,"cost":5,"from":6,"to":8}' ]
    [ "${lines[1]}" = '{"type":"plan","ts":1,"dp":1,"level":"S2","action":"shares","gain":0.5,"cost":5,"from":6,"to":4}' ]
}

@test "FALCON's known case: 32 micro-batches, group 2 of 4 slow" {
    # 8 micro-batches take 1052.28 ms, those of group 2 1471.50 ms; the least
    # makespan is that of 9, 9, 6, 8 in some order of the healthy ones
    echo '{"type":"layout","dp":4,"microbatches":32}' >falcon
    for r in 0 1 2 3; do
        step $r 1 "$([ $r = 2 ] && echo 1.47150 || echo 1.05228)" 8
    done >in
    run -0 --separate-stderr rebalance -f jsonl falcon in
    [ -z "$stderr" ]
    run -0 jq -s -c 'def t: if .dp == 2 then 1471.5 / 8 else 1052.28 / 8 end;
        [(map(.to - .from) | add), (map(.to * t) | max * 1000 | round),
         (.[0].gain * 10000 | round)]' <<<"$output"
    # 9 x 1052.28 / 8 = 1183.815 ms instead of 1471.5: +24.30 %
    [ "$output" = "[0,1183815,2430]" ]
    # the step of 1052.28 ms that became 1471.5 takes 1183.8
    run -0 rebalance -f text falcon in
    [[ ${lines[-1]} == "predicted step 1.47 s -> 1.18 s (bound "*")" ]]
}

@test "the fill of a pipeline counts: (m + pp - 1) t" {
    # t = 1 and 2, pp 4, M 16: 8 + 8 is max(11, 22) = 22; 12 + 4 is
    # max(15, 14) = 15, and 11 + 5 is 16. Of a pipeline's ranks the slowest.
    echo '{"type":"layout","dp":2,"pp":4,"microbatches":16}' >l
    for r in 0 1 2 3 4 5 6 7; do # dp of rank: r mod 2
        step $r 1 "$([ $r = 5 ] && echo 16 || echo 8)" 8
    done >in
    run -0 rebalance l in
    run -0 short <<<"$output"
    [ "$output" = "0:8>12 1:8>4 +47% -@1" ]
    # interleaved: multiples of 4
    echo '{"type":"layout","dp":2,"pp":4,"vpp":2,"microbatches":24}' >l
    for r in 0 1 2 3 4 5 6 7; do
        step $r 1 "$([ $r = 5 ] && echo 24 || echo 12)" 12
    done >in
    run -0 rebalance l in
    run -0 short <<<"$output"
    [ "$output" = "0:12>16 1:12>8 +36% -@1" ]
}

@test "order says which ranks are a group; a record's own dp wins" {
    echo '{"type":"layout","dp":2,"tp":2,"microbatches":12}' >tp
    echo '{"type":"layout","dp":2,"tp":2,"microbatches":12,"order":"dp-tp"}' >dp
    for r in 0 1 2 3; do step $r 1 "$([ $r = 1 ] && echo 3 || echo 1.5)" 6; done >in
    run -0 bash -c 'rebalance tp in | jq -c "[.dp, .to]"'
    [ "$output" = $'[0,4]\n[1,8]' ]
    run -0 bash -c 'rebalance dp in | jq -c "[.dp, .to]"'
    [ "$output" = $'[0,8]\n[1,4]' ]
    run -0 bash -c 'jq -c ".dp = (1 - (.rank / 2 | floor))" in |
        rebalance tp | jq -c "[.dp, .to]"'
    [ "$output" = $'[0,8]\n[1,4]' ]
    # dp alone, no rank
    run -0 bash -c 'jq -c "select(.rank < 2) | .dp = .rank | del(.rank)" in |
        rebalance tp | jq -c "[.dp, .to]"'
    [ "$output" = $'[0,8]\n[1,4]' ]
}

@test "an onset is planned for at once, from the steps since it began" {
    # since step 33, decided in step 36: 12 of the last 16 steps are healthy
    { series 0 1 36 0.25 6; series 1 1 32 0.25 6; series 1 33 36 0.5 6
        event onset rank rank=1 36.5 33 2; } | jq -s -c 'sort_by(.ts)[]' >in
    run -0 --separate-stderr rebalance layout in
    [ -z "$stderr" ]
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% e1@36.5" ]
    # the same from an event of the job, that names nobody
    jq -c 'if .type == "event" then .scope = "job" | del(.id) else . end' in >job
    run -0 bash -c 'rebalance layout job'
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% e1@36.5" ]
    # before the first slow step was read: by the factor of the event
    grep -v '"step":3[3-6],"dur"' in >early
    [ "$(wc -l <early)" -eq 65 ]
    run -0 rebalance layout early
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% e1@36.5" ]
}

@test "planned again when --window steps came since, if that is better" {
    # it gets worse after the event: 1.5, then 2
    { series 0 1 60 0.25 6; series 1 1 32 0.25 6; series 1 33 36 0.375 6
        series 1 37 60 0.5 6; event onset rank rank=1 36.5 33 1.5; } |
        jq -s -c 'sort_by(.ts)[]' >in
    run -0 rebalance layout in
    run -0 short <<<"$output"
    [ "${lines[0]}" = "0:6>7 1:6>5 +20% e1@36.5" ]
    [ "${lines[1]}" = "0:6>8 1:6>4 +50% e1@52" ]
    [ "${#lines[@]}" -eq 2 ]
    run -0 rebalance --window 8 layout in
    run -0 short <<<"$output"
    [ "${lines[1]}" = "0:6>8 1:6>4 +50% e1@44" ]
}

@test "a plan is not written twice before it is applied, nor after" {
    { series 0 1 32 0.25 6; series 1 1 32 0.5 6
        event onset rank rank=1 10.5 8 2
        event onset job '' 11.5 8 1.5 j
        event onset rank rank=1 12.5 12 2
        # applied
        series 0 33 60 0.25 8; series 1 33 60 0.5 4
        event onset job '' 40.5 36 1.5 k; } | jq -s -c 'sort_by(.ts)[]' >in
    run -0 --separate-stderr rebalance -q layout in
    [ -z "$stderr" ]
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% e1@10.5" ]
}

@test "a relief gives the shares back, from what they are now" {
    { series 0 1 20 0.25 6; series 1 1 20 0.25 6
        event onset rank rank=1 20.5 21 2
        series 0 21 40 0.25 8; series 1 21 36 0.5 4; series 1 37 40 0.25 4
        event relief rank rank=1 40.5 37 1; } | jq -s -c 'sort_by(.ts)[]' >in
    run -0 rebalance layout in
    run -0 short <<<"$output"
    [ "${lines[0]}" = "0:6>8 1:6>4 +50% e1@20.5" ]
    [ "${lines[1]}" = "0:8>6 1:4>6 +33% e1@40.5" ]
    [ "${#lines[@]}" -eq 2 ]
}

@test "events alone: relative, and a plan counts as applied" {
    { event onset group dp=1,pp=0 10 5 2; event relief group dp=1,pp=0 20 15 1; } >in
    run -0 --separate-stderr rebalance layout in
    [ -z "$stderr" ]
    run -0 short <<<"$output"
    [ "${lines[0]}" = "0:6>8 1:6>4 +50% e1@10" ]
    [ "${lines[1]}" = "0:8>6 1:4>6 +33% e1@20" ]
    # steps without busy tell shares only: dur is the same for all who wait
    { two | jq -c 'del(.busy)'; event onset rank rank=1 10 5 2; } >in
    run -0 rebalance layout in
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% e1@10" ]
    # a rank that is named by where the event is from
    event onset gpu gpu=GPU-1 10 5 2 | jq -c '.rank = 1' >in
    run -0 rebalance layout in
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% e1@10" ]
}

@test "spikes and missing ranks are no reason to plan" {
    { two; event spike rank rank=1 1.5 1 9; event missing rank rank=1 1.6 1 9; } >in
    run -0 --separate-stderr rebalance layout in
    [ "$stderr" = "rebalance: rank=1 is missing: shares do not help, a restart without it does" ]
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% -@1" ] # at the end, not for an event
    event spike rank rank=1 1.5 1 9 >in
    run -2 --separate-stderr rebalance layout in
    [ -z "$output" ]
    [ "$stderr" = "rebalance: cannot plan: no step has busy and mb, no event names a rank or group" ]
}

@test "events of stages, links and groups, and what their updates say" {
    # what the steps tell counts, whatever the scope
    local what
    for what in "stage pp=0" "link src=n1,dst=n2" "group comm=0x1f" "host host=n1" "job x"; do
        # shellcheck disable=SC2086 # scope and id
        { two; event onset $what 2 1 9; } >in
        run -0 --separate-stderr rebalance layout in
        [ -z "$stderr" ]
        run -0 short <<<"$output"
        [ "$output" = "0:6>8 1:6>4 +50% e1@2" ]
    done
    # the factor of a link is no pace
    event onset group dp=1 10 5 2 | jq -c '.cause = "link"' >in
    run -2 --separate-stderr rebalance layout in
    [[ $stderr == *"no event names a rank or group" ]]
    # first it was the job, then rank 0, then rank 1
    { event onset job "" 10 5 2; event onset rank rank=0 11 5 2; event onset rank rank=1 12 5 2; } >in
    run -0 rebalance layout in
    run -0 short <<<"$output"
    [ "${lines[-1]}" = "0:4>8 1:8>4 +100% e1@12" ]
}

@test "when no plan helps it says so" {
    { step 0 1 1.5 6; step 1 1 1.5 6; } >in
    run -0 --separate-stderr rebalance -f text layout in
    [ -z "$stderr" ]
    [ "$output" = "no plan helps: the present shares are the best" ]
    run -0 --separate-stderr rebalance -f jsonl layout in
    [ -z "$output" ]
    [ "$stderr" = "rebalance: no plan helps: the present shares are the best" ]
    run -0 --separate-stderr rebalance -q -f tsv layout in
    [ -z "$output" ]
    [ -z "$stderr" ]
    # 102 to 101 s: a gain of 1/101
    echo '{"type":"layout","dp":2,"microbatches":201}' >l
    { step 0 1 99 99; step 1 1 102 102; event onset rank rank=0 1.5 1 1.01; } >in
    run -0 rebalance -f text l in
    [ "$output" = "no plan helps: the best shares gain 0.99 %, less than --min-gain 2 %   (e1)" ]
    [ "${#output}" -le 80 ]
    run -0 rebalance -f text --min-gain 0.0098 l in
    [[ ${lines[0]} == "plan S2 shares: throughput +0.99 %   (e1)" ]]
    run -0 rebalance -f jsonl --min-gain 0.009 l in
    run -0 short <<<"$output"
    [ "$output" = "0:99>100 1:102>101 +1% e1@1.5" ]
}

@test "current shares that are not told, or make no sense, are taken as even" {
    { step 0 1 1.5 6; } >in
    run -0 --separate-stderr rebalance -f jsonl layout in
    [ -z "$output" ]
    [ "${stderr_lines[0]}" = "rebalance: no pace of 1 of 2 groups, first dp 1: taken as that of the others when healthy, times the factor of its event" ]
    [ "${stderr_lines[1]}" = "rebalance: no mb of 1 of 2 groups: shares taken as even" ]
    [ "${stderr_lines[2]}" = "rebalance: no plan helps: the present shares are the best" ]
    { step 0 1 1.25 5; step 1 1 3 6; } >in
    run -0 --separate-stderr rebalance -f jsonl layout in
    [ "$stderr" = "rebalance: steps have 11 micro-batches in all, the layout 12: shares taken as even" ]
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% -@1" ]
    run -0 --separate-stderr rebalance -q -f jsonl layout in
    [ -z "$stderr" ]
}

@test "-f text fits 80 columns" {
    { two; event onset rank rank=1 1.5 1 2; } >in
    run -0 --separate-stderr rebalance --format text layout in
    [ -z "$stderr" ]
    [ "$output" = "plan S2 shares: throughput +50 %, cost 5 s   (e1)
  dp 0    6 ->  8
  dp 1    6 ->  4
predicted step 3 s -> 2 s (bound 2 s)" ]
    run -0 rebalance -f text layout < <(event onset rank rank=1 1.5 1 2)
    [ "${lines[-1]}" = "predicted step 67 % of the present one (relative, from events only)" ]
    # 64 groups, half of them slow, and a long name
    echo '{"type":"layout","dp":64,"microbatches":1024}' >l
    for ((r = 0; r < 64; r++)); do step $r 1 $((16 + r % 2 * 8)) 16; done >in
    event onset job '' 2 1 1.5 "$(printf 'x%.0s' {1..200})" >>in
    run -0 rebalance -f text l in
    [ "${lines[0]}" = "plan S2 shares: throughput +23 %" ] # 24 / (13 * 1.5)
    [[ ${lines[1]} == "  (xxxx"*"...)" ]]
    [ "${lines[2]}" = "  dp  0   16 -> 19  dp  1   16 -> 13  dp  2   16 -> 19  dp  3   16 -> 13" ]
    run -0 awk 'length > 80' <<<"$output"
    [ -z "$output" ]
    # what is not printable is escaped
    run -0 rebalance -f text layout < <(event onset rank rank=1 1.5 1 2 'a\u001b[31mb')
    [ "${lines[0]}" = 'plan S2 shares: throughput +50 %, cost 5 s   (a\x1b[31mb)' ]
}

@test "-f tsv has a header and one row per group" {
    run -0 --separate-stderr rebalance -f tsv layout < <(two)
    [ -z "$stderr" ]
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == "type	ts	job	"*"	level	action	gain	cost	from	to" ]]
    [[ ${lines[1]} == "plan	1	"*"	0	"*"	S2	shares	0.5	5	6	8" ]]
    [[ ${lines[2]} == "plan	1	"*"	1	"*"	S2	shares	0.5	5	6	4" ]]
}

@test "-o writes the file whole or not at all" {
    run -0 --separate-stderr rebalance -f jsonl -o out layout < <(two)
    [ -z "$output$stderr" ]
    [ "$(wc -l <out)" -eq 2 ]
    # a strict run that ends early leaves the old file
    cp out old
    run -2 --separate-stderr rebalance --output out --strict layout < <(two; echo x)
    run -0 diff old out
    run -0 bash -c 'ls | grep -c "^out"'
    [ "$output" = 1 ]
    run -2 --separate-stderr rebalance -o /nonexistent/x layout < <(two)
    [ -z "$output" ]
    [ "$stderr" = "rebalance: cannot create /nonexistent/x: No such file or directory" ]
    run -2 --separate-stderr rebalance -o /dev/full layout < <(two)
    [ "$stderr" = "rebalance: cannot write /dev/full: No space left on device" ]
    run -0 --separate-stderr rebalance -f jsonl -o - layout < <(two)
    [ "${#lines[@]}" -eq 2 ]
}

@test "-v says what a plan is based on" {
    run -0 --separate-stderr rebalance -v -f jsonl layout < <(two)
    [ "${#lines[@]}" -eq 2 ]
    [ "${stderr_lines[0]}" = "rebalance: dp 0: share 6, pace 250 ms, median of 1" ]
    [ "${stderr_lines[1]}" = "rebalance: dp 1: share 6, pace 500 ms, median of 1" ]
    [ "${stderr_lines[2]}" = "rebalance: 2 step and 0 event records, plans: 1" ]
    run -0 --separate-stderr rebalance --verbose layout \
        < <(event onset job '' 0 0; two; event onset job '' 2 1 2 k
            event onset job '' 3 1 2 m)
    [ "${stderr_lines[0]}" = "rebalance: no plan yet: nothing tells a pace" ]
    [ "${stderr_lines[5]}" = "rebalance: no new plan: the last one is as good, and not applied yet" ]
}

@test "--exit-code: 1 with a plan, 0 without, 2 with trouble" {
    run -1 --separate-stderr rebalance --exit-code layout < <(two)
    [ -z "$stderr" ]
    run -0 --separate-stderr rebalance --exit-code layout < <(step 0 1 1 6; step 1 1 1 6)
    run -2 --separate-stderr rebalance --exit-code layout < <(two; echo x)
    [ "${#lines[@]}" -eq 2 ]
}

@test "bad lines: the first is named, the rest is used; --max-bad, --strict" {
    { step 0 1 1.5 6; echo '{"type":"step","ts":1}'; step 1 1 3 6; echo x; } >in
    run -2 --separate-stderr rebalance layout in
    [ "${#lines[@]}" -eq 2 ]
    [ "${stderr_lines[0]}" = "rebalance: cannot use in:2: step record without step" ]
    [ "${stderr_lines[1]}" = "rebalance: 2 bad lines in all" ]
    run -2 --separate-stderr rebalance --max-bad 1 layout in
    run -0 --separate-stderr rebalance --max-bad 2 layout in
    [ "${#stderr_lines[@]}" -eq 2 ]
    run -0 --separate-stderr rebalance --quiet --max-bad 2 layout in
    [ "$stderr" = "rebalance: cannot use in:2: step record without step" ]
    run -2 --separate-stderr rebalance --strict layout in
    [ -z "$output" ]
    [ "$stderr" = "rebalance: cannot use in:2: step record without step" ]
    run -2 --separate-stderr rebalance layout - <in
    [[ $stderr == "rebalance: cannot use stdin:2: step record without step"* ]]
}

@test "records that do not fit the layout are bad lines" {
    while IFS='|' read -r line reason; do
        { two; echo "$line"; } >in
        run -2 --separate-stderr rebalance layout in
        echo "$stderr"
        [ "$stderr" = "rebalance: cannot use in:3: $reason" ]
        [ "${#lines[@]}" -eq 2 ]
        run -2 --separate-stderr rebalance --strict layout in
        [ -z "$output" ]
        [ "$stderr" = "rebalance: cannot use in:3: $reason" ]
    done <<'EOF2'
{"type":"step","ts":2,"rank":2,"step":2,"dur":1,"busy":1,"mb":6}|rank is 2, the layout has 2 ranks
{"type":"step","ts":2,"dp":2,"step":2,"dur":1,"busy":1,"mb":6}|dp is 2, the layout has 2 groups
{"type":"step","ts":2,"rank":0,"dp":7,"step":2,"dur":1}|dp is 7, the layout has 2 groups
{"type":"step","ts":2,"rank":0,"step":2,"dur":1,"busy":0,"mb":6}|busy is 0 s with 6 micro-batches
{"type":"step","ts":0.5,"rank":0,"step":2,"dur":1,"busy":1,"mb":6}|time runs backwards by 0.5 s (step 2)
{"type":"event","ts":2,"eid":"e","kind":"onset","scope":"rank","id":"rank=9","since":1}|rank is 9, the layout has 2 ranks
{"type":"event","ts":2,"eid":"e","kind":"onset","scope":"group","id":"dp=x","since":1}|id: dp: not a number
{"type":"event","ts":2,"eid":"e","kind":"onset","scope":"rank","id":"rank=1","since":1,"factor":0}|factor is 0, not in 1e-09..1.79769e+308
{"type":"layout","dp":3,"microbatches":2}|cannot plan shares: 2 micro-batches in blocks of 1 are fewer than one block for each of 3 groups
EOF2
}

@test "records of others are passed over" {
    {
        two
        echo '{"type":"sparkle","ts":1}'
        echo '{"type":"gauge","ts":1,"name":"x","value":1,"unit":"1","rank":99}'
        echo '{"type":"step","ts":1,"step":1,"dur":3}'         # of the job
        echo '{"type":"step","ts":1,"worker":"w","step":1,"dur":3,"busy":9,"mb":1}'
        step 1 2 0 0 # no work in that step
    } >in
    run -0 --separate-stderr rebalance -f jsonl layout in
    [ -z "$stderr" ]
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% -@2" ]
    # a layout of one job, records of two
    echo '{"type":"layout","job":"a","dp":2,"microbatches":12}' >l
    { two | jq -c '.job = "a"'; step 0 1 9 6 | jq -c '.job = "b" | .rank = 77'; } >in
    run -0 --separate-stderr rebalance -f jsonl l in
    [ -z "$stderr" ]
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% -@1" ]
    # the plan says of which job it is
    { cat in; event onset rank rank=1 2 1 2 | jq -c '.job = "a"'; } >in2
    run -0 bash -c 'rebalance l in2 | jq -r .job | sort -u'
    [ "$output" = a ]
}

@test "stdin, -, files, a file per rank, gzip, CRLF, no final newline" {
    step 0 1 1.5 6 >r0
    step 1 1 3 6 >r1
    local want="0:6>8 1:6>4 +50% -@1"
    check() { # check COMMAND
        run -0 --separate-stderr bash -c "$1"
        [ -z "$stderr" ]
        run -0 short <<<"$output"
        [ "$output" = "$want" ]
    }
    check 'cat r0 r1 | rebalance layout'
    check 'cat r0 r1 | rebalance layout -'
    check 'rebalance layout r0 r1'
    check 'rebalance layout r0 - <r1'
    check 'rebalance -- layout r1 r0'
    check 'sed "s/\$/\r/" r0 r1 | rebalance layout'
    check 'cat r0 r1 | head -c -1 | rebalance layout'
    check 'cat layout r0 r1 | rebalance -'
    check 'rebalance - r0 r1 <layout'
    check 'cat layout r0 r1 | rebalance - -'
    check 'rebalance <(cat layout) <(cat r0) r1'
    check 'sed "s/\$/\r/" layout | head -c -1 >l2; rebalance l2 r0 r1'
    need_feature ZLIB zlib
    check 'cat r0 r1 | gzip | rebalance layout'
    check 'gzip -c layout >l3; gzip -c r0 >z0; rebalance l3 z0 r1'
}

@test "a layout in the stream replaces the one before" {
    { two; echo '{"type":"layout","dp":3,"microbatches":12}'
        step 0 2 1 4; step 1 2 1 4; step 2 2 2 4; } >in
    run -0 --separate-stderr rebalance -f jsonl layout in
    [ -z "$stderr" ]
    run -0 short <<<"$output"
    [ "$output" = "0:4>5 1:4>5 2:4>2 +60% -@2" ]
    # the same again changes nothing
    { step 0 1 1.5 6; cat layout; step 1 1 3 6; } >in
    run -0 rebalance layout in
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% -@1" ]
}

@test "layouts that make no sense" {
    two >in
    while IFS='|' read -r line reason; do
        echo "$line" >l
        run -2 --separate-stderr rebalance l in
        echo "$stderr"
        [ -z "$output" ]
        [ "$stderr" = "rebalance: cannot use $reason" ]
    done <<'EOF2'
{"type":"layout","dp":2}|l:1: layout record without microbatches
{"type":"layout","dp":0,"microbatches":4}|l:1: dp is 0, below 1
{"type":"layout","dp":4,"microbatches":2}|l:1: cannot plan shares: 2 micro-batches in blocks of 1 are fewer than one block for each of 4 groups
{"type":"layout","dp":2,"pp":4,"vpp":2,"microbatches":10}|l:1: cannot plan shares: 10 micro-batches are not a positive multiple of the block size 4
{"type":"layout","dp":2,"microbatches":4,"order":"dp-xx"}|l:1: order has 'xx', which is no dimension
{"type":"layout","dp":2,"tp":2,"microbatches":4,"order":"dp"}|l:1: order lacks tp
{"type":"layout","dp":1024,"tp":1024,"pp":2,"microbatches":4096}|l:1: more than 1048576 ranks
{"type":"step","ts":1,"step":1,"dur":1}|l: no layout record
EOF2
    printf '{"type":"layout",\n"dp":2,"microbatches":4}\n' >l
    run -2 --separate-stderr rebalance l in
    [[ $stderr == "rebalance: cannot use l:1: "* ]]
    run -2 --separate-stderr rebalance /dev/null in
    [ "$stderr" = "rebalance: cannot use /dev/null: no layout record" ]
    run -2 --separate-stderr rebalance nothere in
    [ "$stderr" = "rebalance: cannot open nothere: No such file or directory" ]
    mkdir folder # stands for the files below it
    run -2 --separate-stderr rebalance folder in
    [ "$stderr" = "rebalance: cannot use folder: no layout record" ]
    run -2 --separate-stderr rebalance - <in
    [ "${stderr_lines[0]}" = "rebalance: cannot use stdin:1: record before the layout" ]
    run -2 --separate-stderr rebalance
    [ "$stderr" = "rebalance: cannot plan: no LAYOUT given (try --help)" ]
}

@test "no input to plan from" {
    run -2 --separate-stderr rebalance layout </dev/null
    [ -z "$output" ]
    [ "$stderr" = "rebalance: cannot plan: no step or event record in input" ]
    run -2 --separate-stderr rebalance - </dev/null
    [ "$stderr" = "rebalance: cannot plan: no layout record in input" ]
    run -2 --separate-stderr rebalance layout < <(two | jq -c 'del(.mb)')
    [ "$stderr" = "rebalance: cannot plan: no step has busy and mb, no event names a rank or group" ]
    run -2 --separate-stderr rebalance layout nothere
    [ "$stderr" = "rebalance: cannot open nothere: No such file or directory" ]
    # the other files are used
    two >in
    run -2 --separate-stderr rebalance -f jsonl layout nothere in
    [ "${#lines[@]}" -eq 2 ]
    [ "$stderr" = "rebalance: cannot open nothere: No such file or directory" ]
    run -2 --separate-stderr rebalance --strict layout nothere in
    [ -z "$output" ]
}

@test "a full disk, a closed standard output, a closed standard input" {
    two >in
    run -2 --separate-stderr bash -c 'rebalance layout in >/dev/full'
    [ "$stderr" = "rebalance: cannot write standard output: No space left on device" ]
    run -2 --separate-stderr bash -c 'rebalance layout in >&-'
    [ "$stderr" = "rebalance: cannot write standard output: Bad file descriptor" ]
    run -2 --separate-stderr bash -c 'rebalance layout <&-'
    [ -z "$output" ]
    [[ $stderr == "rebalance: cannot read stdin: Bad file descriptor"* ]]
    run -0 bash -c 'rebalance layout in 2>&-'
    [ "${#lines[@]}" -eq 2 ]
}

@test "wrong options" {
    two >in
    run -2 --separate-stderr rebalance --window 0 layout in
    [ "$stderr" = "rebalance: cannot use '0' for --window: not in 1..1024" ]
    run -2 --separate-stderr rebalance --min-gain -1 layout in
    [[ $stderr == "rebalance: cannot use '-1' for --min-gain: not in 0.."* ]]
    run -2 --separate-stderr rebalance --max-bad 1.5 layout in
    [ "$stderr" = "rebalance: cannot use '1.5' for --max-bad: not a whole number" ]
    run -2 --separate-stderr rebalance -f xml layout in
    [ "$stderr" = "rebalance: cannot use 'xml' for --format: not one of text|jsonl|tsv|prom" ]
}

@test "--window: the median over the last N steps of a rank" {
    # the last 3 of 20 steps of rank 1 are slow, and no event says so
    { series 0 1 20 0.25 6; series 1 1 17 0.25 6; series 1 18 20 0.5 6; } |
        jq -s -c 'sort_by(.ts)[]' >in
    run -0 --separate-stderr rebalance -f jsonl layout in
    [ -z "$output" ]
    run -0 rebalance --window 5 layout in
    run -0 short <<<"$output"
    [ "$output" = "0:6>8 1:6>4 +50% -@20" ]
}

@test "live: a plan comes out while the input is still open" {
    local form pid i
    for form in jsonl text tsv; do
        rm -f in out
        mkfifo in
        : >out
        rebalance -f $form layout in >out &
        pid=$!
        exec {fd}>in
        { two; event onset rank rank=1 1.5 1 2; } >&"$fd"
        for ((i = 0; i < 100; i++)); do
            [ -s out ] && break
            sleep 0.05 # polled: the writer keeps the input open
        done
        cat out
        [ "$(wc -l <out)" -ge 2 ]
        exec {fd}>&-
        wait $pid
    done
}

@test "behind skewdetect: a rank becomes slow, and is well again" {
    echo '{"type":"layout","dp":2,"microbatches":8}' >l
    {
        steps 0 120 20
        steps 1 40 20
        steps 1 40 40.4 41
        steps 1 40 20 81
    } | jq -s -c 'sort_by(.ts)[]' >in
    run -0 --separate-stderr bash -c 'skewdetect --tee in | rebalance -q l'
    [ -z "$stderr" ]
    run -0 bash -c 'jq -c "[.eid, .dp, .from, .to]" <<<"$1"' _ "$output"
    [ "$output" = '["rank=1@41",0,4,6]
["rank=1@41",1,4,2]' ] # nobody applied it, so that the relief gives nothing back
}

@test "an event of a rank is of the group that the rank told in its steps" {
    echo '{"type":"layout","dp":4,"tp":2,"microbatches":32}' >layout
    {
        for r in 0 1 2 3; do
            printf '{"type":"step","ts":1,"rank":%d,"dp":%d,"step":1,"dur":1,"mb":8}\n' $r $r
        done
        echo '{"type":"event","ts":2,"eid":"e","kind":"onset","scope":"rank","id":"rank=1","since":1,"factor":2}'
    } >in
    run -0 --separate-stderr bash -c "rebalance -q -f jsonl layout in | jq -r 'select(.to < .from) | .dp'"
    [ "$output" = 1 ]
}

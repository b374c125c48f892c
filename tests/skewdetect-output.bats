#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect-output.bats - a check for Nagios and its like, --explain, and that
# all programs show events alike.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export TZ=UTC
}

# work ARG...: steps, of a job whose step time is always the same, so that
# nothing but the rank changes.
work() {
    steps "$@" | sed 's/"dur":[0-9.e-]*/"dur":0.09/'
}

# slow FACTOR: four ranks, rank 1 slower by that from step 41 on.
slow() {
    local r
    for r in 0 2 3; do
        work $r 80 20 >r$r
    done
    { work 1 40 20; work 1 40 "$(jq -n "20 * $1")" 41; } >r1
}

# check STATUS [ARG...]: skewdetect -f nagios; $line is its first line. What a
# plugin may print is held against the published grammar.
check() {
    local status=$1
    shift
    run "-$status" --separate-stderr skewdetect -f nagios "$@"
    [ -z "$stderr" ]
    line=${lines[0]}
    [ "$(tr -cd '|' <<<"$output" | wc -c)" -le 1 ]
    grammar <<<"$line"
}

# One line: NAME STATUS - text | label=value[uom];[warn];[crit];[min];[max] ...
grammar() {
    local number='-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?'
    local range="(@?(~|$number)?:?($number)?)?"
    local data="[a-z_]+=$number(s|us|ms|%|[KMGT]?B|c)?(;$range){0,2}(;($number)?){0,2}"
    grep -Eq "^[A-Z]+ (OK|WARNING|CRITICAL|UNKNOWN) - [^|]+( \| $data( $data)*)?$"
}

@test "-f nagios: OK, WARNING, CRITICAL" {
    slow 1
    check 0 r?
    [ "$line" = "SKEWDETECT OK - no stragglers | stragglers=0;0;;0 worst=1;;1.5;1 missing=0;;0;0 gpu_hours=0;;;0" ]
    [ "${lines[1]}" = "0 onsets, 0 reliefs, 0 spikes in 320 step and 0 probe records" ]
    slow 1.3
    check 1 r?
    [[ $line == "SKEWDETECT WARNING - 1 straggler: rank=1 1.3"*"x since step 41 | stragglers=1;0;;0 worst=1.29"* ]]
    [[ $output == *$'\nslow: rank=1 1.3'*$'\n  compute: busy per micro-batch '* ]]
    slow 2
    check 2 r?
    [[ $line == "SKEWDETECT CRITICAL - 1 straggler: rank=1 2.0"* ]]
    check 1 --critical 2.5 r?
    check 0 --critical 3 --warning 2.5 r?
    [[ $line == "SKEWDETECT OK - 1 straggler: "*" worst=1.99"*";2.5;3;1 "* ]]
    # to a file, whole
    run -2 skewdetect -f nagios -o check r?
    [ -z "$output" ]
    run -0 grep -c '^SKEWDETECT CRITICAL' check
}

@test "-f nagios: what is over is no finding" {
    slow 2
    work 1 60 20 81 >>r1
    for r in 0 2 3; do work $r 60 20 81 >>r$r; done
    check 0 r?
    [ "${lines[1]}" = "1 onset, 1 relief, 0 spikes in 560 step and 0 probe records" ]
}

@test "-f nagios: trouble is UNKNOWN and 3, whatever it is" {
    slow 2
    : >empty
    check 3 empty
    [[ $line == "SKEWDETECT UNKNOWN - cannot detect stragglers: no step, probe or link record in the input | "* ]]
    check 3 nothere r?
    [[ $line == "SKEWDETECT UNKNOWN - cannot open nothere: No such file or directory; 1 straggler: rank=1 "* ]]
    echo 'a|b' >>r3
    check 3 r?
    [[ $line == "SKEWDETECT UNKNOWN - cannot use r3:81: "* ]]
    check 3 --strict r?
    check 2 --max-bad 1 r?
    [[ ${lines[-1]} == "cannot use r3:81: "* ]]
    check 3 --bogus r?
    [[ $line == "SKEWDETECT UNKNOWN - cannot use option '--bogus': "* ]]
    check 3 --warning 2 r?
    [ "$line" = "SKEWDETECT UNKNOWN - cannot use --warning: it is above --critical" ]
    check 3 --tee r?
    check 3 --iterations r?
    check 3 -o nowhere/x r?
    # each way of asking for it
    for how in '-fnagios --bad' '--format=nagios --bad' '--bad -f nagios' '-qf nagios --bad'; do
        # shellcheck disable=SC2086 # words
        run -3 --separate-stderr skewdetect $how
        [[ -z $stderr && ${#lines[@]} -eq 1 && $output == "SKEWDETECT UNKNOWN - "* ]]
    done
    # the last one counts
    run -2 --separate-stderr skewdetect -f nagios -f jsonl empty
    [[ -z $output && $stderr == "skewdetect: cannot detect"* ]]
}

@test "-f nagios is what a parser of performance data understands" {
    perl -MMonitoring::Plugin::Performance -e 1 2>/dev/null ||
        skip "Monitoring::Plugin is not installed"
    slow 2
    check 2 --warning 1.25 r?
    run -0 perl -MMonitoring::Plugin::Performance -e '
        for (Monitoring::Plugin::Performance->parse_perfstring($ARGV[0])) {
            my $t = $_->threshold;
            printf "%s %.1f %s %s %s\n", $_->label, $_->value,
                $t->warning // "", $t->critical // "", $_->min // "";
        }' "${line#*| }"
    echo "$output"
    [[ ${lines[0]} == "stragglers 1.0   0" ]]
    [[ ${lines[1]} == "worst 2.0 1.25 1.5 1" || ${lines[1]} == "worst 2.1 1.25 1.5 1" ]]
    [[ ${lines[2]} == "missing 0.0  0 0" ]]
    [[ ${lines[3]} == "gpu_hours 0.0   0" ]]
}

@test "--explain: one episode, and the figures behind it" {
    slow 2
    work 2 40 60 81 >>r2
    work 0 40 20 81 >>r0
    work 1 40 40 81 >>r1
    work 3 40 20 81 >>r3
    run -0 --separate-stderr skewdetect --explain rank=1@41 r?
    [ -z "$stderr" ]
    [[ ${lines[0]} == "22:13:24  ONSET   rank=1 "* ]]
    [[ $output != *rank=2@* && $output != *"rank=2 3."* ]]
    [[ $output == *"busy per micro-batch of the last 16 steps:"* ]]
    # bars: twice as long since then, and that is marked
    run -0 awk '$4 ~ /^#+$/ { n[$1] = length($4); at = / <- since$/ ? $1 : at }
        END { print at, n[40] * 2 == n[41], n[39] == n[40] }' <<<"$output"
    [ "$output" = "41 1 1" ]
    run -0 skewdetect --explain rank=1 r?
    [[ $output == *"change: median 5 ms of 13 before, 10"*" of 3 since: 2."*" standard errors"* ]]
    [[ $output == *"a change has to be 1.10x, 5 standard errors and 3 steps"* ]]
    [[ $output == *"peers: 3, median "*" ms, this one 2."*"x that"* ]]
    [[ $output == *"0 of them 1.05x or more: not a change of all"* ]]
    run -0 skewdetect --min-change 0.2 --z 7 --confirm 4 --explain rank=1 r?
    [[ $output == *"a change has to be 1.20x, 7 standard errors and 4 steps"* ]]
    # the records of that one only
    run -0 skewdetect -f jsonl --explain rank=2 r?
    run -0 jq -r '[.eid, .kind] | join(" ")' <<<"$output"
    [ "$output" = "rank=2@81 onset" ]
}

@test "--explain: which there are, if it is none of them" {
    slow 2
    run -2 --separate-stderr skewdetect --explain rank=7 r?
    [ "$stderr" = "skewdetect: cannot explain rank=7: no such episode; there is rank=1@41" ]
    [ -z "$output" ]
    slow 1
    run -2 --separate-stderr skewdetect --explain rank=7 r?
    [ "$stderr" = "skewdetect: cannot explain rank=7: there was no event at all" ]
    run -2 --separate-stderr skewdetect -f tsv --explain x r?
    run -2 --separate-stderr skewdetect --tee --explain x r?
    # an output that is there stays
    echo old >out
    run -2 skewdetect -o out --explain x r?
    [ "$(cat out)" = old ]
}

@test "tlmcat shows events as skewdetect does" {
    slow 2
    work 1 60 20 81 >>r1
    for r in 0 2 3; do work $r 60 20 81 >>r$r; done
    skewdetect -q -f text r? >one
    [ -s one ]
    skewdetect -f jsonl r? | tlmcat -f text - | grep -v '^-- ' >two
    run -0 diff one two
    # and what was known before, better: an update
    run -0 bash -c 'printf "%s\n" \
        "{\"type\":\"event\",\"ts\":9,\"eid\":\"job@4\",\"kind\":\"onset\",\"scope\":\"job\",\"since\":4,\"step\":4,\"factor\":2,\"cause\":\"communication\"}" \
        "{\"type\":\"event\",\"ts\":9,\"eid\":\"job@4\",\"kind\":\"onset\",\"scope\":\"link\",\"id\":\"src=n1,dst=n4\",\"since\":4,\"step\":4,\"factor\":2,\"cause\":\"link\"}" |
        tlmcat -f text -'
    [ "${lines[3]}" = "00:00:09  update  link src=n1,dst=n4 2.00x since step 4" ]
    [ "${lines[5]}" = "          eid job@4" ]
}

@test "-f prom: an update moves an episode to the labels of its new place" {
    printf '%s\n' \
        '{"type":"event","ts":9,"eid":"job@4","kind":"onset","scope":"job","since":4,"step":4,"factor":2,"cause":"communication"}' \
        '{"type":"event","ts":10,"eid":"job@4","kind":"onset","scope":"link","id":"src=n1,dst=n4","since":4,"step":4,"factor":2.5,"cause":"link"}' \
        '{"type":"event","ts":11,"host":"n9","eid":"m","kind":"missing","scope":"host","id":"host=n9","since":4}' >in
    run -0 tlmcat -f prom in
    grep -Fx 'evenpace_event_active{scope="job",cause="communication"} 0' <<<"$output"
    grep -Fx 'evenpace_event_active{scope="link",id="src=n1,dst=n4",cause="link"} 1' <<<"$output"
    grep -Fx 'evenpace_event_active{host="n9",scope="host",id="host=n9"} 1' <<<"$output"
    grep -F 'evenpace_event_slowdown_ratio{scope="link"' <<<"$output" | grep -q ' 2.5$'
    echo '{"type":"event","ts":12,"eid":"job@4","kind":"relief","scope":"link","id":"src=n1,dst=n4","since":11,"factor":1,"gpu_hours":2}' >>in
    run -0 tlmcat -f prom in
    grep -Fx 'evenpace_event_active{scope="link",id="src=n1,dst=n4",cause="link"} 0' <<<"$output"
    grep -q '^evenpace_event_lost_gpu_seconds{scope="link",id="src=n1,dst=n4",cause="link"} 7200$' <<<"$output"
}

@test "--exit-code: an onset is a finding" {
    slow 2
    run -1 skewdetect --exit-code r?
    slow 1
    run -0 skewdetect --exit-code r?
}

@test "thresholds: --z, --spike, --hazard" {
    # 20 % beside a noise of 10 %: four standard errors are enough, 20 are not
    awk 'BEGIN { srand(7); for (i = 0; i < 120; i++)
        printf "{\"type\":\"step\",\"ts\":%d,\"step\":%d,\"dur\":%.4f}\n", i, i,
            (i < 60 ? 0.5 : 0.7) * (1 + (rand() - 0.5) / 4) }' >in
    run -0 bash -c 'skewdetect --no-spikes --z 4 in | wc -l'
    [ "$output" -ge 1 ]
    run -0 bash -c 'skewdetect --no-spikes --z 50 in | wc -l'
    [ "$output" -eq 0 ]
    slow 1
    for i in 1.25 3; do
        skewdetect --spike $i <(jq -c 'if .step == 50 then .busy *= 1.6 else . end' r0) |
            jq -r .kind >kinds$i
    done
    [ "$(cat kinds1.25)" = spike ]
    [ ! -s kinds3 ]
    run -0 skewdetect --hazard 0.001 r?
    run -2 --separate-stderr skewdetect --hazard 1 r?
    [[ $stderr == "skewdetect: cannot use '1' for --hazard: "* ]]
}

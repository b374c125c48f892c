#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# prom.bats - -f prom: what the programs write for node_exporter's textfile
# collector, and when; --columns, the other form for tools that are not ours.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
    [ -z "${pid:-}" ] || kill "$pid" 2>/dev/null || true
}

# check FILE: a valid exposition, by a parser that is not ours; how many samples
check() {
    "$top_builddir/tests/unit/test_prom" --check <"$1"
}

# until COMMAND...: for at most 20 s
until_true() {
    local deadline=$((SECONDS + 20))
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
    done
}

# a record of every type
every_type() {
    cat <<'EOF'
{"type":"layout","dp":4,"pp":2,"microbatches":16}
{"type":"step","ts":1700000000.5,"job":"lm","host":"n1","pid":5,"rank":3,"step":7,"dur":1.5,"busy":1.2,"mb":8,"tokens":100,"flops":1e15}
{"type":"coll","ts":1700000003,"host":"n1","rank":3,"op":"all_reduce","comm":"a\"b\\c\nd","dur":0.25,"bytes":1024,"seq":1}
{"type":"p2p","ts":1700000003,"op":"send","comm":"c","dur":0.5,"peer":2}
{"type":"span","ts":1700000003,"op":"forward-compute","step":1,"dp":0,"pp":1,"dur":0.5}
{"type":"gauge","ts":1700000003,"host":"n1","gpu":"GPU-8b22","name":"DCGM_FI_DEV_FB_USED{pod=\"a\"}","value":536870912,"unit":"B","ref_own":5}
{"type":"probe","ts":1700000003,"host":"n1","test":"gemm","dtype":"f32","size":1024,"value":1e11,"unit":"FLOP/s","better":"high","n":10,"spread":0.004,"ref_spec":2e11}
{"type":"link","ts":1700000003,"src":"n1","dst":"n2","value":1e9}
{"type":"loss","ts":1700000003,"step":4,"value":2.25,"split":"train"}
{"type":"event","ts":1700000003,"job":"lm","eid":"e1","kind":"onset","scope":"rank","id":"rank=3","since":9,"factor":2,"cause":"cpu","p":0.99}
{"type":"whatif","what":"all","slowdown":1.2,"share":0.4}
{"type":"plan","ts":1700000003,"level":"S2","action":"shares","gain":0.2,"dp":1,"from":8,"to":6,"cost":10}
{"type":"assign","ts":1700000003,"worker":"w1","local_steps":100,"share":0.5}
{"type":"merge","ts":1700000003,"tier":"lps","version":4,"from":"w1","staleness":1,"steps":100,"tokens":5000,"norm":0.5}
EOF
}

@test "a record of every type" {
    every_type >in
    run -0 --separate-stderr tlmcat -f prom in
    [ -z "$stderr" ]
    printf '%s\n' "$output" >out.prom
    run -0 check out.prom
    [ "$output" -eq 59 ]
    # what it says, of each type something
    while read -r line; do
        grep -qxF "$line" out.prom || { echo "$line" && return 1; }
    done <<'EOF'
evenpace_layout_dp 4
evenpace_step{job="lm",host="n1",rank="3"} 7
evenpace_step_busy_seconds{job="lm",host="n1",rank="3"} 1.2
evenpace_step_flop_total{job="lm",host="n1",rank="3"} 1000000000000000
evenpace_coll_bytes_total{host="n1",rank="3",op="all_reduce",comm="a\"b\\c\nd"} 1024
evenpace_p2p_seconds_total{op="send",comm="c"} 0.5
evenpace_span_seconds_total{dp="0",pp="1",op="forward-compute"} 0.5
evenpace_sensor_dcgm_fi_dev_fb_used_bytes{host="n1",gpu="GPU-8b22",name="DCGM_FI_DEV_FB_USED",pod="a"} 536870912
evenpace_reference_dcgm_fi_dev_fb_used_bytes{host="n1",gpu="GPU-8b22",name="DCGM_FI_DEV_FB_USED",pod="a",ref="own"} 5
evenpace_probe_result_flop_per_second{host="n1",test="gemm",dtype="f32",size="1024"} 100000000000
evenpace_link_bytes_per_second{src="n1",dst="n2"} 1000000000
evenpace_loss{split="train"} 2.25
evenpace_event_active{job="lm",scope="rank",id="rank=3",cause="cpu"} 1
evenpace_whatif_slowdown_ratio{what="all"} 1.2
evenpace_plan_to{dp="1",level="S2",action="shares"} 6
evenpace_assign_local_steps{worker="w1"} 100
evenpace_merge_version{tier="lps",from="w1"} 4
evenpace_last_record_timestamp_seconds{type="step",job="lm",host="n1",rank="3"} 1700000000.5
EOF
}

@test "our own importer reads the same values back" {
    every_type >in
    tlmcat -f prom -o out.prom in
    run -0 --separate-stderr tlmcat -f jsonl out.prom
    [ -z "$stderr" ]
    printf '%s\n' "$output" | jq -r '.value' | sort -g >got
    grep -v '^#' out.prom | sed 's/.* //' | jq . | sort -g >want
    [ "$(wc -l <want)" -eq 59 ]
    diff want got
    jq -r .type <<<"$output" | sort -u | grep -qx gauge
    # of a gauge the unit comes back too, and a percentage is one no more
    echo '{"type":"gauge","ts":1,"name":"util_percent","value":0.5,"unit":"1"}
{"type":"gauge","ts":1,"name":"a_ms","value":0.25,"unit":"s"}
{"type":"gauge","ts":1,"name":"temp","value":70,"unit":"degC"}
{"type":"gauge","ts":1,"name":"fan_rpm","value":30,"unit":"Hz"}
{"type":"gauge","ts":1,"name":"x_gbs","value":5e9,"unit":"B/s"}' >in
    tlmcat -f prom --no-merge -o out.prom in
    run -0 bash -c "tlmcat out.prom | jq -r 'select(.name | test(\"sensor\")) |
        \"\(.value) \(.unit)\"' | sort"
    [ "$output" = "0.25 s
0.5 1
30 Hz
5000000000 B/s
70 degC" ]
}

@test "a file is readable for all, whatever the umask, and replaced whole" {
    every_type >in
    mkdir d
    (umask 077 && tlmcat -f prom -o d/x.prom in)
    [ "$(stat -c %a d/x.prom)" = 644 ]
    [ "$(ls -A d)" = x.prom ]
    # not when the input is bad
    cp d/x.prom before
    run -2 --separate-stderr bash -c 'echo "{}" | tlmcat -f prom --strict -o d/x.prom'
    [[ $stderr == "tlmcat: "* ]]
    cmp before d/x.prom
    # an input without records: no series any more
    tlmcat -f prom -o d/x.prom </dev/null
    [ ! -s d/x.prom ]
}

@test "what cannot be written: the old file stays, status 2" {
    every_type >in
    mkdir d
    echo old >d/x.prom
    # a file may have 1 KiB: a disk that is full, in effect
    run -2 --separate-stderr bash -c "trap '' XFSZ; ulimit -f 1
        tlmcat -f prom -o d/x.prom in"
    [ "$stderr" = "tlmcat: cannot write $PWD/d/x.prom: File too large" ]
    [ "$(cat d/x.prom)" = old ]
    [ "$(ls -A d)" = x.prom ]
    run -2 --separate-stderr bash -c 'tlmcat -f prom in >/dev/full'
    [ "$stderr" = "tlmcat: cannot write standard output: No space left on device" ]
    run -2 --separate-stderr bash -c 'tlmcat -f prom in >&-'
    [ "$stderr" = "tlmcat: cannot write standard output: Bad file descriptor" ]
    run -2 --separate-stderr tlmcat -f prom -o /nonexistent/x.prom in
    [[ $stderr == "tlmcat: cannot create /nonexistent/x.prom: "* ]]
}

@test "a pipe that is closed ends it" {
    awk 'BEGIN { for (i = 0; i < 20000; i++)
        printf "{\"type\":\"loss\",\"ts\":1,\"step\":1,\"value\":1,\"host\":\"n%d\"}\n", i }' >in
    run -0 bash -c 'set -o pipefail; { tlmcat -f prom in; echo $? >status; } | head -n 1'
    [ "$(cat status)" -eq 141 ]
}

@test "what is followed: the file keeps up, and is whole at the end" {
    every_type >in
    mkdir d
    tlmcat --follow --lateness 0 -f prom -o d/x.prom in &
    pid=$!
    until_true grep -qs '^evenpace_loss{split="train"} 2.25$' d/x.prom
    # several in a row: those within the second come too, without more input
    for v in 5 6 7; do
        echo '{"type":"loss","ts":1700000004,"step":5,"value":'$v',"split":"train"}' >>in
        until_true grep -qs '^evenpace_loss{split="train"} '$v'$' d/x.prom
        [ "$(ls d)" = x.prom ]
        check d/x.prom
    done
    kill "$pid"
    wait "$pid"
    check d/x.prom
}

@test "a pipe without end: the file keeps up" {
    mkfifo pipe
    tlmcat -f prom -o x.prom <pipe &
    pid=$!
    exec 7>pipe
    for v in 1 2 3; do
        echo '{"type":"loss","ts":1,"step":1,"value":'$v'}' >&7
        until_true grep -qs "^evenpace_loss $v\$" x.prom
    done
    exec 7>&-
    wait "$pid"
}

@test "skewdetect: an alert begins and ends" {
    { steps 0 60 100 && steps 1 60 100; } >in
    { steps 0 60 100 61 && steps 1 60 200 61; } >>in
    skewdetect --max-bad 0 -f prom -o x.prom in
    check x.prom
    grep '^evenpace_event_active{.*id="rank=1".*} 1$' x.prom
    { steps 0 120 100 121 && steps 1 120 100 121; } >>in
    skewdetect -f prom -o x.prom in
    check x.prom
    grep '^evenpace_event_active{.*id="rank=1".*} 0$' x.prom
    run -1 grep '^evenpace_event_active.* 1$' x.prom
    grep '^evenpace_event_lost_gpu_seconds{' x.prom || true
    # nothing to do: a file that is there stays
    run -2 bash -c 'skewdetect -f prom -o x.prom </dev/null'
    check x.prom
    run -2 --separate-stderr skewdetect --tee -f prom in
    [[ $stderr == *"needs jsonl" ]]
}

@test "gpuprobe: results, and a file that is never whole otherwise" {
    run -0 gpuprobe -t membw:copy --size 1MiB --runs 2 -j 1 -f prom
    printf '%s\n' "$output" >out.prom
    check out.prom
    grep '^evenpace_probe_result_bytes_per_second{.*test="membw:copy"' out.prom
    grep '^evenpace_sensor_cpu_share{' out.prom
    gpuprobe -t membw:copy --size 1MiB --runs 1 -j 1 -f prom -o x.prom --repeat 0 &
    pid=$!
    until_true grep -qs '^evenpace_probe_result' x.prom
    check x.prom
    rm x.prom
    until_true grep -qs '^evenpace_probe_result' x.prom
}

@test "types that are not known are counted, not printed" {
    echo '{"type":"later","ts":5}' >in
    run -0 --separate-stderr tlmcat -f prom in
    [ -z "$output" ]
    [[ $stderr == "tlmcat: 1 records of types that this version does not know"* ]]
    run -2 --separate-stderr tlmcat -f prom --stats in
    [ "$stderr" = "tlmcat: cannot use --stats with --format prom" ]
}

# ==== --columns ====

@test "columns: one header, a row for each record of any type" {
    every_type >in
    run -0 --separate-stderr tlmcat --columns ts,type,host,dur,comm,from in
    [ -z "$stderr" ]
    [ "${#lines[@]}" -eq 15 ]
    [ "${lines[0]}" = $'ts\ttype\thost\tdur\tcomm\tfrom' ]
    [ "${lines[1]}" = $'\tlayout\t\t\t\t' ]
    [ "${lines[2]}" = $'1700000000.5\tstep\tn1\t1.5\t\t' ]
    [ "${lines[3]}" = $'1700000003\tcoll\tn1\t0.25\ta"b\\\\c\\nd\t' ]
    [ "${lines[12]}" = $'1700000003\tplan\t\t\t\t8' ]
    [ "${lines[14]}" = $'1700000003\tmerge\t\t\t\tw1' ]
    # sums in another tool
    run -0 bash -c "tlmcat --columns dur,dur in | awk -F '\t' 'NR > 1 && \$1 != \$2 { exit 1 } { n += \$1 } END { print n }'"
    [ "$output" = 2.75 ]
    run -0 tlmcat -f tsv --columns rank -o out in
    [ "$(wc -l <out)" -eq 15 ]
}

@test "columns: of the other programs, and what is refused" {
    { steps 0 60 100 && steps 1 60 100; } >in
    { steps 0 60 100 61 && steps 1 60 200 61; } >>in
    run -0 skewdetect --columns kind,id in
    [ "${lines[0]}" = $'kind\tid' ]
    [[ $output == *$'onset\trank=1'* ]]
    run -2 --separate-stderr tlmcat --columns ts,hsot in
    [ "$stderr" = "tlmcat: cannot use --columns hsot: no such key; is it host?" ]
    run -2 --separate-stderr tlmcat --columns ts, in
    [ "$stderr" = "tlmcat: cannot use --columns : no such key, see evenpace-record(5)" ]
    run -2 --separate-stderr tlmcat --columns bandwidth in
    [ "$stderr" = "tlmcat: cannot use --columns bandwidth: no such key, see evenpace-record(5)" ]
    run -2 --separate-stderr tlmcat -f jsonl --columns ts in
    [ "$stderr" = "tlmcat: cannot use --columns with that --format: it needs tsv" ]
    run -2 --separate-stderr skewdetect --tee --columns ts in
    [[ $stderr == *"needs jsonl" ]]
}

# ==== text ====

@test "text: the date, where it is another one" {
    echo '{"type":"loss","ts":1700000000,"step":1,"value":1}
{"type":"loss","ts":1700000001,"step":2,"value":1}
{"type":"whatif","what":"all","slowdown":1}
{"type":"loss","ts":1700006400,"step":3,"value":1}
{"type":"loss","ts":1700092800,"step":4,"value":1}' >in
    run -0 env TZ=UTC tlmcat -f text --no-merge in
    [ "$output" = "-- 2023-11-14 UTC --
22:13:20.000 loss    step=1 value=1
22:13:21.000 loss    step=2 value=1
             whatif  what=all slowdown=1
-- 2023-11-15 UTC --
00:00:00.000 loss    step=3 value=1
-- 2023-11-16 UTC --
00:00:00.000 loss    step=4 value=1" ]
    run -0 env TZ=XYZ-2 tlmcat -f text --no-merge in
    [ "${lines[0]}" = "-- 2023-11-15 XYZ --" ]
    [ "${lines[1]}" = "00:13:20.000 loss    step=1 value=1" ]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tlmcat-clocks.bats - --clock-skew and --align-clocks.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# colls HOST OFFSET [PPM] [FROM] [N]: a rank's all_reduce each second, 100 of
# them from 1700000000 on, by a clock that is OFFSET s ahead; ends scatter by
# 20 us. The begins are the host's own affair.
colls() {
    awk -v host="$1" -v off="$2" -v ppm="${3:-0}" -v from="${4:-0}" \
        -v n="${5:-100}" 'BEGIN {
        for (i = from; i < from + n; i++) {
            tail = 2e-5 * ((i * 7 + substr(host, 2) * 3) % 11) / 11
            end = 1 + i + off + i * ppm * 1e-6 + tail
            dur = 0.1 + (i * 37 % 10) / 20
            printf "{\"type\":\"coll\",\"ts\":%.6f,\"host\":\"%s\",\"op\":" \
                "\"all_reduce\",\"comm\":\"w\",\"seq\":%d,\"dur\":%.6f}\n",
                1700000000 + (end - dur), host, i, dur
        }
    }'
}

# The value of a host's clock_offset, in ms, rounded.
offset_of() { # offset_of HOST FILE
    jq -r "select(.host == \"$1\") | .value * 1000 | round" "$2"
}

@test "--clock-skew prints a gauge for each host, the worst first" {
    colls n1 0 >a
    colls n2 0.002 >b
    colls n3 -7.5 >c
    colls n4 0.004 >d
    tlmcat --clock-skew -f jsonl a b c d >out 2>err
    [ ! -s err ]
    [ "$(jq -r '[.type, .name, .unit] | join(" ")' out | sort -u)" = \
        "gauge clock_offset s" ]
    [ "$(jq -r .host out | head -n 1)" = n3 ]
    [ "$(wc -l <out)" -eq 4 ]
    # n1 or n2 is in the middle
    [ "$(($(offset_of n1 out) - $(offset_of n3 out)))" -eq 7500 ]
    [ "$(($(offset_of n4 out) - $(offset_of n2 out)))" -eq 2 ]
    [[ $(jq -r 'select(.host == "n3") | .evidence' out) == \
        "from 100 collectives, spread "*"s, error "*"s, drift 0 ppm, relative to n"[12] ]]
    run -0 bash -c 'cat d c b a | tlmcat --clock-skew -f text'
    [[ ${lines[0]} == host*offset*error*drift*collectives*spread ]]
    [[ ${lines[1]} == n3*-7.5\ s*100* ]]
    [ "$(grep -c reference <<<"$output")" -eq 1 ]
    run -0 bash -c 'tlmcat --clock-skew -f tsv a b c d | head -n 1'
    [[ $output == *name*value*unit* ]]
}

@test "--clock-skew tells a drift" {
    colls n1 0 >a
    colls n2 0.1 20 >b
    colls n3 0 >c
    tlmcat --clock-skew -f jsonl a b c >out
    jq -s -e 'map(select(.host == "n2"))[0].evidence |
        capture("drift (?<d>[-0-9.]+) ppm").d | tonumber | . > 19 and . < 21' out
}

@test "--clock-skew takes the chosen records, and says so if there are none" {
    { colls n1 0; colls n1 0 0 100; } >a
    { colls n2 1; colls n2 5 0 100; } >b
    colls n3 0 0 0 200 >c
    tlmcat --clock-skew -f jsonl --until 1700000090 a b c >out
    [ "$(offset_of n2 out)" -eq 1000 ]
    tlmcat --clock-skew -f jsonl --since 1700000120 a b c >out
    [ "$(offset_of n2 out)" -eq 5000 ]
    run -2 --separate-stderr tlmcat --clock-skew a
    [ -z "$output" ]
    [[ $stderr == *"cannot compare clocks: there is no collective of two hosts"* ]]
    [[ $stderr == *"1 hosts share no collective with another"*": n1"* ]]
}

@test "--align-clocks merges by one clock, with ts corrected in the line" {
    { colls n1 0; echo '{"type":"loss","ts":1700000200,"host":"n1","step":1,"value":1}'; } >a
    { colls n2 0; echo '{"type":"loss","ts":1700000201,"host":"n2","step":2,"value":1}'; } >b
    # 10 minutes ahead; unknown keys and spelling stay
    { colls n3 600; echo '{"note":{"ts":1},"type":"loss", "ts" :1700000800.5,"host":"n3","step":3,"value":1.50}'; } >c
    tlmcat --align-clocks -f jsonl a b c >out 2>err
    grep -q 'corrected the clocks of [12] hosts from 100 collectives, most that of n3, which was 10 min ahead of n[12]$' err
    [ "$(jq -r 'select(.type == "loss") | .step' out | tr '\n' ' ')" = "1 3 2 " ]
    grep -q '^{"note":{"ts":1},"type":"loss", "ts" :1700000200\.[0-9]*,"host":"n3","step":3,"value":1.50}$' out
    # the ends of a collective are together now
    jq -s -e 'map(select(.type == "coll")) | group_by(.seq) | map(map(.ts + .dur) | max - min) |
        length == 100 and max < 3e-5' out
    [ "$(wc -l <out)" -eq 303 ]
    run -0 tlmcat --align-clocks -q -f text --type loss a b c
    [ "${#lines[@]}" -eq 4 ] # the day, and the records
    run -0 --separate-stderr tlmcat -q --align-clocks -f tsv --type loss a b c
    [ -z "$stderr" ]
    [[ $(cut -f 2,14 <<<"${lines[2]}") == 1700000200.*$'\t'3 ]]
}

@test "--align-clocks reads folders and gz, leaves unknown hosts as they are" {
    need_feature ZLIB zlib
    mkdir d
    colls n1 0 | gzip >d/a.gz
    colls n2 3 | gzip >d/b.gz
    colls n9 7 0 500 | gzip >d/c.gz
    tlmcat --align-clocks -f jsonl d >out 2>err
    grep -q '1 hosts share no collective with another, their clocks are not compared: n9$' err
    [ "$(jq -r 'select(.host == "n9") | .ts' out)" = "$(zcat d/c.gz | jq -r .ts)" ]
    jq -s -e 'map(select(.host != "n9")) | group_by(.seq) | map(map(.ts + .dur) | max - min) | max < 3e-5' out
}

@test "hosts of two groups are told apart" {
    for h in n1 n2; do colls $h 0; done >a
    for h in n7 n8; do colls $h 9 | sed 's/"w"/"v"/'; done >b
    tlmcat --clock-skew -f text a b >out 2>err
    grep -q 'hosts are in 2 groups that share no collective' err
    [[ $(head -n 1 out) == *group* ]]
    [ "$(grep -c reference out)" -eq 2 ]
}

@test "nothing to align is said, and everything passes" {
    steps 0 3 20 >a
    run -0 --separate-stderr tlmcat --align-clocks -f jsonl a
    [ "$output" = "$(cat a)" ]
    [[ $stderr == *"no clock was corrected: there is no collective of two hosts"* ]]
}

@test "clocks that agree are no lack of collectives" {
    for h in n1 n2; do
        echo "{\"type\":\"coll\",\"ts\":5,\"host\":\"$h\",\"op\":\"all_reduce\",\"comm\":\"w\",\"seq\":1,\"dur\":0.5}"
    done >a
    run -0 --separate-stderr tlmcat --align-clocks -f jsonl a
    [ "$output" = "$(<a)" ]
    [ "$stderr" = "tlmcat: no clock was corrected: those of 2 hosts agree" ]
}

@test "--align-clocks refuses what cannot be read twice" {
    colls n1 0 >a
    run -2 bash -c 'cat a | tlmcat --align-clocks'
    [[ $output == "tlmcat: cannot use --align-clocks: it reads the input twice, and standard input is no file" ]]
    run -2 bash -c 'cat a | tlmcat --align-clocks a -'
    [[ $output == *"standard input is no file" ]]
    mkfifo p
    run -2 tlmcat --align-clocks a p
    [[ $output == *"twice, and p is no file" ]]
    run -2 tlmcat --align-clocks a http://localhost:1/metrics
    [[ $output == *"http://localhost:1/metrics is no file" ]]
    run -2 tlmcat --align-clocks --follow a
    [[ $output == *"not with --follow" ]]
    local other
    for other in --align-clocks --stats '--type coll'; do
        # shellcheck disable=SC2086 # two words
        run -2 tlmcat --clock-skew $other a
        [[ $output == *"cannot use --clock-skew: not with --${other#--}"* ||
            $output == *"not with --type" ]]
    done
    run -2 tlmcat --align-clocks a nothing
    [[ $output == *"nothing"* ]]
    run -2 tlmcat --align-clocks --from never a
    [[ $output == *"cannot use --from never"* ]]
}

@test "a bad line is counted once by --align-clocks" {
    { colls n1 0; echo '{"type":'; } >a
    colls n2 3 >b
    run -2 --separate-stderr tlmcat --align-clocks -f jsonl a b
    [ "$(grep -c "cannot use a:101" <<<"$stderr")" -eq 1 ]
    [[ $stderr == *"corrected the clocks of 1 hosts"* ]]
    run -0 tlmcat --align-clocks --max-bad 1 -f jsonl -o out a b
    [ "$(wc -l <out)" -eq 200 ]
}

@test "NCCL Inspector's verbose files are aligned too" {
    local host off
    mkdir d
    for host in n1 n2; do
        off=0
        [ $host = n1 ] || off=2500000
        awk -v host=$host -v off=$off 'BEGIN {
            for (i = 1; i <= 50; i++) {
                stop = 1748030377000000 + i * 1000000 + off
                printf "{\"header\":{\"id\":\"0x7f8c496ae9f661\",\"rank\":%d," \
                    "\"n_ranks\":2,\"nnodes\":2},\"metadata\":" \
                    "{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"\"," \
                    "\"rec_mechanism\":\"nccl_profiler_interface\"," \
                    "\"dump_timestamp_us\":%.0f,\"hostname\":\"%s\",\"pid\":7}," \
                    "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":%d," \
                    "\"coll_msg_size_bytes\":1024,\"coll_exec_time_us\":%d," \
                    "\"coll_timing_source\":\"kernel_gpu\"," \
                    "\"coll_algobw_gbs\":1.5,\"coll_busbw_gbs\":1.5," \
                    "\"event_trace_ts\":{\"coll_start_ts\":%.0f," \
                    "\"coll_stop_ts\":%.0f,\"kernel_events\":[]}}}\n",
                    host == "n1" ? 0 : 1, stop, host, i, 1000 + i, stop - 1000 - i, stop
            }
        }' >d/$host.log
    done
    tlmcat --clock-skew -f jsonl d >out
    [ "$(($(offset_of n2 out) - $(offset_of n1 out)))" -eq 2500 ]
    tlmcat --align-clocks -q -f jsonl d >out
    jq -s -e 'group_by(.seq) | map(map(.ts + .dur) | max - min) | length == 50 and max < 2e-6' out
}

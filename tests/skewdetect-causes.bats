#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect-causes.bats - why a rank is slow: its steps, and beside them what
# nvidia-smi, dcgm-exporter and node_exporter said at that time (of
# tests/fixtures/causes: from 10:08:20 on something is wrong with GPU 1, or n2).
# Where they come every 4 s a change has to last longer, so that they are read.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export TZ=UTC
    fixtures=$top_srcdir/tests/fixtures/causes
}

# steps RANK HOST FACTOR [MORE]: 80 steps of 1 s; busy grows by the factor from
# the 50th on. HOST may be -.
steps() {
    awk -v r="$1" -v h="$2" -v f="$3" -v more="${4:+,$4}" 'BEGIN {
        for (i = 0; i < 80; i++)
            printf "{\"type\":\"step\",\"ts\":%.6f,\"rank\":%d,%s\"step\":%d,\"dur\":1,\"busy\":%.6f,\"mb\":4,\"tokens\":16384%s}\n",
                1790244450 + i, r, (h == "-" ? "" : "\"host\":\"" h "\","), i,
                0.5 * (1 + 0.002 * ((i * 7 + r) % 5 - 2)) * (i >= 50 ? f : 1),
                more }'
}

# told: who, cause and evidence of the onsets
told() {
    jq -r 'select(.kind == "onset" and .scope != "job") |
        "\(.id): \(.cause): \(.evidence)"'
}

@test "nvidia-smi: the clock of one GPU falls, and why" {
    steps 0 n1 1 >r0
    steps 1 n1 1.4 >r1
    # by the order of the ranks on the one host that there is
    run -0 --separate-stderr skewdetect "$fixtures/smi-slowdown.csv" r0 r1
    [ -z "$stderr" ]
    run -0 told <<<"$output"
    [[ $output == "rank=1: compute: "*", SM clock 1.98 GHz -> 1.4 GHz"* ]]
    [[ $output == *", hw_slowdown"* ]]
    [[ $output == *"memory, links, tokens normal" ]]
    [ ${#lines[@]} -eq 1 ]
}

@test "a GPU that is told by a rank is that rank's, whatever its number" {
    steps 0 n1 1.4 '"gpu":"GPU-8b21"' >r0
    steps 1 n1 1 '"gpu":"GPU-8b20"' >r1
    skewdetect "$fixtures/smi-slowdown.csv" r0 r1 | told >out
    cat out
    run -0 grep -c '^rank=0: compute: .*SM clock 1.98 GHz -> 1.4 GHz' out
    # the hot one is not slow for that
    steps 0 n1 1.4 '"gpu":"GPU-8b20"' >r0
    steps 1 n1 1 '"gpu":"GPU-8b21"' >r1
    skewdetect "$fixtures/smi-slowdown.csv" r0 r1 | told >out
    cat out
    run -0 grep -c '^rank=0: .*clocks, memory.* normal$' out
    run -1 grep -E 'SM clock|temperature|hw_' out
}

@test "nvidia-smi: PCIe under load, not while idle" {
    steps 0 n1 1 >r0
    steps 1 n1 1.4 >r1
    run -0 told < <(skewdetect "$fixtures/smi-pcie.csv" r0 r1)
    [[ $output == "rank=1: link: "*", PCIe width 16 -> 8; clocks, tokens normal" ]]
}

@test "dcgm-exporter: memory clock and remapped rows" {
    steps 0 n1 1 >r0
    steps 1 n1 1.4 >r1
    run -0 told < <(skewdetect "$fixtures/dcgm-memory.prom" r0 r1)
    [[ ${lines[0]} == *"; no sensor read since" ]]
    output=${lines[-1]}
    [[ $output == "rank=1: memory: "*", memory clock 2.62 GHz -> 1.59 GHz"* ]]
    [[ $output == *"2 rows remapped"* && $output == *"Xid 63"* ]]
    [[ $output == *"; clocks, "* ]]
}

@test "node_exporter: a host waits for its disks" {
    for r in 0 1; do
        steps $r n1 1 >r$r
        steps $((r + 2)) n2.cluster 1.4 >r$((r + 2))
    done
    # the exporter is read every 10 s: the cause is told better then
    skewdetect "$fixtures"/node-n?.prom r? | told >out
    cat out
    run -0 tail -n 1 out
    [[ $output == 'host=n2.cluster: storage: '*', I/O pressure 0.01 -> 0.46, CPUs in I/O wait 0.04 -> 1.80; '*normal* ]]
    [[ $output == *', 2 of 2 ranks of host=n2.cluster'* ]]
    run -1 grep -Ev '^host=n2.cluster: ' out
}

@test "no sensors: the shape tells pauses, tokens tell more work" {
    steps 0 n1 1 >r0
    awk '{ f = NR > 50 ? 1 + 0.4 * (0.6 + 0.8 * (NR * 7919 % 100) / 100) : 1
        match($0, /"busy":[0-9.]*/)
        printf "%s\"busy\":%.6f%s\n", substr($0, 1, RSTART - 1),
            substr($0, RSTART + 7, RLENGTH - 7) * f,
            substr($0, RSTART + RLENGTH) }' r0 |
        sed 's/"rank":0/"rank":1/' >r1
    run -0 told < <(skewdetect r0 r1)
    [[ ${lines[-1]} == "rank=1: gc: "*", pauses: excess "*" %; tokens normal" ]]
    steps 1 n1 1.5 | sed '51,$s/"tokens":16384/"tokens":24576/' >r1
    run -0 told < <(skewdetect r0 r1)
    [[ $output == "rank=1: sequence-imbalance: "*", tokens per micro-batch 1.50x" ]]
}

@test "sensors that stop are not taken for normal ones" {
    steps 0 n1 1 >r0
    steps 1 n1 1.4 >r1
    head -n 81 "$fixtures/smi-slowdown.csv" | sed '/10:08:[1-9]/d' >before.csv
    run -0 told < <(skewdetect before.csv r0 r1)
    [[ $output == "rank=1: compute: "*"tokens normal; no sensor read since" ]]
}

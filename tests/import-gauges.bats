#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# import-gauges.bats - sensors through tlmcat: Prometheus text, nvidia-smi and
# dmon. A fixture is a file in tests/fixtures/FORMAT: NAME.in, the records
# NAME.want and, where there are bad elements, their number in NAME.bad.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export TZ=UTC
}

# convert WANT-STATUS ARGUMENT...: records are in $output. Those without a time
# of their own have that of the file.
convert() {
    run "-$1" --separate-stderr tlmcat "${@:2}"
    if [ "$1" = 0 ]; then
        [ -z "$stderr" ]
    else
        [ -n "$stderr" ]
    fi
}

# check FORMAT: its fixtures, named to tlmcat and recognised by it.
check() {
    local base in n=0 rc
    for in in "${top_srcdir:?}/tests/fixtures/$1"/*.in; do
        echo "$in"
        base=${in%.in}
        rc=0
        [ ! -e "$base.bad" ] || rc=2
        cp "$in" input
        touch -d @1800000000 input
        convert "$rc" --from "$1" input
        diff <(printf '%s' "${output:+$output$'\n'}") "$base.want"
        convert "$rc" input
        diff <(printf '%s' "${output:+$output$'\n'}") "$base.want"
        n=$((n + 1))
    done
    [ "$n" -ge 5 ]
}

@test "prometheus: each fixture gives the records written beside it" {
    check prometheus
}

@test "nvidia-smi: each fixture gives the records written beside it" {
    check nvidia-smi
}

@test "dmon: each fixture gives the records written beside it" {
    check dmon
}

@test "a file of NCCL Inspector's metrics says in its name which GPU it is" {
    local name=nccl_inspector_metrics_8b22f1a5-0001-0002-0003-444455556666.prom
    printf '%s\n' 'nccl_bus_bandwidth_gbs{node="n1",gpu="GPU0"} 5' \
        'nccl_bus_bandwidth_gbs{node="n1",UUID="GPU-1"} 6' 'up 1' >"$name"
    convert 0 "$name"
    [ "$(jq -r '.gpu // "-"' <<<"$output" | xargs)" = \
        "GPU-8b22f1a5-0001-0002-0003-444455556666 GPU-1 -" ]
    mv "$name" nccl_inspector_metrics_unknown.prom
    convert 0 nccl_inspector_metrics_unknown.prom
    [ "$(jq -r '.gpu // "-"' <<<"$output" | xargs)" = "- GPU-1 -" ]
}

@test "local times: by TZ, in summer and in winter" {
    printf '%s\n' 'timestamp, index, power.draw [W]' \
        '2026/01/15 12:00:00.500, 0, 30.00 W' \
        '2026/07/15 12:00:00.000, 0, 31.00 W' >smi
    TZ=Europe/Berlin convert 0 smi
    [ "$(jq -c .ts <<<"$output" | xargs)" = "1768474800.5 1784109600" ] ||
        skip "no data of time zones"
    printf '%s\n' '#Date Time gpu pwr' '#YYYYMMDD HH:MM:SS Idx W' \
        ' 20260715 12:00:00 0 31' >dmon
    TZ=Europe/Berlin convert 0 dmon
    [ "$(jq -c .ts <<<"$output")" = 1784109600 ]
}

@test "nvidia-smi without a header is refused with the reason" {
    cp "$top_srcdir/tests/fixtures/nvidia-smi/noheader.in" in
    convert 2 in
    [ -z "$output" ]
    [[ $stderr == *"cannot read in: no line with the names of the columns"* ]]
}

@test "a line that cannot be understood is described with its place" {
    printf '%s\n' 'a_b{c="d"} 1' 'a_b{c="d"} one' 'a_b{c="d"} 2' >in
    convert 2 in
    [ "$(jq -c .value <<<"$output" | xargs)" = "1 2" ]
    [[ $stderr == *"in:2: the value is one, no number"* ]]
    printf '%s\n' 'index, power.draw [W]' '0, 1 W' '0' '0, 2 W' >in
    convert 2 in
    [ "$(jq -c .value <<<"$output" | xargs)" = "1 2" ]
    [[ $stderr == *"in:3: 1 cells, where the header has 2"* ]]
}

@test "sensors of several nodes are merged by time" {
    printf 'a_b{Hostname="n1"} %d %d000\n' 1 1700000001 3 1700000003 >one
    printf 'a_b{Hostname="n2"} %d %d000\n' 2 1700000002 4 1700000004 >two
    convert 0 one two
    [ "$(jq -r '"\(.host)=\(.value)"' <<<"$output" | xargs)" = \
        "n1=1 n2=2 n1=3 n2=4" ]
}

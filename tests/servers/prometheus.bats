#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# prometheus.bats - what a real exporter says, scraped over HTTP: the node
# exporter of Prometheus on this machine, on loopback.

load ../lib

setup() {
    command -v prometheus-node-exporter >/dev/null ||
        skip "prometheus-node-exporter is not installed"
    command -v curl >/dev/null || skip "curl is not installed"
    command -v jq >/dev/null || skip "jq is not installed"
    cd "$BATS_TEST_TMPDIR" || return 1
    exporter=
    local try
    for try in 1 2 3 4 5; do # a port may be taken by somebody else
        url=http://127.0.0.1:$((20000 + RANDOM % 10000))
        prometheus-node-exporter --web.listen-address="${url#http://}" \
            >"log.$try" 2>&1 &
        exporter=$!
        if wait_for_answer; then
            return 0
        fi
        stop
    done
    cat log.*
    return 1
}

# Until the exporter answers; false if it ended, or took 10 s.
wait_for_answer() {
    local deadline=$((SECONDS + 10))
    while kill -0 "$exporter" 2>/dev/null; do
        curl -s -f -o /dev/null "$url/metrics" && return 0
        [ "$SECONDS" -lt "$deadline" ] || return 1
    done
    return 1
}

stop() {
    [ -n "${exporter:-}" ] || return 0
    kill "$exporter" 2>/dev/null || true
    wait "$exporter" 2>/dev/null || true
    exporter=
}

teardown() {
    stop
}

# samples FILE: how many lines are samples with a finite value.
samples() {
    awk '!/^[[:space:]]*(#|$)/ && $NF !~ /[Ii]nf|NaN/ { n++ }
        END { print n + 0 }' "$1"
}

@test "every sample of a node exporter is a record" {
    curl -s -f -o scrape "$url/metrics"
    run -0 --separate-stderr tlmcat scrape
    [ -z "$stderr" ]
    printf '%s\n' "$output" >got
    [ "$(samples scrape)" -gt 100 ]
    [ "$(wc -l <got)" -eq "$(samples scrape)" ]
    [ "$(jq -r .type got | sort -u)" = gauge ]
}

@test "values and units are those of the machine" {
    curl -s -f -o scrape "$url/metrics"
    tlmcat scrape >got
    # the total memory is the same for everybody
    local total
    total=$(awk '$1 == "MemTotal:" { printf "%.0f", $2 * 1024 }' /proc/meminfo)
    [ "$(jq -r 'select(.name == "node_memory_MemTotal_bytes") |
        "\(.value) \(.unit)"' got)" = "$total B" ]
    # time is in seconds, and so is the ts of a sample without one
    [ "$(jq -r 'select(.name == "node_time_seconds") | .unit' got)" = s ]
    jq -s -e '[.[] | select(.name == "node_time_seconds")][0] |
        .value - .ts | . > -60 and . < 60' got >/dev/null
    # labels that stay, in the spelling of a series
    jq -r .name got |
        grep -q '^node_cpu_seconds_total{cpu="[0-9]*",mode="idle"}$'
    jq -r 'select(.name | startswith("node_cpu_seconds_total")) | .unit' got |
        sort -u | grep -qx s
}

@test "each name and value as another program reads them" {
    curl -s -f -o scrape "$url/metrics"
    tlmcat scrape | jq -r '[.name, .value] | @tsv' | LC_ALL=C sort >got
    # labels of node exporter are sorted, and hold no blanks round the braces
    command -v python3 >/dev/null || skip "python3 is not installed"
    python3 - scrape <<'PY' | LC_ALL=C sort >want
import json
import math
import re
import sys

gone = {"Hostname", "hostname", "instance", "gpu", "UUID"}
for line in open(sys.argv[1]):
    line = line.rstrip("\n")
    if not line or line.startswith("#"):
        continue
    series, value = line.rsplit(" ", 1)
    value = float(value)
    if not math.isfinite(value):
        continue
    labels = set(re.findall(r'[{,](\w+)="', series))
    series = re.sub(r'(?<=[{,])\w+=""(,|(?=}))', "", series)
    series = series.replace(",}", "}").replace("{}", "")
    if labels & gone or re.search(r"_(rpm|percent)\b|_(ms|hz)\b", series):
        continue
    print(series, value, sep="\t")
PY
    # compare as numbers: each program spells them in its own way
    python3 - got want <<'PY'
import re
import sys

def read(path):
    out = {}
    for line in open(path):
        name, value = line.rstrip("\n").rsplit("\t", 1)
        # @tsv writes a backslash as two
        if path == "got":
            name = name.replace("\\\\", "\\")
        out[name] = float(value)
    return out

got, want = read("got"), read("want")
bad = [n for n in want if got.get(n) != want[n]]
for n in bad[:10]:
    print(n, want[n], got.get(n))
print(len(want), "series")
sys.exit(bool(bad) or len(want) < 100)
PY
}

@test "the same scrape compressed, and in the form of OpenMetrics" {
    need_feature ZLIB zlib
    curl -s -f -o scrape "$url/metrics"
    gzip -k scrape
    run -0 tlmcat scrape.gz
    [ "${#lines[@]}" -eq "$(samples scrape)" ]
    curl -s -f -o open -H 'Accept: application/openmetrics-text' "$url/metrics"
    run -0 --separate-stderr tlmcat open
    [ -z "$stderr" ]
    [ "${#lines[@]}" -eq "$(samples open)" ]
}

@test "the exporter by our own HTTP: a form that is read, compressed" {
    need_feature CURL curl
    local get="$top_builddir/tests/unit/test_url"
    "$get" read "$url/metrics" >ours
    run -0 --separate-stderr tlmcat ours
    [ -z "$stderr" ]
    curl -s -f -o scrape "$url/metrics"
    jq -r .name <<<"$output" | sort >got
    tlmcat scrape | jq -r .name | sort | diff - got
    if has_feature ZLIB; then
        gzip -t <ours
    fi
    # many at once: all of them whole
    run -0 --separate-stderr "$get" read -t 30 \
        "$url/metrics"{,,,,,,,,,,,,,,,,,,,}
    [ -z "$stderr" ]
}

# ==== The other way: what we write, served by the node exporter ====

# Serve the folder textfiles with nothing but its textfile collector.
serve_textfiles() {
    stop
    url=http://127.0.0.1:$((20000 + RANDOM % 10000))
    prometheus-node-exporter --web.listen-address="${url#http://}" \
        --collector.disable-defaults --collector.textfile \
        --collector.textfile.directory="$PWD/textfiles" >log.textfile 2>&1 &
    exporter=$!
    wait_for_answer
}

# records of types, ranks, sensors; the names that need rewriting
write_textfile() {
    {
        steps 0 20 100
        steps 1 20 200
        echo '{"type":"coll","ts":1700000003,"host":"n1","rank":3,"op":"all_reduce","comm":"a\"b\\c\nd","dur":0.25,"bytes":1024}'
        echo '{"type":"gauge","ts":1,"host":"n1","gpu":"GPU-8b22","name":"DCGM_FI_DEV_FB_USED{pod=\"a\",host=\"x\"}","value":536870912,"unit":"B","ref_own":5}'
        echo '{"type":"gauge","ts":1,"name":"req_ms_bucket{le=\"0.5\"}","value":3,"unit":"1"}'
        echo '{"type":"gauge","ts":1,"name":"Temp (hot spot) [C]","value":70.5,"unit":"degC"}'
        echo '{"type":"event","ts":5,"eid":"e","kind":"onset","scope":"rank","id":"rank=1","since":4,"factor":2,"cause":"gpu"}'
    } >in
    mkdir -p textfiles
    (umask 077 && tlmcat --no-merge -f prom -o textfiles/evenpace.prom in)
}

@test "promtool has nothing to say about -f prom" {
    command -v promtool >/dev/null || skip "promtool is not installed"
    write_textfile
    run -0 --separate-stderr promtool check metrics <textfiles/evenpace.prom
    [ -z "$output$stderr" ]
    curl -s -f -o scrape "$url/metrics"
    tlmcat -f prom scrape >foreign.prom
    [ "$(grep -vc '^#' foreign.prom)" -gt 100 ]
    run -0 --separate-stderr promtool check metrics <foreign.prom
    [ -z "$output$stderr" ]
    # it does find something where there is something
    echo 'evenpace_x_milliseconds 1' >bad.prom
    run -3 promtool check metrics <bad.prom
}

@test "the textfile collector serves what was written, and all of it" {
    write_textfile
    serve_textfiles
    curl -s -f -o scrape "$url/metrics"
    grep -x 'node_textfile_scrape_error 0' scrape
    grep -q 'node_textfile_mtime_seconds{file=.*evenpace.prom"}' scrape
    # labels are in another order, and empty ones added: compare as records
    tlmcat scrape | jq -c 'select(.name | startswith("evenpace_")) |
        del(.ts)' | sort >got
    tlmcat textfiles/evenpace.prom | jq -c 'del(.ts)' | sort >want
    [ "$(wc -l <want)" -gt 30 ]
    diff want got
}

@test "a file that is rewritten all the time is always whole to the collector" {
    mkdir textfiles
    serve_textfiles
    mkfifo pipe
    tlmcat -f prom -o textfiles/evenpace.prom <pipe 3>&- &
    local reader=$! i
    exec 7>pipe
    for i in 1 2 3 4 5 6 7 8; do
        echo '{"type":"loss","ts":1,"step":'$i',"value":0.5}' >&7
        local deadline=$((SECONDS + 20))
        until curl -s -f "$url/metrics" >scrape &&
            grep -qx "evenpace_loss_step $i" scrape; do
            grep -qx 'node_textfile_scrape_error 0' scrape
            [ "$SECONDS" -lt "$deadline" ]
        done
    done
    exec 7>&-
    wait "$reader"
}

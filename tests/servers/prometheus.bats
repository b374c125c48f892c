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

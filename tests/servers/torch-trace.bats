#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# torch-trace.bats - a trace that the profiler of a real PyTorch wrote.

load ../lib

setup() {
    python=$(command -v /usr/bin/python3 || true)
    [ -n "$python" ] && "$python" -c 'import torch' 2>/dev/null ||
        skip "PyTorch is not installed"
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >profile.py <<'EOF'
import sys
import torch
from torch.profiler import ProfilerActivity, profile, schedule

plan = schedule(wait=1, warmup=1, active=3, repeat=1)
with profile(activities=[ProfilerActivity.CPU], schedule=plan,
             on_trace_ready=lambda p: p.export_chrome_trace(sys.argv[1])) as p:
    a = torch.randn(64, 64)
    for step in range(6):
        a = torch.tanh(a @ a)
        p.step()
EOF
}

@test "a trace of PyTorch's profiler: its steps" {
    timeout 60 "$python" profile.py trace.json >out 2>&1 || { cat out; false; }
    run -0 --separate-stderr tlmcat trace.json
    [ -z "$stderr" ]
    printf '%s\n' "$output" >got
    [ "$(jq -r .type got | sort -u)" = step ]
    # the profiler numbers the steps that it records, and times are in us
    "$python" - trace.json <<'EOF' >want
import json
import sys

trace = json.load(open(sys.argv[1]))
events = trace if isinstance(trace, list) else trace["traceEvents"]
base = 0 if isinstance(trace, list) else trace.get("baseTimeNanoseconds", 0)
for e in events:
    if e["name"].startswith("ProfilerStep#"):
        print(e["name"].split("#")[1], round(e["dur"] * 1000),
              round((e["ts"] * 1000 + base) / 1e6))
EOF
    jq -r '"\(.step) \(.dur * 1e9 | round) \(.ts * 1e3 | round)"' got |
        diff want -
    [ "$(wc -l <want)" -eq 3 ]
}

@test "the same trace compressed, and by name of the format" {
    need_feature ZLIB zlib
    timeout 60 "$python" profile.py trace.json.gz >out 2>&1 ||
        { cat out; false; }
    run -0 tlmcat trace.json.gz
    [ "$(wc -l <<<"$output")" -eq 3 ]
    run -0 tlmcat --from kineto trace.json.gz
    [ "$(wc -l <<<"$output")" -eq 3 ]
}

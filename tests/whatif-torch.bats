#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# whatif-torch.bats - spans that share/examples/record-spans.py took of a real
# training loop, in which rank 1 works ten times for each micro-batch.

load lib

setup() {
    for python in /usr/bin/python3 python3; do
        "$python" -c 'import torch.distributed as d
assert d.is_available()' 2>/dev/null && break
        python=
    done
    [ -n "$python" ] || skip "PyTorch is not installed"
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "a PyTorch loop: the rank that works more is named" {
    timeout 120 "$python" "$top_srcdir/share/examples/record-spans.py" \
        --slow 10 --batch 64 --out s >log 2>&1 || { cat log; false; }
    [ ! -e s.meet ]
    [ "$(wc -l <s-0.jsonl)" -eq 50 ] && [ "$(wc -l <s-1.jsonl)" -eq 50 ]
    run -0 --separate-stderr tlmcat s-0.jsonl
    [ -z "$stderr" ]
    run -0 --separate-stderr whatif s-0.jsonl s-1.jsonl
    [ -z "$stderr" ]
    printf '%s\n' "$output" >out
    [ "$(field '.type == "event"' '.cause + " " + .id' <out)" = "worker dp=1,pp=0" ]
    run -0 jq -r 'select(.what == "all") | .slowdown > 1.2' out
    [ "$output" = true ]
}

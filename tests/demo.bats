#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# demo.bats - the example job, in its short form: everything in it is measured.

load lib

# What a run on a quiet machine has to show.
convincing() {
    [ "$status" -eq 0 ] &&
        [[ $output == *"ONSET   rank=1 "* ]] &&
        [[ $output == *"cpu-contention: "* ]] &&
        [[ $output == *"rebalance plans "* ]] &&
        # what the plan gave is measured: some of the slowdown is gone
        [[ $output =~ :\ (-?[0-9]+)\ %\ of\ the\ slowdown\ removed ]] &&
        [ "${BASH_REMATCH[1]}" -gt 10 ]
}

@test "a straggler is made, found, planned for and mitigated" {
    need_feature OPENBLAS OpenBLAS
    [ "$(nproc)" -ge 2 ] || skip "only one CPU"
    local try noisy=0 tries=5
    for ((try = 1; try <= tries; try++)); do
        run "$top_srcdir/share/examples/two-ranks" --short
        echo "try $try: status $status"
        echo "$output"
        # whatever the machine does, the table and the findings are there
        [ "$status" -le 1 ]
        [[ $output == *"median of     steps       time"* ]]
        [[ $output == *"onset"*" step and 0 probe records"* ]]
        convincing && return 0
        # ranks that nothing was done to are the control
        [[ $output != *"the machine is noisy"* ]] || noisy=$((noisy + 1))
    done
    [ "$noisy" -lt "$tries" ] || skip "the machine is too noisy for two ranks"
    false
}

@test "the example refuses what it does not know" {
    run -2 --separate-stderr "$top_srcdir/share/examples/two-ranks" --nope
    [ "$stderr" = "usage: two-ranks [--short]" ]
}

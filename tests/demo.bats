#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# demo.bats - the example job, in its short form: everything in it is measured.

load lib

@test "a straggler is made, found, planned for and mitigated" {
    need_feature OPENBLAS OpenBLAS
    [ "$(nproc)" -ge 2 ] || skip "only one CPU"
    local try quiet=no
    for try in 1 2 3; do
        run "$top_srcdir/share/examples/two-ranks" --short
        echo "try $try: status $status"
        echo "$output"
        [ "$status" -le 1 ]
        [[ $output == *"median of     steps       time"* ]]
        [[ $output == *"onset"*" step and 0 probe records"* ]]
        # ranks that nothing was done to are the control
        [[ $output == *"the machine is noisy"* ]] || { quiet=yes && break; }
    done
    [ $quiet = yes ] || skip "the machine is too noisy for two ranks"
    [ "$status" -eq 0 ]
    [[ $output == *"ONSET   rank=1 "* ]]
    [[ $output == *"cpu-contention: "* ]]
    [[ $output == *"rebalance plans "* ]]
    # what the plan gave is measured: some of the slowdown is gone
    [[ $output =~ :\ (-?[0-9]+)\ %\ of\ the\ slowdown\ removed ]]
    [ "${BASH_REMATCH[1]}" -gt 10 ]
}

@test "the example refuses what it does not know" {
    run -2 --separate-stderr "$top_srcdir/share/examples/two-ranks" --nope
    [ "$stderr" = "usage: two-ranks [--short]" ]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lsgd-merge.bats - merging checkpoints end to end: methods, options, what is
# refused, files that are whole or not there. The arithmetic is tested against
# formulas in tests/unit/test_merge.c.

load lib

mk() { "$top_builddir/tests/unit/mksafetensors" "$@"; }

# values FILE TENSOR: its values, on one line
values() { mk --print "$1" "$2" | paste -sd' '; }

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    mk base format=pt w:F32:2x2:1,2,3,4 n:BF16:3:1,1,1 i:I64:2:7,8
    mk a evenpace.tokens=100 evenpace.steps=4 \
        w:F32:2x2:2,2,3,0 n:BF16:3:2,1,1 i:I64:2:7,8
    mk b evenpace.tokens=300 evenpace.steps=8 \
        w:F32:2x2:4,2,1,4 n:BF16:3:4,1,1 i:I64:2:7,8
}

# What is in this folder, but for what bats keeps in it.
listing() {
    find . -mindepth 1 -maxdepth 1 ! -name 'separate-stderr*' -printf '%f\n' |
        sort
}

# Whatever a test that failed has left running.
teardown() {
    local left
    left=$(jobs -p)
    # shellcheck disable=SC2086 # several words
    [ -z "$left" ] || kill -9 $left 2>/dev/null || :
}

# The record of input N (from 0) in the lines of the last run.
record() { jq -c "$2" <<<"${lines[$1]}"; }

@test "mean is the default; one record per input" {
    run -0 --separate-stderr lsgd-merge -o out base a b
    [ -z "$stderr" ]
    [ "$(values out w)" = "3 2 2 2" ]
    [ "$(values out n)" = "3 1 1" ]
    [ "$(values out i)" = "7 8" ]
    [ "${#lines[@]}" -eq 2 ]
    [ "$(record 0 '[.type, .tier, .version, .from, .steps, .tokens]')" = \
        '["merge","file",1,"a",4,100]' ]
    # of a: 1 + 16 in w, 1 in n
    [ "$(record 0 '.norm * .norm * 1e9 | round / 1e9')" = 18 ]
    [ "$(record 1 '.from')" = '"b"' ]
}

@test "weights: a list, and tokens" {
    run -0 lsgd-merge -q -w 1,3 -o out base a b
    [ "$(values out w)" = "3.5 2 1.5 3" ]
    run -0 lsgd-merge -q --weights tokens -o tokens base a b
    run -0 cmp out tokens
    run -0 lsgd-merge -q -w .5,1.5 -o half base a b
    run -0 cmp out half
}

@test "weights that make no sense are refused" {
    for w in 1 1,2,3 1,-1 0,0 nan,1 '1,' '' 1,x; do
        run -2 --separate-stderr lsgd-merge -w "$w" -o out base a b
        [ -z "$output" ]
        [[ $stderr == "lsgd-merge: cannot use "* ]]
    done
    run -2 --separate-stderr lsgd-merge -w tokens -o out base base a b base
    [ "${stderr_lines[0]}" = "lsgd-merge: cannot merge base: evenpace.tokens is missing" ]
    [ "${stderr_lines[2]}" = "lsgd-merge: cannot merge: 2 differences" ]
    run -2 lsgd-merge -m delayed-nesterov -N 2 -w 1,2 -o out base a b
    [ ! -e out ]
}

@test "mix: alpha weights the inputs" {
    run -0 lsgd-merge -q -m mix --alpha 0.25 -o out base a b
    [ "$(values out w)" = "1.5 2 2.75 3.5" ]
    run -0 lsgd-merge -q -m mix -o out base a b
    [ "$(values out w)" = "2 2 2.5 3" ]
    run -0 lsgd-merge -q -m mix --alpha 0 -o out base a b
    [ "$(values out w)" = "1 2 3 4" ]
}

@test "sgd: base - lr mean(g)" {
    # mean(g) = base - mean = -2 0 1 2
    run -0 lsgd-merge -q -m sgd --lr 0.5 -o out base a b
    [ "$(values out w)" = "2 2 2.5 3" ]
    run -0 lsgd-merge -q -m sgd -o out base a b
    run -0 lsgd-merge -q -o mean base a b
    run -0 cmp out mean
}

@test "nesterov: two steps of DiLoCo, by hand" {
    # g = -2 0 1 2, lr .5, beta .5: m = g, theta -= .5 (.5 m + g) = .75 g
    run -0 --separate-stderr lsgd-merge -m nesterov --lr .5 --beta .5 \
        --state-out s1 -o o1 base a b
    [ -z "$stderr" ]
    [ "$(values o1 w)" = "2.5 2 2.25 2.5" ]
    [ "$(values s1 momentum.w)" = "-2 0 1 2" ]
    # g = o1 - mean = -.5 0 .25 .5; m = .5 m + g = -1.5 0 .75 1.5
    run -0 lsgd-merge -m nesterov --lr .5 --beta .5 --state s1 \
        --state-out s2 -o o2 o1 a b
    [ "$(record 0 .version)" = 2 ]
    [ "$(values s2 momentum.w)" = "-1.5 0 0.75 1.5" ]
    # .5 (.5 m + g) = -.625 0 .3125 .625
    [ "$(values o2 w)" = "3.125 2 1.9375 1.875" ]
    run -0 lsgd-merge -f text --show s2
    [[ $output == *"evenpace.outer_step"*2* ]]
}

@test "delayed-nesterov: one pass is one after the other, bit for bit" {
    for k in 1 2 3 4 5; do
        mk "d$k" evenpace.kind=delta evenpace.sign=end-start \
            w:F32:2x2:@random:$k n:F32:3:@random:1$k i:I64:2:7,8
    done
    mk fbase w:F32:2x2:1,2,3,4 n:F32:3:1,1,1 i:I64:2:7,8
    opts=(-q -m delayed-nesterov -N 2 --momentum-share .25 --lr .7 --beta .9)
    run -0 lsgd-merge "${opts[@]}" --state-out s -o all fbase d1 d2 d3 d4 d5
    run -0 lsgd-merge "${opts[@]}" --state-out s1 -o o fbase d1
    for k in 2 3 4 5; do
        run -0 lsgd-merge "${opts[@]}" --state s1 --state-out s1 -o o o "d$k"
    done
    run -0 cmp all o
    run -0 cmp s s1
    # with two in one call
    run -0 lsgd-merge "${opts[@]}" --state-out s2 -o p fbase d1 d2 d3
    run -0 lsgd-merge "${opts[@]}" --state s2 --state-out s2 -o p p d4 d5
    run -0 cmp all p
}

@test "delta: made, stated, and applied again" {
    run -0 lsgd-merge -q -m delta --dtype F32 -o d base a
    [ "$(values d w)" = "-1 0 0 4" ]
    run -0 bash -c 'lsgd-merge --show -f jsonl d | head -n 1 | jq -c "[.metadata[\"evenpace.kind\"], .metadata[\"evenpace.sign\"], .metadata[\"evenpace.steps\"]]"'
    [ "$output" = '["delta","start-end","4"]' ]
    run -0 lsgd-merge -q -m sgd -o back base d
    [ "$(values back w)" = "$(values a w)" ]
    run -0 lsgd-merge -q -m mix --alpha 0.5 -o half base d
    [ "$(values half w)" = "1.5 2 3 2" ]
    # a model and a delta together
    run -0 lsgd-merge -q -o both base d b
    [ "$(values both w)" = "3 2 2 2" ]
}

@test "the sign of deltas: stated, declared, contradicted" {
    mk plain w:F32:2x2:1,1,1,1 n:F32:3:0 i:I64:2:7,8
    mk nosign evenpace.kind=delta w:F32:2x2:1,1,1,1 n:F32:3:0 i:I64:2:7,8
    mk start evenpace.kind=delta evenpace.sign=start-end \
        w:F32:2x2:1,1,1,1 n:F32:3:0 i:I64:2:7,8
    for f in plain nosign start; do
        run -0 lsgd-merge -q -m sgd --delta-sign start-end -o out base $f
        [ "$(values out w)" = "0 1 2 3" ]
    done
    run -0 lsgd-merge -q -m sgd --delta-sign end-start -o out base plain
    [ "$(values out w)" = "2 3 4 5" ]
    rm out
    run -2 --separate-stderr lsgd-merge -o out base nosign
    [[ $stderr == "lsgd-merge: cannot merge nosign: a delta that states no sign"* ]]
    run -2 --separate-stderr lsgd-merge --delta-sign end-start -o out base start
    [[ $stderr == *"start: its sign is start-end, not end-start as declared"* ]]
    run -2 --separate-stderr lsgd-merge -o out start base
    [[ $stderr == *"start: it is a delta, the base must be a model"* ]]
    [ ! -e out ]
}

@test "--dtype and --compute" {
    run -0 lsgd-merge -q --dtype F64 --compute f32 -w 1,2 -o out base a b
    # in float: 10/3 is rounded once
    [ "$(values out w)" = "3.3333332538604736 2 1.6666666269302368 2.6666667461395264" ]
    run -0 lsgd-merge -q --dtype F64 -w 1,2 -o out base a b
    [ "$(values out w)" = "3.3333333333333335 2 1.6666666666666667 2.6666666666666665" ]
    run -0 lsgd-merge -q --dtype F64 --compute f64 -w 1,2 -o same base a b
    run -0 cmp out same
    # what a float cannot hold is said as it is
    mk h w:F64:2x2:1,2,3,1e300 n:BF16:3:1,1,1 i:I64:2:7,8
    run -2 --separate-stderr lsgd-merge --compute f32 -o no base h
    [ "$stderr" = 'lsgd-merge: cannot merge h: tensor "w", element 3: 1e+300 is too large for F32, which it is computed in' ]
    run -0 lsgd-merge -q --dtype BF16 -w 1,2 -o out base a b
    [ "$(values out w)" = "3.328125 2 1.6640625 2.671875" ]
    run -0 lsgd-merge -q --dtype F16 -w 1,2 -o out base a b
    [ "$(values out w)" = "3.333984375 2 1.6669921875 2.666015625" ]
    # as bytes: 3.25 1.75 2.75 in E4M3, 3.5 1.75 2.5 in E5M2
    run -0 lsgd-merge -q --dtype F8_E4M3 -w 1,2 -o out base a b
    [ "$(values out w)" = "69 64 61 67" ]
    run -0 lsgd-merge -q --dtype F8_E5M2 -w 1,2 -o out base a b
    [ "$(values out w)" = "67 64 63 65" ]
    [ "$(values out i)" = "7 8" ]
    # F64 anywhere: double, and a state in F64
    mk a64 w:F64:2x2:2,2,3,1e-30 n:BF16:3:1,1,1 i:I64:2:7,8
    run -0 lsgd-merge -q -m nesterov --state-out s --dtype F32 -o out base a64
    run -0 bash -c 'lsgd-merge --show -f tsv s | cut -f1,2 | sort'
    [[ $output == *"momentum.n"*F32*"momentum.w"*F64* ]]
}

@test "all differences are listed, then it is refused" {
    mk c w:F32:4:1,2,3,4 extra:F32:1:1 i:I32:2:7,8
    mk d w:F32:2x2:1,2,3,4 i:I64:2:7,8 $'bad\nname:F32:1:1' n:F16:3:1,1,1
    run -2 --separate-stderr lsgd-merge -o out base c a d
    [ -z "$output" ]
    [ "${#stderr_lines[@]}" -eq 6 ]
    p='lsgd-merge: cannot merge'
    [ "${stderr_lines[0]}" = "$p c: tensor \"extra\": not in the base" ]
    [ "${stderr_lines[1]}" = "$p c: tensor \"i\": type I32, the base has I64" ]
    [ "${stderr_lines[2]}" = "$p c: tensor \"n\": missing" ]
    [ "${stderr_lines[3]}" = "$p c: tensor \"w\": shape [4], the base has [2, 2]" ]
    [ "${stderr_lines[4]}" = "$p d: tensor \"bad\\x0aname\": not in the base" ]
    [ "${stderr_lines[5]}" = "$p: 5 differences" ]
    [ ! -e out ]
}

@test "--allow-missing: weights renormalised, the base's kept, extra left out" {
    mk c w:F32:2x2:5,5,5,5 extra:F32:1:1
    mk base2 w:F32:2x2:1,2,3,4 n:BF16:3:1,1,1 i:I64:2:7,8 only:F32:2:3,4
    run -2 lsgd-merge -o out base2 a c
    run -0 --separate-stderr lsgd-merge -q --allow-missing -w 1,3 -o out base2 a c
    [ "$(values out w)" = "4.25 4.25 4.5 3.75" ]
    [ "$(values out n)" = "2 1 1" ]
    [ "$(values out only)" = "3 4" ]
    run -0 bash -c 'lsgd-merge --show -f tsv out | cut -f1 | paste -sd" "'
    [[ $output == *"i n only w" ]]
    # what was done is said, unless -q
    run -0 --separate-stderr lsgd-merge --allow-missing -o out base2 a c
    [ "$stderr" = "lsgd-merge: not all tensors were there: 1 from fewer inputs, 1 the base's alone, 1 left out" ]
    run -0 --separate-stderr lsgd-merge --allow-missing -o out base a b
    [ -z "$stderr" ]
    run -0 lsgd-merge -q -m nesterov --state-out s -o s1 base a
    mk next evenpace.outer_step=1 w:F32:2x2:1,2,3,4 v:F32:1:1
    run -0 --separate-stderr lsgd-merge --allow-missing -m nesterov --state s \
        --state-out s -o out next next
    [ "$stderr" = "lsgd-merge: not all tensors were there: 1 without its state, 1 left out" ]
    mk shape w:F32:4:1,2,3,4
    run -2 --separate-stderr lsgd-merge --allow-missing -o out base2 shape
    [ "${#stderr_lines[@]}" -eq 2 ]
}

@test "NaN and infinities: refused with file, tensor and element" {
    mk c w:F32:2x2:1,2,nan,inf n:BF16:3:1,1,1 i:I64:2:7,8
    run -2 --separate-stderr lsgd-merge -o out base a c
    [ "$stderr" = 'lsgd-merge: cannot merge c: tensor "w", element 2: it is nan' ]
    run -2 --separate-stderr lsgd-merge -n base a c
    run -2 --separate-stderr lsgd-merge -o out c a
    [ "$stderr" = 'lsgd-merge: cannot merge c: tensor "w", element 2: it is nan' ]
    [ ! -e out ]
    run -0 lsgd-merge -q --allow-nonfinite -o out base a c
    [ "$(values out w)" = "1.5 2 nan inf" ]
    # too large for the type of the output
    mk big w:F32:2x2:1,2,65520,0 n:BF16:3:1,1,1 i:I64:2:7,8
    run -2 --separate-stderr lsgd-merge --dtype F16 -o no base big
    [ "$stderr" = 'lsgd-merge: cannot write no: tensor "w", element 2: the result 65520 is too large for F16' ]
    run -2 --separate-stderr lsgd-merge -q -n --dtype F16 base big
    [ "$stderr" = 'lsgd-merge: cannot write the result: tensor "w", element 2: the result 65520 is too large for F16' ]
    run -0 --separate-stderr lsgd-merge --dtype F8_E4M3 -o out base big
    [ "$stderr" = 'lsgd-merge: 1 element of out beyond the range of F8_E4M3 became its largest' ]
    run -0 --separate-stderr lsgd-merge -q --dtype F8_E4M3 -o out base big
    [ -z "$stderr" ]
    [ "$(values out w)" = "56 64 126 0" ]
    [ ! -e no ]
}

@test "tensors that are not computed with: the base's, and a remark" {
    mk c w:F32:2x2:1,2,3,4 n:BF16:3:1,1,1 i:I64:2:7,9
    run -0 --separate-stderr lsgd-merge -o out base a c
    [ "$stderr" = 'lsgd-merge: cannot merge c: tensor "i": I64 is not computed with, and differs: the base'"'"'s is kept' ]
    [ "$(values out i)" = "7 8" ]
    run -0 --separate-stderr lsgd-merge -q -o out base a c
    [ -z "$stderr" ]
}

@test "state: out of step, of another size, without use" {
    opts=(-m delayed-nesterov -N 2)
    run -0 lsgd-merge -q "${opts[@]}" --state-out s1 -o o1 base a
    run -2 --separate-stderr lsgd-merge "${opts[@]}" --state s1 -o no base a
    [[ $stderr == *"s1: it is of outer step 1, the base of 0: they are out of step"* ]]
    run -2 --separate-stderr lsgd-merge -m delayed-nesterov -N 3 --state s1 -o no o1 a
    [[ $stderr == *"s1: its buffer of 2 holds 1, a new size (3) needs an empty one"* ]]
    run -2 --separate-stderr lsgd-merge "${opts[@]}" --state base -o no o1 a
    [[ $stderr == *"base: it is not the state of an optimiser"* ]]
    run -2 --separate-stderr lsgd-merge --state s1 -o no o1 a
    [ "$stderr" = "lsgd-merge: cannot use --state: not with this --method" ]
    run -2 --separate-stderr lsgd-merge "${opts[@]}" --state-out ./no -o no o1 a
    [ "$stderr" = "lsgd-merge: cannot use --state-out: it is --output too" ]
    [ ! -e no ]
    # a momentum that is lost is said
    run -0 --separate-stderr lsgd-merge "${opts[@]}" -o o2 o1 a
    [ "${stderr_lines[0]}" = "lsgd-merge: the momentum is not kept: no --state-out" ]
    [ "${stderr_lines[1]}" = "lsgd-merge: the momentum begins at 0: no --state, but the base is of outer step 1" ]
    run -0 --separate-stderr lsgd-merge -q "${opts[@]}" -o o2 o1 a
    [ -z "$stderr" ]
}

@test "options that the method has not are refused" {
    for o in "--alpha .1" "--lr 1" "--beta .1" "-N 2" "--momentum-share .1" \
        "--state a" "--state-out x"; do
        # shellcheck disable=SC2086 # two words
        run -2 --separate-stderr lsgd-merge $o -o out base a
        [[ $stderr == "lsgd-merge: cannot use --"*": not with this --method" ]]
    done
    run -2 --separate-stderr lsgd-merge -m delayed-nesterov -o out base a
    [ "$stderr" = "lsgd-merge: cannot use delayed-nesterov: it needs --buffer" ]
    run -2 lsgd-merge -m delayed-nesterov -N 4 --momentum-share .5 -o out base a
    run -2 lsgd-merge -m nesterov --beta 1 -o out base a
    run -2 lsgd-merge base a
    run -2 lsgd-merge -o out base
    run -2 lsgd-merge -o out
    run -2 lsgd-merge --show
    run -2 lsgd-merge --diff a
    run -2 lsgd-merge --show --diff a b
}

@test "options that would do nothing are refused" {
    only=("-m mean" "--alpha .1" "--lr 1" "--beta .1" "-N 2" "-n" "-q" "-o x"
        "--momentum-share .1" "--state a" "--state-out x" "--dtype F32"
        "--dtype keep" "--compute auto" "--delta-sign start-end" "--no-sync"
        "--shard-size 1k" "--allow-missing" "--allow-nonfinite" "-w 1")
    for o in "${only[@]}"; do
        for mode in "--show" "--diff"; do
            # shellcheck disable=SC2086 # two words
            run -2 --separate-stderr lsgd-merge $mode $o base a
            [[ $stderr == "lsgd-merge: cannot use --"*" with $mode" ]]
            [ -z "$output" ]
        done
    done
    for o in --all --exit-code "-j 1"; do
        # shellcheck disable=SC2086 # two words
        run -2 --separate-stderr lsgd-merge --show $o base
        [[ $stderr == "lsgd-merge: cannot use --"*" with --show" ]]
    done
    for o in --all --exit-code; do
        run -2 --separate-stderr lsgd-merge $o -o x base a
        [ "$stderr" = "lsgd-merge: cannot use $o without --diff" ]
    done
    [ ! -e x ]
}

@test "operands: options behind them, empty names, links that lead nowhere" {
    run -2 --separate-stderr lsgd-merge -o out base a --lr 1
    [ "$stderr" = "lsgd-merge: cannot open --lr: no such file; options come before files" ]
    run -2 --separate-stderr lsgd-merge --show base -f
    [ "$stderr" = "lsgd-merge: cannot open -f: no such file; options come before files" ]
    cp a ./-x
    run -0 lsgd-merge -q -o out base -x
    run -2 --separate-stderr lsgd-merge -o '' base a
    [ "$stderr" = "lsgd-merge: cannot use --output: the name is empty" ]
    run -2 --separate-stderr lsgd-merge -m nesterov --state '' -o no base a
    [ "$stderr" = "lsgd-merge: cannot use --state: the name is empty" ]
    run -2 --separate-stderr lsgd-merge -o no base ''
    [ "$stderr" = 'lsgd-merge: cannot open "": the name is empty' ]
    ln -s nowhere link
    run -2 --separate-stderr lsgd-merge -o link base a
    [ "$stderr" = "lsgd-merge: cannot create link: its link leads nowhere" ]
    [ ! -e no ]
}

@test "words that nobody knows in the metadata are refused" {
    mk odd evenpace.kind=Delta evenpace.sign=start-end \
        w:F32:2x2:1,1,1,1 n:BF16:3:0 i:I64:2:7,8
    run -2 --separate-stderr lsgd-merge -o out base odd
    [ "${stderr_lines[0]}" = 'lsgd-merge: cannot merge odd: its evenpace.kind "Delta" is not model, delta or state' ]
    run -2 --separate-stderr lsgd-merge -o out odd base
    [ "${stderr_lines[0]}" = 'lsgd-merge: cannot merge odd: its evenpace.kind "Delta" is not model, delta or state' ]
    mk odd evenpace.sign=start-end w:F32:2x2:1,1,1,1 n:BF16:3:0 i:I64:2:7,8
    run -2 --separate-stderr lsgd-merge -o out base odd
    [ "${stderr_lines[0]}" = "lsgd-merge: cannot merge odd: it has an evenpace.sign, but no evenpace.kind that says that it is a delta" ]
    mk odd evenpace.kind=delta evenpace.sign=up \
        w:F32:2x2:1,1,1,1 n:BF16:3:0 i:I64:2:7,8
    run -2 --separate-stderr lsgd-merge --delta-sign start-end -o out base odd
    [ "${stderr_lines[0]}" = 'lsgd-merge: cannot merge odd: its evenpace.sign "up" is not start-end or end-start' ]
    [ ! -e out ]
}

@test "settings: those of the state, unless others are given" {
    opts=(-m delayed-nesterov -N 2 --momentum-share .25 --lr .5 --beta .5)
    run -0 lsgd-merge -q "${opts[@]}" --state-out s1 -o o1 base a
    run -0 lsgd-merge -q "${opts[@]}" --state s1 --state-out want.s -o want o1 b
    run -0 --separate-stderr lsgd-merge -m delayed-nesterov --state s1 \
        --state-out s2 -o o2 o1 b
    [ -z "$stderr" ]
    run -0 cmp want o2
    run -0 cmp want.s s2
    run -0 --separate-stderr lsgd-merge "${opts[@]}" --lr .75 \
        --momentum-share .125 --state s1 --state-out s2 -o o2 o1 b
    [ "$stderr" = "lsgd-merge: --lr is 0.75, the state was made with 0.5
lsgd-merge: --momentum-share is 0.125, the state was made with 0.25" ]
    run -0 --separate-stderr lsgd-merge -q "${opts[@]}" --lr .75 --state s1 \
        --state-out s2 -o o2 o1 b
    [ -z "$stderr" ]
    mk bad evenpace.kind=state evenpace.outer_step=1 evenpace.beta=much \
        momentum.w:F32:1:1
    run -2 --separate-stderr lsgd-merge -m nesterov --state bad -o no o1 b
    [ "$stderr" = 'lsgd-merge: cannot read bad: its evenpace.beta "much" is not a number' ]
}

@test "the state takes no other file's place, nor does the result the state's" {
    run -0 lsgd-merge -q -m nesterov --state-out s -o o base a
    run -0 lsgd-merge -q --shard-size 16 -o shards base a
    ln -s a link
    for f in base ./a link; do
        run -2 --separate-stderr lsgd-merge -m nesterov --state-out "$f" -o no base a
        [ "$stderr" = "lsgd-merge: cannot use --state-out: it is a file of the base or of an input" ]
    done
    for f in shards/*; do
        run -2 lsgd-merge -m nesterov --state-out "$f" -o no base shards
    done
    run -0 lsgd-merge --show shards
    run -2 --separate-stderr lsgd-merge -m nesterov --state s --state-out s2 -o s o a
    [ "$stderr" = "lsgd-merge: cannot use --output: it is --state too" ]
    [ ! -e no ]
}

@test "a shard alone, without an index" {
    mkdir lone
    cp base lone/model-00001-of-00002.safetensors
    run -2 --separate-stderr lsgd-merge -o out lone lone
    [ "${stderr_lines[0]}" = "lsgd-merge: cannot read lone: model-00001-of-00002.safetensors is one shard of several, and their index, model.safetensors.index.json, is missing" ]
    # named itself it is a file like others
    run -0 lsgd-merge --show lone/model-00001-of-00002.safetensors
    run -0 lsgd-merge -q -o out lone/model-00001-of-00002.safetensors a
}

@test "threads do not change a byte" {
    args=()
    for k in 1 2 3; do args+=("t$k:F32:70001:@random:$k" "u$k:BF16:5:1,2"); done
    mk big0 "${args[@]}"
    mk big1 "${args[@]//random:/random:1}"
    mk big2 "${args[@]//random:/random:2}"
    for m in mean nesterov delta; do
        run -0 lsgd-merge -q -f jsonl -m $m -j 1 -o o1 big0 big1 big2
        one=$(jq -c .norm <<<"$output")
        run -0 lsgd-merge -q -f jsonl -m $m -j 4 -o o4 big0 big1 big2
        [ "$(jq -c .norm <<<"$output")" = "$one" ]
        run -0 cmp o1 o4
    done
}

@test "shards out and in again; OUT must be new" {
    run -0 lsgd-merge -q -o whole base a b
    run -0 lsgd-merge -q --shard-size 16 -o shards base a b
    [ -e shards/model.safetensors.index.json ]
    run -0 bash -c 'ls shards/*.safetensors | wc -l'
    [ "$output" -gt 1 ]
    run -0 lsgd-merge --diff --exit-code whole shards
    run -0 lsgd-merge -q -o again shards shards
    run -0 lsgd-merge --diff --exit-code whole again
    run -2 --separate-stderr lsgd-merge -q --shard-size 16 -o shards base a b
    [[ $stderr == "lsgd-merge: cannot "* ]]
}

@test "OUT may be the base, or an input" {
    cp base first
    cp a second
    run -0 lsgd-merge -q -o want first a b
    run -0 lsgd-merge -q -o first first a b
    run -0 cmp want first
    run -0 lsgd-merge -q -o second base second b
    run -0 cmp want second
}

@test "dry run: all checks, nothing written" {
    run -0 --separate-stderr lsgd-merge -n -o out -f text base a b
    [ -z "$stderr" ]
    [[ $output == *"mean of 2 inputs: 3 tensors, 1 of them carried, read 114 B, write 38 B, outer step 1"* ]]
    [[ $output == *$'\n'"nothing written: read 114 B in "* ]]
    [ ! -e out ]
    run -0 --separate-stderr lsgd-merge -n base a b
    [[ $stderr == "lsgd-merge: mean of 2 inputs: 3 tensors"* ]]
    [ "${#lines[@]}" -eq 2 ]
    run -2 lsgd-merge -n base nosuch
}

@test "forms of the report" {
    run -0 lsgd-merge -f text -o out base a b
    [ "${lines[0]}" = "weight  steps  tokens     norm  input" ]
    [ "${lines[1]}" = "     1      4     100  4.24264  a" ]
    [[ ${lines[4]} == "moved "*" in "*B/s ]]
    run -0 lsgd-merge -f tsv -o out base a b
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == type$'\t'ts* ]]
    run -0 lsgd-merge -q -f text -o out base a b
    [ -z "$output" ]
}

@test "a report that cannot be written: nothing is in place" {
    run -0 lsgd-merge -q -m nesterov --state-out s -o out base a
    cp s s.was
    cp out out.was
    listing >../before
    for to in '/dev/full' '&-'; do
        for f in text jsonl tsv; do
            run -2 --separate-stderr bash -c "lsgd-merge -f $f -m nesterov \
                --state s --state-out s -o out out b >$to"
            [[ $stderr == "lsgd-merge: cannot write standard output: "* ]]
            [ "${#stderr_lines[@]}" -eq 1 ]
            run -0 cmp out out.was
            run -0 cmp s s.was
        done
    done
    run -2 bash -c 'lsgd-merge --shard-size 8 -o shards base a >/dev/full'
    run -0 diff ../before <(listing)
    # nothing to print, nothing that fails
    run -0 bash -c 'lsgd-merge -q -f text -o new base a >/dev/full'
    [ -e new ]
}

@test "--show and --diff" {
    run -0 lsgd-merge -f text --show base a
    [[ $output == *"base: 3 tensors"*"a: 3 tensors"* ]]
    run -0 lsgd-merge -f text --diff base base
    [[ $output == "equal: 3 tensors"* ]]
    run -0 lsgd-merge -f text --diff base a
    [[ $output == *"differ in 2 of 3 tensors"* ]]
    run -1 lsgd-merge --exit-code --diff base a
    run -0 lsgd-merge --diff --exit-code --all base base
    [ "${#lines[@]}" -eq 4 ]
    run -2 --separate-stderr lsgd-merge --diff base nosuch
    [[ $stderr == "lsgd-merge: cannot open nosuch: "* ]]
    run -2 --separate-stderr lsgd-merge --show nosuch base
    [[ $output == *'"path":"base"'* ]]
}

@test "names of tensors: empty, long, and with tabs" {
    long=$(printf 'layer.%.0s' {1..20})
    mk odd $'tab\tline\nback\\:F32:1:1' :F32:1:1 "$long:F32:1:1"
    run -0 lsgd-merge -f text --show odd
    [[ $output == *$'\n""'* ]]
    [[ $output == *$'\nlayer.layer.layer.layer.laye...yer.layer.layer.layer.layer.  '* ]]
    run -0 lsgd-merge -f tsv --show odd
    [[ $output == *$'\ntab\\tline\\nback\\\\\tF32\t'* ]]
    [[ $output == *"$long"$'\t'* ]]
    run -0 lsgd-merge -f tsv --diff --all odd odd
    [[ $output == *$'\ntab\\tline\\nback\\\\\tequal\t'* ]]
    run -0 lsgd-merge -f text --diff --all odd odd
    [[ $output == *$'\n""  '*"laye...yer."* ]]
    mk one w:F32:1:1
    run -0 lsgd-merge -f text --show one
    [ "${lines[0]}" = "one: 1 tensor, 1 parameter, 4 B" ]
}

@test "files that are not there, or are pickles: each one is named" {
    printf 'PK\003\004' >model.pt
    run -2 --separate-stderr lsgd-merge -o out base nosuch1 a nosuch2 model.pt
    [ "${#stderr_lines[@]}" -eq 3 ]
    [[ ${stderr_lines[0]} == "lsgd-merge: cannot open nosuch1: "* ]]
    [[ ${stderr_lines[2]} == "lsgd-merge: cannot read model.pt: "* ]]
    [ ! -e out ]
}

@test "300 inputs, with few descriptors" {
    inputs=()
    for k in {1..150}; do inputs+=(a b); done
    run -0 bash -c 'ulimit -n 32 && lsgd-merge -q -o out base "$@"' - "${inputs[@]}"
    [ "$(values out w)" = "3 2 2 2" ]
    [ "${#lines[@]}" -eq 300 ]
}

# A model of 3 GB that takes no room.
sparse() {
    local args=() k
    for k in {1..10}; do
        args+=("layer.$k.w:F32:75000000:@sparse" "layer.$k.n:F32:64:@sparse")
    done
    mk "$1" "${args[@]}"
}

# limited ARGUMENT...: with data and stacks of 64 MiB, by the kernel's count (a
# sanitizer needs more for itself)
limited() {
    grep -q __asan_init "$(command -v lsgd-merge)" || ulimit -d 65536
    ulimit -s 512
    lsgd-merge -q -f text -n -j 4 -m delayed-nesterov -N 4 "$@"
}

@test "64 MiB of private memory are enough for 3 GB, and for 16 inputs" {
    sparse sparse
    run -0 limited sparse sparse sparse
    mk small w:F32:300000:@random:1
    inputs=()
    for k in {1..16}; do inputs+=(small); done
    run -0 limited small "${inputs[@]}"
}

@test "killed half-way: OUT is as it was, and nothing is left" {
    sparse sparse
    cp base out
    ls -A >before
    lsgd-merge -q --no-sync -j 1 -o out sparse sparse >/dev/null &
    pid=$!
    for ((i = 0; i < 1000; i++)); do
        n=$(awk '/^wchar/ { print $2 }' "/proc/$pid/io") || break
        [ "$n" -lt 20000000 ] || break
        sleep 0.01
    done
    [ "$n" -ge 20000000 ]
    kill -9 $pid
    run wait $pid
    run -0 cmp base out
    # where a file can be without a name; else it is refused by every reader
    for f in .out.*; do
        [ -e "$f" ] || continue
        run -2 lsgd-merge --show "$f"
        rm -f "$f"
    done
    run -0 diff before <(ls -A)
}

@test "a disk that is full: OUT is as it was" {
    [ "$(id -u)" = 0 ] || skip "mounting needs root"
    mkdir small
    mount -t tmpfs -o size=256k tmpfs small 2>mount.err || skip "mounting needs root"
    mk large w:F32:100000:@random:1
    cp base small/out
    run --separate-stderr lsgd-merge -o small/out large large
    ls -A small >left
    cmp base small/out && same=yes
    umount small
    [ "$status" -eq 2 ]
    [ "$stderr" = "lsgd-merge: cannot create small/out: No space left on device" ]
    [ "$same" = yes ]
    [ "$(cat left)" = out ]
}

@test "a file that may not grow: OUT is as it was" {
    mk large w:F32:100000:@random:1
    cp base out
    run -2 --separate-stderr bash -c \
        'ulimit -f 16; lsgd-merge -o out large large'
    [[ $stderr == "lsgd-merge: cannot "*" out: File too large" ]]
    run -0 cmp base out
}

# stuck OPTION...: a merge in the background whose report is longer than a pipe
# holds, and nobody reads it; all is written then, and nothing is in place. Sets
# pid, and reader (which reads it when it gets USR1).
stuck() {
    local far=./ inputs=() k i
    for k in {1..11}; do far=$far$far; done
    for k in {1..40}; do inputs+=("${far:0:3900}a"); done
    mkfifo pipe
    bash -c 'trap "cat >report; exit" USR1; while :; do sleep 0.05; done' \
        <pipe 3>&- &
    reader=$!
    env --default-signal=HUP,INT,PIPE,TERM lsgd-merge -f jsonl --no-sync "$@" \
        "${inputs[@]}" >pipe 2>err 3>&- &
    pid=$!
    for ((i = 0; i < 1000; i++)); do
        grep -qs pipe_write "/proc/$pid/wchan" && return
        sleep 0.01
    done
    kill -9 "$pid" "$reader"
    return 1
}

# released: read the report; the status of the merge in $status
released() {
    kill -USR1 "$reader"
    wait "$pid" && status=0 || status=$?
    wait "$reader"
    rm -f pipe
}

@test "signals: the files are taken away, and the status is the signal's" {
    env --default-signal=INT true || skip "env has no --default-signal"
    run -0 lsgd-merge -q -m nesterov --state-out s -o o base a
    cp s s.was
    for sig in HUP:129 INT:130 PIPE:141 TERM:143; do
        listing >../before
        stuck --shard-size 16 -m nesterov --state s --state-out s -o shards o \
            || skip "the pipe is not seen to be full"
        # there, but hidden
        run -0 bash -c 'ls -A | grep -c "^\.shards\......."'
        run -1 bash -c 'ls | grep shards'
        if [ "${sig%:*}" = PIPE ]; then
            kill -9 "$reader"
        else
            kill -s "${sig%:*}" "$pid"
        fi
        wait "$pid" && status=0 || status=$?
        [ "$status" -eq "${sig#*:}" ]
        kill -9 "$reader" 2>/dev/null || :
        wait "$reader" || :
        [ ! -s err ]
        rm -f pipe err
        listing >../after
        run -0 diff ../before ../after
        run -0 cmp s s.was
    done
}

@test "OUT that cannot be replaced at the end: the state is the old one" {
    run -0 lsgd-merge -q -m nesterov --state-out s -o o base a
    cp s s.was
    cp a out
    stuck -m nesterov --state s --state-out s -o out o ||
        skip "the pipe is not seen to be full"
    rm out
    mkdir out
    listing >../before
    released
    [ "$status" -eq 2 ]
    [ "$(cat err)" = "lsgd-merge: cannot write out: Is a directory" ]
    run -0 cmp s s.was
    rm report
    run -0 diff <(grep -vx pipe ../before) <(listing)
}

@test "OUT is busy when the state is in place: the old state is put back" {
    [ "$(id -u)" = 0 ] || skip "mounting needs root"
    run -0 lsgd-merge -q -m nesterov --state-out s -o o base a
    cp s s.was
    cp a out
    touch busy
    listing >../before
    mount --bind busy out 2>../mount.err || skip "mounting needs root"
    run --separate-stderr lsgd-merge -m nesterov --state s --state-out s -o out o a
    umount out
    [ "$status" -eq 2 ]
    [ "$stderr" = "lsgd-merge: cannot write out: Device or resource busy" ]
    run -0 cmp s s.was
    run -0 cmp out a
    run -0 diff ../before <(listing)
}

@test "an input that changes while it is read is refused" {
    sparse sparse
    cp --sparse=always sparse other
    lsgd-merge -q --no-sync -n -j 1 sparse sparse other >report 2>err &
    pid=$!
    for ((i = 0; i < 1000; i++)); do
        grep -qs '/other$' "/proc/$pid/maps" && break
        sleep 0.01
    done
    touch other
    wait "$pid" && status=0 || status=$?
    [ "$status" -eq 2 ]
    [ "$(cat err)" = "lsgd-merge: cannot merge other: it changed while it was read" ]
    [ ! -s report ]
}

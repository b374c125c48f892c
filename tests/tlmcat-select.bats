#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tlmcat-select.bats - choosing records and reading any text, by the options of
# tlmcat. Conditions and times one by one are in tests/unit/test_select.c.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export TZ=UTC
}

loss() { # loss TS STEP HOST
    printf '{"type":"loss","ts":%s,"host":"%s","step":%s,"value":1}\n' \
        "$1" "$3" "$2"
}

# The steps of the records that these options choose from the file in.
chosen() {
    tlmcat -f jsonl "$@" in | jq -c .step | xargs
}

@test "--type and --where given twice add up" {
    { loss 1 1 n1; loss 2 2 n2; steps 1 3 20 3; } >in
    [ "$(chosen --type step)" = "3 4 5" ]
    [ "$(chosen --type step --type loss)" = "1 2 3 4 5" ]
    [ "$(chosen --where host=n1)" = "1" ]
    [ "$(chosen --where host=n1 --where host=n2)" = "1 2" ]
    [ "$(chosen --where host=n1 --where step=2)" = "" ]
    [ "$(chosen --where rank=1 --where step=4,step=5)" = "4 5" ]
}

@test "--where compares and has globs" {
    { loss 1 1 n1; loss 2 2 n12; loss 3 3 m1; } >in
    [ "$(chosen --where 'host=n*')" = "1 2" ]
    [ "$(chosen --where 'host=?1')" = "1 3" ]
    [ "$(chosen --where 'host!=n*')" = "3" ]
    [ "$(chosen --where 'step>1')" = "2 3" ]
    [ "$(chosen --where 'step>=2,step<3')" = "2" ]
    [ "$(chosen --where 'step!=2')" = "1 3" ]
    run -2 --separate-stderr tlmcat --where 'host<n2' in
    [ "$stderr" = "tlmcat: cannot use --where host<n2: text has no order, only = and !=" ]
}

@test "--since and --until: fractions, zones, ages, days" {
    local now
    now=$(date +%s)
    { loss $((now - 200000)) 1 a; loss $((now - 3000)) 2 a
      loss $((now - 30)) 3 a; loss $((now + 3600)) 4 a; } >in
    [ "$(chosen --since -10m)" = "3 4" ]
    [ "$(chosen --since -1h --until now)" = "2 3" ]
    [ "$(chosen --until yesterday)" = "1" ]
    [ "$(chosen --since "$(date -u -d "@$((now - 3000))" +%FT%T.000+00:00)")" = "2 3 4" ]
    [ "$(chosen --since "$(TZ=UTC-5 date -d "@$((now - 2999))" +%FT%T.5+0500)")" = "3 4" ]
    { loss 1796008455.25 1 a; loss 1796008455.75 2 a; } >in
    [ "$(chosen --since 2026-11-30T03:14:15.5)" = "2" ]
    [ "$(chosen --until 2026-11-30T05:14:15.5+02:00)" = "1" ]
    run -2 --separate-stderr tlmcat --since 10m in
    [[ $stderr == "tlmcat: cannot use --since 10m: not YYYY-MM-DD[Thh:mm[:ss]]"*"-AGE (-10m)"* ]]
    run -2 --separate-stderr tlmcat --since 20 --until 10 in
    [ "$stderr" = "tlmcat: cannot use --since 20: not before --until" ]
}

@test "several patterns, each with its type or all with one" {
    need_feature PCRE2 PCRE2
    printf 'loss 2.5 at 3\nstep 4 took 7s\n' >log
    run -0 bash -c "tlmcat -f jsonl --pattern 'loss (?<value>\S+) at (?<step>\d+)' \
        --type-of loss --pattern 'step (?<step>\d+) took (?<dur>\S+)' \
        --type-of step log | jq -c '[.type, .step]'"
    [ "${lines[*]}" = '["loss",3] ["step",4]' ]
    run -0 bash -c "tlmcat -f jsonl --pattern 'at (?<step>\d+)' \
        --pattern 'step (?<step>\d+)' --type-of step,dur=1 log | jq -c .step"
    [ "${lines[*]}" = "3 4" ]
    run -2 --separate-stderr tlmcat --pattern 'at (?<step>\d+)' --type-of step \
        --type-of loss log
    [ "$stderr" = "tlmcat: cannot use --type-of: 2 given, and --pattern 1 times" ]
    printf 'pattern a loss\nregex loss (?<value>\\S+) at (?<step>\\d+)\n' >a
    printf 'pattern b step\nregex step (?<step>\\d+) took (?<dur>\\S+)\n' >b
    run -0 bash -c "tlmcat -f jsonl --patterns a --patterns b log | jq -c .step"
    [ "${lines[*]}" = "3 4" ]
}

@test "--raw: the last state of a progress bar, or every one" {
    need_feature PCRE2 PCRE2
    printf '\r 11%%|# | 1/9 [00:01<00:08, 1.0it/s]\r 22%%|##| 2/9 [00:02<00:07, 1.5it/s]\n' >log
    local regex='(?<step>\d+)/\d+ \[[^,]*, (?<value>[\d.]+)it/s'
    run -0 tlmcat --pattern "$regex" --type-of gauge,name=rate,unit=1/s log
    [ -z "$output" ]
    run -0 bash -c "tlmcat -f jsonl --raw last --pattern '$regex' \
        --type-of gauge,name=rate,unit=1/s log | jq -c '[.step, .value]'"
    [ "${lines[*]}" = "[2,1.5]" ]
    run -0 bash -c "tlmcat -f jsonl --raw every --pattern '$regex' \
        --type-of gauge,name=rate,unit=1/s log | jq -c '[.step, .value]'"
    [ "${lines[*]}" = "[1,1] [2,1.5]" ]
    run -2 --separate-stderr tlmcat --raw last log
    [ "$stderr" = "tlmcat: cannot use --raw: no --pattern given" ]
}

@test "a file of patterns that is none: soon refused, with the place" {
    need_feature PCRE2 PCRE2
    run -2 --separate-stderr timeout 20 tlmcat --patterns /dev/zero /dev/null
    [ "$stderr" = "tlmcat: cannot use /dev/zero: more than 1048576 bytes, which no file of patterns has" ]
    printf 'pattern a step\n  regex (?<step>\\d+) (x\n' >bad
    run -2 --separate-stderr tlmcat --patterns bad /dev/null
    [ "$stderr" = "tlmcat: cannot use bad:2:24: pattern 'a': missing closing parenthesis" ]
}

@test "lines without a date have that of the nearest before" {
    need_feature PCRE2 PCRE2
    printf 'Nov 30 03:14:15 n1 sshd[7]: hello\nstep 1\nstep 2\n' >log
    touch -d '2026-12-01 00:00' log
    run -0 bash -c "tlmcat -f jsonl --pattern 'step (?<step>\d+)' \
        --type-of step,dur=1 log | jq -c .ts"
    [ "${lines[*]}" = "1796008455 1796008455" ]
}

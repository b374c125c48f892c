#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tlmcat.bats - choosing, forms of output, following. What each format gives is
# in tests/import-*.bats.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
    [ -z "${follower:-}" ] || kill "$follower" 2>/dev/null || true
}

loss() { # loss TS STEP
    printf '{"type":"loss","ts":%s,"step":%s,"value":1}\n' "$1" "$2"
}

# wait_for N: until N lines came out.
wait_for() {
    local i
    for ((i = 0; i < 300; i++)); do
        [ "$(wc -l <out)" -lt "$1" ] || return 0
        sleep 0.02
    done
    echo "only $(wc -l <out) of $1 lines came:"
    cat out err
    return 1
}

follow() { # follow ARG...
    : >out
    tlmcat -f jsonl --follow "$@" >out 2>err &
    follower=$!
}

# End it; its status must be 0.
unfollow() {
    kill -INT "$follower"
    wait "$follower"
    follower=
}

@test "records pass as they are, unknown keys and types too" {
    { loss 2 1; echo '{"type":"zzz", "a":[1, 2]}'
      echo '{"type":"loss","ts":3.0,"step":2,"value":1e0,"note":{"x":1}}'; } >in
    run -0 tlmcat -f jsonl in
    [ "$output" = "$(cat in)" ]
    run -0 --separate-stderr tlmcat -f tsv in
    [ "${#lines[@]}" -eq 3 ]
    [[ $stderr == *"1 records of types that this version does not know"* ]]
}

@test "records behind the labels of a launcher are read without them" {
    local step='{"type":"step","ts":1,"rank":1,"step":1,"dur":1,"x":{"y":3}}'
    printf '%s\n' " 0: $step" "11: $step"$'\r' "11: " "[1,3]<stdout>:$step" \
        $'\e[0m'"$step"$'\e[0m' "[default0]:$step" >in
    run -0 --separate-stderr tlmcat -f jsonl in
    [ "$output" = "$(for _ in 1 2 3 4 5; do echo "$step"; done)" ]
    [ -z "$stderr" ]
    # an object cut short behind a label is a bad line with its own number
    { cat in; echo " 3: ${step%??}"; } >short
    run -2 --separate-stderr tlmcat -f jsonl short
    [ "${#lines[@]}" -eq 5 ]
    [[ $stderr == *"cannot use short:7: "* ]]
}

@test "several inputs come out by ts, or with --no-merge one after the other" {
    { loss 1 1; loss 4 2; } >a
    { loss 2 3; loss 3 4; } >b
    run -0 bash -c "tlmcat -f jsonl a b | jq -c .step"
    [ "${lines[*]}" = "1 3 4 2" ]
    run -0 bash -c "tlmcat -f jsonl --no-merge b a | jq -c .step"
    [ "${lines[*]}" = "3 4 1 2" ]
}

@test "--type, --where, --since, --until" {
    { loss 1700000000 1; steps 0 3 20; steps 1 3 20; } | jq -s -c 'sort_by(.ts)[]' >in
    run -0 bash -c "tlmcat -f jsonl --type loss in | wc -l"
    [ "$output" -eq 1 ]
    run -0 bash -c "tlmcat -f jsonl --type step,loss --where rank=1 in | jq -c .rank"
    [ "${lines[*]}" = "1 1 1" ]
    run -0 bash -c "tlmcat -f jsonl --where rank=1,rank=0,step=2 in | wc -l"
    [ "$output" -eq 2 ]
    run -0 bash -c "tlmcat -f jsonl --since 2023-11-14T22:13:20Z --until 1700000000.15 in | jq -c .type"
    [ "${lines[*]}" = '"loss" "step" "step"' ]
    TZ=UTC run -0 bash -c "tlmcat -f jsonl --since '2023-11-14 22:13:21' in"
    [ -z "$output" ]
    run -1 tlmcat --exit-code --where rank=7 in
    local bad
    for bad in '--type stepp' '--where rank' '--where colour=red' \
        '--where rank=3-5' '--since lately' '--from nothing'; do
        # shellcheck disable=SC2086 # two words
        run -2 --separate-stderr tlmcat $bad in
        [[ $stderr == "tlmcat: cannot use ${bad%% *} "* ]]
    done
}

@test "text is the date, and one line for each record" {
    printf '{"type":"step","ts":1700000000.25,"host":"n\\u001b1","rank":3,"step":7,"dur":0.125}\n' >in
    TZ=UTC run -0 tlmcat -f text in
    [ "${lines[0]}" = '-- 2023-11-14 UTC --' ]
    [ "${lines[1]}" = '22:13:20.250 step    host=n\x1b1 rank=3 step=7 dur=0.125' ]
}

@test "tsv and text show control characters, they do not obey them" {
    printf '{"type":"loss","ts":1,"host":"a\\u001b[31m\\u009bx\\ty","step":1,"value":1}\n' >in
    run -0 tlmcat -f tsv in
    [[ ${lines[1]} == *'a\x1b[31m\xc2\x9bx\ty'* ]]
}

@test "a folder without telemetry, a file of patterns without patterns" {
    mkdir none
    echo hello >none/README
    run -2 --separate-stderr tlmcat none
    [ "$stderr" = "tlmcat: cannot read anything: no file of a known format was given" ]
    need_feature PCRE2 PCRE2
    run -2 --separate-stderr tlmcat --patterns /dev/null none/README
    [ "$stderr" = "tlmcat: cannot use --patterns /dev/null: no pattern in it" ]
}

@test "--stats counts what would be printed" {
    { loss 1 1; loss 2 2; steps 0 3 20; } >in
    run -0 tlmcat --stats --type loss --where step=2 in
    [ "${lines[0]}" = "loss                1" ]
    [[ ${lines[1]} == "FORMAT "* ]]
}

@test "--stats counts, --formats lists" {
    { loss 1 1; loss 2 2; echo '{"type":"loss"}'; } >in
    run -2 --separate-stderr tlmcat --stats in
    [ "${lines[0]}" = "loss                2" ]
    [ "${lines[1]}" = "bad                 1" ]
    run -0 tlmcat --formats
    [[ $output == *"inspector "* && $output == *"records "* ]]
}

@test "--world gives global ranks to records of communicators" {
    cat >in <<'END'
{"type":"coll","host":"h","pid":5,"op":"all_reduce","comm":"0xa","nranks":8,"comm_rank":3,"dur":0.1}
{"type":"coll","host":"h","pid":5,"op":"all_reduce","comm":"0xb","nranks":2,"comm_rank":1,"dur":0.1}
END
    run -0 bash -c "tlmcat -f text --world 8 in | grep -o ' rank=[0-9]*'"
    [ "${lines[*]}" = " rank=3  rank=3" ]
    run -0 bash -c "tlmcat -f text in | grep -c ' rank='" || [ "$output" = 0 ]
}

@test "--follow: a file grows, a line in two pieces, the end by a signal" {
    loss 1 1 >a
    follow --lateness 0.1s a
    wait_for 1
    loss 2 2 >>a
    wait_for 2
    printf '{"type":"loss","ts":3,' >>a
    printf '"step":3,"value":1}\n' >>a
    wait_for 3
    unfollow
    cat out
    [ "$(jq -c .step out | tr '\n' ' ')" = "1 2 3 " ]
    [ ! -s err ]
}

@test "--follow: files that are rotated, cut, appear, or are not there yet" {
    mkdir d
    loss 1 1 >d/a
    follow --lateness 0.1s d later
    wait_for 1
    mv d/a d/a.1
    { loss 2 2; printf '\n%.0s' {1..100}; } >d/a
    wait_for 2
    loss 3 3 >d/b
    wait_for 3
    loss 4 4 >later
    wait_for 4
    loss 5 5 >d/a # shorter than it was
    wait_for 5
    unfollow
    cat out
    [ "$(jq -c .step out | tr '\n' ' ')" = "1 2 3 4 5 " ]
    [ "$(cat err)" = "tlmcat: cannot open later: not there yet, waiting for it" ]
}

@test "--follow: nothing is there yet, then a file and a folder appear" {
    mkdir empty
    follow --lateness 0.1s empty later
    for ((i = 0; i < 100; i++)); do
        [ ! -s err ] || break
        sleep 0.02
    done
    loss 1 1 >later
    wait_for 1
    loss 2 2 >empty/a
    wait_for 2
    unfollow
}

@test "--follow: what log rotation compresses is not read again" {
    need_feature ZLIB zlib
    mkdir d e
    loss 1 1 >d/a
    loss 0 0 | gzip >d/a.3.gz # there before
    follow --lateness 0.1s d
    wait_for 2
    mv d/a d/a.1
    gzip d/a.1
    loss 2 2 >d/a
    wait_for 3
    loss 3 3 >e/b
    loss 4 4 | gzip >e/b-20261130.gz # not a copy of what was read
    mv e d/e
    wait_for 5
    unfollow
    [ "$(jq -c .step out | tr '\n' ' ')" = "0 1 2 3 4 " ]
    [ ! -s err ]
}

@test "--follow: a new file is read, be its inode that of one that is gone" {
    need_feature ZLIB zlib
    mkdir d
    loss 1 1 >d/a
    loss 2 2 | gzip >d/z.gz
    follow --lateness 0.1s d
    wait_for 2
    sleep 0.3
    rm d/z.gz
    loss 3 3 >d/c # most file systems reuse it at once
    wait_for 3
    unfollow
}

@test "--follow: pipes that end are the end" {
    { loss 1 1; loss 2 2; } >in
    run -0 bash -c "cat in | timeout 10 tlmcat -f jsonl --follow | wc -l"
    [ "$output" -eq 2 ]
}

@test "--follow: a signal while the reader is slow cuts no line" {
    for ((i = 0; i < 3000; i++)); do loss $i $i; done >in
    mkfifo pipe
    exec 8<>pipe
    tlmcat -f jsonl --follow in >pipe 2>err &
    follower=$!
    head -c 100 <&8 >part
    kill -INT "$follower"
    cat <&8 >>part &
    reader=$!
    wait "$follower"
    follower=
    exec 8>&-
    for ((i = 0; i < 100; i++)); do
        [ "$(wc -l <part)" -lt 3000 ] || break
        sleep 0.02
    done
    kill "$reader"
    run -0 cat err
    [ -z "$output" ]
    [ "$(wc -l <part)" -eq 3000 ]
    [ "$(tail -n 1 part | jq -c .step)" -eq 2999 ]
}

@test "--follow: a silent input holds back the others for --lateness only" {
    mkfifo silent
    exec 9<>silent
    { loss 1 1; loss 2 2; } >a
    follow --lateness 0.3s a silent
    wait_for 2
    loss 1.5 3 >&9
    wait_for 3
    unfollow
    cat out
    [ "$(jq -c .step out | tr '\n' ' ')" = "1 2 3 " ]
    [[ $(cat err) == *"1 records came late"* ]]
}

@test "--follow: within --lateness records come out in order" {
    mkfifo slow
    exec 9<>slow
    { loss 1 1; loss 5 2; } >a
    loss 2 3 >&9
    follow --lateness 60s a slow
    wait_for 1
    loss 3 4 >&9
    wait_for 3
    loss 6 5 >&9
    wait_for 4
    unfollow
    cat out
    [ "$(jq -c .step out | tr '\n' ' ')" = "1 3 4 2 5 " ]
}

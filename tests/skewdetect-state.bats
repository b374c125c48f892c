#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewdetect-state.bats - skewdetect --state: runs that go on where the one before
# ended, what is refused, what stays as it was. The state itself: test_state.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

# job CLASS INDEX RECORDS: telemetry with a straggler.
job() {
    "$top_builddir/tests/eval/jobgen" -s 5 --class "$1" --index "$2" \
        --records "$3" --share 1 --max-ranks 8 >job.jsonl
    [ "$(wc -l <job.jsonl)" -gt 300 ]
}

# cuts: places to cut job.jsonl, one a line, the last at its end.
cuts() {
    local n
    n=$(wc -l <job.jsonl)
    printf '%d\n' $((n / 17)) $((n / 3)) $((n / 2)) $((n / 2 + 1)) \
        $((n * 4 / 5)) "$n"
}

# one_run: its events in one.jsonl, its state in one.
one_run() {
    rm -f one one.lock
    run -0 --separate-stderr skewdetect --state one job.jsonl
    printf '%s\n' "$output" >one.jsonl
    [ "$(wc -l <one.jsonl)" -ge 1 ]
}

# same_as_one: are all.jsonl and the state the same as of one run?
same_as_one() {
    run -0 diff one.jsonl all.jsonl
    run -0 cmp one many
}

# A run may have nothing to say yet: status 2 until a period is known.
go() {
    local rc=0
    skewdetect --state many "$@" >>all.jsonl 2>err || rc=$?
    [ "$rc" -eq 0 ] || grep -q 'cannot' err
}

@test "runs over parts find what one run over the whole finds" {
    local from=0 to what
    for what in 'compute 1 step+gauge' 'comm 2 step' 'compute 3 all' \
        'comm 4 coll'; do
        # shellcheck disable=SC2086
        job $what
        one_run
        rm -f many many.lock all.jsonl
        from=0
        for to in $(cuts); do
            sed -n "$((from + 1)),${to}p" job.jsonl >part.jsonl
            go part.jsonl
            from=$to
        done
        same_as_one
    done
}

@test "a log that grows is read from its beginning each time, and counts once" {
    local to what
    for what in 'compute 1 step+gauge' 'comm 2 step+coll' 'comm 4 coll'; do
        # shellcheck disable=SC2086
        job $what
        one_run
        rm -f many many.lock all.jsonl
        for to in $(cuts); do
            head -n "$to" job.jsonl >part.jsonl
            go part.jsonl
        done
        same_as_one
        # and once more, with nothing new
        run -0 --separate-stderr skewdetect --state many part.jsonl
        [ -z "$output$stderr" ]
        run -0 cmp one many
    done
}

@test "an episode is over in another run, under its name" {
    steps 0 60 20 >a.jsonl
    steps 0 40 31 61 >>a.jsonl
    steps 0 60 20 101 >b.jsonl
    run -0 --separate-stderr skewdetect --state s a.jsonl
    eid=$(field '.kind == "onset" and .scope == "rank"' .eid <<<"$output")
    [ -n "$eid" ]
    [ -z "$(field '.kind == "relief"' .eid <<<"$output")" ]
    # what is slow is still told, though it is not new
    run -0 --separate-stderr skewdetect --state s -f text a.jsonl
    [[ $output == *"still slow: rank=0 "*"0 onsets, 0 reliefs"* ]]
    run -0 --separate-stderr skewdetect --state s --exit-code b.jsonl
    [ "$(field '.kind == "relief" and .scope == "rank"' .eid <<<"$output")" = "$eid" ]
}

@test "the first run has no state, the next go on; -v says so" {
    steps 0 60 20 >a.jsonl
    run -0 --separate-stderr skewdetect -v --state s a.jsonl
    [[ $stderr == *"skewdetect: beginning anew: there is no state s yet"* ]]
    [ -s s ]
    run -0 --separate-stderr skewdetect -v --state s a.jsonl
    [[ $stderr == *"skewdetect: going on with state s ("*" bytes)"* ]]
    [[ $stderr == *"skewdetect: 60 records were known already"* ]]
    run -0 --separate-stderr skewdetect --state s a.jsonl
    [ -z "$stderr" ]
}

@test "a state that cannot be used: the reason, status 2, and it stays" {
    steps 0 60 20 >a.jsonl
    run -0 skewdetect --state good a.jsonl
    refused() { # refused REASON
        cp s before
        run -2 --separate-stderr skewdetect --state s a.jsonl
        [ "$stderr" = "skewdetect: cannot read state s: $1" ]
        [ -z "$output" ]
        run -0 cmp s before
    }
    head -c 1000 good >s
    refused 'it is cut short'
    : >s
    refused 'it is no saved state'
    cp a.jsonl s
    refused 'it is no saved state'
    { head -c 200 good; printf X; tail -c +202 good; } >s
    refused 'it is damaged (check sum)'
    { cat good; echo; } >s
    refused 'there is more behind its end'
    { printf 'EPSTATE\n\010lsgd-sim'; tail -c +20 good; } >s
    refused 'it is the state of lsgd-sim, not of skewdetect'
    { printf 'EPSTATE\n\012skewdetect\377\0\0\0\00399x'; tail -c +28 good; } >s
    run -2 --separate-stderr skewdetect --state s a.jsonl
    [[ $stderr == "skewdetect: cannot read state s: it is in format 255, of version 99x; only format "*" is known here" ]]
    mkdir d
    run -2 --separate-stderr skewdetect --state d a.jsonl
    [ "$stderr" = "skewdetect: cannot read state d: it is no regular file" ]
    run -2 --separate-stderr skewdetect --state none/s a.jsonl
    [ "$stderr" = "skewdetect: cannot lock none/s: No such file or directory" ]
}

@test "options that the state rests on have to stay" {
    steps 0 60 20 >a.jsonl
    run -0 skewdetect --state s --window 8 a.jsonl
    cp s before
    run -2 --separate-stderr skewdetect --state s a.jsonl
    [ "$stderr" = "skewdetect: cannot read state s: --window was 8 when it was written, and is 16 now" ]
    run -2 --separate-stderr skewdetect --state s --window 8 --min-change 0.2 a.jsonl
    [ "$stderr" = "skewdetect: cannot read state s: --min-change was 0.1 when it was written, and is 0.2 now" ]
    run -2 --separate-stderr skewdetect --state s --window 8 --confirm 5 a.jsonl
    [[ $stderr == *"--confirm was 3 "* ]]
    run -0 cmp s before
    run -0 skewdetect --state s --window 8 --no-spikes -f text a.jsonl
    run -2 --separate-stderr skewdetect --state s --iterations a.jsonl
    [ "$stderr" = "skewdetect: cannot use --state with --iterations: nothing is judged" ]
}

@test "what was not told does not count as told" {
    steps 0 60 20 >a.jsonl
    steps 0 40 31 61 >b.jsonl
    run -0 skewdetect --state s a.jsonl
    cp s before
    # strict: the run ends in the middle
    { cat b.jsonl; echo '{"type":'; } >bad.jsonl
    run -2 skewdetect --state s --strict bad.jsonl
    run -0 cmp s before
    # nobody got the output
    run -2 --separate-stderr skewdetect --state s -o /dev/full b.jsonl
    run -0 cmp s before
    run -2 --separate-stderr bash -c 'skewdetect --state s b.jsonl >/dev/full'
    run -0 cmp s before
    run -2 skewdetect --state s -o none/out b.jsonl
    run -0 cmp s before
    # a bad line that is only counted does not hold it up
    run -2 --separate-stderr skewdetect --state s -o out bad.jsonl
    [ -s out ]
    run -1 cmp s before
}

@test "nothing usable is trouble, nothing new is not" {
    steps 0 60 20 >a.jsonl
    run -0 skewdetect --state s a.jsonl
    run -0 skewdetect --state s a.jsonl
    echo '{"type":"gauge","ts":1,"name":"power","value":300,"unit":"W"}' >g.jsonl
    run -2 --separate-stderr skewdetect --state s g.jsonl
    [ "$stderr" = "skewdetect: cannot detect stragglers: no step, probe or link record in the input" ]
    run -2 --separate-stderr skewdetect --state s </dev/null
    [ -n "$stderr" ]
}

@test "one run at a time" {
    steps 0 60 20 >a.jsonl
    mkfifo live
    skewdetect --state s live >out 2>err &
    first=$!
    exec 7>live
    cat a.jsonl >&7
    until [ -e s.lock ]; do sleep 0.05; done
    run -2 --separate-stderr skewdetect --state s a.jsonl
    [ "$stderr" = "skewdetect: cannot lock s: another skewdetect holds it" ]
    exec 7>&-
    wait "$first"
    [ ! -s err ]
    [ -s s ]
    # the lock is gone with its holder
    run -0 skewdetect --state s a.jsonl
}

@test "a signal ends a live run as the end of its input does" {
    local signal
    steps 0 60 20 >a.jsonl
    steps 0 40 31 61 >b.jsonl
    for signal in TERM INT; do
        rm -f s s.lock live
        mkfifo live
        # a background job of a shell without job control ignores SIGINT
        (trap - INT; exec env --default-signal=INT skewdetect --state s live) \
            >out 2>err &
        first=$!
        exec 7>live
        cat a.jsonl b.jsonl >&7
        # it waits once it has told what it found
        until grep -q onset out; do sleep 0.05; done
        kill -s "$signal" "$first"
        wait "$first"
        [ ! -s err ]
        exec 7>&-
        cat a.jsonl b.jsonl >all.jsonl
        run -0 --separate-stderr skewdetect --state s all.jsonl
        [ -z "$output" ]
        run -0 --separate-stderr skewdetect --state s -f text all.jsonl
        [[ $output == *"still slow: rank=0 "* ]]
    done
}

@test "a run that is killed leaves the state as it was" {
    steps 0 60 20 >a.jsonl
    steps 0 40 31 61 >b.jsonl
    run -0 skewdetect --state s a.jsonl
    cp s before
    mkfifo live
    skewdetect --state s live >out 2>err &
    first=$!
    exec 7>live
    cat b.jsonl >&7
    until grep -q onset out; do sleep 0.05; done
    kill -s KILL "$first"
    wait "$first" || true
    exec 7>&-
    run -0 cmp s before
    # what was found since is found again
    run -0 --separate-stderr skewdetect --state s b.jsonl
    [[ $output == *onset* ]]
    [ "$(find . -name '.s*' | wc -l)" -eq 0 ]
}

@test "a check with a state tells what is open since earlier runs" {
    steps 0 60 20 >a.jsonl
    steps 0 40 31 61 >b.jsonl
    cat a.jsonl b.jsonl >all.jsonl
    run -0 skewdetect --state s all.jsonl
    run -2 --separate-stderr skewdetect --state s -f nagios all.jsonl
    [[ $output == "SKEWDETECT CRITICAL - 1 straggler: rank=0 "*"0 onsets, 0 reliefs"* ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# base.bats - bad input and bad outputs: the defined outcome of each, the same
# for every program that reads records (evenpace(7)).

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    echo '{"type":"layout","dp":2,"microbatches":8}' >layout
    { steps 0 40 20; steps 1 40 30; } | jq -s -c 'sort_by(.ts)[]' >good
}

# Each program that reads records, as a command that takes files behind it.
readers() {
    printf '%s\n' skewdetect 'rebalance -q layout' 'skewplot -q'
}

# outcome COMMAND STATUS STDERR-PATTERN: run on the file "in".
outcome() {
    local -a command
    read -ra command <<<"$1"
    run --separate-stderr "${command[@]}" in
    echo "$1: status $status, stderr: $stderr"
    [ "$status" -eq "$2" ]
    # shellcheck disable=SC2053 # a pattern
    [[ $stderr == $3 ]]
}

# with_line TEXT: the good records with one line put in as line 3.
with_line() {
    head -n 2 good
    printf '%b\n' "$1"
    tail -n +3 good
}

# bad TEXT REASON: that line 3 is bad for that reason, the rest is used, and
# that --max-bad and --strict do what they say.
bad() {
    local p name
    with_line "$1" >in
    while read -r p; do
        name=${p%% *}
        outcome "$p" 2 "$name: cannot use in:3: $2"
        outcome "$p --max-bad 1" 0 "$name: cannot use in:3: $2" ||
            outcome "${p/ / --max-bad 1 }" 0 "$name: cannot use in:3: $2"
    done < <(readers)
    outcome "skewdetect --strict" 2 "skewdetect: cannot use in:3: $2"
}

@test "good input" {
    cp good in
    while read -r p; do outcome "$p" 0 ''; done < <(readers)
}

@test "empty file, and blank lines only: silence is not health" {
    : >in
    while read -r p; do outcome "$p" 2 '*: cannot * record*in *input*'; done < <(readers)
    printf '\n  \r\n\n' >in
    while read -r p; do outcome "$p" 2 '*: cannot * record*in *input*'; done < <(readers)
}

@test "CRLF, blank lines and a missing final newline are fine" {
    sed 's/$/\r/' good >in
    while read -r p; do outcome "$p" 0 ''; done < <(readers)
    sed 's/$/\n/' good >in
    while read -r p; do outcome "$p" 0 ''; done < <(readers)
    head -c -1 good >in
    while read -r p; do outcome "$p" 0 ''; done < <(readers)
}

@test "a truncated last line is reported, what came before is used" {
    { cat good; printf '{"type":"step","ts":17000000'; } >in
    while read -r p; do
        outcome "$p" 2 '*: cannot use in:81: *'
    done < <(readers)
}

@test "NUL bytes" {
    bad '{"type":"step"\0000,"ts":1}' '*byte 14*'
    printf '\0\0\0\n' >in
    while read -r p; do
        outcome "$p" 2 '*: cannot read in: not a format that is known*'
    done < <(readers)
}

@test "invalid UTF-8" {
    bad '{"type":"step","job":"\xff\xfe"}' '*byte 22*'
}

@test "not JSON, not a record, wrong kinds" {
    bad 'hello' '*byte 0*'
    bad '[1,2]' 'not a JSON object'
    bad '{"x":1}' 'no type'
    bad '{"type":"step","ts":1,"step":1}' 'step record without dur'
    bad '{"type":"step","ts":1,"step":"a","dur":1}' 'step is not a whole number'
}

@test "numbers such as 1e999, NaN, negative durations" {
    bad '{"type":"step","ts":1,"step":1,"dur":1e999}' 'dur is not a finite number'
    bad '{"type":"step","ts":1,"step":1,"dur":NaN}' '*byte*'
    bad '{"type":"step","ts":1,"step":1,"dur":-0.5}' 'dur is -0.5, not in 0..*'
}

@test "time running backwards within a rank" {
    with_line '{"type":"step","ts":3,"rank":0,"step":99,"dur":1,"busy":1,"mb":1}' >in
    outcome skewdetect 2 'skewdetect: cannot use in:3: time runs backwards by * s (rank=0, step 99)'
}

@test "a line of 100 MB: a bad line, in bounded memory" {
    { head -n 2 good; head -c 100000000 /dev/zero | tr '\0' x; echo; tail -n +3 good; } >in
    while read -r p; do
        outcome "$p" 2 '*: cannot use in:3: line is longer than 16777216 bytes'
    done < <(readers)
    # less than 64 MiB of address space would not hold it
    has_feature ZLIB || true
    if ! grep -q 'fsanitize' "$top_builddir/Makefile"; then
        run -2 bash -c 'ulimit -v 100000; skewdetect in'
        [[ $output == *"line is longer than"* ]]
    fi
}

@test "several bad lines: the first is described, all are counted" {
    { cat good; echo x; echo y; echo z; } >in
    run -2 --separate-stderr skewdetect in
    [[ ${stderr_lines[0]} == "skewdetect: cannot use in:81: "* ]]
    [ "${stderr_lines[1]}" = "skewdetect: 3 bad lines in all" ]
    run -2 --separate-stderr skewdetect --max-bad 2 in
    run -0 --separate-stderr skewdetect --max-bad 3 in
}

@test "a file that is not there: the others are used, status 2" {
    cp good in
    run -2 --separate-stderr skewdetect nothere in
    [ "$stderr" = "skewdetect: cannot open nothere: No such file or directory" ]
}

@test "a folder stands for the files below it; those of no known format do not count" {
    mkdir -p folder/below folder/.hidden
    cp good folder/b
    cp good folder/below/a
    echo '{"type":"loss","ts":1,"step":1,"value":1}' >folder/.hidden/c
    echo 'not telemetry' >folder/README
    run -0 --separate-stderr tlmcat -v --stats folder
    [[ ${lines[0]} =~ ^step\ +$((2 * $(wc -l <good)))$ ]]
    [[ $stderr == *"1 files in folders are of no known format"* ]]
    run -2 --separate-stderr tlmcat folder/README
    [[ $stderr == "tlmcat: cannot read folder/README: not a format that is known"* ]]
}

@test "a folder: a file with several names in it is read once" {
    mkdir -p folder/real outside
    cp good folder/nccl_trace_rank_5.jsonl
    ln -s nccl_trace_rank_5.jsonl folder/latest
    ln folder/nccl_trace_rank_5.jsonl folder/zz
    sed 's/"rank":0/"rank":7/' good >folder/real/a
    ln -s real folder/again
    ln -s . folder/loop
    ln -s nothing folder/dangling
    cp good outside/x
    ln -s ../outside/x folder/there # links are followed
    n=$(wc -l <good)
    run -0 --separate-stderr tlmcat --stats folder
    [[ ${lines[0]} =~ ^step\ +$((3 * n))$ ]]
    # what is no link names the file
    echo bad >>folder/nccl_trace_rank_5.jsonl
    run -2 --separate-stderr tlmcat --stats folder
    [[ $stderr == *"cannot use folder/nccl_trace_rank_5.jsonl:$((n + 1)):"* ]]
    # asked for twice is read twice
    run -0 --separate-stderr tlmcat --stats folder/there folder/there
    [[ ${lines[0]} =~ ^step\ +$((2 * n))$ ]]
}

@test "gzip: by content, several members, cut and damaged" {
    need_feature ZLIB zlib
    gzip -c good >a.gz
    cat a.gz a.gz >two # not a .gz name
    sed 's/"ts":1/"ts":2/' good | gzip >b.gz
    cat a.gz b.gz >in
    while read -r p; do outcome "$p" 0 ''; done < <(readers)
    head -c -20 a.gz >in
    while read -r p; do
        outcome "$p" 2 '*cannot read in: byte *: compressed data end in the middle*'
    done < <(readers)
    { head -c 60 a.gz; printf 'XXXXXXXX'; tail -c +69 a.gz; } >in
    while read -r p; do outcome "$p" 2 '*cannot *in*'; done < <(readers)
}

@test "gzip in a build without zlib says so" {
    ! has_feature ZLIB || skip "built with zlib"
    printf '\x1f\x8b\x08\x00' >in
    outcome skewdetect 2 '*built without zlib*'
}

@test "standard input, by default and as -" {
    run -0 skewdetect <good
    run -0 skewdetect - <good
    run -0 rebalance -q layout <good
}

@test "closed standard input" {
    run -2 --separate-stderr bash -c 'skewdetect <&-'
    [[ $stderr == *"cannot read stdin: Bad file descriptor"* ]]
}

@test "/dev/full and a closed standard output are errors" {
    { steps 1 40 20; steps 1 40 40 41; } >in
    run -2 --separate-stderr bash -c 'skewdetect -f jsonl in >/dev/full'
    [ "$stderr" = "skewdetect: cannot write standard output: No space left on device" ]
    run -2 --separate-stderr bash -c 'skewdetect -f jsonl in >&-'
    [ "$stderr" = "skewdetect: cannot write standard output: Bad file descriptor" ]
    for p in "${programs[@]}"; do
        run -2 --separate-stderr bash -c "$p --help >/dev/full"
        [ "$stderr" = "$p: cannot write standard output: No space left on device" ]
        run -2 --separate-stderr bash -c "$p --help >&-"
        [ "$stderr" = "$p: cannot write standard output: Bad file descriptor" ]
    done
}

@test "a reader that leaves early ends the program quietly" {
    steps 0 5000 20 >in # more than a pipe holds
    run -0 bash -c 'skewdetect --tee in 2>err | head -n 1; cat err'
    [ "${#lines[@]}" -eq 1 ]
    [ "$output" = "$(head -n 1 in)" ]
}

@test "wrong command lines" {
    run -2 --separate-stderr skewdetect --nope
    [[ $stderr == "skewdetect: cannot use option '--nope': no such option"* ]]
    run -2 --separate-stderr skewdetect -Z
    [[ $stderr == "skewdetect: cannot use option '-Z': no such option"* ]]
    run -2 --separate-stderr skewdetect --max-bad
    [ "$stderr" = "skewdetect: cannot use option '--max-bad': it needs an argument" ]
    run -2 --separate-stderr skewdetect --strict=yes
    [ "$stderr" = "skewdetect: cannot use option '--strict=yes': it takes no argument" ]
    run -2 --separate-stderr skewdetect --max-bad 12x
    [ "$stderr" = "skewdetect: cannot use '12x' for --max-bad: not a number" ]
    run -2 --separate-stderr skewdetect --min-change nan
    [ "$stderr" = "skewdetect: cannot use 'nan' for --min-change: not a number" ]
    run -2 --separate-stderr skewdetect -f xml
    [ "$stderr" = "skewdetect: cannot use 'xml' for --format: not one of text|jsonl|tsv|prom|nagios" ]
    run -2 --separate-stderr gpuprobe extra
    [ "$stderr" = "gpuprobe: cannot use operand 'extra': none is taken" ]
}

@test "-o: a link is followed, modes are kept, an empty name is refused" {
    { steps 1 40 20; steps 1 40 40 41; } >in
    echo old >target
    chmod 600 target
    ln -s target link
    run -0 skewdetect -o link in
    [ -L link ]
    [ "$(stat -c %a target)" = 600 ]
    grep -q '"kind":"onset"' target # and jsonl, whatever the terminal is
    run -2 --separate-stderr skewdetect -o '' in
    [ "$stderr" = "skewdetect: cannot create : No such file or directory" ]
    mkfifo fifo
    cat fifo >copy &
    run -0 skewdetect -o fifo in
    wait $!
    grep -q '"kind":"onset"' copy
}

@test "-o: trouble leaves the old file as it was" {
    : >empty
    echo old >keep
    run -2 skewdetect -o keep empty
    run -2 skewdetect -o keep nothere
    run -2 rebalance -q -o keep layout empty
    run -2 skewdetect --strict -o keep - <<<x
    [ "$(cat keep)" = old ]
    run -0 find . -name 'keep.*'
    [ -z "$output" ]
}

@test "an output that fails late is reported once" {
    for ((i = 0; i < 30; i++)); do cat good; done >in
    run -2 --separate-stderr bash -c 'skewdetect -q --max-bad 100000 --tee in >/dev/full'
    [ "${stderr_lines[-1]}" = "skewdetect: cannot write standard output: No space left on device" ]
    [ "$(grep -c 'cannot write' <<<"$stderr")" -eq 1 ]
}

@test "keys and types may be written with escapes" {
    sed 's/"type"/"ty\\u0070e"/; s/"busy"/"b\\u0075sy"/; s/"step",/"st\\u0065p",/' good >in
    run -0 --separate-stderr skewdetect in
    [ -z "$stderr" ]
    run -0 diff <(skewdetect good) <(skewdetect in)
}

@test "many inputs that cannot be opened: a few are described, all counted" {
    run -2 --separate-stderr skewdetect no1 no2 no3 no4 no5
    [ ${#stderr_lines[@]} -eq 4 ]
    [ "${stderr_lines[3]}" = "skewdetect: 5 inputs could not be read in all" ]
    run -2 --separate-stderr skewdetect good -f text
    [[ $stderr == *"cannot open -f (options come before files): No such file"* ]]
}

@test "progress on a terminal, if the output goes elsewhere; wiped in the end" {
    awk 'BEGIN { for (s = 1; s <= 12000; s++) for (r = 0; r < 64; r++)
        printf "{\"type\":\"step\",\"ts\":%d,\"rank\":%d,\"step\":%d,\"dur\":1.1,\"busy\":1.%d,\"mb\":8}\n", s, r, s, (s + r) % 7 }' >in
    run -0 script -qec 'skewdetect in >/dev/null' /dev/null
    [[ $output == *" %, "*" of "*"iB, "*"B/s"* ]]
    [[ $output == *$'\r' ]]
    run -0 script -qec 'skewdetect -q in >/dev/null' /dev/null
    [ -z "$output" ]
    run -0 --separate-stderr skewdetect in
    [ -z "$stderr" ]
}

@test "-o: an interrupted run leaves nothing behind" {
    mkfifo slow
    echo old >keep
    for signal in TERM INT; do
        # the shell makes background commands ignore INT: env undoes that
        env --default-signal=INT skewdetect -o keep slow &
        local pid=$!
        exec {fd}>slow
        cat good >&"$fd"
        kill -s $signal $pid
        wait $pid || true
        exec {fd}>&-
    done
    [ "$(cat keep)" = old ]
    run -0 find . -name 'keep.*'
    [ -z "$output" ]
}

@test "-o: a link that leads nowhere is an error, and stays" {
    ln -s nothere dangling
    ln -s loop loop
    run -2 --separate-stderr skewdetect -o dangling good
    [[ $stderr == "skewdetect: cannot create dangling: "* ]]
    [ -L dangling ]
    run -2 skewdetect -o loop good
    [ -L loop ]
}

@test "an output that fails is the one reason that is given" {
    awk 'BEGIN { for (i = 0; i < 20000; i++)
        print "{\"type\":\"gauge\",\"ts\":1,\"name\":\"x\",\"value\":1,\"unit\":\"1\"}" }' >in
    run -2 --separate-stderr skewdetect --tee -o /dev/full in
    [ "$stderr" = "skewdetect: cannot write /dev/full: No space left on device" ]
    run -2 --separate-stderr bash -c 'skewdetect --tee in >/dev/full'
    [ "$stderr" = "skewdetect: cannot write standard output: No space left on device" ]
}

@test "a NUL in a string, written with an escape, is a bad line" {
    bad '{"type":"step","ts":1,"job":"a\\u0000b","step":1,"dur":1}' 'NUL in job'
}

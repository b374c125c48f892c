#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tlmcat-inputs.bats - many files, URLs, rounds, and what --stats says of them.

load lib
load httpd

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export no_proxy=127.0.0.1 HOME=$BATS_TEST_TMPDIR
}

teardown() {
    [ -z "${scraper:-}" ] || kill "$scraper" 2>/dev/null || true
    httpd_down
}

need_http() {
    local missing
    need_feature CURL curl
    missing=$(httpd_missing)
    [ -z "$missing" ] || skip "$missing"
    httpd_up "$BATS_TEST_TMPDIR/www"
}

# files N DIR: N files with 8 records each, whose times interleave.
files() {
    mkdir "$2"
    awk -v n="$1" -v dir="$2" 'BEGIN {
        for (f = 0; f < n; f++) {
            name = sprintf("%s/%04d", dir, f)
            for (i = 0; i < 8; i++)
                printf "{\"type\":\"loss\",\"ts\":%d,\"step\":%d,\"value\":%d}\n",
                    i * n + (f * 7 + i) % n, i, f >name
            close(name)
        }
    }'
}

exposition() { # exposition VALUE
    printf '# TYPE node_load1 gauge\nnode_load1 %s\n' "$1"
}

# What the events among the records say.
events() {
    jq -r 'select(.type == "event") | [.kind, .scope, .host, .id, .p] | @tsv' "$@"
}

@test "more files than descriptors: one by one, as a folder, compressed" {
    files 300 d
    cat d/* | jq -s -c 'sort_by(.ts)[]' >want
    [ "$(wc -l <want)" -eq 2400 ]
    run -0 bash -c "ulimit -n 24; tlmcat -f jsonl d >got && cmp got want"
    run -0 bash -c "ulimit -n 24; tlmcat -f jsonl d/* >got && cmp got want"
    run -0 bash -c "ulimit -n 24; tlmcat --stats d"
    [[ ${lines[0]} =~ ^"loss "\ +"2400"$ ]]
    need_feature ZLIB zlib
    gzip d/*
    run -0 bash -c "ulimit -n 24; tlmcat -f jsonl d >got && cmp got want"
}

@test "long lines and long files in many inputs" {
    mkdir d
    for ((f = 0; f < 40; f++)); do
        awk -v f=$f 'BEGIN {
            for (long = "x"; length(long) < 60000; )
                long = long long
            for (i = 0; i < 20; i++)
                printf "{\"type\":\"loss\",\"ts\":%d,\"step\":%d,\"value\":1,\"note\":\"%s\"}\n",
                    i * 40 + f, i, i % 5 ? "" : long
        }' >d/$f
    done
    cat d/* | jq -s -c 'sort_by(.ts)[]' >want
    run -0 bash -c "ulimit -n 20; tlmcat -f jsonl d >got && cmp got want"
}

@test "a file that is replaced or cut while it is parked is an error" {
    local how
    for how in replaced cut removed; do
        rm -rf d
        mkdir d
        # more than a reader takes at once
        for ((f = 0; f < 40; f++)); do
            awk -v f=$f 'BEGIN {
                for (i = 0; i < 9000; i++)
                    printf "{\"type\":\"loss\",\"ts\":%d,\"step\":%d,\"value\":1}\n", i, i
            }' >d/$f
        done
        mkfifo pipe
        (ulimit -n 20; exec tlmcat -f jsonl d >pipe 2>err) &
        exec 8<pipe
        head -c 100 <&8 >/dev/null
        case $how in
        replaced) cp d/5 d/new && mv d/new d/5 ;;
        cut) : >d/5 ;;
        removed) rm d/5 ;;
        esac
        cat <&8 >/dev/null
        exec 8<&-
        status=0
        wait $! || status=$?
        cat err
        [ "$status" -eq 2 ]
        case $how in
        replaced) grep -qx 'tlmcat: cannot read d/5: it was replaced while it was being read' err ;;
        cut) grep -qx 'tlmcat: cannot read d/5: it got shorter while it was being read' err ;;
        removed) grep -qx 'tlmcat: cannot read d/5: cannot open it again: No such file or directory' err ;;
        esac
        rm pipe
    done
}

@test "--no-merge opens one input at a time" {
    files 60 d
    run -0 bash -c "ulimit -n 9; tlmcat -f jsonl --no-merge d >got && cat d/* | cmp got"
    mkfifo pipe
    { echo '{"type":"loss","ts":1,"step":1,"value":1}'; } >a
    tlmcat -f jsonl --no-merge a pipe a >out &
    scraper=$!
    # the second is not there yet, the first comes out all the same
    for ((i = 0; i < 300; i++)); do
        [ ! -s out ] || break
        sleep 0.02
    done
    [ "$(wc -l <out)" -eq 1 ]
    cat a >pipe
    wait "$scraper"
    scraper=
    [ "$(wc -l <out)" -eq 3 ]
}

@test "a byte order mark is passed over, in gzip too" {
    { printf '\xef\xbb\xbf'; echo '{"type":"loss","ts":1,"step":1,"value":1}'; } >a
    run -0 tlmcat -f jsonl a
    [ "$output" = '{"type":"loss","ts":1,"step":1,"value":1}' ]
    run -0 bash -c 'tlmcat -f jsonl --from records <a'
    [ "${#lines[@]}" -eq 1 ]
    run -0 bash -c '(printf "\xef"; sleep 0.1; printf "\xbb"; sleep 0.1; tail -c +3 a) | tlmcat -f jsonl'
    [ "${#lines[@]}" -eq 1 ]
    need_feature ZLIB zlib
    run -0 bash -c 'gzip <a | tlmcat -f jsonl'
    [ "${#lines[@]}" -eq 1 ]
    for ((i = 0; i < 40; i++)); do cp a b$i; gzip -k b$i; done
    run -0 bash -c 'tlmcat -f jsonl b* | wc -l'
    [ "$output" -eq 80 ]
}

@test "--stats: formats, and bad lines by kind with their place" {
    cat >in <<'END'
{"type":"loss","ts":1,"step":1,"value":1}
{"type":"loss","ts":1,"step":1.5,"value":1}
{"type":"loss","ts":1,"st
{"type":"loss","ts":1,"step":7.25,"value":1}
END
    exposition 5 >metrics
    run -2 --separate-stderr tlmcat --stats in metrics
    [ "$output" = "gauge               1
loss                1
bad                 3

FORMAT              INPUTS      RECORDS        BAD
prometheus               1            1          0
records                  1            1          3

       BAD  WHY, AND THE FIRST
         2  step is not a whole number (in:2)
         1  byte N: text ends, expected the end of a string (in:3)" ] || { echo "$output" && return 1; }
    tlmcat --stats -f jsonl in metrics 2>/dev/null >out || [ $? -eq 2 ]
    [ "$(jq -c 'select(.count == "bad" and .first == "in:2") | .bad' out)" = 2 ]
    [ "$(jq -c 'select(.count == "format" and .name == "records") | [.inputs, .records, .bad]' out)" = "[1,1,3]" ]
    [ "$(jq -c 'select(.count == "type" and .name == "gauge") | .records' out)" = 1 ]
}

@test "--stats: no more than 20 kinds of bad lines, the rest is others" {
    for c in {a..z}; do echo "$c"; done >in
    run -2 --separate-stderr tlmcat --from records --stats in
    [ "$(grep -c "expected a value" <<<"$output")" -le 20 ]
    [[ ${lines[-1]} =~ ^\ *6\ \ others\ \(in:2[0-9]\)$ ]] ||
        { echo "$output" && return 1; }
}

@test "URLs: an exporter, host lists, what is dead is an event and status 2" {
    need_http
    exposition 5 >www/m
    port=${httpd##*:}
    run -0 --separate-stderr tlmcat -f jsonl "$httpd/file/m"
    [ "$(jq -c '[.type, .host, .name, .value]' <<<"$output")" = '["gauge","127.0.0.1","node_load1",5]' ]
    run -0 --separate-stderr bash -c "tlmcat -f jsonl http://127.0.0.[1-1,1]:$port/file/m | wc -l"
    [ "$output" -eq 2 ]
    run -2 --separate-stderr tlmcat -f jsonl "$httpd/file/m" "http://u:secret@127.0.0.1:$port/status/404"
    [[ $stderr == "tlmcat: cannot read http://***@127.0.0.1:$port/status/404: the server answered 404 Not Found" ]]
    [ "$(events <<<"$output")" = $'missing\thost\t127.0.0.1\thost=127.0.0.1\t1' ]
    [[ $(jq -r 'select(.eid) | .eid' <<<"$output") == "missing/http://***@127.0.0.1:$port/status/404@"* ]]
    [ "$(jq -r 'select(.eid) | .evidence' <<<"$output")" = "the server answered 404 Not Found" ]
    [[ $output == *'"gauge"'* ]]
    # the host that the data name counts
    printf '# TYPE x_y gauge\nx_y{Hostname="n7"} 1\n' >www/named
    run -0 --separate-stderr tlmcat -f jsonl "$httpd/file/named"
    [ "$(jq -r .host <<<"$output")" = n7 ]
    run -2 --separate-stderr tlmcat --follow "$httpd/file/m"
    [ "$stderr" = "tlmcat: cannot use --follow: $httpd/file/m can be read again and again only (--interval)" ]
    run -2 --separate-stderr tlmcat "http://n[1-/m"
    [[ $stderr == "tlmcat: cannot expand http://n[1-/m: "* ]]
}

@test "URLs: dead ones time out together, not one after the other" {
    need_http
    exposition 5 >www/m
    SECONDS=0
    tlmcat -f jsonl --interval 2 --rounds 1 "$httpd"/silent?{1..8} "$httpd/file/m" >out 2>err
    cat out err
    [ "$SECONDS" -lt 12 ]
    [ "$(events out | wc -l)" -eq 8 ]
    [ "$(jq -c 'select(.type == "gauge") | .value' out)" = 5 ]
}

# many_up N: exporters on N ports, URLs in the file urls; /silent never answers.
# How many connections were open at a time at most is in the file most.
many_up() {
    cat >many.py <<'EOF'
import selectors, socket, sys
sel, now, most = selectors.DefaultSelector(), 0, 0
with open("urls.new", "w") as f:
    for _ in range(int(sys.argv[1])):
        s = socket.create_server(("127.0.0.1", 0), backlog=16)
        sel.register(s, selectors.EVENT_READ)
        f.write("http://127.0.0.1:%d\n" % s.getsockname()[1])
import os
os.rename("urls.new", "urls")
body = b"# TYPE x gauge\nx 1\n"
while True:
    for key, _ in sel.select():
        if not key.data:
            sel.register(key.fileobj.accept()[0], selectors.EVENT_READ, "connection")
            now += 1
        elif not (asked := key.fileobj.recv(4096)):
            sel.unregister(key.fileobj)
            key.fileobj.close()
            now -= 1
        elif b"/silent" not in asked:
            key.fileobj.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        if now > most:
            most = now
            with open("most", "w") as f:
                f.write("%d\n" % most)
EOF
    local i
    python3 many.py "$1" 3>&- 4>&- &
    scraper=$! # which teardown ends
    for ((i = 0; i < 500; i++)); do
        [ ! -e urls ] || return 0
        sleep 0.02
    done
    return 1
}

@test "URLs: hundreds of dead ones are waited for at the same time" {
    need_http
    [ "$(ulimit -H -n)" = unlimited ] || [ "$(ulimit -H -n)" -ge 1024 ] || skip "few descriptors"
    ulimit -S -n 1024
    many_up 300
    mapfile -t urls <urls
    run -2 --separate-stderr tlmcat -f jsonl --interval 5 --rounds 1 "${urls[@]/%//silent}"
    [ "$(events <<<"$output" | wc -l)" -eq 300 ]
    [ "$(<most)" -eq 300 ]
}

@test "URLs: more than there may be descriptors" {
    need_http
    many_up 100
    mapfile -t urls <urls
    (
        ulimit -n 64
        tlmcat -f jsonl "${urls[@]/%//m}" >out 2>err
    )
    [ ! -s err ]
    [ "$(grep -c '"name":"x"' out)" -eq 100 ]
}

@test "URLs: nothing but dead ones in all rounds is trouble" {
    need_http
    run -2 --separate-stderr tlmcat -f jsonl --interval 0.2 --rounds 3 "$httpd/status/404"
    [ "$(events <<<"$output" | wc -l)" -eq 1 ]
    [ "$(grep -c "cannot read" <<<"$stderr")" -eq 1 ]
}

@test "--interval: gone and back are an event each, with one eid" {
    need_http
    exposition 5 >www/m
    exposition 7 >textfile
    tlmcat -f jsonl --interval 0.2 "$httpd/file/m" "$httpd/file/gone" textfile >out 2>err &
    scraper=$!
    wait_until() {
        local i
        for ((i = 0; i < 500; i++)); do
            ! eval "$1" || return 0
            sleep 0.02
        done
        cat out err
        return 1
    }
    wait_until '[ "$(events out | wc -l)" -ge 1 ]'
    wait_until '[ "$(jq -c "select(.value == 7)" out | wc -l)" -ge 3 ]'
    exposition 9 >www/gone
    wait_until '[ "$(events out | wc -l)" -ge 2 ]'
    exposition 11 >textfile
    wait_until '[ "$(jq -c "select(.value == 11)" out | wc -l)" -ge 1 ]'
    kill -INT "$scraper"
    wait "$scraper" # status 0
    scraper=
    cat out err
    [ "$(events out)" = $'missing\thost\t127.0.0.1\thost=127.0.0.1\t1\nrelief\thost\t127.0.0.1\thost=127.0.0.1\t1' ]
    [ "$(jq -r 'select(.eid) | .eid' out | sort -u | wc -l)" -eq 1 ]
    [ "$(jq -r 'select(.eid) | .since' out | sort -u | wc -l)" -eq 1 ]
    [ "$(grep -c 'cannot read' err)" -eq 1 ]
    [ "$(grep -c 'gone is back: it was away for' err)" -eq 1 ]
    [ -n "$(jq -c 'select(.value == 9)' out)" ]
}

@test "--interval: a body that is too long fails once, behind what came" {
    need_http
    awk 'BEGIN { for (i = 0; i < 17000; i++) { printf "#%4000s\n", "" } }' >www/long
    { exposition 5; cat www/long; } >www/m
    run -2 --separate-stderr timeout 60 tlmcat -f jsonl --interval 20 --rounds 1 "$httpd/file/m"
    [[ $stderr == "tlmcat: cannot "*"/file/m: the body is longer than 64 MiB" ]] || { echo "$stderr" && return 1; }
    [ "$(jq -c 'select(.value == 5)' <<<"$output" | wc -l)" -eq 1 ]
    [ "$(events <<<"$output" | wc -l)" -eq 1 ]
}

@test "--interval: rounds, and what does not go together" {
    exposition 7 >textfile
    run -0 --separate-stderr tlmcat -f jsonl --interval 0.1 --rounds 3 textfile
    [ "${#lines[@]}" -eq 3 ]
    run -2 --separate-stderr tlmcat --interval 1
    [ "$stderr" = "tlmcat: cannot use --interval: standard input cannot be read again" ]
    run -2 --separate-stderr tlmcat --interval 1 textfile -
    [ "$stderr" = "tlmcat: cannot use --interval: standard input cannot be read again" ]
    run -2 --separate-stderr tlmcat --interval 1 --follow textfile
    [ "$stderr" = "tlmcat: cannot use --interval together with --follow" ]
    run -2 --separate-stderr tlmcat --rounds 1 textfile
    [ "$stderr" = "tlmcat: cannot use --rounds: no --interval given" ]
}

@test "--interval: one that hangs leaves time for the next round" {
    need_http
    exposition 5 >www/m
    run -0 --separate-stderr tlmcat -f jsonl --interval 4 --rounds 2 "$httpd/silent" "$httpd/file/m"
    [[ $stderr == *"silent: not complete after 3.2 s" ]]
    [ "$(jq -c 'select(.value == 5)' <<<"$output" | wc -l)" -eq 2 ]
}

@test "--interval: a round that takes too long is said, and counted" {
    need_http
    exposition 5 >www/m
    run -0 --separate-stderr tlmcat -f jsonl --interval 0.1 --rounds 2 "$httpd/silent" "$httpd/file/m"
    [[ $stderr == *"tlmcat: cannot keep the interval: a round took "* ]] ||
        { echo "$stderr" && return 1; }
    [[ $stderr =~ "tlmcat: "[0-9]+" rounds were left out: others took longer than --interval" ]]
}

@test "--follow: a stop is noticed within a file without a match" {
    need_feature PCRE2 PCRE2
    # each line takes the pattern to its limit; all of them would take minutes
    awk 'BEGIN { for (i = 0; i < 20000; i++) { printf "%3000s!\n", "" } }' |
        tr ' ' a >slow
    tlmcat --follow --pattern '(?:a+)+[bc](?<step>\d)(?<dur>\d)' -f jsonl slow >out 2>err &
    scraper=$!
    sleep 1
    SECONDS=0
    kill -INT "$scraper"
    wait "$scraper" || true
    scraper=
    [ "$SECONDS" -lt 15 ]
}

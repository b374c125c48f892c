#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# url.bats - URLs against servers that misbehave (httpd.py, on loopback).

load lib
load httpd

setup_file() {
    no_httpd=$(httpd_missing)
    has_feature CURL || no_httpd="built without curl"
    export no_httpd
    [ -z "$no_httpd" ] || return 0
    cd "$BATS_FILE_TMPDIR" || return 1
    # certificates of an authority of our own, good and of another name
    if command -v openssl >/dev/null; then
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
            -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=test \
            -addext subjectAltName=IP:127.0.0.1 2>openssl.log
        httpd_up "$BATS_FILE_TMPDIR/www" cert.pem key.pem
        tls_port=$(<www/tls-port)
        export tls_port
    else
        httpd_up "$BATS_FILE_TMPDIR/www"
    fi
    export httpd httpd_dir
}

teardown_file() {
    httpd_down
}

setup() {
    [ -z "$no_httpd" ] || skip "$no_httpd"
    cd "$BATS_TEST_TMPDIR" || return 1
    unset "${!SSL_CERT@}" CURL_CA_BUNDLE
    export no_proxy=127.0.0.1
    export HOME=$BATS_TEST_TMPDIR
}

# url VERB ...: test_url, which must not hang.
url() {
    timeout --foreground 40 "$top_builddir/tests/unit/test_url" "$@"
}

# refused CODE ERRNO MESSAGE: of the last run; URL is written for the server.
refused() {
    [ "$stderr" = "$1 $2 cannot read ${3/URL/$httpd}" ] ||
        { echo "got: $stderr" && return 1; }
}

@test "bodies, empty, short and long, byte for byte" {
    run -0 --separate-stderr url read -p "$httpd/bytes/"{0,1,100000,30000000}
    [ -z "$stderr" ]
    [ "$output" = "0 bytes, 0 wrong
1 bytes, 0 wrong
100000 bytes, 0 wrong
30000000 bytes, 0 wrong" ]
    run -0 url read -p -b 7 "$httpd/bytes/1000000"
    [ "$output" = "1000000 bytes, 0 wrong" ]
    run -0 url read -p -n -b 5000 "$httpd/bytes/3000000"
    [ "$output" = "3000000 bytes, 0 wrong" ]
    head -c 300000 /dev/urandom >"$httpd_dir/data"
    url read "$httpd/file/data" | cmp - "$httpd_dir/data"
}

@test "what is asked for" {
    url read "$httpd/headers" >got
    grep -qi '^user-agent: evenpace/[0-9.]*' got
    grep -qi '^accept: text/plain' got
    if has_feature ZLIB; then
        grep -qi '^accept-encoding: gzip' got
    else
        run -1 grep -qi '^accept-encoding' got
    fi
}

@test "a body compressed for the transfer comes as it is" {
    url read "$httpd/gz/100000" | gzip -dc >got
    url read "$httpd/bytes/100000" | cmp - got
}

@test "a slow body comes byte by byte; it is no stall" {
    run -0 url read -s 0.4 "$httpd/slow/8/0.1"
    [ "$output" = xxxxxxxx ]
}

@test "error statuses: no body, no second try" {
    run -2 --separate-stderr url read "$httpd/status/404"
    [ -z "$output" ]
    refused -4 2 'URL/status/404: the server answered 404 Not Found'
    [ "$(requests /status/404 | wc -l)" -eq 1 ]
    run -2 --separate-stderr url read "$httpd/status/403"
    refused -4 13 'URL/status/403: the server answered 403 Forbidden'
    run -2 --separate-stderr url read "$httpd/status/299" "$httpd/status/304"
    refused -4 5 'URL/status/304: the server answered 304 Not Modified'
    [ "$output" = "the body of an error page" ]
    run -2 --separate-stderr url read "$httpd/status/300"
    refused -4 5 'URL/status/300: the server answered 300 Multiple Choices'
    [ -z "$output" ]
    run -2 --separate-stderr url read "$httpd/status/206"
    [ -z "$output" ]
}

@test "503 twice, then an answer" {
    run -0 url read "$httpd/times/2/503/1/a"
    [ "$output" = "done" ]
    [ "$(requests /times/2/503/1/a | wc -l)" -eq 3 ]
    run -0 url read "$httpd/times/1/429/-/b" "$httpd/times/1/408/-/c"
    [ "$output" = donedone ]
    run -2 --separate-stderr url read -r 1 "$httpd/times/2/502/-/d"
    refused -4 5 'URL/times/2/502/-/d: the server answered 502 Bad Gateway (2 tries)'
    run -2 --separate-stderr url read -r 0 "$httpd/times/1/503/-/e"
    refused -4 5 'URL/times/1/503/-/e: the server answered 503 Service Unavailable'
}

@test "Retry-After beyond the deadline: no more waiting" {
    SECONDS=0
    run -2 --separate-stderr url read -t 10 "$httpd/times/1/503/30/f"
    [ "$SECONDS" -lt 9 ]
    refused -4 5 'URL/times/1/503/30/f: the server answered 503 Service Unavailable'
}

@test "a connection that is closed without an answer" {
    run -0 url read "$httpd/drop/1/a"
    [ "$output" = "done" ]
    # libcurl by itself repeats a request on a connection that it had kept
    run -2 --separate-stderr url read -r 1 "$httpd/drop/9/b"
    refused -4 5 'URL/drop/9/b: Empty reply from server (2 tries)'
}

@test "stalls and deadlines" {
    run -2 --separate-stderr url read -r 1 -s 0.3 "$httpd/silent"
    refused -9 0 'URL/silent: nothing came for 0.3 s (2 tries)'
    [ "$(requests /silent | wc -l)" -eq 2 ]
    run -2 --separate-stderr url read -p -s 0.3 "$httpd/stall/1000"
    refused -9 0 'URL/stall/1000: connection lost after 1000 bytes: nothing came for 0.3 s'
    [ "$output" = "1000 bytes, 996 wrong" ]
    run -2 --separate-stderr url read -t 0.4 "$httpd/slow/100/0.05"
    [[ $stderr =~ ^-9\ 0\ .*:\ connection\ lost\ after\ [0-9]+\ bytes:\ not\ complete\ after\ 0.4\ s$ ]]
    # one deadline for all tries
    SECONDS=0
    run -2 --separate-stderr url read -r 30 -t 2 "$httpd/times/99/500/-/g"
    [ "$SECONDS" -le 3 ]
}

@test "the size cap" {
    run -0 url read -p -m 100000 "$httpd/bytes/100000"
    [ "$output" = "100000 bytes, 0 wrong" ]
    run -2 --separate-stderr url read -p -m 99999 "$httpd/bytes/100000"
    [[ $output == *" bytes, 0 wrong" ]]
    [ "${output%% *}" -le 99999 ]
    refused -5 0 'URL/bytes/100000: the body is longer than 97.7 KiB'
    run -2 --separate-stderr url read -p -m 1048576 "$httpd/endless"
    refused -5 0 'URL/endless: the body is longer than 1 MiB'
    [ "${output%% *}" -le 1048576 ]
}

@test "a connection cut in the middle: the rest by ranges" {
    local how
    for how in etag modified; do
        run -0 --separate-stderr url read -p "$httpd/cut/1000000/300001/$how/$how"
        [ "$output" = "1000000 bytes, 0 wrong" ]
        requests "/cut/1000000/300001/$how/$how" >"seen.$how"
        [ "$(wc -l <"seen.$how")" -eq 2 ]
    done
    grep -q 'Range=bytes=300001- If-Range="v1"' seen.etag
    grep -q 'Range=bytes=300001- If-Range=Sun, 09 Sep 2001' seen.modified
    # more than once, and the reader slow enough for a full buffer
    run -0 url read -p -b 1000 "$httpd/cut/900000/400000/again/again"
    [ "$output" = "900000 bytes, 0 wrong" ]
    [ "$(requests /cut/900000/400000/again/again | wc -l)" -eq 3 ]
}

@test "a connection cut in the middle: where there is no way to go on" {
    local how n=300001
    # more than fits a buffer is being read: it cannot begin anew
    for how in plain weak; do
        run -2 --separate-stderr url read -p "$httpd/cut/1000000/$n/$how/$how"
        [ "$output" = "$n bytes, 0 wrong" ]
        [[ $stderr == "-6 0 "*": connection lost after $n bytes: "* ]]
        [ "$(requests "/cut/1000000/$n/$how/$how" | wc -l)" -eq 1 ]
    done
    # it has changed since, or other bytes come
    run -2 --separate-stderr url read -p "$httpd/cut/1000000/$n/changed/changed"
    [ "$output" = "$n bytes, 0 wrong" ]
    refused -6 0 "URL/cut/1000000/$n/changed/changed: connection lost after $n bytes: the server answered 200 OK (2 tries)"
    run -2 --separate-stderr url read -p "$httpd/cut/1000000/$n/wrong/wrong"
    [ "$output" = "$n bytes, 0 wrong" ]
    refused -6 0 "URL/cut/1000000/$n/wrong/wrong: connection lost after $n bytes: the server answered 206 Partial Content (2 tries)"
    run -2 --separate-stderr url read -p "$httpd/cut/1000000/$n/chunked/chunked"
    [[ $stderr == "-6 0 "*": connection lost after $n bytes: "* ]]
}

@test "a connection cut in the middle before anybody read: from the beginning" {
    # the second is fetched, and cut, while the first is being read
    run -0 url read -p "$httpd/slow/10/0.05" "$httpd/cut/200000/150000/y/plain"
    [ "${lines[1]}" = "200000 bytes, 0 wrong" ]
    [ "$(requests /cut/200000/150000/y/plain | wc -l)" -eq 2 ]
}

@test "redirects" {
    run -0 url read "$httpd/redirect/5"
    [ "$output" = here ]
    run -2 --separate-stderr url read "$httpd/redirect/6"
    refused -4 5 'URL/redirect/6: more than 5 redirects'
    run -2 --separate-stderr url read "$httpd/to?file:///etc/passwd"
    refused -4 5 'URL/to?file:///etc/passwd: a redirect to file:///etc/passwd is not followed (neither http nor https)'
    [ -z "$output" ]
    run -2 --separate-stderr url read "$httpd/to?ftp://u:p@127.0.0.1/"
    [[ $stderr == *'a redirect to ftp://***@127.0.0.1/ is not followed'* ]]
    run -2 --separate-stderr url read "$httpd/to?/to?/status/404"
    [[ $stderr == *'the server answered 404 Not Found' ]]
}

need_tls() {
    [ -n "${tls_port:-}" ] || skip "openssl is not installed"
    tls=https://127.0.0.1:$tls_port
    cert=$BATS_FILE_TMPDIR/cert.pem
}

@test "TLS: an unknown certificate is refused, once; a known one is not" {
    need_tls
    run -2 --separate-stderr url read "$tls/bytes/1"
    [[ $stderr =~ ^-4\ 5\ .*ertificate ]]
    [[ $stderr != *tries* ]]
    [ -z "$output" ]
    CURL_CA_BUNDLE=$cert run -0 url read -p "$tls/bytes/3000000"
    [ "$output" = "3000000 bytes, 0 wrong" ]
    SSL_CERT_FILE=$cert run -0 url read -p "$tls/bytes/3"
    [ "$output" = "3 bytes, 0 wrong" ]
    # a good certificate of another host
    CURL_CA_BUNDLE=$cert run -2 --separate-stderr \
        url read "https://localhost:$tls_port/bytes/1"
    [[ $stderr =~ ^-4\ 5\ .*(ertificate|subject) ]]
}

@test "TLS: never down to http, not even by way of it" {
    need_tls
    export CURL_CA_BUNDLE=$cert
    run -2 --separate-stderr url read "$tls/to?$httpd/bytes/5"
    [[ $stderr == *"a redirect to $httpd/bytes/5 is not followed (from https down to http)" ]]
    # http, up to https, and down again
    run -2 --separate-stderr url read "$httpd/to?$tls/to?$httpd/bytes/5"
    [[ $stderr == *"(from https down to http)" ]]
    [ "$(requests /bytes/5 | wc -l)" -eq 0 ]
    run -0 url read -p "$httpd/to?$tls/bytes/6"
    [ "$output" = "6 bytes, 0 wrong" ]
}

@test "https to a port that speaks http is not tried again and again" {
    run -2 --separate-stderr url read "https${httpd#http}/bytes/1"
    [[ $stderr == "-4 "* ]]
    [[ $stderr != *tries* ]]
}

@test "passwords: used, taken from ~/.netrc, and never shown" {
    run -0 url read -p "http://user:secret@${httpd#http://}/bytes/11"
    requests /bytes/11 | grep -q "Authorization=Basic $(printf user:secret | base64)"
    run -2 --separate-stderr url read "http://user:secret@${httpd#http://}/status/401"
    [ "$stderr" = "-4 13 cannot read http://***@${httpd#http://}/status/401: the server answered 401 Unauthorized" ]
    echo 'machine 127.0.0.1 login me password mine' >"$HOME/.netrc"
    run -0 url read -p "$httpd/bytes/12"
    requests /bytes/12 | grep -q "Authorization=Basic $(printf me:mine | base64)"
}

@test "10,000 small ones, eight at a time" {
    local urls=() i
    for ((i = 0; i < 100; i++)); do urls+=("$httpd/bytes/$((i + 20))"); done
    # each a hundred times, in one process whose thread starts anew each time
    run -0 --separate-stderr url again -p 100 "${urls[@]}"
    [ "${#lines[@]}" -eq 10000 ]
    [ "$(printf '%s\n' "$output" | sort -u | wc -l)" -eq 100 ]
    [[ $output != *", 1 wrong"* ]]
    urls=()
    for ((i = 0; i < 100; i++)); do urls+=("$httpd/together/t"); done
    url read "${urls[@]}" >got
    [ "$(grep -c . got)" -ge 1 ]
    # a reader that waits may go past the limit, by one
    [ "$(grep -oE '[0-9]{1}' got | sort -n | tail -n 1)" -le 9 ]
    [ "$(grep -oE '[0-9]{1}' got | sort -n | tail -n 1)" -ge 4 ]
    [ "$(tr -d '\n' <got | wc -c)" -eq 100 ]
}

@test "more long bodies of one host than are fetched at a time, in any order" {
    local urls=() i
    for ((i = 0; i < 30; i++)); do urls+=("$httpd/bytes/900000"); done
    run -0 url read -p -R "${urls[@]}"
    [ "${#lines[@]}" -eq 30 ]
    [ "$(printf '%s\n' "$output" | sort -u)" = "900000 bytes, 0 wrong" ]
    run -0 url read -p -R -n "${urls[@]}"
    [ "$(printf '%s\n' "$output" | sort -u)" = "900000 bytes, 0 wrong" ]
}

@test "one whose reader waits goes past those that hang; closing them all" {
    # eight of these hold all the places of the host, for ever
    run -0 url abort -s 0 "$httpd"/{silent,stall/10}{,,,,,} "$httpd/bytes/1"
    run -0 url abort -s 0 "$httpd"/{endless,silent}{,,,,,} "$httpd/endless"
    run -0 url abort "$httpd/silent" "$httpd/bytes/1"
}

@test "exit() while transfers run" {
    need_tls
    export CURL_CA_BUNDLE=$cert
    local round # run has an i of its own
    for round in {1..20}; do
        run -7 url leave "$tls/endless" "$tls"/{endless,silent,bytes/9}{,,} \
            "$httpd/endless"
    done
}

@test "a dead endpoint does not hold up the others" {
    local dead=http://127.0.0.1:1
    run -2 --separate-stderr url read -r 0 "$httpd/bytes/0" "$dead/" \
        "$httpd/redirect/0"
    [ "$output" = here ]
    [[ $stderr == "-4 111 cannot read $dead/: Failed to connect to 127.0.0.1 port 1: "* ]]
}

@test "after a fork the child is refused, and may begin anew" {
    # ThreadSanitizer by itself allows no thread in the child
    TSAN_OPTIONS=die_after_fork=0 run -0 url fork -p "$httpd/bytes/2000000"
    [ "${lines[0]}" = "cannot read $httpd/bytes/2000000: it was opened before a fork" ]
    [ "${lines[1]}" = "2000000 bytes, 0 wrong" ]
}

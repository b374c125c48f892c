#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# urls.bats - programs that read URLs, of an nginx of their own on loopback for
# each test, with all of its files in the folder of the test.

load ../lib

setup() {
    command -v nginx >/dev/null || skip "nginx is not installed"
    need_feature CURL libcurl
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir -p www tmp
    nginx=
    local try
    for try in 1 2 3 4 5; do # a port may be taken by somebody else
        port=$((20000 + RANDOM % 10000))
        configure "$port" >nginx.conf
        nginx -p "$PWD" -c nginx.conf -e "$PWD/log.$try" -g 'daemon off;' \
            3>&- &
        nginx=$!
        if wait_for_answer; then
            url=http://127.0.0.1:$port
            return 0
        fi
        stop
    done
    cat log.*
    return 1
}

configure() { # configure PORT
    cat <<EOF
worker_processes 1;
pid $PWD/pid;
events { worker_connections 256; }
http {
    access_log $PWD/access;
    client_body_temp_path $PWD/tmp;
    proxy_temp_path $PWD/tmp;
    fastcgi_temp_path $PWD/tmp;
    uwsgi_temp_path $PWD/tmp;
    scgi_temp_path $PWD/tmp;
    default_type application/octet-stream;
    server {
        listen 127.0.0.1:$1;
        root $PWD/www;
        location /static/ { gzip_static on; alias $PWD/www/; }
        location /ready { return 204; }
        location /busy { return 503; }
    }
}
EOF
    [ "$(id -u)" -ne 0 ] || echo "user root;" # the folder is ours only
}

# Until nginx answers; false if it ended, or took 10 s.
wait_for_answer() {
    local deadline=$((SECONDS + 10))
    while kill -0 "$nginx" 2>/dev/null; do
        { printf 'GET /ready HTTP/1.0\r\n\r\n' >&3 && grep -q ' 204 ' <&3; } \
            2>/dev/null 3<>"/dev/tcp/127.0.0.1/$port" && return 0
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
    return 1
}

stop() {
    [ -n "${nginx:-}" ] || return 0
    kill "$nginx" 2>/dev/null || true
    wait "$nginx" 2>/dev/null || true
    nginx=
}

teardown() {
    stop
}

# wait_until COMMAND...: until it succeeds, 20 s at most.
wait_until() {
    local deadline=$((SECONDS + 20))
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

# rank N: 20,000 records of rank N.
rank() {
    awk -v rank="$1" 'BEGIN {
        for (i = 0; i < 20000; i++)
            printf "{\"type\":\"step\",\"ts\":%d.%03d,\"rank\":%d," \
                "\"step\":%d,\"dur\":0.1}\n", 1700000000 + i, rank, rank, i
    }'
}

@test "compressed logs of a host list are merged as files are" {
    need_feature ZLIB zlib
    local n
    for n in 08 09 10; do
        rank "${n#0}" | gzip >"www/rank$n.gz"
    done
    tlmcat -f jsonl www/rank*.gz >want
    [ "$(wc -l <want)" -eq 60000 ]
    tlmcat -f jsonl "$url/rank[08-10].gz" >got
    cmp want got
    # and where the compression is the transfer's: /static/rank08 is the .gz
    tlmcat -f jsonl www/rank08.gz >want
    tlmcat -f jsonl "$url/static/rank08" >got
    cmp want got
    [ "$(grep -c 'GET /rank' access)" -eq 3 ]
}

@test "other programs read URLs too" {
    rank 3 >www/steps
    skewdetect -f jsonl www/steps >want
    skewdetect -f jsonl "$url/steps" >got
    cmp want got
}

@test "a file that is not there, a server that is busy: said, the rest is read" {
    rank 1 >www/rank1
    run -2 --separate-stderr tlmcat -f jsonl "$url/rank[1-2]"
    [ "$(grep -c '"type":"step"' <<<"$output")" -eq 20000 ]
    [ "$(grep -c '"kind":"missing"' <<<"$output")" -eq 1 ]
    [[ $stderr == *"cannot read $url/rank2: "*404* ]]
    run -2 --separate-stderr tlmcat -f jsonl "$url/busy"
    [[ $stderr == *"cannot read $url/busy: "*503* ]]
    [ "$(grep -c 'GET /busy' access)" -gt 1 ] # it was tried again
}

@test "a transfer that ends in the middle of compressed data is an error" {
    need_feature ZLIB zlib
    rank 1 | gzip >whole.gz
    head -c 20000 whole.gz >www/cut.gz
    run -2 --separate-stderr tlmcat --stats "$url/cut.gz"
    [[ $stderr == *"cannot read $url/cut.gz: "*"end in the middle"* ]]
}

@test "--interval: a server that goes away and comes back" {
    need_feature ZLIB zlib
    printf '# TYPE node_load1 gauge\nnode_load1 0.5\n' >www/metrics
    tlmcat -f jsonl --interval 1 "$url/metrics" >got 2>err 3>&- &
    local reader=$!
    wait_until test -s got
    stop
    wait_until grep -q '"kind":"missing"' got
    nginx -p "$PWD" -c nginx.conf -e "$PWD/log.again" -g 'daemon off;' 3>&- &
    nginx=$!
    wait_until grep -q '"kind":"relief"' got
    kill -INT "$reader"
    wait "$reader"
    [ "$(grep -c '"kind":"missing"' got)" -eq 1 ]
    [ "$(grep -c "cannot read" err)" -eq 1 ]
    [ "$(grep -c node_load1 got)" -ge 2 ]
    [[ $(head -n 1 got) == *'"host":"127.0.0.1"'* ]]
}

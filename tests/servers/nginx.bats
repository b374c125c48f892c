#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# nginx.bats - URLs of files that a real nginx serves, on loopback.

load ../lib

setup_file() {
    no_nginx=
    command -v nginx >/dev/null || no_nginx="nginx is not installed"
    has_feature CURL || no_nginx="built without curl"
    export no_nginx
    [ -z "$no_nginx" ] || return 0
    cd "$BATS_FILE_TMPDIR" || return 1
    mkdir www
    local try
    for try in 1 2 3 4 5; do # a port may be taken by somebody else
        port=$((20000 + RANDOM % 10000))
        write_conf >nginx.conf
        nginx -p "$PWD" -e "$PWD/log" -c "$PWD/nginx.conf" \
            >out 2>&1 3>&- 4>&- &
        nginx_pid=$!
        if wait_for_nginx; then
            export nginx_pid url=http://127.0.0.1:$port
            return 0
        fi
        nginx_stop
    done
    cat out log
    return 1
}

write_conf() {
    cat <<END
daemon off;
worker_processes 1;
pid $PWD/pid;
events {}
http {
    log_format ranges '\$status \$request_uri \$http_range \$http_if_range';
    access_log $PWD/access ranges;
    client_body_temp_path $PWD/t1;
    proxy_temp_path $PWD/t2;
    fastcgi_temp_path $PWD/t3;
    uwsgi_temp_path $PWD/t4;
    scgi_temp_path $PWD/t5;
    server {
        listen 127.0.0.1:$port;
        root $PWD/www;
        location /fly { gzip on; gzip_types *; }
    }
}
END
    [ "$(id -u)" -ne 0 ] || echo "user root;" # the folder is ours only
}

wait_for_nginx() {
    local deadline=$((SECONDS + 10))
    while kill -0 "$nginx_pid" 2>/dev/null; do
        (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return 0
        [ "$SECONDS" -lt "$deadline" ] || return 1
    done
    return 1
}

nginx_stop() {
    [ -n "${nginx_pid:-}" ] || return 0
    kill "$nginx_pid" 2>/dev/null || true
    wait "$nginx_pid" 2>/dev/null || true
    nginx_pid=
}

teardown_file() {
    nginx_stop
}

setup() {
    [ -z "$no_nginx" ] || skip "$no_nginx"
    cd "$BATS_TEST_TMPDIR" || return 1
    www=$BATS_FILE_TMPDIR/www
    export no_proxy=127.0.0.1
    get=$top_builddir/tests/unit/test_url
}

@test "files as they are, compressed or not, and compressed on the fly" {
    need_feature ZLIB zlib
    steps 0 2000 5 >"$www/log"
    gzip -c "$www/log" >"$www/log.gz"
    mkdir -p "$www/fly"
    cp "$www/log" "$www/fly/log"
    timeout 20 "$get" read "$url/log" | cmp - "$www/log"
    timeout 20 "$get" read "$url/log.gz" | cmp - "$www/log.gz"
    timeout 20 "$get" read "$url/fly/log" >got
    [ "$(wc -c <got)" -lt "$(wc -c <"$www/log")" ]
    gzip -dc <got | cmp - "$www/log"
    # by content, in the whole of the program
    gzip -t <got
    tlmcat got | cmp - <(tlmcat "$www/log")
}

# The process that has the connections: the only child of the master.
worker() {
    local pid
    read -r pid <"/proc/$nginx_pid/task/$nginx_pid/children"
    echo "$pid"
}

@test "a server that is killed in the middle: the rest from its successor" {
    head -c 60000000 /dev/urandom >"$www/big"
    set -o pipefail
    # the reader stands still until the worker is gone; what it has not read
    # by then is more than the buffers between them hold
    timeout 40 "$get" read "$url/big" | {
        head -c 1000000 >got
        kill -KILL "$(worker)"
        cat >>got
    }
    cmp got "$www/big"
    # at least one request for the rest, as of the same version of the file
    grep -qE '^206 /big bytes=[1-9][0-9]*- \\x22.*\\x22$' "$BATS_FILE_TMPDIR/access"
}

@test "a missing file, and a folder that may not be listed" {
    run -2 --separate-stderr timeout 20 "$get" read "$url/none"
    [ "$stderr" = "-4 2 cannot read $url/none: the server answered 404 Not Found" ]
    run -2 --separate-stderr timeout 20 "$get" read "$url/"
    [ "$stderr" = "-4 13 cannot read $url/: the server answered 403 Forbidden" ]
    [ -z "$output" ]
}

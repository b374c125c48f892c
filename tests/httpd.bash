# SPDX-License-Identifier: Apache-2.0
# httpd.bash - tests/httpd.py as a child of bats: httpd_up, httpd_down, and the
# variables httpd (http://127.0.0.1:PORT) and httpd_dir.

# Why there can be no server; nothing if there can.
httpd_missing() {
    command -v python3 >/dev/null || echo "python3 is not installed"
}

httpd_up() { # httpd_up DIR [CERT KEY]
    local deadline=$((SECONDS + 20))
    httpd_dir=$1
    mkdir -p "$httpd_dir"
    rm -f "$httpd_dir/port"
    : >"$httpd_dir/requests"
    # its standard input ends with us, and so does it
    mkfifo "$httpd_dir/life"
    python3 "$top_srcdir/tests/httpd.py" "$@" <"$httpd_dir/life" \
        >"$httpd_dir/log" 2>&1 3>&- 4>&- &
    httpd_pid=$!
    exec 7>"$httpd_dir/life"
    until [ -e "$httpd_dir/port" ]; do
        if ! kill -0 "$httpd_pid" || [ "$SECONDS" -ge "$deadline" ]; then
            cat "$httpd_dir/log"
            return 1
        fi
        read -r -t 0.02 <> <(:) || true
    done
    httpd=http://127.0.0.1:$(<"$httpd_dir/port")
}

httpd_down() {
    [ -n "${httpd_pid:-}" ] || return 0
    exec 7>&-
    kill "$httpd_pid" 2>/dev/null || true
    wait "$httpd_pid" 2>/dev/null || true
    httpd_pid=
}

# The requests so far of a path, as the server saw them.
requests() { # requests PATH
    awk -v path="$1" '$1 == path' "$httpd_dir/requests"
}

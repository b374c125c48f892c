#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# skewplot.bats - pictures: the golden ones, what is chosen, terminals, hostile
# input. tests/golden/draw makes the golden ones ("make golden").

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export TZ=UTC LC_ALL=C
    straggler=$top_srcdir/share/examples/straggler.jsonl
}

worker() { # worker DP PP SLOWDOWN
    printf '{"type":"whatif","what":"worker","id":"dp=%d,pp=%d","slowdown":%s}\n' "$@"
}

link() { # link SRC DST VALUE
    printf '{"type":"link","ts":1,"src":"%s","dst":"%s","value":%s}\n' "$@"
}

# Is each file XML of a whole, alone, with a title and a description?
parse() {
    python3 - "$@" <<'END'
import sys
import xml.etree.ElementTree as tree

ns = '{http://www.w3.org/2000/svg}'
for path in sys.argv[1:]:
    root = tree.parse(path).getroot()
    assert root.tag == ns + 'svg', path
    assert root.get('role') == 'img' and root.get('viewBox'), path
    assert root.find(ns + 'title').text and root.find(ns + 'desc').text, path
    for e in root.iter():
        assert e.tag[len(ns):] in ('svg', 'g', 'title', 'desc', 'style', 'rect',
                                   'path', 'circle', 'text'), e.tag
        assert not any('href' in k or k.startswith('on') for k in e.keys())
    text = open(path, encoding='utf-8').read()
    assert 'url(' not in text and '@import' not in text, path
END
}

@test "the golden pictures come out, byte by byte" {
    mkdir out
    "$top_srcdir/tests/golden/draw" "$PWD/out"
    run -0 diff -r -x draw "$top_srcdir/tests/golden" out
    [ "$(find out -name '*.svg' | wc -l)" -ge 7 ]
    [ "$(find out -name '*.txt' | wc -l)" -ge 14 ]
}

@test "the golden pictures are XML that stands alone" {
    run -0 parse "$top_srcdir"/tests/golden/*.svg
}

@test "a picture rasterised is not empty" {
    command -v rsvg-convert >/dev/null || skip "rsvg-convert is not installed"
    for kind in pace heat timeline; do
        rsvg-convert "$top_srcdir/tests/golden/$kind.svg" -o p.png
        # colours by how many pixels have them, the most frequent first
        python3 - p.png >colours <<'END'
import collections
import struct
import sys
import zlib

data = open(sys.argv[1], 'rb').read()
w, h, depth, kind = struct.unpack('>IIBB', data[16:26])
assert (depth, kind) in ((8, 2), (8, 6))
n = 3 if kind == 2 else 4
at, raw = 8, b''
while at < len(data):
    size, name = struct.unpack('>I4s', data[at:at + 8])
    if name == b'IDAT':
        raw += data[at + 8:at + 8 + size]
    at += size + 12
raw = zlib.decompress(raw)
before, seen = bytearray(w * n), collections.Counter()
for y in range(h):
    line = bytearray(raw[y * (w * n + 1) + 1:(y + 1) * (w * n + 1)])
    how = raw[y * (w * n + 1)]
    for i in range(w * n):
        a = line[i - n] if i >= n else 0
        b, c = before[i], before[i - n] if i >= n else 0
        p = a + b - c
        paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        line[i] = (line[i] + (0, a, b, (a + b) // 2, paeth)[how]) & 255
    before = line
    seen.update(bytes(line[i:i + 3]) for i in range(0, w * n, n))
for colour, count in seen.most_common():
    print(colour.hex(), count)
END
        [ "$(wc -l <colours)" -gt 30 ]
        awk -v kind=$kind '
            { all += $2; if ($1 == "ffffff") white = $2; seen[$1] = $2 }
            END {
                if (white > 0.95 * all || white < 0.05 * all) exit 1
                if (kind == "heat" && seen["d55e00"] < 1000) exit 1
                if (kind == "timeline" && seen["0072b2"] < 1000) exit 1
            }' colours
    done
}

@test "an onset with an eid that was seen before replaces that one" {
    event() {
        printf '{"type":"event","ts":3,"eid":"%s","kind":"%s","scope":"%s","id":"%s","since":2,"step":2,"factor":%s}\n' "$@"
    }
    { steps 0 5 20; event e onset job x 3; event e onset host host=n7 2; event f onset rank rank=0 1.5
        event g missing rank rank=0 1; } >in
    run -0 skewplot -k pace -f svg in
    [[ $output == *"3 events"* && $output == *"host=n7 2.00x"* ]]
    [[ $output != *"x 3.00x"* ]]
}

@test "what is drawn follows from the input, -k overrides" {
    worker 0 0 1.5 >whatif
    link a b 1e9 >links
    run -0 --separate-stderr skewplot -f text "$straggler" whatif links
    [ "${lines[0]}" = "Slowdown by worker" ]
    [ "$stderr" = "skewplot: drawn: heat; there is also (-k): ranks, pace, links" ]
    run -0 --separate-stderr skewplot -q -f text links "$straggler"
    [ "${lines[0]}" = "Pace of the training steps" ]
    [ -z "$stderr" ]
    run -0 --separate-stderr skewplot -f text -k links "$straggler" whatif links
    [ "${lines[0]}" = "Bandwidth of links" ]
    [ -z "$stderr" ]
    for r in {0..16}; do steps "$r" 3 20; done >many
    run -0 --separate-stderr skewplot -f text many
    [ "${lines[0]}" = "Busy time of each rank in each step" ]
    [ "$stderr" = "skewplot: drawn: ranks; there is also (-k): pace" ]
    run -0 --separate-stderr skewplot -v -f text links
    [ "$stderr" = "skewplot: drawn: links" ]
}

@test "nothing to draw: status 2, the kinds are named, the file is left" {
    echo '{"type":"gauge","ts":1,"name":"x","value":1,"unit":"1"}' >in
    echo before >out
    run -2 --separate-stderr skewplot -o out in
    [ "$stderr" = "skewplot: cannot draw anything: no record for heat, ranks, pace, timeline, links, loss in the input (see skewplot(1))" ]
    [ "$(cat out)" = before ]
    run -2 --separate-stderr skewplot -k loss "$straggler"
    [ "$stderr" = "skewplot: cannot draw anything: no record for loss in the input" ]
    [ -z "$output" ]
    worker 0 0 1.5 | sed 's/worker/stage/' >in
    run -2 skewplot in
    echo '{"type":"span","ts":1,"op":"x","step":3,"dur":1}' >in
    run -2 --separate-stderr skewplot --step 4 in
    [ "$stderr" = "skewplot: cannot draw timeline: no span of step 4" ]
    run -0 skewplot --step 3 -f text in
    [ "${lines[0]}" = "Operations of step 3" ]
    run -0 skewplot -f text in
    [ "${lines[0]}" = "Operations of step 3, the longest" ]
}

@test "-o, standard input, a pipe, a file that is cut" {
    skewplot -q "$straggler" >want.svg
    run -0 skewplot -q -o out.svg "$straggler"
    [ -z "$output" ]
    cmp want.svg out.svg
    skewplot -q - <"$straggler" | cmp - want.svg
    gzip -c "$straggler" >in.gz
    if has_feature ZLIB; then skewplot -q in.gz | cmp - want.svg; fi
    { cat "$straggler"; printf '{"type":"step",'; } >in
    run -2 --separate-stderr bash -c 'skewplot -q in | cmp - want.svg; exit ${PIPESTATUS[0]}'
    [[ $stderr == "skewplot: cannot use in:161: "* ]]
    run -0 skewplot -q --max-bad 1 -o out.svg in
    run -2 --separate-stderr bash -c "skewplot -q '$straggler' >/dev/full"
    [ "$stderr" = "skewplot: cannot write standard output: No space left on device" ]
}

@test "sizes: svg and text, and what is too small" {
    run -0 bash -c "skewplot -q --width 500 --height 300 '$straggler' | head -n 1"
    [[ $output == *' width="500" height="300" viewBox="0 0 500 300">' ]]
    for width in 20 47 133; do
        run -0 bash -c "skewplot -q -f text --width $width --height 15 '$straggler' |
            awk '{ if (length > most) most = length } END { print most, NR }'"
        [ "${output% *}" -le $width ]
        [ "${output#* }" -le 24 ]
    done
    run -2 --separate-stderr skewplot --width 100 "$straggler"
    [ "$stderr" = "skewplot: cannot use --width 100: svg needs at least 320" ]
    run -2 --separate-stderr skewplot --height 100 "$straggler"
    [ "$stderr" = "skewplot: cannot use --height 100: svg needs at least 160" ]
    run -2 skewplot --width 5000 "$straggler"
}

@test "--since, --until, --where, --title, --x" {
    run -0 skewplot -q -f text --since 2023-11-14T22:13:25Z --until 1700000010 "$straggler"
    [ "${lines[1]}" = "4 ranks, steps 10 to 19" ]
    run -0 skewplot -q -f text --where rank=2 --title 'Rank <2>' "$straggler"
    [ "${lines[0]}" = "Rank <2>" ]
    [ "${lines[1]}" = "1 rank, steps 1 to 40" ]
    run -0 bash -c "skewplot -q --title 'Rank <2>' '$straggler' | grep -c '>Rank &lt;2&gt;<'"
    [ "$output" -eq 2 ] # title of the document, heading
    run -0 skewplot -q -f text --x step "$straggler"
    [[ $output == *"     step; upwards: "* ]]
}

@test "time is that of the local clock; of a simulation, since its start" {
    [ -e /usr/share/zoneinfo/Asia/Tokyo ] || skip "no data of time zones"
    TZ=Asia/Tokyo run -0 skewplot -q -f text "$straggler"
    [[ $output == *" 07:13:30 "* && $output == *"time (2023-11-15, JST)"* ]]
    for s in {1..9}; do
        echo '{"type":"loss","ts":'$((s * 3600))',"step":'$s',"value":'$s'}'
    done >in
    run -0 skewplot -q -f text in
    [[ $output == *"time (h); upwards: loss"* ]]
}

@test "a terminal gets text in its colours, unless NO_COLOR" {
    local sgr=$'\033[' # a colour
    tty() {
        script -qec "$*" /dev/null </dev/null
    }
    unset NO_COLOR COLORTERM
    export TERM=xterm-256color LC_ALL=C.UTF-8
    run -0 tty skewplot -q "$straggler"
    [[ $output == *"Pace of the training steps"* ]]
    [[ $output == *"${sgr}0;38;5;"* ]]
    COLORTERM=truecolor run -0 tty skewplot -q "$straggler"
    [[ $output == *"${sgr}0;38;2;"* ]]
    NO_COLOR=1 run -0 tty skewplot -q "$straggler"
    [[ $output == *"Pace of the"* && $output != *"$sgr"* ]]
    NO_COLOR='' run -0 tty skewplot -q "$straggler"
    [[ $output == *"$sgr"* ]]
    TERM=dumb run -0 tty skewplot -q "$straggler"
    [[ $output != *"$sgr"* ]]
    run -0 tty skewplot -q --colour never "$straggler"
    [[ $output != *"$sgr"* ]]
    run -0 tty skewplot -q -f svg "$straggler"
    [[ $output == *"<svg "* ]]
    # to a file: no colours, even when they are asked of the terminal
    run -0 tty skewplot -q -f text -o out.txt "$straggler"
    run -1 grep -qF "$sgr" out.txt
    run -0 bash -c "skewplot -q '$straggler' | head -n 1"
    [[ $output == "<svg "* ]]
}

@test "ASCII where the locale is not UTF-8" {
    LC_ALL=C run -0 bash -c "skewplot -q -f text '$straggler' | LC_ALL=C grep -c '[^ -~]'" ||
        [ "$output" = 0 ]
    LC_ALL='' LC_CTYPE='' LANG=de_DE.UTF-8 run -0 skewplot -q -f text "$straggler"
    [[ $output == *│* ]]
    LC_ALL=POSIX LANG=de_DE.UTF-8 run -0 skewplot -q -f text "$straggler"
    [[ $output != *│* ]]
}

# hostile NAME: drawn in every way, XML, nothing of it obeyed.
hostile() {
    local kind width
    for kind in heat ranks pace timeline links loss; do
        for width in 320 960 4000; do
            run -0 --separate-stderr bash -c "skewplot -q -k $kind --width $width in >$kind.svg || [ \$? -eq 2 ]"
            [ ! -s $kind.svg ] || parse $kind.svg || { echo "$1: $kind" && return 1; }
        done
        for width in 20 80; do
            run -0 bash -c "skewplot -q -f text --colour true -k $kind --width $width in || [ \$? -eq 2 ]"
        done
    done
    run -1 grep -il '<script\|onload="' ./*.svg
}

@test "hostile: names" {
    bad='<script>alert(1)</script>\"&'\''\u0001\u007f\u202e'$(printf 'x%.0s' {1..300})
    for s in 1 2 3; do
        for w in a b; do
            printf '{"type":"step","ts":%d,"job":"%s","worker":"%s%s","step":%d,"dur":1}\n' $s "$bad" $w "$bad" $s
            printf '{"type":"loss","ts":%d,"worker":"%s","split":"%s%s","step":%d,"value":1}\n' $s "$bad" "$bad" $w $s
            printf '{"type":"span","ts":%d,"op":"%s","job":"%s%s","step":1,"dur":1}\n' $s "$bad" "$bad" $w
            printf '{"type":"link","ts":1,"src":"%s","dst":"%s%s","value":1}\n' "$bad" "$bad" $w
        done
        printf '{"type":"event","ts":2,"eid":"e","kind":"onset","scope":"%s","id":"%s","since":2,"cause":"%s"}\n' "$bad" "$bad" "$bad"
    done >in
    hostile names
    run -0 bash -c "skewplot -q -f text -k pace in | LC_ALL=C tr -d '\n -~' | wc -c"
    [ "$output" -eq 0 ]
}

@test "hostile: values, gaps, one of everything" {
    {
        for s in 0 1 9007199254740991; do
            for r in 0 1 9007199254740991; do
                echo '{"type":"step","ts":1e308,"rank":'$r',"step":'$s',"dur":1e308,"busy":1e-308}'
                echo '{"type":"step","ts":0,"rank":'$r',"step":'$s',"dur":0,"busy":1e308}'
                echo '{"type":"loss","ts":1e15,"step":'$s',"value":-1e308}'
                echo '{"type":"loss","ts":'$s',"step":'$s',"value":1e308}'
                echo '{"type":"span","ts":'$s',"dp":'$r',"op":"f","step":0,"dur":1e308}'
                worker $r $s 1e308
                worker $s 0 0
                link a$r a$s 1e308
                link a$r b$s -1e308
            done
        done
        echo '{"type":"event","ts":1e308,"eid":"e","kind":"onset","scope":"rank","id":"rank=9999999999999999999999","since":1e308,"factor":1e308}'
    } >in
    hostile values
    for line in 1 3 5 6 8; do
        sed -n "${line}p" in >one
        run -0 skewplot -q one
        run -0 skewplot -q -f text one
    done
}

@test "the timelines of the published traces" {
    need_testdata
    need_feature ZLIB zlib
    skewplot -q "$EVENPACE_TESTDATA/timeline-AR.json.gz" >ar.svg
    parse ar.svg
    [ "$(wc -c <ar.svg)" -lt 2000000 ]
    # 16 lanes; dp 0, stage 0 computes longest
    run -0 grep -c '^<text class="e".*>dp [0-3] pp [0-3]</text>' ar.svg
    [ "$output" -eq 16 ]
    run -0 bash -c "grep -o 'as it was, [0-9.]* s' ar.svg"
    [ "$output" = "as it was, 47 s" ]
    skewplot -q -f text --step 23 "$EVENPACE_TESTDATA/timeline-ST.json.gz" >st.txt
    run -0 grep -c '^dp [01] pp [0-3] =' st.txt
    [ "$output" -eq 8 ]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# whatif.bats - replays end to end: published results, causes, what is
# refused, options. Random jobs are in unit/test_replay.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    example=$top_srcdir/share/examples/timeline.jsonl
}

timeline() { # timeline DP PP VPP MB STEPS CAUSE
    "$top_builddir/tests/unit/mktimeline" "$@"
}

# published TRACE: every figure of results.jsonl against the published ones.
# Prints those that are further off than they may be, and how many there were.
published() {
    local d=$EVENPACE_TESTDATA
    jq -n -r --slurpfile want "$d/result-$1.json" --slurpfile mw "$d/mw-$1.json" \
        --slurpfile ms "$d/ms-$1.json" --slurpfile got results.jsonl '
        def near($what; $a; $b; $tol): if $a == null or (($a / $b - 1) | fabs) > $tol
            then "\($what) \($a) \($b)" else empty end;
        ($got | map(select(.type == "whatif"))) as $all |
        ($all | map({key: "\(.what) \(.id // "-")", value: .slowdown}) |
            from_entries) as $g |
        ($all | map({key: .what, value: .share}) | from_entries) as $share |
        $want[0] as $w |
        [{"dp": $w.blocking_decompose_by_dp_rank,
          "pp": $w.blocking_decompose_by_stage,
          "op": $w.blocking_decompose_by_optype} | to_entries[] |
            .key as $k | .value | to_entries[] |
            {key: "\($k) \($k)=\(.key)", value}] +
        [$w.blocking_step_slowdown | to_entries[] |
            {key: "step step=\(.key)", value}] +
        [{"dp": $w.blocking_decompose_by_dp_rank_per_step,
          "pp": $w.blocking_decompose_by_stage_per_step,
          "op": $w.blocking_decompose_by_optype_per_step} | to_entries[] |
            .key as $k | .value | to_entries[] | .key as $s | .value |
            to_entries[] | {key: "step step=\($s),\($k)=\(.key)", value}] +
        [{key: "all -", value: $w.blocking_slowdown}] |
        (.[] | near(.key; $g[.key]; .value; 1e-5)),
        near("launch"; $g["launch -"]; $w.launch_slowdown; 2e-4),
        (if (($share["slowest-workers"] - $mw[0].Mw) | fabs) > 1e-5
            then "M_W \($share["slowest-workers"])" else empty end),
        (if (($share["last-stage"] - $ms[0].Ms) | fabs) > 1e-5
            then "M_S \($share["last-stage"])" else empty end),
        "\(length) figures"'
}

@test "AR: the published figures, and the one slow worker" {
    need_testdata
    need_feature ZLIB zlib
    run -0 --separate-stderr whatif --steps \
        "$EVENPACE_TESTDATA/timeline-AR.json.gz"
    [ -z "$stderr" ]
    printf '%s\n' "$output" >results.jsonl
    run -0 published AR
    echo "$output"
    [ "$output" = "900 figures" ]
    run -0 jq -r 'select(.type == "event") | [.kind, .scope, .id, .cause, .step] |
        join(" ")' results.jsonl
    [ "$output" = "onset rank dp=0,pp=0 worker 16" ]
    run -0 --separate-stderr whatif -f text \
        "$EVENPACE_TESTDATA/timeline-AR.json.gz"
    [ "${lines[0]}" = "1.97x slower than without stragglers: worker dp 0, stage 0 costs 100 % of it" ]
}

@test "AR: the graph is that of the paper's artefact" {
    need_testdata
    need_feature ZLIB zlib
    run -0 --separate-stderr whatif -v -o /dev/null \
        "$EVENPACE_TESTDATA/timeline-AR.json.gz"
    [ "${stderr_lines[0]}" = "whatif: 117216 spans: 44 steps, dp 4, pp 4, 666 operations, 1229 edges, 202 groups" ]
    # with its gaps put in, the replay is the trace
    [[ ${stderr_lines[1]} =~ replay\ with\ gaps\ [+-]0\.00[0-9]\ % ]]
}

@test "ST: the published figures, the last stage, and no worker" {
    need_testdata
    need_feature ZLIB zlib
    run -0 --separate-stderr whatif --steps \
        "$EVENPACE_TESTDATA/timeline-ST.json.gz"
    [ -z "$stderr" ]
    printf '%s\n' "$output" >results.jsonl
    run -0 published ST
    echo "$output"
    [ "$output" = "594 figures" ]
    run -0 jq -r 'select(.type == "event") | [.kind, .scope, .id, .cause, .step] |
        join(" ")' results.jsonl
    [ "$output" = "onset stage pp=3 stage-partition 23" ]
    run -0 whatif -f text "$EVENPACE_TESTDATA/timeline-ST.json.gz"
    [ "${lines[0]}" = "1.18x slower than without stragglers: last stage overloaded, no worker to blame" ]
}

@test "each cause is told from the others" {
    local want got id
    while read -r cause want id; do
        timeline 4 4 1 8 4 "$cause" >in
        run -0 --separate-stderr whatif in
        [ -z "$stderr" ]
        got=$(printf '%s\n' "$output" |
            jq -r 'select(.type == "event") | "\(.cause) \(.id)"')
        echo "$cause: $got"
        [ "$got" = "$want $id" ]
        [ "$(printf '%s\n' "$output" | grep -c '"event"')" -eq 1 ]
    done <<'EOF'
none none null
worker worker dp=1,pp=0
stage stage-partition pp=3
sequence sequence-length null
gc gc null
comm communication null
gaps launch-gaps null
EOF
}

@test "interleaved stages, one stage, one rank" {
    timeline 2 2 3 4 2 worker | whatif >out
    [ "$(field '.type == "event"' .id <out)" = dp=1,pp=0 ]
    timeline 4 1 1 4 2 worker | whatif >out
    [ "$(field '.type == "event"' .id <out)" = dp=1,pp=0 ]
    # there is no last stage where there is one
    run -1 grep last-stage out
    timeline 1 4 1 8 2 stage | whatif >out
    [ "$(field '.type == "event"' .id <out)" = pp=3 ]
    timeline 1 1 1 4 2 none | whatif >out
    [ "$(field '.type == "event"' '.cause + " " + .kind' <out)" = "none relief" ]
}

@test "--threshold and --exit-code" {
    timeline 2 2 1 4 2 none >healthy
    run -0 whatif --exit-code healthy
    run -1 whatif --exit-code "$example"
    run -0 whatif "$example"
    run -0 whatif --exit-code --threshold 1.5 "$example"
    [ "$(field '.type == "event"' .cause <<<"$output")" = none ]
}

@test "what is asked of a cause" {
    run -0 whatif --worker-share 1.5 "$example"
    [ "$(field '.type == "event"' .cause <<<"$output")" = unknown ]
    timeline 4 4 1 8 4 stage >in
    run -0 whatif --stage-share 1.5 in
    [ "$(field '.type == "event"' .cause <<<"$output")" = unknown ]
    timeline 4 4 1 8 4 comm >in
    run -0 whatif --share 2 in
    [ "$(field '.type == "event"' .cause <<<"$output")" = unknown ]
    timeline 4 4 1 8 4 gc >in
    run -0 whatif --correlation 0 --share 0 in
    [ "$(field '.type == "event"' .cause <<<"$output")" = sequence-length ]
}

@test "an operation that is lost is named" {
    # of the only step: its partner waits
    grep -v '"pp":0,"op":"backward-recv","seq":2,' "$example" |
        grep '"dp":0,.*"step":100,' >in
    run -2 --separate-stderr whatif in
    [ -z "$output" ]
    [[ $stderr == "whatif: cannot replay step 100: dp=0,pp=1 backward-send mb 2 has no partner "* ]]
    # of the step in the middle, and of one rank
    grep -v '"dp":1,"pp":1,"op":"forward-compute","seq":1,"step":101' "$example" >in
    run -2 --separate-stderr whatif in
    [ -z "$output" ]
    [ "$stderr" = "whatif: cannot replay step 101: dp=1,pp=1 forward-compute mb 1 is missing (3 of them, 4 at dp=0 of step 100)" ]
    # the end of the steps
    grep -v '"pp":1,"op":"optimizer",' "$example" >in
    run -2 --separate-stderr whatif in
    [ "$stderr" = "whatif: cannot replay step 100: dp=0,pp=1 has no optimizer" ]
    # a rank
    grep -v '"dp":1,"pp":1,' "$example" >in
    run -2 --separate-stderr whatif in
    [[ $stderr == "whatif: cannot replay step 100: dp=1,pp=1 has no operation" ]]
    # a file is not written
    run -2 --separate-stderr whatif -o out in
    [ ! -e out ]
}

@test "a trace begins and ends in the midst of a step" {
    tail -n +50 "$example" | head -n 200 >in
    run -0 --separate-stderr whatif in
    [ "${stderr_lines[0]}" = "whatif: step 100 is left out: 43 of its 92 operations are there" ]
    [ "${stderr_lines[1]}" = "whatif: step 102 is left out: 65 of its 92 operations are there" ]
    [ "${#stderr_lines[@]}" -eq 2 ]
    # the results are those of the step that is left
    grep '"step":101,' "$example" | whatif | diff - <(printf '%s\n' "$output")
    run -0 --separate-stderr whatif -q in
    [ -z "$stderr" ]
    # a rank whose recorder began a step later
    grep -v '"dp":1,.*"step":100,' "$example" >in
    run -0 --separate-stderr whatif in
    [ "$stderr" = "whatif: step 100 is left out: 46 of its 92 operations are there" ]
    # ranks whose records end in other steps
    { grep '"dp":0,' "$example" | head -n 60; grep '"dp":1,' "$example"; } >in
    run -0 --separate-stderr whatif in
    [ "$stderr" = "whatif: steps 101 to 102 are left out: 106 of their 184 operations are there" ]
    # one step is all there is, or the ends are all there are
    grep '"step":100,' "$example" | tail -n +50 >in
    run -2 --separate-stderr whatif in
    [[ $stderr == "whatif: cannot replay step 100: "* ]]
    tail -n +50 "$example" | head -n 100 >in
    run -2 --separate-stderr whatif in
    [[ $stderr == *"whatif: cannot replay step 10"* ]]
}

@test "an operation that is there twice is no operation more" {
    run -2 --separate-stderr whatif "$example" "$example"
    [ -z "$output" ]
    [ "$stderr" = "whatif: cannot replay step 100: dp=0,pp=0 backward-compute mb 0 is there twice" ]
    # a step that was run again, after a restart
    { cat "$example"; grep '"step":101' "$example" | jq -c '.ts += 900'; } >in
    run -2 --separate-stderr whatif in
    [[ $stderr == "whatif: cannot replay step 101: "*" is there twice" ]]
}

@test "a circle is refused" {
    # stage 0 would run backward what it has not run forward
    jq -c 'if .step == 100 and .dp == 0 and .pp == 0 and .seq == 0 and
            .op == "backward-compute" then .ts = 1700000000.001 else . end' \
        "$example" >in
    run -2 --separate-stderr whatif in
    echo "$stderr"
    [[ $stderr == "whatif: cannot replay step 100: dp=0,pp="*" waits for dp=0,pp="*", which waits for it" ]]
}

@test "no spans: silence is not health" {
    : >in
    run -2 --separate-stderr whatif in
    [ "$stderr" = "whatif: cannot replay: no spans in the input" ]
    steps 0 3 20 >in
    run -2 --separate-stderr whatif in
    [ "$stderr" = "whatif: cannot replay: no spans in the input" ]
}

@test "spans of two jobs are not mixed" {
    jq -c '.job = "a"' "$example" >in
    head -1 "$example" | jq -c '.job = "b"' >>in
    run -2 --separate-stderr whatif in
    [ "$stderr" = 'whatif: cannot use in:277: a span of job "b" among those of "a"' ]
    [ "$(field '.what == "all"' .job <<<"$output")" = a ]
}

@test "coordinates and times out of range are bad lines" {
    for bad in '.dp = 65536' '.pp = 4096' '.ts = 1e300' '.mb = 1e10'; do
        head -1 "$example" | jq -c "$bad" | cat "$example" - >in
        run -2 --separate-stderr whatif in
        echo "$bad: $stderr"
        [[ $stderr == "whatif: cannot use in:277: "* ]]
        [ -n "$output" ]
    done
    # a rank far away is no reason to take memory
    head -1 "$example" | jq -c '.dp = 60000 | .pp = 4000' | cat "$example" - >in
    run -2 --separate-stderr whatif in
    [[ $stderr == *"some ranks have none" ]]
}

@test "--ops: other names, roles, classes" {
    sed 's/"forward-compute"/"fwd"/; s/"backward-compute"/"bwd"/' "$example" >in
    run -2 --separate-stderr whatif in
    [[ ${stderr_lines[0]} == *"not known (see --ops): fwd, bwd" ]]
    [[ ${stderr_lines[1]} == *"has no computation" ]]
    printf '%s\n' '# ours' '' 'fwd  forward-compute' \
        $'bwd\tbackward-compute  back' >ops
    run -0 --separate-stderr whatif --ops ops in
    [ -z "$stderr" ]
    [ "$(field '.id == "op=back"' .slowdown <<<"$output")" = \
        "$(whatif "$example" | field '.id == "op=backward-compute"' .slowdown)" ]
    # leaving an operation out
    printf '%s\n' 'gc ignore' >ops
    run -0 whatif --ops ops "$example"
    run -1 grep 'op=gc' <<<"$output"
    # computation that feeds nobody takes time all the same
    echo 'gc compute' >ops
    run -0 whatif --ops ops "$example"
    [ "$(field '.what == "op"' .id <<<"$output" | grep -c 'op=compute')" -eq 1 ]
    for bad in 'x' 'x y' 'gc ignore a b'; do
        echo "$bad" >ops
        run -2 --separate-stderr whatif --ops ops "$example"
        [[ $stderr == "whatif: cannot use ops: line 1: "* ]]
        [ -z "$output" ]
    done
    run -2 --separate-stderr whatif --ops nowhere "$example"
    [[ $stderr == "whatif: cannot open nowhere: "* ]]
}

@test "--ideal: spans that replay to no slowdown at all" {
    whatif --ideal "$example" >out
    [ "$(field '.type == "span"' .what <out | sort | uniq -c | xargs)" = "276 ideal" ]
    # which are passed over
    run -2 --separate-stderr whatif out
    [[ $stderr == *"no spans in the input" ]]
    # unless they are said to have taken place
    jq -c 'select(.type == "span") | del(.what)' out >ideal
    run -0 whatif ideal
    run -0 jq -r 'select(.what == "all") | (.slowdown - 1) < 1e-6' <<<"$output"
    [ "$output" = true ]
    # the ideal step is what is left of the traced one without its slowdown
    t=$(jq -s 'map(select(.type == "span" and .step == 100)) |
        (map(.ts + .dur) | max) - (map(.ts) | min)' out)
    s=$(whatif -v "$example" 2>&1 >/dev/null | wc -l)
    [ "$s" -eq 2 ]
    run -0 awk -v t="$t" 'BEGIN { print (t > 0.2029 && t < 0.2034) }'
    [ "$output" = 1 ]
}

@test "--tee: the input as it came, results behind it" {
    { echo '{"type":"gauge","ts":1,"name":"x","value":1,"unit":"1","mine":2}'
        cat "$example"; } >in
    whatif --tee in >out
    head -n 277 out | diff - in
    diff <(tail -n +278 out) <(whatif "$example")
    run -2 --separate-stderr whatif --tee -f text in
    [[ $stderr == *"cannot use --tee with that --format: it needs jsonl" ]]
}

@test "forms that have no room for what is asked for" {
    for bad in "--tee tsv jsonl" "--tee prom jsonl" \
        "--ideal text jsonl or tsv" "--ideal prom jsonl or tsv" \
        "--steps text jsonl, tsv or prom"; do
        read -r option form needs <<<"$bad"
        run -2 --separate-stderr whatif "$option" -f "$form" "$example"
        [ -z "$output" ]
        [ "$stderr" = "whatif: cannot use $option with that --format: it needs $needs" ]
    done
    run -0 whatif --steps -f prom "$example"
    [[ $output == *'id="step=101,dp=1"'* ]]
}

@test "records are records: tlmcat reads them, also shares outside of 0..1" {
    whatif --steps --ideal "$example" >out
    run -0 --separate-stderr tlmcat out
    [ -z "$stderr" ]
    [ "$(field '.what == "last-stage"' '.share < 0' <out)" = true ]
    [ "$(field '.what == "slowest-workers"' '.share > 1' <out)" = true ]
    # which only they may have
    echo '{"type":"assign","ts":1,"worker":"w","local_steps":1,"share":1.5}' >assign
    run -2 --separate-stderr tlmcat assign
    [[ $stderr == *"share is 1.5, not in 0..1" ]]
    whatif -f tsv "$example" | awk -F '\t' '$1 == "whatif" { n++ } END { exit n != 26 }'
}

@test "any order, several files, a file per rank, a pipe" {
    whatif "$example" >want
    sort -R --random-source=<(yes) "$example" | whatif | diff want -
    for d in 0 1; do grep "\"dp\":$d," "$example" >"rank$d"; done
    whatif rank0 rank1 | diff want -
    whatif - <"$example" | diff want -
}

@test "a data-parallel rank may be told by rank alone" {
    timeline 3 1 1 4 2 worker >in
    jq -c '.rank = .dp | del(.dp, .pp)' in >ranks
    diff <(whatif in) <(whatif ranks)
    # tensor-parallel ranks are not counted twice
    { cat in; jq -c '.tp = 1' in; } >tp
    diff <(whatif in) <(whatif tp)
}

@test "3 % of the workers is one in 33" {
    timeline 11 3 1 3 1 worker | whatif >out
    [ "$(field '.what == "slowest-workers"' .id <out)" = "dp=1,pp=0" ]
    timeline 17 2 1 3 1 worker | whatif >out
    [[ $(field '.what == "slowest-workers"' .id <out) == "dp=1,pp=0 dp="*,pp=? ]]
}

@test "rebalance takes the finding" {
    echo '{"type":"layout","dp":2,"pp":2,"microbatches":8}' >layout.json
    whatif "$example" | rebalance -f jsonl layout.json - >plan
    [ "$(field '.action == "shares" and .dp == 1' '"\(.from) \(.to)"' <plan)" = "4 3" ]
    timeline 2 2 1 4 2 none | whatif >none
    run -2 --separate-stderr rebalance -f jsonl layout.json none
    [ -z "$output" ]
    [[ $stderr == *"no event names a rank or group" ]]
}

@test "the screen has its answer first and fits" {
    for cause in none worker stage sequence gc comm gaps; do
        timeline 16 12 1 24 3 "$cause" >in
        run -0 --separate-stderr whatif -f text in
        [ -z "$stderr" ]
        echo "$output"
        [[ ${lines[0]} =~ ^1\.[0-9]*x\ slower\ than\ without\ stragglers:\  ]]
        [ "$(wc -l <<<"$output")" -le 24 ]
        run -0 awk 'length > 80' <<<"$output"
        [ -z "$output" ]
    done
}

@test "-v says where the time went" {
    run -0 --separate-stderr whatif -v -o out "$example"
    [[ ${stderr_lines[0]} == "whatif: 276 spans: 3 steps, dp 2, pp 2, 46 operations, "* ]]
    [[ ${stderr_lines[1]} =~ read\ [0-9.]+\ ms,\ order\ [0-9.]+\ ms,\ graph\ [0-9.]+\ ms,\ replay\ [0-9.]+\ ms ]]
}

@test "a trace that the model does not explain is said so" {
    # the second stage's clock is 20 ms off
    jq -c 'if .pp == 1 then .ts += 0.02 else . end' "$example" >in
    run -0 --separate-stderr whatif in
    [ "$stderr" = "whatif: the replay is off by +10 %: the trace does not follow the model, do not trust the results" ]
    # also by who reads the event alone
    [[ $(field '.type == "event"' .evidence <<<"$output") == *"; not to be trusted: the replay is off by +10 %" ]]
    run -0 --separate-stderr whatif -q "$example"
    [[ $(field '.type == "event"' .evidence <<<"$output") != *"trusted"* ]]
}

@test "full disk" {
    [ -w /dev/full ] || skip "no /dev/full"
    run -2 --separate-stderr bash -c "whatif '$example' >/dev/full"
    [[ $stderr == *"cannot write standard output: "* ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# lsgd-sim.bats - the published figures of HALoS's clock, every option, bad
# environments. Random cases against a second simulator: tests/unit/test_sim.c.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    halos=$top_srcdir/share/envs/halos.json
}

# sim OPTION...: JSON Lines of the published environment, without remarks.
sim() {
    run -0 --separate-stderr lsgd-sim --event-only -q -f jsonl "$@" "$halos"
    [ -z "$stderr" ]
}

# is EXPRESSION EXPECTED: jq on what was printed, one line per row.
is() {
    local got
    got=$(jq -r "$1" <<<"$output" | paste -sd' ')
    [ "$got" = "$2" ] || { echo "$1: $got, not $2" && return 1; }
}

hours='.seconds / 3600 * 1000 | round / 1000'
unsent='100 * .unsent | round'

# tiny [OPTIONS]: one region, one worker; a step, a transfer take 1 s each.
tiny() {
    jq -n --argjson options "${1:-{\}}" --argjson speeds "${2:-[1]}" '{
        regions: [{name: "a", speeds: $speeds}],
        bandwidth_gbit_per_s: [[1]], gps_region: "a", step_seconds: 1,
        parameters: 125000000, bytes_per_parameter: 1,
        total_steps: (30 * ($speeds | length)), tokens_per_step: 2,
        methods: {
            async: {H: 10, gps: {lr: 1, beta: 0, N: 1}},
            diloco: {H: 10, gps: {lr: 1, beta: 0, N: 1}},
            halos: {H: 10, K: 1, alpha: 0.5, lps: {lr: 1, beta: 0, N: 1},
                gps: {lr: 1, beta: 0, N: 1}}},
        options: $options}' >tiny.json
}

# takes METHOD SECONDS OPTION...: what tiny.json takes, to a microsecond.
takes() {
    local method=$1 seconds=$2
    shift 2
    run -0 --separate-stderr lsgd-sim --event-only -m "$method" "$@" tiny.json
    is '.seconds * 1e6 | round / 1e6' "$seconds"
}

@test "published: hours and updates of the five methods" {
    sim
    is .method 'halos async diloco diloco-dynamic sync'
    is "$hours" '0.676 1.138 5.223 3.506 60.234'
    is .gps_updates '396 4875 192 303 6144'
    is '.lps_updates // empty' 17622
    is .worker_updates '17622 4875 3072 4848 98304'
    is '.speed * 10 | round / 10' '89.1 52.9 11.5 17.2 1'
}

@test "published: staleness of asynchronous methods, both tiers" {
    sim -m halos,async
    is '.gps_staleness_mean * 10 | round / 10' '3 15'
    is .gps_staleness_max '6 39'
    is '.lps_staleness_mean // empty | . * 10 | round / 10' 3
    is '.lps_staleness_max // empty' 6
}

@test "published: compute and all-reduce of DiLoCo's rounds" {
    sim -m diloco,diloco-dynamic
    # 192 rounds of 64.7 + 33.27 s, 303 of 8.4 + 33.27 s
    is '.seconds / .gps_updates * 10 | round / 10' '97.9 41.7'
    is '(.seconds / .gps_updates - 33.27) * 10 | round / 10' '64.7 8.4'
}

@test "published: local steps of each worker, H = 8 and 32" {
    sim -v -m halos
    is 'select(.type == "sim_worker") | .local_steps' \
        '3 8 8 4 6 5 7 2 8 2 8 1 8 5 5 7'
    sim -v -m async
    is 'select(.type == "sim_worker") | .local_steps' \
        '9 32 30 13 21 19 26 7 31 5 32 4 30 19 19 28'
    sim -v -m diloco
    is 'select(.type == "sim_worker") | .local_steps' \
        '32 32 32 32 32 32 32 32 32 32 32 32 32 32 32 32'
}

@test "published: share of updates that are never sent, by K and by region" {
    sim -m halos -K 32,8,16,64
    is .K '32 8 16 64'
    is "$unsent" '28 51 39 18'
    sim -m halos -v
    is "select(.type == \"sim_region\") | $unsent" '0 31 21 57'
    is 'select(.type == "sim_region") | .worker_updates - .sent_updates
        - .unsent_updates - .pending_updates' '0 0 0 0'
}

@test "published: links between regions a tenth and ten times as fast" {
    sim -m diloco,async,halos --scale-links 0.1
    is "$hours" '21.194 2.082 0.702'
    is "select(.unsent) | $unsent" 61
    sim -m diloco,async,halos --scale-links 10
    is "$hours" '3.626 0.733 0.676'
    is "select(.unsent) | $unsent" 5
}

@test "bytes on the wire: models between regions" {
    sim -m halos,async,diloco
    is ".bytes_between % $((70426624 * 4))" '0 0 0'
    mapfile -t models < <(jq ".bytes_between / $((70426624 * 4))" <<<"$output")
    # an exchange is two; of three regions' last ones the reply may be under way
    n=$(lsgd-sim --event-only --records -m halos "$halos" |
        jq -c 'select(.tier == "gps" and .from != "r0")' | wc -l)
    [ "${models[0]}" -le $((2 * n)) ] && [ "${models[0]}" -ge $((2 * n - 3)) ]
    # a worker's round is two; twelve workers may have fetched, or sent, one
    n=$(lsgd-sim --event-only --records -m async "$halos" |
        jq -c 'select(.from | startswith("r0") | not)' | wc -l)
    [ "${models[1]}" -ge $((2 * n)) ] && [ "${models[1]}" -le $((2 * n + 12)) ]
    # four links of the ring, 2 (16 - 1) / 16 over each, 192 times
    [ "${models[2]}" -eq $((192 * 4 * 15 / 8)) ]
}

@test "-H, -K, -m: a row per combination, in the order asked" {
    sim -m sync,halos,async -H 16,8 -K 64,32
    is '"\(.method)/\(.H)/\(.K // "-")"' \
        'sync/1/- halos/16/64 halos/16/32 halos/8/64 halos/8/32 async/16/- async/8/-'
}

@test "--steps, --alpha: total, and no time" {
    sim -m diloco --steps 1024
    is .gps_updates 2
    is .steps 1024
    sim -m diloco --steps 1.024e3 -H 3.2e1
    is .steps 1024
    sim -m halos
    before=$output
    sim -m halos --alpha 1
    [ "$output" = "$before" ]
}

@test "--latency: twice in a round; in each message of an all-reduce" {
    tiny
    takes async 36
    takes async 39 --latency 500ms
    tiny '{"latency_seconds": 0.5}'
    takes async 39
    takes async 36 --latency 0
    tiny '{}' '[1, 1]' # 3 rounds of 10 + 1 s, an all-reduce has 2 messages
    takes diloco 33
    takes diloco 36 --latency 500ms
}

@test "--contention: two equal transfers take twice as long" {
    tiny '{}' '[1, 1]'
    takes async 36
    takes async 42 --contention
    tiny '{"contention": true}' '[1, 1]'
    takes async 42
    tiny # alone: no difference
    takes async 36 --contention
}

# wide: four regions of four workers; each a second of training, then two
# transfers of a second from or to the first region, seldom alone.
wide() {
    jq -n '{
        regions: [range(4) | {name: "r\(.)", speeds: [1, 1, 1, 1]}],
        bandwidth_gbit_per_s: [range(4) | [1, 1, 1, 1]], gps_region: "r0",
        step_seconds: 1, parameters: 125000000, bytes_per_parameter: 1,
        total_steps: 1600, tokens_per_step: 2,
        methods: {
            async: {H: 1, gps: {lr: 1, beta: 0, N: 1}},
            halos: {H: 1, K: 8, alpha: 0.5, lps: {lr: 1, beta: 0, N: 1},
                gps: {lr: 1, beta: 0, N: 1}}},
        options: {}}' >wide.json
}

@test "more on a link than it can carry is remarked" {
    wide
    remark='puts 1\.3[0-9] times what it can carry on the link (from r[0-3] to|inside) r[0-3]'
    run -0 --separate-stderr lsgd-sim --event-only -m async,sync wide.json
    # a round is 3 s, and each of the link's four workers needs it for one
    is '.link_load // empty | . * 10 | round' 13
    [[ $stderr =~ ^'lsgd-sim: async H=1 '$remark' (such links: in 1 of 2 rows); see --contention'$ ]]
    run -0 --separate-stderr lsgd-sim --event-only -m async -q wide.json
    [ -z "$stderr" ]
    run -0 --separate-stderr lsgd-sim --event-only -m async --contention wide.json
    [ -z "$stderr" ]
    is '.link_load < 1.0001' true
    # inside a region; sync sends nothing
    run -0 --separate-stderr lsgd-sim --event-only -m halos -K 1e2 wide.json
    [[ $stderr == 'lsgd-sim: halos H=1 K=100 puts 1.'*' on the link inside r'[0-3]' (such links: in 1 of 1 rows); see --contention' ]]
    run -0 --separate-stderr lsgd-sim --event-only -m sync wide.json
    [ -z "$stderr" ]
    is 'has("link_load")' false
    # the same in records, and of the published run
    run -0 --separate-stderr lsgd-sim --event-only --records -m async wide.json
    [[ $stderr =~ $remark ]]
    run -0 --separate-stderr lsgd-sim --event-only "$halos"
    [[ $stderr == 'lsgd-sim: async H=32 puts 1.48 times what it can carry on the link from r'[03]' to r'[03]' (such links: in 1 of 5 rows); see --contention' ]]
}

@test "--contention: the figures of the man page and of README.md" {
    jq -n '{
        regions: [range(16) as $i | {name: "r\($i)",
            speeds: [range(64) | 0.5 + 0.05 * ((7 * $i + 3 * .) % 11)]}],
        bandwidth_gbit_per_s: [range(16) as $i | [range(16) |
            if . == $i then 100 else 10 end]],
        gps_region: "r0", step_seconds: 1, parameters: 1000000000,
        bytes_per_parameter: 2, total_steps: 2000000, tokens_per_step: 1,
        methods: ({H: 32, gps: {lr: 1, beta: 0, N: 1}} | {
            async: ., diloco: ., halos: (. + {K: 64, alpha: 0.25, lps: .gps})})
        }' >large.json
    halos=large.json
    sim -m async,halos,diloco
    is '.seconds / 36 | round / 100' '0.79 0.74 1.16'
    sim -m async,halos,diloco --contention
    is '.seconds / 36 | round / 100' '2.61 0.77 1.16'
}

@test "--server-time: once in a round, in a queue" {
    tiny
    takes async 39 --server-time 1s
    tiny '{"gps_seconds_per_update": 1}'
    takes async 39
    # halos, K = 1: three rounds of 13 s, then up, and 1 s at the global server
    tiny '{"lps_seconds_per_update": 1, "gps_seconds_per_update": 1}'
    takes halos 41
    takes halos 37 --server-time 0
}

@test "failures: a list, by hand" {
    # trains 13 - 15.5, back at 20: fetched 21, trained 31, sent 32, then 44
    tiny '{"failures":
        [{"worker": "a/0", "down_seconds": 15.5, "up_seconds": 20}]}'
    takes async 44
    is .failures 1
    is .steps_lost 2
    # with a barrier it waits: trains from 10 to 15.5, fetched 21, 31, 41
    takes diloco 41
    is .steps_lost 5
    takes async 36 --mttf 0 # instead of the list
    is .failures 0
}

@test "--mttf, --rejoin, -s: failures cost time, and are the seed's" {
    sim -m halos,diloco
    is .failures '0 0'
    healthy=$(jq -s '.[1].seconds' <<<"$output")
    sim -m halos,diloco --mttf 2h --rejoin 10m
    is '.failures > 0' 'true true'
    is '.steps_lost > 0' 'true true'
    is "select(.method == \"diloco\") | .seconds > 1.5 * $healthy" true
    first=$output
    sim -m halos,diloco --mttf 2h --rejoin 10m -s 1
    [ "$output" = "$first" ]
    sim -m halos,diloco --mttf 2h --rejoin 10m -s 2
    [ "$output" != "$first" ]
}

@test "--carry: nothing is dropped, and the time is the same" {
    sim -m halos
    seconds=$(jq .seconds <<<"$output")
    sim -m halos --carry -v
    is 'select(.type == "sim") | .unsent' 0
    is 'select(.type == "sim") | .seconds' "$seconds"
    is 'select(.type == "sim_region") | .worker_updates - .sent_updates
        - .pending_updates' '0 0 0 0'
}

@test "--q4: 36 bytes for 64 parameters between servers" {
    sim -m halos --q4
    is '.bytes_between % (70426624 / 64 * 36)' 0
    is '.unsent < 0.1' true
    sim -m async,halos --q4 # async has no such exchanges
    is 'select(.method == "async") | .gps_updates' 4875
}

@test "unequal numbers of workers" {
    halos=$top_srcdir/share/envs/two-regions.json
    sim -v
    is 'select(.type == "sim_region" and .method == "halos") | .workers' '3 1'
    is 'select(.type == "sim_worker" and .method == "halos") | .worker' \
        'home/0 home/1 home/2 away/0'
    is 'select(.type == "sim") | .steps >= 10000' 'true true true true true'
}

@test "--records: merge records that add up" {
    sim --records -m halos
    is 'select(.tier == "gps") | .version' "$(seq -s' ' 396)"
    [ "$(jq -c 'select(.tier == "lps")' <<<"$output" | wc -l)" -eq 17622 ]
    [ "$(jq -s 'map(select(.tier == "gps").steps) | add' <<<"$output")" -eq 98407 ]
    [ "$(jq -c 'select(.version != .base + .staleness + 1)' <<<"$output" | wc -l)" -eq 0 ]
    [ "$(head -n 1 <<<"$output" | jq -r '[.type, .job, .region, .from, .tier, .steps] | join(" ")')" = \
        'merge halos H=8 K=32 r0 r0/1 lps 8' ]
    [ "$(jq -s '[.[].ts] | . == sort' <<<"$output")" = true ]
    # other programs take them
    printf '%s\n' "$output" >merges.jsonl
    run -2 skewdetect merges.jsonl
    [[ $output == *'no step, probe or link record'* ]]
    run -0 lsgd-sim --event-only --records -f tsv -m diloco "$halos"
    [ "${#lines[@]}" -eq 193 ]
    [[ ${lines[0]} == type$'\t'ts$'\t'job$'\t'*$'\t'version$'\t'* ]]
    [[ ${lines[1]} == *all* ]]
}

@test "text and tsv have the same figures; empty columns are left out" {
    run -0 lsgd-sim --event-only -f tsv -v -m halos "$halos"
    [ "${#lines[@]}" -eq $((2 + 5 + 17)) ]
    [[ ${lines[0]} == type$'\t'method$'\t'H$'\t'K$'\t'seconds$'\t'* ]]
    [[ ${lines[1]} == sim$'\t'halos$'\t'8$'\t'32$'\t'2434.4172* ]]
    [[ ${lines[2]} == type$'\t'method$'\t'H$'\t'K$'\t'region$'\t'* ]]
    [[ ${lines[7]} == type$'\t'method$'\t'H$'\t'K$'\t'worker$'\t'* ]]
    run -0 bash -c "lsgd-sim --event-only -q -f tsv '$halos' |
        awk -F '\t' '{ print NF }' | uniq | wc -l"
    [ "$output" -eq 1 ]
    run -0 lsgd-sim --event-only -f text -q -m diloco "$halos"
    [ "${#lines[@]}" -eq 2 ]
    [[ ${lines[0]} != *stale* && ${lines[0]} != *unsent* ]]
    run -0 lsgd-sim --event-only -f text -v -m halos "$halos"
    [[ $output == *'unsent'*'28%'*'r3  '*'57%'* ]]
}

@test "environment from standard input, gzip, -o" {
    run -0 bash -c "lsgd-sim --event-only -m diloco - <'$halos' | jq .gps_updates"
    [ "$output" = 192 ]
    run -0 lsgd-sim --event-only -m diloco -o out.jsonl "$halos"
    [ -z "$output" ]
    [ "$(jq .gps_updates out.jsonl)" = 192 ]
    run -2 lsgd-sim --event-only -m diloco -o out.jsonl /nonexistent
    [ "$(jq .gps_updates out.jsonl)" = 192 ]
    if has_feature ZLIB; then
        gzip -c "$halos" >env.gz
        run -0 bash -c "lsgd-sim --event-only -m diloco env.gz | jq .gps_updates"
        [ "$output" = 192 ]
    fi
}

@test "a full device is an error" {
    [ -c /dev/full ] || skip "no /dev/full"
    run -2 --separate-stderr bash -c "lsgd-sim --event-only -q '$halos' >/dev/full"
    [[ $stderr == 'lsgd-sim: cannot write standard output: '* ]]
    run -2 --separate-stderr bash -c \
        "lsgd-sim --event-only -q --records '$halos' >/dev/full"
    [[ $stderr == 'lsgd-sim: cannot write standard output: '* ]]
}

# refused MESSAGE ARGUMENT...: status 2, nothing on stdout, one line.
refused() {
    local message=$1
    shift
    run -2 --separate-stderr lsgd-sim "$@"
    [ -z "$output" ]
    [ "$stderr" = "lsgd-sim: $message" ] ||
        { echo "$stderr" && return 1; }
}

@test "wrong command lines" {
    refused 'cannot train on the virtual clock: this version has --event-only alone' \
        "$halos"
    refused 'cannot simulate: give one environment file (see --help)' --event-only
    refused 'cannot simulate: give one environment file (see --help)' \
        --event-only "$halos" "$halos"
    refused "cannot use 'fedavg' for --method: not one of halos, async, diloco, diloco-dynamic, sync" \
        --event-only -m halos,fedavg "$halos"
    refused "cannot use '' for --method: not one of halos, async, diloco, diloco-dynamic, sync" \
        --event-only -m halos, "$halos"
    refused "cannot use 'sync' for --method: given twice" \
        --event-only -m sync,sync "$halos"
    refused "cannot use '8x' for --local-steps: not a number" \
        --event-only -H 4,8x "$halos"
    refused "cannot use '0' for --merge-every: not in 1..1000000000" \
        --event-only -K 0 "$halos"
    refused 'cannot use --merge-every: more than 64 values' \
        --event-only -K "$(seq -s, 65)" "$halos"
    refused "cannot use '1e10' for --merge-every: not in 1..1000000000" \
        --event-only -K 1e10 "$halos"
    refused "cannot use '15e-1' for --local-steps: not a whole number" \
        --event-only -H 15e-1 "$halos"
    refused "cannot use '0' for --steps: not in 1..1000000000000" \
        --event-only --steps 0 "$halos"
    refused "cannot use '1e999' for --max-events: not a whole number" \
        --event-only --max-events 1e999 "$halos"
    refused "cannot use '' for --local-steps: not a number" \
        --event-only -H 8, "$halos"
    refused "cannot use --records with --format text: it needs jsonl or tsv" \
        --event-only --records -f text "$halos"
    refused "cannot use '2' for --alpha: not in 0..1" \
        --event-only --alpha 2 "$halos"
    jq 'del(.methods.async)' "$halos" >env.json
    refused 'cannot simulate async: the environment has no settings for it' \
        --event-only -m async env.json
}

@test "options that would do nothing are refused" {
    local option
    for option in '-K 4 merge-every' '--alpha 1 alpha' '--q4 q4' \
        '--carry carry'; do
        # shellcheck disable=SC2086 # an option and its argument
        refused "cannot use --${option##* }: it is for halos, so it would do nothing" \
            --event-only -m async,diloco ${option% *} "$halos"
    done
    jq 'del(.methods.halos)' "$halos" >env.json
    refused 'cannot use --merge-every: it is for halos, so it would do nothing' \
        --event-only -K 4 env.json
    refused 'cannot use --local-steps: sync has one step, so it would do nothing' \
        --event-only -m sync -H 4 "$halos"
    refused 'cannot use --server-time: it is for halos and async, so it would do nothing' \
        --event-only -m sync,diloco --server-time 1s "$halos"
    refused 'cannot use --rejoin: there is no --mttf, so it would do nothing' \
        --event-only --rejoin 10m "$halos"
    # a rate of 0 that was asked for is no mistake; nor one of the environment
    sim -m diloco --rejoin 10m --mttf 0
    jq '.options.mean_seconds_to_failure = 7200' "$halos" >env.json
    halos=env.json
    sim -m diloco --rejoin 10m
    is '.failures > 0' true
    # back at once
    sim -m diloco --rejoin 0
    short=$output
    sim -m diloco
    [ "$output" = "$short" ]
}

@test "bad environments" {
    refused 'cannot open nowhere.json: No such file or directory' \
        --event-only nowhere.json
    : >empty.json
    run -2 --separate-stderr lsgd-sim --event-only empty.json
    [[ $stderr == 'lsgd-sim: cannot use empty.json: line 1, column 1 (byte 0): '* ]]
    head -c 500 "$halos" >cut.json
    run -2 --separate-stderr lsgd-sim --event-only cut.json
    [[ $stderr == 'lsgd-sim: cannot use cut.json: line 1'[0-9]', column '*' (byte 500): '* ]]
    jq -c '.sped = 1' "$halos" >env.json
    run -2 --separate-stderr lsgd-sim --event-only env.json
    [[ $stderr == *'line 1, column '*' (byte '*"): environment: unknown key 'sped'" ]]
    sed 's/"total_steps"/"totalsteps"/' "$halos" >env.json
    refused "cannot use env.json: line 18, column 4 (byte $(grep -bo totalsteps env.json | cut -d: -f1)): environment: unknown key 'totalsteps'" \
        --event-only env.json
    jq -c 'del(.parameters, .methods)' "$halos" >env.json
    refused 'cannot use env.json: line 1, column 1 (byte 0): environment: missing: parameters, methods' \
        --event-only env.json
    jq -c '.regions[1].speeds[2] = 0' "$halos" >env.json
    run -2 --separate-stderr lsgd-sim --event-only env.json
    [[ $stderr == *': speeds: not above 0 and at most 1e+09' ]]
    jq -c '.bandwidth_gbit_per_s |= .[1:]' "$halos" >env.json
    run -2 --separate-stderr lsgd-sim --event-only env.json
    [[ $stderr == *': bandwidth_gbit_per_s: fewer rows than regions' ]]
    jq -c '.gps_region = "r9"' "$halos" >env.json
    run -2 --separate-stderr lsgd-sim --event-only env.json
    [[ $stderr == *': gps_region: no such region' ]]
    jq -c '.methods.halos.gps.beta = 1' "$halos" >env.json
    run -2 --separate-stderr lsgd-sim --event-only env.json
    [[ $stderr == *': gps: beta: '* ]]
    head -c 17M /dev/zero | tr '\0' ' ' >huge.json
    refused 'cannot read huge.json: more than 16 MiB' --event-only huge.json
}

@test "a run that cannot end says so" {
    tiny '{"failures": [{"worker": "a/0", "down_seconds": 5}]}'
    unfinished='cannot finish async H=10: nothing can happen any more at 11 s, with 0 of 30 steps done and 1 of 1 workers down'
    run -2 --separate-stderr lsgd-sim --event-only -m async tiny.json
    [ "$stderr" = "lsgd-sim: $unfinished" ]
    [ "$output" = "{\"type\":\"sim\",\"method\":\"async\",\"H\":10,\"failed\":\"$unfinished\"}" ]
    tiny
    run -2 --separate-stderr lsgd-sim --event-only -m async --max-events 10000 \
        --mttf 1ms --rejoin 1ms tiny.json
    [[ $stderr == 'lsgd-sim: cannot finish async H=10: too many events at '*' s, with 0 of 30 steps done and '* ]]
}

@test "runs that cannot end leave the others their rows" {
    tiny '{"failures": [{"worker": "a/0", "down_seconds": 25}]}' '[1, 1]'
    # diloco waits for ever; halos gets no delta together
    run -2 --separate-stderr lsgd-sim --event-only -f jsonl -K 1,1e9 \
        --max-events 1e4 -v tiny.json
    is 'select(.type == "sim") | "\(.method)/\(.K // "-")/\(has("failed"))"' \
        'halos/1/false halos/1000000000/true async/-/false diloco/-/true sync/-/true'
    is 'select(.failed) | has("seconds") or has("failures")' 'false false false'
    is 'select(.type == "sim_worker") | .method' 'halos halos async async'
    is 'select(.failed).failed' "$(sed 's/^lsgd-sim: //' <<<"$stderr" | paste -sd' ')"
    [ "$(wc -l <<<"$stderr")" -eq 3 ]
    [[ $stderr == *'cannot finish halos H=10 K=1000000000: too many events at '* ]]
    [[ $stderr == *'cannot finish diloco H=10: nothing can happen any more at '* ]]
    # of those that are over, the slowest has speed 1
    [ "$(jq -s 'map(.speed // empty) | min' <<<"$output")" = 1 ]
    run -2 --separate-stderr lsgd-sim --event-only -f text -q tiny.json
    [[ ${lines[1]} =~ ^'halos '.*\ 0\.0[0-9]+ ]]
    [[ ${lines[3]} =~ ^'diloco 10'(\ +-)+$ ]]
    # a table of its own for what failed
    [[ $output == *'method'*'failures lost'*'halos'* ]]
    run -2 --separate-stderr lsgd-sim --event-only -f tsv -v tiny.json
    [ "$(grep -c $'^type\t' <<<"$output")" -eq 3 ]
    [ "$(awk -F '\t' '$1 == "sim" { print NF }' <<<"$output" | uniq | wc -l)" -eq 1 ]
    [[ $output == *$'sim\tdiloco\t10\t\t'*$'\tcannot finish diloco H=10: '* ]]
    # -o: what there is, in place
    run -2 lsgd-sim --event-only -o out.jsonl -m diloco,async tiny.json
    [ "$(jq -r .method out.jsonl | paste -sd' ')" = 'diloco async' ]
    # records of those that ended are all there
    run -2 --separate-stderr lsgd-sim --event-only --records -m diloco,async tiny.json
    [ "$(jq -s 'map(select(.job == "async H=10").steps) | add >= 60' <<<"$output")" = true ]
    # nothing but failures: settings alone
    run -2 --separate-stderr lsgd-sim --event-only -f text -q -m diloco tiny.json
    [ "$output" = $'method  H\ndiloco 10' ]
}

@test "the table of the published run fits 80 columns" {
    run -0 bash -c "lsgd-sim --event-only -v -q -f text --mttf 2h --rejoin 10m '$halos' |
        awk 'length > 80'"
    [ -z "$output" ]
}

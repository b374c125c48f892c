#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpuprobe.bats - options, records and streams of gpuprobe. No test here looks
# at how fast anything was: the machine may be busy.

load lib

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    unset RANK OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK SLURM_PROCID
    unset SLURM_JOB_ID PBS_JOBID LSB_JOBID
}

small() { # a quick membw probe
    gpuprobe -q -f jsonl -t membw:copy --size 1MiB --runs 3 "$@"
}

@test "a probe record with all its keys, and gauges" {
    run -0 --separate-stderr small
    [ -z "$stderr" ]
    run -0 jq -s -r '[.[0] | .type, .test, .size, .unit, .better, .n,
        (.value > 0), (.spread >= 0), (.dur > 0), (.ts > 1e9), (.pid > 0),
        has("rank"), has("job")] | map(tostring) | join(" ")' <<<"$output"
    [ "$output" = "probe membw:copy 1048576 B/s high 3 true true true true true false false" ] ||
        [ "$output" = "probe membw.copy 1048576 B/s high 3 true true true true true false false" ]
}

@test "cpu_share is there, and is a share" {
    run -0 small -j 1 --runs 50
    run -0 jq -s -r '.[] | select(.name == "cpu_share") |
        .value > 0 and .value < 1.2 and .unit == "1"' <<<"$output"
    [ "$output" = true ]
}

@test "gemm in both precisions, checked" {
    need_feature OPENBLAS OpenBLAS
    run -0 gpuprobe -q -f jsonl -t gemm --size 100 --runs 3 -j 1
    run -0 jq -s -r '[.[] | select(.type == "probe") | .test, .dtype, .size] |
        map(tostring) | join(" ")' <<<"$output"
    [ "$output" = "gemm f32 100 gemm f64 100" ]
}

@test "gemm without OpenBLAS: asked for is an error, by default a warning" {
    ! has_feature OPENBLAS || skip "built with OpenBLAS"
    run -2 --separate-stderr gpuprobe -t gemm:f32
    [ "$stderr" = "gpuprobe: cannot run gemm:f32: built without OpenBLAS" ]
    run -0 --separate-stderr gpuprobe -f jsonl --size 1MiB --runs 1
    [[ $stderr == *"gpuprobe: cannot run gemm:f32: built without OpenBLAS"* ]]
    [[ $output == *membw* ]]
}

@test "rank, job and host come from the launcher" {
    run -0 env SLURM_PROCID=3 SLURM_JOB_ID=77 gpuprobe -q -f jsonl \
        -t membw:copy --size 1MiB --runs 1
    run -0 jq -s -r '[.[0] | .rank, .job, .host] | map(tostring) | join(" ")' \
        <<<"$output"
    [ "$output" = "3 77 $(hostname | cut -d. -f1)" ]
    run -2 --separate-stderr env RANK=x gpuprobe
    [ "$stderr" = "gpuprobe: cannot use RANK='x': not a number" ]
}

@test "--repeat and --interval make a stream" {
    run -0 small --repeat 3 --interval 50ms
    run -0 jq -s -r '[.[] | select(.type == "probe") | .ts] |
        length == 3 and .[2] - .[0] >= 0.09' <<<"$output"
    [ "$output" = true ]
}

@test "--on-line: a round for each line, of so many runs" {
    run -0 small --on-line < <(printf '2\n\n5')
    run -0 jq -s -c '[.[] | select(.type == "probe") | .n]' <<<"$output"
    [ "$output" = "[2,3,5]" ]
    run -2 --separate-stderr small --on-line <<<'2
x'
    [ "$stderr" = "gpuprobe: cannot use stdin:2: not a number" ]
    run -0 small --on-line </dev/null
    [ -z "$output" ]
}

@test "--on-line: a line is a number or it is not" {
    for line in '2\0junk' '12345678901234567890123456789012garbage' '1 2' 0; do
        run -2 --separate-stderr small --on-line < <(printf "$line\n")
        [[ $stderr == "gpuprobe: cannot use stdin:1: "* ]]
    done
    run -0 small --on-line <<<00000000000000000000000000000012
    [[ $output == *'"n":12,'* ]]
    run -2 --separate-stderr small --on-line --repeat 3
    [ "$stderr" = "gpuprobe: cannot use --on-line with --repeat or --interval" ]
}

@test "--on-line answers at once" {
    mkfifo to from
    small --on-line <to >from &
    exec {to}>to {from}<from
    for n in 1 2 3; do
        echo "$n" >&"$to"
        read -r -t 20 -u "$from" line
        [[ $line =~ \"n\":${n}[,}] ]]
        read -r -t 20 -u "$from" line
        read -r -t 20 -u "$from" line
    done
    exec {to}>&-
    wait $!
}

@test "--cpu pins; a CPU that is not there is an error" {
    cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
    run -0 small --cpu "$cpu"
    run -2 --separate-stderr small --cpu 100000
    [[ $stderr == "gpuprobe: cannot run on CPU 100000: "* ]]
}

@test "-t: lists, unknown tests; --list" {
    run -0 gpuprobe --list
    [[ $output == *"membw:triad"* ]]
    run -2 --separate-stderr gpuprobe -t nope
    [[ $stderr == "gpuprobe: cannot use 'nope' for --test: "* ]]
    run -0 gpuprobe -q -f jsonl -t membw:triad,membw:copy --size 1MiB --runs 1
    run -0 jq -s -c '[.[] | select(.type == "probe") | .test] | length' \
        <<<"$output"
    [ "$output" = 2 ]
}

@test "--budget bounds the time of a test" {
    run -0 small --runs 1000000 --budget 50ms
    run -0 jq -s -r '.[0] | .n >= 3 and .n < 1000000' <<<"$output"
    [ "$output" = true ]
}

@test "-f text and tsv, -o" {
    run -0 gpuprobe -q -f text -t membw:copy --size 1MiB --runs 3
    [[ $output == "membw:copy 1 MiB "*"B/s"*"3 runs"* ]]
    run -0 awk 'length > 80' <<<"$output"
    [ -z "$output" ]
    run -0 gpuprobe -q -f tsv -t membw:copy --size 1MiB --runs 3 -o out
    [ -z "$output" ]
    [ "$(wc -l <out)" -eq 2 ]
    run -2 --separate-stderr bash -c 'gpuprobe -q -f jsonl -t membw:copy --size 1MiB --runs 1 >/dev/full'
    [ "$stderr" = "gpuprobe: cannot write standard output: No space left on device" ]
}

@test "what could never be whole is refused" {
    run -2 --separate-stderr small --repeat 0 -o out
    [ "$stderr" = "gpuprobe: cannot use --output with --repeat 0: the file would never be whole (but with --format prom)" ]
}

@test "sizes out of range are refused" {
    run -2 --separate-stderr gpuprobe -t membw:copy --size 1
    [[ $stderr == "gpuprobe: cannot run membw:copy: "* ]]
    run -2 --separate-stderr gpuprobe --size -5
    [[ $stderr == "gpuprobe: cannot use '-5' for --size: "* ]]
}

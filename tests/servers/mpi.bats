#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# mpi.bats - the programs under a real mpirun (Open MPI), on this host.

load ../lib
load launch

setup() {
    type -P mpirun >/dev/null || skip "Open MPI is not installed: no mpirun"
    [[ $(command mpirun --version 2>&1) == *"Open MPI"* ]] ||
        skip "mpirun is not Open MPI"
    forget_launchers
    cd "$BATS_TEST_TMPDIR" || return 1
    export TMPDIR=$BATS_TEST_TMPDIR OMPI_MCA_oob_tcp_if_include=lo
    rank_programs
}

mpirun() {
    command timeout --foreground 30 \
        mpirun --allow-run-as-root --oversubscribe "$@" </dev/null
}

# Where many lines wait in a pipe mpirun takes 4096 bytes at a time, which may
# end within a line, and mixes them with those of other ranks: so a stream is
# read from the files of --output-filename, which are whole.
@test "mpirun: each record is of its rank, of no job" {
    mpirun --output-filename out -n 3 ./probe --repeat 20 >mixed
    skewdetect --strict -q out/*/rank.*/stdout >/dev/null
    cat out/*/rank.*/stdout >out.jsonl
    [ "$(jq -s 'map(select(.type == "probe")) | length' out.jsonl)" -eq 60 ]
    cat told.* # "RANK - - PID"
    who out.jsonl | uniq >found
    cut -d' ' -f1,3,4 told.* | sort | diff - found
    [ "$(cut -d' ' -f1,2 found | xargs)" = "0 - 1 - 2 -" ]
}

@test "several programs in one job: ranks go on through them" {
    mpirun -n 1 ./probe -j 1 : -n 2 ./probe --runs 4 >out.jsonl
    run -0 jq -r 'select(.type == "probe") | "\(.rank):\(.n)"' out.jsonl
    [ "$(sort <<<"$output" | xargs)" = "0:3 1:4 2:4" ]
}

@test "a slow rank, in the files of --output-filename" {
    mpirun --output-filename out -n 3 ./steps 3 >all.jsonl
    run -0 onsets out/*/rank.*/stdout
    [ "$output" = "rank 2 step 31" ]
}

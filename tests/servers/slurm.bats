#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# slurm.bats - the programs under a real Slurm, on two nodes of one host.

load ../lib
load launch
load slurm

setup_file() {
    forget_launchers
    no_slurm=$(slurm_missing)
    export no_slurm
    [ -n "$no_slurm" ] || slurm_up "$BATS_FILE_TMPDIR/slurm"
}

teardown_file() {
    slurm_down
}

setup() {
    [ -z "$no_slurm" ] || skip "$no_slurm"
    cd "$BATS_TEST_TMPDIR" || return 1
    rank_programs
}

# A launcher that hangs fails its test; srun ends its job on SIGTERM.
srun() {
    command timeout --foreground 30 srun -Q "$@" </dev/null
}

# srun passes whole lines on as long as they are of at most 1024 bytes.
@test "srun on two nodes: each record is of its rank and job" {
    srun -N2 -n2 ./probe --repeat 20 >out.jsonl
    skewdetect --strict -q out.jsonl >/dev/null
    [ "$(jq -s 'map(select(.type == "probe")) | length' out.jsonl)" -eq 40 ]
    cat told.* # "- PROCID JOB PID"
    who out.jsonl | uniq >found
    cut -d' ' -f2- told.* | sort | diff - found
    [ "$(cut -d' ' -f1 found | xargs)" = "0 1" ]
    [[ $(head -n 1 found) =~ ^0\ [1-9] ]]
}

@test "more ranks than nodes" {
    srun -N2 -n5 ./probe >out.jsonl
    who out.jsonl >found
    cut -d' ' -f2- told.* | sort | diff - found
    [ "$(cut -d' ' -f1 found | xargs)" = "0 1 2 3 4" ]
}

@test "a slow rank, a file for each rank" {
    srun -N2 -n2 -o 'steps-%t.jsonl' ./steps 2
    [ "$(cat steps-0.jsonl steps-1.jsonl | wc -l)" -eq 120 ]
    run -0 onsets steps-0.jsonl steps-1.jsonl
    [ "$output" = "rank 1 step 31" ]
    run -0 onsets steps-1.jsonl steps-0.jsonl
    [ "$output" = "rank 1 step 31" ]
}

@test "a slow rank stops a batch job, by the status of a pipeline" {
    cat >job.sh <<'EOF'
#!/bin/bash
set -o pipefail
srun ./probe | skewdetect --strict -q -f jsonl >probes.jsonl || exit 3
srun -o 'steps-%t.jsonl' ./steps 2
skewdetect --exit-code --strict -f text steps-?.jsonl || exit
echo 'not stopped'
EOF
    run -1 timeout --foreground 50 sbatch --wait -N2 -n2 -o out.txt job.sh
    cat out.txt
    [ "$(cat told.* | wc -l)" -eq 2 ]
    [ -e probes.jsonl ]
    grep -q 'ONSET *rank=1 .*since step 31' out.txt
    run -1 grep 'not stopped' out.txt
}

@test "mpirun in an allocation: the rank is mpirun's, not Slurm's" {
    type -P mpirun >/dev/null || skip "Open MPI is not installed: no mpirun"
    export TMPDIR=$BATS_TEST_TMPDIR OMPI_MCA_oob_tcp_if_include=lo
    timeout --foreground 40 salloc -Q -N2 -n6 \
        mpirun --allow-run-as-root -n 6 ./probe </dev/null >out.jsonl
    cat told.* # "RANK PROCID JOB PID"
    # else it would prove nothing
    awk '$1 != $2 { differ = 1 } END { exit !differ }' told.*
    who out.jsonl >found
    cut -d' ' -f1,3,4 told.* | sort | diff - found
    [ "$(cut -d' ' -f1 found | xargs)" = "0 1 2 3 4 5" ]
}

@test "host lists are those of scontrol show hostnames" {
    local list lists=('n[01-16]' 'n[1-010]' 'n[001-3]' 'n[1,3,07-12]'
        'n[9-11]' 'n[099-101]' 'n[08,9]' 'n[1-2,2]' 'n[01,1-2]' 'n[0-0]'
        'r[1-2]n[1-3]' 'r[01-12]n[8-11]' 'n[08-10]-eth[0-1]' '[1-2]'
        'n[99999999999-100000000001]' 'n1')
    for list in "${lists[@]}"; do
        "$top_builddir/tests/unit/test_hostlist" "$list" >got
        scontrol show hostnames "$list" | diff - got
    done
    # three lists: the same names, in an order of our own
    list='n[1-3]r[09-11]q[7,8]'
    "$top_builddir/tests/unit/test_hostlist" "$list" | sort >got
    [ "$(wc -l <got)" -eq 18 ]
    scontrol show hostnames "$list" | sort | diff - got
    # what Slurm refuses is refused
    for list in 'n[3-1]' 'n[]' 'n[1,]' 'n[,1]' 'n[a]' 'n[1-2-3]'; do
        scontrol show hostnames "$list" 2>&1 | grep -q Invalid # status 0
        run -2 "$top_builddir/tests/unit/test_hostlist" "$list"
    done
}

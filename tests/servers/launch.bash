# SPDX-License-Identifier: Apache-2.0
# launch.bash - what the tests under real launchers share: the programs that
# the ranks run. They are files, since a launcher starts files.

# Nothing of a launcher that these tests themselves run under: every variable
# that starts so is an option of srun or mpirun, or says who a rank is.
forget_launchers() {
    unset RANK PBS_JOBID LSB_JOBID SLURM_CONF
    # shellcheck disable=SC2086 # a list of names
    unset ${!SLURM_@} ${!SLURMD_@} ${!SRUN_@} ${!SBATCH_@} ${!SALLOC_@} \
        ${!OMPI_@} ${!OPAL_@} ${!ORTE_@} ${!PMIX_@} ${!PMI_@}
}

# rank_programs: write two programs into the current folder.
#
# ./probe      gpuprobe, after it left "OMPI-RANK SLURM-PROCID JOB PID" in the
#              file told.PID (- for what is not set); PID is that of gpuprobe,
#              so each record can be held against its own process
# ./steps N    60 step records of one of N ranks that wait for each other; the
#              last rank works twice as long from step 31 on. Time is written,
#              not spent.
rank_programs() {
    cat >probe <<'EOF'
#!/bin/sh
echo "${OMPI_COMM_WORLD_RANK:--} ${SLURM_PROCID:--} ${SLURM_JOB_ID:--} $$" \
    >"told.$$"
exec gpuprobe -q -f jsonl -t membw:copy --size 1MiB --runs 3 "$@"
EOF
    cat >steps <<'EOF'
#!/usr/bin/env bash
rank=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}
for ((i = 1; i <= 60; i++)); do
    busy=$((100000 + 200 * (i * 7 % 5 - 2))) # microseconds
    longest=$((i > 30 ? 2 * busy : busy))
    if ((rank == $1 - 1)); then busy=$longest; fi
    ts=$((i * 250000))
    printf '{"type":"step","ts":17000000%02d.%06d,"rank":%d,"step":%d,' \
        $((ts / 1000000)) $((ts % 1000000)) "$rank" "$i"
    printf '"dur":0.%06d,"busy":0.%06d}\n' $((longest + 1000)) "$busy"
done
EOF
    chmod +x probe steps
}

# who FILE...: rank, job (- without one) and pid of each probe record.
who() {
    jq -r 'select(.type == "probe") |
        "\(.rank // "-") \(.job // "-") \(.pid)"' "$@" | sort
}

# onsets FILE...: rank and step of each rank that skewdetect finds slow.
onsets() {
    skewdetect --strict -q -f jsonl "$@" |
        jq -r 'select(.kind == "onset" and .scope == "rank") |
            "rank \(.rank) step \(.step)"'
}

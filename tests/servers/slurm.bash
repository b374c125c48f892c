# SPDX-License-Identifier: Apache-2.0
# slurm.bash - a Slurm cluster of two nodes, n1 and n2, on this host: munged,
# slurmctld and two slurmd. All of its files are in one folder, its ports were
# free and are on loopback only; no service of the host is touched, nor used.
#
# The daemons run in the foreground as children of bats, and are sent SIGTERM
# by the kernel if it dies. Needs root, since slurmd starts jobs as their user;
# no cgroups (proctrack/pgid), and nothing from systemd.

slurm_cpus=4 # of a node; it is told so, whatever the host has

# Why there can be no cluster; nothing if there can.
slurm_missing() {
    local p
    for p in munged mungekey slurmctld slurmd srun sbatch salloc; do
        type -P "$p" >/dev/null || { # not the functions of a test
            echo "Slurm is not installed: no $p"
            return
        }
    done
    [ "$(id -u)" -eq 0 ] || echo "Slurm needs root"
}

# Does anything listen on this TCP port, on any address?
port_is_taken() {
    local hex
    printf -v hex '%04X' "$1"
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        grep -q "^ *[0-9]*: [0-9A-F]*:$hex [0-9A-F]*:0000 0A "
}

# The first of three ports in a row that are free; below those that the kernel
# hands out by itself (32768 and up).
three_free_ports() {
    local p
    while :; do
        p=$((20000 + RANDOM % 12000))
        port_is_taken $p || port_is_taken $((p + 1)) ||
            port_is_taken $((p + 2)) || break
    done
    echo $p
}

slurm_write_conf() { # slurm_write_conf DIR PORT
    local here='NodeHostname=localhost NodeAddr=127.0.0.1'
    cat >"$1/slurm.conf" <<EOF
ClusterName=evenpace
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$2
NodeName=n1 $here Port=$(($2 + 1)) CPUs=$slurm_cpus
NodeName=n2 $here Port=$(($2 + 2)) CPUs=$slurm_cpus
PartitionName=all Nodes=n1,n2 Default=YES
SlurmUser=root
SlurmdUser=root
SlurmdParameters=config_overrides
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$1/munge.sock
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
KillWait=1
StateSaveLocation=$1/state
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/%n.pid
SlurmdSpoolDir=$1/%n
EOF
}

# slurm_daemon NAME COMMAND...: start it; its pid is kept in slurm_pids.
slurm_daemon() {
    setpriv --pdeathsig TERM "${@:2}" \
        </dev/null >"$slurm_dir/$1.log" 2>&1 3>&- &
    slurm_pids+=($!)
}

slurm_is_up() { # both nodes are idle
    [ "$(timeout 2 sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]
}

all_gone() { # all_gone PID...
    local pid
    for pid in "$@"; do
        ! kill -0 "$pid" 2>/dev/null || return 1
    done
}

slurm_is_decided() { # up, or one of the daemons has left
    local pid
    for pid in "${slurm_pids[@]}"; do
        kill -0 "$pid" 2>/dev/null || return 0
    done
    slurm_is_up
}

# Wait until a command succeeds, but not much longer than so many seconds.
within() { # within SECONDS COMMAND...
    local end=$((SECONDS + $1))
    until "${@:2}"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}

slurm_try() {
    mkdir "$slurm_dir" "$slurm_dir/state" "$slurm_dir/n1" "$slurm_dir/n2"
    slurm_write_conf "$slurm_dir" "$(three_free_ports)"
    mungekey --create --keyfile "$slurm_dir/munge.key"
    # --force, as the folder of bats is closed to other users
    slurm_daemon munged munged --foreground --force --num-threads=2 \
        --key-file="$slurm_dir/munge.key" --socket="$slurm_dir/munge.sock" \
        --pid-file="$slurm_dir/munge.pid" --seed-file="$slurm_dir/munge.seed"
    within 5 test -S "$slurm_dir/munge.sock" || return 1
    slurm_daemon slurmctld slurmctld -D
    slurm_daemon slurmd-n1 slurmd -D -N n1
    slurm_daemon slurmd-n2 slurmd -D -N n2
    within 10 slurm_is_decided && slurm_is_up
}

# slurm_up DIR: start the cluster in the folder DIR, which is made; exports
# SLURM_CONF. Someone else may take a port meanwhile: so there are three tries.
slurm_up() {
    if [ ${#1} -gt 70 ]; then
        echo "cannot start Slurm in $1: too long for the path of a socket"
        return 1
    fi
    local try
    slurm_pids=()
    for try in 1 2 3; do
        slurm_dir=$1
        export SLURM_CONF=$slurm_dir/slurm.conf
        slurm_try && return
        echo "try $try: Slurm did not start"
        tail -n 10 "$slurm_dir"/*.log
        slurm_down
        rm -rf "$slurm_dir"
    done
    return 1
}

slurm_is_empty() { # there are no jobs
    [ -z "$(timeout 2 squeue -h 2>/dev/null)" ]
}

# Processes of the cluster: those with its SLURM_CONF in their environment
# (daemons, slurmstepd, tasks, clients that hang); of bats itself it is not in
# the environment that it was started with.
slurm_left() {
    env -u SLURM_CONF grep -lszxF "SLURM_CONF=$SLURM_CONF" \
        /proc/[0-9]*/environ
}

# Stop what slurm_up started, in whatever state it is, and even if its folder
# has gone, as when bats was interrupted.
slurm_down() {
    local left=() p
    [ ${#slurm_pids[@]} -gt 0 ] || return 0
    if ! slurm_is_empty; then
        timeout 2 scancel --user=root 2>/dev/null
        within 3 slurm_is_empty
    fi
    kill "${slurm_pids[@]}" 2>/dev/null
    within 5 all_gone "${slurm_pids[@]}"
    mapfile -t left < <(slurm_left)
    for p in "${left[@]}"; do
        p=${p#/proc/}
        kill -KILL "${p%/environ}" 2>/dev/null
    done
    slurm_pids=()
    return 0
}

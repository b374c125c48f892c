# SPDX-License-Identifier: Apache-2.0
# bash completion for every program of evenpace. The options come from the
# program itself (--help-options), so they are those of the version installed.

_evenpace() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local letter name arg list words=
    COMPREPLY=()
    # "--name=value" reaches us as three words
    if [[ $cur == '=' ]]; then
        cur=
    elif [[ $prev == '=' && $COMP_CWORD -ge 2 ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    while IFS=$'\t' read -r letter name arg _; do
        if [[ $prev == "--$name" || $prev == "-$letter" ]] &&
            [[ $arg != - ]]; then
            # an argument: its choices, also after a comma, or else a file
            if [[ $arg == *'|'* ]]; then
                list=
                [[ $cur != *,* ]] || list=${cur%,*},
                mapfile -t COMPREPLY < <(compgen -P "$list" \
                    -W "${arg//|/ }" -- "${cur##*,}")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            fi
            return 0
        fi
        words+=" --$name"
        [[ $letter == - ]] || words+=" -$letter"
    done < <("$1" --help-options 2>/dev/null)
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}

complete -o filenames -F _evenpace gpuprobe lsgd-merge lsgd-sim rebalance skewdetect skewplot tlmcat whatif

#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# house.bats - the rules of HACKING.md that a machine can check.

load lib

setup() {
    cd "$top_srcdir" || return 1
}

# The rows "| lib/x | a b |" of HACKING.md below a heading, as "lib/x a b".
table() {
    awk -v want="$1" '
        /^#/ { on = index($0, want) > 0; next }
        on && /^\| *`/ {
            gsub(/`/, ""); split($0, c, "|")
            gsub(/^ +| +$/, "", c[2]); gsub(/^ +| +$/, "", c[3])
            print c[2], c[3]
        }' HACKING.md
}

@test "includes follow the arrows of HACKING.md" {
    local rows file dir inc target allowed bad=0 seen=0
    rows=$(table 'Folders and arrows')
    [ "$(wc -l <<<"$rows")" -ge 5 ]
    while read -r file inc; do
        dir=$(dirname "$file")
        target=${inc%%/*}
        allowed=$(awk -v d="$dir" '$1 == d { $1 = ""; print }' <<<"$rows")
        seen=$((seen + 1))
        case " $allowed ${dir#lib/} " in
        *" $target "*) ;;
        *)
            echo "$file includes $inc: no arrow from $dir to $target"
            bad=1
            ;;
        esac
    done < <(grep -o '^#include "[a-z]*/[a-z_0-9]*\.h"' -r bin lib |
        sed 's/:#include "/ /; s/"$//')
    [ "$seen" -gt 50 ]
    [ "$bad" -eq 0 ]
}

@test "every folder with sources is in the table, and the other way round" {
    run -0 diff <(table 'Folders and arrows' | cut -d' ' -f1 | sort) \
        <(find bin lib -name '*.c' -exec dirname {} + | sort -u)
}

@test "a vendor's header is included by the one file that wraps it" {
    local header file found
    table 'Vendor libraries' >"$BATS_TEST_TMPDIR/vendors"
    [ -s "$BATS_TEST_TMPDIR/vendors" ]
    while read -r header file; do
        found=$(grep -rl "#include <$header>" bin lib)
        echo "$header: $found"
        [ "$found" = "$file" ]
    done <"$BATS_TEST_TMPDIR/vendors"
    # and no header but the C library's is missing from the table
    run -0 bash -c "grep -rhoE '#include <[^>]+>' bin lib | sort -u |
        sed 's/#include <//; s/>//' |
        grep -vxE '(assert|ctype|dirent|errno|fcntl|float|fts|getopt|inttypes|limits|math|poll|pthread|sched|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdio_ext|stdlib|strings?|time|unistd|immintrin|emmintrin|cpuid)\.h|sys/[a-z]+\.h' |
        grep -vxFf <(cut -d' ' -f1 '$BATS_TEST_TMPDIR/vendors') || true"
    [ -z "$output" ]
}

@test "no source file is longer than 600 lines" {
    run -0 bash -c "find bin lib tests -name '*.[ch]' | xargs wc -l |
        awk '\$2 != \"total\" && \$1 > 600'"
    [ -z "$output" ]
}

@test "every program: -h, --help and -V work, and say the same" {
    for p in "${programs[@]}"; do
        run -0 --separate-stderr "$p" --help
        [ -z "$stderr" ]
        [[ $output == "usage: $p "* ]]
        long=$output
        run -0 "$p" -h
        [ "$output" = "$long" ]
        run -0 "$p" -V
        [[ $output == "$p (evenpace) "* ]]
    done
}

@test "every program: help fits an 80-column terminal" {
    for p in "${programs[@]}"; do
        run -0 bash -c "$p --help | awk 'length > 80'"
        [ -z "$output" ]
    done
}

@test "every program: the same letter means the same option" {
    for p in "${programs[@]}"; do
        "$p" --help-options | awk -F '\t' '$1 != "-" { print $1, $2 }'
    done | sort -u >"$BATS_TEST_TMPDIR/letters"
    run -0 bash -c "cut -d' ' -f1 '$BATS_TEST_TMPDIR/letters' | uniq -d"
    [ -z "$output" ]
}

@test "every program: man page and --help list the same options" {
    for p in "${programs[@]}"; do
        "$p" --help-options | awk -F '\t' '{
            printf "%s --%s\n", $1 == "-" ? "" : "-" $1, $2 }' |
            sed 's/^ //' | sort >"$BATS_TEST_TMPDIR/help"
        # .It Fl f , Fl Fl format Ar FORM
        sed -n 's/^\.It \(Fl .*\)/\1/p' "man/$p.1" |
            sed -E 's/Fl Fl ([a-z0-9-]+).*/--\1/; s/Fl ([A-Za-z]) , /-\1 /' |
            sort >"$BATS_TEST_TMPDIR/man"
        run -0 diff "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/man"
    done
}

@test "every program: completion offers the options of --help" {
    source share/completions/evenpace.bash
    for p in "${programs[@]}"; do
        COMP_WORDS=("$p" --)
        COMP_CWORD=1
        _evenpace "$p" -- "$p"
        run -0 diff <(printf '%s\n' "${COMPREPLY[@]}" | sort) \
            <("$p" --help-options | cut -f2 | sed 's/^/--/' | sort)
        complete -p "$p"
    done
}

@test "completion offers the choices of an option" {
    source share/completions/evenpace.bash
    COMP_WORDS=(skewdetect --format "=" j)
    COMP_CWORD=3
    _evenpace skewdetect j =
    [ "${COMPREPLY[*]}" = jsonl ]
    COMP_WORDS=(skewdetect -f t)
    COMP_CWORD=2
    _evenpace skewdetect t -f
    [ "${COMPREPLY[*]}" = "text tsv" ]
    COMP_WORDS=(lsgd-sim -m '')
    _evenpace lsgd-sim '' -m
    [ "${COMPREPLY[*]}" = "halos async diloco diloco-dynamic sync" ]
    COMP_WORDS=(lsgd-sim -m 'sync,diloco-')
    _evenpace lsgd-sim sync,diloco- -m
    [ "${COMPREPLY[*]}" = "sync,diloco-dynamic" ]
}

@test "the EXAMPLES of the man pages print what they say" {
    # Each ".Bd -literal" of EXAMPLES: lines "$ command" (continued by a
    # closing "\") and below it the output, where "..." stands for any text.
    local page ran=0 skipped=0
    for page in man/*.[0-9]; do
        awk '
            /^\.Sh/ { on = $2 == "EXAMPLES" }
            on && /^\.Ed/ { literal = 0 }
            on && literal { gsub(/\\e/, "\\"); gsub(/\\&/, ""); print }
            on && /^\.Bd -literal/ { literal = 1 }' "$page" \
            >"$BATS_TEST_TMPDIR/examples"
        mkdir -p "$BATS_TEST_TMPDIR/run"
        (cd "$BATS_TEST_TMPDIR/run" &&
            "$top_srcdir/tests/run-examples" "$BATS_TEST_TMPDIR/examples") \
            >"$BATS_TEST_TMPDIR/said" ||
            { cat "$BATS_TEST_TMPDIR/said" && echo "in $page" && return 1; }
        cat "$BATS_TEST_TMPDIR/said"
        skipped=$((skipped + $(grep -c '^skipped, ' "$BATS_TEST_TMPDIR/said" || true)))
        ran=$((ran + $(grep -c '^\$ ' "$BATS_TEST_TMPDIR/examples" || true)))
    done
    [ "$ran" -ge 6 ]
    # a build that has what they need skips none; the other says so
    if has_feature PCRE2; then
        [ "$skipped" -eq 0 ]
    else
        [ "$skipped" -eq 1 ]
        echo "# $skipped example skipped: built without PCRE2" >&3
    fi
}

@test "evenpace-record(5) has the types, keys and ranges of the code" {
    # table rows of the page: ".It Sy type" then ".Ar key" lists in the text
    run -0 diff \
        <("$top_builddir/tests/unit/test_record" --table | sort) \
        <(awk '
            /^\.Sh TYPES/ { on = 1; next }
            /^\.Sh/ { on = 0 }
            on && /^\.It Sy/ { type = $3 }
            on && /^\.Em need No/ { for (i = 4; i <= NF; i++) print type, "need", $i }
            on && /^\.Em may No/ { for (i = 4; i <= NF; i++) print type, "may", $i }
            ' man/evenpace-record.5 | sort)
    run -0 diff \
        <("$top_builddir/tests/unit/test_record" --keys | sort) \
        <(awk '/^\.Sh KEYS/ { on = 1; next } /^\.Sh/ { on = 0 }
            on && key { gsub(/^\(|\)$/, ""); n = split($0, part, ", ")
                line = key " " part[1]
                for (i = 2; i <= n; i++) {
                    if (sub(/^at least /, "", part[i])) line = line " " part[i]
                    if (sub(/ to /, " ", part[i])) line = line " " part[i]
                }
                print line; key = "" }
            on && /^\.It Sy/ { key = $3 }' man/evenpace-record.5 | sort)
}

@test "the pipeline of README.md prints what it says" {
    sed -n '/^```console/,/^```$/p' README.md | sed '/^```/d' \
        >"$BATS_TEST_TMPDIR/examples"
    [ "$(grep -c '^\$ ' "$BATS_TEST_TMPDIR/examples")" -ge 3 ]
    mkdir "$BATS_TEST_TMPDIR/run"
    cd "$BATS_TEST_TMPDIR/run" || return 1
    run -0 "$top_srcdir/tests/run-examples" "$BATS_TEST_TMPDIR/examples"
}

@test "README links to man pages that exist" {
    run -0 grep -oE '\(man/[a-z-]+\.[0-9]\)' README.md
    for link in "${lines[@]}"; do
        link=${link#(}
        [ -e "${link%)}" ]
    done
}

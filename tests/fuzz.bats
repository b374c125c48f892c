#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# fuzz.bats - every fuzz target over its corpus, in every build.

load lib

@test "each target passes its corpus" {
    local target name n=0
    for target in "$top_builddir"/tests/fuzz/fuzz_*; do
        name=${target##*/fuzz_}
        [[ -x $target && -f $target && $name != *.* ]] || continue
        [ "$(find "$top_srcdir/tests/fuzz/corpus/$name" -type f | wc -l)" -ge 5 ]
        run -0 "$target" "$top_srcdir/tests/fuzz/corpus/$name"/*
        n=$((n + 1))
    done
    [ "$n" -ge 4 ]
}

@test "each fuzz target in the source is built" {
    run -0 diff <(cd "$top_srcdir/tests/fuzz" && ls fuzz_*.c) \
        <(cd "$top_builddir/tests/fuzz" && find . -maxdepth 1 -name 'fuzz_*' \
            -perm -u+x ! -name '*.*' -printf '%f.c\n' | sort)
}

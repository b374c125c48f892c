#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# safetensors.bats - what is read as a checkpoint and what is refused, case by
# case, and the same of the reference implementation, the Python package
# safetensors (of PyPI, in a virtual environment made here).

load lib

# Verdicts on corner cases are those of this version.
package=safetensors==0.8.0

# A python3 that can make virtual environments.
some_python() {
    local p
    for p in python3 /usr/bin/python3; do
        "$p" -c 'import venv, ensurepip' 2>/dev/null && echo "$p" && return 0
    done
    return 1
}

setup_file() {
    local p
    export SAFETENSORS_PYTHON=
    if p=$(some_python) && cd "$BATS_FILE_TMPDIR" && "$p" -m venv venv &&
        venv/bin/pip install --quiet --disable-pip-version-check \
            "$package" numpy; then
        SAFETENSORS_PYTHON=$BATS_FILE_TMPDIR/venv/bin/python
    fi >"$BATS_FILE_TMPDIR/pip.log" 2>&1
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
}

need_package() {
    [ -n "$SAFETENSORS_PYTHON" ] || skip "pip cannot install safetensors"
}

# refused PATH REASON-PATTERN [PATH-AT-FAULT]
refused() {
    run -2 --separate-stderr lsgd-merge --show "$1"
    echo "$stderr"
    [ -z "$output" ]
    # shellcheck disable=SC2053 # a pattern
    [[ $stderr == "lsgd-merge: cannot read ${3:-$1}: "$2 ]]
}

write_cases() {
    mkdir cases
    python3 "$top_srcdir/tests/gen/safetensors_cases.py" write cases
    [ "$(wc -l <cases/list.tsv)" -gt 150 ]
}

@test "each case is taken or refused as it should be" {
    local file verdict rest bad=0 n=0
    write_cases
    while read -r file verdict rest; do
        n=$((n + 1))
        run --separate-stderr lsgd-merge --show "cases/$file"
        if [ "$verdict" = takes ]; then
            [[ $status -eq 0 && -z $stderr ]]
        else # in one line, nothing raw
            [[ $status -eq 2 && -z $output && $stderr != *[[:cntrl:]]* &&
                $stderr == "lsgd-merge: cannot read cases/$file: "?* ]]
        fi || {
            echo "$file: want $verdict, status $status, $stderr"
            bad=$((bad + 1))
        }
    done <cases/list.tsv
    [ "$n" -gt 150 ]
    [ "$bad" -eq 0 ]
}

@test "the reference gives each case the verdict that is written down" {
    need_package
    write_cases
    "$SAFETENSORS_PYTHON" "$top_srcdir/tests/gen/safetensors_cases.py" ask \
        cases >asked
    run -0 diff cases/list.tsv asked
    # and it differs from ours where the list says why, nowhere else
    run -0 awk -F '\t' '$2 != $3 { print $1 }' asked
    run -0 diff - <(sort <<<"$output") <<'END'
dtype-object.safetensors
entry-array.safetensors
name-twice-escaped.safetensors
name-twice.safetensors
nested-63.safetensors
rank-65.safetensors
unknown-beyond-double.safetensors
END
}

@test "what the package writes is read: names, types, shapes, metadata" {
    need_package
    "$SAFETENSORS_PYTHON" - <<'END'
import numpy as np
from safetensors.numpy import save_file
types = "bool u1 i1 u2 i2 f2 u4 i4 f4 c8 u8 i8 f8".split()
save_file({"of." + t: np.arange(6).reshape(2, 3).astype(t) for t in types} |
          {"scalar": np.array(1, np.float32), "\u00e9\n": np.zeros((0, 7))},
          "written.safetensors", metadata={"format": "np", "q": "\u2713"})
save_file({}, "nothing.safetensors")
END
    run -0 --separate-stderr lsgd-merge --show written.safetensors
    [ -z "$stderr" ]
    for t in bool u1 i1 u2 i2 f2 u4 i4 f4 c8 u8 i8 f8; do
        [[ $output == *"of.$t"* ]]
    done
    for t in BOOL U8 I8 U16 I16 F16 U32 I32 F32 C64 U64 I64 F64; do
        [[ $output == *"$t"* ]]
    done
    [[ $output == *scalar* ]]
    run -0 --separate-stderr lsgd-merge --show nothing.safetensors
    [ -z "$stderr" ]
}

@test "pickles are refused by their contents, with a way to convert them" {
    python3 - <<'END'
import pickle, zipfile
for protocol in 2, 3, 4, 5:
    with open(f"p{protocol}.safetensors", "wb") as f:
        pickle.dump({"a": [1.0]}, f, protocol)
with zipfile.ZipFile("z.safetensors", "w") as z:
    z.writestr("archive/data.pkl", pickle.dumps({}))
END
    for p in 2 3 4 5; do
        refused p$p.safetensors 'a pickle, which is never loaded; convert: python3 -c *save_file(*weights_only=True*'
    done
    refused z.safetensors "a zip archive (PyTorch's pickle?), never loaded; convert: python3 -c *"
    # what is between the quotes is Python
    code=${stderr#*"python3 -c '"}
    run -0 python3 -c 'import sys; compile(sys.argv[1], "hint", "exec")' \
        "${code%"'"*}"
    mkdir dcp
    touch dcp/.metadata dcp/__0_0.distcp
    refused dcp 'a distributed checkpoint*convert: python3 -m torch.distributed.checkpoint.format_utils dcp_to_torch DIR OUT.pt'
    mkdir model
    mv z.safetensors model/pytorch_model.bin
    refused model 'a zip archive*' model/pytorch_model.bin
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n' >lfs
    refused lfs '*git lfs pull'
}

@test "shards: all is found by the index, and each error names its file" {
    python3 - <<'END'
import json, os, struct
def put(path, names):
    h = json.dumps({n: {"dtype": "U8", "shape": [], "data_offsets": [i, i + 1]}
                    for i, n in enumerate(names)}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h + bytes(len(names)))
def index(path, **where):
    with open(path, "w") as f:
        json.dump({"metadata": {"total_size": 3}, "weight_map": where}, f)
os.mkdir("m")
one, two = ("model-0000%d-of-00002.safetensors" % i for i in (1, 2))
put("m/" + one, ["a", "c"])
put("m/" + two, ["b"])
index("m/model.safetensors.index.json", a=one, b=two, c=one)
index("m/gone.index.json", a=one, b="model-3.safetensors", c=one)
index("m/swapped.index.json", a=two, b=two, c=one)
index("m/more.index.json", a=one, b=two, c=one, d=two)
index("m/fewer.index.json", a=one, b=two)
index("m/path.index.json", a="../" + one)
END
    run -0 --separate-stderr lsgd-merge --show m
    [ -z "$stderr" ]
    whole=$output
    run -0 lsgd-merge --show m/model.safetensors.index.json
    [ "$(wc -l <<<"$output")" -eq "$(wc -l <<<"$whole")" ]
    refused m/gone.index.json 'the index names it, and it is not there' \
        m/model-3.safetensors
    refused m/swapped.index.json \
        'tensor "a": the index says that it is in model-00002-of-00002.safetensors' \
        m/model-00001-of-00002.safetensors
    refused m/more.index.json \
        'tensor "d": the index says that it is here, and it is not' \
        m/model-00002-of-00002.safetensors
    refused m/fewer.index.json 'tensor "c": not in the index' \
        m/model-00001-of-00002.safetensors
    refused m/path.index.json 'byte *"../model-00001-of-00002.safetensors" is no file name'
    rm m/model.safetensors.index.json
    refused m '2 safetensors files in this folder, and no index'
    rm m/*.safetensors
    refused m 'no safetensors file in this folder'
    run -2 --separate-stderr lsgd-merge --show m/gone
    [ "$stderr" = "lsgd-merge: cannot open m/gone: No such file or directory" ]
}

@test "a header of 100000 tensors in no order is read, and names the one that is wrong" {
    python3 - <<'END'
import random, struct
random.seed(1)
n = 100000
place, names = list(range(n)), list(range(n))
random.shuffle(place)
random.shuffle(names)
for path, wrong in ("good", -1), ("bad", 77777):
    text = ",".join('"t%d":{"dtype":"U16","shape":[1],"data_offsets":[%d,%d]}' %
                    (k, 2 * p - (k == wrong), 2 * p + 2 - (k == wrong))
                    for k, p in zip(names, place))
    h = ("{" + text + "}").encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h + bytes(2 * n))
END
    run -0 --separate-stderr lsgd-merge --show good
    [ -z "$stderr" ]
    refused bad 'tensor "t77777": begins at byte *\(they overlap\)'
}

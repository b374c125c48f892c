#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""safetensors_cases.py - files that a safetensors reader must take or refuse.

    safetensors_cases.py write DIR   writes DIR/*.safetensors and DIR/list.tsv:
                                     file, our verdict, the reference's
    safetensors_cases.py ask DIR     prints list.tsv with the verdicts of the
                                     installed package safetensors as the third
                                     column

A verdict is "takes" or "refuses". Nothing but the standard library is needed
to write. The verdicts of the reference are those of its version 0.8.0.
"""
import os
import struct
import sys

cases = []


def case(name, header, data=b"", takes=True, reference=None, length=None):
    """A file; reference is its verdict where that is not ours."""
    if isinstance(header, str):
        header = header.encode()
    n = len(header) if length is None else length
    if reference is None:
        reference = takes
    cases.append((name, struct.pack("<Q", n) + header + data, takes, reference))


def entry(fields):
    return '{"a":{' + fields + "}}"


F32 = '"dtype":"F32",'
S1 = '"shape":[1],'
O4 = '"data_offsets":[0,4]'
A = '"a":{' + F32 + S1 + O4 + "}"
D4 = b"\0\0\0\0"


def bad(name, header, data=D4, reference=None, length=None):
    case(name, header, data, False, reference, length)


def tensor(name, dtype, shape, begin, end):
    return '"%s":{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' % (
        name, dtype, shape, begin, end)


def well_formed():
    case("plain", "{" + A + "}", D4)
    case("aligned", "{" + A + "}" + " " * 2, D4)
    case("unaligned", "{" + A + "}" + " " * 5, D4)
    case("space-all-round", " \n\t\r{ " + A + " } \n\t\r", D4)
    case("no-tensors", "{}")
    case("metadata-alone", '{"__metadata__":{}}')
    case("null-metadata", '{"__metadata__":null,' + A + "}", D4)
    case("metadata", '{"__metadata__":{"format":"pt","":""},' + A + "}", D4)
    case("metadata-key-twice", '{"__metadata__":{"k":"1","k":"2"}}')
    case("escaped-metadata", '{"\\u005f_metadata__":{"k":"v"}}')
    case("scalar", entry(F32 + '"shape":[],' + O4), D4)
    case("no-elements", entry(F32 + '"shape":[3,0],"data_offsets":[0,0]'))
    case("no-elements-huge", entry(
        F32 + '"shape":[0,18446744073709551615,2],"data_offsets":[0,0]'))
    case("unknown-keys",
         entry(F32 + S1 + O4 + ',"x":{"y":[1,null]},"x":-0.5e3'), D4)
    case("other-order", entry(O4 + ',"shape":[1],"dtype":"F32"'), D4)
    case("escaped-keys",
         entry('"d\\u0074ype":"\\u0046\\u00332",' + S1 + O4), D4)
    case("empty-name", '{"":{' + F32 + S1 + O4 + "}}", D4)
    case("nul-in-name", '{"a\\u0000b":{' + F32 + S1 + O4 + "}}", D4)
    case("newline-in-name", '{"a\\nb":{' + F32 + S1 + O4 + "}}", D4)
    case("utf8-name", '{"\u00e9\U0001f600\x7f":{' + F32 + S1 + O4 + "}}", D4)
    case("surrogate-pair", '{"\\ud83d\\ude00":{' + F32 + S1 + O4 + "}}", D4)
    case("nan-data", "{" + A + "}", b"\xff\xff\xff\xff")
    case("listed-out-of-order", "{" + tensor("b", "U8", "[1]", 4, 5) + "," + A +
         "}", D4 + b"b")
    case("empty-between", "{" + A + "," + tensor("b", "U8", "[0]", 4, 4) + "," +
         tensor("c", "U8", "[1]", 4, 5) + "," + tensor("d", "U8", "[0]", 0, 0) +
         "}", D4 + b"c")
    case("nested-62", entry(F32 + S1 + O4 + ',"x":' + "[" * 62 + "]" * 62), D4)
    for name, bits in (
            ("BOOL", 8), ("F4", 4), ("F6_E2M3", 6), ("F6_E3M2", 6), ("U8", 8),
            ("I8", 8), ("F8_E5M2", 8), ("F8_E4M3", 8), ("F8_E8M0", 8),
            ("F8_E4M3FNUZ", 8), ("F8_E5M2FNUZ", 8), ("I16", 16), ("U16", 16),
            ("F16", 16), ("BF16", 16), ("I32", 32), ("U32", 32), ("F32", 32),
            ("C64", 64), ("F64", 64), ("I64", 64), ("U64", 64)):
        n = 4 * bits // 8
        case("dtype-" + name, "{" + tensor("a", name, "[2,2]", 0, n) + "}",
             b"x" * n)
        bad("lower-" + name, "{" + tensor("a", name.lower(), "[2,2]", 0, n) +
            "}", b"x" * n)


def not_json():
    bad("blank", " ", b"")
    bad("array", "[]", b"")
    bad("null", "null", b"")
    bad("open", "{", b"")
    bad("two-values", "{}{}", b"")
    bad("nul-after", "{" + A + "}\0")
    bad("comma-after", "{" + A + ",}")
    bad("byte-order-mark", b"\xef\xbb\xbf{" + A.encode() + b"}")
    bad("bad-utf8", b'{"a\xff":{' + (F32 + S1 + O4).encode() + b"}}")
    bad("bad-utf8-unknown", entry(F32 + S1 + O4 + ',"x":"?"').encode().replace(
        b"?", b"\xed\xa0\x80"))
    bad("newline-raw", '{"a\nb":{' + F32 + S1 + O4 + "}}")
    bad("lone-high", '{"a\\ud800":{' + F32 + S1 + O4 + "}}")
    bad("lone-low", '{"a\\udc00":{' + F32 + S1 + O4 + "}}")
    bad("lone-in-metadata", '{"__metadata__":{"k":"\\ud800"},' + A + "}")
    bad("lone-in-unknown", entry(F32 + S1 + O4 + ',"x":"\\udfff"'))
    bad("nested-126", entry(F32 + S1 + O4 + ',"x":' + "[" * 126 + "]" * 126))


def wrong_kinds():
    bad("metadata-array", '{"__metadata__":[],' + A + "}")
    bad("metadata-number", '{"__metadata__":{"k":1},' + A + "}")
    bad("metadata-null", '{"__metadata__":{"k":null},' + A + "}")
    bad("metadata-tensor", '{"__metadata__":{' + F32 + S1 + O4 + "}}")
    bad("metadata-twice", '{"__metadata__":{},"__metadata__":{},' + A + "}")
    bad("entry-null", '{"a":null}', b"")
    bad("no-dtype", entry(S1 + O4))
    bad("no-shape", entry(F32 + O4))
    bad("no-offsets", entry(F32 + '"shape":[1]'))
    bad("dtype-twice", entry(F32 + F32 + S1 + O4))
    bad("shape-twice", entry(F32 + S1 + S1 + O4))
    bad("offsets-twice", entry(F32 + S1 + O4 + "," + O4))
    bad("dtype-null", entry('"dtype":null,' + S1 + O4))
    bad("dtype-unknown", entry('"dtype":"F33",' + S1 + O4))
    bad("dtype-empty", entry('"dtype":"",' + S1 + O4))
    for name, shape in (
            ("null", "null"), ("number", "1"), ("negative", "[-1]"),
            ("float", "[1.0]"), ("exponent", "[1e0]"), ("string", '["1"]'),
            ("nested", "[[1]]"), ("leading-zero", "[01]")):
        bad("shape-" + name, entry(F32 + '"shape":' + shape + "," + O4))
    bad("shape-minus-0", entry(F32 + '"shape":[-0],"data_offsets":[0,0]'), b"")
    for name, offsets in (
            ("null", "null"), ("object", "{}"), ("none", "[]"), ("one", "[4]"),
            ("three", "[0,4,4]"), ("float", "[0,4.0]"), ("negative", "[-4,0]"),
            ("reversed", "[4,0]"), ("string", '["0","4"]')):
        bad("offsets-" + name, entry(F32 + S1 + '"data_offsets":' + offsets))


def wrong_sizes():
    bad("shape-beyond-64-bits", entry(
        F32 + '"shape":[0,18446744073709551616],"data_offsets":[0,0]'), b"")
    bad("product-overflow", entry(
        F32 + '"shape":[9223372036854775808,2,0],"data_offsets":[0,0]'), b"")
    bad("bits-overflow", entry(
        F32 + '"shape":[576460752303423488],"data_offsets":[0,0]'), b"")
    bad("offsets-beyond-64-bits", entry(
        F32 + S1 + '"data_offsets":[0,18446744073709551620]'))
    bad("odd-F4", "{" + tensor("a", "F4", "[3]", 0, 2) + "}", b"xx")
    bad("odd-F6", "{" + tensor("a", "F6_E2M3", "[3]", 0, 3) + "}", b"xxx")
    bad("too-many-bytes", "{" + tensor("a", "F32", "[1]", 0, 5) + "}", b"x" * 5)
    bad("too-few-bytes", "{" + tensor("a", "F32", "[2]", 0, 4) + "}")
    bad("hole-at-0", "{" + tensor("a", "F32", "[1]", 4, 8) + "}", b"x" * 8)
    bad("hole", "{" + A + "," + tensor("b", "U8", "[1]", 5, 6) + "}", b"x" * 6)
    bad("overlap", "{" + A + "," + tensor("b", "U8", "[2]", 3, 5) + "}",
        b"x" * 5)
    bad("same-place", "{" + A + "," + tensor("b", "F32", "[1]", 0, 4) + "}")
    bad("empty-inside", "{" + A + "," + tensor("b", "U8", "[0]", 2, 2) + "}")
    bad("cut-1", "{" + A + "}", D4[:3])
    bad("cut-all", "{" + A + "}", b"")
    bad("trailing", "{" + A + "}", D4 + b"x")
    bad("data-of-none", "{}", b"x")
    bad("length-0", "", b"")
    bad("length-0-data", "{}", b"", length=0)
    bad("length-short", "{" + A + "}", length=len(A) + 1)
    bad("length-long", "{}", b"", length=3)
    bad("length-cap", "{}", b"", length=100000000)
    bad("length-over-cap", "{}", b"", length=100000001)
    bad("length-huge", "{}", b"", length=2**64 - 1)


def differences():
    """Where we differ, and why."""
    # ambiguous: the last one wins there
    bad("name-twice", "{" + A + "," + A + "}", reference=True)
    bad("name-twice-escaped", "{" + A + ',"\\u0061":{' + F32 + S1 + O4 + "}}",
        reference=True)
    # accidents of its deserializer, which no writer makes use of
    bad("entry-array", '{"a":["F32",[1],[0,4]]}', reference=True)
    bad("dtype-object", entry('"dtype":{"F32":null},' + S1 + O4),
        reference=True)
    # our caps
    ones = ",".join(["1"] * 65)
    case("rank-64", entry(F32 + O4 + ',"shape":[' + ones[2:] + "]"), D4)
    bad("rank-65", entry(F32 + O4 + ',"shape":[' + ones + "]"), reference=True)
    bad("nested-63", entry(F32 + S1 + O4 + ',"x":' + "[" * 63 + "]" * 63),
        reference=True)
    # the value of an unknown key is passed over, not evaluated
    case("unknown-beyond-double", entry(F32 + S1 + O4 + ',"x":1e999'), D4,
         reference=False)


def verdict(takes):
    return "takes" if takes else "refuses"


def write(folder):
    for make in (well_formed, not_json, wrong_kinds, wrong_sizes, differences):
        make()
    for n in range(8):  # shorter than the length
        cases.append(("bytes-%d" % n, b"\2\0\0\0\0\0\0\0"[:n], False, False))
    assert len({c[0] for c in cases}) == len(cases)
    with open(os.path.join(folder, "list.tsv"), "w") as listing:
        for name, contents, ours, reference in cases:
            name += ".safetensors"
            with open(os.path.join(folder, name), "wb") as f:
                f.write(contents)
            print(name, verdict(ours), verdict(reference), sep="\t",
                  file=listing)


def ask(folder):
    import safetensors

    with open(os.path.join(folder, "list.tsv")) as listing:
        rows = [line.rstrip("\n").split("\t") for line in listing]
    for name, ours, _ in rows:
        path = os.path.join(folder, name)
        said = []
        with open(path, "rb") as f:
            contents = f.read()
        try:
            safetensors.deserialize(contents)
            said.append("takes")
        except safetensors.SafetensorError:
            said.append("refuses")
        try:
            with safetensors.safe_open(path, framework="np") as f:
                f.keys()
            said.append("takes")
        except (safetensors.SafetensorError, OSError):
            said.append("refuses")
        print(name, ours, "/".join(sorted(set(said))), sep="\t")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("write", "ask"):
        sys.exit(__doc__)
    (write if sys.argv[1] == "write" else ask)(sys.argv[2])

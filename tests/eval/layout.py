# SPDX-License-Identifier: Apache-2.0
"""What the calls of a job can tell of where its network is slow.

By enumeration, from the layout (job.h): a communicator is slower if an edge of
its ring crosses the link or host, a pair of ranks if it does. Two links or hosts
that slow down the same communicators and pairs cannot be told apart, by anybody.
"""

import collections


def series(job):
    """name -> transfers between ranks, of each communicator and pair."""
    dp, pp, tp = job["dp"], job["pp"], job["tp"]

    def rank(d, s, t):
        return (s * dp + d) * tp + t

    out = {}
    for s in range(pp):
        for t in range(tp):
            out[f"dp-{s}-{t}"] = [(rank(d, s, t), rank((d + 1) % dp, s, t))
                                  for d in range(dp)]
            for d in range(dp if s < pp - 1 else 0):
                out[f"pp-{d}-{t}:{s}"] = [(rank(d, s, t), rank(d, s + 1, t))]
    for d in range(dp if tp > 1 else 0):
        for s in range(pp):
            out[f"tp-{d}-{s}"] = [(rank(d, s, t), rank(d, s, (t + 1) % tp))
                                  for t in range(tp)]
    return out


def hypotheses(job):
    """id -> the series that it slows down."""
    many = job["hosts"] > 1
    unit = "h" if many else "rank"
    out = collections.defaultdict(set)
    for name, moves in series(job).items():
        for p, q in moves:
            a, b = (p // 8, q // 8) if many else (p, q)
            if a == b:
                continue
            a, b = sorted((a, b))
            out[f"src={unit}{a},dst={unit}{b}"].add(name)
            for x in (a, b):
                out[f"host=h{x}" if many else f"rank={x}"].add(name)
    return {k: frozenset(v) for k, v in out.items()}


def canonical(ident):
    d = dict(x.split("=", 1) for x in ident.split(",") if "=" in x)
    if "src" in d:
        a, b = sorted((d["src"], d["dst"]),
                      key=lambda x: int(x.lstrip("hrank")))
        return f"src={a},dst={b}"
    return ident


def ends(ident):
    return {x.split("=", 1)[1] for x in ident.split(",")}


def visible(job, event, others, at):
    """id -> series, without those that something else, slower, hides."""
    all_of = hypotheses(job)
    hidden = set()
    for x in others:
        if x is not event and x["onset"] < at and x["relief"] > event["onset"]:
            if x["factor"] >= event["factor"] * 0.9:
                hidden |= all_of[canonical(x["id"])]
    return {k: v - hidden for k, v in all_of.items()}


def verdict(job, event, others, at, scope, ident):
    """What was said at iteration at of a fail-slow of the network.

    exact   the label itself
    true    not the label, which the calls cannot tell: the link of a host with
            no other, a group or host that all that tie have in common
    vague   a group or host that has to do with it, though they could tell
    wrong   something else
    """
    all_of = visible(job, event, others, at)
    label, ident = canonical(event["id"]), canonical(ident)
    mine = all_of[label]
    tied = {k for k, v in all_of.items() if v == mine}
    if ident == label:
        return "exact"
    if not mine:
        return "wrong"
    if ident in tied and ident.startswith("src"):
        return "true"
    common = all(ends(ident) <= ends(t) for t in tied)
    if scope in ("host", "rank"):
        if ends(ident) & {x for t in tied for x in ends(t)}:
            return "true" if common and len(tied) > 1 else "vague"
    if scope == "group" and ident.split("=", 1)[1] in mine:
        return "true" if len(tied) > 1 else "vague"
    return "wrong"

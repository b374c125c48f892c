# SPDX-License-Identifier: Apache-2.0
"""skewdetect.py - what skewdetect does with calls, as it is done in Python.

    skewdetect.py CALLS FILE

Reads coll records (orjson where it is installed, else json), makes a step of
each CALLS calls of a rank (the period is told, not found), and follows the
logarithm of its busy time by Bayesian online change-point detection with a
constant hazard (Adams, MacKay, arXiv 0710.3742), Normal-Gamma prior, 64 run
lengths, all of them at once in numpy. A rank of which the mean rises by 10 % at
a change is printed.
"""

import sys

import numpy as np

try:
    from orjson import loads
except ImportError:
    from json import loads

WINDOW, HAZARD, LAG = 64, 0.01, 3
HALF = np.arange(WINDOW) / 2 + 1.0  # alpha of each run length


def log_gamma_ratio():
    """log gamma(alpha + 1/2) - log gamma(alpha), once for all."""
    from math import lgamma

    return np.array([lgamma(a + 0.5) - lgamma(a) for a in HALF])


RATIO = log_gamma_ratio()


class Bocd:
    """One series."""

    def __init__(self, mu):
        self.n = 0
        self.start = mu
        self.p = np.zeros(WINDOW)
        self.p[0] = 1
        self.mu = np.full(WINDOW, mu)
        self.kappa = 1.0 + np.arange(WINDOW)
        self.beta = np.full(WINDOW, 1e-4)

    def push(self, x):
        """The probability that the last change was at most LAG samples ago."""
        d = x - self.mu
        scale = self.beta * (self.kappa + 1) / (HALF * self.kappa)
        like = np.exp(RATIO - (HALF + 0.5) * np.log1p(d * d / (2 * HALF * scale)))
        like /= np.sqrt(2 * np.pi * HALF * scale)
        joint = self.p * like
        grown = joint * (1 - HAZARD)
        p = np.empty(WINDOW)
        p[0] = joint.sum() * HAZARD
        p[1:] = grown[:-1]
        p[-1] += grown[-1]
        self.p = p / p.sum()
        beta = self.beta + self.kappa * d * d / (2 * (self.kappa + 1))
        mu = self.mu + d / (self.kappa + 1)
        self.mu[1:], self.beta[1:] = mu[:-1], beta[:-1]
        self.mu[0], self.beta[0] = self.start, 1e-4
        self.n += 1
        return self.p[: LAG + 1].sum()


class Rank:
    """The calls of a rank, as steps."""

    def __init__(self, rank):
        self.rank, self.calls, self.comm, self.start = rank, 0, 0.0, None
        self.bocd, self.values, self.slow = None, [], False

    def call(self, ts, dur, period):
        if self.calls == period:
            self.step(ts - self.start - self.comm)
            self.calls, self.comm = 0, 0.0
        if self.calls == 0:
            self.start = ts
        self.calls += 1
        self.comm += dur

    def step(self, busy):
        x = np.log(busy)
        if self.bocd is None:
            self.bocd = Bocd(x)
        changed = self.bocd.push(x) > 0.9
        self.values.append(x)
        n = len(self.values)
        if changed and n > 8:
            healthy = np.median(self.values[max(0, n - 24) : -LAG])
            factor = np.exp(np.median(self.values[-LAG:]) - healthy)
            if factor > 1.1 and not self.slow:
                self.slow = True
                print(f"rank {self.rank} {factor:.2f}x at step {n - LAG}")


def main():
    period, ranks = int(sys.argv[1]), {}
    with open(sys.argv[2], "rb") as lines:
        for line in lines:
            r = loads(line)
            who = ranks.get(r["rank"])
            if who is None:
                who = ranks[r["rank"]] = Rank(r["rank"])
            who.call(r["ts"], r["dur"], period)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Profiles as series: means of values that are known, at every location and along every axis, beside integrals; the
same bits on any ranks, threads and patches; and what is said where there are none."""
import itertools
import math
import pathlib
import subprocess
import sys

import run_series
from run_series import columns

DECK = """trellis: 1
grid: {{cells: {cells}, length: {length}, periodic: {periodic}}}
equations:
  u: {{location: {location}, initial: "{formula}", ddt: 0}}
time: {{dt: 1, steps: 1}}
output:
  fields: []
  series:
    every: {{steps: 1}}
    values: {{all: "integral(u)", {values}}}
    profiles: {{{profiles}}}
"""


def run(ranks=1, *options, **deck):
    """The last line of the series by name, and the text of the file."""
    text = DECK.format(**{"location": "cell", "values": "", "length": "[1, 2, 3]", **deck})
    return run_series.run(text, ranks, *options)


def points(n, length, on_face, periodic):
    """Coordinates along an axis, and the weight of each point in a mean."""
    if not on_face:
        return [((i + 0.5) * length / n, 1 / n) for i in range(n)]
    return [(i * length / n, (0.5 if not periodic and i in (0, n) else 1) / n) for i in range(n + (not periodic))]


def known_means():
    """A function without symmetry, at all locations, with and without sides: means as a plain sum gives them."""
    cells, length = [5, 4, 3], [1, 2, 3]
    profiles = ", ".join(f"{a.upper()}: {{of: u, along: {a}}}, S{a}: {{of: \"u^2 + x\", along: {a}}}" for a in "xyz")
    cases = itertools.product(("cell", "yface", "zedge", "node"), ([True, False, True], [False, True, False]))
    for location, periodic in cases:
        faces = {"cell": "", "yface": "y", "zedge": "xy", "node": "xyz"}[location]
        row, text = run(cells=cells, periodic=str(periodic).lower(), location=location, formula="x*y^2 + 3*y*z + x^3",
                        profiles=profiles)
        if row is None:
            sys.exit(text)
        axis = [points(n, l, "xyz"[a] in faces, periodic[a]) for a, (n, l) in enumerate(zip(cells, length))]
        for a, name in enumerate("xyz"):
            plain = [0.0] * len(axis[a])
            square = [0.0] * len(axis[a])
            for i, j, k in itertools.product(*(range(len(points)) for points in axis)):
                (x, p), (y, q), (z, r) = axis[0][i], axis[1][j], axis[2][k]
                weight, f = [q * r, p * r, p * q][a], x * y * y + 3 * y * z + x**3
                plain[(i, j, k)[a]] += weight * f
                square[(i, j, k)[a]] += weight * (f * f + x)
            for key, wanted in (name.upper(), plain), ("S" + name, square):
                ours = columns(row, key)
                if len(ours) != len(wanted) or any(abs(o - w) > 1e-13 * max(wanted) for o, w in zip(ours, wanted)):
                    sys.exit(f"{location}, {periodic}, {key}: {ours} instead of {wanted}")
        total = math.fsum(m * w for m, (_, w) in zip(columns(row, "Y"), axis[1])) * 6
        if abs(total - row["all"]) > 1e-13 * total:
            sys.exit(f"{location}: the integral is {row['all']}, of means {total}")


def same_bits():
    """However the domain is cut up."""
    deck = {"cells": [13, 9, 7], "periodic": "[false, true, true]", "location": "xface",
            "formula": "fmod(7.13*x*x + 3.7*y*y + 1.9*x*y + z, 1) - 0.4",
            "profiles": "X: {of: u, along: x}, Y: {of: \"at(u, cell)^2\", along: y}, Z: {of: u/3, along: z}"}
    text = run(**deck)[1]
    for case in ((1, "--threads", "2"), (2,), (3, "--set", "grid.patches=[2, 3, 1]")):
        if run(*case, **deck)[1] != text:
            sys.exit(f"other bits: {case}")
    if len(text.splitlines()) != 3 or text.split(",")[3] != "X_0":
        sys.exit(text)


def refusals():
    """What cannot be is said, with what to do."""
    for profiles, message in (
        ("U: {of: u, along: z}", "the profile 'U' is along z, which a grid of 2 dimensions does not have: use another"),
        ("U: {of: grad(u), along: x}", "the profile 'U' is of one value, and this is a vector: use its components"),
        ("U: {of: q, along: x}", "nothing computes 'q'"),
        ("U: {of: u}", "'along' is missing"),
        ("all: {of: u, along: x}", "a value or a spectrum of the series is named 'all', too; choose another name"),
        ("v: {of: u, along: x}", "a value of the series is named 'v_1', as is a column of the profile 'v'; choose"),
    ):
        row, text = run(cells=[8, 6], length="[1, 1]", periodic="true", formula="x", profiles=profiles, values="v_1: 1")
        if row is not None or message not in text:
            sys.exit(f"{profiles}: {text}")


MEANS = """trellis: 1
grid: {cells: [6, 4], periodic: [true, true]}
equations: {u: {initial: "x", ddt: "-u + cos(5*t)*y"}}
time: {dt: 0.1, steps: 13, method: ssprk2}
output:
  fields: []
  series: {every: {steps: 3}, values: {a: "integral(u)"}, profiles: {U: {of: u^2, along: y}}, means: {from: 0.25}}
  checkpoint: {}
"""


def lines(name):
    """A file of series as a list of rows."""
    head, *rows = pathlib.Path("out", name).read_text(encoding="utf-8").splitlines()
    return head, [[float(value) for value in row.split(",")] for row in rows]


def means_over_time():
    """Running means are those of the lines since then; with a restart on the way they have the same bits."""
    pathlib.Path("means.yaml").write_text(MEANS, encoding="utf-8")

    def go(*options, ranks=1):
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
        done = subprocess.run([*command, run_series.TRELLIS, "run", "means.yaml", "--quiet", "--set",
                               "output.directory=out", "--set", "run.compile=never", *options],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        means = pathlib.Path("out/means.csv")
        return done.stderr, means.read_text(encoding="utf-8") if means.exists() else ""

    text = go()[1]
    head, series = lines("series.csv")
    since = [row for row in series if row[1] >= 0.25]
    if lines("means.csv")[0] != head or len(since) != 5:
        sys.exit(f"{head}: {len(since)} lines")
    for n, row in enumerate(lines("means.csv")[1]):
        pairs = list(zip(since[:n], since[1:n + 1]))
        for k in range(2, len(row)):
            mean = sum((b[1] - a[1])*(a[k] + b[k])/2 for a, b in pairs)/(row[1] - since[0][1]) if n else since[0][k]
            if row[:2] != since[n][:2] or abs(row[k] - mean) > 1e-14:
                sys.exit(f"line {n}, column {k}: {row[k]} instead of {mean}")
    go("--steps", "8")
    if go("--restart", "latest", ranks=2)[1] != text:
        sys.exit("other means after a restart")
    warning = go("--set", "time.end=1", "--set", "output.series.means.from=2")[0]
    if "there are no means from t = 2 on: time ends at 1" not in warning:
        sys.exit(warning)
    path = pathlib.Path("means.yaml")
    path.write_text(MEANS.replace(", means: {from: 0.25}", ""), encoding="utf-8")
    go("--steps", "8")
    text = go("--restart", "latest")
    if "means.csv" in text[0] or text[1]:
        sys.exit(f"means that no run has asked for: {text}")
    path.write_text(MEANS, encoding="utf-8")
    text = go("--steps", "8")[1]
    path.write_text(MEANS.replace("  series:", "  #"), encoding="utf-8")
    said, left = go("--restart", "latest")
    if left != text or "'out/means.csv' does not go on" not in said or "'out/series.csv' does not go on" not in said:
        sys.exit(f"what a restart does not write: {said}")
    if go()[1] or pathlib.Path("out/series.csv").exists():
        sys.exit("files of an earlier run stay")


known_means()
same_bits()
refusals()
means_over_time()

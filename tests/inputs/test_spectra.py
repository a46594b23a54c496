#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Spectra as series: of waves whose energy is known, of fields at random beside a plain sum of waves, on any ranks and
threads; and what is said where there are none."""
import cmath
import json
import math
import os
import pathlib
import sys

import run_series
from run_series import columns

SPECTRA = """trellis: 1
grid: {{cells: {cells}, length: {length}, periodic: {periodic}}}
expressions: {{{expressions}}}
equations:
  u: {{location: {location}, initial: "{formula}", ddt: 0}}
  v: {{initial: "sin(2*pi*x)", ddt: 0}}
time: {{dt: 1, steps: 1}}
output:
  fields: [{fields}]
  series:
    every: {{steps: 1}}
    values: {{half: "integral(u^2)/2", {values}}}
    spectra: {{{spectra}}}
"""


def run(ranks=1, threads=1, **deck):
    """The last line of the series by name, and the text of the file."""
    text = SPECTRA.format(**{"location": "cell", "values": "", "length": "[1, 1]", "fields": "", "expressions": "",
                             **deck})
    without = [key for key in ("values", "spectra") if deck.get(key, "") is None]
    text = "".join(line for line in text.splitlines(True) if line.split(":")[0].strip() not in without)
    return run_series.run(text, ranks, "--threads", str(threads))


def check(what, ours, theirs, bound=1e-14):
    """Leave unless two lists agree."""
    if len(ours) != len(theirs) or any(abs(a - b) > bound for a, b in zip(ours, theirs)):
        sys.exit(f"{what}: {ours} instead of {theirs}")


def known_waves():
    """Two waves and a mean: along the axes, by the size of the wave vector, and in a box that is longer along y."""
    formula = "0.2 + 0.7*sin(2*pi*x + 0.3) + 0.4*cos(2*pi*(2*x + y))"
    spectra = "E: {of: u}, X: {of: [u], along: x}, Y: {of: u, along: y}, B: {of: [u, v]}"
    for location in ("cell", "xface", "node"):
        row = run(cells=[8, 6], periodic="true", location=location, formula=formula, spectra=spectra)[0]
        check("shells", columns(row, "E"), [0.02, 0.1225, 0.04, 0, 0, 0])
        check("along x", columns(row, "X"), [0.02, 0.1225, 0.04, 0, 0])
        check("along y", columns(row, "Y"), [0.1425, 0.04, 0, 0])
        check("both", columns(row, "B"), [0.02, 0.3725, 0.04, 0, 0, 0])
    row = run(cells=[4, 12], length="[1, 3]", periodic="[true, true]", formula="sin(2*pi*x) + cos(2*pi*y/3)",
              spectra="E: {of: u}")[0]
    check("a long box", columns(row, "E"), [0, 0.25, 0, 0.25, 0, 0, 0, 0, 0])
    row = run(cells=[6, 4], periodic="[true, false]", formula="y*sin(4*pi*x)", spectra="E: {of: u, along: x}")[0]
    check("walls across y", columns(row, "E"), [0, 0, (1 + 9 + 25 + 49) / 64 / 16, 0])
    row = run(cells=[5], length=[1], periodic="true", formula="1 + cos(4*pi*x)", spectra="E: {of: u}")[0]
    check("one dimension", columns(row, "E"), [0.5, 0, 0.25])
    row = run(cells=[8, 6], periodic="true", formula="x", fields="w", spectra="E: {of: w}, X: {of: w, along: x}",
              expressions='w: ["0.2 + 0.7*sin(2*pi*x + 0.3)", "0.8*cos(4*pi*y)"]')[0]
    check("a vector", columns(row, "E"), [0.02, 0.1225, 0.16, 0, 0, 0])
    check("a vector along x", columns(row, "X"), [0.18, 0.1225, 0, 0, 0])
    row = run(cells=[5], length=[1], periodic="true", formula="1", spectra="E: {of: u}", values=None)[0]
    check("a series of spectra alone", columns(row, "E"), [0.5, 0, 0])


def random_fields():
    """Values without order, beside a sum over all waves; half of the mean square in all; the same on any ranks."""
    values = [[math.fmod(7.13 * i * i + 3.7 * j * j + 1.9 * i * j, 1) - 0.4 for i in range(10)] for j in range(7)]
    formula = "fmod(7.13*I*I + 3.7*J*J + 1.9*I*J, 1) - 0.4".replace("I", "(10*x - 0.5)").replace("J", "(7*y - 0.5)")
    wanted = [0.0] * 7
    for m in range(10):
        for n in range(7):
            total = sum(value * cmath.exp(-2j * cmath.pi * (m * i / 10 + n * j / 7)) for j, row in enumerate(values)
                        for i, value in enumerate(row)) / 70
            wanted[int(math.hypot(min(m, 10 - m), min(n, 7 - n)) + 0.5)] += abs(total)**2 / 2
    deck = {"cells": [10, 7], "periodic": "true", "formula": formula, "spectra": "E: {of: u}, Y: {of: u, along: y}"}
    row, text = run(**deck)
    if row is None:
        sys.exit(text)
    check("random values", columns(row, "E"), wanted, 1e-9)
    check("half of the mean square", [sum(columns(row, "E")), sum(columns(row, "Y"))], 2 * [row["half"]], 1e-15)
    for ranks, threads in ((1, 2), (2, 1), (3, 1)):
        if run(ranks, threads, **deck)[1] != text:
            sys.exit(f"other bits on {ranks} ranks of {threads} threads")
    deck = {"cells": [6, 5, 9], "length": "[1, 1, 1]", "periodic": "true", "formula": formula + " + z",
            "location": "zface", "spectra": "E: {of: [u, v]}, Z: {of: u, along: z}"}
    texts = {run(ranks, threads, **deck)[1] for ranks, threads in ((1, 1), (1, 2), (3, 1))}
    if len(texts) > 1:
        sys.exit("other bits in three dimensions")


def rows_that_come_later():
    """On several ranks rows come while steps go on: the same file where rows are due at each step or not, and where a
    later step fails, and no wait for a row but for the memory of the first ones. In the short form cases have two and
    three ranks in turn."""
    deck = """trellis: 1
grid: {cells: [12, 10], periodic: true}
equations:
  u: {initial: "sin(2*pi*x)*cos(4*pi*y)", ddt: "0.01*laplacian(u) + FAULT"}
time: {dt: 0.01, steps: 23}
output:
  every: {steps: 9}
  series: {every: {steps: EVERY}, VALUES spectra: {E: {of: u}, X: {of: u, along: x}}}
"""
    fault = "0*log(0.152 - t)"
    cases = ((1, "values: {},"), (5, "values: {},"), (1, "values: {two: 2}, solvers: true,"),
             (2, "values: {half: \"integral(u^2)/2\"}, profiles: {P: {of: u, along: y}},"))
    for number, (every, values) in enumerate(cases):
        text = deck.replace("EVERY", str(every)).replace("VALUES", values)
        for fails in (False, True):
            for ranks in (1, 2, 3) if "TRL_TEST_LONG" in os.environ else (1, 2 + (number + fails) % 2):
                row, said = run_series.run(text.replace("FAULT", fault if fails else "0"), ranks, "--threads", "1")
                rows = pathlib.Path("out/series.csv").read_text(encoding="utf-8")
                if (row is None) != fails or (fails and "is NaN at cell" not in said):
                    sys.exit(f"{ranks} ranks, fails: {fails}: {said}")
                if ranks == 1:
                    whole = rows
                if rows != whole:
                    sys.exit(f"{ranks} ranks have other rows than one, fails: {fails}:\n{rows}")
        steps = len(whole.splitlines()) - 1
        if steps != 1 + 15 // every:
            sys.exit(f"{steps} rows of each {every} steps before step 16 fails")
    waits = []
    for steps in (40, 80):
        text = deck.replace("EVERY", "1").replace("VALUES", "values: {},").replace("FAULT", "0").replace("9}", "99}")
        run_series.run(text, 2, "--threads", "1", "--set", f"time.steps={steps}")
        waits.append(json.loads(pathlib.Path("out/report.json").read_text(encoding="utf-8"))["comm"]["waits"])
    if waits[1] > waits[0] + 20:
        sys.exit(f"40 rows more wait {waits[1] - waits[0]} times more")


def refusals():
    """What cannot be is said, with what to do."""
    for spectra, periodic, message in (
        ("E: {of: u}", "[true, false]", "the spectrum 'E' is along y, which is not periodic: use `along` with a"),
        ("E: {of: u, along: z}", "true", "along z, which a grid of 2 dimensions does not have: use another axis"),
        ("E: {of: [u, q]}", "true", "'q' in the spectrum 'E' is neither an equation nor a field that is written: add"),
        ("E: {of: []}", "true", "'output.series.spectra.E.of' is an empty list"),
        ("half: {of: u}", "true", "a value of the series is named 'half', too; choose another name"),
        ("v: {of: u}", "true", "a value of the series is named 'v_1', as is a column of the spectrum 'v'; choose"),
    ):
        row, text = run(cells=[8, 6], periodic=periodic, formula="x", spectra=spectra, values="v_1: 1")
        if row is not None or message not in text:
            sys.exit(f"{spectra}: {text}")
    row, text = run(cells=[8, 6], periodic="true", formula="x", spectra=None, values=None)
    message = "'output.series' has no columns: add `values: {...}`, `spectra: {...}`, `profiles: {...}` or "
    message += "`solvers: true`"
    if row is not None or message not in text:
        sys.exit(f"no columns: {text}")


known_waves()
random_fields()
rows_that_come_later()
refusals()

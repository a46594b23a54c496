#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""What no step changes, of a file or with boundary values of its own, is evaluated once: steps have no task for it, and
several of them are taken in one pass, on the same bits as where it is evaluated in each."""
import json
import os
import pathlib
import sys

import run_deck

DECK = """trellis: 1
grid: {cells: [24, 20], periodic: [true, false]}
expressions:
  k: {KIND, boundary: {y-: {neumann: 0.5}, y+: {dirichlet: "1 + 0.3*cos(2*pi*x)"}}}
equations:
  T: {initial: "sin(2*pi*x)*y", ddt: "div(at(k, faces)*grad(T))", boundary: {y-: {dirichlet: 0}, y+: {neumann: 0}}}
time: {dt: 1e-4, steps: 24, method: ssprk3}
output: {series: {values: {sum: "integral(k*T)"}}, checkpoint: {every: {steps: 12}}}
"""
FORMULA = "1 + 0.5*sin(2*pi*x)*cos(3*y)"
KINDS = {"each stage": f'formula: "{FORMULA} + 0*t", location: cell', "formula": f'formula: "{FORMULA}"',
         "file": "type: file, computes: [k], parameters: {path: k.nc, dataset: k}"}
ONE = ("run.compile=never", "run.threads=1")
WAYS = [("one patch", ONE, 1), ("passes", (*ONE, "run.time_blocking=2"), 1),
        ("patches", (*ONE, "grid.patches=[2, 2]", "run.time_blocking=3"), 1),
        ("ranks", (*ONE, "run.time_blocking=2"), 2),
        ("devices", (*ONE, "grid.patches=[2, 1]", "run.placement=devices"), 1)]

run_deck.run(f'trellis: 1\ngrid: {{cells: [24, 20]}}\nequations: {{k: {{initial: "{FORMULA}", ddt: 0}}}}\n'
             "time: {dt: 1, steps: 0}\noutput: {series: {values: {none: 0}}}\n")
pathlib.Path("out/fields/00000000.nc").rename("k.nc")
wanted, tasks = None, {}
for kind, text in KINDS.items():
    for way, settings, ranks in WAYS:
        os.environ["TRL_MOCK_DEVICES"] = "2" if way == "devices" else "0"
        found = run_deck.run(DECK.replace("KIND", text), settings, ranks)[:2]
        report = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))
        wanted = wanted or found
        if found != wanted:
            sys.exit(f"{kind}, {way}: {found} in place of {wanted}")
        tasks[way, kind] = report["tasks_per_step"]
        if kind != "each stage" and tasks[way, kind] >= tasks[way, "each stage"]:
            sys.exit(f"{kind}, {way}: {tasks[way, kind]} tasks a step")
        if "run.time_blocking" in str(settings) and not report["steps_in_passes"]:
            sys.exit(f"{kind}, {way}: no step was taken in a pass")
    again = run_deck.run(DECK.replace("KIND", text), ONE, 1, ["--restart", "out/checkpoint/00000012.nc"])
    if (again[0], again[1][-1]) != (wanted[0], wanted[1][-1]):
        sys.exit(f"{kind}: a restart gives {again[:2]} in place of {wanted}")

# What has the time, its step or the solution in it is evaluated in each step.
for word in ("dt", "integral(T)", "old(T)"):
    run_deck.run(DECK.replace("KIND", f'formula: "{FORMULA} + 0*{word}", location: cell'), ONE)
    report = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))
    if report["tasks_per_step"] <= tasks["one patch", "formula"]:
        sys.exit(f"{word}: {report['tasks_per_step']} tasks a step")

# Named values without boundary values are stored where that takes less time, in any case with such a balance.
seen = []
for text in (f"{FORMULA} + 0*t", FORMULA):
    deck = DECK[:DECK.index("  k:")] + f'  k: {{formula: "{text}", location: cell}}\n' + DECK[DECK.index("equations"):]
    for settings, ranks in ((ONE, 1), ((*ONE, "run.time_blocking=2"), 2)):
        found = run_deck.run(deck, (*settings, "run.balance=1e-6"), ranks)[:2]
        report = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))
        seen.append((found, ranks, report["tasks_per_step"]))
if any(found != seen[0][0] for found, _, _ in seen) or seen[2][2] >= seen[0][2]:
    sys.exit(f"named values: {seen}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300 labels=gpu
"""Several steps in one launch of a GPU: random equations, sides and grids of some tiles, against the CPU, to the bit;
values that are not finite, with the same message; and what is refused, with its reason. Emulated GPUs are used where
there is no other."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import all_decks
import test_gpu_random

LONG = "TRL_TEST_LONG" in os.environ
TILES = {2: (36, 36), 3: (70, 40), 4: (72, 40)}  # by the steps of a launch: the least grid along x and y


def sides(rng, axis):
    """Conditions of an axis; none if it is periodic."""
    words = ["{dirichlet: 0.5}", "{neumann: 0}", "{neumann: \"0.2*cos(t)\"}", "{dirichlet: \"x + 2*y - z\"}",
             "{robin: {a: 1, b: 0.5, c: 2}}"]
    return [f"{'xyz'[axis]}{side}: {rng.choice(words)}" for side in "-+"]


def write(rng, most):
    """A deck, and the steps of a launch."""
    steps = rng.randint(2, most)
    cells = [TILES[steps][0] + rng.choice([0, 1, 9, 30]), TILES[steps][1] + rng.choice([0, 3, 20]),
             rng.choice([16, 17, 23])]
    periodic = [rng.random() < 0.5 for _ in range(3)]
    terms = rng.sample(["0.02*laplacian(T)", "div(0.01*grad(T))", "-0.3*cddx(T)", "0.2*cddy(T) + 0.1*cddz(T)",
                        "0.1*sin(t)*y", "(-1)*T^3", "z*T", "exp(-x)*cos(T)", "t*T"], 4)
    conditions = ", ".join(c for a in range(3) if not periodic[a] for c in sides(rng, a))
    return (f"trellis: 1\ngrid: {{cells: {cells}, periodic: {json.dumps(periodic)}}}\nequations:\n"
            f"  T:\n    initial: \"sin(2*pi*x)*cos(2*pi*y) + z + 0.1*random({rng.randint(1, 99)})\"\n"
            f"    ddt: \"{' + '.join(terms)}\"\n    boundary: {{{conditions}}}\n"
            f"time: {{method: euler, dt: 1e-5, steps: {rng.choice([9, 12, 13])}}}\n"
            f"output:\n  fields: []\n  series: {{every: {{steps: {rng.choice([4, 7, 20])}}}, "
            "values: {m: \"integral(T)\"}}\n"), steps


def run(deck, *settings):
    """The status, report and words of a run."""
    line = [all_decks.TRELLIS, "run", str(deck), "--quiet", "--report", "report.json", "--set", "output.directory=out"]
    for setting in settings:
        line += ["--set", setting]
    pathlib.Path("report.json").unlink(missing_ok=True)
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=250)
    report = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))
    series = pathlib.Path("out/series.csv")
    return done.returncode, report, done.stderr, series.read_bytes() if series.exists() else b""


def compare(number):
    """A random deck; how many steps were taken several at a time."""
    rng = random.Random(number)
    text, steps = write(rng, 4 if LONG or number == 0 else 2)
    deck = pathlib.Path(f"steps{number}.yaml")
    deck.write_text(text, encoding="utf-8")
    wanted = run(deck, "run.devices=cpu", "run.compile=never")
    found = run(deck, "run.devices=[0]", "run.placement=devices", f"run.time_blocking={steps}")
    if wanted[0] != 0:
        sys.exit(f"{deck}: {wanted[2]}")
    for what, a, b in (("status", wanted[0], found[0]), ("series", wanted[3], found[3]),
                       ("fields", wanted[1]["fields"], found[1]["fields"])):
        if a != b:
            sys.exit(f"{deck}: {steps} steps in a launch: {what}: {b}, not {a}; {found[2]}")
    return found[1]["steps_in_passes"]


def check_nonfinite():
    """What is not finite is reported with the step and cell of single steps."""
    deck = pathlib.Path("nonfinite.yaml")
    deck.write_text("trellis: 1\ngrid: {cells: [40, 40, 16], periodic: true}\nequations:\n"
                    "  T: {initial: \"1 + x*y\", ddt: \"laplacian(T)/T + exp(T)\"}\n"
                    "time: {method: euler, dt: 0.05, steps: 40}\noutput: {fields: []}\n", encoding="utf-8")
    words = []
    for settings in (["run.devices=cpu", "run.compile=never"],
                     ["run.devices=[0]", "run.placement=devices", "run.time_blocking=2"]):
        status, _, said, _ = run(deck, *settings)
        words.append((status, [line for line in said.splitlines() if "step" in line and "T" in line]))
    if words[0] != words[1] or words[0][0] == 0 or not words[0][1]:
        sys.exit(f"what is not finite: {words[1]}, not {words[0]}")


def check_refused():
    """The plan says how many steps, or why it is one."""
    deck = pathlib.Path("plan.yaml")
    text = ("trellis: 1\ngrid: {cells: [80, 48, 16], periodic: true}\n"
            "equations: {T: {initial: x, ddt: \"laplacian(T)\"}}\n"
            "time: {method: euler, dt: 1e-6, steps: 1000}\noutput: {fields: []}\n")
    for change, words in ((("", ""), "up to 4 steps in one launch on the GPU, tiles of 72 x 40 points"),
                          (("euler", "rk4"), "one step at a time: a step is more than one kernel"),
                          (("laplacian(T)", "ddx(ddx(ddx(ddx(T))))"), "nearest neighbours"),
                          (("80, 48", "20, 20"), "one step at a time: the grid is smaller than a tile")):
        deck.write_text(text.replace(*change), encoding="utf-8")
        line = [all_decks.TRELLIS, "plan", str(deck), "--set", "run.devices=[0]"]
        said = subprocess.run(line, capture_output=True, text=True, check=False).stdout
        if words not in said:
            blocks = re.findall(r"time blocks.*", said)
            sys.exit(f"{change}: the plan says {blocks}, not '{words}'")


def main():
    """All of it."""
    test_gpu_random.find_gpus()
    taken = sum(compare(number) for number in range(40 if LONG else 3))
    if taken < 16:  # of those that are not refused
        sys.exit(f"{taken} steps were taken several at a time")
    check_nonfinite()
    check_refused()


main()

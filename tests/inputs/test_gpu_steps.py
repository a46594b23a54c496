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
import random_steps
import test_gpu_random

LONG = "TRL_TEST_LONG" in os.environ
SHORT = [(3, 1, 4, "euler"), (3, 2, 2, "euler"), (3, 1, 3, "ssprk3"), (2, 2, 6, "euler"), (2, 2, 2, "ssprk2"),
         (2, 1, 8, "euler")]  # axes, equations, levels, method


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


def compare(number, gpus):
    """A random deck on one GPU, and in 3-D in patches behind one another, on all."""
    rng = random.Random(number)
    dim, equations, steps, method = SHORT[number % len(SHORT)]
    if LONG:
        dim, equations, steps, method = random_steps.draw(rng)
    deck = pathlib.Path(f"steps{number}.yaml")
    deck.write_text(random_steps.write(rng, dim, equations, steps, method), encoding="utf-8")
    wanted = run(deck, "run.devices=cpu", "run.compile=never")
    if wanted[0] != 0:
        sys.exit(f"{deck}: {wanted[2]}")
    check_steps(deck, steps, wanted, "run.devices=[0]")
    if dim == 3:
        which = list(range(rng.randint(1, gpus)))
        check_steps(deck, steps, wanted, f"run.devices={which}", f"grid.patches=[1, 1, {rng.choice([2, 3, 4])}]")


def check_steps(deck, steps, wanted, *settings):
    """On GPUs, against the CPU."""
    found = run(deck, "run.placement=devices", f"run.time_blocking={steps}", *settings)
    for what, a, b in (("status", wanted[0], found[0]), ("series", wanted[3], found[3]),
                       ("fields", wanted[1]["fields"], found[1]["fields"])):
        if a != b:
            sys.exit(f"{deck} {settings}: {steps} steps in a launch: {what}: {b}, not {a}; {found[2]}")
    staggered = "xface" in deck.read_text(encoding="utf-8")  # then fields need not lie in memory alike
    if found[1]["steps_in_passes"] < steps and not staggered:
        sys.exit(f"{deck} {settings}: no {steps} steps were taken at a time: {found[2]}")


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
    """The plan says how many steps, or why it is one; the kernel is among those of GPUs."""
    deck = pathlib.Path("plan.yaml")
    text = ("trellis: 1\ngrid: {cells: [80, 48, 16], periodic: true}\n"
            "equations: {T: {initial: x, ddt: \"laplacian(T)\"}}\n"
            "time: {method: euler, dt: 1e-6, steps: 1000}\noutput: {fields: []}\n")
    for change, words in ((("", ""), "up to 4 steps in one launch on the GPU, tiles of 72 x 40 points"),
                          (("euler", "rk4"), "one step at a time: stages keep more than one value of a field"),
                          (("euler", "ssprk3"), "all 3 stages of a step in one launch on the GPU"),
                          (("laplacian(T)", "ddx(ddx(ddx(ddx(T))))"), "nearest neighbours"),
                          (("80, 48, 16", "80"), "one step at a time: the grid is 1-D"),
                          (("}}", "}, U: {initial: x, ddt: T}}"), "up to 3 steps in one launch on the GPU"),
                          (("80, 48, 16", "80, 64"), "up to 4 steps in one launch on the GPU, tiles of 64 x 64"),
                          (("], p", "], patches: [1, 1, 2], p"), "up to 4 steps in one launch on the GPU"),
                          (("], p", "], patches: [1, 1, 8], p"), "up to 2 steps in one launch on the GPU"),
                          (("], p", "], patches: [1, 2, 1], p"), "patches cut the grid along other axes than z"),
                          (("80, 48", "20, 20"), "one step at a time: the grid is smaller than a tile")):
        deck.write_text(text.replace(*change), encoding="utf-8")
        line = [all_decks.TRELLIS, "plan", str(deck), "--set", "run.devices=[0]"]
        said = subprocess.run(line, capture_output=True, text=True, check=False).stdout
        if words not in said:
            blocks = re.findall(r"time blocks.*", said)
            sys.exit(f"{change}: the plan says {blocks}, not '{words}'")
    for steps in (0, 1, 3):
        deck.write_text(text + f"run: {{time_blocking: {steps or 'auto'}}}\n", encoding="utf-8")
        said = subprocess.run([all_decks.TRELLIS, "kernels", str(deck), "--device", "gpu"], capture_output=True,
                              text=True, check=True).stdout
        if (f"trl_kernel_steps_tile<1, {steps or 4}, " in said) != (steps != 1):
            sys.exit(f"kernels of {steps} steps in a launch: {said}")


def check_trace():
    """A trace shows each launch, with its steps, among the calls of the device."""
    deck = pathlib.Path("traced.yaml")
    deck.write_text("trellis: 1\ngrid: {cells: [80, 80], periodic: true}\n"
                    "equations: {T: {initial: x, ddt: \"laplacian(T)\"}}\n"
                    "time: {method: euler, dt: 1e-6, steps: 12}\noutput: {fields: []}\n", encoding="utf-8")
    line = [all_decks.TRELLIS, "run", str(deck), "--quiet", "--trace", "trace.json", "--report", "report.json",
            "--set", "run.devices=[0]", "--set", "run.placement=devices", "--set", "run.time_blocking=4"]
    subprocess.run(line, check=True, timeout=250)
    events = json.loads(pathlib.Path("trace.json").read_text(encoding="utf-8"))["traceEvents"]
    passes = [e for e in events if e["name"] == "4 steps in one launch" and e["cat"] == "device"]
    taken = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))["steps_in_passes"]
    if not taken or len(passes) != taken // 4 or any(e["dur"] <= 0 for e in passes):
        sys.exit(f"the trace of {taken} steps, 4 at a time, has {passes}")


def main():
    """All of it."""
    gpus = test_gpu_random.find_gpus()
    for number in range(60 if LONG else len(SHORT)):
        compare(number, gpus)
    check_nonfinite()
    check_refused()
    check_trace()


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Decks on the cores of this machine, on a GPU and as placed by the command, on small and large grids; on 1, 2, 4, ...
GPUs, by one process and by a rank for each GPU, with and without a share for the cores: steps' times, efficiencies and
hashes, as tables of Markdown; what the host does for a step on emulated GPUs that do nothing; then what `trellis bench
mpi` and figure 4.7 of `trellis bench scalability` say of the cores.

One call is enough for a machine that is there for a short time: --build compiles the command, and --minutes is how long
all parts may take together. A part that would begin later is left out, one that takes longer is cut off, and runs are
repeated less often; each is said. A step's time is the median of a run's last steps. A problem whose hashes differ ends
the script with status 1, after the other problems."""
import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2]))
TRELLIS = os.environ.get("TRELLIS", str(ROOT / "build/release/trellis"))
HEAT = """equations:
  T: {initial: "sin(2*pi*x)*sin(2*pi*y)*cos(2*pi*z)", ddt: "laplacian(T)"}
time: {method: euler, dt: 1.0e-9, end: 1.0}
output: {fields: []}
"""
TRANSPORT = """expressions: {velocity: [1, 0.5, 0.25]}
equations:
  "phi{i}":
    for: {i: 1..16}
    initial: "i*sin(2*pi*x) + cos(2*pi*y)*cos(2*pi*z)"
    ddt: "div(0.001*i*grad(phi{i}) - advective_flux(phi{i}, velocity))"
time: {method: euler, dt: 1.0e-7, end: 1.0}
output: {fields: []}
"""
MANY = """trellis: 1
grid: {cells: [16, 16, 16], periodic: [true, true, true]}
equations:
  "phi{i}": {for: {i: 1..COUNT}, initial: "i*sin(2*pi*x)", ddt: "0.001*i*laplacian(phi{i})"}
time: {method: ssprk2, dt: 1.0e-7, end: 1.0}
output: {fields: []}
run: {threads: 1, nan_check: false, passes: {groups: false}}
"""

PARTS = ("placements", "gpus", "host", "mpi", "cores")
CORES_SHARE = 0.6  # of the time for all: GPUs get no more, where cores are measured, too


@dataclasses.dataclass
class Problem:
    """A deck on a cube, which grows with the GPUs (weak) or does not."""
    name: str
    text: str
    cells: int
    weak: bool
    rate: float  # equation updates a second that a GPU may be expected to make, which chooses the steps
    equations: int
    bar: float  # of ideal


GPUS = (Problem("heat, 512^3 for each GPU", HEAT, 512, True, 150e9, 1, 0.97),
        Problem("heat, 768^3", HEAT, 768, False, 150e9, 1, 0.92),
        Problem("transport of 16, 256^3", TRANSPORT, 256, False, 130e9, 16, 0.92))


def grid(problem, count, options):
    """Cells along each axis; each GPU has a slab."""
    cells = [max(8, int(problem.cells * options.scale))] * 3
    if problem.weak:
        cells[2] *= count
    return cells


def choose_steps(problem, most, options):
    """As many for all counts up to the most, so that hashes are those of the same time."""
    cells = max(8, int(problem.cells * options.scale)) ** 3
    seconds = options.seconds * (1 if problem.weak else math.sqrt(most))
    return max(50, int(seconds * problem.rate / (cells * problem.equations)))


def run(deck, steps, ranks, threads, settings, environment):
    """The report of a run."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        line = [TRELLIS, "run", str(deck), "--quiet", "--steps", str(steps), "--report", str(report)]
        for setting in (f"output.directory={folder}/out", f"run.threads={threads}", *settings):
            line += ["--set", setting]
        if ranks > 1:
            line = ["mpirun", "-n", str(ranks), "--bind-to", "none", *line]
        done = subprocess.run(line, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
                              timeout=600)
        if done.returncode:
            sys.exit(f"{' '.join(line)}: {done.stderr}")
        return json.loads(report.read_text(encoding="utf-8"))


def measure(problem, cells, steps, ranks, threads, settings, environment, options):
    """Seconds of a step in each run: their median, least and most; the hashes of the fields, and which executors have
    tasks of a step."""
    with tempfile.TemporaryDirectory() as folder:
        deck = pathlib.Path(folder) / "deck.yaml"
        deck.write_text(f"trellis: 1\ngrid: {{cells: {cells}, periodic: [true, true, true]}}\n{problem.text}",
                        encoding="utf-8")
        found, hashes, tasks = [], set(), None
        for number in range(options.runs):
            if number > 0 and time.monotonic() > options.gpus_end:
                break
            report = run(deck, steps, ranks, threads, settings, environment)
            found.append(report["step_s"]["median"])
            hashes.add(tuple(field["hash"] for field in report["fields"].values()))
            tasks = report.get("placement", {}).get("tasks")
        return statistics.median(found), min(found), max(found), hashes, tasks


def table(title, columns):
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)


def same(problem, hashes):
    """Whether fields do not differ. Runs of a problem that grows are held against those of its size."""
    well = all(len(found) == 1 for found in hashes.values())
    print(f"\n{problem.name}: hashes {'are the same' if well else f'differ: {hashes}'}", flush=True)
    return well


def ways_of(count, options):
    """How a problem is done on so many GPUs: the name, whether cores take part, and settings of the environment."""
    ways = [("process", False, {}), ("process, cores too", True, {})]
    if count > 1:
        ways.append(("ranks", False, {}))
    if count > 1 and options.compare:
        ways.append(("process, halos and rims behind inner points", False, {"TRELLIS_GPU_URGENT": "off"}))
        ways.append(("process, copies by the driver", False, {"TRELLIS_GPU_COPIES": "off"}))
        ways.append(("process, kernel by kernel", False, {"TRELLIS_GPU_GRAPHS": "off"}))
    return ways


def on_gpus(counts, options, results):
    """A table for each problem; whether all runs of each have the same bits."""
    well = True
    for problem in GPUS:
        if options.only and options.only not in problem.name:
            continue
        table(f"{problem.name}: at least {problem.bar} of ideal",
              ["GPUs", "by", "a step, ms", "10^9 updates/s", "of ideal", "tasks of cores and GPUs"])
        first, hashes, steps = None, {}, choose_steps(problem, counts[-1], options)
        for count in counts:
            for way, cores, environment in ways_of(count, options):
                cells = grid(problem, count, options)
                ranks = count if way == "ranks" else 1
                if not cores:
                    environment = {**environment, "TRL_PLACEMENT": "devices"}
                settings = [f"run.devices={list(range(count))}", "run.time_blocking=1"]  # as several GPUs do
                if count > 1 and ranks == 1:
                    settings.append(f"grid.patches=[1,1,{count}]")
                median, least, most, found, tasks = measure(
                    problem, cells, steps, ranks, max(1, options.cores // ranks), settings, environment, options)
                first = first or median
                ideal = (first if problem.weak else first / count) / median
                hashes.setdefault(tuple(cells), set()).update(found)
                updates = math.prod(cells) * problem.equations
                print(f"| {count} | {way} | {1e3 * median:.3f} ({1e3 * least:.3f} to {1e3 * most:.3f}) | "
                      f"{1e-9 * updates / median:.0f} | {ideal:.2f} | {tasks} |", flush=True)
                results.append({"problem": problem.name, "gpus": count, "by": way, "cells": cells, "steps": steps,
                                "step_s": [least, median, most], "of_ideal": ideal, "tasks": tasks})
        well &= same(problem, hashes)
    return well


def placements(options):
    """A table of grids from small to large: steps on the cores, on a GPU, and where the command places them. A grid in
    many patches may be shared out: both together could at most add up what each makes."""
    table("One process", ["problem", "cells", "patches", "cores, ms", "GPU, ms", "as placed, ms",
                          "tasks of cores and GPU", "cores / GPU", "as placed / best", "of the sum of both"])
    sizes = ((32, 1), (64, 1), (128, 1), (256, 1), (256, 32), (512, 1), (512, 32))
    for name, text, equations, largest in (("heat", HEAT, 1, 512), ("transport of 16", TRANSPORT, 16, 256)):
        for cells, patches in sizes:
            if cells > largest:
                continue
            problem = Problem(name, text, cells, False, 20e9, equations, 1.0)
            size = max(8, int(cells * options.scale))
            cut = [f"grid.patches=[1,1,{patches}]"] if patches > 1 else []
            found = {}
            for way, settings, environment in (("cores", ["run.devices=cpu"], {}),
                                               ("gpu", ["run.devices=[0]"], {"TRL_PLACEMENT": "devices"}),
                                               ("auto", ["run.devices=[0]"], {})):
                found[way] = measure(problem, [size] * 3, min(2000, choose_steps(problem, 1, options)), 1,
                                     options.cores, settings + cut, environment, options)
            cores, gpu, auto = (found[way][0] for way in ("cores", "gpu", "auto"))
            print(f"| {name} | {cells}^3 | {patches} | {1e3 * cores:.3f} | {1e3 * gpu:.3f} | {1e3 * auto:.3f} "
                  f"| {found['auto'][4]} | {cores / gpu:.1f} | {auto / min(cores, gpu):.2f} "
                  f"| {1 / auto / (1 / cores + 1 / gpu):.2f} |", flush=True)


def host(options):
    """A table of graphs of more and more kernels: what a step takes where launches and kernels take nothing."""
    folder = ROOT / "build/release/emulated"
    if not (folder / "trellis").exists():
        print("host: left out, the command with emulated GPUs was not built", flush=True)
        return
    table("The host's part of a step", ["kernels", "us, median", "us, least"])
    environment = {**os.environ, "TRELLIS_NVRTC": str(folder / "nvrtc.so"), "TRL_EMULATED_GPUS": "1",
                   "TRL_EMULATED_IDLE": "1"}
    for equations in (1, 10, 50, 100):
        with tempfile.TemporaryDirectory() as at:
            pathlib.Path(at, "deck.yaml").write_text(MANY.replace("COUNT", str(equations)), encoding="utf-8")
            found = []
            for _ in range(options.runs):
                subprocess.run([str(folder / "trellis"), "run", "deck.yaml", "--quiet", "--steps", "20000", "--set",
                                "run.devices=gpu", "--set", "run.placement=devices", "--report", "report.json"],
                               cwd=at, env=environment, check=True)
                report = json.loads(pathlib.Path(at, "report.json").read_text(encoding="utf-8"))
                found.append(report["step_s"])
        print(f"| {2 * equations} | {1e6 * statistics.median(s['median'] for s in found):.2f} "
              f"| {1e6 * min(s['least'] for s in found):.2f} |", flush=True)


def on_cores(name, options, *arguments):
    """What a benchmark of the command says, as long as there is time."""
    left = options.end - time.monotonic()
    print(f"\ntrellis bench {name} {' '.join(arguments)}\n", flush=True)
    if left < 5:
        print("left out: no time is left", flush=True)
        return
    try:
        subprocess.run([TRELLIS, "bench", name, *arguments, *(["--quick"] if options.quick else [])], check=False,
                       timeout=left)
    except subprocess.TimeoutExpired:
        print(f"cut off after {left:.0f} s", flush=True)


def build():
    """Compile the command."""
    for line in (["cmake", "--preset", "release"], ["cmake", "--build", "build/release", "--target", "trellis", "-j"]):
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(line)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def gpus():
    """How many there are, by what the command says."""
    info = subprocess.run([TRELLIS, "info"], capture_output=True, text=True, check=False).stdout
    return len(re.findall(r"^\s*(?:emulated )?GPU \d+", info, re.MULTILINE | re.IGNORECASE))


def main():
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of which medians are shown")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a run's steps, about")
    parser.add_argument("--scale", type=float, default=1.0, help="of the cells along each axis")
    parser.add_argument("--only", help="problems with this in their name")
    parser.add_argument("--parts", default=",".join(PARTS), help="of all: %(default)s")
    parser.add_argument("--build", action="store_true", help="compile the command first")
    parser.add_argument("--compare", action="store_true", help="with and without what makes several GPUs faster")
    parser.add_argument("--quick", action="store_true", help="benchmarks of cores on small sizes")
    parser.add_argument("--minutes", type=float, default=60.0, help="for all parts")
    parser.add_argument("--json", type=pathlib.Path, help="a file for all numbers")
    options = parser.parse_args()
    options.cores = len(os.sched_getaffinity(0))
    if not shutil.which("mpirun"):
        sys.exit("mpirun is not in PATH: ranks need it")
    parts = options.parts.split(",")
    if set(parts) - set(PARTS):
        parser.error(f"--parts: there are {', '.join(PARTS)}")
    begin = time.monotonic()
    options.end = begin + 60 * options.minutes
    options.gpus_end = begin + 60 * options.minutes * (1 if parts == ["gpus"] else CORES_SHARE)
    if options.build:
        build()
    results, there, well = [], gpus(), True
    print(f"{there} GPUs, {options.cores} cores; {options.runs} runs of about {options.seconds} s", flush=True)
    if {"gpus", "placements"} & set(parts) and not there:
        sys.exit("there is no GPU")
    if "placements" in parts:
        placements(options)
    if "gpus" in parts:
        well = on_gpus([n for n in (1, 2, 4, 8) if n <= there], options, results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    if "host" in parts:
        host(options)
    if "mpi" in parts:
        on_cores("mpi", options)
    if "cores" in parts:
        on_cores("scalability", options, "--figure", "4.7")
    print(f"\n{time.monotonic() - begin:.0f} s", flush=True)
    sys.exit(not well)


main()

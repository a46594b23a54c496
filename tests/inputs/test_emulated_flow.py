#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=600
"""Flows whose pressure an emulated GPU solves for before the host knows what for: the host seldom waits, and where what
it learns late is not what was foreseen, a flow goes on or ends as on the CPU. Two GPUs copy ghosts alone."""
import json
import os
import pathlib
import subprocess
import sys

from emulated_gpus import run

AXES = (("u", "xface", ("", "zedge", "yedge")), ("v", "yface", ("zedge", "", "xedge")),
        ("w", "zface", ("yedge", "xedge", "")))
CG = ("solvers.s.method=cg", "solvers.s.preconditioner=multigrid")


def write_deck(path, inflow=None, more=""):
    """A flow in a box, periodic along all axes, or with an inflow and sides along x."""
    lines = []
    initial = {"u": "1 + on*sin(x)*sin(x)*cos(y)", "v": "on*sin(x)*cos(z)", "w": "0"}
    for name, location, edges in AXES:
        by = ", ".join(f"at({c}, {edge})" if edge else c for c, edge in zip("uvw", edges))
        low, high = (inflow, "1") if name == "u" else ("0", "0")
        sides = f", boundary: {{x-: {{dirichlet: \"{low}\"}}, x+: {{dirichlet: \"{high}\"}}}}" if inflow else ""
        lines.append(f"  {name}: {{location: {location}, initial: \"{initial[name]}\", "
                     f"ddt: \"-div(advective_flux({name}, [{by}])) + 0.01*laplacian({name})\"{sides}}}\n")
    path.write_text("trellis: 1\ngrid: {cells: [12, 10, 8], length: [6.3, 6.3, 6.3], "
                    f"periodic: [{'false' if inflow else 'true'}, true, true]}}\nparameters: {{on: 1}}\n"
                    "incompressible: {velocity: [u, v, w], pressure: p, solver: s}\nsolvers: {s: {method: direct}}\n"
                    f"equations:\n{''.join(lines)}{more}"
                    "time: {dt: 1e-3, steps: 20, method: ssprk3}\noutput: {fields: []}\n", encoding="utf-8")


def ends(deck, *settings):
    """How a run ends: its code, what it says, the step, fields, and what was solved."""
    line = [os.environ["TRELLIS"], "run", str(deck), "--quiet", "--report", "flow.json", "--trace", "trace.json"]
    for setting in ("run.placement=devices", *settings):
        line += ["--set", setting]
    pathlib.Path("flow.json").unlink(missing_ok=True)
    done = subprocess.run(line, check=False, capture_output=True, text=True)
    report = json.loads(pathlib.Path("flow.json").read_text(encoding="utf-8"))
    said = [text for text in done.stderr.splitlines() if "warning" not in text]
    solved = [{key: s[key] for key in ("solves", "iterations", "last_residual", "last_reference")}
              for s in report["solvers"]]  # the last iterations are those of a solve that began, which it may not have
    return done.returncode, said, report["steps"], report["time"], report["fields"], solved


def check_waits(deck):
    """In a step of three stages whose solutions are trusted nothing is waited for; where these are found by iterations,
    the sums of the last one. What was foreseen may be wrong in a few."""
    write_deck(deck)
    for settings in ((), CG):
        reports = [run(deck, "run.devices=gpu", f"time.steps={steps}", *settings) for steps in (40, 80)]
        waits = [report["device_waits"] for report in reports]
        solves, iterations = ([report["solvers"][0][key] for report in reports] for key in ("solves", "iterations"))
        most = 20 + (solves[1] - solves[0] if settings else 0)  # in one step of eight solutions are looked at
        if waits[1] - waits[0] > most or (settings and iterations[1] - iterations[0] < solves[1] - solves[0] + 10):
            sys.exit(f"in 40 and 80 steps of a flow the host waits for the device {waits} times, in {solves} solves of "
                     f"{iterations} iterations with {settings}")


def calls_of(deck, *settings):
    """What a device is called for in a run on it."""
    ends(deck, "run.devices=gpu", *settings)
    trace = json.loads(pathlib.Path("trace.json").read_text(encoding="utf-8"))
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    return [e["name"] for e in trace["traceEvents"]
            if e["ph"] == "X" and names.get(e["tid"]) == "calls of device 0"]


def check_calls(deck):
    """In such a step a device is called for the sum of pressures, and what it tells of that; and in each stage for
    ghosts, new velocities, the residual with its sums, what it tells of these, and the projection."""
    write_deck(deck)
    # without the steps of which solutions are looked at
    calls = [calls_of(deck, f"time.steps={steps}") for steps in (10, 15)]
    if len(calls[1]) - len(calls[0]) > 5 * (2 + 3 * 5):
        sys.exit(f"5 steps of a flow call the device {len(calls[1]) - len(calls[0])} times: {calls[1][-30:]}")


def check_iterations(deck):
    """In an iteration products of vectors come with the kernel that makes one of these."""
    write_deck(deck)
    calls = calls_of(deck, *CG)
    twice = [one for one, two in zip(calls, calls[1:]) if one == two]  # made, and brought together
    begun = calls.count("p:correction1.3")  # by products of their own
    if "p:product" not in calls or "d.q" in twice or "r.z" in twice or twice.count("r.r") > begun:
        sys.exit(f"a device is called for products alone: {calls[-60:]}")


def check_launches(deck):
    """An iteration is one launch, or two where it begins before it is wanted. A stage has seven beside it: velocities
    and their projection, the guess and what the solution was beyond it, two residuals and a shift; a step three, for a
    mean and guesses with corrections. In one of eight steps solutions are looked at. With all else of a step there are
    some 23 kernels for each iteration: sums are neither cleared nor brought together by others, and coarser grids are
    one kernel."""
    write_deck(deck)
    launches, kernels, iterations = [], [], []
    os.environ["TRL_EMULATED_COUNT"] = "launches.txt"
    for steps in (27, 39):  # between which nobody looks at values
        iterations.append(run(deck, f"time.steps={steps}", *CG)["solvers"][0]["iterations"])
        counts = pathlib.Path("launches.txt").read_text(encoding="utf-8").split()
        kernels.append(int(counts[0]))
        launches.append(int(counts[1]))
    del os.environ["TRL_EMULATED_COUNT"]
    solves, more = 12 * 3, iterations[1] - iterations[0] - 12 * 3
    if launches[1] - launches[0] > 12 * (3 * 7 + 3) + 2 * 3 + solves + 2 * more:
        sys.exit(f"in 27 and 39 steps of a flow a GPU is given {launches} launches, in {iterations} iterations")
    if kernels[1] - kernels[0] > 25 * (iterations[1] - iterations[0]):
        sys.exit(f"in 27 and 39 steps of a flow a GPU is given {kernels} kernels, in {iterations} iterations")


def check_images(deck):
    """Kernels that read off the axes have the points at the other side of the box: no launch copies ghosts."""
    write_deck(deck)
    kernels = {}
    for images in ("on", "off"):
        os.environ.update(TRELLIS_GPU_IMAGES=images, TRL_EMULATED_COUNT="kernels.txt")
        for steps in (10, 15):
            ends(deck, "run.devices=gpu", f"time.steps={steps}")
            kernels[images, steps] = int(pathlib.Path("kernels.txt").read_text(encoding="utf-8").split()[0])
    del os.environ["TRELLIS_GPU_IMAGES"], os.environ["TRL_EMULATED_COUNT"]
    if kernels["off", 15] - kernels["off", 10] != kernels["on", 15] - kernels["on", 10] + 5 * 3:
        sys.exit(f"a GPU launches so many kernels in steps of a flow, and where ghosts are copied: {kernels}")


def check_copies(deck):
    """Two GPUs with a patch each copy ghosts alone from one another: all programs have a patch on the same GPU."""
    write_deck(deck)
    os.environ["TRL_EMULATED_GPUS"] = "2"
    copied = [run(deck, "run.devices=gpu", f"time.steps={steps}", "grid.cells=[12, 10, 48]", "grid.patches=[1, 1, 2]")
              ["device_transfers"]["p2p_bytes"] for steps in (10, 20)]
    os.environ["TRL_EMULATED_GPUS"] = "1"
    planes = (copied[1] - copied[0]) / 10 / (12 * 10 * 8)
    if planes > 100:
        sys.exit(f"in a step of a flow two GPUs copy {planes} planes from each other")


def check_ends(deck):
    """At rest, where a flow begins or goes on, with values that are not finite or much too large in some stage, and
    with an inflow that nothing balances."""
    push = "equations.w.ddt='if(t > 0.0121, sin(z)*cos(x), 0)'"
    cases = [(0, None, "", ()), (0, None, "", ("parameters.on=0",)), (0, None, "", ("parameters.on=0", push)),
             (0, "1", "", ()), (0, "1", "", ("time.method=rk4",))]
    for t in (0.009, 0.0095):
        for wrong in ("0/(t - t)", "1e300"):
            cases.append((3, None, "", (f"equations.w.ddt='if(abs(t - {t}) < 1e-6, {wrong}, laplacian(w))'",)))
        cases.append((3, None, f"  T: {{initial: x, ddt: \"if(abs(t - {t}) < 1e-6, 0/(t - t), T)\"}}\n", ()))
        cases.append((3, f"if(t > {t}, 1.1, 1)", "", ()))
    # Iterations, which begin before it is known that there are none; in some stages of some steps there are. In the
    # short form one case of two has them.
    iterated = [(code, inflow, more, (*settings, *CG)) for code, inflow, more, settings in cases]
    cases = cases + iterated if "TRL_TEST_LONG" in os.environ else cases[::2] + iterated[1::2]
    cases += [(0, None, "", (f"solvers.s.absolute={least}", *CG)) for least in (3e-2, 3e-3)]
    # A residual that is balanced before they go on.
    cases += [(0, f"1 + {little}", "", CG) for little in (1e-12, 1e-13)]
    for code, inflow, more, settings in cases:
        write_deck(deck, inflow, more)
        wanted, found = (ends(deck, f"run.devices={devices}", *settings) for devices in ("cpu", "gpu"))
        if wanted != found or wanted[0] != code:
            sys.exit(f"a flow with inflow {inflow}, {more} and {settings} ends on the CPU, and on a device, with\n"
                     f"{wanted}\n{found}")


DECK = pathlib.Path("flow.yaml").absolute()
os.environ["TRL_EMULATED_GPUS"] = "1"
check_waits(DECK)
check_calls(DECK)
check_iterations(DECK)
check_launches(DECK)
check_images(DECK)
check_copies(DECK)
check_ends(DECK)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300 labels=gpu
"""Several steps in one launch of a GPU, or given to it together: random equations, sides and grids of some tiles,
against the CPU, to the bit; values that are not finite, with the same message; and what is refused, with its reason.
Emulated GPUs are used where there is no other."""
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
    """What is not finite is reported with the step and cell of single steps: by passes of two steps, and by chains of
    several lengths, in the first of them and in later ones."""
    deck = pathlib.Path("nonfinite.yaml")
    text = ("trellis: 1\ngrid: {cells: [40, 40, 16], periodic: true}\nequations:\n"
            "  T: {initial: \"1 + x*y\", ddt: \"FORMULA\"}\n"
            "time: {method: euler, dt: 0.05, steps: 40}\noutput: {fields: []}\n")
    single, gpu = ["run.devices=cpu", "run.compile=never"], ["run.devices=[0]", "run.placement=devices"]
    for formula, ways in (("laplacian(T)/T + exp(T)", [(None, "run.time_blocking=2")]),
                          ("4*T*T", [("2",), ("4",), ("6",), ("8",), ("2", "grid.patches=[1, 1, 2]")])):
        deck.write_text(text.replace("FORMULA", formula), encoding="utf-8")
        status, _, said, _ = run(deck, *single)
        wanted = (status, [line for line in said.splitlines() if "after step" in line])
        for chain, *settings in ways:
            os.environ["TRELLIS_GPU_CHAIN"] = chain or "off"
            status, report, said, _ = run(deck, *gpu, *settings)
            found = (status, [line for line in said.splitlines() if "after step" in line])
            if found != wanted or status == 0 or not found[1]:
                sys.exit(f"what is not finite, {chain} {settings}: {found}, not {wanted}")
            if chain in ("2", "4") and not report["steps_in_chains"]:
                sys.exit(f"no {chain} steps were given to a GPU together")
    del os.environ["TRELLIS_GPU_CHAIN"]


def check_corners():
    """What is read off the axes goes round in a launch; ghosts that some exchange has to set are in none."""
    deck = pathlib.Path("corners.yaml")
    deck.write_text("trellis: 1\ngrid: {cells: [70, 66], periodic: true}\nequations:\n"
                    "  T: {initial: random(1), ddt: \"laplacian(T) + at(ddx(at(ddy(T), cell)), cell)\"}\n"
                    "time: {method: euler, dt: 1e-6, steps: 19}\noutput: {fields: []}\n", encoding="utf-8")
    wanted = run(deck, "run.devices=cpu", "run.compile=never")[1]["fields"]
    for fusion, taken in (("full", True), ("node", False)):
        report = run(deck, "run.devices=[0]", "run.placement=devices", "run.time_blocking=4", f"run.fusion={fusion}")[1]
        if report["fields"] != wanted or (report["steps_in_passes"] > 0) != taken:
            sys.exit(f"off the axes, fusion {fusion}: {report['steps_in_passes']} steps in passes, or "
                     f"{report['fields']}, not {wanted}")


def check_together(deck, *chains):
    """Steps that are given to a GPU together are those of the CPU, with the same series."""
    wanted = run(deck, "run.devices=cpu")
    for chain in chains:
        os.environ["TRELLIS_GPU_CHAIN"] = chain
        found = run(deck, "run.devices=[0]", "run.placement=devices")
        del os.environ["TRELLIS_GPU_CHAIN"]
        same = all(wanted[1][key] == found[1][key] for key in ("fields", "steps", "time", "dt"))
        if wanted[0] != 0 or found[0] != 0 or not same or wanted[3] != found[3]:
            sys.exit(f"{chain} steps together of {deck.read_text(encoding='utf-8')}: {found}, not {wanted}")
        if chain in ("2", "4") and found[1]["steps_in_chains"] < found[1]["steps"] // 3:
            sys.exit(f"{found[1]['steps_in_chains']} of {found[1]['steps']} steps were given together by {chain}")


def check_events():
    """Of a fixed dt and under cfl, where the GPU finds dt itself, values by steps fall between chains, values by time
    and the end into them; and where dt grows at once, between two of which the second is under way. The short form has
    one length of chains for each, in turn."""
    deck = pathlib.Path("events.yaml")
    start = "trellis: 1\ngrid: {cells: [32, 24], periodic: true}\nequations:\n"
    end = "output: {fields: [], series: {every: {EVERY}, values: {most: \"domain_max(T)\"}}}\n"
    for number, (method, dt, every) in enumerate((
            ("euler", "{cfl: 0.4}", "time: 5e-4"), ("ssprk3", "{cfl: 0.4}", "time: 2e-4"),
            ("rk4", "{cfl: 0.4}", "steps: 6"), ("euler", "1e-5", "steps: 4"), ("ssprk2", "1e-5", "steps: 12"),
            ("rk4", "1e-5", "time: 1.1e-4"))):
        deck.write_text(start +
                        "  T: {initial: \"2 + sin(2*pi*x)*cos(2*pi*y)\", ddt: \"div((1 + T^2)*grad(T)) - S\"}\n"
                        "  S: {initial: x, ddt: \"0.1*T - S*T\"}\n"
                        f"time: {{method: {method}, dt: {dt}, end: 0.002}}\n" + end.replace("EVERY", every),
                        encoding="utf-8")
        check_together(deck, *(("2", "4", "10") if LONG else ("2", "4", "10")[number % 3:][:1]))
    for number, initial in enumerate(("2", "2.02", "2.04")):
        deck.write_text(start + f"  T: {{initial: {initial}, ddt: \"-100*T\"}}\ntime: {{method: euler, end: 0.02, "
                        "dt: {cfl: 0.5, speed: \"if(T > 1.5, 100, 1)\", max: 2e-3}}\n" +
                        end.replace("EVERY", "time: 4.5e-3"), encoding="utf-8")
        check_together(deck, *(("2", "6") if LONG else ("6", "2")[number % 2:][:1]))


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
                          (("80, 48", "20, 20"), "one step at a time: the grid is smaller than a tile; up to 64 steps"),
                          (("}}\n", "}}\nrun: {time_blocking: 1}\n"), "run.time_blocking is 1; up to 64 steps are"),
                          (("dt: 1e-6", "dt: {cfl: 0.3}"), "dt follows from cfl; up to 64 steps")):
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
    """A trace shows each launch, or chain, with its steps, among the calls of the device."""
    deck = pathlib.Path("traced.yaml")
    deck.write_text("trellis: 1\ngrid: {cells: [80, 80], periodic: true}\n"
                    "equations: {T: {initial: x, ddt: \"laplacian(T)\"}}\n"
                    "time: {method: euler, dt: 1e-6, steps: 18}\noutput: {fields: []}\n", encoding="utf-8")
    for steps, chain, key, words in ((4, "off", "steps_in_passes", r"(\d+) steps in one launch"),
                                     (1, "4", "steps_in_chains", r"(\d+) steps together")):
        line = [all_decks.TRELLIS, "run", str(deck), "--quiet", "--trace", "trace.json", "--report", "report.json",
                "--set", "run.devices=[0]", "--set", "run.placement=devices", "--set", f"run.time_blocking={steps}"]
        subprocess.run(line, check=True, timeout=250, env={**os.environ, "TRELLIS_GPU_CHAIN": chain})
        events = json.loads(pathlib.Path("trace.json").read_text(encoding="utf-8"))["traceEvents"]
        spans = [(e, re.fullmatch(words, e["name"])) for e in events if e.get("cat") == "device"]
        counts = [int(found[1]) for e, found in spans if found and e["dur"] > 0]
        taken = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))[key]
        if not taken or sum(counts) != taken:
            sys.exit(f"the trace of {taken} {key} has {counts}")


def main():
    """All of it."""
    gpus = test_gpu_random.find_gpus()
    for number in range(60 if LONG else len(SHORT)):
        compare(number, gpus)
    check_nonfinite()
    check_corners()
    check_events()
    check_refused()
    check_trace()


main()

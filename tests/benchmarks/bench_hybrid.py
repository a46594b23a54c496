#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Predicted and measured times of a step on mock devices, or with --gpu on a GPU, and what prefetch is worth, as tables
of Markdown.

A mock device has three threads, which need cores of their own: with fewer than cores, measured times are those of a
machine that is too small, and a note says so. On a virtual clock the devices' clocks are read, which do not know what
workers do: only placements that leave them nothing are shown."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import trace_picture

ROOT = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2]))
TRELLIS = os.environ.get("TRELLIS", str(ROOT / "build/release/trellis"))
DECKS = ("heat_2d", "gray_scott", "heat_variable_k", "heat_plugin")
MOCKS = ("1:speed=0.5", "2:speed=0.5,latency=20us,rate=2G", "2:speed=4,latency=10us,rate=10G,clock=virtual")
RULES = ("finish_time", "min_load")
TRIALS, PLACED = 3, 7  # steps with each executor in turn; then as placed, before they are held against one executor
PREFETCH = ["time.method=euler", "run.fusion=none", "run.placement=devices", "equations.spot.ddt=div(k*grad(spot))"]
GPU = "a GPU"  # in place of mock devices
SLOW_LINKS = ("2:speed=0.5,latency=20us,rate=200M", "2:speed=0.5,latency=20us,rate=200M,clock=virtual")


def trellis(command, deck, mocks, settings, *more):
    """What the command prints."""
    line = [TRELLIS, command, str(ROOT / f"inputs/decks/{deck}.yaml"), "--threads", "1", *more]
    for setting in [*settings, "run.devices=[0]"] if mocks == GPU else settings:
        line += ["--set", setting]
    environment = os.environ if mocks == GPU else {**os.environ, "TRL_MOCK_DEVICES": mocks}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(line)}: {done.stderr}")
    return done.stdout


def placement(deck, mocks, settings, steps):
    """What the report of a run says of the placement."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        trellis("run", deck, mocks, [*settings, f"output.directory={folder}/out"], "--quiet", "--steps", str(steps),
                "--report", str(report))
        return json.loads(report.read_text(encoding="utf-8"))["placement"]


def size(cells):
    return [f"grid.cells=[{cells},{cells}]", "time.dt=1e-7", "run.compile=always"]


def ms(seconds):
    return f"{1e3 * seconds:.2f}"


def compare(deck, mocks, rule, options):
    """A line of the table: medians of runs."""
    devices, virtual = 1 if mocks == GPU else int(mocks.split(":")[0]), "clock=virtual" in mocks
    settings = [*size(options.cells), "grid.patches=[2,2]", f"run.placement={rule}"]
    found = [placement(deck, mocks, settings, TRIALS * (devices + 1) + PLACED) for _ in range(options.runs)]
    found = [p for p in found if p["by"] == "times" and not (virtual and p["tasks"][0])]
    if not found:
        return ""
    measured = [p["devices_s" if virtual else "measured_s"] for p in found]
    ratio = [m / p["predicted_s"] for m, p in zip(measured, found)]
    tasks = found[0]["tasks"]
    return (f"| {deck} | `{mocks}` | `{rule}` | {sum(tasks[1:])} of {sum(tasks)} | "
            f"{ms(statistics.median(p['predicted_s'] for p in found))} | {ms(statistics.median(measured))} | "
            f"{statistics.median(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f}) |")


def planned(text):
    """Seconds of a step as a plan predicts them."""
    value, unit = re.search(r"^  a step +(\S+) ([mu])s predicted", text, re.MULTILINE).groups()
    return float(value) * {"m": 1e-3, "u": 1e-6}[unit]


def mixed(on, options):
    """Settings of a graph that devices and workers share."""
    return [*size(options.cells // 2), "grid.patches=[2,1]", *PREFETCH, f"run.prefetch={str(on).lower()}"]


def prefetch(mocks, on, options):
    """A line of the second table."""
    settings = mixed(on, options)
    predicted = planned(trellis("plan", "heat_plugin", mocks, settings))
    found = [placement("heat_plugin", mocks, settings, 12) for _ in range(options.runs)]
    measured = "devices_s" if "clock=virtual" in mocks else "measured_s"
    return (f"| `{mocks}` | {'on' if on else 'off'} | {ms(predicted)} | "
            f"{ms(statistics.median(p[measured] for p in found))} | "
            f"{ms(statistics.median(p['prefetch_lead_s'] for p in found))} | "
            f"{statistics.median(p['copy_overlap'] for p in found):.2f} |")


def draw_traces(mocks, options):
    """A step of the mixed graph with prefetch, above one without."""
    with tempfile.TemporaryDirectory() as folder:
        traces = []
        for on in (True, False):
            traces.append(("prefetch" if on else "no prefetch", f"{folder}/{on}.json"))
            trellis("run", "heat_plugin", mocks, [*mixed(on, options), f"output.directory={folder}/out"], "--quiet",
                    "--steps", "30", "--trace", traces[-1][1])
        trace_picture.draw(traces, options.traces)


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="of which medians are shown")
    parser.add_argument("--cells", type=int, default=512, help="along each axis")
    parser.add_argument("--gpu", action="store_true", help="the first GPU in place of mock devices")
    parser.add_argument("--traces", help="only a picture of a step with prefetch and without, an SVG file")
    options = parser.parse_args()
    if options.traces:
        draw_traces(GPU if options.gpu else SLOW_LINKS[0], options)
        return
    cores, wanted = len(os.sched_getaffinity(0)), 1 + 3 * 2
    if cores < wanted and not options.gpu:
        print(f"{cores} cores: two mock devices and a worker want {wanted}, so measured times on real clocks are too "
              "long\n")
    print("| deck | mock devices | placement | tasks of devices | predicted, ms | measured, ms | measured / predicted "
          "(least to most) |\n|---|---|---|---|---|---|---|")
    for deck in DECKS:
        for mocks in [GPU] if options.gpu else MOCKS:
            for rule in RULES:
                line = compare(deck, mocks, rule, options)
                if line:
                    print(line, flush=True)
    print("\n| mock devices | prefetch | predicted, ms | measured, ms | mean lead, ms | copies hidden |\n"
          "|---|---|---|---|---|---|")
    for mocks in [GPU] if options.gpu else SLOW_LINKS:
        for on in (True, False):
            print(prefetch(mocks, on, options), flush=True)


main()

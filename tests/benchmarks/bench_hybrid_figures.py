#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""What a GPU gives a graph of two-point stencils (figures 4.8 to 4.10 of the thesis on hybrid scheduling): the fluxes
of the heat equation along x, y and z, their divergence, and the step, a kernel for each. As tables of Markdown, JSON
and a picture.

The whole graph is done by all cores; by the GPU with the field resident there; and with the step left to the cores, so
that the field is copied to the GPU in each step and results are copied back (no residency): the three fluxes, whose
divergence the cores take (chains are not coalesced), or the divergence alone, with copies that begin as soon as values
are there (prefetch) or when the reader may begin. "As placed" is what the command decides by itself."""
import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2]))
TRELLIS = os.environ.get("TRELLIS", str(ROOT / "build/release/trellis"))
DECK = """trellis: 1
grid: {cells: [CELLS, CELLS, CELLS], periodic: true}
expressions: {q: "-0.1*grad(T)", r: "-div(q)"}
equations: {T: {initial: "sin(2*pi*x)*sin(2*pi*y)*sin(2*pi*z)", ddt: r}}
time: {method: euler, dt: 1e-7, end: 1}
run: {fusion: node}
output: {fields: []}
"""
FLUXES = "".join(f"q.{axis} 1 device 0\n" for axis in "xyz")
CHAIN = FLUXES + "r 1 device 0\n"
# way: what a placement file says, or a rule, or nothing for the cores; other settings
WAYS = {"cores": (None, []), "GPU, resident": ("devices", []), "as placed": ("auto", []),
        "fluxes": (FLUXES, []), "fluxes, no prefetch": (FLUXES, ["run.prefetch=false"]),
        "fluxes and divergence": (CHAIN, []), "fluxes and divergence, no prefetch": (CHAIN, ["run.prefetch=false"])}
COLOURS = ("#222222", "#c03020", "#e8a020", "#2060c0", "#70a0e0", "#208050", "#70c090")


def trellis(command, folder, cells, way, options, *more):
    """What a command prints about the deck in a folder."""
    deck, file = folder / "deck.yaml", folder / "step.place"
    deck.write_text(DECK.replace("CELLS", str(cells)), encoding="utf-8")
    placement, settings = WAYS[way]
    if placement and "device" in placement and placement != "devices":
        file.write_text(placement, encoding="utf-8")
        placement = file
    line = [TRELLIS, command, str(deck), "--threads", str(options.cores), *more]
    for setting in (f"output.directory={folder}/out", f"run.devices={options.devices if placement else 'cpu'}",
                    f"run.placement={placement or 'auto'}", *settings):
        line += ["--set", setting]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(line)}: {done.stderr}")
    return done.stdout


def step(cells, way, options):
    """Seconds of a step (the median of runs), the hash of the field, and the bytes that a step copies."""
    steps = max(40, min(2000, int(options.seconds * 1e9 / cells**3)))
    found, hashes = [], set()
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as at:
            report = pathlib.Path(at) / "report.json"
            trellis("run", pathlib.Path(at), cells, way, options, "--quiet", "--steps", str(steps), "--report",
                    str(report))
            report = json.loads(report.read_text(encoding="utf-8"))
        found.append(report["step_s"]["median"])
        hashes.add(report["fields"]["T"]["hash"])
    copied = report.get("device_transfers", {})
    return statistics.median(found), hashes, sum(copied.get(f"{way}_bytes", 0) for way in ("h2d", "d2h")) / steps


def stencils(cells, options):
    """Seconds that the cores and the GPU take for the three fluxes, by the times of tasks in trials."""
    with tempfile.TemporaryDirectory() as at:
        text = trellis("plan", pathlib.Path(at), cells, "as placed", options, "--measure")
    unit = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    rows = re.findall(r"^    q\.[xyz] .*\(workers (\S+) (\w+), device 0 (\S+) (\w+)\)", text, re.MULTILINE)
    return tuple(sum(float(row[at]) * unit[row[at + 1]] for row in rows) for at in (0, 2))


def table(title, columns):
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)


def draw(results, path):
    """Updates a second over cells, both logarithmic: the whole graph, and the stencils alone."""
    width, height, left, top = 380, 260, 60, 36
    sizes = [row["cells"] ** 3 for row in results]
    panels = (("The whole graph (4.9)", {way: [row["step_s"].get(way) for row in results] for way in WAYS}),
              ("The three stencils alone (4.8, 4.10)",
               {way: [row["stencils_s"][way] for row in results] for way in ("cores", "GPU, resident")}))
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * (width + left) + 270}" height="{height + top + 44}" '
             'font-family="DejaVu Sans, sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>']
    for at, (title, curves) in enumerate(panels):
        x0 = left + at * (width + left + 10)
        speeds = [n / s * 1e-9 for seconds in curves.values() for n, s in zip(sizes, seconds) if s]
        low, high = math.floor(math.log10(min(speeds))), math.ceil(math.log10(max(speeds)))
        ends = math.log10(sizes[0]), math.log10(sizes[-1])

        def place(n, speed, x0=x0, ends=ends, low=low, high=high):
            return (x0 + width * (0.03 + 0.94 * (math.log10(n) - ends[0]) / max(1e-9, ends[1] - ends[0])),
                    top + height * (high - math.log10(speed)) / (high - low))

        lines.append(f'<rect x="{x0}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>'
                     f'<text x="{x0}" y="{top - 10}">{title}, 10⁹ cells a second over cells</text>')
        for power in range(low, high + 1):
            y = place(sizes[0], 10.0**power)[1]
            lines.append(f'<path d="M{x0} {y:.1f}h{width}" stroke="#ddd"/>'
                         f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
        for n, row in zip(sizes, results):
            lines.append(f'<text x="{place(n, 1)[0]:.1f}" y="{top + height + 18}" text-anchor="middle">'
                         f'{row["cells"]}³</text>')
        for colour, (way, seconds) in zip(COLOURS, curves.items()):
            points = [place(n, n / s * 1e-9) for n, s in zip(sizes, seconds) if s]
            lines.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" '
                         f'stroke="{colour}" stroke-width="1.6"/>')
            lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points]
    for number, (colour, way) in enumerate(zip(COLOURS, WAYS)):
        y = top + 14 + 18 * number
        x = 2 * (width + left) + 24
        lines.append(f'<path d="M{x} {y - 4}h18" stroke="{colour}" stroke-width="2"/><text x="{x + 24}" y="{y}">{way}'
                     '</text>')
    pathlib.Path(path).write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")


def main():
    """Measure, print tables, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", default="32,64,128,256", help="along each axis: %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="of which medians are shown")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a run's steps on a GPU, about")
    parser.add_argument("--devices", default="[0]", help="run.devices where there is a GPU (default %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="a file for all numbers")
    parser.add_argument("--picture", type=pathlib.Path, help="a file for the picture, SVG")
    options = parser.parse_args()
    options.cores = len(os.sched_getaffinity(0))
    results, well = [], True
    table(f"The whole graph, {options.cores} cores and a GPU: ms a step (MB that it copies)",
          ["cells", *WAYS, "cores / resident", "cores / best without residency", "as placed / best"])
    for cells in map(int, options.cells.split(",")):
        row, hashes, texts = {"cells": cells, "step_s": {}, "copied": {}}, set(), []
        for way in WAYS:
            row["step_s"][way], found, row["copied"][way] = step(cells, way, options)
            hashes |= found
            texts.append(f"{1e3 * row['step_s'][way]:.3f} ({1e-6 * row['copied'][way]:.1f})")
        s = row["step_s"]
        apart = min(seconds for way, seconds in s.items() if way.startswith("fluxes"))
        print(f"| {cells}^3 | {' | '.join(texts)} | {s['cores'] / s['GPU, resident']:.1f} | {s['cores'] / apart:.2f} | "
              f"{s['as placed'] / min(s['cores'], s['GPU, resident']):.2f} |", flush=True)
        well &= len(hashes) == 1
        results.append(row)
    print(f"\nhashes of the field {'are the same for all ways' if well else 'DIFFER'}")
    table("The three stencils alone, ms", ["cells", "cores", "GPU", "cores / GPU"])
    for row in results:
        cores, gpu = stencils(row["cells"], options)
        row["stencils_s"] = {"cores": cores, "GPU, resident": gpu}
        print(f"| {row['cells']}^3 | {1e3 * cores:.4f} | {1e3 * gpu:.4f} | {cores / gpu:.1f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    if options.picture:
        draw(results, options.picture)
    sys.exit(not well)


main()

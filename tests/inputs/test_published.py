#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=3600
"""Incompressible flows beside published numbers: long runs, with TRL_TEST_LONG or for the names that are given; the
tables of docs/verification.md are what this prints."""
import json
import math
import os
import pathlib
import subprocess
import sys

TRELLIS = os.environ.get("TRELLIS", "trellis")
DECKS = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2])) / "inputs/decks"


def run(deck, *settings):
    """The series of a deck: a list of rows by name, and its report."""
    folder = pathlib.Path("published") / deck
    command = [TRELLIS, "run", str(DECKS / f"{deck}.yaml"), "--quiet", "--report", str(folder / "report.json")]
    folder.mkdir(parents=True, exist_ok=True)
    for setting in (f"output.directory={folder}", "output.every={time: 1000}", *settings):
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    head, *rows = (folder / "series.csv").read_text(encoding="utf-8").splitlines()
    return [dict(zip(head.split(","), map(float, row.split(",")))) for row in rows], json.loads(
        (folder / "report.json").read_text(encoding="utf-8"))


def row(*cells):
    """A line of a table."""
    print("| " + " | ".join(f"{c:.5g}" if isinstance(c, float) else str(c) for c in cells) + " |", flush=True)


def check(what, holds, seen):
    """Leave with what was seen unless it holds."""
    if not holds:
        sys.exit(f"{what}: {seen}")


# Ghia, Ghia & Shin (1982), tables I and II, with a misprint of v at x = 0.9063 for Re = 400 left out.
LINE_Y = (0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531, 0.9609, 0.9688,
          0.9766)
LINE_X = (0.0625, 0.0703, 0.0781, 0.0938, 0.1563, 0.2266, 0.2344, 0.5, 0.8047, 0.8594, 0.9063, 0.9453, 0.9531, 0.9609,
          0.9688)
GHIA_U = {
    100: (-0.03717, -0.04192, -0.04775, -0.06434, -0.10150, -0.15662, -0.21090, -0.20581, -0.13641, 0.00332, 0.23151,
          0.68717, 0.73722, 0.78871, 0.84123),
    400: (-0.08186, -0.09266, -0.10338, -0.14612, -0.24299, -0.32726, -0.17119, -0.11477, 0.02135, 0.16256, 0.29093,
          0.55892, 0.61756, 0.68439, 0.75837),
    1000: (-0.18109, -0.20196, -0.22220, -0.29730, -0.38289, -0.27805, -0.10648, -0.06080, 0.05702, 0.18719, 0.33304,
           0.46604, 0.51117, 0.57492, 0.65928)
}
GHIA_V = {
    100: (0.09233, 0.10091, 0.10890, 0.12317, 0.16077, 0.17507, 0.17527, 0.05454, -0.24533, -0.22445, -0.16914,
          -0.10313, -0.08864, -0.07391, -0.05906),
    400: (0.18360, 0.19713, 0.20920, 0.22965, 0.28124, 0.30203, 0.30174, 0.05186, -0.38598, -0.44993, None, -0.22847,
          -0.19254, -0.15663, -0.12146),
    1000: (0.27485, 0.29012, 0.30353, 0.32627, 0.37095, 0.33075, 0.32235, 0.02526, -0.31966, -0.42665, -0.51550,
           -0.39188, -0.33714, -0.27669, -0.21388)
}
# Botella & Peyret (1998), by a spectral method, at the same points: for Re = 1,000.
BOTELLA_U = (-0.1812881, -0.2023300, -0.2228955, -0.3004561, -0.3885691, -0.2803696, -0.1081999, -0.0620561, 0.0570178,
             0.1886747, 0.3372212, 0.4723329, 0.5169277, 0.5808359, 0.6644227)
BOTELLA_V = (0.2807056, 0.2962703, 0.3099097, 0.3330442, 0.3769189, 0.3339924, 0.3253592, 0.0257995, -0.3202137,
             -0.4264545, -0.5264392, -0.4103754, -0.3553213, -0.2936869, -0.2279225)


def rms(a, b):
    """Root of the mean square of differences, without what is not known."""
    pairs = [(x, y) for x, y in zip(a, b) if x is not None and y is not None]
    return math.sqrt(sum((x - y)**2 for x, y in pairs) / len(pairs))


def centre_lines(n, reynolds, *settings):
    """u and v at the points of the tables, where the flow has become steady."""
    probes = [f'output.series.values.u{i}=probe(u, [0.5, {y}])' for i, y in enumerate(LINE_Y)]
    probes += [f'output.series.values.v{i}=probe(v, [{x}, 0.5])' for i, x in enumerate(LINE_X)]
    stop = 'time.stop={when: "norm(ddt(u)) < 1e-6", every: {steps: 50}}'
    last = run("cavity", f"grid.cells=[{n},{n}]", f"parameters.Re={reynolds}", "time.end=150", stop, *probes,
               *settings)[0][-1]
    return [last[f"u{i}"] for i in range(15)], [last[f"v{i}"] for i in range(15)]


def cavity():
    """Both centre lines on three grids; the differences between grids fall with order 2 once the layers at the walls
    are resolved."""
    row("Re", "cells", "u, rms", "v, rms", "order of u", "of v")
    for reynolds in (100, 400, 1000):
        lines = []
        for n in (32, 64, 128):
            lines.append(centre_lines(n, reynolds))
            off = [rms(ours, theirs) for ours, theirs in zip(lines[-1], (GHIA_U[reynolds], GHIA_V[reynolds]))]
            orders = ["", ""] if n < 128 else [
                math.log2(rms(lines[0][k], lines[1][k]) / rms(lines[1][k], lines[2][k])) for k in (0, 1)]
            row(reynolds, f"{n} x {n}", *off, *orders)
        check(f"cavity, Re = {reynolds}", max(off) < 0.01, off)
        check(f"cavity, Re = {reynolds}", min(orders) > 1.2, orders)


def cavity_spectral(grids=(32, 64, 128)):
    """Re = 1,000 beside the solution of a spectral method, and the limit of order 2 of the two finest grids."""
    row("cells", "u, rms", "v, rms", "order of u", "of v")
    lines, off = [], []
    for n in grids:
        lines.append(centre_lines(n, 1000, "output.series.every={steps: 100}"))
        off.append([rms(ours, theirs) for ours, theirs in zip(lines[-1], (BOTELLA_U, BOTELLA_V))])
        orders = [math.log2(a / b) for a, b in zip(*off[-2:])] if len(off) > 1 else ["", ""]
        row(f"{n} x {n}", *off[-1], *orders)
    limit = [[b + (b - a) / 3 for a, b in zip(*pair)] for pair in zip(*lines[-2:])]
    left = [rms(ours, theirs) for ours, theirs in zip(limit, (BOTELLA_U, BOTELLA_V))]
    row("limit of order 2", *left)
    check("orders of the cavity beside spectral values", min(orders) > 1.8, orders)
    check("their limit", max(left) < 1.5e-3, left)


def cavity_fine():
    """The same on 256 x 256 cells, which takes longer than all others."""
    cavity_spectral((64, 128, 256))


def cavity_orders():
    """Orders at points that lie halfway between those of all grids, and of the energy, with a lid that jumps at corners
    and one that does not."""
    row("Re", "lid", "cells", "order of u", "of v", "of the energy", "difference of u", "of v")
    probes = [f'output.series.values.u{k}=probe(u, [0.5, {k / 16}])' for k in range(1, 16)]
    probes += [f'output.series.values.v{k}=probe(v, [{k / 16}, 0.5])' for k in range(1, 16)]
    probes += ['output.series.values.energy=(integral(u^2) + integral(v^2))/2', "output.series.every={steps: 100}"]
    stop = 'time.stop={when: "norm(ddt(u)) < 1e-7", every: {steps: 50}}'
    for reynolds, least in ((100, 1.9), (1000, 1.4)):
        for lid in ("1", "16*x^2*(1-x)^2"):
            found = []
            for n in (16, 32, 64, 128):
                last = run("cavity", f"grid.cells=[{n},{n}]", f"parameters.Re={reynolds}", "time.end=160", stop,
                           f'equations.u.boundary.y+={{dirichlet: "{lid}"}}', *probes)[0][-1]
                found.append(([last[f"u{k}"] for k in range(1, 16)], [last[f"v{k}"] for k in range(1, 16)],
                              [last["energy"]]))
                if n < 64:
                    continue
                before, after = ([rms(a, b) for a, b in zip(*pair)] for pair in (found[-3:-1], found[-2:]))
                orders = [math.log2(b / a) for b, a in zip(before, after)]
                row(reynolds, lid, f"{n // 4}, {n // 2}, {n}", *orders, *after[:2])
            check(f"orders of the cavity, Re = {reynolds}", min(orders[:2]) > least, orders)


# de Vahl Davis (1983): mean Nusselt number, largest u on the line x = 1/2, largest v on y = 1/2.
DAVIS = {"1e3": (1.118, 3.649, 3.697), "1e4": (2.243, 16.178, 19.617), "1e5": (4.519, 34.73, 68.59),
         "1e6": (8.800, 64.63, 219.36)}


def heated_cavity():
    """Nusselt numbers and velocities of the cavity with a hot and a cold side."""
    row("Ra", "cells", "Nu", "published", "u", "published", "v", "published")
    lines = ['output.series.values.u_line=domain_max(if(abs(x - 0.5) < dx/4, u, 0))',
             'output.series.values.v_line=domain_max(if(abs(y - 0.5) < dy/4, v, 0))']
    for rayleigh, values in DAVIS.items():
        for n in (20, 40, 80):
            last = run("heated_cavity", f"grid.cells=[{n},{n}]", f"parameters.Ra={rayleigh}", "time.end=0.6",
                       'time.stop={when: "norm(ddt(T)) < 1e-4", every: {steps: 50}}', *lines)[0][-1]
            ours = [last[name] for name in ("nusselt", "u_line", "v_line")]
            row(rayleigh, f"{n} x {n}", *[x for pair in zip(ours, values) for x in pair])
        off = max(abs(a / b - 1) for a, b in zip(ours, values))
        check(f"heated cavity, Ra = {rayleigh}", off < 0.025, off)


def rayleigh_benard():
    """The Rayleigh number at which a small disturbance neither grows nor decays, of two grids and in the limit."""
    row("cells", "rate at 1,650", "rate at 1,770", "no growth at")
    found = []
    for n in (12, 24):
        rates = []
        for rayleigh in (1650, 1770):
            rows = run("rayleigh_benard", f"grid.cells=[{2 * n},{n}]", f"parameters.Ra={rayleigh}",
                       "parameters.kick=1e-6", "time.end=2")[0]
            early = rows[len(rows) // 2]
            rates.append(math.log(rows[-1]["speed"] / early["speed"]) / (rows[-1]["time"] - early["time"]))
        found.append(1650 - rates[0] * 120 / (rates[1] - rates[0]))
        row(f"{2 * n} x {n}", *rates, found[-1])
    limit = found[1] + (found[1] - found[0]) / 3
    row("limit of order 2", "", "", f"{limit:.1f}")
    check("growth at Ra = 1,707.8", abs(limit - 1707.8) < 4, limit)
    row("Ra", "cells", "Nu", "published")
    for rayleigh, grids, published in ((1e4, (32,), 2.661), (5e4, (32, 64), 4.245),
                                       (1e5, (32, 48, 64), 1.56 * (1e5 / 1708)**0.296)):
        found = []
        for n in grids:
            found.append(run("rayleigh_benard", f"grid.cells=[{2 * n},{n}]", f"parameters.Ra={rayleigh}",
                             "time.end=1")[0][-1]["nusselt"])
            row(f"{rayleigh:g}", f"{2 * n} x {n}", f"{found[-1]:.3f}", f"{published:.3f}")
        if len(grids) > 1:
            found.append(found[-1] + (found[-1] - found[0]) / 3)
            row(f"{rayleigh:g}", "limit of order 2", f"{found[-1]:.3f}", f"{published:.3f}")
        check("Nusselt number", abs(found[0] / published - 1) < 0.04 and abs(found[-1] / found[0] - 1) < 0.015, found)


def heated_floor():
    """Nusselt numbers of a box that is heated from below, and what they tend to."""
    row("Ra", "cells", "Nu", "published")
    for rayleigh, published in ((1e4, 2.158), (1e5, 3.910)):
        found = []
        for n in (20, 40, 80):
            last = run("heated_floor", f"grid.cells=[{n},{n}]", f"parameters.Ra={rayleigh}")[0][-1]
            found.append(last["nusselt"])
            row(f"{rayleigh:g}", f"{n} x {n}", found[-1], published)
        limit = found[2] + (found[2] - found[1]) / 3
        row(f"{rayleigh:g}", "limit of order 2", f"{limit:.4f}", published)
        check(f"heated floor, Ra = {rayleigh:g}", abs(limit / published - 1) < 0.001, limit)


def cylinder():
    """Drag and Strouhal number of a cylinder that masks cut out. Sides ten diameters away add some 5 % to the drag."""
    row("Re", "cells a diameter", "drag", "Strouhal")
    for reynolds, end in ((40, 60), (100, 140)):
        for cells in (8,):
            rows = run("vortex_street", f"grid.cells=[{32 * cells},{20 * cells}]", "grid.length=[32, 20]",
                       "grid.origin=[-10, -10]", f"parameters.Re={reynolds}", f"time.end={end}",
                       "output.series.every={steps: 2}")[0]
            late = [r for r in rows if r["time"] > end - 40]
            drag = sum(r["drag"] for r in late) / len(late)
            ups = [b["time"] - b["lift"] * (b["time"] - a["time"]) / (b["lift"] - a["lift"])
                   for a, b in zip(late, late[1:]) if a["lift"] < 0 <= b["lift"]]
            strouhal = (len(ups) - 1) / (ups[-1] - ups[0]) if reynolds == 100 and len(ups) > 2 else ""
            row(reynolds, cells, drag, strouhal)
        if reynolds == 40:
            check("drag at Re = 40", 1.55 < drag < 1.68, drag)
        else:
            check("drag at Re = 100", 1.32 < drag < 1.43 and 0.163 < strouhal < 0.172, (drag, strouhal))


def shear_layer():
    """Kinetic energy without viscosity."""
    row("dt", "change of energy without viscosity")
    lost = []
    for dt in (0.008, 0.004):
        rows = run("shear_layer", "grid.cells=[64,64]", "parameters.nu=0", f"time.dt={dt}", "time.method=rk4")[0]
        lost.append(rows[-1]["energy"] / rows[0]["energy"] - 1)
        row(dt, f"{lost[-1]:.2e}")
    check("energy", max(abs(change) for change in lost) < 1e-8, lost)


def vortices():
    """Taylor-Green at Re = 1,600: the largest dissipation, and when."""
    row("cells", "largest -dE/dt", "at", "largest dissipation of the strain rate")
    for n in (32, 64):
        rows = run("taylor_green_3d", f"grid.cells=[{n},{n},{n}]", "time.end=12")[0]
        loss = [(a["energy"] - b["energy"]) / (b["time"] - a["time"]) for a, b in zip(rows, rows[1:])]
        at = max(range(len(loss)), key=lambda i: loss[i])
        row(f"{n}^3", loss[at], (rows[at]["time"] + rows[at + 1]["time"]) / 2,
            max(r["dissipation"] for r in rows))
    check("time of the largest dissipation", 7.5 < rows[at]["time"] < 10, rows[at])


CASES = {
    f.__name__: f
    for f in (cavity, cavity_spectral, cavity_orders, heated_cavity, rayleigh_benard, heated_floor, cylinder,
              shear_layer, vortices)
}
for name in sys.argv[1:] or (CASES if "TRL_TEST_LONG" in os.environ else ()):
    {**CASES, "cavity_fine": cavity_fine}[name]()

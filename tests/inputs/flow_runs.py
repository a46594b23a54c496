# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Decks of flows that several tests run, and what they do with the results."""
import json
import math
import os
import pathlib
import subprocess
import sys

TRELLIS = os.environ.get("TRELLIS", "trellis")
DECKS = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2])) / "inputs/decks"


def run(deck, *settings):
    """The report of a deck, and the last row of its series by name."""
    command = [TRELLIS, "run", str(deck), "--quiet", "--report", "report.json"]
    for setting in ("output.directory=out", "run.threads=1", "run.compile=never", *settings):
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(pathlib.Path("report.json").read_text(encoding="utf-8")), series_at(-1)


def series_at(row):
    """A row of the last run's series by name."""
    rows = pathlib.Path("out/series.csv").read_text(encoding="utf-8").splitlines()
    return dict(zip(rows[0].split(","), map(float, rows[1:][row].split(","))))


def check(what, holds, seen):
    """Leave with what was seen unless it holds."""
    if not holds:
        sys.exit(f"{what}: {seen}")


PLACES = ("[0.21, 0.33]", "[0.65, 0.11]", "[0.46, 0.83]")
# Waves in a periodic box, or between walls; smooth, and no exact solution.
WAVES = """trellis: 1
grid: {{cells: [12, 10], periodic: [true, {periodic}]}}
parameters: {{nu: {nu}}}
expressions: {{kx: "2*pi*x", ky: "2*pi*y"}}
incompressible: {{velocity: [u, v], pressure: p, solver: exact, density: "{density}"}}
solvers: {{exact: {{tolerance: 1e-12}}}}
equations:
  u: {{location: xface, initial: "sin(ky) + 0.3*cos(kx + 2*ky)",
      ddt: "-div(advective_flux(u, [u, at(v, zedge)])) + nu*laplacian(u)" {walls}}}
  v: {{location: yface, initial: "0.5*cos(2*kx) - 0.2*sin(kx - ky) + 0.1",
      ddt: "-div(advective_flux(v, [at(u, zedge), v])) + nu*laplacian(v) - 10*nu" {walls}}}
  rho: {{initial: "1.5 + 0.5*sin(kx)*cos(ky)",
        ddt: "-div(advective_flux(rho, [u, v])) + nu*laplacian(rho)" {flat}}}
time: {{method: {method}, dt: {dt}, end: {end}}}
output:
  series:
    every: {{steps: 1}}
    values: {{{values}, x: "integral(u)", y: "integral(v)", leak: "norm(div([u, v]))",
             energy: "integral(at(u^2, cell) + at(v^2, cell))/2",
             power: "integral(u*ddt(u)) + integral(v*ddt(v))"}}
"""
# The same with viscosity as an implicit term.
DIVIDED = WAVES
for name, carrier in (("u", "[u, at(v, zedge)]"), ("v", "[at(u, zedge), v]")):
    flux = f"-div(advective_flux({name}, {carrier}))"
    DIVIDED = DIVIDED.replace(f'"{flux} + nu*laplacian({name})',
                              f'{{{{implicit: "nu*laplacian({name})", explicit: "{flux}')
DIVIDED = DIVIDED.replace('[u, at(v, zedge)]))"', '[u, at(v, zedge)]))"}}').replace('- 10*nu"', '- 10*nu"}}')
DIVIDED = DIVIDED.replace("1e-12}}", "1e-12}}, stages: {{tolerance: 1e-11}}").replace("face,", "face, solver: stages,")
BY_ERROR = "{{name: {method}, tolerance: {{relative: {dt}, absolute: {dt}}}}}"
WALLS = ", boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}}"
FLAT = ", boundary: {y-: {neumann: 0}, y+: {neumann: 0}}"


def waves(method, dt, end=0.16, nu=0.01, walls=False, density="1", deck=WAVES, settings=()):
    """The last row of the series of the waves."""
    values = ", ".join(f'{k}{i}: "probe({k}, {place})"' for k in "uvp" for i, place in enumerate(PLACES))
    text = deck.format(periodic="false" if walls else "true", walls=WALLS if walls else "",
                        flat=FLAT if walls else "", method=method, dt=dt, end=end, nu=nu, values=values,
                        density=density)
    pathlib.Path("deck.yaml").write_text(text, encoding="utf-8")
    return run("deck.yaml", *settings)[1]


def distance(a, b, name):
    """How far two rows are apart in what was probed of a field."""
    return math.sqrt(sum((a[f"{name}{i}"] - b[f"{name}{i}"])**2 for i in range(len(PLACES))))


# A parabola comes in, and leaves where the pressure is 0; the sides along it hold it, or let it slip.
THROUGH = """trellis: 1
grid: {{cells: [16, 12], length: [2, 1]}}
incompressible: {{velocity: [u, v], pressure: p}}
equations:
  u: {{location: xface, initial: 0, ddt: "-div(advective_flux(u, [u, at(v, zedge)])) + 0.5*laplacian(u)",
      boundary: {{x-: {{dirichlet: "min(20*t, 1)*{profile}"}}, x+: {{outflow: true}}, y-: {side}, y+: {side}}}}}
  v: {{location: yface, initial: 0, ddt: "-div(advective_flux(v, [at(u, zedge), v])) + 0.5*laplacian(v)",
      boundary: {{x-: {{dirichlet: 0}}, x+: {{outflow: true}}, y-: {{dirichlet: 0}}, y+: {{dirichlet: 0}}}}}}
time: {{method: ssprk3, dt: {{cfl: 1}}, end: 0.5}}
output:
  series:
    every: {{steps: 1}}
    values: {{leak: "norm(div([u, v]))", p1: "probe(p, [0.75, 0.5])", p2: "probe(p, [1.25, 0.5])",
             middle: "probe(u, [2, 0.5])"}}
"""

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""point_source(s, p): its integral is s at all locations of all grids, it is what `probe` is the adjoint of, and waves
between two points are the same in both directions; the same bits in all ways of running it."""
import itertools
import math
import os
import pathlib
import random
import sys

from run_deck import run

LOCATIONS = {1: ["cell", "xface"], 2: ["cell", "xface", "yface", "node"],
             3: ["cell", "xface", "yface", "zface", "xedge", "yedge", "zedge", "node"]}


def position(rng, origin, length, spacing):
    """Anywhere, and often where it is special: on a side, on a point, within half a cell of a side."""
    where = rng.choice(["inside", "inside", "low", "high", "near low", "near high", "point"])
    if where == "low":
        return origin
    if where == "high":
        return origin + length
    if where == "near low":
        return origin + rng.uniform(0, 0.5) * spacing
    if where == "near high":
        return origin + length - rng.uniform(0, 0.5) * spacing
    if where == "point":
        return origin + spacing * rng.randrange(round(length / spacing)) + rng.choice([0, 0.5]) * spacing
    return origin + rng.uniform(0, 1) * length


def grid(rng, dim):
    cells = [rng.randint(1, 9) for _ in range(dim)]
    length = [rng.choice([1.0, 0.7, 3.0]) for _ in range(dim)]
    origin = [rng.choice([0.0, -0.35, 2.0]) for _ in range(dim)]
    periodic = [rng.random() < 0.4 for _ in range(dim)]
    p = [position(rng, o, l, l / n) for o, l, n in zip(origin, length, cells)]
    text = f"grid: {{cells: {cells}, length: {length}, origin: {origin}, periodic: {str(periodic).lower()}}}\n"
    inside = all(q or o + l / n <= x <= o + l - l / n for q, o, l, n, x in zip(periodic, origin, length, cells, p))
    return text, p, inside


def check_integrals(rng, dim):
    """One equation at each location: what it has gained is the sum over the steps of s; and <source, f> is what a probe
    of f reads."""
    text, p, inside = grid(rng, dim)
    equations = series = ""
    f = "cos(1 + x" + "".join(f" + {k}*{c}" for k, c in ((2, "y"), (3, "z")) if "xyz".index(c) < dim) + ")"
    for i, location in enumerate(LOCATIONS[dim]):
        equations += f'  u{i}: {{location: {location}, initial: 0, ddt: "point_source(2*cos(3*t), {p})"}}\n'
        equations += f'  f{i}: {{location: {location}, initial: "{f}", ddt: 0}}\n'
        series += f', g{i}: "integral(u{i})", d{i}: "integral(f{i}*point_source(1, {p}))"'
        series += f', p{i}: "probe(f{i}, {p})"' if inside else ""
    deck = f"trellis: 1\n{text}equations:\n{equations}time: {{method: euler, dt: 0.25, steps: 5}}\n"
    deck += f'output: {{series: {{every: {{steps: 1}}, values: {{one: "t"{series}}}}}}}\n'
    rows = run(deck, ["run.compile=never", "run.threads=1"])[1]
    for n, row in enumerate(rows):
        wanted = sum(0.25 * 2 * math.cos(3 * 0.25 * k) for k in range(n))
        for i, location in enumerate(LOCATIONS[dim]):
            if abs(row[f"g{i}"] - wanted) > 1e-14 * (1 + n):
                sys.exit(f"at {location}, step {n}: the integral is {row[f'g{i}']!r}, not {wanted!r}\n{deck}")
            if inside and abs(row[f"d{i}"] - row[f"p{i}"]) > 1e-14:
                sys.exit(
                    f"at {location}: a source weighs f with {row[f'd{i}']!r}, a probe reads {row[f'p{i}']!r}\n{deck}")


def check_forms():
    """Equations of one form share a compiled function: each has its source where it is, in its rate and in a sum."""
    places = {1: [0.2, 0.3], 2: [0.4, 0.3], 3: [0.6, 0.55]}
    deck = ("trellis: 1\ngrid: {cells: [16, 12]}\nequations:\n  u{i}:\n    for: {i: 1..3}\n    initial: x\n"
            "    ddt: \"point_source(2, [0.2*i, if(i > 2, 0.55, 0.3)])\"\n"
            "time: {method: euler, dt: 0.25, steps: 4}\noutput: {series: {every: {steps: 1}, values: {" +
            ", ".join(f'a{i}: "integral((u{i} - x)*x)", b{i}: "integral((u{i} - x)*y)", '
                      f'c{i}: "integral(x*point_source(1, {p}))"' for i, p in places.items()) + "}}}\n")
    for ways in itertools.product(["compile=never", "compile=always"], ["fusion=full", "fusion=node", "fusion=none"]):
        row = run(deck, [f"run.{way}" for way in ways])[1][-1]
        for i, p in places.items():
            found = [row[f"a{i}"] / 2, row[f"b{i}"] / 2, row[f"c{i}"]]
            if max(abs(a - b) for a, b in zip(found, [*p, p[0]])) > 1e-13:
                sys.exit(f"{' '.join(ways)}: source {i} is at {found[:2]} in a rate, at x {found[2]} in a sum, not {p}")


def check_end():
    """-0.05 + 0.7 is less than 0.65, which is the end all the same."""
    deck = ("trellis: 1\ngrid: {cells: [8], length: [0.7], origin: [-0.05]}\n"
            "equations: {u: {initial: x, ddt: \"point_source(2, [0.65])\"}}\n"
            "time: {method: euler, dt: 0.25, steps: 2}\n"
            "output: {series: {every: {steps: 1}, values: {a: \"integral(u)\"}}}\n")
    row = run(deck, ["run.compile=never"])[1]
    if abs(row[1]["a"] - row[0]["a"] - 0.5) > 1e-13:
        sys.exit(f"a source on the end gives {row[1]['a'] - row[0]['a']}, not 0.5")


WAVE = """trellis: 1
grid: {{cells: [40, 32], length: [2, 1.6], patches: [2, 2]}}
parameters: {{w: 9.0}}
expressions:
  K: "1 + 0.5*sin(3*x)*y"
  pulse: "exp(-(w*(t - 0.25))^2)*cos(3*w*t)"
equations:
  p: {{initial: 0, ddt: "-K*div([u, v]) + K*point_source(pulse, {source})"{walls}}}
  u: {{location: xface, initial: 0, ddt: "-ddx(p)", boundary: {{x-: {{dirichlet: 0}}, x+: {{dirichlet: 0}}}}}}
  v: {{location: yface, initial: 0, ddt: "-ddy(p)", boundary: {{y-: {{dirichlet: 0}}, y+: {{dirichlet: 0}}}}}}
time: {{method: rk4, dt: 0.01, steps: 150}}
output:
  fields: [p, u, v]
  series: {{every: {{steps: 1}}, values: {{heard: "probe(p, {receiver})", far: "probe(p, [1.9, 0.2])"}}}}
"""


def check_waves():
    """A wave from a to b is that from b to a: the discrete system with walls is its own adjoint in time."""
    a, b = [0.41, 0.52], [1.33, 1.18]
    walls = ""
    there = run(WAVE.format(source=a, receiver=b, walls=walls), ["run.compile=never"])
    back = run(WAVE.format(source=b, receiver=a, walls=walls), ["run.compile=never"])
    most = max(abs(row["heard"]) for row in there[1])
    apart = max(abs(x["heard"] - y["heard"]) for x, y in zip(there[1], back[1]))
    print(f"waves between two points differ by {apart / most:.1e} of {most:.3g} in the two directions")
    if not most > 0.1 or apart > 1e-13 * most:
        sys.exit("a source and a probe are not adjoint")
    deck = WAVE.format(source=a, receiver=b, walls=walls)
    ways = [(1, ["run.compile=always"]), (1, ["run.compile=never", "run.fusion=none"]),
            (1, ["run.compile=never", "grid.patches=[1, 1]"]), (2, ["run.compile=never"]),
            (4, ["run.compile=never", "run.threads=2"]),
            (1, ["run.compile=never", "run.time_blocking=2"])]
    for ranks, settings in ways:
        if run(deck, settings, ranks)[:2] != there[:2]:
            sys.exit(f"other bits with {ranks} ranks, {settings}")
    print(f"the same bits in {len(ways) + 1} ways")


HELD = """trellis: 1
grid: {cells: [16, 16], periodic: true}
expressions: {s: {formula: "point_source(2, [0.3, 0.6])", evaluate: step}}
equations:
  T: {initial: 0, ddt: s}
  p: {initial: 0, solve: "laplacian(p) - (1 + x)*p = T - s"}
time: {method: ssprk2, dt: 0.25, steps: 4}
output: {series: {every: {steps: 1}, values: {total: "integral(T)"}}}
"""


def check_held():
    """One that is evaluated once a step, beside an equation whose operator is looked at apart: no side reads it."""
    _, rows, said = run(HELD, ["run.compile=never"])
    if said or abs(rows[-1]["total"] - 2) > 1e-14:
        sys.exit(f"a source that is held in a step: {rows[-1]}, {said}")


def main():
    rng = random.Random(7)
    check_held()
    for number in range(24):
        check_integrals(rng, 1 + number % 3)
    check_forms()
    check_end()
    check_waves()


if __name__ == "__main__":
    if "TRL_TEST_LONG" not in os.environ:
        os.environ["TRELLIS_CC"] = str(pathlib.Path(__file__).resolve().parents[1] / "quick_cc.sh")
    main()

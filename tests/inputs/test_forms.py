#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=600
"""Equations that are alike but for one thing: kernels of one form share a compiled function, and what differs must not
be lost. Each pair is compared with the interpreter, which shares nothing, in all degrees of fusion and on emulated
GPUs."""
import os
import pathlib
import sys

import emulated_gpus  # before run_deck: it names the command
import run_deck

HEAD = """trellis: 1
grid: {cells: [12, 10]}
parameters: {p: 0.75, q: 0.5}
stencils:
  own: {from: cell, to: cell, points: [[[-1, 0], "1"], [[1, 0], "-1"]]}
  other: {from: cell, to: cell, points: [[[0, -1], "1"], [[0, 1], "-1"]]}
expressions: {e1: "0.3", e2: "0.4"}
equations:
"""
SPREAD = "0.1*laplacian(E)"
RATES = [
    (SPREAD, "0.2*laplacian(E)"), ("random(1)*E", "random(2)*E"), ("noise(1)", "noise(2)"),
    ("point_source(1, [0.3, 0.3])", "point_source(1, [0.3, 0.4])"),
    ("point_source(1, [0.3, 0.3])", "point_source(1, [0.4, 0.3])"),
    ("-div(advective_flux(E, [0.3, 0.2], minmod))", "-div(advective_flux(E, [0.3, 0.2], superbee))"),
    ("-div(advective_flux(E, [0.3, 0.2]))", "-div(advective_flux(E, [0.3, 0.2], upwind))"),
    ("-div(advective_flux(E, [0.3, 0.2]))", "-div(advective_flux(E, [0.2, 0.3]))"), ("x", "y"), ("t", "dt"),
    ("dx", "dy"), ("sin(E)", "cos(E)"), ("E^2", "E^3"), ("E^0.5", "E^1.5"), ("min(E, 0.4)", "max(E, 0.4)"),
    ("cddx(E)", "cddy(E)"), ("at(at(E, xface), cell)", "at(at(E, yface), cell)"),
    ("tophat_filter(E, 3)", "tophat_filter(E, 5)"), ("if(E > 0.4, 1, 0)", "if(E > 0.5, 1, 0)"),
    ("if(floor(3*E) > 1, 1, 0)", "if(floor(3*E) >= 1, 1, 0)"),
    ("own(E)", "other(E)"), ("E*p", "E*q"), ("erf(E)", "erfc(E)"),
    ("at(extrapolate(ddx(E), x-), cell)", "at(extrapolate(ddx(E), x+), cell)"), ("old(E)", "E"),
    ("atan2(E, 0.3)", "atan2(0.3, E)"), ("floor(3*E)", "ceil(3*E)"), ("fmod(E, 0.3)", "fmod(E, 0.2)"),
    ("integral(E)", "integral(2*E)"), ("domain_max(E)", "domain_min(E)"), ("norm(E)", "integral(E)"),
    ("probe(E, [0.3, 0.3])", "probe(E, [0.3, 0.4])"), ("integral(x*E)", "integral(y*E)"),
    ("integral(E*point_source(1, [0.3, 0.3]))", "integral(E*point_source(1, [0.3, 0.4]))"),
    ("integral(E*random(1))", "integral(E*random(2))"), ("integral(if(x > 0.3, E, 0))", "integral(if(x > 0.4, E, 0))")
]
SIDES = [("{dirichlet: 0.1}", "{dirichlet: 0.2}"), ("{neumann: 0.1}", "{neumann: 0.2}"),
         ("{dirichlet: 0}", "{neumann: 0}"), ("{robin: {a: 1, b: 1, c: 0.5}}", "{robin: {a: 1, b: 2, c: 0.5}}"),
         ("{dirichlet: 'sin(3*t)'}", "{dirichlet: 'sin(4*t)'}"), ("{dirichlet: y}", "{dirichlet: 2*y}"),
         ("{dirichlet: 'random(1)'}", "{dirichlet: 'random(2)'}"), ("{outflow: true}", "{neumann: 0.1}"),
         ("{expression: e1}", "{expression: e2}")]
MASKS = [("x > 0.3", "x > 0.4"), ("x > 0.3", "y > 0.3"),
         ("(x - 0.5)^2 + (y - 0.5)^2 > 0.04", "(x - 0.5)^2 + (y - 0.5)^2 > 0.09")]
STARTS = [("0.5 + 0.3*sin(5*x)*cos(4*y)", "0.5 + 0.3*sin(5*x)*cos(5*y)"), ("random(1)", "random(2)")]
WAYS = [["run.fusion=full", "run.compile=always"], ["run.fusion=node", "run.compile=always"]]
ON_GPUS = [["run.fusion=node"], ["run.fusion=full", "grid.patches=[2, 1]"]]


def equation(name, rate=SPREAD, side="{neumann: 0}", mask=None, start=STARTS[0][0], location="cell"):
    mask = f", mask: \"{mask}\"" if mask else ""
    return (f"  {name}: {{location: {location}, initial: \"{start}\", ddt: \"{rate.replace('E', name)}\"{mask},\n"
            f"    boundary: {{x-: {side}, x+: {{neumann: 0}}, y-: {side}, y+: {{dirichlet: 0.3}}}}}}\n")


def deck():
    """All pairs: a0, b0, a1, b1, ..."""
    made = [[{"rate": f} for f in pair] for pair in RATES]
    made += [[{"side": s, "location": at} for s in pair] for pair in SIDES for at in ("cell", "xface")]
    made += [[{"mask": m} for m in pair] for pair in MASKS] + [[{"start": s} for s in pair] for pair in STARTS]
    lines = [equation(f"{name}{i}", **what) for i, pair in enumerate(made) for name, what in zip("ab", pair)]
    sums = [f"{name}: \"integral({name}*(x + 2*y))\"" for i in range(len(made)) for name in (f"a{i}", f"b{i}")]
    return (HEAD + "".join(lines) + "time: {method: ssprk2, dt: 1e-3, steps: 3}\n"
            f"output: {{fields: [], series: {{every: {{steps: 1}}, values: {{{', '.join(sums)}}}}}}}\n"), made


def check(wanted, settings, made):
    found = run_deck.run(deck()[0], settings)[:2]
    for i, pair in enumerate(made):
        for name, what in zip((f"a{i}", f"b{i}"), pair):
            rows = [[row[name] for row in of[1]] for of in (wanted, found)]
            if wanted[0][name] != found[0][name] or rows[0] != rows[1]:
                sys.exit(f"{' '.join(settings)}: other bits of {what}, of {pair}")


def main():
    text, made = deck()
    wanted = run_deck.run(text, ["run.fusion=none", "run.compile=never", "run.devices=cpu"])[:2]
    alike = [i for i in range(len(made)) if wanted[0][f"a{i}"] == wanted[0][f"b{i}"]]
    if alike:
        sys.exit(f"nothing distinguishes {[made[i] for i in alike]}")
    for way in WAYS:
        check(wanted, [*way, "run.devices=cpu"], made)
    assert run_deck.TRELLIS == os.environ["TRELLIS"] == str(emulated_gpus.BUILD / "emulated/trellis")
    for way in ON_GPUS:
        check(wanted, [*way, "run.devices=gpu", "run.placement=devices"], made)
    print(f"{len(made)} pairs that differ in one thing have the same bits in {1 + len(WAYS) + len(ON_GPUS)} ways")


if __name__ == "__main__":
    if "TRL_TEST_LONG" not in os.environ:
        os.environ["TRELLIS_CC"] = str(pathlib.Path(__file__).resolve().parents[1] / "quick_cc.sh")
    main()

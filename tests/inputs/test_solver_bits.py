#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Equations that are solved have the same bits, and take as many iterations, in all ways of running them."""
import os
import pathlib
import random
import re
import subprocess

import random_flows
import random_merges
import random_saddles
import random_solves
import test_direct
import test_solvers as t

FLOWS = 40 if "TRL_TEST_LONG" in os.environ else 2  # random ones
SOLVES = 300 if "TRL_TEST_LONG" in os.environ else 2
SADDLES = 200 if "TRL_TEST_LONG" in os.environ else 3
MERGES = 200 if "TRL_TEST_LONG" in os.environ else 6
if "TRL_TEST_LONG" not in os.environ:  # what kernels mean, without the optimiser: a third of the time of compilers
    os.environ["TRELLIS_CC"] = str(pathlib.Path(__file__).resolve().parents[1] / "quick_cc.sh")
# Ranks of a node compute planes of one another's kernels wherever they can.
os.environ["TRELLIS_HELPING"] = "always"


def same_bits(number, what, text):
    """Iterations and values are the same in all ways of running a deck. In the short form decks in turn have one way
    beside the first one, which interprets kernels, as all but one of the others do."""
    long = "TRL_TEST_LONG" in os.environ
    cut = [2] * text.split("cells: [")[1].split("]")[0].count(",") + [2]
    some = [] if long else ["run.compile=never"]  # else compilers begin during the run
    helped = ["run.compile=always"] if len(cut) == 3 else some  # compiled kernels with planes
    ways = [(1, ("run.threads=1", "run.compile=never")), (1, ("run.compile=always",)),
            (2, ("run.threads=1", "run.fusion=none", f"grid.patches={cut}", f"run.owners=random:{number}", *helped)),
            (3, ("run.threads=1", "run.scheduler=serial", "run.compile=never")), (4, ("grid.patches=auto", *some)),
            (1, (f"grid.patches={cut}", "run.threads=2", *some))]
    if not long:
        ways = [ways[0], ways[1 + number % 5]]
    seen = set()
    for ranks, settings in ways:
        report = t.run(text, settings, ranks)
        rest = [field["l2"] for name, field in report["fields"].items() if name.startswith("rest_")]
        t.check(f"{what}: a solution", max(rest, default=0) < 1e-3, rest)
        seen.add((tuple(f["hash"] for f in report["fields"].values()),
                  tuple(s["iterations"] for s in report.get("solvers", [])), report["steps_run"]))
    t.check(f"{what}: one result", len(seen) == 1, seen)


def same_bits_where_patches_merge(seed):
    rng = random.Random(seed)
    text = random_merges.write(rng)
    ways = [(1, ("run.threads=1", "run.compile=never")), *random_merges.ways(rng, text, 1 + 2 * (MERGES > 6))]
    seen, sent = set(), []
    for ranks, settings in ways:
        report = t.run(text, settings, ranks)
        seen.add((tuple(f["hash"] for f in report["fields"].values()),
                  tuple(s["iterations"] for s in report["solvers"])))
        sent.append(report["comm"]["solver_messages"])
    t.check(f"merge {seed} in all of {ways}", len(seen) == 1, seen)
    t.check(f"merge {seed} on one rank sends nothing", sent[0] == 0, sent)
    return max(sent) > 0


# A solid that follows a field, which masks read at neighbouring points.
SOLID = """trellis: 1
grid: {cells: [13, 12], periodic: [true, true]}
incompressible: {velocity: [u, v], pressure: p}
equations:
  u: {location: xface, initial: 0, mask: "at(c, xface) > 0.4",
      ddt: "-div(advective_flux(u, [u, at(v, zedge)])) + 0.02*laplacian(u) + sin(7*y)"}
  v: {location: yface, initial: 0, mask: "at(c, yface) > 0.4",
      ddt: "-div(advective_flux(v, [at(u, zedge), v])) + 0.02*laplacian(v) - x"}
  c: {initial: "1 - 1.2*exp(-20*((x - 0.4)^2 + (y - 0.5)^2))", ddt: "-12*(c - 0.3*x)"}
time: {method: rk4, dt: 0.01, steps: 6}
"""

# A field as coefficient, a mask, nodes and advection, each with cycles of multigrid.
HELPED = """trellis: 1
grid: {cells: [10, 7]}
equations:
  k: {initial: 1, solve: "k = 1 + 9*x*y^2",
      boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}
  p: {initial: 0, solve: "div(k*grad(p)) = 1", mask: "(x-0.5)^2 + (y-0.5)^2 < 0.16", solver: s, boundary: &zero
      {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}}
  n: {location: node, initial: 0, solve: "laplacian(n) - 5*cddx(n) = 1", solver: s, boundary: *zero}
solvers: {s: {method: bicgstab, preconditioner: multigrid}}
"""


# A coefficient whose conditions read an unknown: a program may have them for one product alone.
SIDED = """trellis: 1
grid: {cells: [9, 6, 7], periodic: [true, false, false]}
solvers: {s: {method: bicgstab, single_reduction: true, iterations: 2000}}
expressions:
  c: {formula: 1.2, location: cell, boundary: {y-: {outflow: true}, y+: {dirichlet: "1 + 0.2*tanh(k)"}, z-:
      {dirichlet: 1}, z+: {neumann: "0.2*sin(x)"}}}
equations:
  k: {initial: 1, solve: "k = 1 + cos(3*x)^2", boundary: {y-: {neumann: 0}, y+: {neumann: 0}, z-: {neumann: 0}, z+:
      {neumann: 0}}}
  q: {location: zface, initial: "0.1*x", solve: "laplacian(q) - sinh(q) + 0.2*at(p, zface) = x", solver: s, boundary:
      {y-: {outflow: true}, y+: {outflow: true}, z-: {robin: {a: 1, b: 0.5, c: x}}, z+: {dirichlet: "sin(4*x)"}}}
  p: {initial: "0.1*x", solve: "div(at(1 + k, faces)*grad(p)) - p + 0.2*at(q, cell) + 0.05*laplacian(c) = x", solver: s,
      boundary: {y-: {neumann: 0}, y+: {outflow: true}, z-: {dirichlet: 0}, z+: {outflow: true}}}
"""


# Implicit diffusion beside explicit advection by a flow that is solved for, with steps by their error; dt is read.
SPLIT = """trellis: 1
grid: {cells: [18, 13], periodic: [true, false]}
equations:
  w: {initial: "sin(2*pi*x)*sin(pi*y)", boundary: &zero {y-: {dirichlet: 0}, y+: {dirichlet: 0}},
      ddt: {explicit: "-ddx(at(psi*w, xface)) + 0.1*old(w)", implicit: "0.5*laplacian(w)"}}
  c: {location: node, initial: "x*y", boundary: {y-: {neumann: 0}, y+: {dirichlet: "cos(t)"}},
      ddt: {explicit: "at(psi, node)", implicit: "0.2*laplacian(c)"}}
  psi: {initial: 0, solve: "laplacian(psi) - psi*dt = -w", boundary: *zero}
time: {method: METHOD, steps: 4}
output: {every: {time: 0.002}}
"""
# Conjugate gradients fail, and bicgstab goes on: in each solve anew.
INDEFINITE = """trellis: 1
grid: {cells: [12, 11]}
equations:
  u: {initial: "sin(3*x)*y", ddt: "p - 3*u"}
  p: {initial: 0, solve: "laplacian(p) + 150*p = u", solver: s, boundary:
      {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}}
solvers: {s: {preconditioner: jacobi}}
time: {method: euler, dt: 0.01, steps: 4}
"""
# A coefficient is read behind an equation that is not linear, and on a side that another unknown sets.
BEHIND = """trellis: 1
grid: {cells: [8, 9], periodic: [true, false]}
solvers: {s: {preconditioner: multigrid}}
equations:
  a: {initial: 0.5, ddt: "-a^3", solver: s, boundary: &zero {y-: {dirichlet: 0}, y+: {dirichlet: 0}}}
  b: {location: yface, initial: "0.2*x", ddt: "0.01*laplacian(b)", solver: s,
      boundary: {y-: {dirichlet: "0.3*a"}, y+: {dirichlet: 0}}}
  c: {location: yface, initial: "0.2*x", ddt: "0.3*sin(b) - c", solver: s, boundary: *zero}
time: {method: beuler, dt: 1e-3, steps: 2}
"""
# Steps and orders of SUNDIALS, with cycles of multigrid, a mask, nodes and a side that moves; and kinetics.
MULTISTEP = """trellis: 1
grid: {cells: [18, 13], periodic: [true, false]}
solvers: {s: {preconditioner: multigrid}}
equations:
  w: {initial: "sin(2*pi*x)*sin(pi*y)", boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}}, solver: s,
      mask: "(x-0.5)^2 + (y-0.5)^2 > 0.03", ddt: "0.5*laplacian(w) + w*(1 - w)"}
  c: {location: node, initial: "x*y", boundary: {y-: {neumann: 0}, y+: {dirichlet: "cos(t)"}}, solver: s,
      ddt: "0.2*laplacian(c) + at(w, node)"}
time: {method: {name: bdf, tolerance: {relative: 1e-4, absolute: 1e-5}, dt: {initial: 1e-3}}, steps: 12}
output: {every: {time: 0.002}}
"""
KINETICS = """trellis: 1
grid: {cells: [7, 6]}
equations:
  a: {initial: "1 + x", ddt: "-0.04*a + 0.1*b*c + 0.01*laplacian(a)", boundary: &closed
      {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}
  b: {initial: 0, ddt: "4e3*a - 1e4*b*c - 300*b^2"}
  c: {initial: "y", ddt: "3e-3*b^2 + 0.01*laplacian(c)", boundary: *closed}
time: {method: {name: METHOD, tolerance: {relative: 1e-4, absolute: 1e-8}, dt: {initial: 1e-5}}, steps: 12}
"""
# The same beside equations that are solved: one that leaves constants free, one on faces that is not linear and reads
# it, and one with cycles of multigrid.
JOINED = """trellis: 1
grid: {cells: [14, 11], periodic: [true, false]}
solvers: {m: {preconditioner: multigrid}, n: {tolerance: 1e-3, newton: {tolerance: 1e-3}}}
equations:
  c: {initial: "0.2 + 0.1*sin(2*pi*x)*cos(pi*y)", ddt: "div((1 + c^2)*grad(p)) + at(q, cell)*c", boundary: &closed
      {y-: {neumann: 0}, y+: {neumann: 0}}}
  p: {initial: 0.3, solve: "laplacian(p) = sin(3*c) - integral(sin(3*c))", boundary: *closed}
  q: {location: yface, initial: 0, solve: "laplacian(q) - q - q^3 = at(p, yface)*t + b", solver: n,
      boundary: {y-: {dirichlet: "sin(t)"}, y+: {neumann: 0}}}
  b: {location: yface, initial: 0, ddt: "laplacian(q) - b + at(r, yface)", boundary: {y-: {dirichlet: "0.3*q"},
      y+: {neumann: 0}}}
  r: {initial: 0, solve: "div((1 + x)*grad(r)) - r = c - t", solver: m, boundary:
      {y-: {dirichlet: 0}, y+: {robin: {a: 1, b: 0.5, c: 0}}}, mask: "(x-0.5)^2 + (y-0.5)^2 > 0.02"}
time: {method: {name: METHOD, tolerance: {relative: 1e-4, absolute: 1e-6}, dt: {initial: 1e-3}}, steps: 12}
output: {every: {time: 0.004}}
"""
# Stages by steps in pseudo-time: limited fluxes, a mask, nodes, and what is solved for behind them, up to a constant.
PSEUDO = """trellis: 1
grid: {cells: [18, 13], periodic: [true, false]}
solvers: {s: {method: pseudo_time, iterations: 2000}}
equations:
  w: {initial: "sin(2*pi*x)*sin(pi*y)", boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}}, solver: s,
      ddt: {explicit: "0.1*q", implicit: "div((0.5 + w^2)*grad(w)) - div(advective_flux(w, [2, y], vanleer))"}}
  c: {location: node, initial: "x*y", boundary: {y-: {neumann: 0}, y+: {dirichlet: "cos(t)"}}, solver: s,
      mask: "(x-0.5)^2 + (y-0.5)^2 > 0.03", ddt: {explicit: "1", implicit: "0.2*laplacian(c) - c^3 + at(w, node)"}}
  q: {initial: 1, solve: "laplacian(q) = sin(3*w) - integral(sin(3*w))", solver: s, boundary:
      {y-: {neumann: 0}, y+: {neumann: 0}}}
time: {method: {name: ark3, tolerance: {relative: 1e-3, absolute: 1e-4}, dt: {initial: 1e-3}}, steps: 4}
"""
# Lines that ranks cut, also of odd periods, along the one axis and along both; and colours of points on these.
COLOURS = """trellis: 1
grid: {cells: [23, 34], periodic: [true, false]}
equations:
  p: {initial: 0, solve: "LEFT - p = 1 + random(3)", solver: s, boundary: {y-: {dirichlet: 0}, y+: {neumann: 1}}}
solvers: {s: {METHOD, smoother: SMOOTHER, replicate: 0, iterations: 1000}}
"""
# Sums of terms that differ so much that kernels cannot make all of them on their way, in long and in short rows.
SPREAD = """trellis: 1
grid: {{cells: {cells}, periodic: [{periodic}, false]}}
equations:
  p: {{initial: 0, solve: "-laplacian(p) + p = exp(-90*x)*sin(9*y)", boundary: {{y-: {{dirichlet: 0}}, {sides}
      y+: {{dirichlet: "1e-30*x"}}}}, solver: s}}
solvers: {{s: {{method: cg, preconditioner: {preconditioner}, tolerance: 1e-6,
     iterations: 5000}}}}
"""
# A density whose condition reads a velocity whose conditions change in time: beyond which sides that one is needed
# depends on what is stored, when coarser grids get new entries does not.
TIMED = """trellis: 1
grid: {cells: [9, 12, 9], periodic: [false, false, false]}
incompressible: {velocity: [u, v, w], pressure: p, density: "exp(3*tanh(9*(rho - 1.5)))", solver: s, initial: "0.3 + x"}
solvers: {s: {preconditioner: multigrid}}
equations:
  u:
    location: xface
    initial: "0.2*sin(2*pi*y) + 0.1*random(1)"
    ddt: "-div(advective_flux(u, [u, at(v, zedge), at(w, yedge)], vanleer))"
    boundary: {x-: {dirichlet: "0.7"}, x+: {outflow: true},
               y-: {dirichlet: "0.3*cos(t)"}, y+: {outflow: true}, z-: {dirichlet: 0}, z+: {outflow: true}}
  v:
    location: yface
    initial: "0.2*sin(2*pi*z) + 0.1*random(2)"
    ddt: "-div(advective_flux(v, [at(u, zedge), v, at(w, xedge)], vanleer)) + 0.3*at(rho, yface)"
    boundary: {x-: {dirichlet: "0.3*cos(t)"}, x+: {outflow: true},
               y-: {dirichlet: "0.7"}, y+: {outflow: true}, z-: {dirichlet: "0.3*cos(t)"}, z+: {outflow: true}}
  w:
    location: zface
    initial: "0.2*sin(2*pi*x) + 0.1*random(3)"
    ddt: "-div(advective_flux(w, [at(u, yedge), at(v, xedge), w])) - 0.5"
    boundary: {x-: {dirichlet: 0}, x+: {outflow: true},
               y-: {neumann: 0}, y+: {outflow: true}, z-: {dirichlet: "0"}, z+: {outflow: true}}
  rho:
    initial: "1.5 + 0.4*sin(6*x)*cos(5*y)"
    ddt: "-div(advective_flux(rho, [u, v, w], minmod))"
    boundary: {x-: {neumann: 0}, x+: {neumann: 0},
               y-: {dirichlet: "1 + 0.2*at(v, cell)"}, y+: {outflow: true}, z-: {neumann: 0}, z+: {neumann: 0}}
time: {method: euler, dt: 4e-3, steps: 1}
output: {series: {every: {steps: 1}, values: {leak: "norm(div([u, v, w]))", top: "domain_max(p)"}}}
"""
BY_ERROR = "{name: ark3, tolerance: {relative: 1e-4, absolute: 1e-5}, dt: {initial: 1e-3}}"


def whole_rates(text):
    """The same for explicit methods."""
    return re.sub(r'{explicit: "(.*)", implicit: "(.*)"}', r'"\1 + \2"', text)


def lacks(text, library):
    """Whether a deck asks for a library that this build is without."""
    pathlib.Path("deck.yaml").write_text(text, encoding="utf-8")
    said = subprocess.run([t.TRELLIS, "plan", "deck.yaml"], capture_output=True, text=True, check=False).stderr
    return f"this build has no {library}" in said


def factors():
    """Decks by name of sparse factors, if there are any."""
    texts = {"factors": t.manufactured(("dirichlet", "robin", "periodic"), (9, 7, 5), "node", "{method: lu}"),
             "factors of some": t.COUPLED.replace("{initial", "{solver: l, initial") + "solvers: {l: {method: lu}}\n"}
    return {} if lacks(texts["factors"], "SuiteSparse") else texts


def multistep():
    """Decks by name of multistep methods, if there are any."""
    return {} if lacks(KINETICS.replace("METHOD", "bdf"), "SUNDIALS") else {
        "multistep": MULTISTEP, "kinetics": KINETICS.replace("METHOD", "bdf"),
        "adams": KINETICS.replace("METHOD", "adams"), "joined": JOINED.replace("METHOD", "bdf"),
        "joined by adams": JOINED.replace("METHOD", "adams")}


def main():
    texts = {"free": t.FREE, "coupled": t.COUPLED, "helped": HELPED, "masked": t.MASKED,
             "steps": t.STEPS.replace("METHOD", "rk4").replace("DT", "0.01"),
             "behind": BEHIND, "pseudo": PSEUDO, "solid": SOLID,
             "split": SPLIT.replace("METHOD", BY_ERROR),
             "node": t.manufactured(("dirichlet", "robin"), (11, 9), "node", "{method: bicgstab}"),
             "cycles": t.manufactured(("periodic", "neumann", "robin"), (11, 9, 7), "cell",
                                    "{method: multigrid}"),
             "thin": t.manufactured(("periodic", "dirichlet"), (40, 6), "cell",
                                    "{preconditioner: multigrid}"),
             "pipelined": t.manufactured(("dirichlet", "periodic"), (25, 19), "cell",
                                         "{method: pipelined_cg, tolerance: 1e-10}"),
             "pipelined cycles": t.manufactured(("dirichlet", "neumann", "robin"), (13, 11, 8), "cell",
                                                "{method: pipelined_cg, preconditioner: multigrid}"),
             "single": t.manufactured(("dirichlet", "periodic"), (25, 19), "cell",
                                      "{method: cg, preconditioner: jacobi, single_reduction: true, tolerance: 1e-11}"),
             "single cycles": t.manufactured(("dirichlet", "neumann", "robin"), (13, 11, 8), "cell",
                                             "{method: cg, preconditioner: multigrid, single_reduction: true}"),
             "single bicgstab": t.manufactured(("dirichlet", "robin"), (21, 19), "node",
                                               "{method: bicgstab, single_reduction: true, tolerance: 1e-11}"),
             "single sided": SIDED,
             "single helped": HELPED.replace("bicgstab,", "bicgstab, single_reduction: true,"),
             "gmres": t.manufactured(("dirichlet", "robin"), (11, 9), "yface", "{method: gmres}"),
             "shared rows": HELPED.replace("[10, 7]", "[70, 58]").replace("multigrid}", "multigrid, replicate: 0}"),
             "directly": test_direct.random_deck(random.Random(0), 5)}
    for number, (left, method, smoother) in enumerate((
            ("d2dx(p) + 0.01*d2dy(p)", "method: cg, preconditioner: multigrid", "line"),
            ("0.01*d2dx(p) + d2dy(p)", "method: multigrid, cycle: w", "line"),
            ("div([exp(2*sin(6*x + 3*y))*ddx(p), ddy(p)])", "method: bicgstab, preconditioner: multigrid", "line"),
            ("0.2*d2dx(p) + d2dy(p)", "method: cg, preconditioner: multigrid", "red_black"),
            ("div(harmonic(if((x-0.4)^2 + y^2 < 0.09, 1e4, 1), faces)*grad(p))", "method: multigrid", "red_black"),
            ("div(harmonic(if(x < y, 1e4, 1), faces)*grad(p))", "method: cg, preconditioner: multigrid", "line"))):
        text = COLOURS.replace("LEFT", left).replace("METHOD", method)
        texts[f"colours {number}"] = text.replace("SMOOTHER", smoother)
    texts |= multistep() | factors()
    texts |= {f"flow {seed}": random_flows.write(random.Random(seed)) for seed in range(FLOWS)}
    texts |= {f"solve {seed}": random_solves.write(random.Random(seed)) for seed in range(SOLVES)}
    texts |= {f"saddle {seed}": random_saddles.write(random.Random(seed)) for seed in range(SADDLES)}
    for number, (name, text) in enumerate(texts.items()):
        same_bits(number, name, text)
    merged = [same_bits_where_patches_merge(seed) for seed in range(MERGES)]
    t.check("some ranks send what merged grids need", any(merged), merged)
    same_bits(1, "timed", TIMED)
    for cells in ("[1100, 4]", "[5, 200]"):
        for preconditioner in ("jacobi", "multigrid"):
            periodic = "true" if preconditioner == "jacobi" else "false"
            sides = "" if periodic == "true" else "x-: {neumann: 0}, x+: {dirichlet: 0},"
            same_bits(0, f"spread over {cells}", SPREAD.format(cells=cells, preconditioner=preconditioner,
                                                               periodic=periodic, sides=sides))


if __name__ == "__main__":
    main()

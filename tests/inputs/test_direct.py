#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Direct solutions: order 2 with every pair of conditions at every location, random systems whose bits are the same in
all ways of running them, null spaces, operators that change in time, what auto takes, and what cannot be solved so."""
import itertools
import os
import pathlib
import random
import sys

import test_solvers as t

CONDITIONS = ("dirichlet", "neumann", "robin")
LOCATIONS = ("cell", "node", "xface", "yface", "zface")
SOLVERS = "solvers: {s: {method: direct, tolerance: 1e-10}}\n"
PERIODIC = ("periodic", "periodic")


def header(cells, sides, lengths=None):
    periodic = ", ".join("true" if pair == PERIODIC else "false" for pair in sides)
    lengths = lengths or [1] * len(cells)
    return f"trellis: 1\ngrid: {{cells: {list(cells)}, length: {lengths}, periodic: [{periodic}]}}\n"


def solved(text, most=2, **how):
    """The report of a deck all of whose equations are solved in one go, or another for what rounding errors leave."""
    report = t.run(text, **how)
    for s in report["solvers"]:
        few = s["method"] == "direct" and s["iterations"] <= most * s["solves"]
        t.check(f"{text}\nsolved directly", few, s)
    return report


# ---- a solution that is known ----

def conditions(sides, value, slope):
    """The conditions that go with a solution; sides: of each axis, the kinds before and behind."""
    text = []
    for x, pair in zip(t.AXES, sides):
        for sign, kind in zip("-+", pair):
            outward = f"{sign}{slope}{x}"
            text += {"dirichlet": [f"{x}{sign}: {{dirichlet: \"{value}\"}}"],
                     "neumann": [f"{x}{sign}: {{neumann: \"{outward}\"}}"],
                     "robin": [f"{x}{sign}: {{robin: {{a: 2, b: 3, c: \"2*{value} + 3*({outward})\"}}}}"],
                     "periodic": []}[kind]
    return "{" + ", ".join(text) + "}"


def known(cells, periodic, rows):
    """laplacian(p) - p = f for equations of these locations and sides."""
    axes = t.AXES[:len(cells)]
    factor = {x: f"(2+sin(2*pi*{x}))" if p else f"sin(1+2*{x})" for x, p in zip(axes, periodic)}
    slope = {x: f"2*pi*cos(2*pi*{x})" if p else f"2*cos(1+2*{x})" for x, p in zip(axes, periodic)}
    bend = {x: f"-4*pi^2*sin(2*pi*{x})" if p else f"-4*sin(1+2*{x})" for x, p in zip(axes, periodic)}

    def product(of, at):
        return "*".join(of[x] if x == at else factor[x] for x in axes)

    text = header(cells, [PERIODIC if p else () for p in periodic])
    text += f"expressions:\n  u: \"{product(factor, None)}\"\n"
    for x in axes:
        text += f"  u{x}: \"{product(slope, x)}\"\n"
    text += "  f: \"" + " + ".join(product(bend, x) for x in axes) + " - u\"\nequations:\n"
    for i, (location, sides) in enumerate(rows):
        text += (f"  p{i}: {{location: {location}, initial: 0, solve: \"laplacian(p{i}) - p{i} = f\", exact: u, "
                 f"solver: s, boundary: {conditions(sides, 'u', 'u')}}}\n")
    return text + SOLVERS


def order():
    """Halving the cells divides errors by four. One axis at most has what no transform is for."""
    pairs = list(itertools.product(CONDITIONS, CONDITIONS))
    easy = list(itertools.product(CONDITIONS[:2], CONDITIONS[:2]))
    flat = [(where, (pair,)) for where in LOCATIONS[:3:2] for pair in pairs]
    plane = [(where, (pair, easy[i % 4])) for where in LOCATIONS[:4] for i, pair in enumerate(pairs)]
    plane += [(where, (easy[i % 4], pair)) for where in LOCATIONS[:2] for i, pair in enumerate(pairs)]
    room = [(where, (PERIODIC, easy[i % 4], pair)) for where in LOCATIONS for i, pair in enumerate(pairs[:4])]
    for base, periodic, rows in (((15,), (False,), flat), ((11, 9), (False, False), plane),
                                 ((8, 7, 5), (True, False, False), room)):
        errors = [solved(known([n * k for n in base], periodic, rows))["errors"] for k in (1, 2)]
        for i, row in enumerate(rows):
            ratio = errors[0][f"p{i}"]["l2"] / errors[1][f"p{i}"]["l2"]
            t.check(f"order 2 of {row}", 3.1 < ratio < 6, ratio)


# ---- random systems ----

def random_equation(rng, name, dim, periodic):
    sides = [PERIODIC if p else (rng.choice(CONDITIONS[:2]), rng.choice(CONDITIONS[:2])) for p in periodic]
    operators = [f"laplacian({name}) - 3*{name}", f"{name} - 0.2*laplacian({name})"]
    special = rng.randrange(dim)
    if not periodic[special]:
        sides[special] = (rng.choice(CONDITIONS), rng.choice(CONDITIONS))
        x = t.AXES[special]
        operators += [f"laplacian({name}) - (2 + 4*{x})*{name}",
                      f"laplacian({name}) - 2*{name} - cos({x})*cdd{x}({name})",
                      f"div((2 + {x})*grad({name})) - exp({x})*{name}"]
        if any(kind not in ("neumann", "periodic") for pair in sides for kind in pair):
            operators.append(f"laplacian({name})")
    right = " + ".join(f"sin({5 + a}*{x})" for a, x in enumerate(t.AXES[:dim]))
    return (f"  {name}: {{location: {rng.choice(LOCATIONS[:2 + dim])}, initial: 1, solver: s, "
            f"solve: \"{rng.choice(operators)} = {right}\", boundary: {conditions(sides, '0.5', '0.3*')}}}\n")


def random_deck(rng, smallest=2, equations=6):
    dim = rng.choice((1, 2, 2, 3, 3))
    periodic = [rng.random() < 0.25 for _ in range(dim)]
    cells = [rng.choice([n for n in (2, 3, 4, 5, 8, 13, 17, 20) if n >= smallest]) for _ in range(dim)]
    if dim == 3 and rng.random() < 0.5:
        cells[1:] = [rng.choice((33, 40, 66)) for _ in cells[1:]]  # GPUs transform whole planes
    text = header(cells, [PERIODIC if p else () for p in periodic], [rng.choice((1.0, 0.7, 25.0)) for _ in cells])
    text += "equations:\n"
    return text + "".join(random_equation(rng, f"p{i}", dim, periodic) for i in range(equations)) + SOLVERS


# ---- null spaces, operators that change, what auto takes ----

FREE = """equations:
  a: {initial: "3 + x", solve: "laplacian(a) = cos(pi*y)", solver: s, boundary: &n {y-: {neumann: 0}, y+: {neumann: 0}}}
  b: {location: node, initial: "3 + x", solve: "laplacian(b) = sin(2*pi*x)", solver: s, boundary: *n}
output: {series: {values: {a: "integral(a)"}}}
"""

# The operator depends on dt and on time, and dt is not the same in each step.
HEAT = """trellis: 1
grid: {cells: [9, 7], periodic: [true, false]}
equations:
  T: {initial: "sin(2*pi*x)*y", boundary: {y-: {dirichlet: 0}, y+: {neumann: 0}}, solver: s,
      ddt: {explicit: "1", implicit: "(1 + t)*laplacian(T)"}}
solvers: {s: {method: METHOD, tolerance: 1e-11}}
time: {method: ark3, dt: {cfl: 0.4, speed: "1 + t"}, steps: 4}
"""

# One system for two unknowns, at two locations, that only explicit terms couple.
PAIR = """trellis: 1
grid: {cells: [8, 6, 5], periodic: [true, false, false]}
equations:
  u: {location: xface, initial: "sin(2*pi*x)*y", ddt: {explicit: "1 - at(v, xface)", implicit: "0.5*laplacian(u)"},
      solver: s, boundary: {y-: {dirichlet: 0}, y+: {neumann: 0}, z-: {neumann: 0}, z+: {dirichlet: 1}}}
  v: {initial: "cos(2*pi*x)*y", ddt: {explicit: "at(u, cell)", implicit: "div((1 + z)*grad(v))"},
      solver: s, boundary: {y-: {neumann: 0}, y+: {neumann: 0}, z-: {neumann: 0}, z+: {dirichlet: 1}}}
solvers: {s: {method: METHOD, tolerance: 1e-11}}
time: {method: ark3, dt: 0.05, steps: 3}
"""

# What varies, or is a field, is found out; what is known to be separable has no multigrid beside it.
CHOICES = {"laplacian(p) = 1": "direct", "laplacian(p) - (1+y)*p = 1": "direct", "div((1+x*y)*grad(p)) = 1": "cg",
           "laplacian(p) - q*p = 1": "cg", "laplacian(p) - p^3 = 1": "cg",
           "laplacian(p) + 30*p = 1": "direct", "div((1+y)*grad(p)) = 1": "direct",
           "laplacian(p) - ddx(at(p, xface)) - 3*ddy(at(p, yface)) = 1": "bicgstab"}

CHOICE = """trellis: 1
grid: {cells: [16, 12]}
equations:
  q: {initial: 0, solve: "q = x + y"}
  p: {initial: 0, solve: "EQUATION",
      boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}}
"""


def special():
    text = header((8, 9), (PERIODIC, ()))
    solved(text + FREE + SOLVERS)
    t.check("the mean of the guess", abs(t.last_of_series("a") - 3.5) < 1e-12, t.last_of_series("a"))
    sums = {}
    for text, name, other in ((HEAT, "T", "cg"), (PAIR, "v", "bicgstab")):
        for method in ("direct", other):
            report = t.run(text.replace("METHOD", method))
            sums[method] = report["fields"][name]["sum"]
        t.check("steps", abs(sums["direct"] - sums[other]) < 1e-8 * abs(sums[other]), sums)
    bits = [t.run(PAIR.replace("METHOD", "auto"), ranks=ranks) for ranks in (1, 3)]
    t.check("two unknowns, directly", bits[0]["solvers"][0]["method"] == "direct", bits[0]["solvers"])
    t.check("their bits", bits[0]["fields"] == bits[1]["fields"], bits)
    for equation, method in CHOICES.items():
        report = t.run(CHOICE.replace("EQUATION", equation))["solvers"]
        taken = next(s["method"] for s in report if s["unknowns"] == "p")
        t.check(f"auto for {equation}", taken == method, report)


def refused():
    """Operators that are found not to be separable once they are looked at."""
    for equation, why in (("div((1 + x*y)*grad(p)) = 1", "its coefficients vary, or its conditions are"),
                          ("laplacian(p) + 0.1*cddx(cddy(p)) = 1", "that reads the nearest points alone")):
        text = CHOICE.replace("EQUATION\"", equation + "\", solver: s") + SOLVERS
        message = t.run(text, fails=True)
        t.check(f"{equation} is refused", "'p' cannot be solved directly" in message and why in message, message)


# Means, ghosts that solutions bring along, spectra; planes across z, across x, and lines of which ranks share rows.
FLOW = """trellis: 1
grid: {cells: [12, 10, 9], periodic: [true, true, true]}
solvers: {s: {method: direct}}
incompressible: {velocity: [u, v, w], pressure: p, solver: s}
equations:
  u: {location: xface, initial: "sin(2*pi*x)*cos(2*pi*y)",
      ddt: "-div(advective_flux(u, [u, at(v, zedge), at(w, yedge)]))"}
  v: {location: yface, initial: "-cos(2*pi*x)*sin(2*pi*z)",
      ddt: "-div(advective_flux(v, [at(u, zedge), v, at(w, xedge)]))"}
  w: {location: zface, initial: "sin(2*pi*y)", ddt: "-div(advective_flux(w, [at(u, yedge), at(v, xedge), w]))"}
time: {method: ssprk3, dt: 0.01, steps: 10}
output: {series: {every: {steps: 5}, spectra: {E: {of: [u, v, w]}, E_y: {of: u, along: y}}}}
"""
ALONG = header((11, 9, 7), ((), PERIODIC, ())) + """equations:
  a: {initial: 1, solve: "laplacian(a) - (2 + 4*x)*a = sin(5*y)", solver: s, boundary: {x-: {robin: {a: 2, b: 3, c: 1}},
      x+: {dirichlet: y}, z-: {neumann: 0}, z+: {dirichlet: 0.5}}}
""" + SOLVERS
FLAT = header((21, 13), ((), ())) + """equations:
  a: {initial: 1, solve: "laplacian(a) - (2 + 4*y)*a = sin(5*x)", solver: s, boundary: {x-: {dirichlet: 0},
      x+: {neumann: y}, y-: {robin: {a: 2, b: 3, c: 1}}, y+: {dirichlet: 0.5}}}
  b: {initial: 1, solve: "laplacian(b) - (2 + 4*x)*b = sin(5*x)", solver: s, boundary: {x-: {robin: {a: 2, b: 3, c: 1}},
      x+: {neumann: y}, y-: {neumann: 0}, y+: {dirichlet: 0.5}}}
""" + SOLVERS


def ways():
    """Ranks reach what others of their node have, and send messages to others: the same bits in all ways, of which the
    short form has a half for each deck, in turn."""
    decks = (("flow", FLOW), ("along x", ALONG), ("flat", FLAT), ("heat", HEAT.replace("METHOD", "direct")))
    for number, (name, text) in enumerate(decks):
        seen, cut = {}, [2] * (text.split("cells: [")[1].split("]")[0].count(",") + 1)
        others = [(3, 0, ()), (2, 0, ("run.passes.shared=false",)), (4, 2, ()),
                  (3, 2, ("run.threads=2", "grid.patches=auto")),
                  (3, 2, (f"grid.patches={cut}", "run.owners=random:5")),
                  (2, 0, (f"grid.patches={cut}", "run.owners=curve"))]
        if "TRL_TEST_LONG" not in os.environ:
            others = others[number % 2::2]
        for ranks, of_node, settings in [(1, 0, ()), *others]:
            report = t.run(text, ("run.compile=never", "run.threads=1", *settings), ranks, of_node=of_node)
            lines = [path.read_text(encoding="utf-8") for path in sorted(pathlib.Path("out").glob("*.csv"))]
            key = (tuple(f["hash"] for f in report["fields"].values()), tuple(lines))
            seen.setdefault(key, []).append((ranks, of_node, settings))
        t.check(f"{name}: one result", len(seen) == 1, seen)


def main():
    order()
    ways()
    special()
    refused()
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3):
        solved(random_deck(rng))


if __name__ == "__main__":
    main()

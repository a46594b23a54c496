# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random decks without time: one to five equations that are solved, with each kind of operator, side, mask, location,
method, preconditioner and cycle. Fields rest_NAME are what is left of those at cells without a mask."""
import json
import math
import re

from random_coefficients import Coefficients, one_message
from random_decks import NAMES

AXES = "xyz"
SOLVERS = ("{}", "{}", "{preconditioner: jacobi, iterations: 2000}", "{preconditioner: none, iterations: 4000}",
           "{method: bicgstab, iterations: 2000}", "{method: gmres, restart: 60, iterations: 4000}",
           "{method: gmres, preconditioner: multigrid, cycle: f}", "{method: bicgstab, preconditioner: multigrid}",
           "{preconditioner: multigrid, cycle: w}", "{method: multigrid, iterations: 400}",
           "{method: multigrid, cycle: v, iterations: 400}")
SMOOTHERS = ("red_black", "line")  # the latter where a line is not the whole grid


def operator(rng, name, where, dim):
    """What has one solution: a definite operator, and what makes it unsymmetric or nonlinear."""
    c = rng.choice(AXES[:dim])
    beside = NAMES[dim][where ^ 1 << AXES.index(c)]
    main = rng.choice([f"laplacian({name})", f"div((2 + sin(5*x))*grad({name}))", f"laplacian({name})",
                       f"laplacian({name}) + d2dx({name})", f"div(at(1 + k, faces)*grad({name}))",
                       f"div(harmonic(1 + 9*k, faces)*grad({name}))",
                       f"div(at(1 + 0.3*{name}^2, faces)*grad({name}))",
                       f"div(at(1/(1 + 0.2*tanh({name})^2), faces)*grad({name}))"])
    if dim > 1 and rng.random() < 0.2:  # the axis of the strongest coupling is another one elsewhere
        rate = rng.choice([1, 4])
        main = "div([" + ", ".join(f"exp({rate}*sin({4 + i}*x + {2*i}*y))*dd{a}({name})"
                                   for i, a in enumerate(AXES[:dim])) + "])"
    if where == 0 and dim > 1 and rng.random() < 0.2:  # a wind, from upwind or central
        wind = ["y - 0.5", "0.5 - x", "0.3"][:dim]
        speed, how = rng.choice([(2, ""), (30, ", upwind")])
        main = f"laplacian({name}) - div(advective_flux({name}, [" + ", ".join(
            f"at({speed}*({w}), {face})" for w, face in zip(wind, ("xface", "yface", "zface"))) + f"]{how}))"
    if where == 0 and rng.random() < 0.1:  # jumps for which coarser grids need entries
        main = f"div(harmonic(exp(5*sin(9*x)*cos(7*{AXES[dim - 1]})), faces)*grad({name}))"
    if where and "k" in main:
        main = f"div((1 + {c}^2)*grad({name}))"
    more = rng.choice([f" - {name}", f" - {name}", f" - (1 + {c})*{name}", f" - 0.1*{name}^3 - {name}",
                       f" - sinh({name})", f" - exp({name}) + 1 - {name}",
                       f" - {name} + 0.3*dd{c}(at({name}, {beside}))"])
    return main + more


def up_to_a_constant(rng, name, where, periodic):
    """What all constants solve: an operator, and right-hand sides whose integral is 0. Points on a side count half as
    long as the coefficients beside them are equal."""
    dim = len(periodic)
    even = any(where >> a & 1 and not wraps for a, wraps in enumerate(periodic))
    left = rng.choice([f"laplacian({name})"] + [f"div((2 + sin(5*x))*grad({name}))"] * (not even) +
                      [f"div(at(1 + k, faces)*grad({name}))"] * (where == 0))
    source = rng.choice(["k", "0.3*k*k", f"k*sin(7*{AXES[dim - 1]})"])
    source = source if where == 0 else f"at({source}, {NAMES[dim][where]})"
    return left, f"{source} - integral({source})/integral(1 + 0*({source}))"


def sides(rng, periodic, others):
    """Conditions; some read an unknown of the same location."""
    said = []
    for a, wraps in enumerate(periodic):
        for side in "" if wraps else "-+":
            across = AXES[(a + 1) % len(periodic)] if len(periodic) > 1 else "0.5"
            value = rng.choice(["0", "SIZE*0.3", f"SIZE*sin(4*{across})"] + [f"0.2*{other}" for other in others])
            one = rng.choice([f"{{dirichlet: \"{value}\"}}", f"{{neumann: \"{value}\"}}", "{outflow: true}",
                              f"{{robin: {{a: 1, b: 0.5, c: \"{value}\"}}}}"])
            if rng.random() < 0.2 and len(periodic) > 1:
                one = f"[{{where: \"{across} > 0.4\", dirichlet: \"SIZE*0.5\"}}, {one}]"
            said.append(f"{AXES[a]}{side}: {one}")
    return "{" + ", ".join(said) + "}"


def sized(rng, text):
    """Linear systems have right-hand sides, values at sides and guesses of any size."""
    linear = not re.search(r"\b[suvwqmo]\^[23]|sinh|tanh|exp\([suvwqmo]\)|shut|inputs:|sin\([suvwqmo]\)|absolute", text)
    size = f"1e{rng.choice([-200, -130, -20, 20, 130, 200])}" if linear and rng.random() < 0.8 else None
    return text.replace("SIZE", size) if size else text.replace("SIZE*", "").replace("/SIZE", "")


def write(rng):
    """The text of a deck."""
    dim = rng.choice([1, 2, 2, 3])
    solver = rng.choice(SOLVERS)
    large = re.search("multigrid|^{}$", solver) and rng.random() < 0.3  # ranks share rows of coarser grids by entries
    some = {1: [9, 24, 40], 2: [8, 9, 13, 17, 24], 3: [6, 7, 9]}
    cells = [rng.choice({1: [1000], 2: [41, 46, 62], 3: [15, 16, 18]}[dim] if large else some[dim]) for _ in range(dim)]
    if dim > 1 and rng.random() < 0.1:  # along one axis few cells are left long before the other
        cells[rng.randrange(dim)] *= 7
    periodic = [rng.random() < 0.4 for _ in cells]
    names = ["s", "u", "v", "w", "q", "m", "o"][:rng.choice([1, 1, 1, 2, 2, 3, 3, 4, 5, 7])]
    places = {name: 0 if rng.random() < 0.6 else rng.choice(list(NAMES[dim])) for name in names}
    coupled = rng.random() < 0.6
    # What couples the unknowns of a point, with both signs, so that there is one solution whatever the rate.
    cycles = re.search("multigrid|^{}$", solver)
    turning = rng.choice([5, 50, "(100*(1 + x))", 2000]) if cycles and rng.random() < 0.4 else 0
    lines, rest = [], []
    coefficients = Coefficients(rng, NAMES[dim], periodic)
    for i, name in enumerate(names):
        where = places[name]
        left = operator(rng, name, where, dim)
        for j, other in enumerate(names if coupled else names[:i]):
            if other != name and coupled and turning and places[other] == where:
                left += f" {'+' if i < j else '-'} {turning}*{other}"
            elif other != name:
                left += f" + 0.2*{'' if places[other] == where else 'at('}{other}" + (
                    "" if places[other] == where else f", {NAMES[dim][where]})")
        if "multigrid" not in solver and rng.random() < 0.3:
            alike = [other for other in names if places[other] == where]
            fixed = ["k"] * (where == 0) + [other for other in alike if other in names[:i] and not coupled]
            unknowns = [other for other in alike if other == name or coupled]
            left += coefficients.term(name, where, unknowns, fixed)
        right = rng.choice(["1", "x", f"sin(7*{AXES[dim - 1]})", "random(3)"])
        near = [other for other in names[:i] if places[other] == where]  # of the same system, too
        mask = rng.choice(["", "", ", mask: \"(x - 0.3)^2 > 0.02\""])
        conditions = sides(rng, periodic, near)
        if not coupled and rng.random() < 0.25:
            left, right = up_to_a_constant(rng, name, where, periodic)
            kinds = ["{neumann: 0}", "{outflow: true}"]  # with points on a side their rows have other weights
            conditions = "{" + ", ".join(f"{AXES[a]}{s}: {rng.choice(kinds[:1 if where >> a & 1 else 2])}"
                                         for a, wraps in enumerate(periodic) if not wraps for s in "-+") + "}"
            mask = ""
        right = f"SIZE*({right})"
        lines.append(f"  {name}: {{location: {NAMES[dim][where]}, initial: \"SIZE*0.1*x\", "
                     f"solve: \"{left} = {right}\", solver: r, boundary: {conditions}{mask}}}")
        if where == 0 and not mask:
            rest.append(f"  rest_{name}: \"({left} - {right})/SIZE\"")
    alone = not any(places.values()) and (len(names) == 1 or not coupled) and not coefficients.lines
    if alone and not large and not re.search(r"advective|dd.\(at|0\.3\*.\^2|tanh", " ".join(lines)):
        solver = rng.choice([solver, "{method: pipelined_cg, iterations: 2000}",  # all symmetric
                             "{method: cg, single_reduction: true, iterations: 2000}",
                             "{method: cg, preconditioner: multigrid, single_reduction: true, iterations: 400}",
                             "{method: pipelined_cg, preconditioner: multigrid, iterations: 400}",
                             *(f"{{{how}: multigrid, smoother: {smoother}, iterations: 2000}}"
                               for smoother in SMOOTHERS[:1 + (dim > 1)] for how in ("preconditioner", "method"))])
    if len(names) == 1 and any(places.values()) and not coefficients.lines and not large and rng.random() < 0.5:
        solver = rng.choice(["{preconditioner: multigrid, iterations: 2000}", "{method: multigrid, iterations: 2000}"])
    if rng.random() < 0.12 and len(names)*math.prod(cells) < 6000:  # factors are for few unknowns
        solver = "{method: lu}"
    if "multigrid" in solver:  # coarser grids that every rank has, and cut ones
        solver = solver[:-1] + rng.choice([", replicate: 0", ", replicate: 20", *[""]*(not large)]) + "}"
    more = rng.choice(["", "", f", length: {[rng.choice([1, 0.8, 2]) for _ in cells]}, origin: {[-0.1] * dim}"])
    closed = ", ".join(f"{AXES[a]}{s}: {{neumann: 0}}" for a, wraps in enumerate(periodic) if not wraps for s in "-+")
    left = ["plugins: [side_values]"] if coefficients.plugins else []
    left += ["expressions:", *coefficients.lines, *rest] if rest or coefficients.lines else []
    solver = solver[:-1] + rng.choice([", tolerance: 1e-6", ", absolute: 1e-9", "", ""]) + "}"  # drawn last
    if "gmres, preconditioner: multigrid" in solver:
        solver = solver[:-1] + f", restart: {rng.randint(2, 40)}" + "}"
    solver = solver.replace("restart: 60", f"restart: {rng.choice([60, 60, 45])}")
    solver = solver.replace("{, ", "{")
    solver = solver if "single" in solver else one_message(rng, solver)
    text = "\n".join(["trellis: 1", f"grid: {{cells: {cells}, periodic: {json.dumps(periodic)}{more}}}",
                      f"solvers: {{r: {solver}}}", *left, "equations:",
                      "  k: {initial: 1, solve: \"k = 1 + cos(3*x)^2\", boundary: {" + closed + "}}", *lines,
                      f"output: {{fields: [{', '.join(names + [line.split(':')[0].strip() for line in rest])}]}}", ""])
    return sized(rng, text)

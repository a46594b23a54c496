# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random decks whose coarser grids have the equation, cut as far as it goes: patches that get thin are merged, or every
rank has all of the grid. And ways to run them on up to eight ranks."""
import json

from random_coefficients import one_message
from random_decks import NAMES

AXES = "xyz"
SOLVERS = ("method: cg, preconditioner: multigrid", "method: multigrid", "method: multigrid, cycle: v",
           "method: cg, preconditioner: multigrid, cycle: w", "method: cg, preconditioner: multigrid, cycle: f",
           "method: bicgstab, preconditioner: multigrid", "method: gmres, preconditioner: multigrid")
CELLS = {1: (12, 100), 2: (6, 40), 3: (5, 15)}


def sides(rng, periodic):
    """Conditions, one at least of them on values."""
    kinds = ("{dirichlet: 0}", "{dirichlet: 0.3}", "{neumann: 0.2}", "{robin: {a: 1, b: 0.5, c: 1}}")
    return "{" + ", ".join(f"{AXES[a]}{side}: {rng.choice(kinds)}" for a, wraps in enumerate(periodic) if not wraps
                           for side in "-+") + "}"


def operator(rng, name, where, smoothed, dim):
    """Coefficients that are numbers; formulas or a field for smoothers of colours, or where stencils are long."""
    strengths = [rng.choice([1, 1, 1, 0.4, 0.02]) for _ in range(dim)]
    plain = " + ".join(f"{s}*d2d{a}({name})" for s, a in zip(strengths, AXES))
    others = ["div((2 + sin(5*x))*grad({0}))", "div(exp(x)*grad({0}))"] if smoothed else []
    others += ["div(at(1 + k, faces)*grad({0}))"] if smoothed and where == 0 else []
    others += ["div4(grad4({0}))", "div4((2 + x)*grad4({0}))"] if where == 0 and not smoothed else []
    return rng.choice([plain, plain, *(text.format(name) for text in others)]) + f" - {rng.choice([1, 5])}*{name}"


def write(rng):
    """The text of a deck."""
    dim = rng.choice([1, 2, 2, 3, 3])
    cells = [rng.randint(*CELLS[dim]) for _ in range(dim)]
    periodic = [rng.random() < 0.4 for _ in cells]
    smoother = rng.choice(["", "", "", "red_black"] + ["line"] * (dim > 1))
    names = ["p", "q"][:1 if smoother else rng.choice([1, 1, 2])]
    where = rng.choice([0, 0, *NAMES[dim]])
    lines = []
    for i, name in enumerate(names):
        left = operator(rng, name, where, smoother, dim) + (f" + 0.2*{names[1 - i]}" if len(names) > 1 else "")
        lines.append(f"  {name}: {{location: {NAMES[dim][where]}, initial: \"0.1*x\", "
                     f"solve: \"{left} = 1 + random(3)\", solver: r, boundary: {sides(rng, periodic)}}}")
    more = f", smoother: {smoother}" if smoother else ""
    replicate = rng.choice([0, 0, 0, 15])
    # Conditions of order 2 beside stencils of order 4, and rows of points on sides, are not symmetric.
    symmetric = len(names) == 1 and "location: cell" in lines[0] and "4((2" not in lines[0]
    solver = rng.choice([s for s in SOLVERS if symmetric or "cg," not in s])
    if any("+ k" in line for line in lines):
        closed = ", ".join(f"{AXES[a]}{side}: {{neumann: 0}}" for a, wraps in enumerate(periodic) if not wraps
                           for side in "-+")
        lines.insert(0, f"  k: {{initial: 1, solve: \"k = 1 + cos(3*x)^2\", boundary: {{{closed}}}}}")
    solver = one_message(rng, solver)
    return "\n".join(["trellis: 1", f"grid: {{cells: {cells}, periodic: {json.dumps(periodic)}}}",
                      f"solvers: {{r: {{{solver}, replicate: {replicate}, iterations: 400{more}}}}}",
                      "equations:", *lines, ""])


def factors(rng, ranks, cells, thinnest):
    """One patch for each rank, along axes in any way that fits; None: in none of a few."""
    for _ in range(20):
        counts, rest = [1] * len(cells), ranks
        while rest > 1:
            factor = next(f for f in range(2, rest + 1) if rest % f == 0)
            counts[rng.randrange(len(cells))] *= factor
            rest //= factor
        if all(c == 1 or n // c >= thinnest for c, n in zip(counts, cells)):
            return counts
    return None


def ways(rng, text, n, most=8):
    """Ranks and settings of some runs."""
    cells = json.loads(text.split("cells: ")[1].split(", periodic")[0])
    thinnest = 5 if "div4" in text else rng.choice([1, 2, 2, 3])
    for _ in range(n):
        ranks, patches = rng.choice([r for r in (3, 4, 4, 5, 6, 6, 7, 8, 8, 8) if r <= most]), None
        while not patches:
            patches = factors(rng, ranks, cells, thinnest)
            ranks -= not patches
        owners = rng.choice(["blocks", "curve", f"random:{rng.randrange(100)}"])
        yield ranks, ["run.compile=never", "run.threads=1", f"run.owners={owners}", f"grid.patches={patches}"]

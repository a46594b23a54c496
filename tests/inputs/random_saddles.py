# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random saddle points: flows, fluxes and a potential, porous solids, and in steps waves, of staggered unknowns in one
to three dimensions, with constant, varying and nonlinear coefficients, sides of all kinds, masks and ways to solve."""
import json

AXES = "xyz"
SOLVERS = ("{}", "{}", "{}", "{method: gmres}", "{preconditioner: multigrid}",
           "{method: gmres, preconditioner: multigrid}", "{method: bicgstab, preconditioner: multigrid, cycle: w}",
           "{single_reduction: true, method: bicgstab}")


def free(periodic):
    """Conditions with which nothing is given."""
    return "{" + ", ".join(f"{AXES[a]}{s}: {{neumann: 0}}" for a, wraps in enumerate(periodic) if not wraps
                           for s in "-+") + "}"


def closed(rng, periodic, own=None):
    """Nothing goes through sides; along them what is at faces across another axis may move."""
    said = []
    for a, wraps in enumerate(periodic):
        for side in "" if wraps else "-+":
            moves = own is not None and a != own and rng.random() < 0.5
            said.append(f"{AXES[a]}{side}: {{dirichlet: \"{f'0.3*sin(4*{AXES[own]})' if moves else '0'}\"}}")
    return "{" + ", ".join(said) + "}"


def write(rng):
    """The text of a deck."""
    dim = rng.choice([1, 2, 2, 2, 3])
    cells = [rng.choice({1: [24, 41], 2: [9, 13, 18, 24, 37], 3: [6, 9, 13]}[dim]) for _ in range(dim)]
    periodic = [rng.random() < 0.3 for _ in cells]
    kind = rng.choice(["flow", "flow", "mixed", "porous", "waves", "waves", "rotating"])
    if kind in ("flow", "mixed", "porous"):
        periodic[0] = False  # there is one solution, but for a constant of the pressure
    faces = [f"{c}face" for c in AXES[:dim]]
    names = ["u", "v", "w"][:dim]
    div = " + ".join(f"dd{c}({n})" for c, n in zip(AXES, names))
    k = rng.choice(["1", "(1 + x^2)", "exp(sin(6*x))", "0.01"])
    mask = rng.choice(["", "", ", mask: \"(x - 0.3)^2 > 0.02\""]) if kind in ("mixed", "waves") and dim > 1 else ""
    lines, steps = [], ""
    time = kind in ("waves", "rotating")
    for a, (n, where) in enumerate(zip(names, faces)):
        c = AXES[a]
        if kind == "flow":
            left = rng.choice([f"laplacian({n})", f"laplacian({n}) - 300*{n}", f"div({k}*grad({n}))",
                               f"laplacian({n}) - at(2*ddx(at({n}, cell)), {where})" if a == 0 else f"laplacian({n})",
                               f"laplacian({n}) - {n}^3"]) + f" - dd{c}(p) = sin(5*{AXES[dim - 1]})"
            sides = closed(rng, periodic, a)
        elif kind == "mixed":
            left, sides = f"{n}/{k} + dd{c}(p) = 0.1*{c}", free(periodic)
        elif kind == "porous":
            left, sides = f"laplacian({n}) + dd{c}({div}) - dd{c}(p) = x", closed(rng, periodic, a)
        else:
            turn = f" + 0.5*at({names[1 - a]}, {where})*{1 - 2*a}" if kind == "rotating" and dim == 2 else ""
            drag = rng.choice(["", f" - {n}", f" + 0.01*laplacian({n})"]) if kind == "rotating" else ""
            left, sides = f"-{k}*dd{c}(p){turn}{drag}", closed(rng, periodic)
        lines.append(f"  {n}: {{location: {where}, initial: \"0.1*x\", {'ddt' if time else 'solve'}: \"{left}\", "
                     f"solver: s, boundary: {sides}}}")
    flux = {"flow": f"{div} = 0", "mixed": f"{div} = 1", "porous": f"0.01*p + {div} - 0.01*laplacian(p) = 0.1",
            "waves": f"-({div})", "rotating": f"-2*({div}) - 0.1*p"}[kind]
    sides = closed(rng, periodic) if kind in ("mixed", "porous") else free(periodic)
    lines.append(f"  p: {{initial: \"cos(3*x)\", {'ddt' if time else 'solve'}: \"{flux}\", solver: s, "
                 f"boundary: {sides}{mask}}}")
    rest = []
    if not time and not mask:
        left, right = flux.split(" = ")
        rest = [f"  rest_p: \"{left} - {right}\""]
    if time:
        steps = (f"time: {{method: {rng.choice(['beuler', 'cn', 'esdirk3', 'beuler'])}, "
                 f"dt: {rng.choice([0.01, 0.1, 1])}, steps: 3}}")
    more = rng.choice(["", "", ", replicate: 0", ", tolerance: 1e-6"])
    solver = (rng.choice(SOLVERS[:-1] if time else SOLVERS)[:-1] + f", iterations: 4000{more}}}").replace("{, ", "{")
    if "replicate" in solver and "preconditioner" not in solver:
        solver = solver.replace(", replicate: 0", "")
    expressions = ["expressions:", *rest] if rest else []
    return "\n".join(["trellis: 1", f"grid: {{cells: {cells}, periodic: {json.dumps(periodic)}}}",
                      f"solvers: {{s: {solver}}}", *expressions, "equations:", *lines, *([steps] if steps else []),
                      f"output: {{fields: [{', '.join([*names, 'p', *['rest_p'] * len(rest)])}]}}", ""])

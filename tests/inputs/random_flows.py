# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random decks of incompressible flow: axes, sides, masks, densities, forces, scalars, methods and solvers."""
import json
import re

from random_coefficients import one_message

AXES = "xyz"
FACES = ("xface", "yface", "zface")
EDGES = {(0, 1): "zedge", (0, 2): "yedge", (1, 2): "xedge"}
SOLVERS = ("{}", "{}", "{method: cg}", "{method: bicgstab, preconditioner: jacobi}", "{preconditioner: multigrid}",
           "{method: cg, preconditioner: none, iterations: 500}", "{method: pipelined_cg, iterations: 500}",
           "{method: pipelined_cg, preconditioner: multigrid, iterations: 100}",
           "{preconditioner: multigrid, replicate: 0}")


def carrier(names, a):
    """The velocity that carries component a."""
    return "[" + ", ".join(n if b == a else f"at({n}, {EDGES[min(a, b), max(a, b)]})"
                           for b, n in enumerate(names)) + "]"


def stress(names, a):
    """Row a of twice the strain rate, by a viscosity at cells."""
    parts = ["mu" if b == a else f"at(mu, {EDGES[min(a, b), max(a, b)]})" for b in range(len(names))]
    return f"div(2*[{', '.join(parts)}]*strain([{', '.join(names)}], {AXES[a]}))"


def conditions(rng, periodic, names):
    """For each component and side its condition. What flows in at one side may leave at the other one."""
    sides = [{} for _ in names]
    for axis, wraps in enumerate(periodic):
        if wraps:
            continue
        across = AXES[(axis + 1) % len(names)]
        profile = rng.choice([None, None, f"1 + 0.2*sin(5*{across} + 9*t)", "0.7", f"min(100*t, 1)*{across}"])
        for end, side in enumerate("-+"):
            for a in range(len(names)):
                if profile and end == 1:
                    kind = "{outflow: true}"
                elif a == axis:
                    kind = f"{{dirichlet: \"{profile or 0}\"}}"
                else:
                    kind = rng.choice(["{dirichlet: 0}", "{neumann: 0}", "{dirichlet: \"0.3*cos(t)\"}",
                                       f"[{{where: \"{across} > 0.4\", dirichlet: 0.5}}, {{neumann: 0}}]"])
                sides[a][AXES[axis] + side] = kind
    return ["{" + ", ".join(f"{side}: {kind}" for side, kind in own.items()) + "}" for own in sides]


def scalar_sides(rng, periodic):
    kinds = ("{neumann: 0}", "{outflow: true}", "{dirichlet: 1}")
    return "{" + ", ".join(f"{AXES[a]}{s}: {rng.choice(kinds)}" for a, wraps in enumerate(periodic) if not wraps
                           for s in "-+") + "}"


def read_velocities(rng, sides, names, solver):
    """The scalar's conditions, some of which read the velocity."""
    read = f"at({rng.choice(names)}, cell)"
    kinds = [f"{{dirichlet: \"1 + 0.2*{read}\"}}", f"{{dirichlet: \"1 + 0.2*{read}*cos(9*t)\"}}",
             f"{{neumann: \"0.1*{read}\"}}"]
    if "multigrid" not in solver:  # there is none of sums
        kinds.append(f"{{dirichlet: \"1 + 0.2*norm({rng.choice(names)})\"}}")
    return re.sub(r"{\w+: \w+}", lambda one: rng.choice([one[0], *kinds]), sides)


def pressure_sides(rng, sides):
    """Conditions of the pressure for some sides, of the kinds that follow from those of the velocity."""
    said = []
    for side, through in ((side, dict(re.findall(r"([xyz][-+]): {(\w+)", sides[AXES.index(side[0])]))[side])
                          for side in re.findall(r"[xyz][-+](?=:)", sides[0])):
        if rng.random() < 0.5:
            continue
        level = rng.choice(["0", "0.3", "0.1*sin(9*t)", f"0.2*{AXES[(AXES.index(side[0]) + 1) % len(sides)]}"])
        said.append(f"{side}: {{dirichlet: \"{level}\"}}" if through == "outflow" else f"{side}: {{neumann: 0}}")
    return f", boundary: {{{', '.join(said)}}}" if said else ""


def gate(rng, lines, names):
    """A wall that lets the flow out after some time, which is not within half of a step of 4e-3 after its start."""
    wall = "{dirichlet: \"0\"}"
    through = {name: lines.index(f"  {name}:") + 4 for name in names}
    walls = [(name, f"{AXES[a]}{end}: ") for a, name in enumerate(names) for end in "-+"
             if f"{AXES[a]}{end}: {wall}" in lines[through[name]]]
    if walls:
        name, side = rng.choice(walls)
        gates = f"{side}[{{where: \"t < 0.007\", dirichlet: 0}}, {{outflow: true}}]"
        lines[through[name]] = lines[through[name]].replace(side + wall, gates)


def write(rng):
    """The text of a deck."""
    dim = rng.choice([2, 2, 3])
    names = ("u", "v", "w")[:dim]
    solver = rng.choice(SOLVERS)
    some = {2: [8, 9, 13, 16, 20], 3: [8, 9, 12]}
    if "replicate" in solver and rng.random() < 0.5:  # ranks share rows of coarser grids by entries, too
        some = {2: [41, 44, 46], 3: [15, 16]}
    cells = [rng.choice(some[dim]) for _ in names]
    periodic = [rng.random() < 0.5 for _ in names]
    velocity = f"[{', '.join(names)}]"
    sides = conditions(rng, periodic, names)
    held = rng.choice(["", "", "(x - 0.4)^2 + (y - 0.5)^2 > 0.03"])
    density = rng.choice(["1", "1", "2", "1 + 0.5*x", "rho", "1 + 0.2*rho",
                          "exp(3*tanh(9*(rho - 1.5)))"])
    viscosity = rng.choice(["0.02*laplacian({0})", "0", "div((0.01 + 0.01*x)*grad({0}))"])
    thinning = rng.choice(["0.01/(1 + strain({0}))", "0.005 + 1e-3*strain({0})", None, None])
    method = rng.choice(["euler", "ssprk2", "ssprk3", "rk4", "bs3", "dp5", "ark3", "ark4", "beuler"])
    divided = method in ("ark3", "ark4", "beuler")
    lines = []
    for a, name in enumerate(names):
        along, force = AXES[(a + 1) % dim], rng.choice(["", " - 0.5", f" + 0.3*at(rho, {FACES[a]})", " + sin(20*t)"])
        limiter = rng.choice(["", ", vanleer"])
        explicit = f"-div(advective_flux({name}, {carrier(names, a)}{limiter})){force}"
        implicit = stress(names, a) if thinning else viscosity.format(name)
        rate = f"{{explicit: \"{explicit}\", implicit: \"{implicit}\"}}" if divided else f"\"{explicit} + {implicit}\""
        lines += [f"  {name}:", f"    location: {FACES[a]}",
                  f"    initial: \"if({held or 1}, 0.2*sin(2*pi*{along}) + 0.1*random({a + 1}), 0)\"",
                  f"    ddt: {rate}",
                  f"    boundary: {sides[a]}"]
        lines += [f"    mask: \"{held}\""] if held else []
    scalar = ["  rho:", "    initial: \"1.5 + 0.4*sin(6*x)*cos(5*y)\"",
              f"    ddt: \"-div(advective_flux(rho, {velocity}, {rng.choice(['minmod', 'koren'])}))\"",
              f"    boundary: {scalar_sides(rng, periodic)}"]
    step = rng.choice(["4e-3", "{cfl: 0.4, max: 0.01}"])
    time = f"method: {method}, dt: {step}"
    if method in ("bs3", "dp5") or method == "ark3" and rng.random() < 0.5:
        time = f"method: {{name: {method}, tolerance: {{relative: 1e-3, absolute: 1e-3}}}}, end: 0.02"
    grid = rng.choice(["", "", f", length: {[rng.choice([1, 0.8, 2]) for _ in names]}, origin: {[-0.05] * dim}"])
    pressure = rng.choice(["", "", ", initial: \"0.3 + x\"", f", exact: \"cos({AXES[dim - 1]} - t)\""])
    pressure += pressure_sides(rng, sides) if rng.random() < 0.4 else ""
    steps = rng.choice([3, 6])
    if rng.random() < 0.5:  # drawn last
        scalar[-1] = read_velocities(rng, scalar[-1], names, solver)
    if rng.random() < 0.3 and "boundary" not in pressure and "dt: 4e-3" in time:
        gate(rng, lines, names)
    solver = one_message(rng, solver)
    values = f"leak: \"norm(div({velocity}))\", top: \"domain_max(p)\""
    return "\n".join([
        "trellis: 1", f"grid: {{cells: {cells}, periodic: {json.dumps(periodic)}{grid}}}",
        f"incompressible: {{velocity: {velocity}, pressure: p, density: \"{density}\", solver: s{pressure}}}",
        f"solvers: {{s: {solver}}}",
        *([f"expressions: {{mu: \"{thinning.format(velocity)}\"}}"] if thinning else []), "equations:", *lines, *scalar,
        f"time: {{{time}, steps: {steps}}}",
        f"output: {{series: {{every: {{steps: 1}}, values: {{{values}}}}}}}", ""
    ])

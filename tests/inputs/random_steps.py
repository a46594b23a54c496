# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random decks whose steps GPUs take several at a time: axes, equations, sides, grids of some tiles."""
import json
import re

# By axes and equations, then by the steps of a launch: the least grid along x and y.
TILES = {(3, 1): {2: (36, 36), 3: (70, 40), 4: (72, 40)}, (3, 2): {2: (52, 40), 3: (48, 40)}, (3, 3): {2: (48, 40)},
         (2, 1): {2: (64, 64), 3: (64, 64), 4: (64, 64), 8: (128, 64)},
         (2, 2): {2: (64, 32), 3: (64, 64), 4: (64, 64), 6: (64, 64)}, (2, 3): {2: (64, 40), 3: (64, 48), 4: (64, 48)}}
METHODS = {2: ["euler", "ssprk2"], 3: ["euler", "ssprk3"]}  # by levels of a launch: steps, or stages of one


def sides(rng, axis):
    """Conditions of an axis; none if it is periodic."""
    words = ["{dirichlet: 0.5}", "{neumann: 0}", "{neumann: \"0.2*cos(t)\"}", "{dirichlet: \"x + 2*y\"}",
             "{robin: {a: 1, b: 0.5, c: 2}}"]
    return [f"{'xyz'[axis]}{side}: {rng.choice(words)}" for side in "-+"]


def rate(rng, dim, name, others, lasting, corners):
    """What an equation's ddt is, of the fields that change beside it and of one that does not. corners: how a field is
    read off the axes, or None."""
    words = ["0.02*laplacian(T)", "div(0.01*grad(T))", "-0.3*cddx(T)", "0.2*cddy(T) + 0.1*cddx(T)", "0.1*sin(t)*y",
             "(-1)*T^3", "x*T", "exp(-x)*cos(T)", "t*T"] + ["0.2*cddz(T)", "z*T"] * (dim == 3)
    terms = rng.sample(words, rng.choice([2, 4]))
    if corners:
        terms += [corners.format(of=rng.choice(["T", *others])) for _ in range(rng.choice([0, 1, 1]))]
    terms += [rng.choice([f"0.3*T*{o}", f"0.1*laplacian({o})", f"0.2*cddy({o})*T"]) for o in others]
    if lasting:
        terms += rng.sample(["div(K*grad(T))", "0.1*K*T", "cddx(K)*y", "0.1*laplacian(K)", "-0.5*K^2"], 2)
        terms += [corners.format(of="K")] if corners and rng.random() < 0.3 else []
    return re.sub(r"\bT\b", name, " + ".join(terms))


# Of fields at cells and faces, on periodic axes: where each is, and what it gets from the others.
STAGGERED = {"T": ("cell", {"U": "(-1)*ddx(U)", "V": "(-1)*ddy(V)"}), "U": ("xface", {"T": "(-0.5)*ddx(T)"}),
             "V": ("yface", {"T": "(-0.5)*ddy(T)"})}


def write(rng, dim, equations, steps, method):
    """A deck."""
    staggered = equations > 1 and rng.random() < 0.3
    counted = TILES.get((dim, equations + 1), {})  # with what does not change, if it is read at neighbours or in stages
    lasting = rng.random() < 0.5 and steps in counted and not staggered
    least = [max(n) for n in zip(TILES[dim, equations][steps], counted[steps] if lasting else (0, 0))]
    cells = [least[0] + rng.choice([0, 1, 9, 30]), least[1] + rng.choice([0, 3, 20]), rng.choice([16, 17, 23])][:dim]
    periodic = [rng.random() < 0.5 or staggered for _ in range(dim)]
    names = ["T", "U", "V"][:equations]
    text = f"trellis: 1\ngrid: {{cells: {cells}, periodic: {json.dumps(periodic)}}}\nequations:\n"
    for name in names + ["K"] * lasting:
        conditions = ", ".join(c for a in range(dim) if not periodic[a] for c in sides(rng, a))
        others = [n for n in names if n != name and rng.random() < 0.7 and not staggered]
        location, given = STAGGERED[name] if staggered else ("cell", {})
        wave = "sin(2*pi*x)*cos(2*pi*y)"
        start = f"(-0.01)*floor(5*x)*{wave}" if name == "K" else f"{wave} + 0.1*random({rng.randint(1, 99)})"
        corners = f"0.05*at(ddx(at(ddy({{of}}), {location})), {location})" if all(periodic) else None
        change = "0" if name == "K" else rate(rng, dim, name, others, lasting, corners)
        change += "".join(f" + {term}" for other, term in given.items() if other in names)
        text += (f"  {name}:\n    location: {location}\n    initial: \"{start}\"\n    ddt: \"{change}\"\n"
                 f"    boundary: {{{conditions}}}\n")
    return text + (f"time: {{method: {method}, dt: 1e-5, steps: {rng.choice([4 * steps + 3, 5 * steps + 1])}}}\n"
                   f"output:\n  fields: []\n  series: {{every: {{steps: {rng.choice([3 * steps + 1, 50])}}}, "
                   "values: {m: \"integral(T)\"}}\n")


def draw(rng):
    """Axes, equations, levels of a launch and a method."""
    dim, equations = rng.choice(list(TILES))
    steps = rng.choice(list(TILES[dim, equations]))
    return dim, equations, steps, rng.choice(METHODS.get(steps, ["euler"]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=600
"""Boundary values that read fields: random decks against a reference (side_reference.py), and the same bits in all ways
of running them."""
import argparse
import collections
import json
import math
import os
import pathlib
import random
import subprocess
import sys

from side_reference import NAMES, Cycle, Field, Grid, Problem

BUILD = pathlib.Path(os.environ.get("TRELLIS_BUILD", "build"))
VALUE = {"k": 0.7}  # parameters


def number(rng):
    x = rng.choice([0.1, 0.25, -0.3, 0.5, -0.7, 0.9, "k"])
    return (x, lambda e: VALUE["k"]) if x == "k" else (str(x), lambda e: x)


class Writer:
    """A deck and its problem."""

    def __init__(self, rng, sensitivity=False):
        self.rng, self.sensitivity = rng, sensitivity
        dim = rng.choice([1, 1, 2, 2, 2, 3])
        cells = [rng.randint(*{1: (4, 9), 2: (4, 6), 3: (2, 4)}[dim]) for _ in range(dim)]
        periodic = [rng.random() < 0.4 for _ in range(dim)]
        periodic[rng.randrange(dim)] = False
        self.grid = Grid(cells, periodic)
        self.axes = "xyz"[:dim]
        places = rng.sample(list(NAMES[dim]), min(len(NAMES[dim]), rng.choice([1, 2, 2, 3])))
        self.fields = [Field(f"{chr(97 + i)}{rng.choice('uvw')}", rng.choice(places)) for i in range(rng.randint(2, 4))]
        self.entries = {}  # named formulas and what plugins compute, as they are used
        self.flags = set()
        self.rank = {}     # of fields: conditions read fields of a lower rank, with few exceptions

    # ---- what conditions read ----

    def target_of(self, field, g, axis):
        """The location that a field is wanted at beside a side of another one, or None if it is not to be had there."""
        for a in range(self.grid.dim):
            if a != axis and (g.where ^ field.where) >> a & 1 and not g.where >> a & 1 and not self.grid.periodic[a]:
                return None
        normal = g.where >> axis & 1
        if normal and self.rng.random() < 0.15:
            normal = 0
        return field.where & ~(1 << axis) | normal << axis

    def placed(self, text, g, target):
        return text if target == g.where else f"at({text}, {NAMES[self.grid.dim][target]})"

    def named(self, g):
        """An expression of one field, in one of several forms."""
        rng = self.rng
        form = rng.choice(["stage", "stage", "step", "boundary", "vector"])
        c, name = rng.choice(self.axes), f"n{len(self.entries)}"
        text, i = f"0.5*{g.name} + 0.1*{c} + 0.2*t", "xyz".index(c)
        fn = lambda e, target: e.nearest(g, target, lambda p, x: 0.5 * e.level.value(g, p) + 0.1 * x[i] + 0.2 * e.t)
        if form == "vector" and self.grid.dim > 1:
            lines = [f"  {name}: [" + ", ".join(f"\"{text}\"" for _ in self.axes) + "]"]
            name, key = f"{name}.{rng.choice(self.axes)}", name
        elif form == "step":
            lines, key = [f"  {name}: {{formula: \"{text}\", evaluate: step}}"], name
            stage, fn = fn, lambda e, target: stage(e.before(), target)
        elif form == "boundary":
            sides = ", ".join(f"{self.axes[a]}{s}: {{dirichlet: 7}}" for a in range(self.grid.dim)
                              if not self.grid.periodic[a] for s in "-+")
            lines, key = [f"  {name}: {{formula: \"{text}\", boundary: {{{sides}}}}}"], name
        else:
            lines, key = [f"  {name}: \"{text}\""], name
        self.entries[key] = lines
        return name, fn

    def plugin(self, g, field, axis):
        """What a plugin computes of a field: twice its value, or the sum of two neighbours along a periodic axis."""
        along = 1 if self.grid.dim > 1 else 0
        beside = self.grid.periodic[along] and along != axis and self.rng.random() < 0.5
        kind, name = "beside" if beside else "twice", f"p{len(self.entries)}"
        self.entries[name] = [
            f"  {name}: {{type: {kind}, computes: [{name}], inputs: {{input: {g.name}}}, "
            f"parameters: {{at: {g.where}}}}}"
        ]
        self.flags.add("plugin")
        if beside:
            return name, lambda e, target: e.neighbours(g, target, along)
        return name, lambda e, target: 2 * e.read(g, target)

    def probe(self, g):
        """Between two points of each axis; None if there are not two."""
        low, grid = [], self.grid
        for a in range(grid.dim):
            n = grid.points(g.where, a)
            if n < 2:
                return None
            low.append(self.rng.randrange(n - 1))
        x = [(low[a] + (0.5 if g.where >> a & 1 else 1)) / grid.cells[a] for a in range(grid.dim)]
        return f"probe({g.name}, [{', '.join(map(repr, x))}])", lambda e: e.level.mean(g, low)

    def term(self, field, axis):
        """Something that a condition reads."""
        rng = self.rng
        lower = [g for g in self.fields if self.rank[g.name] < self.rank[field.name]]
        if rng.random() < 0.92:  # or a cycle is likely
            if not lower:
                return rng.choice([("t", lambda e: e.t), ("0.4", lambda e: 0.4),
                                   (f"old({field.name})", lambda e: e.before().read(field, field.where))])
            g = rng.choice(lower)
        else:
            g = rng.choice(self.fields)
        pick = rng.random()
        if pick < 0.08 and not g.mask:
            return f"integral({g.name})", lambda e: e.level.integral(g)
        if pick < 0.14:
            found = self.probe(g)
            if found:
                return found
        target = self.target_of(field, g, axis)
        if target is None:
            return rng.choice([("t", lambda e: e.t), ("0.4", lambda e: 0.4)])
        if pick < 0.3:
            return f"old({self.placed(g.name, g, target)})", lambda e: e.before().read(g, target)
        if pick < 0.5:
            name, fn = self.named(g)
            return self.placed(name, g, target), lambda e: fn(e, target)
        if pick < 0.55 and not self.sensitivity:  # what plugins compute has no derivatives
            name, fn = self.plugin(g, field, axis)
            return self.placed(name, g, target), lambda e: fn(e, target)
        return self.placed(g.name, g, target), lambda e: e.read(g, target)

    def value(self, field, axis):
        c, n = number(self.rng), number(self.rng)
        one = self.term(field, axis)
        others = [a for a in range(self.grid.dim) if a != axis]
        if others and self.rng.random() < 0.3:
            a = self.rng.choice(others)
            return f"{c[0]}*{one[0]} + {self.axes[a]}", lambda e: c[1](e) * one[1](e) + e.x[a]
        if self.rng.random() < 0.3:
            return f"{n[0]} + {c[0]}*{one[0]}*sin(30*t + 1)", lambda e: n[1](e) + c[1](e) * one[1](e) * math.sin(30 * e.
                                                                                                                 t + 1)
        return f"{n[0]} + {c[0]}*{one[0]}", lambda e: n[1](e) + c[1](e) * one[1](e)

    # ---- conditions ----

    def piece(self, field, axis):
        """The text of a condition, its kind, and its values."""
        kind = self.rng.choice(["dirichlet"] * 4 + ["neumann", "robin", "robin", "robin0", "outflow", "expression"])
        v = self.value(field, axis)
        if kind == "outflow":
            return "outflow: true", kind, []
        if kind == "robin":
            return f"robin: {{a: \"0.5 + t\", b: 2, c: \"{v[0]}\"}}", kind, [("", lambda e: 0.5 + e.t),
                                                                             ("", lambda e: 2.0), v]
        if kind == "robin0":
            return f"robin: {{a: 2, b: 0, c: \"{v[0]}\"}}", kind, [("", lambda e: 2.0), v]
        if kind == "expression":
            name = f"c{len(self.entries)}"
            self.entries[name] = [f"  {name}: \"{v[0]}\""]
            return f"expression: {name}", kind, [v]
        return f"{kind}: \"{v[0]}\"", kind, [v]

    def modifier(self, field, axis):
        """A plugin that holds a side at another field's value."""
        g = self.rng.choice(self.fields)
        if (g.where ^ field.where) & ~(1 << axis) or g is field:
            return None
        name = f"m{len(self.entries)}"
        self.entries[name] = [
            f"  {name}: {{type: held, inputs: {{input: {g.name}}}, parameters: {{at: {field.where}, of: {g.where}}}}}"
        ]
        self.flags.add("plugin")
        return f"{{expression: {name}}}", [("expression", None, [("", lambda e: e.read(g, g.where))])]

    def side(self, field, side):
        rng, axis = self.rng, side // 2
        held = self.modifier(field, axis) if rng.random() < 0.07 and not self.sensitivity else None
        if held:
            return held
        text, kind, values = self.piece(field, axis)
        others = [a for a in range(self.grid.dim) if a != axis]
        if not others or rng.random() < 0.75:
            return "{" + text + "}", [(kind, None, values)]
        a, first = rng.choice(others), self.piece(field, axis)
        where = f"{self.axes[a]} > 0.45"
        return f"[{{where: \"{where}\", {first[0]}}}, {{{text}}}]", [(first[1], (where, lambda e: e.x[a] > 0.45),
                                                                      first[2]), (kind, None, values)]

    def boundary(self, field):
        texts = []
        for s in range(2 * self.grid.dim):
            if not self.grid.periodic[s // 2]:
                text, field.sides[s] = self.side(field, s)
                texts.append(f"{self.axes[s // 2]}{'-+'[s % 2]}: {text}")
        return "{" + ", ".join(texts) + "}"

    # ---- equations ----

    def initial(self, field, earlier):
        rng = self.rng
        c = [rng.choice([0.2, -0.4, 0.7]) for _ in self.axes]
        text = "0.3 + " + " + ".join(f"{v}*{x}" for v, x in zip(c, self.axes))
        alike = [g for g in earlier if g.where == field.where]
        if alike and rng.random() < 0.3:
            g = rng.choice(alike)
            return f"{text} - 0.5*{g.name}", lambda e: 0.3 + sum(v * x
                                                                 for v, x in zip(c, e.x)) - 0.5 * e.read(g, g.where)
        return text, lambda e: 0.3 + sum(v * x for v, x in zip(c, e.x))

    def ddt(self, field):
        rng, f = self.rng, field
        alike, one = [g for g in self.fields if g.where == f.where], rng.choice([g for g in self.fields if not g.mask])
        g = rng.choice(alike)
        choices = [("0", lambda e: 0.0), (f"-0.5*{f.name}", lambda e: -0.5 * e.read(f, f.where)),
                   (f"0.02*laplacian({f.name})", lambda e: 0.02 * e.level.laplacian(f, e.point)),
                   (f"0.02*laplacian({g.name}) + 0.3*{g.name}",
                    lambda e: 0.02 * e.level.laplacian(g, e.point) + 0.3 * e.read(g, f.where)),
                   (f"0.3*sin(3*t + x) - integral({one.name})",
                    lambda e: 0.3 * math.sin(3 * e.t + e.x[0]) - e.level.integral(one)),
                   (f"old({f.name})", lambda e: e.before().read(f, f.where))]
        if f.where == 0:
            u = "[" + ", ".join("0.5" for _ in self.axes) + "]" if self.grid.dim > 1 else "0.5"
            choices += [(f"-div(advective_flux({f.name}, {u}))", lambda e: -0.5 * e.level.divergence(f, e.point))] * 3
        return rng.choice(choices)

    def write(self):
        """The text of the deck and its problem."""
        rng = self.rng
        order = rng.sample(self.fields, len(self.fields))
        for i, f in enumerate(order):
            self.rank[f.name] = i
            if rng.random() < 0.15 and i > 0 and not self.sensitivity:
                f.mask = ("(x - 0.3)^2 > 0.02", lambda e: (e.x[0] - 0.3)**2 > 0.02)
        equations, earlier = [], []
        for f in self.fields:
            f.initial, f.ddt = self.initial(f, earlier), self.ddt(f)
            earlier.append(f)
            lines = [
                f"  {f.name}:", f"    location: {NAMES[self.grid.dim][f.where]}", f"    initial: \"{f.initial[0]}\"",
                f"    ddt: \"{f.ddt[0]}\"", f"    boundary: {self.boundary(f)}"
            ] + ([f"    mask: \"{f.mask[0]}\""] if f.mask else [])
            equations.append(lines)
        method, dt, steps = rng.choice(["euler", "ssprk2", "ssprk3", "rk4"]), 0.01, rng.randint(1, 3)
        problem = Problem(self.grid, self.fields, method, dt, steps)
        rng.shuffle(equations)
        lines = [
            "trellis: 1", f"grid: {{cells: {self.grid.cells}, periodic: {json.dumps(self.grid.periodic)}}}",
            "parameters: {k: 0.7}"
        ]
        lines += ["plugins: [side_values]"] if "plugin" in self.flags else []
        if self.entries:
            lines += ["expressions:"] + [line for entry in self.entries.values() for line in entry]
        lines += ["equations:"] + [line for e in equations for line in e]
        if self.sensitivity:
            lines.append("sensitivity: {" + ", ".join(f"{f.name}: [k]" for f in self.fields) + "}")
        return "\n".join(lines + [f"time: {{method: {method}, dt: {dt}, steps: {steps}}}", ""]), problem


# ---- runs ----

def run(options, deck, settings, ranks=1):
    """What the report says of each field, or how the run ended."""
    report = pathlib.Path("report.json")
    report.unlink(missing_ok=True)
    command = [options.trellis, "run", str(deck), "--quiet", "--report", str(report), "--set", "output.directory=out",
               "--plugin-path", str(options.plugins)]
    for setting in settings:
        command += ["--set", setting]
    if ranks > 1:
        command = ["mpirun", "-n", str(ranks), *command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode == 0:
        return json.loads(report.read_text(encoding="utf-8"))["fields"], done.stderr
    return done.returncode, done.stderr


def ways_of(rng, dim, number):
    patches = f"grid.patches={[rng.choice([1, 2]) for _ in range(dim)]}"
    ways = [(["run.fusion=none", "run.compile=never", "run.threads=1"], 1),
            (["run.fusion=full", "run.compile=never", "run.threads=2"], 1),
            (["run.fusion=node", "run.compile=never", patches], 1)]
    if dim > 1:
        ways.append((["run.fusion=full", "run.compile=never", f"run.time_blocking={rng.choice([2, 3])}"], 1))
    if number % 5 == 0:
        ways.append((["run.fusion=full", "run.compile=always", patches], 1))
    if number % 5 == 1:
        ways.append(([
            f"run.fusion={rng.choice(['none', 'full'])}", "run.compile=never", f"grid.patches={[2] + [1] * (dim - 1)}"
        ], 2))
    return ways


def statistics(problem, level):
    """Least, largest and sum of each field, without masked points."""
    result = {}
    for f in problem.fields:
        values = []
        for p in problem.grid.all_points(f.where):
            at = type("At", (), {"x": problem.grid.coordinates(f.where, p)})
            if not f.mask or f.mask[1](at):
                values.append(level.value(f, p))
        result[f.name] = (min(values), max(values), math.fsum(values)) if values else None
    return result


def expected(problem):
    """Statistics by field, or None: there is a cycle."""
    try:
        return statistics(problem, problem.run())
    except Cycle:
        return None


def differs(wanted, fields, suffix=""):
    """The first field that is not what the reference says."""
    for name, numbers in wanted.items():
        found = fields[name + suffix]
        for what, x in zip(("min", "max", "sum"), numbers or ()):
            if not (isinstance(found[what], float) or isinstance(found[what], int)) or abs(found[what] -
                                                                                           x) > 1e-9 * max(1, abs(x)):
                return f"{what} of {name}{suffix} is {found[what]}, not {x}"
    return None


def derivative(problem):
    """The sums of the fields by k: a difference of fourth order."""
    sums = []
    for by in (-2, -1, 1, 2):
        VALUE["k"] = 0.7 + by * 1e-2
        found = expected(problem)
        sums.append(found and {name: numbers[2] for name, numbers in found.items()})
    VALUE["k"] = 0.7
    if any(s is None for s in sums):
        return None
    return {name: (sums[0][name] - 8 * sums[1][name] + 8 * sums[2][name] - sums[3][name]) / 12e-2 for name in sums[0]}


def judge(options, writer, problem, deck, rng, number, count):
    """One deck; what is wrong with it, or None."""
    wanted = expected(problem)
    ways = ways_of(rng, writer.grid.dim, number)
    first, message = run(options, deck, *ways[0])
    if wanted is None:
        count["cycles"] += 1
        return None if first == 2 and "cycle" in message else f"there is a cycle, and the run says {first} {message}"
    if first == 2:
        kind = "refused as a cycle" if "cycle" in message else "refused"
        count[kind] += 1
        if options.verbose:
            said = [line for line in message.splitlines() if line.startswith(str(deck)) and "warning" not in line]
            print(f"{kind}: {said[0] if said else message}", flush=True)
        known = ("cycle", "ghosts there are set", "filled later", "needs a boundary condition", "second derivative")
        return None if any(words in message for words in known) else message
    if not isinstance(first, dict):
        return f"{ways[0]}: {first} {message}"
    for settings, ranks in ways[1:]:
        other, said = run(options, deck, settings, ranks)
        if other == 2 and ("patch" in said or "did not end in time" in said):
            count["too thin"] += 1
            continue
        if not isinstance(other, dict):
            return f"{settings} on {ranks}: {other} {said}"
        different = [name for name in first if first[name]["hash"] != other[name]["hash"]]
        if different:
            return f"{settings} on {ranks}: other bits of {different} than {ways[0]}"
    count["same"] += 1
    wrong = differs(wanted, first)
    if wrong or not options.sensitivity:
        return wrong
    slope = derivative(problem)
    for name, x in (slope or {}).items():
        found = first[name + "_k"]["sum"]
        if abs(found - x) > 1e-6 * max(1, abs(x)):
            return f"the sum of {name}_k is {found}, not {x}"
    count["derivatives"] += 1
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decks", type=int, default=50 if "TRL_TEST_LONG" in os.environ else 5, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first deck")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sensitivity", action="store_true", help="decks with derivatives by a parameter")
    parser.add_argument("--verbose", action="store_true", help="say which decks are refused")
    parser.add_argument("--trellis", default=os.environ.get("TRELLIS", "trellis"))
    parser.add_argument("--plugins", default=BUILD / "test_plugins")
    options = parser.parse_args()
    count = collections.Counter()
    for number in range(options.first, options.first + options.decks):
        rng = random.Random(options.seed * 1000003 + number)
        writer = Writer(rng, options.sensitivity)
        text, problem = writer.write()
        deck = pathlib.Path(f"sides{number}.yaml").resolve()
        deck.write_text(text, encoding="utf-8")
        wrong = judge(options, writer, problem, deck, rng, number, count)
        if wrong:
            count["wrong"] += 1
            print(f"{deck} (seed {options.seed}): {wrong}", flush=True)
        else:
            deck.unlink()
    print(f"decks {options.first} to {options.first + options.decks - 1}:",
          ", ".join(f"{what} {n}" for what, n in sorted(count.items())))
    if count["wrong"] or count["same"] < 0.4 * options.decks:
        sys.exit("wrong values, or too few of the decks ran")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=600
"""Random decks in every way of evaluation that must give the same bits: degrees of fusion, interpreted and compiled, patches, threads."""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys

LIMITERS = ["", ", upwind", ", minmod", ", vanleer", ", superbee", ", mc", ", koren", ", charm", ", ospre", ", smart"]
LOCATIONS = {1: ["cell", "xface"], 2: ["cell", "xface", "yface", "node"],
             3: ["cell", "xface", "yface", "zface", "xedge", "yedge", "zedge", "node"]}
BITS = {"cell": 0, "xface": 1, "yface": 2, "zedge": 3, "zface": 4, "yedge": 5, "xedge": 6, "node": 7}


def location_of(bits, dim):
    """The name of a location, without the bits of axes that the grid lacks."""
    bits &= (1 << dim) - 1
    return {1: {0: "cell", 1: "xface"}, 2: {0: "cell", 1: "xface", 2: "yface", 3: "node"}}.get(
        dim, {value: name for name, value in BITS.items()})[bits]


class Writer:
    """Formulas of a location, of a given depth, from the fields that exist so far."""

    def __init__(self, rng, dim):
        self.rng, self.dim = rng, dim
        self.fields = {}

    def number(self):
        return self.rng.choice(["0.5", "2", "-1.25", "0.1", "3", "1e-3", "7.0e2", "p"])

    def leaf(self, where):
        choices = [self.number(), self.rng.choice("xyz"[: self.dim]), "t", f"random({self.rng.randint(1, 9)})"]
        own = [name for name, location in self.fields.items() if location == where]
        other = [name for name, location in self.fields.items() if location != where]
        choices += own * 3
        if other:
            choices.append(f"at({self.rng.choice(other)}, {where})")
        return self.rng.choice(choices)

    def bounded(self, where, depth):
        """A formula whose values stay small, whatever it is made of."""
        a = self.formula(where, depth)
        return self.rng.choice([f"min(1, max(-1, {a}))", f"({a})/(1 + abs({a}))", f"if({a} > 0, 0.25, -0.5)"])

    def operator(self, where, depth):
        """A difference of something at the location on the other side of an axis, or of the location's own."""
        axis = self.rng.randrange(self.dim)
        name = "xyz"[axis]
        flipped = location_of(BITS[where] ^ (1 << axis), self.dim)
        source = [f for f, location in self.fields.items() if location == flipped]
        own = [f for f, location in self.fields.items() if location == where]
        choices = []
        if source:
            choices += [f"dd{name}({self.rng.choice(source)})", f"at({self.rng.choice(source)}, {where})",
                        f"harmonic(abs({self.rng.choice(source)}) + 1, {where})"]
        if own:
            f = self.rng.choice(own)
            choices += [f"laplacian({f})", f"d2d{name}({f})", f"dd{name}(dd{name}({f}))", f"div(grad({f}))"]
            if where == "cell":
                velocity = "[" + ", ".join(self.rng.choice(["0.5", "-1", f"{v} - 0.4"]) for v in "xyz"[: self.dim]) + "]"
                choices.append(f"div(advective_flux({f}, {velocity}{self.rng.choice(LIMITERS)}))")
        return self.rng.choice(choices) if choices else self.formula(where, depth)

    def formula(self, where, depth):
        if depth <= 0:
            return self.leaf(where)
        pick = self.rng.randrange(14)
        if pick < 4:
            return self.operator(where, depth - 1)
        a, b = self.formula(where, depth - 1), self.formula(where, depth - 1)
        return [f"({a} + {b})", f"({a} - {b})", f"({a})*({b})", f"({a})/(1.5 + abs({b}))", f"min({a}, {b})", f"max({a}, {b})",
                f"if({a} < {b}, {a}, 2*({b}))", f"(-({a}))^{self.rng.choice(['2', '3', '-1', '7'])}", f"sqrt(abs({a}))",
                f"({a} >= 0.3 and not ({b} < 0.1)) + ({a} == 0 or {b} != 1)"][pick - 4]


def boundary(rng, axis):
    """One side."""
    value = rng.choice(["0", "0.3", "sin(t) + 0.1", "xyz".replace("xyz"[axis], "")[0] if axis != 0 else "0.2"])
    return rng.choice([f"{{dirichlet: \"{value}\"}}", f"{{neumann: \"{value}\"}}", "{outflow: true}",
                       "{robin: {a: 1, b: 0.5, c: 0.25}}"])


def make_deck(rng):
    dim = rng.choice([1, 2, 2, 3, 3])
    cells = [rng.choice([5, 7, 8, 13, 17, 33]) for _ in range(dim)]
    periodic = [rng.random() < 0.5 for _ in range(dim)]
    w = Writer(rng, dim)
    lines = ["trellis: 1", f"grid: {{cells: {cells}, periodic: {json.dumps(periodic)}}}", "parameters: {p: 0.75}", "equations:"]
    equations = [f"e{i}" for i in range(rng.randint(1, 3))]
    for name in equations:
        w.fields[name] = rng.choice(LOCATIONS[dim]) if name != "e0" else "cell"
    named = []
    expressions = ["expressions:"]
    for i in range(rng.randint(2, 5)):
        where = rng.choice(LOCATIONS[dim])
        formula = w.bounded(where, rng.randint(1, 3))
        # A formula without any field has no location.
        carrier = next((f for f, location in w.fields.items() if location == where), None)
        formula = f"({formula}) + 0*({carrier})" if carrier else f"({formula}) + at(0*e0, {where})"
        name = f"n{i}"
        expressions.append(f"  {name}: \"{formula}\"")
        named.append((name, where))
        w.fields[name] = where
    for name in equations:
        where = w.fields[name]
        lines += [f"  {name}:", f"    location: {where}", f"    initial: \"0.5 + 0.4*sin(3*x) + 0.1*random({rng.randint(1, 99)})\"",
                  f"    ddt: \"1e-3*({w.bounded(where, 2)})\"", "    boundary:"]
        sides = [f"      {'xyz'[a]}{s}: {boundary(rng, a)}" for a in range(dim) if not periodic[a] for s in "-+"]
        lines += sides if sides else ["      {}"]
    return "\n".join(lines + expressions + [
        f"time: {{method: {rng.choice(['euler', 'ssprk2', 'ssprk3', 'rk4'])}, dt: 1e-3, steps: 3}}",
        f"output: {{fields: [{', '.join(equations + [name for name, _ in named])}]}}", ""]), dim


def run(options, deck, folder, settings):
    """Hashes of all fields, or the way the run ended."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [options.trellis, "run", str(deck), "--quiet", "--report", str(report), "--set", f"output.directory={folder}"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode == 0:
        fields = json.loads(report.read_text(encoding="utf-8"))["fields"]
        return {name: field["hash"] for name, field in fields.items()}, ""
    if done.returncode not in (2, 3):
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
    return done.returncode, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trellis", default=os.environ.get("TRELLIS", "trellis"))
    options = parser.parse_args()
    compared = refused = broken = 0
    for case in range(options.cases):
        rng = random.Random(options.seed * 1000003 + case)
        text, dim = make_deck(rng)
        deck = pathlib.Path(f"case{case}.yaml").resolve()
        deck.write_text(text, encoding="utf-8")
        ways = [["run.fusion=none", "run.compile=never", "run.threads=1"],
                ["run.fusion=full", "run.compile=never", "run.threads=2"],
                [f"run.fusion={rng.choice(['node', 'none'])}", "run.compile=always"],
                ["run.fusion=full", "run.compile=always", f"grid.patches={[2] * dim}"]]
        results = [run(options, deck, pathlib.Path("out").resolve(), settings) for settings in ways]
        first, message = results[0]
        for settings, (other, said) in zip(ways[1:], results[1:]):
            if other == 2 and first != 2 and "patches" in said:  # they are too thin for this one
                continue
            if other != first:
                sys.exit(f"{deck} (seed {options.seed}): {settings} gives\n{other} {said}\nand {ways[0]} gives\n{first} {message}")
        if first == 2:
            refused += 1
            if refused == 1:
                print(f"refused, case {case}: {message}", end="")
        elif first == 3:
            broken += 1
        else:
            compared += 1
            deck.unlink()
    print(f"{options.cases} decks: the same bits in {compared}, refused {refused}, not finite {broken}")
    if compared < 0.6 * options.cases:
        sys.exit("too few of the decks run")


if __name__ == "__main__":
    main()

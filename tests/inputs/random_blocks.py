# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random decks of partial differential equations that several steps in a pass can take: a fixed dt, explicit methods,
no reductions, two axes or three, and a grid that is thick along the last one."""
import json

import random_decks

METHODS = ("euler", "ssprk2", "ssprk3", "rk4", "leapfrog")


class Writer(random_decks.Writer):
    """Formulas without values of the whole domain, conditions without types of plugins."""

    walled = False

    def reduction(self):
        return self.number()

    def whole_sum(self, name):
        return f"0.1*{name}"


def grid(rng):
    """Its line, dimension and periodic axes."""
    dim = rng.choice([2, 3, 3])
    cells = [rng.choice([8, 9, 13, 17]) for _ in range(dim - 1)] + [rng.choice([64, 91])]
    periodic = [rng.random() < (0.5 if a == dim - 1 else 0.15) for a in range(dim)]  # few passes go round others
    return f"grid: {{cells: {cells}, periodic: {json.dumps(periodic)}}}", dim, periodic


def write(rng):
    """The text of a deck, its dimension, and the number of its formulas."""
    line, dim, periodic = grid(rng)
    w = Writer(rng, dim, periodic)
    method = rng.choice(METHODS)
    w.leapfrog = method == "leapfrog"
    places = rng.sample(list(random_decks.NAMES[dim]), 2)
    w.equations = [f"e{i}" for i in range(rng.randint(1, 3))]
    for name in w.equations:
        w.fields[name] = rng.choice(places)
    text = random_decks.stencils(w) + random_decks.expressions(w, places) + ["equations:"]
    for name in w.equations:
        text += random_decks.equation(w, name, w.fields[name])
    names = ", ".join(w.equations + w.rates)
    return "\n".join(["trellis: 1", line, "parameters: {p: 0.75, q: 3, m: 0.4}"] + text + [
        f"time: {{method: {method}, dt: 1e-3, steps: {rng.choice([7, 12])}}}",
        f"output: {{every: {{steps: {rng.choice([5, 12])}}}, fields: [{names}]}}", ""
    ]), dim, w.written

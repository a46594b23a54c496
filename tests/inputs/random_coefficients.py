# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Equations that random decks solve beside others, and their coefficients without multigrid: positive fields with
conditions of their own, which read unknowns, other fields, and what types of a plugin make of these."""
import re

SIDES = ("{{dirichlet: \"1 + 0.2*tanh({0})\"}}", "{{neumann: \"0.2*sin({0})\"}}", "{{outflow: true}}",
         "{{robin: {{a: \"1 + 0.1*tanh({0})^2\", b: 0.5, c: \"1 + 0.1*sin({0})\"}}}}")


def one_message(rng, solver):
    """A solver whose iterations may have one message of sums."""
    single = rng.random() < 0.5
    return re.sub(r"(method: (cg|bicgstab))\b", r"\1, single_reduction: true", solver) if single else solver


class Coefficients:
    """Names and lines of the expressions of a deck."""

    def __init__(self, rng, names, periodic):
        self.rng, self.names, self.periodic, self.axes = rng, names, periodic, "xyz"[:len(periodic)]
        self.lines = []      # of expressions
        self.plugins = False # whether they need side_values

    def applied(self, where, read):
        """The name of what a type makes of a field, which does not change with what is solved for."""
        kind = self.rng.choice(["twice", "beside"])
        name = f"{kind}{len(self.lines)}"
        self.lines.append(f"  {name}: {{type: {kind}, computes: [{name}], inputs: {{input: {read}}}, "
                          f"parameters: {{at: {where}, of: {where}}}}}")
        self.plugins = True
        return f"0.3*{name}"

    def side(self, axis, where, unknowns, fixed):
        """A condition. unknowns, fixed: fields of the location, of which types take the second ones."""
        rng = self.rng
        read = rng.choice([*unknowns, *unknowns, *fixed, "x", "1"])
        if read in fixed and rng.random() < 0.4:
            if rng.random() < 0.5:
                name = f"shut{len(self.lines)}"
                self.lines.append(f"  {name}: {{type: held, inputs: {{input: {read}}}, "
                                  f"parameters: {{at: {where}, of: {where}}}}}")
                self.plugins = True
                return f"{{expression: {name}}}"
            if len(self.axes) > 1:  # of neighbours along a side: not along x, where `beside` has them
                read = self.applied(where, read)
        one = rng.choice(SIDES).format(read)
        if rng.random() < 0.2 and len(self.axes) > 1:
            across = self.axes[axis - 1]
            return (f"[{{where: \"{across} > 0.4\", dirichlet: \"1 + 0.1*cos({rng.choice([*unknowns, '3'])})\"}}, "
                    f"{one if 'expression' not in one else '{neumann: 0.1}'}]")
        return one

    def term(self, name, where, unknowns, fixed):
        """A term of an operator on a field, which reads a coefficient at its location beyond sides."""
        sides = ", ".join(f"{c}{s}: {self.side(a, where, unknowns, fixed)}" for a, c in enumerate(self.axes)
                          if not self.periodic[a] for s in "-+")
        inside = ["1 + 0.3*x", "1.2", *[f"1 + 0.3*sin({f})" for f in fixed]]
        if "expression" not in sides:  # a modifier of what changes has no derivative
            inside.append(f"1 + 0.2*tanh({name})^2")
        c = f"c{len(self.lines)}"
        self.lines.append(f"  {c}: {{formula: \"{self.rng.choice(inside)}\", location: {self.names[where]}, "
                          f"boundary: {{{sides}}}}}")
        terms = [f" + 0.05*laplacian({c})", f" - 0.02*laplacian({c})*{name}"]
        return self.rng.choice(terms + [f" + div(at({c}, faces)*grad({name}))"] * 3 * (where == 0))


def solution(w, name, where):
    """An equation that is solved, with one solution; the first of two may need the second one, which needs it."""
    rng = w.rng
    own = [e for e in w.equations if w.fields[e] == where]
    here, beside = w.name_of(where), w.name_of(where ^ 1)
    source = f"0.5*sin(3*{rng.choice(own)})" if own else f"0.2*at({rng.choice(w.equations)}, {here})"
    left = rng.choice([f"laplacian({name}) - {name}", f"div((2 + sin(5*x))*grad({name})) - 2*{name}",
                       f"laplacian({name}) - {name} - 0.1*{name}^3",
                       f"div(at(1.5 + 0.3*tanh({name}), faces)*grad({name})) - {name} - 0.1*sinh({name})",
                       f"laplacian({name}) - {name} + 0.2*ddx(at({name}, {beside}))"])
    other = [e for e in w.coupled if e != name]
    if other:
        e = rng.choice(other)
        left += f" + 0.4*{e}" if w.fields[e] == where else f" - 0.4*at({e}, {here})"
    if "multigrid" not in w.solvers["s"] and rng.random() < 0.5:
        alike = [f for f in w.coupled if f != name and w.fields[f] == where]
        left += w.coefficients.term(name, where, [name, *alike], own)
    if w.written % 3 == 0:  # a wind that begins to blow: the operator is symmetric before. It draws no random numbers
        left += f" - 9*t*ddx(at({name}, {beside}))" if w.written % 2 else f" - t*ddx(at({own[0]}*{name}, {beside}))" \
            if own else ""
    w.bounded = w.rated = None
    w.solving = True
    sides = [f"{w.axes[a]}{s}: {w.side(a)}" for a in range(w.dim) if not w.periodic[a] for s in "-+"]
    w.solving = False
    mask = rng.choice(["", "", ", mask: \"(x - 0.3)^2 > 0.02\""])
    equation = f"{left} = {source} + {rng.choice('0xt')}"
    return (f"  {name}: {{location: {here}, initial: 0, solve: \"{equation}\", solver: s, "
            f"boundary: {{{', '.join(sides)}}}{mask}}}")

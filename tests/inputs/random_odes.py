# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random decks of ordinary differential equations, whose values are the same at all points, with their solution by a
few lines of Python."""
import json
import math
import re
import sys

import random_decks

TABLEAUS = {  # stage times; rows of stages, the last one for the end of the step
    "euler": ([0], [[1]]),
    "ssprk2": ([0, 1], [[1], [0.5, 0.5]]),
    "ssprk3": ([0, 1, 0.5], [[1], [0.25, 0.25], [1 / 6, 1 / 6, 2 / 3]]),
    "rk4": ([0, 0.5, 0.5, 1], [[0.5], [0, 0.5], [0, 0, 1], [1 / 6, 1 / 3, 1 / 3, 1 / 6]]),
    "bs3": ([0, 0.5, 0.75], [[0.5], [0, 0.75], [2 / 9, 1 / 3, 4 / 9]]),
    "dp5": ([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1],
            [[1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9],
             [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
             [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
             [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]]),
}
# Differences to the other solution, by slopes and that of the new values; and the order.
ERRORS = {
    "bs3": ([-5 / 72, 1 / 12, 1 / 9, -1 / 8], 3),
    "dp5": ([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40], 5)
}
# Smooth, defined everywhere, of moderate size. The same text means the same to Python, but for powers.
FORMS = [
    "A + B", "A - B", "A*B", "A/(1.5 + B*B)", "-(A)", "sin(A)", "cos(A)", "tanh(A)", "exp(-(A)^2)", "sqrt(1 + (A)^2)",
    "abs(A)", "(A)^3", "max(A, B)", "min(A, B, 0.7)", "atan(A)*B", "if(A < B, A, 0.5*B)", "(2 + sin(A))^-2",
    "log(1.5 + (A)^2)", "hypot(A, 0.3)"
]


def functions(volume):
    """What formulas name, on values that are the same everywhere."""
    names = {name: getattr(math, name) for name in ("sin", "cos", "tanh", "exp", "sqrt", "atan", "log", "hypot")}
    names.update({name: lambda f: f for name in ("domain_max", "domain_min")})
    names.update(abs=abs, max=max, min=min, choose=lambda c, a, b: a if c else b, integral=lambda f: volume * f,
                 norm=abs, probe=lambda f, place: f, laplacian=lambda f: 0.0, at=lambda f, place: f, here=0)
    return names


class Odes:
    def __init__(self, rng, method):
        self.rng, self.method = rng, method
        line, self.dim, periodic = random_decks.grid(rng, 0.4)
        self.grid = line
        w = random_decks.Writer(rng, self.dim, periodic)
        self.names = random_decks.NAMES[self.dim]
        self.sides = [f"{c}{s}" for a, c in enumerate(w.axes) if not periodic[a] for s in "-+"]
        self.parameters = {"a": rng.uniform(0.3, 1.2), "b": rng.uniform(-1, 1), "n": 3}
        self.leapfrog = method == "leapfrog"
        self.second = {}  # names of equations of second order: their rates at the start
        self.place = {f"y{i}": rng.choice(list(self.names)) for i in range(rng.randint(1, 3))}
        self.initial, self.rate, self.named, self.first, self.feels = {}, {}, {}, {}, {}

    def leaf(self, where):
        """A value: `where` the location at which a field is read, None for values without."""
        rng = self.rng
        if rng.random() < (0.5 if where is None else 0.75):
            name = rng.choice(list(self.place))
            if where is None or rng.random() < 0.4:
                return self.reduction(name)
            value = rng.choice([name, name, name, f"old({name})"])
            return value if self.place[name] == where else f"at({value}, {self.names[where]})"
        return rng.choice(["a", "b", "n", "t", "dt", "dt*dt", "0.3", "-1.25", "2/3"] + list(self.named) +
                          list(self.first))

    def reduction(self, name):
        rng = self.rng
        f = rng.choice([name, name, f"{name}*{name}", f"sin({name})*a - t", f"{name} + 0.1*integral({name})"])
        places = random_decks.vector(str(round(rng.uniform(0.05, 0.65), 2)) for _ in range(self.dim))
        return rng.choice(
            [f"integral({f})", f"domain_max({f})", f"domain_min({f})", f"norm({f})", f"probe({f}, {places})"])

    def formula(self, where, depth):
        if depth <= 0:
            return self.leaf(where)
        parts = {c: f"({self.formula(where, depth - 1)})" for c in "AB"}
        return "".join(parts.get(c, c) for c in self.rng.choice(FORMS))

    def write(self):
        rng = self.rng
        for i in range(rng.randint(0, 2)):
            text = self.formula(None, rng.randint(0, 2))
            rng.choice([self.named, self.first])[f"s{i}"] = text
        for name, where in self.place.items():
            self.initial[name] = f"{round(rng.uniform(-1, 1.5), 3)} + {rng.choice(['0', '0.5', 'b'])}*a"
            rate = self.formula(rng.choice([where, None]), rng.randint(0, 3))
            rate = rng.choice([rate, f"a*sin({rate})", f"tanh({rate}) - {self.leaf(None)}", self.leaf(None)])
            self.rate[name] = rate + (f" + 0.1*laplacian({name})" if rng.random() < 0.2 else "")
        lines = ["trellis: 1", self.grid, f"parameters: {json.dumps(self.parameters)}"]
        lines += ["expressions:"] if self.named or self.first else []
        lines += [f"  {name}: {{formula: \"{text}\"}}" for name, text in self.named.items()]
        lines += [f"  {name}: {{formula: \"{text}\", evaluate: step}}" for name, text in self.first.items()]
        lines.append("equations:")
        for name, where in self.place.items():
            sides = ", ".join(f"{side}: {rng.choice(['{neumann: 0}', '{outflow: true}'])}" for side in self.sides)
            order = "ddt"
            if self.leapfrog or rng.random() < 0.2:
                order = f"initial_rate: \"{rng.choice(['0', '0.3*a', '-0.5 + b'])}\", ddt2"
                self.second[name] = order.split('"')[1]
                self.rate[name] += rng.choice(["", f" - 0.3*{name}_t", f" - sin({name}_t)*a"])
            lines.append(f"  {name}: {{location: {self.names[where]}, initial: \"{self.initial[name]}\", "
                         f"{order}: \"{self.rate[name]}\", boundary: {{{sides}}}}}")
        self.points = {}
        cells, periodic = (json.loads(part) for part in re.findall(r"\[.*?\]", self.grid)[:2])
        for name, where in self.place.items():
            self.points[name] = math.prod(n + (where >> a & 1 and not periodic[a]) for a, n in enumerate(cells))
            self.points[f"{name}_t"] = self.points[name]
        self.tolerance = rng.choice([1e-2, 1e-4, 1e-6]) if self.method in ERRORS and rng.random() < 0.6 else None
        if not self.second and not self.tolerance and rng.random() < 0.5:
            self.feels = {name: "a" for name in self.place}
            lines.append(f"sensitivity: {{{', '.join(f'{name}: [a]' for name in self.feels)}}}")
        self.dt, self.steps = rng.choice([0.1, 0.03]), rng.randint(1, 6)
        if self.tolerance:
            self.dt = rng.choice([1, 0.1, 0.01])
        if self.second:
            lines.append(f"output: {{fields: [{', '.join([*self.place, *(f'{name}_t' for name in self.second)])}]}}")
        if self.tolerance:
            tolerance = f"{{relative: {self.tolerance}, absolute: {self.tolerance / 10}}}"
            return "\n".join(lines + [
                f"time: {{method: {{name: {self.method}, tolerance: {tolerance}, dt: {{initial: {self.dt}}}}}, "
                f"steps: {self.steps}}}", ""
            ])
        return "\n".join(lines + [f"time: {{method: {self.method}, dt: {self.dt}, steps: {self.steps}}}", ""])

    def code(self, text):
        for name in self.names.values():
            text = text.replace(f", {name})", ", here)")
        text = re.sub(r"old\((\w+)\)", r"old_\1", text)
        return compile(text.replace("^", "**").replace("if(", "choose("), text, "eval")

    def integrate(self, volume, parameters, rounding=0):
        """The values of the equations after all steps, each of which rounds sums by so much of their terms."""
        rates, named, first, initial = ({name: self.code(text) for name, text in formulas.items()}
                                        for formulas in (self.rate, self.named, self.first, self.initial))
        for name, text in self.second.items():
            initial[f"{name}_t"], rates[f"{name}_t"] = self.code(text), rates[name]
            rates[name] = self.code(f"{name}_t")
        y = {name: eval(text, dict(parameters)) for name, text in initial.items()}
        if self.leapfrog:
            return self.leap(volume, parameters, y, rates, named, first)

        def total(weights, slopes, name):
            terms = [w * k[name] for w, k in zip(weights, slopes)]
            return sum(terms) + rounding * sum(map(abs, terms))

        def step(t, dt, start):
            """The values after a step, and the difference to another solution if there is one."""
            times, stages = TABLEAUS[self.method]
            slopes, values, kept = [], start, {}
            for c, row in zip([*times, 1], [*stages, None]):
                scope = dict(functions(volume), **parameters, **values, dt=dt, t=t + c * dt)
                scope.update({f"old_{name}": value for name, value in start.items()})
                for name in sorted([*named, *first]):
                    if name in first and name not in kept:
                        kept[name] = eval(first[name], scope)
                    scope[name] = eval(named[name], scope) if name in named else kept[name]
                if row is None and not self.tolerance:
                    return values, {}
                slopes.append({name: eval(text, scope) for name, text in rates.items()})
                if row is not None:
                    values = {name: start[name] + dt * total(row, slopes, name) for name in start}
            return values, {name: dt * total(ERRORS[self.method][0], slopes, name) for name in start}

        if self.tolerance:
            return self.adapt(step, y)
        for number in range(self.steps):
            y, _ = step(number * self.dt, self.dt, y)
        return y

    def adapt(self, step, y):
        """The values after steps whose size follows from their error, and nothing where a choice is a close one."""
        order, t, dt, before, rejected = ERRORS[self.method][1], 0, self.dt, 1e-4, False
        exponent, points = 1 / order - 0.03, sum(self.points[name] for name in y)
        taken = 0
        while taken < self.steps:
            values, difference = step(t, dt, y)
            error = math.sqrt(sum(self.points[name] * (difference[name] / (self.tolerance / 10 + self.tolerance * max(
                abs(y[name]), abs(values[name]))))**2 for name in y) / points)
            if abs(error - 1) < 1e-6:
                raise OverflowError
            factor = 0.9 * max(error, 1e-10)**-exponent * (before**0.04 if error <= 1 else 1)
            factor = min(max(factor, 0.2), 1 if error <= 1 and rejected else 10)
            if error <= 1:
                y, t, before, taken = values, t + dt, max(error, 1e-4), taken + 1
            rejected = error > 1
            dt *= factor
        return y

    def leap(self, volume, parameters, y, rates, named, first):
        """The values after all steps, with the rates at that time."""
        def slopes(step, values):
            scope = dict(functions(volume), **parameters, **values, dt=self.dt, t=step * self.dt)
            scope.update({f"old_{name}": value for name, value in values.items()})
            for name in sorted([*named, *first]):
                scope[name] = eval({**named, **first}[name], scope)
            return {name: eval(rates[f"{name}_t"], scope) for name in self.second}

        def moved(values, forces, by):
            return {**values, **{f"{name}_t": values[f"{name}_t"] + by * force for name, force in forces.items()}}

        for step in range(self.steps):
            before = 0 if step == 0 else self.dt
            now = moved(y, slopes(step, y), before / 2)
            y = moved(y, slopes(step, now), (before + self.dt) / 2)
            y.update({name: y[name] + self.dt * y[f"{name}_t"] for name in self.second})
        return moved(y, slopes(self.steps, y), self.dt / 2)

    def difference(self, volume, h):
        """Derivatives by a, of fourth order."""
        derivative = dict.fromkeys(self.feels, 0)
        for by, weight in (-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12):
            moved = self.integrate(volume, {**self.parameters, "a": self.parameters["a"] + by * h})
            derivative = {name: value + weight * moved[name] / h for name, value in derivative.items()}
        return derivative

    def felt(self, volume, y):
        """How far eight times the rounding of sums moves the values: steps multiply what it does to the differences
        that dt follows from, and so to where the last step ends."""
        moved = [self.integrate(volume, self.parameters, by * sys.float_info.epsilon) for by in (-8, 8)]
        return {name: max(abs(other[name] - value) for other in moved) for name, value in y.items()}

    def solution(self, volume):
        """The values, and those derivatives by a that differences can tell: not where a choice changes nearby. Of each
        how near a run comes to it."""
        y = self.integrate(volume, self.parameters)
        felt = self.felt(volume, y) if self.tolerance else dict.fromkeys(y, 0)
        first, second = (self.difference(volume, h) if self.feels else {} for h in (1e-3, 5e-4))
        known = {name: value for name, value in second.items() if abs(value - first[name]) < 1e-7 * (1 + abs(value))}
        return {**{name: (value, 1e-10 * (1 + abs(value)) + felt[name]) for name, value in y.items()},
                **{f"{name}_a": (value, 1e-6 * (1 + abs(value))) for name, value in known.items()}}


def write(rng, method):
    """The text of a deck, its dimension, the number of its formulas, and its solution: the value of each equation and
    how near a run comes to it, or None where it is large."""
    odes = Odes(rng, method)
    text = odes.write()
    lengths = json.loads(odes.grid[odes.grid.index("length: ") + 8:-1])
    try:
        solution = odes.solution(math.prod(lengths))
    except (OverflowError, ValueError):
        solution = None
    if solution and max(abs(value) for value, _ in solution.values()) > 1e6:
        solution = None
    return text, odes.dim, len(odes.rate) + len(odes.named) + len(odes.first), solution

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random decks whose boundary values read fields, and what they must give: a reference that finds each value when it is
asked for.

An expression is a text and a function of where it is evaluated. The reference knows no order of sides: the value of a
point on a side is that of its condition, which asks for the values of other points. Who asks for its own value is in a
cycle.
"""
import itertools
import math

NAMES = {1: {0: "cell", 1: "xface"}, 2: {0: "cell", 1: "xface", 2: "yface", 3: "node"},
         3: {0: "cell", 1: "xface", 2: "yface", 3: "zedge", 4: "zface", 5: "yedge", 6: "xedge", 7: "node"}}
METHODS = {"euler": ([[1]], [0]), "rk4": ([[0.5], [0, 0.5], [0, 0, 1], [1 / 6, 1 / 3, 1 / 3, 1 / 6]], [0, 0.5, 0.5, 1])}
SHU_OSHER = {"ssprk2": ([0, 0.5], [0, 1]), "ssprk3": ([0, 0.75, 1 / 3], [0, 1, 0.5])}


class Cycle(Exception):
    """A value needs itself."""


class Grid:
    def __init__(self, cells, periodic):
        self.cells, self.periodic, self.dim = cells, periodic, len(cells)

    def points(self, where, axis):
        return self.cells[axis] + (where >> axis & 1 and not self.periodic[axis])

    def all_points(self, where):
        return itertools.product(*(range(self.points(where, a)) for a in range(self.dim)))

    def coordinates(self, where, point):
        return [(point[a] + (0 if where >> a & 1 else 0.5)) / self.cells[a] for a in range(self.dim)]

    def weight(self, where, point):
        """Of a point in an integral over the unit cube."""
        w = 1.0
        for a in range(self.dim):
            on_side = where >> a & 1 and not self.periodic[a] and point[a] in (0, self.cells[a])
            w *= (0.5 if on_side else 1) / self.cells[a]
        return w


class Field:
    """An equation: expressions of initial value, ddt, mask, and conditions by side as lists of (kind, where,
    values)."""

    def __init__(self, name, where):
        self.name, self.where = name, where
        self.initial = self.ddt = self.mask = None
        self.sides = {}


class Level:
    """The values of all fields at one time; old: the level at the start of the step."""

    def __init__(self, problem, raw, t, old, sided=True):
        self.problem, self.raw, self.t, self.old, self.sided = problem, raw, t, old or self, sided
        self.known, self.asked = {}, set()

    def value(self, field, point):
        """At one of its own points, with what the conditions of sides set there."""
        grid, key = self.problem.grid, (field.name, point)
        if key in self.known:
            return self.known[key]
        if key in self.asked:
            raise Cycle(key)
        self.asked.add(key)
        result = self.raw[key]
        for axis in reversed(range(grid.dim)) if self.sided else ():
            if not field.where >> axis & 1 or grid.periodic[axis] or point[axis] not in (0, grid.cells[axis]):
                continue
            found = self.condition(field, 2 * axis + (point[axis] > 0), point, sets=True)
            if found:
                result = found[1][0]
                break
        self.known[key] = result
        return result

    def condition(self, field, side, point, sets=False):
        """The kind and the values of the piece that holds beside a point; with sets None if it sets no point on the
        side."""
        at = Frame(self, field, side, point)
        for kind, where, values in field.sides[side]:
            if where is None or where[1](at):
                if sets and kind not in ("dirichlet", "robin0", "expression"):
                    return None
                numbers = [v[1](at) for v in values]
                return ("dirichlet", [numbers[1] / numbers[0]]) if kind == "robin0" else (kind, numbers)
        raise AssertionError

    def ghost(self, field, side, point):
        """One point beyond a side."""
        grid, axis = self.problem.grid, side // 2
        on, h = field.where >> axis & 1, 1 / grid.cells[axis]
        inward = -1 if side % 2 else 1
        first = (grid.points(field.where, axis) - 1) if side % 2 else 0
        nearest, mirror = (point[:axis] + (first + by,) + point[axis + 1:] for by in (0, inward * on))
        kind, v = self.condition(field, side, nearest)
        if kind == "expression":
            return v[0]
        if kind == "outflow":
            return self.value(field, nearest)
        inside, distance = self.value(field, mirror), (2 if on else 1) * h
        if kind == "dirichlet":
            return 2 * v[0] - inside
        if kind == "neumann":
            return inside + distance * v[0]
        a, b, c = v
        if on:
            return inside + distance * (c - a * self.value(field, nearest)) / b
        return (c - inside * (a / 2 - b / distance)) / (a / 2 + b / distance)

    def beside(self, field, point, axis, by):
        """A neighbour, which may be beyond a side."""
        grid = self.problem.grid
        n, moved = grid.points(field.where, axis), point[axis] + by
        if grid.periodic[axis]:
            return self.value(field, point[:axis] + (moved % n,) + point[axis + 1:])
        if 0 <= moved < n:
            return self.value(field, point[:axis] + (moved,) + point[axis + 1:])
        return self.ghost(field, 2 * axis + (moved > 0), point)

    def laplacian(self, field, point):
        total = 0.0
        for a in range(self.problem.grid.dim):
            here = self.value(field, point)
            total += (self.beside(field, point, a, 1) - 2 * here +
                      self.beside(field, point, a, -1)) * self.problem.grid.cells[a]**2
        return total

    def face(self, field, point, axis, side):
        """A cell's value at one of its faces, as a central flux takes it."""
        grid = self.problem.grid
        here, edge = self.value(field, point), point[axis] == (grid.cells[axis] - 1 if side else 0)
        if edge and not grid.periodic[axis]:
            kind, values = self.condition(field, 2 * axis + side, point)
            if kind == "dirichlet":
                return values[0]
        return (here + self.beside(field, point, axis, 1 if side else -1)) / 2

    def divergence(self, field, point):
        return sum((self.face(field, point, a, 1) - self.face(field, point, a, 0)) * self.problem.grid.cells[a]
                   for a in range(self.problem.grid.dim))

    def mean(self, field, low):
        """Of the points from one to the next along each axis."""
        values = [self.value(field, p) for p in itertools.product(*([i, i + 1] for i in low))]
        return sum(values) / len(values)

    def integral(self, field):
        grid = self.problem.grid
        return sum(grid.weight(field.where, p) * self.value(field, p) for p in grid.all_points(field.where))


class Point:
    """Evaluation at a point of a location, off the sides."""

    def __init__(self, level, where, point):
        self.level, self.where, self.point = level, where, point
        self.t, self.x = level.t, level.problem.grid.coordinates(where, point)

    def read(self, field, _target):
        return self.level.value(field, self.point)

    def before(self):
        return Point(self.level.old, self.where, self.point)


class Frame:
    """Evaluation in a condition: on the side, and for fields at the points nearest to it."""

    def __init__(self, level, field, side, point):
        self.level, self.field, self.side, self.point = level, field, side, point
        self.t, self.x = level.t, level.problem.grid.coordinates(field.where, point)
        self.x[side // 2] = side % 2

    def nearest(self, field, target, read):
        """What is read at a field's points next to the side, with these on it, interpolated to a location."""
        grid, axis = self.level.problem.grid, self.side // 2
        choices = []
        for a in range(grid.dim):
            n, moves = grid.points(field.where, a), (field.where ^ target) >> a & 1
            if a == axis:
                first = n - 1 if self.side % 2 else 0
                choices.append([first, first + (-1 if self.side % 2 else 1)] if moves else [first])
            else:
                first = self.point[a] - (moves and target >> a & 1)
                choices.append([i % n if grid.periodic[a] else i for i in ([first, first + 1] if moves else [first])])
        values = []
        for p in itertools.product(*choices):
            x = grid.coordinates(field.where, p)
            x[axis] = self.side % 2
            values.append(read(p, x))
        return sum(values) / len(values)

    def read(self, field, target):
        """A field, interpolated to a location."""
        return self.nearest(field, target, lambda p, x: self.level.value(field, p))

    def neighbours(self, field, target, along):
        """The sum of the two neighbours along a periodic axis, of a field's points."""
        return self.nearest(field, target,
                            lambda p, x: self.level.beside(field, p, along, 1) + self.level.beside(field, p, along, -1))

    def before(self):
        return Frame(self.level.old, self.field, self.side, self.point)


class Problem:
    def __init__(self, grid, fields, method, dt, steps):
        self.grid, self.fields, self.method, self.dt, self.steps = grid, fields, method, dt, steps

    def initial(self):
        raw = Level(self, {}, 0.0, None, sided=False)
        for f in self.fields:
            for p in self.grid.all_points(f.where):
                raw.raw[f.name, p] = f.initial[1](Point(raw, f.where, p))
        return Level(self, raw.raw, 0.0, raw)

    def each(self):
        for f in self.fields:
            for p in self.grid.all_points(f.where):
                yield f, p

    def slopes(self, level):
        return {(f.name, p): f.ddt[1](Point(level, f.where, p)) for f, p in self.each()}

    def combine(self, start, level, slopes, stage):
        """New values from the integrator's table."""
        raw = {}
        for f, p in self.each():
            key, u0 = (f.name, p), start.value(f, p)
            if f.mask and not f.mask[1](Point(start, f.where, p)):
                raw[key] = u0
            elif self.method in SHU_OSHER:
                alpha = SHU_OSHER[self.method][0][stage]
                raw[key] = alpha * u0 + (1 - alpha) * (level.value(f, p) + self.dt * slopes[stage][key])
            else:
                raw[key] = u0 + self.dt * sum(a * slopes[k][key] for k, a in enumerate(METHODS[self.method][0][stage]))
        return raw

    def run(self):
        """The last level; Cycle if there is none."""
        start = self.initial()
        for f, p in self.each():
            start.value(f, p)
        times = (SHU_OSHER if self.method in SHU_OSHER else METHODS)[self.method][1]
        for step in range(self.steps):
            t = step * self.dt
            start = Level(self, {(f.name, p): start.value(f, p) for f, p in self.each()}, t, None, sided=False)
            level, slopes = start, []
            for stage in range(len(times)):
                slopes.append(self.slopes(level))
                after = times[stage + 1] if stage + 1 < len(times) else 1
                level = Level(self, self.combine(start, level, slopes, stage), t + after * self.dt, start)
                for f, p in self.each():
                    level.value(f, p)
            start = level
        return start

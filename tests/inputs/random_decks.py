# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Random decks that are well typed and use the whole formula language. A location is three bits, one per axis."""
import json
import re

import random_beside
import random_coefficients

LIMITERS = ["", ", upwind", ", minmod", ", vanleer", ", superbee", ", mc", ", koren", ", charm", ", ospre", ", smart"]
DIVIDED = ("beuler", "ark3", "ark4")  # methods that take a rate which is divided
WHOLE = ("cn", "esdirk2", "esdirk3", "esdirk4")  # and those that take one which is implicit as a whole
IMPLICIT = ("beuler", "esdirk2", "ark3", "cn", "ark4", "esdirk3", "esdirk4")
BY_ERROR = ("bs3", "dp5", "beuler", "esdirk2", "esdirk3", "esdirk4", "ark3", "ark4")
MULTISTEP = ("bdf", "adams")
SOLVERS = ("{iterations: 1000}", "{method: bicgstab, iterations: 2000}", "{method: gmres, iterations: 3000}",
           "{preconditioner: multigrid}", "{preconditioner: multigrid, cycle: f, replicate: 0}",
           "{method: bicgstab, preconditioner: multigrid, cycle: w}", "{method: gmres, restart: 7, iterations: 3000}",
           "{iterations: 1000, newton: {tolerance: 1e-5, iterations: 30}}", "{method: pseudo_time, iterations: 4000}",
           "{method: lu}")
MULTISTEP_SOLVERS = ("{}", "{method: bicgstab}", "{restart: 7}", "{preconditioner: multigrid}",
                     "{method: gmres, preconditioner: none}", "{preconditioner: multigrid, cycle: w, replicate: 0}")
NAMES = {1: {0: "cell", 1: "xface"}, 2: {0: "cell", 1: "xface", 2: "yface", 3: "node"},
         3: {0: "cell", 1: "xface", 2: "yface", 3: "zedge", 4: "zface", 5: "yedge", 6: "xedge", 7: "node"}}
ANY = [
    "cbrt", "sin", "cos", "tan", "atan", "tanh", "asinh", "erf", "erfc", "floor", "ceil", "round", "trunc", "abs",
    "sign", "step"
]
# Arguments that are defined everywhere: S is small, A any.
SAFE = [
    "sqrt(abs(A))", "exp(S)", "expm1(S)", "log(abs(A) + 0.1)", "log1p(abs(A))", "log2(abs(A) + 0.5)",
    "log10(abs(A) + 2)", "asin(0.4*S)", "acos(0.4*S)", "sinh(S)", "cosh(S)", "acosh(1 + abs(A))", "atanh(0.4*S)",
    "atan2(A, B)", "hypot(A, B)", "fmod(A, 0.3 + abs(B))", "(0.1 + abs(S))^S", "(2 + S)^-3", "(S)^2", "(S)^7",
    "(1.5 + abs(S))^-1", "2^S", "sin(1e3*A)", "cos(1e7*A)", "min(A, B, 0.3)", "max(A, B)", "A + B", "A - B", "B - A",
    "A*(S)", "A/(1.5 + abs(B))", "A/3", "-(A)", "if(A < B, A, 2*(B))",
    "(A >= 0.3 and not (B < 0.1)) + (A == 0 or B != 1)", "if(not (A <= B) or S > 1, S, -B)"
]


def vector(parts):
    return "[" + ", ".join(parts) + "]"


class Writer:
    """Formulas of a location, of a given depth, from the fields that exist so far."""

    walled = True             # modifiers of a plugin may set sides

    def __init__(self, rng, dim, periodic):
        self.rng, self.dim, self.periodic = rng, dim, periodic
        self.axes = "xyz"[:dim]
        self.fields = {}      # name: location
        self.equations = []
        self.vectors = {}     # name: locations of the components
        self.stencils = {}    # name: from, to
        self.family = None    # location of phi1, phi2, phi3
        self.bounded = None   # name and location of the field that conditions are written for
        self.rated = None     # name of its rate, if it is of second order in time
        self.leapfrog = False # all equations are
        self.solving = False  # the present field is solved for
        self.implicit = False # they have implicit terms
        self.whole = False    # and no others
        self.multistep = False # rates do not depend on the step
        self.helped = False   # their systems name a solver
        self.solved = []      # names of what is solved for
        self.coupled = []     # those that need each other
        self.solvers = {}     # by name
        self.rates = []       # names
        self.plugins = []     # whose types are used
        self.walls = []       # entries of a plugin's modifiers
        self.coefficients = random_coefficients.Coefficients(rng, NAMES[dim], periodic)
        self.free = []        # names of what has no location and varies nowhere
        self.lines = []       # and of what may vary along an axis
        self.written = 0

    def name_of(self, where):
        return NAMES[self.dim][where]

    def number(self):
        return self.rng.choice(["0.5", "2", "-1.25", "0.1", "3", "1e-3", "7.0e2", "p", "q/3", "m"])

    def value(self):
        """Something without a location."""
        rng = self.rng
        if rng.random() < 0.15 and self.equations:
            return self.reduction()
        if rng.random() < 0.15 and self.free + self.lines:
            return rng.choice(self.free + self.lines)
        if rng.random() < 0.15:
            return rng.choice([f"0.01*noise({rng.randint(1, 3)})", self.point_source()])
        return rng.choice([
            self.number(),
            rng.choice(self.axes), "t", "dt", "d" + rng.choice(self.axes), "pi", f"random({rng.randint(1, 9)})"
        ])

    def point_source(self):
        return f"point_source(0.01*{self.flat(1)}, {self.position()})"

    def position(self):
        return vector(str(round(self.rng.uniform(0, 0.65), 2)) for _ in self.axes)

    def of_member(self):
        """A term of a family's rate, of which only a number differs from member to member."""
        source = f" + point_source(0.01, {vector('0.15*i' for _ in self.axes)})"
        return self.rng.choice(["", source, "" if self.whole else " + 0.01*noise(i)"])  # explicit terms have noise

    def driven(self, where):
        """A term of a rate: noise, also with neighbours, or a point source; or none."""
        rng, seed, c = self.rng, self.rng.randint(1, 3), self.rng.choice(self.axes)
        return rng.choice([
            "", "", "", f" + 0.01*noise({seed})", f" + 0.01*noise({seed})*{self.at(where)}",
            f" + 0.01*at(noise({seed}), {self.name_of(where)})",
            f" + 1e-5*at(laplacian(noise({seed})), {self.name_of(where)})",
            f" - 1e-4*at(cdd{c}(noise({seed})), {self.name_of(where)})", f" + {self.point_source()}"
        ])

    def reduction(self):
        """A value of the whole domain, of an equation or of what is computed from the equations at its location."""
        rng = self.rng
        f = rng.choice(self.equations)
        if rng.random() < 0.4:
            other = self.at(self.fields[f]) if rng.random() < 0.5 else self.flat(0)
            f = rng.choice([f"{f}*({other})", f"abs({f} - {other})", f"if({f} > 0.5, {other}, {f})"])
        places = vector(str(round(rng.uniform(0.05, 0.65), 2)) for _ in self.axes)
        if rng.random() < 0.1:
            return f"integral(({f})*{self.point_source()})"
        return rng.choice(
            [f"integral({f})", f"domain_max({f})", f"domain_min({f})", f"norm({f})", f"probe({f}, {places})"])

    def flat(self, depth, along=0.0):
        """A formula that varies nowhere, or with some probability along an axis."""
        rng = self.rng
        if depth <= 0:
            if rng.random() < along:
                return rng.choice(list(self.axes) + self.lines)
            if rng.random() < 0.4 and self.equations:
                return self.reduction()
            return rng.choice(["p", "q", "t", "dt", "dt*dt", "0.3", "-1.5", "dx"] + self.free)
        form = rng.choice([
            "A*B", "A*sin(B)", "A + B", "A - B", "sin(A)", "-(A)", "A/(1.5 + abs(B))", "if(A < B, A, 0.5)", "max(A, B)",
            "(A)^2", "tanh(A)*B"
        ])
        parts = {c: f"({self.flat(depth - 1, along)})" for c in "AB"}
        text = "".join(parts.get(c, c) for c in form)
        return f"min(2, max(-2, {text}))" if rng.random() < 0.2 else text

    def at(self, where):
        """A field at a location, its own or by interpolation."""
        rng = self.rng
        own = [name for name, location in self.fields.items() if location == where]
        own += [
            f"{name}.{c}" for name, places in self.vectors.items() for c, place in zip(self.axes, places)
            if place == where
        ]
        if self.family == where:
            own += ["sum(j=1..q, phi{j})", "prod(j=1..3, 0.5 + phi{j}/j)", "phi2"]
        if own and rng.random() < 0.8:
            name = rng.choice(own)
            return f"old({name})" if name in self.equations and rng.random() < 0.1 else name
        near = [name for name, location in self.fields.items() if bin(location ^ where).count("1") == 1]
        if near and rng.random() < 0.3:
            return f"at4({rng.choice(near)}, {self.name_of(where)})"
        return f"at({rng.choice(list(self.fields))}, {self.name_of(where)})"

    def source(self, where, depth):
        """What an operator reads: it has a location."""
        if depth <= 0 or self.rng.random() < 0.6:
            return self.at(where)
        return f"({self.formula(where, depth - 1)}) + {self.rng.choice(['0*', '0.5*', ''])}{self.at(where)}"

    def small(self, where, depth):
        a = self.formula(where, depth)
        return self.rng.choice(
            [f"min(2, max(-2, {a}))", f"({a})/(1 + abs({a}))", f"sin({a})", f"if({a} > 0, 0.25, -0.5)"])

    def along_axis(self, where, depth, axis):
        c, source = self.axes[axis], self.source(where ^ 1 << axis, depth)
        limiter = self.rng.choice(LIMITERS)
        return self.rng.choice([
            f"dd{c}({source})", f"grad({source}).{c}", f"grad4({source}).{c}", f"left({source}{limiter}).{c}",
            f"right({source}{limiter}).{c}", f"harmonic(abs({source}) + 1, {self.name_of(where)})",
            f"extrapolate({source}, {c}{self.rng.choice('-+')})",
            f"advective_flux({source}, {self.velocity()}{limiter}).{c}"
        ])

    def velocity(self):
        return vector(self.rng.choice(["0.5", "-1", f"{c} - 0.4", "sin(7*t) - p"]) for c in self.axes)

    def in_place(self, where, depth, axis):
        rng, c, s = self.rng, self.axes[axis], self.source(where, depth)
        return rng.choice([
            f"laplacian({s})", f"d2d{c}({s})", f"cdd{c}({s})", f"cmean{c}({s})", f"dd{c}(dd{c}({s}))",
            f"div(grad({s}))", f"div4(grad4({s}))", f"box_filter({s}, {rng.choice([1, 3])})",
            f"tophat_filter({s}, {rng.choice([1, 2, 3])})",
            f"div(advective_flux({s}, {self.velocity()}{rng.choice(LIMITERS)}))",
            f"div([" + ", ".join(self.source(where ^ 1 << a, 0) for a in range(self.dim)) + "])"
        ])

    def of_vectors(self, where):
        u, v = (vector(self.at(where) for _ in self.axes) for _ in range(2))
        choices = [f"dot({u}, {v})", f"mag({u})"]
        choices.append(f"strain({vector(self.at(where ^ 1 << a) for a in range(self.dim))})")
        row, column = self.rng.randrange(self.dim), self.rng.randrange(self.dim)
        centre = where if row == column else where ^ 1 << row ^ 1 << column
        around = vector(self.at(centre ^ 1 << a) for a in range(self.dim))
        choices.append(f"strain({around}, {'xyz'[row]}).{'xyz'[column]}")
        if self.dim > 1:
            choices.append(f"(2*{u} - {v}).{self.rng.choice(self.axes)}")
        if self.dim == 3:
            choices.append(f"cross({u}, {v}).{self.rng.choice(self.axes)}")
        if self.dim == 2 and where == 3:
            choices += [f"curl([{self.at(1)}, {self.at(2)}])"] * 3
        if self.dim == 3 and where in (3, 5, 6):
            choices += [f"curl([{self.at(1)}, {self.at(2)}, {self.at(4)}]).{ {6: 'x', 5: 'y', 3: 'z'}[where]}"] * 3
        if self.dim == 3 and where in (1, 2, 4):
            choices += [f"curl([{self.at(6)}, {self.at(5)}, {self.at(3)}]).{ {1: 'x', 2: 'y', 4: 'z'}[where]}"] * 3
        if bin(where).count("1") == 1: # factors at cells are interpolated once
            choices += [
                f"({self.at(0)})*({self.at(where)})", f"({self.at(where)})*({self.at(0)})/(1 + abs({self.at(0)}))"
            ]
        return self.rng.choice(choices)

    def operator(self, where, depth):
        rng, axis = self.rng, self.rng.randrange(self.dim)
        own = [name for name, (_, to) in self.stencils.items() if to == where]
        if own and rng.random() < 0.3:
            name = rng.choice(own)
            return f"{name}({self.source(self.stencils[name][0], depth)})"
        pick = rng.random()
        if pick < 0.4:
            return self.along_axis(where, depth, axis)
        return self.in_place(where, depth, axis) if pick < 0.8 else self.of_vectors(where)

    def formula(self, where, depth):
        rng = self.rng
        if depth <= 0:
            return self.at(where) if rng.random() < 0.6 else self.value()
        if rng.random() < 0.4:
            return self.operator(where, depth - 1)
        form = rng.choice([f"{f}(A)" for f in ANY] + SAFE * 2)
        parts = {
            "A": self.formula(where, depth - 1), "B": self.formula(where, depth - 1), "S": self.small(where, depth - 1)
        }
        return "".join(f"({parts[c]})" if c in parts else c for c in form)

    def named(self, where, depth):
        """A formula with a location, whose values stay small whatever it is made of."""
        self.written += 1
        return f"({self.small(where, depth)}) + {self.rng.choice(['0*', '0.5*'])}({self.at(where)})"

    def beside(self, axis):
        """An unknown that a condition of the present field can read, without a cycle; None if there is none."""
        name, where = self.bounded
        now = list(self.equations[:self.equations.index(name)] if name in self.equations else self.equations)
        if "{" in name:  # the others may read members of the family
            now = []
        elif self.family is not None:
            now.append("phi2")
        if not (self.rated or self.implicit or "{" in name):
            now += self.solved
        old = self.equations
        if self.rated:  # on sides the rates of what is read are needed
            now, old = ([e for e in names if f"{e}_t" in self.rates] for names in (now, old))
            old = [] if where >> axis & 1 else old
        if self.multistep:
            old = []
        read = self.rng.choice(now + [f"old({e})" for e in old]) if now + old else None
        if not read:
            return None
        own = self.family if read == "phi2" else self.fields[read.removeprefix("old(").removesuffix(")")]
        differs = (own ^ where) & ~(1 << axis)
        if any(differs >> a & 1 and not own >> a & 1 and not self.periodic[a] for a in range(self.dim)):
            return None  # along the side it would be read beyond the next one
        return f"at({read}, {self.name_of(where & ~(1 << axis) | own & 1 << axis)})" if differs else read

    def side_value(self, axis):
        self.written += 1
        read = self.beside(axis) if self.bounded and self.rng.random() < 0.35 else None
        if self.rated and not self.bounded[1] >> axis & 1 and self.rng.random() < 0.2:
            return self.rng.choice(["0.1 - 0.3*R", "0.2 - 0.1*integral(R)", "0.1*norm(R)"]).replace("R", self.rated)
        if read:
            return self.rng.choice([f"0.3*{read}", f"0.1 - 0.2*{read}*sin(9*t)", f"sin({read}) + t"])
        others = [c for c in self.axes if c != self.axes[axis]]
        return self.rng.choice(["0", "0.3", "sin(9*t) + 0.1", "0.2*exp(-t)*cos(40*t)"] +
                               [f"0.3*{c} + t" for c in others])

    def side(self, axis):
        rng = self.rng
        value = self.side_value(axis)
        closed = self.implicit or self.multistep or self.solving
        wall = None if closed else random_beside.wall(self, axis)
        if wall:
            return wall
        modifier = "{outflow: true}" if closed else f"{{expression: edge{axis}}}"
        one = rng.choice([
            f"{{dirichlet: \"{value}\"}}", f"{{neumann: \"{value}\"}}", "{outflow: true}",
            modifier, f"{{robin: {{a: 1, b: \"0.5 + t\", c: \"{value}\"}}}}"
        ])
        other = [c for c in self.axes if c != self.axes[axis]]
        if other and rng.random() < 0.3:
            return f"[{{where: \"{rng.choice(other)} > 0.4\", dirichlet: \"{self.side_value(axis)}\"}}, {one}]"
        return one

    def rate_lines(self, name, text):
        """The rate of an equation, of first or second order; whether rates are known is remembered for conditions."""
        rng = self.rng
        self.rated = None
        solver = ["    solver: r"] if self.helped else []
        if self.whole:
            return [f"    ddt: \"{self.mild(name.strip(chr(34)))}\""] + solver
        if self.implicit:
            name = name.strip('"')
            implicit = rng.choice([f"{rng.choice([0.01, 20])}*laplacian({name})", f"-({name})^3",
                                   f"-0.5*{name} + sin(t)"])
            return [f"    ddt: {{explicit: \"{text}\", implicit: \"{implicit}\"}}"] + solver
        if not self.leapfrog and rng.random() < 0.8:
            return [f"    ddt: \"{text}\""]
        self.rated = name.strip('"') + "_t"
        self.rates.append(self.rated.replace("{i}", "2").replace("{j}", "1"))
        damped = rng.choice(["", "", f" - 0.4*{self.rated}", f" - sin({self.rated})"])
        if all(self.periodic) and rng.random() < 0.2:
            damped += f" + 1e-5*laplacian({self.rated})"
        start = rng.choice([[], ["    initial_rate: \"0.2*cos(2*x) - 0.1*random(5)\""]])
        return [f"    ddt2: \"{text}{damped}\""] + start

    def mild(self, name):
        """A rate for which Newton's method has solutions."""
        rng, where = self.rng, self.fields[name] if name in self.fields else None
        solved = self.solved if self.multistep else []
        other = rng.choice([e for e in [*self.equations, *solved] if self.fields[e] == where] or ["t"])
        stiff = rng.choice([0.01, 20])  # where cycles pay, too
        return rng.choice([f"{stiff}*laplacian({name})", f"-({name})^3", f"-0.5*{name} + sin(t)"]) + rng.choice(
            ["", f" + 0.3*sin({other})", f" - 0.1*{self.whole_sum(name)}*x", f" + 0.2*old({name})*cos(9*t) + dt"])

    def whole_sum(self, name):
        """Multigrid does not take it."""
        return name if "multigrid" in self.solvers.get("r", "") else f"integral({name})"

    def sides(self, name, where):
        self.bounded = (name, where)
        sides = [f"{self.axes[a]}{s}: {self.side(a)}" for a in range(self.dim) if not self.periodic[a] for s in "-+"]
        return "{" + ", ".join(sides) + "}"


def equation(w, name, where, extra=""):
    lines = [f"  {name}:", f"    location: {w.name_of(where)}",
             f"    initial: \"0.5 + 0.4*sin(3*x) + 0.1*random({w.rng.randint(1, 99)})\""]
    lines += w.rate_lines(name, f"0.1*({w.named(where, 2)}){extra}{w.driven(where)}")
    lines.append(f"    boundary: {w.sides(name, where)}")
    if w.rng.random() < 0.25:
        lines.append(f"    mask: \"(x - 0.3)^2 > {w.rng.choice(['0.02', '0.001'])}\"")
    if w.rng.random() < 0.2:
        lines.append(f"    exact: \"{w.rng.choice(['0.5 + 0.4*sin(3*x - t)', w.flat(1, 0.5)])}\"")
    return lines


def flat_equation(w, name, where, earlier=()):
    """Like an ordinary differential equation: its rate is the same at all points, or along some axes."""
    rng = w.rng
    w.written += 1
    initial = rng.choice(["0.5", "p", "0.3 + 0.1*t", f"0.2*{rng.choice(w.axes)}", "random(7)"] +
                         [f"integral({other}) - p" for other in earlier])
    rate = w.flat(rng.randint(0, 2), rng.choice([0, 0, 0.3]))
    rate = rng.choice([rate, f"p*sin({rate})", f"tanh({rate}) - {w.flat(0)}", w.reduction()])
    lines = [f"  {name}:", f"    location: {w.name_of(where)}", f"    initial: \"{initial}\""]
    lines += w.rate_lines(name, rate)
    lines.append(f"    boundary: {w.sides(name, where)}")
    if rng.random() < 0.3:
        lines.append(f"    exact: \"{w.flat(rng.randint(0, 2), 0.3)}\"")
    if rng.random() < 0.2:
        lines.append(f"    mask: \"{rng.choice(['x > 0.2', 'p*q > t', 'dx > 100', 'not (x < 0.1 or p < 0.5)'])}\"")
    return lines


def flat_equations(w, names):
    lines = []
    for i, name in enumerate(names):
        lines += flat_equation(w, name, w.fields[name], names[:i])
    if w.rng.random() < 0.4 and names:  # members that see another one
        where = w.fields[names[0]]
        family = flat_equation(w, '"g{i}"', where)
        rate = next(i for i, line in enumerate(family) if line.startswith("    ddt"))
        divided = w.implicit and not w.whole
        # For blocks of few unknowns, and of many in a ring.
        rates = ["0.1*i*g{4 - i}"] + ["200*(i - 2)*g{4 - i}"] * (w.implicit or w.whole)
        ring = f"{100 if w.implicit or w.whole else 0.1}*(g{{fmod(i, 6) + 1}} - g{{fmod(i + 4, 6) + 1}})"
        members = w.rng.choice([3, 3, 6])
        turning = w.rng.choice(rates) if members == 3 else ring
        more = f" - {turning} + 0.01*{w.whole_sum('g{i}')}{w.of_member()}"
        family[rate] = family[rate].replace('", implicit', more + '", implicit') if divided else (family[rate][:-1] +
                                                                                                  more + '"')
        lines += family + [f"    for: {{i: 1..{members}}}"]
    if w.rng.random() < 0.4 and names and not w.implicit:
        lines += random_beside.of_two_indices(w, flat_equation(w, '"h{i}_{j}"', w.fields[names[0]]))
    return lines


def free_expressions(w):
    """Named values without a location."""
    lines = []
    for i in range(w.rng.randint(0, 3)):
        along = w.rng.choice([0, 0, 0.3])
        name, formula = f"{'line' if along else 'free'}{i}", w.flat(w.rng.randint(0, 2), along)
        lines += [f"  {name}:", f"    formula: \"{formula}\""
                  ] + (["    evaluate: step"] if w.rng.random() < 0.3 else [])
        (w.lines if along else w.free).append(name)
        w.written += 1
    return lines


def stencils(w):
    """Two of the deck's own: in place, and to the other side of an axis."""
    rng, lines = w.rng, ["stencils:"]
    for name in ("own", "moved"):
        source = rng.choice(list(NAMES[w.dim]))
        to = source if name == "own" else source ^ 1 << rng.randrange(w.dim)
        points = {tuple(rng.randint(-2, 2) for _ in w.axes) for _ in range(rng.randint(1, 5))}
        text = ", ".join(f"[[{', '.join(map(str, point))}], \"{rng.choice(['0.5', '-p', '1/3', '-0.25'])}\"]"
                         for point in sorted(points))
        lines.append(f"  {name}: {{from: {w.name_of(source)}, to: {w.name_of(to)}, points: [{text}]}}")
        w.stencils[name] = (source, to)
    return lines


def expressions(w, places):
    rng, lines = w.rng, ["expressions:"]
    lines += free_expressions(w)
    w.bounded = w.rated = None  # conditions of any field take these
    for a in range(w.dim):
        lines.append(f"  edge{a}: \"{w.side_value(a)}\"")
    for i in range(rng.randint(7, 10)):
        where, name = rng.choice(places), f"n{i}"
        formula = w.named(where, rng.randint(1, 3))
        pick = rng.random()
        if pick < 0.15:
            lines += [f"  {name}:", f"    formula: \"{formula}\"", "    evaluate: step"]
        elif pick < 0.3:
            lines += [
                f"  {name}:", f"    formula: \"{formula}*local\"", "    parameters: {local: 0.75}",
                f"    boundary: {w.sides(name, where)}"
            ]
        else:
            lines.append(f"  {name}: \"{formula}\"")
        w.fields[name] = where
    lines += random_beside.products(w, rng.choice(places))
    where = rng.choice(places)  # NaN at some points, which nothing reads
    gap = f"{rng.choice(['sqrt', 'log', 'acosh'])}({w.formula(where, 1)} - {w.at(where)})"
    lines.append(f"  gaps: \"{gap} {rng.choice('+-*')} ({w.at(where)})\"")
    locations = [rng.choice(places) for _ in w.axes]
    lines.append(f"  v: [{', '.join(chr(34) + w.named(place, 1) + chr(34) for place in locations)}]")
    if w.dim == 1:  # a vector of one component is a scalar
        w.fields["v"] = locations[0]
    else:
        w.vectors["v"] = locations
    return lines


def grid(rng, thin):
    """Its line, dimension and periodic axes. An axis has one cell with a probability; y and z may have many."""
    dim = rng.choice([1, 2, 2, 3, 3])
    sizes = {1: [8, 9, 37, 70, 1031, 2051], 2: [7, 8, 9, 13, 17, 33], 3: [7, 8, 9, 13]}[dim]
    cells = [1 if rng.random() < thin else rng.choice(sizes + [91] * (a > 0)) for a in range(dim)]
    periodic = [rng.random() < 0.5 for _ in range(dim)]
    lengths = [rng.choice([1, 0.7, 3]) for _ in cells]
    origin = rng.choice(["", "", f"origin: {[rng.choice([0, -0.03, -0.05]) for _ in cells]}, "])  # 0.65 is inside
    return f"grid: {{cells: {cells}, periodic: {json.dumps(periodic)}, {origin}length: {lengths}}}", dim, periodic


def partial_equations(w, places):
    """Partial differential equations, and all that they name."""
    rng, lines = w.rng, ["equations:"]
    family = rng.choice(places) if rng.random() < 0.6 else None
    text = stencils(w)
    if family is not None: # members see each other
        more = " + 0.1*i*prod(k=1..3, phi{k})" + w.of_member()
        lines += equation(w, '"phi{i}"', family, more) + ["    for: {i: 1..3}"]
        w.written += 2
    w.family = family
    if not w.leapfrog and rng.random() < (0.5 if w.multistep else 0.3):
        w.solved = ["s0", "s1"][:rng.randint(1, 2)]
        found = {name: rng.choice(places) for name in w.solved}
        w.coupled = w.solved if rng.random() < 0.5 and len(w.solved) == 2 else []
        w.fields.update(found if w.coupled else {})
        w.solvers["s"] = random_coefficients.one_message(rng, rng.choice(SOLVERS))
        for name in w.solved:
            w.fields[name] = found[name]
            lines.append(random_coefficients.solution(w, name, w.fields[name]))
            w.written += 1
    text += expressions(w, places)
    types, term = random_beside.applied(w)
    held, more = random_beside.lasting(w)
    terms = [f" - at({one}, HERE)" for one in (term, more) if one]
    for name in w.equations:
        if name[0] == "e":
            lines += equation(w, name, w.fields[name], "".join(terms).replace("HERE", w.name_of(w.fields[name])))
    text += types + held
    if types:
        w.plugins.append("heat_operators")
    return text, lines


def without_step(lines):
    """The same lines without what depends on the step."""
    text = re.sub(r"\bdt\b", "0.01", "\n".join(lines))
    text = re.sub(r"\bold\(([\w{}]+)\)", r"\1", text)
    return re.sub(r"\bnoise\(", "random(", text).replace("evaluate: step", "evaluate: stage").split("\n")


def write(rng, method, partial=True, flat=False):
    """The text of a deck of partial differential equations, of others whose rates are flat, or of both, its dimension,
    and the number of its formulas."""
    line, dim, periodic = grid(rng, 0.03 if partial else 0.3)
    w = Writer(rng, dim, periodic)
    w.leapfrog = method == "leapfrog"
    w.implicit, w.whole = method in IMPLICIT, method in WHOLE or method == "bdf"
    w.multistep = method in MULTISTEP
    if (w.implicit or method == "bdf") and rng.random() < 0.5:
        w.helped = True
        how = rng.choice(MULTISTEP_SOLVERS if w.multistep else SOLVERS)
        w.solvers["r"] = how if w.multistep else random_coefficients.one_message(rng, how)
    places = rng.sample(list(NAMES[dim]), min(len(NAMES[dim]), 2))
    pdes = [f"e{i}" for i in range(rng.randint(1, 3) if partial else 0)]
    odes = [f"d{i}" for i in range(rng.randint(1, 3) if flat else 0)]
    w.equations = pdes + odes
    for name in w.equations:
        w.fields[name] = rng.choice(places)
    if partial:
        text, equations = partial_equations(w, places)
    else:
        text, equations = ["expressions:"] + [f"  edge{a}: \"{w.side_value(a)}\""
                                              for a in range(dim)] + free_expressions(w), ["equations:"]
    equations += flat_equations(w, odes)
    text = random_beside.with_plugins(w, text)
    step = "1e-3" if partial else rng.choice(["1e-3", "0.05"])
    if rng.random() < 0.35:
        own = partial and w.fields["e0"] == 0
        speed = rng.choice([f"1 + abs({w.flat(1)})", f"2 + norm({w.equations[0]})"] + 2 * own * ["1 + abs(e0)"])
        step = f"{{cfl: 0.4, speed: \"{speed}\", diffusivity: \"{rng.choice(['0.01*p', '0', 'dx*t'])}\", max: {step}}}"
    names = w.equations + [name for name in w.fields if name[0] == "n" or name == "two2_1"] + w.free + w.lines
    names += ["v", "gaps"] if partial else []
    names += ["phi1", "phi3"] if w.family is not None else []
    series = ", ".join(
        f"s{i}: \"{w.flat(rng.randint(0, 2)) if i else w.reduction()}\"" for i in range(rng.randint(1, 3)))
    names += w.rates + w.solved
    if w.rates:
        series += f", energy: \"integral({w.rates[0]}^2) + domain_max({w.rates[-1]})\""
        series += f", force: \"norm(ddt({w.rates[0]}))\""
    e = rng.choice(w.equations)
    series += f", \"rec{{1..3}}\": \"probe({e}, {vector(['0.1*i'] + ['0.3 + 0.05*i'] * (dim - 1))})\""
    series += f", rate: \"norm(ddt({rng.choice(w.equations)}))\""
    e = rng.choice(w.equations)  # in one sweep
    series += f", sum: \"integral({e})\", squares: \"integral({e}*{e})\""
    series += f", least: \"domain_min({e})\", most: \"domain_max({e})\""
    stop = rng.choice(["", ", stop: {when: \"rate < 0.5*rate + 1e-2 or step == " + rng.choice(["2", "25"]) + "\"}"])
    if not (w.rates or w.solved or w.implicit or w.multistep or w.walls) and rng.random() < 0.25:
        e, by = rng.choice(w.equations), "m" if partial else "p"  # p shapes types and stencils
        equations += [f"sensitivity: {{{e}: [{by}]}}"]
        names.append(f"{e}_{by}")
    keep = f"keep: [{', '.join(rng.sample(names, min(len(names), 3)))}], " if rng.random() < 0.3 else ""
    if rng.random() < 0.4:  # points that whoever runs the deck makes
        told = [name for name in names[:6] if name not in w.rates]
        values = ", ".join(rng.sample(told, min(len(told), 2)))
        keep += f"receivers: {{path: points.nc, dataset: points, values: [{values}]}}, "
    if method in BY_ERROR and rng.random() < (0.7 if method in ("bs3", "dp5") else 0.4):
        first = rng.choice(["1e-3", "0.02"])
        method = (f"{{name: {method}, tolerance: {{relative: {rng.choice(['1e-2', '1e-4'])}, absolute: 1e-3}}, "
                  f"dt: {{initial: {first}, max: 0.05}}}}")
        step = None
    if w.multistep:
        method = (f"{{name: {method}, tolerance: {{relative: {rng.choice(['1e-2', '1e-4'])}, absolute: 1e-3}}, "
                  f"dt: {{initial: {rng.choice(['1e-4', '1e-3'])}, max: 0.05}}}}")
        text, equations = (without_step(lines) for lines in (text, equations))
        step = None
    method = f"{method}, dt: {step}" if step else method
    if w.solvers:
        text = ["solvers: {" + ", ".join(f"{name}: {how}" for name, how in w.solvers.items()) + "}"] + text
    profiles = f", profiles: {{P: {{of: {e}*{e} + p, along: {rng.choice('xyz'[:dim])}}}}}" if rng.random() < 0.4 else ""
    means = ", means: {from: 0}" if profiles else ""
    if rng.random() < 0.4:
        profiles += random_beside.spectra(w)
    start = rng.choice(["", "", "start: 0.3, "])
    lines = [f"time: {{method: {method}, {start}steps: {rng.choice([1, 2, 3, 1, 2, 3, 1, 2, 3, 30])}{stop}}}",
             f"output: {{every: {random_beside.every(rng, step)}, fields: [{', '.join(names)}], {keep}"
             f"series: {{every: {random_beside.every(rng, step)}, values: {{{series}}}{profiles}{means}}}}}", ""]
    return "\n".join(["trellis: 1", line, "parameters: {p: 0.75, q: 3, m: 0.4}"] + text + equations +
                     random_beside.late(rng, lines)), dim, w.written

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=600
"""Incompressible flow: orders in space and time of velocity and pressure, beside exact solutions and fine ones, and the
growth of a disturbance beside linear theory. Prints tables of docs/verification.md; a line that the page lacks fails
the test."""
import math
import os
import pathlib
import re
import sys

from flow_runs import DECKS, DIVIDED, THROUGH, WAVES, check, distance, run, series_at, waves

PAGE = (DECKS.parents[1] / "docs/verification.md").read_text(encoding="utf-8").splitlines()
LONG = "TRL_TEST_LONG" in os.environ
lacking = []


def row(*cells):
    """A line of a table, which the page has."""
    line = "| " + " | ".join(map(str, cells)) + " |"
    print(line, flush=True)
    if line not in PAGE:
        lacking.append(line)


def orders_of(errors):
    """The order from each error to that of half the width or step."""
    return [math.log2(coarse / fine) for coarse, fine in zip(errors, errors[1:])]


def written(orders):
    """Orders as a cell of a table."""
    return ", ".join(f"{order:.2f}" for order in orders)


IMPLICIT = ("beuler", "cn", "esdirk2", "esdirk3", "esdirk4")
# Waves whose terms are implicit as a whole.
WHOLE = WAVES.replace("1e-12}}", "1e-12}}, stages: {{tolerance: 1e-11, newton: {{tolerance: 1e-11}}}}")
WHOLE = WHOLE.replace("face,", "face, solver: stages,").replace("rho: {{", "rho: {{solver: stages, ")


def check_orders(what, seen, expected):
    """A line of a table: the second of three errors of each name, and all orders; the last one is near what it should
    be."""
    row(*what, *(f"{errors[1]:.1e}" for errors in seen.values()), *(written(orders_of(e)) for e in seen.values()))
    for (name, errors), order in zip(seen.items(), expected):
        check(f"order {order} of {name} by {' '.join(what)}", abs(orders_of(errors)[1] - order) < 0.25, errors)


def check_in_space(flow, name, errors):
    """Lines of a table: errors on three grids, which fall with order 2."""
    for kind, word in (("l2", "l2"), ("linf", "largest")):
        seen = [e[kind] for e in errors]
        row(flow, name, word, *(f"{e:.3e}" for e in seen), written(orders_of(seen)))
        check(f"order 2 of {flow} in {name}", abs(orders_of(seen)[1] - 2) < 0.1, seen)


def order_in_space():
    """Halving the cells divides the errors of velocity and pressure by four: Taylor and Green's vortices in 2-D, an
    exact solution, with steps of rk4 whose errors are far smaller."""
    grids = (12, 24, 48)
    errors = [run(DECKS / "taylor_green.yaml", f"grid.cells=[{n},{n}]", "time.dt=0.05", "time.end=0.2",
                  "time.method=rk4")[0]["errors"] for n in grids]
    for name in "uvp":
        check_in_space("vortices", name, [e[name] for e in errors])


def channel():
    """A channel's start-up beside its series, and the parabola that it becomes, which implicit steps reach."""
    for what, settings in (("start-up", ("time.method=rk4", "time.dt={cfl: 0.3}", "time.end=0.05")),
                           ("parabola", ("time.method=beuler", "time.dt=0.5", "time.end=10"))):
        check_in_space(what, "u", [run(DECKS / "channel.yaml", f"grid.cells=[4,{n}]", *settings)[0]["errors"]["u"]
                                   for n in (16, 32, 64)])


# The exact solution of the vortices' equations on a grid of n cells: differences of waves are waves, and the convective
# term is a gradient on the grid, too.
ON_GRID = ("parameters.h=2*pi/{n}", "parameters.rate=4*nu*(1 - cos(h))/h^2",
           "equations.u.exact=sin(x)*cos(y)*exp(-rate*t)", "equations.v.exact=-cos(x)*sin(y)*exp(-rate*t)",
           "incompressible.exact=cos(h/2)^2/4*(cos(2*x) + cos(2*y))*exp(-2*rate*t)")


def vortices_in_time():
    """Orders in time beside the exact solution of the vortices' equations on a grid of 16 x 16 cells."""
    exact = [setting.format(n=16) for setting in ON_GRID]
    tight = ["solvers.tight={tolerance: 1e-13, newton: {tolerance: 1e-13}}", "equations.u.solver=tight",
             "equations.v.solver=tight"]
    for method, order, of_pressure in (("euler", 1, 1), ("ssprk2", 2, 2), ("ssprk3", 3, 2), ("rk4", 4, 3), ("cn", 2, 2),
                                       ("esdirk2", 2, 2), ("esdirk3", 3, 3), ("esdirk4", 4, 4)):
        settings = [f"time.method={method}", "time.end=1.2", *exact, *(tight if method in IMPLICIT else ())]
        errors = [run(DECKS / "taylor_green.yaml", "grid.cells=[16,16]", "parameters.nu=0.2", f"time.dt={0.15 / n}",
                      *settings)[0]["errors"] for n in (1, 2, 4)]
        check_orders((method,), {name: [e[name]["l2"] for e in errors] for name in "up"}, (order, of_pressure))


def order_in_time():
    """The velocity has the order of the method, and so has the pressure of implicit methods; that of explicit ones has
    order 3 at most. All come to the same solution, which is that of ark4 with small steps. The short form has each
    method once."""
    fine, done = {}, set()
    for method, order, of_pressure, walls, density in (
        ("euler", 1, 1, False, "1"), ("ssprk2", 2, 2, True, "rho"), ("ssprk3", 3, 2, False, "1"),
        ("ssprk3", 3, 2, True, "rho"), ("rk4", 4, 3, False, "rho"), ("rk4", 4, 3, True, "1"), ("bs3", 3, 2, True, "1"),
        ("dp5", 5, 3, True, "1"), ("beuler", 1, 1, False, "1"), ("cn", 2, 2, True, "rho"),
        ("esdirk2", 2, 2, True, "rho"), ("esdirk3", 3, 3, True, "1"), ("esdirk4", 4, 4, True, "1"),
        ("ark3", 3, 3, True, "1"), ("ark3", 3, 3, True, "rho"), ("ark4", 4, 4, True, "rho"),
        ("ark4", 4, 4, False, "rho")):
        if method in done and not LONG:
            continue
        done.add(method)
        flow = {"walls": walls, "density": density, "nu": 0.05}
        if (walls, density) not in fine:
            fine[walls, density] = waves("ark4", 0.02 / 16, deck=DIVIDED, **flow)
        deck = DIVIDED if "ark" in method else WHOLE if method in IMPLICIT else WAVES
        rows = [waves(method, 0.02 / n, deck=deck, **flow) for n in (1, 2, 4)]
        seen = {name: [distance(r, fine[walls, density], name) for r in rows] for name in "uvp"}
        what = (method, "walls" if walls else "periodic", "carried" if density == "rho" else "1")
        check_orders(what, seen, (order, order, of_pressure))
        check(f"no divergence by {method}", rows[0]["leak"] < 1e-9, rows[0]["leak"])


# Viscosity as an implicit term, and a density that is carried along.
PULSING = THROUGH.replace("min(20*t, 1)", "(1 + 0.5*sin(9*t))").replace("ssprk3", "{method}")
PULSING = PULSING.replace("dt: {{cfl: 1}}, end: 0.5", "dt: {dt}, end: 0.12").replace("[16, 12]", "[8, 6]")
PULSING = PULSING.replace("pressure: p}}", """pressure: p, solver: exact, density: "{density}"}}
solvers: {{exact: {{tolerance: 1e-12}}{stages}}}""")
CARRIED = """equations:
  rho: {{initial: "1.5 + 0.5*sin(2*x)*cos(2*y)", ddt: "-div(advective_flux(rho, [u, v])) + 0.1*laplacian(rho)",
        boundary: {{x-: {{dirichlet: 1.5}}, x+: {{outflow: true}}, y-: {{neumann: 0}}, y+: {{neumann: 0}}}}}}"""


def divided(deck):
    """A deck with its viscous terms as implicit ones."""
    deck = re.sub(r'ddt: "(-div[^"]*\)\)) \+ (0.5\*laplacian\([uv]\))"', r'ddt: {{explicit: "\1", implicit: "\2"}}',
                  deck)
    return deck.replace("{stages}", ", stages: {{tolerance: 1e-12}}").replace("face,", "face, solver: stages,")


def pulsing():
    """Where the velocity through a side changes in time, it has the order of the method, and the pressure order 2; with
    slip that is what the acceleration takes. The short form has one explicit method, and a density with one of two
    others."""
    for method, order, density in (("ssprk2", 2, "1"), ("ssprk3", 3, "1"), ("rk4", 4, "1"), ("ark3", 3, "1"),
                                   ("ark4", 4, "1"), ("ark3", 3, "rho"), ("ark4", 4, "rho")):
        if not LONG and (method, density) not in (("ssprk3", "1"), ("ark4", "1"), ("ark3", "rho")):
            continue
        text = divided(PULSING) if "ark" in method else PULSING.replace("{stages}", "")
        if density == "rho":
            text = text.replace("equations:", CARRIED)
        largest = 0.008 if "ark" in method else 0.002  # which is near the explicit limit

        def run_pulse(dt, profile="6*y*(1-y)", side="{dirichlet: 0}", text=text):
            deck = text.format(profile=profile, side=side, dt=dt, method=method, density=density)
            pathlib.Path("deck.yaml").write_text(deck, encoding="utf-8")
            return run("deck.yaml")[1]

        rows = [run_pulse(largest / n) for n in (1, 2, 4, 16)]
        seen = {name: [abs(r[name] - rows[3][name]) for r in rows[:3]] for name in ("middle", "p1")}
        check_orders((method, "carried" if density == "rho" else "1"), seen, (order, 2))
        if density == "1":
            slips = run_pulse(0.002, "1", "{neumann: 0}", text.replace("initial: 0", "initial: 1", 1))
            drop = 0.5 * 4.5 * math.cos(9 * 0.12)
            check("pressure that accelerates", abs(slips["p1"] - slips["p2"] - drop) < 2e-5, (slips, drop))


# Between walls that lie anywhere between points.
BETWEEN = """trellis: 1
grid: {cells: [4, 16], periodic: [true, true]}
expressions:
  wall: "min(y - 0.13, 0.88 - y)"
  wall_u: {formula: wall, location: xface}
  change: "dy*abs(ddy(wall_u))"
  steeper: "if(abs(at(wall_u, zedge)) < change/2, change/max(at(wall_u, zedge) + change/2, 0.05*change), 1)"
equations:
  u: {location: xface, initial: 0, mask: "wall > 0", solve: "div([ddx(u), steeper*ddy(u)]) = -1"}
output: {series: {values: {off: "norm(if(wall_u > 0, u - (y - 0.13)*(0.88 - y)/2, 0))"}}}
"""


def walls():
    """With gradients that are steeper by where the wall cuts them, as in the deck of the vortex street, a flow between
    solids has order 2; with the surface on faces, order 1."""
    pathlib.Path("deck.yaml").write_text(BETWEEN, encoding="utf-8")
    for surface, settings in (("between points", ()), ("on faces", ("expressions.steeper=1",))):
        off = [run("deck.yaml", f"grid.cells=[4, {n}]", *settings)[1]["off"] for n in (16, 32, 64)]
        row(surface, *(f"{e:.1e}" for e in off), written(orders_of(off)))
        least, most = (0.15, 0.27) if not settings else (0.45, 0.55)
        check(f"walls {surface}", all(least < b / a < most for a, b in zip(off, off[1:])), off)


def rayleigh(thickness, ratio=3.0, k=2 * math.pi, height=1.5, steps=4000):
    """The rate n at which linear theory lets a disturbance grow between walls at -height and height, without viscosity,
    of a density rho = (1 + ratio + (ratio - 1) tanh(y/thickness))/2: the largest one for which the vertical velocity w,
    (rho w')' = k^2 (rho - rho'/n^2) w (Rayleigh 1883), is 0 at both walls."""

    def density(y):
        return (1 + ratio + (ratio - 1) * math.tanh(y / thickness)) / 2

    def crosses(rate):
        """Whether w, which begins at a wall with flux rho w' = 1, is 0 before the other wall."""
        w, flux, h = 0.0, 1.0, 2 * height / steps
        for i in range(steps):
            y = -height + (i + 0.5) * h  # leapfrog: w at ends of intervals, the flux in their middles
            w += h * flux / density(y)
            slope = (density(y + h) - density(y)) / h
            flux += h * k**2 * (density(y + h / 2) - slope / rate**2) * w
            if w < 0:
                return True
        return False

    slow, fast = 0.1, 3.0
    for _ in range(40):
        middle = (slow + fast) / 2
        slow, fast = (middle, fast) if crosses(middle) else (slow, middle)
    return middle


def rayleigh_taylor():
    """A small disturbance of a heavy fluid on a light one grows at the rate of linear theory, which is sqrt(A g k) of a
    thin interface."""
    check("theory of a thin interface", abs(rayleigh(2e-3) / math.sqrt(0.5 * 2 * math.pi) - 1) < 0.01, rayleigh(2e-3))
    expected, off = rayleigh(0.05), []
    for n in (20, 40, 80):
        run(DECKS / "rayleigh_taylor.yaml", f"grid.cells=[{n},{3 * n}]", "parameters.nu=0", "time.end=4",
            "time.dt=0.04", "expressions.height=1e-5*cos(2*pi*x)", "output.every={time: 10}",
            "output.series.values.speed=norm(v)", "incompressible.solver=exact", "solvers.exact={tolerance: 1e-12}")
        before, after = series_at(-11), series_at(-1)
        rate = math.log(after["speed"] / before["speed"]) / (after["time"] - before["time"])
        off.append(abs(rate / expected - 1))
        row(f"{n} x {3 * n}", f"{rate:.4f}", f"{expected:.4f}", f"{100 * off[-1]:.2f}%")
    check("growth of a disturbance", off[1] < 0.0025 and off[2] < 0.0006 and off[0] > 3.5 * off[1] > 10 * off[2], off)


for test in (order_in_space, channel, vortices_in_time, order_in_time, pulsing, walls, rayleigh_taylor):
    test()
if lacking:
    sys.exit("docs/verification.md lacks lines that are printed above")

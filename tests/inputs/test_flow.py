#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Incompressible flow: orders in space and time of velocity and pressure, what is conserved, and published values."""
import json
import math
import os
import pathlib
import subprocess
import sys

TRELLIS = os.environ.get("TRELLIS", "trellis")
DECKS = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2])) / "inputs/decks"


def run(deck, *settings):
    """The report of a deck, and the last row of its series by name."""
    command = [TRELLIS, "run", str(deck), "--quiet", "--report", "report.json"]
    for setting in ("output.directory=out", "run.threads=1", "run.compile=never", *settings):
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(pathlib.Path("report.json").read_text(encoding="utf-8")), series_at(-1)


def series_at(row):
    """A row of the last run's series by name."""
    rows = pathlib.Path("out/series.csv").read_text(encoding="utf-8").splitlines()
    return dict(zip(rows[0].split(","), map(float, rows[1:][row].split(","))))


def check(what, holds, seen):
    """Leave with what was seen unless it holds."""
    if not holds:
        sys.exit(f"{what}: {seen}")


PLACES = ("[0.21, 0.33]", "[0.65, 0.11]", "[0.46, 0.83]")
# Waves in a periodic box, or between walls; smooth, and no exact solution.
WAVES = """trellis: 1
grid: {{cells: [12, 10], periodic: [true, {periodic}]}}
parameters: {{nu: {nu}}}
expressions: {{kx: "2*pi*x", ky: "2*pi*y"}}
incompressible: {{velocity: [u, v], pressure: p, solver: exact, density: "{density}"}}
solvers: {{exact: {{tolerance: 1e-12}}}}
equations:
  u: {{location: xface, initial: "sin(ky) + 0.3*cos(kx + 2*ky)",
      ddt: "-div(advective_flux(u, [u, at(v, zedge)])) + nu*laplacian(u)" {walls}}}
  v: {{location: yface, initial: "0.5*cos(2*kx) - 0.2*sin(kx - ky) + 0.1",
      ddt: "-div(advective_flux(v, [at(u, zedge), v])) + nu*laplacian(v) - 10*nu" {walls}}}
  rho: {{initial: "1.5 + 0.5*sin(kx)*cos(ky)",
        ddt: "-div(advective_flux(rho, [u, v])) + nu*laplacian(rho)" {flat}}}
time: {{method: {method}, dt: {dt}, end: {end}}}
output:
  series:
    every: {{steps: 1}}
    values: {{{values}, x: "integral(u)", y: "integral(v)", leak: "norm(div([u, v]))",
             energy: "integral(at(u^2, cell) + at(v^2, cell))/2",
             power: "integral(u*ddt(u)) + integral(v*ddt(v))"}}
"""
# The same with viscosity as an implicit term.
DIVIDED = WAVES
for name, carrier in (("u", "[u, at(v, zedge)]"), ("v", "[at(u, zedge), v]")):
    flux = f"-div(advective_flux({name}, {carrier}))"
    DIVIDED = DIVIDED.replace(f'"{flux} + nu*laplacian({name})',
                              f'{{{{implicit: "nu*laplacian({name})", explicit: "{flux}')
DIVIDED = DIVIDED.replace('[u, at(v, zedge)]))"', '[u, at(v, zedge)]))"}}').replace('- 10*nu"', '- 10*nu"}}')
DIVIDED = DIVIDED.replace("1e-12}}", "1e-12}}, stages: {{tolerance: 1e-11}}").replace("face,", "face, solver: stages,")
BY_ERROR = "{{name: {method}, tolerance: {{relative: {dt}, absolute: {dt}}}}}"
WALLS = ", boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}}"
FLAT = ", boundary: {y-: {neumann: 0}, y+: {neumann: 0}}"


def waves(method, dt, end=0.16, nu=0.01, walls=False, density="1", deck=WAVES, settings=()):
    """The last row of the series of the waves."""
    values = ", ".join(f'{k}{i}: "probe({k}, {place})"' for k in "uvp" for i, place in enumerate(PLACES))
    text = deck.format(periodic="false" if walls else "true", walls=WALLS if walls else "",
                        flat=FLAT if walls else "", method=method, dt=dt, end=end, nu=nu, values=values,
                        density=density)
    pathlib.Path("deck.yaml").write_text(text, encoding="utf-8")
    return run("deck.yaml", *settings)[1]


def distance(a, b, name):
    """How far two rows are apart in what was probed of a field."""
    return math.sqrt(sum((a[f"{name}{i}"] - b[f"{name}{i}"])**2 for i in range(len(PLACES))))


def order_in_space():
    """Halving the cells divides the errors of velocity and pressure by four."""
    errors = [run(DECKS / "taylor_green.yaml", f"grid.cells=[{n},{n}]", "time.dt=0.05", "time.end=0.2",
                  "time.method=rk4")[0]["errors"] for n in (12, 24)]
    for name in "uvp":
        ratio = errors[0][name]["l2"] / errors[1][name]["l2"]
        check(f"order 2 in space of {name}", 3.7 < ratio < 4.3, ratio)


def order_in_time():
    """The velocity has the order of the method, the pressure that or 2."""
    for method, orders, walls, density in (
        ("euler", (1, 1), False, "1"), ("ssprk2", (2, 2), True, "rho"), ("ssprk3", (3, 2), False, "1"),
        ("ssprk3", (3, 2), True, "1"), ("rk4", (4, 2.9), False, "rho")):
        dt = 0.02 if method == "rk4" else 0.01
        rows = [waves(method, dt / n, walls=walls, density=density) for n in (1, 2, 8)]
        for name, order in zip("uvp", (orders[0], orders[0], orders[1])):
            seen = math.log2(distance(rows[0], rows[2], name) / distance(rows[1], rows[2], name))
            check(f"order {order} of {name} by {method}", order - 0.25 < seen < order + 0.75, seen)
        check(f"no divergence by {method}", rows[0]["leak"] < 1e-9, rows[0]["leak"])


def guesses():
    """The last stage's pressure is guessed from that before and that at the start of the step, and takes less."""
    for method in ("ssprk3", "rk4"):
        waves(method, 0.002, end=0.02, settings=("solvers.exact.method=cg", "solvers.exact.tolerance=1e-8"))
        solver = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))["solvers"][0]
        check(f"iterations of the last stage of {method}", solver["last_iterations"] < 4, solver)


def implicit_stages():
    """Methods with implicit stages keep their order, for the pressure, too, also if terms are divided and the density
    varies."""
    for method, order, walls, density, deck in (
        ("cn", 2, True, "rho", WAVES), ("esdirk3", 3, True, "1", WAVES), ("beuler", 1, False, "1", WAVES),
        ("ark3", 3, True, "1", DIVIDED), ("ark4", 4, True, "rho", DIVIDED)):
        dt = 0.02
        rows = [waves(method, dt / n, walls=walls, density=density, deck=deck, nu=0.05) for n in (1, 2, 8)]
        for name in "uvp":
            seen = math.log2(distance(rows[0], rows[2], name) / distance(rows[1], rows[2], name))
            check(f"order {order} of {name} by {method}", order - 0.3 < seen < order + 0.6, seen)
        check(f"no divergence by {method}", rows[0]["leak"] < 1e-9, rows[0]["leak"])


def chosen_steps():
    """Steps that follow the error come near to small ones, nearer with a smaller tolerance, in few steps."""
    small = waves("rk4", 0.001, walls=True, nu=0.05)
    by_error = WAVES.replace("method: {method}, dt: {dt}", f"method: {BY_ERROR}")
    for method, steps, within in (("bs3", 35, 1e-5), ("dp5", 15, 1e-6), ("esdirk3", 25, 2e-5)):
        rows = [waves(method, tolerance, walls=True, nu=0.05, deck=by_error) for tolerance in (1e-4, 1e-6)]
        off = [max(distance(row, small, name) for name in "uvp") for row in rows]
        check(f"steps by {method}", rows[1]["step"] < steps, rows[1]["step"])
        check(f"error by {method}", off[1] < within and off[1] < off[0] / 4, off)


def conserved():
    """Without viscosity momentum stays as it is, and so would energy but for the error in time, of order 5: the
    power of all terms is rounding, and what the pressure's tolerance leaves, also between walls and in 3-D."""
    start, rows = waves("rk4", 0.002, end=0.002, nu=0), [waves("rk4", dt, nu=0) for dt in (0.01, 0.005)]
    for name in "xy":
        check(f"momentum along {name}", abs(rows[0][name] - start[name]) < 1e-12, (rows[0], start))
    lost = [abs(row["energy"] - start["energy"]) for row in rows]
    turning = run(DECKS / "taylor_green_3d.yaml", "parameters.nu=0", "grid.cells=[8, 10, 6]", "time.end=1",
                  'output.series.values.power=integral(u*ddt(u)) + integral(v*ddt(v)) + integral(w*ddt(w))')[1]
    for power in (rows[0]["power"], waves("rk4", 0.01, nu=0, walls=True)["power"], turning["power"]):
        check("power of all terms", abs(power) < 1e-11, power)
    check("energy", lost[0] < 1e-4 * start["energy"] and lost[1] < lost[0] / 8, lost)


def rotating():
    """In a frame that turns, momentum does, too, and the force across the velocity has no power."""
    deck = WAVES.replace("nu*laplacian(u)", "nu*laplacian(u) + 3*at(v, xface)").replace(
        "- 10*nu", "- 10*nu - 3*at(u, yface)").replace("0.3*cos(kx", "0.7 + 0.3*cos(kx")
    row = waves("rk4", 0.005, end=0.1, nu=0, deck=deck)
    x, y = 0.7 * math.cos(0.3) + 0.1 * math.sin(0.3), 0.1 * math.cos(0.3) - 0.7 * math.sin(0.3)
    check("momentum", abs(row["x"] - x) < 1e-9 and abs(row["y"] - y) < 1e-9, (row, x, y))
    check("power of all terms", abs(row["power"]) < 1e-11, row["power"])


# Ghia, Ghia & Shin (1982), tables I and II, Re = 100: u on the line x = 0.5, v on the line y = 0.5.
GHIA = {"u1": -0.10150, "u2": -0.20581, "u3": 0.23151, "v1": 0.17527, "v2": -0.24533}


def cavity():
    """The lid-driven cavity on 32 x 32 cells comes within 0.01 of the published values, in units of the lid."""
    series = run(DECKS / "cavity.yaml", "grid.cells=[32, 32]", "time.dt=0.025", "time.end=10",
                 "output.every={time: 10}")[1]
    for name, value in GHIA.items():
        check(f"{name} of the cavity, {value}", abs(series[name] - value) < 0.01, series[name])


def heated_cavity():
    """The mean Nusselt number for Ra = 1e3 comes within 1% of de Vahl Davis (1983) on 16 x 16 cells, the largest
    velocity within 2%."""
    series = run(DECKS / "heated_cavity.yaml", "grid.cells=[16, 16]", "parameters.Ra=1e3", "time.end=0.2",
                 "output.every={time: 1}")[1]
    for name, value, within in (("nusselt", 1.118, 0.01), ("u_max", 3.649, 0.02), ("v_max", 3.697, 0.02)):
        check(f"{name}, {value}", abs(series[name] / value - 1) < within, series[name])


# A parabola comes in, and leaves where the pressure is 0; the sides along it hold it, or let it slip.
THROUGH = """trellis: 1
grid: {{cells: [16, 12], length: [2, 1]}}
incompressible: {{velocity: [u, v], pressure: p}}
equations:
  u: {{location: xface, initial: 0, ddt: "-div(advective_flux(u, [u, at(v, zedge)])) + 0.5*laplacian(u)",
      boundary: {{x-: {{dirichlet: "min(20*t, 1)*{profile}"}}, x+: {{outflow: true}}, y-: {side}, y+: {side}}}}}
  v: {{location: yface, initial: 0, ddt: "-div(advective_flux(v, [at(u, zedge), v])) + 0.5*laplacian(v)",
      boundary: {{x-: {{dirichlet: 0}}, x+: {{outflow: true}}, y-: {{dirichlet: 0}}, y+: {{dirichlet: 0}}}}}}
time: {{method: ssprk3, dt: {{cfl: 1}}, end: 0.5}}
output:
  series:
    every: {{steps: 1}}
    values: {{leak: "norm(div([u, v]))", p1: "probe(p, [0.75, 0.5])", p2: "probe(p, [1.25, 0.5])",
             middle: "probe(u, [2, 0.5])"}}
"""


def through():
    """Inflow that begins in time, and outflow: walls take the pressure of a parabola, slip takes none."""
    for profile, side, middle, drop in (("6*y*(1-y)", "{dirichlet: 0}", 1.5, 3), ("1", "{neumann: 0}", 1, 0)):
        pathlib.Path("deck.yaml").write_text(THROUGH.format(profile=profile, side=side), encoding="utf-8")
        series = run("deck.yaml")[1]
        check("no divergence", series["leak"] < 1e-8, series["leak"])
        check(f"velocity that leaves, {middle}", abs(series["middle"] / middle - 1) < 0.02, series["middle"])
        check(f"pressure drop, {drop}", abs(series["p1"] - series["p2"] - drop) < 0.06, series)


def pulsing():
    """Where the velocity through a side changes in time, it has the order of the method, and the pressure order 2; with
    slip that is what the acceleration takes."""
    text = THROUGH.replace("min(20*t, 1)", "(1 + 0.5*sin(9*t))")
    text = text.replace("dt: {{cfl: 1}}, end: 0.5", "dt: {dt}, end: 0.12")
    text = text.replace("cells: [16, 12]", "cells: [8, 6]").replace("ssprk3", "{method}").replace(
        "pressure: p}}", "pressure: p, solver: exact}}\nsolvers: {{exact: {{tolerance: 1e-12}}}}")
    for method, order in (("ssprk2", 2), ("rk4", 4)):
        rows = []
        for dt in (0.002, 0.001, 0.00025):
            deck = text.format(profile="6*y*(1-y)", side="{dirichlet: 0}", dt=dt, method=method)
            pathlib.Path("deck.yaml").write_text(deck, encoding="utf-8")
            rows.append(run("deck.yaml")[1])
        for name, order in (("middle", order), ("p1", 2)):
            seen = math.log2((rows[0][name] - rows[2][name]) / (rows[1][name] - rows[2][name]))
            check(f"order {order} of {name} by {method}", order - 0.3 < seen < order + 0.5, seen)
        deck = text.replace("initial: 0", "initial: 1", 1)
        deck = deck.format(profile="1", side="{neumann: 0}", dt=0.002, method=method)
        pathlib.Path("deck.yaml").write_text(deck, encoding="utf-8")
        series = run("deck.yaml")[1]
        drop = 0.5 * 4.5 * math.cos(9 * 0.12)
        check("pressure that accelerates", abs(series["p1"] - series["p2"] - drop) < 2e-5, (series, drop))


# The mean of all terms is taken from them.
DRIVEN = """trellis: 1
grid: {cells: [8, 10], periodic: [true, false]}
expressions: {terms: {formula: "-div(advective_flux(u, [u, at(v, zedge)])) + 0.02*laplacian(u)", location: xface}}
incompressible: {velocity: [u, v], pressure: p}
equations:
  u: {location: xface, initial: "1 + 0.2*sin(2*pi*x)*sin(4*pi*y)", ddt: "terms - integral(terms)",
      boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}}}
  v: {location: yface, initial: 0, ddt: "-div(advective_flux(v, [at(u, zedge), v])) + 0.02*laplacian(v)",
      boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}}}
time: {method: ssprk3, dt: 0.02, end: 1}
output: {series: {every: {steps: 1}, values: {rate: "integral(u)", drive: "-integral(terms)"}}}
"""


def driven():
    """A pressure gradient that keeps the flow's rate."""
    pathlib.Path("deck.yaml").write_text(DRIVEN, encoding="utf-8")
    series = run("deck.yaml")[1]
    check("rate", abs(series["rate"] - 1) < 1e-13, series["rate"])
    check("drive", 0.2 < series["drive"] < 0.4, series["drive"])


# What is known of Taylor and Green's vortices at the start.
START = {
    "rotation": ("enstrophy", "(cos(x)^2*sin(y)^2 + sin(x)^2*cos(y)^2)*sin(z)^2 + 4*(sin(x)*sin(y)*cos(z))^2"),
    "strain": ("strain(velocity)^2",
               "(2*cos(x)*cos(y)*cos(z))^2 + (sin(x)*cos(y)*sin(z))^2 + (cos(x)*sin(y)*sin(z))^2"),
    "shear": ("strain(velocity, x).z", "-sin(x)*cos(y)*sin(z)/2")
}


def strain_rate():
    """Order 2 of what is made of the velocity's derivatives; a viscosity of any kind takes the energy that it says."""
    settings = [f"output.series.values.{name}=norm({ours} - ({exact}))" for name, (ours, exact) in START.items()]
    rows = []
    for n in (8, 16):
        run(DECKS / "taylor_green_3d.yaml", f"grid.cells=[{n},{n},{n}]", "time.steps=1", *settings)
        rows.append(series_at(0))
    for name in START:
        check(f"order 2 of {name}", 3.5 < rows[0][name] / rows[1][name] < 4.5, rows)
    check("energy of the vortices", abs(rows[1]["energy"] - 0.125) < 1e-13, rows[1])
    terms = " + ".join(f"integral({a}*ddt({a}))" for a in "uvw")
    series = run(DECKS / "les.yaml", "grid.cells=[8,6,9]", "time.steps=4",
                 f"output.series.values.change=({terms})/volume")[1]
    check("dissipation of a model", abs(series["change"] / series["dissipation"] + 1) < 1e-12, series)


# A force drives a fluid through a row of cylinders, until they hold all of it.
ROW = """trellis: 1
grid: {cells: [16, 16], periodic: [true, true]}
expressions:
  fluid: "(x - 0.5)^2 + (y - 0.4)^2 > 0.06"
  force_u: {formula: "-div(advective_flux(u, [u, at(v, zedge)])) + laplacian(u)", location: xface}
incompressible: {velocity: [u, v], pressure: p}
equations:
  u: {location: xface, initial: 0, mask: fluid, ddt: "force_u + if(fluid, 10, 0)"}
  v: {location: yface, initial: 0, mask: fluid, ddt: "-div(advective_flux(v, [at(u, zedge), v])) + laplacian(v)"}
time: {method: ssprk3, dt: 8e-4, end: 1, stop: {when: "norm(ddt(u)) < 1e-7"}}
output:
  series: {every: {steps: 1}, values: {drag: "integral(if(fluid, 0, force_u - ddx(p)))", still: "norm(ddt(u))",
                                       driven: "integral(if(fluid, 10, 0)*at(1, xface))", rate: "integral(u)"}}
"""


def dynamic():
    """The coefficient that a dynamic model finds is zero of resolved scales, and near 0.17 once they are not (Lilly
    1967)."""
    series = run(DECKS / "les_dynamic.yaml", "grid.cells=[12, 12, 12]", "parameters.width=2*pi/12", "time.end=6")[1]
    check("Cs of resolved vortices", series_at(0)["Cs"] < 1e-6, series_at(0)["Cs"])
    check("Cs of vortices that broke up", 0.14 < series["Cs"] < 0.22, series["Cs"])


def channel():
    """What the pressure's gradient brings into the turbulent channel, less the friction, is the change of its flow, to
    the error of a difference; and its profile has all of the flow."""
    run(DECKS / "turbulent_channel.yaml", "grid.cells=[8, 48, 6]", "time.dt=1e-3", "time.end=2e-3",
        "output.series.every={steps: 1}")
    before, now, after = (series_at(i) for i in range(3))
    change = (after["flow"] - before["flow"]) / (after["time"] - before["time"])
    check("balance of forces", abs(change - (1 - now["friction"])) < 1e-3, (change, now["friction"]))
    mean = sum(now[f"U_{i}"] for i in range(48)) / 48
    check("a profile", abs(mean - now["flow"]) < 1e-12, (mean, now["flow"]))


def held():
    """What a solid holds is what drives the flow, once that is steady; ddt(u) has the pressure's part."""
    pathlib.Path("deck.yaml").write_text(ROW, encoding="utf-8")
    series = run("deck.yaml")[1]
    check("steady", series["time"] < 1 and series["still"] < 1e-7, series)
    check("drag", abs(series["drag"] / series["driven"] - 1) < 1e-6, series)
    row, before = series_at(20), series_at(18)
    check("a rate", abs(row["drag"]) > 0.1 and row["still"] > 1, row)
    change = (series_at(20)["rate"] - before["rate"]) / (2 * 8e-4)
    held_back = series_at(19)["driven"] - series_at(19)["drag"]
    check("momentum", abs(change / held_back - 1) < 1e-3, (change, held_back))


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
    solids has order 2."""
    pathlib.Path("deck.yaml").write_text(BETWEEN, encoding="utf-8")
    off = [run("deck.yaml", f"grid.cells=[4, {n}]")[1]["off"] for n in (16, 32)]
    check("walls between points", off[0] < 6e-4 and off[1] < 0.27 * off[0], off)


for test in (order_in_space, order_in_time, guesses, implicit_stages, chosen_steps, pulsing, conserved, rotating,
             cavity, heated_cavity, through, driven, strain_rate, dynamic, channel, held, walls):
    test()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Incompressible flow: what is conserved, steps that follow errors, sides, solids and models, and published values."""
import json
import math
import pathlib

from flow_runs import BY_ERROR, DECKS, THROUGH, WAVES, check, distance, run, series_at, waves


def guesses():
    """The last stage's pressure is guessed from that before and that at the start of the step, and takes less."""
    for method in ("ssprk3", "rk4"):
        waves(method, 0.002, end=0.02, settings=("solvers.exact.method=cg", "solvers.exact.tolerance=1e-8"))
        solver = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))["solvers"][0]
        check(f"iterations of the last stage of {method}", solver["last_iterations"] < 4, solver)


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


def through():
    """Inflow that begins in time, and outflow: walls take the pressure of a parabola, slip takes none."""
    for profile, side, middle, drop in (("6*y*(1-y)", "{dirichlet: 0}", 1.5, 3), ("1", "{neumann: 0}", 1, 0)):
        pathlib.Path("deck.yaml").write_text(THROUGH.format(profile=profile, side=side), encoding="utf-8")
        series = run("deck.yaml")[1]
        check("no divergence", series["leak"] < 1e-8, series["leak"])
        check(f"velocity that leaves, {middle}", abs(series["middle"] / middle - 1) < 0.02, series["middle"])
        check(f"pressure drop, {drop}", abs(series["p1"] - series["p2"] - drop) < 0.06, series)


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


for test in (guesses, chosen_steps, conserved, rotating, cavity, heated_cavity, through, driven, strain_rate, dynamic,
             channel, held):
    test()

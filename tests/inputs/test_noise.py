#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""noise(seed): the variance of a stochastic heat equation against theory, moments and correlations, and the same bits
in all ways of running it."""
import itertools
import math
import os
import pathlib
import sys

from run_deck import run

SIGMAS = 4.5  # of the sampling error: seeds are fixed, so a test passes always or never

HEAT = """trellis: 1
grid: {{cells: {cells}, length: {length}, periodic: {periodic}}}
parameters: {{D: {D}, a: {a}, s: {s}}}
equations:
  u: {{initial: 0, ddt: "D*laplacian(u) - a*u + s*noise({seed})"}}
time: {{method: {method}, dt: {dt}, steps: {steps}}}
output: {{directory: out, series: {{every: {{steps: 1}}, values: {{square: "norm(u)^2", mean: "integral(u)"}}}}}}
"""

# w is the noise of the step before; n and m are two seeds at one time, seen after the step.
MOMENTS = """trellis: 1
grid: {cells: [64, 32], length: [1, 2], periodic: [true, true]}
parameters: {v: 1/1024, h: 0.1}
equations:
  n: {initial: 0, ddt: "(sqrt(v*dt)*noise(1) - n)/dt"}
  m: {initial: 0, ddt: "(sqrt(v*dt)*noise(2) - m)/dt"}
  w: {initial: 0, ddt: "(n - w)/dt"}
time: {method: euler, dt: 0.1, steps: 200}
output:
  directory: out
  series:
    every: {steps: 1}
    values: {one: "integral(n)/2", two: "integral(n^2)/2", three: "integral(n^3)/2",
             four: "integral(n^4)/2", six: "integral(n^6)/2", before: "integral(n*w)/2", seed: "integral(n*m)/2",
             beside_x: "integral(n*cmeanx(n))/2", beside_y: "integral(n*cmeany(n))/2",
             squares: "integral((n^2 - 1)*(w^2 - 1))/2", beyond: "integral(if(abs(n) > 3, 1, 0))/2"}
"""

WAYS = """trellis: 1
grid: {cells: [22, 14], length: [1.1, 1.4], periodic: [true, false], patches: [2, 2]}
parameters: {s: 0.2}
expressions:
  eta: "s*sqrt(1 + u^2)*noise(1)"
  q: "-(0.02 + 0.01*u^2)*grad(u) + 0.01*[noise(2), noise(3)]"
equations:
  u: {initial: "sin(2*pi*x/1.1)", ddt: "-div(q) + eta", boundary: {y-: {dirichlet: 0}, y+: {neumann: 0}}}
  v: {location: yface, initial: 0, ddt: "at(u, yface) - v + at(laplacian(noise(1)), yface)/1000",
      boundary: {y-: {neumann: 0}, y+: {neumann: 0}}}
time: {method: METHOD, dt: DT, steps: 24}
output: {directory: out, fields: [u, v, eta, q], series: {every: {steps: 1}, values: {r: "norm(ddt(u))"}},
         checkpoint: {every: {steps: 7}}}
"""


def growth(method, z):
    """What a step makes of a mode: its factor, and that of noise*dt, of u' = z/dt*u + noise, the noise being one in all
    stages."""
    order = {"euler": 1, "ssprk2": 2, "ssprk3": 3, "rk4": 4}[method]
    factor = sum(z**k / math.factorial(k) for k in range(order + 1))
    return factor, sum(z**k / math.factorial(k + 1) for k in range(order))


def check_heat(method, cells, length, dt, steps, seed):
    """The mean of u^2 over cells and steps, once the start is forgotten, against that of the discrete system."""
    D, a, s = 0.02, 2.0, 0.7
    h = [l / n for l, n in zip(length, cells)]
    volume = math.prod(h)
    deck = HEAT.format(cells=list(cells), length=list(length), periodic=["true"] * len(cells), D=D, a=a, s=s, dt=dt,
                       steps=steps, method=method, seed=seed).replace("'true'", "true")
    rows = run(deck, ["run.threads=1", "run.compile=never"])[1]
    forget = math.ceil(9 / (a * dt))
    sample = [row["square"] for row in rows if row["step"] > forget]
    expected = spread = 0
    total = math.prod(cells)
    for modes in itertools.product(*(range(n) for n in cells)):
        z = -dt * (a + D * sum((2 - 2 * math.cos(2 * math.pi * k / n)) / x**2 for k, n, x in zip(modes, cells, h)))
        g, p = growth(method, z)
        variance = s**2 * dt / volume * p**2 / (1 - g**2)
        expected += variance / total
        # A mode's squares are correlated as g^2 to the number of steps between them.
        spread += 2 * variance**2 * (1 + g**2) / (1 - g**2) / len(sample) / total**2
    found = sum(sample) / len(sample)
    apart = (found - expected) / math.sqrt(spread)
    print(f"{method} {cells}: mean of u^2 {found:.6g}, theory {expected:.6g}, {apart:+.2f} of its standard error "
          f"({100 * math.sqrt(spread) / expected:.2f} %)")
    if abs(apart) > SIGMAS:
        sys.exit("the variance is not that of the discrete system")


def check_moments():
    rows = run(MOMENTS)[1][2:]  # w is noise from the second step on
    samples = len(rows) * 64 * 32
    # Each with the variance of one sample.
    wanted = {
        "one": (0, 1), "two": (1, 2), "three": (0, 15), "four": (3, 96), "six": (15, 10395 - 225), "before": (0, 1),
        "seed": (0, 1), "beside_x": (0, 1), "beside_y": (0, 1), "squares": (0, 4), "beyond": (0.0026998, 0.0026998)
    }
    for name, (mean, variance) in wanted.items():
        found = sum(row[name] for row in rows) / len(rows)
        apart = (found - mean) / math.sqrt(variance / samples)
        print(f"{name}: {found:.6f}, {apart:+.2f} standard errors of {samples} samples from {mean}")
        if abs(apart) > SIGMAS:
            sys.exit(f"'{name}' is not that of independent normal numbers")


def check_ways(method, dt, deep):
    deck = WAYS.replace("METHOD", method).replace("DT", dt)
    base = ["run.threads=1", "run.compile=never", "run.fusion=none"]
    ways = [(1, ["run.compile=always", "run.threads=2"]), (1, ["run.compile=never", "run.fusion=node"]),
            (2, ["run.compile=never"]), (4, ["run.compile=never", "run.threads=2"]),
            (1, ["run.compile=never", "grid.patches=[1, 1]", "run.scheduler=serial"]),
            (1, ["run.compile=always", "run.passes.hoisting=false"])]
    if deep:
        ways += [(1, ["run.compile=never", f"run.time_blocking={n}"])
                 for n in (2, 3)] + [(1, ["run.compile=always", "run.time_blocking=3"])]
    first, rows, _ = run(deck, base)
    for ranks, settings in ways:
        other, series, said = run(deck, settings, ranks)
        if "one at a time" in said:
            sys.exit(f"{settings}: {said}")
        if other != first or series != rows:
            sys.exit(f"{method}, {ranks} ranks, {settings}: {other}, and with {base}: {first}")
    run(deck, base, more=["--steps", "14"])
    other, series, _ = run(deck, ["run.compile=never"], more=["--restart", "latest"])
    if other != first or series != rows:
        sys.exit(f"{method}: {other} after a restart, and {first} without")
    print(f"{method}, dt: {dt}: the same bits in {len(ways) + 2} ways")


def main():
    check_moments()
    check_heat("euler", (40,), (2.0,), 0.02, 20000, 1)
    check_heat("euler", (12, 9), (1.2, 1.1), 0.05, 6000, 2)
    check_heat("ssprk3", (10, 8), (1.0, 1.0), 0.1, 4000, 3)
    check_heat("rk4", (30,), (3.0,), 0.1, 6000, 4)
    check_ways("euler", "0.01", True)
    check_ways("ssprk3", "0.01", True)
    check_ways("rk4", "{cfl: 0.4}", False)


if __name__ == "__main__":
    if "TRL_TEST_LONG" not in os.environ:
        os.environ["TRELLIS_CC"] = str(pathlib.Path(__file__).resolve().parents[1] / "quick_cc.sh")
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""A run with equations that are solved has the same bits when it is continued from its middle."""
import random

import random_flows
import test_solver_bits as bits
import test_solvers as t

FLOWS = (8, 13)  # random ones

# First guesses follow from the steps before.
TAUGHT = """trellis: 1
grid: {cells: [13, 17], length: [6.3, 6.3], periodic: [true, false]}
incompressible: {velocity: [u, v], pressure: p, density: "2 + rho", solver: s}
solvers: {s: SOLVER}
equations:
  u: {location: xface, initial: "cos(x)*sin(y)", boundary: {y-: {dirichlet: 0}, y+: {dirichlet: "cos(9*t)"}},
      ddt: RATE"-div(advective_flux(u, [u, at(v, zedge)]))", implicit: "0.05*laplacian(u)"}}
  v: {location: yface, initial: "-sin(x)*cos(y)", boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}},
      ddt: RATE"-div(advective_flux(v, [at(u, zedge), v])) + 0.3*sin(9*t)", implicit: "0.05*laplacian(v)"}}
  rho: {initial: "sin(x)*cos(y)", ddt: "-div(advective_flux(rho, [u, v], vanleer))",
        boundary: {y-: {neumann: 0}, y+: {neumann: 0}}}
  q: {solve: "laplacian(q) - q = rho + at(u, cell)", solver: s, boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}}}
time: {METHOD, steps: 8}
"""


def taught(method, solver="{method: cg, preconditioner: multigrid}"):
    """A deck of that; only some methods have implicit terms."""
    text = TAUGHT.replace("SOLVER", solver).replace("METHOD", method).replace("RATE", "{explicit: ")
    if "ark3" in method:
        return text
    return text.replace("{explicit: ", "").replace('", implicit: "', " + ").replace('"}}\n', '"}\n')


# Operators that change in time by their conditions alone: what is found of them once is found again.
SIDES = """trellis: 1
grid: {cells: [13, 17]}
equations:
  p: {location: LOCATION, initial: 0, solve: "laplacian(p) - p = x*y + t", solver: s, boundary: {x-: {robin: {a: 1,
      b: "0.5 + t", c: 0.3}}, x+: {dirichlet: 0.3}, y-: {dirichlet: 0}, y+: {neumann: 0}}}
  e: {location: LOCATION, initial: 0, ddt: p}
solvers: {s: SOLVER}
time: {method: euler, dt: 0.1, steps: 4}
"""
# Operators that are symmetric, or leave constants free, for some time alone: by t, by a wind that begins to blow, by
# fields that get or cease to be zero.
CHANGING = """trellis: 1
grid: {cells: [13, 17]}
equations:
  q: {initial: "x*y", ddt: "1 + p", boundary: &flat {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+:
      {neumann: 0}}}
  p: {initial: 2, solver: s, boundary: SIDES, solve: "SOLVE"}
  wind: {initial: 0, ddt: "20*x", boundary: *flat}
  c: {initial: 0, ddt: 1}
solvers: {s: {preconditioner: jacobi, tolerance: 1e-9, iterations: 400}}
time: {method: rk4, dt: 0.1, steps: 5}
"""
ONCE_FREE = "laplacian(p) = q - integral(q)"
CHANGES = ((ONCE_FREE, "{robin: {a: t, b: 1, c: 0}}"), (ONCE_FREE, "{robin: {a: \"max(0, 0.32 - t)\", b: 1, c: 0}}"),
           (ONCE_FREE, "[{where: \"t > 0.12 and t < 0.38\", dirichlet: 0}, {neumann: 0}]"),
           ("laplacian(p) - 30*t*cddx(p) = q", "{dirichlet: 0}"),
           ("laplacian(p) - div(advective_flux(p, [wind, 0.3*wind], upwind)) = q", "{dirichlet: 0}"),
           ("laplacian(p) - c*p = q - integral(q)", "{neumann: 0}"),
           ("laplacian(p) - max(0, c - 0.22)*p = q - integral(q)", "{neumann: 0}"),
           ("laplacian(p) - max(0, 0.22 - c)*p = q - integral(q)", "{neumann: 0}"),
           ("laplacian(p) = q - integral(q)", "{robin: {a: \"max(0, 0.32 - c)\", b: 1, c: 0}}"),
           ("laplacian(p) - wind*cddx(p) = laplacian(q) - wind*cddx(q)", "{neumann: 0}"))
# A wind that a plugin makes of what is at rest at first.
BLOWN = """trellis: 1
plugins: [side_values]
grid: {cells: [13, 17]}
expressions:
  blown: {type: twice, computes: [blown], inputs: {input: wind}}
equations:
  p: {initial: 2, solver: s, boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}},
      solve: "laplacian(p) - blown*cddx(p) = x"}
  wind: {initial: 0, ddt: "20*x", boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}
  e: {initial: 0, ddt: p}
solvers: {s: {preconditioner: jacobi, tolerance: 1e-9, iterations: 400}}
time: {method: rk4, dt: 0.1, steps: 5}
"""
# Equations that are not linear, whose derivatives leave constants free at some values of their own.
BENT = """trellis: 1
grid: {cells: [13, 8]}
equations:
  q: {initial: 0, ddt: "60*x*(t - 0.17)"}
  p: {initial: 0.99, solver: s,
      boundary: &flat {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}},
      solve: "laplacian(p) - max(0, p - 1) = q - integral(q)"}
  r: {initial: 0.5, solver: s, boundary: *flat, solve: "div((1 + r^2)*grad(r)) = 5*(q - integral(q))"}
solvers: {s: {preconditioner: jacobi, iterations: 400}}
time: {method: rk4, dt: 0.1, steps: 5}
"""
GATE = """trellis: 1
grid: {cells: [12, 9]}
incompressible: {velocity: [u, v], pressure: p}
equations:
  u: {location: xface, initial: 0, ddt: "-div(advective_flux(u, [u, at(v, zedge)])) + 0.02*laplacian(u) + y",
      boundary: {x-: {dirichlet: 0}, x+: [{where: "t < 0.04", dirichlet: 0}, {outflow: true}], y-: {dirichlet: 0},
      y+: {dirichlet: 0}}}
  v: {location: yface, initial: 0, ddt: "-div(advective_flux(v, [at(u, zedge), v])) + 0.02*laplacian(v)", boundary:
      {x-: {dirichlet: 0}, x+: {outflow: true}, y-: {dirichlet: "if(t < 0.04, 0, 1)"}, y+: {dirichlet: 0}}}
time: {method: ssprk3, dt: 0.01, steps: 8}
"""


def check(text, middle, *how):
    """A run that is continued from its middle has the bits of one that was not."""
    how = ("run.threads=1", "run.compile=never", *how)
    whole = t.run(text, how)["fields"]
    t.run(text, (*how, f"output.checkpoint.every.steps={middle}"), more=("--steps", str(middle)))
    t.check("a restart", t.run(text, how, more=("--restart", "latest"))["fields"] == whole, whole)


def check_others():
    """A run is continued on other ranks, in other patches; and from one that learned nothing, or by one that does."""
    text, first = taught("method: ssprk3, dt: 0.02"), ("run.threads=1", "output.checkpoint.every.steps=5")
    whole = t.run(text, first, more=("--steps", "5")) and t.run(text)["fields"]
    for ranks, settings in ((3, ("grid.patches=auto", "run.threads=1")), (1, ("grid.patches=[2, 3]", "run.threads=2")),
                            (3, ("grid.patches=[2, 3]", "run.owners=random:2", "run.threads=1"))):
        found = t.run(text, settings, ranks, more=("--restart", "out/checkpoint/00000005.nc"))["fields"]
        t.check(f"a restart on {ranks} ranks", found == whole, (found, whole))
    solvers = ["{method: direct}", "{method: cg, tolerance: 1e-11}"]
    for before, after in (solvers, solvers[::-1]):
        one = text.replace("2 + rho", "2")
        t.run(one.replace("solvers: {s: {method: cg, preconditioner: multigrid}}", f"solvers: {{s: {before}}}"), first,
              more=("--steps", "5"))
        other = one.replace("solvers: {s: {method: cg, preconditioner: multigrid}}", f"solvers: {{s: {after}}}")
        parts = [t.run(other, more=more)["fields"] for more in (("--restart", "latest"), ())]
        for name, field in parts[0].items():
            t.check(f"{name} by {before}, then {after}", abs(field["l2"] - parts[1][name]["l2"]) < 1e-8, parts)


def check_opening():
    """A wall opens within half a step of the present time, as an inflow begins: the pressure is that of before."""
    text = GATE.replace("0.04", "0.033")
    check(text, 3)
    before = [t.run(some, more=("--steps", "3"))["fields"]["p"] for some in (text, GATE.replace("0.04", "9"))]
    t.check("a pressure before", abs(before[0]["l2"] - before[1]["l2"]) < 1e-7 * before[1]["l2"], before)
    shut = GATE.replace("t < 0.04, 0, 1", "t < 0.033, 1, 0").replace("t < 0.04", "t > 0.033")
    t.check("a pressure after", t.run(shut)["steps"] == 8, shut)
    t.run(text.replace('where: "t < 0.033"', 'where: "t < 9"'), fails=True)


def main():
    steps = t.STEPS.replace("METHOD", "rk4")
    by_error = bits.whole_rates(bits.SPLIT).replace("METHOD", bits.BY_ERROR.replace("ark3", "dp5"))
    for text in (steps.replace("DT", "0.01"), steps.replace("DT", "{cfl: 0.4, speed: \"1 + p\", max: 0.02}"),
                 bits.SPLIT.replace("METHOD", bits.BY_ERROR), bits.INDEFINITE, bits.PSEUDO, by_error,
                 *(random_flows.write(random.Random(seed)) for seed in FLOWS)):
        check(text, 2)
    for method in ("method: ssprk3, dt: 0.02", "method: rk4, dt: {cfl: 0.3}", "method: ark3, dt: 0.03",
                   "method: {name: bs3, tolerance: {relative: 1e-4}, dt: {initial: 1}}"):
        for middle in (1, 2, 5):
            check(taught(method), middle)
    check_others()
    check(SIDES.replace("LOCATION", "cell").replace("SOLVER", "{}"), 2)
    solver = t.run(SIDES.replace("LOCATION", "cell").replace("SOLVER", "{method: direct}"))["solvers"][0]
    t.check("a direct method that follows its conditions", solver["iterations"] == solver["solves"], solver)
    check(SIDES.replace("LOCATION", "xface").replace("SOLVER", "{preconditioner: multigrid, replicate: 0}"), 2)
    for solver in ("{method: cg, single_reduction: true}", "{method: bicgstab, single_reduction: true}"):
        check(SIDES.replace("LOCATION", "cell").replace("SOLVER", solver), 2)
    for solve, side in CHANGES:
        sides = ", ".join(f"{name}: {side}" for name in ("x-", "x+", "y-", "y+"))
        check(CHANGING.replace("SOLVE", solve).replace("SIDES", f"{{{sides}}}"), 3)
    check(BLOWN, 3)
    check(BENT, 3)
    check(GATE, 6)
    check_opening()
    check(bits.SOLID, 3)
    check(bits.SOLID.replace("at(c,", "at(old(c),"), 3)
    for text in bits.multistep().values():  # which begin anew at each checkpoint
        check(text, 5, "output.checkpoint.every.steps=5")


if __name__ == "__main__":
    main()

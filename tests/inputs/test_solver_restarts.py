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


def check(text, middle, *how):
    """A run that is continued from its middle has the bits of one that was not."""
    how = ("run.threads=1", "run.compile=never", *how)
    whole = t.run(text, how)["fields"]
    t.run(text, (*how, f"output.checkpoint.every.steps={middle}"), more=("--steps", str(middle)))
    t.check("a restart", t.run(text, how, more=("--restart", "latest"))["fields"] == whole, whole)


def main():
    steps = t.STEPS.replace("METHOD", "rk4")
    by_error = bits.whole_rates(bits.SPLIT).replace("METHOD", bits.BY_ERROR.replace("ark3", "dp5"))
    for text in (steps.replace("DT", "0.01"), steps.replace("DT", "{cfl: 0.4, speed: \"1 + p\", max: 0.02}"),
                 bits.SPLIT.replace("METHOD", bits.BY_ERROR), bits.INDEFINITE, by_error,
                 *(random_flows.write(random.Random(seed)) for seed in FLOWS)):
        check(text, 2)
    check(SIDES.replace("LOCATION", "cell").replace("SOLVER", "{}"), 2)
    solver = t.run(SIDES.replace("LOCATION", "cell").replace("SOLVER", "{method: direct}"))["solvers"][0]
    t.check("a direct method that follows its conditions", solver["iterations"] == solver["solves"], solver)
    check(SIDES.replace("LOCATION", "xface").replace("SOLVER", "{preconditioner: multigrid, replicate: 0}"), 2)
    for text in bits.multistep().values():  # which begin anew at each checkpoint
        check(text, 5, "output.checkpoint.every.steps=5")


if __name__ == "__main__":
    main()

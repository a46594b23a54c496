#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Conditions of what is solved for that read the unknown and other fields: what the Jacobian reads of them."""
from test_solvers import check, run

# With a factor of p in front of p itself, the derivative of the condition reads all of the condition, also g.
BESIDE = """trellis: 1
grid: {cells: [32, 32], periodic: [false, true]}
solvers: {r: {method: METHOD, preconditioner: HELPER, iterations: 1000}}
equations:
  g: {initial: "1 + x + 0.3*sin(2*pi*y)", ddt: 0}
  p: {initial: 0, solve: "laplacian(p) - p = 0.1", solver: r,
      boundary: {x-: {robin: {a: "1 + p^2", b: 0.5, c: "2*g"}}, x+: {neumann: 0}}}
time: {method: euler, dt: 0.1, steps: 1}
"""


def coarser_grids():
    """Coarser grids have all fields that the derivatives of conditions read."""
    found = {}
    for method, helper in (("gmres", "jacobi"), ("gmres", "multigrid"), ("bicgstab", "multigrid")):
        report = run(BESIDE.replace("METHOD", method).replace("HELPER", helper))
        found[method, helper] = report["fields"]["p"]["sum"]
    wanted = found["gmres", "jacobi"]
    check("one solution", all(abs(p - wanted) < 1e-6 * abs(wanted) for p in found.values()), found)


def main():
    coarser_grids()


if __name__ == "__main__":
    main()

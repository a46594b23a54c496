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


# What types of plugins compute of what is solved for, in each place where its derivative is needed.
OPAQUE = """trellis: 1
plugins: [side_values]
grid: {{cells: [16, 12], periodic: [false, true]}}
expressions:
  read: "{read}"
  what: {{type: {kind}, {computes}inputs: {{input: read}}}}
  c: {{formula: 1, location: cell, boundary: {{x-: {c}, x+: {{neumann: 0}}}}}}
equations:
  g: {{initial: "1 + x", ddt: 0}}
  p: {{initial: 0, {equation}, boundary: {{x-: {p}, x+: {{dirichlet: 0}}}}}}
time: {{method: beuler, dt: 0.1, steps: 2}}
"""


def opaque():
    """Derivatives that types cannot give are errors that say what to do; what does not change needs none."""
    twice, held = {"kind": "twice", "computes": "computes: [what], "}, {"kind": "held", "computes": ""}
    value, wall, plain = "{dirichlet: \"1 + 0.1*what\"}", "{expression: what}", "{dirichlet: 1}"
    solve = "solve: \"div(at(c, faces)*grad(p)) - p = 1\""
    others = ("old(p)", "g", "2*g")
    for where, at, says, fixed in (
            ({**twice, "c": value, "p": plain, "equation": solve}, "6:3",
             "needs the derivative of 'what', and what type 'twice' computes has none: write it as a formula, or let "
             "it read old(...), the value at the start of the step", others),
            ({**twice, "c": plain, "p": value, "equation": solve}, "6:3",
             "needs the derivative of 'what', and what type", others),
            ({**held, "c": wall, "p": plain, "equation": solve}, "7:50",
             "needs the derivative of this condition of 'c', and a modifier has none: write the condition as a "
             "formula", others),
            ({**twice, "c": value, "p": plain, "equation": solve.replace("solve", "ddt").replace(" = 1", "")}, "6:3",
             "needs the derivative of 'what', and what type", others[:1])):  # g is an unknown, too
        said = run(OPAQUE.format(read="p", **where), fails=True)
        check(f"{where} needs a derivative", f"deck.yaml:{at}: solving for " in said and f"'p' {says}" in said.replace(
            "'g, p'", "'p'"), said)
        for read in fixed:
            run(OPAQUE.format(read=read, **where))


# Fields whose conditions read neighbours along a side, and so next to its end what another side sets.
CHAIN = """trellis: 1
grid: {{cells: [16, 12]}}
solvers: {{r: {{method: bicgstab, iterations: 2000, newton: {{iterations: 8}}}}}}
expressions:
  c: {{formula: 1, location: cell, boundary: {{x-: {{neumann: 0}}, x+: {{neumann: 0}}, y-: {c}, y+: {{neumann: 0}}}}}}
equations:
  T: {{initial: "1 + x", ddt: 0, boundary: {{x-: {below}, x+: {{neumann: 0}}, y-: {T}, y+: {{neumann: 0}}}}}}
  U: {{initial: 1, ddt: 0, boundary: {{x-: {{neumann: "0.1*p"}}, x+: {{neumann: 0}}, y-: {U}, y+: {{neumann: 0}}}}}}
  p: {{initial: 0, solve: "laplacian(p) - p + 0.05*laplacian(T + U + c) = 5*y - 4", solver: r,
      boundary: {{x-: {{neumann: 1}}, x+: {{dirichlet: 0}}, y-: {p}, y+: {{neumann: 0}}}}}}
time: {{method: euler, dt: 0.1, steps: 1}}
"""


def chains():
    """The Jacobian has derivatives of conditions that read what conditions of other fields set beyond sides."""
    free, linear, bent = "{neumann: 0}", "{dirichlet: \"1 + 0.3*p\"}", "{dirichlet: \"1 + 0.3*tanh(p)\"}"
    of_t, of_u = "{dirichlet: \"1 + 0.1*cddx(T)\"}", "{dirichlet: \"1 + 0.1*cddx(U)\"}"
    for below, t, u, c, p in ((linear, free, of_t, free, free), (bent, free, of_t, free, free),
                              (linear, of_t, of_t, free, free), (bent, of_u, of_t, free, free),
                              (linear, of_u, of_t, of_u, free), (bent, free, of_t, of_u, free),
                              (linear, free, free, free, "{neumann: \"0.1*cddx(T)\"}"),
                              (bent, of_u, of_t, free, "{neumann: \"0.1*cddx(U)\"}"),
                              (linear, "{dirichlet: \"U + p\"}", "{dirichlet: \"T*p\"}", free, free)):
        text = CHAIN.format(below=below, T=t, U=u, c=c, p=p)
        first = run(text)
        taken = first["solvers"][0]["iterations"]
        check(f"{text}: few iterations", taken < (130 if below == bent else 80), taken)
        others = [run(text, ("run.compile=never",), ranks=2),
                  run(text, ("grid.patches=[2, 2]", "run.compile=never", "run.fusion=none"))]
        check(f"{text}: the same bits", all(first["fields"] == other["fields"] for other in others), others)


# A field that the right side alone reads, whose condition reads a sum of its own, which does not change with p.
SUMMED = """trellis: 1
grid: {{cells: [32, 24], periodic: [true, false]}}
solvers: {{r: {solver}}}
equations:
  g: {{initial: "1 + x", ddt: 0, boundary: {{y-: {{dirichlet: "{sum}"}}, y+: {{neumann: 0}}}}}}
  p: {{initial: 0, solve: "laplacian(p) = {right}", solver: r, boundary: {{y-: {{dirichlet: 0}}, y+: {{neumann: 0}}}}}}
time: {{method: euler, dt: 1e-4, steps: 1}}
"""


def sums():
    """Sums that do not change with the unknowns are no part of the operator, whatever is added up."""
    for read in ("norm(g)", "integral(x*g^2)", "domain_max(y*g)", "integral(sin(g))*norm(g)"):
        for right in ("g", "laplacian(g) + 0.1*cddy(g)"):
            found = [run(SUMMED.format(sum=read, right=right, solver=solver))["fields"]["p"]["l2"] for solver in (
                "{method: cg, preconditioner: jacobi, iterations: 400}", "{method: multigrid}", "{method: direct}")]
            check(f"{read} beside {right}", all(abs(p - found[0]) < 1e-6 * found[0] for p in found), found)
    said = run(SUMMED.format(sum="norm(g + p)", right="laplacian(g)", solver="{method: multigrid}"), fails=True)
    check("a sum that changes", "because the operator contains a sum" in said, said)


def main():
    sums()
    coarser_grids()
    opaque()
    chains()


if __name__ == "__main__":
    main()

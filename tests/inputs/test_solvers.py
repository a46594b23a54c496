#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Equations that are solved: order 2 with each kind of condition in 1-D to 3-D and at each location, one solution by
all methods, few cycles on any mesh, null spaces, systems, steps."""
import itertools
import json
import os
import pathlib
import subprocess
import sys

TRELLIS = os.environ.get("TRELLIS", "trellis")
DECKS = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2])) / "inputs/decks"

AXES = "xyz"
# The solution along an axis, its first and second derivatives, and the condition that goes with it; {s} is the axis,
# {t} another one, or in 1-D the same.
KINDS = {
    "dirichlet": ("sin(1+{s})", "cos(1+{s})", "-sin(1+{s})", '{{dirichlet: "u"}}'),
    "neumann": ("cos(2*{s})", "-2*sin(2*{s})", "-4*cos(2*{s})", '{{neumann: "{sign}u{s}"}}'),
    "robin": ("exp(-{s})", "-exp(-{s})", "exp(-{s})", '{{robin: {{a: 2, b: 3, c: "2*u {sign}3*u{s}"}}}}'),
    "periodic": ("(2+sin(2*pi*{s}))", "2*pi*cos(2*pi*{s})", "-4*pi^2*sin(2*pi*{s})", None),
    "outflow": ("(2+cos(pi*{s}))", "-pi*sin(pi*{s})", "-pi^2*cos(pi*{s})", "{{outflow: true}}"),
    "pieces": ("sin(1+{s})", "cos(1+{s})", "-sin(1+{s})",
               '[{{where: "{t} < 0.4", dirichlet: "u"}}, {{where: "{t} < 0.7", robin: {{a: 1, b: 2, c: '
               '"u {sign}2*u{s}"}}}}, {{neumann: "{sign}u{s}"}}]'),
    "expression": ("cos(2*{s})", "-2*sin(2*{s})", "-4*cos(2*{s})", "{{expression: beyond}}"),
}


def run(text, settings=("run.threads=1", "run.compile=never"), ranks=1, more=(), fails=False, of_node=0):
    """The report of a deck, or the messages of one that fails. of_node: how many ranks take themselves for those of a
    node; 0: all."""
    pathlib.Path("deck.yaml").write_text(text, encoding="utf-8")
    command = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    if of_node:
        nodes = pathlib.Path(os.environ["TRELLIS_BUILD"]) / "preload" / "nodes.so"
        command += ["env", f"LD_PRELOAD={nodes}", f"TRL_NODE_RANKS={of_node}"]
    command += [TRELLIS, "run", "deck.yaml", "--quiet", "--report", "report.json", *more]
    if "TRELLIS_BUILD" in os.environ:
        command += ["--plugin-path", os.path.join(os.environ["TRELLIS_BUILD"], "test_plugins")]
    for setting in ("output.directory=out", *settings):
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if fails and done.returncode:
        return done.stderr
    if done.returncode or fails:
        sys.exit(f"{' '.join(command)}\n{text}\n{done.stderr}")
    return json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))


def manufactured(kinds, cells, location="cell", solver="{}"):
    """div(k*grad(p)) - p = f, with a kind of condition along each axis."""
    dim = len(kinds)
    factor, slope, curvature = (["*".join([KINDS[k][n].format(s=AXES[a])] + [KINDS[o][0].format(s=AXES[b])
                                                                              for b, o in enumerate(kinds) if b != a])
                                 for a, k in enumerate(kinds)] for n in range(3))
    names = "\n".join(f"  u{AXES[a]}: \"{slope[a]}\"" for a in range(dim))
    sides = []
    for a, kind in enumerate(kinds):
        text = KINDS[kind][3]
        if text:
            sides += [f"{AXES[a]}{sign}: " + text.format(s=AXES[a], t=AXES[(a + 1) % dim], sign=sign) for sign in "-+"]
    return f"""trellis: 1
grid: {{cells: {list(cells)}, periodic: {[k == 'periodic' for k in kinds]}}}
expressions:
  u: "{factor[0]}"
{names}
  beyond: "2*u - p"
equations:
  p:
    location: {location}
    solve: "laplacian(p) - p = {' + '.join(curvature)} - u"
    initial: 0
    exact: u
    solver: s
    boundary: {{{', '.join(sides)}}}
solvers: {{s: {solver}}}
""".replace("True", "true").replace("False", "false")


def check(what, holds, seen):
    if not holds:
        sys.exit(f"{what}: {seen}")


def order(kinds, location="cell"):
    """Halving the cells divides the error by four."""
    base = (12, 10, 8)[:len(kinds)] if len(kinds) > 1 else (20,)
    errors = []
    for factor in (1, 2):
        report = run(manufactured(kinds, [n * factor for n in base], location))
        errors.append(report["errors"]["p"]["l2"])
    check(f"{kinds} at {location}: order 2 of", 3.8 < errors[0] / errors[1] < 4.2, errors)


def methods():
    """Whatever the method, the solution is the same to the tolerance."""
    reports = {}
    names = ("auto", "cg", "pipelined_cg", "bicgstab", "gmres")
    for method, helper in itertools.product(names, ("auto", "none", "jacobi")):
        solver = f"{{method: {method}, preconditioner: {helper}, tolerance: 1e-11, iterations: 1000}}"
        reports[method, helper] = run(manufactured(("dirichlet", "robin"), (12, 10), solver=solver))
    sums = {key: report["fields"]["p"]["sum"] for key, report in reports.items()}
    check("one solution", max(sums.values()) - min(sums.values()) < 1e-7, sums)
    for helper, method in (("auto", "direct"), ("jacobi", "cg")):
        seen = reports["auto", helper]["solvers"][0]["method"]
        check(f"auto with {helper}", seen == method, seen)


STEEP = """trellis: 1
grid: {cells: [60, 50]}
equations:
  p: {initial: 0, solve: "div(exp(6*sin(9*x*y))*grad(p)) = sin(13*x*y)", solver: s, boundary:
      {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {neumann: 0}}}
solvers: {s: {method: METHOD, preconditioner: jacobi, iterations: 400, tolerance: 1e-12}}
"""


def pipelined():
    """Recurrences of products do not keep pipelined conjugate gradients from 12 digits, since these are replaced."""
    plain, other = (run(STEEP.replace("METHOD", method)) for method in ("cg", "pipelined_cg"))
    taken = [report["solvers"][0]["iterations"] for report in (plain, other)]
    sizes = [report["fields"]["p"]["l2"] for report in (plain, other)]
    check("pipelined iterations", taken[1] < 1.3 * taken[0] and abs(sizes[0] - sizes[1]) < 1e-11, (taken, sizes))
    for kinds in (("dirichlet", "dirichlet"), ("neumann", "robin"), ("periodic", "dirichlet", "neumann")):
        size = [21] * len(kinds)
        texts = [manufactured(kinds, size, solver="{method: %s, preconditioner: multigrid, tolerance: 1e-10}" % method)
                 for method in ("cg", "pipelined_cg")]
        plain, other = (run(text)["solvers"][0]["iterations"] for text in texts)
        check(f"pipelined iterations with cycles, {kinds}", other <= plain + 1, (plain, other))


WINDY = """trellis: 1
grid: {cells: [40, 36]}
equations:
  p: {initial: 0, solve: "LEFT = 1 + 5*sin(13*x*y)", solver: s, boundary:
      {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {neumann: 0}}}
solvers: {s: {method: METHOD, preconditioner: HELPER, iterations: 900, tolerance: TOLERANCE}}
"""


def single():
    """One message of sums in an iteration takes about as many iterations, and reaches the residuals that two reach."""
    wind, steep = "laplacian(p) - 20*cddx(p)", "div(exp(4*sin(9*x*y))*grad(p))"
    for method, left, helper, tolerance, more in (
            ("cg", "laplacian(p)", "jacobi", "1e-10", 0), ("cg", steep, "jacobi", "1e-12", 2),
            ("cg", "laplacian(p) - 9*p", "none", "1e-8", 1), ("cg", "laplacian(p)", "multigrid", "1e-11", 0),
            ("cg", "d2dx(p) + 0.01*d2dy(p)", "multigrid", "1e-11", 1), ("bicgstab", wind, "jacobi", "1e-5", 2),
            ("bicgstab", wind, "jacobi", "1e-11", 8), ("bicgstab", steep, "jacobi", "1e-9", 8),
            ("bicgstab", wind, "multigrid", "1e-11", 0)):
        text = WINDY.replace("LEFT", left).replace("HELPER", helper).replace("TOLERANCE", tolerance)
        plain, other = (run(text.replace("METHOD", how)) for how in (method, f"{method}, single_reduction: true"))
        taken = [report["solvers"][0]["iterations"] for report in (plain, other)]
        check(f"{method} of {left} with {helper}: iterations", abs(taken[1] - taken[0]) <= more, taken)
        sizes = [report["fields"]["p"]["l2"] for report in (plain, other)]
        check(f"{method} of {left} with {helper}: solution", abs(sizes[0] - sizes[1]) <= 0.01*float(tolerance),
              sizes)
    exact = WINDY.replace("LEFT", "(1 + x)*p").replace("HELPER", "jacobi").replace("TOLERANCE", "1e-13")
    for method in ("cg", "bicgstab"):  # half an iteration of the latter solves it
        report = run(exact.replace("METHOD", f"{method}, single_reduction: true"))
        check("one iteration", report["solvers"][0]["iterations"] == 1, report["solvers"])


def cycles():
    """Iterations do not grow with the mesh, whatever its size, and a cycle is worth a factor of five."""
    for kinds, most in ((("dirichlet",), 10), (("dirichlet", "dirichlet"), 10), (("neumann", "robin"), 12),
                        (("periodic", "dirichlet", "neumann"), 12)):
        for size in (9, 30) if len(kinds) == 3 else (17, 100):
            for method, factor in (("cg", 1), ("multigrid", 1.2)):
                solver = f"{{method: {method}, preconditioner: {'multigrid' if method == 'cg' else 'auto'}}}"
                report = run(manufactured(kinds, [size + a for a in range(len(kinds))], solver=solver))
                taken = report["solvers"][0]["iterations"]
                check(f"{kinds}, {size} cells: few iterations of {method}", taken <= most * factor, taken)


FREE = """trellis: 1
grid: {cells: [14, 9], periodic: [true, false]}
equations:
  p: {initial: "3 + x", solve: "div((2 + cos(2*pi*x))*grad(p)) = sin(2*pi*x)",
      boundary: {y-: {neumann: 0}, y+: {neumann: 0}}}
output: {series: {values: {mean: "integral(p)"}}}
"""

# q needs p, p needs q: one system; s needs both and is solved after them.
COUPLED = """trellis: 1
grid: {cells: [16, 12]}
expressions: {both: "p + q"}
equations:
  p: {initial: 0, solve: "laplacian(p) + q = 1",
      boundary: &b {x-: {dirichlet: 0}, x+: {dirichlet: 1}, y-: {neumann: 0}, y+: {neumann: 0}}}
  q: {initial: 0, solve: "laplacian(q) - p = 0", boundary: *b}
  s: {initial: 0, solve: "s = both^2"}
output: {series: {values: {rest: "norm(laplacian(p) + q - 1) + norm(laplacian(q) - p) + norm(s - both^2)"}}}
"""

MASKED = """trellis: 1
grid: {cells: [20, 20]}
equations:
  p: {initial: "if(x < 0.5, 1, 0)", solve: "laplacian(p) = 0", mask: "(x-0.3)^2 + (y-0.5)^2 > 0.01",
      boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}
"""

# u is made free of divergence in each stage, and r is the derivative of a solution by dt: all that steps can ask for.
STEPS = """trellis: 1
grid: {cells: [16, 12], periodic: [true, false]}
expressions: {w: "old(u) + 0*t"}
equations:
  u: {location: xface, initial: "sin(2*pi*x)", ddt: "-ddx(p) + 0.1*w", boundary: {y-: {neumann: 0}, y+: {neumann: 0}}}
  v: {location: yface, initial: "x*y*(1-y)", ddt: "-ddy(p)", boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}}}
  p: {initial: 0, solve: "laplacian(p) = div([u, v])/dt", boundary: {y-: {neumann: 0}, y+: {neumann: 0}}}
time: {method: METHOD, dt: DT, steps: 3}
output: {series: {every: {steps: 1}, values: {rest: "norm(laplacian(p) - div([u, v])/dt)"}}}
"""


STRETCHED = """trellis: 1
grid: {{cells: [{n}, {n}]}}
equations:
  p: {{solve: "{operator} = sin(9*x) + cos(7*y)", solver: s,
      boundary: {{x-: {{dirichlet: 0}}, x+: {{neumann: 0}}, y-: {{neumann: 0}}, y+: {{dirichlet: 1}}}}}}
solvers: {{s: {{method: cg, preconditioner: multigrid}}}}
"""


def anisotropy():
    """Iterations grow neither with the mesh nor much with what neighbours along one axis are stronger by."""
    for operator in ("d2dx(p) + {e}*d2dy(p)", "div([(1 + x)*{e}*ddx(p), (2 + sin(5*y))*ddy(p)])"):
        for strength, n in itertools.product((10, 100, 1000), (24, 72)):
            text = STRETCHED.format(n=n, operator=operator.format(e=1 / strength))
            taken = run(text)["solvers"][0]["iterations"]
            check(f"{operator}, {strength} times on {n}^2 cells: few iterations", taken <= 11, taken)


# Symmetric at its first guess, but not elsewhere; and symmetric everywhere.
BENT = """trellis: 1
grid: {cells: [16, 12]}
equations:
  p: {solve: "laplacian(p) - p*cddx(p) + 1 = 0", boundary: &b {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {neumann: 0},
      y+: {dirichlet: 0}}}
  q: {solve: "laplacian(q) + exp(q) = 0", boundary: *b}
"""


# Near its first guess hardly anything shows that this is not symmetric, beside the cells that are short along y.
HIDDEN = """trellis: 1
grid: {cells: [9, 91, 7], periodic: [false, true, false], length: [3, 0.7, 3]}
solvers: {s: {iterations: 3000}}
expressions:
  c: {formula: "1 + 0.2*tanh(p)^2", location: cell, boundary: {x-: {outflow: true}, x+: {neumann: 0},
      z-: {outflow: true}, z+: {dirichlet: "1 + 0.2*tanh(q)"}}}
equations:
  p: {solve: "laplacian(p) - p - 0.1*p^3 + 0.4*q - 0.02*laplacian(c)*p = x", solver: s, boundary: {x-: {outflow: true},
      x+: {dirichlet: 0.1}, z-: {outflow: true}, z+: {neumann: 0.1}}}
  q: {solve: "div((2 + sin(5*x))*grad(q)) - 2*q + 0.4*p = x", solver: s, boundary: {x-: {dirichlet: 0.3},
      x+: {outflow: true}, z-: {dirichlet: 0.1}, z+: {outflow: true}}}
"""


# Coarser grids have no use for the file, whose field has the shape of the finest one.
FILED = """trellis: 1
grid: {cells: [20, 16], periodic: true}
expressions: {held: {type: file, computes: [held], parameters: {path: held.nc, dataset: p}}}
equations: {p: {solve: "laplacian(p) - p = FIELD", solver: s}}
solvers: {s: {method: cg, preconditioner: multigrid, replicate: 0}}
"""


def field_of_a_file():
    """Cycles solve the same with a right-hand side of a formula and of a file."""
    wave = "sin(2*pi*x)*cos(4*pi*y)"
    run(f"trellis: 1\ngrid: {{cells: [20, 16], periodic: true}}\nequations: {{p: {{solve: \"p = {wave}\"}}}}\n")
    next(pathlib.Path("out/fields").glob("*.nc")).rename("held.nc")
    wanted = run(FILED.replace("FIELD", wave))["fields"]["p"]["l2"]
    for ranks in (1, 2):
        found = run(FILED.replace("FIELD", "held"), ranks=ranks)["fields"]["p"]["l2"]
        check("a field of a file beside cycles", abs(found - wanted) < 1e-9*wanted, (found, wanted))


# Near 0 the derivative has both signs, like that of 0.002*laplacian(p) + p; the only solution near by is 0.
BOTH = """trellis: 1
grid: {cells: [24, 24]}
equations:
  p: {initial: "0.3*sin(pi*x)*sin(pi*y)", solve: "0.002*laplacian(p) + p - p^3 = 0", solver: s, boundary:
      {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}}
solvers: {s: {preconditioner: HOW}}
"""


def both_signs():
    """Where conjugate gradients break down in a step of Newton's method, auto goes on with another one."""
    for how in ("auto", "jacobi"):
        report = run(BOTH.replace("HOW", how))
        check("its solution", report["fields"]["p"]["l2"] < 1e-6, report["fields"])
    check("a derivative of both signs", report["solvers"][0]["method"] == "bicgstab", report["solvers"])


# What is solved for does not depend on dt, but a smaller one makes first guesses better.
GUESSED = """trellis: 1
grid: {cells: [64, 24], periodic: [true, false]}
equations:
  T: {initial: "exp(-40*(x - 0.5)^2)", ddt: "0.01*laplacian(T) - 0.2*p",
      boundary: {y-: {neumann: 0}, y+: {dirichlet: 0}}}
  p: {initial: 0, solve: "div((1 + p^2)*grad(p)) - p = T", solver: s,
      boundary: {y-: {neumann: 0}, y+: {neumann: 0}}}
solvers: {s: {preconditioner: HOW, iterations: 80}}
time: {method: {name: METHOD, tolerance: 1e-5, dt: {initial: 1e-5}}, UNTIL}
"""


def failures_that_choose_dt():
    """auto solves, so that errors choose dt; where a solver fails in vain, a warning says why."""
    for method, most in (("bs3", 30), ("bdf", 90)):
        report = run(GUESSED.replace("HOW", "auto").replace("METHOD", method).replace("UNTIL", "end: 0.02"))
        found = {key: report[key] for key in ("steps", "steps_rejected", "unsolved", "warnings")}
        good = report["steps"] <= most and report["unsolved"] == 0 and not report["warnings"]
        check(f"{method} with auto", good, found)
    for method in ("bs3", "bdf"):
        report = run(GUESSED.replace("HOW", "jacobi").replace("METHOD", method).replace("UNTIL", "steps: 30"), ranks=2)
        said = [w for w in report["warnings"] if "solvers choose dt, not errors of steps" in w]
        check(f"{method} with jacobi", report["unsolved"] >= 10 and len(said) == 1 and "did not solve for 'p' in 80" in
              said[0] and "use preconditioner multigrid" in said[0], (report["unsolved"], report["warnings"]))


# sum(...) has a `=` of its own, on either side.
FAMILY = """trellis: 1
grid: {cells: [4]}
equations: {"q{i}": {for: {i: 1..3}, solve: "q{i} + sum(j=1..3, q{j}) = i + sum(j=1..2, if(j == 1, 0, 0)) "}}
"""


def family():
    """An equation of each member of a family, with sums over it."""
    fields = run(FAMILY)["fields"]
    check("a family", all(abs(fields[f"q{i}"]["max"] - (i - 1.5)) < 1e-8 for i in (1, 2, 3)), fields)


# Norms whose derivative is no number where they are 0, as they are at the first guess and amid the solution.
NORMS = """trellis: 1
grid: {{cells: [{n}, {n}]}}
parameters: {{e: 0.1}}
expressions:
  q: "sin(pi*x)*sin(pi*y)"
  qx: "pi*cos(pi*x)*sin(pi*y)"
  qy: "pi*sin(pi*x)*cos(pi*y)"
  qxy: "pi^2*cos(pi*x)*cos(pi*y)"
  slope: "sqrt(qx^2 + qy^2)"
  along: "(-pi^2*q*(qx^2 + qy^2) + 2*qx*qy*qxy)/slope"
equations:
  p:
    initial: 0
    exact: q
    solve: "{left}"
    boundary: {{x-: {{dirichlet: 0}}, x+: {{dirichlet: 0}}, y-: {{dirichlet: 0}}, y+: {{dirichlet: 0}}}}
"""
FLUX = "div((e + {})*grad(p)) = -2*pi^2*q*(e + slope) + along"
STEEPNESS = "dot(at(grad(p), cell), at(grad(p), cell))"


def norms():
    """Newton's method begins at 0, where norms have the subgradient 0. In the short form kernels are not optimised."""
    if "TRL_TEST_LONG" not in os.environ:
        os.environ["TRELLIS_CC"] = str(pathlib.Path(__file__).resolve().parents[1] / "quick_cc.sh")
    for left in (FLUX.format("mag(at(grad(p), cell))"), FLUX.format("hypot(at(ddx(p), cell), at(ddy(p), cell))"),
                 FLUX.format(f"cbrt(({STEEPNESS})^1.5)"), "laplacian(p) - norm(p)*p = -2*pi^2*q - q/2",
                 "laplacian(p) - (p^4)^0.3 = -2*pi^2*q - (q^4)^0.3"):
        reports = [run(NORMS.format(n=n, left=left), ("run.threads=1", f"run.compile={how}"))
                   for n, how in ((12, "never"), (24, "never"), (24, "always"))]
        errors = [report["errors"]["p"]["l2"] for report in reports]
        check(f"{left}: order 2 of", 3.3 < errors[0] / errors[1] < 5.5 and errors[1] == errors[2], errors)
        taken = reports[1]["solvers"][0]["last_newton"]
        check(f"{left}: steps of Newton's method", taken <= 9, taken)
    for left, says in (("div(mag(at(grad(p), cell))*grad(p)) = 1", "the equation of 'p' is singular at its first "
                        "guess: nothing in it changes with its unknown there; begin with another one (initial)"),
                       ("laplacian(p) - cbrt(p)^2 = 1", "the derivative of the equation of 'p' is not finite at its "
                        "first guess: the first such value is NaN at cell (0, 0), x = 0.0416667, y = 0.0416667, beside "
                        "x-, y-; look at its coefficients, or begin with another guess (initial)")):
        said = run(NORMS.format(n=12, left=left), fails=True)
        check("a derivative is said to be none", f"deck.yaml:15:13: {says}" in said, said)


# A line of cells along which short restarts of gmres get on by little, and by less the longer the line is.
LINE = """trellis: 1
grid: {{cells: [{n}]}}
equations: {{p: {{solve: "laplacian(p) = 1 + x", solver: s, boundary: {{x-: {{dirichlet: 0}}, x+: {{neumann: 0}}}}}}}}
solvers: {{s: {{method: gmres, preconditioner: jacobi, restart: {restart}, iterations: {most}}}}}
"""


def stagnation():
    """Restarts that do not get on end early, and say so; slow ones go on."""
    said = run(LINE.format(n=300, restart=5, most=3000), fails=True)
    check("what stagnates is said", "gmres with preconditioner jacobi does not get on for 'p'" in said and
          "after 605 iterations" in said and "use a larger restart (it is 5), method bicgstab, or preconditioner "
          "multigrid" in said, said)
    taken = run(LINE.format(n=60, restart=20, most=6000))["solvers"][0]["iterations"]
    check("slow restarts go on", 500 < taken < 6000, taken)
    carried = LINE.format(n=1000, restart=10, most=4000).replace(
        "laplacian(p)", "-div(advective_flux(p, 1, upwind)) + 1e-4*laplacian(p)")
    taken = run(carried)["solvers"][0]["iterations"]
    check("what is carried through the grid is waited for", 1000 < taken < 2000, taken)


def power_of_gradient():
    """Newton's method takes 5 to 8 steps for the p-Laplacian, on whatever grid."""
    text = (DECKS / "p_laplacian.yaml").read_text(encoding="utf-8")
    taken = [run(text, (f"grid.cells=[{n},{n}]", "run.compile=never"))["solvers"][0]["last_newton"]
             for n in (10, 20, 40, 80)]
    check("steps for the p-Laplacian", min(taken) == 5 and max(taken) == 8, taken)


# Equations whose derivatives leave constants free at the first guess, but not everywhere.
FLAT = """trellis: 1
grid: {{cells: [12, 9]}}
solvers: {{s: {solver}}}
expressions: {{rest: "{equation}"}}
equations:
  p: {{initial: {guess}, solve: "{equation}", solver: s,
      boundary: {{x-: {side}, x+: {{neumann: 0}}, y-: {{neumann: 0}}, y+: {{neumann: 0}}}}}}
output: {{fields: [rest]}}
"""


def flat_guesses():
    """Null spaces are looked for at each step of Newton's method, so that those of a guess alone are left; where there
    is no step at all, nobody says that there is no solution, and steps in pseudo-time, which need none, come to it."""
    closed, cubic, pseudo = "{neumann: 0}", "laplacian(p) - p^3 - 1", "{method: pseudo_time, iterations: 2000}"
    for equation, guess, side, solver in (
            ("laplacian(p) + max(0, p - 0.6) - 0.5*max(0, 0.4 - p) - 100*(x - 0.5)", 0.5, closed, "{}"),
            ("laplacian(p) + 0.2*x*p^2 - p^3 - (x - 0.5)", 0, closed, "{}"), (cubic, 0, closed, pseudo),
            ("laplacian(p)", 0.5, "{robin: {a: \"max(0, p - 0.8)\", b: 1, c: 1}}", pseudo)):
        report = run(FLAT.format(equation=equation, guess=guess, side=side, solver=solver))
        check(f"{equation} from {guess}", report["fields"]["rest"]["l2"] < 1e-6, report["fields"])
    said = run(FLAT.format(equation=cubic, guess=0, side=closed, solver="{}"), fails=True)
    check("no step at all", "finds no step to take for 'p'" in said and "begin nearer to it (initial)" in said, said)
    report = run(FLAT.format(equation="div((1 + p^2)*grad(p)) - 5*(x - 0.5)", guess=0.5, side=closed, solver="{}"))
    check("free everywhere", report["fields"]["rest"]["l2"] < 1e-7, report["fields"])
    unbalanced = "div((1 + p^2)*grad(p)) - x"
    for guess in ("0.5", "x"):
        said = run(FLAT.format(equation=unbalanced, guess=guess, side=closed, solver="{}"), fails=True)
        check("no solution", "no 'p' solves its equation" in said and "the same mean" in said, said)


# A current heats what conducts the less the hotter it is.
HEATED = """trellis: 1
grid: {cells: [8, 8]}
expressions:
  s0: "if(abs(y - 0.5) < 0.2, 100, 0.1)"
  s: "s0/(1 + 5*T)"
  k: "if(abs(y - 0.5) < 0.2, 10, 0.1)"
equations:
  T:
    solve: "div(harmonic(k, faces)*grad(T)) + s*dot(at(grad(p), cell), at(grad(p), cell)) = 0"
    boundary: {x-: &loses {robin: {a: 1, b: 1, c: 0}}, x+: *loses, y-: *loses, y+: *loses}
  p: {solve: "div(at(s, faces)*grad(p)) = 0", initial: GUESS,
      boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 1}, y-: {neumann: 0}, y+: {neumann: 0}}}
"""


def goes_astray():
    """From zero Newton's method goes on to large values, whose rounding errors are not what is in the way."""
    said = run(HEATED.replace("GUESS", "0"), fails=True)
    check("a better guess is asked for", "begin nearer to it (initial), or let steps in time" in said, said)
    report = run(HEATED.replace("GUESS", "x"))
    check("from a better guess", report["solvers"][0]["last_newton"] < 10, report["solvers"])


# Points on sides, which stand for half a cell, where coarser grids have entries.
HALVES = """trellis: 1
grid: {{cells: [5, 5, 11], length: [50, 1, 1], periodic: [false, true, false]}}
solvers: {{s: {{{solver}, tolerance: 1e-10}}}}
equations:
  p: {{location: {location}, initial: 0.2, solve: "div((1 + x^2)*grad(p)) = sin(7*x)", solver: s,
      boundary: {{x-: {{neumann: 0.3}}, x+: {{dirichlet: 1}}, z-: {{neumann: 0.3}}, z+: {{neumann: 0.3}}}}}}
"""


def halves():
    """Cycles are as symmetric as the operator is."""
    for location, method in itertools.product(("xedge", "node"), ("cg", "multigrid", "pipelined_cg")):
        solver = f"method: {method}" + (", preconditioner: multigrid" if method != "multigrid" else "")
        found = run(HALVES.format(location=location, solver=solver))["solvers"][0]["iterations"]
        check(f"{solver} at {location}: few iterations", found <= 11, found)


# A channel, whose values may be constant across it.
CHANNEL = """trellis: 1
grid: {{cells: {cells}, length: {length}, periodic: [false, {periodic}]}}
solvers: {{s: {{{solver}}}}}
equations:
  p: {{initial: 0, solve: "laplacian(p) = random(3) - 0.3", solver: s,
      boundary: {{x-: {{neumann: 0}}, x+: {{dirichlet: 0}}{sides}}}}}
"""


def channels():
    """Few cycles where one axis has few cells long before the other, and nothing holds values at its sides."""
    for (cells, length), sides, solver in itertools.product(
            (([256, 16], [16, 1]), ([256, 4], [64, 1]), ([32, 40], [1, 0.004])), (None, "{neumann: 0}"),
            ("method: cg, preconditioner: multigrid", "method: multigrid")):
        text = CHANNEL.format(cells=cells, length=length, solver=solver, periodic="false" if sides else "true",
                              sides=f", y-: {sides}, y+: {sides}" if sides else "")
        found = run(text)["solvers"][0]["iterations"]
        check(f"{text}: few iterations", found <= (30 if "cg" in solver and cells[1] == 16 else 11), found)


# What decays until no numbers are left.
DECAY = """trellis: 1
grid: {{cells: [12, 9]}}
solvers: {{s: {solver}}}
equations:
  u: {{initial: "1e-290*x*y", ddt: {{explicit: 0, implicit: "laplacian(u)"}}, solver: s, boundary: &zero
      {{x-: {{dirichlet: 0}}, x+: {{dirichlet: 0}}, y-: {{dirichlet: 0}}, y+: {{dirichlet: 0}}}}}}
  p: {{initial: 0, solve: "laplacian(p) - p = u", solver: s, boundary: *zero}}
  q: {{initial: 0, solve: "laplacian(q) - q - q^3 = u", boundary: *zero}}
time: {{method: {method}, dt: 10, steps: 20}}
"""


def vanishing():
    """The least numbers have few digits, and a residual that they leave is zero."""
    for method, solver in itertools.product(("beuler", "ark3"), ("{}", "{method: cg}", "{method: multigrid}",
                                            "{method: gmres}", "{method: pseudo_time, iterations: 2000}")):
        fields = run(DECAY.format(method=method, solver=solver))["fields"]
        check(f"{method} with {solver} to zero", all(abs(f["max"]) < 1e-310 for f in fields.values()), fields)


def last_of_series(name):
    lines = pathlib.Path("out/series.csv").read_text(encoding="utf-8").split("\n")
    return float(lines[-2].split(",")[lines[0].split(",").index(name)])


def main():
    for kind in KINDS:
        order((kind,))
    order(("dirichlet", "neumann"))
    order(("robin", "periodic"))
    order(("pieces", "outflow"))
    order(("expression", "pieces"))
    order(("neumann", "robin", "dirichlet"))
    order(("outflow", "pieces", "expression"))
    for location in ("xface", "node"):
        order(("dirichlet", "robin"), location)
        order(("pieces", "neumann"), location)
    methods()
    pipelined()
    single()
    cycles()
    anisotropy()
    field_of_a_file()
    both_signs()
    failures_that_choose_dt()
    family()
    norms()
    flat_guesses()
    goes_astray()
    vanishing()
    halves()
    channels()
    power_of_gradient()
    stagnation()
    check("nullspace", run(FREE)["solvers"][0]["method"] == "cg", "method")
    check("the mean of the guess", abs(last_of_series("mean") - 3.5) < 1e-12, last_of_series("mean"))
    methods_of = {s["unknowns"]: s["method"] for s in run(BENT)["solvers"]}
    check("symmetry beside the first guess", methods_of == {"p": "bicgstab", "q": "cg"}, methods_of)
    check("symmetry farther away", run(HIDDEN)["solvers"][0]["method"] == "bicgstab", "cg")
    report = run(COUPLED)
    check("two systems", [s["unknowns"] for s in report["solvers"]] == ["p, q", "s"], report["solvers"])
    check("the residual of a system", last_of_series("rest") < 1e-6, last_of_series("rest"))
    report = run(MASKED)
    check("a mask keeps its values", report["fields"]["p"]["max"] <= 1 and report["fields"]["p"]["sum"] > 50,
          report["fields"])
    speeds = "{cfl: 0.5, speed: \"1 + abs(x)\", max: 1}"
    for method, dt in itertools.product(("euler", "ssprk3", "rk4"), ("0.01", speeds)):
        text = STEPS.replace("METHOD", method).replace("DT", dt)
        run(text)
        check(f"{method}: solved at the end of steps", last_of_series("rest") < 1e-4, last_of_series("rest"))


if __name__ == "__main__":
    main()

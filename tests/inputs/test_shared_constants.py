#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Random systems whose unknowns exchange what no side takes, so that constants of all are in the null space and a
weighted sum of the equations has none: without a solution the error names the sum, and by how much its sides differ;
balanced ones are solved, and where they are not for want of iterations nobody says that there is no solution.

    TRELLIS=... python3 tests/inputs/test_shared_constants.py --systems 100 --first 0"""
import argparse
import os
import random
import re

from test_solvers import check, run

LOCATIONS = {1: ["cell", "node"], 2: ["cell", "cell", "xface", "node"]}


def system(rng):
    """Its deck with SOURCE{i} on right sides, the weights of its equations, and how many dimensions it has."""
    dim, n = rng.choice([1, 2, 2]), rng.choice([2, 2, 3, 4])
    cells = [rng.choice([12, 17, 40]) for _ in range(dim)]
    periodic = [rng.random() < 0.3 for _ in range(dim)]
    weights = [rng.choice([1, 1, 2, 0.5, 40]) for _ in range(n)]
    location = rng.choice(LOCATIONS[dim])
    fluxes = ["laplacian(uI)", "div((1 + x*(1 - x))*grad(uI))"][:2 if location == "cell" else 1]
    terms = [[f"{rng.choice([1, 0.1, 7])}*{rng.choice(fluxes)}".replace("I", str(i))] for i in range(n)]
    pairs = [(rng.randrange(i), i) for i in range(1, n)] + rng.sample([(0, n - 1)], rng.choice([0, 1]))
    for a, b in pairs:
        rate, where = rng.choice([1, 10, 300]), rng.choice(["", "", "*(2 + sin(9*x))"])
        for i, j in ((a, b), (b, a)):
            terms[i].append(f"{rate / weights[i]!r}{where}*(u{j} - u{i})")
    sides = ", ".join(f"{'xyz'[a]}{sign}: {{neumann: 0}}" for a in range(dim) if not periodic[a] for sign in "-+")
    lines = ["trellis: 1", f"grid: {{cells: {cells}, periodic: {str(periodic).lower()}}}", "solvers: {s: HOW}",
             "equations:"]
    for i in range(n):
        lines += [f"  u{i}:", f"    location: {location}", "    solver: s",
                  f"    solve: \"{' + '.join(terms[i])} = sin(2*pi*x) + SOURCE{i}\""]
        lines += [f"    boundary: {{{sides}}}"] if sides else []
    return "\n".join(lines) + "\n", weights


def filled(text, sources, how):
    """The deck with these right sides."""
    for i, source in enumerate(sources):
        text = text.replace(f"SOURCE{i}", repr(source))
    return text.replace("HOW", how)


def compare(number):
    """One of them, with and without a solution."""
    rng = random.Random(f"balance {number}")
    text, weights = system(rng)
    how = rng.choice(["{iterations: 3000}", "{method: gmres, restart: 60, iterations: 3000}",
                      "{preconditioner: jacobi, iterations: 3000}", "{method: bicgstab, iterations: 3000}"])
    sources = [rng.choice([1.0, -2.0, 0.5, 0.0]) for _ in weights]
    sources[0] -= sum(w * s for w, s in zip(weights, sources)) / weights[0]
    ranks = rng.choice([1, 1, 2])
    check(f"{number}: a balanced system is solved", run(filled(text, sources, how), ranks=ranks)["solvers"], text)
    said = run(filled(text, sources, "{preconditioner: jacobi, iterations: 1}"), fails=True)
    check(f"{number}: few iterations are no lack of a solution", "in 1 iterations" in said, said)
    off = rng.choice([1e-3, 0.25, -3.0])
    sources[-1] += off
    said = run(filled(text, sources, how), ranks=ranks, fails=True)
    found = re.search(r"in the sum of the equations of (.*) over all points unknowns cancel.* they differ by (\S+), of",
                      said)
    most = max(weights)
    check(f"{number}: what has no solution says so", found is not None, said + text)
    check(f"{number}: by how much", abs(float(found[2]) + off * weights[-1] / most) < 1e-5 * abs(off), said + text)
    terms = [("" if w == most else f"{w / most:.6g}*") + f"u{i}" for i, w in enumerate(weights)]
    check(f"{number}: in which sum", found[1] == " + ".join(terms), (found[1], terms))


def main():
    """Systems of consecutive numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=60 if "TRL_TEST_LONG" in os.environ else 8)
    parser.add_argument("--first", type=int, default=8)
    given = parser.parse_args()
    for number in range(given.first, given.first + given.systems):
        compare(number)


if __name__ == "__main__":
    main()

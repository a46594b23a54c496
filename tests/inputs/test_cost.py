#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Reading and compiling a deck costs as much as it is long: with four times as many entries, `trellis check` needs four
times the time of the processor, not sixteen times; and what sums and products expand to is limited over the whole deck.
--size N takes other decks, as for a table: test_cost.py --size 25000."""
import argparse
import os
import pathlib
import resource
import subprocess
import sys

TRELLIS = os.environ.get("TRELLIS", "trellis")
RATIO_MOST = 8  # four when linear, 16 when quadratic
TRIES = 3  # other work on the machine makes a try slower, never faster


def separate(n, line):
    return "\n".join(line.format(i=i, before=(i - 1) % n) for i in range(n))


def chain(n, first, others):
    return "\n".join((others if i % 10 else first).format(i=i, before=i - 1) for i in range(n))


PERIODIC = "grid: {cells: [4], periodic: [true]}\n"
# Kind: the deck of n, and the method.
DECKS = {
    "family": (lambda n: PERIODIC + f"parameters: {{n: {n}}}\n" +
               'equations: {"u{i}": {for: {i: 1..n}, initial: "x+i", ddt: "laplacian(u{i}) - u{if(i>1,i-1,n)}"}}',
               "rk4"),
    "family with stored stages": (lambda n: PERIODIC + f"run: {{fusion: node}}\nparameters: {{n: {n}}}\n" +
                                  'equations: {"u{i}": {for: {i: 1..n}, initial: "x+i", ddt: "laplacian(u{i})"}}',
                                  "ssprk3"),
    "equations": (lambda n: PERIODIC + "equations:\n" + separate(
        n, '  u{i}: {{initial: "x+{i}", ddt: "laplacian(u{i}) - u{before}"}}'), "euler"),
    "names": (lambda n: PERIODIC + "parameters:\n" + separate(n, "  p{i}: {i}") + "\nexpressions:\n" +
              separate(n, '  e{i}: "p{i}*u{i}"') + "\nequations:\n" +
              separate(n, '  u{i}: {{initial: "p{i}", ddt: "laplacian(u{i}) - e{i}"}}'), "euler"),
    "parameters": (lambda n: PERIODIC + "parameters:\n" + chain(n, "  p{i}: 1", '  p{i}: "p{before} + 1"') +
                   f'\nequations: {{u: {{initial: 1, ddt: "-p{n - 1}*u"}}}}', "euler"),
    "boundaries": (lambda n: "grid: {cells: [4]}\nequations:\n" + separate(
        n, '  u{i}: {{initial: 1, ddt: "laplacian(u{i})", '
        'boundary: {{x-: {{dirichlet: "t*x"}}, x+: {{neumann: "u{before}"}}}}}}'), "euler"),
    "boundaries in 2-D": (lambda n: "grid: {cells: [4, 4], periodic: [true, false]}\nequations:\n" + separate(
        n, '  u{i}: {{initial: 1, ddt: "laplacian(u{i}) - u{before}", '
        'boundary: {{y-: {{dirichlet: 0}}, y+: {{neumann: "u{before}"}}}}}}'), "euler"),
}

# Expansions that are too long together, each of them short.
SUMS = ["u: {initial: 1, ddt: 'u + sum(j=1..2000, prod(k=1..2000, k*u))'}",
        '"u{i}": {for: {i: 1..5}, initial: 1, ddt: "sum(j=1..1000000, u1)"}']


def limit_holds(equation):
    pathlib.Path("cost.yaml").write_text(
        f"trellis: 1\n{PERIODIC}equations: {{{equation}}}\ntime: {{method: euler, dt: 1e-3, steps: 1}}\n")
    done = subprocess.run([TRELLIS, "check", "cost.yaml"], capture_output=True, text=True, check=False)
    if done.returncode == 2 and "the sums and products of a deck may expand to 4000000" in done.stderr:
        return True
    print(f"{equation}: 'trellis check' ended with {done.returncode}: {done.stderr[:1000]}")
    return False


def cpu_time(text):
    pathlib.Path("cost.yaml").write_text(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([TRELLIS, "check", "cost.yaml"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"'trellis check' ended with {done.returncode}: {done.stderr[:1000]}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2000)
    size = parser.parse_args().size
    failed = sum(not limit_holds(equation) for equation in SUMS)
    for kind, (deck, method) in DECKS.items():
        ratios = []
        for _ in range(TRIES):
            start, few, many = (cpu_time(f"trellis: 1\n{deck(n)}\ntime: {{method: {method}, dt: 1e-3, steps: 1}}\n")
                                for n in (4, size, 4 * size))
            ratios.append((many - start) / max(few - start, 0.01))
            if ratios[-1] < RATIO_MOST:
                break
        print(f"{kind}: {size} in {few:.2f} s, {4 * size} in {many:.2f} s of processor time, ratio {ratios[-1]:.1f}",
              flush=True)
        if min(ratios) >= RATIO_MOST:
            print(f"  that is not linear: {ratios}")
            failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

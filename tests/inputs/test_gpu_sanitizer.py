#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300 labels=sanitizer
"""compute-sanitizer finds nothing in the kernels of small decks: stores, ghosts, sums, halos between patches, the
iterations of a solver, direct solutions, several steps in a launch. TRELLIS_COMPUTE_SANITIZER names the program, if it
is not in PATH."""
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77
TOOLS = {  # options, environment
    "memcheck": ([], {}),
    "racecheck": ([], {}),
    # Ghosts are copied with corners, which nothing computes or reads: copies are the driver's, and left out. What
    # cudaMemcpy3DAsync has written counts as not initialised with CUDA 13.0: decks in three dimensions are left out.
    "initcheck": (["--check-api-memory-access", "no"], {"TRELLIS_GPU_COPIES": "off"}),
    "synccheck": ([], {}),
}
HEAD = "trellis: 1\ngrid: {cells: [20, 18], periodic: [false, true], patches: [1, 2]}\n"
PASSES = "time: {dt: 1e-5, steps: 7, method: euler}\nrun: {time_blocking: 2}\n"  # in one launch
DECKS = {
    "steps": HEAD + "equations:\n  T:\n    initial: sin(x) + y\n    ddt: laplacian(T) - integral(T)*T\n"
             "    boundary: {x-: {dirichlet: 1}, x+: {neumann: 0}}\ntime: {dt: 1e-4, steps: 6, method: ssprk2}\n",
    "solve": HEAD + "equations:\n  p:\n    solve: laplacian(p) = x + exp(p)\n    initial: 0\n    solver: s\n"
             "    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}}\n"
             "solvers:\n  s: {method: cg, preconditioner: jacobi, tolerance: 1e-3}\n",
    "direct": "trellis: 1\ngrid: {cells: [20, 18], periodic: [false, true]}\nequations:\n"
              "  p:\n    solve: laplacian(p) = x*T\n    initial: 0\n    solver: s\n"
              "    boundary: {x-: {dirichlet: 0}, x+: {neumann: 1}}\n"
              "  q:\n    solve: laplacian(q) - q = T\n    initial: 0\n    solver: s\n"
              "    boundary: {x-: {robin: {a: 1, b: 1, c: 2}}, x+: {neumann: 0}}\n"
              "  T: {initial: sin(x) + y, ddt: p + q}\n"
              "solvers:\n  s: {method: direct}\ntime: {dt: 1e-3, steps: 3, method: euler}\n",
    "planes": "trellis: 1\ngrid: {cells: [20, 34, 13], periodic: [true, false, true]}\nequations:\n"
              "  p:\n    solve: laplacian(p) = x*T\n    initial: 0\n    solver: s\n"
              "    boundary: {y-: {dirichlet: 0}, y+: {neumann: 1}}\n"
              "  T: {initial: sin(x) + y, ddt: p}\n"
              "solvers:\n  s: {method: direct}\ntime: {dt: 1e-3, steps: 3, method: euler}\n",
    "passes": "trellis: 1\ngrid: {cells: [52, 40, 17], periodic: [false, true, true]}\nequations:\n"
              "  T:\n    initial: sin(x) + y\n    ddt: k*laplacian(T) - U\n"
              "    boundary: {x-: {dirichlet: 1}, x+: {neumann: 0}}\n"
              "  U: {initial: y, ddt: T + cddy(U), boundary: {x-: {neumann: 1}, x+: {dirichlet: t}}}\n"
              "  k: {initial: 1 + x, ddt: 0}\n" + PASSES,
    "cut_passes": "trellis: 1\ngrid: {cells: [40, 40, 17], periodic: [false, true, true], patches: [1, 1, 2]}\n"
                  "equations:\n  T: {initial: y, ddt: laplacian(T), boundary: {x-: {neumann: 1}, x+: {dirichlet: z}}}\n"
                  + PASSES,
    "flat_passes": "trellis: 1\ngrid: {cells: [70, 64], periodic: [false, true]}\nequations:\n"
                   "  T: {initial: sin(x) + y, ddt: laplacian(T), boundary: {x-: {dirichlet: 1}, x+: {neumann: 0}}}\n"
                   + PASSES,
}


def skip(why):
    """There is nothing to run; where a GPU is required that is a failure."""
    print(why)
    sys.exit(1 if "TRL_REQUIRE_GPU" in os.environ else SKIPPED)


def main():
    sanitizer = os.environ.get("TRELLIS_COMPUTE_SANITIZER") or shutil.which("compute-sanitizer")
    trellis = os.environ["TRELLIS"]
    if not sanitizer:
        skip("there is no compute-sanitizer")
    failed = 0
    for name, text in DECKS.items():
        deck = pathlib.Path(f"{name}.yaml")
        deck.write_text(text, encoding="utf-8")
        run = [trellis, "run", str(deck), "--quiet", "--set", "run.devices=gpu", "--set", "run.placement=devices"]
        plain = subprocess.run(run, capture_output=True, text=True, check=False)
        if plain.returncode != 0:
            skip(f"{name} does not run on a GPU: {plain.stderr}")
        for tool, (options, environment) in TOOLS.items():
            if tool == "initcheck" and name in ("planes", "passes", "cut_passes"):
                continue
            line = [sanitizer, "--tool", tool, "--launch-timeout", "60", *options, "--error-exitcode", "9", *run]
            for _ in range(2):
                done = subprocess.run(line, env={**os.environ, **environment}, capture_output=True, text=True,
                                      check=False)
                if done.returncode >= 0:
                    break  # else the tool itself died by a signal, and has said nothing of the kernels
            if done.returncode != 0:
                print(f"{tool} on {name} ends with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
                failed += 1
    sys.exit(1 if failed else 0)


main()

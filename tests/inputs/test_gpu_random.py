#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=1800 labels=gpu
"""Random decks of each kind on GPUs against the CPU, to the bit: formulas, ordinary equations, flows, what is solved
for by iterations (also where ranks merge patches of coarser grids) and directly, spectra, plugins with a CUDA form,
several steps in a launch, and given to a GPU together. A run has one to three GPUs, or ranks with a GPU or two each,
which exchange in each other's memory; tasks are where GPUs may do them, dealt at random, or where they take least.
Emulated GPUs do what they are given at once or as late as they may; they are used where there is no other. The short
form has decks of few kernels.

    TRELLIS=... TRELLIS_BUILD=... python3 tests/inputs/test_gpu_random.py --decks 300 --first 0 --kinds flow,solve"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import all_decks
import placements
import random_flows
import random_merges
import random_saddles
import random_solves
import random_steps
import refusals
import test_bits
import test_direct

SKIPPED = 77
DRAWN_AGAIN = ("", "a", "b", "c")
BUILD = pathlib.Path(os.environ["TRELLIS_BUILD"])
MPI = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n"]


def formulas(rng, number):
    """The language, all methods, ordinary equations."""
    text, dim, _, _ = test_bits.deck_of(rng, number)
    return test_bits.write_files(os.environ["TRELLIS"], rng, text, dim, pathlib.Path())


def spectra(rng, _):
    """Waves that move, and their spectra."""
    dim = rng.choice([1, 2, 3])
    cells = [rng.choice([6, 8, 9, 12] if dim == 3 else [9, 16, 24]) for _ in range(dim)]
    axis, at = rng.choice("xyz"[:dim]), rng.choice(["cell", "xface"])
    return (f"trellis: 1\ngrid: {{cells: {cells}, periodic: true}}\nequations:\n"
            f"  u: {{location: {at}, initial: \"sin(2*pi*x) + 0.1*random(2)\",\n"
            f"      ddt: \"0.01*laplacian(u) - u*at(v, {at})\"}}\n"
            f"  v: {{initial: \"cos(4*pi*{axis})\", ddt: \"-div(advective_flux(v, [{', '.join(['0.3'] * dim)}]))\"}}\n"
            f"time: {{method: {rng.choice(['euler', 'rk4'])}, dt: 1e-3, steps: 4}}\noutput:\n  fields: []\n"
            f"  series: {{every: {{steps: {rng.choice([1, 2])}}}, values: {{most: \"domain_max(u)\"}},\n"
            f"           spectra: {{E: {{of: u}}, V: {{of: v, along: {axis}}}, B: {{of: [u, v]}}}}}}\n")


def plugins(rng, _):
    """Forms of plugins beside stencils."""
    dim = rng.choice([1, 2, 3])
    cells = [rng.choice([8, 11, 20]) for _ in range(dim)]
    periodic = [a > 0 and rng.random() < 0.5 for a in range(dim)]
    kinds = ["{dirichlet: 0.5}", "{neumann: 1}", "{expression: w}"]
    sides, others = (", ".join(f"{'xyz'[a]}{s}: {rng.choice(kinds if a else first)}" for a in range(dim)
                               if not periodic[a] for s in "-+")
                     for first in (kinds, ["{expression: v}", "{dirichlet: 1}", "{neumann: 0}"]))
    others = others.replace("expression: w", "neumann: 0.5")
    dt = rng.choice(["1e-4", "{cfl: 0.3}"])
    here = rng.choice(["", ", device: cpu"])
    return (f"trellis: 1\nplugins: [cuda_forms]\ngrid: {{cells: {cells}, periodic: {json.dumps(periodic)}}}\n"
            f"expressions:\n  r: {{type: cuda_reaction, computes: [S, U]{here}}}\n"
            "  f: {type: cuda_flux, boundary: {x-: {neumann: 0}, x+: {neumann: 0}}}\n"
            f"  w: {{type: cuda_wall, inputs: {{S: T}}{here}}}\n  v: {{type: cuda_xwall}}\n"
            "equations:\n  T:\n    initial: \"sin(3*x) + 0.1*random(1)\"\n"
            f"    ddt: \"0.01*({rng.choice(['-ddx(F) +', ''])} laplacian(T)) + S - 0.1*U*T\"\n"
            f"    boundary: {{{sides}}}\n"
            f"  G: {{location: xface, initial: \"x\", ddt: \"0.01*laplacian(G) + at(T, xface)\",\n"
            f"      boundary: {{{others}}}}}\n"
            f"time: {{dt: {dt}, steps: 5, method: {rng.choice(['euler', 'ssprk2', 'ssprk3', 'rk4'])}}}\n"
            "output: {fields: []}\n")


def limits(rng, _):
    """Steps whose dt follows from the largest values of transport, which GPUs find by themselves where they do all; the
    last one ends at the end, and dt may fall below its least."""
    dim = rng.choice([1, 2, 3])
    cells = [rng.choice([6, 8, 9, 12] if dim == 3 else [9, 16, 24, 40]) for _ in range(dim)]
    periodic = [rng.random() < 0.6 for _ in range(dim)]
    axes = "xyz"[:dim]
    sides = ", ".join(f"{a}{s}: {rng.choice(['{neumann: 0}', '{dirichlet: 1}', '{dirichlet: 1 + t}'])}"
                      for a, p in zip(axes, periodic) if not p for s in "-+")
    method = rng.choice(["euler", "ssprk2", "ssprk3", "rk4", "rk4", "leapfrog"])
    ddt = "ddt2" if method == "leapfrog" else "ddt"
    terms = ["div(E*grad(E))", "div((1 + E^2)*grad(E))", "0.5*div((1 + 0.5*sin(t))*grad(E))"]
    terms += ["-div(advective_flux(E, [" + ", ".join(f"1 + {a}" for a in axes) + "])) + 0.1*laplacian(E)"]
    terms = ["laplacian(E)"] if ddt == "ddt2" else terms
    names = ["T", "S", "U"][:rng.choice([1, 1, 2, 3])]
    others = ["", " + sin(99*t)", " - 400*E^3"]
    equations = "".join(f"  {e}:\n    initial: \"{rng.choice(['2 + sin(2*pi*x)', '1 + 0.1*random(1)', '1 + x'])}\"\n"
                        f"    {ddt}: \"{(rng.choice(terms) + rng.choice(others)).replace('E', e)}\"\n" +
                        (f"    boundary: {{{sides}}}\n" if sides else "") for e in names)
    given = rng.choice(["", "", ", max: 2e-3", ", speed: \"1 + abs(T)\", max: 2e-3", ", min: 3e-5"])
    if ddt == "ddt2":
        given = rng.choice([", speed: \"1 + abs(T)\"", ", speed: \"2 + t\", max: 0.01"])
    until = rng.choice(["steps: 12", "steps: 40", "steps: 30, end: 0.003", "end: 0.002"])
    series = rng.choice(["", "\n  series: {every: {steps: 1}, values: {most: \"domain_max(T)\", last: dt}}",
                         "\n  series: {every: {time: 5e-4}, values: {sum: \"integral(T)\"}}"])
    return (f"trellis: 1\ngrid: {{cells: {cells}, periodic: {json.dumps(periodic)}}}\nequations:\n{equations}"
            f"time: {{method: {method}, dt: {{cfl: {rng.choice([0.3, 0.5])}{given}}}, {until}}}\n"
            f"output:\n  fields: []{series}\n")


def coupled(rng, _):
    """The same of equations that read each other: reactions, waves, kinetics of several, also beside one another; some
    have no stable step with a method."""
    dim = rng.choice([1, 2, 3])
    axes = "xyz"[:dim]
    cells = [rng.choice([6, 8, 9, 12] if dim == 3 else [9, 16, 24]) for _ in range(dim)]
    move = " - div(advective_flux(E, [" + ", ".join(rng.choice(["0.3", "1 + " + a]) for a in axes) + "]))"
    spread, carry = " + 0.05*laplacian(E)", rng.choice(["", move, f" - 0.2*cddx(E)*{rng.choice(['1', 'E'])}"])
    systems = [
        {"u": "-u*v^2 + 0.4*(1 - u)" + spread + carry, "v": "u*v^2 - v" + rng.choice(["", spread]) + carry},
        {"u": "1 - 3*u + u^2*v" + spread, "v": "2*u - u^2*v"},
        {"h": "-(" + " + ".join(f"cdd{a}(h*m{a})" for a in axes) + ")",
         **{f"m{a}": f"-9.81*cdd{a}(h)" + rng.choice(["", f" - m{a}*cdd{a}(m{a})", " - 3*E"]) for a in axes}},
        {"p": "-(2 + sin(t))*div([" + ", ".join(f"q{a}" for a in axes) + "])",
         **{f"q{a}": f"-dd{a}(p)" + rng.choice(["", f"*(1 + {a})", f" - 20*q{a}"]) for a in axes}},
        {"w": "s", "s": rng.choice(["(1 + w^2)", "2", "(2 + t)"]) + "*laplacian(w)" +
                   rng.choice(["", " - s", " - w^3"])},
        {f"c{i}": f"{rng.randint(1, 40)}*c{(i + 1) % 4}*c{rng.randrange(4)} - {rng.randint(1, 40)}*c{i}" + rng.choice(
            ["", "", " + sin(50*t)*c0"]) for i in range(4)},
        {f"b{i}": f"b{(i + 1) % n} - b{i}*b{i} + {rng.choice(['0', 'laplacian(E)'])}"
         for n in [rng.choice([3, 7, 16, 32, 33])] for i in range(n)}]
    chosen = rng.sample(systems, rng.choice([1, 1, 1, 2]))
    if len(chosen) == 2 and set(chosen[0]) & set(chosen[1]):  # a name is an unknown of one of them
        chosen.pop()
    place = {"q" + a: a + "face" for a in axes}
    starts = ["1 + 0.3*sin(2*pi*x)", "0.5 + x*(1 - x)", "1 + 0.1*random(1)"]
    equations = "".join(f"  {e}: {{location: {place.get(e, 'cell')}, initial: \"{rng.choice(starts)}\",\n"
                        f"      ddt: \"{ddt.replace('E', e)}\"}}\n" for system in chosen for e, ddt in system.items())
    method = rng.choice(["euler", "ssprk2", "ssprk3", "rk4", "rk4"])
    given = rng.choice(["", ", max: 2e-3", ", max: 0.01", ", min: 1e-3", ", speed: \"1 + t\""])
    until = rng.choice(["steps: 12", "steps: 30", "steps: 30, end: 0.05"])
    return (f"trellis: 1\ngrid: {{cells: {cells}, periodic: true}}\nequations:\n{equations}"
            f"time: {{method: {method}, dt: {{cfl: {rng.choice([0.3, 0.5])}{given}}}, {until}}}\n"
            "output: {fields: []}\n")


KINDS = {"limits": limits, "coupled": coupled, "formulas": formulas, "flow": lambda rng, _: random_flows.write(rng),
         "solve": lambda rng, _: random_solves.write(rng), "merge": lambda rng, _: random_merges.write(rng),
         "direct": lambda rng, _: test_direct.random_deck(rng, equations=2), "spectra": spectra, "plugins": plugins,
         "saddle": lambda rng, _: random_saddles.write(rng),
         "steps": lambda rng, _: random_steps.write(rng, *random_steps.draw(rng))}


def ways_of(rng, dim, count):
    """Settings of runs: GPUs in one process or of ranks."""
    rule = rng.choice(["devices", "devices", "auto", placements.at_random(rng), placements.at_random(rng)])
    way = ["run.devices=gpu", f"run.placement={rule}"]
    way += rng.choice([[], [], ["run.fusion=node"], ["run.fusion=none"], ["run.passes.groups=false"],
                       ["run.passes.overlap=false"], ["run.prefetch=false"]])
    way += rng.choice([[], [f"run.time_blocking={rng.choice([1, 2, 3, 4, 8])}"]])
    ranks = rng.choice([1, 1, 2, 2, 3]) if count > 1 else 1
    if rng.random() < (0.6 if ranks == 1 else 0.3):
        way.append(f"grid.patches={[rng.choice([1, 2]) for _ in range(dim)]}")
    gpus = max(ranks, rng.choice([1, 2, 3])) * (ranks > 1 and rng.choice([1, 1, 2]) or 1)
    if ranks == 1 and count > 1 and gpus > 1 and rng.random() < 0.5:  # all of them, if the grid is not cut, too
        way[0] = "run.devices=[0, 1]"
    way += [f"TRL_EMULATED_LAZY={rng.choice([0, 1])}", f"TRL_EMULATED_GPUS={gpus}",
            f"TRELLIS_GPU_CHAIN={rng.choice(['off', '2', '4', '6'])}",
            f"TRELLIS_GPU_IPC={rng.choice(['on', 'on', 'on', 'staging', 'off'])}", f"ranks={ranks}"]
    return way


def merging_way(rng, text, way):
    """The same with a patch for each of up to four ranks, whose GPUs they have or share."""
    ranks, settings = next(random_merges.ways(rng, text, 1, most=4))
    kept = [s for s in way if not s.startswith(("grid.patches", "ranks=", "TRL_EMULATED_GPUS"))]
    return [*kept, *(s for s in settings if "compile" not in s), f"ranks={ranks}",
            f"TRL_EMULATED_GPUS={rng.choice([2, 4])}"]


def run(deck, settings):
    """What a run says of values, or how it ended; and messages."""
    ranks = max([1, *(int(s[6:]) for s in settings if s.startswith("ranks="))])
    line = [*([*MPI, str(ranks)] if ranks > 1 else []), all_decks.TRELLIS, "run", str(deck), "--quiet", "--report",
            "report.json", "--plugin-path", str(BUILD / "test_plugins"), "--set", "run.threads=1", "--set",
            "output.directory=out"]
    shutil.rmtree("out", ignore_errors=True)
    for setting in settings:
        line += ["--set", setting] if re.match("[a-z]+[.]", setting) else []
    variables = {**os.environ, **dict(s.split("=", 1) for s in settings if s.startswith("TR"))}
    if ranks == 1:
        variables["OMPI_MCA_ess_singleton_isolated"] = "1"
    try:
        done = subprocess.run(line, env=variables, capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        return "did not end", ""
    if "NVRTC" in done.stderr:
        raise SystemExit(f"no kernel of {deck} is compiled, so CPUs were compared: {done.stderr}")
    if done.returncode:
        return done.returncode, done.stderr
    report = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))
    written = [path.read_bytes() for path in (pathlib.Path("out") / n for n in ("series.csv", "receivers.nc"))
               if path.exists()]
    return {"fields": {n: repr(f) for n, f in report["fields"].items()}, "errors": repr(report["errors"]),
            "written": written, "steps": report["steps_run"],
            "iterations": [s["iterations"] for s in report.get("solvers", [])]}, done.stderr


def differences(wanted, found):
    """In words."""
    if not isinstance(wanted, dict) or not isinstance(found, dict):
        return [] if wanted == found else [f"ends with {found if not isinstance(found, dict) else 0}, not "
                                           f"{wanted if not isinstance(wanted, dict) else 0}"]
    return [f"{key}: {str(found[key])[:400]}, not {str(wanted[key])[:400]}" for key in wanted
            if wanted[key] != found[key]]


def compare(kind, number, ways, count, again=""):
    """How a deck went, and what to say. again: another one of this number."""
    rng = random.Random(f"{kind} {number}{again}")
    deck = pathlib.Path(f"{kind}{number}{again}.yaml")
    deck.write_text(KINDS[kind](rng, number), encoding="utf-8")
    wanted, said = run(deck, ["run.devices=cpu", "run.compile=never"])
    dim = len(json.loads(re.search(r"cells: (\[[^\]]*\])", deck.read_text(encoding="utf-8"))[1]))
    if wanted == 2:
        how = "refused unexpectedly" if refusals.unexpected(said) else "refused"
        return how, f"{deck}: {said}"
    for way in (ways_of(rng, dim, count) for _ in range(ways)):
        if kind == "merge":
            way = merging_way(rng, deck.read_text(encoding="utf-8"), way)
        found, told = run(deck, way)
        if found == 2 and "patch" in told:  # they are too thin
            continue
        wrong = differences(wanted, found)
        if wrong:
            return "different", f"{deck}: {' '.join(way)}\n  " + "\n  ".join([*wrong, told[-600:]])
    deck.unlink()
    return ("same" if isinstance(wanted, dict) else f"ends with {wanted}"), ""


def find_gpus():
    """How many there are, emulated ones if there is no other."""
    count = all_decks.count_gpus()
    if count == 0 and os.environ.get("TRL_REQUIRE_GPU") != "1" and (BUILD / "emulated/trellis").exists():
        os.environ.update(TRELLIS_NVRTC=str(BUILD / "emulated/nvrtc.so"), TRL_EMULATED_GPUS="2")
        all_decks.TRELLIS = str(BUILD / "emulated/trellis")
        all_decks.info.cache_clear()
        count = all_decks.count_gpus()
    if count == 0:
        print("there is no GPU")
        sys.exit(1 if os.environ.get("TRL_REQUIRE_GPU") == "1" else SKIPPED)
    return count


def main():
    """Compare decks of all kinds."""
    long = "TRL_TEST_LONG" in os.environ
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decks", type=int, default=20 if long else 1, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--ways", type=int, default=2 if long else 1, help="on GPUs, of each deck")
    parser.add_argument("--kinds", default=",".join(KINDS) if long else "spectra,plugins,direct")
    options = parser.parse_args()
    count, counts = find_gpus(), collections.Counter()
    for number in range(options.first, options.first + options.decks):
        for kind in options.kinds.split(","):
            for again in DRAWN_AGAIN:  # in place of one that is refused
                how, said = compare(kind, number, options.ways, count, again)
                counts[kind, how] += 1
                print(said, end="\n" if said else "", flush=True)
                if how != "refused":
                    break
    for (kind, how), n in sorted(counts.items()):
        print(f"{kind}: {n} {how}")
    refused = sum(n for (_, how), n in counts.items() if how == "refused")
    many = 4 * refused > sum(counts.values()) + 4  # of a few decks one or two may be
    print("more than a quarter of the decks are refused" if many else "", end="\n" if many else "")
    sys.exit(many or any(how in ("different", "refused unexpectedly") for _, how in counts))


if __name__ == "__main__":
    main()

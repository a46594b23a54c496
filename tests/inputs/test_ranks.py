#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Random decks on 1 to 8 ranks of one node or several, in 1 to 64 patches of any owners, with shares that change, with
and without overlap, shared memory, time blocks and threads, by two schedulers: every field has the same hash, and
series are the same. Ranks outnumber the cores, so that messages come late and in any order."""
import argparse
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from random_coefficients import Coefficients, one_message

TERMS = [
    "laplacian({f})", "div((1 + 0.1*{f})*grad({f}))", "0.1*laplacian({f})*{g}", "-div(advective_flux({f}, velocity))",
    "0.02*laplacian({f}) + 0.01*cddx(cddy({f}))*{g}",
    "div(0.5*grad({f})) + 0.1*{g}*(1 - {g})", "0.02*laplacian({f}) + sin({g})"
]
CONDITIONS = ["{dirichlet: 0.3}", "{neumann: 0.1}", "{dirichlet: 'x + t'}"]


def deck_of(rng):
    dim = rng.choice([2, 3, 3])
    periodic = [True] * dim if rng.random() < 0.5 else [rng.random() < 0.5 for _ in range(dim)]
    cells = [rng.randint(12, 16), *[rng.randint(20, 32) for _ in range(dim - 1)]]
    if rng.random() < 0.3:  # rows are cut where others' patches follow along x
        cells = [rng.randint(520, 900), rng.randint(12, 20), *([8] if dim > 2 else [])]
    fixed = "1.0e-5" if cells[0] < 100 else "1.0e-8"
    lines = [
        "trellis: 1",
        f"grid: {{cells: {cells}, periodic: {json.dumps(periodic)}}}",
        "expressions:", f"  velocity: {[0.5, -0.25, 0.75][:dim]}", "equations:"
    ]
    for f, g in (("a", "b"), ("b", "a")):
        wave = "*".join(f"cos(2*pi*{axis})" for axis in "xyz"[:dim])
        lines += [f"  {f}:", f"    initial: \"0.5 + 0.2*{wave}\"", f"    ddt: \"{rng.choice(TERMS).format(f=f, g=g)}\""]
        sides = [s for a, axis in enumerate("xyz"[:dim]) if not periodic[a] for s in (axis + "-", axis + "+")]
        if sides:
            lines.append("    boundary:")
            lines += [f"      {s}: {rng.choice(CONDITIONS)}"
                      for s in sides]
    time = [
        f"time: {{method: {rng.choice(['euler', 'rk4', 'ssprk3'])}, "
        f"dt: {rng.choice([fixed, fixed, '{cfl: 0.4}', '{cfl: 0.4}', '{cfl: 0.4, max: 1.0e-4}'])}, end: 1}}",
        "run: {compile: never}"
    ]
    if rng.random() < 0.5 and cells[0] < 100:  # drawn last; conjugate gradients take too long on long rows
        add_solved(rng, lines, periodic)
    if rng.random() < 0.4:
        add_implicit(rng, lines, time)
    if rng.random() < 0.5:
        time.append(rows(rng, periodic))
    return "\n".join(lines + time) + "\n", dim


def rows(rng, periodic):
    """A series, whose rows come while steps go on, with spectra where some axis is periodic."""
    wraps = [axis for axis, wraps in zip("xyz", periodic) if wraps]
    parts = [f"every: {{steps: {rng.choice([1, 1, 2, 3])}}}",
             f"values: {{{rng.choice(['', 'sum: integral(a)', 'sum: integral(a*b), most: domain_max(b)'])}}}"]
    if wraps:
        along = "" if len(wraps) == len(periodic) and rng.random() < 0.5 else f", along: {rng.choice(wraps)}"
        parts.append(f"spectra: {{E: {{of: {rng.choice(['a', '[a, b]'])}{along}}}}}")
    if not wraps or rng.random() < 0.3:
        parts.append(f"profiles: {{P: {{of: a*b, along: {rng.choice('xyz'[:len(periodic)])}}}}}")
    return f"output: {{series: {{{', '.join(parts)}}}}}"


def add_solved(rng, lines, periodic):
    """An equation that is solved, and a coefficient with conditions of its own, which read it."""
    w = Coefficients(rng, {0: "cell"}, periodic)
    left = f"laplacian(s) - 4*s{w.term('s', 0, ['s'], ['a', 'b'])}"
    sides = ", ".join(f"{axis}{s}: {rng.choice(CONDITIONS)}" for axis, wraps in zip("xyz", periodic) if not wraps
                      for s in "-+")
    lines[3:3] = w.lines
    lines[1:1] = ["plugins: [side_values]"] * w.plugins
    right = rng.choice(["a", "a", "a + dt"])
    method = one_message(rng, rng.choice(["", "method: bicgstab, "]))
    lines += [f"  s: {{initial: 0, solve: \"{left} = {right}\", solver: r, boundary: {{{sides}}}}}",
              f"solvers: {{r: {{{method}preconditioner: jacobi, iterations: 1000}}}}"]


def add_implicit(rng, lines, time):
    """Implicit terms of the first equation."""
    first = next(i for i, line in enumerate(lines) if line.startswith("    ddt: "))
    lines[first] = lines[first].replace("ddt: ", "ddt: {explicit: ") + ", implicit: \"0.05*laplacian(a)\"}"
    time[0] = f"time: {{method: {rng.choice(['beuler', 'ark3', 'ark4'])}, " + time[0].split(", ", 1)[1]


def cut(rng, dim, least):
    """Patches along each axis, at least so many, at most 64."""
    while True:
        patches = [rng.choice([1, 1, 2, 3]), *[rng.randint(1, 6) for _ in range(dim - 1)]]
        count = 1
        for n in patches:
            count *= n
        if least <= count <= 64:
            return patches


def way(rng, dim):
    ranks = rng.choice([2, 2, 3, 4, 5, 8])
    settings = [
        f"run.passes.overlap={rng.choice(['true', 'true', 'false'])}",
        f"run.passes.shared={rng.choice(['true', 'false'])}", f"run.threads={rng.choice([1, 1, 2])}",
        f"run.time_blocking={rng.choice([1, 1, 3])}",
        f"run.owners={rng.choice(['auto', 'blocks', 'curve', f'random:{rng.randrange(1000)}'])}"
    ]
    if rng.random() < 0.5:
        settings.append(f"grid.patches={cut(rng, dim, ranks)}")
    if rng.random() < 0.3:
        settings.append(f"run.shares={[rng.choice([0.3, 1, 1, 2.5]) for _ in range(ranks)]}")
    if rng.random() < 0.4:  # what was ready last comes first: copies of ghosts late, for instance
        settings.append(f"run.scheduler={os.environ['TRELLIS_BUILD']}/test_plugins/policy_lifo.so")
    return ranks, settings


def run(trellis, folder, ranks, settings, steps=6, helping="auto", shares="", of_node=0):
    """of_node: so many ranks take themselves for those of a node; 0: all."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    nodes = [f"LD_PRELOAD={os.environ['TRELLIS_BUILD']}/preload/nodes.so", f"TRL_NODE_RANKS={of_node}"]
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks),
               *(["env", *nodes] if of_node else []), trellis, "run", "deck.yaml", "--quiet", "--steps", str(steps),
               "--report", str(report), "--set", "output.directory=out"]
    if "TRELLIS_BUILD" in os.environ:
        command += ["--plugin-path", os.path.join(os.environ["TRELLIS_BUILD"], "test_plugins")]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=120, env={**os.environ, "TRELLIS_HELPING": helping, "TRELLIS_SHARES": shares})
    if done.returncode:
        return done.returncode, done.stderr
    found = {name: field["hash"] for name, field in json.loads(report.read_text(encoding="utf-8"))["fields"].items()}
    if "series:" in (folder / "deck.yaml").read_text(encoding="utf-8"):
        found["series"] = (folder / "out" / "series.csv").read_text(encoding="utf-8")
    return 0, found


def in_turn(number, ways):
    """Of all ways those that a case has: in the short form each third one, so that three cases have all."""
    return [way for i, way in enumerate(ways) if "TRL_TEST_LONG" in os.environ or i % 3 == number % 3]


HEAT = """trellis: 1
grid: {cells: [12, 20, 20], periodic: [true, true, true]}
equations: {T: {initial: "1 + 0.5*sin(2*pi*x)*cos(2*pi*y)", ddt: "div((1 + T^2)*grad(T))"}}
time: {method: ssprk3, dt: DT, end: 1}
run: {compile: never}
"""


FLOW = """trellis: 1
grid: {cells: [12, 14, 16], periodic: [true, true, true]}
incompressible: {velocity: [u, v, w], pressure: p}
equations:
  u: {location: xface, initial: "sin(2*pi*x)*cos(2*pi*y)", ddt: "0.1*laplacian(u) - u"}
  v: {location: yface, initial: "-cos(2*pi*x)*sin(2*pi*y)", ddt: "0.1*laplacian(v)"}
  w:
    location: zface
    initial: "0.1*cos(2*pi*z)"
    ddt: "-div(advective_flux(w, [at(u, yedge), at(v, xedge), w])) + 0.1*laplacian(w)"
time: {method: euler, dt: DT, end: 1}
run: {compile: never}
"""


def check_messages(trellis, folder):
    """What bounds dt and the step's first stage read the same ghosts, or the bound's messages bring those of the stage
    along: they are sent once. Steps alone count."""
    for deck in (HEAT, FLOW):
        sent = {}
        for dt in ("1.0e-5", "{cfl: 0.4}"):
            (folder / "deck.yaml").write_text(deck.replace("DT", dt), encoding="utf-8")
            for steps in (10, 30):
                code, said = run(trellis, folder, 2, [], steps)
                if code:
                    sys.exit(said)
                report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
                sent[dt] = report["comm"]["messages"] - (sent[dt] if steps == 30 else 0)
        if len(set(sent.values())) != 1:
            sys.exit(f"messages of 20 steps with fixed dt, and under cfl: {sent}\n{deck}")


FEW = """trellis: 1
grid: {cells: [3, 5]}
equations: {T: {initial: "x + y^2", ddt: "laplacian(T)", boundary: {x-: {neumann: 1}, x+: {dirichlet: y},
    y-: {neumann: 0}, y+: {dirichlet: 0}}}}
time: {method: ssprk3, dt: 1.0e-3, end: 1}
run: {compile: never}
"""


def check_few_cells(trellis, folder):
    """Ranks that cannot have a patch each: patches: auto makes more."""
    (folder / "deck.yaml").write_text(FEW, encoding="utf-8")
    found = {ranks: run(trellis, folder, ranks, []) for ranks in (1, 7, 8)}
    if any(other != found[1] for other in found.values()):
        sys.exit(f"few cells on ranks: {found}")


ROWS = """trellis: 1
grid: {cells: [800, 24, 6], periodic: [true, true, false]}
expressions: {velocity: [0.5, -0.25, 0.75]}
equations:
  a: {initial: "0.5 + 0.2*cos(2*pi*x)*cos(2*pi*y)", boundary: BOUNDARY,
      ddt: "0.01*laplacian(a) - div(advective_flux(a, velocity)) - integral(a*b)"}
  b: {location: xface, initial: "sin(2*pi*x)*y", boundary: BOUNDARY,
      ddt: "0.001*laplacian(b) + 0.001*cddx(cddz(b)) + at(a, xface)"}
time: {method: ssprk3, dt: {cfl: 0.4}, end: 1}
run: {compile: COMPILE}
"""


def check_rows(trellis, folder):
    """Rows are cut where patches of other ranks follow one another along x, also beside walls of theirs, or across."""
    cases = (("[800, 24, 6]", "[true, true, false]", "never"), ("[800, 24, 6]", "[true, true, true]", "always"),
             ("[810, 22]", "[false, true]", "never"), ("[800, 24]", "[false, false]", "always"))
    for number, (cells, periodic, compiled) in enumerate(cases):
        text = ROWS.replace("[800, 24, 6]", cells).replace("[true, true, false]", periodic)
        sides = {"x": "{dirichlet: 0.3}", "y": "{neumann: 0.1}", "z": "{dirichlet: 'x + t'}"}
        given = ", ".join(f"{a}{s}: {sides[a]}" for a, wraps in zip("xyz", json.loads(periodic)) if not wraps
                          for s in "-+")
        text = text.replace("BOUNDARY", "{" + given + "}").replace("COMPILE", compiled)
        if cells.count(",") == 1:
            text = text.replace("cddz(b)", "cddy(b)").replace(", 0.75]", "]")
        (folder / "deck.yaml").write_text(text, encoding="utf-8")
        first = run(trellis, folder, 1, [])
        ways = itertools.product(([2, 1, 1], [3, 1, 1], [2, 2, 1]), ([], ["run.passes.shared=false", "run.threads=2"]))
        for patches, more in in_turn(number, ways):
            found = run(trellis, folder, 2, [f"grid.patches={patches[: cells.count(',') + 1]}", *more])
            if first[0] or found != first:
                sys.exit(f"{text}\npatches {patches}, {more}: {found}\none rank: {first}")


UNEVEN = """trellis: 1
grid: {cells: [CELLS], periodic: [true, true, false]}
expressions: {k: "0.1 + 0.05*x*cos(2*pi*y)", velocity: [0.5, -0.25, 0.75]}
equations:
  a: {initial: "0.5 + 0.2*cos(2*pi*x)*cos(2*pi*y)",
      ddt: "div(harmonic(k, faces)*grad(a)) - div(advective_flux(a, velocity)) + dt*at(b, cell) + sin(t)"MASK,
      boundary: {z-: {dirichlet: "x + t"}, z+: {neumann: 0.1}}}
  b: {location: xface, initial: "sin(2*pi*x)*y", ddt: "0.001*laplacian(b) - b^3GROWTH",
      boundary: {z-: {dirichlet: 0}, z+: {dirichlet: 0}}}
time: {method: METHOD, dt: 1.0e-5, end: 1}
run: {compile: always, time_blocking: 1}
"""


def uneven(method, mask, cells, growth=""):
    """A deck for ranks with different numbers of patches."""
    return UNEVEN.replace("METHOD", method).replace("MASK", mask).replace("CELLS", cells).replace("GROWTH", growth)


def helped_points(folder):
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))["comm"]["helped_points"]


def found_changes(folder):
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))["shares"]["changes"]


def check_shares(trellis, folder):
    """Shares that change in the middle of solves, of output and of a flow, in any patches: the same bits and rows."""
    for number, deck in enumerate([*LATE, FLOW.replace("DT", "{cfl: 0.4}")]):
        text = deck if "trellis" in deck else "trellis: 1\ngrid: {cells: [12, 20], periodic: [true, true]}\n" \
            f"run: {{compile: never}}\noutput: {{every: {{steps: 2}}, series: {{values: {{s: 'integral(x)'}}}}}}{deck}"
        (folder / "deck.yaml").write_text(text, encoding="utf-8")
        first = run(trellis, folder, 1, [])
        for ranks, more in in_turn(number, itertools.product((2, 3, 4), ("grid.patches=auto", "run.owners=random:1"))):
            found = run(trellis, folder, ranks, [more], shares=f"random:{number}")
            if found[0] or found != first or found_changes(folder) < 2:
                sys.exit(f"{text}\n{ranks} ranks whose shares change, {more}: {found}\none rank: {first}")


def check_helping(trellis, folder):
    """Ranks with fewer patches compute planes of those with more, which are cut in all ways: the same bits."""
    mask = ", mask: \"(x - 0.5)^2 + (y - 0.5)^2 + (z - 0.4)^2 > 0.05\""
    total = 0
    for number, (method, masked) in enumerate((("ssprk3", mask), ("rk4", ""), ("euler", mask))):
        text = uneven(method, masked, "18, 20, 30")
        (folder / "deck.yaml").write_text(text, encoding="utf-8")
        first = run(trellis, folder, 1, [], 20, "off")
        ways = itertools.product(((2, 3), (4, 5)), ("run.threads=1", "run.threads=2", "run.passes.overlap=false"))
        for (ranks, patches), more in in_turn(number, ways):
            found = run(trellis, folder, ranks, [f"grid.patches=[1, 1, {patches}]", more], 20, "always")
            if found[0] or found != first:
                sys.exit(f"{text}\n{ranks} ranks that help one another, {more}: {found}\none rank: {first}")
            total += helped_points(folder)
        for of_node in (1, 2):  # some ranks have nobody to help
            found = run(trellis, folder, 3, ["grid.patches=[1, 1, 5]"], 20, "always", of_node=of_node)
            if found != first:
                sys.exit(f"{text}\n3 ranks, {of_node} a node, that help one another: {found}\none rank: {first}")
    if total == 0:
        sys.exit("ranks that should help one another did not")


def check_helped_growth(trellis, folder):
    """What is not finite is in a plane that another rank computes, the last inner one of the second patch of two."""
    text = uneven("ssprk2", "", "64, 64, 48", " + if(z > 0.63 and z < 0.64, exp(2.0e6*t - 400), 0)")
    (folder / "deck.yaml").write_text(text, encoding="utf-8")
    first = run(trellis, folder, 1, [], 40, "off")
    where = [line for line in first[1].splitlines() if "finite" in line]
    if first[0] != 3 or len(where) != 1:
        sys.exit(f"{text}\non one rank: {first}")
    for _ in range(2):
        found = run(trellis, folder, 2, ["grid.patches=[1, 1, 3]", "run.threads=1"], 40, "always")
        if found[0] != 3 or where[0] not in found[1]:
            sys.exit(f"{text}\non ranks that help one another: {found}\none rank: {first}")


def check_uneven(trellis, folder):
    """Ranks find out by themselves that they are uneven, where each has a core."""
    text = uneven("ssprk2", "", "64, 64, 48")
    if len(os.sched_getaffinity(0)) < 2:
        return
    (folder / "deck.yaml").write_text(text, encoding="utf-8")
    settings = ["grid.patches=[1, 1, 3]", "run.threads=1"]
    first = run(trellis, folder, 2, settings, 120, "off")
    for _ in range(5):  # others may use the cores, too
        found = run(trellis, folder, 2, settings, 120)
        if found != first:
            sys.exit(f"{text}\nranks that may help one another: {found}\nand that may not: {first}")
        if helped_points(folder) > 0:
            return
    sys.exit("uneven ranks did not help one another")


LATE = [
    """
equations:
  T: {initial: "1 + 0.5*sin(2*pi*x)*cos(2*pi*y)", ddt: "div(0.1*(1 + T^2)*grad(T)) + 0.1*p"}
  p: {initial: 0, solve: "laplacian(p) - 3*p = T*(1 + dt)"}
time: {method: ssprk2, dt: {cfl: 0.5}, end: 1}
""", """
equations:
  T: {initial: "1 + 0.5*sin(2*pi*x)", ddt: {explicit: "div(0.1*(1 + T^2)*grad(T))", implicit: "laplacian(T)"}}
  U: {initial: "x*y", ddt: "t*T - U^2"}
time: {method: ark4, dt: {cfl: 0.5}, end: 1}
""", """
equations:
  u: {location: xface, initial: "sin(2*pi*x)*cos(2*pi*y)",
      ddt: {explicit: "-div(advective_flux(u, [u, at(v, zedge)]))", implicit: "0.01*laplacian(u)"}}
  v: {location: yface, initial: "-cos(2*pi*x)*sin(2*pi*y)", ddt: {explicit: "sin(t)", implicit: "0.01*laplacian(v)"}}
incompressible: {velocity: [u, v], pressure: p, density: "2 + sin(2*pi*x)"}
time: {method: ark3, dt: {cfl: 0.5}, end: 1}
""", """
equations:
  u: {location: xface, initial: "sin(2*pi*x)*cos(2*pi*y)", ddt: "-div(advective_flux(u, [u, at(v, zedge)]))"}
  v: {location: yface, initial: "-cos(2*pi*x)*sin(2*pi*y)", ddt: "sin(20*t)*x"}
incompressible: {velocity: [u, v], pressure: p}
time: {method: euler, dt: {cfl: 0.4}, end: 1}
"""
]


def check_late_dt(trellis, folder):
    """Steps with solves and implicit terms that begin before dt is known: where programs read it, and the host."""
    for deck in LATE:
        text = "trellis: 1\ngrid: {cells: [12, 20], periodic: [true, true]}\nrun: {compile: never}" + deck
        (folder / "deck.yaml").write_text(text, encoding="utf-8")
        found = {ranks: run(trellis, folder, ranks, []) for ranks in (1, 3)}
        if found[1][0] or found[3] != found[1]:
            sys.exit(f"{text}\non 1 and 3 ranks: {found}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decks", type=int, default=20 if "TRL_TEST_LONG" in os.environ else 2)
    parser.add_argument("--ways", type=int, default=2, help="of each deck")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trellis", default=os.environ.get("TRELLIS", "trellis"))
    options = parser.parse_args()
    os.environ["TRELLIS_CC"] = str(pathlib.Path(__file__).resolve().parents[1] / "quick_cc.sh")
    compared = changes = 0
    with tempfile.TemporaryDirectory(dir=".") as name:
        check_messages(options.trellis, pathlib.Path(name).resolve())
        check_few_cells(options.trellis, pathlib.Path(name).resolve())
        check_late_dt(options.trellis, pathlib.Path(name).resolve())
        check_rows(options.trellis, pathlib.Path(name).resolve())
        check_shares(options.trellis, pathlib.Path(name).resolve())
        check_helping(options.trellis, pathlib.Path(name).resolve())
        check_helped_growth(options.trellis, pathlib.Path(name).resolve())
        check_uneven(options.trellis, pathlib.Path(name).resolve())
    for number in range(options.decks):
        rng = random.Random(options.seed * 1000003 + number)
        text, dim = deck_of(rng)
        with tempfile.TemporaryDirectory(dir=".") as name:
            folder = pathlib.Path(name).resolve()
            (folder / "deck.yaml").write_text(text, encoding="utf-8")
            code, first = run(options.trellis, folder, 1, [])
            if code:
                sys.exit(f"{text}\nfails on one rank: {first}")
            for ranks, settings in [way(rng, dim) for _ in range(options.ways)]:
                helping = rng.choice(["auto", "always"])
                settings.append(f"run.compile={'always' if helping == 'always' else 'never'}")
                shares = f"random:{rng.randrange(1000)}" if rng.random() < 0.6 else ""
                of_node = rng.choice([0, 0, 1, 2, 3])
                code, found = run(options.trellis, folder, ranks, settings, helping=helping, shares=shares,
                                  of_node=of_node)
                changes += found_changes(folder) if code == 0 else 0
                if code == 2 and "patches" in found:  # too thin for the stencils
                    continue
                if code or found != first:
                    sys.exit(f"{text}\nseed {options.seed}, deck {number}: {ranks} ranks, {of_node} a node, "
                             f"{settings}, {shares}: {found}\none rank: {first}")
                compared += 1
    print(f"{options.decks} decks, {compared} ways on several ranks, {changes} changes of shares: the same hashes")
    if compared < options.decks:
        sys.exit("too few ways ran")
    if options.decks > 9 and changes < options.decks:
        sys.exit("too few ranks got other shares")


if __name__ == "__main__":
    main()

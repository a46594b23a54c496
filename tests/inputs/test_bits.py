#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=3600
"""Random decks in every way of evaluation that must give the same bits: degrees of fusion, interpreted and compiled,
patches, threads, ranks, placements on mock devices, in one file or several. Decks of ordinary differential equations
are solved here, too."""
import argparse
import collections
import concurrent.futures
import csv
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import placements
import random_blocks
import random_decks
import random_includes
import random_odes
import refusals

METHODS = ["euler", "ssprk2", "ssprk3", "dp5", "rk4", "leapfrog", "bs3"]


def deck_of(rng, number):
    """Text, dimension, number of formulas, solution if known. Each third deck is for several steps in a pass; of the
    others, decks in a row have all kinds of equations, and all methods."""
    if number % 3 == 2:
        return *random_blocks.write(rng), None
    number -= (number + 1) // 3
    method = METHODS[(number + number // 4) % len(METHODS)]
    if number % 4 == 3:
        return random_odes.write(rng, method)
    if number % 7 == 6:
        method = random_decks.IMPLICIT[number // 7 % len(random_decks.IMPLICIT)]
    elif number % 7 == 1:
        method = random_decks.MULTISTEP[number // 7 % 2]
    kinds = [{}, {"flat": True}, {"partial": False, "flat": True}]
    return *random_decks.write(rng, method, **kinds[number % 4]), None


def write_held(trellis, text, folder):
    """The file of values that a deck reads."""
    grid = re.search(r"^grid: .*$", text, re.MULTILINE)[0]
    deck = folder / "held.yaml"
    deck.write_text(f"trellis: 1\n{grid}\nequations: {{held: {{initial: \"1 + 0.5*random(7)\", ddt: 0}}}}\n"
                    f"time: {{dt: 1, steps: 0}}\noutput: {{directory: {folder / 'held'}}}\n", encoding="utf-8")
    subprocess.run([trellis, "run", str(deck), "--quiet"], stdin=subprocess.DEVNULL, check=True)
    (folder / "held/fields/00000000.nc").rename(folder / "held.nc")


def write_files(trellis, rng, text, dim, folder):
    """The files that a deck reads, and its text."""
    if "held.nc" in text:
        write_held(trellis, text, folder)
    return write_points(rng, text, dim, folder) if "points.nc" in text else text


def without_receivers(text):
    """A deck that needs no file of points."""
    return re.sub(r"receivers: {.*?\]}, ", "", text)


def write_points(rng, text, dim, folder):
    """The file of the points of a deck's receivers, if netCDF's program that writes it is there, and the text of the
    deck."""
    if not shutil.which("ncgen"):
        return without_receivers(text)
    lengths = json.loads(re.search(r"length: (\[.*?\])", text).group(1))
    first = re.search(r"origin: (\[.*?\])", text)
    origin = json.loads(first.group(1)) if first else [0] * dim
    places = [start + rng.choice([0, 1, 0.5, rng.random(), rng.random()]) * length
              for _ in range(9) for start, length in zip(origin, lengths)]
    points = (f"netcdf p {{ dimensions: n = 9; axis = {dim}; variables: double points(n, axis); "
              f"data: points = {', '.join(map(repr, places))}; }}")
    subprocess.run(["ncgen", "-k", "nc4", "-o", str(folder / "points.nc")], input=points, text=True, check=True)
    return text


def run(options, deck, folder, settings, out):
    """What the report says of all fields and errors, and the series, or the way the run ended."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    ranks = [s.removeprefix("ranks=") for s in settings if s.startswith("ranks=")]
    for seed in (s for s in settings if s.startswith("included=")):
        deck = random_includes.write(seed, deck.read_text(encoding="utf-8"), folder)
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", ranks[0]] if ranks else []
    command = command + [
        options.trellis, "run",
        str(deck), "--quiet", "--report",
        str(report), "--set", f"output.directory={folder / out}", "--set", "run.threads=2"
    ]  # settings after it win; on many cores, all of them for each of many jobs are too many
    if "TRELLIS_BUILD" in os.environ:
        command += ["--plugin-path", os.path.join(os.environ["TRELLIS_BUILD"], "test_plugins")]
    for setting in [s for s in settings if not s.startswith(("ranks=", "TRL_", "TRELLIS_", "middle=", "included="))]:
        command += ["--set", setting]
    environment = {"OMPI_MCA_ess_singleton_isolated": "1", **os.environ, **placements.environment(settings)}
    if not ranks:  # no daemon; Open MPI names its folder as that of other such runs
        environment["OMPI_MCA_orte_tmpdir_base"] = str(folder)

    def end(*more):
        return subprocess.run([*command, *more], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=600)

    middle = [s.removeprefix("middle=") for s in settings if s.startswith("middle=")]
    done = end(*(("--steps", middle[0], "--set", "output.checkpoint.keep=1") if middle else ()))
    if middle and done.returncode == 0:
        done = end("--restart", "latest")
    if done.returncode == 0:
        told = json.loads(report.read_text(encoding="utf-8"))
        received = folder / out / "receivers.nc"
        return {
            "fields": told["fields"], "errors": told["errors"], "passes": bool(ranks and told["steps_in_passes"]),
            "helped": told["comm"]["helped_points"],
            "series": [path.read_text(encoding="utf-8") for path in sorted((folder / out).glob("*.csv"))],
            "receivers": hashlib.sha256(received.read_bytes()).hexdigest() if received.exists() else ""
        }, ""
    return done.returncode, done.stderr


def differing_file(folder):
    """What HDF5's own program says of the first file of fields of a way in which values differ from those of the first
    way."""
    if not shutil.which("h5diff"):
        return ""
    for path in sorted((folder / "first" / "fields").glob("*.nc")):
        done = subprocess.run(["h5diff", str(path), str(folder / "out" / "fields" / path.name)], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            return f"{path.name}: {done.stdout[-400:]}{done.stderr}"
    return ""


def ways_on_gpus(rng, dim, ways):
    """The reference, then ways on GPUs."""
    patches = f"grid.patches={[rng.choice([1, 2]) for _ in range(dim)]}"
    more = [[], [], [patches], [patches], ["run.fusion=node"], ["run.fusion=none"], ["run.passes.groups=false"]]
    rules = ["devices", "devices", placements.at_random(rng)]
    chosen = [["run.devices=gpu", f"run.placement={rules[i % 3]}", *rng.choice(more)] for i in range(ways)]
    return [["run.fusion=none", "run.compile=never", "run.threads=1", "run.devices=cpu"], *chosen]


def in_passes(rng, depths):
    """Several steps in a pass, where a deck allows it: slots of values of other steps are more often in the way."""
    return [f"run.time_blocking={rng.choice(depths)}", f"run.passes.slots={rng.choice(['true', 'false', 'false'])}"]


def owners(rng):
    """Which rank has which patches."""
    return f"run.owners={rng.choice(['blocks', 'curve', f'random:{rng.randrange(1000)}'])}"


def on_ranks(rng):
    """Ranks, and how they exchange."""
    helping = rng.choice([[], ["TRELLIS_HELPING=always", "run.compile=always"]])
    shares = rng.choice([[], [f"TRELLIS_SHARES=random:{rng.randrange(1000)}"]])
    return [
        *helping, *shares, f"ranks={rng.choice([2, 2, 3, 4, 8])}",
        f"run.passes.overlap={rng.choice(['true', 'true', 'false'])}",
        f"run.passes.shared={rng.choice(['true', 'false'])}", f"run.threads={rng.choice([1, 1, 2])}",
        owners(rng), *in_passes(rng, [1, 1, 3])
    ]


def from_the_middle(rng, text, patches):
    """A run that ends in the middle, and another one that goes on, where there is a middle; methods of several steps
    begin anew at a checkpoint."""
    steps = re.search(r"^time: .*steps: (\d+)", text, re.MULTILINE)
    if not steps or int(steps[1]) < 2 or any(f"name: {name}," in text for name in random_decks.MULTISTEP):
        return []
    how = ["run.scheduler=serial", "run.scheduler=priority", "run.threads={tasks: 1, operators: 1}",
           "run.threads={tasks: 0, operators: 2}"]
    return [[f"middle={rng.randrange(1, int(steps[1]))}", "run.compile=never", rng.choice(how), patches]]


def behind_one_another(rng, dim):
    """Ranks along the last axis, and beside one another, too, which take several steps in a pass."""
    beside, ranks = rng.choice([1, 1, 2]), rng.choice([2, 2, 3])
    return [f"ranks={beside * ranks}", f"grid.patches={[1] * (dim - 2) + [beside, ranks]}", *in_passes(rng, [2, 3, 5]),
            f"run.passes.shared={rng.choice(['true', 'true', 'false'])}", owners(rng), "run.compile=never"]


def ways_of(rng, number, dim, text, options):
    """The reference, then ways that are compared with it, the last ones chosen for where tasks are done. In the quick
    form half of the decks are compiled: of eight in a row one of each kind."""
    if options.gpus:
        return ways_on_gpus(rng, dim, options.gpus)
    patches = f"grid.patches={[rng.choice([1, 2]) for _ in range(dim)]}"
    ways = [
        ["run.fusion=none", "run.compile=never", "run.threads=1", "run.devices=cpu"],
        ["run.fusion=full", "run.compile=never", "run.threads=2", "run.balance=1e-6"],
        ["run.fusion=node", "run.compile=never", patches],
        [
            rng.choice(["run.fusion=full", "run.fusion=full", "run.fusion=node"]), "run.compile=always",
            rng.choice([patches, "run.threads=2", "run.threads=auto"]),
            rng.choice(["run.balance=1", "run.balance=1e6"]),
            f"run.passes.{rng.choice(['hoisting', 'carrying', 'pairs', 'ghosts', 'sharing', 'groups', 'slots'])}="
            f"{rng.choice(['true', 'true', 'false'])}"
        ]
    ]
    if dim > 1:
        ways.append(["run.fusion=full", "run.compile=never", patches, *in_passes(rng, [2, 3, 5])])
    if rng.random() < options.ranks:
        compiled = f"run.compile={'never' if options.quick else rng.choice(['never', 'always'])}"
        ways.append([compiled, *on_ranks(rng)])
    if options.quick and (number + number // 4) % 2:
        del ways[3]
    ways += from_the_middle(rng, text, patches)
    if rng.random() < 0.1 and not options.quick:  # costly: each formula is a kernel
        ways.append(["run.fusion=none", "run.compile=always"])
    more = [[], [patches], ["run.fusion=node"], ["ranks=2"], ["ranks=2", patches, owners(rng)]]
    elsewhere = [["run.compile=never", *rng.choice(more)] for _ in range(options.placed)]
    for way in ways[1:] + elsewhere:
        if rng.random() < 0.3:
            way.append(f"included={rng.randrange(1000)}")
        way.append(f"output.compression={rng.choice(['off', 1, 9])}")
        if way in elsewhere or rng.random() < 0.5:
            way += placements.choose(rng)
    if options.placed_only:
        return ways[:1] + elsewhere
    if dim > 1 and int(re.search(r"cells: \[[^\]]*?(\d+)\]", text)[1]) >= 64:  # devices take one step at a time
        ways += [behind_one_another(rng, dim) for _ in range(2)]
    return ways + elsewhere


def without_counts(table):
    """A series without iterations of solvers and rejected steps, which are those of the run that wrote a row: one that
    goes on from a checkpoint begins to count."""
    rows = list(csv.reader(table.splitlines()))
    kept = [i for i, name in enumerate(rows[0]) if not name.endswith(":iterations") and name != "rejected"]
    return [[row[i] for i in kept] for row in rows]


def bits(found, restarts):
    """What must be the same in all ways. restarts: one of them goes on from a checkpoint."""
    if not isinstance(found, dict):
        return found
    return {
        **{name: repr(field) for name, field in found["fields"].items()}, "errors": repr(found["errors"]),
        "series": [without_counts(table) if restarts else table for table in found["series"]],
        "receivers": found["receivers"]
    }


def unlike(found, solution):
    """What to say of a field whose values are not the solution's."""
    for name, (value, near) in (solution or {}).items() if isinstance(found, dict) else ():
        least, most = found["fields"][name]["min"], found["fields"][name]["max"]
        if not max(abs(least - value), abs(most - value)) < near:
            return f"{name} lies between {least} and {most}, and should be {value} but for {near}"
    return ""


def compare(options, number):
    """One deck in all ways, in a folder of its own, which is left behind if they differ. What was counted, and what to
    say."""
    rng = random.Random(options.seed * 1000003 + number)
    text, dim, formulas, solution = deck_of(rng, number)
    folder = pathlib.Path(f"deck{number}").resolve()
    folder.mkdir(exist_ok=True)
    deck = folder / "deck.yaml"
    text = write_files(options.trellis, rng, text, dim, folder)
    deck.write_text(text, encoding="utf-8")
    ways = ways_of(rng, number, dim, text, options)
    results = [run(options, deck, folder, ways[0], "first")]
    wrong = unlike(results[0][0], solution)
    for settings in ways[1:]:
        results.append(run(options, deck, folder, settings, "out"))
        included = any(s.startswith("included=") for s in settings)  # files then have fields in another order
        if not included and isinstance(results[-1][0], dict) and isinstance(results[0][0], dict):
            wrong = wrong or differing_file(folder)
    passes = any(isinstance(found, dict) and found["passes"] for found, _ in results)
    helped = sum(found["helped"] for found, _ in results if isinstance(found, dict))
    restarts = any(setting.startswith("middle=") for way in ways for setting in way)
    results = [(bits(found, restarts), said) for found, said in results]
    first, message = results[0]
    count = collections.Counter(evaluations=formulas * len(ways), passes=int(passes), helped=helped)
    for settings, (other, said) in zip(ways[1:], results[1:]):
        if other == 2 and first != 2 and "patch" in said:  # they are too thin for this one
            continue
        if other == 2 and "did not end in time" in said:  # a compiler on a busy machine
            count["slow"] += 1
            continue
        if other != first or other not in (2, 3) and not isinstance(other, dict):
            count["different"] += 1
            return count, (f"{deck} (seed {options.seed}): {settings} gives\n{other} {said}\n"
                           f"and {ways[0]} gives\n{first} {message}\n")
    if wrong:
        count["different"] += 1
        return count, f"{deck} (seed {options.seed}): {wrong}\n"
    if first == 2:
        other = refusals.unexpected(message)
        count["refused"] += not other
        if other:
            count["different"] += 1
            return count, f"{deck} (seed {options.seed}): refused, unexpectedly: {message}\n"
        return count, f"refused, deck {number}: {message}"
    shutil.rmtree(folder)
    if first == 3:
        count["not finite"] += 1
    else:
        count.update({"formulas": formulas, "same": 1})
    return count, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    long = "TRL_TEST_LONG" in os.environ
    parser.add_argument("--ranks", type=float, default=0.3, help="how often there is a way on several ranks")
    parser.add_argument("--decks", type=int, default=72 if long else 7, help="how many")
    parser.add_argument("--placed", type=int, default=3 if long else 1, help="how many more ways on mock devices")
    parser.add_argument("--placed-only", action="store_true", help="leave out the others")
    parser.add_argument("--gpus", type=int, default=0, help="ways on GPUs, in place of all others")
    parser.add_argument("--first", type=int, default=0 if long else 6,
                        help="number of the first deck: a long run can be cut in parts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="how many decks at a time")
    parser.add_argument("--trellis", default=os.environ.get("TRELLIS", "trellis"))
    parser.add_argument("--quick", action="store_true", default=not long, help="compile kernels without optimisation")
    options = parser.parse_args()
    if options.quick:
        os.environ["TRELLIS_CC"] = str(pathlib.Path(__file__).resolve().parents[1] / "quick_cc.sh")
    count = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for counted, said in pool.map(lambda number: compare(options, number),
                                      range(options.first, options.first + options.decks)):
            count.update(counted)
            print(said, end="", flush=True)
    print(
        f"decks {options.first} to {options.first + options.decks - 1} of seed {options.seed}: "
        f"the same bits in {count['same']} with {count['formulas']} formulas, "
        f"{count['evaluations']} evaluations of formulas; different {count['different']}, "
        f"in passes on ranks {count['passes']}, points computed for other ranks {count['helped']}, "
        f"refused {count['refused']}, "
        f"not finite {count['not finite']}, compilers too slow for {count['slow']}")
    if count["different"] or count["same"] < 0.6 * options.decks:
        sys.exit("different bits, or too few of the decks ran")
    if count["passes"] < options.decks // 8 and not options.gpus and not options.placed_only:
        sys.exit("too few of the decks took several steps in a pass on ranks")


if __name__ == "__main__":
    main()

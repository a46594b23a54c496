#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=900
"""Random decks in every way of evaluation that must give the same bits: degrees of fusion, interpreted and compiled, patches, threads."""
import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys

import random_decks


def run(options, deck, folder, settings):
    """Hashes of all fields, or the way the run ended. NaNs are free in sign and payload: a field that holds one has no hash."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [options.trellis, "run", str(deck), "--quiet", "--report", str(report), "--set", f"output.directory={folder}"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode == 0:
        fields = json.loads(report.read_text(encoding="utf-8"))["fields"]
        return {name: field["hash"] if isinstance(field["sum"], float) else None for name, field in fields.items()}, ""
    return done.returncode, done.stderr


def ways_of(rng, dim):
    """The reference, then ways that are compared with it."""
    patches = f"grid.patches={[rng.choice([1, 2]) for _ in range(dim)]}"
    ways = [["run.fusion=none", "run.compile=never", "run.threads=1"],
            ["run.fusion=full", "run.compile=never", "run.threads=2", "run.balance=1e-6"],
            ["run.fusion=node", "run.compile=never", patches],
            ["run.fusion=full", "run.compile=always", rng.choice([patches, "run.threads=2"]),
             rng.choice(["run.balance=1", "run.balance=1e6"]),
             f"run.passes.{rng.choice(['hoisting', 'carrying', 'pairs', 'ghosts', 'sharing', 'groups', 'slots'])}={rng.choice(['true', 'true', 'false'])}"]]
    if dim > 1:
        ways.append(["run.fusion=full", "run.compile=never", patches, f"run.time_blocking={rng.choice([2, 3, 5])}"])
    if rng.random() < 0.1:  # costly: each formula is a kernel
        ways.append([f"run.fusion={rng.choice(['node', 'none'])}", "run.compile=always"])
    return ways


def compare(options, number, count):
    """One deck in all ways; what to say if they differ."""
    rng = random.Random(options.seed * 1000003 + number)
    text, dim, formulas = random_decks.write(rng)
    deck = pathlib.Path(f"deck{number}.yaml").resolve()
    deck.write_text(text, encoding="utf-8")
    ways = ways_of(rng, dim)
    results = [run(options, deck, pathlib.Path("out").resolve(), settings) for settings in ways]
    first, message = results[0]
    count["evaluations"] += formulas * len(ways)
    for settings, (other, said) in zip(ways[1:], results[1:]):
        if other == 2 and first != 2 and "patch" in said:  # they are too thin for this one
            continue
        if other == 2 and "did not end in time" in said:  # a compiler on a busy machine
            count["slow"] += 1
            continue
        if other != first or other not in (2, 3) and not isinstance(other, dict):
            count["different"] += 1
            print(f"{deck} (seed {options.seed}): {settings} gives\n{other} {said}\nand {ways[0]} gives\n{first} {message}", flush=True)
            return
    if first == 2:
        count["refused"] += 1
        print(f"refused, deck {number}: {message}", end="", flush=True)
    elif first == 3:
        count["not finite"] += 1
    else:
        count["formulas"] += formulas
        count["same"] += 1
    if first != 2:
        deck.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decks", type=int, default=5, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first deck: a long run can be cut in parts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trellis", default=os.environ.get("TRELLIS", "trellis"))
    options = parser.parse_args()
    count = collections.Counter()
    for number in range(options.first, options.first + options.decks):
        compare(options, number, count)
    print(f"decks {options.first} to {options.first + options.decks - 1}: the same bits in {count['same']} with {count['formulas']} formulas, "
          f"{count['evaluations']} evaluations of formulas; different {count['different']}, refused {count['refused']}, "
          f"not finite {count['not finite']}, compilers too slow for {count['slow']}")
    if count["different"] or count["same"] < 0.6 * options.decks:
        sys.exit("different bits, or too few of the decks ran")


if __name__ == "__main__":
    main()

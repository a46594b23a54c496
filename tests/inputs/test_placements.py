#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=7200
"""Every deck under random placements on 1, 2 and 4 mock devices, on 1 and 2 ranks, in one patch and in several, gives
the bits of the CPU: fields, errors, series, receivers and output."""
import argparse
import collections
import hashlib
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import all_decks
import placements

STEPS, LONG_STEPS = 20, 40  # a random placement is that of two steps
SHORT = 3  # the short form runs one deck in so many
MOST_DIFFERENT = 3  # of a deck, then the next one has its turn


def configurations(rng, long):
    """Without end: numbers of devices and ranks, whether there are several patches, and a rule of placement; each
    combination in turn, one time in four with a random rule. Launches of two ranks are slow: fewer, if not long."""
    every = [(devices, ranks, cut) for devices in (1, 2, 4) for ranks in ((1, 2) if long else (1, 1, 1, 2))
             for cut in (False, True)]
    while True:
        for number, (devices, ranks, cut) in enumerate(rng.sample(every, len(every))):
            yield devices, ranks, cut, placements.placement(rng) if number % 4 == 3 else placements.at_random(rng)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def results(report, output):
    """What must be the same wherever tasks are done."""
    found = {name: field["hash"] for name, field in report["fields"].items()}
    return {**found, "errors": report["errors"], "steps": report["steps"], "time": report["time"],
            "series": digest(output / "series.csv"), "receivers": digest(output / "receivers.nc"),
            "files": sorted(path.name for path in (output / "fields").glob("*.nc"))}


def differing_files(rng, first, other):
    """What HDF5's own program says of two of the files of fields."""
    names = sorted(path.name for path in (first / "fields").glob("*.nc"))
    for name in rng.sample(names, min(2, len(names))) if shutil.which("h5diff") else ():
        done = subprocess.run(["h5diff", str(first / "fields" / name), str(other / "fields" / name)],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{name}: {done.stdout[-400:]}{done.stderr}"
    return ""


class Deck:
    """A deck, and what its runs on the CPU gave."""

    def __init__(self, path, arguments, folder, seed, long):
        self.path, self.arguments, self.folder, self.long = path, arguments, folder, long
        self.rng = random.Random(f"{seed} {path.stem}")
        self.configurations = configurations(self.rng, long)
        self.count = collections.Counter()
        self.seen = set()  # numbers of devices and ranks, of random placements
        folder.mkdir(parents=True, exist_ok=True)
        report, failed = all_decks.run(path, arguments, folder / "cpu",
                                       settings=["run.devices=cpu", "run.compile=never", "run.threads=2"])
        if failed:
            sys.exit(failed)
        self.wanted, self.dim = results(report, folder / "cpu"), len(report["grid"]["cells"])

    def is_done(self, placements):
        """Whether there were so many random placements, or one run, and, if long, all numbers of devices and ranks."""
        if not self.long:
            return self.count["runs"] >= 1
        return self.count["random placements"] >= placements and len(self.seen) == 6

    def compare(self):
        """Run once, somewhere: what is wrong, or nothing."""
        devices, ranks, cut, rule = next(self.configurations)
        chosen = placements.choose(self.rng, devices, rule)
        settings = [word for word in chosen if not word.startswith("TRL_")] + ["run.threads=2"]
        settings.append(f"run.compile={'always' if self.long and self.rng.random() < 0.1 else 'never'}")
        if cut:
            settings += [f"grid.patches={[self.rng.randint(1, 3) for _ in range(self.dim)]}",
                         f"run.owners=random:{self.rng.randrange(1000)}"]
        output = self.folder / "placed"
        shutil.rmtree(output, ignore_errors=True)
        report, failed = all_decks.run(self.path, self.arguments, output, ranks, placements.environment(chosen),
                                       settings)
        if failed and cut and "patch" in failed.partition(" ends with 2: ")[2]:  # they are too thin for this deck
            self.count["too thin"] += 1
            return ""
        self.count["runs"] += 1
        if failed:
            return failed
        copies = sum(n for name, n in report["device_transfers"].items() if name.endswith("copies"))
        if rule.startswith("random"):
            self.count["random placements"] += (report["steps_run"] + 1) // 2
            self.seen.add((devices, ranks))
        self.count["copies"] += copies
        self.count["runs that copied"] += copies > 0
        found = results(report, output)
        wrong = [name for name, value in self.wanted.items() if found[name] != value]
        said = f"differ: {', '.join(wrong)}" if wrong else differing_files(self.rng, self.folder / "cpu", output)
        return said and f"{' '.join(chosen)}; {ranks} ranks, {' '.join(settings)}: {said}"


def compare_turns(outputs, seeds):
    """What is wrong, of each seed, where data at cells and at faces takes turns in the same memory, the rims of patches
    go to a neighbour and another rank, and placements change every two steps."""
    ((path, arguments),) = all_decks.decks(outputs, ["heat_operators"], STEPS)
    settings = ["run.fusion=node", "run.compile=never", "grid.patches=[1, 4]", "run.threads={tasks: 1, operators: 1}"]
    wanted, failed = all_decks.run(path, arguments, outputs / "turns", settings=["run.devices=cpu", *settings])
    for seed in seeds:
        found = None
        if not failed:
            found, failed = all_decks.run(path, arguments, outputs / "turns", 2, {"TRL_MOCK_DEVICES": "2"},
                                          [*settings, f"run.placement=random:{seed}"])
        if failed:
            sys.exit(failed)
        wrong = [name for name, field in wanted["fields"].items() if found["fields"][name]["hash"] != field["hash"]]
        if wrong:
            yield f"data in the same memory, run.placement=random:{seed}: differ: {', '.join(wrong)}"


# A bound of dt that reads what a modifier sets.
HELD = """trellis: 1
plugins: [side_values]
grid: {cells: [16, 12], periodic: [true, false]}
expressions: {wall: {type: held, inputs: {input: a}}}
equations:
  a: {initial: "1 + x", ddt: "laplacian(a)", boundary: {y-: {neumann: 0}, y+: {neumann: 0}}}
  b: {initial: 1, ddt: "0.1*laplacian(b)", boundary: {y-: {neumann: 0}, y+: {expression: wall}}}
time: {method: ssprk2, dt: {cfl: 0.4, speed: "2 + norm(cddy(b))", diffusivity: 1, max: 0.05}, steps: 3}
"""


def compare_modifier(outputs):
    """What is wrong where dt follows from what a modifier sets."""
    outputs.mkdir(parents=True, exist_ok=True)
    path = outputs / "held.yaml"
    path.write_text(HELD, encoding="utf-8")
    plugins = ["--plugin-path", str(pathlib.Path(os.environ["TRELLIS_BUILD"]) / "test_plugins")]
    settings = ["run.compile=never", "grid.patches=[1, 2]"]
    wanted, failed = all_decks.run(path, plugins, outputs / "held", settings=["run.devices=cpu", *settings])
    found, failed = (None, failed) if failed else all_decks.run(
        path, plugins, outputs / "held", 1, {"TRL_MOCK_DEVICES": "2"}, [*settings, "run.placement=random:1"])
    if failed:
        sys.exit(failed)
    return [f"{name} differs where a modifier is read" for name, field in wanted["fields"].items()
            if found["fields"][name]["hash"] != field["hash"]]


def main():
    """Compare all decks, or those that are named, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    long = "TRL_TEST_LONG" in os.environ
    parser.add_argument("--placements", type=int, default=200 if long else 1, help="random ones of each deck")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default="placements", help="folder of all output")
    parser.add_argument("deck", nargs="*", help="names of decks; all, if there are none")
    options = parser.parse_args()
    outputs, start = pathlib.Path(options.output).absolute(), time.monotonic()
    total = collections.Counter()
    long = options.placements > 1
    for number, (path, arguments) in enumerate(all_decks.decks(outputs, options.deck, LONG_STEPS if long else STEPS)):
        if number % SHORT and not long and not options.deck:  # the tests of all decks have one random placement, too
            continue
        deck = Deck(path, arguments, outputs / path.stem, options.seed, long)
        while not deck.is_done(options.placements) and deck.count["that differ"] < MOST_DIFFERENT:
            said = deck.compare()
            if said:
                print(f"{path.stem}: {said}", flush=True)
                deck.count["that differ"] += 1
        print(f"{path.stem:22} {', '.join(f'{n} {name}' for name, n in sorted(deck.count.items()))}", flush=True)
        total += deck.count
    for said in () if options.deck else compare_turns(outputs, range(50) if long else (1, 3, 4, 5, 8)):
        print(said, flush=True)
        total["that differ"] += 1
    for said in () if options.deck else compare_modifier(outputs):
        print(said, flush=True)
        total["that differ"] += 1
    print(f"{', '.join(f'{n} {name}' for name, n in sorted(total.items()))}; {time.monotonic() - start:.0f} s")
    if total["that differ"] or total["runs that copied"] < 0.7 * total["runs"]:
        sys.exit("results differ, or too few of the runs used devices")


main()

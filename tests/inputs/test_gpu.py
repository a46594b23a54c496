#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=900 labels=gpu
"""Every deck gives the same bits on GPUs as on the CPU, with all that GPUs may do on them, with tasks dealt at random,
and cut into patches, which several GPUs share. The short form takes few steps on small grids, and fewer ways. A run
sees no more GPUs than it needs, since each takes a part of a second to open; runs beside one another have others."""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import sys

import all_decks

SKIPPED = 77
CORES = len(os.sched_getaffinity(0))
JOBS = max(1, min(8, CORES // 2))  # decks at once
LONG = "TRL_TEST_LONG" in os.environ
STEPS = None if LONG else 20  # None: as many as the deck's test takes
PATCHES = {  # of decks whose stencils fit into them
    "heat_3d": "[2,1,2]",
    "gray_scott": "[2,2]",
    "burgers_2d": "[2,2]",
    "wave": "[2,1]",
    "cylinder": "[1,2]",
    "transport": "[2,1,2]",
    "maxwell": "[2,1,1]"
}


def ways_of(deck, fields):
    """Where tasks are done, and on which patches: settings of a run. One GPU gets four steps
    together. Statistics of fields that are not written are made by GPUs."""
    placements = ("devices", "random:1", "random:2") if LONG else ("devices", "random:1")
    ways = [[f"run.placement={placement}"] for placement in placements]
    ways[0].append(f"output.fields=[{fields[0]}]")
    if deck.stem in PATCHES:
        patches = f"grid.patches={PATCHES[deck.stem]}"
        ways.append(["run.placement=devices", patches])
        if LONG:
            ways.append(["run.placement=random:3", patches])
    return ways


def differences(wanted, found, some):
    """What two runs say differently of values: statistics and hashes of fields, errors, extremes that were printed,
    series, receivers. some: not all fields are written, and those that are no equations are missing."""
    names = [name for name in wanted["fields"] if not some or name in found["fields"]]
    for name in names:
        for key, value in wanted["fields"][name].items():
            if repr(found["fields"][name][key]) != repr(value):  # a NaN is like another
                yield f"{key} of {name}: {found['fields'][name][key]} instead of {value}"
        if repr(found["errors"].get(name)) != repr(wanted["errors"].get(name)):
            yield f"errors of {name}: {found['errors'].get(name)} instead of {wanted['errors'].get(name)}"
    for key in ("printed", "series.csv", "receivers.nc"):
        if repr(found[key]) != repr(wanted[key]):
            yield f"{key}: {str(found[key])[:300]} instead of {str(wanted[key])[:300]}"


def compare(deck, arguments, outputs, turns, count):
    """What differs, as lines of text, and the tasks of a step by executor."""
    folder = outputs / deck.stem
    folder.mkdir(parents=True, exist_ok=True)
    threads = f"run.threads={max(1, CORES // JOBS)}"
    wanted, failed = all_decks.run(deck, arguments, folder / "cpu", settings=["run.devices=cpu", threads])
    if failed:
        return [failed], None
    if not wanted["printed"]:
        return ["no extremes were printed"], None
    differing, tasks = [], None
    for way in ways_of(deck, list(wanted["fields"])):
        seen = {**all_decks.visible(next(turns), 2 if "grid.patches" in str(way) else 1, count),
                "TRELLIS_GPU_CHAIN": "4"}
        found, failed = all_decks.run(deck, arguments, folder / "gpu", environment=seen,
                                      settings=["run.devices=gpu", threads, *way])
        if failed:
            differing.append(failed)
            continue
        tasks = tasks or found.get("placement", {}).get("tasks")
        differing += [f"{' '.join(way)}: {text}" for text in differences(wanted, found, "output.fields" in str(way))]
    return differing, tasks


def main():
    """Compare all decks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="gpu", help="folder of all output")
    parser.add_argument("deck", nargs="*", help="names of decks; all, if there are none")
    options = parser.parse_args()
    count, turns = all_decks.count_gpus(), itertools.count()
    if count == 0:
        print("there is no GPU")
        sys.exit(1 if os.environ.get("TRL_REQUIRE_GPU") == "1" else SKIPPED)
    outputs, bad = pathlib.Path(options.output).absolute(), 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        decks = list(all_decks.decks(outputs, options.deck, STEPS))
        for (deck, _), found in zip(decks, pool.map(lambda each: compare(*each, outputs, turns, count), decks)):
            differing, tasks = found
            bad += bool(differing)
            print(f"{deck.stem:22} tasks of a step, by executor: {tasks}", "DIFFERS" if differing else "", flush=True)
            for text in differing:
                print("   ", text, flush=True)
    print(f"{bad} decks differ")
    sys.exit(bad > 0)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=7200
"""Devices that fail: at each call, copy and allocation, before and in a run. With `devices: auto` the CPU carries on,
with the same bits and a warning, unless values are lost with a device; then, and with devices that were asked for, the
run ends with exit code 3 and says why. It never hangs. ctest takes a few places of a few cases by chance, with
TRL_TEST_LONG places of all cases, up to the last;

    TRELLIS=build/release/trellis python3 tests/inputs/test_faults.py --every --only heat_3d

takes all places, a few hundred in each case."""
import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

DECKS = pathlib.Path(__file__).resolve().parents[2] / "inputs" / "decks"
TRELLIS = str(pathlib.Path(os.environ["TRELLIS"]).resolve())
MPI = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n"]
COMMON = ["output.directory=out", "run.compile=never", "run.threads=2"]
STEPS = {  # with a fixed dt and with one that follows the solution, series, fields and checkpoints
    "heat_3d": ["grid.cells=[8,6,6]", "grid.patches=[2,1,1]", "time.steps=3", "output.series.every={steps: 1}"],
    "gray_scott": ["grid.cells=[12,10]", "grid.patches=[2,2]", "time.steps=4", "output.every={steps: 2}",
                   "output.series.every={steps: 1}"],
    "burgers_2d": ["grid.cells=[10,10]", "grid.patches=[1,2]", "time.steps=3", "output.every={steps: 1}",
                   "output.checkpoint={every: {steps: 1}}"],
    "porous_medium": ["grid.cells=[10,8]", "grid.patches=[2,1]", "time.steps=4"],
}
FAULTS = {"call": 12, "copy": 40, "lost": 50, "memory": 14}  # of how many places the short test chooses
MOCKS = {"one": "1:{}", "one of two": "1;1:{}", "both": "2:{}"}
MOST_PLACES = 5000
# Places one after the other that no run meets are behind the last; the first allocations are for measurements.
MISSED = {"call": 0, "copy": 0, "lost": 0, "memory": 4}
SECONDS = 120

Case = collections.namedtuple("Case", "deck ranks mocks placement devices")


def all_cases(decks):
    """Those that carry on, and those that were asked for the devices."""
    for deck, ranks, mocks in itertools.product(decks, (1, 2), MOCKS):
        for placement in ("random:1", "devices", "auto"):
            yield Case(deck, ranks, mocks, placement, "auto")
        yield Case(deck, ranks, mocks, "devices", "gpu")
        yield Case(deck, ranks, mocks, "random:1", "[0, 1]" if "1;" in MOCKS[mocks] or "2" in MOCKS[mocks] else "[0]")


def run(case, mocks):
    """A run of a case in a folder of its own: its exit code, what it says, and its results."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "TRL_MOCK_DEVICES": mocks, "TRL_PLACEMENT": case.placement}
    command = [*([*MPI, str(case.ranks)] if case.ranks > 1 else []), TRELLIS, "run", str(DECKS / f"{case.deck}.yaml"),
               "--quiet", "--report", "report.json"]
    for setting in [*COMMON, *STEPS[case.deck], f"run.devices={case.devices}"]:
        command += ["--set", setting]
    with tempfile.TemporaryDirectory() as folder:
        # Open MPI's folder is not that of another run, which may make or remove it at this moment.
        environment["TMPDIR"] = environment["OMPI_MCA_orte_tmpdir_base"] = folder
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder,
                              timeout=SECONDS)
        if done.returncode:
            return done.returncode, done.stderr, None
        report = json.loads(pathlib.Path(folder, "report.json").read_text(encoding="utf-8"))
        series = pathlib.Path(folder, "out", "series.csv")
        rows = series.read_text(encoding="utf-8") if series.exists() else ""
        return 0, done.stderr, ({name: field["hash"] for name, field in report["fields"].items()}, rows)


def judge(case, mocks, expected):
    """How a run met its fault: carried on, no fault, lost, refused; ends the test if it did not as it should."""
    code, said, results = run(case, mocks)
    label = f"{case}, {mocks}"
    if code == 0:
        if results != expected:
            sys.exit(f"{label}: other results\n{said}")
        met = any(word in said for word in ("without it", "without a device", "fail="))
        if met and case.devices != "auto":
            sys.exit(f"{label}: went on without a device that was asked for\n{said}")
        if any(line.strip() and "warning: " not in line for line in said.splitlines()):
            sys.exit(f"{label}: a run that succeeds says\n{said}")
        return "carried on" if met else "no fault"
    if code != 3:
        sys.exit(f"{label}: exit code {code}\n{said}")
    if case.devices == "auto":
        if "lost with the device" not in said or "checkpoint" not in said:
            sys.exit(f"{label}: failed, but lost nothing\n{said}")
        return "lost"
    if "mock device" not in said and "has no memory" not in said:
        sys.exit(f"{label}: does not name the device\n{said}")
    return "refused"


def fail_in_turn(case, every, expected):
    """Counts of how faults up to the last place were met: at all places, or with gaps that grow."""
    counts = collections.Counter()
    rng = random.Random(str(case))
    for fault in FAULTS:
        place = missed = 0
        while missed <= MISSED[fault]:
            place += 1 if every or missed else rng.randint(1, 1 + 4 * place)
            if place > MOST_PLACES:
                sys.exit(f"{case}, {fault}: faults without end")
            met = judge(case, MOCKS[case.mocks].format(f"fail={fault}@{place}"), expected[case.deck])
            counts[fault, met] += 1
            missed = missed + 1 if met == "no fault" else 0
    return counts


def fail_somewhere(cases, number, expected):
    """The same for places of cases by chance."""
    rng = random.Random(1)
    counts = collections.Counter()
    jobs = []
    ranks = Case("gray_scott", 2, "one", "devices", "auto")  # both run again without it, and wait for each other
    if ranks in cases:
        jobs += [("call", ranks, MOCKS["one"].format("fail=call@2"))] * 2
    ghosts = Case("porous_medium", 1, "both", "devices", "auto")  # the step finds those that what bounds dt brought
    if ghosts in cases:
        jobs += [("call", ghosts, MOCKS["both"].format(f"fail=call@{place}")) for place in (18, 21, 28)]
    for i in range(number):
        case, fault = rng.choice(cases), list(FAULTS)[i % len(FAULTS)]
        place = rng.randint(1, FAULTS[fault])
        jobs.append((fault, case, MOCKS[case.mocks].format(f"fail={fault}@{place}")))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        met = pool.map(lambda job: judge(job[1], job[2], expected[job[1].deck]), jobs)
        counts.update(zip((job[0] for job in jobs), met))
    return counts


def main():
    """Run what is asked for, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", action="store_true", help="all places of all cases")
    parser.add_argument("--long", action="store_true", default="TRL_TEST_LONG" in os.environ, help="all cases")
    parser.add_argument("--only", choices=STEPS, help="a deck")
    parser.add_argument("--jobs", type=int, default=2, help="how many runs at a time")
    options = parser.parse_args()
    decks = [options.only] if options.only else list(STEPS)
    expected = {}
    for deck in decks:
        code, said, expected[deck] = run(Case(deck, 1, "one", "auto", "cpu"), "0")
        if code:
            sys.exit(said)
    cases = list(all_cases(decks))
    counts = collections.Counter()
    if options.every or options.long:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            counted_cases = pool.map(lambda case: fail_in_turn(case, options.every, expected), cases)
            for case, counted in zip(cases, counted_cases):
                counts.update(counted)
                ways = collections.Counter()
                for (_, met), count in counted.items():
                    ways[met] += count
                print(*case, sep=", ", end=f": {dict(sorted(ways.items()))}\n", flush=True)
    else:
        counts = fail_somewhere(cases, 16, expected)
    for (fault, met), count in sorted(counts.items()):
        print(f"{fault}, {met}: {count}")
    missing = {"carried on", "refused"} - {met for _, met in counts}
    if missing:
        sys.exit(f"no fault was met in one of these ways: {missing}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=900 labels=gpu
"""Every deck gives the same bits on GPUs as on the CPU, with all that GPUs may do on them, and with tasks dealt at
random."""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

TRELLIS = os.environ.get("TRELLIS", "trellis")
ROOT = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2]))
SKIPPED = 77


def count_gpus():
    """How many GPUs the command finds."""
    told = subprocess.run([TRELLIS, "info"], capture_output=True, text=True, check=True).stdout
    return len(re.findall(r"^GPU \d+ ", told, re.MULTILINE))


def arguments_of(deck, outputs):
    """The arguments of a deck's test, or None: it has none."""
    found = re.search(r"^# ctest:(.*)$", deck.read_text(encoding="utf-8"), re.MULTILINE)
    if not found or found[1].strip().startswith("none"):
        return None
    keys = dict(word.split("=", 1) for word in shlex.split(found[1]))
    after = outputs / "after" / keys["after"] if "after" in keys else None
    if after:
        after.parent.mkdir(parents=True, exist_ok=True)
        _, failed = run(deck.with_stem(keys["after"]), [], "cpu", None, after)
        if failed:
            sys.exit(failed)
    return shlex.split(keys.get("args", "").replace("{after}", str(after)))


def run(deck, arguments, devices, placement, output):
    """The report of a run."""
    report = output.with_suffix(".json")
    command = [
        TRELLIS, "run",
        str(deck), "--quiet", "--report",
        str(report), *arguments, "--set", f"output.directory={output}", "--set", f"run.devices={devices}"
    ]
    environment = {**os.environ, **({"TRL_PLACEMENT": placement} if placement else {})}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        return None, f"{placement or devices}: {done.stderr[-2000:]}"
    return json.loads(report.read_text(encoding="utf-8")), ""


def compare(deck, arguments, outputs):
    """What differs, as lines of text, and the tasks of a step by executor."""
    folder = outputs / deck.stem
    folder.mkdir(parents=True, exist_ok=True)
    wanted, failed = run(deck, arguments, "cpu", None, folder / "cpu")
    if failed:
        return [failed], None
    differing, tasks = [], None
    for placement in ("devices", "random:1", "random:2"):
        found, failed = run(deck, arguments, "gpu", placement, folder / "gpu")
        if failed:
            differing.append(failed)
            continue
        tasks = tasks or found.get("placement", {}).get("tasks")
        differing += [
            f"{placement}: {name}" for name, field in wanted["fields"].items()
            if found["fields"][name]["hash"] != field["hash"]
        ]
        differing += [f"{placement}: errors"] if found["errors"] != wanted["errors"] else []
    return differing, tasks


def main():
    """Compare all decks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="gpu", help="folder of all output")
    parser.add_argument("deck", nargs="*", help="names of decks; all, if there are none")
    options = parser.parse_args()
    if count_gpus() == 0:
        print("there is no GPU")
        sys.exit(1 if os.environ.get("TRL_REQUIRE_GPU") == "1" else SKIPPED)
    outputs, bad = pathlib.Path(options.output).absolute(), 0
    for deck in sorted((ROOT / "inputs/decks").glob("*.yaml")):
        arguments = arguments_of(deck, outputs)
        if arguments is None or (options.deck and deck.stem not in options.deck):
            continue
        differing, tasks = compare(deck, arguments, outputs)
        bad += bool(differing)
        print(f"{deck.stem:22} tasks of a step, by executor: {tasks}", "DIFFERS" if differing else "", flush=True)
        for text in differing:
            print("   ", text, flush=True)
    print(f"{bad} decks differ")
    sys.exit(bad > 0)


main()

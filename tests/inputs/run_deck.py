# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Runs of a deck whose hashes and series a test compares."""
import csv
import json
import os
import pathlib
import subprocess
import sys

TRELLIS = os.environ.get("TRELLIS", "trellis")


def run(deck, settings=(), ranks=1, more=()):
    """The hashes of the fields, the rows of the series, and what the run said."""
    pathlib.Path("deck.yaml").write_text(deck, encoding="utf-8")
    launch = [] if ranks == 1 else ["mpirun", "-n", str(ranks)]
    command = [*launch, TRELLIS, "run", "deck.yaml", "--quiet", "--report", "report.json", *more]
    for setting in ("output.directory=out", *settings):
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    report = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))
    with open("out/series.csv", encoding="utf-8") as series:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(series)]
    return {name: field["hash"] for name, field in report["fields"].items()}, rows, done.stderr

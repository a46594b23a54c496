#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Run one deck in every way that must give the same bits, and check its errors against the exact solution."""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys


def variants(ranks):
    """Name, rank count and arguments of each run; the first is the reference."""
    for np in ranks:
        yield f"np={np}", np, []
    for threads, scheduler in ((1, "serial"), (1, "priority"), (2, "priority")):
        settings = [f"run.threads={threads}", f"run.scheduler={scheduler}"]
        yield " ".join(settings), ranks[0], [word for setting in settings for word in ("--set", setting)]


def run(options, number, np, arguments):
    """Run the deck once and return its report; leave with a message if it did not end well."""
    folder = pathlib.Path(f"run{number}").resolve()
    report = folder / "report.json"
    command = shlex.split(options.mpirun) + ["-n", str(np)] if np > 1 else []
    command += [options.trellis, "run", options.deck, "--set", f"output.directory={folder}", "--report", str(report)]
    command += shlex.split(options.args) + arguments
    print("+", shlex.join(command), flush=True)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}")
    with open(report, encoding="utf-8") as file:
        result = json.load(file)
    if result["status"] != "done":
        sys.exit(f"status '{result['status']}' in {report}, expected 'done'")
    if result["ranks"] != np:
        sys.exit(f"ran on {result['ranks']} ranks, expected {np}: does the launcher belong to this MPI?")
    return result


def check_errors(report, tolerance):
    """Compare the largest error of every tag that has an exact solution with the tolerance."""
    errors = report.get("errors", {})
    if not errors:
        sys.exit("the deck has a tolerance (tol), but the report has no errors: no equation gives 'exact'")
    for tag, error in errors.items():
        print(f"{tag}: linf {error['linf']:.3e}, tolerance {tolerance:.3e}")
        if not error["linf"] <= tolerance:
            sys.exit(f"{tag} differs from its exact solution by more than the tolerance")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpirun", required=True, help="launcher and its options")
    parser.add_argument("--np", required=True, help="rank counts, separated by commas")
    parser.add_argument("--tol", type=float, help="bound of every errors.<tag>.linf")
    parser.add_argument("--args", default="", help="more arguments of trellis run")
    parser.add_argument("trellis")
    parser.add_argument("deck")
    options = parser.parse_args()
    ranks = [int(np) for np in options.np.split(",")]

    reference = None
    for number, (name, np, arguments) in enumerate(variants(ranks)):
        report = run(options, number, np, arguments)
        hashes = {tag: field["hash"] for tag, field in report["fields"].items()}
        if reference is None:
            if not hashes:
                sys.exit("the report has no fields")
            reference_name, reference = name, hashes
        elif hashes != reference:
            sys.exit(f"other bits with {name} than with {reference_name}:\n{hashes}\n{reference}")
        if options.tol is not None and not arguments:
            check_errors(report, options.tol)


if __name__ == "__main__":
    main()

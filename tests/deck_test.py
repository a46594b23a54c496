#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Run one deck in every way that must give the same bits, and check its errors against the exact solution. In the short
form the ways are compared on a shorter run (--short), after one run of the deck as it is, and decks share some of them.
Sanitizers see a short run of each deck, and of two decks of three another one."""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import zlib


QUICKLY = f"TRELLIS_CC={pathlib.Path(__file__).with_name('quick_cc.sh')}"  # kernels are not optimised


def variants(options, ranks, cells):
    """Rank count and settings of the runs that must repeat the first one's bits."""
    # Patches that are uneven, shared unevenly by the ranks, and cut along every axis or along the last one only; there
    # ranks own some at random.
    every, last = [3, 2, 2][: len(cells)], [1, 1, 1][: len(cells) - 1] + [4]
    # Policies, splits of the workers, fusion and mock devices, each in combination with others: what differs says which
    # runs to compare.
    split = "run.threads={tasks: %d, operators: %d}"
    compiled = "run.compile=always"
    elsewhere = ["TRL_MOCK_DEVICES=2", "run.placement=random:1"]
    if not options.long:  # the run on one rank has told what the optimiser makes of the kernels
        elsewhere.append(QUICKLY)
    alone = ranks[0], [f"grid.patches={every}", "run.fusion=none", split % (1, 1)]
    most = ranks[min(1, len(ranks) - 1)] if options.few else ranks[-1]
    number = zlib.crc32(pathlib.Path(options.deck).stem.encode())
    together = most, [f"grid.patches={last}", f"run.owners=random:{number}", "run.fusion=node", compiled, *elsewhere]
    if options.few and not os.environ.get("TRL_TEST_LONG"):
        yield from [(alone,), (together,), ()][number % 3]
        return
    if not options.long and not options.few:  # decks in turn have one of three ways beside that of most ranks
        yield [alone, ((*ranks[1:-1], ranks[0])[0], ["run.scheduler=priority", split % (2, 0), f"grid.patches={last}",
                                                     "run.fusion=node"]),
               (ranks[0], ["run.scheduler=priority", split % (0, 2), "run.fusion=none"])][number % 3]
        yield together
        return
    yield alone
    yield together
    if options.few:
        return
    for np in ranks[1:]:
        yield np, []
    yield ranks[0], ["run.scheduler=serial", "run.threads=1"]
    yield ranks[0], ["run.scheduler=priority", "run.threads=1", "run.fusion=node"]
    yield ranks[0], ["run.scheduler=priority", "run.threads=2", compiled]
    yield ranks[0], ["run.scheduler=priority", split % (2, 0), f"grid.patches={last}"]
    yield ranks[0], ["run.scheduler=priority", split % (0, 2), "run.fusion=none"]


def run(options, number, np, settings, more=""):
    """Run the deck once, with more arguments, and return its report; leave with a message if it did not end well."""
    folder = pathlib.Path(f"run{number}").resolve()
    report = folder / "report.json"
    command = shlex.split(options.mpirun) + ["-n", str(np)] if np > 1 else []
    command += [options.trellis, "run", options.deck, "--set", f"output.directory={folder}", "--report", str(report)]
    if not any(setting.startswith("run.compile=") for setting in settings):
        settings = [*settings, "run.compile=never"]
    variables = [setting for setting in settings if setting.startswith(("TRL_", "TRELLIS_"))]
    settings = [setting for setting in settings if setting not in variables]
    command += shlex.split(options.args) + shlex.split(more)
    command += [word for setting in settings for word in ("--set", setting)]
    print("+", *variables, shlex.join(command), flush=True)
    environment = {**os.environ, **dict(variable.split("=", 1) for variable in variables)}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}")
    with open(report, encoding="utf-8") as file:
        result = json.load(file)
    if result["status"] != "done":
        sys.exit(f"status '{result['status']}' in {report}, expected 'done'")
    if result["ranks"] != np:
        sys.exit(f"ran on {result['ranks']} ranks, expected {np}: does the launcher belong to this MPI?")
    return result


def run_before(options):
    """Run some steps of the deck whose output this one begins with; the arguments then find its folder in place of
    {after}."""
    folder = pathlib.Path("after").resolve()
    command = [options.trellis, "run", options.after, "--steps", "20", "--set", f"output.directory={folder}"]
    print("+", shlex.join(command), flush=True)
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
    options.args = options.args.replace("{after}", str(folder))


def hashes(report):
    """The hash of every field, by tag."""
    return {tag: field["hash"] for tag, field in report["fields"].items()}


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
    parser.add_argument("--few", action="store_true", help="only the short runs that differ most: sanitizers are slow")
    parser.add_argument("--optimise", action="store_true", help="compile kernels as users do in one of the short runs")
    parser.add_argument("--args", default="", help="more arguments of trellis run")
    parser.add_argument("--short", default="", help="more of them that make a run short, and may change its results")
    parser.add_argument("--after", help="the deck with whose output this one begins")
    parser.add_argument("trellis")
    parser.add_argument("deck")
    options = parser.parse_args()
    options.long = bool(os.environ.get("TRL_TEST_LONG")) and not options.few
    ranks = [int(np) for np in options.np.split(",")]

    if options.after:
        run_before(options)
    short = "" if options.long else options.short
    report = run(options, 0, ranks[0], [], short if options.few else "")
    if options.tol is not None and not (options.few and short):
        check_errors(report, options.tol)
    if not options.long and not options.few:
        compiled = ["run.scheduler=serial", "run.threads=1", "run.compile=always"]
        report = run(options, 1, ranks[0], compiled if options.optimise else [*compiled, QUICKLY], short)
    reference = hashes(report)
    if not reference:
        sys.exit("the report has no fields")
    for number, (np, settings) in enumerate(variants(options, ranks, report["grid"]["cells"]), start=2):
        other = hashes(run(options, number, np, settings, short))
        if other != reference:
            sys.exit(f"other bits on {np} ranks with {settings} than on {ranks[0]}:\n{other}\n{reference}")


if __name__ == "__main__":
    main()

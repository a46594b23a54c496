# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""The decks of inputs/decks, with the arguments that their tests give them."""
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TRELLIS = os.environ.get("TRELLIS", "trellis")
FOLDER = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2])) / "inputs/decks"


def run(deck, arguments, output, ranks=1, environment=(), settings=()):
    """The report of a run, with what it printed of extremes and wrote of series and receivers; or None and what was
    said. Settings win over arguments."""
    report = output.with_suffix(".json")
    command = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    command += [TRELLIS, "run", str(deck), "--report", str(report), *arguments]
    for setting in (f"output.directory={output}", *settings):
        command += ["--set", setting]
    variables = {**os.environ, **dict(environment)}
    if ranks == 1:
        variables.setdefault("OMPI_MCA_ess_singleton_isolated", "1")  # no daemon
    with tempfile.TemporaryDirectory() as own:  # Open MPI gives runs side by side one folder, and one removes another's
        variables["OMPI_MCA_orte_tmpdir_base"] = own
        done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=600)
    if done.returncode:
        said = " ".join(f"{name}={shlex.quote(value)}" for name, value in dict(environment).items())
        return None, f"{said} {shlex.join(command)} ends with {done.returncode}: {done.stderr[-2000:]}"
    found = json.loads(report.read_text(encoding="utf-8"))
    found["printed"] = re.findall(r"^\S+: min .*$", done.stdout, re.MULTILINE)
    for name in ("series.csv", "receivers.nc"):
        written = output / name
        found[name] = written.read_bytes() if written.exists() else b""
    return found, ""


@functools.cache
def info():
    """What `trellis info` says."""
    return subprocess.run([TRELLIS, "info"], capture_output=True, text=True, check=True).stdout


def arguments_of(deck, outputs, steps):
    """The arguments of a deck's test, or None: it has none, or needs what this build has not. steps: so many, on the
    grid that sanitizers get."""
    found = re.search(r"^# ctest:(.*)$", deck.read_text(encoding="utf-8"), re.MULTILINE)
    if not found or found[1].strip().startswith("none"):
        return None
    keys = dict(word.split("=", 1) for word in shlex.split(found[1]))
    if re.search(rf"^{keys.get('needs', '-')} +not in this build", info(), re.MULTILINE | re.IGNORECASE):
        return None
    after = outputs / "after" / keys["after"] if "after" in keys else None
    if after:
        after.parent.mkdir(parents=True, exist_ok=True)
        _, failed = run(deck.with_stem(keys["after"]), ["--steps", "20"], after, settings=["run.devices=cpu"])
        if failed:
            sys.exit(failed)
    text = keys.get("args", "")
    if steps:
        text = re.sub(r"--steps \d+", "", f"{text} {keys.get('short', '')}") + f" --steps {steps}"
    return shlex.split(text.replace("{after}", str(after)))


def decks(outputs, names=(), steps=None):
    """Each deck that has a test, or those that are named: its path and arguments."""
    for deck in sorted(FOLDER.glob("*.yaml")):
        if names and deck.stem not in names:
            continue
        arguments = arguments_of(deck, outputs, steps)
        if arguments is not None:
            yield deck, arguments


def count_gpus():
    """How many GPUs the command finds."""
    return len(re.findall(r"^GPU \d+ ", info(), re.MULTILINE))


def visible(turn, wanted, count):
    """A setting of the environment: so many of the GPUs that there are, the next ones in each turn."""
    names = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    names = names or [str(i) for i in range(count)]
    return {"CUDA_VISIBLE_DEVICES": ",".join(names[(turn + i) % len(names)] for i in range(min(wanted, len(names))))}

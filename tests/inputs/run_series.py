# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""A run of which the series is looked at."""
import os
import pathlib
import subprocess

TRELLIS = os.environ.get("TRELLIS", "trellis")


def run(text, ranks, *options):
    """The last line of the series of a deck by name, and the text of the file; None and what is said of a failure."""
    pathlib.Path("deck.yaml").write_text(text, encoding="utf-8")
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    done = subprocess.run([*command, TRELLIS, "run", "deck.yaml", "--quiet", "--set", "output.directory=out", "--set",
                           "run.compile=never", *options], capture_output=True, text=True, check=False)
    if done.returncode:
        return None, done.stderr
    text = pathlib.Path("out/series.csv").read_text(encoding="utf-8")
    head, *rows = text.splitlines()
    return dict(zip(head.split(","), map(float, rows[-1].split(",")))), text


def columns(row, name):
    """The values of a profile or a spectrum."""
    return [value for key, value in row.items() if key.startswith(name + "_")]

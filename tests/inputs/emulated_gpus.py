# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""Runs on two emulated GPUs (tests/emulated), which do what they are given as late as they may."""
import json
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ["TRELLIS_BUILD"])
if not (BUILD / "emulated/trellis").exists():
    print("the command with emulated GPUs was not built")
    sys.exit(77)
os.environ.update(TRELLIS=str(BUILD / "emulated/trellis"), TRELLIS_NVRTC=str(BUILD / "emulated/nvrtc.so"),
                  TRL_EMULATED_GPUS="2", TRL_EMULATED_LAZY="1", TRL_REQUIRE_GPU="1")


def run(deck, *settings, ranks=1):
    """The report of a run on GPUs, or with other settings, and what it said."""
    line = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    line += [os.environ["TRELLIS"], "run", str(deck), "--quiet", "--report", "report.json"]
    for setting in ("run.devices=gpu", "run.placement=devices", *settings):
        line += ["--set", setting]
    done = subprocess.run(line, check=False, timeout=60, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(line)} ends with {done.returncode}: {done.stderr}")
    return json.loads(pathlib.Path("report.json").read_text(encoding="utf-8")) | {"said": done.stderr}

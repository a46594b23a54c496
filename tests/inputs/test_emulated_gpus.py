#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=900
"""test_gpu.py where there is no GPU: two emulated ones (tests/emulated), each of which gets a patch. The short form has
a few decks; the long form has random ones, too."""
import json
import os
import pathlib
import subprocess
import sys

DECKS = ["heat_3d", "wave", "robin_cooling"]  # patches and series; ghosts of slabs, stages; sums, sides
BUILD = pathlib.Path(os.environ["TRELLIS_BUILD"])
FOLDER = pathlib.Path(__file__).parent
LONG = "TRL_TEST_LONG" in os.environ

if not (BUILD / "emulated/trellis").exists():
    print("the command with emulated GPUs was not built")
    sys.exit(77)
os.environ.update(TRELLIS=str(BUILD / "emulated/trellis"), TRELLIS_NVRTC=str(BUILD / "emulated/nvrtc.so"),
                  TRL_EMULATED_GPUS="2", TRL_REQUIRE_GPU="1")


def check_patches():
    """Of two patches that have nothing but a kernel and ghosts of the other, each is on a device of its own."""
    deck = pathlib.Path("patches.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [24, 12, 16], periodic: [true, true, true], patches: [1, 1, 2]}\n"
                    "equations:\n  T: {initial: \"sin(x)\", ddt: \"laplacian(T)\"}\n"
                    "time: {dt: 1e-4, steps: 10, method: euler}\n", encoding="utf-8")
    command = [os.environ["TRELLIS"], "run", str(deck), "--quiet", "--set", "run.devices=gpu", "--set",
               "run.placement=devices", "--report", "patches.json"]
    subprocess.run(command, check=True)
    tasks = json.loads(pathlib.Path("patches.json").read_text(encoding="utf-8"))["placement"]["tasks"]
    if tasks[1] != tasks[2]:
        sys.exit(f"two patches, and tasks of workers and devices: {tasks}")


check_patches()
if LONG:
    subprocess.run([sys.executable, str(FOLDER / "test_bits.py"), "--gpus", "2", "--decks", "24"], check=True)
os.execv(sys.executable, [sys.executable, str(FOLDER / "test_gpu.py"), *([] if LONG else DECKS)])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=900
"""test_gpu.py where there is no GPU: two emulated ones (tests/emulated). The short form has a few decks; the long form
has random ones, too."""
import os
import pathlib
import subprocess
import sys

DECKS = ["heat_3d", "wave", "robin_cooling"]  # patches and series; ghosts of slabs, stages; sums, sides
BUILD = pathlib.Path(os.environ["TRELLIS_BUILD"])

if not (BUILD / "emulated/trellis").exists():
    print("the command with emulated GPUs was not built")
    sys.exit(77)
os.environ.update(TRELLIS=str(BUILD / "emulated/trellis"), TRELLIS_NVRTC=str(BUILD / "emulated/nvrtc.so"),
                  TRL_EMULATED_GPUS="2", TRL_REQUIRE_GPU="1")
folder, long = pathlib.Path(__file__).parent, "TRL_TEST_LONG" in os.environ
if long:
    subprocess.run([sys.executable, str(folder / "test_bits.py"), "--gpus", "2", "--decks", "24"], check=True)
os.execv(sys.executable, [sys.executable, str(folder / "test_gpu.py"), *([] if long else DECKS)])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=1800 labels=gpu
"""The random decks of test_bits.py on GPUs against the CPU: 32, or 1,000 in the long form; on two GPUs, if there are
more: each takes a part of a second to open."""
import os
import pathlib
import sys

import all_decks

count = all_decks.count_gpus()
if count == 0:
    print("there is no GPU")
    sys.exit(1 if os.environ.get("TRL_REQUIRE_GPU") == "1" else 77)
decks = "1000" if "TRL_TEST_LONG" in os.environ else "32"
os.environ.update(all_decks.visible(0, 2, count))
jobs = str(max(1, min(8, (os.cpu_count() or 1) // 2)))
test = pathlib.Path(__file__).with_name("test_bits.py")
os.execv(sys.executable, [sys.executable, str(test), "--gpus", "2", "--decks", decks, "--jobs", jobs, *sys.argv[1:]])

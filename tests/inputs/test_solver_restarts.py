#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""A run with equations that are solved has the same bits when it is continued from its middle."""
import random

import random_flows
import test_solver_bits as bits
import test_solvers as t

FLOWS = (8, 13)  # random ones


def check(text, middle, *how):
    """A run that is continued from its middle has the bits of one that was not."""
    how = ("run.threads=1", "run.compile=never", *how)
    whole = t.run(text, how)["fields"]
    t.run(text, (*how, f"output.checkpoint.every.steps={middle}"), more=("--steps", str(middle)))
    t.check("a restart", t.run(text, how, more=("--restart", "latest"))["fields"] == whole, whole)


def main():
    steps = t.STEPS.replace("METHOD", "rk4")
    by_error = bits.whole_rates(bits.SPLIT).replace("METHOD", bits.BY_ERROR.replace("ark3", "dp5"))
    for text in (steps.replace("DT", "0.01"), steps.replace("DT", "{cfl: 0.4, speed: \"1 + p\", max: 0.02}"),
                 bits.SPLIT.replace("METHOD", bits.BY_ERROR), bits.INDEFINITE, by_error,
                 *(random_flows.write(random.Random(seed)) for seed in FLOWS)):
        check(text, 2)
    for text in bits.multistep().values():  # which begin anew at each checkpoint
        check(text, 5, "output.checkpoint.every.steps=5")


if __name__ == "__main__":
    main()

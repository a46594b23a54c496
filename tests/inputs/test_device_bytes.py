#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
"""What a step copies between the memories of the host and of a device, in bytes, when the same step is run again and
again: no field, but halos, output, scalars and what tasks of the CPU alone need."""
import os
import pathlib
import sys

import all_decks

DOUBLE, SHARE = 8, 608  # bytes of a value, and of what a patch contributes to a reduction
WAYS = ("h2d_bytes", "d2h_bytes", "p2p_bytes")
PLUGIN = pathlib.Path(os.environ["TRELLIS_BUILD"]) / "test_plugins/side_values.so"
FEW, MANY = 32, 38  # steps: no one looks at the solution in between, as after 27 and 41
CELLS = (24, 20)
STAGES = 3
ZERO = ("dendrite", "flame", "gray_scott", "heat_2d", "heat_variable_k", "kinetics", "sensitivity", "transport")

DECK = """
trellis: 1
{plugins}
grid: {{cells: {cells}, periodic: {periodic}}}
expressions:
  k: "1 + 0.5*x"
  flow: "-k*grad(T)"
{expressions}
equations:
  T:
    initial: "sin(pi*x)*sin(pi*y)"
    ddt: "-div(flow){source}"
    boundary: {{{sides}}}
time: {{method: {method}, dt: {dt}, steps: 1}}
output: {{directory: out, fields: [T], every: {every}{series}}}
"""
SIDES = "x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {dirichlet: 1}, y+: {neumann: 0}"
NEVER = "{steps: 1000000}"


def write(method="ssprk3", periodic="[false, false]", sides=SIDES, plugins="", expressions="", source="", dt="1e-4",
          every=NEVER, series=""):
    return DECK.format(method=method, periodic=periodic, sides=sides, plugins=plugins, expressions=expressions,
                       source=source, dt=dt, every=every, series=series, cells=list(CELLS))


def copied(deck, arguments, output, devices=1, settings=(), ranks=1):
    """Bytes that a step copies to devices, from them and between them, how many of its tasks workers do, and the bytes
    that its placement planned to copy."""
    found = []
    for steps in (FEW, MANY):
        report, failed = all_decks.run(
            deck, [*arguments, "--steps", str(steps)], output, ranks, environment={"TRL_MOCK_DEVICES": str(devices)},
            settings=["run.compile=never", "run.threads=1", "run.placement=devices", *settings])
        if failed:
            sys.exit(failed)
        found.append(report)
    before, after = (report["device_transfers"] for report in found)
    placement = found[1]["placement"]
    return ([(after[way] - before[way]) / (MANY - FEW) for way in WAYS], placement["tasks"][0],
            placement["transfer_bytes"])


class Check:
    """Counts what is not as it should be."""

    def __init__(self):
        self.wrong = 0

    def compare(self, name, found, inward=0, out=0, across=0, workers=0, planned=None, ranks=1):
        """Compare bytes and tasks with those expected; planned: what the graph of a step alone copies, if that differs.
        Ranks copy the same."""
        if found[:2] != ([inward, out, across], workers):
            print(f"{name}: a step copies {found[0]} bytes ({', '.join(WAYS)}) and has {found[1]} tasks of workers; "
                  f"expected {[inward, out, across]} and {workers}")
            self.wrong += 1
        if planned is None:
            planned = (inward + out + across) / ranks
        if found[2] != planned:
            print(f"{name}: a step is planned to copy {found[2]} bytes on rank 0; expected {planned}")
            self.wrong += 1

    def deck(self, name, text, devices=1, settings=(), ranks=1, **expected):
        """A deck that is written here."""
        deck = pathlib.Path(f"{name}.yaml")
        deck.write_text(text, encoding="utf-8")
        self.compare(name, copied(deck, [], pathlib.Path(name).absolute(), devices, settings, ranks), ranks=ranks,
                     **expected)


def points(cells, more):
    """Of a box, so many more on each side."""
    return (cells[0] + 2 * more) * (cells[1] + 2 * more)


def rim_and_ghosts(cut):
    """Points of a patch that its neighbours read, and those that it reads of them, or that lie beyond sides, along the
    axes that are cut."""
    patch = [n // p for n, p in zip(CELLS, cut)]
    inner = [n - 2 * (p > 1) for n, p in zip(patch, cut)]
    beside = [n + 2 * (p == 1) for n, p in zip(patch, cut)]
    return points(patch, 0) - points(inner, 0), points(patch, 1) - points(beside, 0)


def sent(cut, axis):
    """Points that a patch gets of a neighbour along an axis: the part of the rim that it reads. Parts along the last
    axis are whole, and those along the first one lie between them."""
    patch = [n // p for n, p in zip(CELLS, cut)]
    if axis == 1 or cut[1] == 1:
        return patch[1 - axis]
    return patch[1] - 2 + 2 * patch[0]


def check_halos(check):
    """Between patches on one device nothing is copied, between devices what one reads of the other's rim. A device has
    patches that are next to each other. sides: along each axis, those at a patch of another device."""
    for devices, cut, sides in ((1, [2, 2], (0, 0)), (1, [3, 2], (0, 0)), (2, [2, 2], (0, 4)), (2, [2, 1], (2, 0)),
                                (2, [3, 2], (0, 6)), (2, [3, 1], (2, 0)), (2, [4, 1], (2, 0)), (4, [2, 2], (4, 4)),
                                (4, [4, 1], (6, 0))):
        points_sent = sum(n * sent(cut, axis) for axis, n in enumerate(sides))
        check.deck(f"{cut[0]}x{cut[1]}_patches_on_{devices}", write(), devices, [f"grid.patches={cut}"],
                   across=STAGES * DOUBLE * points_sent)
    # Two patches that are each other's neighbours on both sides, in a step of one stage.
    check.deck("2_patches_of_each_other", write(method="euler", periodic="[true, true]", sides=""), 2,
               ["grid.patches=[2, 1]"], across=2 * 2 * DOUBLE * CELLS[1])
    rim, ghosts = rim_and_ghosts([2, 1])  # workers pack, send and unpack: rims go to the host, ghosts there and back
    check.deck("2_ranks", write(), settings=["grid.patches=[2, 1]"], ranks=2, inward=2 * STAGES * DOUBLE * ghosts,
               out=2 * STAGES * DOUBLE * (rim + ghosts), workers=3 * STAGES)


def main():
    """Decks written here, and those of inputs/decks of which a device does all."""
    check, field = Check(), DOUBLE * points(CELLS, 0)
    check.deck("plain", write())
    check.deck("output", write(every="{steps: 1}"), out=DOUBLE * points(CELLS, 1), planned=0)
    check.deck("output_of_some_steps", write(every="{steps: 3}"), out=DOUBLE * points(CELLS, 1) / 3, planned=0)
    check.deck("series", write(series=", series: {every: {steps: 1}, values: {m: \"integral(T)\"}}"), out=SHARE,
               planned=0)
    check.deck("step_from_values", write(dt='{cfl: 0.4, speed: "1 + norm(T)", diffusivity: "k", max: 1e-4}'),
               out=2 * SHARE, planned=0)
    check.deck("periodic", write(periodic="[true, true]", sides=""))
    check_halos(check)
    twice = "  twice: {type: twice, computes: [twice], inputs: {input: T}}"
    check.deck("plugin", write(plugins=f"plugins: [{PLUGIN}]", expressions=twice, source=" + 0.1*twice"),
               inward=STAGES * field, out=STAGES * field, workers=STAGES)
    outputs = pathlib.Path("decks").absolute()
    for deck, arguments in all_decks.decks(outputs, ZERO, 1):
        never = [f"output.every={NEVER}"]
        if "series:" in deck.read_text(encoding="utf-8"):
            never.append(f"output.series.every={NEVER}")
        check.compare(deck.stem, copied(deck, arguments[:-2], outputs / deck.stem, settings=never))
    sys.exit(f"{check.wrong} decks copy other bytes than they should" if check.wrong else 0)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300 labels=gpu
"""Plugins with a CUDA form: the same bits on GPUs as by evaluate on the host, no field moved for them, and what is said
of forms that cannot be used. Emulated GPUs are used where there is no other."""
import json
import os
import pathlib
import re
import subprocess
import sys

import all_decks

SKIPPED = 77
BUILD = pathlib.Path(os.environ["TRELLIS_BUILD"])
DECK = """trellis: 1
plugins: [cuda_forms]
grid: {cells: [20, 18, 10], periodic: [false, true, false], patches: %s}
expressions:
  r: {type: cuda_reaction, computes: [S, U]%s}
  f: {type: cuda_flux, boundary: {x-: {neumann: 0}, x+: {neumann: 0}}}
  w: {type: cuda_wall, inputs: {S: T}}
  v: {type: cuda_xwall}
equations:
  T:
    initial: "sin(x) + cos(2*pi*y)*z"
    ddt: "0.01*(-ddx(F) + laplacian(T)) + S - 0.1*U*T + 0.01*at(G, cell)"
    boundary: {x-: {expression: w}, x+: {neumann: 1}, z-: {neumann: 0}, z+: {expression: w}}
  G:
    location: xface
    initial: "x"
    ddt: "0.01*laplacian(G)"
    boundary: {x-: {expression: v}, x+: {expression: v}, z-: {neumann: 0.5}, z+: {dirichlet: 1}}
time: {dt: 1e-3, steps: 40, method: ssprk3}
output: {fields: []}
"""


def trellis(command, *arguments, ranks=1):
    """What a command says, and its exit status."""
    line = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []
    line += [all_decks.TRELLIS, command, "deck.yaml", "--plugin-path", str(BUILD / "test_plugins")]
    done = subprocess.run(line + list(arguments), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def run(devices, *settings, status=0, ranks=1):
    """The report of a run, and what was said."""
    line = ["--quiet", "--report", "report.json", "--set", f"run.devices={devices}"]
    for setting in settings:
        line += ["--set", setting]
    code, said = trellis("run", *line, ranks=ranks)
    if code != status:
        sys.exit(f"devices {devices} {settings}: ends with {code}, not {status}: {said}")
    return json.loads(pathlib.Path("report.json").read_text(encoding="utf-8")), said


def write(text):
    """The deck."""
    pathlib.Path("deck.yaml").write_text(text, encoding="utf-8")


def check(good, what):
    """End unless it is so."""
    if not good:
        sys.exit(what)


def hashes(report):
    """Of all fields."""
    return {name: field["hash"] for name, field in report["fields"].items()}


def check_bits(count):
    """With all that GPUs do on them, dealt at random, and on patches."""
    for patches, placement in (("[1, 1, 1]", "devices"), ("[1, 1, 1]", "random:2"), ("[1, 1, 2]", "devices")):
        write(DECK % (patches, ""))
        wanted, _ = run("cpu")
        found, said = run("gpu", f"run.placement={placement}")
        check(hashes(found) == hashes(wanted), f"{patches} {placement}: {hashes(found)} instead of {hashes(wanted)}")
        tasks, moved = found["placement"]["tasks"], found["device_transfers"]
        print(f"{patches} {placement}: tasks of a step by executor {tasks}, {moved}, {count} GPUs")
        if placement == "devices":
            check(sum(tasks[1:]) >= 12, f"forms are not done by GPUs: {tasks}; {said}")
            if patches == "[1, 1, 1]":
                check(moved["d2h_bytes"] < 200000, f"a step moves fields: {moved}")


def check_bounds():
    """dt by what GPUs find of stable_dt: the same steps, no field moved for it, and the message where it is not
    positive, also where ranks bring it together."""
    for patches, ranks, placement in (("[1, 1, 1]", 1, "devices"), ("[2, 1, 2]", 1, "random:3"),
                                      ("[2, 1, 2]", 2, "devices"), ("[1, 1, 2]", 2, "random:5")):
        write(DECK % (patches, ""))
        wanted, _ = run("cpu", "time.dt={cfl: 0.5}")
        found, _ = run("gpu", "time.dt={cfl: 0.5}", f"run.placement={placement}", ranks=ranks)
        same = hashes(found) == hashes(wanted) and found["time"] == wanted["time"]
        check(same, f"cfl, {patches}, {placement}, {ranks} ranks: {found['time']}, {hashes(found)} instead of "
                    f"{wanted['time']}, {hashes(wanted)}")
        if placement == "devices" and ranks == 1:
            bound = next(p for p in found["programs"] if p["name"] == "stable dt")["tasks"]
            moved = found["device_transfers"]["d2h_bytes"]
            check(sum(bound[1:]) > bound[0] and moved < 200000, f"stable_dt: tasks {bound}, {moved} bytes moved")
        _, wanted = run("cpu", "time.dt={cfl: 0.5}", "grid.origin=[-30, 0, 0]", status=2)
        _, said = run("gpu", "time.dt={cfl: 0.5}", "grid.origin=[-30, 0, 0]", f"run.placement={placement}", status=2,
                      ranks=ranks)
        message = wanted.splitlines()[0] if patches == "[1, 1, 1]" else "stable_dt of 'r' (type 'cuda_reaction')"
        check(message in said, f"{patches}, {placement}, {ranks} ranks: {said} instead of {wanted}")


def check_words():
    """What plan and messages say."""
    write(DECK % ("[1, 1, 1]", ""))
    _, said = trellis("plan", "--set", "run.devices=gpu")
    check("type cuda_flux, 1 tag from 1, in CUDA on GPUs, in C elsewhere" in said, said)
    _, said = trellis("plan", "--set", "run.devices=cpu")
    check("type cuda_flux, 1 tag from 1, in C (its CUDA form is for GPUs)" in said, said)
    _, said = trellis("kernels", "--device", "gpu")
    check("/* 'f', the CUDA form of type 'cuda_flux'\n" in said and said.count("evaluate(point);") == 4, said)
    write(DECK % ("[1, 1, 1]", ", device: cpu"))
    found, said = run("gpu", "run.placement=devices")
    _, said = trellis("plan", "--set", "run.devices=gpu")
    check("type cuda_reaction, 2 tags from 1\n" in said, said)
    write((DECK % ("[1, 1, 1]", "")).replace("cuda_reaction", "cuda_wrong"))
    wanted, _ = run("cpu")
    found, said = run("gpu")
    check(hashes(found) == hashes(wanted), "a form that cannot be compiled changes bits")
    write((DECK % ("[1, 1, 1]", "")).replace("cuda_reaction", "cuda_wrong").replace("dt: 1e-3", "dt: {cfl: 0.5}"))
    _, bound = run("gpu")
    check("stable_dt of 'r' is computed by the CPU: the CUDA form of type 'cuda_wrong' cannot be used:" in bound, bound)
    place = r"deck.yaml:5:3: warning: 'r' is computed by the CPU: the CUDA form of type 'cuda_wrong' cannot be used: .*"
    check(re.search(place + r"cuda_forms\.c[:(]\d+.*error:.*undeclared", said), said)
    write((DECK % ("[1, 1, 1]", ", device: gpu")).replace("cuda_reaction", "cuda_wrong"))
    _, said = run("gpu", status=2)
    check("'r' is to be computed by GPUs ('device: gpu'), but the CUDA form of type 'cuda_wrong'" in said, said)
    run("cpu")
    write((DECK % ("[1, 1, 1]", "")).replace("cuda_reaction, computes: [S, U]", "cuda_two, computes: [S, U0]")
          .replace("U*T", "U0").replace("- 0.1*U0", "+ ddx(U0)"))
    _, said = run("gpu")
    check("its results are at more than one location" in said, said)


COUNT = all_decks.count_gpus()
if COUNT == 0 and os.environ.get("TRL_REQUIRE_GPU") != "1" and (BUILD / "emulated/trellis").exists():
    os.environ.update(TRELLIS_NVRTC=str(BUILD / "emulated/nvrtc.so"), TRL_EMULATED_GPUS="2", TRL_EMULATED_LAZY="1")
    all_decks.TRELLIS = str(BUILD / "emulated/trellis")
    all_decks.info.cache_clear()
    COUNT = all_decks.count_gpus()
if COUNT == 0:
    print("there is no GPU")
    sys.exit(1 if os.environ.get("TRL_REQUIRE_GPU") == "1" else SKIPPED)
check_bits(COUNT)
check_bounds()
check_words()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=900
"""test_gpu.py where there is no GPU: two emulated ones (tests/emulated), each of which gets a patch, and which do what
they are given as late as they may. The short form has
a few decks. Random ones are test_gpu_random.py's."""
import json
import os
import pathlib
import shutil
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


def check_patches():
    """Of patches that have nothing but a kernel and ghosts of the other, each is on a device of its own; rims are
    computed beside inner points, and fields are what they are on the CPU. What a patch gets of each of its neighbours
    is one plane."""
    deck = pathlib.Path("patches.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [24, 12, 40], periodic: [true, true, true], patches: [1, 1, 4]}\n"
                    "equations:\n  T: {initial: \"sin(x+2*z)\", ddt: \"laplacian(T) - S*T\"}\n"
                    "  S: {initial: \"cos(z)\", ddt: \"laplacian(S)\"}\n"
                    "time: {dt: 1e-4, steps: 10, method: ssprk3}\n", encoding="utf-8")
    os.environ["TRL_EMULATED_GPUS"] = "4"
    found, wanted = run(deck), run(deck, "run.devices=cpu")
    tasks = found["placement"]["tasks"]
    if len(set(tasks[1:])) > 1 or tasks[1] < 12:
        sys.exit(f"four patches of inner points and rims, and tasks of workers and devices: {tasks}")
    copied, plane, exchanges = found["device_transfers"]["p2p_bytes"], 24 * 12 * 8, 3 * 10
    if copied > (least := exchanges * 2 * 4 * 2 * plane):  # stages, fields, patches, neighbours
        sys.exit(f"four patches exchange {copied} bytes; {least} are enough")
    for name, field in wanted["fields"].items():
        if field["hash"] != found["fields"][name]["hash"]:
            sys.exit(f"{name} differs on four GPUs")
    os.environ["TRL_EMULATED_GPUS"] = "2"


def check_ranks():
    """Ranks that outnumber GPUs leave them alone under `auto`, which is said, and share them when they are asked to."""
    deck = pathlib.Path("ranks.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [24, 12]}\nequations:\n  T: {initial: x, ddt: T}\n"
                    "time: {dt: 1e-4, steps: 2, method: euler}\n", encoding="utf-8")
    for devices, wanted in (("auto", 0), ("gpu", 1)):
        report = run(deck, f"run.devices={devices}", ranks=3)
        found = len(report["devices"]) - 1  # and the cores
        if found != wanted or ("3 ranks would share 2" in report["said"]) != (wanted == 0):
            sys.exit(f"{devices}: three ranks and two GPUs use {found} each: {report['said']}")


def check_messages():
    """Messages that GPUs pack: into each other's memory, into their own where they may not, or by workers."""
    deck = pathlib.Path("messages.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [16, 12, 24], periodic: [true, true, true]}\n"
                    "equations:\n  T: {initial: \"sin(x+2*z)\", ddt: \"laplacian(T) - S*T\"}\n"
                    "  S: {initial: \"cos(z)\", ddt: \"laplacian(S)\"}\n"
                    "time: {dt: 1e-4, steps: 8, method: ssprk2}\n", encoding="utf-8")
    hashes, copied = set(), []
    for ranks, way, may in ((1, "off", "on"), (2, "off", "on"), (2, "on", "on"), (2, "on", "off"), (4, "on", "on"),
                            (3, "staging", "on")):
        os.environ.update(TRELLIS_GPU_IPC=way, TRL_EMULATED_IPC=may, TRL_EMULATED_GPUS=str(ranks))
        report = run(deck, "run.threads=1", ranks=ranks)
        hashes.add(tuple(field["hash"] for field in report["fields"].values()))
        copied.append(report["device_transfers"]["d2h_copies"])
        if (report["comm"]["between_gpus"] > 0) != (way == "on" and may == "on"):
            sys.exit(f"IPC {way}, and GPUs {may}: {report['comm']}")
    os.environ.update(TRL_EMULATED_IPC="on", TRL_EMULATED_GPUS="2")
    del os.environ["TRELLIS_GPU_IPC"]
    if len(hashes) > 1 or 2 * copied[2] > copied[1]:
        sys.exit(f"messages of GPUs: hashes {hashes}, copies to the host {copied}")


def check_unlike_ranks():
    """Ranks agree on the way of messages: the least of what they allow. A word of none is refused by all, and a rank
    that fails or dies between messages ends all ranks."""
    deck, script = (pathlib.Path(name).absolute() for name in ("messages.yaml", "rank.sh"))
    script.write_text("[ $OMPI_COMM_WORLD_RANK = 1 ] && export $ON_ONE\nexec \"$@\"\n", encoding="utf-8")
    line = ["mpirun", "-n", "2", "sh", str(script), os.environ["TRELLIS"], "run", str(deck), "--quiet", "--report",
            "report.json", "--set", "run.devices=gpu", "--set", "run.placement=devices", "--set", "run.threads=1"]
    for setting, message in (("TRELLIS_GPU_IPC=off", None),
                             ("TRELLIS_GPU_IPC=of", "TRELLIS_GPU_IPC is 'of': use 'on', 'staging' or 'off'"),
                             ("TRL_EMULATED_FAIL=31", "emulated GPU"), ("TRL_EMULATED_KILL=31", "signal 9")):
        environment = {**os.environ, "ON_ONE": setting, "OMPI_MCA_odls_base_sigkill_timeout": "0"}
        done = subprocess.run(line, env=environment, check=False, timeout=20, text=True,
                              stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
        if (done.returncode == 0) != (message is None) or message and message not in done.stdout:
            sys.exit(f"{setting} on one of two ranks ends with {done.returncode}: {done.stdout}")
        if not message and json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))["comm"]["between_gpus"]:
            sys.exit(f"{setting} on one of two ranks, and messages between GPUs")


def check_compilers():
    """Each of two ranks compiles half of what both need, unless one of them has no compiler for it."""
    script = pathlib.Path("caches.sh").absolute()
    script.write_text("export TRELLIS_CACHE_DIR=$PWD/cache$OMPI_COMM_WORLD_RANK\nmkdir -m 700 $TRELLIS_CACHE_DIR\n"
                      "[ $OMPI_COMM_WORLD_RANK = 1 ] && export $ON_ONE\nexec \"$@\"\n", encoding="utf-8")
    line = ["mpirun", "-n", "2", "sh", str(script), os.environ["TRELLIS"], "run", "messages.yaml", "--quiet", "--set",
            "run.devices=gpu", "--set", "run.threads=1"]
    for setting in ("ALL=well", "TRELLIS_NVRTC=none.so"):
        done = subprocess.run(line, env={**os.environ, "ON_ONE": setting}, check=False, timeout=60, text=True,
                              stderr=subprocess.PIPE)
        made = [{path.name for path in pathlib.Path(f"cache{rank}").glob("*.cubin")} for rank in (0, 1)]
        alone = "NVRTC" in setting
        if done.returncode or made[0] & made[1] or (len(made[1]) == 0) != alone or abs(
                len(made[0]) - len(made[1])) > 1 and not alone:
            sys.exit(f"{setting}: compiled by two ranks {made}, {done.returncode}: {done.stderr}")
        for rank in (0, 1):
            shutil.rmtree(f"cache{rank}")


def check_solver():
    """What an iteration does is done on the device that has the vectors: in between only sums are copied."""
    deck = pathlib.Path("solve.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [24, 20], periodic: [false, true]}\nequations:\n  p:\n"
                    "    solve: \"laplacian(p) = x + exp(p)\"\n    initial: 0\n    solver: s\n"
                    "    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}}\n"
                    "solvers:\n  s: {method: cg, preconditioner: jacobi}\n", encoding="utf-8")
    hashes = []
    for devices in ("cpu", "gpu"):
        report = run(deck, f"run.devices={devices}")
        hashes.append(report["fields"]["p"]["hash"])
    iterations = report["solvers"][0]["iterations"]
    moved = report["device_transfers"]
    tasks = {program["name"]: program["tasks"] for program in report["programs"]}
    product, step = tasks["product of p"], tasks["step of cg of p"]
    if hashes[0] != hashes[1] or product[1] < iterations or step[1] < 3 * iterations or product[2] + step[2] != 0:
        sys.exit(f"a solver on a device: {hashes}, {iterations} iterations, {tasks}")
    if moved["p2p_bytes"] != 0 or moved["h2d_copies"] > 20 or moved["d2h_bytes"] > 3000 * (iterations + 20):
        sys.exit(f"{iterations} iterations moved {moved}")


def check_coarse_grids():
    """The plan says which grids of multigrid the CPU keeps, and why; without GPUs it says nothing of that."""
    deck = pathlib.Path("grids.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [64, 48]}\nequations:\n  p:\n    solve: \"laplacian(p) = x\"\n"
                    "    initial: 0\n    solver: s\n    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, "
                    "y-: {dirichlet: 0}, y+: {dirichlet: 0}}\n"
                    "solvers:\n  s: {method: cg, preconditioner: multigrid}\n", encoding="utf-8")
    for devices in ("cpu", "gpu"):
        line = [os.environ["TRELLIS"], "plan", str(deck), "--set", f"run.devices={devices}"]
        said = subprocess.run(line, check=True, capture_output=True, text=True).stdout
        if ("of these grids on the CPU: below 20000 cells" in said) != (devices == "gpu"):
            sys.exit(f"{devices}: the plan says of multigrid's grids: {said}")
    counts = {}  # of what cycles add: the first grid and the next have their transfers on the device
    for devices, tolerance in (("cpu", "1e-9"), ("gpu", "1e-9"), ("gpu", "1e-2")):
        report = run(deck, f"run.devices={devices}", "grid.cells=[300, 270]", f"solvers.s.tolerance={tolerance}")
        solver, moved = report["solvers"][0], report["device_transfers"]
        counts[devices, tolerance] = (report["fields"]["p"]["hash"], solver["iterations"],
                                      moved["h2d_bytes"] + moved["d2h_bytes"])
    wanted, found, fewer = counts.values()
    if wanted[:2] != found[:2] or found[1] < fewer[1] + 4 or found[2] > fewer[2] + 10000 * (found[1] - fewer[1]):
        sys.exit(f"cycles on a device: hashes, iterations and bytes {counts}")


check_patches()
check_ranks()
check_coarse_grids()
check_messages()
check_unlike_ranks()
check_compilers()
check_solver()
os.execv(sys.executable, [sys.executable, str(FOLDER / "test_gpu.py"), *([] if LONG else DECKS)])

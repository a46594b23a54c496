#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=900
"""Messages of ranks with emulated GPUs, ranks that do not agree, and kernels that ranks compile for each other."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from emulated_gpus import run


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
    that fails or dies between messages ends all ranks. Where a GPU that nobody asked for fails, the first step is made
    again; later ones cannot be."""
    deck, script = (pathlib.Path(name).absolute() for name in ("messages.yaml", "rank.sh"))
    script.write_text("[ $OMPI_COMM_WORLD_RANK = 1 ] && export $ON_ONE\nexec \"$@\"\n", encoding="utf-8")
    line = ["mpirun", "-n", "2", "sh", str(script), os.environ["TRELLIS"], "run", str(deck), "--quiet", "--report",
            "report.json", "--set", "run.placement=devices", "--set", "run.threads=1", "--set"]
    for devices, setting, message in (
        ("gpu", "TRELLIS_GPU_IPC=off", None),
        ("gpu", "TRELLIS_GPU_IPC=of", "TRELLIS_GPU_IPC is 'of': use 'on', 'staging' or 'off'"),
        ("gpu", "TRL_EMULATED_FAIL=31", "emulated GPU"), ("gpu", "TRL_EMULATED_KILL=31", "signal 9"),
        ("auto", "TRL_EMULATED_FAIL=65", "other ranks are beyond step"), ("auto", "TRL_EMULATED_FAIL=2", None)):
        environment = {**os.environ, "ON_ONE": setting, "OMPI_MCA_odls_base_sigkill_timeout": "0"}
        done = subprocess.run([*line, f"run.devices={devices}"], env=environment, check=False, timeout=20,
                              text=True, stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
        if (done.returncode == 0) != (message is None) or message and message not in done.stdout:
            sys.exit(f"{setting} on one of two ranks ends with {done.returncode}: {done.stdout}")
        report = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))
        if "IPC" in setting and not message and report["comm"]["between_gpus"]:
            sys.exit(f"{setting} on one of two ranks, and messages between GPUs")


def check_compilers():
    """Each of two ranks of a node compiles half of what both need, the first of two nodes all of it, unless one of the
    ranks has no compiler for it. The caches of both have all then."""
    script = pathlib.Path("caches.sh").absolute()
    script.write_text("export TRELLIS_CACHE_DIR=$PWD/cache$OMPI_COMM_WORLD_RANK\nmkdir -m 700 $TRELLIS_CACHE_DIR\n"
                      "export TRL_EMULATED_COMPILED=$TRELLIS_CACHE_DIR/compiled\n"
                      "[ $OMPI_COMM_WORLD_RANK = 1 ] && export $ON_ONE\nexec \"$@\"\n", encoding="utf-8")
    line = ["mpirun", "-n", "2", "sh", str(script), os.environ["TRELLIS"], "run", "messages.yaml", "--quiet", "--set",
            "run.devices=gpu", "--set", "run.threads=1"]
    nodes = pathlib.Path(os.environ["TRELLIS_BUILD"]) / "preload" / "nodes.so"
    for setting, more in (("ALL=well", {}), ("ALL=well", {"LD_PRELOAD": str(nodes), "TRL_NODE_RANKS": "1"}),
                          ("TRELLIS_NVRTC=none.so", {})):
        done = subprocess.run(line, env={**os.environ, **more, "ON_ONE": setting}, check=False, timeout=60, text=True,
                              stderr=subprocess.PIPE)
        caches = [pathlib.Path(f"cache{rank}") for rank in (0, 1)]
        kept = [{path.name for path in cache.glob("*.cubin")} for cache in caches]
        made = [len(path.read_text(encoding="utf-8")) if path.exists() else 0
                for path in (cache / "compiled" for cache in caches)]
        alone = "NVRTC" in setting
        right = made[1] == 0 if alone or more else abs(made[0] - made[1]) <= 1
        if done.returncode or not right or sum(made) != len(kept[0]) or kept[0] != kept[1] and not alone:
            sys.exit(f"{setting} {more}: compiled by two ranks {made}, kept {kept}, {done.returncode}: {done.stderr}")
        for cache in caches:
            shutil.rmtree(cache)


check_messages()
check_unlike_ranks()
check_compilers()

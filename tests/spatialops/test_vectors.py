#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""Every row loop of direct operators computes on vectors along x, whatever the operator's axis, for rows of pairs of
lines, of lines and for others, and so do the loops that set ghosts of rows along x: seen in the disassembly, for each
instruction set that a loop is compiled for. Where there is no gcc for x86-64, the test is skipped. The objects are
those of the build, unless it has other options."""
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2])).resolve()
OPTIONS = ["-std=c17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-D_GNU_SOURCE", "-fPIC"]
REGISTERS = {"arch_x86_64_v4": "zmm", "arch_x86_64_v3": "ymm", "default": "xmm"}
ROWS = 30  # functions, at least
LOOPS = 3  # of each: over pairs of lines, over lines, over all points
KINDS = 4  # of conditions whose ghosts are computed: Dirichlet, Neumann, Robin with points on the side and without


def built(source):
    """The object of a source in the build folder, if gcc made it with the options of a release; or None."""
    commands = pathlib.Path(os.environ.get("TRELLIS_BUILD", "."), "compile_commands.json")
    for entry in json.loads(commands.read_text(encoding="utf-8")) if commands.exists() else ():
        if pathlib.Path(entry["file"]) != source:
            continue
        words = shlex.split(entry["command"])
        target = pathlib.Path(entry["directory"], words[words.index("-o") + 1])
        compiler = [word for word in words if not word.startswith("-")][words[0].endswith("ccache")]
        said = subprocess.run([compiler, "--version"], check=False, capture_output=True, text=True).stdout
        if set(OPTIONS) <= set(words) and target.exists() and "Free Software Foundation" in said:
            return target
    return None


def compiled(source, folder):
    """The functions of an object file: name and instructions."""
    target = built(source)
    if not target:
        target = folder / "rows.o"
        folders = [f"-I{ROOT / name}" for name in ("scheduler", "spatialops")]
        environment = dict(os.environ, OMPI_CC="gcc", MPICH_CC="gcc")
        subprocess.run(["mpicc", *OPTIONS, *folders, "-c", str(source), "-o", str(target)], check=True,
                       env=environment)
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(target)], check=True, capture_output=True,
                             text=True).stdout
    blocks = re.split(r"\n\n", listing)
    return {m[1]: block for block in blocks if (m := re.match(r"\s*[0-9a-f]+ <(\S+)>:", block))}


def vector_loops(text, register):
    """How many loops store vectors that they computed: jumps back over packed arithmetic and a packed store."""
    lines = [(int(m[1], 16), m[2]) for line in text.splitlines() if (m := re.match(r"\s*([0-9a-f]+):\s+(.*)", line))]
    index = {address: i for i, (address, _) in enumerate(lines)}
    loops = 0
    for i, (_, instruction) in enumerate(lines):
        jump = re.match(r"j\w+\s+([0-9a-f]+) ", instruction)
        begin = index.get(int(jump[1], 16), len(lines)) if jump else len(lines)
        body = [instruction for _, instruction in lines[begin : i + 1]]
        inner = not any(re.match(r"j\w+\s+", instruction) for instruction in body[:-1])
        computes = any(
            re.match(rf"v?(?:add|sub|mul|div|min|max)pd\s.*%{register}", instruction) for instruction in body)
        stores = any(re.match(rf"v?mov[ua]p[sd]\s+%{register}\d+,[^%]*\(", instruction) for instruction in body)
        loops += inner and computes and stores
    return loops


def main():
    if platform.machine() != "x86_64" or not all(map(shutil.which, ("gcc", "objdump", "mpicc"))):
        print("skipped: no gcc for x86-64")
        return
    with tempfile.TemporaryDirectory() as folder:
        functions = compiled(ROOT / "spatialops/operator_rows.c", pathlib.Path(folder))
        ghosts = compiled(ROOT / "spatialops/boundary_fill.c", pathlib.Path(folder))
    for suffix, register in REGISTERS.items():
        rows = {name: text for name, text in functions.items() if re.search(rf"_through\.{suffix}(?:\.\d+)?$", name)}
        scalar = [name for name, text in rows.items() if vector_loops(text, register) < LOOPS]
        if suffix == "default":  # SSE2 cannot choose lane by lane, as limiters do
            scalar = [name for name in scalar if not name.startswith("flux_")]
        if len(rows) < ROWS or scalar:
            sys.exit(f"{suffix}: {len(rows)} loops over rows, of which these do not compute on vectors: {scalar}")
        print(f"{suffix}: {len(rows)} functions with loops over rows, on {register}")
    loops = sum(vector_loops(text, "xmm") for text in ghosts.values())
    if loops < KINDS:
        sys.exit(f"boundary_fill.c: {loops} loops that set ghosts compute on vectors; there are {KINDS} kinds")
    print(f"ghosts: {loops} loops on xmm")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=1200
"""Kills runs that write, and damages their checkpoints: no file under its name is ever other than that of an
undisturbed run, and the run continues to the same end. ctest does a few of each; the long version is

    TRELLIS=build/release/trellis TRELLIS_BUILD=build/release \\
        python3 tests/inputs/test_kills.py --calls 0 --kills 100 --flips 200

--calls N: kills at N of the calls that change files (0: at each of them); --kills N: at random times, N whole runs, N
times one of several ranks and N times all of them, half of the time with shares that change (long tests: 50 of each);
--flips N: of a random bit in the latest checkpoint."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

SOURCE = pathlib.Path(__file__).resolve().parent
TRELLIS = str(pathlib.Path(os.environ["TRELLIS"]).resolve())
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
RANKS = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n"]
DECK = """trellis: 1
grid: {cells: [12, 10], periodic: [true, false], patches: [2, 1]}
expressions: {q: "-0.1*grad(T)"}
equations:
  T: {initial: "sin(2*pi*x)", ddt: "-div(q)", boundary: {y-: {dirichlet: 0}, y+: {neumann: 0}}}
time: {method: rk4, dt: 1e-3, steps: 12}
output:
  fields: [T, q]
  every: {steps: 1}
  compression: 1
  series: {every: {steps: 1}, values: {total: "integral(T)"}}
  checkpoint: {every: {steps: 3}, keep: 2}
run: {threads: 1, compile: never}
"""
RECEIVERS = """  receivers: {path: points.nc, dataset: xy, values: [T, q]}
"""
POINTS = """netcdf points { dimensions: n = 3; axis = 2; variables: double xy(n, axis);
data: xy = 0.1, 0.2, 0.5, 0.95, 0.77, 0.5; }"""


def command(*arguments, ranks=1):
    more = ["--set", "grid.patches=auto"] if ranks > 1 else []
    return [*([*RANKS, str(ranks)] if ranks > 1 else []), TRELLIS, "run", "deck.yaml", "--quiet", *more, *arguments]


def shares():
    """The environment of ranks, perhaps of those whose shares change."""
    return {"TRELLIS_SHARES": f"random:{random.randrange(1000)}"} if random.random() < 0.5 else {}


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()}


class Loop:
    """Disturbed runs in a folder, compared with one that was not."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "deck.yaml").write_text(DECK, encoding="utf-8")
        os.chdir(folder)
        if shutil.which("ncgen"):
            subprocess.run(["ncgen", "-k", "nc4", "-o", "points.nc"], input=POINTS, text=True, check=True)
            (folder / "deck.yaml").write_text(DECK.replace("run:", RECEIVERS + "run:"), encoding="utf-8")
        self.run("--set", "output.directory=whole", "--set", "output.checkpoint.keep=100")
        self.whole = {name: bytes_of(folder / "whole" / name) for name in ("fields", "checkpoint")}
        self.hash = self.final_hash("whole")
        self.received = self.read_received("whole")
        self.other_patches = False

    def run(self, *arguments, ranks=1, environment=None):
        return subprocess.run(command(*arguments, ranks=ranks), env={**ENVIRONMENT, **(environment or {})}, text=True,
                              capture_output=True, check=False, timeout=300)

    def final_hash(self, directory):
        report = json.loads((self.folder / directory / "report.json").read_text(encoding="utf-8"))
        return {tag: field["hash"] for tag, field in report["fields"].items()}

    def read_received(self, directory):
        path = self.folder / directory / "receivers.nc"
        return path.read_bytes() if path.exists() else b""

    def check_received(self):
        """Its records are some of the first ones of the whole run, and it has not more than it says."""
        found, whole = self.read_received("out"), self.received
        if not found:
            return None
        records, all_records = (int.from_bytes(text[4:8], "big") for text in (found, whole))
        end = len(whole) - (all_records - records) * 8 * (2 + 3 * 3)
        good = found[:4] == whole[:4] and found[8:end] == whole[8:end] and len(found) >= end
        said = f"receivers.nc with {records} records and {len(found)} bytes is not that of the whole run"
        return None if good else said

    def check_files(self):
        """What is under a name is what the whole run wrote under it: the same bytes by the same patches, else the same
        values."""
        out = self.folder / "out"
        for name, whole in self.whole.items():
            for file, content in bytes_of(out / name).items():
                if not file.startswith(".trellis-") and content != whole.get(file) and not self.same_values(name, file):
                    return f"{name}/{file} is not that of the whole run"
        if (out / "fields.xdmf").exists():
            xml.etree.ElementTree.parse(out / "fields.xdmf")
        return self.check_received()

    def same_values(self, name, file):
        found, whole = (self.folder / place / name / file for place in ("out", "whole"))
        return self.other_patches and subprocess.run(["h5diff", found, whole], check=False).returncode == 0

    def finish(self, ranks=1):
        """Continue, or begin anew where there is no checkpoint yet."""
        wrong = self.check_files()
        if wrong:
            return wrong
        some = list((self.folder / "out/checkpoint").glob("*.nc"))
        done = self.run(*(["--restart", "latest"] if some else []), ranks=ranks, environment=shares())
        if done.returncode != 0:
            return f"the next run ended with {done.returncode}: {done.stderr}"
        if self.final_hash("out") != self.hash:
            return "the next run came to another end"
        left = [str(path) for path in (self.folder / "out").rglob(".trellis-*")]
        if left:
            return f"left behind: {left}"
        fields = bytes_of(self.folder / "out/fields")
        if self.read_received("out") != self.received:
            return "receivers.nc is not that of the whole run"
        return self.check_files() or (None if fields.keys() == self.whole["fields"].keys() else
                                      "files of fields are missing")

    def kill_at(self, shim, call):
        shutil.rmtree("out", ignore_errors=True)
        self.other_patches = False
        done = self.run(environment={"LD_PRELOAD": str(shim), "TRL_KILL_AT": str(call)})
        if done.returncode != -signal.SIGKILL:
            return f"ended with {done.returncode} instead of being killed: {done.stderr}"
        return self.finish()

    def kill_after(self, seconds, ranks, every=False):
        """Kill one of so many ranks, or all, and continue on any number of them."""
        shutil.rmtree("out", ignore_errors=True)
        self.other_patches = ranks > 1
        with subprocess.Popen(command("--set", "time.steps=12", ranks=ranks), env={**ENVIRONMENT, **shares()},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(seconds)
            victims = [process.pid] if ranks == 1 else children_of(process.pid)
            for pid in random.sample(victims, len(victims) if every else min(1, len(victims))):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.wait()
        if not all(has_ended(pid) for pid in victims):  # the launcher may end before the other rank does
            return "a rank goes on after its launcher"
        return self.finish(1 if ranks == 1 else random.randint(1, 4))

    def kill_at_random(self, length, most, every):
        ranks = min(most, random.randint(2, 4))
        return self.kill_after(random.uniform(0.2, 1.1) * length * ranks, ranks, every)

    def flip(self, start):
        """Restart from a copy of a run that stopped, one bit of its latest checkpoint flipped."""
        shutil.rmtree("out", ignore_errors=True)
        self.other_patches = False
        shutil.copytree(start, "out")
        path = max(pathlib.Path("out/checkpoint").glob("*.nc"))
        content = bytearray(path.read_bytes())
        bit = random.randrange(8 * len(content))
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        done = self.run("--restart", "latest")
        if done.returncode != 0:
            return f"bit {bit}: ended with {done.returncode}: {done.stderr}"
        if not re.search(f"warning: checkpoint '{path}' is damaged and skipped", done.stderr):
            return f"bit {bit}: not noticed"
        return None if self.final_hash("out") == self.hash else f"bit {bit}: another end"


def children_of(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    except OSError:
        return []
    return [int(child) for child in text.split()]


def has_ended(pid):
    """Wait for a process that is no child of this one."""
    for _ in range(3000):
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "XZ":
            return True
        time.sleep(0.01)
    return False


def count_calls(loop, shim):
    shutil.rmtree("out", ignore_errors=True)
    loop.run(environment={"LD_PRELOAD": str(shim), "TRL_KILL_AT": "0", "TRL_KILL_COUNT": "count.txt"})
    return int(pathlib.Path("count.txt").read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=6)
    parser.add_argument("--kills", type=int, default=50 if "TRL_TEST_LONG" in os.environ else 1)
    parser.add_argument("--flips", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shim = folder / "kill_at.so"
        subprocess.run(
            ["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1",
             str(SOURCE / "kill_at.c"), "-o",
             str(shim), "-ldl"], check=True)
        loop = Loop(folder)
        total = count_calls(loop, shim)
        calls = range(1, total + 1) if options.calls == 0 else sorted(random.sample(range(1, total + 1), options.calls))
        shutil.rmtree("out")
        loop.run("--steps", "8")
        os.rename("out", "stopped")
        started = time.monotonic()
        loop.run()
        length = time.monotonic() - started
        kinds = {
            f"killed at one of {total} calls that change files": [lambda c=c: loop.kill_at(shim, c) for c in calls],
            **{
                f"{what} killed at a random time": [
                    lambda most=most, every=every: loop.kill_at_random(length, most, every)
                    for _ in range(options.kills)
                ]
                for most, every, what in ((1, True, "a whole run"), (4, False, "one of several ranks"),
                                          (4, True, "all ranks"))
            }, "a bit of the latest checkpoint flipped": [lambda: loop.flip("stopped") for _ in range(options.flips)],
        }
        print(f"{'what':52} {'tried':>6} {'failed':>6}")
        for what, attempts in kinds.items():
            found = [wrong for wrong in (attempt() for attempt in attempts) if wrong]
            failures += found
            print(f"{what:52} {len(attempts):6} {len(found):6}", flush=True)
        os.chdir("/")
    for wrong in failures[:20]:
        print(wrong)
    return 1 if failures else 0


sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=120
"""One of two ranks dies while it computes a part of a kernel of the other one, which the launcher is told not to end:
that one ends within seconds, and says why."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ["TRELLIS_BUILD"]).resolve()
TRELLIS = pathlib.Path(os.environ["TRELLIS"]).resolve()
LIMIT_S = 40

DECK = """trellis: 1
grid: {cells: [96, 96, 96], periodic: [true, true, true], patches: [1, 1, 3]}
equations: {T: {initial: "1 + 0.5*sin(2*pi*x)*cos(2*pi*y)", ddt: "0.1*laplacian(T)"}}
time: {method: ssprk2, dt: 1e-5, steps: 100000}
run: {compile: always, threads: 1, time_blocking: 1, owners: blocks}
"""
# The launcher does not say how ranks end that it is told not to end.
RANK = 'ulimit -c 0\nLD_PRELOAD=$TRL_DIES_PRELOAD "$@"\ncode=$?\necho $code >code.$OMPI_COMM_WORLD_RANK\nexit $code\n'


def run(folder):
    env = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_orte_abort_on_non_zero_status": "0",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "TRELLIS_HELPING": "always",
        "TRL_DIES_PRELOAD": str(BUILD / "preload" / "help_dies.so"),
    }
    command = ["mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none", "sh", "rank.sh", str(TRELLIS), "run",
               "deck.yaml", "--quiet"]
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        return process.communicate(timeout=LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(2)
        os.killpg(process.pid, signal.SIGKILL)
        sys.exit(f"the other rank waits for ever: {process.communicate()[0]}")


def main():
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = pathlib.Path(name).resolve()
        (folder / "deck.yaml").write_text(DECK, encoding="utf-8")
        (folder / "rank.sh").write_text(RANK, encoding="utf-8")
        start = time.monotonic()
        said = run(folder)
        codes = [(folder / f"code.{rank}").read_text(encoding="utf-8").strip() for rank in (0, 1)]
        print(f"{time.monotonic() - start:.1f} s, exit codes {codes}\n{said}")
        if str(128 + signal.SIGSEGV) not in codes:
            sys.exit("a rank should have died")
        other = 1 - codes.index(str(128 + signal.SIGSEGV))
        if codes[other] != "3" or f"a rank ended while it computed a part of a kernel of rank {other}" not in said:
            sys.exit("the other rank should say so")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=120
"""Makes calls fail on one of two ranks, or of four, one in each run: memory, communication, files. Every run ends
within seconds on all ranks, with exit code 0 (what failed was not needed), 2 or 3, and says once what failed. Without
arguments some of the calls; all of them with

    TRELLIS=build/release/trellis TRELLIS_BUILD=build/release python3 tests/preload/test_faults.py --all

--all makes the first, the second and the last call from each place fail, alone and with all that follow, in an order
that does not change; --what and --case choose, --seconds ends before all are done, and --first goes on from there."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ["TRELLIS_BUILD"]).resolve()
TRELLIS = pathlib.Path(os.environ["TRELLIS"]).resolve()
LIMIT_S = 30

# Runs at the same time get two cores each, where there are so many: workers are pinned, to the first cores that a run
# may use.
_cores = sorted(os.sched_getaffinity(0))
PAIRS = queue.SimpleQueue()
for _i in 2 * list(range(0, max(1, len(_cores) - 1), 2)):  # some only wait
    PAIRS.put(_cores[_i : _i + 2])

DECK = """trellis: 1
grid: {cells: [6, 5], periodic: [true, false], patches: [2, 1]}
parameters: {k: 0.1}
expressions:
  q: "-k*grad(T)"
  mean: "integral(T)"
equations:
  T:
    initial: "sin(2*pi*x)"
    ddt: "-div(q) - mean*T"
    boundary: {y-: {dirichlet: 0}, y+: {neumann: 0}}
time: {method: ssprk2, dt: {cfl: 0.4}, steps: 3}
output:
  fields: [T, q]
  compression: 1
  every: {steps: 2}
  series: {every: {steps: 1}, values: {total: "integral(T)", most: "domain_max(T)"}}
  checkpoint: {every: {steps: 2}}
RECEIVERS
run: {compile: never, balance: 1}
"""
# Coarser grids by entries, whose rows the ranks share, and one that both have.
SOLVE = """trellis: 1
grid: {cells: [46, 42]}
expressions: {k: "if(x > y, 1000, 1)"}
equations:
  q: {initial: 0, solve: "div(harmonic(k, faces)*grad(q)) - p = 0", solver: s,
      boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}
  p: {initial: 0, solve: "div(harmonic(k, faces)*grad(p)) + q = 1", solver: s, mask: "(x - 0.5)^2 + (y - 0.4)^2 > 0.01",
      boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {dirichlet: 0}}}
solvers: {s: {preconditioner: multigrid, replicate: 0, tolerance: 1e-3}}
run: {compile: never, balance: 1}
"""
# Iterations that are a call, and factors of a matrix, which are made anew in each step.
FACTORS = """trellis: 1
grid: {cells: [9, 8]}
solvers: {l: {method: lu}, c: {method: cg, preconditioner: jacobi}}
equations:
  p: {initial: 0, solve: "laplacian(p) + (90 + 500*t)*q = 1", solver: l,
      boundary: &b {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {neumann: 0}, y+: {dirichlet: 0}}}
  q: {initial: 0, solve: "laplacian(q) - 90*p = c", solver: l, boundary: *b}
  r: {initial: 0, solve: "laplacian(r) = c", solver: c, boundary: *b}
  c: {initial: 1, ddt: "r"}
time: {method: euler, dt: 0.01, steps: 2}
run: {compile: never, balance: 1}
"""
# Direct solutions, for which the ranks share planes, in steps that are agreed on late and begin before dt is known.
FLOW = """trellis: 1
grid: {cells: [8, 6, 5], periodic: [true, true, true]}
solvers: {s: {method: direct}}
incompressible: {velocity: [u, v, w], pressure: p, solver: s}
equations:
  u: {location: xface, initial: "sin(2*pi*y)", ddt: "-div(advective_flux(u, [u, at(v, zedge), at(w, yedge)]))"}
  v: {location: yface, initial: "sin(2*pi*z)", ddt: "-div(advective_flux(v, [at(u, zedge), v, at(w, xedge)]))"}
  w: {location: zface, initial: "sin(2*pi*x)", ddt: "-div(advective_flux(w, [at(u, yedge), at(v, xedge), w]))"}
time: {method: ssprk2, dt: {cfl: 0.4}, steps: 3}
output: {series: {every: {steps: 2}, spectra: {E: {of: [u, v, w]}}}}
run: {compile: never, balance: 1}
"""
# Coarser grids with the equation, of which one is cut into two patches that two ranks have each; sums of several
# programs in one message.
MERGED = """trellis: 1
grid: {cells: [20, 5], patches: [4, 1]}
equations:
  p: {location: xface, initial: 0, solve: "laplacian(p) - p = 1 + x", solver: s,
      boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {dirichlet: 0}}}
solvers: {s: {preconditioner: multigrid, method: gmres, restart: 5, replicate: 0, tolerance: 1e-6}}
run: {compile: never}
"""
POINTS = """netcdf points { dimensions: n = 3; axis = 2; variables: double xy(n, axis);
data: xy = 0.1, 0.2, 0.5, 0.95, 0.77, 0.5; }"""
# The launcher does not say how ranks end that it is told not to end.
RANK = 'LD_PRELOAD=$TRL_INJECT_PRELOAD "$@"\ncode=$?\necho $code >code.$OMPI_COMM_WORLD_RANK\nexit $code\n'
CASES = {
    "never": ["--quiet"],
    "always": ["--set", "run.compile=always", "--steps", "1", "--quiet"],
    "restart": ["--restart", "latest", "--steps", "4", "--quiet"],
    "shares": ["--quiet"],
    "solve": ["--quiet"],
    "factors": ["--quiet"],
    "flow": ["--quiet"],
    "merged": ["--quiet"],
    "trace": ["--trace", "trace.json", "--report", "again.json", "--steps", "1"],
}
RANKS = {"merged": 4}  # else 2
ENVIRONMENT = {"shares": {"TRELLIS_SHARES": "random:1"}}
MODES = {"alloc": ["once", "on"], "mpi": ["once", "after"], "write": ["once", "on"]}

Result = collections.namedtuple("Result", "code text seconds")
Place = collections.namedtuple("Place", "what name site frames calls")


def environment(folder, extra):
    env = dict(os.environ)
    env.update(
        OMPI_ALLOW_RUN_AS_ROOT="1",
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_rmaps_base_oversubscribe="1",
        OMPI_MCA_mpi_yield_when_idle="1",
        OMPI_MCA_orte_abort_on_non_zero_status="0",  # a rank that has ended does not end the other
        OMPI_MCA_btl_vader_single_copy_mechanism="none",
        TRELLIS_CACHE_DIR=str(folder / "cache"),
        TRL_INJECT_PRELOAD=str(BUILD / "preload" / "inject.so"),
        TRL_INJECT_ROOT=str(folder),
        TRL_INJECT_LOG=str(folder.parent / (folder.name + ".log")),
    )
    env.update(extra)
    return env


def launch(folder, case, extra):
    pair = PAIRS.get()
    try:
        # Open MPI removes its folder when it is empty, perhaps at the moment when another run makes its own in it.
        with tempfile.TemporaryDirectory() as own:
            return launch_on(pair, folder, case, {**extra, "OMPI_MCA_orte_tmpdir_base": own})
    finally:
        PAIRS.put(pair)


def launch_on(pair, folder, case, extra):
    command = ["taskset", "-c", ",".join(map(str, pair))]
    command += [
        "mpirun", "-n", str(RANKS.get(case, 2)), "--oversubscribe", "--bind-to", "none", "sh", "rank.sh",
        str(TRELLIS), "run", "deck.yaml", *CASES[case]
    ]
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder, {**ENVIRONMENT.get(case, {}), **extra}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=LIMIT_S)
        code = max([process.returncode, *(int(path.read_text() or 255) for path in folder.glob("code.*"))])
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(2)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        text, code = process.communicate()[0], None
    return Result(code, text.decode(errors="replace"), time.monotonic() - start)


def prepare(folder, case):
    folder.mkdir()
    receivers = ""
    if shutil.which("ncgen"):  # which writes the points
        subprocess.run(["ncgen", "-k", "nc4", "-o", str(folder / "points.nc")], input=POINTS, text=True, check=True)
        receivers = "  receivers: {path: points.nc, dataset: xy, values: [T, q]}"
    texts = {"solve": SOLVE, "factors": FACTORS, "flow": FLOW, "merged": MERGED}
    text = texts.get(case, DECK.replace("RECEIVERS", receivers))
    (folder / "deck.yaml").write_text(text)
    (folder / "rank.sh").write_text(RANK)
    (folder / "cache").mkdir(mode=0o700)
    if case == "restart":
        done = launch(folder, "never", {"TRL_INJECT": ""})
        assert done.code == 0, done.text


def messages(text):
    """What Trellis says: without what the launcher says, between lines of dashes and behind [host:process]."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("-----"):
            inside = not inside
        elif not inside and line.strip() and not line.startswith("["):
            kept.append(line)
    return kept


def judge(result):
    said = messages(result.text)
    errors = [line for line in said if "warning:" not in line]
    if result.code is None:
        return "hangs"
    if result.code not in (0, 2, 3):
        return f"exit code {result.code}"
    if "ignal" in result.text and "stopped by" not in result.text:
        return "a signal"
    if result.code and not errors:
        return "no message"
    if len(errors) != len(set(errors)):
        return "a message twice"
    if "(null)" in result.text:
        return "a message without its text"
    return None


def functions(frames):
    """The names of the functions that return addresses lie in."""
    frames = list(dict.fromkeys(frames))
    addresses = "\n".join(hex(int(frame, 16) - 1) for frame in frames)
    done = subprocess.run(
        ["addr2line", "-f", "-s", "-e", str(TRELLIS)], input=addresses, capture_output=True, text=True, check=True
    )
    return dict(zip(frames, done.stdout.splitlines()[::2]))


def places(work, what, case, rank):
    """Where calls are made that can fail, from a run in which none does."""
    folder = work / f"count-{what}-{case}-{rank}"
    prepare(folder, case)
    done = launch(folder, case, {"TRL_INJECT": what, "TRL_INJECT_RANK": str(rank)})
    assert done.code == 0, done.text
    found = {}
    for line in (work / (folder.name + ".log")).read_text().splitlines():
        name, site, *frames = line.split()
        old = found.get(site)
        found[site] = Place(what, name, site, frames, old.calls + 1 if old else 1)
    # Parts of CUDA lie in the program, too.
    named = functions(place.frames[0] for place in found.values() if place.frames)
    return [place for place in found.values() if not place.frames or "cuda" not in named[place.frames[0]].lower()]


def inject(work, number, case, rank, place, at, mode):
    folder = work / f"run-{number}"
    prepare(folder, case)
    for path in folder.glob("code.*"):
        path.unlink()
    extra = {
        "TRL_INJECT": place.what,
        "TRL_INJECT_RANK": str(rank),
        "TRL_INJECT_SITE": place.site,
        "TRL_INJECT_AT": str(at),
        "TRL_INJECT_MODE": mode,
    }
    # The other rank waits in it, and only the launcher can end that.
    if place.name in ("MPI_Init_thread", "MPI_Finalize"):
        extra["OMPI_MCA_orte_abort_on_non_zero_status"] = "1"
    result = launch(folder, case, extra)
    log = work / (folder.name + ".log")
    was_hit = log.exists() and log.stat().st_size > 0
    shutil.rmtree(folder)
    log.unlink(missing_ok=True)
    return result, was_hit


def describe(place):
    named = functions(place.frames)
    return " < ".join([place.name, *(named[frame] for frame in place.frames)])


def attempts(work, options):
    for case in options.case:
        for what in options.what:
            for rank in (0, 1):
                found = places(work, what, case, rank)
                every = max(1, len(found) // options.sample) if options.sample else 1
                for i, place in enumerate(found[every // 2 :: every]):
                    last = {1, 2, place.calls} if not options.sample else {1 + i % place.calls}
                    modes = MODES[what] if not options.sample else [MODES[what][i % 2]]
                    for at in sorted(n for n in last if n <= place.calls):
                        for mode in modes:
                            yield case, rank, place, at, mode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=int, default=1, help="places of each kind, case and rank")
    parser.add_argument("--jobs", type=int, default=PAIRS.qsize())
    parser.add_argument("--what", type=lambda s: s.split(","), default=list(MODES))
    parser.add_argument("--case", type=lambda s: s.split(","))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    options.case = options.case or (
        list(CASES) if options.all else ["never", "solve", "factors", "flow", "merged", "shares"])
    built = subprocess.run([TRELLIS, "info"], capture_output=True, text=True, check=True).stdout
    if "SuiteSparse not in this build" in built:
        options.case = [case for case in options.case if case != "factors"]
    options.sample = 0 if options.all else options.sample
    table = collections.defaultdict(lambda: [0, 0, 0.0])
    work = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
    failed = 0
    todo = list(attempts(work, options))
    random.Random(1).shuffle(todo)
    end = time.monotonic() + options.seconds
    done = options.first
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:

        def attempt(number):
            return inject(work, number, *todo[number]) if time.monotonic() < end else None

        for number, run in enumerate(pool.map(attempt, range(options.first, len(todo))), options.first):
            if run is None:
                break
            case, rank, place, at, mode = todo[number]
            result, was_hit = run
            done = number + 1
            row = table[place.what, mode, case]
            wrong = judge(result)
            row[0] += was_hit
            row[1] += wrong is not None
            row[2] = max(row[2], result.seconds)
            if wrong:
                failed += 1
                print(f"FAILED: {wrong}: {case}, rank {rank}, call {at} of {place.calls}, {mode}: {describe(place)}")
                print(
                    f"  {place.what} {place.site} {result.seconds:.1f} s, exit {result.code}\n  " +
                    "\n  ".join(result.text.splitlines()[:12]), flush=True)
    print(f"{options.first} to {done} of {len(todo)}")
    print(f"{'what':6} {'how':6} {'case':8} {'tried':>6} {'failed':>6} {'slowest':>8}")
    for (what, mode, case), (tried, bad, slowest) in sorted(table.items()):
        print(f"{what:6} {mode:6} {case:8} {tried:6} {bad:6} {slowest:7.1f} s")
    shutil.rmtree(work)
    return 1 if failed or not table else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=900
"""test_gpu.py where there is no GPU: two emulated ones, each of which gets a patch. The short form has a few decks.
Random ones are test_gpu_random.py's, messages test_emulated_messages.py's."""
import itertools
import os
import pathlib
import subprocess
import sys

from emulated_gpus import run

DECKS = ["heat_3d", "wave", "robin_cooling"]  # patches and series; ghosts of slabs, stages; sums, sides
LONG = "TRL_TEST_LONG" in os.environ
TURNS = itertools.count()
COUPLED = [  # reaction and transport; waves, also at points that differ; kinetics of three; a component beside another
    ("  u: {initial: \"1 - sin(2*pi*x)/2\", ddt: \"1e-3*laplacian(u) - u*v^2 + 0.04*(1 - u) - 0.1*cddx(u)\"}\n"
     "  v: {initial: \"0.2 + x*(1 - x)\", ddt: \"5e-4*laplacian(v) + u*v^2 - 0.1*v"
     " - div(advective_flux(v, [0.2, y]))\"}\n", "ssprk2"),
    ("  h: {initial: \"1 + sin(2*pi*x)*cos(2*pi*y)/10\", ddt: \"-cddx(h*u) - cddy(h*w)\"}\n"
     "  u: {initial: \"sin(2*pi*y)/10\", ddt: \"-u*cddx(u) - w*cddy(u) - 9.81*cddx(h)\"}\n"
     "  w: {initial: \"cos(2*pi*x)/10\", ddt: \"-u*cddx(w) - w*cddy(w) - 9.81*cddy(h)\"}\n", "ssprk3"),
    ("  p: {initial: \"sin(2*pi*x)\", ddt: \"-(2 + p/9)*div([q, r])\"}\n"
     "  q: {location: xface, initial: \"x\", ddt: \"-ddx(p)\"}\n"
     "  r: {location: yface, initial: \"y\", ddt: \"-ddy(p)\"}\n", "rk4"),
    ("  w: {initial: \"sin(2*pi*x)\", ddt: \"v\"}\n  v: {initial: 0, ddt: \"(1 + w*w)*laplacian(w) - v\"}\n"
     "  a: {initial: \"1 + x\", ddt: \"-30*a + 5*b*b\"}\n  b: {initial: \"y\", ddt: \"30*a - 25*b + c*c\"}\n"
     "  c: {initial: \"2 + x\", ddt: \"20*b - 2*c\"}\n  d: {initial: x, ddt: \"laplacian(d) - a*d\"}\n", "ssprk2"),
]


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


def check_solver():
    """What an iteration does is done on the device that has the vectors: in between only sums are copied. A grid that
    is not cut is on one GPU, unless the deck names more."""
    deck = pathlib.Path("solve.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [24, 20], periodic: [false, true]}\nequations:\n  p:\n"
                    "    solve: \"laplacian(p) = x + exp(p)\"\n    initial: 0\n    solver: s\n"
                    "    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}}\n"
                    "solvers:\n  s: {method: cg, preconditioner: jacobi}\n", encoding="utf-8")
    hashes = []
    for devices, wanted in (("cpu", 0), ("gpu", 1), ("[0, 1]", 2)):
        report = run(deck, f"run.devices={devices}")
        hashes.append(report["fields"]["p"]["hash"])
        if len(report["devices"]) - 1 != wanted:  # and the cores
            sys.exit(f"a grid that is not cut, {devices}: {report['devices']}")
    iterations = report["solvers"][0]["iterations"]
    moved = report["device_transfers"]
    tasks = {program["name"]: program["tasks"] for program in report["programs"]}
    step = tasks["step of cg of p"]  # the product, too
    if len(set(hashes)) > 1 or step[1] < 4 * iterations or step[2] != 0:
        sys.exit(f"a solver on a device: {hashes}, {iterations} iterations, {tasks}")
    if moved["p2p_bytes"] != 0 or moved["h2d_copies"] > 20 or moved["d2h_bytes"] > 3000 * (iterations + 20):
        sys.exit(f"{iterations} iterations moved {moved}")


def check_sums():
    """Kernels make sums of a whole patch, also where several devices may have the images that its rims read."""
    deck = pathlib.Path("sums.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [16, 9], periodic: [false, true], patches: [1, 1]}\n"
                    "solvers: {s: {method: cg, preconditioner: none}}\nequations:\n"
                    "  a: {initial: \"1.5 + 0.4*sin(6*x)*cos(5*y)\", ddt: \"0.01*laplacian(a)\",\n"
                    "      boundary: {x-: {neumann: 0}, x+: {neumann: 0}}}\n"
                    "  p: {solve: \"div(at(1/a, faces)*grad(p)) = sin(2*pi*y)\", solver: s,\n"
                    "      boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}}}\n"
                    "time: {method: euler, dt: 0.001, steps: 3}\n", encoding="utf-8")
    hashes = [run(deck, f"run.devices={devices}")["fields"]["p"]["hash"] for devices in ("cpu", "gpu")]
    if hashes[0] != hashes[1]:
        sys.exit(f"sums of a patch with rims on devices: {hashes}")


def check_smoothers():
    """Colours of points are relaxed on the device, lines of a level by the CPU: bits and iterations are the CPU's."""
    deck = pathlib.Path("smoothers.yaml").absolute()
    for number, (smoother, periodic) in enumerate((("red_black", "true"), ("line", "true"), ("line", "false"))):
        for left in ("d2dx(p) + 0.01*d2dy(p)", "div([exp(2*sin(5*x))*ddx(p), (1 + y)*ddy(p)])"):
            deck.write_text(f"trellis: 1\ngrid: {{cells: [23, 18], periodic: [false, {periodic}]}}\nequations:\n  p:\n"
                            f"    solve: \"{left} - p = 1 + random(3)\"\n    initial: 0\n    solver: s\n    boundary: "
                            "{x-: {dirichlet: 0}, x+: {neumann: 0}" +
                            (", y-: {dirichlet: 0}, y+: {neumann: 1}" if periodic == "false" else "") +
                            f"}}\nsolvers:\n  s: {{method: cg, preconditioner: multigrid, smoother: {smoother}}}\n",
                            encoding="utf-8")
            cuts = [f"grid.patches={patches}" for patches in ("[1, 1]", "[1, 2]", "[2, 1]")]
            turn = (number + left.startswith("div")) % 3  # of the short form
            found = [run(deck, setting) for setting in ["run.devices=cpu", *(cuts if LONG else cuts[turn:turn + 1])]]
            seen = {(report["fields"]["p"]["hash"], report["solvers"][0]["iterations"]) for report in found}
            if len(seen) > 1:
                sys.exit(f"{smoother} for {left} on GPUs: {seen}")


def check_direct():
    """A direct solution is made by the GPUs that have the grid, of whole planes where each GPU has enough of them, by
    transforms or by elimination, of a process or of ranks: no field is copied in a step. Bits are the CPU's, whichever
    tasks are on GPUs."""
    deck = pathlib.Path("direct.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [12, 70, 10], periodic: [true, false, true]}\nequations:\n  p:\n"
                    "    solve: \"d2dx(p) + ddy(k*ddy(p)) + d2dz(p) - p = f\"\n    initial: 0\n    solver: s\n"
                    "    location: yface\n    boundary: {y-: {dirichlet: 0}, y+: {neumann: 1}}\n"
                    "  f: {location: yface, initial: \"sin(2*pi*x)*y + random(5)\", ddt: p}\n"
                    "expressions: {k: 1}\nsolvers:\n  s: {method: direct}\n"
                    "time: {dt: 1e-3, steps: 2, method: ssprk2}\noutput: {fields: []}\n", encoding="utf-8")
    field, ways = 12 * 70 * 10 * 8, [(3, 1, [2, 1, 2]), (2, 2, [1, 1, 2]), (1, 1, [1, 1, 1]), (1, 1, [2, 2, 1])]
    ways += [(4, 2, [2, 2, 1]), (1, 3, [3, 1, 1])] if LONG else []
    for k, tried in (("1", ways if LONG else ways[::2]), ("1 + y", ways if LONG else ways[1::2])):
        wanted = run(deck, "run.devices=cpu", f"expressions.k={k}")["fields"]["p"]["hash"]
        for gpus, ranks, patches in tried:
            os.environ["TRL_EMULATED_GPUS"] = str(gpus)
            moved = []
            for steps in (2, 12):
                report = run(deck, f"time.steps={steps}", f"expressions.k={k}", f"grid.patches={patches}",
                             "run.threads=1", ranks=ranks)
                moved.append(sum(report["device_transfers"][f"{way}_bytes"] for way in ("h2d", "d2h")))
                if steps == 2 and report["fields"]["p"]["hash"] != wanted:
                    sys.exit(f"{gpus} GPUs, {ranks} ranks, {patches}: {report['fields']['p']}, not {wanted}")
            ghosts = ranks > 1 and gpus > ranks  # of a rank with several GPUs they go through the host
            most = 10 * field / (4 if patches == [1, 1, 1] else 1)  # of two stages; sums are by patch
            if (moved[1] - moved[0] > most and not ghosts) or "by the CPU" in report["said"]:
                sys.exit(f"direct solutions with {k} of {gpus} GPUs, {ranks} ranks, {patches} copied {moved}, and said "
                         f"'{report['said']}'")
        for ranks, seed in ((1, 3), (2, 4)):
            found = run(deck, f"run.placement=random:{seed}", f"expressions.k={k}", "grid.patches=[1, 2, 2]",
                        "run.threads=1", ranks=ranks)["fields"]["p"]["hash"]
            if found != wanted:
                sys.exit(f"direct solutions with {k} placed by seed {seed}: {found}, not {wanted}")
    os.environ["TRL_EMULATED_GPUS"] = "2"


def check_direct_failures():
    """A GPU that fails in a direct solution, of one rank, ends all: nothing hangs."""
    deck = pathlib.Path("direct.yaml").absolute()
    line = [os.environ["TRELLIS"], "run", str(deck), "--quiet", "--set", "run.devices=gpu", "--set", "run.threads=1",
            "--set", "run.placement=devices", "--set", "grid.patches=[1, 2, 2]"]
    for ranks in (1, 2):
        for number in range(60, 900, 7 if LONG else 17 if ranks == 1 else 23):
            fails = ["env", f"TRL_EMULATED_FAIL={number}", *line]
            fails = ["mpirun", "-n", "1", *fails, ":", "-n", "1", *line] if ranks > 1 else fails
            done = subprocess.run(fails, check=False, capture_output=True, text=True, timeout=60)
            if done.returncode != 3 or "failed: failure" not in done.stderr or "lost" not in done.stderr:
                sys.exit(f"launch {number} of {ranks} ranks failed: {done.returncode}, {done.stderr}")
            if any(f"kernel of '{name}'" in done.stderr for name in ("transform planes", "transform planes back")):
                break
        else:
            sys.exit(f"no direct solution of {ranks} ranks failed")


def check_chains():
    """A GPU that fails while it has steps together ends the run: nothing hangs."""
    deck = pathlib.Path("chained.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [24, 20], periodic: true}\nequations:\n"
                    "  T: {initial: \"2 + sin(2*pi*x)\", ddt: \"div(T*grad(T))\"}\n"
                    "time: {dt: 1e-5, steps: 300}\noutput: {fields: []}\n", encoding="utf-8")
    line = [os.environ["TRELLIS"], "run", str(deck), "--quiet", "--set", "run.devices=gpu", "--set", "run.threads=1",
            "--set", "run.placement=devices"]
    for dt in ("1e-5", "{cfl: 0.4}"):
        for number in range(30, 120, 13 if LONG else 29):
            done = subprocess.run([*line, "--set", f"time.dt={dt}"], check=False, capture_output=True, text=True,
                                  timeout=60, env={**os.environ, "TRL_EMULATED_FAIL": str(number),
                                                   "TRELLIS_GPU_CHAIN": "6"})
            if done.returncode != 3 or "failed: failure" not in done.stderr or "is lost" not in done.stderr:
                sys.exit(f"launch {number} of chains with {dt} failed: {done.returncode}, {done.stderr}")


def check_points():
    """Of a field on a device, only what lies around points is copied for receivers and probes, after each step; those
    beside a side and beyond a patch, too."""
    points = ", ".join(f"{0.02 + 0.019 * i:.4f}, {0.37 * i % 1:.4f}" for i in range(50))
    subprocess.run(["ncgen", "-k", "nc4", "-o", "points.nc"], check=True, text=True,
                   input=f"netcdf p {{ dimensions: r = 50; a = 2; variables: double at(r, a); data: at = {points}; }}")
    deck = pathlib.Path("points.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [48, 40], periodic: [true, false]}\nexpressions: {q: \"T*T + x\"}\n"
                    "equations:\n  T: {initial: \"sin(2*pi*x)*y\", ddt: \"laplacian(T)\", boundary: "
                    "{y-: {dirichlet: 0}, y+: {neumann: 0}}}\ntime: {dt: 1e-5, steps: 30, method: ssprk3}\n"
                    "output: {fields: [], receivers: {path: points.nc, dataset: at, values: [T, q]},\n"
                    "  series: {every: {steps: 1}, values: {a: \"probe(T, [0.3, 0.4])\", b: \"probe(q, [0, 1])\"}}}\n",
                    encoding="utf-8")
    written = []
    for devices, patches in (("cpu", "[1, 1]"), ("gpu", "[1, 1]"), ("gpu", "[2, 1]")):
        report = run(deck, f"run.devices={devices}", f"grid.patches={patches}")
        written.append([next(deck.parent.rglob(name)).read_bytes() for name in ("receivers.nc", "series.csv")])
        moved, field = report["device_transfers"]["d2h_bytes"], 48 * 40 * 8
        if written[-1] != written[0] or (patches == "[1, 1]" and moved > 10 * field):
            sys.exit(f"{devices}, {patches}: points of 30 steps moved {moved} bytes, or have other values")


def compare_waits(text, settings, gpus, least, most):
    """A deck in 93 and 133 steps, between which nobody looks at its values (inputs/watch.c): fields and the time
    reached are those of the CPU, in the short form after 133, and in these 40 steps the host waits for devices so
    often."""
    deck = pathlib.Path("waits.yaml").absolute()
    deck.write_text(text, encoding="utf-8")
    os.environ["TRL_EMULATED_GPUS"] = str(gpus)
    waits = []
    for steps in (93, 133):
        given = (f"grid.patches=[{gpus}, 1]", f"time.steps={steps}", *settings)
        gpu = run(deck, *given)
        waits.append(gpu["device_waits"])
        if steps == 93 and not LONG:
            continue
        cpu = run(deck, "run.devices=cpu", *given)
        if cpu["fields"] != gpu["fields"] or cpu["time"] != gpu["time"]:
            sys.exit(f"{settings}, {steps} steps: {gpu['fields']} at {gpu['time']}, not {cpu['fields']}\n{text}")
        if cpu["device_waits"] != 0:
            sys.exit(f"without devices the host waits for them {cpu['device_waits']} times")
    if not least <= waits[1] - waits[0] <= most:
        sys.exit(f"{settings}: the host waits for the device {waits} times in 93 and 133 steps of\n{text}")
    os.environ["TRL_EMULATED_GPUS"] = "2"


def check_waits():
    """The host seldom waits for a device, if dt is fixed or a GPU finds it, of equations by themselves and of coupled
    ones; if the host finds it, once a step, for what bounds dt."""
    start = "trellis: 1\ngrid: {cells: [24, 20], periodic: [true, true]}\nequations:\n"
    end = "time: {dt: 1e-5, steps: 40, method: ssprk2}\noutput: {fields: []}\n"
    text = start + "  T: {initial: \"2 + sin(2*pi*x)*cos(2*pi*y)\", ddt: 0}\n  S: {initial: x, ddt: T}\n" + end
    one = "div(T*grad(T)) - T*T*T"
    for dt, ddt, gpus in (("1e-5", one, 1), ("{cfl: 0.4}", one, 1), ("{cfl: 0.4}", one + " - S", 2)):
        compare_waits(text, (f"time.dt={dt}", f"equations.T.ddt={ddt}"), gpus, 0, 8)
    # Rates and conditions that read results of reductions, and what follows from these.
    read = ("equations.T.ddt=div(T*grad(T)) - T*(integral(T) + domain_max(S)^2) + 0.1*norm(T)",
            "equations.S.ddt=laplacian(S) - domain_min(T)/(1 + probe(S, [0.3, 0.6])^2)")
    for dt, rates in (("1e-5", read), ("{cfl: 0.4}", ("equations.T.ddt=laplacian(T) - 0.1*integral(T)",))):
        for gpus in (1, 2):
            compare_waits(text, (f"time.dt={dt}", *rates), gpus, 0, 0)
    for equations, method in COUPLED:
        for gpus in (1, 2):
            compare_waits(start + equations + end, ("time.dt={cfl: 0.4}", f"time.method={method}"), gpus, 0, 0)
    # More equations read each other than there are threads to look at them.
    chain = "".join(f"  T{i}: {{initial: \"x + {i}\", ddt: \"T{(i + 1) % 40} - T{i}*T{i}\"}}\n" for i in range(40))
    compare_waits(start + chain + end, ("time.dt={cfl: 0.4}",), 1, 40, 4000)


def check_ghosts():
    """Under cfl two GPUs copy what they copy with a fixed dt: what bounds dt and the first stage read the same ghosts,
    and both are where a patch's points are."""
    deck = pathlib.Path("ghosts.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [400, 36], periodic: [true, true], patches: [1, 2]}\nequations:\n"
                    "  T: {initial: \"2 + sin(2*pi*x)*cos(2*pi*y)\", ddt: \"div(T*grad(T))\"}\n"
                    "time: {dt: 1e-7, steps: 40, method: ssprk3}\noutput: {fields: []}\n", encoding="utf-8")
    moved, tasks = {}, {}
    for dt in ("1e-7", "{cfl: 0.4}"):
        reports = [run(deck, f"time.dt={dt}", f"time.steps={steps}") for steps in (40, 80)]
        moved[dt] = reports[1]["device_transfers"]["p2p_bytes"] - reports[0]["device_transfers"]["p2p_bytes"]
        tasks[dt] = reports[0]["tasks_per_step"]
    most = moved["1e-7"] + 40 * 2048  # and what is found of a patch; rows are 12,800 bytes
    if tasks["{cfl: 0.4}"] != tasks["1e-7"] - 2 or not moved["1e-7"] <= moved["{cfl: 0.4}"] <= most:
        sys.exit(f"with fixed dt, and under cfl: bytes between two GPUs {moved}, tasks of a step {tasks}")


def check_ends(deck, word, *settings):
    """A run ends with a message that has a word, the same on the CPU and on one and two GPUs, which the short form has
    in turn."""
    said, ways = [], [("cpu", "[1, 1]"), ("gpu", "[1, 1]"), ("gpu", "[2, 1]")]
    for devices, patches in ways if LONG else [ways[0], ways[1 + next(TURNS) % 2]]:
        line = [os.environ["TRELLIS"], "run", str(deck), "--quiet"]
        for setting in (f"run.devices={devices}", f"grid.patches={patches}", "run.placement=devices", *settings):
            line += ["--set", setting]
        done = subprocess.run(line, check=False, capture_output=True, text=True)
        said.append((done.returncode, done.stderr))
    if said[0][0] == 0 or word not in said[0][1] or len(set(said)) > 1:
        sys.exit(f"what ends a run under cfl: {said}")


def check_failures():
    """What a step leaves that is not finite is found with what bounds the next dt, and reported instead of it, with the
    step and cell of the CPU; a dt that is too small, or that there is none, is reported with its step."""
    deck = pathlib.Path("failures.yaml").absolute()
    start = "trellis: 1\ngrid: {cells: [24, 20], periodic: [true, true]}\nequations:\n"
    deck.write_text(start + "  T: {initial: \"1 + x\", ddt: \"0\"}\n"
                    "time: {dt: {cfl: 0.4, speed: \"1 + T*T\", max: 0.01}, steps: 60, method: euler}\n"
                    "output: {fields: [], series: {every: {steps: 1}, values: {most: \"domain_max(T)\"}}}\n",
                    encoding="utf-8")
    for ddt, least, word in (("0.01*div(T*grad(T)) + log(0.05 - t)", 1e-9, "is NaN at cell"),
                             ("0.01*div(T*grad(T)) + log(0.05 - t) - 0.01*T", 1e-9, "is NaN at cell"),
                             ("0.01*div(T*grad(T)) + 20", 1e-3, "fell below min 0.001")):
        check_ends(deck, word, f"equations.T.ddt={ddt}", f"time.dt.min={least}")
    for dt, method in (("3", "rk4"), ("0.1", "rk4"), ("3", "euler")):  # steps that are looked at, and others
        check_ends(deck, "is infinite at cell", "equations.T.ddt=10*T^8 + laplacian(T)", f"time.dt={dt}",
                   f"time.method={method}")
    for u, v, method, dt, word in (
            ("-v*u", "u*v + log(0.08 - t)", "ssprk2", "", "is NaN at cell"),
            ("-v*u", "u*v*sqrt(0.055 - t)", "euler", "max: 0.01", "the stable dt is NaN at step"),
            ("-v*u", "u/(v - 1.5)^2 + 20", "ssprk2", "max: 0.01, min: 1e-5", "fell below min 1e-05"),
            ("-v", "u*1e200*max(t - 0.055, 0)*1e200", "euler", "max: 0.01", "the stable dt is 0 at step"),
            ("v*max(0.1 - t, 0)", "-max(0.1 - t, 0)*u", "rk4", "", "nothing moves; give cfl a max"),
            ("-cddx(v)*max(t - 0.05, 0)", "-cddx(u)", "euler", "max: 0.01", "euler has no stable step for")):
        deck.write_text(start + f"  u: {{initial: \"1 + x\", ddt: \"{u}\"}}\n"
                        f"  v: {{initial: \"1 + y\", ddt: \"{v}\"}}\n"
                        f"time: {{dt: {{cfl: 0.1, {dt}}}, steps: 2000, method: {method}}}\noutput: {{fields: []}}\n",
                        encoding="utf-8")
        check_ends(deck, word)


def check_coarse_grids():
    """All grids of multigrid are the device's: a cycle moves no field, and the host does not wait for it."""
    deck = pathlib.Path("grids.yaml").absolute()
    deck.write_text("trellis: 1\ngrid: {cells: [64, 48]}\nequations:\n  p:\n    solve: \"laplacian(p) = x\"\n"
                    "    initial: 0\n    solver: s\n    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, "
                    "y-: {dirichlet: 0}, y+: {dirichlet: 0}}\n"
                    "solvers:\n  s: {method: cg, preconditioner: multigrid}\n", encoding="utf-8")
    counts = {}  # of what cycles add: the first grid and the next have their transfers on the device
    for devices, tolerance in (("cpu", "1e-9"), ("gpu", "1e-9"), ("gpu", "1e-2")):
        report = run(deck, f"run.devices={devices}", "grid.cells=[300, 270]", f"solvers.s.tolerance={tolerance}")
        solver, moved = report["solvers"][0], report["device_transfers"]
        counts[devices, tolerance] = (report["fields"]["p"]["hash"], solver["iterations"],
                                      moved["h2d_bytes"] + moved["d2h_bytes"], report["device_waits"])
    wanted, found, fewer = counts.values()
    more = found[1] - fewer[1]
    if wanted[:2] != found[:2] or more < 4 or found[2] > fewer[2] + 4000 * more or found[3] > fewer[3] + 6 * more:
        sys.exit(f"cycles on a device: hashes, iterations, bytes and waits {counts}")
    # Of what cycles are made of, the finest grid's residual alone is placed by times.
    report = run(deck, "run.devices=gpu", "run.placement=auto", "grid.cells=[300, 270]")
    made = [p for p in report["programs"] if "cycle of p" in p["name"] or "smoothing" in p["name"]]
    timed = [p for p in made if p["by"] != "another graph" and sum(p["tasks"]) > 0]
    if len(made) < 20 or [(p["name"], p["cells"]) for p in timed] != [("residual of a cycle of p", [300, 270])]:
        sys.exit(f"programs of cycles placed by themselves: {timed}, of {len(made)}")
    # Points on sides, which no kernel of a cycle computes, have their values in the device's memory, too.
    ways = (("auto", "multigrid"), ("multigrid", "auto"))
    for at, (method, helper) in itertools.product(("xface", "yface", "node"), ways):
        settings = (f"equations.p.location={at}", f"solvers.s.method={method}", f"solvers.s.preconditioner={helper}",
                    "grid.cells=[16, 24]")
        found = [run(deck, f"run.devices={devices}", *settings) for devices in ("cpu", "gpu")]
        seen = {(report["fields"]["p"]["hash"], report["solvers"][0]["iterations"]) for report in found}
        if len(seen) > 1:
            sys.exit(f"cycles on a device for an unknown at {at}, {method}: {seen}")
    # What a cycle has gathered is sent off before anything that follows it, wherever that is done.
    os.environ.update(TRL_EMULATED_LAZY="1", TRL_EMULATED_GPUS="1")
    for method, helper in (("cg", "multigrid"), ("multigrid", "auto")):
        settings = ("grid.cells=[40, 36]", f"solvers.s.method={method}", f"solvers.s.preconditioner={helper}")
        wanted = run(deck, "run.devices=cpu", *settings)["fields"]["p"]
        for seed in range(8 if LONG else 2):
            found = run(deck, "run.devices=gpu", f"run.placement=random:{seed}", *settings)["fields"]["p"]
            if found["hash"] != wanted["hash"]:
                sys.exit(f"cycles placed at random, {method}, seed {seed}: {found}, not {wanted}")
    del os.environ["TRL_EMULATED_LAZY"]
    os.environ["TRL_EMULATED_GPUS"] = "2"


check_patches()
check_ranks()
check_waits()
check_ghosts()
check_failures()
check_coarse_grids()
check_points()
check_solver()
check_sums()
check_smoothers()
check_direct()
check_direct_failures()
check_chains()
GPU = pathlib.Path(__file__).with_name("test_gpu.py")
os.execv(sys.executable, [sys.executable, str(GPU), *([] if LONG else DECKS)])

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

write_deck
# Compilers that begin behind a run, as on a busy machine they do, allocate.
expect 0 "$TRELLIS" run deck.yaml --report copy.json --set run.compile=never
silent stderr.txt
says stdout.txt "40 steps to t = 0.04 in "
says stdout.txt "error of T: l1 "
says stdout.txt "output is in out: fields/, series.csv, report.json"
says stdout.txt "plot it with: trellis plot out"
same out/report.json copy.json

python3 - <<'PYTHON'
import json
import re

report = json.load(open("out/report.json"))
keys = """version deck status ranks threads devices grid patches steps steps_run steps_in_passes steps_in_chains
    time dt wall step_s cell_updates_per_s equation_updates_per_s bytes_per_cell_step tasks_per_step tasks
    warnings bits_may_differ scheduler workers memory allocations_after_first_step comm graph device_transfers
    device_waits programs kernels shares files fields errors""".split()
inner = {
    "grid": ["cells"],
    "wall": ["setup", "compile", "loop", "output"],
    "tasks": ["overhead_ns"],
    "workers": ["tasks", "operators", "active", "busy"],
    "memory": ["peak_bytes", "planned_bytes", "copy_bytes", "metadata_bytes", "metadata_allocations"],
    "comm": ["bytes", "messages", "between_gpus", "solver_bytes", "solver_messages", "overlap", "late_s", "balance",
             "helped_points", "helped_s", "latency_s", "waits", "agreements_beside_steps"],
    "graph": ["tau_1", "tau_inf", "amdahl"],
    "shares": ["looks", "changes", "seconds", "step_part"],
    "files": ["beside_steps", "beside_s"],
    "device_transfers": ["h2d_bytes", "d2h_bytes", "p2p_bytes", "h2d_copies", "d2h_copies", "p2p_copies"],
    "fields": ["T"],
    "errors": ["T"],
}
assert sorted(report) == sorted(keys), sorted(report)
for key, wanted in inner.items():
    assert sorted(report[key]) == sorted(wanted), (key, report[key])
assert report["deck"] == "deck.yaml" and report["status"] == "done" and report["ranks"] == 1
assert report["grid"]["cells"] == [16, 12] and report["patches"] >= 1
assert report["memory"]["metadata_bytes"] > 1024 and report["memory"]["metadata_allocations"] > 10
assert report["steps"] == 40 and report["steps_run"] == 40
assert 0 <= report["comm"]["balance"] <= 1
assert abs(report["time"] - 0.04) < 1e-15 and abs(report["dt"] - 1e-3) < 1e-15
assert all(seconds >= 0 for seconds in report["wall"].values()) and report["wall"]["loop"] > 0
assert 0 < report["step_s"]["least"] <= report["step_s"]["median"] <= report["step_s"]["most"]
assert 20 * report["step_s"]["median"] <= report["wall"]["loop"]
speed = 16 * 12 * 40 / report["wall"]["loop"]
assert abs(report["cell_updates_per_s"] / speed - 1) < 1e-9
assert abs(report["equation_updates_per_s"] / (3 * speed) - 1) < 1e-9
assert report["allocations_after_first_step"] == 0
assert report["workers"]["tasks"] + report["workers"]["operators"] == report["threads"]
assert 0 < report["workers"]["busy"] <= 1
assert 1 <= report["workers"]["active"] <= report["threads"]
assert len(report["kernels"]) == 3
for kernel in report["kernels"]:
    assert kernel["bytes_per_point"] == 8 * (kernel["results"] + kernel["fields_read"])
    assert kernel["flops_per_point"] > 0
    assert kernel["bound"] in ("memory", "arithmetic") and kernel["predicted_s"] > 0 and kernel["measured_s"] > 0
    assert abs(kernel["roofline"] * kernel["measured_s"] / kernel["predicted_s"] - 1) < 1e-9
assert sorted(report["fields"]["T"]) == ["hash", "l2", "max", "min", "sum"]
assert re.fullmatch("[0-9a-f]{16}", report["fields"]["T"]["hash"])
assert 0 < report["fields"]["T"]["min"] < report["fields"]["T"]["max"] < 1
assert sorted(report["errors"]["T"]) == ["l1", "l2", "linf"]
assert 0 < report["errors"]["T"]["l1"] <= report["errors"]["T"]["linf"] < 1e-2

# Rows at the start, at each multiple of 3 steps and at the end.
rows = open("out/series.csv").read().split()
assert rows[0] == "step,time,mass", rows[0]
assert [int(row.split(",")[0]) for row in rows[1:]] == [*range(0, 40, 3), 40], rows
PYTHON

# The deck as used gives the same bits; so do other numbers of threads and ranks.
expect 0 "$TRELLIS" run out/deck.yaml --set output.directory=again --quiet
silent stdout.txt
silent stderr.txt
same_fields out/report.json again/report.json
expect 0 "$TRELLIS" run deck.yaml --set output.directory=one_thread --threads 1 --quiet
[ "$(value one_thread/report.json "r['threads']")" = 1 ] || fail "--threads 1 was not used"
same_fields out/report.json one_thread/report.json
expect 0 ranks 2 "$TRELLIS" run deck.yaml --set output.directory=two_ranks --quiet
[ "$(value two_ranks/report.json "r['ranks']")" = 2 ] || fail "the report does not say 2 ranks"
same_fields out/report.json two_ranks/report.json

# No step at all is a run too.
expect 0 "$TRELLIS" run deck.yaml --set output.directory=none --steps 0 --quiet
[ "$(value none/report.json "r['steps_run']")" = 0 ] || fail "--steps 0 made steps"

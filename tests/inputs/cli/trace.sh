# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# events FILE EXPRESSION: a Python expression of the events e of a trace, which is valid JSON, is true.
events() {
    python3 -m json.tool "$1" >json.txt || fail "$1 is no JSON"
    python3 - "$1" "$2" <<'PYTHON' || fail "$1: not true: $2"
import json
import sys

e = json.load(open(sys.argv[1]))["traceEvents"]
names = lambda what: [x["args"]["name"] for x in e if x["name"] == what]
spans = [x for x in e if x["ph"] == "X"]
tasks = [x for x in spans if x["cat"] == "task"]
sys.exit(0 if eval(sys.argv[2]) else 1)
PYTHON
}

write_deck
expect 0 "$TRELLIS" run deck.yaml --trace trace.json --threads 2
says stdout.txt "a trace is in trace.json: open it in https://ui.perfetto.dev"
silent stderr.txt
events trace.json "names('process_name') == ['rank 0'] and names('thread_name') == ['worker 0', 'worker 1']"
events trace.json "all(x['ts'] >= 0 and x['dur'] >= 0 for x in spans) and {x['tid'] for x in spans} <= {0, 1}"
# One task per stage and step is the least.
events trace.json "len(tasks) >= 3 * 40 and 'T' in {x['name'] for x in tasks}"
events trace.json "all(x['args']['dropped'] == 0 for x in e if x['name'] == 'dropped_events')"

# Tracing changes no bits, and adds no allocation to the step path.
expect 0 "$TRELLIS" run deck.yaml --set output.directory=plain --threads 2 --quiet
same_fields out/report.json plain/report.json
[ "$(value out/report.json "r['allocations_after_first_step']")" = 0 ] || fail "tracing allocates in steps"

# All ranks in one file, in their order; messages are poll tasks.
expect 0 ranks 3 "$TRELLIS" run deck.yaml --trace three.json --threads 1 --set 'grid.patches=[3, 1]' --quiet
silent stdout.txt
events three.json "names('process_name') == ['rank 0', 'rank 1', 'rank 2'] and {x['pid'] for x in tasks} == {0, 1, 2}"
events three.json "[x['pid'] for x in e] == sorted(x['pid'] for x in e)"
events three.json "any(x['name'] == 'receive' for x in tasks)"

# A run that fails leaves a trace of what it did; one that does not begin leaves none.
expect 3 "$TRELLIS" run deck.yaml --set time.dt=1e6 --trace failed.json --quiet
events failed.json "len(tasks) > 3"
expect 2 "$TRELLIS" run deck.yaml --set time.method=none --trace none.json --quiet
[ ! -e none.json ] || fail "a run that did not begin left a trace"

# Folders are made. A file that cannot be written fails the run, once for all ranks; the rest of the output is there.
expect 0 "$TRELLIS" run deck.yaml --trace new/folder/trace.json --quiet
events new/folder/trace.json "len(tasks) > 3"
ln -s /dev/full always_full
expect 3 ranks 2 "$TRELLIS" run deck.yaml --trace always_full --set output.directory=full --quiet
says stderr.txt "cannot write 'always_full': No space left on device"
[ "$(value full/report.json "r['status']")" = failed ] || fail "the report does not say that the trace failed"
[ "$(value full/report.json "r['steps_run']")" = 40 ] || fail "the run was not finished"

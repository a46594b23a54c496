# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

write_deck
expect 0 "$TRELLIS" plan deck.yaml --threads 2
says stdout.txt "workers      2 per rank, policy hybrid; its queues are those of priority"
expect 0 "$TRELLIS" plan deck.yaml --threads 2 --set run.scheduler=priority
grep -q "policy priority$" stdout.txt || fail "the plan replaces a policy that exists"
split='run.threads={tasks: 1, operators: 2}'
expect 0 "$TRELLIS" plan deck.yaml --set "$split"
says stdout.txt "workers      3 per rank: 1 for tasks, 2 for operators, policy hybrid"
expect 0 "$TRELLIS" plan deck.yaml --set "$split" --threads 2
says stdout.txt "workers      2 per rank, policy hybrid"
expect 0 "$TRELLIS" plan deck.yaml --set "$split" --set run.scheduler=serial
says stdout.txt "workers      1 per rank, policy serial"
says stderr.txt "warning: the split is not used: scheduler 'serial' has 1 worker, not 1 + 2"

# The report has the split of the deck, whatever the run did.
expect 0 "$TRELLIS" run deck.yaml --set "$split" --set output.directory=split --quiet
workers=$(value split/report.json "[r['threads'], r['workers']['tasks'], r['workers']['operators']]")
[ "$workers" = "[3, 1, 2]" ] || fail "the report says $workers, not the split"
scheduler=$(value split/report.json "[r['scheduler']['asked'], r['scheduler']['runs']]")
[ "$scheduler" = "['hybrid', 'priority']" ] || fail "the report says $scheduler of the scheduler"
expect 0 "$TRELLIS" run split/deck.yaml --set output.directory=again --quiet
[ "$(value again/report.json "r['workers']['operators']")" = 2 ] || fail "out/deck.yaml lost the split"
expect 0 "$TRELLIS" run deck.yaml --threads 1 --set output.directory=one --quiet
same_fields split/report.json one/report.json

# More than there are cores is a warning, absurdly many an error.
cores=$("$TRELLIS" info | sed -n 's/.*, \([0-9]*\) cores for this process.*/\1/p')
expect 0 "$TRELLIS" plan deck.yaml --set "run.threads={tasks: 1, operators: $cores}"
says stderr.txt "warning: $((cores + 1)) threads on $cores core"
expect 2 "$TRELLIS" plan deck.yaml --set 'run.threads={tasks: 65536, operators: 65536}'
says stderr.txt "131072 threads asked for; allowed are 1 to "
{ cat deck.yaml && echo 'run: {threads: 60000}'; } > many.yaml
expect 2 "$TRELLIS" plan many.yaml
says stderr.txt "many.yaml:$(grep -c '' many.yaml):16: 60000 threads asked for; allowed are 1 to "
expect 2 "$TRELLIS" plan deck.yaml --set 'run.threads={tasks: 0, operators: 0}'
says stderr.txt "'run.threads' has no workers: 'tasks' and 'operators' are both 0"

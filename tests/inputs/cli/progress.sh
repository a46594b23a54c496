# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# On a terminal one line is redrawn; elsewhere there are no control characters; with --quiet there is nothing.
write_deck
slow="--steps 1e8 --set output.series.every.steps=100000"
started=$(date +%s)
script -qefc "'$TRELLIS' run deck.yaml $slow" /dev/null >terminal.txt </dev/null &
terminal=$!
for ((i = 0; i < 600; ++i)); do # a busy machine takes its time
    [ "$(grep -o $'\rstep [0-9]' terminal.txt | wc -l)" -ge 3 ] && break
    sleep 0.1
done
kill -TERM $terminal
wait $terminal || true
SECONDS_RUN=$(($(date +%s) - started)) python3 - <<'PYTHON'
import os
import re

text = open("terminal.txt", newline="").read()
lines = re.findall(r"\rstep (\d+)/100000000  t [^ ]+  dt 0.001  [^ ]+ cells/s  [^ ]+ \w+ left\x1b\[K", text)
assert 2 <= len(lines) <= 10 * (int(os.environ["SECONDS_RUN"]) + 1) + 1, (len(lines), text)
steps = [int(step) for step in lines]
assert steps == sorted(set(steps)), steps
PYTHON

expect 0 "$TRELLIS" run deck.yaml
! grep -q $'[\r\e]' stdout.txt || fail "control characters outside a terminal"
expect 0 "$TRELLIS" run deck.yaml --quiet
silent stdout.txt

# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A steady state ends a run as a done one, at one step, whoever computes it and after a restart too.
write_deck
stop=(--set "output.every={steps: 50}" --set time.steps=4000 --set time.method=euler --set time.dt=0.01)
steady=(--set "time.stop={when: norm(ddt(T)) < 1e-2}")
expect 0 "$TRELLIS" run deck.yaml "${stop[@]}" "${steady[@]}" --set output.directory=whole
grep -q '^[0-9]* steps to t = .*; time.stop: norm(ddt(T)) < 1e-2$' stdout.txt ||
    fail "the summary does not say what ended the run"
[ "$(value whole/report.json "r['status'], r['stopped_by']")" = "('done', 'norm(ddt(T)) < 1e-2')" ] ||
    fail "no status done, or no reason"
last=$(value whole/report.json "r['steps']")
# The amplitude falls by 1 - dt*c in each step, c the discrete 2*pi^2*k; the norm of sin*sin is 1/2.
[ "$last" = "$(python3 - <<'PYTHON'
from math import pi, sin
c = 0.1 * sum(4 * n * n * sin(pi / (2 * n)) ** 2 for n in (16, 12))
a, steps = 0.5, 0
while c * a >= 1e-2: a, steps = a * (1 - 0.01 * c), steps + 1
print(steps)
PYTHON
)" ] || fail "it ended at step $last"
file=$(printf %08d "$last").nc
[ -e "whole/fields/$file" ] && [ -e "whole/checkpoint/$file" ] || fail "no output of the end"
[ "$(tail -n 1 whole/series.csv | cut -d, -f1)" = "$last" ] || fail "no line of series at the end"
for n in 2 4; do
    expect 0 ranks $n "$TRELLIS" run deck.yaml "${stop[@]}" "${steady[@]}" --quiet
    same_fields whole/report.json out/report.json
    [ "$(value out/report.json "r['steps']")" = "$last" ] || fail "$n ranks ended elsewhere"
done
for how in run.threads=2 run.compile=never run.compile=always run.time_blocking=4; do
    expect 0 "$TRELLIS" run deck.yaml "${stop[@]}" "${steady[@]}" --set $how --quiet
    same_fields whole/report.json out/report.json
done
rm -rf out
expect 0 "$TRELLIS" run deck.yaml "${stop[@]}" "${steady[@]}" --steps 17 --quiet
[ "$(value out/report.json "r.get('stopped_by')")" = None ] || fail "it did not end by its condition and says so"
expect 0 "$TRELLIS" run deck.yaml "${stop[@]}" "${steady[@]}" --restart latest --quiet
same_fields whole/report.json out/report.json
same whole/series.csv out/series.csv
# What ended is ended.
expect 0 "$TRELLIS" run deck.yaml "${stop[@]}" "${steady[@]}" --restart latest --quiet
[ "$(value out/report.json "r['steps'], r['steps_run']")" = "($last, 0)" ] ||
    fail "a restart goes on past the condition"

# Values of series by their names, which hide others; t, step; and when it is looked at.
ends() { # step, condition, every
    expect 0 "$TRELLIS" run deck.yaml "${stop[@]}" --set "output.series.values={T: integral(T), e2: 1}" \
        --set "time.stop={when: \"$2\", every: ${3:-{steps: 1\}}}" --quiet
    [ "$(value out/report.json "r['steps']")" = "$1" ] ||
        fail "'$2' ended the run at step $(value out/report.json "r['steps']"), not $1"
}
ends 7 "step >= 7 and e2 == 1"
ends 10 "step >= 7" "{steps: 5}"
ends 25 "t >= 0.2" "{at: [0.1, 0.25]}"
ends "$(python3 - <<'PYTHON'
from math import pi, sin
c = 0.1 * sum(4 * n * n * sin(pi / (2 * n)) ** 2 for n in (16, 12))
a, steps = 1 / (16 * sin(pi / 32) * 12 * sin(pi / 24)), 0
while a >= 0.31: a, steps = a * (1 - 0.01 * c), steps + 1
print(steps)
PYTHON
)" "T < 0.31 and step > 3"

expect 2 "$TRELLIS" check deck.yaml --set "time.stop={when: T < 1}"
grep -q "the condition of time.stop is one number, and this varies over the domain" stderr.txt ||
    fail "no message about a field"

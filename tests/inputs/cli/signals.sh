# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A signal ends a run after its step, with a checkpoint from which it goes on as if nothing had happened.
write_deck
wait_for() {
    for _ in $(seq 1200); do # a busy machine is slow
        [ ! -e "$1" ] || return 0
        sleep 0.05
    done
    fail "$1 did not appear"
}

# interrupt SIGNAL COMMAND...: send the signal once the run is on its way.
interrupt() {
    local signal=$1 status=0
    shift
    rm -rf out
    "$@" >stdout.txt 2>stderr.txt &
    local process=$!
    wait_for out/series.csv
    sleep 0.3
    kill -"$signal" $process
    wait $process || status=$?
    [ "$status" = 3 ] || fail "$signal ended the run with $status, expected 3"
    [ "$(value out/report.json "r['status']")" = interrupted ] || fail "the report does not say 'interrupted'"
    steps=$(value out/report.json "r['steps']")
    [ -s "out/checkpoint/$(printf %08d "$steps").nc" ] || fail "no checkpoint of step $steps"
}

# A shell without job control starts background commands with SIGINT ignored; this gives it back.
give_back_sigint='import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])'

series="--set output.series.every.steps=1000"
for signal in TERM INT; do
    # A function in the background is a shell of its own that the signal would miss: the command itself must be the
    # process.
    interrupt $signal python3 -c "$give_back_sigint" "$TRELLIS" run deck.yaml --steps 1e8 $series --quiet
    advice="a checkpoint is in out/checkpoint, continue with --restart latest"
    says stderr.txt "stopped by SIG$signal after step $steps; $advice"
done

end=$((steps + 5))
expect 0 "$TRELLIS" run deck.yaml --steps $end $series --restart latest --quiet
expect 0 "$TRELLIS" run deck.yaml --steps $end $series --set output.directory=whole --quiet
same_fields whole/report.json out/report.json
same whole/series.csv out/series.csv

# All ranks agree on the step, whichever of them hears the signal.
rm -rf out
ranks 2 sh -c 'echo $$ >"pid.$OMPI_COMM_WORLD_RANK" && exec "$@"' sh "$TRELLIS" run deck.yaml --steps 1e8 $series \
    --quiet >stdout.txt 2>stderr.txt &
process=$!
wait_for out/series.csv
sleep 0.5
kill -TERM "$(cat pid.1)"
status=0
wait $process || status=$?
[ "$status" = 3 ] || fail "the run on two ranks ended with $status, expected 3"
grep -q "stopped by SIGTERM after step" stderr.txt || fail "no message"
[ "$(value out/report.json "r['status']")" = interrupted ] || fail "the report does not say 'interrupted'"

# A multistep method begins anew at a checkpoint that nobody asked for.
cat >bdf.yaml <<'DECK'
trellis: 1
grid: {cells: [8], periodic: [true]}
equations: {u: {initial: "1 + x", ddt: "-1e-3*u^2 + sin(t)"}}
time: {method: {name: bdf, tolerance: {relative: 1e-6}}, end: 1e7}
output: {series: {every: {steps: 1000}, values: {n: norm(u)}}, checkpoint: {every: {steps: 1000000000}}}
DECK
if "$TRELLIS" check bdf.yaml >stdout.txt 2>&1; then
    interrupt TERM "$TRELLIS" run bdf.yaml --quiet
    says stderr.txt "continue with --restart latest, which begins at order 1: as no checkpoint is due at this step"
    # So one whose checkpoints are a few steps apart takes many more of them, which a warning says once.
    expect 0 ranks 2 "$TRELLIS" run bdf.yaml --quiet --set output.checkpoint.every.steps=5 --set time.steps=30
    says stderr.txt "bdf begins anew at each checkpoint, with small steps of order 1, and 3 of them came fewer than 20"
    for other in output.checkpoint.every.steps=25 time.method.name=dp5; do
        expect 0 "$TRELLIS" run bdf.yaml --quiet --set output.checkpoint.every.steps=5 --set time.steps=80 --set $other
        silent stderr.txt
    done
fi

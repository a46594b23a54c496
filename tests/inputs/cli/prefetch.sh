# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Prefetch, on and off: formulas on two devices, whose last kernel reads what a plugin computes on the CPU at the
# beginning of a step.
. "$(dirname "$0")/lib/common.bash"

export TRL_MOCK_DEVICES="2:rate=200M,latency=20us,clock=virtual"
export TRL_BALANCE=6e10,9e10,1.4e11,1.5e10,5e9 # what is planned does not depend on this machine
deck=("$TRELLIS_SOURCE/inputs/decks/heat_plugin.yaml" --set grid.cells=[128,128] --set grid.patches=[2,1]
    --set time.dt=1e-6 --set time.method=euler --set run.fusion=none --set run.placement=devices
    --set "equations.spot.ddt=div(k*grad(spot))")

# Seconds of a step that a plan predicts, and at which a copy begins.
step() {
    sed -n 's/^  a step *\([0-9.e+-]*\) \([um]\)s predicted.*/\1 \2/p' "$1" |
        awk '{ print $1 * ($2 == "u" ? 1e-6 : 1e-3) }'
}
start() {
    sed -n 's/^    heat .* to device 0, from \([0-9.e+-]*\) \([um]\)s to .* before T$/\1 \2/p' "$1" |
        awk '{ print $1 * ($2 == "u" ? 1e-6 : 1e-3) }'
}

for prefetch in true false; do
    expect 0 "$TRELLIS" plan "${deck[@]}" --set run.prefetch=$prefetch
    mv stdout.txt plan_$prefetch.txt
    expect 0 "$TRELLIS" run "${deck[@]}" --set run.prefetch=$prefetch --steps 12 --quiet --report $prefetch.json \
        --trace $prefetch.trace
    grep -q '"name":"heat"' $prefetch.trace || fail "no copy in the trace"
done
same_fields true.json false.json
grep -q "^placement.*; without prefetch$" plan_false.txt || fail "the plan does not say that there is no prefetch"
grep -q "prefetch$" plan_true.txt && fail "the plan says something about prefetch"
awk "BEGIN { exit !($(step plan_true.txt) < $(step plan_false.txt)) }" || fail "a step is not planned to be shorter"
awk "BEGIN { exit !($(start plan_true.txt) < $(start plan_false.txt)) }" ||
    fail "heat is not planned to be copied earlier"
for json in true false; do
    [ "$(value $json.json "r['placement']['prefetch_lead_s'] >= 0")" = True ] || fail "no lead of copies"
done
[ "$(value true.json "r['device_transfers']")" = "$(value false.json "r['device_transfers']")" ] ||
    fail "the copies differ"
[ "$(value true.json "r['placement']['regions']")" -lt "$(value false.json "r['placement']['regions']")" ] ||
    fail "copies that wait for their readers do not part regions"
expect 2 "$TRELLIS" check "${deck[@]}" --set run.prefetch=off

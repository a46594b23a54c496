# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# The heat equation of Robison's thesis as types that apply operators: its graph (figure 3.8), and the bits of the
# formulas, on workers and on devices.
. "$(dirname "$0")/lib/common.bash"

deck=$TRELLIS_SOURCE/inputs/decks/heat_operators.yaml
small=(--set 'grid.cells=[12,10]' --set time.end=0.01 --quiet)
sed -e '/^plugins:/d' -e 's/^  flux:.*/  q: "-lambda*grad(T)"/' -e 's|^  balance:.*|  dTdt: "(-div(q) + S)/rho_cp"|' \
    "$deck" >formula.yaml
! grep -q type: formula.yaml || fail "formula.yaml still has a type"

# same_bits REPORT: T, q and dTdt as by the formulas.
same_bits() {
    for field in T q.x q.y dTdt; do
        [ "$(value "$1" "r['fields']['$field']['hash']")" = "$(value formula.json "r['fields']['$field']['hash']")" ] ||
            fail "$field has other bits in $1 than by the formulas"
    done
}

expect 0 "$TRELLIS" run formula.yaml "${small[@]}" --report formula.json
expect 0 "$TRELLIS" run "$deck" "${small[@]}" --threads 2 --set run.fusion=none --report threads.json
same_bits threads.json
expect 0 ranks 2 "$TRELLIS" run "$deck" "${small[@]}" --report ranks.json
same_bits ranks.json
TRL_MOCK_DEVICES=2 expect 0 "$TRELLIS" run "$deck" "${small[@]}" --set run.placement=random:3 --report mock.json
same_bits mock.json

# Devices do all that they do of the formulas: nothing comes back for the types.
for name in "$deck" formula.yaml; do
    TRL_MOCK_DEVICES=1 expect 0 "$TRELLIS" run "$name" "${small[@]}" --set run.placement=devices --report where.json
    value where.json "r['placement']['tasks'], r['device_transfers']" >>where.txt
done
[ "$(sort -u where.txt | wc -l)" = 1 ] || fail "types and formulas are done elsewhere: $(cat where.txt)"
[ "$(value where.json "r['placement']['tasks'][1] > 0")" = True ] || fail "the device does nothing"

cat >golden.dot <<'DOT'
digraph dependencies {
  rankdir=LR;
  node [fontname="Helvetica"];
  "T" [shape=box, style=bold];
  "T" -> "dTdt";
  "S" [shape=ellipse];
  "S" -> "solution";
  "flux" [shape=hexagon];
  "flux" -> "T";
  "q.x" -> "flux" [dir=back, style=dashed];
  "q.y" -> "flux" [dir=back, style=dashed];
  "balance" [shape=hexagon];
  "balance" -> "q.x";
  "balance" -> "q.y";
  "balance" -> "S";
  "dTdt" -> "balance" [dir=back, style=dashed];
  "solution" [shape=ellipse];
}
DOT
expect 0 "$TRELLIS" plan "$deck" --dot graph
same golden.dot graph.expressions.dot

says stdout.txt "  flux                 type fourier_flux, 2 tags from 1, device-neutral"
expect 2 "$TRELLIS" check "$deck" --set expressions.flux.device=cpu
says stderr.txt "type 'fourier_flux' is device-neutral: what it applies runs where its fields are"

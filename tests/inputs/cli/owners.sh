# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Whichever rank has which patches: auto takes what costs the ranks less, and a run goes on under other owners.
. "$(dirname "$0")/lib/common.bash"

write_deck
cut=(--set grid.cells=[12,64,64] --set grid.patches=[1,8,8]
    --set "equations.T.boundary.z-={dirichlet: 0}" --set "equations.T.boundary.z+={dirichlet: 0}")
for case in "2 blocks" "4 curve"; do
    read -r n order <<<"$case"
    expect 0 ranks "$n" "$TRELLIS" plan deck.yaml "${cut[@]}" --threads 1 --set run.balance=1
    says stdout.txt "1 x 8 x 8 patches on $n ranks, owners: $order"
done
expect 0 "$TRELLIS" plan deck.yaml "${cut[@]}" --set run.balance=1
[ "$(grep -c owners: stdout.txt)" = 0 ] || fail "one rank has all patches"

expect 0 "$TRELLIS" run deck.yaml --set output.directory=whole --quiet
cut=(--set grid.patches=[3,3])
expect 0 ranks 2 "$TRELLIS" run deck.yaml --steps 23 --quiet "${cut[@]}" --set run.owners=random:1
mv out/checkpoint/00000023.nc middle.nc
for owners in random:2 curve blocks; do
    expect 0 ranks 3 "$TRELLIS" run deck.yaml --restart middle.nc --quiet "${cut[@]}" \
        --set run.owners=$owners
    same_fields whole/report.json out/report.json
    same whole/series.csv out/series.csv
    for file in whole/fields/*.nc; do expect 0 h5diff "$file" "out/fields/${file##*/}"; done
done

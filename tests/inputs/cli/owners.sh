# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# How many patches ranks have, and which: auto takes what costs the ranks less, and a run goes on under other owners.
. "$(dirname "$0")/lib/common.bash"

write_deck
sed /boundary:/d deck.yaml >round.yaml
cut=(round.yaml --set grid.cells=[12,64,64] --set grid.patches=[1,8,8] --set grid.periodic=[true,true,true])
for case in "4 blocks" "8 curve"; do
    read -r n order <<<"$case"
    expect 0 ranks "$n" "$TRELLIS" plan "${cut[@]}" --threads 1 --set run.balance=1
    says stdout.txt "1 x 8 x 8 patches on $n ranks, owners: $order"
done
expect 0 "$TRELLIS" plan "${cut[@]}" --set run.balance=1
[ "$(grep -c owners: stdout.txt)" = 0 ] || fail "one rank has all patches"

# The plan says why ranks have as many patches as they have.
expect 0 ranks 3 "$TRELLIS" plan deck.yaml --threads 1 --set run.balance=1
says stdout.txt "one for each rank: more would spare the slowest rank less than 10 % of it"
expect 0 ranks 5 "$TRELLIS" plan deck.yaml --threads 1 --set run.balance=1 --set grid.cells=[3,2]
says stdout.txt "up to 2 for each rank: the grid cannot be cut into one for each"
expect 2 ranks 5 "$TRELLIS" plan deck.yaml --threads 1 --set run.balance=1 --set grid.cells=[2,2]
says stderr.txt "a grid of 2 x 2 x 1 cells has none for some of 5 ranks; use at most 4 ranks"

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

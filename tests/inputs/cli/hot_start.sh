# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A field of one run is the initial value of the next, to the bit, on any number of ranks.
decks="$TRELLIS_SOURCE/inputs/decks"
cells="grid.cells=[33, 20]"
expect 0 "$TRELLIS" run "$decks/heat_2d.yaml" --set "$cells" --steps 7 --quiet
path="expressions.warm.parameters.path=$PWD/out/heat_2d/fields/00000007.nc"
for n in 1 3; do
    expect 0 ranks $n "$TRELLIS" run "$decks/hot_start.yaml" --set "$cells" --set "$path" --steps 0 --quiet
    same_fields out/heat_2d/report.json out/hot_start/report.json
done

# Its sides are insulated: what it holds at the end is what it held at the start.
expect 0 "$TRELLIS" run "$decks/hot_start.yaml" --set "$cells" --set "$path" --steps 50 --quiet
awk -F, 'NR == 2 { first = $3 } END { exit !(NR > 2 && ($3 - first)^2 < (1e-13*first)^2) }' out/hot_start/series.csv ||
    fail "the heat of the insulated plate changed"

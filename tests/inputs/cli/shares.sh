# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# What each rank gets of the cells: as the deck says, or changing while steps go on, without a trace in what is written.
. "$(dirname "$0")/lib/common.bash"

write_deck
expect 0 "$TRELLIS" run deck.yaml --set output.directory=whole --quiet
same_output() {
    same_fields whole/report.json out/report.json
    same whole/series.csv out/series.csv
    for file in whole/fields/*.nc; do expect 0 h5diff "$file" "out/fields/${file##*/}"; done
}

changes() {
    python3 -c 'import json; print(json.load(open("out/report.json"))["shares"]["changes"])'
}

expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet --set run.shares=[1,3]
same_output
expect 0 ranks 2 "$TRELLIS" plan deck.yaml --threads 1 --set run.shares=[1,2]
says stdout.txt "shares       ranks have from 33.3 to 66.7 % of the cells"

for seed in 1 2; do
    TRELLIS_SHARES=random:$seed expect 0 ranks 3 "$TRELLIS" run deck.yaml --quiet --set output.compression=$seed
    same_output
    [ "$(changes)" -gt 5 ] || fail "few changes"
done

# A restart from a checkpoint behind changes, and changes behind a restart.
TRELLIS_SHARES=random:4 expect 0 ranks 2 "$TRELLIS" run deck.yaml --steps 23 --quiet
TRELLIS_SHARES=random:5 expect 0 ranks 3 "$TRELLIS" run deck.yaml --restart latest --quiet
same_output

# What was said when the run began is not said again.
TRELLIS_SHARES=random:6 expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet --set run.scheduler=serial \
    --set 'run.threads={tasks: 1, operators: 1}'
says stderr.txt "the split is not used"

# Nothing changes where the deck says so, on one rank, and where there are no steps.
TRELLIS_SHARES=random:1 expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet --set run.shares=even
[ "$(changes)" = 0 ] || fail "changes"

expect 2 ranks 3 "$TRELLIS" run deck.yaml --quiet --set run.shares=[1,3]
says stderr.txt "'run.shares' has 2 numbers for 3 ranks; give one for each rank, or auto"
expect 2 "$TRELLIS" run deck.yaml --quiet --set run.shares=[1,0]
says stderr.txt "item 2 of 'run.shares' must be a number greater than 0"
expect 2 "$TRELLIS" run deck.yaml --quiet --set run.shares=odd
says stderr.txt "'run.shares' must be auto, even or a list of numbers greater than 0"

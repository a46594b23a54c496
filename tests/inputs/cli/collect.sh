# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# The files of output times as one: the same values, and a file that plot reads like the others.
write_deck
expect 0 "$TRELLIS" run deck.yaml --quiet --set output.checkpoint.every.steps=40
expect 0 "$TRELLIS" collect out
says stdout.txt out/all.nc
expect 0 "$TRELLIS" collect out/fields -o one.nc
same out/all.nc one.nc
[ "$(ls -A . | grep -c trellis-)" = 0 ] || fail "something was left aside"
expect 0 "$TRELLIS" plot out --time 0.02 -o many.png
expect 0 "$TRELLIS" plot one.nc --time 0.02 -o one.png
same many.png one.png
expect 0 "$TRELLIS" plot one.nc -o last.png
expect 0 "$TRELLIS" plot out -o last_of_many.png
same last.png last_of_many.png

# A part of it is not a field of one time.
expect 2 "$TRELLIS" check deck.yaml \
    --set 'expressions={T0: {type: file, parameters: {path: one.nc, dataset: T}, computes: [T0]}}' \
    --set equations.T.initial=T0
grep -q "dataset 'T' in '.*one.nc' holds 7 times; use the file of one output time" stderr.txt ||
    fail "no message about the times"

# What does not fit together is named, and nothing is written.
expect 0 "$TRELLIS" run deck.yaml --quiet --set output.directory=other --set 'grid.cells=[16, 11]'
cp other/fields/00000040.nc out/fields/00000041.nc
expect 3 "$TRELLIS" collect out -o two.nc
grep -q "out/fields/00000041.nc: cannot be collected: it belongs to another grid: its cells is \[16, 11\]" stderr.txt ||
    fail "no message about the grid"
head -c 3000 out/fields/00000040.nc >out/fields/00000041.nc
expect 3 "$TRELLIS" collect out -o two.nc
grep -q "out/fields/00000041.nc: cannot be collected: truncated file" stderr.txt || fail "no message about the cut file"
[ ! -e two.nc ] || fail "something was written all the same"
expect 3 "$TRELLIS" collect .
grep -q "holds no files of fields" stderr.txt || fail "no message about the empty folder"

# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A value that is not finite is found wherever it is in a row: in the first and last lanes, which read what lies beyond
# the sides, between them, and in rows shorter than the lanes. Compiled kernels look at sums: of one infinity, of two of
# either sign, of a number that is none. Of numbers near the largest one a sum is infinite, too, and each of them is
# not.
deck() {
    local cells=$1 periodic=$2 rate=$3 sides="y-: {neumann: 0}, y+: {neumann: 0}"
    [ "$periodic" = true ] || sides="x-: {neumann: 0}, x+: {dirichlet: 1}, $sides"
    cat >deck.yaml <<DECK
trellis: 1
grid: {cells: [$cells, 3], length: [$cells, 3], periodic: [$periodic, false]}
equations:
  T: {initial: "1", ddt: "div(0.1*grad(T)) + $rate", boundary: {$sides}}
  S: {initial: "1", ddt: "div(0.1*grad(S)) - $rate", boundary: {$sides}}
time: {method: euler, dt: 1, steps: 1}
DECK
}

# found WHAT CELL...: in a run that starts at time t, cell t is not finite.
found() {
    local what=$1 cell
    shift
    for cell; do
        expect 3 "$TRELLIS" run deck.yaml --quiet --set "time.start=$cell" --set "run.compile=$compile"
        says stderr.txt "'T' is $what at cell ($cell, 0)"
    done
}

for compile in always never; do
    for periodic in false true; do
        deck 21 $periodic "1/(x - 0.5 - t)"
        found infinite 0 1 7 8 13 20
    done
    deck 3 false "1/(x - 0.5 - t)"
    found infinite 0 1 2
    deck 21 false "sqrt(abs(x - 0.5 - t) - 0.5)"
    found NaN 0 5 20
    deck 21 false "(1.5e308 + 0*t)"
    expect 0 "$TRELLIS" run deck.yaml --quiet --set "run.compile=$compile"

    # Points on a side are set by a kernel of their own, after which they are finite or the run ends.
    cat >deck.yaml <<DECK
trellis: 1
grid: {cells: [6, 5], periodic: [false, true]}
equations:
  u: {location: xface, initial: 1, ddt: 0, boundary: {x-: {dirichlet: "sqrt(0.25 - t)"}, x+: {dirichlet: 1}}}
time: {method: euler, dt: 0.1, steps: 6}
DECK
    expect 3 "$TRELLIS" run deck.yaml --quiet --set "run.compile=$compile"
    says stderr.txt "'u' is NaN at cell (0, 0), x = 0, y = 0.1, after step 3, t = 0.3"
done

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# In 2-D `node` and `zedge` are one place: plan, messages and files name it as the deck does, and read either.
attribute() {
    ! command -v ncdump >/dev/null || expect 0 ncdump -h "$1"
    ! command -v ncdump >/dev/null || says stdout.txt "$2:location = \"$3\" ;"
}
for word in node zedge; do
    cat >deck.yaml <<DECK
trellis: 1
grid: {cells: [8, 6]}
expressions: {w: "at(c, $word)*2"}
equations:
  n: {location: $word, initial: "x", ddt: "-n"}
  c: {initial: "y", ddt: "-c", boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}
time: {dt: 0.1, steps: 9, method: euler}
output: {directory: out, fields: [n, c, w], checkpoint: {every: {steps: 1}}}
DECK
    expect 0 "$TRELLIS" plan deck.yaml
    says stdout.txt "  n                    equation at $word"
    expect 2 "$TRELLIS" check deck.yaml --set equations.n.ddt=c-n
    says stderr.txt "values at cell and $word cannot be combined: interpolate one with at(..., cell) or at(..., $word)"
    expect 0 "$TRELLIS" run deck.yaml --steps 1 --quiet
    attribute out/fields/00000001.nc n "$word"
    attribute out/fields/00000001.nc w "$word"
    sed -i "s/$word/$([ "$word" = node ] && echo zedge || echo node)/" deck.yaml
    expect 0 "$TRELLIS" run deck.yaml --steps 2 --restart latest --quiet
    expect 0 "$TRELLIS" collect out -o "$word.nc"
    attribute "$word.nc" n "$word"
done

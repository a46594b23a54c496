# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A family of values is the same file as its members written out; an index hides a parameter of its name.
write_deck
sed -i 's/^parameters: .*/parameters: {k: 0.1, i: 7, n: 3, x1: 0.2, x2: 0.3, x3: 0.55}/' deck.yaml
values() { printf 'output.series.values={%s}' "$1"; }
expect 0 "$TRELLIS" run deck.yaml --quiet --set output.directory=spelled \
    --set "$(values 'r1: "probe(T, [x1, 0.1])", r2: "probe(T, [x2, 0.1])",
    r3: "probe(T, [x3, 0.1])", "{i}": "7", g0_2: "0+2*10", g0_3: "0+3*10", g1_2: "1+2*10", g1_3: "1+3*10"')"
expect 0 "$TRELLIS" run deck.yaml --quiet \
    --set "$(values '"r{1..n}": "probe(T, [x{i}, 0.1])", "{i}": i, "g{0..1}_{2..3}": "i+j*10"')"
same spelled/series.csv out/series.csv
expect 0 "$TRELLIS" run out/deck.yaml --quiet
same spelled/series.csv out/series.csv

# What steps and systems took is what the report says.
expect 0 "$TRELLIS" run deck.yaml --quiet --set "$(values 'm: "integral(T)"')" --set output.series.solvers=true \
    --set time.method=esdirk3
python3 - <<'END' || fail "series of solvers"
import json
head, *rows = open("out/series.csv").read().split()
last, report = dict(zip(head.split(","), rows[-1].split(","))), json.load(open("out/report.json"))
assert int(last["order"]) == 3 and int(last["rejected"]) == 0, last
assert int(last["T:iterations"]) == report["solvers"][0]["iterations"] > 0, (last, report["solvers"])
END

refuses() { # values, message
    expect 2 "$TRELLIS" check deck.yaml --set "$(values "$1")"
    grep -qF "$2" stderr.txt || fail "no message '$2'"
}
refuses '"r{1..2}": "i", r2: 1' "two values of the series are named 'r2'; choose another name"
refuses '"r{3..1}": "i"' "the range '3..1' is empty"
expect 2 "$TRELLIS" run deck.yaml --set "$(values 'order: 1')" --set output.series.solvers=true
grep -qF "a value of the series is named 'order', as is a column of solvers" stderr.txt || fail "order is taken"
refuses '"r{1..4}": "probe(T, [x{i}, 0.1])"' "'x4'"

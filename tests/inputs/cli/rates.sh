# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# ddt(f) in series is the derivative that the next step starts from: of an equation, a point on a side, a masked one, a
# sensitivity; at t itself, in every step.
cat >deck.yaml <<'DECK'
trellis: 1
grid: {cells: [16]}
parameters: {k: 0.1}
expressions: {e: "-u + t"}
equations:
  T: {initial: "x^2", ddt: "k*laplacian(T)", boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}}}
  u: {location: xface, initial: "1 + sin(pi*x)", ddt: "e", boundary: {x-: {dirichlet: 1}, x+: {neumann: 0}}}
  m: {initial: "1 + x", ddt: "-m", mask: "x > 0.5"}
sensitivity: {T: [k]}
time: {method: euler, dt: 1e-3, steps: 5}
output:
  series:
    every: {steps: 1}
    values: {T: "norm(ddt(T))", l: "norm(laplacian(T))", du: "probe(ddt(u), [0.5])", u: "probe(u, [0.5])",
             side: "probe(ddt(u), [0])", dm: "probe(ddt(m), [0.2])", low: "domain_min(ddt(m))", m: "domain_max(m)",
             ds: "probe(ddt(T_k), [0.3])", s: "probe(T_k, [0.3])"}
DECK
expect 0 "$TRELLIS" run deck.yaml --quiet
[ "$(python3 - out/series.csv <<'PYTHON'
import csv, sys
rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(open(sys.argv[1]))]
close = lambda a, b: abs(a - b) <= 1e-12 * max(1, abs(b))
for now, then in zip(rows, rows[1:] + [None]):
    assert close(now["T"], 0.1 * now["l"]), ("T", now)
    assert close(now["du"], now["time"] - now["u"]) and now["side"] == 0, ("u", now)
    assert now["dm"] == 0 and close(now["low"], -now["m"]), ("m", now)
    if then:
        assert close(then["s"], now["s"] + 1e-3 * now["ds"]), ("s", now, then)
print(len(rows))
PYTHON
)" = 6 ] || fail "a rate is not the derivative: $(cat out/series.csv)"

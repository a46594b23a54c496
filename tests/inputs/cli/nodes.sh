# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Ranks of a node agree and reduce in memory that they share, those of several nodes by messages of one rank of each, or
# of all: no bit depends on it, and an error ends all.
. "$(dirname "$0")/lib/common.bash"

# nodes RANKS N COMMAND: ranks, so many on each node.
nodes() {
    local n=$1 of_node=$2
    shift 2
    ranks "$n" env LD_PRELOAD="$TRELLIS_BUILD/preload/nodes.so" TRL_NODE_RANKS="$of_node" "$@"
}

cat >deck.yaml <<'DECK'
trellis: 1
grid: {cells: [24, 24], periodic: [true, true]}
equations:
  T: {initial: "1 + sin(2*pi*x)*cos(2*pi*y)", ddt: "div((1 + T^2)*grad(T)) + b*T^3 - 0.1*p + 0.01*integral(T)"}
  p: {initial: 0, solve: "laplacian(p) - p = T", solver: r}
parameters: {b: 0}
solvers: {r: {method: cg, preconditioner: jacobi, iterations: 200}}
time: {method: ssprk3, dt: {cfl: 0.4}, steps: 6}
output: {directory: out, series: {every: {steps: 1}, values: {most: "domain_max(T)"}, profiles: {P: {of: T, along: y}},
    spectra: {E: {of: T}}}}
DECK
# One to six nodes: powers of two, and others.
for way in "4 4" "4 3" "4 2" "4 1" "6 2" "6 1"; do
    read -r n of_node <<<"$way"
    test_long || [[ $way != "4 2" && $way != "6 1" ]] || continue
    expect 0 nodes "$n" "$of_node" "$TRELLIS" run deck.yaml --quiet --set run.compile=never
    value out/report.json "[f['hash'] for f in r['fields'].values()]" >>hashes.txt
    cp out/series.csv "series$n$of_node.csv"
    cmp series44.csv "series$n$of_node.csv" || fail "rows of series depend on nodes"
    expect 3 nodes "$n" "$of_node" "$TRELLIS" run deck.yaml --quiet --set run.compile=never --set parameters.b=1e200 \
        --set time.dt=1e-4
    sed "/take turns/d" stderr.txt >"said$n$of_node.txt"
    cmp said44.txt "said$n$of_node.txt" || fail "what is said depends on nodes"
done
[ "$(sort -u hashes.txt | wc -l)" = 1 ] || fail "bits depend on nodes: $(cat hashes.txt)"

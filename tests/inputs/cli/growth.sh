# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A solution that grows as nothing explains is a warning that says from where; status and exit code stay. What grows by
# a source, decays or follows its exact solution is none.
write() { printf 'trellis: 1\n%s\n' "$1" >deck.yaml; }
grown="which its first steps do not explain; it began between steps"

warns_of() {
    local wanted=$1 lines
    expect 0 "$TRELLIS" run deck.yaml
    lines=$(grep -c -F "$grown" stderr.txt || true)
    [ "$lines" = "$wanted" ] || fail "$lines warnings of growth, expected $wanted"
    [ "$(value out/report.json "r['status']")" = done ] || fail "the report does not say 'done'"
    [ "$(value out/report.json "sum('first steps do not explain' in w for w in r['warnings'])")" = "$wanted" ] ||
        fail "the report does not have the warnings"
}

# The wave with a dt that is too large, Schroedinger's equation with euler, that of Kuramoto and Sivashinsky, linear.
wave='grid: {cells: [32], periodic: [true], length: [32]}
equations: {u: {initial: "exp(-(x-16)^2/9)", ddt: v}, v: {initial: 0, ddt: "laplacian(u)"}}'
write "$wave
time: {method: rk4, dt: 1.6, steps: 400}"
warns_of 2
says stdout.txt "u: min "
says stderr.txt "deck.yaml:3:13: warning: 'u' grew from 0.97"
step=$(sed -n "s/.*'u' grew.*between steps [0-9]* and \([0-9]*\).*/\1/p" stderr.txt)
[ "$step" -gt 5 ] && [ "$step" -lt 100 ] || fail "it did not begin to grow at step $step"
hash=$(value out/report.json "r['warnings']")
expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet --threads 1
[ "$(value out/report.json "r['warnings']")" = "$hash" ] || fail "other warnings on two ranks"
silent stdout.txt

write 'grid: {cells: [64], periodic: [true], length: [32]}
equations: {re: {initial: "exp(-(x-16)^2/4)", ddt: "-0.5*laplacian(im)"}, im: {initial: 0, ddt: "0.5*laplacian(re)"}}
time: {method: euler, dt: 0.2, steps: 500}'
warns_of 2
write 'grid: {cells: [64], periodic: [true], length: [48]}
equations: {u: {initial: "0.1*cos(2*pi*x/24)", ddt: "-laplacian(u) - laplacian(laplacian(u))"}}
time: {method: rk4, dt: 0.2, steps: 30}'
warns_of 1

write "$wave
time: {method: rk4, dt: 0.5, steps: 1000}"
warns_of 0
write 'grid: {cells: [32]}
equations: {T: {initial: 1e-9, ddt: "laplacian(T) + 1e4", boundary: {x-: {neumann: 0}, x+: {neumann: 0}}},
  S: {initial: 0, ddt: "x*t"},
  D: {initial: "x", ddt: "0.1*laplacian(D)", boundary: {x-: {dirichlet: 300}, x+: {dirichlet: "sin(t)"}}},
  Z: {initial: 0, ddt: "0"}}
time: {method: ssprk3, dt: 4e-4, steps: 3000}'
warns_of 0
write 'grid: {cells: [8]}
equations: {u: {initial: 1e-3, ddt: "20*u", exact: "1e-3*exp(20*t)"}}
time: {method: rk4, dt: 1e-3, steps: 1000}'
warns_of 0

# Families are one line, at most a dozen of them.
write 'grid: {cells: [8]}
equations: {"u{i}": {for: {i: 1..40}, initial: "i", ddt: "0"}, w: {initial: 7, ddt: "0"}}
time: {method: euler, dt: 1, steps: 2}'
warns_of 0
says stdout.txt "u1 to u40: min 1, max 40"
says stdout.txt "w: min 7, max 7"

# A mask without a point is a warning, of five equations at most, the others are counted; none where a point moves.
write 'grid: {cells: [8]}
equations: {"u{i}": {for: {i: 1..7}, initial: "i", ddt: "1", mask: "0"},
  w: {initial: 1, ddt: "-1", mask: "x > 0.5"}, v: {initial: "x", ddt: "1", mask: "x < 0.5"}}
time: {method: euler, dt: 1, steps: 2}'
warns_of 0
[ "$(grep -c "the mask of 'u[1-5]' is 0 at all points, which keep" stderr.txt)" = 5 ] || fail "not five warnings"
says stderr.txt "2 more masks are 0 at all points"
[ "$(grep -c "masks\? " stderr.txt)" = 6 ] || fail "warnings of other masks"

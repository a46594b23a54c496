# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# Where auto chooses the method, the plan says what it has no use for.
cat > chosen.yaml <<'EOF'
trellis: 1
grid: {cells: [8, 8], periodic: [true, true]}
solvers: {s: {smoother: line, newton: {iterations: 7}}}
equations: {p: {solve: "p - laplacian(p) = x", solver: s}}
EOF
expect 0 "$TRELLIS" plan chosen.yaml
says stdout.txt "  it has no use for smoother, newton.iterations of solver 's'"
expect 0 "$TRELLIS" plan chosen.yaml --set solvers.s.preconditioner=multigrid
says stdout.txt "  it has no use for newton.iterations of solver 's'"
expect 0 "$TRELLIS" plan chosen.yaml --set equations.p.solve="p - laplacian(p) = x - p^3" \
    --set solvers.s.preconditioner=multigrid --set solvers.s.tolerance=1e-4
says stdout.txt "  it has no use for tolerance of solver 's'"

# Where the deck names another way, the plan says what is in the way of a direct one; a stationary deck has no steps.
expect 0 "$TRELLIS" plan chosen.yaml --set solvers.s.preconditioner=multigrid
says stdout.txt "  not solved directly, because the deck names another way; auto would try it"
says stdout.txt "time         none: equations are solved once"
! grep -qE "^(tasks|critical path|program 'step'|traffic|time blocks)" stdout.txt ||
    fail "the plan has steps that there are not"
grep -qE "^  a product reads and writes 16 bytes a cell, a V cycle [1-9][0-9]+: [0-9.e-]+ us$" stdout.txt ||
    fail "the plan does not say what a product and a cycle cost"
expect 0 "$TRELLIS" plan chosen.yaml --set solvers.s.preconditioner=multigrid --set equations.p.mask=x
says stdout.txt "  not solved directly, because points are masked"

# Of what is not solved it says what was chosen, without a dt where there are no steps.
expect 3 "$TRELLIS" plan chosen.yaml --set equations.p.solve="p - laplacian(p) = x - p^3" \
    --set solvers.s.newton.iterations=1
grep -qE "^  preconditioner (jacobi|multigrid) where it is symmetric: the condition is at most [0-9.]+$" stdout.txt ||
    fail "the plan does not say what bounds the condition, or with which dt"

# Nothing else is compiled where conditions, also by names, read no unknowns.
cat >given.yaml <<'EOF'
trellis: 1
grid: {cells: [16, 16]}
parameters: {a: 2}
expressions: {f: "a*sin(x + 1e1)", g: "2*f", h: "f + 0*q", k: {formula: x, boundary: {x-: {dirichlet: q}}}}
equations:
  p:
    solve: "laplacian(p) - p = x"
    boundary: {x-: {dirichlet: g}, x+: {robin: {a: a/2, b: 1, c: "min(g, y)"}}, y-: {neumann: 0}, y+: {dirichlet: a}}
  q:
    solve: "q - laplacian(q) = 1"
    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {neumann: 0}, y+: {neumann: 0}}
EOF
sure="  no multigrid, because the system is solved directly"
expect 0 "$TRELLIS" plan given.yaml
[ "$(grep -cF "$sure" stdout.txt)" = 2 ] || fail "other methods are compiled beside a direct solution"
for other in h k "integral(q)"; do
    sed "s/dirichlet: g/dirichlet: $other/" given.yaml >others.yaml
    expect 0 "$TRELLIS" plan others.yaml
    says stdout.txt "$sure"
done

# Grids by entries are those that a solution has made.
cat >entries.yaml <<'EOF'
trellis: 1
grid: {cells: [64, 64]}
solvers: {s: {preconditioner: multigrid}}
equations:
  p:
    solve: "div((1 + x*y)*grad(p)) = 1"
    solver: s
    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {neumann: 0}}
EOF
expect 0 "$TRELLIS" plan entries.yaml
grep -qE "^  [3-9] grids, beside the first of 1024, [0-9, ]+ points; their entries take [0-9.]+ KiB$" stdout.txt ||
    fail "the plan does not say which grids there are"
expect 0 ranks 2 "$TRELLIS" plan entries.yaml --set 'grid.cells=[256, 256]'
grep -qE "^  [3-9] grids, beside the first of 8192, [0-9, ]+ points on this rank; " stdout.txt ||
    fail "the plan does not say what a rank has of shared grids"
! grep -q "each rank has all" stdout.txt || fail "ranks are said to have all of grids that they share"

# Why they have entries: a wind, or coefficients; where unknowns are coupled strongly they have the equation.
cat >wind.yaml <<'EOF'
trellis: 1
grid: {cells: [32, 32]}
parameters: {c: 0.1, k: 0.01, s: 1}
equations:
  p:
    solve: "div(harmonic(if(x < 0.5, k, 0.01), faces)*grad(p)) - s*div(advective_flux(p, [1, 0.5], upwind)) + c*q = -1"
    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}
  q:
    solve: "0.01*laplacian(q) - c*p = 0"
    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}
EOF
cat >alone.yaml <<'EOF'
trellis: 1
grid: {cells: [32, 32]}
equations:
  p:
    solve: "0.1*laplacian(p) - div(advective_flux(p, [1, 0.5], upwind)) = -1"
    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}
EOF
entries="  multigrid, whose coarser grids are products of"
expect 0 "$TRELLIS" plan wind.yaml
says stdout.txt "$entries each unknown's entries, since its first derivatives outweigh the second ones"
grep -q "^  a product reads and writes [0-9]* bytes a cell: " stdout.txt ||
    fail "grids by entries have bytes of others"
expect 0 "$TRELLIS" plan wind.yaml --set parameters.k=10 --set parameters.s=0
says stdout.txt "$entries each unknown's entries, since its diagonal differs more than a hundredfold between points"
expect 0 "$TRELLIS" plan wind.yaml --set parameters.c=20
says stdout.txt "  multigrid on 4 grids: 32 x 32, 16 x 16, 8 x 8, 4 x 4"
! grep -q "entries" stdout.txt || fail "the plan tells of entries that coarser grids do not have"
expect 0 "$TRELLIS" plan alone.yaml
says stdout.txt "$entries the operator's entries, since these vary, and it is not symmetric"
expect 0 "$TRELLIS" plan alone.yaml --set equations.p.solve="laplacian(p) - cddx(p) - cddy(p) = 1"
says stdout.txt "$entries the operator's entries, since it has first derivatives, and it is not symmetric"
sed 's/solve:/initial: 0\n    ddt:/; s/ = [-0-9]*"/"/' wind.yaml >steps.yaml
echo 'time: {method: beuler, dt: 9, steps: 2}' >>steps.yaml
expect 0 "$TRELLIS" plan steps.yaml
says stdout.txt "  where its diagonal differs more than a hundredfold between points, or first derivatives outweigh the"
says stdout.txt "couple each other faster than what crosses the domain; found once a step"

# Ranks that have few points each are told of the messages that they could spare, once it is measured what these take.
cat >small.yaml <<'EOF'
trellis: 1
grid: {cells: [12, 12]}
solvers: {s: {method: cg, preconditioner: jacobi}}
equations:
  p:
    solve: "laplacian(p) = 1 + x"
    solver: s
    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {neumann: 0}, y+: {neumann: 0}}
EOF
expect 0 ranks 2 "$TRELLIS" plan small.yaml --set run.passes.shared=false
grep -qE "^exchange +on a node by (memory|messages), not measured$" stdout.txt ||
    says stdout.txt "  an iteration has 2 messages of sums over all ranks; single_reduction: true would spare 1"
expect 0 ranks 2 "$TRELLIS" plan small.yaml --set solvers.s.single_reduction=true
says stdout.txt "  an iteration has 1 message of sums over all ranks"
says stdout.txt "  single-reduction cg with preconditioner jacobi: "
expect 0 ranks 2 "$TRELLIS" plan small.yaml --set solvers.s.preconditioner=multigrid \
    --set 'grid.cells=[256,256]' --set run.passes.shared=false
says stdout.txt "  an iteration has 4 messages of sums over all ranks"
! grep -q "single_reduction" stdout.txt || fail "a message takes less than what would spare it on so many cells"

# Before the first solution a key is for the method that the deck names.
cat >stages.yaml <<'EOF'
trellis: 1
grid: {cells: [8, 8], periodic: [true, true]}
solvers: {s: {method: gmres, restart: 7}}
equations: {u: {initial: x, solver: s, ddt: {explicit: 1, implicit: "laplacian(u)"}}}
time: {method: ark3, dt: 0.01, steps: 2}
EOF
expect 0 "$TRELLIS" plan stages.yaml
! grep -q "it has no use for" stdout.txt || fail "gmres has no use for its restart"

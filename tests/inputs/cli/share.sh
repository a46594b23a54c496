# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Ranks share the cores of a node, whatever the launcher did, and a warning says if they are too few.
. "$(dirname "$0")/lib/common.bash"

write_deck
run=("$TRELLIS" run deck.yaml --steps 4 --quiet)
cores=$("$TRELLIS" info | sed -n 's/.*, \([0-9]*\) cores for this process.*/\1/p')
core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
lift="let ranks use all cores of a node: mpirun --bind-to none"

expect 0 mpirun --oversubscribe --bind-to none -n $((cores + 1)) "${run[@]}" --set 'grid.patches=auto'
says stderr.txt "warning: $((cores + 1)) ranks on $cores core"
[ "$(grep -cF "$lift" stderr.txt)" = 0 ] || fail "it advises what was done"
expect 0 mpirun --oversubscribe --bind-to none -n 2 taskset -c "$core" "${run[@]}"
says stderr.txt "warning: 2 ranks on 1 core: ranks will take turns and run slower; use at most 1"
[ "$cores" = 1 ] || says stderr.txt "$lift"
[ "$cores" -gt 1 ] || exit 0

# Open MPI binds a rank to one core; nobody asked for that.
expect 0 mpirun -n 1 "${run[@]}"
[ "$(value out/report.json "r['threads']")" = "$cores" ] || fail "the rank does not use all cores"
expect 0 mpirun --bind-to core -n 1 "${run[@]}"
[ "$(value out/report.json "r['threads']")" = 1 ] || fail "the rank is not bound as asked for"
silent stderr.txt

# One rank may use one core, the other one all: it leaves that one to the first.
expect 0 mpirun --bind-to none -n 1 "${run[@]}" : -n 1 taskset -c "$core" "${run[@]}"
[ "$(value out/report.json "r['threads']")" = $((cores - 1)) ] || fail "the ranks share a core"
silent stderr.txt

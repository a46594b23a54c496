# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# Without a compiler that works a run is told, once, and its numbers are those of the interpreter; one that insists ends.
write_deck
long=(--set "grid.cells=[96, 96]" --set time.dt=1e-5 --steps 4000)
expect 0 "$TRELLIS" run deck.yaml "${long[@]}" --set run.compile=never --set output.directory=never --quiet
silent stderr.txt
for compiler in "$(type -P false)" ./nowhere; do
    export TRELLIS_CC=$compiler
    expect 0 "$TRELLIS" run deck.yaml "${long[@]}" --set output.directory=auto
    says stderr.txt "warning: kernels are interpreted, which takes several times as long: "
    same_fields never/report.json auto/report.json
    expect 2 "$TRELLIS" run deck.yaml --set run.compile=always
    says stderr.txt "run.compile: always asks for compiled kernels, but "
done
says stderr.txt "TRELLIS_CC is no program that can be run: ./nowhere"

# With fast_math compiled kernels have other bits where the processor has fused multiply-add; plan and report say so.
unset TRELLIS_CC
expect 0 "$TRELLIS" plan deck.yaml --set numerics.fast_math=true
says stdout.txt "bits         may differ between runs: numerics.fast_math"
for fast in true false; do
    expect 0 "$TRELLIS" run deck.yaml --set numerics.fast_math=$fast --set run.compile=always --set output.directory=$fast --quiet
done
[ "$(value true/report.json "r['bits_may_differ']")" = "['numerics.fast_math']" ] || fail "the report does not name fast_math"
[ "$(value false/report.json "r['bits_may_differ']")" = "[]" ] || fail "the report calls a run inexact that is not"
hash="r['fields']['T']['hash']"
if grep -qw fma /proc/cpuinfo && [ "$(value true/report.json "$hash")" = "$(value false/report.json "$hash")" ]; then
    fail "fast_math changes no bit"
fi

# Equations that differ by their fields and their numbers share one function of a kernel.
expect 0 "$TRELLIS" kernels "$TRELLIS_SOURCE/inputs/decks/transport.yaml" --set parameters.n=12
functions=$(grep -c "^TRL_KERNEL_GROUP void group" stdout.txt) calls=$(grep -c "group[0-9]*(call" stdout.txt)
[ "$functions" -gt 0 ] && [ "$calls" -eq $((12 * functions)) ] || fail "$functions functions for $calls groups of like equations"

# A library without its function is no kernel.
printf '#!/bin/sh\nexec cc "$@" -O0 -Dtrl_kernel=another\n' >nameless.sh
chmod 755 nameless.sh
export TRELLIS_CC=./nameless.sh
expect 2 "$TRELLIS" run deck.yaml --set run.compile=always
says stderr.txt "run.compile: always asks for compiled kernels, but a compiled kernel lacks its function trl_kernel; use auto or never"

# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# Without a compiler that works a run is told, once, and its numbers are those of the interpreter; one that insists
# ends.
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

# Workers are pinned to cores, and compilers are not: they would all share that of the thread that starts them.
printf '#!/bin/sh\ngrep Cpus_allowed_list: /proc/self/status >>%s/cores.txt\nexec cc "$@"\n' "$PWD" >cc.sh
chmod +x cc.sh
TRELLIS_CC=./cc.sh TRELLIS_CACHE_DIR=$(mktemp -d -p .) expect 0 "$TRELLIS" run deck.yaml --set run.compile=always \
    --threads "$(nproc)" --quiet
[ "$(sort -u cores.txt)" = "$(grep Cpus_allowed_list: /proc/self/status)" ] ||
    fail "compilers run on $(sort -u cores.txt) only"

# With fast_math compiled kernels have other bits where the processor has fused multiply-add; plan and report say so.
unset TRELLIS_CC
expect 0 "$TRELLIS" plan deck.yaml --set numerics.fast_math=true
says stdout.txt "bits         may differ between runs: numerics.fast_math"
for fast in true false; do
    expect 0 "$TRELLIS" run deck.yaml --set numerics.fast_math=$fast --set run.compile=always \
        --set output.directory=$fast --quiet
done
[ "$(value true/report.json "r['bits_may_differ']")" = "['numerics.fast_math']" ] ||
    fail "the report does not name fast_math"
[ "$(value false/report.json "r['bits_may_differ']")" = "[]" ] || fail "the report calls a run inexact that is not"
hash="r['fields']['T']['hash']"
if grep -qw fma /proc/cpuinfo && [ "$(value true/report.json "$hash")" = "$(value false/report.json "$hash")" ]; then
    fail "fast_math changes no bit"
fi

# Equations that differ by their fields and their numbers share one function: a kernel is one function with a call of a
# group for each, or is divided into as many parts, all of which are served by one function.
expect 0 "$TRELLIS" kernels "$TRELLIS_SOURCE/inputs/decks/transport.yaml" --set parameters.n=12
kernels=$(grep -c "^void trl_kernel(" stdout.txt)
functions=$(grep -c "^TRL_KERNEL_GROUP void TRL_OWN(group" stdout.txt || true) # of kernels that are not divided
divided=$(grep -c " 12 parts of 12, the first:" stdout.txt || true)    # each with one call, which all parts share
calls=$(grep -c "TRL_OWN(group[0-9]*)(call" stdout.txt)
[ "$kernels" -eq 4 ] && [ $((functions + divided)) -eq 4 ] && [ "$calls" -eq $((12 * functions + divided)) ] ||
    fail "of $kernels kernels for 12 like equations $divided are divided; they have $functions functions, $calls calls"

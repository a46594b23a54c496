# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# While the kernels of a first run are compiled the progress line says so; at the end it is told what later runs save.
write_deck
export TRELLIS_CACHE_DIR=$PWD/cache
mkdir -m 700 cache
printf '#!/bin/sh\nsleep 1\nexec cc "$@"\n' >slow_cc.sh
chmod 755 slow_cc.sh
usual=${TRELLIS_CC:-cc}
export TRELLIS_CC=./slow_cc.sh
script -qefc "'$TRELLIS' run deck.yaml --steps 1e8 --set output.series.every.steps=100000" /dev/null \
    >terminal.txt </dev/null &
terminal=$!
for ((i = 0; i < 600; ++i)); do
    sleep 0.1
    grep -q "left  interpreted while [0-9]* kernels\? \(is\|are\) compiled" terminal.txt || continue
    [ "$(tr '\r' '\n' <terminal.txt | grep -c 'left.\[K$')" -gt 3 ] && break
done
kill -TERM $terminal
wait $terminal || true
export TRELLIS_CC=$usual
tr '\r' '\n' <terminal.txt >lines.txt
grep -q "left  interpreted while [0-9]* kernels\? \(is\|are\) compiled" lines.txt ||
    fail "the progress line does not tell of compilers"

expect 0 "$TRELLIS" run deck.yaml --set run.compile=always --set numerics.fast_math=true
grep -q "kernels\? w[a-z]* compiled in [0-9.e-]* s, which later runs save: the cache keeps them" stdout.txt ||
    fail "no word of the cache"
expect 0 "$TRELLIS" run deck.yaml --set run.compile=always --set numerics.fast_math=true
! grep -q compiled stdout.txt || fail "kernels of the cache were compiled again"

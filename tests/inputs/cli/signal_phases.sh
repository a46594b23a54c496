# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A signal is heard whatever a run is doing: the first one stops it at the next possible point, the second one at once.
# TRL_SIGNALS is how many signals are sent at times spread over a run.
: "${TRELLIS_BUILD:?set TRELLIS_BUILD to the build folder}"
process=
trap '[ -z "$process" ] || kill -9 "$process"' EXIT
write_deck
export TRELLIS_CACHE_DIR=$PWD/cache
mkdir -m 700 cache

wait_for() {
    for _ in $(seq 1200); do # a busy machine is slow
        [ ! -s "$1" ] || return 0
        sleep 0.05
    done
    fail "$1 did not appear"
}

# ends PROCESS: it ends soon, and its exit code is in $status.
ends() {
    status=0
    for _ in $(seq 1200); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.05
    done
    ! kill -0 "$1" 2>/dev/null || fail "it did not end"
    wait "$1" || status=$?
    process=
}

nothing_aside() {
    local left
    left=$(find . -name '*.tmp*' -o -path './cache/*' ! -name '*.so' ! -name '*.variant' ! -name '*.balance')
    [ -z "$left" ] || fail "left behind: $left"
}

# While kernels are compiled, by a compiler that does not end when asked to.
cat >compiler.sh <<'SH'
#!/bin/bash
trap '' TERM
echo $$ >>"${0%/*}/compiler.pid"
sleep 300 &
echo $! >>"${0%/*}/compiler.pid"
wait
SH
chmod +x compiler.sh
for n in 1 2; do
    rm -f compiler.pid rank.pid
    TRELLIS_CC=$PWD/compiler.sh ranks $n sh -c 'echo $$ >>rank.pid && exec "$@"' sh "$TRELLIS" run deck.yaml \
        --set run.compile=always >stdout.txt 2>stderr.txt &
    process=$!
    wait_for compiler.pid
    xargs kill -TERM <rank.pid
    ends $process
    [ "$status" = 3 ] || fail "ended with $status, expected 3"
    says stderr.txt "stopped by SIGTERM before the first step"
    while read -r child; do
        # One that nobody waits for any more may stay as a zombie.
        ! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$child/status" 2>/dev/null ||
            fail "the compiler $child lives on"
    done <compiler.pid
    nothing_aside
done

# In a plugin that never ends: the first signal cannot be heard, the second one need not be.
cat >>deck.yaml <<'DECK'
plugins: [endless]
expressions:
  S: {type: endless, computes: [S]}
DECK
sed -i 's/ddt: "k\*laplacian(T)"/ddt: "k*laplacian(T) + S"/' deck.yaml
"$TRELLIS" run deck.yaml --plugin-path "$TRELLIS_BUILD/test_plugins" --quiet >stdout.txt 2>stderr.txt &
process=$!
wait_for evaluating.txt
kill -TERM $process
sleep 0.3
kill -0 $process || fail "the first signal ended it"
kill -TERM $process
ends $process
[ "$status" = 143 ] || fail "ended with $status, expected 143 (SIGTERM)"

# At any time of a run that writes every step.
write_deck
every=(--set 'output.every={steps: 1}' --set output.checkpoint.every.steps=2 --set run.compile=never --quiet)
for i in $(seq "${TRL_SIGNALS:-4}"); do
    rm -rf out
    n=$((1 + i % 2))
    launch=()
    [ $n = 1 ] || launch=(mpirun --oversubscribe --bind-to none -n "$n")
    "${launch[@]}" "$TRELLIS" run deck.yaml "${every[@]}" --steps 100000 >stdout.txt 2>stderr.txt &
    process=$!
    sleep "0.$((i * 37 % 10))$((RANDOM % 10))"
    kill -TERM $process
    ends $process
    case $n:$status in
    1:3 | 1:143) ;; # 143: it had hardly begun
    1:*) fail "ended with $status" ;;
    *:0) fail "ended with 0" ;;
    esac
    [ "$status" != 3 ] || nothing_aside
    if compgen -G "out/checkpoint/*.nc" >/dev/null; then
        expect 0 "$TRELLIS" run deck.yaml --restart latest "${every[@]}" --steps 1
    fi
done

# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Files that are written while steps go on have the bytes of those that all ranks wait for, whatever the steps are, and
# a restart continues from them.
. "$(dirname "$0")/lib/common.bash"

cat >deck.yaml <<'DECK'
trellis: 1
grid: {cells: [24, 20], periodic: [true, false], patches: [2, 1]}
equations:
  T: {initial: "sin(2*pi*x)", ddt: "laplacian(T)", boundary: {y-: {dirichlet: 0}, y+: {neumann: 0}}}
time: {method: euler, dt: 1e-5, steps: 48}
output:
  every: {steps: 3}
  series: {every: {steps: 1}, values: {total: "integral(T)"}}
  checkpoint: {every: {steps: 8}, keep: 9}
run: {threads: 1, compile: never}
DECK
# bytes RANKS BESIDE SETTING...: those of all files that a run, and the restart that continues it, leave.
bytes() {
    local n=$1 beside=$2 set=()
    shift 2
    for setting in "output.beside_steps=$beside" "$@"; do set+=(--set "$setting"); done
    rm -rf out
    expect 0 ranks "$n" "$TRELLIS" run deck.yaml --quiet --steps 25 "${set[@]}"
    expect 0 ranks "$n" "$TRELLIS" run deck.yaml --quiet --restart latest "${set[@]}"
    silent stderr.txt
    written=$(value out/report.json "r['files']['beside_steps']")
    copied=$(value out/report.json "r['memory']['copy_bytes']")
    (cd out && sha256sum fields/* checkpoint/* fields.xdmf series.csv)
}
turn=0
for n in 1 2; do
    for more in output.compression=2 'time.dt={cfl: 0.4}' run.time_blocking=4 "output.series={}"; do
        turn=$((turn + 1))
        test_long || [ $(((turn + n) % 2)) = 0 ] || continue # one of two
        bytes $n false "$more" >waited.txt
        [ "$written $copied" = "0 0" ] || fail "$written files, $copied bytes with output.beside_steps: false"
        bytes $n true "$more" >beside.txt
        [ "$written" -ge 10 ] && [ "$copied" -gt 0 ] || fail "$written files beside steps from $copied bytes"
        cmp -s waited.txt beside.txt || fail "$n ranks, $more: $(diff waited.txt beside.txt)"
    done
done
exit 0

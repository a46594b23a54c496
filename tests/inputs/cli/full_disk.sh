# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# A disk that is full, where one can be mounted: every command says so, nothing is left behind, and kernels are compiled
# elsewhere.
. "$(dirname "$0")/lib/common.bash"

if [ -z "${ALONE:-}" ]; then
    unshare --mount true 2>/dev/null || exit 77
    ALONE=1 exec unshare --mount bash "$0" # the disk goes with the last process of the test
fi
mkdir disk
mount -t tmpfs -o size=300k none disk 2>/dev/null || exit 77
export TRELLIS_CC="$TRELLIS_SOURCE/tests/quick_cc.sh"
write_deck
cat /dev/zero >disk/fill 2>/dev/null || true
left() {
    find disk -mindepth 1 ! -name fill -type f | grep -q . && fail "something is left: $(find disk -type f)" || true
}
full() {
    expect 3 "$TRELLIS" "$@"
    grep -q "No space left on device" stderr.txt || fail "'$*' does not say that the disk is full"
}

full run deck.yaml --set output.directory=disk/out --quiet
[ ! -e disk/out/checkpoint ] || fail "a run that made no step wrote a checkpoint"
rm -r disk/out
full run deck.yaml --report disk/report.json --quiet
full run deck.yaml --trace disk/trace.json --quiet
left
expect 0 "$TRELLIS" run deck.yaml --quiet
full plot out -o disk/picture.png
full plan deck.yaml --dot disk/graph
left
full new disk/plugin
[ ! -e disk/plugin ] || fail "'trellis new' left half a plugin"

# The cache has no room: kernels are compiled among temporary files.
TRELLIS_CACHE_DIR=disk/cache expect 0 "$TRELLIS" run deck.yaml --set run.compile=always --quiet
silent stderr.txt
left
# Nor have temporary files; those of MPI go elsewhere.
mkdir mpi
export TRELLIS_CACHE_DIR=disk/cache TMPDIR=$PWD/disk OMPI_MCA_orte_tmpdir_base=$PWD/mpi
expect 2 "$TRELLIS" run deck.yaml --set run.compile=always --quiet
grep -q "but .*No space left on device; use auto or never" stderr.txt ||
    fail "always does not say that the disk is full"
left

# The disk runs full in mid-run: what was written stays, and the run continues from it once there is room.
unset TMPDIR
rm disk/fill
long=(run deck.yaml --set output.directory=disk/out --set output.every='{steps: 1}' --steps 400 --quiet)
full "${long[@]}"
step=$(value disk/out/report.json "r['steps']")
mount -o remount,size=20m disk
expect 0 "$TRELLIS" "${long[@]}" --restart latest
expect 0 "$TRELLIS" run deck.yaml --set output.directory=whole --steps 400 --quiet
same_fields disk/out/report.json whole/report.json
[ "$step" -gt 3 ] || fail "the disk was full from the start"

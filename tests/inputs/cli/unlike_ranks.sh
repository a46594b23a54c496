# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Ranks that are not alike: they end, and say why.
. "$(dirname "$0")/lib/common.bash"

# two STATUS COMMAND : COMMAND: rank 0 does the first, rank 1 the second, in folders of their own.
two() {
    local wanted=$1 words=()
    shift
    while [ "$1" != : ]; do
        words+=("$1")
        shift
    done
    shift
    expect "$wanted" timeout 60 mpirun --oversubscribe --bind-to none -n 1 "${words[@]}" : -n 1 "$@"
}

write_deck
cp deck.yaml other.yaml
run=("$TRELLIS" run deck.yaml --steps 4 --quiet)
two 2 "${run[@]}" : "$TRELLIS" run other.yaml --steps 4 --quiet
says stderr.txt "rank 1 was started as 'trellis run other.yaml --steps 4 --quiet', but rank 0 as 'trellis run deck.yaml"
says stderr.txt "--steps 4 --quiet'; start all ranks with the same arguments"
two 2 "${run[@]}" : "${run[@]}" --set run.passes.shared=false
says stderr.txt "start all ranks with the same arguments"
two 2 "${run[@]}" : "$TRELLIS" info
says stderr.txt "rank 1 was started as 'trellis info', but rank 0 as 'trellis run deck.yaml --steps 4 --quiet'"
two 2 "${run[@]}" : "$TRELLIS"
says stderr.txt "rank 1 was started as 'trellis', but rank 0 as 'trellis run deck.yaml --steps 4 --quiet'"
[ ! -e out ] || fail "ranks that do not do the same made an output folder"
expect 0 ranks 2 "$TRELLIS" info
says stdout.txt "Trellis "

# Of what measurements and tests set in the environment that of rank 0 counts.
cat >cube.yaml <<'DECK'
trellis: 1
grid: {cells: [16, 64, 64], periodic: [true, true, true]}
equations: {T: {initial: "sin(2*pi*x)", ddt: "0.1*laplacian(T)"}}
time: {method: ssprk3, dt: 1e-4, steps: 6}
run: {compile: never}
DECK
cube=("$TRELLIS" run cube.yaml --quiet)
expect 0 "${cube[@]}" --set output.directory=alone
for given in TRELLIS_SHARES=random:1 TRELLIS_HELPING=always TRL_EXCHANGE=1e-6,1e-10,5e-3,3e-7 TRELLIS_RIMS=ahead; do
    two 0 "${cube[@]}" : env "$given" "${cube[@]}"
    same_fields alone/report.json out/report.json
    two 0 env "$given" "${cube[@]}" : "${cube[@]}"
    same_fields alone/report.json out/report.json
done
rm -r out
compiled=("${cube[@]}" --set run.compile=auto)
two 0 "${compiled[@]}" : env TRELLIS_CC=/nowhere "${compiled[@]}"
says stderr.txt "rank 1 has no C compiler, and interprets kernels, which takes several times as long: let all ranks"
same_fields alone/report.json out/report.json
two 0 env TRELLIS_CC=/nowhere "${compiled[@]}" : "${compiled[@]}"
! grep -q "rank 0 has no" stderr.txt || fail "rank 0 warns itself"
same_fields alone/report.json out/report.json
rm -r out

mkdir elsewhere
lacks="rank 1 did not find it, but lower ranks did: let all ranks have the same files at that place"
sed 's/initial: .*/initial: T0/' deck.yaml >reads.yaml
file='{path: /proc/self/cwd/T0.nc, dataset: T}'
echo "expressions: {T0: {type: file, computes: [T0], parameters: $file}}" >>reads.yaml
"$TRELLIS" run deck.yaml --steps 1 --quiet
cp out/fields/00000001.nc T0.nc
two 3 "$TRELLIS" run "$PWD/reads.yaml" --quiet : sh -c 'cd elsewhere && exec "$@"' sh "$TRELLIS" run "$PWD/reads.yaml" \
    --quiet
says stderr.txt "cannot read '/proc/self/cwd/T0.nc': "
says stderr.txt "$lacks"
expect 2 ranks 2 "$TRELLIS" run reads.yaml --quiet --set expressions.T0.parameters.path=T1.nc
! grep -qF "$lacks" stderr.txt || fail "no rank finds the file"
cp "${TRELLIS_BUILD:?set TRELLIS_BUILD to the build folder}/plugins/heat_source.so" .
echo 'plugins: [/proc/self/cwd/heat_source.so]' >>deck.yaml
two 2 "$TRELLIS" run "$PWD/deck.yaml" --quiet : sh -c 'cd elsewhere && exec "$@"' sh "$TRELLIS" run "$PWD/deck.yaml" \
    --quiet
says stderr.txt "plugin '/proc/self/cwd/heat_source.so' not found"
says stderr.txt "$lacks"
write_deck
rm -r out
two 3 "${run[@]}" : sh -c 'cd elsewhere && exec "$@"' sh "${run[@]}"
says stderr.txt "cannot write 'out/fields/00000000.nc': rank 1 does not find what rank 0 created"
grep -q "start all ranks in the same folder" stderr.txt || fail "no advice"
expect 0 "${run[@]}"
two 3 "${run[@]}" --restart latest : sh -c 'cd elsewhere && exec "$@"' sh "${run[@]}" --restart latest
says stderr.txt "cannot read 'out/checkpoint/00000004.nc': 1 of 2 ranks do not find it"
says stderr.txt "start all ranks in the same folder, and let it be on a disk that they share"
! grep -q damaged stderr.txt || fail "what a rank does not find is not damaged"
[ -z "$(ls elsewhere)" ] || fail "a rank wrote elsewhere"

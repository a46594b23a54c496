# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A run in two parts leaves the same files as a run in one, to the bit, on any number of ranks.
write_deck
expect 0 "$TRELLIS" run deck.yaml --set output.directory=whole --quiet
for n in 1 3; do
    rm -rf out
    expect 0 ranks $n "$TRELLIS" run deck.yaml --steps 23 --quiet
    expect 0 ranks $((4 - n)) "$TRELLIS" run deck.yaml --restart latest --quiet
    [ "$(value out/report.json "r['steps'], r['steps_run']")" = "(40, 17)" ] ||
        fail "the second part did not run 17 steps"
    same_fields whole/report.json out/report.json
    same whole/series.csv out/series.csv
    [ "$(ls out/fields)" = "$(ls whole/fields)" ] || fail "other files of fields than those of the whole run"
    for file in whole/fields/*.nc; do expect 0 h5diff "$file" "out/fields/${file##*/}"; done
    same whole/fields.xdmf out/fields.xdmf
    [ "$(ls out/checkpoint)" = "$(ls whole/checkpoint)" ] || fail "other checkpoints than those of the whole run"
done

# An output folder, a folder of checkpoints and one checkpoint all name where to continue; the output may lie elsewhere.
checkpoint=whole/checkpoint/00000030.nc
for where in whole whole/checkpoint "$checkpoint"; do
    rm -rf out
    expect 0 "$TRELLIS" run deck.yaml --restart "$where" --quiet
    same_fields whole/report.json out/report.json
done
[ "$(value out/report.json "r['steps_run']")" = 10 ] || fail "the checkpoint of step 30 was not used"

expect 2 "$TRELLIS" run deck.yaml --restart nowhere
grep -q "nowhere" stderr.txt || fail "the message does not name the missing checkpoint"
expect 2 "$TRELLIS" run deck.yaml --restart whole --set time.start=0.5
grep -q "belongs to a problem that starts at t = 0, this one at 0.5; use the same time.start" stderr.txt ||
    fail "no message about the start"

# Times of a list and of decades are met by the same steps, whoever takes them.
times=(--set "output.every={at: [0.0049, 0.025, 0.031]}" --set "output.series.every={log: 3}"
    --set "output.checkpoint.every={at: [0.02, 0.03]}")
expect 0 "$TRELLIS" run deck.yaml "${times[@]}" --set output.directory=listed --quiet
[ "$(ls listed/fields | tr '\n' ' ')" = "00000000.nc 00000005.nc 00000025.nc 00000031.nc 00000040.nc " ] ||
    fail "files of fields at other steps: $(ls listed/fields)"
[ "$(cut -d, -f1 listed/series.csv | tr '\n' ' ')" = "step 0 1 3 5 10 22 40 " ] || fail "lines at other steps"
for n in 1 2; do
    rm -rf out
    expect 0 ranks $n "$TRELLIS" run deck.yaml "${times[@]}" --steps 27 --set run.threads=$n --quiet
    expect 0 ranks $((3 - n)) "$TRELLIS" run deck.yaml "${times[@]}" --restart latest --quiet
    same_fields listed/report.json out/report.json
    same listed/series.csv out/series.csv
    [ "$(cd out; ls fields checkpoint)" = "$(cd listed; ls fields checkpoint)" ] ||
        fail "other files than those of the whole run"
    for file in listed/fields/*.nc; do expect 0 h5diff "$file" "out/fields/${file##*/}"; done
done

# Times inside of steps whose size follows from errors are interpolated, several in a step, by a restart too.
sed -i 's/^time:.*/time: {method: {name: dp5, dt: {initial: 1e-3, max: 0.003}}, end: 0.03}/; s/time: 0.007/time: 0.0007/
    s/every: {steps: 3}/every: {time: 0.0003}/' deck.yaml
expect 0 "$TRELLIS" run deck.yaml --set output.directory=inside --quiet
steps=$(value inside/report.json "r['steps']")
[ "$(ls inside/fields | wc -l)" = 44 ] || fail "files of fields at other times: $(ls inside/fields)"
[ "$steps" -lt 40 ] || fail "the steps are shorter than the times of output"
[ "$(wc -l <inside/series.csv)" = 102 ] || fail "lines at other times"
for n in 1 2; do
    rm -rf out
    expect 0 ranks $n "$TRELLIS" run deck.yaml --steps $((steps / n - 1)) --quiet
    expect 0 ranks $((3 - n)) "$TRELLIS" run deck.yaml --restart latest --quiet
    same_fields inside/report.json out/report.json
    same inside/series.csv out/series.csv
    same inside/fields.xdmf out/fields.xdmf
    [ "$(ls out/fields)" = "$(ls inside/fields)" ] || fail "other files than those of the whole run"
    for file in inside/fields/*.nc; do expect 0 h5diff "$file" "out/fields/${file##*/}"; done
done
expect 0 "$TRELLIS" collect inside -o all.nc
expect 0 "$TRELLIS" plot inside --time 0.0021 -o one.png

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# A series that is taken away, replaced or cut in mid-run: an error, and a state to continue from.
. "$(dirname "$0")/lib/common.bash"

write_deck
long() {
    timeout 60 "$@" "$TRELLIS" run deck.yaml --set time.steps=400000000 --set output.every='{steps: 1000000000}' \
        --set output.checkpoint='{every: {steps: 1000000000}}' --quiet >stdout.txt 2>stderr.txt
}
lose() {
    run=$!
    until [ -e out/series.csv ] && [ "$(wc -l <out/series.csv)" -gt 5 ] && grep -qs step out/fields.xdmf; do
        sleep 0.02 # the first file of fields is written while steps go on
    done
    eval "$1"
    status=0
    wait $run || status=$?
    [ $status = 3 ] || fail "after '$1' the run ended with $status"
    says stderr.txt "the series in 'out/series.csv' cannot go on: "
}
for way in 'rm out/series.csv' 'mv out gone' 'cp out/series.csv copy && mv copy out/series.csv' \
    'truncate -s 20 out/series.csv'; do
    rm -rf out gone
    long env &
    lose "$way"
    says stderr.txt "continue with --restart latest"
    step=$(value out/report.json "r['steps']")
    expect 0 "$TRELLIS" run deck.yaml --restart latest --steps $((step + 9)) --quiet
    silent stderr.txt
    [ "$(tail -1 out/series.csv | cut -d, -f1)" = $((step + 9)) ] ||
        fail "the restart after '$way' did not continue the series"
    cut -d, -f1 out/series.csv | sed 1d | sort -n | uniq -d | grep -q . && fail "steps are twice in the series"
done

# Two ranks are at a later step when a row is to be written: a checkpoint of that step would leave the row out.
rm -rf out
long mpirun -n 2 &
lose 'rm out/series.csv'
! grep -q "continue with --restart latest" stderr.txt || fail "a state to continue from is promised"
[ ! -e out/checkpoint ] || fail "there is a checkpoint of a step behind a row that is lost"
exit 0

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A run whose dt no longer changes t ends with a checkpoint and says why; what the deck alone tells, check finds.
write_endless() {
    cat >deck.yaml <<DECK
trellis: 1
grid: {cells: [3], length: [3], periodic: [true]}
equations: {T: {initial: 1, ddt: "0"}}
time: {method: euler, $1}
DECK
}

write_endless 'dt: {cfl: 0.5, speed: "1/abs(1-t)"}, end: 2'
expect 0 "$TRELLIS" check deck.yaml
expect 3 timeout 60 "$TRELLIS" run deck.yaml --quiet
says stderr.txt "deck.yaml:4:27: the stable dt = "
says stderr.txt "no longer changes t = 0.99999"
[ "$(value out/report.json "r['status']")" = failed ] || fail "the report does not say 'failed'"
steps=$(value out/report.json "r['steps']")
[ -s out/checkpoint/"$(printf %08d "$steps")".* ] || fail "no checkpoint of step $steps"
expect 0 "$TRELLIS" run deck.yaml --quiet --restart latest --set time.dt.speed=1

for time in 'dt: 1e-20, start: 1, end: 2' 'dt: 1e300, steps: 1e9' 'dt: {cfl: 1, max: 1e-30}, start: 3, end: 4' \
    'dt: {cfl: 1, speed: "0*x"}, end: 4'; do
    write_endless "$time"
    for command in check run; do
        expect 2 timeout 60 "$TRELLIS" $command deck.yaml
        says stderr.txt "deck.yaml:4:27: "
    done
done

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Placements that users see: plan, files, what if, report.
. "$(dirname "$0")/lib/common.bash"

write_deck
export TRL_MOCK_DEVICES=2

# The same bits wherever tasks are done, and what the report says of it.
expect 0 "$TRELLIS" run deck.yaml --steps 40 --quiet --set run.scheduler=serial --report serial.json
expect 0 "$TRELLIS" run deck.yaml --steps 40 --quiet --report auto.json
same_fields serial.json auto.json
for rule in round_robin min_load devices random:7; do
    expect 0 "$TRELLIS" run deck.yaml --steps 40 --quiet --set run.placement=$rule --report $rule.json
    same_fields serial.json $rule.json
done
[ "$(value devices.json "r['placement']['by']")" = devices ] || fail "the report does not say that devices do all"
[ "$(value devices.json "r['placement']['chains'] > 0")" = True ] || fail "no chains"
[ "$(value devices.json "all(m['peak_bytes'] >= m['planned_bytes'] for m in r['placement']['memory'])")" = True ] ||
    fail "memory of the devices"
[ "$(value random:7.json "r['placement']['by']")" = random ] || fail "the report does not say that it is random"

# A file for a run.
expect 0 "$TRELLIS" plan deck.yaml --set run.placement=devices --placement all.place
says stdout.txt "placement    devices, by times that the cost model estimates; no step was timed"
says stdout.txt "wrote all.place"
says all.place "# placement of the tasks of a step of deck.yaml"
says all.place "# executors: workers; device 0: mock device; device 1: mock device"
grep -q '^T  *1  device [01]$' all.place || fail "all.place does not place T"
expect 0 "$TRELLIS" run deck.yaml --quiet --set run.placement=all.place --report file.json
same_fields serial.json file.json
[ "$(value file.json "r['placement']['by']")" = file ] || fail "the report does not say that a file placed the tasks"
[ "$(value file.json "r['placement']['tasks']")" = "$(value devices.json "r['placement']['tasks']")" ] ||
    fail "the file places other tasks on devices than it was written from"
expect 0 "$TRELLIS" plan deck.yaml --set run.placement=all.place --placement again.place
same all.place again.place
expect 0 "$TRELLIS" run out/deck.yaml --quiet --report used.json # the deck as used names the file, too
same_fields serial.json used.json
[ "$(value used.json "r['placement']['by']")" = file ] || fail "the deck as used has lost its placement"
expect 0 ranks 2 "$TRELLIS" plan deck.yaml --placement two.place
says two.place "rank 0 of 2"
says two.place "rank 1 of 2"
expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet --set run.placement=two.place --report two.json
same_fields serial.json two.json
expect 2 "$TRELLIS" check deck.yaml --set run.placement=two.place
says stderr.txt "two.place:4:1: this is a placement for 2 ranks, not for 1"

# bad LINE MESSAGE: a file with this line is refused.
bad() {
    printf '# a placement\n%s\n' "$1" >bad.place
    expect 2 "$TRELLIS" check deck.yaml --set run.placement=bad.place
    says stderr.txt "bad.place:2:1: $2"
}
bad "U 1 workers" "'U' is no task of graph 'step'"
bad "T 99 workers" "there is no task 'T' number 99 in graph 'step'; the last one is number 3"
bad "T 1 device 2" "there is no device 2; the last one is device 1"
bad "T 0 workers" "this is no task with its place; write a name, which of the tasks of that name it is, and 'workers'"
bad "T 1 gpu" "this is no task with its place"
expect 2 "$TRELLIS" check deck.yaml --set run.placement=no.place
grep -q "cannot read '.*no.place': No such file or directory" stderr.txt || fail "no message about the missing file"
says stderr.txt "fix: write the file with: trellis plan DECK --placement FILE"
bad "rank x of 2" "this begins like the tasks of a rank"
printf 'T 1 workers\n\nT 1 device 0\n' >bad.place
expect 2 "$TRELLIS" check deck.yaml --set run.placement=bad.place
says stderr.txt "bad.place:3:1: task 'T' number 1 is placed on line 1 already; remove one of the lines"
printf 'T 1 device 0\n' >one.place
TRL_MOCK_DEVICES=0 expect 2 "$TRELLIS" check deck.yaml --set run.placement=one.place
says stderr.txt "one.place:1:1: there is no device 0: this run has none"
says stderr.txt "fix: write 'workers', or run with as many devices as the file was written for"
expect 0 "$TRELLIS" run deck.yaml --quiet --set run.placement=one.place --report one.json
same_fields serial.json one.json
[ "$(value one.json "r['placement']['tasks'][1:]")" = "[1, 0]" ] || fail "one.place does not place one task on device 0"
# A device does one of the stages, workers the others: values are copied there and back in each step.
[ "$(value one.json "r['placement']['transfers'] >= 2")" = True ] || fail "one.place copies nothing"
[ "$(value one.json "0 <= r['placement']['copy_overlap'] <= 1")" = True ] || fail "no overlap of copies"
[ "$(value one.json "r['placement']['prefetch_lead_s'] >= 0")" = True ] || fail "no lead of copies"
expect 0 "$TRELLIS" check deck.yaml --set run.placement=devices --set run.scheduler=serial
grep -q "the placement is not used: scheduler 'serial' uses no devices" stderr.txt || fail "no warning"

# By measured times.
expect 0 "$TRELLIS" plan deck.yaml --measure
grep -q "^placement    finish_time, by measured times" stdout.txt || fail "plan --measure does not measure a placement"
grep -q "^  a step .* predicted; .* measured$" stdout.txt || fail "plan --measure shows no measured time of a step"

# Devices that are not there.
TRL_MOCK_DEVICES=0 expect 0 "$TRELLIS" plan deck.yaml --devices 2xH100 --set grid.cells=[512,512]
head -1 stdout.txt | grep -q "^prediction   for 2xH100, which need not be there" || fail "no prediction is announced"
grep -q "^  device 1 .* of 80 GB; H100 SXM, 80 GB$" stdout.txt || fail "the plan does not show the second device"
grep -q "^  device 0  *[1-9][0-9]* tasks, busy" stdout.txt || fail "nothing is placed on device 0"
expect 2 "$TRELLIS" plan deck.yaml --devices 2xH1000
says stderr.txt "devices '2xH1000' are not in the table of machines; write a number and one of H100, H200, "
expect 2 "$TRELLIS" plan deck.yaml --devices 9xH100
says stderr.txt "devices '9xH100': there may be 1 to 8 of them"
expect 2 "$TRELLIS" plan deck.yaml --devices H200 --measure
says stderr.txt "--measure cannot run steps on devices that are not there; leave out --measure or --devices"
expect 2 "$TRELLIS" plan deck.yaml --devices H200 --set run.scheduler=priority
says stderr.txt "scheduler 'priority' uses no devices; use hybrid: --set run.scheduler=hybrid"

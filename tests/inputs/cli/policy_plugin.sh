# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Policies from shared objects, as run.scheduler names them.
. "$(dirname "$0")/lib/common.bash"
: "${TRELLIS_BUILD:?set TRELLIS_BUILD to the build folder}"
export TRL_MOCK_DEVICES=2

write_deck
mkdir policies
cp "$TRELLIS_BUILD"/test_plugins/p*.so policies
expect 0 "$TRELLIS" run deck.yaml --steps 30 --quiet --set run.scheduler=serial --report serial.json

# A placement policy, relative to the deck; its queues are those of priority. Tasks are placed once they have been
# timed, and timed again when compiled kernels arrive, or several steps are tried as one graph: here neither.
greedy=(--set run.scheduler=policies/placement_greedy.so --set run.compile=never --set run.time_blocking=1)
expect 0 "$TRELLIS" run deck.yaml --steps 30 --quiet "${greedy[@]}" --report greedy.json
same_fields serial.json greedy.json
[ "$(value greedy.json "r['placement']['by'] in ('policy', 'one executor')")" = True ] ||
    fail "the policy does not place"
expect 0 "$TRELLIS" plan deck.yaml "${greedy[@]}"
grep -q "^placement    greedy, by times" stdout.txt || fail "the plan does not name the policy"
says stdout.txt "policies/placement_greedy.so; its queues are those of priority"
expect 0 "$TRELLIS" run deck.yaml --steps 30 --quiet "${greedy[@]}" --set run.placement=devices \
    --report devices.json
same_fields serial.json devices.json
[ "$(value devices.json "r['placement']['by']")" = devices ] || fail "run.placement does not prevail"

# Queues alone: no devices. Both in one file.
expect 0 "$TRELLIS" run deck.yaml --steps 3 --quiet --set run.scheduler=policies/policy_lifo.so --report queues.json
expect 0 "$TRELLIS" run out/deck.yaml --steps 3 --quiet --report again.json # as used, from another folder
same_fields queues.json again.json
[ "$(value again.json "r['scheduler']['runs']")" = "$PWD/policies/policy_lifo.so" ] || fail "other queues"
[ "$(value queues.json "r['placement']['tasks'] if 'placement' in r else []")" = "[]" ] || fail "a device did a task"
expect 0 "$TRELLIS" run deck.yaml --steps 30 --quiet --set run.scheduler=policies/placement_bad.so --report both.json
same_fields serial.json both.json

# What is wrong is known before step 0, on all ranks.
export TRL_TEST_PLACEMENT=ineligible
for n in 1 2; do
    expect 2 ranks $n "$TRELLIS" run deck.yaml --quiet --set run.scheduler=policies/placement_bad.so \
        --set grid.patches=[2,1] --set 'output.series={every: {steps: 1}, values: {m: integral(T)}}'
    grep -q "placement policy 'bad' puts task '.*' of graph '.*' on executor 2, which may not do it" stderr.txt ||
        fail "no message about the placement"
done
export TRL_TEST_PLACEMENT=size
expect 2 "$TRELLIS" check deck.yaml --set run.scheduler=policies/placement_bad.so
grep -q "policy '.*policies/placement_bad.so' has abi 2 and size 8, this Trellis has 2 and " stderr.txt ||
    fail "no message about the size"
expect 2 "$TRELLIS" check deck.yaml --set run.scheduler=nowhere.so
grep -q "cannot load policy '.*nowhere.so'" stderr.txt || fail "no message about the missing file"

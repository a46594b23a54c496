# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# What a user reads when a device fails. tests/inputs/test_faults.py lets devices fail everywhere.
: "${TRELLIS_BUILD:?set TRELLIS_BUILD to the build folder}"

write_deck
run=("$TRELLIS" run deck.yaml --steps 10 --quiet --set run.placement=devices --set run.compile=never)
expect 0 "${run[@]}" --set run.devices=cpu --report cpu.json

# The CPU carries on.
export TRL_MOCK_DEVICES=1:fail=call@4
expect 0 "${run[@]}" --report failed.json
same_fields cpu.json failed.json
says stderr.txt "warning: mock device 0 failed at call 4"
says stderr.txt "is run again without it from its start"
expect 0 ranks 2 "${run[@]}" --report failed.json
same_fields cpu.json failed.json
says stderr.txt "goes on without a device"

# Not where the device was asked for, nor where its memory had values that are nowhere else.
expect 3 "${run[@]}" --set run.devices=gpu
says stderr.txt "mock device 0 failed at call 4"
export TRL_MOCK_DEVICES=1:fail=lost@60
expect 3 "${run[@]}"
says stderr.txt "the values of 'T' are lost with the device that had them; restart from the last checkpoint"

# Not where a plugin would be called again that may give other values then.
cat >>deck.yaml <<'DECK'
plugins: [sources]
expressions:
  S: {type: pure_source, computes: [S]}
DECK
sed -i 's/ddt: "k\*laplacian(T)"/ddt: "k*laplacian(T) + S"/' deck.yaml
run+=(--plugin-path "$TRELLIS_BUILD/test_plugins")
expect 0 "${run[@]}" --set run.devices=cpu --report cpu.json
export TRL_MOCK_DEVICES=1:fail=call@10 # in a step
expect 0 "${run[@]}" --report failed.json
same_fields cpu.json failed.json
says stderr.txt "is run again without it from its start"
sed -i 's/pure_source/impure_source/' deck.yaml
expect 3 "${run[@]}"
says stderr.txt "'S' cannot be run again: its type 'impure_source' does not say that the same inputs give the same bits"

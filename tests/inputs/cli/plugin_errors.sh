# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# Plugins that are wrong, each with its message at the deck's place, once, and exit code 2.
: "${TRELLIS_BUILD:?set TRELLIS_BUILD to the build folder}"
plugins=$TRELLIS_BUILD/test_plugins

# with_plugin LIST TYPE [PARAMETERS]: deck.yaml with a source of this type.
with_plugin() {
    write_deck
    cat >>deck.yaml <<DECK
plugins: [$1]
expressions:
  S: {type: $2, computes: [S], parameters: {${3-}}}
DECK
    sed -i 's/ddt: "k\*laplacian(T)"/ddt: "k*laplacian(T) + S"/' deck.yaml
}

# rejected MESSAGE: by one rank and by two.
rejected() {
    expect 2 "$TRELLIS" run deck.yaml --plugin-path "$plugins"
    says stderr.txt "$1"
    expect 2 ranks 2 "$TRELLIS" run deck.yaml --plugin-path "$plugins"
    says stderr.txt "$1"
}

with_plugin two_types first_type
expect 0 "$TRELLIS" check deck.yaml --plugin-path "$plugins"
with_plugin no_such_plugin some_type
rejected "deck.yaml:15:11: plugin 'no_such_plugin' not found: "
with_plugin wrong_abi some_type
rejected "deck.yaml:15:11: plugin '$plugins/wrong_abi.so' has plugin abi 8, this Trellis has 2; "
with_plugin undefined_symbol later_type
reason="undefined symbol: trl_function_of_a_later_version"
rejected "deck.yaml:15:11: plugin '$plugins/undefined_symbol.so' cannot be loaded: $reason"
with_plugin missing_slot half_type
rejected "deck.yaml:15:11: expression type 'half_type' of $plugins/missing_slot.so lacks the required slot evaluate"
with_plugin two_types,duplicate_type first_type
first="it comes from $plugins/two_types.so; "
rejected "expression type 'second_type' of $plugins/duplicate_type.so exists already: $first"
with_plugin setup_fails setup_fails
rejected "deck.yaml:17:3: this type refuses its set-up"
with_plugin setup_fails setup_fails "late: true"
rejected "this type refuses to evaluate"

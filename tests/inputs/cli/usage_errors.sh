# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

write_deck
usage() {
    local message=$1
    shift
    expect 2 "$TRELLIS" "$@"
    says stderr.txt "$message"
    silent stdout.txt
}
usage "trellis run: DECK is missing; usage: trellis run DECK" run
usage "trellis run: unexpected argument 'other.yaml'; usage: trellis run DECK" run deck.yaml other.yaml
usage "trellis run: unknown option '--stpes'; did you mean '--steps'?" run deck.yaml --stpes 3
usage "trellis run: option --steps needs a value: --steps N" run deck.yaml --steps
usage "trellis run: option --report needs a value: --report FILE" run deck.yaml --report --quiet
usage "trellis run: option --steps needs a whole number from 0 up, found 'many'" run deck.yaml --steps many
usage "trellis run: option --threads needs a whole number from 1 up, found '0'" run deck.yaml --threads 0
usage "trellis run: option --quiet is given twice" run deck.yaml --quiet --quiet

# Once, whatever the number of ranks.
expect 2 ranks 2 "$TRELLIS" run deck.yaml --stpes 3
says stderr.txt "trellis run: unknown option '--stpes'; did you mean '--steps'?"
expect 2 ranks 2 "$TRELLIS" rnu
says stderr.txt "trellis: unknown command 'rnu'; did you mean 'run'?"

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

expect 0 "$TRELLIS" help
for command in run plan check plot types new bench info help; do
    grep -q "^  $command " stdout.txt || fail "the help does not list $command"
done
for command in run plan check plot types new bench info help; do
    expect 0 "$TRELLIS" $command --help
    says stdout.txt "usage: trellis $command"
    mv stdout.txt by_option.txt
    expect 0 "$TRELLIS" help $command
    same by_option.txt stdout.txt
done
expect 0 "$TRELLIS" run --help
for option in --set --steps --restart --report --trace --threads --plugin-path --quiet; do
    grep -q "^  $option " stdout.txt || fail "the help of run does not explain $option"
done
expect 0 "$TRELLIS" --help
says stdout.txt "commands:"
expect 0 "$TRELLIS" --version
says stdout.txt "Trellis    "

expect 2 "$TRELLIS"
says stderr.txt "commands:"
expect 2 "$TRELLIS" rnu
says stderr.txt "trellis: unknown command 'rnu'; did you mean 'run'?"
expect 2 "$TRELLIS" help rnu
says stderr.txt "trellis: unknown command 'rnu'; did you mean 'run'?"

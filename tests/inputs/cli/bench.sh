# ctest: sanitize=none timeout=300
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

expect 2 "$TRELLIS" bench
says stderr.txt "trellis bench: NAME is missing"
expect 2 "$TRELLIS" bench haet
says stderr.txt "trellis bench: unknown benchmark 'haet'; did you mean 'heat'?"
expect 2 "$TRELLIS" bench nothing_like_it
known="heat, operators, kernels, boundary, build, tasks, grain, gpu_heat, gpu_transport, gpu_fields, mpi"
known="$known, solve, flow, scalability, functions"
says stderr.txt "trellis bench: unknown benchmark 'nothing_like_it'; known are: $known"
expect 0 "$TRELLIS" bench --help
for name in ${known//,/}; do
    tr '\n' ' ' < stdout.txt | grep -q "[ ,]$name[ ,]" || fail "the help does not name $name"
done

# The long form measures optimised kernels, the short one asks for their results only.
[ -n "${TRL_TEST_LONG:-}" ] || export TRELLIS_CC="$TRELLIS_SOURCE/tests/quick_cc.sh"
# Each checks its own numbers: Trellis against hand-written loops, bit by bit, or against the solution;
# or how often and after what each task ran. The short form has runs of ranks in scalability alone.
for name in heat operators kernels boundary build tasks grain solve flow functions ${TRL_TEST_LONG:+mpi}; do
    expect 0 "$TRELLIS" bench $name --quick --json $name.json
    python3 -m json.tool $name.json > /dev/null || fail "$name.json is no JSON"
    says $name.json "\"benchmark\": \"$name\""
done
for text in '"copy_bytes_per_s": ' '"name": "compiled, laplacian, fusion full"' '"ratio_unfused": '; do
    grep -qF -- "$text" heat.json || fail "heat.json lacks $text"
done
grep -qF '"operator": "fourth-order interpolant, cell to node"' operators.json ||
    fail "operators.json lacks an operator"
for text in '"case": "coupled, n = 30"' '"name": "product in each equation"' '"gates": '; do
    grep -qF -- "$text" kernels.json || fail "kernels.json lacks $text"
done
grep -qF '"speed_of_stale": ' boundary.json || fail "boundary.json lacks ratios"
for text in '"case": "random, 1e5 tasks"' '"name": "Trellis, with locks"' '"gates": '; do
    grep -qF -- "$text" tasks.json || fail "tasks.json lacks $text"
done
grep -qF '"seconds_at_50_75_95_percent": ' grain.json || fail "grain.json lacks the lengths of tasks"
for text in '"name": "Trellis, direct"' '"of_copy": ' '"product_of_right_side": ' '"weak": '; do
    grep -qF -- "$text" solve.json || fail "solve.json lacks $text"
done
grep -qF '"ratio_libm": ' functions.json || fail "functions.json lacks ratios"
grep -qF '"expressions": 1000' build.json || fail "build.json lacks the chain of 1000"
[ ! -f mpi.json ] || grep -qF '"least_messages_per_step": ' mpi.json || fail "mpi.json lacks messages"

expect 0 "$TRELLIS" bench scalability --quick --figure 4.6 --minutes 1 --pictures pictures --json scalability.json
python3 -m json.tool scalability.json > /dev/null || fail "scalability.json is no JSON"
grep -qF '"curves": "coupled with convection, optimised"' scalability.json || fail "scalability.json lacks curves"
for text in '"roofline_s": ' '"message_s": ' '"model_s": ' '"cells_per_rank": '; do
    grep -qF "$text" scalability.json || fail "scalability.json lacks $text"
done
[ "$(head -c 4 pictures/figure-4.6.png | tail -c 3)" = PNG ] || fail "figure-4.6.png is no picture"
expect 2 "$TRELLIS" bench scalability --quick --minutes soon
says stderr.txt "trellis bench: --minutes takes a number above 0, not 'soon'"
expect 2 "$TRELLIS" bench scalability --quick --figure 5.1
says stderr.txt "trellis bench scalability: there is no figure '5.1'; use one of 4.3, 4.4, 4.5, 4.6, 4.7"

expect 2 "$TRELLIS" bench solve --quick --parts cycle,wheel
says stderr.txt "trellis bench solve: there is no part 'wheel'; use poisson, cycle, products, weak"
expect 2 "$TRELLIS" bench solve --quick --cells 12,x
says stderr.txt "trellis bench: --cells takes up to 12 whole numbers from 1 to 1048576, separated by commas, not '12,x'"
if [ -n "${TRL_TEST_LONG:-}" ]; then # solutions of ranks are compared with each other, too
    expect 0 "$TRELLIS" bench solve --quick --parts poisson,weak --cells 12 --ranks 2 --json ranks.json
    python3 -m json.tool ranks.json > /dev/null || fail "ranks.json is no JSON"
    grep -qF '"ranks": 2' ranks.json || fail "ranks.json lacks runs on two ranks"
fi

# What cannot be written is found before anything is measured; folders are made.
expect 2 "$TRELLIS" bench build --quick --json build.json/build.json
says stderr.txt "trellis bench: --json 'build.json/build.json' cannot be written"
silent stdout.txt
expect 3 "$TRELLIS" bench scalability --quick --pictures build.json
silent stdout.txt
expect 0 "$TRELLIS" bench build --quick --json new_folder/build.json
[ -s new_folder/build.json ] || fail "new_folder/build.json is missing"

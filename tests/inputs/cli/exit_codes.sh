# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

write_deck
# 2: the deck or a plugin is wrong. No output folder is made for it, a report only where one was asked for.
expect 2 "$TRELLIS" run nothing.yaml
grep -q "nothing.yaml" stderr.txt || fail "the message does not name the deck"
sed 's/ddt: "k\*lap/ddt: "kk*lap/' deck.yaml >wrong.yaml
expect 2 ranks 2 "$TRELLIS" run wrong.yaml --report wrong.json
grep -qE "^wrong.yaml:7:[0-9]+: .*kk" stderr.txt || fail "no message at wrong.yaml:7"
[ "$(grep -c "^wrong.yaml:7:" stderr.txt)" = 1 ] || fail "the message comes more than once"
[ ! -e out ] || fail "a wrong deck made an output folder"
[ "$(value wrong.json "r['status']")" = failed ] || fail "the report does not say 'failed'"
[[ "$(value wrong.json "r['error']")" == wrong.yaml:7:* ]] || fail "the report does not give the message"
{
    cat deck.yaml
    echo 'plugins: [no_such_plugin]'
} >plugin.yaml
expect 2 "$TRELLIS" run plugin.yaml
grep -qE "^plugin.yaml:15:[0-9]+: plugin 'no_such_plugin' not found" stderr.txt || fail "no message about the plugin"
cat >wind.yaml <<'DECK'
trellis: 1
grid: {cells: [16, 12], periodic: [false, true]}
equations:
  p: {solve: "laplacian(p) + cddx(p) = 1", initial: 0, solver: s, boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}}}
DECK
for method in cg pipelined_cg; do # found by a look at the operator's values, and yet the deck is wrong, not the run
    expect 2 ranks 2 "$TRELLIS" run wind.yaml --set "solvers={s: {method: $method}}"
    says stderr.txt "wind.yaml:4:15: $method is for symmetric operators, and that of 'p' is not: "
done
CUDA_VISIBLE_DEVICES= expect 3 "$TRELLIS" run deck.yaml --set run.devices=gpu
grep -q "there is none.*; write .cpu." stderr.txt || fail "no message about GPUs"

# 3: the run failed.
touch file
expect 3 ranks 2 "$TRELLIS" run deck.yaml --set output.directory=file/out --report unwritable.json
[ "$(grep -c "cannot create folder 'file" stderr.txt)" = 1 ] ||
    fail "the message about the output folder is missing or comes more than once"
[ "$(value unwritable.json "r['status']")" = failed ] || fail "the report does not say 'failed'"
expect 3 "$TRELLIS" run deck.yaml --set 'equations.T.ddt=sqrt(0.02 - t) + T' --quiet
grep -q "T" stderr.txt || fail "no message about the value that is not finite"
[ "$(value out/report.json "r['status']")" = failed ] || fail "the report does not say 'failed'"
[ "$(value out/report.json "r['steps'] < 40")" = True ] || fail "the run did not stop early"
[ "$(value out/report.json "len(r['error']) > 0")" = True ] || fail "the report has no error"

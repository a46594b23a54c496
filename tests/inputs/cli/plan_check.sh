# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

write_deck
expect 0 ranks 2 "$TRELLIS" plan deck.yaml --dot graph --verbose
says stdout.txt "wrote graph.expressions.dot"
says stdout.txt "wrote graph.tasks.dot"
says stdout.txt "planned memory of a rank: "
grep -q "T" stdout.txt || fail "the plan does not show the equation"
for file in graph.expressions.dot graph.tasks.dot; do
    grep -q "digraph" $file || fail "$file is no graph"
done
expect 0 ranks 2 "$TRELLIS" plan deck.yaml --measure
grep -q "measured .* of the roofline" stdout.txt || fail "the plan does not show how long a kernel took"
[ ! -e out ] || fail "a plan with measurement made an output folder"
expect 0 "$TRELLIS" plan deck.yaml --set 'equations.T.ddt=sum(j=1..3000, sin(j*T))'
says stdout.txt "interpreted  3 kernels that no compiler gets, the first because it has too many operations"
expect 0 "$TRELLIS" kernels deck.yaml --values
grep -q "T:np1 <- a" stdout.txt || fail "the values of the kernels are not shown"
expect 2 "$TRELLIS" plan deck.yaml --dot ./
says stderr.txt "trellis plan: --dot './' is no beginning of names of files"
expect 3 "$TRELLIS" plan deck.yaml --dot nowhere/graph
says stderr.txt "cannot write 'nowhere/graph.expressions.dot': No such file or directory"
[ ! -e out ] || fail "plan made an output folder"

expect 0 ranks 2 "$TRELLIS" check deck.yaml
says stdout.txt "deck.yaml: no errors, 0 warnings"
silent stderr.txt
[ ! -e out ] || fail "check made an output folder"
expect 0 "$TRELLIS" check deck.yaml --set time.dt=1
says stdout.txt "deck.yaml: no errors, 1 warning"
grep -q "warning: " stderr.txt || fail "no warning about dt"
expect 2 "$TRELLIS" check deck.yaml --set 'equations.T.ddt=lapacian(T)'
grep -q "lapacian" stderr.txt || fail "no message about the unknown operator"
expect 2 "$TRELLIS" check deck.yaml --set 'equations.T.initial=1/(x-x)'
grep -q "T" stderr.txt || fail "no message about initial values that are not finite"
touch file
expect 2 "$TRELLIS" check deck.yaml --set output.directory=file/out
grep -q "the output folder 'file/out' cannot be written: 'file' is a file" stderr.txt ||
    fail "no message about the output folder"

# A message brings ghosts after all kernels that wrote parts of its fields: before, the memory may have another field.
expect 0 ranks 2 "$TRELLIS" plan "$TRELLIS_SOURCE/inputs/decks/heat_plugin.yaml" --set run.fusion=node \
    --set grid.patches=[1,2] --set run.devices=cpu --set run.passes.shared=false --dot messages
python3 - <<'PYTHON' || fail "a message does not wait for kernels that write its fields"
import re
text = open("messages.tasks.dot", encoding="utf-8").read()
label = dict(re.findall(r'^ +(t\d+) \[label="([^\\"]*)', text, re.MULTILINE))
before = {}
for one, other in re.findall(r"(t\d+) -> (t\d+)", text):
    before.setdefault(other, []).append(label[one])
messages = [before[task] for task, name in label.items() if name == "receive"]
assert len(messages) == 3, messages
for names in messages[1:]:
    assert names.count("T") == 2 and names.count("spot") == 3, names
PYTHON

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A byte-order mark before UTF-8 and line ends of other systems change nothing; other encodings get an advice.
write_deck
mv deck.yaml plain.yaml
printf '\357\273\277equations: {T: {mask: "T>0 "}}\r\n' >base.yaml
{
    printf '\357\273\277include: base.yaml\r\n'
    sed 's/$/\r/' plain.yaml
} >deck.yaml
expect 0 "$TRELLIS" check deck.yaml
{
    printf '\357\273\277'
    cat plain.yaml
} >marked.yaml
for deck in plain marked; do expect 0 "$TRELLIS" run $deck.yaml --quiet --report $deck.json; done
same_fields plain.json marked.json

printf '\357\273\277trellis: 1\r\ngrid: {cell: [4]}\r\n' >deck.yaml
expect 2 "$TRELLIS" check deck.yaml
says stderr.txt "deck.yaml:2:8: unknown key 'cell'"
says stderr.txt "grid: {cell: [4]}"
if grep -q $'\r' stderr.txt; then fail "a line end of another system is shown"; fi
printf '\357\273\277trelli: 1\n' >deck.yaml
expect 2 "$TRELLIS" check deck.yaml
says stderr.txt "deck.yaml:1:1: unknown key 'trelli'"

for encoding in utf-16 utf-16-le utf-16-be utf-32; do
    python3 -c 'import sys; open("deck.yaml", "wb").write(open("plain.yaml").read().encode(sys.argv[1]))' $encoding
    expect 2 "$TRELLIS" check deck.yaml
    says stderr.txt "it is written in UTF-16 or UTF-32; save it as UTF-8"
done

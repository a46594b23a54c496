# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# Every deck that `trellis new deck` writes is without faults, runs as it is, and can be drawn. Sanitizers see a few
# steps.
few=()
[ -z "${TRELLIS_CC:-}" ] || few=(--steps 5)
for template in "$TRELLIS_SOURCE"/inputs/templates/deck/*.yaml; do
    kind=$(basename "$template" .yaml)
    expect 0 "$TRELLIS" new deck "my-$kind" --like "$kind"
    says stdout.txt "  trellis run my-$kind.yaml && trellis plot out/my-$kind"
    ! grep -n '@' "my-$kind.yaml" || fail "a mark was left in my-$kind.yaml"
    expect 0 "$TRELLIS" check "my-$kind.yaml"
    says stdout.txt "no errors, 0 warnings"
    expect 0 "$TRELLIS" run "my-$kind.yaml" --quiet --threads 1 "${few[@]}"
    silent stderr.txt
    expect 0 "$TRELLIS" plot "out/my-$kind" -o "$kind.png"
    expect 0 "$TRELLIS" plot "out/my-$kind/series.csv" -o "series_$kind.png"
    "$TRELLIS" new --help | grep -q "$kind" || fail "the help does not name $kind"
done

# What is computed is what the decks' words say.
if [ ${#few[@]} -eq 0 ]; then
    python3 - <<'PYTHON'
import csv
import json


def series(kind):
    with open(f"out/my-{kind}/series.csv", encoding="utf-8") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    return rows[0], rows[-1]


def field(kind, name):
    with open(f"out/my-{kind}/report.json", encoding="utf-8") as file:
        return json.load(file)["fields"][name]


first, last = series("heat")
assert field("heat", "T")["min"] > 20 and last["hottest"] > 22 and first["right_side"] == 20 < last["right_side"], last
first, last = series("reaction")
assert first["highest_u"] < 2.1 and last["highest_u"] > 4 and abs(last["mean_u"] - 2) < 0.05, last
first, last = series("wave")
assert 0.9 * first["energy"] < last["energy"] < 0.97 * first["energy"], last
first, last = series("transport")
assert last["lowest"] > -1e-9 and field("transport", "dye")["max"] <= 1 and 0.3 < last["leaves"] < 0.7, last
# Ghia, Ghia and Shin (1982), Re = 100: u = -0.20581 at the centre.
first, last = series("flow")
assert abs(last["centre"] + 0.20581) < 2e-3 and last["divergence"] < 1e-12 and last["time"] < 20, last
PYTHON
fi

mkdir decks
expect 0 "$TRELLIS" new deck decks/rod.yaml --like heat
says stdout.txt "  trellis run decks/rod.yaml && trellis plot out/rod"
says decks/rod.yaml "  directory: out/rod "

expect 2 "$TRELLIS" new deck decks/rod --like wave
says stderr.txt "trellis new: 'decks/rod.yaml' exists already; choose another name or remove it"
expect 2 "$TRELLIS" new deck rod
says stderr.txt "trellis new deck needs --like and what the deck begins with: flow, heat, reaction, transport, wave"
expect 2 "$TRELLIS" new deck rod --like wafe
kinds="flow, heat, reaction, transport, wave"
says stderr.txt "trellis new deck: there is nothing like 'wafe'; there is: $kinds; did you mean 'wave'?"
expect 2 "$TRELLIS" new deck 'my rod' --like heat
letters="letters, digits, _, - and ., none of the last two first"
says stderr.txt "trellis new deck: 'my rod' is no name of a deck: $letters"
expect 2 "$TRELLIS" new deck rod --like heat --cuda
says stderr.txt "trellis new deck: a deck needs no --cuda; leave it out"
expect 2 "$TRELLIS" new rod --like heat
says stderr.txt "trellis new: a plugin is like no deck; write 'trellis new deck rod --like ...', or leave out --like"
expect 2 "$TRELLIS" new dek rod --like heat
advice="write 'trellis new deck rod --like ...' for a deck, and one name for a plugin"
says stderr.txt "trellis new: found 'dek rod'; $advice"
expect 3 "$TRELLIS" new deck absent/rod --like heat
says stderr.txt "cannot write 'absent/rod.yaml': No such file or directory"

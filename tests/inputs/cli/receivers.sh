# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# Values at points of a file: those of probe, the same file on any ranks and after a restart, to netCDF's own readers
# too.
command -v ncgen >/dev/null || exit 77
points() { # FILE ROWS NUMBERS
    ncgen -k nc4 -o "$1" <<CDL
netcdf points { dimensions: n = $2; axis = 2; three = 3;
variables: double xy(n, axis); double row(n); double xyz(n, three); data: xy = $3; }
CDL
}
points rec.nc 4 "0.31, 0.2, 0, 0, 1, 0.75, 0.5, 0.5"
write_deck
cat >>deck.yaml <<'DECK'
  receivers: {path: rec.nc, dataset: xy, values: [T, q]}
DECK
sed -i 's/^equations:/expressions: {q: "-k*grad(T)"}\nequations:/' deck.yaml

probes='a: "probe(T, [0.31, 0.2])", b: "probe(T, [0, 0])", c: "probe(T, [1, 0.75])", d: "probe(T, [0.5, 0.5])"'
probes+=', y: "probe(q.y, [0.31, 0.2])"'
expect 0 "$TRELLIS" run deck.yaml --quiet --set "output.series={every: {steps: 1}, values: {$probes}}"
expect 0 ncdump -h out/receivers.nc
for line in 'time = UNLIMITED ; // (41 currently)' 'receiver = 4 ;' 'double x(receiver) ;' \
    'double T(time, receiver) ;' 'T:coordinates = "x y" ;' 'double q.x(time, receiver) ;' 'double step(time) ;'; do
    says stdout.txt "$line"
done
expect 0 ncdump -p 17,17 -v x,y,time,T,q.y out/receivers.nc
python3 - <<'PYTHON'
import csv
import re

text = open("stdout.txt").read().split("data:")[1]
found = {name: [float(x) for x in row.replace("\n", " ").split(",")]
         for name, row in re.findall(r"\n (\S+) =([^;]*);", text)}
rows = list(csv.DictReader(open("out/series.csv")))
assert found["x"] == [0.31, 0, 1, 0.5] and found["y"] == [0.2, 0, 0.75, 0.5], found["x"]
assert len(rows) == 41 and found["time"] == [float(row["time"]) for row in rows]
for i, row in enumerate(rows):
    assert found["T"][4 * i : 4 * i + 4] == [float(row[c]) for c in "abcd"], row
    assert found["q.y"][4 * i] == float(row["y"])
PYTHON

# The same bytes on other ranks, from the deck as used, and after a restart, which begins at step 30.
cp out/receivers.nc whole.nc
expect 0 ranks 3 "$TRELLIS" run out/deck.yaml --quiet
same whole.nc out/receivers.nc
expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet --steps 38
rm out/checkpoint/00000038.nc
printf half >>out/receivers.nc
expect 0 "$TRELLIS" run deck.yaml --quiet --restart latest
same whole.nc out/receivers.nc
expect 0 "$TRELLIS" run deck.yaml --quiet --set output.receivers.every.steps=10
says <(ncdump -h out/receivers.nc) 'time = UNLIMITED ; // (5 currently)'

# What does not fit is refused, at its place.
refuses() { # STATUS MESSAGE ARGUMENT...
    local status=$1 message=$2
    shift 2
    expect "$status" ranks 2 "$TRELLIS" "$@"
    grep -q -- "$message" stderr.txt || fail "no message '$message'"
}
points rec.nc 4 "0.31, 0.2, 0, 0, 1, 0.75, 0.5, 0.25"
refuses 2 "the receivers in 'out/receivers.nc' are not those of the deck" run deck.yaml --quiet --restart latest \
    --set output.receivers.every.steps=10
points rec.nc 2 "0.31, 0.2, 0.5, 1.25"
outside="y = 1.25, and the domain goes from 0 to 1"
refuses 2 "^deck.yaml:16:38: receiver 1 of 2 (from 0) lies outside the domain: $outside" check deck.yaml
sed 's/: xy,/: xyt,/' deck.yaml >other.yaml
refuses 2 "^other.yaml:16:38: no dataset 'xyt' in '.*rec.nc'; there is: .*/row, /three, /xy, /xyz" check other.yaml
refuses 2 "has shape \[2\]; points are rows of 2 coordinates: \[n\]\[2\]" check deck.yaml \
    --set output.receivers.dataset=row
refuses 2 "has shape \[2\]\[3\]; points are rows of 2 coordinates: \[n\]\[2\]" check deck.yaml \
    --set output.receivers.dataset=xyz
rm rec.nc
refuses 2 "^deck.yaml:16:21: cannot read '.*rec.nc': No such file or directory; an HDF5 file is needed" check deck.yaml

# So is the path, not the dataset, of a field that is read from a missing file.
sed '/receivers/d' deck.yaml >other.yaml
refuses 2 "^--set:1:48: cannot read '.*no.nc': No such file" check other.yaml \
    --set 'expressions.T0={type: file, parameters: {path: no.nc, dataset: T}, computes: [T0]}' \
    --set equations.T.initial=T0

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# Files of fields and checkpoints are netCDF-4 files to netCDF's own reader, with the values of the report.
command -v ncdump >/dev/null || exit 77
cat >deck.yaml <<'DECK'
trellis: 1
grid: {cells: [7, 5, 4], origin: [1, 0, -2], length: [7, 2.5, 1], periodic: [false, true, false]}
expressions: {q: "-grad(T)", total: "integral(T)"}
equations:
  T: {initial: "sin(x)*cos(y)+z", ddt: "-div(q)",
      boundary: {x-: {neumann: 0}, x+: {neumann: 0}, z-: {neumann: 0}, z+: {neumann: 0}}}
time: {method: rk4, dt: 1e-3, start: 2, steps: 5}
output: {fields: [T, q, total], every: {steps: 5}, checkpoint: {every: {steps: 5}}}
DECK
expect 0 ranks 3 "$TRELLIS" run deck.yaml --quiet
expect 0 ncdump -h out/fields/00000005.nc
cat >wanted.txt <<'CDL'
netcdf \00000005 {
dimensions:
	time = UNLIMITED ; // (1 currently)
	x = 7 ;
	y = 5 ;
	z = 4 ;
	xf = 8 ;
	yf = 5 ;
	zf = 5 ;
variables:
	double time(time) ;
		time:long_name = "time of the problem" ;
		time:units = "1" ;
		time:axis = "T" ;
	double x(x) ;
		x:long_name = "x of cell centres" ;
		x:units = "1" ;
	double y(y) ;
		y:long_name = "y of cell centres" ;
		y:units = "1" ;
	double z(z) ;
		z:long_name = "z of cell centres" ;
		z:units = "1" ;
	double xf(xf) ;
		xf:long_name = "x of faces" ;
		xf:units = "1" ;
	double yf(yf) ;
		yf:long_name = "y of faces" ;
		yf:units = "1" ;
	double zf(zf) ;
		zf:long_name = "z of faces" ;
		zf:units = "1" ;
	int64 step(time) ;
		step:long_name = "number of the time step" ;
		step:units = "1" ;
	double T(time, z, y, x) ;
		T:long_name = "T" ;
		T:location = "cell" ;
	double q.x(time, z, y, xf) ;
		q.x:long_name = "q, component x" ;
		q.x:location = "xface" ;
	double q.y(time, z, yf, x) ;
		q.y:long_name = "q, component y" ;
		q.y:location = "yface" ;
	double q.z(time, zf, y, x) ;
		q.z:long_name = "q, component z" ;
		q.z:location = "zface" ;
	double total(time, z, y, x) ;
		total:long_name = "total" ;
		total:location = "cell" ;

// global attributes:
		:Conventions = "CF-1.8" ;
		:schema = 2 ;
		:cells = 7LL, 5LL, 4LL ;
		:origin = 1., 0., -2. ;
		:length = 7., 2.5, 1. ;
		:periodic = 0, 1, 0 ;
}
CDL
diff wanted.txt stdout.txt || fail "ncdump shows other things than above"

# values FILE NAME: the numbers of a variable, one a line.
values() {
    ncdump -p 9,17 -v "$2" "$1" | awk -v name="$2" '
        /^data:/ { data = 1 }
        data && index($0, " " name " =") == 1 { on = 1; $0 = substr($0, length(name) + 4) }
        on { last = /;/; gsub(/[;, ]+/, "\n"); printf "%s\n", $0; if (last) exit }' | sed '/^$/d'
}

[ "$(values out/fields/00000005.nc time)" = 2.0049999999999999 ] || fail "time is another"
[ "$(values out/fields/00000005.nc step)" = 5 ] || fail "step is another"
[ "$(values out/fields/00000005.nc zf | tr '\n' ' ')" = "-2 -1.75 -1.5 -1.25 -1 " ] || fail "zf is another"
for tag in T q.x q.y q.z total; do values out/fields/00000005.nc $tag >$tag.txt; done
values out/checkpoint/00000005.nc T | diff T.txt - || fail "the checkpoint has another T"
expect 0 "$TRELLIS" collect out
says stdout.txt out/all.nc
for tag in T q.x q.y q.z; do
    values out/all.nc $tag >all.txt
    values out/fields/00000000.nc $tag | cat - $tag.txt | diff all.txt - || fail "collect made another $tag"
done
[ "$(values out/all.nc step | tr '\n' ' ')" = "0 5 " ] || fail "collect made other steps"

# Compressed files hold the same values, on any number of ranks, for all readers, and make the same joined file and
# picture.
for n in 1 3; do
    expect 0 ranks $n "$TRELLIS" run deck.yaml --quiet --set output.compression=6 --set output.directory=small \
        --set 'grid.patches=[3, 2, 1]'
    ncdump -hs small/fields/00000005.nc >header.txt
    says header.txt 'T:_DeflateLevel = 6'
    says header.txt 'q.z:_Shuffle = "true"'
    for tag in T q.x q.y q.z total; do
        values small/fields/00000005.nc $tag | diff $tag.txt - || fail "compression made another $tag"
    done
    expect 0 h5diff out/checkpoint/00000005.nc small/checkpoint/00000005.nc
    expect 0 "$TRELLIS" collect small
    ncdump -hs small/all.nc >header.txt
    says header.txt 'q.x:_DeflateLevel = 6'
    expect 0 h5diff out/all.nc small/all.nc
    expect 0 "$TRELLIS" plot out -o picture.png
    expect 0 "$TRELLIS" plot small -o small.png
    same picture.png small.png
    from="{type: file, parameters: {path: small/fields/00000005.nc, dataset: T}, computes: [T0]}"
    expect 0 ranks $n "$TRELLIS" run deck.yaml --quiet --steps 0 --set output.directory=again \
        --set equations.T.initial=T0 --set "expressions={T0: $from}" --set 'output.fields=[T]'
    hash="r['fields']['T']['hash']"
    [ "$(value again/report.json "$hash")" = "$(value out/report.json "$hash")" ] || fail "'file' read other bits"
done

python3 - <<'PYTHON'
import json
import math

fields = json.load(open("out/report.json"))["fields"]
for tag in ("T", "q.x", "q.y", "q.z", "total"):
    numbers = [float(line) for line in open(tag + ".txt")]
    assert min(numbers) == fields[tag]["min"] and max(numbers) == fields[tag]["max"], tag
    assert math.fsum(numbers) == fields[tag]["sum"], tag
PYTHON

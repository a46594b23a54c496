# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# What a run writes takes the place of files only, and what it reads are files.
. "$(dirname "$0")/lib/common.bash"

write_deck
mkdir folder
mkfifo pipe
ln -s elsewhere.json link
ln -s /dev/null null # devices are named by links: a fault may replace what a test names
printf 'mine\n' >kept

# Refused before the run, once, and left as it is.
refused() {
    local option=$1 path=$2 why=$3
    expect 2 ranks "${4:-1}" "$TRELLIS" run deck.yaml "$option" "$path" --quiet
    says stderr.txt "trellis run: $option '$path' cannot be written: $why"
    [ ! -e out ] || fail "the run began"
}
for option in --report --trace; do
    refused $option folder "a folder stands where a file is needed"
    refused $option link "it is a symbolic link, and only files are replaced" 2
    refused $option kept/report.json "'kept' is a file"
    refused $option new/ "it ends in '/': the name of a file is missing"
    refused $option '' "the name of the file is empty"
    refused $option "$(printf 'n%.0s' {1..300})" "File name too long"
done
[ -d folder ] && [ -L link ] && [ ! -e elsewhere.json ] || fail "something was replaced"

# Devices and pipes are written to; a pipe without a reader is an error at the end, and the rest is there.
expect 0 "$TRELLIS" run deck.yaml --report /dev/fd/1 --trace null --quiet
python3 -m json.tool stdout.txt >/dev/null || fail "--report /dev/fd/1 is no JSON"
[ -L null ] || fail "a link to a device was replaced"
same stdout.txt out/report.json
cat pipe >read.json &
expect 0 "$TRELLIS" run deck.yaml --report pipe --quiet
wait
same read.json out/report.json
rm -r out
expect 3 "$TRELLIS" run deck.yaml --report pipe --trace trace.json --quiet
says stderr.txt "cannot write 'pipe': it is a pipe that nobody reads from"
[ -p pipe ] && [ -s trace.json ] || fail "the pipe or the trace is gone"
[ "$(value out/report.json "r['status']")" = 'done' ] || fail "the report of the run is not what it was"

# The same for what lies in the output folder.
for name in series.csv report.json deck.yaml; do
    rm -rf out
    mkdir out
    ln -s ../kept "out/$name"
    expect 3 "$TRELLIS" run deck.yaml --quiet
    says stderr.txt "cannot write 'out/$name': it is a symbolic link, and only files are replaced"
    [ -L "out/$name" ] && [ "$(cat kept)" = mine ] || fail "out/$name or what it leads to was replaced"
done

# Nothing else than files is read; nothing waits.
refuses() {
    local status=0
    timeout 60 "$TRELLIS" "${@:2}" >stdout.txt 2>stderr.txt || status=$?
    [ "$status" = 2 ] || [ "$status" = 3 ] || fail "'$*' ended with $status"
    says stderr.txt "$1"
}
refuses "cannot read 'pipe': it is a pipe, not a file" run pipe
refuses "cannot read 'folder': it is a folder, not a file" check folder
refuses "cannot read '/dev/zero': it is a device, not a file" plan /dev/zero
refuses "pipe: is a pipe, not a file" plot pipe
sed 's/^trellis: 1/trellis: 1\ninclude: pipe/' deck.yaml >includes.yaml
refuses "includes.yaml:2:10: cannot read 'pipe': it is a pipe, not a file" check includes.yaml
sed 's/^trellis: 1/trellis: 1\nplugins: [.\/pipe]/' deck.yaml >plugs.yaml
refuses "plugs.yaml:2:11: plugin './pipe' cannot be loaded: it is no file" check plugs.yaml
data='expressions={T0: {type: file, computes: [T0], parameters: {path: pipe, dataset: T}}}'
refuses "cannot read '$PWD/pipe': it is a pipe, not a file" check deck.yaml --set "$data"
refuses "it is a pipe" run deck.yaml --restart pipe

# The deck is not lost to the output of its run.
cp deck.yaml mine.yaml
printf 'trellis: 1\ninclude: mine.yaml\n' >outer.yaml
for option in --report --trace; do
    expect 2 "$TRELLIS" run mine.yaml $option ./mine.yaml --quiet
    says stderr.txt "trellis run: $option './mine.yaml' would replace the deck"
    expect 2 "$TRELLIS" run outer.yaml $option mine.yaml --quiet
    says stderr.txt "trellis run: $option 'mine.yaml' would replace the deck"
done
same deck.yaml mine.yaml
for command in run check; do
    expect 2 "$TRELLIS" $command deck.yaml --set output.directory=.
    says stderr.txt "output in '.' would replace '$PWD/deck.yaml', which the deck is read from, by the deck as used"
done
same deck.yaml mine.yaml
rm -rf out
expect 0 "$TRELLIS" run deck.yaml --quiet
expect 0 "$TRELLIS" run out/deck.yaml --quiet
expect 2 "$TRELLIS" plot out -o out/fields/00000000.nc
says stderr.txt "trellis plot: the picture would replace 'out/fields/00000000.nc', which holds fields"
expect 2 "$TRELLIS" collect out -o out/fields/00000000.nc
says stderr.txt "trellis collect: 'out/fields/00000000.nc' is one of the files that are joined"

# What is printed is a result, too, but of a run.
for command in 'info' 'types' 'plan deck.yaml' 'kernels deck.yaml' 'help'; do
    status=0
    $TRELLIS $command >/dev/full 2>stderr.txt || status=$?
    [ $status = 3 ] || fail "'trellis $command' on a full disk ended with $status"
    grep -q "No space left on device" stderr.txt || fail "'trellis $command' on a full disk does not say so"
done
$TRELLIS run deck.yaml >/dev/full 2>stderr.txt || fail "a run whose messages are lost failed"
says stderr.txt "trellis run: what it prints cannot be written: No space left on device"
$TRELLIS types | true

# No fields are written with an empty list of them; the report has their statistics all the same.
rm -rf out
expect 0 "$TRELLIS" run deck.yaml --set output.fields=[]
grep -q '^output is in out: .*report.json$' stdout.txt && ! grep -q 'fields/\|plot' stdout.txt ||
    fail "the summary names fields that are not there"
[ -z "$(ls out/fields)" ] || fail "fields were written"
[ "$(value out/report.json "list(r['fields'])")" = "['T']" ] || fail "the report has no fields"

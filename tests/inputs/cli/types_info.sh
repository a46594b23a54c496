# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

expect 0 "$TRELLIS" types
for name in file heat_source manufactured_heat 'grad(' 'div(' 'sqrt(' 'top-hat filter:'; do
    grep -qF "  $name" stdout.txt || fail "types does not list $name"
done
expect 0 "$TRELLIS" types file
for text in "from: built-in" "  dataset " "path, required" "text, default 'cell'"; do
    says stdout.txt "$text"
done
expect 0 "$TRELLIS" types heat_source
says stdout.txt "number in s, default 1, from 1e-12 to 1e+12"
expect 0 "$TRELLIS" types laplacian
says stdout.txt "laplacian("
expect 0 "$TRELLIS" types 'fourth-order gradient'
says stdout.txt "to the location with one axis' bit flipped; 1.125 at 0, -1.125 at -1, -0.04167 at 1, 0.04167 at -2"
expect 0 "$TRELLIS" types atan2
says stdout.txt "atan2(a, b)"
expect 2 "$TRELLIS" types heat_sauce
says stderr.txt "trellis types: no type, operator or function 'heat_sauce'; did you mean 'heat_source'?"
expect 2 "$TRELLIS" types something_else_entirely
says stderr.txt "trellis types: no type, operator or function 'something_else_entirely'; 'trellis types' lists them"
expect 2 "$TRELLIS" types --plugin-path nowhere
says stderr.txt "trellis types: the folder 'nowhere' cannot be read"
mkdir plugins
echo "no library" >plugins/text.so
expect 2 "$TRELLIS" types --plugin-path plugins
grep -q "plugin 'plugins/text.so' cannot be loaded: " stderr.txt || fail "no message about the broken plugin"

expect 0 "$TRELLIS" info
for key in Trellis compiler build CUDA processor caches cache MPI HDF5; do
    grep -q "^$key " stdout.txt || fail "info does not tell $key"
done
TRL_MOCK_DEVICES="1:speed=4;1" expect 0 "$TRELLIS" info
says stdout.txt "device 0   mock device, speed 4"
grep -q '^device 1   mock device$' stdout.txt || fail "info does not list the second mock device"
TRL_MOCK_DEVICES=two expect 2 "$TRELLIS" info
says stderr.txt "TRL_MOCK_DEVICES: 'two' does not begin with a number of devices"
mkdir cache
TRELLIS_CACHE_DIR=cache expect 0 "$TRELLIS" info
says stdout.txt "cache      cache, 0 kernels, "
chmod 777 cache
TRELLIS_CACHE_DIR=cache expect 0 "$TRELLIS" info
reason="others may write to the folder '$PWD/cache'; take that from them with chmod go-w"
says stdout.txt "cache      cache, not used: $reason"
TRELLIS_CACHE_DIR='' XDG_CACHE_HOME=relative HOME='' expect 0 "$TRELLIS" info
says stdout.txt "cache      not used: none of TRELLIS_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder"
TRELLIS_CACHE_DIR='' XDG_CACHE_HOME='' HOME=$PWD/nobody expect 0 "$TRELLIS" info
says stdout.txt "cache      $PWD/nobody/.cache/trellis, not used: '$PWD/nobody': No such file or directory"

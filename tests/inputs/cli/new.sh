# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# What `trellis new` writes builds and runs as it is, and its own test passes.
expect 0 "$TRELLIS" new decay
expect 0 cmake -S decay -B decay/build
expect 0 cmake --build decay/build
expect 0 "$TRELLIS" run decay/deck.yaml
says stdout.txt "error of T: l1 "
expect 0 ctest --test-dir decay/build --output-on-failure
expect 0 "$TRELLIS" types decay --plugin-path decay
says stdout.txt "decay: a decay, S = -rate*T"
! grep -rn '@NAME@\|@PREFIX@' decay --include='*.c' --include='*.txt' --include='*.yaml' --include='*.md' ||
    fail "a mark was left in a file"

# So does a plugin for GPUs, on emulated ones where there is no other.
expect 0 "$TRELLIS" new fast --cuda
expect 0 cmake -S fast -B fast/build
expect 0 cmake --build fast/build
expect 0 "$TRELLIS" plan fast/deck.yaml --set run.devices=cpu
says stdout.txt "type fast, 1 tag from 1, in C (its CUDA form is for GPUs)"
if [ -x "$TRELLIS_BUILD/emulated/trellis" ]; then
    export TRELLIS_NVRTC=$TRELLIS_BUILD/emulated/nvrtc.so TRL_EMULATED_LAZY=1
    expect 0 cmake -D TRELLIS="$TRELLIS_BUILD/emulated/trellis" -D DECK=fast/deck.yaml -P fast/test_gpu.cmake
    expect 0 "$TRELLIS_BUILD/emulated/trellis" plan fast/deck.yaml --set run.devices=gpu
    says stdout.txt "type fast, 1 tag from 1, in CUDA on GPUs, in C elsewhere"
    unset TRELLIS_NVRTC
fi
expect 0 ctest --test-dir fast/build --output-on-failure

expect 2 "$TRELLIS" new decay
says stderr.txt "trellis new: 'decay' exists already; choose another name or remove it"
expect 2 "$TRELLIS" new 2fast
says stderr.txt "trellis new: '2fast' is no name: letters, digits and _, no digit first"
expect 2 "$TRELLIS" new dt
says stderr.txt "trellis new: 'dt' is reserved in formulas; choose another name"
expect 3 "$TRELLIS" new no/such/folder
says stderr.txt "trellis new: the folder 'no/such/folder' cannot be made: No such file or directory"

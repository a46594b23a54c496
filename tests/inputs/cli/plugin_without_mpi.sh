# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
. "$(dirname "$0")/lib/common.bash"

# A plugin in plain C needs one include folder, and no MPI: all headers for users lie flat in it, as an installation has
# them.
mkdir include
for folder in scheduler spatialops expressions/lang expressions/plugin solvers; do
    cp "$TRELLIS_SOURCE/$folder"/trl_*.h include/
done
unset CPATH C_INCLUDE_PATH
expect 0 "$TRELLIS" new decay
cc -std=c17 -Wall -Wextra -Wpedantic -Werror -Iinclude -M decay/decay.c > headers.txt ||
    fail "the plugin does not compile"
! grep -q 'mpi\.h' headers.txt || exit 77 # it is where compilers look anyway
expect 0 cc -std=c17 -Wall -Wextra -Wpedantic -Werror -O1 -ffp-contract=off -fPIC -shared -Iinclude \
    decay/decay.c -lm -o decay/decay.so
expect 0 "$TRELLIS" run decay/deck.yaml
says stdout.txt "error of T: l1 "

# A parameter without a unit is a number without one.
sed 's/\.unit = "1\/s",//' decay/decay.c > decay/plain.c
! cmp -s decay/decay.c decay/plain.c || fail "the template has no unit to leave out"
expect 0 cc -std=c17 -fPIC -shared -Iinclude decay/plain.c -lm -o decay/decay.so
expect 0 "$TRELLIS" types decay --plugin-path decay
says stdout.txt "  rate           "
! grep -q "1/s" stdout.txt || fail "the unit is still there"

# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# check.sh MODEL.pml: Spin finds no error in a model, and finds one in every broken variant of it.
set -euo pipefail

model=$1
for program in spin cc; do
    command -v $program >/dev/null || {
        echo "SKIP: there is no program $program"
        exit 77
    }
done

fail() {
    echo "FAIL: $*" >&2
    cat search.txt >&2
    exit 1
}

# search LEVEL OPTION...: what Spin says about the model is in search.txt, the number of errors in $errors. LEVEL is the
# optimisation: a search that ends at the first error takes less time than the compiler with it.
search() {
    local level=$1
    shift
    spin "$@" -a "$model" >search.txt 2>&1 || fail "spin does not understand the model"
    cc "$level" -w -DCOLLAPSE -DSAFETY -o pan pan.c || fail "what spin made of the model does not compile"
    ./pan -m100000 >search.txt 2>&1 || fail "the search ended with status $?"
    ! grep -qE "max search depth too small|out of memory" search.txt || fail "not everything was searched"
    errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' search.txt)
    [ -n "$errors" ] || fail "the search says nothing about errors"
}

# The head of a model lists options with which it is "right:", or "right, long:" where that takes long to say, and
# options that break it, "wrong:".
options() {
    sed -n "s/^ \*   $1: *\(\(-D[A-Z_]* *\)*\).*/\1 /p" "$model"
}

while read -r line; do
    # shellcheck disable=SC2086
    search -O1 $line
    [ "$errors" = 0 ] || fail "there is an error with '$line'"
    echo "right: $line $(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1 states/p' search.txt)"
done < <(
    options right
    [ -z "${TRL_TEST_LONG:-}" ] || options "right, long"
)
wrong=0
while read -r line; do
    # shellcheck disable=SC2086
    search -O0 $line
    [ "$errors" -gt 0 ] || fail "nothing is found with '$line'"
    echo "wrong: $line $(sed -n "s/^pan:1: //p" search.txt)"
    wrong=$((wrong + 1))
done < <(options wrong)
[ "$wrong" -ge 3 ] || fail "$model lists no ways to break it"

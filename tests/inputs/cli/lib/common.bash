# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# What the scripts that test the command share. $TRELLIS is the program; the current folder is empty and theirs.
set -euo pipefail
: "${TRELLIS:?set TRELLIS to the program trellis}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

# test_long: whether the long form of the tests runs.
test_long() {
    [ -n "${TRL_TEST_LONG:-}" ]
}

fail() {
    echo "FAIL: $*" >&2
    echo "--- stdout" >&2
    cat stdout.txt >&2 || true
    echo "--- stderr" >&2
    cat stderr.txt >&2 || true
    exit 1
}

# expect STATUS COMMAND...: the command ends with this status; what it printed is in stdout.txt and stderr.txt.
expect() {
    local wanted=$1 status=0
    shift
    "$@" >stdout.txt 2>stderr.txt || status=$?
    [ "$status" = "$wanted" ] || fail "'$*' ended with $status, expected $wanted"
}

# ranks N COMMAND...: under mpirun if there are several; ends with the largest status of a rank. Each rank has to end by
# itself: mpirun does not hear that one has failed, which would make it wait for a second and then kill the others.
ranks() {
    local n=$1 codes status=0 code
    shift
    if [ "$n" = 1 ]; then
        "$@"
        return
    fi
    codes=$(mktemp -d)
    # shellcheck disable=SC2016
    CODES=$codes mpirun --oversubscribe --bind-to none -n "$n" \
        sh -c '"$@" || echo $? >"$CODES/$OMPI_COMM_WORLD_RANK"' sh "$@" || status=$?
    for code in "$codes"/*; do
        [ ! -s "$code" ] || [ "$(cat "$code")" -le $status ] || status=$(cat "$code")
    done
    rm -r "$codes"
    return $status
}

# says FILE TEXT: the file holds the text, once.
says() {
    local count
    count=$(grep -cF -- "$2" "$1" || true)
    [ "$count" = 1 ] || fail "$1 has $count lines with '$2', expected 1"
}

silent() {
    [ ! -s "$1" ] || fail "$1 is not empty"
}

# value FILE EXPRESSION: a Python expression of the report r, as value out/report.json "r['steps']".
value() {
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}

same() {
    cmp "$1" "$2" || fail "$1 and $2 differ"
}

# same_fields REPORT REPORT: the fields have the same bits.
same_fields() {
    [ "$(value "$1" "r['fields']['T']['hash']")" = "$(value "$2" "r['fields']['T']['hash']")" ] ||
        fail "other bits in $1 than in $2"
}

# A small problem with an exact solution, in deck.yaml.
write_deck() {
    cat >deck.yaml <<'DECK'
trellis: 1
grid: {cells: [16, 12]}
parameters: {k: 0.1}
equations:
  T:
    initial: "sin(pi*x)*sin(pi*y)"
    ddt: "k*laplacian(T)"
    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}
    exact: "exp(-2*pi^2*k*t)*sin(pi*x)*sin(pi*y)"
time: {method: ssprk3, dt: 1e-3, steps: 40}
output:
  every: {time: 0.007}
  series: {every: {steps: 3}, values: {mass: "integral(T)"}}
  checkpoint: {every: {steps: 15}}
DECK
}

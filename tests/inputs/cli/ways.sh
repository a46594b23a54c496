# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Ranks of a node exchange by the way that is faster, as measured or as given; the plan says which, and no bit depends
# on it.
. "$(dirname "$0")/lib/common.bash"

write_deck
export TRELLIS_CACHE_DIR=$PWD/cache
memory=1e-5,1e-9,1e-6,1e-10 messages=1e-6,1e-10,1e-5,1e-9
# way WORDS SETTING...: what the plan says of two ranks, and the hashes of a run.
way() {
    local words=$1 set=()
    shift
    for setting in run.compile=never "$@"; do set+=(--set "$setting"); done
    expect 0 ranks 2 "$TRELLIS" plan deck.yaml "${set[@]}"
    says stdout.txt "exchange     on a node by $words"
    expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet "${set[@]}"
    silent stderr.txt
    value out/report.json "[f['hash'] for f in r['fields'].values()]" >>hashes.txt
}
unset TRL_EXCHANGE
way "" # as measured
[ "$(find cache -name '*.ways' | wc -l)" = 1 ] || fail "what was measured is not kept"
TRL_EXCHANGE=$memory way "memory: memory that ranks share takes 1 us and 10 us for 100 kB, messages 10 and 1e+02"
TRL_EXCHANGE=$messages way "messages: memory that ranks share takes 10 us and 1e+02 us for 100 kB, messages 1 and 10"
TRL_EXCHANGE=$messages way "memory, not measured" run.balance=1
TRL_EXCHANGE=$memory way "messages, not measured" run.passes.shared=false
[ "$(sort -u hashes.txt | wc -l)" = 1 ] || fail "bits depend on the way: $(cat hashes.txt)"
expect 0 "$TRELLIS" plan deck.yaml
! grep -q "^exchange" stdout.txt || fail "one rank exchanges"
TRL_EXCHANGE=fast expect 2 ranks 2 "$TRELLIS" run deck.yaml --quiet
says stderr.txt "TRL_EXCHANGE: 'fast' is not four times"
exit 0

# ctest: sanitize=none
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Fields for which all ranks of a node together have no memory are refused before any of it is touched.
. "$(dirname "$0")/lib/common.bash"

cat >deck.yaml <<'DECK'
trellis: 1
grid: {cells: [2000, 500], periodic: [true, true]}
equations: {T: {initial: "sin(2*pi*x)", ddt: "laplacian(T)"}}
time: {method: euler, dt: 1e-9, steps: 12}
run: {devices: cpu}
output: {directory: out, fields: []}
DECK
remedy="use a smaller grid or more nodes, or say with 'run.memory' how much a rank may take"

# Two fields of 8 MB.
TRL_NODE_MEMORY=10000 expect 3 "$TRELLIS" run deck.yaml --quiet
says stderr.txt "the fields of this problem need 0.0162 GB of memory, and 0 GB are free; $remedy"
TRL_NODE_MEMORY=4e7 expect 0 "$TRELLIS" run deck.yaml --quiet
for n in 2 4; do
    TRL_NODE_MEMORY=1.6e7 expect 3 ranks $n "$TRELLIS" run deck.yaml --quiet
    says stderr.txt "the fields of the $n ranks on the node of rank 0 need 0.016"
    [ ! -e out/report.json ] || rm -r out
done
TRL_NODE_MEMORY=4e7 expect 0 ranks 4 "$TRELLIS" run deck.yaml --quiet
cp out/report.json whole.json
TRL_NODE_MEMORY=1.6e7 expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet --set run.memory=4e7

# Nodes of one rank each have enough where one of two has not.
TRL_NODE_MEMORY=1.6e7 expect 0 ranks 2 env LD_PRELOAD="$TRELLIS_BUILD/preload/nodes.so" TRL_NODE_RANKS=1 \
    "$TRELLIS" run deck.yaml --quiet

# There is no room for a second simulation, with other shares: ranks keep theirs.
TRELLIS_SHARES=random:1 TRL_NODE_MEMORY=3e7 expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet
silent stderr.txt
[ "$(value out/report.json "r['shares']['changes']")" = 0 ] || fail "there was no room for other shares"
same_fields whole.json out/report.json
TRELLIS_SHARES=random:1 TRL_NODE_MEMORY=6e7 expect 0 ranks 2 "$TRELLIS" run deck.yaml --quiet
[ "$(value out/report.json "r['shares']['changes']")" != 0 ] || fail "shares did not change"
same_fields whole.json out/report.json

# What cgroups grant to a job, or to a container whose group is not there; what files take makes way.
granted() {
    LD_PRELOAD="$TRELLIS_BUILD/preload/groups.so" TRL_GROUPS=$PWD/$1 "$TRELLIS" run deck.yaml --quiet
}
# group FOLDER LIMIT USED CACHED: of version 2.
group() {
    mkdir -p "$1"
    echo "$2" >"$1/memory.max"
    echo "$3" >"$1/memory.current"
    printf 'anon 1\ninactive_file %s\nactive_file 100\n' "$4" >"$1/memory.stat"
}
mkdir -p v2/proc/self v1/proc/self bare/sys/fs/cgroup
group v2/sys/fs/cgroup/job max 100 0
group v2/sys/fs/cgroup/job/step 100000000 95000000 1000000
for name in /job/step /job/step/task; do
    echo "0::$name" >v2/proc/self/cgroup
    expect 3 granted v2
    says stderr.txt "the fields of this problem need 0.0162 GB of memory, and 0.006 GB are free; $remedy"
done
echo "0::/job" >v2/proc/self/cgroup
expect 0 granted v2
group v2/sys/fs/cgroup/job/step 100000000 95000000 20000000
echo "0::/job/step" >v2/proc/self/cgroup
expect 0 granted v2
group v2/sys/fs/cgroup/job 14000000 0 0
expect 3 granted v2
printf '11:cpu:/a\n4:memory:/b\n' >v1/proc/self/cgroup
mkdir -p v1/sys/fs/cgroup/memory/b
echo 9223372036854771712 >v1/sys/fs/cgroup/memory/memory.limit_in_bytes
echo 10000000 >v1/sys/fs/cgroup/memory/b/memory.limit_in_bytes
echo 1000000 >v1/sys/fs/cgroup/memory/b/memory.usage_in_bytes
printf 'inactive_file 5\ntotal_inactive_file 500000\ntotal_active_file 100000\n' >v1/sys/fs/cgroup/memory/b/memory.stat
expect 3 granted v1
says stderr.txt "and 0.0096 GB are free"
rm v1/sys/fs/cgroup/memory/b/memory.limit_in_bytes
expect 0 granted v1
expect 0 granted bare

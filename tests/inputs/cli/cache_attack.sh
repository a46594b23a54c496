# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Another user exchanges folders on the way to the kernel cache, and plants libraries: none of them may run. Each would
# be loaded by the name and the digest that it has. TRIES=100 tries longer.
. "$(dirname "$0")/lib/common.bash"
tries=${TRIES:-1}
export TRELLIS_CC="$TRELLIS_SOURCE/tests/quick_cc.sh"

[ "$(id -u)" = 0 ] && type -P setpriv >/dev/null || exit 77
as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
ground=$(mktemp -d /tmp/trellis-attack-XXXXXX) # where the other user can get to
attackers=()
finish() {
    [ ${#attackers[@]} = 0 ] || kill "${attackers[@]}" 2>/dev/null || true
    wait
    for _ in {1..100}; do # what an attacker had started may outlive it, and fill a folder meanwhile
        if rm -rf "$ground" 2>/dev/null; then return; fi
        sleep 0.05
    done
    rm -rf "$ground"
}
trap finish EXIT
chmod 755 "$ground"
mkdir "$ground/owned" "$ground/marks"
chmod 1777 "$ground/marks"
marker=$ground/marks/loaded

cat >deck.yaml <<'DECK'
trellis: 1
grid: {cells: [16], periodic: [true]}
equations: {T: {initial: "sin(2*pi*x)", ddt: "0.1*laplacian(T)"}}
time: {method: euler, dt: 1e-4, steps: 2}
run: {compile: always, threads: 1}
DECK
trellis_run() {
    expect 0 "$TRELLIS" run deck.yaml --quiet
    [ ! -e "$marker" ] || fail "a planted library ran: $1"
}

# What the entries are called, and a library that leaves a mark, with its digest behind it.
mkdir -m 700 names
TRELLIS_CACHE_DIR=names trellis_run "none was there"
cat >planted.c <<C
#include <fcntl.h>
#include <sys/stat.h>
__attribute__((constructor)) static void mark(void) { (void)open("$marker", O_WRONLY | O_CREAT, 0666); }
void trl_kernel(void *call) { (void)call; }
C
mkdir -m 700 sound
for entry in names/*.so; do
    cc -shared -fPIC "-Dtrl_kernel=trl_kernel_$(basename "$entry" .so)" planted.c -o "sound/$(basename "$entry")"
done
python3 - sound/*.so <<'PYTHON'
import sys

mask = (1 << 64) - 1
for name in sys.argv[1:]:
    first, second = 14695981039346656037, 0x2545F4914F6CDD1D
    for byte in open(name, "rb").read():
        first = (first ^ byte) * 1099511628211 & mask
        second = (second ^ (byte + 0x5B)) * 0x9E3779B97F4A7C15 & mask
        second ^= second >> 29
    open(name, "ab").write(b"%016x%016x" % (first, second))
PYTHON
chmod 600 sound/*.so
TRELLIS_CACHE_DIR=sound expect 0 "$TRELLIS" run deck.yaml --quiet
[ -e "$marker" ] || fail "the planted library does not run where it is sound: the attacks below would show nothing"
rm "$marker"

# fill FOLDER: with planted entries that belong to the other user.
mkdir -m 755 "$ground/stock"
cp sound/*.so "$ground/stock"
chmod 644 "$ground"/stock/*.so
fill() {
    mkdir -p "$1"
    chmod 777 "$1"
    "${as_other[@]}" cp "$ground"/stock/*.so "$1"
}

for ((try = 0; try < tries; ++try)); do
    # A folder that was open to all and is not any more.
    fill "$ground/once$try"
    chmod 700 "$ground/once$try"
    TRELLIS_CACHE_DIR=$ground/once$try trellis_run "of a folder that was 777"
    rm -rf "$ground/once$try"
done

# A parent that the other user may rename in: attackers exchange the folder, and the entries by links, all the time.
chown 65534:65534 "$ground/owned"
for parent in "$ground/open" "$ground/owned"; do
    mkdir -p "$parent/cache"
    [ "$parent" = "$ground/owned" ] || chmod 777 "$parent"
    chmod 700 "$parent/cache"
    fill "$ground/evil"
    cat >exchange.sh <<SH
while :; do
    mv -T $parent/cache $parent/good
    cp -r $ground/stock $parent/cache
    rm -rf $parent/evil
    mv -T $parent/cache $parent/evil
    ln -s $parent/evil $parent/cache
    rm $parent/cache
    mv -T $parent/good $parent/cache
    for folder in $parent/.trellis-*; do
        mv -T \$folder \$folder.good
        cp -r $ground/stock \$folder
    done
done
SH
    chmod 644 exchange.sh
    cp exchange.sh "$ground/exchange.sh"
    for ((k = 0; k < 2; ++k)); do
        "${as_other[@]}" bash "$ground/exchange.sh" >/dev/null 2>&1 &
        attackers+=($!)
    done
    for ((try = 0; try < tries; ++try)); do
        TRELLIS_CACHE_DIR=$parent/cache trellis_run "below $parent"
        TRELLIS_CACHE_DIR='' XDG_CACHE_HOME=$parent trellis_run "below $parent"
        TRELLIS_CACHE_DIR=$ground/none/cache TMPDIR=$parent trellis_run "with temporary files in $parent"
    done
    kill "${attackers[@]}"
    attackers=()
    wait
done
echo "$((tries * 7)) runs, no planted library was loaded"

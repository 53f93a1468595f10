# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2012,SC2016
# Where the answers go may be full, closed or in the way: said, exit status 1, nothing half-written left.
classifier=$SUBJECTS/mobilenetv2_035
cp "$SUBJECTS/pictures/classify/000000.jpg" one.jpg
cp "$SUBJECTS/pictures/classify/000001.jpg" two.jpg
try() {
    local status=0
    octet "$@" || status=$?
    echo "exit $status"
}

echo "== standard output is full, closed, or a pipe that nobody reads"
full() {
    local status=0
    octet "$@" 2>errors >/dev/full || status=$?
    cat errors
    echo "exit $status"
}
full run "$classifier" one.jpg two.jpg --logits
full run "$classifier" one.jpg --json --logits
full inspect "$classifier"
full inspect "$classifier" --json --dot
full bench "$classifier" --json --runs 2 --seconds 0
full --help
status=0
octet run "$classifier" one.jpg two.jpg --logits --trace --dump closed 2>errors >&- || status=$?
cat errors
echo "exit $status"
octet run "$classifier" one.jpg two.jpg --dump open >/dev/null
diff -r closed open
{
    status=0
    octet inspect "$classifier" 2>errors || status=$?
    echo "exit $status" >>errors
} | true
sed 's/^/pipe: /' errors

echo "== drawing and dumping"
octet run "$classifier" one.jpg two.jpg --draw drawn --dump dumped --quiet
ls drawn dumped
file=drawn/one.jpg
[ "$(head -c 3 "$file" | od -An -tx1 | tr -d ' \n')" = ffd8ff ] && echo "a JPEG"
: >taken
try run "$classifier" one.jpg --draw taken
try run "$classifier" one.jpg --dump missing/deeper
mkdir -p in/one.jpg
try run "$classifier" one.jpg --draw in | grep -v '%'
ls in
mkdir -p way/one.jpg.logits.npy
try run "$classifier" one.jpg two.jpg --dump way --json | cut -c1-20
ls way | sort

# A full disk: a file system of our own if that is allowed, in a name space that goes with its shell.
if unshare -m true 2>/dev/null && mkdir full && unshare -m sh -c 'mount -t tmpfs -o size=64k none full' 2>/dev/null; then
    unshare -m sh -c '
        mount -t tmpfs -o size=64k none full
        octet run "$1" one.jpg --dump full >/dev/null 2>errors
        echo "dump: exit $?" >>errors
        ls full >left
        rm -f full/*
        head -c 65536 /dev/zero >full/filler 2>/dev/null || true
        octet run "$1" one.jpg --draw full >/dev/null 2>>errors
        echo "draw: exit $?" >>errors
        ls full >>left' sh "$classifier"
    grep -q 'No space left on device' errors || cat errors
    grep -q 'dump: exit 1' errors || cat errors
    grep -q 'draw: exit 1' errors || cat errors
    if grep -q 'tmp' left; then cat left; fi
fi

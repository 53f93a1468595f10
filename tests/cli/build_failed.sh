# SPDX-License-Identifier: Apache-2.0
# Where a bundle cannot be written: said clearly, and what stood there stays. Two builds of the same give the same bytes.
checkpoint=$SUBJECTS/mobilenetv2_035
build() { octet build "$checkpoint" --threads 1 --quiet -o "$@"; }
fails() { # STATUS COMMAND...
    local status=0 wanted=$1
    shift
    "$@" >said 2>&1 || status=$?
    [ "$status" -eq "$wanted" ] || echo "expected exit status $wanted, found $status"
    cat said
}

build a.octet >/dev/null
build b.octet >/dev/null
cmp a.octet b.octet && echo "two builds, the same bytes"
mkdir folder elsewhere
(cd elsewhere && build c.octet --threads 2 >/dev/null)
cmp a.octet elsewhere/c.octet && echo "from elsewhere, with other threads: the same bytes"

echo "-- a folder"
fails 1 build folder
fails 1 build folder/
echo "-- no such folder"
fails 1 build nowhere/a.octet
echo "-- a file as folder"
fails 1 build a.octet/b.octet
echo "-- a place where none may write"
fails 1 build /proc/a.octet
echo "-- a full device"
[ -c /dev/full ] && fails 1 build /dev/full
echo "-- a disk that is full after 512 KiB"
cp a.octet kept.octet
(trap '' XFSZ; ulimit -f 512; fails 1 build kept.octet --batch 1,2)
cmp a.octet kept.octet && echo "the old bundle stays"
echo "-- a bundle is no checkpoint"
fails 1 octet build a.octet -o c.octet
echo "-- through a link"
ln -s a.octet link.octet
build link.octet --batch 2 >/dev/null
[ -L link.octet ] && cmp -s a.octet b.octet || echo "the link stays, its target is new"
find . -name '.*.tmp.*'

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Cases 24, 26, 29, 40 and 42 of the shared collection.
cases=$SHARED/cases
model=$SHARED/data/checkpoints/mobilenetv2_100
if [ ! -d "$cases" ] || [ ! -d "$model" ]; then
    echo "no shared cases here" >&2
    exit 77
fi
exec 2>&1
for set in instances instances_other_ids; do
    octet eval "$cases/24-label-holes/model" --data "$cases/24-label-holes/$set.json" --draws 0 | sed -e '1d' -e 's/; set: .*//'
done
for tar in "$cases"/40-tar-keys/*.tar*; do
    echo "--- ${tar##*/}"
    octet eval "$model" --data "$tar" --samples out --draws 0 >figures && cut -d , -f 1,2 out || echo "exit $?"
done
for truths in "$cases"/26-coco-id-zero/*.gt.json "$cases"/29-coco-empty-and-ids/*.gt.json; do
    echo "--- ${truths##*/}"
    octet eval "${truths%.gt.json}.dt.json" --data "$truths" --draws 0 --json || echo "exit $?"
done
echo "--- image folder"
octet eval "$model" --data "$cases/42-image-folder-order/set" || echo "exit $?"
cp -rL "$cases/42-image-folder-order/set" set
chmod -R u+w set
rm -r set/empty
octet eval "$model" --data set --samples out --draws 0 >figures
cut -d , -f 1,2 out

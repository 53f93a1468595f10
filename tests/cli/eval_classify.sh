# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The small classifier on its kept pictures (58 of 64 right, as timm says), from a label list, an image folder and shards, beside itself.
model=$SUBJECTS/mobilenetv2_035
set=$SUBJECTS/pictures/classify
octet eval "$model" --data "$set" --threads 1

echo "--- beside its bundle, a line a picture"
octet build "$model" -o m.octet --batch 8 --quiet >built
octet eval m.octet --data "$set" --reference "$model" --samples lines --draws 100 --json >figures
sed -E -e 's/"(model|reference|data)(_fingerprint)?":"[^"]*",//g' figures
head -n 2 lines
wc -l <lines

echo "--- the same pictures as an image folder and as shards: the same figures"
mkdir folder wds

while IFS= read -r line; do
    name=${line% *}
    index=${line##* }
    mkdir -p "folder/$index"
    cp "$set/$name" "folder/$index/"
    cp "$set/$name" "wds/$name"
    echo "$index" >"wds/${name%.jpg}.cls"
done <"$set/labels.txt"
seq 0 31 >names
(cd wds && printf '%s\n' 00000*) >first
(cd wds && printf '%s\n' 0000[1-9]*) >second
tar -C wds -cf part-0.tar --files-from first
tar -C wds -czf part-1.tar.gz --files-from second
octet eval "$model" --data folder --classes names --draws 0 --limit 64 | sed -e '1d' -e 's/; set: .*//'
octet eval "$model" --data part-0.tar,part-1.tar.gz --draws 0 | sed -e '1d' -e 's/; set: .*//'

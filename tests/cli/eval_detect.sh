# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The small detector on its kept pictures: pycocotools says AP 0.675, AP50 0.875, AP75 0.784 of 217 objects.
model=$SUBJECTS/yolos
set=$SUBJECTS/pictures/detect/instances.json
octet eval "$model" --data "$set" --draws 200

echo "--- beside itself"
octet eval "$model" --reference "$model" --data "$set:$SUBJECTS/pictures/detect" --limit 3 --draws 0 --samples lines --json |
    sed -E -e 's/"(model|reference|data)(_fingerprint)?":"[^"]*",//g'
cut -c 1-160 lines

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Average precision of detections from a file: pycocotools' figures, annotation id 0 and empty lists with them.
exec 2>&1
truths() { # FIRST-ID
    cat <<END
{"images": [{"id": 0, "file_name": "0.png"}, {"id": 9007199254740993, "file_name": "1.png"}], "categories": [{"id": 0, "name": "a"}],
 "annotations": [{"id": $1, "image_id": 0, "category_id": 0, "bbox": [10, 10, 50, 50], "area": 2500, "iscrowd": 0},
  {"id": 7, "image_id": 0, "category_id": 0, "bbox": [100, 100, 40, 40], "area": 1600, "iscrowd": 0},
  {"id": 8, "image_id": 9007199254740993, "category_id": 0, "bbox": [20, 20, 60, 60], "area": 3600, "iscrowd": 0}]}
END
}
truths 1 >one.json
truths 0 >zero.json
cat >found.json <<'END'
[{"image_id": 0.0, "category_id": 0, "bbox": [10, 10, 50, 50], "score": 0.9}, {"image_id": 0, "category_id": 0, "bbox": [100, 100, 40, 40], "score": 0.8},
 {"image_id": 9007199254740993, "category_id": 0, "bbox": [20, 20, 60, 60], "score": 0.7}, {"image_id": 0, "category_id": 5, "bbox": [1, 1, 2, 2], "score": 1}]
END
octet eval found.json --data one.json --draws 100
octet eval found.json --data zero.json --draws 0 --json
echo '[]' >none.json
octet eval none.json --data one.json --draws 0 --json
echo "--- refused"
fails() {
    printf '%s' "$1" >wrong.json
    octet eval wrong.json --data one.json || echo "exit $?"
}
one='"category_id": 0, "bbox": [1, 1, 2, 2], "score": 1}]'
fails '[{"image_id": 4, '"$one"
fails '[{"image_id": "0", '"$one"
fails '[{"image_id": 0.5, '"$one"
fails '[{"image_id": 0, "category_id": 0, "bbox": [1, 1, 2, 2], "score": NaN}]'
fails '[{"image_id": 0, "category_id": 0, "bbox": [1, 1, 2, -2], "score": 1}]'
fails '[{"image_id": 0, "category_id": 0, "bbox": [1, 1, 2], "score": 1}]'
fails '[{"image_id": 0, "category_id": 0, "bbox": [1, 1, 2, 2], "score": null}]'
fails '[{"image_id": 0, "category_id": 0, "bbox": [1, 1, 2, 2], "score": "1"}]'
fails '[7]'
fails '{}'
fails ''
octet eval found.json --data one.json --reference found.json || echo "exit $?"
octet eval found.json --data nowhere.json || echo "exit $?"

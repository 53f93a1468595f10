# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Recipes by name and by file: what inspect says of them, what check says of wrong ones, and the 16-bit engines.
exec 2>&1
classifier=$SUBJECTS/mobilenetv2_035
pictures=$SUBJECTS/pictures/classify
echo "--- inspect"
octet inspect "$classifier" --recipe published >said
head -4 said
tail -2 said
octet inspect "$classifier" --recipe published --json >said
head -1 said
octet inspect "$classifier" --recipe nothing >said || head -1 said
echo "--- check"
cat >good.yaml <<'END'
recipe: mine
base: fp16
rules:
  - ops: {kind: conv2d, name: "blocks.*"}
    weights: {format: int8, granularity: channel}
    activations: {format: int8, granularity: tensor}
END
sed 's/int8, granularity: channel/int9, granularity: channel/' good.yaml >format.yaml
sed 's/blocks/block/' good.yaml >pattern.yaml
sed 's/granularity: tensor/granularity: row, calibrator: max/' good.yaml >dynamic.yaml
sed 's/base: fp16/base: fp16\nbase: fp32/' good.yaml >twice.yaml
octet check good.yaml format.yaml pattern.yaml dynamic.yaml twice.yaml nowhere.yaml || echo "exit $?"
octet check good.yaml && echo "exit 0"
octet check --model "$classifier" good.yaml pattern.yaml --json || echo "exit $?"
octet check || echo "exit $?"
echo "--- 16 bits: near float32, the same from a bundle"
for recipe in fp16 bf16; do
    octet eval "$classifier" --data "$pictures" --recipe $recipe --reference "$classifier" --draws 0 --threads 1 --json |
        grep -o '"agreement":[0-9.]*'
    octet build "$classifier" --recipe $recipe -o $recipe.octet >said
    octet run "$classifier" --recipe $recipe "$pictures/000003.jpg" --logits --json >checkpoint.txt
    octet run $recipe.octet "$pictures/000003.jpg" --logits --json >bundle.txt
    cmp checkpoint.txt bundle.txt && echo same
    octet inspect $recipe.octet --json | grep -o '"unfused_quantize":[0-9]*'
done
octet run fp16.octet --recipe fp16 "$pictures/000003.jpg" || echo "exit $?"

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Configurations that lie: each is refused by name, in a small address space and without a crash.
# An address sanitizer needs a larger one than any limit.
nm "$OCTET" 2>/dev/null | grep -q __asan_init || ldd "$OCTET" | grep -q libasan || ulimit -v 1048576
picture=$SUBJECTS/pictures/detect/000000.jpg
number=0
try() { # FILE SUBJECT KEY VALUE: KEY of FILE replaced
    local status=0
    number=$((number + 1))
    mkdir "$number"
    ln -s "$SUBJECTS/$2/model.safetensors" "$number/"
    cp "$SUBJECTS/$2"/*.json "$number/"
    python3 - "$number/$1" "$3" "$4" <<'PYTHON'
import json, sys
path, key, value = sys.argv[1:]
config = json.load(open(path))
place = config
*parents, last = key.split(".")
for parent in parents: place = place[parent]
if value == "-": del place[last]
else: place[last] = "@"
open(path, "w").write(json.dumps(config, indent=1).replace('"@"', value))
PYTHON
    octet run "$number" "$picture" --threads 1 >out 2>&1 || status=$?
    echo "$3 = $4: exit $status: $(head -1 out | sed "s|$SUBJECTS|SUBJECTS|g; s|octet run: $number/||")"
}
for value in 0 -1 1000000000 1e9 192.5 '"192"' null '[192]' '{}' true 9223372036854775807; do
    try config.json yolos hidden_size "$value"
done
for key in num_hidden_layers num_attention_heads intermediate_size num_detection_tokens patch_size num_channels; do
    for value in 0 -1 1000000000 1.5 '"6"'; do try config.json yolos $key "$value"; done
done
for value in '[1000000000, 1000000000]' '[0, 256]' '[192]' 1000000000 '"192"' '[192, -256]' '[192, 256, 3]'; do
    try config.json yolos image_size "$value"
done
for value in -1 '"small"' 0 '[]'; do try config.json yolos layer_norm_eps "$value"; done
for value in '{}' '[]' '{"0": "a"}' '{"1000000000": "a"}'; do try config.json yolos id2label "$value"; done
for key in hidden_size id2label image_size; do try config.json yolos $key -; done
for value in 0 -1 1000000000 1e9 32.5 '"32"' null; do try config.json mobilenetv2_035 num_classes "$value"; done
for value in '[3, 1000000000, 1000000000]' '[3, 0, 0]' '[1, 128, 128]' '[3, 128]' '"128"' '[3, -1, 128]'; do
    try config.json mobilenetv2_035 pretrained_cfg.input_size "$value"
done
for value in 0 -1 1e-9 1e300 '"all"'; do try config.json mobilenetv2_035 pretrained_cfg.crop_pct "$value"; done
for value in '[0, 0, 0]' '[1]' '[1e400, 1, 1]' '"std"'; do try config.json mobilenetv2_035 pretrained_cfg.std "$value"; done
for value in '{"height": 0, "width": 0}' '{"height": 1, "width": 1}' '{"height": 1000000000, "width": 1000000000}' \
    '{"shortest_edge": 0, "longest_edge": 0}' '{"shortest_edge": 1000000000, "longest_edge": 1000000000}' \
    '{"shortest_edge": 1, "longest_edge": 1}' '{"height": -1, "width": 5}' '{"height": "192"}' 0 1000000000 '"big"' '[]'; do
    try preprocessor_config.json yolos size "$value"
done
for value in '[0, 0, 0]' '"x"' '[1, 2]'; do try preprocessor_config.json yolos image_std "$value"; done
for value in 7 -1 '"lanczos"'; do try preprocessor_config.json yolos resample "$value"; done
try preprocessor_config.json yolos rescale_factor '"1/255"'

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# octet run, inspect and bench on our own subjects: text, JSON, names of every kind, pictures that are none.
export HF_HUB_CACHE=$PWD/cache
detector=$SUBJECTS/yolos classifier=$SUBJECTS/mobilenetv2_035
lines_of_json() { # every line of standard input is a JSON object; how many
    python3 -c 'import json, sys
lines = sys.stdin.read().splitlines()
assert all(isinstance(json.loads(line, parse_constant=lambda word: 1 / 0), dict) for line in lines)
print(len(lines), "objects")'
}
keys_of_json() { # and the keys of each
    python3 -c 'import json, sys
for line in sys.stdin: print(*json.loads(line))'
}
try() {
    local status=0
    octet "$@" || status=$?
    echo "exit $status"
}
cp "$SUBJECTS/pictures/detect/000000.jpg" one.jpg
cp "$SUBJECTS/pictures/classify/000000.jpg" two.jpg

echo "== text"
try run "$detector" one.jpg
try run "$detector" one.jpg --threshold 0.95
try run "$classifier" two.jpg --top 2
try run "$classifier" two.jpg --top 1000 --quiet | grep -c '%'

echo "== JSON"
octet run "$detector" one.jpg two.jpg --json | keys_of_json
octet run "$detector" one.jpg --json --logits | keys_of_json
octet run "$classifier" two.jpg --json --top 3 | keys_of_json
octet run "$classifier" one.jpg two.jpg --json --logits | lines_of_json
octet run "$classifier" two.jpg --json --trace 2>trace | lines_of_json
[ "$(grep -c ' ms$' trace)" -gt 10 ]
octet run "$classifier" two.jpg --json --draw drawn --dump dumped | lines_of_json
octet inspect "$detector" --json | keys_of_json
octet inspect "$detector" --json --dot --tactics --memory --shapes | lines_of_json
octet inspect --support --json | lines_of_json
octet bench "$classifier" "$classifier" --json --runs 2 --seconds 0 --batch 1,3 | keys_of_json
octet bench "$classifier" --json --runs 2 --seconds 0 --scope task --picture two.jpg --cold | lines_of_json

echo "== the logits of one picture are the same in every company"
octet run "$classifier" two.jpg --json --logits >alone
octet run "$classifier" one.jpg two.jpg one.jpg --json --logits --threads 3 | sed -n 2p | cmp - alone
octet run "$classifier" two.jpg --json --logits --dump dumped --trace 2>/dev/null | cmp - alone

echo "== the dumped arrays are NumPy's, and hold what was printed"
octet run "$classifier" two.jpg --json --logits --dump dumped | python3 -c 'import ast, json, struct, sys
printed = json.loads(sys.stdin.read())
def read(name):
    data = open("dumped/two.jpg." + name + ".npy", "rb").read()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    size = 10 + struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:size].decode())
    assert size % 64 == 0 and not header["fortran_order"]
    count = 1
    for extent in header["shape"]: count *= extent
    code = {"|u1": "B", "<f4": "f"}[header["descr"]]
    return header["shape"], struct.unpack("<%d%s" % (count, code), data[size:])
for name in ("pixels", "resized", "input", "logits"): print(name, read(name)[0])
assert read("pixels")[0] == (printed["height"], printed["width"], 3)
shape, logits = read("logits")
assert all(struct.pack("<f", a) == struct.pack("<f", b) for a, b in zip(logits, printed["logits"]))'
ls dumped

echo "== some pictures are none"
echo nonsense >bad.jpg
: >empty.png
mkdir folder.jpg
try run "$detector" bad.jpg one.jpg empty.png folder.jpg missing.jpg two.jpg --json >some 2>errors
lines_of_json <<<"$(grep -v '^exit' some)"
cat errors; tail -1 some
if [ "$(id -u)" != 0 ]; then
    cp one.jpg secret.jpg
    chmod 0 secret.jpg
    octet run "$detector" secret.jpg 2>&1 | grep -q 'ermission denied' || echo "a file that may not be read was read"
fi
try run nowhere one.jpg
try run folder.jpg one.jpg
try run bad.jpg one.jpg

echo "== names"
odd=$'a b\n\xc3\xa9\xff"\\.jpg'
cp one.jpg "$odd"
octet run "$detector" "$odd" --json --draw "odd d" --dump "odd d" | sed 's/"task.*//'
find "odd d" -type f -print0 | tr -dc '\0' | wc -c
cp one.jpg ./-top.jpg
octet run "$detector" -- -top.jpg | tail -1
mkdir 'a model é'
cp "$detector"/*.json "$detector"/model.safetensors 'a model é'
octet run 'a model é' one.jpg --json | sed 's/one.jpg//' >here
octet run "$detector" one.jpg --json | sed 's/one.jpg//' | cmp - here

echo "== no locale changes an answer"
for locale in C C.UTF-8 de_DE.UTF-8 tr_TR.UTF-8; do
    LC_ALL=$locale LANG=$locale octet run "$detector" one.jpg --json --threshold 0.95 | cmp - <(octet run "$detector" one.jpg --json --threshold 0.95)
done 2>&1 | grep -v setlocale || true

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What octet does, in a minute, on the small models and drawn pictures that come along.
#     tools/demo.sh [FOLDER OF THE COMMAND]      default: build/release/bin; pictures with boxes go to build/demo
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-build/release/bin}
out=build/demo
classifier=subjects/mobilenetv2_035
detector=subjects/yolos
classify=(subjects/pictures/classify/*.jpg)
detect=(subjects/pictures/detect/*.jpg)

for needed in "$bin/octet" "$bin/subjects-draw" "$classifier/config.json" "$detector/config.json" "${classify[0]}" "${detect[0]}"; do
    [ -e "$needed" ] || {
        echo "demo: $needed is missing; 'make demo' builds the command, and the rest is in the repository" >&2
        exit 1
    }
done
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; else bold="" plain=""; fi

title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
# show COMMAND...: prints it as one would type it, then runs it
show() {
    printf '  $ %s\n' "$*"
    PATH=$bin:$PATH "$@" </dev/null | sed 's/^/    /'
}

rm -rf "$out"
mkdir -p "$out"
title "What is in a picture: $classifier"
show octet run "$classifier" "${classify[@]:0:4}" --top 3
title "What is where: $detector; the boxes are drawn into $out"
show octet run "$detector" "${detect[@]:0:2}" --draw "$out"
title "How fast, on this machine"
show octet bench "$classifier" --batch 1,8
show octet bench "$detector"

pictures=("$out"/*.jpg)

title "Does eight bits pay? A study of $classifier on this CPU, from its file to a verdict"
study=$out/study
mkdir -p "$study/calibrate" "$study/judge"
cp subjects/study.yaml "$study/"
cp -r "$classifier" "$study/model"
show subjects-draw --kind small --seed 11 --count 128 --jpeg "$study/calibrate"
show subjects-draw --kind small --seed 12 --count 900 --jpeg "$study/judge"
show octet study run "$study/study.yaml" --threads 1
show octet study report "$study/study.yaml"
cat <<TEXT

Pictures with boxes: ${pictures[*]}
The study's report:  $study/study.html (open it in a browser)
Next:
    $bin/octet inspect $classifier               what the model is made of
    $bin/octet run $classifier ${classify[0]} --trace
                                                 the way of one picture through octet, room by room
    $bin/octet run $classifier YOUR.jpg          a picture of yours (this model knows drawn shapes only)
    $bin/octet inspect $classifier --recipe published
                                                 what a recipe makes of each op, and why
    $bin/octet study verify $study/study.yaml    whether every figure of the report follows from its evidence
    $bin/octet --help                            all the verbs
    make test                                    everything checked
    docs/architecture.md                         how one picture passes the rooms
TEXT

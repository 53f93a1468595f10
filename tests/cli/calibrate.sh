# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# octet calibrate: the same file for any number of threads, and of stops; what it says of wrong input; what run, eval, build
# and bench make of the scales.
exec 2>&1
classifier=$SUBJECTS/mobilenetv2_035
pictures=$SUBJECTS/pictures/classify
quiet() { "$@" >said || { echo "exit $?"; cat said; }; }

echo "--- once, on one thread and on two"
octet calibrate "$classifier" --data "$pictures" --recipe published -o one.json --threads 1 --json | sed 's/"values":[0-9]*/"values":N/'
quiet octet calibrate "$classifier" --data "$pictures" --recipe published -o two.json --threads 2
cmp one.json two.json && echo same
[ ! -e one.json.part ] && [ ! -e one.json.learnt ] && echo "nothing is left"
grep -c '"format": "e4m3"' one.json || true

echo "--- the scales in use: one model, four ways"
octet eval "$classifier" --data "$pictures" --recipe published --scales one.json --reference "$classifier" --draws 0 --threads 1 --json | grep -o '"agreement":[0-9.]*'
quiet octet build "$classifier" --recipe published --scales one.json -o model.octet
octet inspect model.octet --json | grep -o '"unfused_quantize":[0-9]*'
octet run "$classifier" --recipe published --scales one.json "$pictures/000003.jpg" --logits --json >checkpoint.txt
octet run model.octet "$pictures/000003.jpg" --logits --json >bundle.txt
cmp checkpoint.txt bundle.txt && echo "a bundle gives what its checkpoint gives"
octet bench "$classifier" --recipe fp32,published --scales one.json --runs 2 --seconds 0 --threads 1 --json | grep -o '"recipe":"[a-z0-9]*"'

echo "--- stopped and gone on"
mkdir many
for i in $(seq 10); do for p in "$pictures"/*.jpg; do cp "$p" "many/$i-${p##*/}"; done; done
(cd many && for p in *.jpg; do echo "$p 0"; done >labels.txt)
quiet octet calibrate "$classifier" --data many --recipe entropy -o whole.json --threads 1
stops=0
while :; do
    octet calibrate "$classifier" --data many --recipe entropy -o parts.json --threads 1 >said 2>&1 &
    sleep "0.$((15 + stops))" # longer each time: a machine that does other things gets there too
    kill -INT $! 2>/dev/null || true
    wait $! && break
    stops=$((stops + 1))
    [ $stops -lt 84 ] || { cat said; break; }
done
[ $stops -gt 0 ] && echo "stopped at least once"
cmp whole.json parts.json && echo same

echo "--- refused"
octet calibrate "$classifier" --data "$pictures" --recipe fp32 -o no.json || echo "exit $?"
octet calibrate "$classifier" --data "$pictures" --recipe fp16 -o no.json || echo "exit $?"
octet calibrate "$classifier" --data "$pictures" --recipe publishd -o no.json || echo "exit $?"
octet calibrate "$classifier" --data nowhere --recipe published -o no.json || echo "exit $?"
octet calibrate model.octet --data "$pictures" --recipe published -o no.json || echo "exit $?"
octet calibrate "$classifier" --data "$pictures" --recipe published -o no/such/folder.json || echo "exit $?"
octet run "$classifier" --recipe published "$pictures/000003.jpg" || echo "exit $?"
octet run "$classifier" --scales one.json "$pictures/000003.jpg" || echo "exit $?"
octet run "$SUBJECTS/yolos" --recipe published --scales one.json "$SUBJECTS/pictures/detect/000001.jpg" || echo "exit $?"
sed 's/"weights": "./"weights": "f/' one.json >other.json
octet run "$classifier" --recipe published --scales other.json "$pictures/000003.jpg" | sed 's/[0-9a-f]\{64\}/HASH/g' || echo "exit $?"
head -c 500 one.json >cut.json
octet run "$classifier" --recipe published --scales cut.json "$pictures/000003.jpg" || echo "exit $?"
[ ! -e no.json ] && [ ! -e no.json.part ] && echo "nothing is left"
echo "--- a state that is damaged is told, and begun anew"
head -c 100 whole.json >again.json.part
octet calibrate "$classifier" --data "$pictures" --recipe published -o again.json --threads 1 --json | grep -o '"resumed":[0-9]*'
cmp one.json again.json && echo same

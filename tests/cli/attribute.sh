# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# octet attribute: its lines, the groups, a scale damaged on purpose, and what it says of wrong input.
exec 2>&1
classifier=$SUBJECTS/mobilenetv2_035
pictures=$SUBJECTS/pictures/classify
octet calibrate "$classifier" --data "$pictures" --recipe published -o scales.json --threads 1 --limit 16 --quiet >said
attribute() { octet attribute "$classifier" --data "$pictures" --recipe published --scales scales.json --limit 2 --draws 100 --threads 1 "$@"; }
count() { grep -c "$1" lines || true; }

echo "--- lines of JSON, the same again"
attribute --by block --json >lines
attribute --by block --json | cmp - lines && echo same
grep -o '^{"[a-z]*"' lines | sort | uniq -c | sed 's/^ *//'
grep -o '"variant":"[a-z]*"' lines
grep -o '"group":"[^"]*","ops":\[[^]]*\]' lines | sort

echo "--- by kind, as text"
attribute --by kind >text
sed -n '1p' text
grep -o 'blocks.\*.*' text | grep '(' | sort
grep -c ' dB ' text

echo "--- a scale an eighth of what it was, in one of 34"
awk '/"op": "blocks.3.0.conv_pwl"/ { match($0, /"scale": \[[^]]*/); v = substr($0, RSTART + 10, RLENGTH - 10); sub(/"scale": \[[^]]*/, "\"scale\": [" v / 8) } { print }' scales.json >damaged.json
octet attribute "$classifier" --data "$pictures" --recipe published --scales damaged.json --limit 4 --draws 0 --threads 1 --json >lines
count '"group":'
grep -m 1 -o '"group":"[^"]*"' lines

echo "--- refused"
octet attribute "$classifier" --data "$pictures" || echo "exit $?"
octet attribute "$classifier" --data "$pictures" --recipe fp16 --limit 1 || echo "exit $?"
octet attribute "$classifier" --data "$pictures" --recipe publishd --limit 1 >said || { head -1 said; tail -1 said; }
octet attribute "$classifier" --data "$pictures" --recipe published --limit 1 || echo "exit $?"
octet attribute "$classifier" --data nowhere --recipe published || echo "exit $?"
octet attribute "$classifier" --data "$SUBJECTS/pictures/detect/instances.json" --recipe published --limit 1 || echo "exit $?"
octet build "$classifier" -o model.octet --quiet >said
octet attribute model.octet --data "$pictures" --recipe published --limit 1 || echo "exit $?"
attribute --by layer || echo "exit $?"

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# octet search: a front, the recipe it recommends and what that gives; stopped, killed and gone on; wrong input.
exec 2>&1
classifier=$SUBJECTS/mobilenetv2_035
pictures=$SUBJECTS/pictures/classify
for recipe in published int8; do
    octet calibrate "$classifier" --data "$pictures" --recipe $recipe -o $recipe.json --threads 1 --limit 16 --quiet >said
done
with=("$classifier" --data "$pictures" --limit 4 --threads 1 --by kind)
both=(--recipe "published,int8" --scales "published.json,int8.json" --time modelled)
evened() { sed 's/"resumed":[0-9]*/"resumed":N/' "$1"; }

echo "--- a front, rising in time and falling in loss, and a recipe within the limit"
octet search "${with[@]}" "${both[@]}" --within 0.02 --budget 30 --state state -o found.yaml --json >lines
head -1 lines | grep -o '"time":"[^"]*"\|"evaluations":[0-9]*\|"resumed":[0-9]*'
grep -o '"front":.*' lines | sed 's/.*"kl":\([^,]*\),.*"ms":\([^,]*\),.*/\2 \1/' >front
[ "$(wc -l <front)" -gt 3 ] && sort -g front | cmp - front && sort -k 2 -rg front | cmp - front && echo sorted
grep -c '"recommended":.*"within":true' lines
octet check found.yaml && echo "a right recipe"
octet eval "$classifier" --data "$pictures" --limit 4 --threads 1 --draws 0 --recipe found.yaml --scales found.yaml.scales.json \
    --reference "$classifier" --json | grep -o '"kl":[^,]*' >judged
grep '"recommended"' lines | grep -o '"kl":[^,]*' | cmp - judged && echo "octet eval says the same of it"
wc -l <state

echo "--- asked again: nothing is evaluated, the same is said; more budget goes on"
octet search "${with[@]}" "${both[@]}" --within 0.02 --budget 30 --state state --json >again
grep -o '"resumed":[0-9]*' again
evened lines >a && evened again | cmp - a && echo same
cp state larger
octet search "${with[@]}" "${both[@]}" --within 0.02 --budget 36 --state larger --json | grep -o '"evaluations":[0-9]*,"resumed":[0-9]*'

echo "--- killed and stopped anywhere: the same state, the same words"
tries=0
while :; do
    octet search "${with[@]}" "${both[@]}" --within 0.02 --budget 30 --state parts --json >parts.lines 2>said &
    sleep "$((tries / 8)).$((tries % 8 + 1))" # ever longer: a slow machine comes to the end too
    if [ $((tries % 2)) = 0 ]; then kill -INT $! 2>/dev/null || true; else kill -KILL $! 2>/dev/null || true; fi
    wait $! 2>/dev/null && break
    tries=$((tries + 1))
    [ $tries -lt 300 ] || break
done
cmp state parts && evened parts.lines | cmp - a && echo same
cut=$(($(wc -c <state) - 20))
head -c $cut state >torn
octet search "${with[@]}" "${both[@]}" --within 0.02 --budget 30 --state torn --json | grep -o '"resumed":[0-9]*'
cmp state torn && echo "a torn line is made again"

echo "--- measured, as text, one recipe, points"
octet search "${with[@]}" --recipe published --scales published.json --within 100points --budget 8 --runs 2 >text
sed -n '1,3p' text
sed -n '/^recipe:/,/^rules:/p' text

echo "--- refused"
octet search "$classifier" --data "$pictures" --recipe published || echo "exit $?"
octet search "${with[@]}" --recipe published --within much || echo "exit $?"
octet search "${with[@]}" --recipe published --within 0.1points5 || echo "exit $?"
octet search "${with[@]}" --recipe published, --within 0.1 || echo "exit $?"
octet search "${with[@]}" --recipe published,int8 --scales a,b,c --within 0.1 || echo "exit $?"
octet search "${with[@]}" --recipe published,fp32 --within 0.1 || echo "exit $?"
octet search "${with[@]}" --recipe fp16 --within 0.1 || echo "exit $?"
octet search "${with[@]}" "${both[@]}" --within 0.1 --budget 5 || echo "exit $?"
octet search "${with[@]}" "${both[@]}" --within 0.02 --budget 30 --state state --limit 5 || echo "exit $?"
cp published.json kept.json
octet search "${with[@]}" "${both[@]}" --within 0.02 --budget 30 --state published.json || echo "exit $?"
octet search "${with[@]}" "${both[@]}" --within 0.02 --state no/such/folder || echo "exit $?"
octet search "${with[@]}" --recipe published --within 0.1 --scales nowhere.json || echo "exit $?"
octet search "${with[@]}" --recipe published --within 0.1 || echo "exit $?"
sed 's/"data": "./"data": "g/' int8.json >other.json
octet search "${with[@]}" --recipe published,int8 --scales published.json,other.json --within 0.1 || echo "exit $?"
octet search "${with[@]}" "${both[@]}" --within 0 --budget 20 >front || echo "exit $?"
cmp kept.json published.json && echo "a file that is no state is left as it was"

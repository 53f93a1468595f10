# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The report of a study: written into a README and as a page, held against the evidence, refused where its words say more.
write_study() { # TITLE
    cat >study.yaml <<TEXT
study: subject
title: $1
model: $SUBJECTS/mobilenetv2_035
data: {pictures: $SUBJECTS/pictures/classify}
sets:
  calibrate: [data: pictures, first: 4]
  verdict: [data: pictures, range: [4, 16]]
variants: {fp32: fp32, int8: int8}
reference: fp32
candidates: [int8]
evaluate: {draws: 200}
rules: {close: [{figure: kl, at_most: 0.2}]}
adopt: [close]
not_measured: [{what: times, why: they differ from run to run}]
TEXT
}

echo "--- nothing measured yet"
write_study "The small classifier"
octet study report study.yaml 2>&1 || echo "exit $?"

echo "--- into a README, every other byte as it was"
octet study run study.yaml --quiet --threads 1 >run.txt
printf 'before\n\n<!-- octet:report -->\n<!-- /octet:report -->\n\nafter' >README.md
octet study report study.yaml
head -n 5 README.md
tail -n 3 README.md && echo
grep -c -i -E '<script|https?:' study.html || true
octet study verify study.yaml

echo "--- one digit changed"
cp README.md kept.md
sed -i 's/| 12<!-- /| 13<!-- /' README.md
octet study verify study.yaml 2>problems.txt | sed -E 's/:[0-9]+:/:LINE:/; s/evidence [0-9a-f]+/evidence ID/'
echo "exit ${PIPESTATUS[0]}"
cp kept.md README.md
sed -i 's/<h1>The small/<h1>The smell/' study.html
octet study verify study.yaml || echo "exit $?"

echo "--- marks that are not a pair"
printf 'a<!-- octet:report -->b' >README.md
octet study report study.yaml 2>&1 || echo "exit $?"
cat README.md && echo
printf 'no marks' >README.md
octet study report study.yaml
octet study report study.yaml --readme README.md 2>&1 || echo "exit $?"

echo "--- words that the evidence does not have"
write_study "Int8 is faster than ever"
octet study run study.yaml --quiet --threads 1 >run.txt
octet study report study.yaml 2>&1 | head -n 1
echo "exit ${PIPESTATUS[0]}"

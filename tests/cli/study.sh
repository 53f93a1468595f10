# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A study of the small classifier from its file to a verdict; refused before it is measured; stopped, gone on with, verified,
# measured again, merged, compared. Ids differ from machine to machine, so they are left out.
write_study() { # LIMIT OF KL, EXTRA BOUND
    cat >study.yaml <<TEXT
study: subject
title: The small classifier
model: $SUBJECTS/mobilenetv2_035
data: {pictures: $SUBJECTS/pictures/classify}
sets:
  calibrate: [data: pictures, first: 4]
  select: [data: pictures, range: [4, 8]]
  verdict: [data: pictures, range: [8, 24]]
variants: {fp32: fp32, int8: int8}
reference: fp32
candidates: [int8]
evaluate: {draws: 200}
rules:
  close: [{figure: kl, at_most: $1}, {figure: nonfinite, at_most: 0}$2]
adopt: [close]
revisit: [{when: kl < 0.001, because: a test}]
TEXT
}
ids() { sed -E 's/  [0-9a-f]{12}$//'; }

echo "--- a rule that 16 pictures can never pass"
write_study 0.2 ", {figure: agreement, at_least: 0.99}"
octet study run study.yaml || echo "exit $?"

echo "--- mistakes"
sed 's/figure: kl/figure: lk/' study.yaml >bad.yaml
octet study run bad.yaml || echo "exit $?"
octet study status missing.yaml || echo "exit $?"
octet study dance study.yaml 2>&1 | head -n 1
octet study verify study.yaml || echo "exit $?"

echo "--- from the file to a verdict"
write_study 0.2 ""
octet study status study.yaml
octet study run study.yaml --threads 1 | ids
cp study.sqlite first.sqlite

echo "--- nothing is left to do, nor to find beside it"
octet study run study.yaml --quiet --json | sed -E 's/.*("verdict": ?"[^"]*").*/\1/'
ls -- *.sqlite*
cmp study.sqlite first.sqlite && echo "the same bytes"

echo "--- another rule by the same evidence"
write_study 0.0000001 ""
octet study status study.yaml | head -n 1
octet study run study.yaml --threads 1 | ids | head -n 3

echo "--- verify, rerun, merge, compare"
octet study verify study.yaml
octet study rerun study.yaml --sample 1 --seed 2 --threads 2 | tail -n 1
octet study merge first.sqlite study.sqlite -o all.sqlite
octet study verify all.sqlite
octet study compare first.sqlite all.sqlite

echo "--- a digit of a figure changed"
at=$(grep -abo '"name":"kl","' all.sqlite | head -n 1 | cut -d: -f1)
printf 'm' | dd of=all.sqlite bs=1 seek=$((at + 8)) conv=notrunc status=none
octet study verify all.sqlite | ids | sed -E 's/[0-9a-f]{12}/ID/'
echo "exit ${PIPESTATUS[0]}"
octet study status study.yaml --evidence all.sqlite || echo "exit $?"

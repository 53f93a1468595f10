# SPDX-License-Identifier: Apache-2.0
# octet build killed at 50 moments: what stands at the output is the old bundle or the new one, never a part; what a killed
# build left behind is gone after the next one. Moments come from a fixed list of fractions of one build's time.
checkpoint=$SUBJECTS/mobilenetv2_035
build() { octet build "$checkpoint" -o out/model.octet --batch "$1" --threads 1 --json; }

mkdir out
begin=$(date +%s%N)
build 1 >first.json
took=$((($(date +%s%N) - begin) / 1000))
build 2 >second.json
cp out/model.octet new.octet
build 1 >again.json
cmp first.json again.json
cp out/model.octet old.octet
! cmp -s old.octet new.octet

killed=0 kept=0 replaced=0 strays=0 i=0
while [ $killed -lt 50 ] && [ $i -lt 400 ]; do # builds that ended before they were killed do not count
    i=$((i + 1))
    # Spread over a build's time, not in order.
    wait_us=$(((i * 29 % 50) * took / 50))
    octet build "$checkpoint" -o out/model.octet --batch 2 --threads 1 --json >killed.json 2>killed.txt &
    pid=$! # the command itself, not a shell round it
    sleep "$(printf '%d.%06d' $((wait_us / 1000000)) $((wait_us % 1000000)))"
    kill -9 $pid 2>/dev/null && killed=$((killed + 1))
    wait $pid 2>/dev/null || true
    if cmp -s out/model.octet old.octet; then
        kept=$((kept + 1))
    else
        cmp out/model.octet new.octet # the new one, whole
        replaced=$((replaced + 1))
        cp old.octet out/model.octet
    fi
    left=$(find out -name '.model.octet.tmp.*' | wc -l)
    [ "$left" -le 1 ] || { echo "round $i: $left temporary files: a build left its predecessor's"; exit 1; }
    strays=$((strays + left))
done
[ $((kept + replaced)) -eq $i ]
[ $killed -eq 50 ] && [ $kept -gt 0 ] && [ $strays -gt 0 ] ||
    echo "killed $killed, old $kept, new $replaced, temporary files left $strays"

# A stray file of a process that is gone is removed; one of a living build and other names stay.
echo part >out/.model.octet.tmp.999999999.0
echo part >out/.other.octet.tmp.999999999.0
echo mine >out/.model.octet.tmp.notes
(exec 9>out/.model.octet.tmp.1.7 && flock 9 && touch held && exec sleep 30) &
holder=$!
while [ ! -e held ]; do sleep 0.01; done
build 2 >second_again.json
kill $holder
cmp second.json second_again.json
cmp out/model.octet new.octet
find out -type f | LC_ALL=C sort

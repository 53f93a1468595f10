# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What octet eval does not do: every failure is said, and leaves no figure and no file.
classifier=$SUBJECTS/mobilenetv2_035
pictures=$SUBJECTS/pictures/classify
fails() {
    local status=0
    octet eval "$@" --samples out --quiet || status=$?
    echo "exit $status"
    [ ! -e out ] && [ ! -e out.tmp ] || echo "a file is left"
}
exec 2>&1
fails
fails "$classifier"
fails "$classifier" --data nowhere
fails "$SUBJECTS/yolos" --data "$pictures"
fails "$classifier" --data "$SUBJECTS/pictures/detect/instances.json"
fails "$classifier" --reference "$SUBJECTS/yolos" --data "$pictures"
mkdir set
cp "$pictures/000000.jpg" set/a.jpg
head -c 1000 "$pictures/000001.jpg" >set/b.jpg
printf 'a.jpg 1\nb.jpg 2\n' >set/labels.txt
fails "$classifier" --data set
printf 'a.jpg 1\nc.jpg 2\n' >set/labels.txt
fails "$classifier" --data set
printf 'a.jpg 1\nb.jpg 32\n' >set/labels.txt
fails "$classifier" --data set
printf 'a.jpg 1\n' >set/labels.txt
echo "--- a full disk, a folder that is not there"
octet eval "$classifier" --data set --draws 0 --samples no/such/out || echo "exit $?"
octet eval "$classifier" --data set --draws 0 >/dev/full || echo "exit $?"
echo "--- stopped by a signal: nothing is written"
octet eval "$SUBJECTS/yolos" --data "$SUBJECTS/pictures/detect/instances.json" --samples out --threads 1 >said &
while [ ! -e out.tmp ]; do sleep 0.05; done
kill -INT $!
status=0
wait $! || status=$?
echo "exit $status"
[ ! -e out ] && [ ! -e out.tmp ] && [ ! -s said ] && echo "nothing is left"

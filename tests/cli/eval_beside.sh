# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What stands beside the figures of octet eval: the floor, the scatter, and stress inputs instead of a set.
exec 2>&1
classifier=$SUBJECTS/mobilenetv2_035
pictures=$SUBJECTS/pictures/classify
evaluate() { octet eval "$classifier" --data "$pictures" --limit 16 --threads 1 "$@"; }
echo "--- floor and scatter"
evaluate --recipe weights_only --reference "$classifier" --floor fp16 --scatter 2 --draws 100
evaluate --recipe weights_only --reference "$classifier" --floor fp16 --scatter 2 --draws 0 --json | grep -o '"floor":{"task":"classification","n":16'
evaluate --recipe weights_only --scatter 3 --draws 0 --json >one.json
evaluate --recipe weights_only --scatter 3 --draws 0 --json >two.json
cmp one.json two.json && echo "the same chance each time"
evaluate --floor fp17 || echo "exit $?"
evaluate --scatter 1 || echo "exit $?"
echo "--- stress"
octet eval "$classifier" --stress --threads 1 | sed -n '1,2p;$p' | sed 's/largest [0-9.e+-]*/largest N/'
octet eval "$classifier" --stress --recipe fp16 --reference "$classifier" --threads 1 --json >said
grep -c '"beyond_fp16":true' said
grep beyond_fp16_pixel said
octet eval "$classifier" --stress --data "$pictures" || echo "exit $?"

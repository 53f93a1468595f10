#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is checked and measured on a machine with a GPU, in stages of a few minutes each.
#
#     tools/gpu_check.sh [--programs DIR] [--checkpoint DIR] [--out DIR] [STAGE...]
#
#     tests     every kernel against plain C on drawn shapes, outputs poisoned; networks against the CPU engine, the same
#               bits in 1,000 runs
#     sanitize  the same on few shapes under compute-sanitizer (memcheck, racecheck); says so where it cannot run
#     bench     MobileNetV2 in fp16 and int8, batch 1, 32, 128: tactics by the clock, a replay, a step
#     peers     PyTorch beside it, eager and compiled
#
# A stage's output goes to OUT/STAGE.txt with date, card and commit, and a stage that is there with "ok" at its end is not
# run again. DIR of programs: where cudacheck and bench_cuda are (default build/cuda/bin). Exit 1 if a stage failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
programs=$here/../build/cuda/bin checkpoint=$here/../subjects/mobilenetv2_035 out=gpu-check
while [ $# -gt 0 ]; do
    case $1 in
    --programs) programs=$2; shift 2 ;;
    --checkpoint) checkpoint=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || set -- tests sanitize bench peers
mkdir -p "$out"

run() {
    echo "\$ $*"
    "$@" || { echo "FAILED with status $?: $*"; failed=1; }
}

header() {
    date -u +%Y-%m-%dT%H:%MZ
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,power.draw --format=csv,noheader
    echo "commit ${COMMIT:-$(git -C "$here" rev-parse --short HEAD 2>/dev/null)}"
}

stage_tests() {
    run "$programs/cudacheck" --rounds 200
    for format in fp32 fp16 int8; do
        run "$programs/bench_cuda" "$checkpoint" --format $format --batch 1,3,32 --runs 5 --repeat 1000
    done
    OCTET_CUDA=generic run "$programs/bench_cuda" "$checkpoint" --format fp16 --batch 1,2 --runs 5
}

stage_sanitize() {
    command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not here: not run"; return; }
    for tool in memcheck racecheck; do
        run compute-sanitizer --tool $tool --error-exitcode 9 "$programs/cudacheck" --rounds 2
        for format in fp16 int8; do
            run compute-sanitizer --tool $tool --error-exitcode 9 "$programs/bench_cuda" "$checkpoint" --format $format \
                --batch 1 --runs 1 --once
        done
    done
}

stage_bench() {
    for format in fp16 int8; do
        run "$programs/bench_cuda" "$checkpoint" --format $format --batch 1,32,128 --runs 50
        run "$programs/bench_cuda" "$checkpoint" --format $format --batch 1,32,128 --runs 50 --tune --steps
    done
}

stage_peers() {
    python3 -c 'import torch, timm' 2>/dev/null || { echo "no torch or timm here: not run"; return; }
    run python3 "$here/gpu_peers.py" "$checkpoint"
}

status=0
for stage in "$@"; do
    if [ -f "$out/$stage.txt" ] && [ "$(tail -n 1 "$out/$stage.txt")" = ok ]; then
        echo "$stage: done before"
        continue
    fi
    (
        failed=0
        header
        "stage_$stage"
        [ $failed -eq 0 ] && echo ok
    ) >"$out/$stage.txt" 2>&1
    if [ "$(tail -n 1 "$out/$stage.txt")" = ok ]; then
        echo "$stage: ok"
    else
        echo "$stage: FAILED, see $out/$stage.txt"
        status=1
    fi
done
exit $status

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What one `octet run` costs beside its inference: peak memory, and the time from start to the first class.
#
#     bench/footprint.sh [BIN]        BIN: the folder with octet and draw_weights; default build/release/bin
#
# Models are drawn (their weights do not matter here); RUNS (20) runs each after one to warm the file cache, medians. The
# bounds are those of the project's targets; they are printed, and 3 is the exit status where one is missed. Times
# mean something on an idle machine only: the CPU time beside them says how much of the wall time was waiting.
set -euo pipefail
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$(cd "${1:-$source_folder/build/release/bin}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$bin/draw_weights" mobilenetv2_100 mobilenet >/dev/null
"$bin/draw_weights" yolos_small yolos --height 512 --width 864 >/dev/null
RUNS=${RUNS:-20} BIN=$bin PICTURE=$source_folder/subjects/pictures/detect/000000.jpg python3 - <<'PYTHON'
import json, os, statistics, subprocess, sys, time

octet, picture, runs = os.environ["BIN"] + "/octet", os.environ["PICTURE"], int(os.environ["RUNS"])
for width, height in ((3, 900), (900, 3)):
    with open(f"{width}x{height}.ppm", "wb") as file:
        file.write(b"P6\n%d %d\n255\n" % (width, height) + bytes(i * 7 % 256 for i in range(width * height * 3)))


def run(*words):
    """Wall seconds, CPU seconds, peak bytes of one run."""
    start = time.monotonic()
    child = subprocess.Popen([octet, "run", *words, "--quiet"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"octet run {' '.join(words)}: exit {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


missed = 0


def figure(name, value, bound, unit):
    global missed
    missed += not value < bound
    print(f"{name:<58} {value:8.1f} {unit}   bound {bound} {unit}{'' if value < bound else '   MISSED'}")


for name, words, bound in (
    ("MobileNetV2 1.0, one picture", ("mobilenet", picture), 60),
    ("MobileNetV2 1.0, a picture of 3 x 900", ("mobilenet", "3x900.ppm"), 60),
    ("MobileNetV2 1.0, a picture of 900 x 3", ("mobilenet", "900x3.ppm"), 60),
    ("YOLOS-small at 512 x 864", ("yolos", picture, "--height", "512", "--width", "864"), 300),
):
    figure(f"peak memory, {name}", max(run(*words)[2] for _ in range(3)) / 1e6, bound, "MB")

for threads in ("1", "0"):
    run("mobilenet", picture, "--threads", threads)
    took = [run("mobilenet", picture, "--threads", threads) for _ in range(runs)]
    bench = subprocess.run([octet, "bench", "mobilenet", "--json", "--threads", threads], check=True, capture_output=True)
    inference = json.loads(bench.stdout)["median_ms"]
    wall = 1e3 * statistics.median(t[0] for t in took)
    cpu = 1e3 * statistics.median(t[1] for t in took)
    print(f"{threads} threads (0: one a core): wall {wall:.1f} ms, CPU {cpu:.1f} ms, inference alone {inference:.1f} ms")
    figure("start to first class beyond inference", wall - inference, 60, "ms")
sys.exit(3 if missed else 0)
PYTHON

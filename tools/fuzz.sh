#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets and runs each for a while, several at a time, from the corpus kept in tests/fuzz/corpus.
#     tools/fuzz.sh [AT-ONCE] [TARGET...]      targets by name: image_decode; default: all
# OCTET_FUZZ_SECONDS (60): for each target. New inputs and crashes go to build/fuzz/found/TARGET; the corpus kept is not touched.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2}
shift || true
seconds=${OCTET_FUZZ_SECONDS:-60}
build=build/fuzz

mkdir -p build
cmake --preset fuzz >build/fuzz.log 2>&1 || { cat build/fuzz.log; exit 1; }
cmake --build $build -j "$jobs" >build/fuzz.log 2>&1 || {
    grep -E -A 12 'error:|undefined reference|\*\*\*' build/fuzz.log | head -n 80
    exit 1
}

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for file in tests/fuzz/*.c; do
        [ ! -f "$file" ] || targets+=("$(basename "$file" .c)")
    done
fi
if [ ${#targets[@]} -eq 0 ]; then
    echo "fuzz: no targets"
    exit 0
fi

run_target() {
    local name=$1 found=$build/found/$1 status=0
    mkdir -p "$found"
    local folders=("$found")
    [ ! -d "tests/fuzz/corpus/$name" ] || folders+=("tests/fuzz/corpus/$name")
    "$build/bin/fuzz_$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$found/" "${folders[@]}" </dev/null >"$found.log" 2>&1 || status=$?
    if [ $status -ne 0 ]; then
        echo "fuzz: $name FAILED; the input lies in $found, the log is $found.log"
        grep -m 1 -A 12 -E 'ERROR:|runtime error:|SUMMARY:' "$found.log" || tail -n 20 "$found.log"
    else
        awk -v name="$name" '/number_of_executed_units/ { runs = $2 } / cov: / { cov = $4 } /average_exec_per_sec/ { speed = $2 }
            END { printf "fuzz: %-24s %10d runs %8d a second, %d edges\n", name, runs, speed, cov }' "$found.log"
    fi
    return $status
}
export -f run_target
export build seconds
# shellcheck disable=SC2016 # the inner shell's own words
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'set -u; run_target "$1"' fuzz {}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds with gcc's line counters, runs the tests, and prints which share of the lines they reached: the readers of untrusted
# files one by one, then each room.
#     tools/coverage.sh [JOBS]       the page by line: build/coverage/html/index.html
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-2}
build=build/coverage
readers='src/checkpoint/ src/base/(document|file|hash|text) src/image/(jpeg|png|webp|bmp|pnm|exif|image) src/runtime/bundle src/engine/plan src/quant/(recipe|scales)'

mkdir -p build
cmake --preset coverage >$build.log 2>&1 || { cat $build.log; exit 1; }
cmake --build $build -j "$jobs" -- --no-print-directory >$build.log 2>&1 || { tail -n 40 $build.log; exit 1; }
find $build -name '*.gcda' -delete
# A failing test is told, and does not keep the figures away.
ctest --test-dir $build -j "$jobs" --output-on-failure --no-label-summary -LE 'long|check' || echo "coverage: some tests failed"

lcov --quiet --capture --directory $build --base-directory . --output-file $build/all.info --rc lcov_branch_coverage=0
lcov --quiet --extract $build/all.info "$PWD/src/*" "$PWD/families/*" --output-file $build/lines.info
genhtml --quiet --output-directory $build/html $build/lines.info

awk -v root="$PWD/" -v readers="$readers" '
    function row(name, hit, all) { printf "%-44s %6d of %6d lines %6.1f %%\n", name, hit, all, all ? 100 * hit / all : 0 }
    BEGIN { parts = split(readers, reader, " ") }
    /^SF:/ { file = substr($0, 4); sub(root, "", file); split(file, path, "/"); room = path[1] "/" path[2] }
    /^LF:/ { all = substr($0, 4) }
    /^LH:/ {
        hit = substr($0, 4)
        rooms[room] += all; room_hit[room] += hit; total += all; total_hit += hit
        for (i = 1; i <= parts; ++i) if (file ~ "^" reader[i] && file ~ /\.c$/) {
            files[file] = all; file_hit[file] = hit; read_all += all; read_hit += hit
        }
    }
    END {
        sorted = "sort"
        print "Readers of untrusted files:"
        for (f in files) row(f, file_hit[f], files[f]) | sorted
        close(sorted)
        row("readers", read_hit, read_all)
        print "\nRooms:"
        for (r in rooms) row(r, room_hit[r], rooms[r]) | sorted
        close(sorted)
        row("all", total_hit, total)
    }' $build/lines.info
echo "by line: $build/html/index.html"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Are the C sources as .clang-format (version 14) writes them?
#     tools/check_format.sh [--fix] [FILE...]     default: every .c, .h, .inc, .cu and .cuh that git tracks
set -eu
cd "$(dirname "$0")/.."
mode="--dry-run --Werror"
if [ "${1-}" = --fix ]; then
    mode=-i
    shift
fi
tool=$(command -v clang-format-14 || command -v clang-format) || {
    echo "clang-format is missing: tools/setup.sh --ci" >&2
    exit 1
}
if ! "$tool" --version | grep -q 'version 14\.'; then
    echo "clang-format 14 is needed (others write other text); found $("$tool" --version)" >&2
    exit 1
fi
if [ $# -eq 0 ]; then
    # Deleted files may still be tracked.
    # shellcheck disable=SC2046 # no source has a blank in its name
    set -- $(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.inc' | while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
fi
# shellcheck disable=SC2086 # $mode is meant to split
"$tool" $mode --style=file "$@"
echo "clang-format: $# files"

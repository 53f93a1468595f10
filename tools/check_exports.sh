#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What liboctet.so shows is what include/octet declares, no more and no less.
#     tools/check_exports.sh LIBRARY
set -eu
library=${1:?usage: tools/check_exports.sh LIBRARY}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/shown"
# Joined into one line a declaration: OCTET_API ... name(
grep -hv '^ *#' include/octet/*.h | tr '\n' ' ' | grep -oE 'OCTET_API [^;{(]*\(' | sed -E 's/ *\($//; s/.*[ *]//' | sort >"$work/declared"

failed=0
if ! comm -13 "$work/declared" "$work/shown" | sed 's/^/shown but not declared: /' | awk '{ print; n = 1 } END { exit n }'; then
    failed=1
fi
if ! comm -23 "$work/declared" "$work/shown" | sed 's/^/declared but not shown: /' | awk '{ print; n = 1 } END { exit n }'; then
    failed=1
fi
echo "$(wc -l <"$work/declared") functions declared, $(wc -l <"$work/shown") shown"
exit $failed

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# README's support tables are the library's own words.
#     tools/check_support.sh OCTET           fails, with the difference, where README.md says something else
#     tools/check_support.sh OCTET --write   puts them there
set -euo pipefail
cd "$(dirname "$0")/.."
octet=$1
new=$(mktemp)
trap 'rm -f "$new"' EXIT
"$octet" inspect --support >"$new.table"
awk -v table="$new.table" '
    /<!-- octet:support -->/ { print; print ""; while ((getline line < table) > 0) print line; print ""; skip = 1 }
    /<!-- \/octet:support -->/ { skip = 0 }
    !skip { print }
    skip && /<!-- octet:support -->/ { next }
' README.md >"$new"
rm -f "$new.table"
if [ "${2-}" = --write ]; then
    cp "$new" README.md
elif ! diff -u README.md "$new"; then
    echo "README.md: the support tables differ from the library's; tools/check_support.sh OCTET --write puts them right" >&2
    exit 1
fi

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is the library still what programs compiled against an earlier octet.h expect? Compares the functions that octet.h shows
# and their types (lab.h promises nothing) with abi/liboctet.abi, by libabigail. A function more is told and fine; whatever
# an older program could notice is an error.
#     tools/check_abi.sh LIBRARY            exit status 77 where libabigail (Debian: abigail-tools) is missing
#     tools/check_abi.sh --renew LIBRARY    writes abi/liboctet.abi anew; read the difference before committing it
#     tools/check_abi.sh --selftest         planted changes, each of which must be judged rightly
set -eu
mode=check
case ${1-} in
--renew | --selftest)
    mode=${1#--}
    shift
    ;;
esac
cd "$(dirname "$0")/.."
if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
    echo "skipped: abidw and abidiff are not here (Debian: abigail-tools)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

describe() { # LIBRARY FILE. Handles are opaque: what lies behind them is no part of the ABI.
    mkdir -p "$work/headers"
    cp include/octet/octet.h include/octet/status.h "$work/headers"
    abidw --headers-dir "$work/headers" --drop-private-types --exported-interfaces-only --drop-undefined-syms \
        --suppressions abi/suppressions.ini --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed \
        --no-parameter-names --out-file "$work/described" "$1"
    awk '/<abi-instr/ { sub(/path=.[^ ]*/, "path=\047unit " ++n "\047") } { print }' "$work/described" >"$2"
}

compare() { # OLD NEW: 0 equal but for added functions, 1 not; what differs is in $work/report
    abidiff "$1" "$2" >"$work/report" 2>&1 || true
    abidiff --no-added-syms "$1" "$2" >"$work/changes" 2>&1
}

selftest() {
    fails=0
    judge() { # pass|fail WORDS SED-SCRIPT: the change from abi/liboctet.abi to what the script makes of it, or back
        sed "$3" abi/liboctet.abi >"$work/other"
        ! cmp -s abi/liboctet.abi "$work/other" || { echo "nothing to plant: $3"; fails=$((fails + 1)); }
        found=pass
        compare abi/liboctet.abi "$work/other" || found=fail
        if [ $found != "$1" ]; then
            echo "$2: expected $1, found $found"
            cat "$work/report"
            fails=$((fails + 1))
        fi
    }
    judge pass "a new function" "/<elf-symbol name='octet_version'/{p;s/octet_version/octet_versions/};/<function-decl name='octet_version'/,/<\/function-decl>/{H;/<\/function-decl>/{p;x;s/octet_version/octet_versions/g}}"
    judge fail "a function gone" "/<elf-symbol name='octet_draw'/d;/<function-decl name='octet_draw'/,/<\/function-decl>/d"
    judge fail "another version" "s/OCTET_0/OCTET_1/"
    judge fail "an enumerator's value" "s/<enumerator name='OCTET_NOT_FOUND' value='2'/<enumerator name='OCTET_NOT_FOUND' value='3'/"
    judge fail "a struct's size" "s/\(class-decl name='octet_class' size-in-bits=\)'192'/\1'256'/"
    judge fail "a field's name and place" "s/layout-offset-in-bits='64'/layout-offset-in-bits='96'/"
    echo "tools/check_abi.sh: $fails failures"
    [ $fails -eq 0 ]
}

if [ "$mode" = selftest ]; then
    selftest
    exit
fi
library=${1:?usage: tools/check_abi.sh [--renew] LIBRARY}
describe "$library" "$work/now"
if [ "$mode" = renew ]; then
    cp "$work/now" abi/liboctet.abi
    echo "abi/liboctet.abi is new: git diff abi"
elif compare abi/liboctet.abi "$work/now"; then
    cat "$work/report"
    echo "programs compiled against the octet.h of abi/liboctet.abi run with this library"
    ! grep -q Added "$work/report" || echo "functions were added; to hold them too: tools/check_abi.sh --renew LIBRARY"
else
    cat "$work/report"
    cat >&2 <<'END'
error: a program compiled against the octet.h of abi/liboctet.abi would notice a difference
  detail: functions keep their arguments and meaning, enumerators their values, fields their places; a struct that carries
          struct_size may grow at its end (src/runtime/options.h), and is told here too
  hint: if it is meant: tools/check_abi.sh --renew LIBRARY, read git diff abi, and commit abi/ with the change
END
    exit 1
fi

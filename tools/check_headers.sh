#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles each public header alone, as C11 and as C++17, and each header of src alone as C17: whoever includes one needs
# nothing before it.
#     tools/check_headers.sh CC [CXX]     (without CXX, or where it is missing, C++ is left out and said so)
set -eu
cc=${1:?usage: tools/check_headers.sh CC [CXX]}
cxx=${2-}
cd "$(dirname "$0")/.."
warnings="-Wall -Wextra -Werror -fsyntax-only"
failed=0
count=0

# check COMPILER STANDARD LANGUAGE HEADER...
check() {
    compiler=$1 standard=$2 language=$3
    shift 3
    for header; do
        count=$((count + 1))
        # As for sources, the last word of a name is its instruction set (cmake/rooms.cmake).
        case $header in
        *_avx2.h) isa="-mavx2 -mfma -mf16c" ;;
        *_avx512.h | *_vnni.h | *_amx.h)
            isa="-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16 -mfma -mf16c"
            ;;
        *) isa="" ;;
        esac
        # shellcheck disable=SC2086 # the warnings are meant to split
        if ! printf '#include "%s"\n' "$header" |
            "$compiler" -x "$language" -std="$standard" $warnings $isa $pedantic -Iinclude $inside -; then
            echo "$header: not complete in itself as $standard" >&2
            failed=1
        fi
    done
}

public=$(cd include && find octet -name '*.h' | sort)
private=$(cd src && find . -name '*.h' | sed 's|^\./||' | sort)
pedantic=-pedantic inside=""
# shellcheck disable=SC2086
check "$cc" c11 c $public
if [ -n "$cxx" ] && printf 'int main() {}\n' | "$cxx" -x c++ -fsyntax-only - 2>/dev/null; then
    # shellcheck disable=SC2086
    check "$cxx" c++17 c++ $public
else
    echo "no C++ compiler: public headers not checked as C++17"
fi
pedantic="" inside="-Isrc -D_GNU_SOURCE"
# shellcheck disable=SC2086
check "$cc" c17 c $private
echo "$count headers compiled alone"
exit $failed

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a build into an empty folder and uses it from there as others would: the command, pkg-config, find_package.
#     tests/install/run.sh BUILD [CC]
set -eu
build=$(cd "${1:?usage: tests/install/run.sh BUILD [CC]}" && pwd)
cc=${2:-cc}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root prefix=/opt/octet

# A build with sanitizers needs their flags in its users too.
extra=$(sed -n 's/^OCTET_SANITIZE:[A-Z]*=\(..*\)$/-fsanitize=\1/p' "$build/CMakeCache.txt")
DESTDIR=$root cmake --install "$build" --prefix $prefix >"$work/log" || { cat "$work/log"; exit 1; }
installed=$root$prefix

expect() { # WORDS COMMAND...
    words=$1
    shift
    said=$("$@") || { echo "failed: $*: $said"; exit 1; }
    case $said in
    *"$words"*) echo "ok: ${1#"$work"/}: $said" ;;
    *)
        echo "expected '$words' of $*, found: $said"
        exit 1
        ;;
    esac
}

expect "octet $(sed -n 's/^Version: //p' "$build/octet.pc")" "$installed/bin/octet" --version

pc=$(dirname "$(find "$installed" -name octet.pc)")
export PKG_CONFIG_PATH="$pc"
# shellcheck disable=SC2046,SC2086 # flags are meant to split
"$cc" $extra -Wall -Wextra -Werror -o "$work/shared" "$here/consumer.c" $(pkg-config --cflags --libs octet)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir octet)
export LD_LIBRARY_PATH
expect "$(pkg-config --modversion octet) NOT_FOUND 1" "$work/shared"
# shellcheck disable=SC2046,SC2086
"$cc" $extra -o "$work/static" "$here/consumer.c" $(pkg-config --cflags octet) "$LD_LIBRARY_PATH/liboctet.a" \
    $(pkg-config --libs --static octet | sed 's/-loctet//')
expect "NOT_FOUND 1" "$work/static"

if ! { cmake -S "$here" -B "$work/cmake" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$extra" \
    -DCMAKE_PREFIX_PATH="$installed" && cmake --build "$work/cmake"; } >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
fi
expect "NOT_FOUND 1" "$work/cmake/consumer_octet"
expect "NOT_FOUND 1" "$work/cmake/consumer_static"

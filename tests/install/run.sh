#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a build into an empty folder and uses it from there as others would, the source tree out of sight: the command,
# and the examples, built by pkg-config and by find_package, in C and C++, with the shared library and the static one, run
# on a checkpoint and on a bundle.
#     tests/install/run.sh BUILD [CC [CXX]]      without CXX, or where it is missing, C++ is left out and said so
set -eu
build=$(cd "${1:?usage: tests/install/run.sh BUILD [CC [CXX]]}" && pwd)
cc=${2:-cc}
cxx=${3-}
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A build with sanitizers needs their flags in its users too.
extra=$(sed -n 's/^OCTET_SANITIZE:[A-Z]*=\(..*\)$/-fsanitize=\1/p' "$build/CMakeCache.txt")
root=$work/root prefix=/opt/octet
DESTDIR=$root cmake --install "$build" --prefix $prefix >"$work/log" || { cat "$work/log"; exit 1; }
installed=$root$prefix
cp -r "$source/examples" "$source/tests/install/consumer.c" "$work"
mkdir "$work/data"
cp -r "$source/subjects/mobilenetv2_035" "$source/subjects/yolos" "$work/data"
for i in 0 1 2 3 4 5; do cp "$source/subjects/pictures/classify/00000$i.jpg" "$work/data"; done
cp "$source/subjects/pictures/detect/000000.jpg" "$work/data/scene.jpg"
index=$(sed -n 's/^000001\.jpg //p' "$source/subjects/pictures/classify/labels.txt")
name=$(sed -n '/"label_names"/,/\]/p' "$source/subjects/mobilenetv2_035/config.json" | sed -n "$((index + 2))s/.*\"\(.*\)\".*/\1/p")
cd "$work"
octet=$installed/bin/octet

expect() { # WORDS COMMAND...
    words=$1
    shift
    said=$("$@" 2>&1) || { echo "failed: $*: $said"; exit 1; }
    case $said in
    *"$words"*) ;;
    *)
        echo "expected '$words' of $*, found: $said"
        exit 1
        ;;
    esac
}

same() { # FILE COMMAND...: prints what FILE holds; the first one writes it
    file=$1
    shift
    "$@" >"$file.now" 2>"$file.words" || { echo "failed: $*"; cat "$file.words"; exit 1; }
    [ -f "$file" ] || cp "$file.now" "$file"
    cmp "$file" "$file.now" || { echo "$*: other output than the first program's:"; diff "$file" "$file.now" || true; exit 1; }
}

expect "octet $(sed -n 's/^Version: //p' "$build/octet.pc")" "$octet" --version
"$octet" build data/mobilenetv2_035 -o classes.octet --quiet >log
"$octet" build data/yolos -o boxes.octet --quiet >log
"$octet" run data/yolos data/scene.jpg --dump dump --json >scene.json
size=$(sed -n 's/.*"width": *\([0-9]*\), *"height": *\([0-9]*\).*/\1 \2/p' scene.json)
width=${size% *} height=${size#* }
tail -c $((width * height * 3)) "$(find dump -name '*.npy' | grep -E 'decoded|pixels' | grep -v -E 'resized' | head -n 1)" >scene.rgb

# use FOLDER: runs the programs there; every folder's say the same as the first's
use() {
    expect "$(pkg-config --modversion octet) NOT_FOUND 1" "$1/consumer"
    for model in data/mobilenetv2_035 classes.octet; do
        same classes.txt "$1/classify" $model data/000001.jpg
        [ ! -x "$1/classify_cpp" ] || same classes.txt "$1/classify_cpp" $model data/000001.jpg
        for threads in 1 3; do same threads.txt "$1/thread_pool" $model $threads data/*[0-9].jpg; done
    done
    for model in data/yolos boxes.octet; do
        # shellcheck disable=SC2086 # two numbers
        same boxes.txt "$1/detect" $model $size scene.rgb
        "$1/detect" $model >drawn 2>&1 || { cat drawn; exit 1; }
    done
    ! "$1/classify" no/such/model data/000001.jpg 2>words || { echo "$1/classify opened nothing"; exit 1; }
    grep -q no/such/model words
    echo "ok: ${1#"$work"/}"
}

# ---- pkg-config
pc=$(dirname "$(find "$installed" -name octet.pc)")
export PKG_CONFIG_PATH="$pc"
libraries=$(pkg-config --variable=libdir octet)
shared=$(pkg-config --libs octet)
static="$libraries/liboctet.a $(pkg-config --libs --static octet | sed 's/-loctet//')"
flags="$extra -Wall -Wextra -Werror $(pkg-config --cflags octet)"
mkdir shared static
for kind in shared static; do
    if [ $kind = shared ]; then link=$shared; else link=$static; fi
    # shellcheck disable=SC2086 # flags are meant to split
    {
        "$cc" $flags -o $kind/consumer consumer.c $link
        for program in classify detect thread_pool; do
            "$cc" -std=gnu11 $flags -o $kind/$program examples/$program.c $link -pthread
        done
        if [ -n "$cxx" ] && command -v "$cxx" >/dev/null; then
            "$cxx" -std=c++17 $flags -o $kind/classify_cpp examples/classify.cpp $link
        else
            echo "no C++ compiler: classify.cpp left out"
        fi
    }
    if [ $kind = shared ]; then LD_LIBRARY_PATH=$libraries use "$work/$kind"; else use "$work/$kind"; fi
done
grep -q "$name" classes.txt || { echo "expected $name on 000001.jpg, found:"; cat classes.txt; exit 1; }
[ -s boxes.txt ] || { echo "expected detections, found none"; exit 1; }

# ---- find_package
if [ -n "$cxx" ] && command -v "$cxx" >/dev/null; then
    for kind in shared static; do
        library=octet::$(echo $kind | sed s/shared/octet/)
        if ! { cmake -S examples -B cmake_$kind -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="$extra" \
            -DCMAKE_CXX_FLAGS="$extra" -DCMAKE_PREFIX_PATH="$installed" -DOCTET_LIBRARY="$library" &&
            cmake --build cmake_$kind; } >log 2>&1; then
            cat log
            exit 1
        fi
        cp $kind/consumer cmake_$kind
        LD_LIBRARY_PATH=$libraries use "$work/cmake_$kind"
    done
fi

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian 12 packages octet is built with; asks nothing, and is done at once when all are there.
#     tools/setup.sh         to build, run and test
#     tools/setup.sh --ci    and to check, format, fuzz and measure coverage
set -eu

packages="gcc cmake make pkg-config python3 libpthreadpool-dev libcmocka-dev libjansson-dev libyaml-dev
libjpeg62-turbo-dev libpng-dev libwebp-dev libcairo2-dev libssl-dev libcurl4-openssl-dev
libarchive-dev libsqlite3-dev"
ci_packages="git clang clang-format libclang-rt-14-dev llvm lcov abigail-tools shellcheck"

case "${1-}" in
"") ;;
--ci) packages="$packages $ci_packages" ;;
*)
    echo "usage: tools/setup.sh [--ci]" >&2
    exit 2
    ;;
esac

# needed REASON: what to do by hand
needed() {
    echo "octet: $1"
    echo "octet: needed are, by Debian 12's names:"
    # shellcheck disable=SC2086 # the list is meant to split
    echo $packages | fold -s -w 100 | sed 's/^/    /'
    echo "octet: install these by the system's own means; 'make SETUP=: test' then goes past this script"
} >&2

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    # Good enough if what the build looks for is found.
    if command -v cmake >/dev/null 2>&1 && command -v pkg-config >/dev/null 2>&1 &&
        pkg-config --exists jansson yaml-0.1 libjpeg libpng libwebp libwebpdemux libcrypto cairo libcurl libarchive sqlite3 cmocka; then
        exit 0
    fi
    needed "this is not Debian, and libraries are missing"
    exit 1
fi

missing=""
# One line an installed package; "install ok installed" is dpkg's word for it.
# shellcheck disable=SC2086 # the list is meant to split
installed=$(dpkg-query -W -f='${Package} ${Status}\n' $packages 2>/dev/null | sed -n 's/ install ok installed$//p') || true
for package in $packages; do
    case "
$installed
" in
    *"
$package
"*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

root=""
if [ "$(id -u)" -ne 0 ]; then
    root="sudo -n"
    if ! sudo -n true 2>/dev/null; then
        echo "octet: these packages are missing; install them as root, then run make again:" >&2
        echo "    apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
fi

echo "octet: installing$missing" >&2
# shellcheck disable=SC2086 # $root and $missing are meant to split
install_missing() {
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        -o Dpkg::Use-Pty=0 $missing </dev/null
}
# The package lists may be absent (a bare container) or stale; they are fetched only if they are needed.
if ! install_missing >/dev/null 2>&1; then
    $root env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null
    install_missing || {
        needed "apt-get could not install$missing"
        exit 1
    }
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs scripts against the octet command and compares what they print with the files beside them.
#
#     tests/cli/run.sh [--octet FILE] [--set-exact-output] [SCRIPT...]     default: every script here
#     tests/cli/run.sh --selftest
#
# A test is NAME.sh with NAME.stdout and NAME.stderr (no file: nothing is expected there) and NAME.exit (no file: 0).
# --set-exact-output writes these three from what the script does now; read the difference before committing it.
#
# A script runs by `bash -eu` in an empty folder of its own, with no standard input, LC_ALL=C, and these variables:
#     OCTET      the command, which is also first in PATH as `octet`
#     SUBJECTS   the subjects folder of the project
#     SOURCE     the project
#     SHARED     large data; may be missing: then a script that needs it ends with exit status 77 (skipped)
# Before comparing, what differs from run to run is evened out: the folders become TMP, SOURCE and SHARED, and times lose
# their digits (1.25 ms -> N ms, "median_ms": 1.25 -> "median_ms": N). Anything else a script must even out itself.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_folder=$(cd "$here/../.." && pwd)
octet=""
write=no
scripts=()

usage() {
    sed -n '3,7p' "$here/run.sh" | sed 's/^# \{0,1\}//' >&2
    exit 2
}

even_out() { # FILE: to standard output
    sed -E -e "s|$work|TMP|g" -e "s|$source_folder/\.\./shared|SHARED|g" -e "s|$shared|SHARED|g" -e "s|$source_folder|SOURCE|g" \
        -e 's/("[a-z0-9_]*(_ms|_us|_s|seconds)": *)-?[0-9][-+.0-9e]*/\1N/g' \
        -e 's/(^|[^A-Za-z0-9_.])[0-9]+(\.[0-9]+)?( ?)(ms|us|µs|ns|s)([^A-Za-z0-9_]|$)/\1N\3\4\5/g' "$1"
}

# run_script SCRIPT: 0 as expected, 1 not, 77 skipped
run_script() {
    local script=$1 base=${1%.sh} status=0 failed=0 stream expected
    work=$(mktemp -d)
    mkdir "$work/bin" "$work/here"
    [ -z "$octet" ] || ln -s "$octet" "$work/bin/octet"
    (
        cd "$work/here"
        exec env -u CDPATH PATH="$work/bin:$PATH" LC_ALL=C OCTET="$octet" SUBJECTS="$source_folder/subjects" \
            SOURCE="$source_folder" SHARED="$shared" bash -eu "$script"
    ) </dev/null >"$work/stdout" 2>"$work/stderr" || status=$?
    if [ "$status" -eq 77 ]; then
        sed 's/^/    /' "$work/stderr"
        rm -rf "$work"
        return 77
    fi
    for stream in stdout stderr; do
        even_out "$work/$stream" >"$work/$stream.even"
        expected=$base.$stream
        if [ "$write" = yes ]; then
            rm -f "$expected"
            [ ! -s "$work/$stream.even" ] || cp "$work/$stream.even" "$expected"
            continue
        fi
        [ -f "$expected" ] || expected=/dev/null
        if ! cmp -s "$expected" "$work/$stream.even"; then
            diff -u --label "expected $stream" --label "found $stream" "$expected" "$work/$stream.even" || true
            failed=1
        fi
    done
    if [ "$write" = yes ]; then
        rm -f "$base.exit"
        [ "$status" -eq 0 ] || echo "$status" >"$base.exit"
    else
        expected=0
        [ ! -f "$base.exit" ] || expected=$(cat "$base.exit")
        if [ "$status" -ne "$expected" ]; then
            echo "exit status: expected $expected, found $status"
            failed=1
        fi
    fi
    rm -rf "$work"
    return $failed
}

run_scripts() {
    local script status passed=0 failed=0 skipped=0
    for script in "${scripts[@]}"; do
        script=$(cd "$(dirname "$script")" && pwd)/$(basename "$script")
        status=0
        run_script "$script" || status=$?
        case $status in
        0) passed=$((passed + 1)) ;;
        77)
            skipped=$((skipped + 1))
            echo "skipped: $(basename "$script" .sh)"
            ;;
        *)
            failed=$((failed + 1))
            echo "failed: $(basename "$script" .sh)"
            ;;
        esac
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] || return 1
    [ "$skipped" -eq 0 ] || [ "$passed" -ne 0 ] || return 77
}

# A script that passes, then each way of failing, then rewriting.
selftest() {
    local folder fails=0
    folder=$(mktemp -d)
    expect() { # STATUS WORDS -- ARGUMENT...: this runner on ARGUMENTs ends with STATUS and prints WORDS
        local status=0 wanted=$1 words=$2 said
        shift 3
        said=$("$here/run.sh" "$@" 2>&1) || status=$?
        if [ "$status" -ne "$wanted" ] || [[ $said != *"$words"* ]]; then
            echo "expected exit status $wanted and '$words', found $status: $said"
            fails=$((fails + 1))
        fi
    }
    # shellcheck disable=SC2016 # the script's own words
    echo 'echo "in $PWD: took 1.25 ms, 3 s, 224 x 224 pixels"; echo "{\"median_ms\": 1.5e-3, \"runs\": 3}"; echo bad >&2; exit 3' \
        >"$folder/a.sh"
    expect 1 "expected 0, found 3" -- "$folder/a.sh"
    expect 0 "1 passed" -- --set-exact-output "$folder/a.sh"
    expect 0 "1 passed" -- "$folder/a.sh"
    printf 'in TMP/here: took N ms, N s, 224 x 224 pixels\n{"median_ms": N, "runs": 3}\n' | cmp - "$folder/a.stdout" || fails=$((fails + 1))
    echo 3 | cmp - "$folder/a.exit" || fails=$((fails + 1))
    echo worse >"$folder/a.stderr"
    expect 1 "-worse" -- "$folder/a.sh"
    rm "$folder/a.stderr"
    expect 1 "+bad" -- "$folder/a.sh"
    echo 'exit 77' >"$folder/b.sh"
    expect 77 "skipped: b" -- "$folder/b.sh"
    expect 1 "1 failed, 1 skipped" -- "$folder/a.sh" "$folder/b.sh"
    echo 'false; echo "not reached"' >"$folder/c.sh"
    expect 1 "expected 0, found 1" -- "$folder/c.sh"
    echo 'octet' >"$folder/d.sh"
    expect 0 "1 passed" -- --octet /bin/true "$folder/d.sh"
    expect 2 "--set-exact-output" -- --nonsense
    rm -rf "$folder"
    echo "tests/cli/run.sh: $fails failures"
    [ "$fails" -eq 0 ]
}

while [ $# -gt 0 ]; do
    case $1 in
    --octet)
        [ $# -gt 1 ] || usage
        octet=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
        shift
        ;;
    --set-exact-output) write=yes ;;
    --selftest)
        selftest
        exit
        ;;
    -*) usage ;;
    *) scripts+=("$1") ;;
    esac
    shift
done
shared=${OCTET_SHARED_DIR:-$source_folder/../shared}
if [ ${#scripts[@]} -eq 0 ]; then
    for script in "$here"/*.sh; do
        [ "$script" = "$here/run.sh" ] || scripts+=("$script")
    done
    [ -n "$octet" ] || octet=$source_folder/build/release/bin/octet
fi
[ ${#scripts[@]} -gt 0 ] || usage
run_scripts

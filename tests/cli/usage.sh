# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Wrong words on the command line: exit status 2, a line that says what and a hint, nothing on standard output.
try() {
    local status=0
    octet "$@" >out 2>&1 || status=$?
    echo "$ octet $*"
    head -2 out
    echo "exit $status"
}
try
try fly
try run
try run model
try run model picture --top 0
try run model picture --top many
try run model picture --top 99999999999999999999
try run model picture --threshold none
try run model picture --threshold nan
try run model picture --orientation sideways
try run model picture --device tpu
try run model picture --threads -1
try run model picture --quick
try run model picture --json=yes
try run model picture --top
try run model a/same.jpg b/same.jpg --draw d
try inspect
try inspect one two
try inspect --support model
try bench
try bench model --batch 0
try bench model --batch 1,,2
try bench model --batch 1025
try bench model --scope task
try bench model --scope engine
try bench model --picture p.jpg
try bench model --runs 1

echo "== no standard output, and help in any position"
octet run model --quick 2>/dev/null || true
octet run model picture --help | head -1
octet run -h | head -1
octet --help | head -1 | sed 's/[0-9.]\{3,\}/VERSION/'
octet --version | sed 's/[0-9.]\{3,\}/VERSION/'
octet run --top 1 -- model --quick 2>&1 | head -1

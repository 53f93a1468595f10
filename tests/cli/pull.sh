# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# octet pull against a server of its own: what is printed, by which exit status, and that an interrupt loses nothing.
server="$(dirname "$OCTET")/../test_hub_pull"
[ -x "$server" ] || { echo "test_hub_pull is not built" >&2; exit 77; }
unset HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_TOKEN_PATH HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_HUB_OFFLINE http_proxy all_proxy ALL_PROXY
export HF_HOME=$PWD/home no_proxy='*'

process=""
trap '[ -z "$process" ] || kill "$process"' EXIT
serve() { # HOW: HF_ENDPOINT becomes its address
    [ -z "$process" ] || kill "$process"
    rm -f address
    "$server" --serve "$1" >address &
    process=$!
    until [ -s address ]; do sleep 0.02; done
    HF_ENDPOINT=$(cat address)
    export HF_ENDPOINT
}
try() { # the command, its standard error with its port evened out, and its exit status
    local status=0
    octet pull "$@" 2>errors || status=$?
    sed -E 's/127\.0\.0\.1:[0-9]+/HOST/g' errors
    echo "exit $status"
}

echo "== whole, then already there"
serve well
try org/small
try org/small
try org/small --json
find home -type l -name '*.json' | sort
octet inspect org/small 2>&1 | grep -o 'config.json: expected architecture' # found, though no model of ours

echo "== a data set, some of it"
try --dataset org/small --include '*.onnx' --json

echo "== usage"
try
try org/small --timeout 0
try a/b/c

echo "== without libcurl"
mkdir lib
for name in libcurl.so.4 libcurl-gnutls.so.4; do printf '%4096s' none >lib/$name; done
LD_LIBRARY_PATH=$PWD/lib octet --version >/dev/null
LD_LIBRARY_PATH=$PWD/lib try org/small

echo "== not there"
serve gone
try org/none@v1

echo "== not what the hub says"
rm -rf home
serve wrong
try org/small --quiet
find home -name '*.incomplete' -o -name 'model.safetensors'

echo "== stopped, and gone on with"
serve stall
octet pull org/small >out 2>errors &
pull=$!
for _ in $(seq 500); do
    [ "$(stat -c %s home/hub/models--org--small/blobs/*.incomplete 2>/dev/null || echo 0)" = 1000000 ] && break
    sleep 0.02
done
kill -TERM $pull
status=0
wait $pull || status=$?
cat out errors
echo "exit $status"
try org/small

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Times the small models, then every kernel against its plain body.
#     tools/bench.sh [FOLDER OF THE COMMANDS]
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-build/release/bin}
for model in subjects/*/config.json; do
    model=$(dirname "$model")
    [ -d "$model" ] || continue
    echo "$model"
    "$bin/octet" bench "$model" --batch 1,8
done
if [ -x "$bin/opcheck" ]; then
    echo "kernels"
    "$bin/opcheck" --bench
fi

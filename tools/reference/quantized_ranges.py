# SPDX-License-Identifier: Apache-2.0
"""Holds the largest magnitudes of a scale file that octet calibrated on the shared data against the reference's own, from the
same pictures: at most 1e-5 of each apart, as float32 sums in another order are."""
import json
import pathlib
import sys

import torch

import quantized
import quantized_data as data
import quantized_networks as networks
import quantized_recipe as recipes
from common import ROOT, arguments


def main():
    p = arguments(__doc__, checkpoint=dict(required=True, help="name of a checkpoint in the shared data"),
                  scales=dict(required=True, type=pathlib.Path, help="octet's scale file"),
                  cache=dict(type=pathlib.Path, help="folder for decoded pictures"), batch=dict(type=int, default=4))
    a = p.parse_args()
    file = json.load(open(a.scales))
    directory = a.shared / "data" / "checkpoints" / a.checkpoint
    network = networks.load(directory)
    torch.set_num_threads(1)
    detects = hasattr(network.model, "config")
    recipe = recipes.read(ROOT / "families" / ("yolos" if detects else a.checkpoint.split("_")[0]) / "recipes" / f"{file['recipe']}.yaml")
    pictures = (data.bccd(directory, a.shared, "train", a.cache, file["pictures"]) if detects
                else data.imagenet(directory, a.shared, "calib", a.cache))
    assert len(pictures.names) == file["pictures"], f"{len(pictures.names)} pictures, the file has {file['pictures']}"
    ranges = quantized.calibrate(network, recipe, pictures.batches(a.batch))
    wrong, worst = 0, (0.0, "")
    for e in file["scales"]:
        own = ranges.amax(e["op"])
        off = abs(e["amax"] - own) / own if own > 0 else float(e["amax"] > 0)
        worst = max(worst, (off, e["op"]))
        wrong += off > 1e-5
        if off > 1e-5:
            print(f"{e['op']}: {e['amax']}, the reference {own}")
    print(f"{len(file['scales'])} tensors over {file['pictures']} pictures: at most {worst[0]:.2g} apart ({worst[1]}), {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Every byte's value in the network's input, by each reference's own arithmetic: float32 [channel, byte]."""
import numpy as np
from PIL import Image

from classifiers import MODELS, transforms
from common import arguments, save, torch1
import json


def main():
    a = arguments(__doc__).parse_args()
    torch1()
    every = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, 2)
    checkpoints = a.shared / "data" / "checkpoints"
    for name in MODELS:
        _, normalise = transforms(json.load(open(checkpoints / name / "config.json")))
        save(a.out / f"{name}.normalise.npy", normalise(Image.fromarray(every))[:, 0].numpy())
    from transformers import YolosImageProcessorPil
    p = YolosImageProcessorPil.from_pretrained(checkpoints / "yolos_tiny_bccd")
    x = p(images=Image.fromarray(every), do_resize=False, return_tensors="np")["pixel_values"]
    save(a.out / "yolos_tiny_bccd.normalise.npy", np.asarray(x[0])[:, 0].astype(np.float32))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Pictures as the networks take them, by timm's and transformers' own preprocessing; 8-bit pixels are kept in a cache, since
decoding takes longer than some networks do."""
import json

import numpy as np
import torch
from PIL import Image


class Pictures:
    """`names` in order; `labels` of classifiers; batches of [n, 3, h, w]."""

    def __init__(self, checkpoint, folder, names, cache=None, labels=None):
        self.folder, self.names, self.labels = folder, names, labels
        self.detects = (checkpoint / "preprocessor_config.json").exists()
        if self.detects:
            from detector import Detector
            self.processor = Detector(checkpoint)
        else:
            from classifiers import transforms
            self.shape, self.normalise = transforms(json.load(open(checkpoint / "config.json")))
        self.cache = cache / f"{checkpoint.name}.{folder.parent.name}.{folder.name}.{len(names)}.npy" if cache else None
        self.pixels = None

    def decode(self, name):
        picture = Image.open(self.folder / name).convert("RGB")
        if not self.detects:
            return np.asarray(self.shape(picture))
        return self.processor.input(picture)[1]

    def load(self):
        if self.pixels is not None:
            return
        if self.cache is not None and self.cache.exists():
            self.pixels = np.load(self.cache, mmap_mode="r")
            return
        self.pixels = np.stack([self.decode(n) for n in self.names])
        if self.cache is not None:
            np.save(self.cache, self.pixels)

    def input(self, pixels):
        if not self.detects:
            return self.normalise(Image.fromarray(np.array(pixels)))
        p = self.processor.processor
        x = p.normalize(p.rescale(np.moveaxis(pixels, -1, 0), p.rescale_factor), p.image_mean, p.image_std)
        return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))

    def batches(self, size):
        self.load()
        for i in range(0, len(self.names), size):
            yield torch.stack([self.input(p) for p in self.pixels[i:i + size]])


def imagenet(checkpoint, shared, part, cache=None):
    folder = shared / "data" / "imagenet" / part
    rows = [line.rsplit(" ", 1) for line in open(folder / "labels.txt", encoding="utf-8").read().splitlines()]
    return Pictures(checkpoint, folder, [r[0] for r in rows], cache, [int(r[1]) for r in rows])


def bccd(checkpoint, shared, part, cache=None, limit=None):
    """In the order of the annotations' images."""
    folder = shared / "data" / "bccd" / part
    images = json.load(open(shared / "data" / "bccd" / f"instances_{part}.json"))["images"][:limit]
    pictures = Pictures(checkpoint, folder, [i["file_name"] for i in images], cache)
    pictures.images = images
    return pictures

# SPDX-License-Identifier: Apache-2.0
"""Logits of the two image classifiers by timm, float32, with timm's own evaluation transform."""
import json
import pathlib

import numpy as np
from PIL import Image

from common import arguments, save, sha, torch1, write_jsonl
from taps import Taps

MODELS = ("mobilenetv2_100", "vit_tiny_patch16_224")
SOME = [(31 * k + 7) % 1000 for k in range(32)]
FULL = 16


def load(directory):
    import timm
    from safetensors.torch import load_file
    config = json.load(open(directory / "config.json"))
    model = timm.create_model(config["architecture"], pretrained=False, num_classes=config["num_classes"])
    state = load_file(directory / "model.safetensors")
    model.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in state.items()})
    return model.eval(), config


def transforms(config):
    """(resize and crop on a PIL image, conversion to the normalised tensor), both timm's."""
    import timm.data
    from torchvision.transforms import Compose
    resolved = timm.data.resolve_data_config({}, pretrained_cfg=config["pretrained_cfg"])
    steps = timm.data.create_transform(**resolved, is_training=False).transforms
    cut = [type(s).__name__ for s in steps].index("MaybeToTensor")
    return Compose(steps[:cut]), Compose(steps[cut:])


def names(shared, calib=100):
    """(set, name) of every picture, in the goldens' order."""
    base = shared / "data" / "imagenet"
    val = [line.rsplit(" ", 1)[0] for line in open(base / "val" / "labels.txt", encoding="utf-8").read().splitlines()]
    cal = sorted((p.name for p in (base / "calib").iterdir() if p.name != "labels.txt"), key=lambda n: n.encode())
    return [("val", n) for n in val] + [("calib", n) for n in cal[:calib]]


def main():
    p = arguments(__doc__, limit=dict(type=int, default=None, help="only the first N pictures of each set"),
                  full=dict(type=pathlib.Path, help="keep every logit here too"),
                  taps=dict(type=pathlib.Path, help="keep every layer's output for the first picture here"))
    a = p.parse_args()
    torch = torch1()
    pictures = names(a.shared)
    if a.limit:
        pictures = [q for s in ("val", "calib") for q in [r for r in pictures if r[0] == s][:a.limit]]
    for name in MODELS:
        model, config = load(a.shared / "data" / "checkpoints" / name)
        shape, normalise = transforms(config)
        rows, logits = [], []
        for number, (part, file) in enumerate(pictures):
            picture = Image.open(a.shared / "data" / "imagenet" / part / file).convert("RGB")
            small = shape(picture)
            x = normalise(small)[None]
            if number == 0 and a.taps:
                with Taps(model) as taps:
                    model(x)
                taps.save(a.taps / (name + ".npz"), input=x)
            logits.append(model(x)[0].numpy().copy())
            rows.append({"set": part, "name": file, "width": picture.width, "height": picture.height,
                         "sha256": sha(np.asarray(small).tobytes())})
        logits = np.stack(logits).astype(np.float32)
        order = np.argsort(-logits, axis=1, kind="stable")[:, :6]
        if a.full:
            save(a.full / f"{name}.logits.npy", logits)
        write_jsonl(a.out / f"{name}.pictures.jsonl", rows)
        save(a.out / f"{name}.top_index.npy", order.astype(np.int32))
        save(a.out / f"{name}.top_logit.npy", np.take_along_axis(logits, order, 1))
        save(a.out / f"{name}.max_abs.npy", np.abs(logits).max(1))
        save(a.out / f"{name}.some.npy", logits[:, SOME])
        head = [i for s in ("val", "calib") for i in [j for j, q in enumerate(pictures) if q[0] == s][:FULL]]
        save(a.out / f"{name}.full.npy", logits[head])
        labels = dict(line.rsplit(" ", 1) for line in
                      open(a.shared / "data/imagenet/val/labels.txt", encoding="utf-8").read().splitlines())
        right = [int(labels[q[1]]) == order[i, 0] for i, q in enumerate(pictures) if q[0] == "val"]
        print(name, "top-1 on val", sum(right), "of", len(right))


if __name__ == "__main__":
    main()

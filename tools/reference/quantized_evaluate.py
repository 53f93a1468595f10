# SPDX-License-Identifier: Apache-2.0
"""What recipes cost, by the reference: KL, agreement and top-1 of classifiers; AP, unmatched detections and class KL a token
of detectors, all against the same network in float32. Scales come from scale files, or from the calibration pictures."""
import json
import pathlib

import numpy as np
import torch

import quantized
import quantized_data as data
import quantized_networks as networks
import quantized_recipe as recipes
from common import ROOT, arguments, write_json

CALIBRATION_PICTURES = 500


def kl(reference, tested):
    """Of each row of logits, nats."""
    p, q = (torch.log_softmax(x.double(), -1) for x in (reference, tested))
    return (p.exp() * (p - q)).sum(-1)


def with_error(values):
    return round(float(values.mean()), 6), round(float(values.std() / len(values) ** 0.5), 6)


def classify(pictures, reference, tested):
    labels = torch.tensor(pictures.labels)
    per = kl(reference["logits"], tested["logits"])
    best, before = tested["logits"].argmax(1), reference["logits"].argmax(1)
    mean, error = with_error(per)
    return {"n": len(labels), "top1": float((best == labels).double().mean()), "agreement": float((best == before).double().mean()),
            "kl": mean, "kl_se": error, "not_finite": int((~torch.isfinite(tested["logits"])).sum())}


# ---- detection

def boxes(normalised, image):
    x, y, w, h = normalised.unbind(-1)
    scale = torch.tensor([image["width"], image["height"]] * 2)
    return torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1) * scale


def detections(outputs, k, image, threshold=None):
    """Of picture k: (scores, classes, boxes), every token or those above the threshold."""
    scores, classes = outputs["logits"][k].softmax(-1)[:, :-1].max(-1)
    found = scores, classes, boxes(outputs["boxes"][k], image)
    return found if threshold is None else tuple(t[scores > threshold] for t in found)


def iou(a, b):
    low, high = torch.maximum(a[:2], b[:, :2]), torch.minimum(a[2:], b[:, 2:])
    inner = (high - low).clamp(min=0).prod(-1)
    area = lambda t: (t[..., 2:] - t[..., :2]).clamp(min=0).prod(-1)  # noqa: E731
    return inner / (area(a) + area(b) - inner)


def matched(reference, tested):
    """How many detections are matched one to one: by falling score each takes the free one of its class it overlaps most."""
    free, count = torch.ones(len(reference[0]), dtype=torch.bool), 0
    for i in torch.argsort(-tested[0], stable=True):
        over = torch.where(free & (reference[1] == tested[1][i]), iou(tested[2][i], reference[2]), torch.zeros(len(free)))
        if len(over) and over.max() >= 0.5:
            free[over.argmax()] = False
            count += 1
    return count


def average_precision(pictures, truth, outputs):
    import contextlib
    import io
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval
    rows = []
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(truth))
        ids = sorted(coco.getCatIds())
        for k, image in enumerate(pictures.images):
            for s, c, b in zip(*(t.tolist() for t in detections(outputs, k, image))):
                rows.append({"image_id": image["id"], "category_id": ids[c], "score": s,
                             "bbox": [b[0], b[1], b[2] - b[0], b[3] - b[1]]})
        e = COCOeval(coco, coco.loadRes(rows), "bbox")
        e.evaluate(), e.accumulate(), e.summarize()
    return e.stats


def detect(pictures, truth, reference, tested, threshold=0.5):
    count = found = wanted = 0
    for k, image in enumerate(pictures.images):
        a, b = detections(reference, k, image, threshold), detections(tested, k, image, threshold)
        count, found, wanted = count + matched(a, b), found + len(b[0]), wanted + len(a[0])
    stats = average_precision(pictures, truth, tested)
    mean, error = with_error(kl(reference["logits"], tested["logits"]).mean(1))
    return {"n": len(pictures.names), "ap": round(float(stats[0]), 6), "ap50": round(float(stats[1]), 6),
            "precision": round(count / max(found, 1), 6), "recall": round(count / max(wanted, 1), 6), "kl": mean, "kl_se": error,
            "not_finite": int((~torch.isfinite(tested["logits"])).sum() + (~torch.isfinite(tested["boxes"])).sum())}


# ---- running

def outputs(q, batches):
    every = [list(q.run(x).values()) for x in batches]
    return dict(zip(("logits", "boxes"), (torch.cat(t) for t in zip(*every))))


def main():
    p = arguments(__doc__, checkpoint=dict(required=True, help="name of a checkpoint in the shared data"),
                  recipes=dict(required=True, nargs="+", help="names of the family's recipes, fp16, or YAML files"),
                  scales=dict(type=pathlib.Path, help="folder with RECIPE.json, octet's scale files; without, ranges are our own"),
                  cache=dict(type=pathlib.Path, help="folder for decoded pictures"), batch=dict(type=int, default=8),
                  threads=dict(type=int, default=1), limit=dict(type=int, help="the first N pictures"))
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    directory = a.shared / "data" / "checkpoints" / a.checkpoint
    network = networks.load(directory)
    torch.set_num_threads(a.threads)
    detects = hasattr(network.model, "config")
    family = "yolos" if detects else a.checkpoint.split("_")[0]
    pictures = (data.bccd(directory, a.shared, "test", a.cache) if detects else data.imagenet(directory, a.shared, "val", a.cache))
    truth = a.shared / "data" / "bccd" / "instances_test.json"
    if a.limit:
        for t in ("names", "labels", "images"):
            setattr(pictures, t, getattr(pictures, t, None) and getattr(pictures, t)[:a.limit])

    def judge(tested):
        return detect(pictures, truth, reference, tested) if detects else classify(pictures, reference, tested)

    reference = outputs(quantized.Quantized(network, recipes.read("fp32")), pictures.batches(a.batch))
    result = {"checkpoint": a.checkpoint, "recipes": {"fp32": judge(reference)}}
    for name in a.recipes:
        path = ROOT / "families" / family / "recipes" / f"{name}.yaml"
        recipe = recipes.read(path if path.exists() else name)
        file = a.scales / f"{name}.json" if a.scales else None
        ranges = None
        if file is None or not file.exists():
            calibration = (data.bccd(directory, a.shared, "train", a.cache) if detects
                           else data.imagenet(directory, a.shared, "calib", a.cache))
            file, ranges = None, quantized.calibrate(network, recipe, calibration.batches(a.batch))
        q = quantized.Quantized(network, recipe, recipes.Scales(file), ranges)
        result["recipes"][name] = {"scales": "octet's" if file else "own", **judge(outputs(q, pictures.batches(a.batch)))}
        print(name, json.dumps(result["recipes"][name]), flush=True)
        write_json(a.out / f"{a.checkpoint}.json", result)


if __name__ == "__main__":
    main()

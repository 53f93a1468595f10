# SPDX-License-Identifier: Apache-2.0
"""Outputs of our own subjects (subjects/mobilenetv2_035, subjects/yolos) on their first 16 kept pictures, float32."""
import json
import pathlib

import numpy as np
from PIL import Image

import classifiers
from common import ROOT, arguments, save, sha, torch1, versions, write_json, write_jsonl
from detector import Detector

COUNT = 16


def label_lists(base):
    return sorted(base.rglob("labels.txt"))


def instance_lists(base):
    return sorted(base.rglob("*instances*.json"))


def first(found, base, what):
    if not found:
        raise SystemExit(f"{base}: no {what} below it: are the subjects trained and their pictures kept?")
    return found[0]


def classify(a, base):
    torch1()
    listing = a.labels or first(label_lists(base / "pictures"), base / "pictures", "labels.txt")
    rows, logits = [], []
    model, config = classifiers.load(base / "mobilenetv2_035")
    shape, normalise = classifiers.transforms(config)
    for line in open(listing, encoding="utf-8").read().splitlines()[:COUNT]:
        name, label = line.rsplit(" ", 1)
        picture = Image.open(listing.parent / name).convert("RGB")
        small = shape(picture)
        logits.append(model(normalise(small)[None])[0].numpy().copy())
        rows.append({"name": name, "label": int(label), "width": picture.width, "height": picture.height,
                     "input": [small.height, small.width], "sha256": sha(np.asarray(small).tobytes())})
    logits = np.stack(logits)
    write_jsonl(a.out / "subject_mobilenetv2_035.pictures.jsonl", rows)
    save(a.out / "subject_mobilenetv2_035.logits.npy", logits)
    print("right:", sum(r["label"] == int(v.argmax()) for r, v in zip(rows, logits)), "of", len(rows))


def detect(a, base):
    from transformers.image_utils import load_image
    listing = a.instances or first(instance_lists(base / "pictures"), base / "pictures", "instances*.json")
    folder = listing.parent / listing.stem.replace("instances_", "")
    d = Detector(base / "yolos")
    rows, logits, boxes, pixels, found = [], [], [], [], []
    for image in json.load(open(listing))["images"][:COUNT]:
        name = image["file_name"]
        file = listing.parent / name
        picture = load_image(str(file if file.exists() else folder / name))
        row, l, b, q, kept, _ = d.run(picture)
        rows.append({"name": name, **row})
        logits.append(l), boxes.append(b), pixels.append(q)
        found.append({"file": name, "width": picture.width, "height": picture.height, "detections": kept})
    write_jsonl(a.out / "subject_yolos.pictures.jsonl", rows)
    save(a.out / "subject_yolos.logits.npy", np.stack(logits))
    save(a.out / "subject_yolos.boxes.npy", np.stack(boxes))
    save(a.out / "subject_yolos.pixels.npy", np.stack(pixels))
    write_jsonl(a.out / "subject_yolos.detections.jsonl", found)


def main():
    p = arguments(__doc__, subjects=dict(type=pathlib.Path, default=ROOT / "subjects"),
                  labels=dict(type=pathlib.Path, help="labels.txt (default: the first below SUBJECTS/pictures)"),
                  instances=dict(type=pathlib.Path, help="instances json (default: the first below SUBJECTS/pictures)"),
                  only=dict(choices=("classify", "detect")))
    a = p.parse_args()
    for name, job in (("classify", classify), ("detect", detect)):
        if a.only in (None, name):
            job(a, a.subjects)
    weights = {n: sha((a.subjects / n / "model.safetensors").read_bytes()) for n in ("mobilenetv2_035", "yolos")}
    write_json(a.out / "subjects.json", {"versions": versions("torch", "timm", "transformers", "pillow"), "weights": weights})


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Every detection token of yolos_tiny_bccd by transformers, float32, YolosImageProcessorPil, EXIF applied."""
import json
import pathlib

import numpy as np

from common import arguments, save, sha, torch1, write_jsonl
from taps import Taps

RULES = {"fixed": ({"height": 480, "width": 640}, 72, 60), "edges": ({"shortest_edge": 512, "longest_edge": 864}, 16, 24)}


class Detector:
    def __init__(self, directory, size=None):
        from transformers import YolosForObjectDetection, YolosImageProcessorPil
        self.torch = torch1()
        self.model = YolosForObjectDetection.from_pretrained(directory, dtype=self.torch.float32).eval()
        settings = json.load(open(pathlib.Path(directory) / "preprocessor_config.json"))
        settings.pop("image_processor_type", None)
        if size:
            settings["size"] = size
        self.processor = YolosImageProcessorPil(**settings)
        self.labels = self.model.config.id2label

    def input(self, picture):
        """The network's input [1, 3, h, w], and the resized picture's bytes as uint8 [h, w, 3]."""
        x = self.processor(images=picture, return_tensors="pt")["pixel_values"]
        p = self.processor
        chw = np.moveaxis(np.asarray(picture), -1, 0)
        small = p.resize(chw, size=p.size, resample=p.resample) if p.do_resize else chw
        again = p.normalize(p.rescale(small, p.rescale_factor), p.image_mean, p.image_std)
        assert np.array_equal(again, x[0].numpy())
        return x, np.ascontiguousarray(np.moveaxis(small, 0, -1))

    def run(self, picture, threshold=0.5):
        x, small = self.input(picture)
        out = self.model(pixel_values=x)
        post, size = self.processor.post_process_object_detection, [(picture.height, picture.width)]
        every = post(out, threshold=-1.0, target_sizes=size)[0]
        kept = post(out, threshold=threshold, target_sizes=size)[0]
        tokens = (every["scores"] > threshold).nonzero()[:, 0].tolist()
        assert len(tokens) == len(kept["scores"])
        found = [{"token": t, "index": int(i), "label": self.labels[int(i)], "score": float(s), "box": [float(v) for v in b]}
                 for t, s, i, b in zip(tokens, kept["scores"], kept["labels"], kept["boxes"])]
        row = {"width": picture.width, "height": picture.height, "input": list(x.shape[2:]), "sha256": sha(small.tobytes()),
               "max_abs_logit": float(out.logits.abs().max())}
        return row, out.logits[0].numpy().copy(), out.pred_boxes[0].numpy().copy(), every["boxes"].numpy().copy(), found, x


def main():
    p = arguments(__doc__, taps=dict(type=pathlib.Path, help="keep every layer's output for the first picture here"),
                  limit=dict(type=int, help="only the first N pictures of each set"))
    a = p.parse_args()
    from transformers.image_utils import load_image
    data = a.shared / "data"
    sets = {"bccd/test": 0, "coco/val2017": 1}
    for rule, (size, *counts) in RULES.items():
        d = Detector(data / "checkpoints" / "yolos_tiny_bccd", size)
        rows, logits, boxes, pixels, found = [], [], [], [], []
        for part, k in sets.items():
            files = sorted((f for f in (data / part).iterdir() if f.suffix.lower() in (".jpg", ".jpeg", ".png")),
                           key=lambda f: f.name.encode())
            for f in files[:min(counts[k], a.limit or counts[k])]:
                picture = load_image(str(f))
                row, l, b, q, kept, x = d.run(picture)
                if not rows and a.taps:
                    with Taps(d.model) as taps:
                        d.model(pixel_values=x)
                    taps.save(a.taps / f"yolos_tiny_bccd.{rule}.npz", input=x)
                rows.append({"set": part, "name": f.name, **row})
                logits.append(l), boxes.append(b), pixels.append(q)
                if part == "bccd/test":
                    found.append({"file": f.name, "width": picture.width, "height": picture.height, "detections": kept})
        stem = f"yolos_tiny_bccd.{rule}"
        write_jsonl(a.out / f"{stem}.pictures.jsonl", rows)
        save(a.out / f"{stem}.logits.npy", np.stack(logits))
        save(a.out / f"{stem}.boxes.npy", np.stack(boxes))
        save(a.out / f"{stem}.pixels.npy", np.stack(pixels))
        if rule == "fixed":
            write_jsonl(a.out / f"{stem}.detections.jsonl", found)


if __name__ == "__main__":
    main()

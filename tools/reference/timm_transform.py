# SPDX-License-Identifier: Apache-2.0
"""Hashes of timm's evaluation transform (resize, crop, pad; before normalisation) on formula pictures."""
import numpy as np
from PIL import Image

from common import arguments, formula, sha, write_jsonl

SIZES = [(1, 1), (7, 5), (31, 47), (100, 100), (227, 227), (223, 225), (257, 255), (500, 333), (333, 500), (901, 601),
         (900, 3), (3, 900)]
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos", "box", "hamming")
MODES = ("center", "squash", "border")
PCTS = (0.8, 0.875, 0.9, 0.95, 0.965, 1.0)
INPUTS = ((128, 128), (192, 192), (224, 224), (240, 240), (256, 256), (288, 288), (320, 320), (192, 256), (224, 160))
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FILLS = ((0.485, 0.456, 0.406), (0.5, 0.5, 0.5))


def jobs():
    """Every (mode, pct, input) once and more, the other settings going round; nothing random."""
    n = 0
    for mode in MODES:
        for pct in PCTS:
            for size in INPUTS:
                for _ in range(3):
                    yield SIZES[(n * 5) % len(SIZES)], INTERPOLATIONS[(n // 2 + n // 12) % 6], mode, pct, size, FILLS[n % 2]
                    n += 1
    for picture in SIZES:
        for name in INTERPOLATIONS:
            for mode in MODES:
                yield picture, name, mode, 0.875, (224, 224), FILLS[0]


def main():
    a = arguments(__doc__).parse_args()
    import timm.data
    rows = []
    for (w, h), interpolation, mode, pct, size, mean in jobs():
        cfg = dict(input_size=(3, *size), interpolation=interpolation, crop_pct=pct, crop_mode=mode, mean=mean, std=STD)
        resolved = timm.data.resolve_data_config({}, pretrained_cfg=cfg)
        steps = timm.data.create_transform(**resolved, is_training=False).transforms
        picture = Image.fromarray(formula(w, h, w + h))
        row = {"width": w, "height": h, "number": w + h, "interpolation": interpolation, "crop_mode": mode, "crop_pct": pct,
               "input": list(size), "mean": list(mean)}
        try:
            for s in steps[:[type(s).__name__ for s in steps].index("MaybeToTensor")]:
                picture = s(picture)
            out = np.asarray(picture)
            assert out.shape == (*size, 3), out.shape
            row["sha256"] = sha(out.tobytes())
        except Exception as e:  # what timm itself refuses
            row["error"] = f"{type(e).__name__}: {e}"[:100]
        rows.append(row)
    write_jsonl(a.out / "timm_transform.jsonl", rows)
    print(sum("error" in r for r in rows), "refused")


if __name__ == "__main__":
    main()

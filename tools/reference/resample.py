# SPDX-License-Identifier: Apache-2.0
"""Hashes of Pillow's resize on formula pictures: six filters, awkward sizes, boxes."""
import numpy as np
from PIL import Image

from common import arguments, formula, sha, write_jsonl

FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
FIXED = [((1, 1), (1, 1)), ((1, 1), (7, 5)), ((7, 5), (1, 1)), ((1, 64), (64, 1)), ((64, 1), (1, 64)), ((1, 100), (1, 33)),
         ((100, 1), (33, 1)), ((2, 2), (3, 3)), ((3, 2), (200, 3)), ((900, 3), (3, 90)), ((3, 900), (90, 3)),
         ((640, 480), (224, 224)), ((227, 227), (256, 256)), ((256, 256), (256, 256)), ((256, 256), (256, 100)),
         ((256, 256), (100, 256)), ((333, 500), (341, 512)), ((1000, 10), (10, 10)), ((10, 1000), (10, 10)),
         ((5, 5), (500, 500)), ((511, 257), (64, 64)), ((17, 31), (34, 62)), ((34, 62), (17, 31)), ((2000, 2), (2, 2))]


def jobs():
    """(width, height), number, (width2, height2), box or None."""
    r = np.random.default_rng(20)
    for i, (a, b) in enumerate(FIXED):
        yield a, i, b, None
    for i in range(36):
        a, b = (tuple(int(v) for v in np.exp(r.uniform(0, np.log(400), 2)) + 0.5) for _ in range(2))
        yield a, 100 + i, b, None
    for i in range(24):
        w, h = (int(v) for v in r.integers(2, 300, 2))
        w2, h2 = (int(v) for v in r.integers(1, 200, 2))
        if i % 3 == 0:
            x0, y0 = int(r.integers(0, w)), int(r.integers(0, h))
            box = (x0, y0, int(r.integers(x0 + 1, w + 1)), int(r.integers(y0 + 1, h + 1)))
        else:  # fractions that float32 and text hold exactly, as Pillow keeps boxes in float32
            q = [v / 16 for v in (r.integers(0, 8 * w), r.integers(0, 8 * h), r.integers(8 * w + 1, 16 * w + 1),
                                  r.integers(8 * h + 1, 16 * h + 1))]
            box = tuple(float(v) for v in q)
        yield (w, h), 200 + i, (w2, h2), box


def main():
    a = arguments(__doc__).parse_args()
    rows = []
    for (w, h), s, (w2, h2), box in jobs():
        picture = Image.fromarray(formula(w, h, s))
        for name, code in FILTERS.items():
            out = picture.resize((w2, h2), code, box=box)
            row = {"width": w, "height": h, "number": s, "to": [w2, h2], "filter": name, "sha256": sha(out.tobytes())}
            if box:
                row["box"] = list(box)
            rows.append(row)
    write_jsonl(a.out / "resample.jsonl", rows)


if __name__ == "__main__":
    main()

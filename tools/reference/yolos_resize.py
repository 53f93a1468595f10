# SPDX-License-Identifier: Apache-2.0
"""The size rule of YolosImageProcessorPil, and hashes of the resized formula picture."""
import warnings

import numpy as np
from PIL import Image

from common import arguments, formula, sha, write_jsonl

PICTURES = [(640, 480), (480, 640), (641, 479), (500, 333), (333, 500), (100, 100), (512, 512), (512, 700), (700, 512),
            (513, 511), (1333, 800), (800, 1333), (1000, 100), (100, 1000), (33, 17), (17, 16), (16, 16), (5, 7), (300, 3),
            (3, 300), (1, 1), (640, 426), (427, 640), (864, 512), (865, 512), (1727, 1024), (1023, 1728), (255, 641)]
SIZES = [{"height": 480, "width": 640}, {"height": 512, "width": 512}, {"height": 224, "width": 32},
         {"shortest_edge": 512, "longest_edge": 864}, {"shortest_edge": 800, "longest_edge": 1333},
         {"shortest_edge": 512, "longest_edge": 1333}, {"shortest_edge": 224, "longest_edge": 224},
         {"shortest_edge": 250, "longest_edge": 333}, {"shortest_edge": 100, "longest_edge": 50},
         {"max_height": 480, "max_width": 640}, {"max_height": 300, "max_width": 100}, {"shortest_edge": 256},
         {"longest_edge": 256}, 512, [512, 864]]
LIMIT = 700 * 1400  # larger results: the size alone


def main():
    a = arguments(__doc__).parse_args()
    from transformers import YolosImageProcessorPil
    warnings.simplefilter("ignore")
    rows = []
    for size in SIZES:
        extra = {}
        given = size
        if isinstance(size, list):  # the older form: size and max_size
            given, extra = size[0], {"max_size": size[1]}
        for w, h in PICTURES:
            row = {"width": w, "height": h, "number": w + h, "size": given, **extra}
            try:
                p = YolosImageProcessorPil(size=given, do_pad=False, **extra)
                row["resolved"] = {k: v for k, v in dict(p.size).items() if v is not None}
                asked = []
                chw = np.moveaxis(formula(w, h, w + h), -1, 0)
                out = p.resize(chw, size=p.size, resample=p.resample)
                asked = list(out.shape[1:])
                row["to"] = asked
                if asked[0] * asked[1] <= LIMIT:
                    row["sha256"] = sha(np.ascontiguousarray(np.moveaxis(out, 0, -1)).tobytes())
                    x = p(images=Image.fromarray(formula(w, h, w + h)), return_tensors="np")["pixel_values"]
                    assert list(x.shape[2:]) == asked
            except Exception as e:  # what the processor itself refuses
                row["error"] = f"{type(e).__name__}: {e}"[:100]
            rows.append(row)
    write_jsonl(a.out / "yolos_resize.jsonl", rows)
    print(sum("error" in r for r in rows), "refused")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Bicubic interpolation of YOLOS position embeddings, by transformers' own modules, on drawn tensors."""
import numpy as np

from common import arguments, save, torch1, write_json
from drawn import draw

# (hidden, detection tokens, patch rows and columns as trained, as wanted)
CASES = [(8, 3, (4, 6), (4, 6)), (8, 3, (4, 6), (7, 5)), (8, 3, (4, 6), (2, 3)), (8, 3, (4, 6), (8, 12)), (8, 3, (4, 6), (3, 11)),
         (8, 3, (4, 6), (1, 1)), (4, 2, (1, 1), (3, 4)), (4, 2, (2, 2), (9, 3)), (4, 2, (30, 40), (32, 42)),
         (4, 2, (30, 40), (32, 54)), (4, 2, (50, 84), (32, 42)), (4, 2, (1, 8), (5, 8))]
DEPTH = 3  # mid position embeddings: layers - 1


def main():
    a = arguments(__doc__).parse_args()
    torch = torch1()
    from transformers import YolosConfig
    from transformers.models.yolos import modeling_yolos as y
    index = []
    for n, (hidden, det, (h, w), (h2, w2)) in enumerate(CASES):
        c = YolosConfig(hidden_size=hidden, num_hidden_layers=DEPTH + 1, num_attention_heads=1, intermediate_size=hidden,
                        image_size=[16 * h, 16 * w], num_detection_tokens=det)
        first, mid = y.InterpolateInitialPositionEmbeddings(c), y.InterpolateMidPositionEmbeddings(c)
        tokens = 1 + h * w + det
        v = draw(f"position.{n}", (1, tokens, hidden))
        m = draw(f"mid.{n}", (DEPTH, 1, tokens, hidden))
        mid.mid_position_embeddings.data = torch.from_numpy(m)
        size = (16 * h2, 16 * w2)
        save(a.out / "position" / f"{n:02}.in.npy", v)
        save(a.out / "position" / f"{n:02}.out.npy", first(torch.from_numpy(v), size).numpy())
        row = {"n": n, "hidden": hidden, "detection_tokens": det, "grid": [h, w], "to": [h2, w2]}
        if h * w < 100 or n == 8:
            save(a.out / "position" / f"{n:02}.mid_in.npy", m)
            save(a.out / "position" / f"{n:02}.mid_out.npy", mid(size).numpy())
            row["mid"] = DEPTH
        # how far float32 in torch's order is from the same formula in float64
        y64 = first(torch.from_numpy(v.astype(np.float64)), size).numpy()
        row["float64_max_difference"] = float(np.abs(y64 - first(torch.from_numpy(v), size).numpy()).max())
        index.append(row)
    write_json(a.out / "position" / "index.json", index)


if __name__ == "__main__":
    main()

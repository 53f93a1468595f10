# SPDX-License-Identifier: Apache-2.0
"""Codes of the narrow formats by ml_dtypes and NumPy: every 8-bit code decoded, and floats encoded at every midpoint of
the 8-bit formats, at a sample of the 16-bit ones, and at random."""
import ml_dtypes
import numpy as np

from common import arguments, save, versions, write_json

EIGHT = {"e4m3": (ml_dtypes.float8_e4m3fn, 448.0), "e5m2": (ml_dtypes.float8_e5m2, 57344.0)}


def words():
    """Sorted float32 words: midpoints, codes, and both neighbours of each; extremes; random words."""
    x = []
    for dtype, code, step in ((ml_dtypes.float8_e4m3fn, np.uint8, 1), (ml_dtypes.float8_e5m2, np.uint8, 1),
                              (np.float16, np.uint16, 97), (ml_dtypes.bfloat16, np.uint16, 97)):
        half = 1 << (8 * np.dtype(code).itemsize - 1)
        v = np.arange(half, dtype=code).view(dtype).astype(np.float64)
        v = v[np.isfinite(v)]
        last = v[-1] + (v[-1] - v[-2])
        v = np.append(v, last)
        x += [v[:-1][::step], ((v[:-1] + v[1:]) / 2)[::step], v[-3:], (v[-3:-1] + v[-2:]) / 2]
    with np.errstate(over="ignore"):
        bits = np.concatenate(x).astype(np.float32).view(np.uint32).astype(np.int64)
    bits = np.concatenate([bits, bits - 1, bits + 1])
    bits = bits[(bits >= 0) & (bits < 1 << 31)]
    bits = np.concatenate([bits, bits | 1 << 31, [0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7fa00000, 0x7f800001,
                                                  0xffbfffff, 0x7f7fffff, 1, 0x80000001]])
    random = np.random.default_rng(8).integers(0, 1 << 32, 2000, dtype=np.uint64).astype(np.int64)
    return np.unique(np.concatenate([bits, random])).astype(np.uint32)


def main():
    out = arguments(__doc__).parse_args().out / "formats"
    out.mkdir(parents=True, exist_ok=True)
    bits = words()
    x = bits.view(np.float32)
    save(out / "words.npy", bits.view(np.int32))
    with np.errstate(all="ignore"):
        for name, (dtype, limit) in EIGHT.items():
            save(out / f"{name}.decode.npy", np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32))
            save(out / f"{name}.cast.npy", x.astype(dtype).view(np.uint8))
            cut = np.where(np.isnan(x), x, np.clip(x, -limit, limit)).astype(np.float32)
            save(out / f"{name}.saturating.npy", cut.astype(dtype).view(np.uint8))
        save(out / "fp16.npy", x.astype(np.float16).view(np.uint16).astype(np.int32))
        save(out / "bf16.npy", x.astype(ml_dtypes.bfloat16).view(np.uint16).astype(np.int32))
    write_json(out / "versions.json", {"words": int(bits.size), "versions": versions("ml_dtypes", "numpy")})


if __name__ == "__main__":
    main()

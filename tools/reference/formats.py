# SPDX-License-Identifier: Apache-2.0
"""Codes of the narrow formats by ml_dtypes and NumPy: every code decoded, and floats encoded at every midpoint of the
8- and 4-bit formats, at a sample of the 16-bit ones, and at random. What is too large to keep is kept as a hash: every
midpoint of the 16-bit formats, a million floats, and blocks of MXFP8 and NVFP4, all by formula (formats_blocks.py)."""
import ml_dtypes
import numpy as np

from common import arguments, save, sha, versions, write_json
from formats_blocks import blocks, floats, int8, mxfp8, nvfp4

EIGHT = {"e4m3": (ml_dtypes.float8_e4m3fn, 448.0), "e5m2": (ml_dtypes.float8_e5m2, 57344.0)}
SMALL = {"e2m1": (ml_dtypes.float4_e2m1fn, 16), "e8m0": (ml_dtypes.float8_e8m0fnu, 256)}
HALF = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}


def words():
    """Sorted float32 words: midpoints, codes, and both neighbours of each; extremes; random words."""
    x = []
    for dtype, code, codes, step in ((ml_dtypes.float8_e4m3fn, np.uint8, 128, 1), (ml_dtypes.float8_e5m2, np.uint8, 128, 1),
                                     (ml_dtypes.float4_e2m1fn, np.uint8, 8, 1), (ml_dtypes.float8_e8m0fnu, np.uint8, 256, 1),
                                     (np.float16, np.uint16, 1 << 15, 97), (ml_dtypes.bfloat16, np.uint16, 1 << 15, 97)):
        v = np.arange(codes, dtype=code).view(dtype).astype(np.float64)
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


def encoders():
    """name -> float32 array to codes"""
    made = {}
    for name, (dtype, limit) in EIGHT.items():
        made[name + ".cast"] = lambda x, t=dtype: x.astype(t).view(np.uint8)
        made[name + ".saturating"] = lambda x, t=dtype, m=limit: np.where(np.isnan(x), x, np.clip(x, -m, m)).astype(
            np.float32).astype(t).view(np.uint8)
    for name, (dtype, _) in SMALL.items():
        made[name] = lambda x, t=dtype: x.astype(t).view(np.uint8)
    for name, dtype in HALF.items():
        made[name] = lambda x, t=dtype: x.astype(t).view(np.uint16)
    return made


def half_midpoints(dtype):
    """Every finite positive code of a 16-bit format, the midpoint above it, and both neighbours of that midpoint."""
    v = np.arange(1 << 15, dtype=np.uint16).view(dtype).astype(np.float64)
    v = v[np.isfinite(v)]
    middle = ((v + np.append(v[1:], 2 * v[-1] - v[-2])) / 2).astype(np.float32).view(np.uint32)
    return np.stack([v.astype(np.float32).view(np.uint32), middle, middle - 1, middle + 1], 1).reshape(-1)


def main():
    out = arguments(__doc__).parse_args().out / "formats"
    out.mkdir(parents=True, exist_ok=True)
    bits = words()
    x = bits.view(np.float32)
    save(out / "words.npy", bits.view(np.int32))
    hashes = {}
    with np.errstate(all="ignore"):
        for name, (dtype, _) in EIGHT.items():
            save(out / f"{name}.decode.npy", np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32))
        for name, (dtype, codes) in SMALL.items():
            save(out / f"{name}.decode.npy", np.arange(codes, dtype=np.uint8).view(dtype).astype(np.float32))
        million = floats(1_000_000, 2026)
        for name, encode in encoders().items():
            codes = encode(x)
            save(out / f"{name}.npy", codes if codes.dtype == np.uint8 else codes.astype(np.int32))
            hashes[f"million {name}"] = sha(encode(million).tobytes())
        for name, dtype in HALF.items():
            v = half_midpoints(dtype).view(np.float32)
            hashes[f"midpoints {name}"] = sha(np.concatenate([v, -v]).astype(dtype).view(np.uint16).tobytes())
        values = blocks(60_000, 7)
        for rule in ("floor", "ceil"):
            hashes[f"mxfp8 {rule}"] = sha(b"".join(a.tobytes() for a in mxfp8(values, rule)))
        for scale, name in ((1.0, "nvfp4"), (2.0 ** -12, "nvfp4 small")):
            hashes[name] = sha(b"".join(a.tobytes() for a in nvfp4(values, scale)))
        hashes["int8"] = sha(b"".join(a.tobytes() for a in int8(values)))
    write_json(out / "hashes.json", hashes)
    write_json(out / "versions.json", {"words": int(bits.size), "versions": versions("ml_dtypes", "numpy")})


if __name__ == "__main__":
    main()

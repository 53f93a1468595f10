# SPDX-License-Identifier: Apache-2.0
"""Golden sums of E4M3 products by the rule of Hopper's tensor cores (src/graph/tensor_core.h), in exact fractions.

A line: codes of a, codes of b (hexadecimal), promotion interval, bits of the float32 result.
"""
import random
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np

from common import ROOT

VALUES = [Fraction(float(v)) if np.isfinite(v) else None
          for v in np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)]


def exponent_of(x, least):
    """floor(log2 |x|), at least `least`; x is not 0."""
    e = 0
    x = abs(x)
    while x >= Fraction(2) ** (e + 1):
        e += 1
    while x < Fraction(2) ** e:
        e -= 1
    return max(e, least)


def cut(x, unit):
    """To a multiple of unit, towards zero."""
    whole = abs(x) // unit
    return (-1 if x < 0 else 1) * whole * unit


def step(a, b, total):
    terms = [(total, exponent_of(total, -126))] if total else []
    for x, y in zip(a, b):
        p, q = VALUES[x], VALUES[y]
        if p and q:
            terms.append((p * q, exponent_of(p, -6) + exponent_of(q, -6)))
    if not terms:
        return Fraction(0)
    unit = Fraction(2) ** (max(e for _, e in terms) - 13)
    total = sum(cut(v, unit) for v, _ in terms)
    return cut(total, Fraction(2) ** (exponent_of(total, -126) - 13)) if total else Fraction(0)


def dot(a, b, promote):
    total, register = Fraction(0), np.float32(0)
    for k in range(0, len(a), 32):
        total = step(a[k:k + 32], b[k:k + 32], total)
        if promote and (k + 32) % promote == 0:
            register = np.float32(register + np.float32(float(total)))
            total = Fraction(0)
    return np.float32(register + np.float32(float(total)))


def codes(rng, count, kind):
    if kind == "any":
        return [rng.choice([c for c in range(256) if c & 127 != 127]) for _ in range(count)]
    if kind == "subnormal":
        return [rng.randrange(0, 10) | rng.choice([0, 128]) for _ in range(count)]
    if kind == "ends":
        return [rng.choice([0, 1, 7, 8, 0x38, 0x7e, 0x80, 0x81, 0xb8, 0xfe]) for _ in range(count)]
    scale = rng.choice([0.02, 0.3, 4.0, 60.0])
    values = np.array([rng.gauss(0, scale) for _ in range(count)], np.float32)
    return list(np.clip(values, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8))


def main():
    rng = random.Random(7)
    with open(ROOT / "tests/golden/tensor_core.txt", "w") as out:
        for i in range(240):
            count = rng.choice([1, 3, 31, 32, 33, 64, 96, 100, 128, 144])
            kind = rng.choice(["any", "subnormal", "ends", "normal", "normal", "normal"])
            a, b = codes(rng, count, kind), codes(rng, count, rng.choice([kind, "normal"]))
            promote = rng.choice([0, 0, 32, 128])
            bits = struct.unpack("<I", struct.pack("<f", float(dot(a, b, promote))))[0]
            if bits == 0x80000000:
                bits = 0
            print("".join(f"{c:02x}" for c in a), "".join(f"{c:02x}" for c in b), promote, f"{bits:08x}", file=out)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Floats by formula, and the published rules of the formats with scales around ml_dtypes' casts: what formats.py hashes and
tests/unit/format does again in C."""
import ml_dtypes
import numpy as np


def splitmix(count, seed):
    """The first `count` words of splitmix64 (src/base/random.h)."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        return z ^ (z >> np.uint64(31))


def floats(count, seed):
    """Number n: the word's lower 32 bits as they are if n is even; else its sign and mantissa with an exponent of
    -24 .. 23, where the narrow formats lie."""
    z = splitmix(count, seed)
    w = (z & np.uint64(0xffffffff)).astype(np.uint32)
    exponent = (127 - 24 + (z >> np.uint64(40)) % np.uint64(48)).astype(np.uint32)
    near = (w & np.uint32(0x807fffff)) | exponent << np.uint32(23)
    return np.where(np.arange(count) % 2 == 0, w, near).astype(np.uint32).view(np.float32)


def blocks(count, seed):
    """[count, 32] finite floats: each block around its own power of two (-140 .. 115, subnormals too), values up to 2^12
    smaller; every 16th block is zero, every other value of every 8th block is zero."""
    z = splitmix(count * 32, seed).reshape(count, 32)
    w = (z & np.uint64(0x807fffff)).astype(np.uint32)
    base = ((z[:, :1] >> np.uint64(33)) % np.uint64(256)).astype(np.int64) - 13
    exponent = np.clip(base - ((z >> np.uint64(48)) % np.uint64(12)).astype(np.int64), 0, 253).astype(np.uint32)
    w = w | exponent << np.uint32(23)
    n = np.arange(count)[:, None]
    zero = (n % 16 == 3) | ((n % 8 == 5) & (np.arange(32)[None] % 2 == 1))
    return np.where(zero, w & np.uint32(0x80000000), w).astype(np.uint32).view(np.float32)


def mxfp8(values, rule):
    """Scale codes [count], E4M3 codes [count, 32]: OCP's floor rule, or the scale rounded up."""
    amax = np.abs(values).max(1).astype(np.float64)
    mantissa, exponent = np.frexp(amax)  # amax = mantissa * 2^exponent, mantissa in [0.5, 1)
    exponent = exponent - 1 - 8 + ((mantissa * 2 > 1.75) if rule == "ceil" else 0)
    exponent = np.where(amax == 0, -127, np.clip(exponent, -127, 127))
    scaled = np.clip(values.astype(np.float64) / np.exp2(exponent)[:, None], -448, 448)
    return (exponent + 127).astype(np.uint8), scaled.astype(np.float32).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def nvfp4(values, tensor_scale):
    """Block scale codes, packed E2M1 codes: blocks of 16 under a given tensor scale; block scales clamped to 448."""
    v = values.reshape(-1, 16)
    s = np.float32(tensor_scale)
    scale = np.minimum(np.abs(v).max(1) / np.float32(6) / s, np.float32(448)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    full = (scale.astype(np.float64) * np.float64(s)).astype(np.float32)[:, None]
    q = np.where(full > 0, np.clip(v / np.where(full > 0, full, 1), -6, 6), v * 0).astype(np.float32)
    codes = q.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return scale.view(np.uint8), codes[:, 0::2] | codes[:, 1::2] << 4


def int8(values):
    """Scales [count] float32, codes [count, 32]: one scale a block of 32, amax / 127, half to even."""
    amax = np.abs(values).max(1)
    scale = np.where(amax > 0, np.maximum(amax / np.float32(127), np.float32(2.0 ** -149)), np.float32(1)).astype(np.float32)
    return scale, np.clip(np.rint((values / scale[:, None]).astype(np.float32)), -127, 127).astype(np.int8)

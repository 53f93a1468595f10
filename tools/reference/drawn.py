# SPDX-License-Identifier: Apache-2.0
"""Drawn weights (drawn_weights.md). As a program: --check prints the check values."""
import math
import struct

import numpy as np

RULE = 1
U = np.uint64


def fnv1a64(name):
    h = 0xcbf29ce484222325
    for b in name.encode():
        h = ((h ^ b) * 0x100000001b3) & 0xffffffffffffffff
    return h


def draw24(name, count):
    """k of every element: the top 24 bits of splitmix64."""
    with np.errstate(over="ignore"):
        z = U(fnv1a64(name)) + np.arange(1, count + 1, dtype=U) * U(0x9e3779b97f4a7c15)
        z = (z ^ (z >> U(30))) * U(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> U(27))) * U(0x94d049bb133111eb)
        z = z ^ (z >> U(31))
    return (z >> U(40)).astype(np.int64)


def draw(name, shape):
    """float32 array of the tensor, or None for one that is not drawn."""
    last = name.rsplit(".", 1)[-1]
    if last == "num_batches_tracked":
        return None
    k = draw24(name, math.prod(shape))
    n = (k - (1 << 23)).astype(np.float64)
    if last == "running_var":
        assert len(shape) == 1
        v = (k + (1 << 23)).astype(np.float64) * 2.0 ** -24
    elif last in ("running_mean", "bias"):
        assert len(shape) == 1, name
        v = n * 2.0 ** -27
    elif last == "weight" and len(shape) == 1:
        v = (n + (1 << 26)) * 2.0 ** -26
    elif last == "weight":
        a = np.float32(math.sqrt(3.0 / math.prod(shape[1:])))
        v = np.float64(a) * n * 2.0 ** -23
    else:
        v = n * 2.0 ** -24
    return v.astype(np.float32).reshape(shape)


def fill(model):
    """Draws every tensor of a torch module, by its checkpoint name; returns the state."""
    import torch
    state = {}
    for name, t in model.state_dict().items():
        a = draw(name, tuple(t.shape))
        state[name] = torch.zeros_like(t) if a is None else torch.from_numpy(a)
    model.load_state_dict(state)
    return state


CHECK = (("conv_stem.weight", (32, 3, 3, 3)), ("bn1.running_var", (32,)), ("bn1.running_mean", (32,)), ("bn1.weight", (32,)),
         ("bn1.bias", (32,)), ("blocks.0.0.conv_dw.weight", (32, 1, 3, 3)), ("classifier.weight", (1000, 1280)),
         ("cls_token", (1, 1, 192)), ("vit.embeddings.position_embeddings", (1, 1301, 192)))


def main():
    import argparse
    import hashlib
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--check", action="store_true", required=True)
    p.parse_args()
    print("| name | shape | FNV-1a 64 | first three values (float32 bits) | last value | SHA-256 of the bytes |")
    print("|---|---|---|---|---|---|")
    for name, shape in CHECK:
        a = draw(name, shape).reshape(-1)
        bits = ["%08x" % struct.unpack("<I", a[i].tobytes())[0] for i in (0, 1, 2, -1)]
        print(f"| `{name}` | {list(shape)} | `{fnv1a64(name):016x}` | `{' '.join(bits[:3])}` | `{bits[3]}` | "
              f"`{hashlib.sha256(a.astype('<f4').tobytes()).hexdigest()}` |")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What the golden makers share: paths, hashes, formula pictures, writing."""
import argparse
import hashlib
import importlib.metadata
import json
import os
import pathlib
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
PACKAGES = ("torch", "torchvision", "timm", "transformers", "pillow", "numpy", "safetensors", "ml_dtypes", "pycocotools",
            "scipy")


def arguments(description, **extra):
    """Options every script has; extra: name -> keyword arguments of add_argument."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--shared", type=pathlib.Path, default=ROOT.parent / "shared", help="folder with data/")
    p.add_argument("--out", type=pathlib.Path, default=GOLDEN, help="where the goldens go")
    for name, kw in extra.items():
        p.add_argument("--" + name, **kw)
    return p


def versions(*names):
    return {n: importlib.metadata.version(n) for n in names or PACKAGES}


def sha(data):
    return hashlib.sha256(bytes(data)).hexdigest()


def formula(w, h, s=0):
    """The formula picture of drawn_weights.md: uint8 [h, w, 3]."""
    y, x, c = np.mgrid[0:h, 0:w, 0:3].astype(np.int64)
    return ((7 * x + 13 * y + 101 * c + 29 * s + 3 * ((x * y + 17 * s) % 251)) & 255).astype(np.uint8)


def formula_input(w, h, s=0):
    """The network input that goes with drawn weights: float32 [3, h, w]."""
    return ((formula(w, h, s).astype(np.float32) - 128) / 64).transpose(2, 0, 1).copy()


def torch1():
    import torch
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    return torch


def save(path, array):
    """NumPy .npy, version 1.0, little-endian, C order."""
    a = np.ascontiguousarray(array)
    assert a.dtype in (np.float32, np.int32, np.uint8), a.dtype
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, a)
    print(path.name, a.shape, a.dtype, path.stat().st_size)


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as f:
        json.dump(value, f, indent=1, ensure_ascii=True, allow_nan=False)
        f.write("\n")
    print(path.name, path.stat().st_size)


def write_jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as f:
        for r in rows:
            f.write(json.dumps(r, allow_nan=False) + "\n")
    print(path.name, len(rows), "rows", path.stat().st_size)

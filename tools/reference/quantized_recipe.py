# SPDX-License-Identifier: Apache-2.0
"""A recipe and a scale file, and what they make of each op of a network (quantized_networks.py): docs/quantization.md, part 4."""
import base64
import fnmatch
import json

import numpy as np
import torch
import yaml

SECTIONS = ("weights", "activations", "smoothing", "equalization", "bias_correction", "outliers")
WIDE = ("fp32", "fp16", "bf16")


def as_list(x):
    return x if isinstance(x, list) else [x]


def read(path_or_name):
    """A YAML file; or a base alone."""
    if path_or_name in WIDE:
        return {"recipe": path_or_name, "base": path_or_name, "rules": []}
    with open(path_or_name, encoding="utf-8") as f:
        r = yaml.safe_load(f)
    return {"base": "fp32", "rules": [], **r}


def numbers(section):
    if section is None or section == "none":
        return None
    n = {"granularity": "tensor", "block": None, "calibrator": "max", "scale": "floor", "rounding": "nearest", **section}
    if n["format"] in ("mxfp8", "nvfp4"):
        n["granularity"], n["block"] = "block", 32 if n["format"] == "mxfp8" else 16
    return n


def within(rule, key, value):
    return rule.get(key + "_from", value) <= value <= rule.get(key + "_to", value)


def selects(where, op):
    if op.kind not in as_list(where.get("kind", ["conv2d", "linear"])):
        return False
    if "name" in where and not any(fnmatch.fnmatchcase(op.name, p) for p in as_list(where["name"])):
        return False
    if "not" in where and any(fnmatch.fnmatchcase(op.name, p) for p in as_list(where["not"])):
        return False
    if "kernel" in where and (op.kind != "conv2d" or list(op.weight.shape[1:3]) != where["kernel"]):
        return False
    if "depthwise" in where and where["depthwise"] != (op.kind == "conv2d" and op.groups > 1):
        return False
    return (within(where, "pixels", op.pixels) and within(where, "channels_in", op.channels_in)
            and within(where, "channels_out", op.channels_out))


def ends(ops, where):
    first, last = where.get("first", 0), where.get("last", 0)
    if not first and not last:
        return ops
    return [o for i, o in enumerate(ops) if i < first or i >= len(ops) - last]


def decide(recipe, network):
    """name of op -> its sections."""
    decided = {op.name: {} for op in network.ops}
    for rule in recipe["rules"]:
        chosen = ends([op for op in network.ops if selects(rule["ops"], op)], rule["ops"])
        assert chosen, f"a rule of {recipe['recipe']} selects nothing: {rule['ops']}"
        for op in chosen:
            if rule.get("keep"):
                decided[op.name] = {}
            decided[op.name].update({s: rule[s] for s in SECTIONS if s in rule})
    for d in decided.values():
        d["weights"], d["activations"] = numbers(d.get("weights")), numbers(d.get("activations"))
        assert not d.get("equalization"), "equalization changes weights before rounding: not part of this reference"
    return decided


class Scales:
    """A scale file by op; empty without one."""

    def __init__(self, path=None):
        f = json.load(open(path)) if path else {}
        self.entries = {s["op"]: s for s in f.get("scales", [])}
        vector = lambda key: {s["op"]: torch.tensor(s["values"], dtype=torch.float32) for s in f.get(key, [])}  # noqa: E731
        self.smoothing, self.bias = vector("smoothing"), vector("bias")
        self.rounded = {w["op"]: w for w in f.get("weights_rounded", [])}

    def rounded_weight(self, op, shape):
        """The numbers of weights that were rounded with calibration's help."""
        w = self.rounded[op]
        codes = np.frombuffer(base64.b64decode(w["codes"]), np.uint8).copy()
        codes = torch.from_numpy(codes).view({"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "int8": torch.int8}[w["format"]])
        s = torch.tensor(w["scale"], dtype=torch.float32)
        return codes.float().reshape(shape) * s.reshape(-1, *[1] * (len(shape) - 1))

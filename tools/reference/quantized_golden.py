# SPDX-License-Identifier: Apache-2.0
"""What every op of two subjects stores under several recipes, by the reference, of one picture by formula: goldens that
octet's engine is held against step by step, each step reading the golden's numbers (tests/unit/runtime/quantized_golden.c).

MODEL.RECIPE.json has an object a stored form, in the order of the ops; MODEL.RECIPE.npy its bytes; MODEL.RECIPE.scales.json
the scale file, ranges found by the reference on three other pictures by formula."""
import json

import numpy as np
import torch

import quantized
import quantized_formats as formats
import quantized_networks as networks
import quantized_recipe as recipes
from common import ROOT, arguments, formula_input, save

CASES = {"mobilenetv2_035": ("published", "int8"), "yolos": ("published", "int8_smoothed", "mxfp8", "nvfp4", "attention")}
LAST = {"yolos": "vit.encoder.layer.1.layernorm_before"}  # what comes behind is like what came before
SIZE = 48          # the last maps of MobileNetV2 are 2 x 2: larger than a pixel, as the recipes ask
CALIBRATION = (1, 2, 3)
KEY = "0" * 64     # of scales that belong to no checkpoint's hash


def picture(s):
    return torch.from_numpy(formula_input(SIZE, SIZE, s))[None]


def load(name):
    network = networks.load(ROOT / "subjects" / name)
    if name == "yolos":  # positions for the smaller picture, as transformers makes them
        e = network.model.vit.embeddings
        for op in network.ops:
            if op.name == "vit.embeddings":
                op.constants = [e.interpolation(e.position_embeddings, (SIZE, SIZE)).detach().clone()]
    return network.trace(picture(0))


# ---- the scale file

def channel_ranges(network):
    """Largest magnitude of each channel of each linear's input."""
    found = {}

    def tap(op, read, y, stored):
        if op.kind == "linear":
            amax = read[0].abs().flatten(0, -2).amax(0)
            found[op.name] = torch.maximum(found.get(op.name, amax), amax)

    plain = quantized.Quantized(network, recipes.read("fp32"))
    for s in CALIBRATION:
        plain.run(picture(s), tap)
    return found


def smoothing(network, decided):
    """(amax of the weight's column / amax of the input)^(1/2), one for all that read one layer norm."""
    found, result = channel_ranges(network), {}
    for name in {op.inputs[0] for op in network.ops if decided[op.name].get("smoothing")}:
        readers = [op for op in network.readers(name) if decided[op.name].get("smoothing")]
        column = torch.stack([op.weight.abs().amax(0) for op in readers]).amax(0)
        f = (column / found[readers[0].name].clamp(min=1e-5)).sqrt().clamp(1e-3, 1e3)
        result.update({op.name: [float(f"{v:.3g}") for v in f.tolist()] for op in readers})
    return [{"op": name, "values": result[name]} for name in sorted(result)]


def scale_file(network, recipe, decided, ranges, architecture):
    entries = []
    for op in network.ops:
        n = decided[op.name]["activations"]
        for i in range(len(op.inputs) if quantized.static(n) else 0):
            name = quantized.entry_name(op, i)
            scale, zero = ranges.scale(name, n["format"])
            amax = ranges.amax(name)
            entries.append({"op": name, "format": n["format"], "granularity": n["granularity"], "calibrator": "max",
                            "scale": [scale], "amax": amax, "threshold": amax, "values": 1, "not_finite": 0})
    keys = {k: KEY for k in ("configuration", "weights", "preprocessing", "data")}
    f = {"octet_scales": 1, "model": architecture, **keys, "pictures": len(CALIBRATION), "recipe": recipe["recipe"],
         "scales": entries}
    factors = smoothing(network, decided)
    return {**f, "smoothing": factors} if factors else f


# ---- what is stored

class Blob:
    def __init__(self):
        self.bytes, self.rows = [], []
        self.at = 0

    def put(self, array):
        raw = np.ascontiguousarray(array).tobytes()
        self.bytes.append(raw)
        self.at += len(raw)
        return self.at - len(raw)

    def wide(self, op, name, x):
        dtype = np.float32 if name == "fp32" else np.float16
        self.rows.append({"op": op, "format": name, "granularity": "tensor", "element": name, "count": x.numel(),
                          "codes": self.put(x.numpy().astype(dtype))})

    def narrow(self, op, form, codes, scale):
        n, row = form.numbers, {"op": op, "format": form.numbers["format"], "granularity": form.numbers["granularity"]}
        if n["format"] == "int8":
            row.update(element="int8", count=codes.numel(), codes=self.put(codes.numpy().astype(np.int8)))
        else:  # E2M1's numbers are E4M3's too
            row.update(element="e4m3", count=codes.numel(),
                       codes=self.put(codes.to(torch.float8_e4m3fn).view(torch.uint8).numpy()))
        if n["granularity"] == "tensor":
            row["scale"] = float(scale)
        else:
            one = scale[..., ::n["block"]] if n["granularity"] == "block" else scale
            row["block"] = n["block"] or codes.shape[-1]
            row["scales"] = self.put(one.numpy().astype(np.float32))
        self.rows.append(row)


def record(q, last):
    """Of the ops up to `last`; None: of all."""
    blob, names = Blob(), [op.name for op in q.network.ops]
    kept = names[:names.index(last) + 1] if last else names

    def tap(op, read, y, stored):
        wide, forms = stored
        if op.name not in kept:
            return
        if op.output or op.moves or q.reads_wide(op.name):
            blob.wide(op.name, "fp32" if op.output else q.base, wide)
        for form, codes, scale in forms:
            blob.narrow(op.name, form, codes, scale)

    q.run(picture(0), tap)
    return blob


def main():
    out = arguments(__doc__).parse_args().out / "quantized"
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name, chosen in CASES.items():
        network = load(name)
        for r in chosen:
            recipe = recipes.read(ROOT / "families" / name.split("_")[0] / "recipes" / f"{r}.yaml")
            decided = recipes.decide(recipe, network)
            ranges = quantized.calibrate(network, recipe, map(picture, CALIBRATION))
            stem = out / f"{name}.{r}"
            file = scale_file(network, recipe, decided, ranges, name)
            with open(f"{stem}.scales.json", "w") as f:
                json.dump(file, f)
                f.write("\n")
            blob = record(quantized.Quantized(network, recipe, recipes.Scales(f"{stem}.scales.json")), LAST.get(name))
            with open(f"{stem}.json", "w") as f:
                f.write("[" + ",\n ".join(json.dumps(row) for row in blob.rows) + "]\n")
            save(out / f"{name}.{r}.npy", np.frombuffer(b"".join(blob.bytes), np.uint8))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Fake quantization by a recipe, in PyTorch, float32 sums: what octet's quantized networks are held against. Written from
docs/quantization.md, whose parts the functions name. Alone, it shows for three checkpoints that without a recipe the ops of
quantized_networks.py compute what timm and transformers do, and that its rounding is ml_dtypes'."""
import dataclasses
import pathlib

import numpy as np
import torch

import quantized_formats as formats
import quantized_networks as networks
import quantized_recipe as recipes

INPUT_NAMES = {"attention": ("q", "k", "v"), "add": ("0", "1")}


@dataclasses.dataclass
class Form:
    """How one input of one op is stored and read."""
    numbers: dict
    scale: object = None          # float32: a number, or one a channel
    zero_point: int = 0
    factors: torch.Tensor = None  # of smoothing that could not be folded

    def same(self, other):
        tensor = lambda t: None if t is None else torch.as_tensor(t).flatten().tolist()  # noqa: E731
        kind = lambda f: {k: f.numbers[k] for k in ("format", "granularity", "block", "scale")}  # noqa: E731
        return (kind(self) == kind(other) and self.zero_point == other.zero_point
                and tensor(self.scale) == tensor(other.scale) and tensor(self.factors) == tensor(other.factors))

    def encode(self, y):
        """(codes, scale) of a result."""
        return formats.encode(y if self.factors is None else y * self.factors, self.numbers, self.scale, self.zero_point)

    @property
    def multiplies_codes(self):
        return self.numbers["format"] == "int8" and self.numbers["granularity"] in ("tensor", "row")


def entry_name(op, i):
    return op.name + "." + INPUT_NAMES[op.kind][i] if op.kind in INPUT_NAMES else op.name


def static(numbers):
    return numbers is not None and (numbers["format"] == "nvfp4" or numbers["granularity"] in ("tensor", "channel")
                                    and numbers["format"] not in recipes.WIDE)


class Ranges:
    """What calibration finds: lowest and highest of each input with a static scale (part 3)."""

    def __init__(self):
        self.low, self.high = {}, {}

    def see(self, name, x):
        x = x[torch.isfinite(x)]
        self.low[name] = min(self.low.get(name, np.inf), float(x.min()))
        self.high[name] = max(self.high.get(name, -np.inf), float(x.max()))

    def amax(self, name):
        return max(abs(self.low[name]), abs(self.high[name]))

    def scale(self, name, format):
        if format == "uint8":
            low, high = min(self.low[name], 0.0), max(self.high[name], 0.0)
            s = formats.f32((high - low) / 255) or 1.0
            return s, int(min(max(round(-low / s), 0), 255))
        amax = self.amax(name)
        if format == "nvfp4":
            return formats.f32(amax / (448 * 6)) or 1.0, 0
        return (max(formats.f32(np.float32(amax) / np.float32(formats.LARGEST[format])), formats.SCALE_LEAST) if amax > 0 else 1.0), 0


class Quantized:
    """A network as a recipe makes it. `scales`: of a scale file; `ranges`: of a calibration of our own, where the file has
    no entry. What neither has is an error."""

    def __init__(self, network, recipe, scales=None, ranges=None):
        self.network, self.recipe = network, recipe
        self.base = recipe["base"]
        self.scales, self.ranges = scales or recipes.Scales(), ranges
        self.decided = recipes.decide(recipe, network)
        self.weights = {op.name: (op.weight, op.bias) for op in network.ops}
        self.forms = {}  # (op, input) -> Form, where it is narrow
        self.outliers()
        for op in network.ops:
            for i in range(len(op.inputs)):
                self.add_form(op, i)
        self.smooth()
        self.constants, self.scale_of, self.format_of = {}, {}, {}
        for op in network.ops:
            self.round_constants(op)

    # ---- decisions

    def outliers(self):
        for name, d in self.decided.items():
            rule = d.get("outliers")
            if not rule or rule == "none" or not d["activations"]:
                continue
            e = self.scales.entries[name]
            if e["amax"] <= rule["above"] * e["p9999"]:
                continue
            if rule["action"] == "keep16":
                d["weights"] = d["activations"] = None
            elif rule["action"] == "clip":
                e["scale"] = [formats.f32(np.float32(e["p9999"]) / np.float32(formats.LARGEST[e["format"]]))]
            else:
                d["activations"]["granularity"] = "channel"

    def add_form(self, op, i):
        numbers = self.decided[op.name]["activations"]
        if numbers is None:
            return
        form = Form(numbers)
        if static(numbers):
            form.scale, form.zero_point = self.static_scale(entry_name(op, i), numbers)
        self.forms[op.name, i] = form

    def static_scale(self, name, numbers):
        e = self.scales.entries.get(name)
        if e is None:
            assert self.ranges is not None, f"no scale of {name}"
            return self.ranges.scale(name, numbers["format"])
        if numbers["format"] == "nvfp4":
            return formats.f32(np.float32(e["threshold"]) / np.float32(448 * 6)) or 1.0, 0
        if numbers["granularity"] == "channel":
            return torch.tensor(e["scale"], dtype=torch.float32), e.get("zero_point", 0)
        return formats.f32(e["scale"][0]), e.get("zero_point", 0)

    def smooth(self):
        """Part 5: columns divided by the factors; the producer multiplied where that is exact, else the form has them."""
        wanted = {name: f for name, f in self.scales.smoothing.items() if self.decided[name].get("smoothing", "none") != "none"}
        for op in self.network.ops:
            if op.name in wanted:
                w, b = self.weights[op.name]
                self.weights[op.name] = w / wanted[op.name], b
        for op in self.network.ops:
            readers = self.network.readers(op.name)
            factors = [wanted.get(r.name) for r in readers]
            if not readers or any(f is None for f in factors):
                for r in readers:
                    if r.name in wanted:
                        self.forms[r.name, 0].factors = wanted[r.name]
                continue
            source = self.network.op(op.inputs[2]) if op.kind == "attention" else op
            together = all(torch.equal(f, factors[0]) for f in factors)
            read_wide = any(other.residual == op.name for other in self.network.ops)
            if together and not read_wide and (source.kind == "layer_norm" or source.kind in ("linear", "conv2d")
                                               and source.act in (None, "relu") and source.residual is None):
                w, b = self.weights[source.name]
                column = factors[0].reshape(-1, *[1] * (w.dim() - 1))
                self.weights[source.name] = w * column, None if b is None else b * factors[0]
            else:
                for r in readers:
                    self.forms[r.name, 0].factors = wanted[r.name]

    def round_constants(self, op):
        w, b = self.weights[op.name]
        self.constants[op.name] = [None if c is None else formats.base(c, self.base) for c in op.constants]
        if op.kind not in ("conv2d", "linear"):
            return
        if op.name in self.scales.bias and self.decided[op.name].get("bias_correction"):
            b = self.scales.bias[op.name] + (0 if b is None else b)
        numbers = self.decided[op.name]["weights"]
        self.format_of[op.name] = numbers
        if numbers is None:
            w = formats.base(w, self.base)
        elif op.name in self.scales.rounded and numbers["rounding"] == "compensated":
            s = torch.tensor(self.scales.rounded[op.name]["scale"], dtype=torch.float32)
            self.scale_of[op.name] = s.reshape(-1, *[1] * (w.dim() - 1))
            w = self.scales.rounded_weight(op.name, w.shape)
        else:
            assert numbers["calibrator"] == "max" and numbers["rounding"] == "nearest", f"weights of {op.name}: {numbers}"
            codes, self.scale_of[op.name] = formats.encode_weight(w, numbers)
            w = codes * self.scale_of[op.name]
        self.weights[op.name] = w, b

    # ---- running

    def is_int8_product(self, op):
        n, form = self.format_of.get(op.name), self.forms.get((op.name, 0))
        if n is None or form is None or n["format"] != "int8" or n["granularity"] not in ("tensor", "channel"):
            return False
        rows = op.groups == 1 and (op.kind == "linear" or list(op.weight.shape[1:3]) == [1, 1] and op.stride == 1)
        return form.multiplies_codes and (form.numbers["granularity"] == "tensor" or rows)

    def compute(self, op, read, residual=None, codes=None):
        """One op in float32; of an int8 product `codes` (codes, scale) instead of what it reads."""
        w, b = self.weights[op.name]
        if codes is not None and self.is_int8_product(op):
            s = self.scale_of[op.name]
            total = networks.product(op, codes[0], (w / s).round())  # whole numbers: exact below 2^24
            y = total.double() * (codes[1] * s.flatten()).double() + (0 if b is None else b.double())
            y = y.float() if residual is None else y.float() + residual
            return networks.ACTIVATIONS[op.act](y)
        return networks.compute(op, read, residual, w, b, self.constants[op.name], self.probabilities(op))

    def probabilities(self, op):
        """Part 6."""
        form = self.forms.get((op.name, 0))
        if op.kind != "attention" or form is None:
            return None
        scale = {"e4m3": 2.0 ** -8, "int8": formats.f32(1 / np.float32(127))}.get(form.numbers["format"])
        if scale is None:
            return None
        scale = torch.tensor(scale, dtype=torch.float32)
        return lambda p: formats.element(p * (1 / scale), form.numbers["format"]) * scale

    def wide(self, op, y):
        return y if op is not None and op.output else formats.base(y, self.base)

    def reads_wide(self, name):
        return any(o.residual == name for o in self.network.ops) or any(
            (r.name, r.inputs.index(name)) not in self.forms for r in self.network.readers(name))

    def store(self, op, name, y):
        """(wide numbers, [(form, codes, scale)]) of a result."""
        forms, wide, read_wide = [], self.wide(op, y), self.reads_wide(name)
        for r in self.network.readers(name):
            for i in range(len(r.inputs)):
                form = self.forms.get((r.name, i))
                if r.inputs[i] != name or form is None or any(form.same(f) for f, _, _ in forms):
                    continue
                third = len(forms) + read_wide > 1  # part 4: no room beside two others
                forms.append((form, *form.encode(wide if third or op is not None and op.moves else y)))
        return wide, forms

    def read(self, stored, op, i):
        """(numbers, (codes, scale) of a narrow one) of one input."""
        wide, forms = stored[op.inputs[i]]
        form = self.forms.get((op.name, i))
        if form is None:
            return wide, None
        codes, scale = next((codes, scale) for f, codes, scale in forms if f.same(form))
        return codes * scale, (codes, scale)

    def run(self, x, tap=None):
        """Outputs by name, of pictures [n, 3, h, w]; `tap(op, read, y, stored)` sees every op."""
        stored = {"input": self.store(None, "input", x.permute(0, 2, 3, 1).contiguous())}
        outputs, last = {}, self.last_readers()
        for k, op in enumerate(self.network.ops):
            read = [self.read(stored, op, i) for i in range(len(op.inputs))]
            residual = stored[op.residual][0] if op.residual else None
            y = self.compute(op, [r[0] for r in read], residual, read[0][1])
            stored[op.name] = self.store(op, op.name, y)
            if tap:
                tap(op, [r[0] for r in read], y, stored[op.name])
            if op.output:
                outputs[op.name] = y
            for name in [n for n in stored if last.get(n, -1) <= k and n != op.name]:
                del stored[name]
        return outputs

    def last_readers(self):
        last = {}
        for k, op in enumerate(self.network.ops):
            for name in op.inputs + [op.residual]:
                last[name] = k
        return last


def calibrate(network, recipe, batches):
    """Ranges of every input that `recipe` gives a static scale, from float32 runs."""
    plain = Quantized(network, recipes.read("fp32"))
    decided = recipes.decide(recipe, network)
    ranges = Ranges()

    def tap(op, read, y, stored):
        if static(decided[op.name]["activations"]):
            for i, x in enumerate(read):
                ranges.see(entry_name(op, i), x)

    for x in batches:
        plain.run(x, tap)
    return ranges


def check(shared):
    """The two claims at the head of this file."""
    import ml_dtypes
    x = torch.randn(1 << 20, generator=torch.Generator().manual_seed(1)) * torch.exp2(torch.arange(1 << 20) % 24 - 14)
    for name, kind in (("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)):
        largest = formats.LARGEST[name]
        wanted = np.clip(x.numpy(), -largest, largest).astype(kind).astype(np.float32)
        assert np.array_equal(formats.element(x, name).numpy(), wanted), name
    for name, kind in (("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        assert np.array_equal(formats.base(x, name).numpy(), x.numpy().astype(kind).astype(np.float32)), name
    wanted = np.clip(x.numpy(), -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
    assert np.array_equal(formats.e2m1(x).numpy(), wanted), "e2m1"
    grid = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 0.24999999, 5.0000005])
    assert np.array_equal(formats.e2m1(grid).numpy(), grid.numpy().astype(ml_dtypes.float4_e2m1fn).astype(np.float32))
    print("rounding: as ml_dtypes")
    for directory in sorted((shared / "data" / "checkpoints").iterdir()):
        network = networks.load(directory)
        size = network.model.config.image_size if hasattr(network.model, "config") else (224, 224)
        x = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(2))
        ours = list(Quantized(network, recipes.read("fp32")).run(x).values())
        theirs = network.model(x)
        theirs = [theirs.logits, theirs.pred_boxes] if hasattr(theirs, "logits") else [theirs]
        for a, b in zip(ours, theirs, strict=True):
            off = float((a - b).abs().max() / b.abs().max())
            assert off <= 2e-5, (directory.name, off)
            print(directory.name, "largest difference to the model itself, of its largest output:", f"{off:.2g}")


if __name__ == "__main__":
    from common import arguments
    check(pathlib.Path(arguments(__doc__).parse_args().shared))

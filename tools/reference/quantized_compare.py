# SPDX-License-Identifier: Apache-2.0
"""Holds octet's quantized networks against the reference step by step: octet runs a recipe on one picture, and every op is
computed again by the reference on the numbers that octet's own step read, so that nothing adds up. Of each op: how many
weights differ, and what share of the codes it stores, in each form, and by how many codes at most.

octet's side is the developer's tool `steps` (tools/steps.c). Fails where a form is another than the reference's, a weight
differs, or more than --share of an op's narrow codes do, or one by more than a code."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch

import quantized
import quantized_data as data
import quantized_formats as formats
import quantized_networks as networks
import quantized_recipe as recipes
from common import ROOT, arguments


class Steps:
    """What the tool wrote."""

    def __init__(self, tool, checkpoint, recipe, scales, x, directory):
        np.ascontiguousarray(x[0].permute(1, 2, 0).numpy()).tofile(directory / "input.bin")
        subprocess.run([tool, checkpoint, recipe, scales or "-", directory / "input.bin", directory], check=True)
        self.numbers = np.fromfile(directory / "numbers.bin", np.float32)
        self.constants, self.tensors, self.steps = {}, {}, []
        for line in open(directory / "steps.jsonl"):
            r = json.loads(line)
            if "constant" in r:
                self.constants[r["constant"]] = r
            elif "tensor" in r:
                self.tensors[r["tensor"]] = r
            else:
                self.steps.append(r)

    def array(self, r):
        n = int(np.prod(r["shape"]))
        return torch.from_numpy(self.numbers[r["at"]:r["at"] + n].copy()).reshape(r["shape"])

    def operand(self, name):
        return (self.tensors if name[0] == "t" else self.constants)[int(name[1:])]


def form_text(r):
    return r["format"] if r["format"] in recipes.WIDE else f"{r['format']} {r['granularity']}"


def is_form(r, form):
    """Whether a tensor of octet is in the reference's form."""
    n = form.numbers
    if r["format"] != n["format"] or r["granularity"] != n["granularity"]:
        return False
    if n["granularity"] == "tensor" and form.scale is not None:
        return np.float32(r["scale"]) == np.float32(form.scale) and r["zero_point"] == form.zero_point
    return n["granularity"] != "block" or r["block"] == n["block"]


def element_format(name):
    return {"mxfp8": "e4m3", "nvfp4": "e2m1", "uint8": "int8"}.get(name, name)


def differing(found, codes, scale, name):
    """(share, most) of codes between numbers that octet stored and the reference's codes and scale."""
    if name == "fp32":
        largest = max(float(codes.abs().max()), 1e-30)
        return float(((found - codes).abs() > 1e-4 * largest).double().mean()), 0
    units = found.double() / torch.where(scale > 0, scale, torch.ones_like(scale)).double()
    kind = element_format(name)
    units = units.float() if kind != "int8" else units.round().float()
    apart = (formats.ordinal(units, kind) - formats.ordinal(codes, kind)).abs()
    return float((apart > 0).double().mean()), int(apart.max())


class Comparison:
    def __init__(self, q, steps, share):
        self.q, self.steps, self.share = q, steps, share
        self.wrong, self.worst, self.rows = [], {}, 0

    def wide_name(self, op):
        return "fp32" if op.output else self.q.base

    def check_reads(self, op, tensors):
        for i, r in enumerate(tensors):
            form = self.q.forms.get((op.name, i))
            if form is None and r["format"] not in (self.q.base, "fp32") or form is not None and not is_form(r, form):
                self.wrong.append(f"{op.name}: input {i} is {form_text(r)}, scale {r['scale']}; the reference has "
                                  f"{form and (form.numbers, form.scale)}")

    def weights(self, op, step):
        """How many of octet's weights are others than the reference's."""
        if op.kind not in ("conv2d", "linear"):
            return 0
        w, b = self.q.weights[op.name]
        found = self.steps.array(self.steps.operand(step["inputs"][1]))
        count = int((found.flatten() != w.flatten()).sum())
        if b is not None:
            bias = self.steps.array(self.steps.operand(step["inputs"][2]))
            count += int(((bias - b).abs() > 1e-6 * b.abs().max()).sum())
        return count

    def one(self, op, step):
        operands = [self.steps.operand(n) for n in step["inputs"]]
        tensors = [r for n, r in zip(step["inputs"], operands) if n[0] == "t"]
        numbers = [self.steps.array(r) for r in tensors]
        residual = numbers.pop() if op.residual else None
        self.check_reads(op, tensors[:len(numbers)])
        codes = None
        if self.q.is_int8_product(op):
            form = self.q.forms[op.name, 0]
            scale = (torch.tensor(form.scale) if form.numbers["granularity"] == "tensor"
                     else formats.found_scale("int8", numbers[0].abs().amax(-1, keepdim=True)))
            codes = (numbers[0] / scale).round(), scale
        y = self.q.compute(op, numbers, residual, codes)
        if op.moves:
            y = y.reshape(self.steps.tensors[step["outputs"][0]]["shape"])
        self.outputs(op, step, y, self.weights(op, step))

    def outputs(self, op, step, y, weights):
        wide, forms = self.q.store(op, op.name, y)
        text = []
        for r in (self.steps.tensors[i] for i in step["outputs"]):
            stored = next(((c, s) for f, c, s in forms if is_form(r, f)), None)
            if stored is None and r["format"] in ("fp32", self.q.base):
                stored = (y if r["format"] == "fp32" else wide), torch.ones(())
            if stored is None:
                self.wrong.append(f"{op.name}: stores {form_text(r)}, scale {r['scale']}, which the reference does not")
                continue
            share, most = differing(self.steps.array(r), *stored, r["format"])
            narrow = r["format"] not in recipes.WIDE
            text.append(f"{form_text(r)} {100 * share:.4f}% by {most}")
            kind = form_text(r)
            self.worst[kind] = max(self.worst.get(kind, (0, 0, "")), (share, most, op.name))
            # a rounded probability that falls to the other side moves its sum by more than a last bit
            most_allowed = 1 if self.q.probabilities(op) is None else most
            if narrow and (share > self.share or most > most_allowed):
                self.wrong.append(f"{op.name}: {100 * share:.4f}% of its {kind} codes differ, by up to {most}")
        if weights:
            self.wrong.append(f"{op.name}: {weights} weights differ")
        self.rows += 1
        print(f"{op.name:52} {op.kind:11} weights {weights}  {'; '.join(text)}")

    def quantize(self, step):
        """A step that only quantizes: the codes its reader wants, of the numbers it read."""
        at = f"t{step['outputs'][0]}"
        reader, i = next((r, r["inputs"].index(at)) for r in self.steps.steps if at in r["inputs"])
        form, r = self.q.forms.get((reader["name"], i)), self.steps.tensors[step["outputs"][0]]
        if form is None or not is_form(r, form):
            self.wrong.append(f"{step['name']}: is {form_text(r)}, which {reader['name']} does not want")
            return
        share, most = differing(self.steps.array(r), *form.encode(self.steps.array(self.steps.operand(step["inputs"][0]))), r["format"])
        print(f"{step['name']:52} quantize    {form_text(r)} {100 * share:.4f}% by {most}")
        if most:
            self.wrong.append(f"{step['name']}: {100 * share:.4f}% of its codes differ, by up to {most}")

    def run(self):
        quantize = 0
        for step in self.steps.steps:
            if step["op"] == "quantize":
                quantize += 1
                self.quantize(step)
            elif step["op"] != "reshape":
                self.one(self.q.network.op(step["name"]), step)
        missing = {op.name for op in self.q.network.ops} - {s["name"] for s in self.steps.steps}
        self.wrong += [f"{n}: octet has no such step" for n in sorted(missing)]
        for kind, (share, most, name) in sorted(self.worst.items()):
            print(f"worst of {kind}: {100 * share:.4f}% by {most}, {name}")
        print(f"{self.rows} ops, {quantize} steps that only quantize, {len(self.wrong)} wrong")
        return self.wrong


def main():
    p = arguments(__doc__, checkpoint=dict(required=True, help="name of a checkpoint in the shared data"),
                  recipe=dict(required=True, help="name of the family's recipe, or a YAML file"),
                  scales=dict(type=pathlib.Path, help="octet's scale file"), tool=dict(required=True, help="the program steps"),
                  picture=dict(type=int, default=0, help="which of the judged pictures"), share=dict(type=float, default=0.001))
    a = p.parse_args()
    torch.set_num_threads(1)
    directory = a.shared / "data" / "checkpoints" / a.checkpoint
    network = networks.load(directory)
    torch.set_num_threads(1)
    detects = hasattr(network.model, "config")
    pictures = data.bccd(directory, a.shared, "test") if detects else data.imagenet(directory, a.shared, "val")
    x = pictures.input(pictures.decode(pictures.names[a.picture]))[None]
    path = ROOT / "families" / ("yolos" if detects else a.checkpoint.split("_")[0]) / "recipes" / f"{a.recipe}.yaml"
    recipe = recipes.read(path if path.exists() else a.recipe)
    q = quantized.Quantized(network, recipe, recipes.Scales(a.scales))
    with tempfile.TemporaryDirectory() as d:
        wrong = Comparison(q, Steps(a.tool, directory, a.recipe, a.scales, x, pathlib.Path(d)), a.share).run()
    for w in wrong:
        print("wrong:", w)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

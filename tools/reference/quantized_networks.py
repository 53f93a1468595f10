# SPDX-License-Identifier: Apache-2.0
"""The networks as lists of ops, made of timm's and transformers' own models: what a recipe can name. Pictures are
[n, h, w, c], sequences [n, tokens, c]; a convolution's weight is [o, kh, kw, c / groups]. With no recipe a network computes
what the model it was made of does (quantized.py --check)."""
import dataclasses
import json

import torch

F = torch.nn.functional
SMALLEST = 2.0 ** -126


@dataclasses.dataclass
class Op:
    kind: str                    # conv2d, linear, attention, add, global_pool, layer_norm; concat, slice move numbers
    name: str
    inputs: list                 # names of ops, or "input"
    weight: torch.Tensor = None
    bias: torch.Tensor = None
    residual: str = None         # of a product: what is added before the activation
    act: str = None              # relu, relu6, gelu, sigmoid
    stride: int = 1
    padding: int = 0
    groups: int = 1
    heads: int = 1
    epsilon: float = 0.0
    constants: list = dataclasses.field(default_factory=list)  # add: [summand]; concat: before and behind
    begin: int = 0               # slice: tokens from here ..
    end: int = None              # .. to here
    flat: bool = False           # slice: one token, as [n, c]
    output: bool = False         # of the network: stays float32
    pixels: int = 0              # these three by Network.trace
    channels_in: int = 0
    channels_out: int = 0

    @property
    def moves(self):
        return self.kind in ("concat", "slice")


@dataclasses.dataclass
class Network:
    ops: list
    model: torch.nn.Module

    def trace(self, x):
        """Sizes of every op, from a picture [1, 3, h, w]."""
        values = {"input": x.permute(0, 2, 3, 1).contiguous()}
        for op in self.ops:
            values[op.name] = y = compute(op, [values[i] for i in op.inputs], values.get(op.residual))
            op.channels_in, op.channels_out = values[op.inputs[0]].shape[-1], y.shape[-1]
            op.pixels = int(y.shape[1:-1].numel())
        return self

    def readers(self, name):
        return [op for op in self.ops if name in op.inputs]

    def op(self, name):
        return next(op for op in self.ops if op.name == name)


def gelu(x):
    """x / 2 (1 + erf(x / sqrt(2))), in double: in float32 the sum cancels, and where x is below -2 five digits are lost."""
    return (x.double() * torch.special.erfc(x.double() * -0.5 ** 0.5) / 2).float()


ACTIVATIONS = {None: lambda x: x, "relu": torch.relu, "relu6": lambda x: x.clamp(0, 6), "gelu": gelu, "sigmoid": torch.sigmoid}


def product(op, x, w):
    if op.kind == "linear" or list(w.shape[1:3]) == [1, 1] and op.groups == 1 and op.stride == 1:
        return F.linear(x, w.flatten(1))
    y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), None, op.stride, op.padding, 1, op.groups)
    return y.permute(0, 2, 3, 1).contiguous()


def attention(op, q, k, v, rounding=None):
    """softmax(q k' / sqrt(head)) v; `rounding` of exp(score - the row's largest)."""
    q, k, v = (t.unflatten(-1, (op.heads, -1)).transpose(1, 2) for t in (q, k, v))
    s = q @ k.transpose(2, 3) * (q.shape[-1] ** -0.5)
    p = torch.exp(s - s.amax(-1, keepdim=True))
    total = p.sum(-1, keepdim=True)
    y = (p if rounding is None else rounding(p)) @ v / total
    return y.transpose(1, 2).flatten(2)


def compute(op, x, residual=None, weight=None, bias=None, constants=None, rounding=None):
    """One op in float32 on its inputs as read; what is left out is the op's own."""
    weight, bias = op.weight if weight is None else weight, op.bias if bias is None else bias
    constants = op.constants if constants is None else constants
    if op.kind in ("conv2d", "linear"):
        y = product(op, x[0], weight)
        y = y if bias is None else y + bias
        y = y if residual is None else y + residual
    elif op.kind == "layer_norm":
        y = F.layer_norm(x[0], x[0].shape[-1:], weight, bias, op.epsilon)
    elif op.kind == "attention":
        y = attention(op, *x, rounding)
    elif op.kind == "add":
        y = x[0] + (constants[0] if constants else x[1])
    elif op.kind == "global_pool":
        y = x[0].mean((1, 2))
    elif op.kind == "concat":
        before, behind = (None if c is None else c.expand(len(x[0]), -1, -1) for c in constants)
        y = torch.cat([t for t in (before, x[0].flatten(1, -2), behind) if t is not None], 1)
    else:
        y = x[0][:, op.begin:op.end]
        y = y.flatten(1) if op.flat else y
    return ACTIVATIONS[op.act](y)


def fold(conv, bn):
    """Batch norm into the convolution before it, in double, rounded once; weights below the smallest normal number are 0."""
    d = torch.float64
    s = bn.weight.to(d) / torch.sqrt(bn.running_var.to(d) + bn.eps)
    w = (conv.weight.to(d) * s[:, None, None, None]).float()
    b = ((0 if conv.bias is None else conv.bias.to(d)) - bn.running_mean.to(d)) * s + bn.bias.to(d)
    return torch.where(w.abs() < SMALLEST, torch.zeros_like(w), w).permute(0, 2, 3, 1).contiguous(), b.float()


def convolution(name, x, conv, bn, act, residual=None):
    w, b = fold(conv, bn)
    return Op("conv2d", name, [x], w, b, residual, act, conv.stride[0], conv.padding[0], conv.groups)


def mobilenetv2(model):
    ops = [convolution("conv_stem", "input", model.conv_stem, model.bn1, "relu6")]
    x = "conv_stem"
    for i, stage in enumerate(model.blocks):
        for j, b in enumerate(stage):
            n = f"blocks.{i}.{j}."
            skip = x if b.has_skip else None
            if hasattr(b, "conv_pwl"):
                parts = (("conv_pw", b.bn1, "relu6"), ("conv_dw", b.bn2, "relu6"), ("conv_pwl", b.bn3, None))
            else:
                parts = (("conv_dw", b.bn1, "relu6"), ("conv_pw", b.bn2, None))
            for part, bn, act in parts:
                ops.append(convolution(n + part, x, getattr(b, part), bn, act, None if act else skip))
                x = n + part
    ops.append(convolution("conv_head", x, model.conv_head, model.bn2, "relu6"))
    ops.append(Op("global_pool", "global_pool", ["conv_head"]))
    ops.append(Op("linear", "classifier", ["global_pool"], model.classifier.weight, model.classifier.bias, output=True))
    return ops


def linear(name, x, layer, act=None, residual=None, rows=slice(None), output=False):
    bias = None if layer.bias is None else layer.bias[rows].clone()
    return Op("linear", name, [x], layer.weight[rows].clone(), bias, residual, act, output=output)


def norm(name, x, layer):
    return Op("layer_norm", name, [x], layer.weight, layer.bias, epsilon=layer.eps)


def patches(name, layer):
    w = layer.weight.permute(0, 2, 3, 1).contiguous()
    return Op("conv2d", name, ["input"], w, layer.bias, stride=layer.stride[0])


def vit(model):
    ops = [patches("patch_embed.proj", model.patch_embed.proj),
           Op("concat", "tokens", ["patch_embed.proj"], constants=[model.cls_token, None]),
           Op("add", "pos_drop", ["tokens"], constants=[model.pos_embed])]
    x = "pos_drop"
    for i, b in enumerate(model.blocks):
        n = f"blocks.{i}."
        size = b.attn.qkv.in_features
        ops.append(norm(n + "norm1", x, b.norm1))
        parts = [n + "attn." + part for part in ("query", "key", "value")]
        ops += [linear(part, n + "norm1", b.attn.qkv, rows=slice(k * size, (k + 1) * size)) for k, part in enumerate(parts)]
        ops += [Op("attention", n + "attn.attention", parts, heads=b.attn.num_heads),
                linear(n + "attn.proj", n + "attn.attention", b.attn.proj, residual=x),
                norm(n + "norm2", n + "attn.proj", b.norm2),
                linear(n + "mlp.fc1", n + "norm2", b.mlp.fc1, "gelu"),
                linear(n + "mlp.fc2", n + "mlp.fc1", b.mlp.fc2, residual=n + "attn.proj")]
        x = n + "mlp.fc2"
    return ops + [norm("norm", x, model.norm), Op("slice", "class_token", ["norm"], begin=0, end=1, flat=True),
                  linear("head", "class_token", model.head, output=True)]


def head(name, x, layers):
    ops = []
    for i, layer in enumerate(layers):
        last = i + 1 == len(layers)
        act = "relu" if not last else "sigmoid" if name.startswith("bbox") else None
        ops.append(linear(f"{name}.layers.{i}", x, layer, act, output=last))
        x = ops[-1].name
    return ops


def yolos(model):
    """At the checkpoint's own size: positions as stored."""
    e, config = model.vit.embeddings, model.config
    assert not config.use_mid_position_embeddings
    n = "vit.embeddings."
    ops = [patches(n + "patch_embeddings.projection", e.patch_embeddings.projection),
           Op("concat", n + "tokens", [n + "patch_embeddings.projection"], constants=[e.cls_token, e.detection_tokens]),
           Op("add", "vit.embeddings", [n + "tokens"], constants=[e.position_embeddings])]
    x = "vit.embeddings"
    p = dict(model.named_modules())
    for i in range(config.num_hidden_layers):
        n = f"vit.encoder.layer.{i}."
        ops.append(norm(n + "layernorm_before", x, p[n + "layernorm_before"]))
        parts = [n + "attention.attention." + part for part in ("query", "key", "value")]
        ops += [linear(part, n + "layernorm_before", p[part]) for part in parts]
        a = n + "attention.output.dense"
        ops += [Op("attention", n + "attention.attention", parts, heads=config.num_attention_heads),
                linear(a, n + "attention.attention", p[a], residual=x),
                norm(n + "layernorm_after", a, p[n + "layernorm_after"]),
                linear(n + "intermediate.dense", n + "layernorm_after", p[n + "intermediate.dense"], "gelu"),
                linear(n + "output.dense", n + "intermediate.dense", p[n + "output.dense"], residual=a)]
        x = n + "output.dense"
    ops += [norm("vit.layernorm", x, model.vit.layernorm),
            Op("slice", "vit.detection_tokens", ["vit.layernorm"], begin=-config.num_detection_tokens)]
    return (ops + head("class_labels_classifier", "vit.detection_tokens", model.class_labels_classifier.layers)
            + head("bbox_predictor", "vit.detection_tokens", model.bbox_predictor.layers))


def load(directory):
    """A checkpoint directory of one of the three families."""
    config = json.load(open(directory / "config.json"))
    torch.set_grad_enabled(False)
    if config.get("model_type") == "yolos":
        from transformers import YolosForObjectDetection
        model = YolosForObjectDetection.from_pretrained(directory, dtype=torch.float32).eval()
        size, make = config["image_size"], yolos
    else:
        from classifiers import load as load_timm
        model = load_timm(directory)[0]
        size = config["pretrained_cfg"]["input_size"][1:]
        make = mobilenetv2 if config["architecture"].startswith("mobilenetv2") else vit
    network = Network(make(model), model)
    for op in network.ops:
        op.weight, op.bias = (None if t is None else t.detach().clone() for t in (op.weight, op.bias))
        op.constants = [None if c is None else c.detach().clone() for c in op.constants]
    return network.trace(torch.zeros(1, 3, *size))

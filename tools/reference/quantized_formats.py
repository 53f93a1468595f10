# SPDX-License-Identifier: Apache-2.0
"""Rounding to the formats, over torch tensors whose last axis is the channel, by docs/quantization.md, part 2. An
encoder gives codes as float32 and the scale they are to be multiplied with; `ordinal` makes a difference of codes a number."""
import numpy as np
import torch

LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "int8": 127.0, "uint8": 255.0}
SCALE_LEAST = 2.0 ** -120
CASTS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "fp16": torch.float16, "bf16": torch.bfloat16}


def f32(x):
    """A number as float32 holds it."""
    return float(np.float32(x))


def base(x, name):
    return x if name == "fp32" else x.to(CASTS[name]).float()


def element(y, name):
    """Numbers in units of the scale, rounded to the format's elements; saturating, half to even."""
    if name == "int8":
        return torch.nan_to_num(y, nan=0.0).clamp(-127, 127).round()
    return y.clamp(-LARGEST[name], LARGEST[name]).to(CASTS[name]).float()


def e2m1(y):
    """Steps of 1/2 below 2, of 1 to 4, of 2 to 6; a tie goes to the even code, which is the even multiple."""
    a = y.abs().clamp(max=6)
    return torch.where(a < 2, (a * 2).round() / 2, torch.where(a < 4, a.round(), (a / 2).round() * 2)).copysign(y)


def blocks(y, size):
    """[.., channels] as [.., blocks, size], a short last block filled with zeros."""
    return torch.nn.functional.pad(y, (0, -y.shape[-1] % size)).unflatten(-1, (-1, size))


def whole(codes, scale, channels):
    """Codes [.., blocks, size] and their scales [.., blocks, 1] as [.., channels]."""
    return codes.flatten(-2)[..., :channels], scale.expand_as(codes).flatten(-2)[..., :channels]


def mxfp8(y, rule="floor"):
    b = blocks(y, 32)
    amax = b.abs().amax(-1, keepdim=True)
    mantissa, exponent = torch.frexp(amax)  # amax = mantissa * 2^exponent, mantissa from 1/2
    e = exponent - 1 - 8 + ((mantissa > 0.875).int() if rule == "ceil" else 0)
    scale = torch.exp2(torch.where(amax > 0, e.clamp(-127, 127), -127).double())
    return whole(element((b.double() / scale).float(), "e4m3"), scale.float(), y.shape[-1])


def nvfp4(y, tensor_scale):
    b = blocks(y, 16)
    s = torch.tensor(tensor_scale, dtype=torch.float32)
    scale = (b.abs().amax(-1, keepdim=True) / 6 / s).clamp(max=448).to(torch.float8_e4m3fn).float() * s
    codes = torch.where(scale > 0, e2m1(b / torch.where(scale > 0, scale, torch.ones_like(scale))), torch.zeros_like(b))
    return whole(codes, scale, y.shape[-1])


def found_scale(name, amax):
    """The scale of a row or block: from its largest magnitude."""
    s = (amax / LARGEST[name]).clamp(min=SCALE_LEAST)
    return torch.where(amax > 0, s, torch.ones_like(s))


def encode(y, numbers, scale=None, zero_point=0):
    """(codes, scale): what is stored stands for codes * scale. `numbers` as quantized_recipe.numbers makes them; `scale`:
    float32, one or one a channel, of static scales; of nvfp4 the tensor's. Codes of uint8 are less the zero point."""
    name, granularity = numbers["format"], numbers["granularity"]
    if name in ("fp32", "fp16", "bf16"):
        return base(y, name), torch.ones(())
    if name == "mxfp8":
        return mxfp8(y, numbers["scale"])
    if name == "nvfp4":
        return nvfp4(y, scale)
    if granularity == "row":
        s = found_scale(name, y.abs().amax(-1, keepdim=True))
        return element(y * (1 / s), name), s
    if granularity == "block":
        b = blocks(y, numbers["block"])
        s = found_scale(name, b.abs().amax(-1, keepdim=True))
        return whole(element(b * (1 / s), name), s, y.shape[-1])
    s = torch.as_tensor(scale, dtype=torch.float32)
    if name == "uint8":
        code = torch.nan_to_num(y * (1 / s), nan=0.0).clamp(-255, 255).round() + zero_point
        return code.clamp(0, 255) - zero_point, s
    return element(y * (1 / s), name), s


def weight_scale(w, name, granularity):
    """One, or one for each of the first axis, shaped to multiply w with."""
    axes = tuple(range(1, w.dim())) if granularity == "channel" else tuple(range(w.dim()))
    amax = w.abs().amax(axes, keepdim=True)
    return torch.where(amax > 0, (amax / LARGEST[name]).clamp(min=2.0 ** -149), torch.ones_like(amax))


def encode_weight(w, numbers):
    """(codes, scale) of a weight whose input channel is last, so that blocks run along it."""
    name, rows = numbers["format"], w.flatten(1)
    if name in ("fp32", "fp16", "bf16"):
        return base(w, name), torch.ones(())
    if name == "mxfp8":
        codes, s = mxfp8(rows, numbers["scale"])
    elif name == "nvfp4":
        codes, s = nvfp4(rows, f32(float(w.abs().max()) / (448 * 6)) or 1.0)
    elif numbers["granularity"] == "block":
        b = blocks(rows, numbers["block"])
        s = weight_scale(b.flatten(0, -2), name, "channel").reshape(*b.shape[:-1], 1)
        codes, s = whole(element(b / s, name), s, rows.shape[1])
    else:
        s = weight_scale(w, name, numbers["granularity"])
        return element(w / s, name), s
    return codes.reshape(w.shape), s.reshape(w.shape)


def ordinal(x, name):
    """Codes in the order of what they stand for; x in units of the scale."""
    if name in ("int8", "uint8"):
        return x.round().long()
    if name in ("nvfp4", "e2m1"):
        a = x.abs()
        return (torch.where(a < 2, a * 2, torch.where(a < 4, a + 2, a / 2 + 4)).round() * x.sign()).long()
    kind = CASTS["e4m3" if name == "mxfp8" else name]
    bits = 8 if kind.itemsize == 1 else 16
    raw = x.to(kind).view(torch.int8 if bits == 8 else torch.int16).long() & ((1 << bits) - 1)
    magnitude = raw & ((1 << (bits - 1)) - 1)
    return torch.where(raw >> (bits - 1) > 0, -magnitude, magnitude)

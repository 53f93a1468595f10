# SPDX-License-Identifier: Apache-2.0
"""Trains subjects/mobilenetv2_035 from scratch on drawn pictures, measures it on fresh ones, and writes a hub directory.

    python train_mobilenetv2.py --draw subjects-draw --out DIR [--seconds 240] [--limit S] [--resume DIR] [--fakequant]
"""
import argparse
import copy
import json
import os
import subprocess
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import timm
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file, save_file

import common
from common import say

SIDE, SCALED = 128, 146  # crop 0.875
SIZES = [(144, 144), (176, 144), (160, 160), (144, 168)]


def prepare(raw, truth, size, device):
    """Resizes the shorter side to SCALED and keeps the middle square."""
    pixels = torch.from_numpy(raw).to(device).permute(0, 3, 1, 2).float()
    width, height = size
    wide, high = (SCALED, SCALED * height // width) if width < height else (SCALED * width // height, SCALED)
    pixels = F.interpolate(pixels, (high, wide), mode="bilinear", antialias=True)
    top, left = (high - SCALED) // 2, (wide - SCALED) // 2
    pixels = pixels[:, :, top:top + SCALED, left:left + SCALED].round().clamp(0, 255)
    return pixels.permute(0, 2, 3, 1).to(torch.uint8), torch.from_numpy(truth[:, 1].astype(np.int64))


def augmented(pixels):
    """A random crop and mirror for the whole batch in eight parts."""
    parts = []
    for part in pixels.chunk(8):
        top, left = np.random.randint(0, SCALED - SIDE + 1, 2)
        part = part[:, top:top + SIDE, left:left + SIDE]
        parts.append(part.flip(2) if np.random.rand() < 0.5 else part)
    return common.normalized(torch.cat(parts))


def preprocess(path):
    """As timm's evaluation transform: bilinear to SCALED on the shorter side, middle crop."""
    picture = Image.open(path).convert("RGB")
    w, h = picture.size
    size = (SCALED, int(SCALED * h / w)) if w <= h else (int(SCALED * w / h), SCALED)
    picture = picture.resize(size, Image.BILINEAR)
    left, top = int(round((size[0] - SIDE) / 2.0)), int(round((size[1] - SIDE) / 2.0))
    return np.asarray(picture.crop((left, top, left + SIDE, top + SIDE)))


def jpeg_set(draw, kind, seed, count, folder):
    os.makedirs(folder, exist_ok=True)
    subprocess.run([draw, "--kind", kind, "--seed", str(seed), "--count", str(count), "--jpeg", folder, "--threads",
                    str(os.cpu_count())], check=True)
    names, labels = zip(*[line.rsplit(" ", 1) for line in open(f"{folder}/labels.txt").read().splitlines()])
    with ProcessPoolExecutor() as workers:
        pixels = np.stack(list(workers.map(preprocess, [f"{folder}/{n}" for n in names], chunksize=64)))
    return torch.from_numpy(pixels), torch.tensor([int(x) for x in labels])


@torch.no_grad()
def logits_of(model, pixels, device):
    model.eval()
    return torch.cat([model(common.normalized(part.to(device))).float() for part in pixels.split(500)])


@torch.no_grad()
def folded(model):
    """Convolutions with their batch norms folded in, the norms left as identities (activations kept)."""
    model = copy.deepcopy(model).eval()
    last = None
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            last = module
        elif isinstance(module, torch.nn.BatchNorm2d):
            gain = module.weight / (module.running_var + module.eps).sqrt()
            last.weight.data *= gain.view(-1, 1, 1, 1)
            last.bias = torch.nn.Parameter(module.bias - module.running_mean * gain)
            module.running_mean.zero_(), module.running_var.fill_(1 - module.eps)
            module.weight.data.fill_(1), module.bias.data.zero_()
    return model


def fake_quantize(model, draw, kind, pixels, labels, device):
    calibration, _ = jpeg_set(draw, kind, common.CALIBRATE_SEED, 512, "/tmp/subjects-calibrate-classify")
    plain = folded(model).to(device)
    layers = [m for m in plain.modules() if isinstance(m, torch.nn.Conv2d) and m.kernel_size == (1, 1)]
    reference = logits_of(plain, pixels, device)
    fp8 = common.Fp8(layers)
    logits_of(plain, calibration, device)
    fp8.switch_on()
    tested = logits_of(plain, pixels, device)
    a, b = (reference.argmax(1).cpu() == labels).float(), (tested.argmax(1).cpu() == labels).float()
    change = (b - a).numpy()
    half = 1.96 * change.std() / len(change) ** 0.5
    kl = F.kl_div(tested.log_softmax(1), reference.log_softmax(1), log_target=True, reduction="none").sum(1).mean().item()
    say(f"fp8 by rounding, {len(layers)} pointwise convolutions: top-1 {b.mean():.4f} against {a.mean():.4f}, change {change.mean():+.4f} "
        f"[{change.mean() - half:+.4f}, {change.mean() + half:+.4f}], agreement "
        f"{(reference.argmax(1) == tested.argmax(1)).float().mean().item():.4f}, KL {kl:.5f}")


def write_hub(model, names, out):
    os.makedirs(out, exist_ok=True)
    save_file({k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}, f"{out}/model.safetensors", metadata={"format": "pt"})
    config = {"architecture": "mobilenetv2_035", "num_classes": len(names), "num_features": model.num_features, "global_pool": "avg",
              "label_names": names,
              "pretrained_cfg": {"tag": "", "custom_load": False, "input_size": [3, SIDE, SIDE], "fixed_input_size": False,
                                 "interpolation": "bilinear", "crop_pct": 0.875, "crop_mode": "center", "mean": common.MEAN, "std": common.STD,
                                 "num_classes": len(names), "pool_size": [4, 4], "first_conv": "conv_stem", "classifier": "classifier"}}
    with open(f"{out}/config.json", "w") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


def train(args, model, averaged, device):
    optimizer = common.optimizer_for(model, args.rate, 0.02)
    facts = {"step": 0, "seconds": 0.0, "next": 0, "samples": 0}
    if args.resume:
        facts = common.load_state(args.resume, model, averaged, None, optimizer)
    pool = common.Pool(args.draw, "classify", facts["next"], SIZES, 262144 if device == "cuda" else 256, prepare, device, args.threads,
                       4096 if device == "cuda" else 64)
    clock = common.Clock(args.seconds, args.limit, facts["seconds"])
    step, samples = facts["step"], facts["samples"]
    model.train()
    while not clock.over():
        pixels, labels = pool.sample(args.batch)
        rate = common.rate_at(clock.progress(), step, args.rate, 300)
        for group in optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = F.cross_entropy(model(augmented(pixels)).float(), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        common.average(averaged, model, min(0.999, (step + 1) / (step + 10)))
        step, samples = step + 1, samples + args.batch
        if step % 200 == 0:
            say(f"step {step} seconds {clock.elapsed():.0f} samples {samples} drawn {pool.next} rate {rate:.2e} loss {loss.item():.4f}")
    facts = {"step": step, "seconds": clock.elapsed(), "next": pool.next, "samples": samples}
    pool.stop()
    common.save_state(args.out, model, averaged, None, optimizer, facts)
    say(f"trained: {facts}")
    return clock.progress() >= 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draw", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--resume")
    parser.add_argument("--measure", metavar="HUB", help="only measure a trained model")
    parser.add_argument("--kind", default="classify", choices=("classify", "small"), help="pictures to measure on")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--limit", type=float, default=1e9)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--device", default="cuda", help="cpu: only to try the script")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--test", type=int, default=5000)
    parser.add_argument("--fakequant", action="store_true")
    args = parser.parse_args()
    device = args.device
    torch.manual_seed(17), np.random.seed(17)
    torch.backends.cudnn.benchmark = True
    os.makedirs(args.out, exist_ok=True)
    names = [line.split(" ", 1)[1].replace(" (detect)", "")
             for line in subprocess.run([args.draw, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()]
    make = lambda: timm.create_model("mobilenetv2_035", num_classes=len(names)).to(device, memory_format=torch.channels_last)
    model, averaged = make(), make()
    averaged.load_state_dict(model.state_dict())
    if args.measure:
        averaged.load_state_dict(load_file(f"{args.measure}/model.safetensors"))
    else:
        train(args, model, averaged, device)
        write_hub(averaged, names, f"{args.out}/hub")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    pixels, labels = jpeg_set(args.draw, args.kind, common.TEST_SEED, args.test, "/tmp/subjects-test-classify")
    logits = logits_of(averaged, pixels, device).cpu()
    right = logits.argmax(1) == labels
    top5 = (logits.topk(5, 1).indices == labels[:, None]).any(1)
    say(f"test: {len(labels)} {args.kind} pictures of seed {common.TEST_SEED}: top-1 {right.float().mean():.4f} top-5 {top5.float().mean():.4f} "
        f"cross-entropy {F.cross_entropy(logits, labels):.4f}")
    say("by class: " + ", ".join(f"{n} {right[labels == i].float().mean():.3f}" for i, n in enumerate(names)))
    if args.fakequant:
        fake_quantize(averaged, args.draw, args.kind, pixels, labels, device)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Trains subjects/yolos from scratch on drawn pictures, measures it on fresh ones, and writes a hub directory.

    python train_yolos.py --draw subjects-draw --match match.so --out DIR [--seconds 900] [--limit S] [--resume DIR] [--fakequant]

DETR's loss (classes, boxes, overlap after the cheapest assignment) on the last layers, and, in training only, a head on the third layer's
patch tokens that says for every patch which object lies there: it teaches the lower half of the network to see.
"""
import argparse
import contextlib
import copy
import ctypes
import io
import json
import os
import subprocess
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file
from transformers import YolosConfig, YolosForObjectDetection

import common
from common import say

HEIGHT, WIDTH, PATCH, TOKENS, MOST = 192, 256, 16, 30, 8
SIZES = [(256, 192), (288, 216), (256, 208), (320, 240), (288, 208), (272, 192), (304, 240), (272, 216)]
COCO_FIGURES = ["AP", "AP50", "AP75", "APsmall", "APmedium", "APlarge", "AR1", "AR10", "AR100", "ARsmall", "ARmedium", "ARlarge"]


def prepare(raw, truth, size, device):
    """Resizes to the network's input; truth becomes [n, 8, 5] float: class (-1: none), centre, width and height of 1."""
    pixels = torch.cat([F.interpolate(torch.from_numpy(part).to(device).permute(0, 3, 1, 2).float(), (HEIGHT, WIDTH), mode="bilinear", antialias=True)
                        .round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1) for part in np.array_split(raw, 4)])
    count = torch.from_numpy(truth[:, :1])
    objects = torch.from_numpy(truth[:, 1:].reshape(-1, MOST, 5).astype(np.float32))
    x0, y0, x1, y1 = (objects[..., 1:] / torch.tensor([size[0] * 256.0, size[1] * 256.0] * 2)).unbind(-1)
    label = torch.where(torch.arange(MOST) < count, objects[..., 0], -1.0)
    return pixels, torch.stack([label, (x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0], -1)


def augmented(pixels, truth):
    """Half of the batch mirrored."""
    half = len(pixels) // 2
    mirrored = truth[:half].clone()
    mirrored[..., 1] = 1 - mirrored[..., 1]
    return common.normalized(torch.cat([pixels[:half].flip(2), pixels[half:]])), torch.cat([mirrored, truth[half:]])


def corners(box):
    x, y, w, h = box.unbind(-1)
    return torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1)


def generalized_overlap(a, b):
    """GIoU of boxes given by corners, elementwise."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    common_area = (high - low).clamp(min=0).prod(-1)
    areas = (a[..., 2:] - a[..., :2]).clamp(min=0).prod(-1) + (b[..., 2:] - b[..., :2]).clamp(min=0).prod(-1)
    union = areas - common_area + 1e-7
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1) + 1e-7
    return common_area / union - (hull - union) / hull


class Matcher:
    def __init__(self, path):
        self.library = ctypes.CDLL(os.path.abspath(path))

    @torch.no_grad()
    def __call__(self, logits, boxes, truth):
        """The token of every object, [n, 8] (anything where there is none)."""
        label = truth[..., 0].clamp(min=0).long()
        share = logits.softmax(-1)
        cost = -share.gather(2, label[:, None, :].expand(-1, share.shape[1], -1))
        wanted = truth[:, None, :, 1:]
        cost = cost + 5 * (boxes[:, :, None] - wanted).abs().sum(-1)
        cost = cost - 2 * generalized_overlap(corners(boxes)[:, :, None], corners(wanted))
        cost = np.ascontiguousarray(cost.float().cpu().numpy())
        counts = (truth[..., 0] >= 0).sum(1).to(torch.int32).cpu().numpy()
        chosen = np.zeros((len(cost), MOST), np.int32)
        pointer = lambda array, kind: array.ctypes.data_as(ctypes.POINTER(kind))
        self.library.match(pointer(cost, ctypes.c_float), len(cost), cost.shape[1], MOST, pointer(counts, ctypes.c_int32),
                           pointer(chosen, ctypes.c_int32))
        return torch.from_numpy(chosen).long().to(logits.device)


def box_losses(boxes, wanted, present, total):
    distance = ((boxes - wanted).abs().sum(-1) * present).sum() / total
    overlap = ((1 - generalized_overlap(corners(boxes), corners(wanted))) * present).sum() / total
    return 5 * distance + 2 * overlap


def set_loss(logits, boxes, truth, matcher, none):
    chosen = matcher(logits, boxes, truth)
    present = truth[..., 0] >= 0
    n = len(truth)
    target = torch.full((n, TOKENS + 1), none, device=logits.device)  # objects that are not there write into the last column
    target.scatter_(1, torch.where(present, chosen, TOKENS), truth[..., 0].long())
    weight = torch.ones(none + 1, device=logits.device)
    weight[none] = 0.1
    classes = F.cross_entropy(logits.flatten(0, 1), target[:, :TOKENS].flatten(), weight)
    picked = boxes.gather(1, chosen[..., None].expand(-1, -1, 4))
    return classes + box_losses(picked, truth[..., 1:], present, present.sum().clamp(min=1))


def patch_loss(head, tokens, truth, none):
    """Every patch: the class and box of the smallest object over its middle."""
    rows, columns = HEIGHT // PATCH, WIDTH // PATCH
    y = (torch.arange(rows, device=tokens.device) + 0.5) / rows
    x = (torch.arange(columns, device=tokens.device) + 0.5) / columns
    box = corners(truth[..., 1:])[:, :, None, None]
    inside = (x >= box[..., 0]) & (x <= box[..., 2]) & (y[:, None] >= box[..., 1]) & (y[:, None] <= box[..., 3])
    inside &= (truth[..., 0] >= 0)[:, :, None, None]
    area = torch.where(inside, (truth[..., 3] * truth[..., 4])[:, :, None, None], 9.0).flatten(2)
    least, which = area.min(1)
    present = least < 9
    mine = truth.gather(1, which[..., None].expand(-1, -1, 5))
    target = torch.where(present, mine[..., 0].long(), none)
    out = head(tokens).float()
    weight = torch.ones(none + 1, device=tokens.device)
    weight[none] = 0.3
    classes = F.cross_entropy(out[..., :none + 1].flatten(0, 1), target.flatten(), weight)
    return classes + 0.5 * box_losses(out[..., none + 1:].sigmoid(), mine[..., 1:], present, present.sum().clamp(min=1))


def losses(model, head, pixels, truth, matcher, none):
    out = model.vit(pixels, output_hidden_states=True)
    hidden = out.hidden_states
    loss = patch_loss(head, hidden[3][:, 1:-TOKENS], truth, none)
    last = None
    for layer, share in ((4, 0.3), (5, 0.5), (6, 1.0)):
        tokens = model.vit.layernorm(hidden[layer])[:, -TOKENS:] if layer < 6 else out.last_hidden_state[:, -TOKENS:]
        logits, boxes = model.class_labels_classifier(tokens).float(), model.bbox_predictor(tokens).float().sigmoid()
        last = set_loss(logits, boxes, truth, matcher, none)
        loss = loss + share * last
    return loss, last


def preprocess(path):
    picture = Image.open(path).convert("RGB")
    return np.asarray(picture.resize((WIDTH, HEIGHT), Image.BILINEAR)), picture.size


def jpeg_set(draw, seed, count, folder):
    os.makedirs(folder, exist_ok=True)
    subprocess.run([draw, "--kind", "detect", "--seed", str(seed), "--count", str(count), "--jpeg", folder, "--threads", str(os.cpu_count())],
                   check=True)
    with open(f"{folder}/instances.json") as file:
        names = [image["file_name"] for image in json.load(file)["images"]]
    with ProcessPoolExecutor() as workers:
        pixels, sizes = zip(*workers.map(preprocess, [f"{folder}/{n}" for n in names], chunksize=64))
    return torch.from_numpy(np.stack(pixels)), sizes


@torch.no_grad()
def outputs_of(model, pixels, device):
    model.eval()
    parts = [model(common.normalized(part.to(device)).contiguous()) for part in pixels.split(250)]
    return torch.cat([p.logits.float() for p in parts]).cpu(), torch.cat([p.pred_boxes.float() for p in parts]).cpu()


def coco_of(folder, logits, boxes, sizes):
    """pycocotools' evaluation of every token's best class, threshold 0."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval
    score, label = logits.softmax(-1)[..., :-1].max(-1)
    box = corners(boxes) * torch.tensor([[w, h, w, h] for w, h in sizes], dtype=torch.float32)[:, None]
    box[..., 2:] -= box[..., :2]
    rows = [{"image_id": i + 1, "category_id": int(c) + 1, "bbox": b, "score": float(s)}
            for i in range(len(logits)) for s, c, b in zip(score[i], label[i], box[i].tolist())]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(f"{folder}/instances.json")
        run = COCOeval(truth, truth.loadRes(rows), "bbox")
        run.evaluate(), run.accumulate(), run.summarize()
    return run


def ap_of_part(run, chosen):
    """AP over the pictures at places `chosen` (from 0) of an evaluation already made."""
    part, params = copy.copy(run), copy.copy(run.params)
    places = len(params.imgIds)
    params.imgIds = [params.imgIds[i] for i in chosen]
    rows = np.empty(len(run.evalImgs), object)  # categories x areas x pictures
    rows[:] = run.evalImgs
    part.evalImgs = rows.reshape(-1, places)[:, chosen].reshape(-1).tolist()
    part.params = part._paramsEval = params
    with contextlib.redirect_stdout(io.StringIO()):
        part.accumulate()
    precision = part.eval["precision"][:, :, :, 0, -1]
    return float(precision[precision > -1].mean())


def fake_quantize(model, args, pixels, sizes, folder, device):
    calibration, _ = jpeg_set(args.draw, common.CALIBRATE_SEED, 256, "/tmp/subjects-calibrate-detect")
    layers = [m for m in model.vit.encoder.modules() if isinstance(m, torch.nn.Linear)]
    reference = outputs_of(model, pixels, device)
    fp8 = common.Fp8(layers)
    outputs_of(model, calibration, device)
    fp8.switch_on()
    tested = outputs_of(model, pixels, device)
    plain, rounded = coco_of(folder, *reference, sizes), coco_of(folder, *tested, sizes)
    whole = (float(plain.stats[0]), float(rounded.stats[0]))
    parts = np.array_split(np.arange(len(pixels)), 20)
    change = np.array([ap_of_part(rounded, part) - ap_of_part(plain, part) for part in parts])
    half = 2.093 * change.std(ddof=1) / len(change) ** 0.5
    kl = F.kl_div(tested[0].log_softmax(-1), reference[0].log_softmax(-1), log_target=True, reduction="none").sum(-1).mean().item()
    say(f"fp8 by rounding, {len(layers)} linear layers: AP {whole[1]:.4f} against {whole[0]:.4f}; mean change over 20 parts {change.mean():+.4f} "
        f"[{change.mean() - half:+.4f}, {change.mean() + half:+.4f}], class KL {kl:.5f}")


def write_hub(model, out):
    """Half precision, as it will be measured."""
    os.makedirs(out, exist_ok=True)
    model.config.to_json_file(f"{out}/config.json", use_diff=False)
    save_file({k: v.detach().cpu().half().contiguous() for k, v in model.state_dict().items()}, f"{out}/model.safetensors", metadata={"format": "pt"})
    processor = {"image_processor_type": "YolosImageProcessor", "do_resize": True, "size": {"height": HEIGHT, "width": WIDTH}, "resample": 2,
                 "do_rescale": True, "rescale_factor": 0.00392156862745098, "do_normalize": True, "image_mean": common.MEAN,
                 "image_std": common.STD, "do_pad": False}
    with open(f"{out}/preprocessor_config.json", "w") as file:
        json.dump(processor, file, indent=2)
        file.write("\n")


def train(args, model, averaged, head, none, device):
    trained = torch.nn.ModuleDict({"model": model, "head": head})
    optimizer = common.optimizer_for(trained, args.rate, 0.05)
    facts = {"step": 0, "seconds": 0.0, "next": 0, "samples": 0}
    if args.resume:
        facts = common.load_state(args.resume, model, averaged, head, optimizer)
    pool = common.Pool(args.draw, "detect", facts["next"], SIZES, 131072 if device == "cuda" else 256, prepare, device, args.threads,
                       4096 if device == "cuda" else 64)
    clock, matcher = common.Clock(args.seconds, args.limit, facts["seconds"]), Matcher(args.match)
    step, samples = facts["step"], facts["samples"]
    model.train()
    while not clock.over():
        pixels, truth = augmented(*pool.sample(args.batch))
        rate = common.rate_at(clock.progress(), step, args.rate, 1000)
        for group in optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss, last = losses(model, head, pixels.contiguous(), truth, matcher, none)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
        common.average(averaged, model, min(0.9995, (step + 1) / (step + 10)))
        step, samples = step + 1, samples + args.batch
        if step % args.log == 0:
            say(f"step {step} seconds {clock.elapsed():.0f} samples {samples} drawn {pool.next} rate {rate:.2e} loss {loss.item():.4f} "
                f"last layer {last.item():.4f}")
    facts = {"step": step, "seconds": clock.elapsed(), "next": pool.next, "samples": samples}
    pool.stop()
    common.save_state(args.out, model, averaged, head, optimizer, facts)
    say(f"trained: {facts}")
    return clock.progress() >= 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", required=True)
    parser.add_argument("--match", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--resume")
    parser.add_argument("--measure", metavar="HUB", help="only measure a trained model")
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--limit", type=float, default=1e9)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--device", default="cuda", help="cpu: only to try the script")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--test", type=int, default=5000)
    parser.add_argument("--log", type=int, default=400)
    parser.add_argument("--fakequant", action="store_true")
    args = parser.parse_args()
    device = args.device
    torch.manual_seed(17), np.random.seed(17)
    os.makedirs(args.out, exist_ok=True)
    listed = subprocess.run([args.draw, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()
    names = [line.split(" ", 1)[1].replace(" (detect)", "") for line in listed if line.endswith(" (detect)")]
    config = YolosConfig(hidden_size=192, num_hidden_layers=6, num_attention_heads=3, intermediate_size=768, image_size=[HEIGHT, WIDTH],
                         patch_size=PATCH, num_detection_tokens=TOKENS, use_mid_position_embeddings=False,
                         id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)})
    config.architectures = ["YolosForObjectDetection"]
    model, averaged = YolosForObjectDetection(config).to(device), YolosForObjectDetection(config).to(device)
    for p in (model.vit.embeddings.position_embeddings, model.vit.embeddings.detection_tokens, model.vit.embeddings.cls_token):
        torch.nn.init.normal_(p, std=0.02)
    averaged.load_state_dict(model.state_dict())
    head = torch.nn.Sequential(torch.nn.LayerNorm(192), torch.nn.Linear(192, len(names) + 1 + 4)).to(device)
    torch.backends.cudnn.allow_tf32 = False
    if args.measure:
        averaged, finished = YolosForObjectDetection.from_pretrained(args.measure, dtype=torch.float32).to(device), True
    else:
        finished = train(args, model, averaged, head, len(names), device)
        write_hub(averaged, f"{args.out}/hub")
    if not finished and args.test > 1000:
        args.test = 1000
    averaged.load_state_dict({k: v.half().float() for k, v in averaged.state_dict().items()})
    folder = "/tmp/subjects-test-detect"
    pixels, sizes = jpeg_set(args.draw, common.TEST_SEED, args.test, folder)
    run = coco_of(folder, *outputs_of(averaged, pixels, device), sizes)
    say(f"test: {len(pixels)} pictures of seed {common.TEST_SEED}: " + " ".join(f"{n} {v:.4f}" for n, v in zip(COCO_FIGURES, run.stats)))
    each = run.eval["precision"][:, :, :, 0, -1].mean((0, 1))
    say("AP by class: " + ", ".join(f"{n} {v:.3f}" for n, v in zip(names, each)))
    if args.fakequant and finished:
        fake_quantize(averaged, args, pixels, sizes, folder, device)


if __name__ == "__main__":
    main()

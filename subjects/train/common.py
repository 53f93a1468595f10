# SPDX-License-Identifier: Apache-2.0
"""What both training scripts share: fresh pictures from subjects-draw, averaged weights, saved states."""
import json
import os
import subprocess
import threading
import time

import numpy as np
import torch

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
TRAIN_SEED, CALIBRATE_SEED, TEST_SEED = 1, 2, 3  # the kept pictures have seed 4
TRUTH_WORDS = 41


def draw_raw(draw, kind, seed, first, count, size, path, threads):
    """Pictures first..first+count-1 as uint8 [count, height, width, 3], and their truth as int32 [count, 41]."""
    subprocess.run([draw, "--kind", kind, "--seed", str(seed), "--first", str(first), "--count", str(count), "--size",
                    f"{size[0]}x{size[1]}", "--raw", path, "--threads", str(threads)], check=True)
    pixels = np.fromfile(path, np.uint8).reshape(count, size[1], size[0], 3)
    return pixels, np.fromfile(path + ".truth", "<i4").reshape(count, TRUTH_WORDS)


class Pool:
    """A ring of pictures in the device's memory, refilled by a thread with ones never drawn before."""

    def __init__(self, draw, kind, first, sizes, capacity, prepare, device, threads, chunk=4096):
        self.draw, self.kind, self.next, self.sizes, self.prepare = draw, kind, first, sizes, prepare
        self.capacity, self.chunk, self.device, self.threads = capacity, chunk, device, threads
        self.filled, self.at, self.pixels, self.truth, self.stopping = 0, 0, None, None, False
        self.stream = torch.cuda.Stream() if device == "cuda" else None
        self.fill()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def fill(self):
        size = self.sizes[(self.next // self.chunk) % len(self.sizes)]
        where = "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"
        raw, truth = draw_raw(self.draw, self.kind, TRAIN_SEED, self.next, self.chunk, size, f"{where}/subjects-{self.kind}.raw", self.threads)
        pixels, truth = self.prepare(raw, truth, size, self.device)
        if self.pixels is None:
            self.pixels = torch.zeros((self.capacity, *pixels.shape[1:]), dtype=torch.uint8, device=self.device)
            self.truth = torch.zeros((self.capacity, *truth.shape[1:]), dtype=truth.dtype, device=self.device)
        self.pixels[self.at:self.at + self.chunk] = pixels
        self.truth[self.at:self.at + self.chunk] = truth
        if self.stream:
            torch.cuda.current_stream().synchronize()
        self.at = (self.at + self.chunk) % self.capacity
        self.filled = min(self.filled + self.chunk, self.capacity)
        self.next += self.chunk

    def run(self):
        while not self.stopping:
            if self.stream:
                with torch.cuda.stream(self.stream):
                    self.fill()
            else:
                self.fill()

    def stop(self):
        self.stopping = True
        self.thread.join()

    def sample(self, count):
        whole = self.filled == self.capacity  # then the oldest chunk is being overwritten
        start, span = (self.at + self.chunk, self.capacity - self.chunk) if whole else (0, self.filled)
        chosen = (torch.randint(0, span, (count,), device=self.device) + start) % self.capacity
        return self.pixels[chosen], self.truth[chosen]


def normalized(pixels):
    """uint8 [n, h, w, 3] -> float [n, 3, h, w], channels last in memory."""
    mean = torch.tensor(MEAN, device=pixels.device) * 255
    std = torch.tensor(STD, device=pixels.device) * 255
    return ((pixels.float() - mean) / std).permute(0, 3, 1, 2)


@torch.no_grad()
def average(into, model, keep):
    """into = keep * into + (1 - keep) * model, buffers copied."""
    mine, theirs = list(into.parameters()), list(model.parameters())
    torch._foreach_lerp_(mine, theirs, 1 - keep)
    for a, b in zip(into.buffers(), model.buffers()):
        if a.is_floating_point():
            a.lerp_(b, 1 - keep)
        else:
            a.copy_(b)


def optimizer_for(model, rate, decay):
    """AdamW; no decay on vectors, tokens and positions."""
    wide = [p for n, p in model.named_parameters() if p.ndim > 1 and "token" not in n and "position" not in n]
    other = [p for n, p in model.named_parameters() if not (p.ndim > 1 and "token" not in n and "position" not in n)]
    groups = [{"params": wide, "weight_decay": decay}, {"params": other, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=wide[0].is_cuda)


class Clock:
    """Training goes by the clock: progress runs from 0 to 1 over `total` seconds, across resumed runs."""

    def __init__(self, total, limit, spent=0.0):
        self.total, self.limit, self.spent, self.start = total, limit, spent, time.time()

    def elapsed(self):
        return self.spent + time.time() - self.start

    def progress(self):
        return min(self.elapsed() / self.total, 1.0)

    def over(self):
        return self.progress() >= 1.0 or time.time() - self.start >= self.limit


def rate_at(progress, step, peak, warm):
    """Linear warm-up over `warm` steps, then half a cosine down to 1% of the peak."""
    cosine = 0.5 * (1 + np.cos(np.pi * progress))
    return peak * min(1.0, (step + 1) / warm) * (0.01 + 0.99 * cosine)


def save_state(out, model, averaged, extra, optimizer, facts):
    """In several files, none of them large."""
    torch.save({"model": model.state_dict(), "extra": extra.state_dict() if extra else {}}, f"{out}/state-model.pt")
    torch.save(averaged.state_dict(), f"{out}/state-averaged.pt")
    whole = optimizer.state_dict()
    for part in ("exp_avg", "exp_avg_sq"):
        torch.save({k: v[part] for k, v in whole["state"].items()}, f"{out}/state-{part}.pt")
    steps = {k: float(v["step"]) for k, v in whole["state"].items()}
    with open(f"{out}/state.json", "w") as file:
        json.dump({**facts, "steps": steps}, file)


def load_state(out, model, averaged, extra, optimizer):
    """Reads what save_state wrote; returns its facts."""
    with open(f"{out}/state.json") as file:
        facts = json.load(file)
    both = torch.load(f"{out}/state-model.pt", map_location="cpu")
    model.load_state_dict(both["model"])
    if extra:
        extra.load_state_dict(both["extra"])
    averaged.load_state_dict(torch.load(f"{out}/state-averaged.pt", map_location="cpu"))
    parts = {part: torch.load(f"{out}/state-{part}.pt", map_location="cpu") for part in ("exp_avg", "exp_avg_sq")}
    whole = optimizer.state_dict()
    whole["state"] = {int(k): {"step": torch.tensor(step), "exp_avg": parts["exp_avg"][int(k)], "exp_avg_sq": parts["exp_avg_sq"][int(k)]}
                      for k, step in facts["steps"].items()}
    optimizer.load_state_dict(whole)
    return facts


def say(*words):
    print(*words, flush=True)


# What FP8 would cost, by rounding to it: E4M3 weights with a scale a channel, inputs with one static scale a tensor, both amax / 448.

def rounded(values, scale):
    return (values / scale).clamp(-448, 448).to(torch.float8_e4m3fn).float() * scale


class Fp8:
    """Rounds the inputs and weights of some layers of a model; first sees calibration inputs, then is switched on."""

    def __init__(self, layers):
        self.peaks, self.on, self.layers = [0.0] * len(layers), False, layers
        for i, layer in enumerate(layers):
            layer.register_forward_pre_hook(lambda _, inputs, i=i: self.enter(i, inputs[0]))

    def enter(self, i, values):
        if not self.on:
            self.peaks[i] = max(self.peaks[i], values.abs().max().item())
            return None
        return (rounded(values, self.peaks[i] / 448),)

    def switch_on(self):
        self.on = True
        for layer in self.layers:
            w = layer.weight.data
            scale = w.flatten(1).abs().amax(1).clamp(min=1e-12).div(448).view(-1, *[1] * (w.ndim - 1))
            layer.weight.data = rounded(w, scale)

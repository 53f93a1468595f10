#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times MobileNetV2 in PyTorch on this machine's GPU: eager and torch.compile (its default mode), fp16, channels last.

    tools/gpu_peers.py CHECKPOINT [--batch 1,32,128]

Times are of CUDA graph replays, input and output on the device: medians of 20 groups, interquartile range. The compiled
outputs are held to eager's float32. Needs torch and timm.
"""
import argparse
import json
import os
import statistics

import safetensors.torch
import timm
import torch


def median(work, groups=20, runs=50):
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        out = work()
    times = []
    for _ in range(groups):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(runs):
            graph.replay()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / runs)
    times.sort()
    return statistics.median(times), times[groups * 3 // 4] - times[groups // 4], out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--batch", default="1,32,128")
    arguments = parser.parse_args()
    with open(os.path.join(arguments.checkpoint, "config.json")) as file:
        architecture = json.load(file)["architecture"]
    model = timm.create_model(architecture, pretrained=False)
    model.load_state_dict(safetensors.torch.load_file(os.path.join(arguments.checkpoint, "model.safetensors")))
    model = model.eval().cuda().to(memory_format=torch.channels_last)
    half = timm.create_model(architecture, pretrained=False).eval().cuda()
    half.load_state_dict(model.state_dict())
    half = half.half().to(memory_format=torch.channels_last)
    print(f"torch {torch.__version__}, timm {timm.__version__}, {torch.cuda.get_device_name()}")
    torch.manual_seed(0)
    with torch.inference_mode():
        for batch in (int(b) for b in arguments.batch.split(",")):
            x = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
            right, y = model(x), x.half()
            torch._dynamo.reset()
            compiled = torch.compile(half)
            for name, work in (("eager", half), ("torch.compile", compiled)):
                time, spread, out = median(lambda work=work: work(y))
                error = (out.float() - right).abs().max() / right.abs().max()
                print(f"{name:14} fp16 batch {batch:4}: {time:.4f} ms, interquartile {spread:.4f}, "
                      f"largest difference from float32 {error:.2e} of the largest logit")


main()

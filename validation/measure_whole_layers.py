#!/usr/bin/env python3
"""A whole MoE layer of plain PyTorch on one card: eager, as a CUDA graph, and with its backward pass.

Writes whole_layers_extra.csv (medians, columns as whole_layers.csv, and the spread of the host) and
whole_layers_kernels.csv (median time of every kernel of a layer, forward and backward).

    python3 validation/measure_whole_layers.py OUT_FOLDER
"""
import csv
import statistics
import sys
import time
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

# hidden, FFN, experts, top-k
MODELS = {
    "mixtral-8x7b": (4096, 14336, 8, 2),
    "olmoe-1b-7b": (2048, 1024, 64, 8),
    "deepseek-v3-ep8": (7168, 2048, 32, 8),
    "qwen3-30b-a3b": (2048, 768, 128, 8),
    "phi-3.5-moe": (4096, 6400, 16, 2),
    "deepseek-v2-lite": (2048, 1408, 64, 6),
}
DEVICE = "cuda"


class Layer:
    def __init__(self, hidden, inner, experts, top_k, tokens):
        def made(*shape):
            return (torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16) * 0.02).requires_grad_()

        self.experts, self.top_k, self.inner = experts, top_k, inner
        self.router = made(hidden, experts)
        self.up = made(experts, hidden, 2 * inner)
        self.down = made(experts, inner, hidden)
        self.x = torch.randn(tokens, hidden, device=DEVICE, dtype=torch.bfloat16).requires_grad_()

    def forward(self):
        x, k = self.x, self.top_k
        logits = x @ self.router
        weights, chosen = torch.softmax(logits.float(), dim=-1).topk(k, dim=-1)
        flat = chosen.reshape(-1)
        order = torch.argsort(flat, stable=True)
        counts = torch.zeros(self.experts, device=DEVICE, dtype=torch.int32)
        counts = counts.scatter_add(0, flat, torch.ones_like(flat, dtype=torch.int32))
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        token = order // k
        rows = x.index_select(0, token)
        both = torch._grouped_mm(rows, self.up, offs=ends)
        middle = F.silu(both[:, : self.inner]) * both[:, self.inner :]
        out = torch._grouped_mm(middle, self.down, offs=ends)
        out = out * weights.reshape(-1).index_select(0, order).unsqueeze(1).to(out.dtype)
        return torch.zeros_like(x).index_add(0, token, out), counts

    def both(self):
        y, _ = self.forward()
        y.backward(y.detach())
        for p in (self.x, self.router, self.up, self.down):
            p.grad = None


def timed(call, repeat):
    times = []
    for _ in range(repeat):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return statistics.median(times)


def issued(call, repeat):
    """Host time of a call while the card has nothing to wait for."""
    times = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def kernels(call, repeat):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as trace:
        for _ in range(repeat):
            call()
        torch.cuda.synchronize()
    found = defaultdict(list)
    for event in trace.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and event.device_time > 0:
            found[event.name].append(event.device_time)
    return {name: (len(t) / repeat, statistics.median(t), sum(t) / repeat) for name, t in found.items()}


def main():
    out = sys.argv[1]
    rows, parts = [], []
    for model, shape in MODELS.items():
        for tokens in (64, 256, 1024, 2048, 4096, 8192, 16384):
            layer = Layer(*shape, tokens)
            repeat = 30 if tokens <= 2048 else 12
            with torch.no_grad():
                for _ in range(5):
                    counts = layer.forward()[1]
                max_rows = int(counts.max())
                eager = timed(layer.forward, repeat)
                host = issued(layer.forward, repeat)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    layer.forward()
                replay = timed(graph.replay, repeat)
                forward = kernels(layer.forward, 5)
            for _ in range(3):
                layer.both()
            both = timed(layer.both, repeat)
            host_both = issued(layer.both, repeat)
            with_backward = kernels(layer.both, 5)
            rows.append([model, tokens, max_rows, eager, replay, both, host, host_both])
            print(*rows[-1], flush=True)
            for name, found in (("forward", forward), ("both", with_backward)):
                for kernel, (calls, median, total) in found.items():
                    parts.append([model, tokens, name, calls, median, total, kernel[:160]])
            del layer, graph
            torch.cuda.empty_cache()

    def write(name, head, lines):
        with open(f"{out}/{name}", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(head)
            for line in lines:
                writer.writerow([f"{v:.1f}" if isinstance(v, float) else v for v in line])

    write("whole_layers_extra.csv",
          ["model", "tokens", "max_rows", "eager_us", "graph_us", "eager_forward_backward_us",
           "host_us", "host_forward_backward_us"], rows)
    write("whole_layers_kernels.csv",
          ["model", "tokens", "pass", "calls", "median_us", "us", "kernel"], parts)


if __name__ == "__main__":
    main()

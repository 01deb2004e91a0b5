#!/usr/bin/env python3
"""Attention blocks of transformers on one GPU: residual add, norm, projections, causal attention,
output projection, residual add, norm; bf16, without rope. Prints CSV.

    python3 validation/measure_blocks.py > MEASURED.csv

Needs PyTorch with CUDA. A CUDA graph of several blocks one after the other, each with weights of
its own, so that they come from memory; microseconds of one block, median of replays.
"""
import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

# name, hidden, heads, kv_heads, head_dim
MODELS = [("mixtral-8x7b", 4096, 32, 8, 128), ("qwen2-moe-2.7b", 2048, 16, 16, 128),
          ("qwen3-235b-a22b", 4096, 64, 4, 128), ("mixtral-8x22b", 6144, 48, 8, 128)]
TOKENS = [256, 512, 1024, 2048, 4096, 8192]
BLOCKS, REPLAYS = 8, 30


def block(x, residual, weights, shape):
    hidden, heads, kv_heads, dim = shape
    norm1, qkv, out, norm2 = weights
    tokens = x.shape[0]
    residual = residual + x
    y = F.rms_norm(residual, (hidden,), norm1)
    y = y @ qkv
    q, k, v = y.split([heads * dim, kv_heads * dim, kv_heads * dim], dim=1)
    q = q.view(1, tokens, heads, dim).transpose(1, 2)
    k = k.view(1, tokens, kv_heads, dim).transpose(1, 2)
    v = v.view(1, tokens, kv_heads, dim).transpose(1, 2)
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != kv_heads)
    y = a.transpose(1, 2).reshape(tokens, heads * dim) @ out
    residual = residual + y
    return F.rms_norm(residual, (hidden,), norm2), residual


def measure(shape, tokens):
    hidden, heads, kv_heads, dim = shape
    make = lambda *size: torch.randn(*size, device="cuda", dtype=torch.bfloat16) / 64
    weights = [(make(hidden), make(hidden, (heads + 2 * kv_heads) * dim), make(heads * dim, hidden),
                make(hidden)) for _ in range(BLOCKS)]
    x, residual = make(tokens, hidden), make(tokens, hidden)

    def run():
        y, r = x, residual
        for one in weights:
            y, r = block(y, r, one, shape)
        return y

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times = []
    for _ in range(REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / BLOCKS)
    return statistics.median(times)


def main():
    print("model,tokens,us")
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
        for name, *shape in MODELS:
            for tokens in TOKENS:
                print(f"{name},{tokens},{measure(shape, tokens):.2f}", flush=True)


main()

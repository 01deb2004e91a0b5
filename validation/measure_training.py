#!/usr/bin/env python3
"""Measures what training adds, and long attention, on the GPU at hand: the rows of
h200/training_ops_again.csv and h200/long_attention_again.csv.

    python3 validation/measure_training.py training > TRAINING.csv
    python3 validation/measure_training.py attention > ATTENTION.csv

Needs PyTorch with CUDA. `us` is the median of 20 calls, each between two CUDA events and waited
for, from eager PyTorch; the accumulation is replayed in a CUDA graph.
"""
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

MILLIONS = (1, 2, 5, 10, 20, 30, 50, 100, 200, 500, 1000)
LOGITS = ((512, 32000), (2048, 32000), (4096, 32000), (8192, 32000), (4096, 50304),
          (2048, 102400), (2048, 128256), (4096, 128256), (4096, 151936))
ATTENTION = ((1, 32, 8, 8192, 128), (1, 32, 8, 16384, 128), (4, 48, 8, 8192, 128),
             (2, 64, 4, 16384, 128), (1, 32, 32, 12288, 128), (2, 16, 16, 16384, 64),
             (1, 8, 8, 16384, 128), (8, 32, 8, 8192, 128))


def timed(call, calls=20):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    time.sleep(0.1)
    times = []
    for _ in range(calls):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return round(statistics.median(times), 1)


def replayed(call):
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return timed(graph.replay)


def training():
    print("op,elements,us,rows")
    for millions in MILLIONS:
        elements = millions * 10**6
        weight = torch.randn(elements, device="cuda", requires_grad=True)
        weight.grad = torch.randn(elements, device="cuda")
        print(f"adamw_fp32,{elements},{timed(torch.optim.AdamW([weight], fused=True).step)},")
        weight.grad = None
        total, part = weight.detach(), torch.randn(elements, device="cuda").bfloat16()
        print(f"add_bf16_to_fp32,{elements},{replayed(lambda: total.add_(part))},")
        del weight, total, part
        torch.cuda.empty_cache()
    for rows, width in LOGITS:
        logits = torch.randn(rows, width, device="cuda", requires_grad=True)
        wanted = torch.randint(0, width, (rows,), device="cuda")

        def loss():
            logits.grad = None
            F.cross_entropy(logits, wanted).backward()

        print(f"cross_entropy_fp32_fwd_bwd,{rows * width},{timed(loss)},{rows}")


def attention():
    print("op,batch,heads,kv_heads,seq,head_dim,fwd_us,fwd_bwd_us")
    for shape in ATTENTION:
        batch, heads, kv_heads, seq, dim = shape
        q, k, v = (torch.randn(batch, h, seq, dim, device="cuda", dtype=torch.bfloat16,
                               requires_grad=True) for h in (heads, kv_heads, kv_heads))
        ones = torch.ones_like(q)
        forward = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                         enable_gqa=heads != kv_heads)
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            with torch.no_grad():
                alone = timed(forward)
            print(",".join(map(str, ("attention_cudnn", *shape, alone,
                                     timed(lambda: forward().backward(ones))))))


if __name__ == "__main__":
    {"training": training, "attention": attention}[sys.argv[1]]()

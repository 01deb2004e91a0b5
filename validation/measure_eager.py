#!/usr/bin/env python3
"""What an eager framework's host costs: operators issued one after the other, and the steps of a
MoE layer in the order in which an all-to-all dispatcher takes them.

    python3 validation/measure_eager.py > MEASURED.csv

h200/eager_host.csv holds five runs of it: the host's speed varies that much.

Needs PyTorch with CUDA and NCCL. `issue`: microseconds of the host per operator when many small ones
are issued without waiting; none of them keeps the card busy for long. `layer`: one forward pass of a
layer on a process group of one GPU, so that every collective is called but moves nothing, waited for
at its end; `before` is the part up to and including the copy of counts to the host, `after` the rest.
Sizes are small (hidden 256), so the host decides. Medians.
"""
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

HIDDEN, INNER = 256, 512
REPEATS, PASSES = 200, 50
device = torch.device("cuda")


def wait():
    torch.cuda.synchronize()


def issue_time(call):
    for _ in range(20):
        call()
    times = []
    for _ in range(9):
        wait()
        begin = time.perf_counter()
        for _ in range(REPEATS):
            call()
        times.append((time.perf_counter() - begin) / REPEATS)
    wait()
    return 1e6 * statistics.median(times)


def operators():
    x = torch.randn(128, HIDDEN, device=device, dtype=torch.bfloat16)
    w = torch.randn(HIDDEN, HIDDEN, device=device, dtype=torch.bfloat16)
    logits = torch.randn(128, 8, device=device)
    index = torch.randint(0, 128, (256,), device=device)
    wide = index.unsqueeze(1).expand(-1, HIDDEN)
    rows = torch.randn(256, HIDDEN, device=device, dtype=torch.bfloat16)
    out = torch.zeros_like(x)
    counts, gathered = torch.zeros(8, device=device, dtype=torch.int64), torch.zeros(
        8, device=device, dtype=torch.int64)
    received = torch.empty_like(rows)
    return {
        "mm": lambda: x @ w,
        "multiply": lambda: x * x,
        "silu": lambda: F.silu(x),
        "softmax": lambda: torch.softmax(logits, 1),
        "topk": lambda: torch.topk(logits, 2, dim=1),
        "sum": lambda: logits.sum(0),
        "zeros": lambda: torch.zeros_like(x),
        "index_select": lambda: x.index_select(0, index),
        "scatter_add": lambda: out.scatter_add_(0, wide, rows),
        "all_gather": lambda: dist.all_gather_into_tensor(gathered, counts),
        "all_to_all": lambda: dist.all_to_all_single(received, rows),
    }


def layer(x, gate, up, down, experts, top_k):
    tokens = x.shape[0]
    logits = (x @ gate).float()
    top, chosen = torch.topk(logits, top_k, dim=1)
    probs = torch.zeros_like(logits).scatter(1, chosen, torch.softmax(top, 1))
    routed = torch.zeros_like(logits, dtype=torch.bool).scatter(1, chosen, True)
    counts = routed.sum(0)
    gathered = torch.empty_like(counts)
    dist.all_gather_into_tensor(gathered, counts)
    to_send, to_take = counts.reshape(1, -1).sum(1), gathered.reshape(1, -1).sum(1)
    splits = [to_send.to("cpu", non_blocking=True), to_take.to("cpu", non_blocking=True)]
    torch.cuda.current_stream().synchronize()
    sent, taken = splits[0].tolist(), splits[1].tolist()
    known = time.perf_counter()

    by_expert = routed.t().contiguous()
    order = torch.arange(tokens, device=device).unsqueeze(0).expand(experts, -1)
    order = order.masked_select(by_expert)
    permuted = x.index_select(0, order)
    weights = probs.t().contiguous().masked_select(by_expert)
    rows = torch.empty(sum(taken), HIDDEN, device=device, dtype=x.dtype)
    dist.all_to_all_single(rows, permuted, taken, sent)
    row_weights = torch.empty(sum(taken), device=device)
    dist.all_to_all_single(row_weights, weights, taken, sent)
    inner = rows @ up
    half = inner.shape[1] // 2
    inner = F.silu(inner[:, :half]) * inner[:, half:]
    results = inner @ down
    back = torch.empty_like(permuted)
    dist.all_to_all_single(back, results, sent, taken)
    back = back * weights.unsqueeze(1).to(back.dtype)
    out = torch.zeros_like(x)
    out.scatter_add_(0, order.unsqueeze(1).expand(-1, HIDDEN), back)
    return known


def layer_times(tokens, experts, top_k):
    x = torch.randn(tokens, HIDDEN, device=device, dtype=torch.bfloat16)
    gate = torch.randn(HIDDEN, experts, device=device, dtype=torch.bfloat16)
    up = torch.randn(HIDDEN, 2 * INNER, device=device, dtype=torch.bfloat16)
    down = torch.randn(INNER, HIDDEN, device=device, dtype=torch.bfloat16)
    before, after = [], []
    for turn in range(PASSES + 10):
        wait()
        begin = time.perf_counter()
        known = layer(x, gate, up, down, experts, top_k)
        wait()
        end = time.perf_counter()
        if turn >= 10:
            before.append(1e6 * (known - begin))
            after.append(1e6 * (end - known))
    return statistics.median(before), statistics.median(after)


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("nccl", rank=0, world_size=1)
    print("what,name,us")
    for name, call in operators().items():
        print(f"issue,{name},{issue_time(call):.1f}")
    for tokens in (16, 128, 512):
        before, after = layer_times(tokens, 8, 2)
        print(f"layer,before {tokens} tokens,{before:.1f}")
        print(f"layer,after {tokens} tokens,{after:.1f}")
    dist.destroy_process_group()


main()

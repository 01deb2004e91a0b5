#!/usr/bin/env python3
"""Measures the operators of a CSV (header of h200/ops.csv) on the GPU at hand.

    python3 validation/measure_ops.py SHAPES.csv > MEASURED.csv             as h200/ops_extra.csv
    python3 validation/measure_ops.py SHAPES.csv --chained > MEASURED.csv   as h200/ops_chained.csv

Needs PyTorch with CUDA. Every operator is captured alone in a CUDA graph; `us` is the median of
timed replays, each between two CUDA events, each waited for before the next. Buffers are not
rotated, so what fits the L2 stays warm from the previous replay. The card rests before every
shape, so that one shape does not inherit the lowered clock of the one before.

A short replay lasts as long as the host needs to send it off, which hides the kernels. With
--chained a graph holds the operator 20 times and `us` is a 20th of its time: kernels and the gaps
between them, whatever the host does. Meant for operators under about 60 us: there is no rest.

Inputs are normal random numbers (zeros would draw less power and run faster). The rows per group
of a grouped GEMM are drawn with probability proportional to (i+1)^-skew for group i; where the
shape gives max_rows, draws are repeated until the fullest group comes near it.
gather_rows reads from a table of rows/8 rows, as a top-8 dispatch does.
"""
import csv
import statistics
import sys
import time

import torch

HEADER = ["op", "groups", "rows", "max_rows", "k", "n", "skew", "us"]
REST_S = 0.1
WARM_UP = 3
REPLAYS = 20
CHAIN = 20
CHAIN_REPLAYS = 9
pool = {}


def values(name, count):
    """A slice of a named bf16 buffer full of random values; it only ever grows."""
    held = pool.get(name)
    if held is None or held.numel() < count:
        pool.pop(name, None)
        del held
        torch.cuda.empty_cache()
        held = torch.empty(count, device="cuda", dtype=torch.bfloat16)
        for start in range(0, count, 1 << 28):
            held[start : start + (1 << 28)].normal_()
        pool[name] = held
    return held[:count]


def draw_rows(groups, rows, skew, max_rows, generator):
    weights = torch.arange(1, groups + 1, dtype=torch.float64) ** (-skew)
    best = None
    for _ in range(60 if max_rows else 1):
        ids = torch.multinomial(weights, rows, replacement=True, generator=generator)
        counts = torch.bincount(ids, minlength=groups)
        if best is None or abs(int(counts.max()) - max_rows) < abs(int(best.max()) - max_rows):
            best = counts
        if int(best.max()) == max_rows:
            break
    return best


def operator(shape, generator):
    """The operator as a function without arguments; sets shape['max_rows']."""
    op, groups, rows, k, n = (shape[key] for key in ("op", "groups", "rows", "k", "n"))
    if op == "gemm":
        a, w = values("a", rows * k).view(rows, k), values("w", k * n).view(k, n)
        return lambda: torch.mm(a, w)
    if op == "grouped_gemm":
        counts = draw_rows(groups, rows, shape["skew"], shape["max_rows"], generator)
        shape["max_rows"] = int(counts.max())
        a, w = values("a", rows * k).view(rows, k), values("w", groups * k * n).view(groups, k, n)
        ends = torch.cumsum(counts, 0).to(device="cuda", dtype=torch.int32)
        return lambda: torch._grouped_mm(a, w, offs=ends)
    if op == "gather_rows":
        table = max(1, rows // 8)
        x = values("a", table * k).view(table, k)
        index = torch.randint(0, table, (rows,), device="cuda")
        return lambda: x.index_select(0, index)
    if op == "sum8_rows":
        x = values("a", rows * k).view(rows // 8, 8, k)
        return lambda: x.sum(1)
    if op == "argsort":
        keys = torch.randint(0, groups, (rows,), device="cuda")
        return lambda: torch.argsort(keys)
    raise SystemExit(f"unknown operator {op}")


def capture(function):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            function()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def replay_us(graph, rest, replays):
    """Median time of one replay; the replays before the timed ones warm L2 and clocks."""
    torch.cuda.synchronize()
    time.sleep(rest)
    for _ in range(WARM_UP):
        graph.replay()
    torch.cuda.synchronize()
    times = []
    for _ in range(replays):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def read_shapes(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            shape = {key: int(row[key] or 0) for key in ("groups", "rows", "max_rows", "k", "n")}
            shape["op"], shape["skew"] = row["op"], float(row["skew"] or 0)
            yield shape


def measure_us(function, chained):
    if not chained:
        return replay_us(capture(function), REST_S, REPLAYS)

    def chain():
        for _ in range(CHAIN):
            function()

    return replay_us(capture(chain), 0, CHAIN_REPLAYS) / CHAIN


def main():
    arguments = [a for a in sys.argv[1:] if a != "--chained"]
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    print(",".join(HEADER))
    for shape in read_shapes(arguments[0]):
        us = measure_us(operator(shape, generator), "--chained" in sys.argv)
        skew = shape["skew"] if shape["op"] == "grouped_gemm" else ""
        max_rows = shape["max_rows"] or shape["rows"]
        fields = [shape["op"], shape["groups"], shape["rows"], max_rows, shape["k"], shape["n"]]
        print(",".join(map(str, fields + [skew, f"{us:.2f}"])), flush=True)


if __name__ == "__main__":
    main()

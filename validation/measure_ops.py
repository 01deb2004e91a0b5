#!/usr/bin/env python3
"""Measures the operators of a CSV (header of h200/ops.csv) on the GPU at hand.

    python3 validation/measure_ops.py SHAPES.csv > MEASURED.csv
    python3 validation/measure_ops.py SHAPES.csv PASSES > MEASURED.csv

Needs PyTorch with CUDA. Every operator is captured alone in a CUDA graph; `us` is the median of
timed replays, each between two CUDA events, each waited for before the next. Buffers are not
rotated, so what fits the L2 stays warm from the previous replay. The card rests before every
shape, so that one shape does not inherit the lowered clock of the one before.

The host sends off replays slower in some stretches of time, which short operators then show. With
PASSES all shapes are measured that many times, each pass in another order; `us` is then the median
over the passes, and a stretch spoils at most one of them per shape.

Inputs are normal random numbers (zeros would draw less power and run faster). The rows per group
of a grouped GEMM are drawn with probability proportional to (i+1)^-skew for group i; where the
shape gives max_rows, draws are repeated until the fullest group comes near it.
gather_rows reads from a table of rows/8 rows, as a top-8 dispatch does.
"""
import csv
import random
import statistics
import sys
import time

import torch

HEADER = ["op", "groups", "rows", "max_rows", "k", "n", "skew", "us"]
REST_S = 0.1  # per shape, shared by its passes
WARM_UP = 3
REPLAYS = 20
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


def replay_us(graph, rest=REST_S, replays=REPLAYS):
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


def measure(shapes, generator, rest):
    """(shape with its max_rows, median us) of each shape, in the order given."""
    for shape in shapes:
        shape = dict(shape)
        graph = capture(operator(shape, generator))
        yield shape, replay_us(graph, rest)


def print_row(shape, us):
    skew = shape["skew"] if shape["op"] == "grouped_gemm" else ""
    max_rows = shape["max_rows"] or shape["rows"]
    fields = [shape["op"], shape["groups"], shape["rows"], max_rows, shape["k"], shape["n"], skew]
    print(",".join(map(str, [*fields, f"{us:.2f}"])), flush=True)


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    passes = int(sys.argv[2]) if len(sys.argv) == 3 else 1
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    shapes = list(read_shapes(sys.argv[1]))
    print(",".join(HEADER))
    if passes == 1:
        for shape, us in measure(shapes, generator, REST_S):
            print_row(shape, us)
        return
    times = {}
    for seed in range(passes):
        order = random.Random(seed).sample(range(len(shapes)), len(shapes))
        measured = measure([shapes[i] for i in order], generator, REST_S / passes)
        for i, (_, us) in zip(order, measured):
            times.setdefault(i, []).append(us)
    for i, shape in enumerate(shapes):
        print_row(shape, statistics.median(times[i]))


if __name__ == "__main__":
    main()

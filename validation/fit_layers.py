#!/usr/bin/env python3
"""The model of a transformer layer's operators (src/sim/gpu) in Python, its fit and its errors.

    python3 validation/fit_layers.py            errors of the constants in presets/gpus/h200-sxm.toml
    python3 validation/fit_layers.py --fit      fits them to every other row of each operator
    python3 validation/fit_layers.py --fit --swap   the halves exchanged: a check, nothing shipped
    python3 validation/fit_layers.py --golden   writes h200/layers_golden.csv for the C++ test

Rows: h200/layers.csv. Of each operator the first, third, fifth … row is fitted, the others are held
out. Fit and cut of large errors are those of fit_ops.py, whose constants stay as they are. The
constants of routers, and those of eager phases, are not fitted here (docs/gpu-model.md).
"""
import csv
import heapq
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import fit_ops
from fit_ops import l2_hit, powered, read_preset, waves

DATA = Path(__file__).parent / "h200" / "layers.csv"
GOLDEN = Path(__file__).parent / "h200" / "layers_golden.csv"
fit_ops.UNITS["KB"] = 1e3
EAGER_LAUNCH = 42e-6
BACKWARD_STEPS, SHARED_STEPS = 2.8, 1.5
TILE = 128
NORM_ROWS = 16
IN_REGISTERS = 2048


# --- attention ------------------------------------------------------------------------------------
def spread(head, heads, sms):
    free = [0.0] * sms
    for block in head * heads:
        heapq.heapreplace(free, free[0] + block)
    return max(free)


def attention_blocks(g, row, names, flops, backward=False):
    tensor, block, softmax = names
    peak = (g[tensor] if tensor else 1.0) * g["bf16_flops"] / g["sms"]
    score = flops / peak + 1 / g[softmax]
    steps = -(-row["seq"] // TILE)
    head = [g[block] + (i + 1) * TILE * TILE * score for i in range(steps)]
    if backward:
        head.reverse()  # the first keys are seen by all queries
    return spread(head, row["batch"] * row["heads"], int(g["sms"]))


def attention(g, row):
    cudnn = row["op"].endswith("cudnn")
    prefix = "attention" if cudnn else "flash2"
    tensor = None if cudnn else "flash2_tensor"
    dim, hbm = row["head_dim"], g["hbm_efficiency"] * g["hbm_bandwidth"]
    queries = 2.0 * dim * row["batch"] * row["heads"] * row["seq"]
    if "fwd" in row["op"]:
        moved = 2 * (queries + queries * row["kv_heads"] / row["heads"])
        names = (tensor, prefix + "_block", prefix + "_softmax")
        blocks = attention_blocks(g, row, names, 4 * dim)
        return replayed(g, g["attention_start"] + max(blocks, (1 - l2_hit(g, moved)) * moved / hbm))
    names = (tensor, prefix + "_block", prefix + "_back_softmax")
    blocks = attention_blocks(g, row, names, 10 * dim, backward=True)
    steps = BACKWARD_STEPS + (SHARED_STEPS if row["kv_heads"] < row["heads"] else 0)
    return (steps * EAGER_LAUNCH + g["attention_start"] + blocks
            + g[prefix + "_back_passes"] * queries / hbm)


# --- memory-bound ---------------------------------------------------------------------------------
def stream(g, start, load, moved, again=0.0, busy=0.0):
    hbm = (1 - l2_hit(g, moved)) * moved / (g["hbm_copy"] * g["hbm_bandwidth"])
    return replayed(g, g[start] + max(((moved + again) / g[load] + busy) / g["sms"], hbm))


def memory_bound(g, row):
    rows, width, op = row["rows"], row["k"], row["op"]
    elements = float(rows * width)
    if op == "residual_add":  # one addend: two would take more than the datasheet's bandwidth
        return stream(g, "stream_start", "copy_load", 4 * elements)
    if op == "swiglu":
        return stream(g, "stream_start", "copy_load", 6 * elements)
    if op == "quantize_fp8_rows":
        again = 2 * elements if width > IN_REGISTERS else 0.0
        return stream(g, "stream_start", "quantise_load", 3 * elements + 4 * rows, again)
    again = 2 * elements * max(0.0, 1 - g["norm_l1"] / (NORM_ROWS * 2 * width))
    busy = rows * g["norm_row"] if op == "layer_norm" else 0.0
    return stream(g, "stream_start", "norm_load", 4 * elements, again, busy)


# --- matrices -------------------------------------------------------------------------------------
def fp8_work(g, efficiency):
    return g["bf16_flops"] / (g[efficiency] * g["fp8_flops"])


def gemm_bodies(g, shape, plans, clock):
    rows, k, n = shape
    tm, tn, split = plans
    down, across = np.ceil(rows / tm), np.ceil(n / tn)
    tiles, depth = down * across * split, k / split
    footprint = float(k * n + rows * (k + 2 * n))
    hbm_rate = g["hbm_efficiency"] * g["hbm_bandwidth"]
    hbm = (1 - l2_hit(g, footprint)) * footprint / tiles
    flops = fp8_work(g, "fp8_efficiency") * 2.0 * tm * tn * depth
    load = depth * (rows / down + n / across)

    def wave(active):
        alone = np.maximum(flops / (g["bf16_flops"] / g["sms"]), load / g["fp8_load"])
        power = active * flops / (g["tensor_efficiency"] * g["bf16_flops"] * clock)
        most = np.maximum(np.maximum(alone, power), active * hbm / hbm_rate)
        return most + 2.0 * tm * tn / g["gemm_store"]

    last = tiles % g["sms"]
    body = tiles // g["sms"] * wave(g["sms"]) + np.where(last > 0, wave(last), 0)
    return body + np.where(split > 1, g["split_k_reduce"] + split * rows * n * 4.0 / hbm_rate, 0)


def gemm_fp8(g, row):
    shape = row["rows"], row["k"], row["n"]
    tm, tn, split = fit_ops.PLANS
    tiles = np.ceil(shape[0] / tm) * np.ceil(shape[2] / tn)
    splits = (split == 1) | ((shape[1] >= 512 * split) & (tiles * split <= 2 * g["sms"]))
    plans = fit_ops.PLANS[:, (tm < 2 * max(16, shape[0])) & splits]
    plan = plans[:, [np.argmin(gemm_bodies(g, shape, plans, 1.0))]]
    seconds = powered(g, lambda clock: float(gemm_bodies(g, shape, plan, clock)[0]))
    return replayed(g, g["gemm_start"] + seconds)


def grouped_gemm_fp8(g, row):
    groups, rows, k, n = row["groups"], row["rows"], row["k"], row["n"]
    counts = [rows // groups + (i < rows % groups) for i in range(groups)]
    tm, tn = (64, 128) if rows // groups <= 128 or n <= 128 else (128, 256)
    used = [m for m in counts if m > 0]
    miss = 1 - l2_hit(g, float(len(used) * k * n + rows * (k + 2 * n)))
    work, columns, runs = fp8_work(g, "fp8_grouped_efficiency"), -(-n // tn), []
    for m in used:
        down = -(-m // (2 * tm))
        hbm = miss * (k * n + m * (k + 2.0 * n)) / (down * columns)
        load = k * (tn + min(m / down, tm))
        runs.append((down * columns, (work * 4.0 * tm * tn * k, load, hbm, 2.0 * tm * tn, 2)))
    rates = {"load": g["fp8_grouped_load"], "store": g["grouped_store"],
             "hbm": g["hbm_narrow"] * g["hbm_bandwidth"]}
    seconds = powered(g, lambda clock: waves(g, rates, runs, int(g["sms"]) // 2, clock))
    return replayed(g, g["fp8_grouped_start"] + seconds)


def router(g, row):
    experts, rows = row["groups"], row["rows"]
    top_k = g["route_start"] + rows * (g["route_row"] + experts / g["route_logits"])
    return fit_ops.replayed(g, fit_ops.gemm(g, (rows, row["k"], experts)) + top_k)


# --- rows -----------------------------------------------------------------------------------------
def replayed(g, kernels):
    return max(g["slow_replay_floor"], g["slow_replay"] + kernels)


def predict_us(g, row):
    op = row["op"]
    if op.startswith("attention"):
        return 1e6 * attention(g, row)
    special = {"gemm_fp8": gemm_fp8, "grouped_gemm_fp8": grouped_gemm_fp8, "router": router}
    return 1e6 * special.get(op, memory_bound)(g, row)


def read_rows():
    """Operators in their order, each with its (fitted rows, rows held out)."""
    parts = {}
    with open(DATA, newline="") as file:
        for fields in csv.DictReader(file):
            row = {key: int(value) if value.isdigit() else value for key, value in fields.items()}
            row["us"] = float(fields["us"])
            parts.setdefault(row["op"], []).append(row)
    return {op: (rows[::2], rows[1::2]) for op, rows in parts.items()}


def errors(g, rows):
    return np.array([predict_us(g, row) / row["us"] - 1 for row in rows])


# --- fit ------------------------------------------------------------------------------------------
MEMORY = ("rms_norm", "layer_norm", "residual_add", "swiglu", "quantize_fp8_rows")
# Not fitted: hbm_copy is micro.csv's copy, copy_load what one SwiGLU that lies in L2 takes (1024 x
# 7168), slow_replay_floor see short_replays.
STAGES = [
    (MEMORY, ["slow_replay", "norm_load", "norm_l1", "norm_row", "quantise_load"]),
    (("gemm_fp8",), ["fp8_efficiency", "fp8_load"]),
    (("grouped_gemm_fp8",), ["fp8_grouped_efficiency", "fp8_grouped_load", "fp8_grouped_start"]),
    (("attention_fwd_cudnn", "attention_bwd_cudnn"),
     ["attention_start", "attention_block", "attention_softmax", "attention_back_softmax",
      "attention_back_passes"]),
    (("attention_fwd_flash2", "attention_bwd_flash2"),
     ["flash2_tensor", "flash2_block", "flash2_softmax", "flash2_back_softmax",
      "flash2_back_passes"]),
]


def fit(g, parts, rounds=2):
    for ops, names in STAGES:
        start = np.array([g[name] for name in names])

        def at(x):
            return {**g, **{name: float(v) for name, v in zip(names, start * x)}}

        def loss(x):
            if (x < 0.2).any() or (x > 5).any():
                return 9.0
            return np.mean([np.mean(np.minimum(np.abs(np.log(1 + errors(at(x), parts[op][0]))), 0.3))
                            for op in ops])

        best = np.ones(len(names))
        for _ in range(rounds):
            simplex = np.vstack([best] + [best * (1 + 0.12 * one) for one in np.eye(len(names))])
            best = minimize(loss, best, method="Nelder-Mead",
                            options={"maxfev": 40 * len(names), "xatol": 1e-3, "fatol": 1e-6,
                                     "initial_simplex": simplex}).x
        g = at(best)
        for name in names:
            print(f"{name} = {g[name]:.4g}", flush=True)
    return g


def table(g, parts):
    print(f"{'operator':21} {'fitted':>6} {'median':>7} {'p90':>7} {'held out':>9} {'median':>7} "
          f"{'p90':>7}")
    for op, halves in parts.items():
        e = [np.abs(errors(g, rows)) for rows in halves]
        print(f"{op:21} {len(e[0]):6} {np.median(e[0]):7.1%} {np.quantile(e[0], 0.9):7.1%} "
              f"{len(e[1]):9} {np.median(e[1]):7.1%} {np.quantile(e[1], 0.9):7.1%}")


def short_replays(g, parts):
    """Replays that the host decides: of kernels under 6 us."""
    off = {**g, "slow_replay_floor": 0.0, "slow_replay": 0.0}
    us = sorted(row["us"] for op in (*MEMORY, "gemm_fp8") for row in parts[op][0]
                if predict_us(off, row) < 6)
    print(f"fitted replays of kernels under 6 us: {len(us)}, median {np.median(us):.1f} us, "
          f"{sum(one < 14 for one in us)} of them under 14 us")


def write_golden(g):
    with open(DATA, newline="") as file:
        header = file.readline().strip().split(",")
    with open(GOLDEN, "w") as file:
        file.write(",".join(header) + "\n")
        for halves in read_rows().values():
            for row in halves[1][::3]:
                fields = [str(row[key]) for key in header[:-1]]
                file.write(",".join(fields) + f",{predict_us(g, row):.4f}\n")


def main():
    g, parts = read_preset(), read_rows()
    if "--swap" in sys.argv:
        parts = {op: halves[::-1] for op, halves in parts.items()}
    if "--fit" in sys.argv:
        g = fit(g, parts)
    if "--golden" in sys.argv:
        write_golden(g)
    table(g, parts)
    short_replays(g, parts)


if __name__ == "__main__":
    main()

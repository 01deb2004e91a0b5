#!/usr/bin/env python3
"""The operator model of src/sim/gpu in Python, the fit of its constants, and its errors.

    python3 validation/fit_ops.py            errors of the constants in presets/gpus/h200-sxm.toml
    python3 validation/fit_ops.py --fit      fits [kernels.torch] to the rows that are not held out
    python3 validation/fit_ops.py --golden   writes h200/ops_golden.csv for the C++ test

A fit starts from the preset and lowers the mean absolute log error (each cut at 0.3, so that
replays which a slow host stretched do not steer) with the simplex method of Nelder and Mead: no
randomness. Files, and which of their rows are held out: docs/gpu-model.md and `held_out` below.
Needs Python 3.11, NumPy and SciPy.
"""
import csv
import functools
import math
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

HERE = Path(__file__).parent
PRESET = HERE.parent / "presets" / "gpus" / "h200-sxm.toml"
GOLDEN = HERE / "h200" / "ops_golden.csv"
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "MHz": 1e6, "KB": 1e3, "MiB": 2.0**20, "GB": 1e9, "GB/s": 1e9,
         "TB/s": 1e12, "TFLOP/s": 1e12}
REPLAYED = ("ops.csv", "ops_repeat.csv", "ops_extra.csv")
CHAINED = "ops_chained.csv"
SLOW_HOST = "ops_slow_host.csv"
LONG_US = 20  # replays that even a slow host does not stretch much

TILES = [(16, 64), (32, 64), (64, 64), (96, 64), (128, 64), (192, 64), (16, 128), (32, 128),
         (64, 96), (64, 128), (128, 96), (128, 128), (64, 192), (64, 256), (192, 128), (128, 192),
         (128, 256), (192, 192), (128, 320)]
SPLITS = (1, 2, 3, 4, 6, 8)
PLANS = np.array([(*tile, split) for tile in TILES for split in SPLITS], dtype=float).T


def read_preset():
    with open(PRESET, "rb") as file:
        document = tomllib.load(file)
    values = {}
    for key, value in {**document, **document["kernels"]["torch"]}.items():
        found = re.fullmatch(r"([0-9.]+) (\S+)", value) if isinstance(value, str) else None
        if found:
            values[key] = float(found[1]) * UNITS[found[2]]
        elif isinstance(value, (int, float)):
            values[key] = float(value)
    return values


# --- rows per group -------------------------------------------------------------------------------
def count_quantile(mean, u):
    """The number of rows a group with this mean gets at quantile u: Poisson, normal when large."""
    if mean >= 40:
        return max(0, math.floor(mean + math.sqrt(mean) * math.log(u / (1 - u)) / 1.702 + 0.5))
    term = math.exp(-mean)
    total, count = term, 0
    while total < u and count < 500:
        count += 1
        term *= mean / count
        total += term
    return count


def rows_per_group(groups, rows, max_rows, skew):
    if groups == 1:
        return [rows]
    weights = [(i + 1.0) ** -skew for i in range(groups)]
    rest = rows - max_rows
    scale = rest / sum(weights[1:])
    counts = [max_rows]
    for i in range(1, groups):
        u = math.fmod(i * 0.6180339887498949, 1.0)
        counts.append(min(max_rows, count_quantile(scale * weights[i], u)))
    surplus = rows - sum(counts)
    carry = 0.0
    for i in range(1, groups):
        carry += surplus * (scale * weights[i]) / rest if rest else 0.0
        wanted = counts[i] + math.floor(carry + 0.5)
        wanted = min(max_rows, max(0, wanted))
        carry -= wanted - counts[i]
        counts[i] = wanted
    surplus = rows - sum(counts)
    i, idle = 1, 0
    while surplus != 0 and idle < groups:
        step = 1 if surplus > 0 else -1
        if 0 <= counts[i] + step <= max_rows:
            counts[i] += step
            surplus -= step
            idle = 0
        else:
            idle += 1
        i = i + 1 if i + 1 < groups else 1
    return counts


# --- tiles ----------------------------------------------------------------------------------------
def l2_hit(g, footprint):
    size = g["l2_resident"] * g["l2_capacity"]
    return min(1.0, max(0.0, (1.1 * size - footprint) / (0.2 * size)))


def tile_seconds(g, rates, work, active, clock):
    """work: flops, load bytes per SM, HBM bytes, store bytes per SM, SMs."""
    flops, load, hbm, store, sms = work
    compute = flops / (sms * g["bf16_flops"] / g["sms"])
    shared = active * flops / (g["tensor_efficiency"] * g["bf16_flops"] * clock)
    memory = active * hbm / rates["hbm"]
    return max(compute, shared, load / rates["load"], memory) + store / rates["store"]


def waves(g, rates, runs, slots, clock):
    """Runs of (count, work) in order, `slots` at once."""
    total, filled, mixed = 0.0, 0, []
    for count, work in runs:
        while count:
            if filled == 0 and count >= slots:
                total += (count // slots) * tile_seconds(g, rates, work, slots, clock)
                count %= slots
                continue
            take = min(count, slots - filled)
            mixed.append((take, work))
            filled += take
            count -= take
            if filled == slots:
                total += mixed_wave(g, rates, mixed, clock)
                filled, mixed = 0, []
    return total + (mixed_wave(g, rates, mixed, clock) if filled else 0.0)


def mixed_wave(g, rates, mixed, clock):
    active = sum(count for count, _ in mixed)
    hbm = sum(count * work[2] for count, work in mixed) / active
    return max(tile_seconds(g, rates, (w[0], w[1], hbm, w[3], w[4]), active, clock)
               for _, w in mixed)


def powered(g, seconds):
    """seconds(clock share) at full clock, moving to the lowered clock beyond boost_time."""
    full = seconds(1.0)
    lowered = min(1.0, max(0.0, full / g["boost_time"] - 1))
    return full + (seconds(g["throttled_clock"]) - full) * lowered if lowered else full


def replayed(g, kernels):
    """An operator alone in a CUDA graph, between two events."""
    return max(g["graph_replay_floor"], g["graph_replay"] + kernels)


# --- grouped GEMM ---------------------------------------------------------------------------------
def grouped_gemm(g, counts, k, n):
    rows, groups = sum(counts), len(counts)
    tm, tn = (64, 128) if rows // groups <= 128 or n <= 128 else (128, 256)
    used = [m for m in counts if m > 0]
    miss = 1 - l2_hit(g, 2.0 * len(used) * k * n + 2.0 * rows * (k + n))
    columns = -(-n // tn)
    runs = []
    for m in used:
        blocks = -(-m // (2 * tm))
        valid = min(m / blocks, tm)
        hbm = miss * (2.0 * k * n + 2.0 * m * (k + n)) / (blocks * columns)
        runs.append((blocks * columns,
                     (4.0 * tm * tn * k, 2.0 * k * (tn + valid), hbm, 2.0 * tm * tn, 2)))
    rates = {"load": g["grouped_load"], "store": g["grouped_store"],
             "hbm": g["hbm_narrow"] * g["hbm_bandwidth"]}
    time = powered(g, lambda clock: waves(g, rates, runs, int(g["sms"]) // 2, clock))
    return g["grouped_start"] + time


# --- GEMM -----------------------------------------------------------------------------------------
def gemm_bodies(g, shape, plans, clock=1.0):
    """Seconds of every plan (columns: tile rows, tile columns, split), start not included."""
    rows, k, n = shape
    tm, tn, split = plans
    down, across = np.ceil(rows / tm), np.ceil(n / tn)
    tiles = down * across * split
    footprint = 2.0 * k * n + 2.0 * rows * (k + n)
    hbm = (1 - l2_hit(g, footprint)) * footprint / tiles
    depth = k / split
    flops, load = 2.0 * tm * tn * depth, 2.0 * depth * (rows / down + n / across)
    hbm_rate = g["hbm_efficiency"] * g["hbm_bandwidth"]

    def wave(active):
        alone = np.maximum(flops / (g["bf16_flops"] / g["sms"]), load / g["gemm_load"])
        power = active * flops / (g["tensor_efficiency"] * g["bf16_flops"] * clock)
        memory = active * hbm / hbm_rate
        return np.maximum(np.maximum(alone, power), memory) + 2.0 * tm * tn / g["gemm_store"]

    last = tiles % g["sms"]
    body = tiles // g["sms"] * wave(g["sms"]) + np.where(last > 0, wave(last), 0)
    reduce = g["split_k_reduce"] + split * rows * n * 4.0 / hbm_rate
    return body + np.where(split > 1, reduce, 0)


def gemm_plan(g, shape):
    rows, k, n = shape
    tm, tn, split = PLANS
    tiles = np.ceil(rows / tm) * np.ceil(n / tn)
    splits = (split == 1) | ((k >= 512 * split) & (tiles * split <= 2 * g["sms"]))
    sensible = PLANS[:, (tm < 2 * max(16, rows)) & splits]
    return sensible[:, [np.argmin(gemm_bodies(g, shape, sensible))]]


def gemm(g, shape):
    plan = gemm_plan(g, shape)
    return g["gemm_start"] + powered(g, lambda c: float(gemm_bodies(g, shape, plan, c)[0]))


# --- memory-bound kernels and sort ----------------------------------------------------------------
def stream(g, read, written, efficiency):
    """The bytes of one plain kernel: what its SMs take to move them, or HBM what is not in L2."""
    hbm = read / efficiency + written / g["hbm_write"]
    missed = (1 - l2_hit(g, read + written)) * hbm / g["hbm_bandwidth"]
    return max((read + written) / (g["sms"] * g["stream_load"]), missed)


def gather_rows(g, rows, k):
    written = 2.0 * rows * k
    table = 2.0 * max(1, rows // 8) * k
    again = math.exp(-g["l2_resident"] * g["l2_capacity"] / (2 * table))
    read = table + (written - table) * again
    return g["stream_start"] + stream(g, read, written, g["hbm_efficiency"])


def sum_rows(g, rows, k):
    read = 2.0 * rows * k
    return g["narrow_start"] + stream(g, read, read / 8, g["hbm_narrow"])


def argsort(g, rows):
    if rows <= 4096:
        return g["sort_block"] + 16.0 * rows / g["sort_block_rate"]
    moved = 32.0 * rows / (g["hbm_efficiency"] * g["hbm_bandwidth"])
    return 8 * (g["sort_pass"] + moved)


# --- data -----------------------------------------------------------------------------------------
counts_of = {}


def read_rows(name):
    with open(HERE / "h200" / name, newline="") as file:
        for row in csv.DictReader(file):
            shape = tuple(int(row[key]) for key in ("groups", "rows", "max_rows", "k", "n"))
            yield (row["op"], *shape, float(row["skew"] or 0)), float(row["us"])


def kernel_seconds(g, row):
    op, groups, rows, max_rows, k, n, skew = row
    if op == "grouped_gemm":
        if row not in counts_of:
            counts_of[row] = rows_per_group(groups, rows, max_rows, skew)
        return grouped_gemm(g, counts_of[row], k, n)
    if op == "gemm":
        return gemm(g, (rows, k, n))
    if op == "gather_rows":
        return gather_rows(g, rows, k)
    return sum_rows(g, rows, k) if op == "sum8_rows" else argsort(g, rows)


def predict_us(g, file, row):
    kernels = kernel_seconds(g, row)
    return 1e6 * (kernels if file == CHAINED else replayed(g, kernels))


def shape_of(row):
    return (row[0], row[2], row[4], row[5])


def held_out(file, row):
    """Never part of a fit: all of ops_slow_host.csv; of ops_extra.csv and ops_chained.csv all
    grouped GEMMs and sorts, and of the other shapes that are not in ops.csv about half, picked by a
    multiplicative hash."""
    op, _, rows, _, k, n, _ = row
    if file in ("ops.csv", "ops_repeat.csv"):
        return False
    if file == SLOW_HOST or op in ("grouped_gemm", "argsort"):
        return True
    odd = ((rows * 31 + k) * 31 + n) * 2654435761 % 2**32 >= 2**31
    return odd and shape_of(row) not in first_shapes()


@functools.cache
def first_shapes():
    return {shape_of(row) for row, _ in read_rows("ops.csv")}


def errors(g, file, rows):
    return np.array([predict_us(g, file, row) / us - 1 for row, us in rows])


# --- fit ------------------------------------------------------------------------------------------
# graph_replay_floor is not fitted: it is what a fast host needs.
STAGES = [
    (("gemm",), ["tensor_efficiency", "l2_resident", "hbm_efficiency", "gemm_load", "gemm_store",
                 "gemm_start", "split_k_reduce", "graph_replay"]),
    (("grouped_gemm",), ["throttled_clock", "boost_time", "hbm_narrow", "grouped_load",
                         "grouped_store", "grouped_start"]),
    (("gather_rows", "sum8_rows"), ["hbm_write", "stream_load", "stream_start", "narrow_start"]),
    (("argsort",), ["sort_block", "sort_block_rate", "sort_pass"]),
]


def objective(g, parts):
    """Mean over files and operators: none weighs more because it has more rows."""
    return np.mean([np.mean(np.minimum(np.abs(np.log(1 + errors(g, file, rows))), 0.3))
                    for file, rows in parts])


def fit(g, rounds=2):
    fitted = [(file, row, us) for file in (*REPLAYED, CHAINED) for row, us in read_rows(file)
              if not held_out(file, row)]
    for ops, names in STAGES:
        parts = []
        for op in ops:
            for files in (REPLAYED, (CHAINED,)):
                rows = [(row, us) for file, row, us in fitted if row[0] == op and file in files]
                if rows:
                    parts.append((files[0], rows))
        start = np.array([g[name] for name in names])

        def at(x):
            return {**g, **{name: float(v) for name, v in zip(names, start * x)}}

        def loss(x):
            return 9.0 if (x < 0.3).any() or (x > 3).any() else objective(at(x), parts)

        best = np.ones(len(names))
        for _ in range(rounds):
            simplex = np.vstack([best] + [best * (1 + 0.12 * row) for row in np.eye(len(names))])
            best = minimize(loss, best, method="Nelder-Mead",
                            options={"maxfev": 40 * len(names), "xatol": 1e-3, "fatol": 1e-6,
                                     "initial_simplex": simplex}).x
        g = at(best)
        for name in names:
            print(f"{name} = {g[name]:.4g}", flush=True)
    return g


def print_errors(op, file, name, e):
    if len(e):
        print(f"{op:14} {file:18} {name:10} {len(e):5} {np.median(e):7.1%} "
              f"{np.quantile(e, 0.9):7.1%}")


def table(g):
    print(f"{'operator':14} {'file':18} {'rows':10} {'count':>5} {'median':>7} {'p90':>7}")
    for op in ("grouped_gemm", "gemm", "gather_rows", "sum8_rows", "argsort"):
        for file in (*REPLAYED, CHAINED, SLOW_HOST):
            rows = [(row, us) for row, us in read_rows(file) if row[0] == op]
            e = np.abs(errors(g, file, rows))
            new = np.array([held_out(file, row) for row, _ in rows], dtype=bool)
            print_errors(op, file, "fitted", e[~new])
            print_errors(op, file, "held out", e[new])
            if file == SLOW_HOST:
                print_errors(op, file, f"over {LONG_US} us", e[[us > LONG_US for _, us in rows]])


def repeatability():
    """Rows of ops.csv measured again later: what no model can beat."""
    def shape(row):
        return (*row[:3], *row[4:])  # without max_rows: draws differ by a few rows

    given = {}
    for row, us in read_rows("ops.csv"):
        given.setdefault(shape(row), us)
    again = [(row[0], us / given[shape(row)] - 1) for row, us in read_rows("ops_repeat.csv")]
    for op in ("grouped_gemm", "gemm", "gather_rows", "sum8_rows", "argsort"):
        e = np.abs([error for name, error in again if name == op])
        print_errors(op, "ops.csv", "repeated", e)


def host_states():
    """Replays too short to hide the host: how many were sent off fast and slowly, and how long
    they took. The median of the fast ones is graph_replay_floor."""
    kernels = dict(read_rows(CHAINED))
    print("replays of kernels under 5.3 us, fitted rows; below and above 12 us")
    for name, files in (*((file, (file,)) for file in (*REPLAYED, SLOW_HOST)),
                        ("the first three", REPLAYED)):
        all_us = [us for file in files for row, us in read_rows(file)
                  if kernels.get(row, 99) < 5.3 and not (file in REPLAYED and held_out(file, row))]
        for state in ([us for us in all_us if us < 12], [us for us in all_us if us >= 12]):
            middle = f"median {np.median(state):.2f} us" if state else ""
            print(f"{name:18} {len(state):5} {middle}")


def write_golden(g):
    rows = list(read_rows("ops.csv"))[::16] + list(read_rows("ops_extra.csv"))[::16]
    with open(GOLDEN, "w") as file:
        file.write("op,groups,rows,max_rows,k,n,skew,us\n")
        for row, _ in rows:
            fields = [*row[:6], row[6] if row[0] == "grouped_gemm" else ""]
            us = 1e6 * replayed(g, kernel_seconds(g, row))
            file.write(",".join(map(str, fields)) + f",{us:.4f}\n")


def main():
    g = read_preset()
    if "--fit" in sys.argv:
        g = fit(g)
    if "--golden" in sys.argv:
        write_golden(g)
    table(g)
    repeatability()
    host_states()


if __name__ == "__main__":
    main()

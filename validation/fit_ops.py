#!/usr/bin/env python3
"""The operator model of src/sim/gpu in Python, the fit of its constants, and its errors.

    python3 validation/fit_ops.py              errors of the constants in presets/gpus/h200-sxm.toml
    python3 validation/fit_ops.py --fit        fits [kernels] to all rows of h200/ops.csv
    python3 validation/fit_ops.py --hold-out   fits without some (k, n) and group counts: what the
                                               same fit makes of shapes that it has not seen
    python3 validation/fit_ops.py --golden     writes h200/ops_golden.csv for the C++ test

A fit starts from the preset and lowers the mean absolute log error (each cut at 0.3, so that single
outliers do not steer) with the simplex method of Nelder and Mead: no randomness. The rows of
h200/ops_extra.csv were measured later and never enter a fit.
Equations are explained in docs/gpu-model.md. Needs Python 3.11, NumPy and SciPy.
"""
import csv
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
UNITS = {"us": 1e-6, "ms": 1e-3, "MHz": 1e6, "MiB": 2.0**20, "GB": 1e9, "GB/s": 1e9, "TB/s": 1e12,
         "TFLOP/s": 1e12}
HELD_OUT_SHAPES = {(7168, 2048), (2048, 1536), (7680, 4096), (4096, 14336)}
HELD_OUT_GROUPS = {16}

TILES = [(16, 64), (32, 64), (64, 64), (96, 64), (128, 64), (192, 64), (16, 128), (32, 128),
         (64, 96), (64, 128), (128, 96), (128, 128), (64, 192), (64, 256), (192, 128), (128, 192),
         (128, 256), (192, 192), (128, 320)]
SPLITS = (1, 2, 3, 4, 6, 8)


def read_preset():
    with open(PRESET, "rb") as file:
        document = tomllib.load(file)
    flat = {**document.pop("kernels"), **document}
    values = {}
    for key, value in flat.items():
        found = re.fullmatch(r"([0-9.]+) (\S+)", value) if isinstance(value, str) else None
        if found:
            values[key] = float(found[1]) * UNITS[found[2]]
        elif not isinstance(value, str):
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
    return min(1.0, max(0.0, (1.2 * size - footprint) / (0.4 * size)))


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
    return replayed(g, g["grouped_start"] + time)


# --- GEMM -----------------------------------------------------------------------------------------
def gemm_body(g, shape, plan, clock=1.0):
    rows, k, n = shape
    tm, tn, split = plan
    down, across = -(-rows // tm), -(-n // tn)
    tiles = down * across * split
    footprint = 2.0 * k * n + 2.0 * rows * (k + n)
    hbm = (1 - l2_hit(g, footprint)) * footprint / tiles
    depth = k / split
    work = (2.0 * tm * tn * depth, 2.0 * depth * (rows / down + n / across), hbm, 2.0 * tm * tn, 1)
    rates = {"load": g["gemm_load"], "store": g["gemm_store"],
             "hbm": g["hbm_efficiency"] * g["hbm_bandwidth"]}
    time = waves(g, rates, [(tiles, work)], int(g["sms"]), clock)
    if split > 1:
        time += g["split_k_reduce"] + split * rows * n * 4.0 / rates["hbm"]
    return time


def gemm_plan(g, shape):
    rows, k, n = shape
    best = None
    for tm, tn in TILES:
        if tm >= 2 * max(16, rows):
            continue
        tiles = -(-rows // tm) * -(-n // tn)
        for split in SPLITS:
            if split > 1 and (k < 512 * split or tiles * split > 2 * g["sms"]):
                continue
            time = gemm_body(g, shape, (tm, tn, split))
            if best is None or time < best[0]:
                best = (time, (tm, tn, split))
    return best[1]


def gemm(g, shape):
    plan = gemm_plan(g, shape)
    return replayed(g, g["gemm_start"] + powered(g, lambda c: gemm_body(g, shape, plan, c)))


# --- memory-bound kernels and sort ----------------------------------------------------------------
def stream(g, read, written, efficiency):
    """Bytes read from and written to HBM by one plain kernel."""
    hbm = g["hbm_bandwidth"]
    time = g["stream_start"] + read / (efficiency * hbm) + written / (g["hbm_write"] * hbm)
    return replayed(g, time)


def gather_rows(g, rows, k):
    written = 2.0 * rows * k
    table = 2.0 * max(1, rows // 8) * k
    again = math.exp(-g["l2_resident"] * g["l2_capacity"] / table)
    return stream(g, table + (written - table) * again, written, g["hbm_efficiency"])


def sum_rows(g, rows, k):
    return stream(g, 2.0 * rows * k, 2.0 * rows * k / 8, g["hbm_narrow"])


def argsort(g, rows):
    if rows <= 4096:
        return replayed(g, g["sort_block"] + 16.0 * rows / g["sort_block_rate"])
    moved = 32.0 * rows / (g["hbm_efficiency"] * g["hbm_bandwidth"])
    return replayed(g, 8 * (g["sort_pass"] + moved))


# --- data -----------------------------------------------------------------------------------------
counts_of = {}


def read_rows(name):
    with open(HERE / "h200" / name, newline="") as file:
        for row in csv.DictReader(file):
            shape = tuple(int(row[key]) for key in ("groups", "rows", "max_rows", "k", "n"))
            yield (row["op"], *shape, float(row["skew"] or 0)), float(row["us"])


def predict_us(g, row):
    op, groups, rows, max_rows, k, n, skew = row
    if op == "grouped_gemm":
        if row not in counts_of:
            counts_of[row] = rows_per_group(groups, rows, max_rows, skew)
        return 1e6 * grouped_gemm(g, counts_of[row], k, n)
    if op == "gemm":
        return 1e6 * gemm(g, (rows, k, n))
    if op == "gather_rows":
        return 1e6 * gather_rows(g, rows, k)
    if op == "sum8_rows":
        return 1e6 * sum_rows(g, rows, k)
    return 1e6 * argsort(g, rows)


def held_out(row):
    op, groups, _, _, k, n, _ = row
    if op in ("gather_rows", "sum8_rows"):
        return k == 5120
    if op == "argsort":
        return False
    return (k, n) in HELD_OUT_SHAPES or (op == "grouped_gemm" and groups in HELD_OUT_GROUPS)


def errors(g, rows):
    return np.array([predict_us(g, row) / us - 1 for row, us in rows])


# --- fit ------------------------------------------------------------------------------------------
STAGES = [
    (("gemm", "grouped_gemm"),
     ["tensor_efficiency", "throttled_clock", "boost_time", "l2_resident", "hbm_efficiency",
      "hbm_narrow", "gemm_load", "gemm_store", "grouped_load", "grouped_store", "gemm_start",
      "grouped_start", "split_k_reduce", "graph_replay_floor"]),
    (("gather_rows", "sum8_rows"), ["hbm_write", "stream_start"]),
    (("argsort",), ["sort_block", "sort_block_rate", "sort_pass"]),
]


def objective(g, rows_of):
    """Mean over operators, so that 96 GEMMs weigh half as much as the grouped ones, not a tenth."""
    total = 0.0
    for op, rows in rows_of.items():
        cut = np.minimum(np.abs(np.log(1 + errors(g, rows))), 0.3)
        total += (0.5 if op == "gemm" else 1.0) * float(np.mean(cut))
    return total


def fit(g, data, rounds=2):
    for ops, names in STAGES:
        rows_of = {op: [d for d in data if d[0][0] == op] for op in ops}
        start = np.array([g[name] for name in names])

        def at(x):
            return {**g, **{name: float(v) for name, v in zip(names, start * x)}}

        def loss(x):
            return 9.0 if (x < 0.3).any() or (x > 3).any() else objective(at(x), rows_of)

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


def table(g):
    data, extra = list(read_rows("ops.csv")), list(read_rows("ops_extra.csv"))
    sets = [("seen", [d for d in data if not held_out(d[0])]),
            ("held out", [d for d in data if held_out(d[0])]), ("extra", extra)]
    print(f"{'operator':14} {'rows':10} {'count':>5} {'median':>7} {'p90':>7}   above the floor")
    for op in ("grouped_gemm", "gemm", "gather_rows", "sum8_rows", "argsort"):
        for name, rows in sets:
            mine = [d for d in rows if d[0][0] == op]
            if not mine:
                continue
            e = np.abs(errors(g, mine))
            line = f"{op:14} {name:10} {len(e):5} {np.median(e):7.1%} {np.quantile(e, 0.9):7.1%}"
            long = e[[us > 1.1e6 * g["graph_replay_floor"] for _, us in mine]]
            if len(long):
                line += f"   {len(long):5} {np.median(long):7.1%} {np.quantile(long, 0.9):7.1%}"
            print(line)


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
        print(f"{op:14} {'repeated':10} {len(e):5} {np.median(e):7.1%} {np.quantile(e, 0.9):7.1%}")


def write_golden(g):
    rows = list(read_rows("ops.csv"))[::16] + list(read_rows("ops_extra.csv"))[::16]
    with open(GOLDEN, "w") as file:
        file.write("op,groups,rows,max_rows,k,n,skew,us\n")
        for row, _ in rows:
            fields = [*row[:6], row[6] if row[0] == "grouped_gemm" else ""]
            file.write(",".join(map(str, fields)) + f",{predict_us(g, row):.4f}\n")


def main():
    g = read_preset()
    if "--fit" in sys.argv:
        g = fit(g, list(read_rows("ops.csv")))
    if "--hold-out" in sys.argv:
        g = fit(g, [d for d in read_rows("ops.csv") if not held_out(d[0])])
    if "--golden" in sys.argv:
        write_golden(g)
    table(g)
    repeatability()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The plots of docs/cards.md: every published kernel, measured against predicted.

    python3 validation/plot_kernels.py [MOEHUB]     writes docs/images/cards.png and cards-errors.png

MOEHUB is the program, ./moehub without it. Needs Debian's python3-matplotlib.
"""
import json
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
FILES = [("gemm", "GEMM"), ("attention_prefill", "attention, prefill"),
         ("attention_decode", "attention, decode"), ("mla_prefill", "latent attention, prefill"),
         ("mla_decode", "latent attention, decode"), ("moe", "fused MoE")]
CARDS = {"h100-sxm": "#0072B2", "h200-sxm": "#56B4E9", "b200": "#D55E00", "gb200": "#E69F00"}
SHORTEST = "10 us"


def rows_of(program, name):
    file = ROOT / "validation" / "kernels" / f"{name}.csv"
    out = subprocess.run([program, "validate", file, "--above", SHORTEST, "--json"], check=True,
                         capture_output=True).stdout
    return json.loads(out)["rows"]


def scatter(axes, title, rows):
    for card, colour in CARDS.items():
        mine = [row for row in rows if row["gpu"] == card]
        axes.scatter([row["measured"] for row in mine], [row["predicted"] for row in mine], s=3,
                     alpha=0.35, linewidths=0, color=colour, label=card, rasterized=True)
    low, high = 8, max(row["measured"] for row in rows) * 1.3
    axes.plot([low, high], [low, high], color="black", linewidth=0.8)
    for share in (0.8, 1.25):
        axes.plot([low, high], [share * low, share * high], color="grey", linewidth=0.6,
                  linestyle=":")
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), title=title,
             xlabel="measured, µs", ylabel="predicted, µs")
    axes.set_aspect("equal")


def cumulative(axes, title, rows):
    for card, colour in CARDS.items():
        errors = sorted(abs(row["error"]) * 100 for row in rows if row["gpu"] == card)
        shares = [100 * (i + 1) / len(errors) for i in range(len(errors))]
        axes.plot(errors, shares, color=colour, linewidth=1.3, label=card)
    axes.set(xlim=(0, 50), ylim=(0, 100), title=title, xlabel="error at most, %",
             ylabel="of the rows, %")
    axes.grid(alpha=0.3)


def figure(draw, data, name):
    fig, grid = plt.subplots(2, 3, figsize=(12, 8))
    for axes, (title, rows) in zip(grid.flat, data):
        draw(axes, title, rows)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    legend = fig.legend(handles, labels, loc="lower center", ncol=len(CARDS), markerscale=4,
                        frameon=False)
    for handle in legend.legendHandles:
        handle.set_alpha(1)
    fig.tight_layout(rect=(0, 0.04, 1, 1))
    fig.savefig(IMAGES / name, dpi=80, metadata={"Software": None})


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "moehub")
    data = [(title, rows_of(program, name)) for name, title in FILES]
    IMAGES.mkdir(exist_ok=True)
    figure(scatter, data, "cards.png")
    figure(cumulative, data, "cards-errors.png")


if __name__ == "__main__":
    main()

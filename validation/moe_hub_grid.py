#!/usr/bin/env python3
"""MoE-Hub's published means beside the simulator's: runs `./moehub compare` over the paper's grids
and prints the tables of docs/moe-hub.md.

    validation/moe_hub_grid.py [further arguments of moehub compare, e.g. --set model.gated=false]
"""
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["mixtral-8x7b", "phi-3.5-moe", "qwen2-moe-2.7b"]


def compare(model, gpus, tokens, systems):
    command = [ROOT / "moehub", "compare", "--machine", "dgx-h800", "--model", model, "--gpus",
               gpus, "--tokens", tokens, "--systems", systems, "--json", *sys.argv[1:]]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return {result["system"]: result for result in json.loads(run.stdout)["results"]}


def layer(model, gpus, tokens):
    times = compare(model, gpus, tokens, "ideal,megatron-te,moe-hub")
    hub = times["moe-hub"]["time_us"]
    ideal, megatron = times["ideal"]["time_us"], times["megatron-te"]["time_us"]
    print(f"| {model} | {gpus} | {tokens:,} | {ideal:,.0f} | {hub:,.0f} | {megatron:,.0f} |"
          f" {ideal / hub:.1%} | {megatron / hub:.2f} |")
    return ideal / hub, megatron / hub


def layers(cells):
    print("| model | GPUs | tokens | ideal µs | moe-hub µs | megatron-te µs | of ideal |"
          " over megatron-te |\n|---|---|---|---|---|---|---|---|")
    shares, ratios = zip(*[layer(*cell) for cell in cells])
    print(f"\nmean: {statistics.mean(shares):.1%} of ideal, {statistics.mean(ratios):.2f}× over"
          " megatron-te\n")


def ablation(model, tokens):
    results = compare(model, 8, tokens, "mh-base,mh-pkt,mh-dep,moe-hub")
    end = {name: result["first_gemm_us"] for name, result in results.items()}
    gains = (end["mh-base"] / end["mh-pkt"], end["mh-dep"] / end["moe-hub"],
             end["mh-pkt"] / end["moe-hub"], end["mh-base"] / end["mh-dep"])
    print(f"| {model} | {tokens:,} | " + " | ".join(f"{gain:.3f}" for gain in gains) + " |")
    return gains


def main():
    print("Grid\n")
    layers([(model, gpus, tokens) for model in MODELS for gpus in (4, 8)
            for tokens in (4096, 8192)])
    for name, counts in (("Few tokens", (128, 256, 512, 1024, 2048)),
                         ("Many tokens", (4096, 8192, 16384, 32768))):
        print(f"{name}\n")
        layers([("mixtral-8x7b", 8, tokens) for tokens in counts])
    print("Ablation, from routing to the end of GEMM-1\n")
    print("| model | tokens | RPM, without DAM | RPM, with DAM | DAM, with RPM | DAM, without RPM |"
          "\n|---|---|---|---|---|---|")
    gains = [ablation(model, tokens) for model in MODELS for tokens in (4096, 8192, 16384)]
    print("| mean | | " + " | ".join(f"{statistics.mean(g):.3f}" for g in zip(*gains)) + " |")


main()

"""How much each system gains when links answer sooner, as a picture.

    PYTHONPATH=build/release/python python3 examples/python/latency.py latency.png
"""
import sys

import matplotlib.pyplot as plt
import numpy as np

import moehub

LATENCIES = [100, 250, 500, 1000, 2000]  # ns
SYSTEMS = [moehub.system(name) for name in ("megatron-te", "deepep", "moe-hub")]


def main(picture: str) -> None:
    model = moehub.model("mixtral-8x7b")
    routing = moehub.routing("normal:0.032", model=model, tokens=1024)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for system in SYSTEMS:
        times = []
        for latency in LATENCIES:
            machine = moehub.machine("dgx-h800", gpus=8, link={"latency": f"{latency} ns"})
            result = moehub.simulate(system, machine=machine, model=model, routing=routing)
            times.append(result.time_us)
        left.plot(LATENCIES, times, marker="o", label=system.name)
    left.set(xscale="log", xlabel="latency of a link, ns", ylabel="MoE layer, µs", ylim=(0, None),
             title="1,024 tokens of Mixtral on 8 H800")
    left.set_xticks(LATENCIES, labels=[str(one) for one in LATENCIES])
    left.minorticks_off()
    left.legend()

    result = moehub.simulate("moe-hub", gpus=8, model=model, routing=routing)
    for link in result.links:
        if link["from"] != "gpu 0" and link["to"] != "gpu 0":
            continue
        middle = (0.5 + np.arange(len(link["bins"]))) * link["bin_ps"] / 1e6
        right.step(middle, 100 * link["bins"] / link["bin_ps"], where="mid",
                   color="C0" if link["from"] == "gpu 0" else "C1")
    right.set(xlabel="µs", ylabel="busy, %", title="Links of GPU 0 under moe-hub")
    right.plot([], [], "C0", label="up")
    right.plot([], [], "C1", label="down")
    right.legend()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "latency.png")

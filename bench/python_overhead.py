"""What a call from Python costs beyond the simulation.

    PYTHONPATH=build/release/python python3 bench/python_overhead.py build/release/bench/moehub_layer_call

The same tiny layer, one token for each of two GPUs under `ideal`, is simulated from C++ (the program
named, bench/layer_call.cpp: load once, call often) and from Python: moehub.simulate() beside
simulate_layer, moehub.run(), which compares one system and makes its dict, beside compare_systems.
Each is timed in rounds that take turns; what is printed is the median of the rounds, in µs of
processor time a call: other programs do not count.
"""
import statistics
import subprocess
import sys
import time
from typing import Callable

import moehub

CALLS = 400
ROUNDS = 9
TINY = ["hidden=128", "expert_ffn=128", "experts=2", "top_k=1"]


def per_call(call: Callable[[], object]) -> float:
    begin = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - begin) / CALLS * 1e6


def main(library: str) -> None:
    machine = moehub.machine("dgx-h800", gpus=2)
    model = moehub.model("mixtral-8x7b", set=TINY)
    routing = moehub.routing("uniform", model=model, tokens=2)
    system = moehub.system("ideal")

    def simulate() -> object:
        return moehub.simulate(system, machine=machine, model=model, routing=routing)

    def run() -> object:
        return moehub.run(system, machine=machine, model=model, routing=routing)

    bare: list[list[float]] = []
    called: list[list[float]] = []
    for _ in range(ROUNDS):
        printed = subprocess.run([library, str(CALLS)], capture_output=True, text=True, check=True)
        bare.append([float(number) for number in printed.stdout.split()])
        called.append([per_call(simulate), per_call(run)])
    for i, name in enumerate(("simulate", "run")):
        library_us = statistics.median(one[i] for one in bare)
        python_us = statistics.median(one[i] for one in called)
        print(f"{name:10} {python_us:7.1f} µs a call, {library_us:7.1f} from C++: "
              f"{python_us - library_us:+6.1f}")


if __name__ == "__main__":
    main(sys.argv[1])

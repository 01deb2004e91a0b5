"""What a call from Python costs beyond the simulation.

    PYTHONPATH=build/release/python python3 bench/python_overhead.py build/release/bench/moehub_layer_call

The same tiny layer, one token for each of two GPUs under `ideal`, is simulated by the C++ library
(the program named, bench/layer_call.cpp: load once, simulate often) and by moehub.simulate() and
moehub.run() with objects and with names. Each is timed in rounds that take turns; what is printed
is the median of the rounds, in µs a call.
"""
import statistics
import subprocess
import sys
import time
from typing import Callable

import moehub

CALLS = 500
ROUNDS = 15


def per_call(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - begin) / CALLS * 1e6


def main(library: str) -> None:
    machine = moehub.machine("dgx-h800", gpus=2)
    model = moehub.model("mixtral-8x7b")
    routing = moehub.routing("uniform", model=model, tokens=2)
    system = moehub.system("ideal")

    def simulate() -> object:
        return moehub.simulate(system, machine=machine, model=model, routing=routing)

    def run() -> object:
        return moehub.run(system, machine=machine, model=model, routing=routing)

    def by_name() -> object:
        return moehub.run("ideal", gpus=2, tokens=2)

    times: dict[str, list[float]] = {"C++ simulate_layer": [], "simulate, objects": [],
                                     "run, objects": [], "run, names": []}
    for _ in range(ROUNDS):
        printed = subprocess.run([library, str(CALLS)], capture_output=True, text=True, check=True)
        times["C++ simulate_layer"].append(float(printed.stdout))
        times["simulate, objects"].append(per_call(simulate))
        times["run, objects"].append(per_call(run))
        times["run, names"].append(per_call(by_name))
    bare = statistics.median(times["C++ simulate_layer"])
    for name, rounds in times.items():
        median = statistics.median(rounds)
        print(f"{name:20} {median:9.1f} µs a call, {median - bare:+8.1f} beyond the simulation")


if __name__ == "__main__":
    main(sys.argv[1])

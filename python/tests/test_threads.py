"""Do calls in several threads run side by side, with the same result, and does Ctrl-C end them?"""
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import moehub

ROOT = Path(__file__).resolve().parents[2]


def test_threads_give_the_same(mixtral: moehub.Model) -> None:
    machine = moehub.machine("dgx-h800", gpus=8)
    routing = moehub.routing("zipf:1", model=mixtral, tokens=256)

    def one(system: str) -> Any:
        return moehub.run(system, machine=machine, model=mixtral, routing=routing)

    names = ["ideal", "megatron-te", "moe-hub", "deepep"] * 3
    alone = [one(name) for name in names]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, names)) == alone


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_give_the_same(method: str) -> None:
    alone = moehub.run("ideal", gpus=2, tokens=64)
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        others = list(pool.map(moehub.run, ["ideal"] * 2))
    usual = moehub.run("ideal")
    assert others == [usual, usual] and alone != usual


def test_a_call_within_a_call() -> None:
    inner = []

    def show(what: str, share: float) -> None:
        if not inner:
            inner.append(moehub.run("ideal", gpus=2, tokens=64))

    moehub.sweep(sweep={"tokens": [2048, 4096]}, systems="moe-hub", grain="packet", seeds=2,
                 progress=show)
    assert inner == [moehub.run("ideal", gpus=2, tokens=64)]


def test_the_interpreter_goes_on_meanwhile() -> None:
    done = threading.Event()
    thread = threading.Thread(
        target=lambda: (moehub.run(tokens=8192, grain="packet"), done.set()))
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 5


HUGE = {"tokens": 1 << 20, "grain": "packet"}
LONG = {
    "compare": {"systems": ["moe-hub", "deepep"], **HUGE},
    "run": {"system": "moe-hub", **HUGE},
    "gain": {"models": ["deepseek-v3"], **HUGE},
    "time_model": {"systems": "moe-hub", **HUGE},
    "sweep": {"sweep": {"tokens": [1 << 20, 1 << 19]}, "systems": "moe-hub", "grain": "packet"},
    "collective": {"op": "all_to_all", "bytes": "64G", "grain": "packet"},
    "validate": {"file": ROOT / "validation/published_cluster_collectives.csv"},
    "reproduce": {"paper": "moe-hub"},
    "plan": {"model": "pangu-ultra-moe", "machine": "ascend-910b-cluster", "gpus": 6144,
             "global_batch": 6144, "trainer": "mindspeed"},
    "place": {"profile": "zipf", "gpus": 32, "machine": "h100-cluster", "time_limit": 300},
}


@pytest.mark.parametrize("function", LONG)
def test_ctrl_c_ends(function: str) -> None:
    keywords: dict[str, Any] = dict(LONG[function])
    if function == "place":
        keywords["profile"] = moehub.routing("zipf:1,transition:0.7", model="deepseek-v3",
                                             tokens=2048, layers=8)
    at = []

    def interrupt() -> None:
        at.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(1.0, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        getattr(moehub, function)(**keywords)
    assert time.monotonic() - at[0] < 3
    again = moehub.run("ideal", gpus=2, tokens=64)  # as before
    assert again.results[0].time_us > 0


def test_long_calls_have_functions() -> None:
    assert set(moehub._functions.__all__) - set(LONG) == {
        "area", "lines", "merge", "predict", "show"} | (
            {"profile"} & set(moehub._functions.__all__))

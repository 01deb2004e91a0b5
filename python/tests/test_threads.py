"""Do simulations in several threads run side by side, with the same result?"""
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import moehub


def test_threads_give_the_same(mixtral: moehub.Model) -> None:
    machine = moehub.machine("dgx-h800", gpus=8)
    routing = moehub.routing("zipf:1", model=mixtral, tokens=256)

    def one(system: str) -> dict:  # type: ignore
        return moehub.run(system, machine=machine, model=mixtral, routing=routing)

    names = ["ideal", "megatron-te", "moe-hub", "deepep"] * 3
    alone = [one(name) for name in names]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, names)) == alone


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


def test_ctrl_c_ends_a_search(mixtral: moehub.Model) -> None:
    routing = moehub.routing("zipf:1,transition:0.7", model="deepseek-v3", tokens=2048, layers=8)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        moehub.place(routing, gpus=32, machine="h100-cluster", time_limit=300)
    assert time.monotonic() - begin < 60

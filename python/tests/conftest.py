"""What the tests share: the program beside which the module is checked, and a small layer."""
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import moehub

Command = Callable[..., Any]


@pytest.fixture(scope="session")
def program() -> str:
    return os.environ["MOEHUB_PROGRAM"]


@pytest.fixture(scope="session")
def command(program: str) -> Command:
    """Runs the program with --json and gives what it prints."""
    def run(*arguments: str) -> Any:
        done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return run


@pytest.fixture(scope="session")
def complaint(program: str) -> Command:
    """The line that the program ends with, without its name."""
    def run(*arguments: str) -> str:
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        return done.stderr.removeprefix("moehub: ").rstrip("\n")
    return run


@pytest.fixture(scope="session")
def mixtral() -> moehub.Model:
    return moehub.model("mixtral-8x7b")


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded routing: 400 tokens, 4 layers, 2 of 16 experts."""
    rng = np.random.default_rng(2)
    file = tmp_path_factory.mktemp("trace") / "trace.npy"
    np.save(file, np.argsort(rng.random((400, 4, 16)), axis=2)[:, :, :2].astype(np.uint16))
    return file


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two halves of a sweep, this and -1, -2."""
    name = str(tmp_path_factory.mktemp("parts") / "part")
    for part in (1, 2):
        moehub.sweep(sweep={"tokens": [64, 128]}, systems=["ideal"], gpus=2, shard=f"{part}/2",
                     output=f"{name}-{part}")
    return name

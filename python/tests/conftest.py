"""What the tests share: the program beside which the module is checked, and a small layer."""
import json
import os
import subprocess
from typing import Any, Callable

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
        done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True,
                              check=True)
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

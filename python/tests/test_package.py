"""Is everything documented and typed, and does the example run?"""
import copy
import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import moehub
from moehub import _moehub

ROOT = Path(__file__).resolve().parents[2]


def test_everything_has_a_docstring() -> None:
    missing = [name for name in moehub.__all__ if not inspect.getdoc(getattr(moehub, name))]
    for owner in (_moehub, *(getattr(moehub, name) for name in moehub.__all__)):
        if owner is not _moehub and not inspect.isclass(owner):
            continue
        missing += [f"{owner.__name__}.{name}" for name, member in vars(owner).items()
                    if not name.startswith("_") and not inspect.getdoc(member)]
    assert missing == []


def test_everything_public_is_listed() -> None:
    functions = {name for name, member in vars(moehub).items()
                 if inspect.isfunction(member) and not name.startswith("_")}
    assert functions <= set(moehub.__all__)


def test_stubs_name_what_there_is() -> None:
    stub = (Path(moehub.__file__).parent / "_moehub.pyi").read_text()
    for name, member in vars(_moehub).items():
        if name.startswith("__"):
            continue
        assert f"def {name}(" in stub or f"class {name}" in stub, name
        if inspect.isclass(member):
            for inner in vars(member):
                assert inner.startswith("_") or f"def {inner}(" in stub, f"{name}.{inner}"


def test_types_are_right(tmp_path: Path) -> None:
    files = [Path(moehub.__file__).resolve().parent, *(ROOT / "examples/python").glob("*.py")]
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports",
                           "--cache-dir", str(tmp_path),
                           *map(str, files)], capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": str(ROOT / "python")})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_examples_run(tmp_path: Path) -> None:
    for example in sorted((ROOT / "examples/python").glob("*.py")):
        picture = tmp_path / f"{example.stem}.png"
        subprocess.run([sys.executable, str(example), str(picture)], check=True,
                       env={**os.environ, "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path)})
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_nouns_are_readable() -> None:
    machine = moehub.machine("dgx-h800", gpus=4, link={"latency": "250 ns"})
    assert machine.gpus == 4 and machine.link.latency == 250_000
    assert machine.settings == ["link.latency=250 ns"] and "250 ns" in machine.to_toml()
    assert moehub.model("mixtral-8x7b").top_k == 2
    assert moehub.system("moe-hub").name == "moe-hub"
    assert "dgx-h800" in moehub.presets("machines")
    assert {"moe-hub", "deepep"} <= {one["name"] for one in moehub.systems()}
    assert {"cais"} <= {one["name"] for one in moehub.systems("tp")}


def test_nouns_are_copied_and_pickled() -> None:
    for noun in (moehub.machine("dgx-h800", gpus=4, set=["link.latency=250 ns"]),
                 moehub.model("mixtral-8x7b", top_k=1), moehub.gpu("h200-sxm"),
                 moehub.system("moe-hub")):
        for other in (copy.copy(noun), pickle.loads(pickle.dumps(noun))):
            assert other is not noun and other.settings == noun.settings
            assert other.to_toml() == noun.to_toml()

"""Is everything documented and typed, and does the example run?"""
import doctest
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import moehub
from moehub import _functions, _moehub

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
                assert inner.startswith("_") or re.search(rf"^    (def )?{inner}[:(]", stub, re.M)


USE = '''
import moehub
from pathlib import Path
machine = moehub.machine("dgx-h800", gpus=4, link={"latency": "1 us"})
result: moehub.Result = moehub.compare(
    [moehub.system("ideal"), "moe-hub"], machine=machine, tokens=64, pass_="backward",
    set={"model": {"top_k": 1}}, page_pool="1MiB", page_rows=8, layout=None, timeline=True,
    progress=lambda what, share: print(what, 100 * share))
moehub.predict("gemm", m=1, n=2, k=3, gpu=moehub.gpu("b200"))
moehub.merge(Path("all.sqlite"), ["a.sqlite", Path("b.sqlite")])
moehub.sweep(sweep={"tokens": [1, 2]}, systems="ideal", gpus=8)
times: list[float] = [row.time_us for row in result.results]
page: str = result.to_html(Path("a.html"))
'''


def test_types_are_right(tmp_path: Path) -> None:
    package = Path(moehub.__file__).parent
    use = tmp_path / "use.py"
    use.write_text(USE)
    files = [package, use, *(ROOT / "examples/python").glob("*.py")]
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports",
                           "--cache-dir", str(tmp_path),
                           *map(str, files)], capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": str(package.parent)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_types_are_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import moehub\nmoehub.compare(tokens="many")\nmoehub.run(no=1)\n'
                     'moehub.merge(1)\n')
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path),
                           str(wrong)], capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": str(Path(moehub.__file__).parents[1])})
    for line in (2, 3, 4):
        assert f"wrong.py:{line}: error" in done.stdout, done.stdout


def test_every_keyword_is_explained() -> None:
    for name in _functions.__all__:
        function = getattr(moehub, name)
        explained = set(re.findall(r"^    (\w+): \S", function.__doc__.partition("options:")[2],
                                   re.MULTILINE))
        assert explained == set(inspect.signature(function).parameters), name
    assert "page_pool: memory of a GPU for its pages" in moehub.compare.__doc__


def test_the_page_of_docs_is_true(monkeypatch: Any) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"^```pycon\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "docs/python.md", None, 0)
    said: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(test, out=said.append).failed == 0, said


def test_the_examples_run(tmp_path: Path) -> None:
    for example in sorted((ROOT / "examples/python").glob("*.py")):
        picture = tmp_path / f"{example.stem}.png"
        subprocess.run([sys.executable, str(example), str(picture)], check=True,
                       env={**os.environ, "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path)})
        assert picture.read_bytes().startswith(b"\x89PNG")

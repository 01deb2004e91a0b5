#!/usr/bin/env python3
"""Can the tests fail? Changes one operator or constant of the code at a time and runs the tests.

    tests/mutate.py 20 7                # 20 changes anywhere in src, of seed 7
    tests/mutate.py 20 7 src/plan       # in one folder
    tests/mutate.py 20 7 --list         # shows the changes and makes none
    tests/mutate.py --only src/plan/why_not.cpp:54      # every change of one line

A line of code is drawn among all that have something to change, then a change of it: what has many
operators is not drawn more often. All happens in build/mutate, a copy that further runs reuse; your
tree is only read. A change that no test notices survives: write the test whose question it answers
wrongly, or say why nothing that is promised changes.
"""

import argparse
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TARGETS = ["moehub", "moehub_tests"]
# Comments, texts and lines of the preprocessor; ' after a digit separates digits.
NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"
        |(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE)
# Lines that say what is, not what is done.
DECLARES = re.compile(r"\s*(static_assert|template|using|namespace|friend)\b|.*\boperator\b"
                      r"|.*\) *(const|noexcept|override)* *= 0;|.*\breserve\(")
SWAPS = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "<": ["<=", ">="], ">": [">=", "<="],
         "<=": ["<", ">"], ">=": [">", "<"], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
         "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"], "^": ["&"], "+=": ["-="], "-=": ["+="],
         "*=": ["/="], "/=": ["*="], "|=": ["&="], "&=": ["|="], "true": ["false"], "false": ["true"]}
# A binary operator has spaces around it: pointers, references and templates do not.
CHANGES = re.compile(
    r"(?<= )(?P<binary>" + "|".join(re.escape(op) for op in sorted(SWAPS, key=len, reverse=True)
                                    if not op.isalpha()) + r")(?= |$)"
    r"|(?P<truth>\b(?:true|false)\b)|(?P<negation>!)(?=[\w(])"
    r"|(?<![\w.<'])(?P<number>\d[\d']*(?:\.\d+)?(?:e[+-]?\d+)?)(?P<unsigned>[uUlL]*)(?![\w.'>])")


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    column: int
    old: str
    new: str
    text: str

    def __str__(self) -> str:
        change = f"{self.old} -> {self.new or 'nothing'}"
        return f"{self.file}:{self.line}:{self.column}  {change:<12}  {self.text.strip()}"


def code_of(text: str) -> str:
    """The text with spaces where it is not code."""
    return NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def changes_of(found: re.Match) -> list[str]:
    if found["negation"]:
        return [""]
    number = found["number"]
    if not number:
        return SWAPS[found[0]]
    if re.search(r"[.e]", number):
        return ["1.0"] if float(number.replace("'", "")) == 0 else [f"(2 * {number})"]
    value = int(number.replace("'", ""))
    if number.startswith("0") and len(number) > 1:
        return []  # octal, or a part of something else
    return [str(value + 1)] + ([str(value - 1)] if value > 0 else [])


def mutants_of(file: str, text: str) -> list[list[Mutant]]:
    """For each line that has something to change, its changes."""
    lines = []
    for number, (code, line) in enumerate(zip(code_of(text).split("\n"), text.split("\n")), 1):
        if DECLARES.match(code):
            continue
        made = [Mutant(file, number, found.start() + 1, found["number"] or found[0], new, line)
                for found in CHANGES.finditer(code) for new in changes_of(found)]
        if made:
            lines.append(made)
    return lines


def all_mutants(root: Path, folder: str) -> list[list[Mutant]]:
    files = sorted(path for kind in ("cpp", "hpp") for path in (root / folder).rglob(f"*.{kind}"))
    return [line for path in files
            for line in mutants_of(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))]


def sample(lines: list[list[Mutant]], count: int, seed: int) -> list[Mutant]:
    random_ = random.Random(seed)
    return [random_.choice(line) for line in random_.sample(lines, min(count, len(lines)))]


def files_of(root: Path) -> set[Path]:
    """All but what is built or hidden."""
    found = set()
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("build", "__pycache__") and name[0] != "."]
        found.update((Path(folder) / name).relative_to(root) for name in files)
    return {path for path in found if (root / path).is_file()}


class Scratch:
    """A copy of the tree in build/mutate, with a build folder of its own."""

    def __init__(self, root: Path, jobs: int, configure: list[str]):
        self.root, self.jobs = root, jobs
        self.tree = root / "build/mutate"
        self.build, self.log = self.tree / "build/release", self.tree / "build/log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.lock = (self.tree / "build/lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(f"mutate: another run has {self.tree}")
        self.changed = self.tree / "build/changed"  # which file is, as long as one is
        if self.changed.exists():  # a run that was ended: what was built of it goes
            (self.tree / self.changed.read_text()).unlink(missing_ok=True)
        self.copy()
        wanted = ["-DCMAKE_BUILD_TYPE=Release", "-DMOEHUB_TESTS=ON", "-DMOEHUB_UNITY=OFF"]
        charts = sorted((root / "build/npm").glob("echarts-*.min.js"))
        wanted += [f"-DMOEHUB_ECHARTS={charts[-1]}"] if charts else []
        if shutil.which("ld.lld"):
            wanted.append("-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld")  # links in a third of the time
        if shutil.which("ccache"):
            wanted.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")  # what is restored is not compiled again
        self.must("cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", *wanted, *configure)
        self.must("cmake", "--build", self.build, "-j", jobs, "--target", *TARGETS)

    def copy(self) -> None:
        """Only what differs is written, so that only what depends on it is built."""
        here = files_of(self.root)
        for path in here:
            old, new = self.root / path, self.tree / path
            if not new.exists() or old.read_bytes() != new.read_bytes():
                new.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(old, new)
        for path in files_of(self.tree) - here:
            (self.tree / path).unlink()

    def run(self, *command) -> bool:
        with self.log.open("w") as log:
            return subprocess.run([str(word) for word in command], stdout=log, stderr=log).returncode == 0

    def must(self, *command) -> None:
        if not self.run(*command):
            sys.exit(f"mutate: failed: {' '.join(map(str, command))}; its output is {self.log}")

    def killer(self, mutant: Mutant, tests: "Tests", limit: float) -> str | None:
        """Who noticed: a test, or the compiler; None when the change survives."""
        path = self.tree / mutant.file
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        line, at = lines[mutant.line - 1], mutant.column - 1
        lines[mutant.line - 1] = line[:at] + mutant.new + line[at + len(mutant.old):]
        self.changed.write_text(mutant.file)
        try:
            path.write_text("\n".join(lines), encoding="utf-8")
            if not self.run("cmake", "--build", self.build, "-j", self.jobs, "--target", *TARGETS):
                # What is built is run for its manual page, so that a build may end without an error.
                killer = "the compiler" if "error:" in self.log.read_text(errors="replace") else "the build"
            else:
                killer = tests.first_failure(mutant.file, self.jobs, limit)
        finally:
            path.write_text(text, encoding="utf-8")
        self.changed.unlink()
        return killer


class Tests:
    """Those of ctest's tests that run one of the targets, with the seconds each takes."""

    def __init__(self, scratch: Scratch, most: float):
        listed = subprocess.run(["ctest", "--test-dir", scratch.build, "--show-only=json-v1"],
                                check=True, capture_output=True, text=True)
        programs = set(TARGETS)
        self.tests = {test["name"]: test for test in json.loads(listed.stdout)["tests"]
                      if any(Path(word).name in programs for word in test.get("command", []))}
        self.texts = {}
        for name in self.tests:
            file = scratch.tree / f"tests/{name}_test.cpp"
            self.texts[name] = file.read_text(encoding="utf-8") if file.exists() else ""
        self.costs_file = scratch.tree / "build/costs.json"
        self.costs = {}
        for build in (scratch.root / "build/release", scratch.build):
            costs = build / "Testing/Temporary/CTestCostData.txt"
            rows = costs.read_text().split("---")[0].splitlines() if costs.exists() else []
            self.costs |= {name: float(cost) for name, _, cost in map(str.split, rows)}
        if self.costs_file.exists():
            self.costs |= json.loads(self.costs_file.read_text())
        self.tests = {name: test for name, test in self.tests.items() if self.costs.get(name, 0) <= most}

    def likely(self, file: str) -> list[str]:
        """Tests that include the file's header or share words with its name first, then the cheapest."""
        path = Path(file)
        words = set(re.split(r"[_/]", path.with_suffix("").as_posix())) - {"src"}

        def cost(name: str) -> float:
            near = 3 * (f'{path.stem}.hpp"' in self.texts[name]) + len(words & set(name.split("_")))
            near += f'"{path.parent.as_posix().removeprefix("src/")}/' in self.texts[name]
            return (0.1 + self.costs.get(name, 1)) / 10 ** near

        return sorted(self.tests, key=cost)

    def first_failure(self, file: str, jobs: int, limit: float) -> str | None:
        waiting, running = self.likely(file), {}
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    name = waiting.pop(0)
                    running[name] = (self.start(name), time.monotonic())
                time.sleep(0.02)
                for name, (process, began) in list(running.items()):
                    code, took = process.poll(), time.monotonic() - began
                    if code == 0:
                        self.costs[name] = took
                        del running[name]
                    elif code is not None:
                        return name
                    elif took > max(limit, 5 * self.costs.get(name, 0)):
                        return f"{name}, which hangs"
            return None
        finally:
            for process, _ in running.values():
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            self.costs_file.write_text(json.dumps(self.costs))

    def start(self, name: str) -> subprocess.Popen:
        folder = {one["name"]: one["value"] for one in self.tests[name]["properties"]}["WORKING_DIRECTORY"]
        return subprocess.Popen(self.tests[name]["command"], cwd=folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True, env=os.environ | {"GTEST_FAIL_FAST": "1"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, help="how many changes")
    parser.add_argument("seed", nargs="?", type=int, help="same seed and same code, same changes")
    parser.add_argument("folder", nargs="?", default="src", help="where (src)")
    parser.add_argument("--only", metavar="FILE:LINE[:COLUMN]", action="append",
                        help="the changes there, repeatable")
    parser.add_argument("--list", action="store_true", help="show the changes, make none")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a test hangs (300)")
    parser.add_argument("--most", type=float, default=1e9, help="leave out tests that take more seconds")
    parser.add_argument("--trust", action="store_true",
                        help="do not run all tests on the code as it is first")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at a time (as many as cores)")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="whose code")
    parser.add_argument("--cmake", action="append", default=[], metavar="ARGUMENT", help="to configure with")
    asked = parser.parse_args()
    root = asked.root.resolve()
    if asked.only:
        mutants = [one for place in asked.only for line in all_mutants(root, str(Path(place).parent))
                   for one in line if f"{one.file}:{one.line}:{one.column}:".startswith(place + ":")]
    elif asked.count is not None and asked.seed is not None:
        mutants = sample(all_mutants(root, asked.folder), asked.count, asked.seed)
    else:
        parser.error("COUNT and SEED, or --only")
    if asked.list:
        print(*mutants, sep="\n")
        return 0
    scratch = Scratch(root, asked.jobs, asked.cmake)
    tests = Tests(scratch, asked.most)
    if not asked.trust and (failed := tests.first_failure("src/", asked.jobs, asked.limit)):
        sys.exit(f"mutate: {failed} fails on the code as it is")
    survivors, broken = [], 0
    for mutant in mutants:
        killer = scratch.killer(mutant, tests, asked.limit)
        broken += killer == "the compiler"
        survivors += [mutant] if killer is None else []
        print(f"{'SURVIVES' if killer is None else 'killed by ' + killer:<32}  {mutant}", flush=True)
    tried = len(mutants) - broken
    print(f"\n{tried - len(survivors)} of {tried} killed, {len(survivors)} survived, "
          f"{broken} did not compile")
    print(*survivors, sep="\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs every command of the documentation and compares what pages show with what is printed.

    run_docs.py --program build/release/moehub             all pages
    run_docs.py --program … --update                       rewrites what they show
    run_docs.py --program … docs/area.md --slow            one page, commands of slow.txt too

A command of slow.txt is only started: what is wrong with its options, names and files ends it
at once, so that it is well when it still runs after two seconds. Times are compared by nobody.
pages.py says what a command is, stand_ins.py which files readers are taken to have.
"""

import argparse
import difflib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from links import broken_links
from pages import Command, Page, read_page, split
from stand_ins import write_stand_ins

ROOT = Path(__file__).resolve().parents[2]
GLOBS = ("*.md", "docs/**/*.md", "validation/**/*.md")
LINKS = ("validation", "presets", "examples", "tests", "include", "src")
WRITES = ("-o", "--output", "--html", "--svg", "--trace", "--csv", "--database", ">")
STARTED = 2.0  # seconds that a slow command is watched
# What no two runs have in common: how long they took.
MASKS = (
    re.compile(r"(?<=wall time           ).*"),  # moehub collective
    re.compile(r"(?<=simulated           ).*packets/s"),
    re.compile(r"(?<=Placed in )[\d.]+ m?s"),  # moehub place
)


class Runner:
    def __init__(self, program: Path, slow: bool, update: bool):
        self.program = program
        self.update = update
        self.slow = set() if slow else listed("slow.txt")
        self.results: dict[tuple[str, int], tuple[int, str]] = {}
        self.helps: dict[str, str] = {}
        self.started: set[str] = set()
        self.lock = threading.Lock()
        self.seconds: list[tuple[float, str]] = []

    def environment(self, folder: Path, columns: int) -> dict[str, str]:
        return {
            "PATH": f"{folder}/.bin:{os.environ['PATH']}",
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": str(columns),
        }

    def prepare(self, folder: Path) -> None:
        (folder / ".bin").mkdir()
        (folder / ".bin/moehub").symlink_to(self.program)
        (folder / ".bin/python3").symlink_to(sys.executable)  # has what Debian's packages brought
        (folder / "moehub").symlink_to(self.program)
        (folder / "build").symlink_to(self.program.parent / "examples")
        for name in LINKS:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)
        write_stand_ins(folder)

    def page(self, path: Path) -> list[str]:
        """Runs a page's commands in their order, in one folder; returns what is wrong."""
        page = read_page(path)
        wrong = broken_links(path, ROOT)
        wrong += [text for text in map(self.check_names, page.patterns) if text]
        with tempfile.TemporaryDirectory(prefix="moehub-docs.") as name:
            folder = Path(name)
            self.prepare(folder)
            for step in page.steps:
                if isinstance(step, Command):
                    wrong += self.step(page, step, folder)
                else:
                    (folder / step[0]).write_text(step[1], encoding="utf-8")
        if self.update:
            rewrite(page)
        where = path.relative_to(ROOT)
        return [f"{where}:{text}" for text in wrong]

    def step(self, page: Page, command: Command, folder: Path) -> list[str]:
        if command.name in self.slow:
            return self.start(command, folder)
        code, printed = self.result(command, folder)
        if code != command.exit:
            end = "\n".join(printed.rstrip().split("\n")[-5:])
            return [f"{command.line}: {command.text}\n  ended with {code} instead of {command.exit}\n{end}"]
        if command.output is None:
            return []
        shown = fitted(printed, command.output)
        if masked(shown) == masked(command.output):
            return []
        if self.update:
            command.output = shown
            return []
        diff = difflib.unified_diff(command.output, shown, "the page", "printed", lineterm="", n=1)
        return [f"{command.line}: {command.text}\n  prints something else:\n" + "\n".join(diff)]

    def result(self, command: Command, folder: Path) -> tuple[int, str]:
        """The exit code and what was printed; what reads and writes no file of the page's own runs
        once for all pages."""
        alone = not self.has_files(command, folder)
        with self.lock:
            if alone and (command.name, command.columns) in self.results:
                return self.results[command.name, command.columns]
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                ["bash", "-c", command.text], cwd=folder, env=self.environment(folder, command.columns),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
            output.seek(0)
            process.returncode = os.waitstatus_to_exitcode(status)
            found = (process.returncode, output.read().decode("utf-8", "replace"))
        with self.lock:
            self.seconds.append((used.ru_utime + used.ru_stime, command.name))
            if alone:
                self.results[command.name, command.columns] = found
        return found

    def has_files(self, command: Command, folder: Path) -> bool:
        words = split(command.text)
        pieces = [piece for word in words[1:] for piece in re.split(r"[=:]", word) if piece]
        return words[0].removeprefix("./") != "moehub" or any(
            piece in WRITES or (folder / piece).exists() and not piece.startswith(LINKS)
            for piece in pieces)

    def start(self, command: Command, folder: Path) -> list[str]:
        """Well when it goes on for a while, or ends well before; once for all pages."""
        with self.lock:
            if command.name in self.started:
                return []
            self.started.add(command.name)
        process = subprocess.Popen(
            ["bash", "-c", "exec " + command.text], cwd=folder, env=self.environment(folder, command.columns),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True)
        try:
            _, error = process.communicate(timeout=STARTED)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return []
        if process.returncode == command.exit:
            return []
        return [f"{command.line}: {command.text}\n  ended with {process.returncode}: {error.decode()}"]

    def check_names(self, command: Command) -> str:
        """Of a mention or pattern: are there such a command and such options?"""
        words = [word for word in split(command.text)[1:] if word != "…"]
        if not words or not re.match(r"[a-z]", words[0]):
            return ""
        known = self.help(words[0])
        if not known:
            return f"{command.line}: {command.text}\n  there is no command {words[0]}"
        for word in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(words[1:])):
            if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", known):
                return f"{command.line}: {command.text}\n  {words[0]} has no option {word}"
        return ""

    def commands_without_page(self) -> list[str]:
        done = subprocess.run([self.program, "--help"], capture_output=True, text=True)
        names = re.findall(r"^  ([a-z]+)  ", done.stdout.partition("Subcommands:")[2], re.MULTILINE)
        return [f"docs/commands/{name}.md is missing" for name in names
                if not (ROOT / f"docs/commands/{name}.md").exists()]

    def help(self, name: str) -> str:
        with self.lock:
            if name not in self.helps:
                done = subprocess.run([self.program, name, "--help"], capture_output=True, text=True)
                self.helps[name] = done.stdout if done.returncode == 0 else ""
            return self.helps[name]


def listed(file: str) -> set[str]:
    """The commands of a list beside this file; none where there is no list."""
    path = Path(__file__).parent / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {Command(line, 0).name for line in lines}


def masked(lines: list[str]) -> list[str]:
    text = "\n".join(lines)
    for pattern in MASKS:
        text = pattern.sub("…", text)
    return text.split("\n")


def fitted(printed: str, shown: list[str]) -> list[str]:
    """What is printed, with as much left out as the page leaves out. Spaces at the end of a line
    and lines that are empty at the end of all are no part of a page."""
    lines = [line.rstrip() for line in printed.rstrip("\n").split("\n")] if printed else []
    if "…" not in shown:
        return lines
    head = shown.index("…")
    tail = len(shown) - head - 1
    if head + tail >= len(lines):
        return lines
    return lines[:head] + ["…"] + lines[len(lines) - tail:]


def rewrite(page: Page) -> None:
    lines = list(page.lines)
    commands = [step for step in page.steps if isinstance(step, Command) and step.output is not None]
    for command in reversed(commands):
        lines[command.span[0]:command.span[1]] = command.output
    if lines != page.lines:
        page.path.write_text("\n".join(lines), encoding="utf-8")
        print(f"{page.path.relative_to(ROOT)}: rewritten")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--slow", action="store_true", help="run what slow.txt names")
    parser.add_argument("--update", action="store_true", help="rewrite what pages show")
    parser.add_argument("--times", action="store_true", help="print the longest, and how long all took")
    parser.add_argument("pages", nargs="*", type=Path)
    asked = parser.parse_args()
    paths = asked.pages or sorted({path for pattern in GLOBS for path in ROOT.glob(pattern)})
    runner = Runner(asked.program.resolve(), asked.slow, asked.update)
    with ThreadPoolExecutor(max_workers=2) as pool:
        found = list(pool.map(lambda path: runner.page(path.resolve()), paths))
    wrong = [text for page in found for text in page]
    if not asked.pages:
        wrong += runner.commands_without_page()
    for text in wrong:
        print(text, end="\n\n")
    if asked.times:
        for seconds, name in sorted(runner.seconds, reverse=True)[:25]:
            print(f"{seconds:6.1f} s  {name}")
        print(f"{sum(seconds for seconds, _ in runner.seconds):6.1f} s  of one core, all of them")
    print(f"{len(paths)} pages, {len(runner.seconds)} commands run, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

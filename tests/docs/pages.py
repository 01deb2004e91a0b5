"""What a page of documentation asks its reader to type.

A command is a line that starts with `moehub` or `./moehub`, in three forms:

- a ```console block: lines that start with `$ ` are commands, what follows one is what it prints,
  to the byte. A line `…` stands for any number of lines left out. Other programs of RUNNABLE may
  stand there too. ```console exit=2 is a command that is refused, columns=140 a wider terminal
  than the usual 80.
- an indented or fenced block whose first line is a command: all its commands, no output.
- `inline code` with arguments. A name alone (`moehub plan`) is a mention, and what has a place
  holder (N, FILE, …) is a pattern: of both only the names are checked.

`<!-- file: NAME -->` before a fenced block makes it a file that later commands may read.
"""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

RUNNABLE = {"moehub", "./moehub", "build/own_system", "python3", "cat", "head", "ls", "mkdir", "echo", "mpirun"}
COMMAND = re.compile(r"^(\./)?moehub(\s|$)")
PLACE_HOLDER = re.compile(r"^[A-Z]+(\.[a-z]+)?$")
PARAGRAPH = re.compile(r"\s*[^#\s]")  # goes on in the next line, indented or not
FENCE = re.compile(r"^```\s*(.*)$")
FILE_NOTE = re.compile(r"^<!-- file: (\S+) -->$")


@dataclass
class Command:
    text: str  # as the shell gets it; continued lines joined
    line: int  # of the page, from 1
    exit: int = 0
    columns: int = 80  # of the terminal
    output: list[str] | None = None  # lines that the page shows; None: it shows none
    span: tuple[int, int] = (0, 0)  # those lines in the page, from 0

    @property
    def name(self) -> str:
        """Without the launcher's ./, comments and spaces that mean nothing."""
        words = split(self.text)
        return " ".join(["moehub" if word == "./moehub" else shlex.quote(word) for word in words])


@dataclass
class Page:
    path: Path
    lines: list[str]
    steps: list = field(default_factory=list)  # Command, or (file name, text), in their order
    patterns: list[Command] = field(default_factory=list)


def split(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote that does not end
        return text.split()


def is_pattern(text: str) -> bool:
    """Whether a reader has to put something in its place."""
    words = split(text)[1:]
    pieces = [piece for word in words for piece in re.split(r"[=,:]", word)]
    return "…" in text or any(
        piece.startswith("[") or PLACE_HOLDER.match(piece) for piece in pieces
    )


def read_page(path: Path) -> Page:
    page = Page(path, path.read_text(encoding="utf-8").split("\n"))
    i = 0
    while i < len(page.lines):
        line = page.lines[i]
        fence = FENCE.match(line)
        if fence:
            i = read_fence(page, i, fence.group(1).strip())
        elif line.startswith("    ") and (i == 0 or not PARAGRAPH.match(page.lines[i - 1])):
            i = read_indented(page, i)
        else:
            read_inline(page, i)
            i += 1
    return page


def read_fence(page: Page, start: int, info: str) -> int:
    end = start + 1
    while end < len(page.lines) and page.lines[end] != "```":
        end += 1
    body = range(start + 1, end)
    note = FILE_NOTE.match(page.lines[start - 1]) if start > 0 else None
    if note:
        text = "\n".join(page.lines[i] for i in body) + "\n"
        page.steps.append((note.group(1), text))
    elif info.split()[:1] == ["console"]:
        read_console(page, body, info)
    else:
        read_plain(page, body, 0)
    return end + 1


def read_console(page: Page, body: range, info: str) -> None:
    said = dict(re.findall(r"(exit|columns)=(\d+)", info))
    i = body.start
    while i < body.stop:
        text, after = joined(page, i, body.stop, 2)
        end = after
        while end < body.stop and not page.lines[end].startswith("$ "):
            end += 1
        command = Command(text, i + 1, int(said.get("exit", 0)), int(said.get("columns", 80)))
        command.output = page.lines[after:end]
        command.span = (after, end)
        if split(text)[0] not in RUNNABLE:
            raise SystemExit(f"{page.path}:{i + 1}: a console block has a command of "
                             f"{', '.join(sorted(RUNNABLE))}, found: {text}")
        page.steps.append(command)
        i = end


def read_indented(page: Page, start: int) -> int:
    end = start
    while end < len(page.lines) and (
        page.lines[end].startswith("    ") or not page.lines[end].strip()
    ):
        end += 1
    read_plain(page, range(start, end), 4)
    return end


def read_plain(page: Page, body: range, indent: int) -> None:
    """Commands alone; a block that begins with anything else is not one to type."""
    if not body or not COMMAND.match(page.lines[body.start][indent:]):
        return
    i = body.start
    while i < body.stop:
        text, after = joined(page, i, body.stop, indent)
        if COMMAND.match(text):
            add(page, Command(text, i + 1), is_pattern(text))
        i = after


def joined(page: Page, i: int, end: int, indent: int) -> tuple[str, int]:
    """A command and the line after it: a backslash at the end of a line continues it."""
    text = page.lines[i][indent:]
    while text.endswith("\\") and i + 1 < end:
        i += 1
        text = text[:-1].rstrip() + " " + page.lines[i].strip()
    return text, i + 1


def read_inline(page: Page, i: int) -> None:
    for match in re.finditer(r"`([^`]+)`", page.lines[i]):
        text = match.group(1)
        if COMMAND.match(text):
            add(page, Command(text, i + 1), len(split(text)) < 3 or is_pattern(text))


def add(page: Page, command: Command, pattern: bool) -> None:
    (page.patterns if pattern else page.steps).append(command)

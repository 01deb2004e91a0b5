#!/usr/bin/env python3
"""Rooms depend as the picture in ARCHITECTURE.md draws them. Fails with the offending include when a
room reaches where no path of arrows leads, and with the arrow when nothing in the tree needs it."""
import itertools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARROWS = re.compile(r"\w+(?: & \w+)*(?: --> \w+(?: & \w+)*)+")
INCLUDE = re.compile(r'\s*#\s*include\s*"(\w+)/')


def drawn() -> set[tuple[str, str]]:
    """The arrows of the picture: (room, room that stands on it)."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = page.split("```mermaid\n")[1].split("```")[0]
    arrows: set[tuple[str, str]] = set()
    for line in picture.split("\n"):
        if ARROWS.fullmatch(line.strip()):
            levels = [level.split(" & ") for level in line.strip().split(" --> ")]
            for lower, upper in itertools.pairwise(levels):
                arrows.update(itertools.product(lower, upper))
    return arrows


def below(room: str, arrows: set[tuple[str, str]]) -> set[str]:
    """All rooms that `room` may include: itself and what lies under it."""
    found = {room}
    for lower, upper in arrows:
        if upper == room:
            found |= below(lower, arrows)
    return found


def main() -> int:
    arrows = drawn()
    rooms = set(itertools.chain.from_iterable(arrows))
    wrong: list[str] = []
    needed: set[tuple[str, str]] = set()
    folders = [*(ROOT / "src").iterdir(), ROOT / "python"]
    for folder in sorted(one for one in folders if one.is_dir()):
        if folder.name not in rooms:
            wrong.append(f"{folder.name}: not in the picture of ARCHITECTURE.md")
            continue
        allowed = below(folder.name, arrows)
        for path in sorted(folder.rglob("*.[ch]pp")):
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
                if (match := INCLUDE.match(line)) is None:
                    continue
                needed.add((match[1], folder.name))
                if match[1] not in allowed:
                    place = f"{path.relative_to(ROOT)}:{number}"
                    wrong.append(f"{place}: room {folder.name} must not include {match[1]}")
    for lower, upper in sorted(arrows - needed):
        wrong.append(f"ARCHITECTURE.md: nothing of {upper} includes {lower}, which is drawn under it")
    for one in wrong:
        print(one, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

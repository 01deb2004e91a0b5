"""Do a page's links and the paths that it names lead anywhere?"""

import re
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(
    r"(?<![\w/.-])((?:src|include|tests|docs|presets|examples|validation|cmake|python|bench|fuzz)"
    r"/[\w./+*-]*[\w+*])")


def anchors(path: Path) -> set[str]:
    """The names that headings get: lower case, spaces as dashes, nothing else but letters."""
    found = set()
    for line in path.read_text(encoding="utf-8").split("\n"):
        heading = re.match(r"#+ (.*)", line)
        if heading:
            text = re.sub(r"[^\w\- ]", "", heading.group(1).lower())
            found.add(text.replace(" ", "-"))
    return found


def prose(path: Path) -> list[tuple[int, str]]:
    """Lines outside of code blocks, numbered from 1."""
    found, fenced = [], False
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            found.append((number, line))
    return found


def broken_links(path: Path, root: Path) -> list[str]:
    wrong = []
    for number, line in prose(path):
        for target in LINK.findall(line):
            if "://" not in target and not leads(path, target):
                wrong.append(f"{number}: the link {target} leads nowhere")
        for named in NAMED.findall(re.sub(r"\]\([^)]*\)", "]", line)):
            if not any(root.glob(named)) and not any(path.parent.glob(named)):
                wrong.append(f"{number}: there is no {named}")
    return wrong


def leads(path: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    to = path.parent / name if name else path
    if not to.exists():
        return False
    return not anchor or to.suffix != ".md" or anchor in anchors(to)

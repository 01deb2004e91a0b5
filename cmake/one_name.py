#!/usr/bin/env python3
"""One name, one class: fails when two files define a class of the same name in the same namespace,
which no compiler notices and which ends with the destructor of the wrong one."""
import collections
import pathlib
import re
import sys

NAMESPACE = re.compile(r"\s*(?:inline )?namespace\s*([\w:]*)\s*{")
CLASS = re.compile(r"(?:struct|class|enum class|enum)\s+(\w+)\b(?!::)[^;(]*{")


def classes(path: pathlib.Path) -> set[str]:
    """Those at the top of named namespaces; `namespace {` keeps its own to itself."""
    found: set[str] = set()
    spaces: list[tuple[int, str]] = []  # depth at which it opened, name
    depth = 0
    for line in path.read_text(encoding="utf-8").split("\n"):
        code = line.split("//")[0]
        change = code.count("{") - code.count("}")
        space = NAMESPACE.match(code)
        if space and change > 0:
            spaces.append((depth, space[1]))
        elif (name := CLASS.match(code)) and depth == len(spaces) and all(one for _, one in spaces):
            found.add("::".join([one for _, one in spaces] + [name[1]]))
        depth += change
        while spaces and depth <= spaces[-1][0]:
            spaces.pop()
    return found


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    where = collections.defaultdict(list)
    for folder in ("include", "src", "python/src"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            for name in classes(path):
                where[name].append(str(path.relative_to(root)))
    doubled = {name: paths for name, paths in where.items() if len(paths) > 1}
    for name, paths in doubled.items():
        print(f"{name} is defined in {' and '.join(paths)}", file=sys.stderr)
    return 1 if doubled else 0


if __name__ == "__main__":
    sys.exit(main())

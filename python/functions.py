"""Writes moehub/_functions.py: a function for each question, as the compiled module describes them.

    functions.py FOLDER     where _moehub is, and the file goes
"""
import keyword
import sys
import textwrap
from pathlib import Path
from typing import Any

HEAD = '''"""Functions that answer questions. Written by python/functions.py from the options' data."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ._moehub import ask as _ask
from ._results import (GpuLike, LayoutLike, MachineLike, ModelLike, PathLike, Progress, Result,
                       RoutingLike, Settings, SystemLike)
'''
PROGRESS = {"keyword": "progress", "type": "Progress", "doc": "called after pieces of the work with "
            "what goes on and the share of it that is done; not of a single simulation",
            "settings": False, "list": False, "argument": False, "required": False, "usual": "",
            "choices": []}
WIDTH = 88


def type_of(option: dict[str, Any]) -> str:
    if option["settings"]:
        return "Settings"
    one = str(option["type"])
    return f"{one} | Iterable[{one}]" if option["list"] else one


def parameter(option: dict[str, Any]) -> str:
    if option["required"]:
        return f'{option["keyword"]}: {type_of(option)}'
    return f'{option["keyword"]}: {type_of(option)} | None = None'


def is_shape(option: dict[str, Any]) -> bool:
    """KEY=VALUE behind the command's name: further keywords."""
    return bool(option["argument"] and option["settings"])


def signature(question: dict[str, Any], options: list[dict[str, Any]]) -> str:
    first = question["first"].lower()
    by_position = [one for one in options if one["keyword"] == first or one["argument"]]
    by_position.sort(key=lambda one: (not one["required"], one["keyword"] != first))
    parts = [parameter(one) for one in by_position if not is_shape(one)] + ["*"]
    parts += [parameter(one) for one in options if one not in by_position]
    parts += [f'**{one["keyword"]}: int' for one in options if is_shape(one)]
    whole = " ".join(one.replace(" ", "\0") for one in ",\n".join(parts).split("\n"))
    return textwrap.fill(whole, WIDTH, initial_indent="    ", subsequent_indent="    ",
                         break_on_hyphens=False).replace("\0", " ")


def explained(option: dict[str, Any]) -> str:
    words = option["doc"].replace("\\", "\\\\")
    if option["choices"] and len(option["choices"]) <= 12:
        named = ", ".join(option["choices"])
        words += "" if named in words else f" ({named})"
    if option["usual"]:
        words += f'; usually {option["usual"]}'
    return textwrap.fill(f'{option["keyword"]}: {words}', WIDTH, initial_indent="    ",
                         subsequent_indent="        ", break_on_hyphens=False,
                         break_long_words=False)


def function(question: dict[str, Any]) -> str:
    options = [*question["options"], PROGRESS]
    doc = textwrap.fill(f'{question["doc"]}.', WIDTH, initial_indent='    """',
                        subsequent_indent="    ")
    doc += f'\n\n    The same as `moehub {question["command"]}`. Keywords are its options:'
    lines = "\n".join(explained(one) for one in options)
    return (f'def {question["name"]}(\n{signature(question, options)}) -> Result:\n{doc}\n\n'
            f'{lines}\n    """\n    return cast(Result, _ask("{question["name"]}", locals()))\n')


def main(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    import _moehub  # type: ignore[import-not-found]
    questions = _moehub.questions()
    for option in (one for question in questions for one in question["options"]):
        assert not keyword.iskeyword(option["keyword"]), option["keyword"]
    names = sorted(question["name"] for question in questions)
    text = "\n\n".join([f"{HEAD}\n__all__ = {names}\n", *map(function, questions)])
    (folder / "_functions.py").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

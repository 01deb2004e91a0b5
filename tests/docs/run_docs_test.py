#!/usr/bin/env python3
"""Does the tool find what a page asks for, and what is wrong with it?"""

import os
import stat
import tempfile
import unittest
from pathlib import Path

import run_docs
from links import broken_links
from pages import Command, read_page

# A program that prints its arguments, and refuses what is called bad.
PROGRAM = """#!/bin/sh
case "$*" in
  *--help) echo "  --gpus N" ;;
  *bad*) echo "moehub: bad" >&2; exit 2 ;;
  *wait*) sleep 60 ;;
  *) for word in "$@"; do echo "$word"; done ;;
esac
"""


class Docs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.program = self.root / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        run_docs.ROOT = self.root

    def tearDown(self):
        self.folder.cleanup()

    def page(self, text: str) -> Path:
        path = self.root / "page.md"
        path.write_text(text, encoding="utf-8")
        return path

    def wrong(self, text: str, update: bool = False) -> list[str]:
        return run_docs.Runner(self.program, False, update).page(self.page(text))

    def test_commands_in_all_their_forms(self):
        page = read_page(self.page(
            "# Title\n    moehub a --b  # why\n    moehub c \\\n        --d\n\n"
            "Type `./moehub e f g` or `moehub plan`, `moehub run --gpus N`.\n\n"
            "    moehub: not one\n\n```console\n$ moehub h\nout\n$ moehub i\n```\n"))
        found = [step.name for step in page.steps]
        self.assertEqual(found, ["moehub a --b", "moehub c --d", "moehub e f g", "moehub h", "moehub i"])
        self.assertEqual([step.text for step in page.patterns], ["moehub plan", "moehub run --gpus N"])
        self.assertEqual([page.steps[3].output, page.steps[4].output], [["out"], []])

    def test_a_page_as_printed_is_well(self):
        self.assertEqual(self.wrong("```console\n$ moehub one two\none\ntwo\n```\n"), [])
        self.assertEqual(self.wrong("```console exit=2\n$ moehub bad\nmoehub: bad\n```\n"), [])

    def test_other_output_is_shown_with_its_place(self):
        found = self.wrong("```console\n$ moehub one two\none\nthree\n```\n")
        self.assertEqual(len(found), 1)
        self.assertIn("page.md:2", found[0])
        self.assertIn("-three\n+two", found[0])

    def test_a_command_that_fails_is_found_wherever_it_stands(self):
        for text in ("    moehub bad\n", "Type `moehub bad x y`.\n", "```console\n$ moehub bad\n```\n"):
            self.assertIn("ended with 2 instead of 0", self.wrong(text)[0])

    def test_unknown_options_of_patterns(self):
        self.assertEqual(self.wrong("`moehub run --gpus N`\n"), [])
        self.assertIn("no option --gpsu", self.wrong("`moehub run --gpsu N`\n")[0])

    def test_lines_left_out(self):
        self.assertEqual(self.wrong("```console\n$ moehub 1 2 3 4\n1\n…\n4\n```\n"), [])
        self.assertEqual(len(self.wrong("```console\n$ moehub 1 2 3 4\n1\n…\n5\n```\n")), 1)

    def test_update_writes_what_is_printed_and_no_more(self):
        text = "a\n```console\n$ moehub 1 2 3\n0\n…\n0\n$ moehub x\n```\nb\n"
        self.assertEqual(self.wrong(text, update=True), [])
        self.assertEqual((self.root / "page.md").read_text(encoding="utf-8"),
                         "a\n```console\n$ moehub 1 2 3\n1\n…\n3\n$ moehub x\nx\n```\nb\n")

    def test_slow_commands_are_started(self):
        run_docs.STARTED = 0.2
        runner = run_docs.Runner(self.program, False, False)
        runner.slow = {"moehub wait", "moehub bad"}
        self.assertEqual(runner.page(self.page("    moehub wait\n")), [])
        self.assertEqual(len(runner.page(self.page("    moehub bad\n"))), 1)

    def test_files_that_a_page_makes(self):
        text = "<!-- file: a.toml -->\n```toml\nkey = 1\n```\n\n```console\n$ cat a.toml\nkey = 1\n```\n"
        self.assertEqual(self.wrong(text), [])

    def test_links_and_paths(self):
        (self.root / "other.md").write_text("# One, two\n")
        good = self.page("[a](other.md#one-two) [b](#here)\n## Here\n")
        self.assertEqual(broken_links(good, self.root), [])
        bad = self.page("[a](none.md) [b](other.md#three) and src/none.cpp\n")
        self.assertEqual(len(broken_links(bad, self.root)), 3)

    def test_names_are_the_same_however_they_are_written(self):
        self.assertEqual(Command("./moehub  a 'b c'  # d", 1).name, Command('moehub a "b c"', 1).name)


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    unittest.main()

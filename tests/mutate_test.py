#!/usr/bin/env python3
"""Does the sampler change code and nothing else, and does it tell what dies from what survives?"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import mutate

TRAPS = '''#include <a/b.hpp>  // 1 + 1
#define MORE(x) \\
    ((x) + 1)
/* 2 < 3
   4 && 5 */
template <class T, int N = 3> struct Some;
const char* text = "1 + 1 == 2";  // a && b
char letter = '5';
const char* raw = R"x(1 + 1
2 + 2)x";
std::array<int, 4>& few(Some<int>& some, int* more);
bool operator<(A a, B b);
virtual int none() const = 0;
words.reserve(5);
auto big = 0x10;
'''

TINY = '''int sum_to(int most) {
    volatile bool waits = false;  // true: hangs
    while (waits) {}
    switch (most) {
        case 6: return 4;         // what no test asks for
        case 5: return 15;        // which case 6 must not be
    }
    int sum = 0;
    for (int i = 1; i <= most; ++i) sum += i;
    return sum;
}
'''

TEST = """int sum_to(int);
int main() { return sum_to(3) != 6 || sum_to(5) != 15; }
"""

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
enable_testing()
add_executable(moehub main.cpp)
add_executable(moehub_tests tests/tiny_test.cpp src/tiny.cpp)
add_test(NAME tiny COMMAND moehub_tests)
"""


class Sampler(unittest.TestCase):
    def changes(self, code: str) -> list[str]:
        return [f"{one.old}>{one.new}" for line in mutate.mutants_of("x.cpp", code) for one in line]

    def test_what_is_no_code_stays(self):
        self.assertEqual(self.changes(TRAPS), [])

    def test_every_kind_of_change(self):
        self.assertEqual(self.changes("x = a + b * 2;"), ["+>-", "*>/", "2>3", "2>1"])
        self.assertEqual(self.changes("if (!a && b < c[0]) return true;"),
                         ["!>", "&&>||", "<><=", "<>>=", "0>1", "true>false"])
        self.assertEqual(self.changes("x += 1'000u - 0.5;"),
                         ["+=>-=", "1'000>1001", "1'000>999", "->+", "0.5>(2 * 0.5)"])
        self.assertEqual(self.changes("double x = 1e-6, y = 0.0;"), ["1e-6>(2 * 1e-6)", "0.0>1.0"])
        self.assertEqual(self.changes("return a ==\n       b;"), ["==>!="])

    def test_same_seed_same_changes(self):
        lines = mutate.mutants_of("x.cpp", "a = 1;\n" * 50)
        self.assertEqual(mutate.sample(lines, 9, 3), mutate.sample(lines, 9, 3))
        self.assertNotEqual(mutate.sample(lines, 9, 3), mutate.sample(lines, 9, 4))
        self.assertEqual(len({one.line for one in mutate.sample(lines, 99, 3)}), 50)

    def test_lines_are_drawn_not_operators(self):
        lines = mutate.mutants_of("x.cpp", "a = 1 + 2 * 3 - 4 / 5 + 6 - 7;\nb = c;\nd = !e;\n")
        found = [mutate.sample(lines, 1, seed)[0].line for seed in range(200)]
        self.assertGreater(min(found.count(1), found.count(3)), 60)


class Project(unittest.TestCase):
    """The whole of it, on a project of two files."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        for name, text in {
                "src/tiny.cpp": TINY,
                "main.cpp": "int main() {}\n",
                "tests/tiny_test.cpp": TEST,
                "CMakeLists.txt": CMAKE}.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text, encoding="utf-8")

    def tearDown(self):
        self.folder.cleanup()

    def run_tool(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, mutate.__file__, "--root", self.root, "--limit", "2", *words],
                              capture_output=True, text=True, check=False)

    def test_dies_survives_hangs_and_does_not_compile(self):
        done = self.run_tool(*(f"--only=src/tiny.cpp:{line}" for line in (2, 5, 9)))
        found = re.findall(r"^(.*?) +src/tiny.cpp:([0-9]+):.*?  (.*?)  ", done.stdout, re.MULTILINE)
        self.assertEqual([(fate, int(line), change.strip()) for fate, line, change in found if fate], [
            ("killed by tiny, which hangs", 2, "false -> true"),
            ("SURVIVES", 5, "6 -> 7"), ("killed by the compiler", 5, "6 -> 5"),
            ("SURVIVES", 5, "4 -> 5"), ("SURVIVES", 5, "4 -> 3"),
            ("killed by tiny", 9, "1 -> 2"), ("SURVIVES", 9, "1 -> 0"), ("killed by tiny", 9, "<= -> <"),
            ("killed by tiny", 9, "<= -> >"), ("killed by tiny", 9, "+= -> -=")], done.stdout + done.stderr)
        self.assertIn("\n5 of 9 killed, 4 survived, 1 did not compile\n", done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertEqual((self.root / "src/tiny.cpp").read_text(encoding="utf-8"), TINY)

    def test_tests_that_fail_anyway_tell_nothing(self):
        (self.root / "tests/tiny_test.cpp").write_text("int main() { return 1; }\n", encoding="utf-8")
        done = self.run_tool("1", "1")
        self.assertIn("mutate: tiny fails on the code as it is", done.stderr)
        self.assertEqual((done.stdout, done.returncode), ("", 1))


if __name__ == "__main__":
    unittest.main()

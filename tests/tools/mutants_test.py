"""tools/mutants.py: what it changes, and how the change is written."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import mutants  # noqa: E402


def choices(body):
    """What is written for a function of this body, by kind."""
    text = f"int f(int a, int b) {{\n{body}\n}}\n"
    return [(m.kind, m.choice) for m in mutants.File("a.cpp", text).mutants()]


class Choices(unittest.TestCase):
    def test_an_operator_takes_the_whole_expression(self):
        self.assertIn(("arithmetic", "(mutant(NUMBER) ? (g(b) - a) : (g(b) + a))"),
                      choices("  return g(b) + a;"))
        self.assertIn(("comparison", "(mutant(NUMBER) ? (a < b) : (a <= b))"),
                      choices("  if (a <= b && g()) {\n  }"))

    def test_comparisons_stop_at_logic_and_logic_does_not(self):
        found = choices("  return a < b || b == a;")
        self.assertIn(("comparison", "(mutant(NUMBER) ? (a <= b) : (a < b))"), found)
        self.assertIn(("comparison", "(mutant(NUMBER) ? (b != a) : (b == a))"), found)
        self.assertIn(
            ("comparison", "(mutant(NUMBER) ? (a < b && b == a) : (a < b || b == a))"), found)

    def test_what_stands_before_a_statement_is_no_operand(self):
        choice = ("arithmetic", "(mutant(NUMBER) ? (a -= b) : (a += b))")
        self.assertIn(choice, choices("  for (int i : g()) a += b;"))
        self.assertIn(choice, choices("  if (g(b)) {\n  }\n  a += b;"))
        self.assertIn(choice, choices("  if (b) {\n  } else a += b;"))

    def test_constants_and_statements(self):
        found = choices("  a = 3;")
        self.assertEqual(found, [("constant", "(mutant(NUMBER) ? 4 : 3)"),
                                 ("constant", "(mutant(NUMBER) ? 2 : 3)"),
                                 ("statement", "if (!mutant(NUMBER)) a = 3;")])

    def test_nothing_of_constants_comments_strings_and_declarations(self):
        self.assertEqual(choices("  constexpr int c = 3 + 4;"), [])
        self.assertEqual(choices("  // a < b\n  /* a + 3 */"), [])
        self.assertEqual(choices('  const char* c = "a < 3";'), [])
        self.assertEqual(choices('  out = "a" + name;'),
                         [("statement", 'if (!mutant(NUMBER)) out = "a" + name;')])

    def test_lines_keep_their_numbers(self):
        text = "int f() {\n  return a +  // first\n         b;\n}\n"
        mutant, = mutants.File("a.cpp", text).mutants()
        self.assertEqual((mutant.line, mutant.last_line), (2, 3))
        written = re.sub(" +", " ", mutants.with_choices(text, {17: mutant}))
        self.assertEqual(written,
                         "int f() {\n return (mutant(17) ? (a - b) : (a + // first\n"
                         " b));\n}\n")

    def test_the_same_seed_draws_the_same(self):
        files = {"a.cpp": "int f(int a) {\n  if (a < 3) return a + 4;\n  a = 5;\n}\n"}
        first = [m.choice for m in mutants.drawn(files, "1")]
        self.assertEqual(first, [m.choice for m in mutants.drawn(files, "1")])
        self.assertEqual(len(first), 2)  # one of each line


if __name__ == "__main__":
    unittest.main()

"""Small bugs that can be chosen when a program runs: what tools/mutate.py writes into a copy.

A mutant is one change in one place, written beside what it changes:

    comparison, arithmetic   (mutant(17) ? (a <= b) : (a < b))
    constant                 (mutant(17) ? 4 : 3)
    statement                if (!mutant(17)) total += weight;

Lines keep their numbers, by which the compiler names what it refuses.
"""

import collections
import dataclasses
import itertools
import random
import re

HEADER = """\
#pragma once
#include <cstdlib>

// Whether the mutant of this number is the one that is run.
inline bool mutant(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("SHARDSIM_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return number == chosen;
}
"""
KINDS = ["comparison", "arithmetic", "constant", "statement"]


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str  # relative to the root
    line: int  # from 1
    last_line: int
    kind: str
    before: str  # the lines
    after: str
    begin: int  # of the text that is changed
    end: int
    choice: str  # what is written in its place, NUMBER for that of the mutant

    def key(self):
        """Holds as long as the lines stay the same, wherever they move to in the file."""
        return (self.file, self.before.strip(), self.after.strip())


SWAPS = {
    "comparison": {
        "==": ["!="], "!=": ["=="], "<": ["<=", ">="], "<=": ["<"], ">": [">=", "<="],
        ">=": [">"], "&&": ["||"], "||": ["&&"],
    },
    "arithmetic": {
        "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["*"],
        "+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="],
    },
}
# clang-format puts spaces around binary operators and none into template arguments.
OPERATOR = re.compile(r"(?<= )(==|!=|<=|>=|&&|\|\||\+=|-=|\*=|/=|[-+*/%<>])(?=[ \n])")
CONSTANT = re.compile(r"(?<![\w.])(\d[\d']*)(\.\d+)?(e-?\d+)?(?![\w.'])|\b(true|false)\b")
NO_CHOICE = re.compile(r"\b(?:constexpr|static_assert|assert|case|template|enum|using)\b")
KEYWORDS = r"(?:if|for|while|throw|break|continue|delete|do|switch)\b"
# What does not compile, or does nothing, without more ado.
NOT_A_STATEMENT = re.compile(
    r"(?:return|using|static|constexpr|const|struct|class|enum|case|default|public|private|friend|"
    r"namespace|template|typename|else|assert)\b|[}#]|\[\[|"
    # A declaration: two words, the second a name.
    rf"(?!{KEYWORDS})(?:[\w:]+(?:<.*>)?[&*]* )+\w+(?:;| =|\{{|\()")

COMMENT = r"//[^\n]*|/\*(?:.|\n)*?\*/"
STRING = r'R"(?P<raw>\w*)\((?:.|\n)*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])\''
TOKEN = re.compile(rf"(?P<string>{STRING})|{COMMENT}|^#(?:\\\n|[^\n])*", re.MULTILINE)


def blanked(text, *, strings=True):
    """The text with comments, preprocessor lines and strings as spaces: columns stay."""
    def spaces(match):
        if match.group("string") and not strings:
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())
    return TOKEN.sub(spaces, text)


# What an operand does not reach beyond, outside of brackets.
ENDS = re.compile(r"[;,?]|(?<!:):(?!:)|&&|\|\||(?<![=!<>])=(?!=)|\b(?:return|throw|else)\b")
LOGIC = ("&&", "||")


def expression_around(code, begin, end, *, logic):
    """Begin and end of the whole expression that an operator stands in; with logic also beyond
    && and ||."""
    def stops(position):
        match = ENDS.match(code, position)
        return match if match and not (logic and match.group() in LOGIC) else None

    depth, first, closed = 0, begin, 0
    while first > 0:
        character = code[first - 1]
        if character in "([{":
            if depth == 0:
                break
            depth -= 1
            if depth == 0 and character == "(" and \
                    re.search(r"\b(?:if|if constexpr|for|while) $", code[max(0, first - 15):first - 1]):
                first = closed
                break
        elif character in ")]}":
            if depth == 0:
                if character == "}" and code[first] == "\n":  # of a block before
                    break
                closed = first
            depth += 1
        elif depth == 0:
            if any((match := stops(first - length)) and match.end() == first
                   for length in (1, 2, 4, 5, 6) if first >= length):
                break
        first -= 1
    depth, last = 0, end
    while last < len(code):
        character = code[last]
        if character in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif character in "([{":
            depth += 1
        elif depth == 0 and stops(last):
            break
        last += 1
    return first, last


class File:
    """The mutants of one source."""

    def __init__(self, name, text):
        self.name = name
        self.text = text
        self.code = blanked(text)
        self.uncommented = blanked(text, strings=False)
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def line_of(self, position):
        return self.text.count("\n", 0, position) + 1

    def mutant(self, kind, begin, end, changed, choice):
        """changed: (begin, end, text) of the change itself, as it is shown."""
        first, last = self.line_of(begin), self.line_of(max(begin, end - 1))
        shown, shown_last = self.line_of(changed[0]), self.line_of(max(changed[0], changed[1] - 1))
        line_begin = self.starts[shown - 1]
        line_end = self.text.find("\n", self.starts[shown_last - 1])
        after = self.text[line_begin:changed[0]] + changed[2] + self.text[changed[1]:line_end]
        return Mutant(self.name, first, last, kind, self.text[line_begin:line_end], after,
                      begin, end, choice)

    def can_choose(self, position):
        begin = max(self.code.rfind(character, 0, position) for character in ";{}")
        return not NO_CHOICE.search(self.code, begin + 1, position)

    def of_operators(self):
        for match in OPERATOR.finditer(self.code):
            for kind, swaps in SWAPS.items():
                for other in swaps.get(match.group(), []):
                    if not self.can_choose(match.start()):
                        continue
                    begin, end = expression_around(self.code, match.start(), match.end(),
                                                   logic=match.group() in LOGIC)
                    expression = self.uncommented[begin:end]
                    begin += len(expression) - len(expression.lstrip())
                    end -= len(expression) - len(expression.rstrip())
                    if match.group() in ("+", "+=") and re.search(r'"|fmt::|\bout\b', expression):
                        continue  # of strings
                    if 'R"' in expression:
                        continue
                    mutated = (self.uncommented[begin:match.start()] + other
                               + self.uncommented[match.end():end])
                    mutated = re.sub(r"\n\s*", " ", mutated)
                    yield self.mutant(kind, begin, end, (match.start(), match.end(), other),
                                      f"(mutant(NUMBER) ? ({mutated}) : ({self.text[begin:end]}))")

    def of_constants(self):
        for match in CONSTANT.finditer(self.code):
            if not self.can_choose(match.start()):
                continue
            text = match.group()
            if text in ("true", "false"):
                others = ["false" if text == "true" else "true"]
            elif match.group(2) or match.group(3):
                others = [f"(2 * {text})"]
            else:
                value = int(text.replace("'", ""))
                others = [str(value + 1)] + ([str(value - 1)] if value > 0 else [])
            for other in others:
                yield self.mutant("constant", match.start(), match.end(), (*match.span(), other),
                                  f"(mutant(NUMBER) ? {other} : {text})")

    def of_statements(self):
        """Whole statements that stand in lines of their own, in functions."""
        codes = self.code.split("\n")
        previous = ";"
        for i, code in enumerate(codes):
            stripped = code.strip()
            if not stripped:
                continue
            begins = previous[-1] in ";{}:" and code.startswith("  ")
            previous = stripped
            if not begins or NOT_A_STATEMENT.match(stripped):
                continue
            statement = ""
            for j in range(i, min(i + 8, len(codes))):
                statement += codes[j]
                if statement.count("{") != statement.count("}") and ";" not in statement:
                    break
                if all(statement.count(a) == statement.count(b) for a, b in ("()", "{}", "[]")):
                    if statement.rstrip().endswith(";"):
                        begin = self.starts[i] + len(code) - len(code.lstrip())
                        end = self.starts[j] + len(codes[j].rstrip())
                        yield self.mutant("statement", begin, end, (begin, end, ""),
                                          f"if (!mutant(NUMBER)) {self.text[begin:end]}")
                        break
                    if statement.rstrip().endswith("}"):
                        break

    def mutants(self):
        return [*self.of_operators(), *self.of_constants(), *self.of_statements()]


def drawn(files, seed):
    """Mutants of a room's sources {name: text}, no two in one line, the kinds in turn."""
    dice = random.Random(seed)
    of_kind = collections.defaultdict(list)
    for name, text in sorted(files.items()):
        by_line = collections.defaultdict(list)
        for mutant in File(name, text).mutants():
            by_line[mutant.line, mutant.kind].append(mutant)
        for (_, kind), alike in sorted(by_line.items()):
            of_kind[kind].append(dice.choice(alike))
    for mutants in of_kind.values():
        dice.shuffle(mutants)
    taken = set()
    for turn in itertools.zip_longest(*(of_kind[kind] for kind in KINDS)):
        for mutant in turn:
            if mutant is None:
                continue
            lines = {(mutant.file, n) for n in range(mutant.line, mutant.last_line + 1)}
            if not lines & taken:
                taken |= lines
                yield mutant


def with_choices(text, mutants):
    """The text of a file with its mutants {number: mutant} in it."""
    for number, mutant in sorted(mutants.items(), key=lambda item: -item[1].begin):
        choice = mutant.choice.replace("NUMBER", str(number), 1)
        text = text[:mutant.begin] + choice + text[mutant.end:]
    return text

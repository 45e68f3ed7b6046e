"""The tokens of SQL statements, and what stands between the commas of a parenthesis; SQLite and PostgreSQL write them nearly alike."""

import re
from dataclasses import dataclass, field

#: White space and comments, constants, names, and what is none of these; a dialect may put alternatives of its own before them.
TOKEN = r"""(?P<space>[ \t\n\f\r]+|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))
    |(?P<blob>[xX]'[0-9A-Fa-f]*')
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
    |(?P<number>0[xX][0-9A-Fa-f](?:_?[0-9A-Fa-f])*|(?:\d(?:_?\d)*(?:\.(?:\d(?:_?\d)*)?)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?)
    |(?P<word>[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*)
    |(?P<mark>.)"""
_FLAGS = re.VERBOSE | re.DOTALL | re.ASCII
_MARKS = set("()+-*/%,.;<>=!|&~?:@#$")
_SQL = re.compile(TOKEN, _FLAGS)


def folded(name: str) -> str:
    """What SQLite compares of a name: only the case of ASCII letters is nothing to it."""
    return name.encode().upper().decode()


def dialect(alternatives: str) -> re.Pattern[str]:
    """A pattern for `tokens` that tries some alternatives before those of `TOKEN`."""
    return re.compile(f"{alternatives}|{TOKEN}", _FLAGS)


@dataclass(frozen=True)
class Token:
    """A piece of SQL: its kind, its text without quotes, and where it stands in the statement."""

    kind: str
    text: str
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and folded(self.text) in words


def tokens(statement: str, pattern: re.Pattern[str] = _SQL) -> list[Token]:
    """The tokens of a statement, without white space and comments."""
    found = []
    for match in pattern.finditer(statement):
        kind, text = str(match.lastgroup), match[0]
        if kind == "space":
            continue
        if kind == "mark" and text not in _MARKS:
            raise ValueError(f"{text!r} is no part of a statement")
        if kind == "string":
            text = text[1:-1].replace("''", "'")
        elif kind == "quoted":
            text = text[1:-1] if text[0] == "[" else text[1:-1].replace(text[0] * 2, text[0])
        elif kind == "number":
            text = text.replace("_", "")
        found.append(Token(kind, text, *match.span()))
    return found


def items(parts: list[Token], opening: int) -> tuple[list[list[Token]], int]:
    """What stands between the commas of a parenthesis, and where it closes."""
    found: list[list[Token]] = [[]]
    depth = 1
    for index in range(opening + 1, len(parts)):
        token = parts[index]
        if token.kind == "mark" and token.text in "()":
            depth += 1 if token.text == "(" else -1
            if depth == 0:
                return [item for item in found if item], index
        if depth == 1 and token == Token("mark", ","):
            found.append([])
        else:
            found[-1].append(token)
    raise ValueError("unbalanced parentheses")

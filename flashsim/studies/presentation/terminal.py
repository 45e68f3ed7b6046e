"""The output of commands: lines, tables and explanations, fitted to the width of the terminal."""

import os
import sys
from dataclasses import dataclass, replace

import pandas as pd

from flashsim.core.errors import printable
from flashsim.studies.presentation.singular import singular
from flashsim.studies.presentation.tables import as_text, wrapped

#: Explanations are no wider, and tables no wider than the second: a longer line is hard to follow.
_READABLE, _MOST = 110, 200
#: The width of a terminal that does not tell.
_USUAL = 80


def width() -> int | None:
    """Characters a line: ``$COLUMNS``, or what the terminal tells, at most 200; None for a pipe or a file, where lines have any length."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return min(int(columns), _MOST)
    if not sys.stdout.isatty():
        return None
    return min(os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL, _MOST)


@dataclass(frozen=True)
class Explanation:
    """A text in lines that are read well; `indent` begins all but the first."""

    text: str
    indent: str = ""


Part = str | pd.DataFrame | Explanation


def say(*parts: Part) -> None:
    """Print tables, explanations, and lines; what follows a line's end when it is wrapped stands four further in."""
    for part in parts:
        print(fitted(in_singular(part), width()))
    sys.stdout.flush()


def in_singular(part: Part) -> Part:
    """A part in which one of something is no plural."""
    if isinstance(part, Explanation):
        return replace(part, text=singular(part.text))
    return singular(part) if isinstance(part, str) else part


def fitted(part: Part, columns: int | None) -> str:
    """A table or a text in lines of at most so many characters, as far as words and numbers allow.

    A text is one line, and what is in it no control character; an empty line follows if it ends one.

    Examples
    --------
    >>> print(fitted("a drive that is filled", 15))
    a drive that is
        filled
    """
    if isinstance(part, pd.DataFrame):
        return as_text(part, columns)
    if isinstance(part, Explanation):
        return wrapped(printable(part.text), min(columns or _READABLE, _READABLE), part.indent)
    line = printable(part.removesuffix("\n"))
    own = line[: len(line) - len(line.lstrip())]
    return wrapped(line, columns, own + "    ") + part[len(line) :]
